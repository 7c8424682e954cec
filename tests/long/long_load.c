/* SPDX-License-Identifier: Apache-2.0 */
/* What a loader gives depends on the pack, the pipeline, the seed, the epoch and the position, and
 * on nothing else: threads, read-ahead, memory, ranks, restarts, storage that is slow, answers in
 * pieces or once wrong. Broken samples change neither the number of batches nor this. */
#include <errno.h>
#include <inttypes.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/attr.h"
#include "base/rng.h"
#include "base/sys.h"
#include "lib/load_pack.h"
#include "lib/sweep.h"
#include "lib/tree.h"
#include "unit/test.h"

enum { N = 256, BROKEN_N = 1200, BROKEN_EACH = 100, WORLD = 4 };

#define COLOURS                                                                                    \
    "decode | random_resized_crop 40 | hflip | color_jitter 0.3 0.3 0.3 0.1 | tensor u8 nhwc"

static char mixed_dir[300], broken_dir[300];
static PenPack *broken;

/* ---- storage that is not at its best --------------------------------------------------------- */

enum { STORAGE_FINE, STORAGE_SLOW, STORAGE_FLIPS, STORAGES };

static _Thread_local uint32_t reads; /* of this thread */

/* In pieces, and sometimes late. */
static int64_t slow_pread(int fd, void *buf, size_t bytes, uint64_t offset)
{
    uint32_t turn = reads++;
    if (turn % 9 == 4)
        usleep(50);
    else if (turn % 2)
        sched_yield();
    size_t some = bytes > 1 ? 1 + turn * 2654435761u % bytes : bytes;
    return pen__sys_real.pread(fd, buf, some, offset);
}

/* Now and then a wrong byte that is right when it is read again. */
static int64_t flipping_pread(int fd, void *buf, size_t bytes, uint64_t offset)
{
    int64_t n = pen__sys_real.pread(fd, buf, bytes, offset);
    if (n > 0 && ++reads % 13 == 0)
        ((uint8_t *)buf)[reads / 13 % (uint64_t)n] ^= 16;
    return n;
}

static void set_storage(int kind)
{
    static PenSys sys;
    sys = pen__sys_real;
    if (kind == STORAGE_SLOW)
        sys.pread = slow_pread;
    if (kind == STORAGE_FLIPS)
        sys.pread = flipping_pread;
    pen__sys = kind == STORAGE_FINE ? &pen__sys_real : &sys;
}

/* ---- one hash for each seed ------------------------------------------------------------------ */

static PenLoaderSettings settings_of(int order, uint64_t seed, uint32_t batch)
{
    PenLoaderSettings s = load_settings(batch);
    s.pipeline = COLOURS;
    s.order = order;
    s.seed = seed;
    s.last_batch = PEN_LAST_PAD;
    s.shuffle_buffer = 1; /* as few streams as can be */
    return s;
}

static bool compare(Sweep *sweep, const uint64_t *found, const uint64_t *expected, const char *what)
{
    for (uint32_t p = 0; p < N; p++)
        if (found[p] != expected[p]) {
            sweep_bad(sweep, "%s: position %u differs", what, p);
            return false;
        }
    return true;
}

/* All ranks, one after another, from a place (NULL: the start). */
static void run_ranks(Sweep *sweep, PenLoaderSettings s, const char *from, uint64_t *sums)
{
    PenPack *pack = load_pack_open(mixed_dir); /* anew, so that indexes are read again */
    for (s.rank = 0; s.rank < s.world; s.rank++) {
        LoadPass pass = {.sums = sums, .n = N};
        int r = load_run(pack, &s, from, &pass);
        if (r < 0 || pass.errors)
            sweep_bad(sweep, "rank %u of %u: %s", s.rank, s.world, pass.error.message);
    }
    pen_pack_close(&pack);
}

/* The manifest is read before: nobody reads it a second time. */
static void run_ranks_on(Sweep *sweep, PenLoaderSettings s, int storage, uint64_t *sums)
{
    LoadPass pass = {.sums = sums, .n = N};
    PenPack *pack = load_pack_open(mixed_dir);
    set_storage(storage);
    int r = load_run(pack, &s, NULL, &pass);
    set_storage(STORAGE_FINE);
    if (r < 0 || pass.errors)
        sweep_bad(sweep, "storage %d: %s", storage, pass.error.message);
    pen_pack_close(&pack);
}

