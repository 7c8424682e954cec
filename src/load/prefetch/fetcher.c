/* SPDX-License-Identifier: Apache-2.0 */
#include "load/prefetch/fetcher.h"

#include "base/attr.h"
#include "base/thread.h"
#include "load/spans.h"

enum { JOIN_BYTES = 8 << 20 }; /* of one request for adjacent blocks */

/* Blocks that follow the first one and come with the same request. */
static int join_adjacent(PenBlocks *b, PenBlockPart *run[])
{
    PenBlockPlace first = pen__blocks_place(b->plan, run[0]->block);
    const PenPack *p = first.pack;
    uint64_t most = PEN_MIN((uint64_t)JOIN_BYTES, b->schedule.plan.limit_bytes / 4);
    uint64_t bytes = run[0]->bytes, shard = pen__pack_shard_of(p, first.number), next;
    int n = 1;
    while (n < PEN_JOIN_MOST && run[0]->is_block && pen__pack_joins(p) &&
           bytes + run[0]->bytes <= most &&
           (next = first.number + (uint64_t)n) < pen_pack_info(p)->n_blocks &&
           pen__pack_shard_of(p, next) == shard) {
        run[n] = NULL;
        int r = pen__schedule_next_adjacent(&b->schedule, run[n - 1], &run[n], NULL);
        if (r < 0 || !run[n])
            break;
        bytes += run[n++]->bytes;
    }
    return n;
}

/* Opens the block's shard without the lock, then waits for its turn. */
static void wait_for_turn(PenBlocks *b, const PenBlockPlace *at)
{
    uint64_t mine = pen__turns_take(&b->turns);
    PenShardRef *shard = NULL;
    pthread_mutex_unlock(&b->lock->mutex);
    int r = pen__pack_shard(at->pack, pen__pack_shard_of(at->pack, at->number), &shard, NULL);
    pthread_mutex_lock(&b->lock->mutex);
    pen__turns_wait(&b->turns, mine);
    if (r == PEN_OK)
        pen__pack_shard_put(at->pack, shard);
}

/* Releases the lock meanwhile. */
static void fetch(PenBlocks *b, PenThread *me, PenBlockPart *first)
{
    const PenSchedule *s = &b->schedule;
    PenBlockPart *run[PEN_JOIN_MOST] = {first};
    PenBlock *blocks[PEN_JOIN_MOST] = {0};
    PenError err = {0};
    PenBlockPlace at = pen__blocks_place(b->plan, first->block);
    int n = join_adjacent(b, run);
    pen__thread_set(me, PEN_ACTIVITY_READING, at.number * at.block_samples);
    uint64_t begin_ns = me->since_ns, bytes = 0;
    for (int i = 0; i < n; i++)
        bytes += run[i]->bytes;
    if (!b->turns.warm)
        wait_for_turn(b, &at);
    pthread_mutex_unlock(&b->lock->mutex);
    int r = n > 1 ? pen__pack_blocks_take(at.pack, at.number, n, blocks, &err)
            : first->is_block || !pen__pack_is_whole(at.pack)
                ? pen__pack_block_take(at.pack, at.number, blocks, &err)
                : pen__pack_part_take(at.pack, at.number, first->first, first->n, blocks, &err);
    pthread_mutex_lock(&b->lock->mutex);
    pen__thread_set(me, PEN_ACTIVITY_IDLE, 0);
    pen__spans_request(me, at.number, bytes, begin_ns);
    if (pen__turns_answered(&b->turns, pen__schedule_has_first_batch(s)))
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
        PenBlockPart *next = pen__blocks_next(b);
        if (next)
            fetch(b, me, next);
        else
            (void)pen__cond_wait(&b->fetchers, &lock->mutex, pen__deadline_after(1000000000u));
    }
    pthread_mutex_unlock(&lock->mutex);
}
