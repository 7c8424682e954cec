/* SPDX-License-Identifier: Apache-2.0 */
/* What ffprobe prints of a video. An even first byte: of its stream, which then is one that a pack
 * can have. Otherwise of its packets, in pieces as that byte says: the same ones however it is cut,
 * with sizes and times in range. */
#include <stdlib.h>
#include <string.h>

#include "help.h"
#include "ingest/video/packets_impl.h"

static void fuzz_stream(const uint8_t *data, size_t bytes)
{
    PenError err;
    PenStreamText text = {0};
    char *copy = malloc(bytes + 1);
    memcpy(copy, data, bytes);
    copy[bytes] = 0;
    if (GOES(pen__stream_text_parse("video", copy, &text, &err))) {
        const PenVideoStream *s = &text.stream;
        REQUIRE(s->codec >= 1 && s->codec <= PEN_VIDEO_LAST_CODEC);
        REQUIRE(s->container == PEN_CONTAINER_MP4 || s->container == PEN_CONTAINER_MATROSKA);
        REQUIRE(s->width && s->height && s->width <= PEN_MAX_VIDEO_SIDE);
        REQUIRE(s->height <= PEN_MAX_VIDEO_SIDE && s->tick_num && s->tick_den);
        REQUIRE(s->orientation >= 1 && s->orientation <= 8 && s->range <= 2);
        REQUIRE(s->depth == 8 || s->depth == 10 || s->depth == 12);
        REQUIRE(s->extra_bytes == text.extra.bytes && s->extra_bytes <= PEN_MAX_VIDEO_EXTRA);
        require_written(text.extra.data, text.extra.bytes);
    }
    pen__buf_free(&text.extra);
    free(copy);
}

static int add_packet(void *ctx, const PenListedPacket *p, PenError *reterr)
{
    (void)reterr;
    REQUIRE(p->bytes >= 1 && p->bytes <= PEN_MAX_PACKET_BYTES && p->position <= INT64_MAX);
    REQUIRE(p->time > -(INT64_C(1) << 60) && p->time < INT64_C(1) << 60);
    REQUIRE(p->has_time || p->has_decoding_time || p->time == 0);
    uint64_t numbers[] = {p->position, (uint64_t)p->time, p->bytes,
                          p->crc,      p->is_key,         p->is_discarded};
    return pen__buf_add(ctx, numbers, sizeof numbers);
}

static int take(PenBuf *packets, const uint8_t *data, size_t bytes, size_t piece)
{
    PenError err;
    PenPacketLog log = {.name = "video", .take = add_packet, .ctx = packets};
    int r = PEN_OK;
    for (size_t at = 0; r == PEN_OK && at < bytes; at += piece) {
        size_t n = bytes - at < piece ? bytes - at : piece;
        uint8_t *exact = copy_of(data + at, n);
        r = CALL(pen__packet_log_take(&log, exact, n, &err));
        free(exact);
    }
    return r < 0 ? r : CALL(pen__packet_log_end(&log, &err));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    if (!bytes)
        return 0;
    if (data[0] % 2 == 0) {
        fuzz_stream(data + 1, bytes - 1);
        return 0;
    }
    PenBuf packets[2] = {{0}, {0}};
    int whole = take(&packets[0], data + 1, bytes - 1, bytes);
    int cut = take(&packets[1], data + 1, bytes - 1, (size_t)data[0] % 32);
    REQUIRE(whole == cut && packets[0].bytes == packets[1].bytes);
    REQUIRE(!packets[0].bytes || memcmp(packets[0].data, packets[1].data, packets[0].bytes) == 0);
    pen__buf_free(&packets[0]);
    pen__buf_free(&packets[1]);
    return 0;
}
