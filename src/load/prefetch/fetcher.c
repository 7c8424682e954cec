/* SPDX-License-Identifier: Apache-2.0 */
#include "load/prefetch/fetcher.h"

#include "base/attr.h"
#include "base/thread.h"
#include "load/spans.h"

enum { JOIN_BYTES = 8 << 20 }; /* of one request for adjacent blocks */

/* Blocks that follow the first one and come with the same request. */
static int join_adjacent(PenBlocks *b, PenScheduledBlock *run[])
{
    const PenPack *p = b->pack;
    uint64_t most = PEN_MIN((uint64_t)JOIN_BYTES, b->schedule.plan.limit_bytes / 4);
    uint64_t bytes = run[0]->bytes, shard = pen__pack_shard_of(p, run[0]->number);
    int n = 1;
    while (n < PEN_JOIN_MOST && pen__pack_joins(p) && bytes + run[0]->bytes <= most &&
           run[n - 1]->number + 1 < pen_pack_info(p)->n_blocks &&
           pen__pack_shard_of(p, run[n - 1]->number + 1) == shard) {
        run[n] = NULL;
        int r = pen__schedule_next_adjacent(&b->schedule, run[n - 1], &run[n], NULL);
        if (r < 0 || !run[n])
            break;
        bytes += run[n++]->bytes;
    }
    return n;
}

/* Opens the block's shard without the lock, then waits for its turn. */
static void wait_for_turn(PenBlocks *b, uint64_t number)
{
    uint64_t mine = pen__turns_take(&b->turns);
    PenShardRef *shard = NULL;
    pthread_mutex_unlock(&b->lock->mutex);
    int r = pen__pack_shard(b->pack, pen__pack_shard_of(b->pack, number), &shard, NULL);
    pthread_mutex_lock(&b->lock->mutex);
    pen__turns_wait(&b->turns, mine);
    if (r == PEN_OK)
        pen__pack_shard_put(b->pack, shard);
}

/* Releases the lock meanwhile. */
static void fetch(PenBlocks *b, PenThread *me, PenScheduledBlock *first)
{
    const PenSchedule *s = &b->schedule;
    PenScheduledBlock *run[PEN_JOIN_MOST] = {first};
    PenBlock *blocks[PEN_JOIN_MOST] = {0};
    PenError err = {0};
    uint64_t number = first->number;
    int n = join_adjacent(b, run);
    pen__thread_set(me, PEN_ACTIVITY_READING, number * s->plan.block_samples);
    uint64_t begin_ns = me->since_ns, bytes = 0;
    for (int i = 0; i < n; i++)
        bytes += run[i]->bytes;
    if (!b->turns.warm)
        wait_for_turn(b, number);
    pthread_mutex_unlock(&b->lock->mutex);
    int r = n > 1 ? pen__pack_blocks_take(b->pack, number, n, blocks, &err)
                  : pen__pack_block_take(b->pack, number, blocks, &err);
    pthread_mutex_lock(&b->lock->mutex);
    pen__thread_set(me, PEN_ACTIVITY_IDLE, 0);
    pen__spans_request(me, number, bytes, begin_ns);
    if (pen__turns_answered(&b->turns, s->cursor >= s->split.batch))
        pthread_cond_broadcast(&b->fetchers);
    for (int i = 0; i < n; i++)
        pen__blocks_fetched(b, run[i], r, blocks[i], &err);
}

void pen__fetcher_run(PenBlocks *b, PenThread *me)
{
    PenLoadLock *lock = b->lock;
    pen__thread_name("pen-fetch");
    pthread_mutex_lock(&lock->mutex);
    while (!lock->stop) {
        PenScheduledBlock *next = pen__blocks_next(b);
        if (next)
            fetch(b, me, next);
        else
            (void)pen__cond_wait(&b->fetchers, &lock->mutex, pen__deadline_after(1000000000u));
    }
    pthread_mutex_unlock(&lock->mutex);
}
