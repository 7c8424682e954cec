/* SPDX-License-Identifier: Apache-2.0 */
/* Storage that does not answer, and shards that change while they are being loaded. A batch comes,
 * or an error does in time; a loader with a thread that hangs can be closed, and nothing happens
 * when the thread comes back. */
#include <fcntl.h>
#include <inttypes.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/attr.h"
#include "base/rng.h"
#include "base/sys.h"
#include "lib/fault_sys.h"
#include "lib/load_pack.h"
#include "lib/sweep.h"
#include "lib/tree.h"
#include "unit/test.h"

/* A wait that is not cut short lasts until the gate opens, so a slow machine gets LATE_S more. */
enum { N = 48, STALL_MS = 400, LATE_S = 10, CHILD_SECONDS = 120 };

static char dir[300], bad_dir[300];
static Tree whole; /* the pack's files */

/* ---- storage that does not answer ------------------------------------------------------------ */

typedef enum HangKind { HANG_OPEN, HANG_STAT, HANG_READ, HANG_FUSE } HangKind;

typedef struct Hang {
    const char *name;
    HangKind kind;
    uint32_t at; /* the call that does not come back, and all after it; 0: in the substitute */
} Hang;

static const Hang hangs[] = {
    {"opening the first shard", HANG_OPEN, 1}, {"opening the second", HANG_OPEN, 2},
    {"asking for the size", HANG_STAT, 1},     {"reading the tail", HANG_READ, 1},
    {"reading an index", HANG_READ, 3},        {"reading a payload", HANG_READ, 9},
    {"in the middle", HANG_READ, 40},          {"reading a substitute", HANG_READ, 0},
    {"FUSE without a server", HANG_FUSE, 0},
};

static struct {
    PenSys below;
    HangKind kind;
    uint32_t at;
    atomic_uint calls, frees;
    atomic_bool gate; /* open: all may pass */
} hang;

static void pass_gate(HangKind kind)
{
    if (kind != hang.kind || atomic_fetch_add(&hang.calls, 1) + 1 < hang.at)
        return;
    while (!atomic_load(&hang.gate))
        usleep(1000);
}

static int hang_open(const char *path, int how)
{
    pass_gate(HANG_OPEN);
    return hang.below.open(path, how);
}

static int hang_stat(int fd, PenFileStat *ret)
{
    pass_gate(HANG_STAT);
    return hang.below.stat_fd(fd, ret);
}

static int64_t hang_pread(int fd, void *buf, size_t bytes, uint64_t offset)
{
    pass_gate(HANG_READ);
    return hang.below.pread(fd, buf, bytes, offset);
}

/* The last thing a thread does that was left behind; whoever has seen the count is behind it. */
static void hang_release(void *p)
{
    hang.below.release(p);
    atomic_fetch_add(&hang.frees, 1);
}

static void arm(HangKind kind, uint32_t at)
{
    hang.kind = kind;
    hang.at = at;
    atomic_store(&hang.calls, 0);
    atomic_store(&hang.gate, false);
}

static void put_gate(void)
{
    static PenSys sys;
    hang.below = sys = *pen__sys;
    sys.open = hang_open;
    sys.stat_fd = hang_stat;
    sys.pread = hang_pread;
    sys.release = hang_release;
    pen__sys = &sys;
    arm(HANG_READ, UINT32_MAX);
}

/* The first shard's path becomes something that never answers; -1 when that cannot be had. */
static int make_mute(void)
{
    char path[400];
    const TreeItem *shard = NULL;
    for (size_t i = 0; i < whole.n && !shard; i++)
        if (strstr(whole.items[i].path, ".shard"))
            shard = &whole.items[i];
    snprintf(path, sizeof path, "%s/%s", dir, shard->path);
    char options[80], at[300], target[320];
    snprintf(at, sizeof at, "%s", scratch("fuse"));
    snprintf(target, sizeof target, "%s/shard", at);
    int fd = open("/dev/fuse", O_RDWR | O_CLOEXEC);
    snprintf(options, sizeof options, "fd=%d,rootmode=40000,user_id=0,group_id=0", fd);
    if (fd < 0 || unshare(CLONE_NEWNS) < 0 || mkdir(at, 0700) < 0 ||
        mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0 ||
        mount("mute", at, "fuse.mute", MS_NOSUID | MS_NODEV, options) < 0)
        return -1;
    return unlink(path) == 0 && symlink(target, path) == 0 ? fd : -1;
}

