/* SPDX-License-Identifier: Apache-2.0 */
/* A video, as packets: codec, configuration, and for each packet its flags, its length and its
 * bytes. The fuzzer does not see into Debian's libavcodec, so it changes the seeds at random.
 * ./dev fuzz videos sets PENSTOCK_VIDEO_LIBRARY to one that it sees into. There, each codec has a
 * copy of this program, fuzz_video_CODEC. */
#include <stdlib.h>
#include <string.h>

#include "help.h"
#include "video/decoder.h"

enum { MAX_EXTRA = 4096, MAX_PACKET = 8192 };

static const char *const codecs[] = {
    [PEN_VIDEO_H264] = "h264", [PEN_VIDEO_HEVC] = "hevc",   [PEN_VIDEO_VP9] = "vp9",
    [PEN_VIDEO_AV1] = "av1",   [PEN_VIDEO_MPEG4] = "mpeg4", [PEN_VIDEO_MJPEG] = "mjpeg",
    [PEN_VIDEO_VP8] = "vp8",
};
static uint32_t only; /* this codec; 0: the input chooses */

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
    const char *name = *argc ? strrchr(**argv, '_') : NULL;
    for (uint32_t i = 0; name && i < sizeof codecs / sizeof *codecs; i++)
        if (codecs[i] && strcmp(codecs[i], name + 1) == 0)
            only = i;
#ifdef VIDEO_PLUGIN
    PenError err;
    if (!getenv("PENSTOCK_VIDEO_LIBRARY"))
        MUST(pen_video_use(VIDEO_PLUGIN, &err));
#endif
    return 0;
}

/* Every byte of the planes can be read. */
static void read_picture(const PenVideoPicture *p)
{
    static volatile uint8_t seen;
    for (uint32_t i = 0; i < p->n_planes; i++) {
        uint32_t shift_x = i ? p->shift_x : 0, shift_y = i ? p->shift_y : 0;
        uint32_t h = (p->height + (1u << shift_y) - 1) >> shift_y;
        size_t n = (size_t)((p->width + (1u << shift_x) - 1) >> shift_x) * (p->depth > 8 ? 2 : 1);
        for (uint32_t y = 0; y < h; y++)
            for (size_t x = 0; x < n; x++)
                seen ^= ((const uint8_t *)p->planes[i])[(int64_t)y * p->strides[i] + (int64_t)x];
    }
}

static int receive(PenFrameDecoder *d)
{
    PenError err;
    const PenVideoPicture *p = NULL;
    int r;
    while ((r = CALL(pen__video_decoder_receive(d, &p, &err))) == PEN_OK) {
        REQUIRE(p->width == d->params.width && p->height == d->params.height);
        read_picture(p);
    }
    return r;
}

static int decode(PenFrameDecoder *d, Input *in)
{
    PenError err;
    int r = PEN_END;
    for (int64_t time = 0; r == PEN_END && in->bytes; time++) {
        uint32_t flags = take_byte(in);
        size_t bytes = 0;
        const uint8_t *data = take_bytes(in, take_below(in, MAX_PACKET), &bytes);
        uint8_t *exact = copy_of(data, bytes);
        PenCodedPacket packet = {.flags = flags, .time = time, .data = exact, .bytes = bytes};
        r = CALL(pen__video_decoder_send(d, packet, &err));
        free(exact);
        if (r == PEN_OK)
            r = receive(d);
    }
    return r;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    PenError err;
    Input in = {data, bytes};
    PenFrameDecoder d = {.plugin = NULL};
    PenVideoParams params = {.width = 64, .height = 48};
    params.codec = take_below(&in, PEN_VIDEO_VP8 + 1);
    if (only)
        params.codec = only;
    if (take_byte(&in) & 1)
        params.height = 64;
    const uint8_t *extra = take_bytes(&in, take_below(&in, MAX_EXTRA), &params.extra_bytes);
    uint8_t *exact = copy_of(extra, params.extra_bytes);
    params.extra = exact;
    if (GOES(pen__video_decoder_prepare(&d, &params, &err)) && decode(&d, &in) == PEN_END &&
        GOES(pen__video_decoder_drain(&d, &err)))
        receive(&d);
    pen__video_decoder_free(&d);
    free(exact);
    return 0;
}

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t bytes, size_t max_bytes, unsigned seed)
{
    Dice dice = {seed};
    if (bytes < 8 || roll(&dice, 2))
        return LLVMFuzzerMutate(data, bytes, max_bytes);
    for (uint32_t n = 1 + roll(&dice, 3); n; n--) /* keeps the lengths of most packets */
        data[roll(&dice, bytes)] ^= (uint8_t)(1u << roll(&dice, 8));
    return bytes;
}