static void one_seed(Sweep *sweep, int order, uint64_t seed, bool vary, uint64_t *expected)
{
    static const int threads[] = {1, 2, 8};
    uint64_t sums[N];
    PenLoaderSettings s = settings_of(order, seed, 16);
    memset(expected, 0, N * sizeof *expected);
    s.threads = 1;
    run_ranks(sweep, s, NULL, expected);
    /* A step of 5 still meets all values of each setting, other combinations for each order. */
    const uint32_t step = (uint32_t)scaled_to_few(1, 1, 5);
    for (uint32_t i = (uint32_t)order % step; vary && i < 3 * 2 * 2 * STORAGES; i += step) {
        char what[120];
        int storage = (int)(i / 12);
        s.threads = threads[i % 3];
        s.io_threads = 1 + (int)(i % 2) * 2;
        s.prefetch = i / 3 % 2 ? 4 : 1;
        s.memory_bytes = i / 6 % 2 ? 512 << 20 : 32 << 20;
        snprintf(what, sizeof what, "order %d seed %" PRIu64 " threads %d prefetch %u storage %d",
                 order, seed, s.threads, s.prefetch, storage);
        memset(sums, 0, sizeof sums);
        run_ranks_on(sweep, s, storage, sums);
        compare(sweep, sums, expected, what);
        sweep->n++;
    }
    s = settings_of(order, seed, 5);
    for (s.world = 2; vary && s.world <= WORLD; s.world++, sweep->n++) {
        memset(sums, 0, sizeof sums);
        run_ranks(sweep, s, NULL, sums);
        compare(sweep, sums, expected, "ranks");
    }
}

TEST(one_hash_for_each_seed)
{
    static uint64_t expected[3][3][N];
    Sweep sweep = sweep_begin("one hash per seed");
    for (int order = 0; order < 3; order++)
        for (uint64_t seed = 0; seed < 3; seed++) {
            one_seed(&sweep, order, seed, seed < scaled(3, 1), expected[order][seed]);
            if (seed && memcmp(expected[order][seed], expected[order][0], sizeof **expected) == 0)
                sweep_bad(&sweep, "order %d: two seeds give the same", order);
        }
    sweep_end(&sweep,
              "%" PRIu64 " passes over %d images: threads 1, 2, 8; prefetch 1, 4; memory tight, "
              "ample; storage fine, slow, wrong at first; ranks 1 to 4; 3 orders",
              sweep.n, N);
    CHECK_INT(sweep.bad, 0);
}

/* ---- going on -------------------------------------------------------------------------------- */

/* Takes some batches on each rank, and keeps the state, which has to be the same on all. */
static void run_some(Sweep *sweep, PenLoaderSettings s, uint64_t steps, uint64_t *sums, char *state)
{
    PenPack *pack = load_pack_open(mixed_dir);
    for (s.rank = 0; s.rank < s.world; s.rank++) {
        LoadPass pass = {.sums = sums, .n = N};
        PenLoader *l = NULL;
        char mine[PEN_STATE_BYTES];
        MUST(pen_loader_open(pack, &s, &l, NULL) == PEN_OK);
        int r = load_take(l, &s, 0, steps, true, &pass);
        if (r < 0)
            sweep_bad(sweep, "before: %s", pass.error.message);
        MUST(pen_loader_save(l, mine, NULL) == PEN_OK);
        if (s.rank && strcmp(mine, state) != 0)
            sweep_bad(sweep, "ranks have different states: %s, %s", mine, state);
        memcpy(state, mine, sizeof mine);
        pen_loader_close(&l);
    }
    pen_pack_close(&pack);
}

