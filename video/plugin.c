/* SPDX-License-Identifier: Apache-2.0 */
/* The decoder plug-in: libavcodec behind the functions of <penstock/video.h>. It
 * compiles with FFmpeg 5.1 to 8.1, and is tested with 5.1 and 7.1. */
#include <penstock/video.h>

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include <libavcodec/avcodec.h>
#include <libavutil/mem.h>

#include "fail.h"
#include "log.h"
#include "picture.h"

#define TEXT_OF(tokens) #tokens
#define TEXT(macro) TEXT_OF(macro)

enum {
    MAX_EXTRA = 1 << 20,
    MAX_PACKET = INT32_MAX - 4095,
    FLAG_BITS = 2, /* of a timestamp: WANTED and LEADING of the packet come back with the frame */
};

static const int64_t max_time = (int64_t)1 << 60;

struct PenVideoDecoder {
    const char *codec;
    AVCodecContext *context;
    AVPacket *packet;
    AVFrame *frame;
    VideoLog log;
    bool is_h264;
    bool can_skip;   /* pictures that no other one refers to */
    bool is_started; /* a picture that is not leading came out since it was opened or flushed */
    PenVideoPicture picture;
};

/* Decoders by name: that of FFmpeg for AV1 needs hardware. */
static const char *const names[] = {
    [PEN_VIDEO_H264] = "h264",    [PEN_VIDEO_HEVC] = "hevc",   [PEN_VIDEO_VP9] = "vp9",
    [PEN_VIDEO_AV1] = "libdav1d", [PEN_VIDEO_MPEG4] = "mpeg4", [PEN_VIDEO_MJPEG] = "mjpeg",
    [PEN_VIDEO_VP8] = "vp8",
};

static int fail_memory(PenError *reterr)
{
    return video_fail(reterr, PEN_E_NO_MEMORY, "out of memory in libavcodec");
}

/* What libavcodec reports: its first message, or what its status means. */
static int fail_decode(const PenVideoDecoder *d, int r, const char *what, PenError *reterr)
{
    if (r == AVERROR(ENOMEM))
        return fail_memory(reterr);
    char text[AV_ERROR_MAX_STRING_SIZE] = "";
    av_strerror(r, text, sizeof text);
    return video_fail(reterr, PEN_E_DECODE, "%s: %s: %s", d->codec, what,
                      d->log.first[0] ? d->log.first : text);
}

static void close_decoder(PenVideoDecoder *d)
{
    if (!d)
        return;
    video_log_begin(&d->log);
    avcodec_free_context(&d->context);
    av_packet_free(&d->packet);
    av_frame_free(&d->frame);
    video_log_end();
    free(d);
}

static int check_config(const PenVideoDecoderConfig *config, PenError *reterr)
{
    if (!config || config->width < 1 || config->width > PEN_VIDEO_SIDE || config->height < 1 ||
        config->height > PEN_VIDEO_SIDE || config->extra_bytes > MAX_EXTRA ||
        (config->extra_bytes && !config->extra))
        return video_fail(
            reterr, PEN_E_INVALID,
            "configuration: expected sides of 1 to %d pixels and at most %d bytes of configuration",
            PEN_VIDEO_SIDE, MAX_EXTRA);
    if (config->codec >= sizeof names / sizeof *names || !names[config->codec])
        return video_fail(reterr, PEN_E_UNSUPPORTED, "codec: expected 1 to %zu, found %u",
                          sizeof names / sizeof *names - 1, config->codec);
    return PEN_OK;
}

static int set_extra(AVCodecContext *c, const PenVideoDecoderConfig *config)
{
    if (!config->extra_bytes)
        return 0;
    size_t bytes = (size_t)config->extra_bytes;
    c->extradata = av_mallocz(bytes + AV_INPUT_BUFFER_PADDING_SIZE);
    if (!c->extradata)
        return AVERROR(ENOMEM);
    memcpy(c->extradata, config->extra, bytes);
    c->extradata_size = (int)bytes;
    return 0;
}

