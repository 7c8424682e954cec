/* SPDX-License-Identifier: Apache-2.0 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "ingest/source/text.h"
#include "ingest/video/packets_impl.h"

#define WHERE "ingest/video"
#define HEAD "packets.packet."
#define MAX_TIME (INT64_C(1) << 60)

enum {
    PTS = 1,
    DTS = 2,
    SIZE = 4,
    POS = 8,
    FLAGS = 16,
    HASH = 32,
    NEEDED = SIZE | POS | FLAGS | HASH
};

static int fail(const PenPacketLog *log, const char *what, PenError *reterr)
{
    return pen__fail(reterr, PEN_E_DECODE, WHERE,
                     "%s: cannot parse the output of ffprobe: found %s: \"%.60s\"", log->name, what,
                     log->line);
}

/* ---- one packet ------------------------------------------------------------------------------ */

static int finish_packet(PenPacketLog *log, PenError *reterr)
{
    PenListedPacket *p = &log->packet;
    if (!log->n)
        return PEN_OK;
    if ((log->found & NEEDED) == (NEEDED & ~POS))
        return pen__fail(reterr, PEN_E_UNSUPPORTED, WHERE,
                         "%s: expected the position of every packet, found none of packet %" PRIu64
                             PEN_VIDEO_INSTEAD,
                         log->name, log->n - 1);
    if ((log->found & NEEDED) != NEEDED)
        return fail(log, "a packet without all of its values", reterr);
    p->has_time = log->found & PTS;
    p->has_decoding_time = log->found & DTS;
    if (!p->has_time)
        p->time = log->decoding_time;
    return p->bytes ? log->take(log->ctx, p, reterr) : PEN_OK; /* empty: no frame */
}

static int begin_packet(PenPacketLog *log, uint64_t number, PenError *reterr)
{
    int r = finish_packet(log, reterr);
    if (r < 0)
        return r;
    if (log->n == PEN_MAX_VIDEO_PACKETS)
        return pen__fail(reterr, PEN_E_LIMIT, WHERE,
                         "%s: expected at most %u packets, found more; split the video", log->name,
                         PEN_MAX_VIDEO_PACKETS);
    log->n++;
    log->number = number;
    log->found = 0;
    log->packet = (PenListedPacket){0};
    log->decoding_time = 0;
    return PEN_OK;
}

static bool take_time(const char *value, int64_t *ret)
{
    return pen__text_i64(value, ret) && *ret > -MAX_TIME && *ret < MAX_TIME;
}

static int take_hash(PenPacketLog *log, const char *value, PenError *reterr)
{
    char *end = NULL;
    if (strncmp(value, "CRC32:", 6) != 0 || strspn(value + 6, "0123456789abcdef") != 8 || value[14])
        return fail(log, "no CRC32", reterr);
    log->packet.crc = (uint32_t)strtoul(value + 6, &end, 16);
    return PEN_OK;
}

/* Codec configurations that change, and encryption. */
static int refuse_side_data(PenPacketLog *log, const char *value, PenError *reterr)
{
    const char *what = strstr(value, "Extradata")   ? "a codec configuration that changes"
                       : strstr(value, "ncryption") ? "encryption"
                                                    : NULL;
    return what ? pen__fail(reterr, PEN_E_UNSUPPORTED, WHERE,
                            "%s: expected packets as the decoder reads them, found %s in packet "
                            "%" PRIu64 PEN_VIDEO_INSTEAD,
                            log->name, what, log->n - 1)
                : PEN_OK;
}

static int take_flags(PenPacketLog *log, const char *value, PenError *reterr)
{
    log->packet.is_key = strchr(value, 'K') != NULL;
    log->packet.is_discarded = strchr(value, 'D') != NULL;
    return strchr(value, 'C')
               ? pen__fail(reterr, PEN_E_DECODE, WHERE,
                           "%s: expected complete packets, found packet %" PRIu64 " damaged",
                           log->name, log->n - 1)
               : PEN_OK;
}

