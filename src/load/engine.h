/* SPDX-License-Identifier: Apache-2.0 */
/* All parts of a running loader: it owns them, starts and stops the threads, and begins and drains
 * passes. It lives until the handle, the threads and the leased batches have released it: a thread
 * that hangs in a read is left behind, not waited for.
 *
 * Lock rule: see lock.h. Functions are called without the lock unless they say otherwise, by the
 * thread of the caller. */
#ifndef PEN_LOAD_ENGINE_H
#define PEN_LOAD_ENGINE_H

#include <sys/types.h>

#include "load/bad_samples.h"
#include "load/budget.h"
#include "load/counters.h"
#include "load/decode/single.h"
#include "load/decode/worker.h"
#include "load/epoch/pass.h"
#include "load/lock.h"
#include "load/plan/plan.h"
#include "load/plan/sources.h"
#include "load/prefetch/blocks.h"
#include "load/read/reader.h"
#include "load/ring.h"
#include "load/tasks.h"
#include "load/threads.h"

typedef struct PenLoadEngine {
    PenLoadPlan plan;
    pid_t pid; /* of the process that opened it */
    PenLoadLock lock;
    bool open; /* the handle is */
    PenEpochPass pass;
    PenBucketTable *table; /* of the pass, which is by buckets; else NULL */
    PenRing ring;
    PenTasks tasks;
    PenBudget scratch; /* for large images */
    PenSingles singles;
    PenBlocks *blocks; /* of a remote pack; else NULL */
    PenReader reader;
    PenWorker worker;
    PenThreads threads;
    PenBadSamples bad;
    PenLoadCounters counters;                         /* without the times of threads */
    PenLoadCounters at_begin, at_end;                 /* of the pass, with them */
    uint64_t wait_max_ns, pass_wait_max_ns;           /* the longest wait for a batch */
    uint64_t opened_ns, pass_began_ns, pass_ended_ns; /* 0: it has not */
    uint64_t stage_ns[PEN_LOAD_STAGE_COUNT];          /* as reported last */
    uint64_t decode_cpu_ns;                           /* as reported last */
} PenLoadEngine;

/* Of a pack, or of a mixture; the other one is NULL. */
int pen__load_engine_new(PenPack *pack, const PenMixSettings *mix,
                         const PenLoaderSettings *settings, PenLoadEngine **ret, PenError *reterr);
/* Waits a little for the threads, and releases the engine for the handle. */
void pen__load_engine_close(PenLoadEngine *e);

/* With the lock held, after the number of users may have changed: releases the lock, and frees the
 * engine when the handle is closed, no thread lives, and no slot is leased. */
void pen__load_engine_unlock(PenLoadEngine *e);

int pen__load_engine_start(PenLoadEngine *e, PenError *reterr); /* the threads, once */
/* Takes over the ring, which may be NULL, and releases the one before. */
void pen__load_engine_trace(PenLoadEngine *e, PenSpanRing *spans);
/* After pen__load_engine_drain: the order of the next pass gets a table of buckets. */
int pen__load_engine_order_buckets(PenLoadEngine *e, PenOrder *order, PenError *reterr);
void pen__load_engine_begin(PenLoadEngine *e, const PenEpochPass *pass);
/* With the lock held: the counters with the times of threads. */
void pen__load_engine_count(const PenLoadEngine *e, PenLoadCounters *ret);
void pen__load_engine_end_pass(PenLoadEngine *e); /* what is pending stays until the next pass */
/* Discards all that is pending. PEN_E_TIMEOUT: a thread did not return from its read within `ms`;
 * the caller has waited since `since_ns`. */
int pen__load_engine_drain(PenLoadEngine *e, uint32_t ms, uint64_t since_ns, PenError *reterr);

#endif
