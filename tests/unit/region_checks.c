/* SPDX-License-Identifier: Apache-2.0 */
#include "region_checks.h"

const PenLimits *const limits = &pen__limits_default;

const int32_t colours[] = {PEN_COLOUR_RGB, PEN_COLOUR_GREY};

PenDecoder *decoder; /* one for all tests, so that what one leaves behind meets the next */

Collected found;

static uint32_t dice_state = 1;

uint32_t dice(uint32_t below)
{
    dice_state = dice_state * 1664525u + 1013904223u;
    return (uint32_t)((uint64_t)dice_state * below >> 32);
}

PenBox random_box(uint32_t width, uint32_t height)
{
    PenBox b = {.w = 1 + dice(width), .h = 1 + dice(height)};
    b.x = dice(width - b.w + 1);
    b.y = dice(height - b.h + 1);
    return b;
}

PenBox nth_box(uint32_t n, uint32_t width, uint32_t height)
{
    uint32_t right = width - 1, bottom = height - 1;
    PenBox fixed[] = {
        {0, 0, width, height}, {0, 0, 1, 1},
        {right, 0, 1, 1},      {0, bottom, 1, 1},
        {right, bottom, 1, 1}, {0, 0, width, 1},
        {0, bottom, width, 1}, {0, 0, 1, height},
        {right, 0, 1, height}, {right / 2, bottom / 2, width - right / 2, height - bottom / 2},
    };
    return n < PEN_LEN(fixed) ? fixed[n] : random_box(width, height);
}

void check_box(const PenEncoded *e, const PenPixels *whole, PenBox box, int32_t colour)
{
    PenError err = {0};
    int r = find_region(decoder, e, box, colour, &found, &err);
    if (r < 0)
        printf("%s\n", err.message);
    CHECK_INT(r, PEN_OK);
    size_t different = count_different(whole, box, colour, &found);
    if (different)
        printf("%u x %u: box %u, %u, %u x %u, colour %d\n", e->width, e->height, box.x, box.y,
               box.w, box.h, colour);
    CHECK_INT(different, 0);
}

void check_boxes(const PenEncoded *e, const PenPixels *whole, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++) {
        check_box(e, whole, nth_box(i, e->width, e->height), colours[i % 2]);
        CHECK_OK_SO_FAR();
    }
}

PenEncoded encoded(uint8_t *data, size_t bytes, int codec, const PenPixels *p)
{
    return (PenEncoded){.data = data,
                        .bytes = bytes,
                        .width = p->width,
                        .height = p->height,
                        .codec = (uint8_t)codec,
                        .channels = (uint8_t)p->channels};
}

void check_file(const PenBuf *b, int codec, uint32_t n_boxes)
{
    PenPixels whole = {0};
    CHECK_INT(pen__image_decode(b->data, b->bytes, limits, &whole, NULL), PEN_OK);
    uint8_t *copy = exact_copy(b->data, b->bytes);
    PenEncoded e = encoded(copy, b->bytes, codec, &whole);
    check_boxes(&e, &whole, n_boxes);
    free(copy);
    pen__pixels_free(&whole);
}

int find_status(const PenEncoded *e, PenBox box)
{
    PenError err = {0};
    int r = find_region(decoder, e, box, PEN_COLOUR_RGB, &found, &err);
    if (r < 0 && (err.status != r || !err.message[0]))
        return 99;
    return r;
}

TiledJpeg a_tiled_jpeg(void)
{
    PenBuf b = {0};
    TiledJpeg t = {0};
    make_jpeg(&(JpegSpec){.width = 250, .height = 240, SAMPLING(2, 2, 1, 1)}, &b);
    if (tile_jpeg(b.data, b.bytes, &t) != PEN_OK)
        abort();
    pen__buf_free(&b);
    return t;
}

bool start_regions(void)
{
    return pen__decoder_new(&decoder, NULL) == PEN_OK;
}

void end_regions(void)
{
    pen__decoder_free(&decoder);
    pen__buf_free(&found.pixels);
}
