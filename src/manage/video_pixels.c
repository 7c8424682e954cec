/* SPDX-License-Identifier: Apache-2.0 */
#include "manage/video_pixels.h"

#include <inttypes.h>

#include "pack/video/frames.h"

#define WHERE "manage/pixels"

typedef struct Work {
    const PenPixelRange *what;
    const PenPixelsTo *to;
    PenFramePackets frames;
    PenFrameDecoder decoder;
    PenBuf numbers;
    PenSamplePlan sample_plan; /* of all frames */
} Work;

static int list_numbers(Work *w, PenError *reterr)
{
    for (uint32_t i = 0; i < w->what->n; i++) {
        uint32_t number = w->what->first + i * w->what->step;
        if (pen__buf_add(&w->numbers, &number, sizeof number) < 0)
            return pen__fail_memory(reterr, WHERE, "frames");
    }
    return PEN_OK;
}

static int read_packets(Work *w, PenPack *pack, PenError *reterr)
{
    PenBlock *block;
    PenVideoTable table;
    PenSpot at = {.field = w->what->field};
    int r = pen__pack_locate(pack, w->what->sample, &block, &at.sample, reterr);
    if (r < 0)
        return r;
    at.block = block;
    if (!pen__block_video(&block->view, at.sample, at.field, &table))
        r = pen__fail(reterr, PEN_E_INVALID, WHERE, "expected a video, found none");
    if (r == PEN_OK)
        r = pen__frame_packets_list(&table, (const uint32_t *)(const void *)w->numbers.data,
                                    w->what->n, &w->frames, reterr);
    if (r == PEN_OK)
        r = pen__frame_packets_read(&at, &w->frames, reterr);
    pen__pack_block_put(pack, block);
    return r;
}

/* Times of the wanted frames are distinct. */
static uint32_t place_of(const Work *w, int64_t time)
{
    const PenVideoFrame *f = w->frames.needs.frames;
    while (f->time != time)
        f++;
    return w->what->step ? (f->frame - w->what->first) / w->what->step : 0;
}

static int take_picture(void *ctx, const PenVideoPicture *picture, PenError *reterr)
{
    Work *w = ctx;
    PenEncoded image = {.width = picture->width,
                        .height = picture->height,
                        .codec = PEN_STORED_PICTURE,
                        .channels = picture->n_planes == 1 ? 1 : 3,
                        .picture = picture};
    return pen__sample_run(w->to->context, w->to->program, &w->sample_plan, &image,
                           &pen__limits_default,
                           w->to->pixels + place_of(w, picture->time) * w->to->each, reterr);
}

static int play(Work *w, PenError *reterr)
{
    const PenVideoStream *s = &w->frames.stream;
    PenImageShape shape = {.width = s->width, .height = s->height, .orientation = s->orientation};
    PenPlayList list = pen__frame_packets_play(&w->frames);
    int r = pen__sample_plan_make(w->to->program, &shape, (PenDrawKey){{0}}, 0, &w->sample_plan,
                                  reterr);
    return r == PEN_OK ? pen__video_play(&w->decoder, &list, take_picture, w, reterr) : r;
}

int pen__video_pixels(PenPack *pack, const PenPixelRange *what, const PenPixelsTo *to,
                      PenError *reterr)
{
    Work w = {.what = what, .to = to};
    int r = list_numbers(&w, reterr);
    if (r == PEN_OK)
        r = read_packets(&w, pack, reterr);
    if (r == PEN_OK)
        r = play(&w, reterr);
    if (r < 0)
        pen__error_prefix(reterr, "sample %" PRIu64, what->sample);
    pen__video_decoder_free(&w.decoder);
    pen__frame_packets_trim(&w.frames, 0);
    pen__buf_free(&w.numbers);
    return r;
}
