/* SPDX-License-Identifier: Apache-2.0 */
/* The account that is given when a batch does not come. */
#include <inttypes.h>
#include <stdio.h>

#include "base/sys.h"
#include "load/core.h"

#define WHERE "load/loader"

static const char *doing_name(int doing)
{
    static const char *const names[] = {"idle", "looking up", "reading", "decoding"};
    return names[doing];
}

void pen__thread_doing(PenThread *t, int doing, uint64_t sample)
{
    t->doing = doing;
    t->sample = sample;
    t->since_ns = pen__sys->now_ns();
}

int pen__core_stalled(PenCore *c, uint64_t waited_ns, PenError *reterr)
{
    char text[160] = "", far[240];
    size_t at = 0;
    uint64_t now = pen__sys->now_ns(), oldest = UINT64_MAX;
    uint32_t idle = 0;
    const PenThread *slowest = NULL;
    for (uint32_t i = 0; i < c->n_threads; i++) {
        const PenThread *t = &c->threads[i];
        idle += t->doing == THREAD_IDLE;
        if (t->doing == THREAD_IDLE)
            continue;
        if (t->since_ns < oldest) {
            oldest = t->since_ns;
            slowest = t;
        }
        if (at < sizeof text - 64)
            at += (size_t)snprintf(
                text + at, sizeof text - at, "%s%s sample %" PRIu64 " for %.1f s", at ? ", " : "",
                doing_name(t->doing), t->sample, (double)(now - t->since_ns) / 1e9);
    }
    const PenSlot *s = c->under_way;
    uint64_t block =
        slowest ? slowest->sample / pen_pack_info(c->plan.pack)->block_samples : UINT64_MAX;
    pen__pack_tell(c->plan.pack, far, sizeof far);
    int r = pen__fail(reterr, PEN_E_TIMEOUT, WHERE,
                      "%.120s: no batch for %.1f s: %u of %u samples of batch %" PRIu64
                      " missing; %u threads idle%s%s; %s",
                      pen__pack_path(c->plan.pack), (double)waited_ns / 1e9, s ? s->left : 0,
                      c->plan.set.batch_size, c->pass.next_batch, idle, at ? ", " : "", text,
                      *far ? far : "is the storage answering?");
    if (slowest && reterr) {
        reterr->sample = (int64_t)slowest->sample;
        size_t used = 0;
        while (used < sizeof reterr->message && reterr->message[used])
            used++;
        snprintf(reterr->message + used, sizeof reterr->message - used,
                 " (shard %" PRIu64 ", block %" PRIu64 ")", pen__pack_shard_of(c->plan.pack, block),
                 block);
    }
    return r;
}
