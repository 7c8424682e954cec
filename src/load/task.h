/* SPDX-License-Identifier: Apache-2.0 */
/* One sample on its way from the pack to its place in a batch. */
#ifndef PEN_LOAD_TASK_H
#define PEN_LOAD_TASK_H

#include "load/fetch_clip.h"
#include "load/plan/plan.h"

/* What a slot takes beside its tensors and 16 bytes for each sample. */
#define PEN_SLOT_EXTRA 8192u

struct PenSlot;

typedef struct PenTaskImage {
    PenSlice slice;     /* the bytes; the buffer is kept for the next sample */
    PenBuf lengths;     /* of its segments, u32 each */
    PenEncoded encoded; /* points into both */
    PenSamplePlan sample_plan;
} PenTaskImage;

typedef struct PenTask {
    struct PenTask *next; /* in a list */
    struct PenSlot *slot;
    uint32_t index;  /* in the batch */
    uint64_t sample; /* number in the pack */
    uint64_t epoch;
    uint32_t ordinal;  /* of the entry in the subset */
    uint64_t reserved; /* of the memory for reading */
    bool over;         /* and more than there is of it */
    uint64_t bytes_read;
    int status;
    PenError error;
    PenBlock *block;      /* that was fetched for it; NULL: to be looked for */
    PenTaskImage *images; /* plan->n_images of them */
    PenTaskClip *clips;   /* plan->n_clips of them */
} PenTask;

/* Of its random draws. */
static inline PenDrawKey pen__task_key(const PenLoadPlan *plan, const PenTask *task)
{
    return pen__draw_key_of(pen__draw_key(plan->set.seed, task->epoch), task->ordinal);
}

int pen__task_new(const PenLoadPlan *plan, PenTask **ret, PenError *reterr);
void pen__task_free(const PenLoadPlan *plan, PenTask **task); /* accepts NULL */
/* Gives back buffers that one large sample has left. */
void pen__task_trim(const PenLoadPlan *plan, PenTask *task, size_t bytes);

/* fetch.c: where the sample's bytes are, then reading them. */
typedef struct PenWhere {
    PenBlock *block;
    uint32_t in_block;
    uint64_t bytes; /* the most that reading takes */
    bool borrowed;  /* the block is held by somebody else for so long */
} PenWhere;

/* Finds the sample, makes its sample plans, and stores its numbers at `out` (the slot's memory). */
int pen__fetch_locate(const PenLoadPlan *plan, PenTask *task, uint8_t *out, PenWhere *ret,
                      PenError *reterr);
/* Reads what the sample plans need. A checksum that does not fit is read once more before it
 * counts. */
int pen__fetch_read(const PenLoadPlan *plan, PenTask *task, const PenWhere *at, PenError *reterr);
void pen__fetch_leave(const PenLoadPlan *plan, PenWhere *at);

#endif
