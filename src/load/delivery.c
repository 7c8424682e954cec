/* SPDX-License-Identifier: Apache-2.0 */
#include "load/delivery.h"

#include <inttypes.h>
#include <unistd.h>

#include "base/attr.h"
#include "base/sys.h"
#include "base/thread.h"
#include "load/decode/lists.h"
#include "load/spans.h"
#include "load/stall.h"

#define WHERE "load/loader"

/* ---- to the caller; with the lock held ---- */

static int fail_exhausted(const PenLoadEngine *e, PenError *reterr)
{
    return pen__fail(
        reterr, PEN_E_LIMIT, WHERE,
        "all %u batches that fit in memory=%" PRIu64
        " are held by the caller; release batches (copy what you keep), or increase memory",
        e->ring.n_leased, e->plan.shares.total);
}

/* PEN_END: the deadline has passed. */
static int wait_until_ready(PenLoadEngine *e, uint64_t deadline_ns, PenError *reterr)
{
    for (;;) {
        int r = pen__epoch_pass_take_error(&e->pass, reterr);
        if (r < 0 || pen__ring_is_ready(&e->ring))
            return r;
        if (pen__ring_is_exhausted(&e->ring))
            return fail_exhausted(e, reterr);
        if (pen__cond_wait(&e->lock.caller, &e->lock.mutex, deadline_ns) < 0)
            return PEN_END;
    }
}

/* The first pending slot, which is full, becomes a lease. */
static int take(PenLoadEngine *e, PenBatch **ret, PenError *reterr)
{
    PenSlot *s = pen__ring_pop(&e->ring);
    e->pass.delivered++;
    int r = s->status;
    if (r < 0 && reterr)
        *reterr = s->error;
    if (!s->batch.n_samples) /* no sample was its last one */
        pen__lists_join(&e->plan, s);
    if (r == PEN_OK)
        r = pen__bad_samples_add(&e->bad, s, e->plan.set.max_bad, reterr);
    if (r < 0) {
        pen__ring_recycle(&e->ring, s);
        return r;
    }
    pen__ring_lease(&e->ring, s);
    e->counters.batches++;
    e->counters.samples += s->batch.n_valid;
    e->counters.padded_samples += s->batch.n_samples - s->batch.n_valid;
    *ret = &s->batch;
    return PEN_OK;
}

static void count_wait(PenLoadEngine *e, uint64_t ns, uint32_t ready)
{
    pen__counters_waited(&e->counters, ns, ready);
    e->wait_max_ns = PEN_MAX(e->wait_max_ns, ns);
    e->pass_wait_max_ns = PEN_MAX(e->pass_wait_max_ns, ns);
}

int pen__delivery_next(PenLoadEngine *e, PenBatchWait *wait, PenBatch **ret, PenError *reterr)
{
    if (!wait->since_ns)
        wait->since_ns = wait->start_ns;
    pthread_mutex_lock(&e->lock.mutex);
    uint32_t ready = e->ring.n_full;
    int r = wait_until_ready(e, wait->deadline_ns, reterr);
    uint64_t now = pen__sys->now_ns(), waited_ns = now - wait->since_ns;
    e->counters.ns_wait += now - wait->start_ns;
    if (r == PEN_END) {
        r = pen__stall_report(&e->threads, &e->ring, &e->pass, waited_ns, reterr);
    } else {
        count_wait(e, waited_ns, ready);
        pen__spans_next(&e->threads, &e->pass, wait->since_ns, now);
        wait->since_ns = 0;
    }
    if (r == PEN_OK)
        r = take(e, ret, reterr);
    pthread_mutex_unlock(&e->lock.mutex);
    return r;
}

/* ---- and back ---- */

PenBatch *pen_batch_ref(PenBatch *batch)
{
    atomic_fetch_add(&((PenSlot *)batch)->refs, 1);
    return batch;
}

void pen_batch_unref(PenBatch **batch)
{
    if (!batch || !*batch)
        return;
    PenSlot *s = (PenSlot *)*batch;
    PenLoadEngine *e = s->owner;
    *batch = NULL;
    if (atomic_fetch_sub(&s->refs, 1) != 1)
        return;
    if (!e) {
        pen__slot_free(s);
        return;
    }
    /* In the child of a fork the lock may be held by a thread that does not exist there: the memory
     * stays as it is. */
    if (e->pid != getpid())
        return;
    pthread_mutex_lock(&e->lock.mutex);
    pen__ring_return(&e->ring, s);
    pen__load_engine_unlock(e);
}
