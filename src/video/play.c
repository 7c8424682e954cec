/* SPDX-License-Identifier: Apache-2.0 */
#include "video/play.h"

typedef struct Playing {
    PenFrameDecoder *decoder;
    const PenPlayList *list;
    PenPictureFn take;
    void *ctx;
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

static int play_packet(const Playing *p, size_t i)
{
    const PenPlayPacket *packet = &p->list->packets[i];
    PenCodedPacket coded = {.flags = packet->flags,
                            .time = packet->time,
                            .data = p->list->data + packet->at,
                            .bytes = packet->bytes};
    int r = PEN_OK;
    if (packet->starts && i)
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
    Playing p = {.decoder = d, .list = list, .take = take, .ctx = ctx, .reterr = reterr};
    int r = PEN_OK;
    for (size_t i = 0; i < list->n && r == PEN_OK; i++)
        r = play_packet(&p, i);
    return r == PEN_OK && list->n ? finish(&p) : r;
}
