/* SPDX-License-Identifier: Apache-2.0 */
/* Threads that walk over the shards of a pack: what they call, how often, and how they end. */
#include "base/team.h"
#include "pack/reader/shard_walk.h"
#include "preload_help.h"

enum { SHARDS = 16, NOTHING = -1 };

/* What was called for a shard. The walk's mutex guards it. */
typedef struct Seen {
    int opened, parts, skipped, closed, released;
    uint64_t end; /* of the parts so far */
} Seen;

typedef struct Trial {
    PenShardWalk walk;
    Seen seen[SHARDS];
    int64_t leave_out;                        /* this shard has nothing to do */
    bool skip_second, skip_all;               /* parts */
    int64_t fail_open, fail_part, fail_close; /* shards */
    int wrong;                                /* calls that should not have happened so */
} Trial;

static void note(Trial *t, bool is_right)
{
    if (!is_right)
        t->wrong++;
}

static int fail(int64_t number, PenError *reterr)
{
    return pen__fail(reterr, PEN_E_IO, "test", "shard %d", (int)number);
}

static int open_one(void *ctx, PenWalkShard *s, PenError *reterr)
{
    Trial *t = ctx;
    Seen *seen = &t->seen[s->number];
    pthread_mutex_lock(&t->walk.mutex);
    note(t, !seen->opened && s->slot < t->walk.n_threads);
    seen->opened++;
    pthread_mutex_unlock(&t->walk.mutex);
    if ((int64_t)s->number == t->leave_out)
        return 0;
    if ((int64_t)s->number == t->fail_open)
        return fail(t->fail_open, reterr);
    int r = pen__pack_shard(t->walk.pack, s->number, &s->ref, reterr);
    return r < 0 ? r : 1;
}

static bool skip_one(void *ctx, const PenWalkShard *s, const PenShardPart *part)
{
    Trial *t = ctx;
    Seen *seen = &t->seen[s->number];
    if (!t->skip_all && (!t->skip_second || seen->skipped || part->first == 0))
        return false;
    seen->skipped++;
    return true;
}

static int take_part(void *ctx, const PenWalkPart *p, PenBuf *buf, PenError *reterr)
{
    Trial *t = ctx;
    Seen *seen = &t->seen[p->shard->number];
    (void)buf;
    if ((int64_t)p->shard->number == t->fail_part)
        return fail(t->fail_part, reterr);
    if (!pen__walk_await_turn(&t->walk, p))
        return PEN_OK;
    pthread_mutex_lock(&t->walk.mutex);
    note(t, !seen->closed && p->number == (uint64_t)seen->parts && p->part.bytes > 0);
    note(t, t->skip_second ? p->part.offset >= seen->end : p->part.offset == seen->end);
    seen->parts++;
    seen->end = p->part.offset + p->part.bytes;
    pthread_mutex_unlock(&t->walk.mutex);
    return PEN_OK;
}

static int close_one(void *ctx, PenWalkShard *s, PenError *reterr)
{
    Trial *t = ctx;
    if ((int64_t)s->number == t->fail_close)
        return fail(t->fail_close, reterr);
    pthread_mutex_lock(&t->walk.mutex);
    t->seen[s->number].closed++;
    pthread_mutex_unlock(&t->walk.mutex);
    return PEN_OK;
}

static void release_one(void *ctx, const PenWalkShard *s)
{
    Trial *t = ctx;
    pthread_mutex_lock(&t->walk.mutex);
    t->seen[s->number].released++;
    pthread_mutex_unlock(&t->walk.mutex);
}

static void run(void *ctx, unsigned number)
{
    Trial *t = ctx;
    (void)number;
    pen__walk_work(&t->walk);
}

static Trial plain(void)
{
    return (Trial){
        .leave_out = NOTHING, .fail_open = NOTHING, .fail_part = NOTHING, .fail_close = NOTHING};
}

/* The status of the walk. What was opened is released, whatever happened. */
static int walk(Trial *t, PenPack *pack, unsigned threads, PenError *reterr)
{
    static const PenWalkCalls calls = {open_one, skip_one, take_part, close_one, release_one};
    PenTeamWork work = {"test-walk", run, NULL, t};
    if (pen__walk_init(&t->walk, pack, threads, &calls, t, reterr) < 0)
        return PEN_E_NO_MEMORY;
    int r = pen__team_run(&work, t->walk.n_threads, reterr);
    if (r == PEN_OK)
        r = pen__walk_status(&t->walk, reterr);
    pen__walk_fini(&t->walk);
    for (int i = 0; i < SHARDS; i++)
        note(t, t->seen[i].opened == t->seen[i].released && t->seen[i].closed <= 1);
    return r;
}

/* Shards of three parts and of one, by numbers of threads below and above the number of shards. */
static const unsigned threads[] = {1, 2, 3, 64};
static const char *const packs[] = {"large", "small"};

