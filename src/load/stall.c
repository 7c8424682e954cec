/* SPDX-License-Identifier: Apache-2.0 */
#include "load/stall.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "base/sys.h"

typedef struct Busy { /* threads that are not idle */
    char text[160];
    uint32_t n_idle;
    const PenThread *slowest; /* in its activity for longest; NULL: all are idle */
} Busy;

static Busy describe(const PenThreads *threads)
{
    static const char *const names[] = {"idle", "locating", "waiting for memory for", "reading",
                                        "decoding"};
    Busy b = {.text = ""};
    size_t at = 0;
    uint64_t now = pen__sys->now_ns();
    for (uint32_t i = 0; i < threads->n; i++) {
        const PenThread *t = &threads->all[i];
        if (t->activity == PEN_ACTIVITY_IDLE) {
            b.n_idle++;
            continue;
        }
        if (!b.slowest || t->since_ns < b.slowest->since_ns)
            b.slowest = t;
        if (at < sizeof b.text - 64)
            at += (size_t)snprintf(
                b.text + at, sizeof b.text - at, "%s%s sample %" PRIu64 " for %.1f s",
                at ? ", " : "", names[t->activity], t->sample, (double)(now - t->since_ns) / 1e9);
    }
    return b;
}

static void add_place(const PenPack *pack, uint64_t sample, PenError *err)
{
    uint64_t block = sample / pen_pack_info(pack)->block_samples;
    size_t used = strnlen(err->message, sizeof err->message);
    err->sample = (int64_t)sample;
    snprintf(err->message + used, sizeof err->message - used,
             " (shard %" PRIu64 ", block %" PRIu64 ")", pen__pack_shard_of(pack, block), block);
}

int pen__stall_report(const PenThreads *threads, const PenRing *ring, const PenEpochPass *pass,
                      uint64_t waited_ns, PenError *reterr)
{
    PenPack *pack = ring->plan->pack;
    char remote[240];
    Busy busy = describe(threads);
    const PenSlot *s = ring->pending;
    pen__pack_progress(pack, remote, sizeof remote);
    int r = pen__fail(reterr, PEN_E_TIMEOUT, "load/loader",
                      "%.120s: no batch for %.1f s: %u of %u samples of batch %" PRIu64
                      " missing; %u threads idle%s%s; %s",
                      pen__pack_path(pack), (double)waited_ns / 1e9, s ? s->left : 0,
                      s ? s->batch.n_samples : ring->plan->set.batch_size, pass->delivered,
                      busy.n_idle, *busy.text ? ", " : "", busy.text,
                      *remote ? remote : "check whether the storage responds");
    if (busy.slowest && reterr && !ring->plan->sources) /* else its pack is not known */
        add_place(pack, busy.slowest->sample, reterr);
    return r;
}
