/* SPDX-License-Identifier: Apache-2.0 */
/* A cache in trouble. Every call of the system interface made to fail, one after another: readers
 * get the right bytes all the same. Processes that share a cache killed at random moments: the next
 * ones start and read, nothing is left that has to be cleaned up, and what is damaged is not given
 * out. */
#include <ftw.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <penstock/cache.h>

#include "base/rng.h"
#include "base/sys.h"
#include "cache/cache_impl.h"
#include "lib/fault_sys.h"
#include "lib/load_pack.h"
#include "lib/make_pack.h"
#include "lib/probe.h"
#include "lib/sweep.h"
#include "unit/test.h"

enum { PACKS = 2, WAIT_MS = 30 };

static Tree trees[PACKS]; /* packs in memory: all calls of the system interface are the cache's */
static ProbeList probes[PACKS];
static uint64_t total_bytes;

static PenPack *open_pack(int which)
{
    PenPack *pack = NULL;
    PenError e = {0};
    int r = tree_open_pack(&trees[which], &pack, &e);
    return r == PEN_OK ? pack : NULL;
}

static int add_cache(PenPack *pack, const char *dir, uint64_t bytes, uint32_t wait_ms, PenError *e)
{
    PenCacheSettings s;
    pen_cache_settings_init(&s);
    s.directory = dir;
    s.bytes = bytes;
    s.wait_ms = wait_ms;
    return pen_pack_cache(pack, &s, e);
}

/* How many answers are wrong or missing, but for those that fail for want of memory twice. */
static unsigned read_all(PenPack *pack, int which, uint64_t first, uint64_t step, PenError *ret)
{
    Answer a = {0};
    unsigned wrong = 0;
    for (size_t i = first; i < probes[which].n; i += step) {
        bool right = false;
        PenError e = {0};
        int r = probe_check(pack, &probes[which].probes[i], &a, &right, &e);
        if (r == PEN_E_NO_MEMORY)
            r = probe_check(pack, &probes[which].probes[i], &a, &right, &e);
        if (r == PEN_OK ? !right : r != PEN_E_NO_MEMORY) {
            wrong++;
            *ret = e;
        }
    }
    answer_free(&a);
    return wrong;
}

/* ---- what is in the directory ---------------------------------------------------------------- */

/* Of a directory that others change meanwhile. */
static struct {
    void (*each)(const char *path, void *ctx);
    void *ctx;
} walk;

static int see_file(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
    (void)st, (void)ftw;
    if (type == FTW_F)
        walk.each(path, walk.ctx);
    return 0;
}

static void for_files(const char *dir, void (*each)(const char *path, void *ctx), void *ctx)
{
    walk.each = each;
    walk.ctx = ctx;
    (void)nftw(dir, see_file, 16, FTW_PHYS);
}

typedef struct Found {
    uint64_t bytes;
    unsigned temps, entries;
} Found;

static void count_file(const char *path, void *ctx)
{
    Found *found = ctx;
    PenFileStat st;
    found->temps += strstr(path, "/new-") != NULL;
    if ((strstr(path, ".block") || strstr(path, ".tail")) &&
        pen__sys_real.stat_path(path, &st) == 0) {
        found->entries++;
        found->bytes += st.bytes;
    }
}

static void damage_file(const char *path, void *ctx)
{
    PenRng *rng = ctx;
    if ((!strstr(path, ".block") && !strstr(path, ".tail")) || pen__rng_below(rng, 3))
        return;
    FILE *f = fopen(path, "r+b");
    if (!f)
        return; /* gone meanwhile */
    fseek(f, 0, SEEK_END);
    long bytes = ftell(f), at = (long)pen__rng_below(rng, (uint64_t)(bytes ? bytes : 1));
    fseek(f, at, SEEK_SET);
    int byte = fgetc(f);
    fseek(f, at, SEEK_SET);
    fputc(byte ^ (1 << pen__rng_below(rng, 8)), f);
    fclose(f);
}