static void unmute(int fd)
{
    if (fd >= 0)
        close(fd);
    atomic_store(&hang.gate, true);
}

/* How many reads a pass makes that looks for no substitute. */
static uint32_t count_reads(PenLoaderSettings s)
{
    PenPack *pack = NULL;
    PenLoader *l = NULL;
    LoadPass pass = {.n = 2};
    MUST(pen_pack_open(bad_dir, NULL, &pack, NULL) == PEN_OK);
    s.on_bad = PEN_BAD_RAISE;
    MUST(pen_loader_open(pack, &s, &l, NULL) == PEN_OK);
    arm(HANG_READ, UINT32_MAX);
    MUST(load_take(l, &s, 0, 2, false, &pass) == PEN_END && pass.errors == 1);
    pen_loader_close(&l);
    pen_pack_close(&pack);
    return atomic_load(&hang.calls);
}

#define EXPECT(cond)                                                                               \
    do {                                                                                           \
        if (!(cond)) {                                                                             \
            printf("  %s: not true: %s (%s)\n", h->name, #cond, e.message);                        \
            failed = 1;                                                                            \
        }                                                                                          \
    } while (0)

static int stall(const Hang *h, PenLoader **l, unsigned threads)
{
    PenError e = {0};
    PenBatch *held = NULL, *b = NULL;
    int failed = 0, r = PEN_OK;
    double began = load_seconds();
    for (int i = 0; r == PEN_OK && i < N; i++) {
        began = load_seconds();
        r = pen_loader_next(*l, -1, &b, &e);
        if (!held)
            held = b;
        else
            pen_batch_unref(&b);
        b = NULL;
    }
    EXPECT(r == PEN_E_TIMEOUT);
    EXPECT(load_seconds() - began < STALL_MS / 1e3 + LATE_S);
    EXPECT(strstr(e.message, "no batch for") && strstr(e.message, "sample ") && e.sample >= 0);
    began = load_seconds();
    EXPECT(pen_loader_next(*l, 50, &b, &e) == PEN_E_TIMEOUT);
    EXPECT(load_seconds() - began < LATE_S);
    began = load_seconds();
    EXPECT(pen_loader_begin(*l, &e) == PEN_E_TIMEOUT);
    EXPECT(load_seconds() - began < STALL_MS / 1e3 + LATE_S);
    /* Waits are cut short by the caller also when a pass has to begin: the best of a few. */
    double best = LATE_S;
    for (int i = 0; i < 8 && best >= STALL_MS / 2e3; i++) {
        began = load_seconds();
        EXPECT(pen_loader_next(*l, 50, &b, &e) == PEN_E_TIMEOUT);
        best = PEN_MIN(best, load_seconds() - began);
    }
    EXPECT(best < STALL_MS / 2e3);
    began = load_seconds();
    pen_loader_close(l);
    EXPECT(load_seconds() - began < LATE_S);
    EXPECT(load_held().threads > threads); /* one still hangs */
    if (held)
        EXPECT(load_batch_sum(held, 0) != 0);
    pen_batch_unref(&held);
    return failed;
}

static int run_hang(void *ctx)
{
    static const FaultPlan none = {0};
    const Hang *h = ctx;
    PenError e = {0};
    PenPack *pack = NULL;
    PenLoader *l = NULL;
    int fd = -1, failed = 0;
    bool swap = h->kind == HANG_READ && !h->at;
    PenLoaderSettings s = load_settings(4);
    unsigned threads = load_held().threads;
    if (h->kind == HANG_FUSE && (fd = make_mute()) < 0)
        return 77;
    fault_begin(&none);
    put_gate();
    s.threads = 3;
    s.io_threads = 2;
    s.stall_ms = STALL_MS;
    if (swap) { /* two samples, the first of them broken */
        s.order = PEN_ORDER_SEQUENTIAL;
        s.count = s.batch_size = 2;
        s.io_threads = 1;
        s.on_bad = PEN_BAD_SUBSTITUTE;
    }
    uint32_t at = swap ? count_reads(s) + 1 : h->at;
    MUST(pen_pack_open(swap ? bad_dir : dir, NULL, &pack, NULL) == PEN_OK);
    MUST(pen_loader_open(pack, &s, &l, NULL) == PEN_OK);
    arm(h->kind, at);
    failed |= stall(h, &l, threads);
    pen_pack_close(&pack);
    unmute(fd);
    EXPECT(load_threads_gone(threads, 30));
    EXPECT(atomic_load(&hang.frees) > 0);
    FaultSeen seen = fault_end();
    EXPECT(seen.memory == 0);
    EXPECT(seen.files == 0);
    return failed;
}

/* Together: most of the time is spent waiting. Those that need files of their own come last. */
TEST(storage_that_never_answers)
{
    Sweep sweep = sweep_begin("storage that never answers");
    pid_t children[PEN_LEN(hangs)];
    uint64_t skipped = 0;
    for (size_t i = 0; i < PEN_LEN(hangs); i++) {
        bool own = hangs[i].kind == HANG_FUSE;
        for (size_t k = 0; own && hangs[i - 1].kind < HANG_FUSE && k < i; k++)
            children[k] = load_child_end(children[k]);
        if (own) {
            dir_remove(dir);
            tree_store(&whole, dir);
        }
        children[i] = load_child_start(run_hang, (void *)(uintptr_t)&hangs[i], CHILD_SECONDS);
        if (own)
            children[i] = load_child_end(children[i]);
    }
    for (size_t i = 0; i < PEN_LEN(hangs); i++, sweep.n++) {
        skipped += children[i] == 77;
        if (children[i] && children[i] != 77)
            sweep_bad(&sweep, "%s: ended with %d", hangs[i].name, children[i]);
    }
    dir_remove(dir);
    tree_store(&whole, dir);
    sweep_end(&sweep,
              "%" PRIu64 " places (%" PRIu64 " cannot be had here): an error after stall_ms, "
              "closed within %d s",
              sweep.n, skipped, LATE_S);
    CHECK_INT(sweep.bad, 0);
}

/* ---- shards that change ---------------------------------------------------------------------- */

enum { CUT_ALL, CUT_HALF, CUT_LAST, GROW, ZEROS, OTHER, EMPTY, FOLDER, GONE, ALL_GONE, CHANGES };
static const char *const change_names[CHANGES] = {
    "cut to nothing",  "cut to half", "cut by a byte", "grown",   "overwritten",
    "of another pack", "empty",       "a folder",      "deleted", "all deleted"};

static void change_file(int kind, const TreeItem *item, const TreeItem *other)
{
    static const char zeros[4096];
    char path[700], part[720];
    off_t bytes = (off_t)item->bytes;
    snprintf(path, sizeof path, "%s/%s", dir, item->path);
    snprintf(part, sizeof part, "%s.part", path);
    int fd = kind >= GROW && kind <= ZEROS ? open(path, O_RDWR) : -1;
    if (kind <= CUT_LAST)
        MUST(truncate(path, kind == CUT_ALL ? 0 : kind == CUT_HALF ? bytes / 2 : bytes - 1) == 0);
    else if (kind == GROW)
        MUST(pwrite(fd, part, 100, bytes) == 100);
    else if (kind == ZEROS)
        MUST(pwrite(fd, zeros, PEN_MIN(sizeof zeros, item->bytes / 2), bytes / 3) > 0);
    else if (kind == GONE || kind == FOLDER)
        MUST(unlink(path) == 0 && (kind == GONE || mkdir(path, 0700) == 0));
    else {
        file_store(part, other->data, kind == OTHER ? other->bytes : 0);
        MUST(rename(part, path) == 0);
    }
    if (fd >= 0)
        close(fd);
}

static void change(int kind, PenRng *rng)
{
    if (kind == ALL_GONE) {
        dir_remove(dir);
        return;
    }
    const TreeItem *last = NULL;
    for (size_t i = 0; i < whole.n; i++) {
        const TreeItem *item = &whole.items[i];
        if (!strstr(item->path, ".shard"))
            continue;
        if (pen__rng_below(rng, 2))
            change_file(kind, item, last ? last : &whole.items[whole.n - 1]);
        last = item;
    }
}

static bool is_typed(const PenError *e)
{
    return e->message[0] && e->where[0] && e->sample >= 0 &&
           (e->status == PEN_E_CORRUPT || e->status == PEN_E_IO || e->status == PEN_E_NOT_FOUND ||
            e->status == PEN_E_INVALID);
}

/* What came has to be right, or to be named as replaced. */
static void check_sums(Sweep *sweep, const PenLoader *l, const PenLoaderSettings *s,
                       const uint64_t *sums, const uint64_t *expected, const char *what)
{
    uint64_t differ = 0, listed = 0;
    PenBadSample bad;
    for (uint32_t p = 0; p < N; p++)
        differ += sums[p] && sums[p] != expected[p];
    while (pen_loader_bad_sample(l, listed, &bad) == PEN_OK)
        listed++;
    if (differ > listed || (listed && s->on_bad == PEN_BAD_RAISE))
        sweep_bad(sweep, "%s: %" PRIu64 " samples are wrong, %" PRIu64 " on the list", what, differ,
                  listed);
}

static void one_change(Sweep *sweep, PenRng *rng, int kind, const uint64_t *expected,
                       uint64_t *errors)
{
    uint64_t sums[N] = {0};
    PenLoader *l = NULL;
    PenLoaderSettings s = load_settings(4);
    LoadPass pass = {.sums = sums, .n = N};
    tree_store(&whole, dir);
    PenPack *pack = load_pack_open(dir);
    s.prefetch = 1;
    s.on_bad = pen__rng_below(rng, 2) ? PEN_BAD_RAISE : PEN_BAD_SUBSTITUTE;
    s.max_bad = UINT64_MAX;
    MUST(pen_loader_open(pack, &s, &l, NULL) == PEN_OK);
    uint64_t before = pen__rng_below(rng, N / s.batch_size);
    MUST(load_take(l, &s, 0, before, true, &pass) == PEN_OK);
    change(kind, rng);
    for (uint64_t g = before; g < N / s.batch_size; g++) {
        pass.errors = 0;
        int r = load_take(l, &s, g * s.batch_size, 1, true, &pass);
        *errors += r < 0;
        if (r < 0 && !is_typed(&pass.error))
            sweep_bad(sweep, "%s: status %d: %s", change_names[kind], r, pass.error.message);
    }
    check_sums(sweep, l, &s, sums, expected, change_names[kind]);
    pen_loader_close(&l);
    pen_pack_close(&pack);
    dir_remove(dir);
}

TEST(shards_that_change_while_loading)
{
    uint64_t expected[N] = {0}, errors = 0;
    PenRng rng = pen__rng_init(21, 21);
    PenLoaderSettings s = load_settings(4);
    LoadPass pass = {.sums = expected, .n = N};
    Sweep sweep = sweep_begin("shards that change");
    PenPack *pack = load_pack_open(dir);
    MUST(load_run(pack, &s, NULL, &pass) == PEN_END && !pass.errors);
    pen_pack_close(&pack);
    dir_remove(dir);
    for (uint64_t i = 0; i < scaled(2000, 200); i++, sweep.n++)
        one_change(&sweep, &rng, (int)(i % CHANGES), expected, &errors);
    sweep_end(&sweep,
              "%" PRIu64 " times in %d ways, %" PRIu64 " typed errors, all else right or on the "
              "list",
              sweep.n, CHANGES, errors);
    if (errors < sweep.n)
        sweep_bad(&sweep, "hardly any error");
    CHECK_INT(sweep.bad, 0);
}

static void broken_first(void *ctx, uint32_t i, LoadImage *image)
{
    load_mixed_image(ctx, i, image);
    if (i == 0)
        load_break_jpeg(&image->file);
}

int main(int argc, char **argv)
{
    LoadSpec spec = {N, PEN_MODE_MIX, 4, 40000, load_mixed_image, NULL};
    LoadSpec bad = {4, PEN_MODE_KEEP, 4, 40000, broken_first, NULL};
    TEST_START(argc, argv);
    snprintf(dir, sizeof dir, "%s", scratch("p.pen"));
    snprintf(bad_dir, sizeof bad_dir, "%s", scratch("bad.pen"));
    load_pack_write(dir, &spec);
    load_pack_write(bad_dir, &bad);
    tree_load(dir, &whole);
    RUN(storage_that_never_answers);
    RUN(shards_that_change_while_loading);
    tree_free(&whole);
    return TEST_END();
}
