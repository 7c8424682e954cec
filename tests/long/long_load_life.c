/* SPDX-License-Identifier: Apache-2.0 */
/* Loaders that come and go: thousands of them leave nothing behind, and a process may fork whenever
 * it likes while their threads are at work. */
#include <inttypes.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/attr.h"
#include "base/sys.h"
#include "lib/load_pack.h"
#include "lib/sweep.h"
#include "lib/tree.h"
#include "unit/test.h"

enum { N = 128, CHILD_SECONDS = 30, MOST_KIB = 1024 };

static char dir[300], broken_dir[300];
static uint64_t expected[N];

/* ---- fork ------------------------------------------------------------------------------------ */

typedef struct Busy {
    PenPack *pack;
    PenLoader *loader;
    PenBatch *held;
    uint64_t turn;
} Busy;

static PenLoaderSettings busy_settings(void)
{
    PenLoaderSettings s = load_settings(8);
    s.threads = 8;
    s.io_threads = 4;
    s.prefetch = 6;
    return s;
}

/* 1 when something is not as it should be. */
static int read_ten(PenPack *pack, uint64_t first)
{
    for (uint64_t i = 0; i < 10; i++) {
        int64_t label = -1;
        size_t bytes = 0;
        uint64_t sample = (first + i * 7) % N;
        if (pen_pack_read(pack, sample, 1, &label, sizeof label, &bytes, NULL) != PEN_OK ||
            label != (int64_t)sample ||
            pen_pack_read(pack, sample, 0, NULL, 0, &bytes, NULL) != PEN_OK)
            return 1;
        void *image = malloc(bytes);
        int r = pen_pack_read(pack, sample, 0, image, bytes, &bytes, NULL);
        free(image);
        if (r != PEN_OK)
            return 1;
    }
    return 0;
}

static int open_anew(void *ctx)
{
    const Busy *busy = ctx;
    PenPack *pack = NULL;
    if (pen_pack_open(dir, NULL, &pack, NULL) != PEN_OK)
        return 1;
    int bad = read_ten(pack, busy->turn);
    pen_pack_close(&pack);
    return bad;
}

static int load_anew(void *ctx)
{
    uint64_t sums[N] = {0};
    PenPack *pack = NULL;
    PenLoader *l = NULL;
    PenLoaderSettings s = busy_settings();
    LoadPass pass = {.sums = sums, .n = N};
    (void)ctx;
    if (pen_pack_open(dir, NULL, &pack, NULL) != PEN_OK ||
        pen_loader_open(pack, &s, &l, NULL) != PEN_OK)
        return 1;
    int r = load_take(l, &s, 0, 2, true, &pass);
    pen_loader_close(&l);
    pen_pack_close(&pack);
    return r != PEN_OK || memcmp(sums, expected, 2 * s.batch_size * sizeof *sums) != 0;
}

static int use_parents_loader(void *ctx)
{
    Busy *busy = ctx;
    PenBatch *b = NULL;
    PenError e = {0};
    PenLoaderStats stats;
    char state[PEN_STATE_BYTES];
    int bad = pen_loader_next(busy->loader, -1, &b, &e) != PEN_E_CLOSED || !e.message[0];
    bad |= pen_loader_next(busy->loader, 0, &b, &e) != PEN_E_CLOSED;
    bad |= pen_loader_begin(busy->loader, &e) != PEN_E_CLOSED;
    bad |= pen_loader_set_epoch(busy->loader, 4, &e) != PEN_E_CLOSED;
    bad |= pen_loader_save(busy->loader, state, &e) < 0;
    bad |= pen_loader_restore(busy->loader, state, 1, &e) != PEN_E_CLOSED;
    bad |= pen_loader_len(busy->loader) != N / 8;
    pen_loader_stats(busy->loader, &stats);
    pen_batch_unref(&busy->held);
    pen_loader_close(&busy->loader);
    return bad;
}