static void one_resume(Sweep *sweep, PenRng *rng, const uint64_t *expected, int order)
{
    uint64_t sums[N] = {0};
    char state[PEN_STATE_BYTES], what[160];
    PenLoaderSettings before = settings_of(order, 7, 1 + (uint32_t)pen__rng_below(rng, 12));
    PenLoaderSettings after = settings_of(order, 7, 1 + (uint32_t)pen__rng_below(rng, 12));
    before.world = 1 + (uint32_t)pen__rng_below(rng, WORLD);
    after.world = 1 + (uint32_t)pen__rng_below(rng, WORLD);
    before.threads = 1 + (int)pen__rng_below(rng, 4);
    after.threads = 1 + (int)pen__rng_below(rng, 4);
    /* At least one batch short of the end: a state at the end belongs to the next epoch. */
    uint64_t steps = pen__rng_below(rng, N / (before.batch_size * before.world));
    run_some(sweep, before, steps, sums, state);
    run_ranks(sweep, after, state, sums);
    snprintf(what, sizeof what, "%" PRIu64 " batches of %u on %u ranks, then %u on %u, order %d",
             steps, before.batch_size, before.world, after.batch_size, after.world, order);
    compare(sweep, sums, expected, what);
}

TEST(resumes_anywhere_on_any_number_of_ranks)
{
    static uint64_t expected[3][N];
    PenRng rng = pen__rng_init(5, 8);
    Sweep sweep = sweep_begin("resumes");
    for (int order = 0; order < 3; order++)
        run_ranks(&sweep, settings_of(order, 7, 16), NULL, expected[order]);
    for (uint64_t i = 0; i < scaled_to_few(200, 60, 15); i++, sweep.n++)
        one_resume(&sweep, &rng, expected[i % 3], (int)(i % 3));
    sweep_end(&sweep, "%" PRIu64 " at random places, 1 to 4 ranks before and after", sweep.n);
    CHECK_INT(sweep.bad, 0);
}

/* ---- broken samples -------------------------------------------------------------------------- */

/* Every hundredth is broken: some cannot be decoded, the others do not fit their checksum. */
static bool is_broken(uint64_t sample)
{
    return sample % BROKEN_EACH == 37;
}

static void broken_image(void *ctx, uint32_t i, LoadImage *image)
{
    load_mixed_image(ctx, is_broken(i) ? 0 : i, image);
    if (is_broken(i) && i / BROKEN_EACH % 2)
        load_break_jpeg(&image->file);
}

static void make_broken(void)
{
    LoadSpec spec = {BROKEN_N, PEN_MODE_KEEP, 16, 400000, broken_image, NULL};
    snprintf(broken_dir, sizeof broken_dir, "%s", scratch("broken.pen"));
    load_pack_write(broken_dir, &spec);
    broken = load_pack_open(broken_dir);
    for (uint32_t i = 0; i < BROKEN_N; i++)
        if (is_broken(i) && i / BROKEN_EACH % 2 == 0)
            load_damage(broken_dir, broken, i);
}

static PenLoaderSettings broken_settings(int on_bad)
{
    PenLoaderSettings s = load_settings(20);
    s.on_bad = on_bad;
    s.seed = 3;
    return s;
}

TEST(raising_keeps_the_number_of_batches)
{
    Sweep sweep = sweep_begin("1 % bad, raise");
    uint64_t errors = 0, calls[WORLD];
    for (uint32_t rank = 0; rank < WORLD; rank++, sweep.n++) {
        PenLoaderSettings s = broken_settings(PEN_BAD_RAISE);
        LoadPass pass = {.n = BROKEN_N};
        s.world = WORLD;
        s.rank = rank;
        int r = load_run(broken, &s, NULL, &pass);
        calls[rank] = pass.batches + pass.errors;
        errors += pass.errors;
        if (r != PEN_END || calls[rank] != BROKEN_N / 20 / WORLD)
            sweep_bad(&sweep, "rank %u: %d, %" PRIu64 " batches and %" PRIu64 " errors", rank, r,
                      pass.batches, pass.errors);
        if (pass.errors &&
            (!is_broken((uint64_t)pass.error.sample) || !strstr(pass.error.message, "'s-00")))
            sweep_bad(&sweep, "rank %u: %s", rank, pass.error.message);
    }
    /* At most one error for each broken sample: two may fall into one batch. */
    if (errors < BROKEN_N / BROKEN_EACH / 2 || errors > BROKEN_N / BROKEN_EACH)
        sweep_bad(&sweep, "%" PRIu64 " errors in all", errors);
    sweep_end(&sweep, "4 ranks, %" PRIu64 " of %d calls raised, as many calls on each rank", errors,
              BROKEN_N / 20);
    CHECK_INT(sweep.bad, 0);
}

/* Which sample came instead of which, of one epoch. */
typedef struct Swaps {
    uint64_t instead[BROKEN_N];
    uint64_t sums[BROKEN_N];
    uint32_t n;
} Swaps;

