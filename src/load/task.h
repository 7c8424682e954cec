/* SPDX-License-Identifier: Apache-2.0 */
/* One sample on its way from the pack to its place in a batch: its bytes, and the plans for them.
 *
 * Lock rule: it has no lock. A task belongs to the list it is in (tasks.h), or to the thread that
 * took it from there. */
#ifndef PEN_LOAD_TASK_H
#define PEN_LOAD_TASK_H

#include "base/timing/stage_clock.h"
#include "codec/jpeg/entries.h"
#include "load/plan/plan.h"
#include "pack/video/frames.h"

struct PenSlot;

typedef struct PenTaskImage { /* one view */
    PenSlice slice; /* the bytes, of the first view of a stored image; kept for the next sample */
    PenBuf lengths; /* of its segments, u32 each; or */
    PenBuf entries; /* of its index */
    PenJpegEntries index;
    PenEncoded encoded; /* points into those of the first view */
    PenSamplePlan sample_plan;
} PenTaskImage;

typedef struct PenClipFrame { /* one that is needed */
    uint32_t number;          /* in the clip */
    uint32_t first_length;    /* of its segments, in the list of all */
    size_t at;                /* of its bytes in the data */
    uint64_t offset;          /* of its bytes in the block */
    int64_t time;             /* of a video: in ticks, and in nanoseconds */
    int64_t time_ns;
    uint8_t orientation;
    PenEncoded encoded;   /* without data, lengths and entries */
    PenJpegEntries index; /* of a JPEG that has one, else empty */
    size_t first_entry;   /* of the index, in bytes of all entries */
} PenClipFrame;

typedef struct PenTaskClip {
    uint64_t bytes; /* that are read */
    PenBuf data;    /* of the frames, and of what lies between them */
    PenBuf frames;  /* PenClipFrame each, by number */
    PenBuf chosen;  /* u32 each: which of these, for every frame of the result, clip by clip */
    PenBuf times;   /* i64 each, of all frames of the clip */
    PenBuf lengths; /* u32 each, of segments */
    PenBuf entries; /* PenEntry each, of all indexes */
    PenBuf parsed;  /* the same, of one index */
    PenBuf one;     /* the frame that is being decoded, which may change it */
    PenSamplePlan sample_plan;
    bool is_video;         /* data, lengths, entries, parsed and one are not used: */
    PenFramePackets video; /* packets instead of images */
    PenBuf numbers;        /* of a video: u32 each, of `frames` */
    PenBuf plans;          /* of a video: PenSamplePlan each, of all views */
} PenTaskClip;

typedef struct PenTaskRows { /* of a field that follows an image or another field */
    uint32_t stored;         /* rows */
    PenBuf kept;             /* i64 each: which of them are kept */
} PenTaskRows;

/* Which sample goes to which place in a batch. */
typedef struct PenAssignment {
    PenPack *pack;
    const PenOutField *fields; /* plan->n_fields of them: what this sample becomes */
    struct PenSlot *slot;
    uint8_t *memory;  /* of the slot */
    uint32_t index;   /* in the batch */
    uint32_t ordinal; /* of the entry in the subset */
    uint32_t source;  /* of a mixture; else 0 */
    uint64_t sample;  /* number in the pack */
    uint64_t epoch;   /* of the source */
    uint64_t batch;   /* of the pass */
} PenAssignment;

typedef struct PenTask {
    struct PenTask *next; /* in a list */
    PenAssignment to;
    uint64_t reserved; /* of the memory for reading */
    bool over;         /* and more than its limit */
    uint64_t bytes_read;
    bool timed; /* this sample is, by `clock` */
    PenStageClock clock;
    int status;
    PenError error;
    PenBlock *block;      /* that was prefetched for it; NULL: to be found */
    bool complete;        /* files are read completely, and their entry indexes are not used */
    PenTaskImage *images; /* plan->n_views of them */
    PenTaskClip *clips;   /* plan->n_clips of them */
    PenTaskRows *rows;    /* plan->n_follows of them */
    PenBuf rows_read;     /* all rows of a field, of which some are wanted */
    PenBuf values;        /* [values_offset, ...) of the block: values read with one request */
    uint64_t values_offset;
    uint32_t values_bytes; /* wanted there; 0: each value is read by itself */
} PenTask;

static inline PenStageClock *pen__task_clock(PenTask *task)
{
    return task->timed ? &task->clock : NULL;
}

/* Of the random draws of a field. */
static inline PenDrawKey pen__task_key(const PenLoadPlan *plan, const PenTask *task,
                                       const PenOutField *f)
{
    PenDrawKey key = pen__draw_key(plan->set.seed, task->to.epoch);
    return pen__draw_key_view(pen__draw_key_of(key, task->to.ordinal), f->draws);
}

/* Where the sample's part of a field lies in the slot. */
static inline uint8_t *pen__task_place(const PenTask *task, const PenOutField *f)
{
    return task->to.memory + f->offset + f->bytes * task->to.index;
}

/* Where the length of its value in a list lies; -1: it has none. */
static inline int64_t *pen__task_length(const PenTask *task, const PenOutField *f)
{
    return (int64_t *)(void *)(task->to.memory + f->lengths) + task->to.index + 1;
}

int pen__task_new(const PenLoadPlan *plan, PenTask **ret, PenError *reterr);
void pen__task_free(const PenLoadPlan *plan, PenTask **task); /* accepts NULL */
/* Begins with another sample. */
void pen__task_assign(PenTask *task, const PenAssignment *to);
/* Frees buffers of more than `bytes`, which one large sample has left. */
void pen__task_trim(const PenLoadPlan *plan, PenTask *task, size_t bytes);
/* Frame `i` of those that are needed. Its bytes are the clip's: what follows them is another's. */
PenEncoded pen__task_frame(const PenTaskClip *clip, uint32_t i);

#endif
