/* SPDX-License-Identifier: Apache-2.0 */
/* Power lost while packing: the writes of a run are recorded, and from them what a disk may hold
 * after a crash at any point is built. There is the old pack, or the new one, or none, whole; the
 * same command run again gives what an uninterrupted run gives; gc leaves only what is named. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/sys.h"
#include "lib/crash_fs.h"
#include "lib/images.h"
#include "lib/make_pack.h"
#include "lib/sweep.h"
#include "pack/reader/reader.h"
#include "unit/test.h"

static char top[256];    /* all that is written is below it */
static char out[300];    /* the pack */
static char photos[256]; /* what is packed */
static char broken[256]; /* the same with two broken files */
static char old_out[256];

typedef struct Scenario {
    const char *name;
    void (*prepare)(void); /* what is there before */
    int (*run)(PenError *reterr);
    bool publishes;
} Scenario;

typedef struct Recorded {
    const Scenario *s;
    Tree before, after;
    Tree old_clean, new_clean; /* before and after, but for what gc removes */
    Log log;
    bool has_old;
    uint8_t old_id[16], new_id[16];
    size_t renamed, published; /* operations: the manifest gets its name; that is sure */
} Recorded;

/* ---- scenarios ------------------------------------------------------------------------------- */

static int ingest(const char *source, int append, uint32_t task, uint32_t n_tasks, int skip_bad,
                  PenError *reterr)
{
    PenIngestResult result;
    PenIngestSettings s = small_settings(&source, out);
    s.append = append;
    s.task = task;
    s.n_tasks = n_tasks;
    s.skip_bad = skip_bad;
    return pen_ingest_run(&s, &result, reterr);
}

static void must_ingest(const char *source, uint32_t task, uint32_t n_tasks)
{
    PenError e = {0};
    if (ingest(source, 0, task, n_tasks, 0, &e) < 0)
        must_failed(source, 0, e.message);
}

static void prepare_nothing(void)
{
}

static int run_fresh(PenError *reterr)
{
    return ingest(photos, 0, 0, 0, 0, reterr);
}

static int run_broken(PenError *reterr)
{
    return ingest(broken, 0, 0, 0, 1, reterr);
}

/* Its last block is short: it is written anew when samples are added. */
static void prepare_append(void)
{
    must_ingest(old_out, 0, 0);
}

static int run_append(PenError *reterr)
{
    return ingest(photos, 1, 0, 0, 0, reterr);
}

static int run_task(PenError *reterr)
{
    return ingest(photos, 0, 1, 3, 0, reterr);
}

static void prepare_finalise(void)
{
    for (uint32_t i = 0; i < 3; i++)
        must_ingest(photos, i, 3);
}

static int run_finalise(PenError *reterr)
{
    PenIngestResult result;
    PenIngestSettings settings;
    pen_ingest_settings_init(&settings);
    settings.out = out;
    return pen_ingest_finalise(&settings, &result, reterr);
}

/* A pack that was added to twice, and an interrupted run beside it. */
static void prepare_gc(void)
{
    PenError e = {0};
    must_ingest(old_out, 0, 0);
    MUST(run_append(&e) == PEN_OK);
    Tree t = {0};
    char shard[64];
    snprintf(shard, sizeof shard, "00/%032d.shard", 7);
    tree_add(&t, "00", NULL, 0);
    tree_add(&t, shard, "left over", 9);
    tree_add(&t, ".work", NULL, 0);
    tree_add(&t, ".work/plan.part", "half a plan", 11);
    tree_add(&t, ".work/run", NULL, 0);
    tree_add(&t, ".work/run/shard.part", "half a shard", 12);
    tree_store(&t, out);
    tree_free(&t);
}

static int run_gc(PenError *reterr)
{
    PenGcResult result;
    return pen_ingest_gc(out, NULL, NULL, 0, &result, reterr);
}

static int run_writer(PenError *reterr)
{
    static const MixSpec spec = {7, 5, 5, 2, 20000, 0};
    return try_mixed(out, &spec, reterr);
}

static const Scenario scenarios[] = {
    {"fresh pack", prepare_nothing, run_fresh, true},
    {"fresh pack, broken inputs left out", prepare_nothing, run_broken, true},
    {"append", prepare_append, run_append, true},
    {"task 1 of 3", prepare_nothing, run_task, false},
    {"finalise of 3 tasks", prepare_finalise, run_finalise, true},
    {"gc", prepare_gc, run_gc, false},
    {"writer", prepare_nothing, run_writer, true},
};

/* ---- recording ------------------------------------------------------------------------------- */

static void clear_top(void)
{
    Tree none = {0};
    dir_remove(top);
    tree_store(&none, top);
}

static bool load_id(uint8_t id[16])
{
    PenPack *pack = NULL;
    if (pen_pack_open(out, NULL, &pack, NULL) < 0)
        return false;
    memcpy(id, pen_pack_info(pack)->id, 16);
    pen_pack_close(&pack);
    return true;
}

