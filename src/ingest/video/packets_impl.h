/* SPDX-License-Identifier: Apache-2.0 */
/* Parsing the output of ffprobe ("-of flat": a line "path.of.name=value" for each value), and
 * finding its packets in the file. */
#ifndef PEN_INGEST_VIDEO_PACKETS_IMPL_H
#define PEN_INGEST_VIDEO_PACKETS_IMPL_H

#include "ingest/video/packets.h"
#include "io/source.h"

/* What to do with a video that cannot be stored as it is. */
#define PEN_VIDEO_INSTEAD "; pack it without --video keep, or convert it with ffmpeg"

/* ---- the stream ------------------------------------------------------------------------------ */

/* What ffprobe reports of the stream, in a buffer that ends in NUL. */
typedef struct PenStreamText {
    PenVideoStream stream; /* container: MP4 or Matroska; the bytes of the file say more */
    PenBuf extra;
    int64_t start_ns;    /* of the file */
    bool has_reordering; /* frames may be shown in another order than they are decoded in */
} PenStreamText;

int pen__stream_text_parse(const char *name, const char *text, PenStreamText *ret,
                           PenError *reterr);

/* ---- packets --------------------------------------------------------------------------------- */

typedef struct PenListedPacket {
    uint64_t position; /* where the container has it */
    int64_t time;      /* presentation time; the decoding time if it has none */
    uint32_t bytes;
    uint32_t crc; /* as zlib's */
    bool has_time, has_decoding_time;
    bool is_key, is_discarded;
} PenListedPacket;

typedef int (*PenListedPacketFn)(void *ctx, const PenListedPacket *packet, PenError *reterr);

typedef struct PenPacketLog {
    const char *name;       /* of the video */
    PenListedPacketFn take; /* gets each packet; < 0 ends it */
    void *ctx;
    char line[512];
    size_t line_bytes;
    uint64_t n;      /* packets that have begun */
    uint64_t number; /* that ffprobe gives to the current one */
    unsigned found;  /* fields of the current one */
    int64_t decoding_time;
    PenListedPacket packet;
} PenPacketLog;

int pen__packet_log_take(PenPacketLog *log, const void *data, size_t bytes, PenError *reterr);
/* After the last byte. */
int pen__packet_log_end(PenPacketLog *log, PenError *reterr);

/* ---- the file -------------------------------------------------------------------------------- */

typedef struct PenPacketFile {
    const char *name;
    PenSource *source;
    uint8_t container; /* PEN_CONTAINER_* */
    PenBuf data;       /* of the last packet, and what is before it */
} PenPacketFile;

/* Finds out which container it is: MP4 or MOV, Matroska or WebM. */
int pen__packet_file_open(PenPacketFile *f, const char *path, PenError *reterr);
void pen__packet_file_close(PenPacketFile *f);
/* Reads a packet and checks that its bytes are those that ffprobe has seen. *ret_data is valid
 * until the next call. `number` is for messages. */
int pen__packet_file_read(PenPacketFile *f, const PenListedPacket *packet, uint64_t number,
                          uint64_t *ret_offset, const uint8_t **ret_data, PenError *reterr);

#endif
