/* SPDX-License-Identifier: Apache-2.0 */
/* Sizes, offsets and numbers of the pack format: docs/explanation/format.md in C. */
#ifndef PEN_PACK_FORMAT_FORMAT_H
#define PEN_PACK_FORMAT_FORMAT_H

#include <stdint.h>

#define PEN_FORMAT_VERSION 1u /* frozen: packs of it are read by every later penstock */
/* Features in must. */
#define PEN_MUST_MISSING UINT64_C(1) /* optional fields: values may be missing */
#define PEN_MUST_ENTRIES UINT64_C(2) /* images may have entry tables */
#define PEN_MUST_MAPPED UINT64_C(4)  /* payloads of a shard may lie in files outside of the pack */
#define PEN_MUST_RAGGED UINT64_C(8)  /* fields of numbers with any number of rows */
#define PEN_MUST_VIDEOS UINT64_C(16) /* clips may be videos that are stored as their files */
#define PEN_MUST_KNOWN                                                                             \
    (PEN_MUST_MISSING | PEN_MUST_ENTRIES | PEN_MUST_MAPPED | PEN_MUST_RAGGED | PEN_MUST_VIDEOS)
#define PEN_BLOB_MISSING 1u /* flag of a blob's entry */
#define PEN_ALL 0xFFFFFFFFu
#define PEN_ID_BYTES 16

#define PEN_MAX_KEY_BYTES 4096u
#define PEN_MAX_FIELDS 256u
#define PEN_MAX_DIMS 4u
#define PEN_MAX_ELEMENTS 65536u
#define PEN_MAX_SECTIONS 64u
#define PEN_MAX_INDEX_BYTES (1ull << 31)
#define PEN_MAX_BLOCK_SAMPLES (1ull << 31)
#define PEN_MAX_STATS 65536u
#define PEN_MAX_MAP_BYTES (1ull << 31)
#define PEN_MAX_MAPPED_BLOCK (1ull << 32) /* bytes of a block with extents */
#define PEN_RUN_BYTES 4096u
#define PEN_MAX_COLUMN_WIDTH 64u             /* bytes of a sample's value in a column */
#define PEN_MAX_SMALL_COLUMNS (512ull << 10) /* more bytes of columns only beside large blocks */

#define PEN_MANIFEST_NAME "manifest"
#define PEN_WORK_NAME ".work"

enum { /* manifest */
       PEN_MANIFEST_HEADER_BYTES = 128,
       PEN_SECTION_ENTRY_BYTES = 32,
       PEN_SHARD_ENTRY_BYTES = 96
};

enum { /* shard */
       PEN_SHARD_HEADER_BYTES = 64,
       PEN_SHARD_FOOTER_BYTES = 128,
       PEN_BLOCK_ENTRY_BYTES = 32,
       PEN_KEY_HASH_BYTES = 12,
       PEN_EXTENT_BYTES = 32,
       PEN_MAPPED_FILE_BYTES = 32,
       PEN_MAX_ETAG = 131, /* bytes of an object's ETag in a map */
       PEN_MAP_FOOTER_BYTES = 64
};

enum { /* which part of a shard or block a checksum is of: place.field where place.sample is PEN_ALL
        */
       PEN_PART_KEYS = 0,
       PEN_PART_TABLE = 1,
       PEN_PART_STATS = 2,
       PEN_PART_FOOTER = 3,
       PEN_PART_SHARD_HEADER = 4,
       PEN_PART_MAP = 5,
       PEN_PART_COLUMN = 6,
       PEN_PART_INDEX = 0,
       PEN_PART_BLOCK_HEADER = 1
};
#define PEN_SAMPLE_SECTION 0xFFFFFFFEu

enum { /* block */
       PEN_BLOCK_HEADER_BYTES = 64,
       PEN_KEY_ENTRY_BYTES = 16,
       PEN_BLOB_ENTRY_BYTES = 24,
       PEN_IMAGE_ENTRY_BYTES = 64,
       PEN_CLIP_ENTRY_BYTES = 48,
       PEN_CLIP_IMAGES = 0, /* kinds of clips */
       PEN_CLIP_VIDEO = 1,
       PEN_SEGMENT_HEADER_BYTES = 20,
       PEN_ENTRY_HEADER_BYTES = 28,
       PEN_BLOCK_SECTION_BYTES = 32,
       PEN_SECTION_SUM_BYTES = 4,
       PEN_COLUMN_SUM_BYTES = 4
};

enum { /* statistics */
       PEN_STAT_SOURCE = 0,
       PEN_STAT_PAYLOAD = 1,
       PEN_STAT_INDEX = 2,
       PEN_STAT_SECTIONS = 3,
       PEN_STAT_BAD = 4,
       PEN_STAT_COLUMNS = 5,
       PEN_STAT_VIDEOS = 6,
       PEN_STAT_VIDEO_FRAMES = 7,
       PEN_STAT_IMAGES = 8,
       PEN_STAT_PLAIN = 8 + 64, /* how many there are when no value is missing */
       PEN_STAT_MISSING = PEN_STAT_PLAIN,
       PEN_STAT_COUNT = PEN_STAT_MISSING + 256
};

#endif
