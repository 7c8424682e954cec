/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/rows_pack.h"

#include <stdio.h>
#include <string.h>

#include "base/attr.h"
#include "base/sys.h"
#include "lib/images.h"

enum { MOST_ROWS = 5, SIDE = 64 };

static const PenField fields[] = {
    {.name = "image", .type = PEN_TYPE_IMAGE},
    {.name = "label", .type = PEN_TYPE_I64},
    {.name = "caption", .type = PEN_TYPE_TEXT},
    {.name = "boxes",
     .type = PEN_TYPE_F32,
     .flags = PEN_FIELD_BOXES_XYXY,
     .n_dims = 2,
     .dims = {PEN_DIM_ANY, 4}},
    {.name = "classes", .type = PEN_TYPE_I64, .n_dims = 1},
    {.name = "tokens", .type = PEN_TYPE_I64, .flags = PEN_FIELD_OPTIONAL, .n_dims = 1},
    {.name = "spots",
     .type = PEN_TYPE_F32,
     .flags = PEN_FIELD_POINTS,
     .n_dims = 2,
     .dims = {PEN_DIM_ANY, 2}}};

/* Kept between calls, so that the calls of the library are the same each time. */
static const PenBuf *image_of(uint32_t i)
{
    static PenBuf images[ROWS_SAMPLES];
    const PenSys *sys = pen__sys;
    pen__sys = &pen__sys_real;
    if (!images[i].bytes && i % 5 == 3)
        image_png(&(ImageSpec){SIDE, SIDE, 3, i, 0, 0, 0}, &images[i]);
    else if (!images[i].bytes)
        image_jpeg(&(ImageSpec){SIDE, SIDE, 3, i, 0, 1, i % 4 == 2}, &images[i]);
    pen__sys = sys;
    return &images[i];
}

static int add(PenWriter *w, uint32_t i, PenError *reterr)
{
    const PenBuf *image = image_of(i);
    float boxes[MOST_ROWS][4];
    int64_t label = i, numbers[MOST_ROWS];
    char key[16], caption[40];
    size_t n = i % (MOST_ROWS + 1);
    for (uint32_t k = 0; k < MOST_ROWS; k++) {
        float x = (float)(8 * k), y = (float)(3 * i);
        memcpy(boxes[k], (float[]){x, y, x + 20, y + 9}, sizeof boxes[k]);
        numbers[k] = 100 * i + k;
    }
    int key_bytes = snprintf(key, sizeof key, "s-%u", i);
    int caption_bytes = snprintf(caption, sizeof caption, "caption of sample %u", i);
    PenValue values[] = {{.data = image->data, .bytes = image->bytes},
                         {.data = &label, .bytes = sizeof label},
                         {.data = caption, .bytes = (size_t)caption_bytes},
                         {.data = boxes, .bytes = n * sizeof *boxes},
                         {.data = numbers, .bytes = n * sizeof *numbers},
                         {.data = i % 3 ? numbers : NULL, .bytes = i % 3 ? n * sizeof *numbers : 0},
                         {.data = boxes, .bytes = 2 * n * sizeof(float[2])}};
    return pen_writer_add(w, key, (size_t)key_bytes, values, PEN_LEN(values), reterr);
}

int rows_pack_write(const char *dir, PenError *reterr)
{
    PenWriter *w = NULL;
    PenWriterSettings s;
    uint64_t total;
    pen_writer_settings_init(&s);
    s.fields = fields;
    s.n_fields = PEN_LEN(fields);
    s.block_samples = 2;
    s.shard_bytes = 12000;
    int r = pen_writer_open(dir, &s, &w, reterr);
    for (uint32_t i = 0; i < ROWS_SAMPLES && r == PEN_OK; i++)
        r = add(w, i, reterr);
    if (r == PEN_OK)
        r = pen_writer_finish(w, &total, reterr);
    pen_writer_close(&w);
    return r;
}
