/* SPDX-License-Identifier: Apache-2.0 */
/* A plug-in whose pictures are gray, and that crashes on HEVC, takes all memory for VP9 and prints
 * for MPEG-4. With HANGS, it hangs on HEVC. For tests/python/test_video_process.py. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <penstock/video.h>

typedef struct Odd {
    uint32_t codec;
    int has_picture;
    PenVideoPicture picture;
    uint8_t pixels[1 << 16];
} Odd;

static Odd *odd_of(PenVideoDecoder *decoder)
{
    return (Odd *)(void *)decoder;
}

static int open_decoder(const PenVideoDecoderConfig *config, PenVideoDecoder **ret, PenError *err)
{
    (void)err;
    Odd *d = calloc(1, sizeof *d);
    if (!d)
        abort();
    d->codec = config->codec;
    d->picture = (PenVideoPicture){.width = config->width,
                                   .height = config->height,
                                   .n_planes = 1,
                                   .depth = 8,
                                   .matrix = 2,
                                   .planes = {d->pixels},
                                   .strides = {config->width}};
    memset(d->pixels, 128, sizeof d->pixels);
    *ret = (PenVideoDecoder *)(void *)d;
    return PEN_OK;
}

static int take_all_memory(PenError *err)
{
    for (size_t bytes = 1 << 20;; bytes += bytes / 8) {
        char *p = malloc(bytes);
        if (!p)
            break;
        p[bytes / 2] = 1;
    }
    snprintf(err->message, sizeof err->message, "out of memory");
    return PEN_E_NO_MEMORY;
}

static int send_packet(PenVideoDecoder *decoder, const PenCodedPacket *packet, PenError *err)
{
    Odd *d = odd_of(decoder);
    d->has_picture = packet->flags & PEN_VIDEO_WANTED;
    d->picture.time = packet->time;
#ifdef HANGS
    while (d->codec == PEN_VIDEO_HEVC)
        sleep(1);
#endif
    if (d->codec == PEN_VIDEO_HEVC)
        abort();
    if (d->codec == PEN_VIDEO_MPEG4) {
        fprintf(stderr, "a message of a library\n");
        exit(4);
    }
    return d->codec == PEN_VIDEO_VP9 ? take_all_memory(err) : PEN_OK;
}

static int drain(PenVideoDecoder *d, PenError *err)
{
    (void)d, (void)err;
    return PEN_OK;
}

static int receive(PenVideoDecoder *decoder, const PenVideoPicture **ret, PenError *err)
{
    (void)err;
    Odd *d = odd_of(decoder);
    if (!d->has_picture)
        return PEN_END;
    d->has_picture = 0;
    *ret = &d->picture;
    return PEN_OK;
}

static void flush(PenVideoDecoder *decoder)
{
    odd_of(decoder)->has_picture = 0;
}

static void close_decoder(PenVideoDecoder *d)
{
    free(d);
}

static const PenVideoPlugin plugin = {
    .abi = PEN_VIDEO_ABI,
    .name = "odd",
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
    return &plugin;
}
