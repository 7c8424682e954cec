/* SPDX-License-Identifier: Apache-2.0 */
/* One simulated task of 'penstock pack': it reads its sources with many requests at once, prepares
 * them on its cores, writes them in order into shards that are uploaded in parts, and ends with its
 * record. The numbers of threads, slots and parts are those of the real one. */
#ifndef PEN_SIM_TASK_H
#define PEN_SIM_TASK_H

#include "sim/caller.h"

/* As in ingest/job/assemble.c and net/remote/upload.c. */
enum { PEN_SIM_READERS = 64, PEN_SIM_PART_BYTES = 8 << 20, PEN_SIM_PARTS_AT_ONCE = 4 };
enum { PEN_SIM_END_BYTES = 65536 };       /* of an object, read with its size */
enum { PEN_SIM_PAGE_BYTES = 512 * 1024 }; /* of the plan, see io/pages.c */

/* What all tasks of a job have in common. */
typedef struct PenSimTaskPlan {
    PenSimNet *net;
    PenSimFault *fault;
    uint64_t sample_bytes, block_samples;
    uint64_t shard_blocks; /* complete blocks of a shard */
    uint64_t warm;         /* samples after which the rate is measured */
    uint64_t page_samples; /* inputs in a page of the plan */
    uint64_t list_pages;   /* of the records of other tasks */
    uint64_t split_pages;  /* that are read to find the part of a task */
    uint64_t record_bytes;
    uint64_t sample_ns;                 /* of one core */
    uint64_t write_ns;                  /* of the thread that writes, per sample */
    uint32_t threads;                   /* cores of a task */
    uint32_t prefixes, source_prefixes; /* of the pack; of the sources */
    uint32_t in_flight;
} PenSimTaskPlan;

typedef struct PenSimTaskStep {
    enum { PEN_SIM_ASK, PEN_SIM_SEND, PEN_SIM_SENT } what; /* a request; a part; all parts */
    PenSimRequest request;
    uint64_t left; /* so many, one after another */
} PenSimTaskStep;

typedef struct PenSimTask {
    const PenSimTaskPlan *plan;
    PenSimProcess process;
    PenTransport *clock;
    uint64_t n; /* samples */
    PenSimTaskStep steps[16];
    uint32_t first_step, n_steps;
    bool opened, asking, writing, finished;
    bool paging; /* waits for a page of the plan */
    /* Reading. */
    uint64_t next, collected; /* positions: to be read; all before it are written */
    uint64_t paged;           /* positions whose page of the plan is here */
    uint32_t readers, n_slots;
    uint8_t *ready;        /* by position modulo n_slots */
    uint64_t *queue;       /* positions that are prepared or wait for a core, in order */
    uint64_t *done_ns;     /* of these: when they are prepared */
    uint64_t queued, made; /* numbers in the queue */
    PenTimer prepare, write;
    struct PenSimRead *reads; /* one per position modulo n_slots */
    /* Writing. */
    uint64_t held, blocks, part_bytes; /* samples of the block; blocks of the shard; bytes */
    bool in_shard;
    unsigned prefix;
    uint32_t sending;
    uint64_t start_ns, open_ns, warm_ns, last_ns, end_ns;
    uint64_t wait_from_ns, waited_ns; /* for uploads, between the first and the last sample */
} PenSimTask;

int pen__sim_task_init(PenSimTask *t, const PenSimTaskPlan *plan, uint64_t n,
                       const PenSimNode *node, PenError *reterr);
void pen__sim_task_start(PenSimTask *t, uint64_t at_ns);
void pen__sim_task_fini(PenSimTask *t);

/* Adds the requests that a task of n samples makes, without retries. */
void pen__sim_task_count(const PenSimTaskPlan *plan, uint64_t n, double ret[PEN_SIM_KINDS]);
uint64_t pen__sim_task_shards(const PenSimTaskPlan *plan, uint64_t n); /* without its rest */

#endif