/* Alone with it: the accounting are what is there, and nothing unfinished is left. */
static void check_at_rest(Sweep *s, const char *dir, const char *when)
{
    PenError e = {0};
    PenCacheTotal total;
    Found found = {0};
    PenPack *pack = open_pack(0);
    MUST(pack);
    if (add_cache(pack, dir, 0, 1000, &e) < 0) {
        sweep_bad(s, "%s: cannot be opened: %s", when, e.message);
        pen_pack_close(&pack);
        return;
    }
    pen_pack_close(&pack);
    if (pen_cache_inspect(dir, NULL, NULL, &total, &e) < 0)
        sweep_bad(s, "%s: cannot be looked at: %s", when, e.message);
    for_files(dir, count_file, &found);
    PenCache *c = NULL;
    PenAccounting b = {0};
    MUST(pen__cache_open_dir(dir, false, 1000, &c, &e) == PEN_OK);
    if (pen__accounting_begin(c, 0, &b) == 0)
        pen__accounting_end(c, NULL);
    else
        sweep_bad(s, "%s: the accounting are locked or wrong", when);
    pen__cache_close(&c);
    if (found.temps || b.used != found.bytes || total.bytes != found.bytes || b.pending)
        sweep_bad(s,
                  "%s: %u unfinished, %" PRIu64 " bytes in the accounting, %" PRIu64
                  " pending, %" PRIu64 " there",
                  when, found.temps, b.used, b.pending, found.bytes);
}

/* ---- every call fails once ------------------------------------------------------------------- */

typedef enum Start { START_NONE, START_WARM, START_DAMAGED, START_FULL, STARTS } Start;

static const char *const start_names[] = {"no cache yet", "a warm one", "a damaged one",
                                          "one full of another pack"};

static void prepare(const char *dir, Start start)
{
    PenRng rng = pen__rng_init(1, 2);
    PenError e = {0};
    dir_remove(dir);
    if (start == START_NONE)
        return;
    PenPack *pack = open_pack(start == START_FULL);
    MUST(pack && add_cache(pack, dir, 0, 1000, &e) == PEN_OK);
    MUST(read_all(pack, start == START_FULL, 0, 1, &e) == 0);
    pen_pack_close(&pack);
    if (start == START_DAMAGED)
        for_files(dir, damage_file, &rng);
}

static FaultSeen run_once(Sweep *s, const char *dir, Start start, const FaultPlan *plan)
{
    PenError e = {0};
    unsigned wrong = 0;
    fault_begin(plan);
    PenPack *pack = open_pack(0);
    int r = pack ? add_cache(pack, dir, start == START_FULL ? total_bytes : 0, WAIT_MS, &e) : 0;
    if (pack) /* it is read in any case, with the cache or without */
        wrong = read_all(pack, 0, 0, 1, &e);
    pen_pack_close(&pack);
    FaultSeen seen = fault_end();
    if (r < 0 && (e.status != r || !e.message[0]) && !wrong)
        sweep_bad(s, "fault at %" PRIu64 ": returned %d, error %d", plan->at, r, e.status);
    if (wrong)
        sweep_bad(s, "%s: fault at %" PRIu64 "%s (%s): %u answers wrong: %s", start_names[start],
                  plan->at, plan->for_ever ? " and after" : "", fault_name(seen.first), wrong,
                  e.message);
    if (seen.memory || seen.files)
        sweep_bad(s, "fault at %" PRIu64 ": %d pieces of memory, %d files left", plan->at,
                  (int)seen.memory, (int)seen.files);
    return seen;
}

