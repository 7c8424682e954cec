/* SPDX-License-Identifier: Apache-2.0 */
#include "video/decoder.h"

#include <inttypes.h>
#include <string.h>

#include "base/bytes.h"
#include "base/error.h"
#include "video/child.h"
#include "video/plugin.h"

#define WHERE "video/decoder"
#define MAX_PIXELS ((uint64_t)64 << 20)

/* Coded pictures may be larger than shown ones, and libavcodec applies the limit to some memory of
 * a fixed size, too. */
enum { BORDER = 512 };

static bool is_same(const PenVideoParams *a, const PenVideoParams *b)
{
    return a->codec == b->codec && a->width == b->width && a->height == b->height &&
           a->extra_bytes == b->extra_bytes &&
           (!a->extra_bytes || memcmp(a->extra, b->extra, a->extra_bytes) == 0);
}

static void close_decoder(PenFrameDecoder *d)
{
    if (d->decoder)
        d->plugin->close(d->decoder);
    d->decoder = NULL;
}

static int check_size(const PenVideoParams *params, PenError *reterr)
{
    uint32_t w = params->width, h = params->height;
    if (!w || !h || w > PEN_VIDEO_SIDE || h > PEN_VIDEO_SIDE || (uint64_t)w * h > MAX_PIXELS)
        return pen__fail(reterr, PEN_E_LIMIT, WHERE,
                         "video: expected frames of 1 to %d pixels per side and at most %" PRIu64
                         " pixels, found %" PRIu32 "x%" PRIu32,
                         PEN_VIDEO_SIDE, MAX_PIXELS, w, h);
    return PEN_OK;
}

/* PENSTOCK_VIDEO decides when a thread decodes its first video. */
static int choose_plugin(PenFrameDecoder *d, PenError *reterr)
{
    bool in_process = false;
    int r = pen__video_in_process(&in_process, reterr);
    if (r < 0)
        return r;
    if (!in_process)
        return pen__video_plugin(&d->plugin, reterr);
    d->plugin = &pen__child_plugin;
    return PEN_OK;
}

/* After damage a decoder may be in any state, so that one is not used again. */
static bool is_usable(const PenFrameDecoder *d)
{
    return d->decoder && !d->is_broken &&
           (d->plugin != &pen__child_plugin || pen__child_is_alive(d->decoder));
}

/* One process decodes several videos, one after the other. */
static int open_with(PenFrameDecoder *d, const PenVideoDecoderConfig *config, PenError *reterr)
{
    bool again =
        d->decoder && d->plugin == &pen__child_plugin && pen__child_has_room(d->decoder, config);
    if (again)
        return pen__child_open_again(d->decoder, config, reterr);
    close_decoder(d);
    int r = d->plugin->open(config, &d->decoder, reterr);
    if (r < 0)
        d->decoder = NULL;
    return r;
}

static int open_decoder(PenFrameDecoder *d, const PenVideoParams *params, PenError *reterr)
{
    d->extra.bytes = 0; /* which d->params has */
    d->is_broken = true;
    if (pen__buf_add(&d->extra, params->extra, params->extra_bytes) < 0)
        return pen__fail_memory(reterr, WHERE, "codec configuration");
    PenVideoDecoderConfig config = {
        .codec = params->codec,
        .width = params->width,
        .height = params->height,
        .max_pixels = ((uint64_t)params->width + BORDER) * ((uint64_t)params->height + BORDER),
        .extra = d->extra.data,
        .extra_bytes = d->extra.bytes,
    };
    int r = open_with(d, &config, reterr);
    if (r < 0)
        return r;
    d->params = *params;
    d->params.extra = d->extra.data;
    d->is_used = false;
    return PEN_OK;
}

int pen__video_decoder_prepare(PenFrameDecoder *d, const PenVideoParams *params, PenError *reterr)
{
    int r = check_size(params, reterr);
    if (r == PEN_OK && !d->plugin)
        r = choose_plugin(d, reterr);
    if (r < 0)
        return r;
    if (!is_usable(d))
        close_decoder(d);
    if (!d->decoder || !is_same(&d->params, params))
        r = open_decoder(d, params, reterr);
    if (r < 0)
        return r;
    if (d->is_used)
        d->plugin->flush(d->decoder);
    d->params.range = params->range;
    d->params.matrix = params->matrix;
    d->is_used = d->is_broken = d->is_drained = false;
    d->wanted.bytes = 0;
    return PEN_OK;
}

