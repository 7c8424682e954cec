/* SPDX-License-Identifier: Apache-2.0 */
/* Samples as they go into a block: whatever had to be done to them is done. Pointers stay the
 * caller's. */
#ifndef PEN_PACK_FORMAT_STORED_H
#define PEN_PACK_FORMAT_STORED_H

#include <stddef.h>
#include <stdint.h>

#include "codec/jpeg/entries.h"
#include "pack/format/video_table.h"

/* How a payload is cut: see "segment table" in docs/explanation/format.md. n_segments 0 = not at
 * all. */
typedef struct PenSegments {
    uint32_t head_bytes;
    uint32_t n_segments;
    const uint32_t *lengths; /* NULL = all equally long */
    uint16_t unit;
    uint8_t components, h_samp, v_samp;
} PenSegments;

/* Where a JPEG can be entered: see "entry table" in docs/explanation/format.md. plan.n_entries 0 =
 * nowhere. */
typedef struct PenStoredEntries {
    uint32_t lead_bytes, head_bytes, scan_bytes;
    uint8_t h_samp, v_samp;
    PenEntryPlan plan;
    const uint8_t *coded; /* the entries as bytes */
    size_t coded_bytes;
    const uint8_t *sums; /* without the payload: the CRC-32C of each part but the lead, u32 each */
} PenStoredEntries;

typedef struct PenStoredImage {
    const uint8_t *data; /* NULL: the payload stays in its file and is not at hand */
    uint32_t sum;        /* then: the CRC-32C of its lead, or of all of it if it has no entries */
    uint64_t bytes;
    uint32_t width, height;
    uint8_t codec, how, orientation, channels;
    int64_t timestamp_ns;
    uint64_t source_bytes;
    PenSegments segments;     /* or */
    PenStoredEntries entries; /* or none of both */
    const uint8_t *meta;      /* metadata set aside */
    uint64_t meta_bytes;
    const char *origin; /* in an in-place pack: the file that has the payload; NULL: the pack has */
    uint64_t origin_offset;
    uint64_t
        origin_bytes; /* its size, and of a file the time of its last change, when it was read */
    int64_t origin_mtime_ns;
    const char *origin_etag; /* of an object; "": the server gives none */
} PenStoredImage;

/* A clip that is stored as a video: its file, or a part of its file. */
typedef struct PenStoredVideo {
    const uint8_t *data; /* the payload; NULL: it is read when it is written, or never */
    uint64_t bytes;
    const uint8_t *crcs;      /* pen__video_run_crcs; NULL: computed from `data` */
    struct PenSource *source; /* without `data`: has the payload; NULL: it stays in its file */
    uint64_t source_offset;
    const uint8_t *table; /* pen__video_table_write */
    uint64_t table_bytes;
    uint32_t n_frames;
    uint64_t source_bytes; /* size of the file */
    const char *origin;    /* in an in-place pack, as in PenStoredImage */
    uint64_t origin_offset, origin_bytes;
    int64_t origin_mtime_ns;
    const char *origin_etag;
} PenStoredVideo;

typedef struct PenStoredValue {
    const void *data; /* of numbers and blobs */
    uint64_t bytes;
    const PenStoredImage *images; /* one of an image (none: no image), all frames of a clip */
    uint32_t n_images;
    const PenStoredVideo *video; /* of a clip without images; NULL: it is none */
    int32_t missing;             /* of a blob: there is no value, which is not an empty one */
} PenStoredValue;

typedef struct PenStoredSample {
    const uint8_t *key;
    uint32_t key_bytes;
    uint64_t position;            /* in the plan */
    const PenStoredValue *values; /* one for each field */
} PenStoredSample;

#endif