static int use_parents_pack(void *ctx)
{
    Busy *busy = ctx;
    PenLoader *l = NULL;
    PenLoaderSettings s = busy_settings();
    PenError e = {0};
    int64_t label = -1;
    size_t bytes = 0;
    int bad = 0;
    for (uint64_t i = 0; i < 10 && !bad; i++) {
        uint64_t sample = (busy->turn + i * 13) % N;
        int r = pen_pack_read(busy->pack, sample, 1, &label, sizeof label, &bytes, &e);
        bad = r != PEN_E_CLOSED || !e.message[0];
    }
    bad |= pen_loader_open(busy->pack, &s, &l, &e) != PEN_E_CLOSED;
    pen_loader_close(&l);
    pen_pack_close(&busy->pack);
    return bad;
}

typedef struct Variant {
    const char *name;
    int (*run)(void *ctx);
    bool threads; /* started in the child, which the thread sanitizer does not support */
} Variant;

static const Variant variants[] = {{"opens and reads", open_anew, false},
                                   {"uses the parent's loader", use_parents_loader, false},
                                   {"uses the parent's pack", use_parents_pack, false},
                                   {"opens a loader", load_anew, true}};

static void take_one(Sweep *sweep, Busy *busy)
{
    PenError e = {0};
    pen_batch_unref(&busy->held);
    int r = pen_loader_next(busy->loader, -1, &busy->held, &e);
    if (r == PEN_END)
        r = pen_loader_next(busy->loader, -1, &busy->held, &e);
    if (r != PEN_OK)
        sweep_bad(sweep, "parent: %s", e.message);
}

TEST(forks_while_threads_are_busy)
{
    Sweep sweep = sweep_begin("fork");
    Busy busy = {.pack = load_pack_open(dir)};
    PenLoaderSettings s = busy_settings();
    MUST(pen_loader_open(busy.pack, &s, &busy.loader, NULL) == PEN_OK);
    for (busy.turn = 0; busy.turn < scaled(1000, 100); busy.turn++) {
        const Variant *v = &variants[busy.turn % PEN_LEN(variants)];
        if (v->threads && load_is_sanitized())
            continue;
        take_one(&sweep, &busy);
        usleep((useconds_t)(busy.turn * 37 % 900));
        int r = load_child_end(load_child_start(v->run, &busy, CHILD_SECONDS));
        if (r == 256 + SIGALRM)
            sweep_bad(&sweep, "a child that %s hangs", v->name);
        else if (r)
            sweep_bad(&sweep, "a child that %s ended with %d", v->name, r);
        sweep.n++;
    }
    pen_batch_unref(&busy.held);
    pen_loader_close(&busy.loader);
    pen_pack_close(&busy.pack);
    sweep_end(&sweep, "%" PRIu64 " forks beside 12 busy threads, in %zu ways", sweep.n,
              PEN_LEN(variants));
    CHECK_INT(sweep.bad, 0);
}

/* ---- nothing is left ------------------------------------------------------------------------- */

/* One life: a batch and an end; abandoned in the middle; or after an error. */
static void one_life(Sweep *sweep, PenPack *whole, PenPack *broken, uint64_t i)
{
    PenLoader *l = NULL;
    PenBatch *a = NULL, *b = NULL;
    PenError e = {0};
    PenLoaderSettings s = load_settings(8);
    int kind = (int)(i % 3), r;
    s.seed = i;
    s.prefetch = 1 + (uint32_t)i % 5;
    if (i % 30 == 2) { /* not even opened */
        s.pipeline = "decode | no_such_thing";
        r = pen_loader_open(whole, &s, &l, &e);
        if (r != PEN_E_INVALID)
            sweep_bad(sweep, "a wrong pipeline: %d", r);
        return;
    }
    MUST(pen_loader_open(kind == 2 ? broken : whole, &s, &l, &e) == PEN_OK);
    r = pen_loader_next(l, -1, &a, &e);
    if (r != (kind == 2 ? PEN_E_DECODE : PEN_OK))
        sweep_bad(sweep, "life %" PRIu64 ": %d: %s", i, r, e.message);
    if (kind == 1) { /* one batch out, one perhaps on its way */
        r = pen_loader_next(l, 0, &b, &e);
        if (r != PEN_OK && r != PEN_E_TIMEOUT)
            sweep_bad(sweep, "life %" PRIu64 ": %d: %s", i, r, e.message);
        pen_loader_close(&l);
    }
    pen_batch_unref(&a);
    pen_batch_unref(&b);
    pen_loader_close(&l);
}

