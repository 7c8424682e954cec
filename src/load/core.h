/* SPDX-License-Identifier: Apache-2.0 */
/* What the caller, the threads and the batches that are out share. It lives until the last of them
 * has let go: a thread that hangs in a read is left behind, not waited for. */
#ifndef PEN_LOAD_CORE_H
#define PEN_LOAD_CORE_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <sys/types.h>

#include "load/plan/plan.h"
#include "load/task.h"
#include "load/window.h"

/* A sample that was replaced. */
typedef struct PenSwap {
    uint32_t index; /* in the batch */
    PenBadSample bad;
} PenSwap;

typedef struct PenSlot {
    PenBatch batch; /* first: a batch pointer is a slot pointer */
    struct PenCore *core;
    struct PenSlot *next; /* in the list of free ones, or of those under way, in order */
    atomic_uint refs;
    uint32_t left; /* samples still to come; 0 = it is ready */
    PenTensor *tensors;
    uint64_t *samples;
    uint8_t *valid;
    void *block; /* the allocation that batch.memory lies in */
    int status;  /* of the first sample in order that failed */
    uint32_t failed_index;
    PenError error;
    PenBuf swaps; /* PenSwap each, in no order */
} PenSlot;

/* Bytes of one kind: who needs more than is left waits until others have given some back. One task
 * at a time may be over the limit: see pen__task_swap. */
typedef struct PenBudget {
    uint64_t limit, used, peak;
    uint32_t waiting;
    bool over;
} PenBudget;

enum { THREAD_IDLE, THREAD_LOCATING, THREAD_READING, THREAD_DECODING };

typedef enum PenRole { PEN_ROLE_FETCH, PEN_ROLE_READ, PEN_ROLE_DECODE } PenRole;

typedef struct PenThread {
    struct PenCore *core;
    pthread_t id;
    PenRole role;
    PenDecodeContext *context; /* of those who decode */
    int doing;                 /* THREAD_* */
    uint64_t sample, since_ns;
} PenThread;

typedef struct PenTaskList {
    PenTask *first, **last;
    uint32_t n;
} PenTaskList;

typedef struct PenPassState { /* a pass through an epoch; begun by pen_loader_begin */
    PenOrder order;
    PenSplit split;
    uint64_t steps;
    uint64_t feed_batch;  /* the next to be read */
    uint32_t feed_sample; /* in it */
    uint64_t next_batch;  /* to be given out */
    uint64_t substituted;
    bool ended;
} PenPassState;

typedef struct PenCore {
    PenLoadPlan plan;
    pid_t pid;
    pthread_mutex_t mutex; /* of all below */
    pthread_cond_t for_io, for_work, for_user, for_bytes;
    uint32_t refs; /* the handle's, the threads', the leases' */
    uint32_t live; /* threads */
    uint32_t busy; /* threads that have a task */
    bool stop, paused;
    PenThread *threads;
    uint32_t n_threads;

    PenPassState pass;
    int pass_status; /* of what no batch can be blamed for */
    PenError pass_error;
    PenSlot *feed_slot; /* that is being filled */
    PenSlot *under_way, **under_way_end;
    uint32_t n_under_way;
    PenSlot *free_slots;
    uint32_t n_slots, n_leased;
    uint64_t ring_bytes;
    PenTask *idle; /* tasks not in use */
    uint32_t n_idle;
    PenTaskList ready;
    PenWindow *window; /* of a far pack; else NULL */
    PenBudget read, scratch;
    PenLoaderStats stats;
    PenBuf bad; /* PenBadSample each */
} PenCore;

/* core.c */
int pen__core_new(PenPack *pack, const PenLoaderSettings *settings, PenCore **ret,
                  PenError *reterr);
void pen__core_unref(PenCore *c);                  /* with the lock held; releases it */
int pen__core_start(PenCore *c, PenError *reterr); /* the threads, once */
void pen__core_stop(
    PenCore *c); /* waits a little for the threads; gives up the handle's reference */
/* Throws away all that is under way; PEN_E_TIMEOUT when a thread does not come back from its read
 * in time. `since_ns` is when the caller began to wait, in calls before this one. */
int pen__core_quiet(PenCore *c, uint32_t ms, uint64_t since_ns, PenError *reterr);

/* budget.c; both with the lock held. PEN_END: the loader is being closed. With `ret_over` it goes
 * over the limit instead of waiting, when nobody else does, and says so. */
int pen__budget_take(PenCore *c, PenBudget *b, uint64_t bytes, bool *ret_over, const char *what,
                     PenError *reterr);
void pen__budget_give(PenCore *c, PenBudget *b, uint64_t bytes);

/* ring.c; with the lock held. */
bool pen__ring_has_room(const PenCore *c); /* can another batch be begun? */
bool pen__ring_can_grow(const PenCore *c);
PenSlot *pen__ring_take(PenCore *c, PenError *reterr);
void pen__ring_recycle(PenCore *c, PenSlot *s);
void pen__ring_shrink(PenCore *c); /* what was added while the caller held many */
void pen__slot_free(PenSlot *s);

/* feeder.c and worker.c: what threads run. */
void *pen__feeder_run(void *thread);
void *pen__worker_run(void *thread);
/* A task is done with, well or not; with the lock held. */
void pen__task_done(PenCore *c, PenTask *t);
void pen__ready_push(PenCore *c, PenTask *t);
PenTask *pen__ready_pop(PenCore *c);
void pen__task_recycle(PenCore *c, PenTask *t);
void pen__task_give(PenCore *c, PenTask *t); /* what it has reserved of the memory for reading */

/* swap.c: another sample instead of one that is broken. Without the lock. */
int pen__task_swap(PenCore *c, PenDecodeContext *k, PenTask *t);
/* Reading for one sample with all its reservations; without the lock. */
int pen__task_fetch(PenCore *c, PenThread *thread, PenTask *t);
int pen__task_decode(PenCore *c, PenDecodeContext *k, PenTask *t);
/* One image, with the scratch it takes. */
int pen__image_decode_to(PenCore *c, PenDecodeContext *k, const PenProgram *p,
                         const PenSamplePlan *sample_plan, const PenEncoded *image, uint8_t *dst,
                         PenError *reterr);

/* stall.c: what a thread is at; and why is there no batch yet? With the lock held. */
void pen__thread_doing(PenThread *t, int doing, uint64_t sample);
int pen__core_stalled(PenCore *c, uint64_t waited_ns, PenError *reterr);

#endif