/* Not prepared, or after a failure. */
static int check_ready(const PenFrameDecoder *d, PenError *reterr)
{
    if (!d->decoder || d->is_broken)
        return pen__fail(reterr, PEN_E_INVALID, WHERE,
                         "the video decoder: expected a call that prepares it, found none");
    return PEN_OK;
}

int pen__video_decoder_send(PenFrameDecoder *d, PenCodedPacket packet, PenError *reterr)
{
    int r = check_ready(d, reterr);
    if (r < 0)
        return r;
    d->is_used = true;
    if (packet.flags & PEN_VIDEO_WANTED &&
        pen__buf_add(&d->wanted, &packet.time, sizeof packet.time) < 0)
        r = pen__fail_memory(reterr, WHERE, "times of frames");
    if (r == PEN_OK)
        r = d->plugin->send(d->decoder, &packet, reterr);
    d->is_broken = r < 0;
    return r;
}

int pen__video_decoder_drain(PenFrameDecoder *d, PenError *reterr)
{
    int r = check_ready(d, reterr);
    if (r < 0)
        return r;
    d->is_used = d->is_drained = true;
    r = d->plugin->drain(d->decoder, reterr);
    d->is_broken = r < 0;
    return r;
}

/* Removes a time from the wanted ones; false when it is not one of them. */
static bool take_wanted(PenFrameDecoder *d, int64_t time)
{
    for (size_t at = 0; at < d->wanted.bytes; at += sizeof time)
        if ((int64_t)pen__load64(d->wanted.data + at) == time) {
            d->wanted.bytes -= sizeof time;
            memmove(d->wanted.data + at, d->wanted.data + at + sizeof time, d->wanted.bytes - at);
            return true;
        }
    return false;
}

static int check_picture(const PenFrameDecoder *d, const PenVideoPicture *p, PenError *reterr)
{
    if (p->width != d->params.width || p->height != d->params.height)
        return pen__fail(reterr, PEN_E_DECODE, WHERE,
                         "video: expected frames of %" PRIu32 "x%" PRIu32 ", found %" PRIu32
                         "x%" PRIu32,
                         d->params.width, d->params.height, p->width, p->height);
    if ((p->n_planes != 1 && p->n_planes != 3) || p->depth < 8 || p->depth > 16 || p->shift_x > 2 ||
        p->shift_y > 2)
        return pen__fail(reterr, PEN_E_UNSUPPORTED, WHERE,
                         "video: expected 1 or 3 planes of 8 to 16 bits, found %" PRIu32
                         " of %" PRIu32,
                         p->n_planes, p->depth);
    return PEN_OK;
}

/* Colors that only the container states. */
static const PenVideoPicture *with_color(PenFrameDecoder *d, const PenVideoPicture *p)
{
    enum { UNKNOWN_MATRIX = 2 };
    d->picture = *p;
    if (p->range == PEN_VIDEO_RANGE_UNKNOWN)
        d->picture.range = d->params.range;
    if (p->matrix == UNKNOWN_MATRIX && d->params.matrix)
        d->picture.matrix = d->params.matrix;
    return &d->picture;
}

static int at_end(const PenFrameDecoder *d, PenError *reterr)
{
    if (d->is_drained && d->wanted.bytes)
        return pen__fail(reterr, PEN_E_DECODE, WHERE,
                         "video: expected a picture for every packet, found none for %zu of them",
                         d->wanted.bytes / sizeof(int64_t));
    return PEN_END;
}

int pen__video_decoder_receive(PenFrameDecoder *d, const PenVideoPicture **ret, PenError *reterr)
{
    const PenVideoPicture *p = NULL;
    int r = check_ready(d, reterr);
    while (r == PEN_OK) {
        r = d->plugin->receive(d->decoder, &p, reterr);
        if (r == PEN_END)
            r = at_end(d, reterr);
        else if (r == PEN_OK && take_wanted(d, p->time)) {
            r = check_picture(d, p, reterr);
            break;
        }
    }
    if (r == PEN_OK)
        *ret = with_color(d, p);
    d->is_broken |= r < 0;
    return r;
}

void pen__video_decoder_free(PenFrameDecoder *d)
{
    close_decoder(d);
    pen__buf_free(&d->extra);
    pen__buf_free(&d->wanted);
    *d = (PenFrameDecoder){.plugin = NULL};
}