static void compare_held(Sweep *sweep, const LoadHeld *before, const LoadHeld *after)
{
    if (after->files != before->files || after->threads != before->threads ||
        after->shared != before->shared)
        sweep_bad(sweep, "files %u, then %u; threads %u, then %u; shared mappings %u, then %u",
                  before->files, after->files, before->threads, after->threads, before->shared,
                  after->shared);
    if (!load_is_sanitized() && after->rss_kib > before->rss_kib + MOST_KIB)
        sweep_bad(sweep, "memory %" PRIu64 " KiB, then %" PRIu64, before->rss_kib, after->rss_kib);
}

TEST(many_lives_leave_nothing)
{
    Sweep sweep = sweep_begin("open, a batch, close");
    LoadHeld before = {0};
    unsigned threads = load_held().threads;
    PenPack *whole = load_pack_open(dir), *broken = load_pack_open(broken_dir);
    for (uint64_t i = 0; i < scaled(10000, 500); i++, sweep.n++) {
        one_life(&sweep, whole, broken, i);
        if (i == 100) {
            MUST(load_threads_gone(threads, 5));
            before = load_held();
        }
    }
    load_threads_gone(before.threads, 5);
    LoadHeld after = load_held();
    compare_held(&sweep, &before, &after);
    pen_pack_close(&whole);
    pen_pack_close(&broken);
    sweep_end(&sweep,
              "%" PRIu64 " times, a third abandoned, a third after an error: memory %+" PRId64
              " KiB after the first 100, files %+d, threads %+d",
              sweep.n, (int64_t)after.rss_kib - (int64_t)before.rss_kib,
              (int)after.files - (int)before.files, (int)after.threads - (int)before.threads);
    CHECK_INT(sweep.bad, 0);
}

TEST(memory_is_flat_over_epochs)
{
    enum { EPOCHS = 50, FIRST = 5 };
    Sweep sweep = sweep_begin("50 epochs");
    PenPack *pack = load_pack_open(dir);
    PenLoaderSettings s = load_settings(16);
    PenLoader *l = NULL;
    LoadHeld before = {0};
    s.threads = 4;
    MUST(pen_loader_open(pack, &s, &l, NULL) == PEN_OK);
    for (int epoch = 0; epoch < EPOCHS; epoch++, sweep.n++) {
        LoadPass pass = {.n = N};
        if (load_take(l, &s, 0, UINT64_MAX, true, &pass) != PEN_END)
            sweep_bad(&sweep, "%s", pass.error.message);
        if (epoch == FIRST)
            before = load_held();
    }
    LoadHeld after = load_held();
    compare_held(&sweep, &before, &after);
    pen_loader_close(&l);
    pen_pack_close(&pack);
    sweep_end(&sweep, "memory %+" PRId64 " KiB after the first %d",
              (int64_t)after.rss_kib - (int64_t)before.rss_kib, FIRST);
    CHECK_INT(sweep.bad, 0);
}

static void all_broken(void *ctx, uint32_t i, LoadImage *image)
{
    (void)ctx;
    load_mixed_image(NULL, i * 22, image);
    if (i % 8 == 3)
        load_break_jpeg(&image->file);
}

static PenLoaderSettings expected_settings(void)
{
    PenLoaderSettings s = busy_settings();
    s.threads = 1;
    s.io_threads = 1;
    return s;
}

int main(int argc, char **argv)
{
    LoadSpec spec = {N, PEN_MODE_MIX, 8, 60000, load_mixed_image, NULL};
    LoadSpec broken = {8, PEN_MODE_KEEP, 8, 60000, all_broken, NULL};
    PenLoaderSettings s = expected_settings();
    LoadPass pass = {.sums = expected, .n = N};
    TEST_START(argc, argv);
    snprintf(dir, sizeof dir, "%s", scratch("p.pen"));
    snprintf(broken_dir, sizeof broken_dir, "%s", scratch("broken.pen"));
    load_pack_write(dir, &spec);
    load_pack_write(broken_dir, &broken);
    PenPack *pack = load_pack_open(dir);
    MUST(load_run(pack, &s, NULL, &pass) == PEN_END && !pass.errors);
    pen_pack_close(&pack);
    RUN(many_lives_leave_nothing);
    RUN(memory_is_flat_over_epochs);
    RUN(forks_while_threads_are_busy);
    return TEST_END();
}