static void read_swaps(Sweep *sweep, const PenLoader *l, uint64_t epoch, Swaps *ret)
{
    PenBadSample bad;
    for (uint64_t i = 0; pen_loader_bad_sample(l, i, &bad) == PEN_OK; i++) {
        int expected = bad.sample / BROKEN_EACH % 2 ? PEN_E_DECODE : PEN_E_CORRUPT;
        if (bad.epoch != epoch || !is_broken(bad.sample) || is_broken(bad.instead) ||
            bad.status != expected || ret->instead[bad.sample])
            sweep_bad(sweep, "sample %" PRIu64 " of epoch %" PRIu64 ": %s", bad.sample, bad.epoch,
                      bad.message);
        ret->instead[bad.sample] = bad.instead + 1;
        ret->n++;
    }
}

/* Every rank in turn; `resume` stops in the middle and goes on with a new loader. */
static void collect_swaps(Sweep *sweep, PenLoaderSettings s, uint64_t epoch, bool resume,
                          Swaps *ret)
{
    *ret = (Swaps){0};
    for (s.rank = 0; s.rank < s.world; s.rank++) {
        PenLoader *l = NULL;
        char state[PEN_STATE_BYTES];
        LoadPass pass = {.sums = ret->sums, .n = BROKEN_N};
        uint64_t start = 0;
        MUST(pen_loader_open(broken, &s, &l, NULL) == PEN_OK);
        MUST(pen_loader_set_epoch(l, epoch, NULL) == PEN_OK);
        if (resume) {
            uint64_t half = pen_loader_len(l) / 2;
            load_take(l, &s, 0, half, true, &pass);
            read_swaps(sweep, l, epoch, ret);
            MUST(pen_loader_save(l, state, NULL) == PEN_OK);
            start = half * s.batch_size * s.world;
            pen_loader_close(&l);
            MUST(pen_loader_open(broken, &s, &l, NULL) == PEN_OK);
            MUST(pen_loader_restore(l, state, 1, NULL) == PEN_OK);
        }
        int r = load_take(l, &s, start, UINT64_MAX, true, &pass);
        read_swaps(sweep, l, epoch, ret);
        if (r != PEN_END || pass.batches != BROKEN_N / s.batch_size / s.world)
            sweep_bad(sweep, "rank %u of %u: %d, %" PRIu64 " batches: %s", s.rank, s.world, r,
                      pass.batches, pass.error.message);
        pen_loader_close(&l);
    }
    if (ret->n != BROKEN_N / BROKEN_EACH)
        sweep_bad(sweep, "%u on the list", ret->n);
}

TEST(substitutes_are_the_same_everywhere)
{
    static Swaps first, again, last;
    const uint32_t step = (uint32_t)scaled_to_few(1, 2, 3);
    Sweep sweep = sweep_begin("1 % bad, substitute");
    for (uint64_t epoch = 0; epoch < scaled(3, 2); epoch++) {
        PenLoaderSettings s = broken_settings(PEN_BAD_SUBSTITUTE);
        s.threads = 1;
        collect_swaps(&sweep, s, epoch, false, &first);
        if (epoch && memcmp(&first, &last, sizeof first) == 0)
            sweep_bad(&sweep, "two epochs have the same substitutes");
        last = first;
        for (uint32_t i = (uint32_t)epoch % step; i < 12; i += step, sweep.n++) {
            s.threads = i % 4 ? 8 : 2;
            s.world = 1u << i / 2 % 3;
            s.prefetch = i % 5;
            collect_swaps(&sweep, s, epoch, i >= 6, &again);
            if (memcmp(&first, &again, sizeof first) != 0)
                sweep_bad(&sweep, "epoch %" PRIu64 ", run %u: not the same", epoch, i);
        }
    }
    sweep_end(&sweep,
              "%" PRIu64 " runs on 1, 2, 4 ranks, half of them resumed: %d of %d on the list, the "
              "same substitutes",
              sweep.n, BROKEN_N / BROKEN_EACH, BROKEN_N);
    CHECK_INT(sweep.bad, 0);
}