TEST(faults)
{
    Sweep s = sweep_begin("cache, faults");
    const char *dir = scratch("faults");
    uint64_t points = 0;
    for (Start start = 0; start < STARTS; start++) {
        prepare(dir, start);
        uint64_t calls = run_once(&s, dir, start, &(FaultPlan){0}).calls;
        for (int how = 0; how < 4; how++) {
            uint64_t step = scaled(1, how ? 41 : 11);
            for (uint64_t at = 1 + (uint64_t)how * 3; at <= calls; at += step, points++) {
                FaultPlan plan = {.at = at, .for_ever = how & 1, .other = how >> 1};
                char when[80];
                prepare(dir, start);
                run_once(&s, dir, start, &plan);
                snprintf(when, sizeof when, "after a fault at %" PRIu64, at);
                check_at_rest(&s, dir, when);
                PenError e = {0};
                PenPack *pack = open_pack(0);
                if (add_cache(pack, dir, 0, 1000, &e) < 0 || read_all(pack, 0, 0, 1, &e))
                    sweep_bad(&s, "%s: %s", when, e.message);
                pen_pack_close(&pack);
            }
        }
    }
    sweep_end(&s, "%" PRIu64 " calls made to fail", points);
    CHECK_INT(s.bad, 0);
}

/* ---- kill -9 --------------------------------------------------------------------------------- */

static PenRng slow_rng;

/* Calls take a while now and then, so that kills fall between any two of them. */
static void maybe_sleep(void)
{
    struct timespec t = {0, (long)pen__rng_below(&slow_rng, 400000)};
    if (pen__rng_below(&slow_rng, 4) == 0)
        nanosleep(&t, NULL);
}

static int slow_open(const char *path, int how)
{
    maybe_sleep();
    return pen__sys_real.open(path, how);
}

static int64_t slow_pwritev(int fd, const struct iovec *iov, int n, uint64_t offset)
{
    struct iovec half = {iov->iov_base, (iov->iov_len + 1) / 2};
    maybe_sleep();
    return pen__sys_real.pwritev(fd, n == 1 && iov->iov_len != 64 ? &half : iov, n, offset);
}

static int slow_rename(int from_dir, const char *from, int to_dir, const char *to)
{
    maybe_sleep();
    int r = pen__sys_real.rename(from_dir, from, to_dir, to);
    maybe_sleep();
    return r;
}

static int slow_unlink(int dir, const char *name)
{
    maybe_sleep();
    return pen__sys_real.unlink(dir, name);
}

static int slow_lock_byte(int fd, int how, uint64_t offset)
{
    int r = pen__sys_real.lock_byte(fd, how, offset);
    maybe_sleep();
    return r;
}

typedef struct Reader {
    const char *dir;
    int which, told; /* where it tells of its first answers, and of what goes wrong */
    uint64_t bytes, seed;
} Reader;

/* Reads until it is killed; what goes wrong ends it. */
static int read_for_ever(void *ctx)
{
    static PenSys sys;
    Reader *r = ctx;
    PenError e = {0};
    slow_rng = pen__rng_init(r->seed, 7);
    sys = pen__sys_real;
    sys.open = slow_open;
    sys.pwritev = slow_pwritev;
    sys.rename = slow_rename;
    sys.unlink = slow_unlink;
    sys.lock_byte = slow_lock_byte;
    pen__sys = &sys;
    for (int i = 0;; i++) {
        PenPack *pack = open_pack(r->which);
        if (!pack || add_cache(pack, r->dir, r->bytes, 10000, &e) < 0 ||
            read_all(pack, r->which, pen__rng_below(&slow_rng, 5), 5, &e)) {
            dprintf(r->told, "%s\n", e.message);
            return 1;
        }
        pen_pack_close(&pack);
        if (i == 0)
            dprintf(r->told, "+");
    }
}

enum { READERS = 4 };

