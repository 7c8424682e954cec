/* SPDX-License-Identifier: Apache-2.0 */
#include "video/play.h"

#include "base/error.h"
#include "base/sys.h"
#include "base/thread.h"

#define WHERE "video/play"

typedef struct Playing {
    PenFrameDecoder *decoder;
    const PenPlayList *list;
    PenPictureFn take;
    void *ctx;
    uint64_t deadline_ns;
    PenError *reterr;
} Playing;

/* All pictures that the decoder has ready. */
static int take_ready(const Playing *p)
{
    const PenVideoPicture *picture;
    int r;
    do {
        r = pen__video_decoder_receive(p->decoder, &picture, p->reterr);
        if (r == PEN_END)
            return PEN_OK;
        if (r == PEN_OK)
            r = p->take(p->ctx, picture, p->reterr);
    } while (r == PEN_OK);
    return r;
}

static int finish(const Playing *p)
{
    int r = pen__video_decoder_drain(p->decoder, p->reterr);
    return r == PEN_OK ? take_ready(p) : r;
}

/* A packet that is being decoded cannot be interrupted, so this is checked between packets. */
static int check_time(const Playing *p)
{
    if (pen__sys->now_ns() < p->deadline_ns)
        return PEN_OK;
    return pen__fail(p->reterr, PEN_E_DECODE_TIMEOUT, WHERE,
                     "video: expected the frames of a sample to be decoded within %d s, found more "
                     "work; choose frames that are closer together, or encode it with more key "
                     "frames",
                     PEN_PLAY_SECONDS);
}

static int play_packet(const Playing *p, size_t i)
{
    const PenPlayPacket *packet = &p->list->packets[i];
    PenCodedPacket coded = {.flags = packet->flags,
                            .time = packet->time,
                            .data = p->list->data + packet->at,
                            .bytes = packet->bytes};
    int r = check_time(p);
    if (r == PEN_OK && packet->starts && i)
        r = finish(p);
    if (packet->starts && r == PEN_OK)
        r = pen__video_decoder_prepare(p->decoder, &p->list->params, p->reterr);
    if (r == PEN_OK)
        r = pen__video_decoder_send(p->decoder, coded, p->reterr);
    return r == PEN_OK ? take_ready(p) : r;
}

int pen__video_play(PenFrameDecoder *d, const PenPlayList *list, PenPictureFn take, void *ctx,
                    PenError *reterr)
{
    Playing p = {.decoder = d,
                 .list = list,
                 .take = take,
                 .ctx = ctx,
                 .deadline_ns = pen__deadline_after(PEN_PLAY_SECONDS * UINT64_C(1000000000)),
                 .reterr = reterr};
    int r = PEN_OK;
    for (size_t i = 0; i < list->n && r == PEN_OK; i++)
        r = play_packet(&p, i);
    return r == PEN_OK && list->n ? finish(&p) : r;
}