/* Everything that decides what a picture looks like has its default: no fast approximations. */
static int open_context(PenVideoDecoder *d, const AVCodec *codec,
                        const PenVideoDecoderConfig *config)
{
    d->context = avcodec_alloc_context3(codec);
    d->packet = av_packet_alloc();
    d->frame = av_frame_alloc();
    if (!d->context || !d->packet || !d->frame)
        return AVERROR(ENOMEM);
    AVCodecContext *c = d->context;
    c->width = (int)config->width;
    c->height = (int)config->height;
    c->thread_count = 1;
    c->max_pixels = config->max_pixels < INT64_MAX ? (int64_t)config->max_pixels : INT64_MAX;
    if (d->is_h264) {
        /* Some streams do not state how many pictures are reordered. The decoder then assumes what
         * their level allows; otherwise it would guess, and drop pictures of the first groups. */
        c->strict_std_compliance = FF_COMPLIANCE_STRICT;
        /* After a start at a key picture of an open GOP the decoder would drop pictures that are
         * still delayed at the end. check_start() finds those that it is right to drop. */
        c->flags |= AV_CODEC_FLAG_OUTPUT_CORRUPT;
    }
    int r = set_extra(c, config);
    return r < 0 ? r : avcodec_open2(c, codec, NULL);
}

/* Is it certain that what the decoder skips is not needed? In HEVC, a picture that is not referred
 * to within its temporal layer may be referred to from a higher one, so there has to be one layer:
 * the configuration record ("hvcC") has their number. Pictures of VP8, VP9 and AV1 that are not
 * referred to may change probabilities of those that follow. */
static bool can_skip(const PenVideoDecoderConfig *config)
{
    enum { VERSION = 0, LAYERS = 21 }; /* bytes of the record */
    const uint8_t *record = config->extra;
    switch (config->codec) {
    case PEN_VIDEO_H264:
    case PEN_VIDEO_MPEG4:
        return true;
    case PEN_VIDEO_HEVC:
        return config->extra_bytes > LAYERS && record[VERSION] == 1 &&
               (record[LAYERS] >> 3 & 7) == 1;
    default:
        return false;
    }
}

static int open_decoder(const PenVideoDecoderConfig *config, PenVideoDecoder **ret,
                        PenError *reterr)
{
    int r = check_config(config, reterr);
    if (r < 0)
        return r;
    const char *name = names[config->codec];
    const AVCodec *codec = avcodec_find_decoder_by_name(name);
    if (!codec)
        return video_fail(
            reterr, PEN_E_UNSUPPORTED,
            "libavcodec " TEXT(LIBAVCODEC_VERSION) " was built without the decoder %s", name);
    PenVideoDecoder *d = calloc(1, sizeof *d);
    if (!d)
        return fail_memory(reterr);
    d->codec = name;
    d->can_skip = can_skip(config);
    d->is_h264 = config->codec == PEN_VIDEO_H264;
    video_log_begin(&d->log);
    r = open_context(d, codec, config);
    video_log_end();
    if (r < 0) {
        r = fail_decode(d, r, "cannot open the decoder", reterr);
        close_decoder(d);
        return r;
    }
    *ret = d;
    return PEN_OK;
}