static void kill_readers(Sweep *s, const char *dir, uint64_t kills, uint64_t bytes)
{
    PenRng rng = pen__rng_init(3, 4);
    pid_t children[READERS];
    int told[2];
    uint64_t began = 0;
    MUST(pipe(told) == 0);
    Reader reader = {.dir = dir, .told = told[1], .bytes = bytes};
    for (int i = 0; i < READERS; i++, began++) {
        reader.which = i % PACKS;
        reader.seed = began;
        children[i] = load_child_start(read_for_ever, &reader, 600);
    }
    for (uint64_t k = 0; k < kills; k++) {
        struct timespec t = {0, (long)pen__rng_below(&rng, 40000000)};
        int i = (int)pen__rng_below(&rng, READERS), status = 0;
        nanosleep(&t, NULL);
        if (k % 5 == 4)
            for_files(dir, damage_file, &rng);
        kill(children[i], SIGKILL);
        MUST(waitpid(children[i], &status, 0) == children[i]);
        if (!WIFSIGNALED(status))
            sweep_bad(s, "reader ended by itself before kill %" PRIu64, k);
        reader.which = (int)pen__rng_below(&rng, PACKS);
        reader.seed = began++;
        children[i] = load_child_start(read_for_ever, &reader, 600);
    }
    /* Those that are left come to an end of their reading, one at least. */
    struct timespec rest = {0, 300000000};
    struct pollfd answers = {.fd = told[0], .events = POLLIN};
    nanosleep(&rest, NULL);
    poll(&answers, 1, 60000);
    for (int i = 0; i < READERS; i++) {
        kill(children[i], SIGKILL);
        MUST(waitpid(children[i], NULL, 0) == children[i]);
    }
    close(told[1]);
    char text[4000];
    ssize_t n = read(told[0], text, sizeof text - 1);
    close(told[0]);
    text[n > 0 ? n : 0] = 0;
    size_t first = strspn(text, "+");
    if (text[first])
        sweep_bad(s, "a reader was told: %s", text + first);
    if (first == 0)
        sweep_bad(s, "no reader came to its first answers");
    s->n += first;
}

/* Nobody holds anything any more: every entry can be claimed at once. */
static void check_locks(Sweep *s, const char *dir)
{
    PenError e = {0};
    for (int which = 0; which < PACKS; which++) {
        PenPack *pack = open_pack(which);
        MUST(pack);
        PenCacheSettings set;
        PenCache *c = NULL;
        pen_cache_settings_init(&set);
        set.directory = dir;
        MUST(pen__cache_open(&set, pen_pack_info(pack)->id, "here", &c, &e) == PEN_OK);
        for (uint64_t b = 0; b < pen_pack_info(pack)->n_blocks; b++)
            if (pen__cache_claim(c, (PenCacheKey){PEN_CACHE_BLOCK, b}) != 1)
                sweep_bad(s, "the lock of block %" PRIu64 " is still held", b);
        pen__cache_close(&c);
        pen_pack_close(&pack);
    }
}

TEST(kills)
{
    Sweep s = sweep_begin("cache, kill -9");
    uint64_t kills = scaled(250, 10);
    const char *dirs[] = {scratch("kills-wide"), scratch("kills-narrow")};
    /* With room for all, and with so little that packs push each other out. */
    for (int i = 0; i < 2; i++) {
        kill_readers(&s, dirs[i], kills, i ? total_bytes * 2 / 3 : 0);
        check_at_rest(&s, dirs[i], "after the last kill");
        check_locks(&s, dirs[i]);
    }
    sweep_end(&s, "%" PRIu64 " kills of %d readers, %" PRIu64 " readers came to their answers",
              kills * 2, (int)READERS, s.n);
    CHECK_INT(s.bad, 0);
}

/* ---------------------------------------------------------------------------------------------- */

static void make_packs(void)
{
    for (uint32_t i = 0; i < PACKS; i++) {
        const char *dir = scratch("pack-%u", i);
        make_mixed(dir, &(MixSpec){12 + 4 * i, 5 + i, 5, 2, 12000, 0});
        tree_load(dir, &trees[i]);
        PenPack *pack = open_pack((int)i);
        MUST(pack);
        probes_make(pack, &probes[i]);
        total_bytes += pen_pack_info(pack)->total_bytes;
        pen_pack_close(&pack);
    }
}

int main(int argc, char **argv)
{
    TEST_START(argc, argv);
    make_packs();
    RUN(faults);
    RUN(kills);
    for (int i = 0; i < PACKS; i++) {
        probes_free(&probes[i]);
        tree_free(&trees[i]);
    }
    return TEST_END();
}
