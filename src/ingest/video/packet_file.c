/* SPDX-License-Identifier: Apache-2.0 */
#include <inttypes.h>
#include <string.h>
#include <zlib.h>

#include "base/bytes.h"
#include "ingest/video/packets_impl.h"

#define WHERE "ingest/video"
#define MAX_BYTES ((uint32_t)256 << 20) /* of a packet, which is read as one */

/* Head of a Matroska block: number of the track (1 to 8 bytes), time (2), flags (1). */
enum { BLOCK_HEAD = 11, LACED = 6 };

int pen__packet_file_open(PenPacketFile *f, const char *path, PenError *reterr)
{
    static const uint8_t webm[] = {0x42, 0x82, 0x84, 'w', 'e', 'b', 'm'}; /* DocType */
    uint8_t head[64] = {0};
    *f = (PenPacketFile){.name = path};
    int r = pen__source_open_file(path, &f->source, reterr);
    if (r == PEN_OK && f->source->bytes)
        r = pen__source_read(f->source, head, PEN_MIN(sizeof head, (size_t)f->source->bytes), 0,
                             reterr);
    if (r < 0)
        return r;
    if (f->source->bytes > PEN_MAX_VIDEO_BYTES)
        return pen__fail(reterr, PEN_E_LIMIT, WHERE,
                         "%s: expected a video of at most 1 TiB, found %" PRIu64 " bytes", path,
                         f->source->bytes);
    if (pen__load32(head) == 0xa3df451a)
        f->container = memmem(head, sizeof head, webm, sizeof webm) ? PEN_CONTAINER_WEBM
                                                                    : PEN_CONTAINER_MATROSKA;
    else if (memcmp(head + 4, "ftyp", 4) == 0 && memcmp(head + 8, "qt  ", 4) != 0)
        f->container = PEN_CONTAINER_MP4;
    else
        f->container = PEN_CONTAINER_MOV;
    return PEN_OK;
}

void pen__packet_file_close(PenPacketFile *f)
{
    pen__source_close(&f->source);
    pen__buf_free(&f->data);
}

static int fail_other(const PenPacketFile *f, uint64_t number, const char *found, PenError *reterr)
{
    return pen__fail(reterr, PEN_E_UNSUPPORTED, WHERE,
                     "%s: expected the bytes of packet %" PRIu64
                     " in the file, found %s" PEN_VIDEO_INSTEAD,
                     f->name, number, found);
}

/* Bytes before the data of a block; 0: they are not those of a block with one frame. */
static size_t block_head(const uint8_t *data)
{
    size_t track = data[0] ? (size_t)__builtin_clz((unsigned)data[0]) - 23 : 9;
    return track > 8 || data[track + 2] & LACED ? 0 : track + 3;
}

static bool is_matroska(const PenPacketFile *f)
{
    return f->container == PEN_CONTAINER_MATROSKA || f->container == PEN_CONTAINER_WEBM;
}

/* The packet, and as many bytes more as a block's head may have: *ret_bytes of them. */
static int read_more(PenPacketFile *f, const PenListedPacket *packet, uint64_t number,
                     uint64_t *ret_bytes, PenError *reterr)
{
    uint64_t left = f->source->bytes - PEN_MIN(f->source->bytes, packet->position);
    if (packet->bytes > MAX_BYTES)
        return pen__fail(reterr, PEN_E_LIMIT, WHERE,
                         "%s: expected packets of at most %u bytes, found %u" PEN_VIDEO_INSTEAD,
                         f->name, MAX_BYTES, packet->bytes);
    if (packet->bytes > left)
        return fail_other(f, number, "the end of the file", reterr);
    uint64_t most = packet->bytes + (uint64_t)(is_matroska(f) ? BLOCK_HEAD : 0);
    *ret_bytes = PEN_MIN(most, left);
    if (pen__buf_reserve(&f->data, (size_t)most) < 0)
        return pen__fail_memory(reterr, WHERE, f->name);
    memset(f->data.data, 0, (size_t)PEN_MIN(most, BLOCK_HEAD));
    return pen__source_read(f->source, f->data.data, (size_t)*ret_bytes, packet->position, reterr);
}

int pen__packet_file_read(PenPacketFile *f, const PenListedPacket *packet, uint64_t number,
                          uint64_t *ret_offset, const uint8_t **ret_data, PenError *reterr)
{
    uint64_t bytes = 0;
    size_t head = 0;
    int r = read_more(f, packet, number, &bytes, reterr);
    if (r < 0)
        return r;
    if (is_matroska(f)) {
        head = block_head(f->data.data);
        if (!head)
            return fail_other(f, number, "a laced block", reterr);
    }
    if (packet->bytes + head > bytes)
        return fail_other(f, number, "the end of the file", reterr);
    if (crc32(0, f->data.data + head, packet->bytes) != packet->crc)
        return fail_other(f, number, "others: it is compressed or encrypted there", reterr);
    *ret_offset = packet->position + head;
    *ret_data = f->data.data + head;
    return PEN_OK;
}
