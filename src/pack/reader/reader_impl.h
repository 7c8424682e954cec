/* SPDX-License-Identifier: Apache-2.0 */
/* Inside of an open pack: what opening, shards and blocks share. */
#ifndef PEN_PACK_READER_READER_IMPL_H
#define PEN_PACK_READER_READER_IMPL_H

#include <pthread.h>
#include <stdbool.h>
#include <sys/types.h>

#include "cache/cache.h"
#include "pack/reader/reader.h"

/* Slots are chosen by number, so neighbours never push each other out. */
enum { SHARD_SLOTS = 128, BLOCK_SLOTS = 64, LOADING = 256 };

/* Of whole blocks no more bytes than this are kept, until a loader says how many. */
#define WHOLE_KEEP_BYTES (256ull << 20)

struct PenPack {
    char *path;
    PenManifest m;
    PenObject object; /* the manifest, in an object store */
    bool is_remote;   /* every read is a request to a server */
    bool is_whole;    /* blocks are read whole: it is far, or has a cache, and has no videos */
    PenCache *cache;  /* may be NULL */
    PenPackInfo info;
    uint64_t *first_blocks; /* of the shards, side by side for the search */
    PenOpenFn open;
    void *open_ctx;
    struct PenOutside *outside; /* files that mapped shards refer to; NULL: there are none */
    struct PenMaps *maps;       /* of mapped shards; NULL: there are none */
    PenStore *store;            /* that it was opened from; NULL: by pen__pack_open_with */
    pthread_mutex_t mutex;      /* of the slots and all counts of references */
    pthread_cond_t loaded;      /* a whole block has come, or not */
    uint64_t loading[LOADING];  /* blocks, and shards + PEN_LOADING_SHARD, pieces likewise */
    uint32_t n_loading;
    PenShardRef **shards;
    uint64_t shard_slots;
    PenBlock **blocks;
    uint64_t block_slots;
    uint64_t kept_bytes, keep_bytes; /* of the indexes in them, and the most there may be */
    bool keep_chosen;                /* by a loader */
    PenBlock *newest, *oldest;       /* blocks that are kept of a remote pack, by their last use */
    struct Spare *spare;             /* memory of whole blocks, to be used again */
    struct PenPreload *preload;      /* where its shards come from, once it is in memory */
    int refs;                        /* of the pack itself: the caller's and those of loaders */
    pid_t pid;                       /* that opened it */
};

/* pack.c. What a server sends or the cache keeps is asked for once: who needs it while it is on its
 * way waits for it. With the lock. */
#define PEN_LOADING_SHARD (UINT64_C(1) << 63)
#define PEN_LOADING_PIECE (UINT64_C(1) << 62)
#define PEN_LOADING_INDEX (UINT64_C(1) << 61)
/* 1: it was on its way, and now is not, or something else has come: look again. 0: it is not; or
 * the caller is interrupted, and is to ask for itself. `look_ns` begins with 0. */
int pen__loading_wait(PenPack *p, uint64_t what, uint64_t *look_ns);
void pen__loading_begin(PenPack *p, uint64_t what);
/* Begins, unless it is on its way. */
bool pen__loading_try(PenPack *p, uint64_t what);
void pen__loading_end(PenPack *p, uint64_t what);

/* A place that the pack, or what it refers to, is read from; NULL: there is none. Also pack.c. */
PenRemote *pen__pack_place(const PenPack *p);
/* Has nobody read anything of it, or begun to? */
bool pen__pack_is_fresh(PenPack *p);

/* Is `now` another failure than the one before it? What fails in the same way is not read again. */
bool pen__error_differs(const PenError *now, PenError *before);

/* shard_open.c: a shard, from the cache when the pack has one and it is there. */
int pen__shard_get(PenPack *p, uint64_t number, PenShard *ret, PenError *reterr);
/* shards.c: closes those that stay open. */
void pen__shards_drop(PenPack *p);

/* block.c: memory for `bytes` bytes and PEN_SLACK; 0, or -1 when there is none. */
int pen__block_memory_take(PenPack *p, PenBlock *b, uint64_t bytes);
void pen__block_memory_free(PenPack *p, PenBlock *b);
int pen__block_check_count(const PenPack *p, uint64_t number, const PenBlockView *v,
                           const char *name, PenError *reterr);
/* The two parts of pen__block_check: the payloads of a sample, and the sections. */
int pen__block_check_sample(const PenBlock *b, uint32_t sample, PenError *reterr);
int pen__block_check_sections(const PenBlock *b, PenError *reterr);

/* arriving.c: does the whole block in memory fit its checksums? PEN_OK, PEN_E_CORRUPT, or why it
 * cannot be known. */
int pen__block_accept(PenPack *p, uint64_t block, PenShardRef *shard, uint8_t *data);

/* block_cache.c: the bytes of a block of a pack that has a cache, from there if it is there. */
int pen__block_get(PenPack *p, uint64_t block, PenShardRef *shard, uint8_t *data, PenError *reterr);

/* Bytes of it that are needed: from the cache, or by fetching all of it for the cache if that
 * stores it. Not checked. */
int pen__block_get_part(PenPack *p, const PenBlock *b, uint64_t offset, uint64_t bytes, void *buf,
                        PenError *reterr);
/* What the cache has of the block is wrong. */
void pen__block_forget(PenPack *p, uint64_t block);

/* blocks.c */
int pen__blocks_open(PenPack *p, PenError *reterr);
void pen__blocks_close(PenPack *p);
/* Gives up all that are kept; nobody else may be using the pack. On failure all is as it was. */
int pen__blocks_renew(PenPack *p, PenError *reterr);

/* reader.c: from now on shards come from there, on success the pack's to close; nobody else may be
 * using the pack. */
int pen__pack_move(PenPack *p, struct PenPreload *preload, PenError *reterr);

#endif