TEST(the_limit_is_met_at_the_same_batch)
{
    Sweep sweep = sweep_begin("max_bad");
    uint64_t at = 0;
    for (uint32_t i = 0; i < scaled_to_few(64, 12, 6); i++, sweep.n++) {
        PenLoaderSettings s = broken_settings(PEN_BAD_SUBSTITUTE);
        LoadPass pass = {.n = BROKEN_N, .first_error = UINT64_MAX};
        PenLoader *l = NULL;
        s.max_bad = 5;
        s.threads = 1 + (int)i % 8;
        s.prefetch = i % 6;
        MUST(pen_loader_open(broken, &s, &l, NULL) == PEN_OK);
        int r = load_take(l, &s, 0, UINT64_MAX, true, &pass);
        pen_loader_close(&l);
        if (r != PEN_E_CORRUPT || !strstr(pass.error.message, "max_bad"))
            sweep_bad(&sweep, "%d: %s", r, pass.error.message);
        at = i ? at : pass.first_error;
        if (pass.first_error != at)
            sweep_bad(&sweep, "at batch %" PRIu64 ", before at %" PRIu64, pass.first_error, at);
    }
    sweep_end(&sweep, "%" PRIu64 " runs, always at batch %" PRIu64, sweep.n, at);
    CHECK_INT(sweep.bad, 0);
}

/* The n-th read fails once, or all from there on do. */
static atomic_uint eio_calls;
static uint32_t eio_from, eio_to;

static int64_t eio_pread(int fd, void *buf, size_t bytes, uint64_t offset)
{
    uint32_t n = atomic_fetch_add(&eio_calls, 1) + 1;
    if (n >= eio_from && n < eio_to)
        return -EIO;
    return pen__sys_real.pread(fd, buf, bytes, offset);
}

TEST(a_failed_read_is_never_substituted)
{
    static PenSys sys;
    Sweep sweep = sweep_begin("EIO with substitute");
    sys = pen__sys_real;
    sys.pread = eio_pread;
    for (uint32_t i = 1; i <= scaled_to_few(600, 60, 20); i++, sweep.n++) {
        PenLoaderSettings s = broken_settings(PEN_BAD_SUBSTITUTE);
        LoadPass pass = {.n = BROKEN_N};
        PenLoader *l = NULL;
        PenBadSample bad;
        s.count = 160;
        eio_from = i * (uint32_t)scaled_to_few(1, 10, 30);
        eio_to = i % 3 ? eio_from + 1 : UINT32_MAX;
        atomic_store(&eio_calls, 0);
        MUST(pen_loader_open(broken, &s, &l, NULL) == PEN_OK);
        pen__sys = &sys;
        int r = load_take(l, &s, 0, UINT64_MAX, true, &pass);
        if (r != PEN_E_IO && !(r == PEN_END && atomic_load(&eio_calls) < eio_from))
            sweep_bad(&sweep, "read %u fails: %d after %" PRIu64 " batches: %s", eio_from, r,
                      pass.batches, pass.error.message);
        for (uint64_t k = 0; pen_loader_bad_sample(l, k, &bad) == PEN_OK; k++)
            if (!is_broken(bad.sample))
                sweep_bad(&sweep, "sample %" PRIu64 " was replaced: %s", bad.sample, bad.message);
        pen_loader_close(&l); /* its threads use the system interface */
        pen__sys = &pen__sys_real;
    }
    sweep_end(&sweep, "%" PRIu64 " places", sweep.n);
    CHECK_INT(sweep.bad, 0);
}

/* A substitute has to be read while all memory for reading is taken by samples that wait for the
 * very thread that looks for it. */
static void large_image(void *ctx, uint32_t i, LoadImage *image)
{
    static PenBuf noise;
    (void)ctx;
    if (!noise.data) {
        LoadImage one = {.file = {0}};
        load_mixed_image(NULL, 0, &one);
        noise = one.file;
    }
    /* Bytes behind the end of the picture are allowed, and cost nothing to decode. */
    image->file.bytes = 0;
    MUST(pen__buf_add(&image->file, noise.data, noise.bytes) == 0);
    if (i % 3 == 1)
        load_break_jpeg(&image->file);
    MUST(pen__buf_reserve(&image->file, 220000) == 0);
    memset(image->file.data + image->file.bytes, (int)(i + 1), 220000);
    image->file.bytes += 220000;
    image->width = 40;
    image->height = 36;
    image->codec = PEN_STORED_JPEG;
    image->channels = 3;
}

