/* SPDX-License-Identifier: Apache-2.0 */
/* Plans that do not fit in memory: the bytes of the plan do not depend on the memory. */
#include "base/rng.h"
#include "fault_sweep.h"
#include "ingest/spill/buckets.h"
#include "ingest_plan_help.h"

enum { TINY = 700 };        /* bytes: a few inputs */
#define WRONG PEN_E_CORRUPT /* what a test has found */

/* ---- sorting --------------------------------------------------------------------------------- */

/* Items of 0 to 90 bytes whose keys repeat. */
static int sort_items(size_t memory, uint64_t n, PenError *err)
{
    PenSpace space = {at("spill"), memory};
    PenSorter *sorter = NULL;
    PenRng rng = pen__rng_init(5, 6);
    bool is_right = true;
    int r = pen__sorter_open(&space, &sorter, err);
    for (uint64_t i = 0; r == PEN_OK && i < n; i++) {
        uint8_t *to;
        uint32_t data_bytes = 8 + (uint32_t)pen__rng_below(&rng, 90);
        uint64_t key = pen__rng_below(&rng, n / 2 + 1);
        uint32_t key_bytes = (uint32_t)(key % 3 + 9);
        r = pen__sorter_add(sorter, key_bytes, data_bytes, &to, err);
        if (r < 0)
            break;
        memset(to, 'k', 1);
        pen__store64(to + 1, __builtin_bswap64(key));
        memset(to + 9, 0, key_bytes - 9);
        memset(to + key_bytes, (int)i, data_bytes);
        pen__store64(to + key_bytes, i);
    }
    for (int pass = 0; r == PEN_OK && pass < 2; pass++) {
        PenSorted item;
        uint64_t found = 0, last_key = 0, last_data = 0;
        r = pen__sorter_start(sorter, err);
        while (r == PEN_OK && (r = pen__sorter_next(sorter, &item, err)) == PEN_OK) {
            uint64_t key = __builtin_bswap64(pen__load64(item.key + 1));
            uint64_t data = pen__load64(item.data);
            is_right = is_right &&
                       (!found || key > last_key || (key == last_key && data > last_data)) &&
                       item.key_bytes == key % 3 + 9 &&
                       (item.data_bytes == 8 || item.data[item.data_bytes - 1] == (uint8_t)data);
            last_key = key;
            last_data = data;
            found++;
        }
        if (r == PEN_END)
            r = is_right && found == n ? PEN_OK : WRONG;
    }
    pen__sorter_close(&sorter);
    return r;
}

TEST(sorted_runs_are_merged)
{
    static const uint64_t counts[] = {0, 1, 2, 17, 3000};
    for (size_t i = 0; i < PEN_LEN(counts); i++) {
        CHECK_GOES(sort_items(1 << 20, counts[i], &err));
        CHECK_GOES(sort_items(1, counts[i] / 10, &err));
        CHECK_GOES(sort_items(TINY, counts[i], &err));
        CHECK_GOES(sort_items(100000, counts[i], &err));
    }
}

/* ---- shuffling ------------------------------------------------------------------------------- */

static int put(void *ctx, uint64_t position, uint64_t value, PenError *err)
{
    return pen__scatter_add(ctx, &(PenPlaced){position, value, position + 1}, err);
}

static int shuffle(size_t memory, uint64_t n, uint64_t *ret, PenError *err)
{
    PenSpace space = {at("spill"), memory};
    PenScatter *scatter = NULL;
    PenPlaced at;
    int r = pen__scatter_open(&space, n, 2, &scatter, err);
    PenShuffle what = {n, 7, 1, put, scatter};
    if (r == PEN_OK)
        r = pen__shuffle(&what, &space, err);
    uint64_t found = 0;
    bool is_right = true;
    while (r == PEN_OK && (r = pen__scatter_next(scatter, &at, err)) == PEN_OK) {
        is_right = is_right && at.place == found && at.b == found + 1;
        ret[found++] = at.a;
    }
    pen__scatter_close(&scatter);
    return r < 0 ? r : is_right && found == n ? PEN_OK : WRONG;
}

/* As it is described, in memory. */
static void shuffle_plainly(uint64_t n, uint64_t *ret)
{
    PenRng rng = pen__rng_init(7, 1);
    for (uint64_t i = 0; i < n; i++)
        ret[i] = i;
    for (uint64_t i = n; i-- > 1;) {
        uint64_t k = pen__rng_below(&rng, i + 1), swap = ret[i];
        ret[i] = ret[k];
        ret[k] = swap;
    }
}