static int take_size(PenPacketLog *log, int64_t v, PenError *reterr)
{
    if (v < 0 || v > PEN_MAX_PACKET_BYTES)
        return fail(log, "a size out of range", reterr);
    log->packet.bytes = (uint32_t)v;
    log->found |= SIZE;
    return PEN_OK;
}

/* `value` has no quotes. */
static int take_value(PenPacketLog *log, const char *name, const char *value, PenError *reterr)
{
    bool is_none = strcmp(value, "N/A") == 0;
    int64_t v = 0;
    if (strcmp(name, "flags") == 0) {
        log->found |= FLAGS;
        return take_flags(log, value, reterr);
    }
    if (strcmp(name, "data_hash") == 0) {
        log->found |= HASH;
        return take_hash(log, value, reterr);
    }
    if (strncmp(name, "side_data_list.", 15) == 0)
        return refuse_side_data(log, value, reterr);
    if (is_none)
        return PEN_OK;
    if (strcmp(name, "pts") == 0 || strcmp(name, "dts") == 0) {
        bool is_pts = name[0] == 'p';
        log->found |= is_pts ? PTS : DTS;
        return take_time(value, is_pts ? &log->packet.time : &log->decoding_time)
                   ? PEN_OK
                   : fail(log, "a time out of range", reterr);
    }
    if (strcmp(name, "size") != 0 && strcmp(name, "pos") != 0)
        return PEN_OK;
    if (!pen__text_i64(value, &v))
        return fail(log, "no number", reterr);
    if (name[0] == 's')
        return take_size(log, v, reterr);
    if (v < 0)
        return fail(log, "a position out of range", reterr);
    log->packet.position = (uint64_t)v;
    log->found |= POS;
    return PEN_OK;
}

/* ---- lines ----------------------------------------------------------------------------------- */

/* "packets.packet.17.pts=23"; values may be in quotes. */
static int take_line(PenPacketLog *log, PenError *reterr)
{
    char line[sizeof log->line];
    memcpy(line, log->line, log->line_bytes + 1);
    char *at = line + sizeof HEAD - 1, *value = strchr(line, '=');
    if (!value || strncmp(line, HEAD, sizeof HEAD - 1) != 0)
        return fail(log, "something else", reterr);
    uint64_t number = 0;
    const char *digits = at;
    for (; *at >= '0' && *at <= '9' && at - digits < 10; at++)
        number = number * 10 + (uint64_t)(*at - '0');
    if (at == digits || *at != '.')
        return fail(log, "no number of a packet", reterr);
    if (!log->n || number != log->number) {
        int r = begin_packet(log, number, reterr);
        if (r < 0)
            return r;
    }
    *value++ = 0;
    size_t n = strlen(value);
    bool is_quoted = n >= 2 && value[0] == '"' && value[n - 1] == '"';
    value[n - is_quoted] = 0;
    return take_value(log, at + 1, value + is_quoted, reterr);
}

int pen__packet_log_take(PenPacketLog *log, const void *data, size_t bytes, PenError *reterr)
{
    const char *text = data;
    for (size_t i = 0; i < bytes; i++) {
        if (text[i] != '\n') {
            if (log->line_bytes == sizeof log->line - 1 || !text[i])
                return fail(log, "a line that is too long", reterr);
            log->line[log->line_bytes++] = text[i];
            log->line[log->line_bytes] = 0;
            continue;
        }
        int r = log->line_bytes ? take_line(log, reterr) : PEN_OK;
        if (r < 0)
            return r;
        log->line_bytes = 0;
    }
    return PEN_OK;
}

int pen__packet_log_end(PenPacketLog *log, PenError *reterr)
{
    if (log->line_bytes)
        return fail(log, "a line that is cut off", reterr);
    return finish_packet(log, reterr);
}
