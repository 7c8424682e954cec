/* SPDX-License-Identifier: Apache-2.0 */
#include "clip_help.h"

/* A JPEG of its own for every number; sizes are those of few, as in a clip. */
static void clip_jpeg(uint32_t sample, uint32_t frame, PenBuf *out)
{
    JpegSpec spec = {.width = 40 + sample % 3 * 8,
                     .height = 32 + sample % 2 * 16 + (sample == 5 && frame > 3 ? 8 : 0),
                     .quality = 60 + (int)(frame % 40),
                     .h = 2,
                     .v = 2,
                     .orientation = sample == 4 ? 6 : 1};
    make_jpeg(&spec, out);
}

uint32_t clip_lengths(uint32_t sample)
{
    return 1 + sample * 7 % CLIP_FRAMES;
}

static int clip_add(PenWriter *w, const ClipSpec *spec, uint32_t i, PenBuf *files, PenError *err)
{
    PenValue parts[CLIP_FRAMES];
    int64_t times[CLIP_FRAMES], label = i;
    char key[32];
    uint32_t n = spec->frames(i);
    for (uint32_t f = 0; f < n; f++) {
        files[f].bytes = 0;
        clip_jpeg(i, f, &files[f]);
        if ((int)i == spec->bad_sample && (int)f == spec->bad_frame)
            memset(files[f].data + files[f].bytes / 8 * 7, 0xD9, files[f].bytes / 8 - 2);
        parts[f] = (PenValue){.data = files[f].data, .bytes = files[f].bytes};
        times[f] = (int64_t)f * CLIP_GAP_NS;
    }
    PenValue values[2] = {{.frames = parts, .n_frames = n, .timestamps_ns = times},
                          {.data = &label, .bytes = sizeof label}};
    int bytes = snprintf(key, sizeof key, "clip-%u", i);
    return pen_writer_add(w, key, (size_t)bytes, values, 2, err);
}

PenPack *clip_pack(const char *name, const ClipSpec *spec)
{
    static const PenField fields[] = {{.name = "video", .type = PEN_TYPE_CLIP},
                                      {.name = "label", .type = PEN_TYPE_I64}};
    PenError err = {0};
    PenWriterSettings s;
    PenWriter *w = NULL;
    PenBuf files[CLIP_FRAMES] = {{0}};
    pen_writer_settings_init(&s);
    s.fields = fields;
    s.n_fields = 2;
    s.mode = spec->mode;
    s.no_index = spec->bad_sample >= 0; /* it would refuse what is broken */
    s.block_samples = 3;
    s.shard_bytes = 200000;
    int r = help_writer_open(name, &s, &w, &err);
    for (uint32_t i = 0; i < spec->n && r == PEN_OK; i++)
        r = clip_add(w, spec, i, files, &err);
    for (int f = 0; f < CLIP_FRAMES; f++)
        pen__buf_free(&files[f]);
    return help_writer_end(name, &s, w, r, &err);
}

PenLoaderSettings clip_settings(uint32_t batch, const char *pipeline)
{
    PenLoaderSettings s = help_loader_settings(batch);
    s.pipeline = pipeline;
    s.order = PEN_ORDER_SEQUENTIAL;
    return s;
}