TEST(a_shuffle_does_not_depend_on_the_memory)
{
    enum { MOST = 30000 };
    static const uint64_t counts[] = {1, 2, 3, 63, 64, 65, 1000, MOST};
    static const size_t memory[] = {16, 160, 1600, 32768, 1 << 24};
    static uint64_t expected[MOST], found[MOST];
    for (size_t i = 0; i < PEN_LEN(counts); i++)
        for (size_t k = 0; k < PEN_LEN(memory); k++) {
            if (memory[k] == 16 && counts[i] > 1000)
                continue;
            shuffle_plainly(counts[i], expected);
            CHECK_GOES(shuffle(memory[k], counts[i], found, &err));
            CHECK(memcmp(found, expected, (size_t)counts[i] * sizeof *found) == 0);
        }
    CHECK_GOES(shuffle(16, 0, found, &err));
}

/* ---- plans ----------------------------------------------------------------------------------- */

static void load_plan(const char *name, PenBuf *ret)
{
    CHECK_GOES(pen__file_load(at(name), 1 << 30, ret, &err));
}

/* The plan of the request made with ample and with little memory. */
static void compare(void)
{
    PenBuf ample = {0}, tiny = {0};
    static const size_t memory[] = {1, TINY, 5000};
    request.memory = 0;
    CHECK_GOES(make(&err));
    load_plan("plan", &ample);
    for (size_t i = 0; i < PEN_LEN(memory); i++) {
        tiny.bytes = 0;
        request.memory = memory[i];
        CHECK_GOES(make(&err));
        load_plan("plan", &tiny);
        CHECK(ample.bytes == tiny.bytes && memcmp(ample.data, tiny.data, ample.bytes) == 0);
    }
    CHECK(access(at("plan.spill"), F_OK) != 0);
    pen__buf_free(&ample);
    pen__buf_free(&tiny);
}

/* Names whose order by bytes is not the one in which folders are walked. */
static void make_many(const char *root)
{
    for (int i = 0; i < 120; i++) {
        char name[64];
        snprintf(name, sizeof name, "%s/%c%s/%03d.jpg", root, 'a' + i % 3, i % 2 ? "-x" : "",
                 i * 77 % 1000);
        help_text(name, &"12345678"[i % 8]);
        CHECK_OK_SO_FAR();
    }
}

static void compare_settings(void)
{
    compare();
    settings.order = PEN_PACK_SOURCE;
    compare();
    settings.fraction = 0.3;
    compare();
    settings.order = PEN_PACK_SHUFFLED;
    compare();
}

static void ask_several(const char *a, const char *b, const char *c)
{
    static char paths[3][300];
    static const char *const sources[] = {paths[0], paths[1], paths[2]};
    const char *names[] = {a, b, c};
    ask(a);
    for (int i = 0; i < 3; i++)
        snprintf(paths[i], sizeof paths[i], "%s", at(names[i]));
    settings = help_settings(sources, 3);
}

TEST(folders)
{
    make_many("many");
    ask("many");
    compare_settings();
}

TEST(several_sources)
{
    make_folder("more");
    for (int i = 0; i < 30; i++) {
        char name[64];
        snprintf(name, sizeof name, "many2/a/z%d.jpg", i);
        help_text(name, "1");
    }
    ask_several("many", "more", "many2");
    compare_settings();
}

static void make_list(const char *name, int n)
{
    PenBuf text = {0};
    pen__buf_add(&text, "path,label,score\n", 17);
    for (int i = 0; i < n; i++) {
        char row[96];
        int bytes = snprintf(row, sizeof row, "many/%c%s/%03d.jpg,%d,%d.5\n", 'a' + i % 3,
                             i % 2 ? "-x" : "", i * 77 % 1000, i % 5, i);
        pen__buf_add(&text, row, (size_t)bytes);
    }
    help_file(name, text.data, text.bytes);
    pen__buf_free(&text);
}

TEST(lists)
{
    make_list("list.csv", 100);
    ask("list.csv");
    compare_settings();
}

TEST(tars)
{
    make_tar("t.tar", 0, 60, archive_write_add_filter_none);
    ask("t.tar");
    compare_settings();
    make_tar("t.tar.gz", 0, 60, archive_write_add_filter_gzip);
    ask("t.tar.gz");
    settings.order = PEN_PACK_SOURCE;
    compare();
}

TEST(sizes_of_blocks_by_probing)
{
    for (int i = 0; i < 90; i++) {
        char name[64];
        snprintf(name, sizeof name, "pictures/%02d.png", i);
        make_png(name, 10 + (uint32_t)i * 3, 20);
        CHECK_OK_SO_FAR();
    }
    ask("pictures");
    settings.mode = PEN_MODE_RAW;
    compare_settings();
}