TEST(substitutes_do_not_wait_for_themselves)
{
    LoadSpec spec = {60, LOAD_AS_IS, 4, 8 << 20, large_image, NULL};
    Sweep sweep = sweep_begin("substitutes in tight memory");
    load_pack_write(scratch("large.pen"), &spec);
    PenPack *large = load_pack_open(scratch("large.pen"));
    for (int i = 0; i < 12; i++, sweep.n++) {
        PenLoaderSettings s = load_settings(4);
        LoadPass pass = {.n = 60};
        s.on_bad = PEN_BAD_SUBSTITUTE;
        s.threads = 1 + i % 3;
        s.io_threads = 4;
        s.seed = (uint64_t)i;
        s.memory_bytes = (uint64_t)(5 + 3 * s.threads) << 20;
        s.stall_ms = 5000;
        int r = load_run(large, &s, NULL, &pass);
        if (r != PEN_END || pass.errors || pass.substituted != 20)
            sweep_bad(&sweep, "threads %d: %d, %" PRIu64 " substituted: %s", s.threads, r,
                      pass.substituted, pass.error.message);
    }
    pen_pack_close(&large);
    sweep_end(&sweep, "%" PRIu64 " passes, a third of the samples broken", sweep.n);
    CHECK_INT(sweep.bad, 0);
}

/* ---- ways of storing ------------------------------------------------------------------------- */

static const char *const way_names[] = {"kept", "tiled", "raw", "indexed"};
static const int ways[] = {PEN_MODE_KEEP, PEN_MODE_TILE, PEN_MODE_RAW, LOAD_INDEXED};

static void load_way(Sweep *sweep, int way, const uint64_t *expected, uint64_t *sums)
{
    LoadSpec spec = {N, ways[way], 8, 60000, load_mixed_image, NULL};
    const char *dir = scratch("as-%s.pen", way_names[way]);
    load_pack_write(dir, &spec);
    PenPack *pack = load_pack_open(dir);
    for (int storage = 0; storage < STORAGES; storage++, sweep->n++) {
        PenLoaderSettings s = settings_of(PEN_ORDER_SHUFFLE, 5, 16);
        LoadPass pass = {.sums = sums, .n = N};
        memset(sums, 0, N * sizeof *sums);
        set_storage(storage);
        int r = load_run(pack, &s, NULL, &pass);
        set_storage(STORAGE_FINE);
        if (r < 0 || pass.errors)
            sweep_bad(sweep, "%s: %s", way_names[way], pass.error.message);
        if (expected)
            compare(sweep, sums, expected, way_names[way]);
    }
    if (ways[way] == LOAD_INDEXED &&
        !pen_pack_info(pack)->stats.images[PEN_STORED_JPEG][PEN_HOW_INDEXED])
        sweep_bad(sweep, "no image has an index");
    pen_pack_close(&pack);
}

/* All that lose nothing give the same. */
TEST(the_way_of_storing_makes_no_difference)
{
    uint64_t expected[N], sums[N];
    Sweep sweep = sweep_begin("ways of storing");
    load_way(&sweep, 0, NULL, expected);
    for (int way = 1; way < (int)PEN_LEN(ways); way++)
        load_way(&sweep, way, expected, sums);
    sweep_end(&sweep, "%" PRIu64 " passes", sweep.n);
    CHECK_INT(sweep.bad, 0);
}

int main(int argc, char **argv)
{
    LoadSpec spec = {N, PEN_MODE_MIX, 8, 60000, load_mixed_image, NULL};
    TEST_START(argc, argv);
    snprintf(mixed_dir, sizeof mixed_dir, "%s", scratch("mixed.pen"));
    load_pack_write(mixed_dir, &spec);
    make_broken();
    RUN(one_hash_for_each_seed);
    RUN(the_way_of_storing_makes_no_difference);
    RUN(resumes_anywhere_on_any_number_of_ranks);
    RUN(raising_keeps_the_number_of_batches);
    RUN(substitutes_are_the_same_everywhere);
    RUN(the_limit_is_met_at_the_same_batch);
    RUN(a_failed_read_is_never_substituted);
    RUN(substitutes_do_not_wait_for_themselves);
    pen_pack_close(&broken);
    return TEST_END();
}
