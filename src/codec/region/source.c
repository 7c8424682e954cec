/* SPDX-License-Identifier: Apache-2.0 */
/* A JPEG file given to libjpeg in one piece, or in several: a head, and segments from some row on,
 * which are neither copied nor renumbered. */
#include "codec/jpeg/markers.h"
#include "codec/region/region_impl.h"

static void point_to(PenDecoder *d, const uint8_t *data, size_t bytes, size_t place)
{
    d->source.next_input_byte = data;
    d->source.bytes_in_buffer = bytes;
    d->turbo.in_bytes = place + bytes;
}

static void start(j_decompress_ptr c)
{
    PenDecoder *d = c->client_data;
    const PenJpegInput *in = &d->input;
    if (in->head)
        point_to(d, in->head, in->head_bytes, 0);
    else
        point_to(d, in->data, in->bytes, in->data_place);
}

static boolean fill(j_decompress_ptr c)
{
    static const uint8_t eoi[2] = {0xFF, PEN_MARKER_EOI};
    PenDecoder *d = c->client_data;
    PenJpegInput *in = &d->input;
    if (in->fillers) {
        in->fillers--;
        in->filling = true;
        point_to(d, in->data, in->filler_bytes, in->data_place);
        return TRUE;
    }
    if (in->head) {
        in->head = NULL;
        in->filling = false;
        point_to(d, in->data, in->bytes, in->data_place);
        if (in->bytes)
            return TRUE;
    }
    WARNMS(c, JWRN_JPEG_EOF); /* does not return: lost data are an error */
    point_to(d, eoi, sizeof eoi, d->turbo.in_bytes);
    return TRUE;
}

static void skip(j_decompress_ptr c, long bytes)
{
    struct jpeg_source_mgr *s = c->src;
    size_t n = bytes > 0 ? (size_t)bytes : 0;
    while (n > s->bytes_in_buffer) {
        n -= s->bytes_in_buffer;
        s->bytes_in_buffer = 0;
        fill(c);
    }
    s->next_input_byte += n;
    s->bytes_in_buffer -= n;
}

/* libjpeg counts restart markers from its first segment, the file from its own: it calls this when
 * the marker that it found is not the one it counted, and here that may be as it should be. */
static boolean restart(j_decompress_ptr c, int counted)
{
    PenDecoder *d = c->client_data;
    int expected = PEN_MARKER_RST0 + (int)(((uint32_t)counted + d->input.segment) % 8);
    if (d->input.filling)
        expected = d->input.filler_code;
    if (c->unread_marker != expected) {
        pen__fail(d->turbo.reterr, PEN_E_DECODE, "codec/jpeg",
                  "jpeg: damaged near byte %zu: expected restart marker %02x, found %02x",
                  pen__turbo_place(&d->turbo), (unsigned)expected, (unsigned)c->unread_marker);
        pen__turbo_leave(&d->turbo, PEN_E_DECODE);
    }
    c->unread_marker = 0;
    return TRUE;
}

static void end(j_decompress_ptr c)
{
    (void)c;
}

void pen__region_source(PenDecoder *d)
{
    d->source = (struct jpeg_source_mgr){
        .init_source = start,
        .fill_input_buffer = fill,
        .skip_input_data = skip,
        .resync_to_restart = restart,
        .term_source = end,
    };
    d->turbo.d.src = &d->source;
}