/* Every second key. */
static int known(void *ctx, const void *key, size_t bytes, PenError *err)
{
    (void)ctx;
    (void)err;
    return ((const char *)key)[bytes - 5] % 2;
}

TEST(inputs_that_a_pack_has)
{
    static const char *const classes[] = {"a", "a-x", "b", "b-x", "c", "c-x"};
    PenPackInfo base = with_classes(classes, 6);
    ask("many");
    request.base = &base;
    request.known = known;
    compare_settings();
}

/* ---- errors ---------------------------------------------------------------------------------- */

TEST(keys_that_repeat)
{
    help_text("again/a/z.jpg", "1");
    help_text("again/a/924.jpg", "1"); /* two of the names that "many" has */
    help_text("again/b-x/077.jpg", "1");
    ask_several("more", "many", "again");
    char expected[sizeof(PenError)];
    CHECK_PLAN_FAILS(PEN_E_EXISTS, "twice");
    PenError err = {0};
    make(&err);
    snprintf(expected, sizeof expected, "%s", err.message);
    request.memory = TINY;
    CHECK_INT(make(&err), PEN_E_EXISTS);
    CHECK_STR(err.message, expected);
}

TEST(labels_and_depths)
{
    help_text("flat/1.jpg", "1");
    ask_several("many", "more", "flat");
    request.memory = TINY;
    CHECK_PLAN_FAILS(PEN_E_INVALID, "expected all files in class folders or none");
    help_text("bad.csv", "path,label\nmany/a/000.jpg,1\nmany/a/462.jpg,2\nmany/a/924.jpg,cat\n");
    ask("bad.csv");
    request.memory = 1;
    CHECK_PLAN_FAILS(PEN_E_INVALID, "bad.csv");
}

static int stop(void *ctx, const PenIngestProgress *p)
{
    (void)p;
    return ++*(int *)ctx > 0;
}

TEST(a_plan_is_cancelled_while_it_is_written)
{
    PenInputs in = {.settings = &settings};
    int calls = 0;
    ask("many");
    settings.progress = stop;
    settings.ctx = &calls;
    CHECK_FAILS(pen__inputs_report(&in, "sort", 1, 2, &err), PEN_E_CANCELLED,
                "stopped after 0 inputs; run the same command again to start anew");
    CHECK_INT(calls, 1);
}

static int make_tiny(PenError *err)
{
    return make(err);
}

TEST(every_call_fails)
{
    int points = 0;
    make_list("short.csv", 12);
    ask("short.csv");
    settings.fraction = 0.9;
    request.memory = 300;
    fault_sweep(make_tiny, &points);
    CHECK_OK_SO_FAR();
    CHECK(points > 200);
    make_folder("few");
    ask("few");
    request.memory = 1;
    fault_sweep(make_tiny, &points);
    CHECK_OK_SO_FAR();
}

TEST(a_temporary_file_that_was_left)
{
    help_text("plan.spill", "of another process");
    ask("many");
    request.memory = TINY;
    CHECK_GOES(make(&err));
    CHECK(access(at("plan.spill"), F_OK) != 0);
}

/* A name that is there is replaced, and a link is not followed. */
TEST(a_temporary_file_with_a_name)
{
    char text[16] = "";
    PenSpill s = {.path = at("named"), .is_named = true};
    help_text("other", "other");
    CHECK_INT(symlink(at("other"), at("named")), 0);
    CHECK_GOES(pen__spill_write(&s, "hel", 3, &err));
    CHECK_GOES(pen__spill_write(&s, "lo", 2, &err));
    pen__spill_finish(&s);
    CHECK_INT(s.bytes, 5);
    FILE *f = fopen(at("named"), "r");
    CHECK(f && fgets(text, sizeof text, f));
    fclose(f);
    CHECK_STR(text, "hello");
    pen__spill_close(&s);
    CHECK(access(at("named"), F_OK) != 0);
    CHECK_INT(access(at("other"), F_OK), 0);
    pen__spill_close(&s);
    CHECK_INT(access(at("other"), F_OK), 0);
}

int main(int argc, char **argv)
{
    TEST_START(argc, argv);
    help_begin();
    RUN(sorted_runs_are_merged);
    RUN(a_shuffle_does_not_depend_on_the_memory);
    RUN(folders);
    RUN(several_sources);
    RUN(lists);
    RUN(tars);
    RUN(sizes_of_blocks_by_probing);
    RUN(inputs_that_a_pack_has);
    RUN(keys_that_repeat);
    RUN(labels_and_depths);
    RUN(a_plan_is_cancelled_while_it_is_written);
    RUN(every_call_fails);
    RUN(a_temporary_file_that_was_left);
    RUN(a_temporary_file_with_a_name);
    help_end();
    return TEST_END();
}
