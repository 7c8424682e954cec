/* SPDX-License-Identifier: Apache-2.0 */
/* Threads that read all shards of a pack. A thread opens the next shard, or reads a part of a shard
 * that is open, or closes one whose parts are done; parts of one shard are read side by side. */
#ifndef PEN_PACK_READER_SHARD_WALK_H
#define PEN_PACK_READER_SHARD_WALK_H

#include <pthread.h>
#include <stdbool.h>

#include "pack/reader/shard_check.h"

enum { PEN_WALK_THREADS = 64 }; /* at most */

typedef struct PenWalkShard {
    enum { PEN_WALK_FREE, PEN_WALK_OPENING, PEN_WALK_OPEN, PEN_WALK_CLOSING } state;
    unsigned slot;        /* in the walk: from 0, below the number of threads */
    uint64_t number;      /* in the pack */
    PenShardRef *ref;     /* open() sets it; the walk releases it */
    uint64_t next, n;     /* pieces: the first that no thread has taken, and all */
    uint64_t taken, done; /* parts */
} PenWalkShard;

typedef struct PenWalkPart {
    PenWalkShard *shard;
    PenShardPart part;
    uint64_t number; /* of the parts that were taken of this shard, from 0 */
} PenWalkPart;

/* Called by the threads; a negative result ends the walk with that error. */
typedef struct PenWalkCalls {
    /* 1: the shard is open and `ref` is set. 0: there is nothing to do with this one. */
    int (*open)(void *ctx, PenWalkShard *s, PenError *reterr);
    /* Is the part to be left out? Called with the walk's mutex held. May be NULL. */
    bool (*skip)(void *ctx, const PenWalkShard *s, const PenShardPart *part);
    int (*part)(void *ctx, const PenWalkPart *p, PenBuf *buf, PenError *reterr);
    int (*close)(void *ctx, PenWalkShard *s, PenError *reterr); /* all parts are done */
    /* Releases what open() acquired for this slot; also after a failure, also of open(). */
    void (*release)(void *ctx, const PenWalkShard *s);
} PenWalkCalls;

typedef struct PenShardWalk {
    const PenWalkCalls *calls;
    void *ctx;
    PenPack *pack;
    unsigned n_threads;
    pthread_mutex_t mutex; /* of all below, and of what the parts of a shard have in common */
    pthread_cond_t news;
    PenWalkShard shards[PEN_WALK_THREADS];
    uint64_t next_shard;
    bool is_stopped;
    PenError error; /* the first; status 0 when there is none */
} PenShardWalk;

/* `threads` is brought into 1 to PEN_WALK_THREADS. */
int pen__walk_init(PenShardWalk *w, PenPack *pack, unsigned threads, const PenWalkCalls *calls,
                   void *ctx, PenError *reterr);
/* No thread is in it any more. */
void pen__walk_fini(PenShardWalk *w);

/* What each thread runs; returns when there is nothing left to do, or the walk was stopped. */
void pen__walk_work(PenShardWalk *w);

/* For part(): waits until all parts of the shard that were taken earlier are done. False: the walk
 * was stopped. */
bool pen__walk_await_turn(PenShardWalk *w, const PenWalkPart *p);

/* Stops the walk; the first error is kept. */
void pen__walk_stop(PenShardWalk *w, int status, const PenError *e);
bool pen__walk_is_stopped(PenShardWalk *w);

/* The error that stopped the walk, or PEN_OK. */
int pen__walk_status(PenShardWalk *w, PenError *reterr);

#endif
