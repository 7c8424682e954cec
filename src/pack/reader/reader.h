/* SPDX-License-Identifier: Apache-2.0 */
/* An open pack, as the floors above use it. */
#ifndef PEN_PACK_READER_READER_H
#define PEN_PACK_READER_READER_H

#include <stdatomic.h>

#include <penstock/pack.h>

#include "base/timing/stage_clock.h"
#include "io/store.h"
#include "pack/format/manifest.h"
#include "pack/format/shard_read.h"

/* A block's index in memory, shared by all who use it. */
typedef struct PenBlock {
    uint64_t number; /* in the pack */
    uint64_t first_sample;
    uint64_t offset; /* in the shard's file */
    PenBlockView view;
    struct PenShardRef *shard;
    uint8_t *data;
    size_t cap; /* of data, of a whole block */
    uint64_t whole_bytes;
    uint8_t is_whole;       /* data is all of the block, checked; else its index, or a part: */
    struct PenBlock *index; /* whose view this is; NULL: data is no part */
    uint64_t part_offset, part_bytes; /* data is these bytes of the block, not checked */
    PenPack *cached_by;               /* the part came from the cache of this pack; or NULL */
    atomic_bool is_wrong; /* the part: a checksum did not match, and it is fetched again */
    int refs;
    struct PenBlock *newer, *older; /* of those that are kept */
} PenBlock;

const PenManifest *pen__pack_manifest(const PenPack *p);
const char *pen__pack_path(const PenPack *p);

/* PEN_E_CLOSED in the child of the process that opened it: its lock may be held by a thread that is
 * not there, and its files are the parent's. */
int pen__pack_alive(const PenPack *p, PenError *reterr);
/* One more user of the pack; each closes it for itself. */
PenPack *pen__pack_ref(PenPack *p);
/* From now on `bytes` of block indexes, or of whole blocks when these are read, are kept in memory
 * at most; of several calls the largest counts. */
int pen__pack_keep(PenPack *p, uint64_t bytes, PenError *reterr);

/* Opens a pack whose manifest and shards come from somewhere else than a directory: `open` gives
 * the source of a name
 * ("manifest", "3f/3f...shard"). */
typedef int (*PenOpenFn)(void *ctx, const char *name, PenSource **ret, PenError *reterr);
int pen__pack_open_with(const char *name, PenOpenFn open, void *ctx, PenPack **ret,
                        PenError *reterr);

int pen__pack_open_store(PenStore *store, PenPack **ret, PenError *reterr);
/* 1: every read is a request to a server. */
int pen__pack_is_remote(const PenPack *p);
/* 1: pen_pack_preload has loaded it into memory. */
int pen__pack_is_preloaded(const PenPack *p);
/* 1: blocks are read and kept whole: it is far, or has a cache. Not those with videos: a block of
 * them may be larger than the memory. */
int pen__pack_is_whole(const PenPack *p);
int pen__pack_has_cache(const PenPack *p);
/* 1: from now on, until it is 0 again, all who wait for a server give up. */
void pen__pack_stop(const PenPack *p, int stop);
/* What the oldest request to where the pack is is at, for messages; "" when there is none. */
void pen__pack_progress(const PenPack *p, char *ret, size_t bytes);
PenStore *pen__pack_store(const PenPack *p);         /* that it was opened from, or NULL */
const PenObject *pen__pack_object(const PenPack *p); /* its manifest; empty when it is a file */

/* Which shard holds block `block` of the pack? Arithmetic and one search; reads nothing. */
uint64_t pen__pack_shard_of(const PenPack *p, uint64_t block);

/* Shards and blocks are kept open while they are in use, and a number of them after that; of a far
 * pack, where no files are open for them and each costs a request, so many shards. */
enum { PEN_REMOTE_SHARDS = 4096 };
typedef struct PenShardRef {
    uint64_t number;
    PenShard shard;
    uint8_t *keys; /* NULL until somebody asks */
    int refs;
} PenShardRef;

int pen__pack_shard(PenPack *p, uint64_t number, PenShardRef **ret, PenError *reterr);
void pen__pack_shard_put(PenPack *p, PenShardRef *ref);
/* Its sorted key hashes, 12 bytes each; they live as long as the shard. */
int pen__pack_shard_keys(PenPack *p, PenShardRef *ref, const uint8_t **ret, PenError *reterr);
int pen__pack_block(PenPack *p, uint64_t number, PenBlock **ret, PenError *reterr);
/* The same, but it is not kept: it is the caller's alone. */
int pen__pack_block_take(PenPack *p, uint64_t number, PenBlock **ret, PenError *reterr);
/* Of a far pack: n of them from `first` on, all in one shard, by one request; all or none. */
enum { PEN_JOIN_MOST = 16 };
/* 1: that is worth it; with a cache each comes by itself. */
int pen__pack_joins(const PenPack *p);
int pen__pack_blocks_take(PenPack *p, uint64_t first, int n, PenBlock **ret, PenError *reterr);
/* Samples [first, first + n) of a block of a remote pack: their payloads by one request, and the
 * block's index by another one if it is not kept. */
int pen__pack_part_take(PenPack *p, uint64_t number, uint32_t first, uint32_t n, PenBlock **ret,
                        PenError *reterr);
/* Gives back memory that is kept for further blocks. */
void pen__pack_trim(PenPack *p);
void pen__pack_block_put(PenPack *p, PenBlock *b);

/* The block of a sample, and its number in it. */
int pen__pack_locate(PenPack *p, uint64_t sample, PenBlock **ret, uint32_t *ret_sample,
                     PenError *reterr);