#define EACH(pack, n)                                                                              \
    for (size_t p_i = 0; p_i < 2; p_i++)                                                           \
        for (PenPack *pack = open_pack(packs[p_i]); pack; pen_pack_close(&pack))                   \
            for (size_t n_i = 0, n = 0; n_i < 4 && (n = threads[n_i]); n_i++)

TEST(every_byte_is_in_one_part_and_in_its_turn)
{
    EACH(pack, n)
    {
        const PenManifest *m = pen__pack_manifest(pack);
        Trial t = plain();
        CHECK_INT(walk(&t, pack, (unsigned)n, NULL), PEN_OK);
        CHECK_INT(t.wrong, 0);
        CHECK(m->n_shards > 1 && m->n_shards <= SHARDS);
        for (uint64_t i = 0; i < SHARDS; i++) {
            CHECK_INT(t.seen[i].opened, i < m->n_shards);
            CHECK_INT(t.seen[i].closed, i < m->n_shards);
            CHECK_INT(t.seen[i].end, i < m->n_shards ? m->shards[i].file_bytes : 0);
        }
        CHECK_INT(t.seen[0].parts, p_i ? 1 : 3);
    }
}

TEST(a_shard_with_nothing_to_do_is_released_at_once)
{
    EACH(pack, n)
    {
        Trial t = plain();
        t.leave_out = 1;
        CHECK_INT(walk(&t, pack, (unsigned)n, NULL), PEN_OK);
        CHECK_INT(t.wrong, 0);
        CHECK_INT(t.seen[1].opened, 1);
        CHECK_INT(t.seen[1].parts + t.seen[1].closed, 0);
        CHECK_INT(t.seen[0].closed, 1);
    }
}

TEST(parts_that_are_left_out_do_not_hold_up_the_others)
{
    EACH(pack, n)
    {
        Trial t = plain();
        t.skip_second = true;
        CHECK_INT(walk(&t, pack, (unsigned)n, NULL), PEN_OK);
        CHECK_INT(t.wrong, 0);
        CHECK_INT(t.seen[0].parts, p_i ? 1 : 2);
        CHECK_INT(t.seen[0].skipped, p_i ? 0 : 1);
        t = plain();
        t.skip_all = true;
        CHECK_INT(walk(&t, pack, (unsigned)n, NULL), PEN_OK);
        CHECK_INT(t.wrong + t.seen[0].parts, 0);
        for (uint64_t i = 0; i < pen__pack_manifest(pack)->n_shards; i++)
            CHECK_INT(t.seen[i].closed, 1);
    }
}

TEST(the_first_error_ends_it)
{
    EACH(pack, n)
    {
        for (int what = 0; what < 3; what++) {
            Trial t = plain();
            PenError err = {0};
            *(what == 0 ? &t.fail_open : what == 1 ? &t.fail_part : &t.fail_close) = 1;
            CHECK_INT(walk(&t, pack, (unsigned)n, &err), PEN_E_IO);
            CHECK_STR(err.message, "shard 1");
            CHECK_INT(t.wrong, 0);
            CHECK_INT(t.seen[1].closed, 0);
        }
    }
}

TEST(it_can_be_stopped)
{
    PenPack *pack = open_pack("small");
    CHECK(pack);
    static const PenWalkCalls calls = {open_one, skip_one, take_part, close_one, release_one};
    Trial t = plain();
    PenError first = {.message = "enough"}, second = {.message = "late"}, err = {0};
    CHECK_INT(pen__walk_init(&t.walk, pack, 0, &calls, &t, NULL), PEN_OK);
    CHECK_INT(t.walk.n_threads, 1);
    CHECK(!pen__walk_is_stopped(&t.walk));
    CHECK_INT(pen__walk_status(&t.walk, &err), PEN_OK);
    pen__walk_stop(&t.walk, PEN_E_CANCELLED, &first);
    pen__walk_stop(&t.walk, PEN_E_IO, &second);
    CHECK(pen__walk_is_stopped(&t.walk));
    pen__walk_work(&t.walk);
    CHECK_INT(t.seen[0].opened, 0);
    CHECK_INT(pen__walk_status(&t.walk, &err), PEN_E_CANCELLED);
    CHECK_STR(err.message, "enough");
    pen__walk_fini(&t.walk);
    CHECK_INT(pen__walk_init(&t.walk, pack, 1000, &calls, &t, NULL), PEN_OK);
    CHECK_INT(t.walk.n_threads, PEN_WALK_THREADS);
    pen__walk_fini(&t.walk);
    pen_pack_close(&pack);
}

int main(int argc, char **argv)
{
    TEST_START(argc, argv);
    help_begin();
    make_pack("large", LARGE, LARGE_BYTES, 18 << 20);
    make_pack("small", SMALL, SMALL_BYTES, 50000);
    RUN(every_byte_is_in_one_part_and_in_its_turn);
    RUN(a_shard_with_nothing_to_do_is_released_at_once);
    RUN(parts_that_are_left_out_do_not_hold_up_the_others);
    RUN(the_first_error_ends_it);
    RUN(it_can_be_stopped);
    help_end();
    return TEST_END();
}