static void find_published(Recorded *r)
{
    char manifest[400];
    snprintf(manifest, sizeof manifest, "%s/manifest", out);
    r->renamed = r->published = SIZE_MAX;
    for (size_t i = 0; i < r->log.n; i++) {
        const LogOp *op = &r->log.ops[i];
        if (op->kind == LOG_RENAME && strcmp(op->to, manifest) == 0)
            r->renamed = i;
        if (op->kind == LOG_SYNC_DIR && strcmp(op->path, out) == 0 && r->renamed < i &&
            r->published == SIZE_MAX)
            r->published = i;
    }
    MUST(!r->s->publishes || r->published != SIZE_MAX);
}

/* What is left of it when gc has been there. The report of broken inputs is not gc's. */
static void clean(const Tree *t, Tree *ret)
{
    PenGcResult gc;
    clear_top();
    tree_store(t, top);
    if (access(out, F_OK) == 0)
        MUST(pen_ingest_gc(out, NULL, NULL, 1, &gc, NULL) == PEN_OK);
    unlink(scratch("top/p.pen-bad.jsonl"));
    tree_load(top, ret);
}

static void record(const Scenario *s, Recorded *r)
{
    PenError e = {0};
    *r = (Recorded){.s = s};
    clear_top();
    s->prepare();
    tree_load(top, &r->before);
    r->has_old = load_id(r->old_id);
    log_begin();
    int status = s->run(&e);
    log_end(&r->log);
    if (status < 0)
        must_failed(s->name, status, e.message);
    tree_load(top, &r->after);
    if (!load_id(r->new_id))
        memcpy(r->new_id, r->old_id, sizeof r->new_id);
    find_published(r);
    clean(&r->before, &r->old_clean);
    clean(&r->after, &r->new_clean);
}

static void recorded_free(Recorded *r)
{
    tree_free(&r->before);
    tree_free(&r->after);
    tree_free(&r->old_clean);
    tree_free(&r->new_clean);
    log_free(&r->log);
}

/* ---- after the crash ------------------------------------------------------------------------- */

typedef enum Found { FOUND_NONE, FOUND_OLD, FOUND_NEW, FOUND_WRONG } Found;

static Found look(Sweep *s, const Recorded *r, size_t n)
{
    PenPack *pack = NULL;
    PenError e = {0};
    PenVerifySettings settings;
    PenVerifyResult result;
    int status = pen_pack_open(out, NULL, &pack, &e);
    if (status == PEN_E_NOT_FOUND)
        return FOUND_NONE;
    if (status < 0) {
        sweep_bad(s, "%s, crash at %zu: open: %s", r->s->name, n, e.message);
        return FOUND_WRONG;
    }
    const uint8_t *id = pen_pack_info(pack)->id;
    Found found = memcmp(id, r->new_id, 16) == 0                 ? FOUND_NEW
                  : r->has_old && memcmp(id, r->old_id, 16) == 0 ? FOUND_OLD
                                                                 : FOUND_WRONG;
    pen_verify_settings_init(&settings);
    settings.threads = 1;
    if (found == FOUND_WRONG)
        sweep_bad(s, "%s, crash at %zu: neither the old pack nor the new", r->s->name, n);
    else if (pen_pack_verify(pack, &settings, &result, &e) < 0)
        sweep_bad(s, "%s, crash at %zu: verify: %s", r->s->name, n, e.message);
    pen_pack_close(&pack);
    return found;
}

/* n operations were begun. */
static bool is_due(const Recorded *r, size_t n, Found found)
{
    if (!r->s->publishes) /* gc, or a task */
        return found == (r->has_old ? FOUND_NEW : FOUND_NONE);
    if (n > r->published)
        return found == FOUND_NEW;
    if (n <= r->renamed)
        return found == (r->has_old ? FOUND_OLD : FOUND_NONE);
    return found == FOUND_NEW || found == (r->has_old ? FOUND_OLD : FOUND_NONE);
}

/* A part file that is there beside what it became is removed with the work folder. */
static void drop_parts(Tree *t)
{
    size_t kept = 0;
    for (size_t i = 0; i < t->n; i++) {
        TreeItem *item = &t->items[i];
        size_t n = strlen(item->path);
        if (strstr(item->path, "/.work/") && n > 5 && strcmp(item->path + n - 5, ".part") == 0) {
            free(item->path);
            free(item->data);
        } else {
            t->items[kept++] = *item;
        }
    }
    t->n = kept;
}

static void compare(Sweep *s, const Recorded *r, size_t n, const Tree *expected, const char *what)
{
    Tree found;
    char why[300];
    tree_load(top, &found);
    if (r->s->run == run_task)
        drop_parts(&found);
    if (!tree_same(expected, &found, why, sizeof why))
        sweep_bad(s, "%s, crash at %zu: %s: %s", r->s->name, n, what, why);
    tree_free(&found);
}