/* Bytes of a block that its index has named. */
int pen__block_read(const PenBlock *b, uint64_t offset, uint64_t bytes, void *buf,
                    PenError *reterr);

/* All bytes of a block, in memory of that size. Of a far one they were checked, and asked for once
 * more when they did not fit; whether they do is still for the caller to see. */
int pen__block_fetch(PenPack *p, uint64_t block, PenShardRef *shard, uint8_t *data,
                     PenError *reterr);

/* Every byte of one block: header, index, payloads, sections. `data` holds the whole block. */
int pen__block_open_memory(PenPack *p, uint64_t block, PenShardRef *shard, const uint8_t *data,
                           PenBlock *ret, PenError *reterr);
/* The payloads and sections of a block whose view is there and whose data is all of it. */
int pen__block_check(const PenBlock *b, PenError *reterr);

/* The hashes of all keys, for whoever looks for many of them: 16 bytes of memory for each sample.
 */
typedef struct PenKeySeen {
    uint64_t hash, sample;
} PenKeySeen;

typedef struct PenKeySet {
    PenPack *pack;
    PenKeySeen *seen; /* sorted */
    size_t n;
} PenKeySet;

int pen__keyset_load(PenKeySet *set, PenPack *pack, PenError *reterr);
int pen__keyset_has(const PenKeySet *set, const void *key, size_t key_bytes, PenError *reterr);
void pen__keyset_free(PenKeySet *set); /* a zeroed one is fine */

/* PEN_E_EXISTS when two samples have the same key; names both. */
int pen__pack_check_duplicates(PenPack *p, PenError *reterr);

/* One image, frame or other payload of a block. */
typedef struct PenSpot {
    const PenBlock *block;
    uint32_t sample, field, frame;
    PenStageClock *clock; /* for the time of checksums; may be NULL */
} PenSpot;

/* Compares the checksum of the bytes at `offset` of the block. The message names shard, block,
 * sample and offset. */
int pen__sum_check(const PenSpot *at, uint64_t offset, uint32_t found, uint32_t expected,
                   PenError *reterr);
/* Checks a payload that has been read. The message names shard, block, sample and offset. */
int pen__payload_check(const PenSpot *at, const PenImageEntry *e, const uint8_t *data,
                       PenError *reterr);
/* Of a payload whose first `arrived` bytes are in place: checks parts that have arrived, from
 * `*part` on, and sets it to the next one; 0 at first. 1: all of it fits. 0: the rest has not
 * arrived. */
int pen__payload_check_arrived(const PenSpot *at, const PenImageEntry *e, const uint8_t *data,
                               uint64_t arrived, uint32_t *part, PenError *reterr);
int pen__blob_check(const PenSpot *at, const PenBlobEntry *e, const uint8_t *data,
                    PenError *reterr);

/* Checks the runs of a video; `data` has runs [first, end) of its payload. */
int pen__video_check_runs(const PenSpot *at, const PenVideoTable *t, uint32_t first, uint32_t end,
                          const uint8_t *data, PenError *reterr);
/* Appends bytes [from, end) of the payload of a video, and the rest of their runs: one read,
 * checked. *ret_offset is where in the payload they start. PEN_SLACK readable bytes, all 0, follow.
 */
int pen__pack_read_video(const PenSpot *at, uint64_t from, uint64_t end, PenBuf *data,
                         uint64_t *ret_offset, PenError *reterr);
/* Reads all of a video in parts, checks each and gives it to `take`, which may be NULL. Memory does
 * not grow with the video. */
typedef int (*PenVideoBytesFn)(void *ctx, const uint8_t *data, size_t bytes, PenError *reterr);
int pen__pack_each_run(const PenSpot *at, PenBuf *data, PenVideoBytesFn take, void *ctx,
                       PenError *reterr);

/* What comes over a network is read so often, until it fits or is wrong twice in the same way. */
enum { PEN_REMOTE_READS = 4 };
/* Bytes that did not fit their checksum, once more if they came over a network, where they may have
 * been damaged; PEN_E_CORRUPT, and the error as it was, if they did not. */
int pen__block_read_again(const PenBlock *b, uint64_t offset, uint64_t bytes, void *buf,
                          PenError *reterr);
/* All of a value or an image, read and checked. */
int pen__pack_read_blob(const PenSpot *at, const PenBlobEntry *e, uint8_t *to, PenError *reterr);
int pen__pack_read_image(const PenSpot *at, const PenImageEntry *e, uint8_t *to, PenError *reterr);
/* All of a payload, read and checked; PEN_SLACK readable bytes follow. */
int pen__pack_read_payload(const PenSpot *at, PenBuf *ret, PenError *reterr);

/* Part of a payload that has a segment table: its head and the runs that hold the segments asked
 * for. */
typedef struct PenSlice {
    PenBuf data;         /* head, then the segments of the runs; PEN_SLACK readable bytes follow */
    uint32_t first, end; /* segments in it */
    size_t segments_offset; /* of the first one in data */
} PenSlice;

/* Part of an indexed JPEG: SOI, its tables, and the runs that hold bytes [from, end) of its scan,
 * read with one or two reads and checked. PEN_SLACK readable bytes follow. */
typedef struct PenScanPart {
    uint32_t head_bytes;  /* SOI and the tables */
    uint64_t scan_offset; /* of the first byte behind them */
} PenScanPart;

int pen__pack_read_scan(const PenSpot *at, uint64_t from, uint64_t end, PenBuf *data,
                        PenScanPart *ret, PenError *reterr);

/* Segments [first, last] (and the rest of their runs), read with two reads and checked. */
int pen__pack_read_slice(const PenSpot *at, uint32_t first, uint32_t last, PenSlice *ret,
                         PenError *reterr);

#endif