static int send_packet(PenVideoDecoder *d, const PenCodedPacket *packet, PenError *reterr)
{
    if (!packet->bytes || packet->bytes > MAX_PACKET || packet->time > max_time ||
        packet->time < -max_time)
        return video_fail(reterr, PEN_E_INVALID,
                          "packet: expected 1 to %d bytes and a time of at most 2^60", MAX_PACKET);
    bool leading = packet->flags & PEN_VIDEO_LEADING, wanted = packet->flags & PEN_VIDEO_WANTED;
    AVCodecContext *c = d->context;
    c->skip_frame = wanted || !d->can_skip ? AVDISCARD_DEFAULT : AVDISCARD_NONREF;
    av_frame_unref(d->frame);
    AVPacket *p = d->packet; /* without an owner of its data: libavcodec copies it and pads it */
    p->data = (uint8_t *)(uintptr_t)packet->data;
    p->size = (int)packet->bytes;
    p->pts = packet->time * (1 << FLAG_BITS) | (packet->flags & ((1 << FLAG_BITS) - 1));
    video_log_begin(&d->log);
    int r = avcodec_send_packet(c, p);
    video_log_end();
    av_packet_unref(p);
    if (r < 0 && (!leading || r == AVERROR(ENOMEM)))
        return fail_decode(d, r, "damaged packet", reterr);
    if (d->log.is_missing && !leading)
        return fail_decode(d, AVERROR_INVALIDDATA, "missing picture", reterr);
    return PEN_OK;
}

static int drain(PenVideoDecoder *d, PenError *reterr)
{
    av_frame_unref(d->frame);
    video_log_begin(&d->log);
    int r = avcodec_send_packet(d->context, NULL);
    video_log_end();
    return r < 0 && r != AVERROR_EOF ? fail_decode(d, r, "end of the packets", reterr) : PEN_OK;
}

/* Decoding starts at an intra picture. Some H.264 videos are refreshed little by little instead:
 * the first pictures after such a key packet are incomplete. */
static int check_start(PenVideoDecoder *d, PenError *reterr)
{
    bool ok = d->is_started || !d->is_h264 || d->frame->pict_type == AV_PICTURE_TYPE_I;
    d->is_started = true;
    return ok ? PEN_OK
              : video_fail(reterr, PEN_E_DECODE,
                           "%s: expected an intra picture in the first packet, found another kind; "
                           "encode the video again with key frames",
                           d->codec);
}

/* A picture that the decoder made up where something is missing. */
static bool is_damaged(const PenVideoDecoder *d)
{
    return d->frame->decode_error_flags || (!d->is_h264 && d->frame->flags & AV_FRAME_FLAG_CORRUPT);
}

static int receive(PenVideoDecoder *d, const PenVideoPicture **ret, PenError *reterr)
{
    for (;;) {
        video_log_begin(&d->log);
        int r = avcodec_receive_frame(d->context, d->frame);
        video_log_end();
        if (r == AVERROR(EAGAIN) || r == AVERROR_EOF)
            return PEN_END;
        if (r < 0)
            return fail_decode(d, r, "damaged packet", reterr);
        int64_t pts = d->frame->pts;
        if (pts == AV_NOPTS_VALUE || pts & PEN_VIDEO_LEADING)
            continue;
        r = check_start(d, reterr);
        if (r < 0)
            return r;
        if (is_damaged(d))
            return fail_decode(d, AVERROR_INVALIDDATA, "damaged picture", reterr);
        if (!(pts & PEN_VIDEO_WANTED))
            continue;
        r = video_picture(d->frame, (pts - (pts & ((1 << FLAG_BITS) - 1))) / (1 << FLAG_BITS),
                          &d->picture, reterr);
        if (r < 0)
            return r;
        *ret = &d->picture;
        return PEN_OK;
    }
}

static void flush(PenVideoDecoder *d)
{
    av_frame_unref(d->frame);
    d->is_started = false;
    video_log_begin(&d->log);
    avcodec_flush_buffers(d->context);
    video_log_end();
}

static const PenVideoPlugin plugin = {
    .abi = PEN_VIDEO_ABI,
    .name = "libavcodec " TEXT(LIBAVCODEC_VERSION),
    .open = open_decoder,
    .send = send_packet,
    .drain = drain,
    .receive = receive,
    .flush = flush,
    .close = close_decoder,
};

const PenVideoPlugin *pen_video_plugin(void);

__attribute__((visibility("default"))) const PenVideoPlugin *pen_video_plugin(void)
{
    video_log_install();
    return &plugin;
}