static void run_again(Sweep *s, const Recorded *r, size_t n, Found found)
{
    PenError e = {0};
    PenGcResult gc;
    int status = r->s->run(&e);
    /* The pack is complete but for its work folder; the command says that it exists. */
    if (status == PEN_E_EXISTS && found == FOUND_NEW)
        status = pen_ingest_gc(out, NULL, NULL, 0, &gc, &e);
    if (r->s->run == run_gc && status == PEN_E_NOT_FOUND)
        status = PEN_OK;
    if (status < 0)
        sweep_bad(s, "%s, crash at %zu: run again: %s", r->s->name, n, e.message);
    else
        compare(s, r, n, &r->after, "run again");
}

static void clean_up(Sweep *s, const Recorded *r, size_t n, Found found)
{
    PenError e = {0};
    PenGcResult gc;
    Tree nothing = {0};
    if (access(out, F_OK) != 0)
        return;
    if (pen_ingest_gc(out, NULL, NULL, 1, &gc, &e) < 0) {
        sweep_bad(s, "%s, crash at %zu: gc: %s", r->s->name, n, e.message);
        return;
    }
    unlink(scratch("top/p.pen-bad.jsonl"));
    unlink(scratch("top/p.pen-bad.jsonl.part"));
    tree_add(&nothing, "p.pen", NULL, 0);
    compare(s, r, n,
            found == FOUND_NEW   ? &r->new_clean
            : found == FOUND_OLD ? &r->old_clean
                                 : &nothing,
            "gc");
    tree_free(&nothing);
}

static void try_state(Sweep *s, const Recorded *r, size_t n, PenRng *rng, uint64_t then)
{
    Tree state;
    crash_state(&r->before, &r->log, n, top, rng, &state);
    clear_top();
    tree_store(&state, top);
    tree_free(&state);
    s->n++;
    Found found = look(s, r, n);
    if (found == FOUND_WRONG)
        return;
    if (!is_due(r, n, found))
        sweep_bad(s, "%s, crash at %zu of %zu: found pack %d, which cannot be", r->s->name, n,
                  r->log.n, found);
    if (then % 4 < 2)
        run_again(s, r, n, found);
    else if (then % 4 == 2)
        clean_up(s, r, n, found);
}

static void sweep_scenario(const Scenario *scenario, uint64_t states)
{
    Recorded r;
    char name[100];
    PenRng rng = pen__rng_init(11, (uint64_t)(scenario - scenarios));
    record(scenario, &r);
    snprintf(name, sizeof name, "crash in %s", scenario->name);
    Sweep s = sweep_begin(name);
    /* The model itself: with nothing lost it ends where the run ended. */
    Tree end;
    char why[300];
    crash_state(&r.before, &r.log, r.log.n, top, NULL, &end);
    if (!tree_same(&end, &r.after, why, sizeof why))
        sweep_bad(&s, "the model of the disk is wrong: %s", why);
    tree_free(&end);
    for (size_t n = 0; n <= r.log.n; n++) /* killed, but no power lost */
        if (scale_is_full() || n % 4 == 1)
            try_state(&s, &r, n, NULL, n);
    for (uint64_t i = 0; i < states; i++)
        try_state(&s, &r, pen__rng_below(&rng, r.log.n + 1), &rng, i);
    sweep_end(&s, "%" PRIu64 " states of a log of %zu operations", s.n, r.log.n);
    recorded_free(&r);
    CHECK_INT(s.bad, 0);
}

#define SCENARIO(name, i)                                                                          \
    TEST(name)                                                                                     \
    {                                                                                              \
        sweep_scenario(&scenarios[i], scaled(20000, 980) / PEN_LEN(scenarios) + 1);                \
    }
SCENARIO(fresh, 0)
SCENARIO(fresh_with_broken, 1)
SCENARIO(append, 2)
SCENARIO(task, 3)
SCENARIO(finalise, 4)
SCENARIO(gc, 5)
SCENARIO(writer, 6)

int main(int argc, char **argv)
{
    snprintf(top, sizeof top, "%s", scratch("top"));
    snprintf(out, sizeof out, "%s/p.pen", top);
    snprintf(photos, sizeof photos, "%s", scratch("photos"));
    snprintf(broken, sizeof broken, "%s", scratch("broken"));
    snprintf(old_out, sizeof old_out, "%s", scratch("some"));
    make_folder(photos, 0, 13);
    make_folder(broken, 0, 13);
    make_folder(old_out, 0, 7);
    file_store(scratch("broken/ash/004.jpg"), "not a picture", 13);
    file_store(scratch("broken/birch/011.jpg"), "\xFF\xD8\xFF nor this", 12);
    TEST_START(argc, argv);
    RUN(fresh);
    RUN(fresh_with_broken);
    RUN(append);
    RUN(task);
    RUN(finalise);
    RUN(gc);
    RUN(writer);
    return TEST_END();
}
