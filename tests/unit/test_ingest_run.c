/* SPDX-License-Identifier: Apache-2.0 */
/* Whole runs: the same bytes however they come about, and the ways they end early. */
#include "io/dir.h"
#include "lib/tiled_pack.h"
#include "pack_help.h"

enum { N = 30 };

static int run(const PenIngestSettings *s, PenIngestResult *result, PenError *err)
{
    return pen_ingest_run(s, result, err);
}

static bool same_file(const char *a, const char *b)
{
    PenBuf x = {0};
    PenBuf y = {0};
    bool same = read_whole_file(a, &x) && read_whole_file(b, &y) && x.bytes == y.bytes &&
                memcmp(x.data, y.data, x.bytes) == 0;
    pen__buf_free(&x);
    pen__buf_free(&y);
    return same;
}

/* Do two directories hold the same files with the same bytes? */
static bool same_tree(const char *a, const char *b)
{
    PenNames x = {0};
    PenNames y = {0};
    struct stat st;
    bool same =
        pen__dir_list(a, &x, NULL) == PEN_OK && pen__dir_list(b, &y, NULL) == PEN_OK && x.n == y.n;
    for (uint64_t i = 0; i < x.n && same; i++) {
        char *p = pen__path_join(a, x.names[i]);
        char *q = pen__path_join(b, y.names[i]);
        same = strcmp(x.names[i], y.names[i]) == 0 && stat(p, &st) == 0 &&
               (S_ISDIR(st.st_mode) ? same_tree(p, q) : same_file(p, q));
        pen__free(p);
        pen__free(q);
    }
    pen__names_free(&x);
    pen__names_free(&y);
    return same;
}

static bool same(const char *a, const char *b)
{
    return same_tree(at(a), at(b));
}

static void check_good(const char *name, uint64_t n_samples)
{
    PenError err = {0};
    PenPack *pack = NULL;
    PenVerifySettings v;
    PenVerifyResult result;
    CHECK_INT(pen_pack_open(at(name), NULL, &pack, &err), PEN_OK);
    CHECK_INT(pen_pack_info(pack)->n_samples, n_samples);
    pen_verify_settings_init(&v);
    v.decode = 1;
    CHECK_INT(pen_pack_verify(pack, &v, &result, &err), PEN_OK);
    CHECK_INT(result.samples, n_samples);
    CHECK_INT(result.bytes, pen_pack_info(pack)->total_bytes);
    pen_pack_close(&pack);
}

TEST(any_number_of_threads_gives_the_same_bytes)
{
    static const int threads[] = {1, 2, 8};
    for (int i = 0; i < 3; i++) {
        PenError err = {0};
        PenIngestResult result;
        char name[32];
        snprintf(name, sizeof name, "threads%d.pen", i);
        PenIngestSettings s = help_ingest("photos", name);
        s.threads = threads[i];
        CHECK_INT(run(&s, &result, &err), PEN_OK);
        CHECK_INT(result.n_samples, N);
        CHECK(result.n_shards > 3);
        CHECK_INT(result.published, 1);
        check_good(name, N);
        CHECK(i == 0 || same("threads0.pen", name));
    }
}

typedef struct Stop {
    uint64_t at, calls;
} Stop;

static int stop_at(void *ctx, const PenIngestProgress *p)
{
    Stop *stop = ctx;
    (void)p;
    return ++stop->calls == stop->at;
}

static int fail_manifest_rename(int from_dir, const char *from, int to_dir, const char *to)
{
    if (strcmp(to, "manifest") == 0)
        return -EIO;
    return pen__sys_real.rename(from_dir, from, to_dir, to);
}

static int stop_when_done(void *ctx, const PenIngestProgress *p)
{
    return p->done >= *(const uint64_t *)ctx;
}

static int stop_when_checking(void *ctx, const PenIngestProgress *p)
{
    (void)ctx;
    return strcmp(p->stage, "check") == 0;
}

/* The clock runs fast, so that progress is told after every sample. */
static uint64_t fast_now(void)
{
    static uint64_t now;
    return now += 200000000;
}

TEST(a_stopped_run_goes_on_to_the_same_bytes)
{
    static PenSys sys;
    sys = pen__sys_real;
    sys.now_ns = fast_now;
    int stopped = 0;
    for (uint64_t n = 1; n < 60; n += 3) {
        PenError err = {0};
        PenIngestResult result = {0};
        Stop stop = {.at = n};
        PenPack *pack = NULL;
        PenIngestSettings s = help_ingest("photos", "stopped.pen");
        s.progress = stop_at;
        s.ctx = &stop;
        pen__sys = &sys;
        int r = run(&s, &result, &err);
        pen__sys = &pen__sys_real;
        if (r == PEN_E_CANCELLED) {
            stopped++;
            CHECK(strstr(err.message, "again"));
            CHECK_INT(pen_pack_open(s.out, NULL, &pack, &err), PEN_E_NOT_FOUND);
            s.progress = NULL;
            CHECK_INT(run(&s, &result, &err), PEN_OK);
        } else {
            CHECK_INT(r, PEN_OK);
        }
        CHECK_INT(result.n_added, N);
        CHECK(same("threads0.pen", "stopped.pen"));
        nftw(at("stopped.pen"), help_remove, 16, FTW_DEPTH | FTW_PHYS);
    }
    CHECK(stopped > 8);
}

TEST(tasks_give_the_same_samples)
{
    PenError err = {0};
    PenIngestResult result;
    PenIngestSettings s = help_ingest("photos", "tasks.pen");
    CHECK_INT(pen_ingest_plan(&s, &result, &err), PEN_OK);
    CHECK_INT(result.n_samples, N);
    s.n_tasks = 4;
    for (s.task = 0; s.task < 4; s.task++) {
        if (s.task == 3) {
            CHECK_INT(pen_ingest_finalise(&s, &result, &err), PEN_E_NOT_FOUND);
            CHECK(strstr(err.message, "task 3 of 4 is not done"));
        }
        CHECK_INT(run(&s, &result, &err), PEN_OK);
        CHECK_INT(result.published, 0);
        CHECK_INT(result.stats.images[PEN_STORED_JPEG][PEN_HOW_INDEXED], result.n_samples);
        CHECK(result.pack_bytes > result.stats.payload_bytes);
    }
    s.n_tasks = 3;
    s.task = 1;
    CHECK_INT(run(&s, &result, &err), PEN_E_INVALID);
    CHECK(strstr(err.message, "the tasks run so far are of 4"));
    PenPack *none = NULL;
    CHECK_INT(pen_pack_open(s.out, NULL, &none, &err), PEN_E_NOT_FOUND);
    CHECK(strstr(err.message, "not finished"));
    s.n_tasks = 0; /* as many as there were */
    CHECK_INT(pen_ingest_finalise(&s, &result, &err), PEN_OK);
    CHECK_INT(result.n_samples, N);
    CHECK_INT(pen_ingest_finalise(&s, &result, &err), PEN_E_EXISTS);
    check_good("tasks.pen", N);
    PenPack *a = NULL;
    PenPack *b = NULL;
    CHECK_INT(pen_pack_open(at("threads0.pen"), NULL, &a, &err), PEN_OK);
    CHECK_INT(pen_pack_open(at("tasks.pen"), NULL, &b, &err), PEN_OK);
    for (uint64_t i = 0; i < N; i++) {
        char key[256];
        size_t bytes;
        uint64_t other;
        PenBuf x = {0};
        PenBuf y = {0};
        CHECK_INT(pen_pack_key(a, i, key, sizeof key, &bytes, &err), PEN_OK);
        CHECK_INT(pen_pack_find(b, key, bytes, &other, &err), PEN_OK);
        help_read(a, i, 0, &x);
        help_read(b, other, 0, &y);
        CHECK_INT(x.bytes, y.bytes);
        CHECK_MEM(x.data, y.data, x.bytes);
        pen__buf_free(&x);
        pen__buf_free(&y);
    }
    pen_pack_close(&a);
    pen_pack_close(&b);
}

TEST(appending_adds_only_what_is_new)
{
    PenError err = {0};
    PenIngestResult result;
    PenGcResult gc;
    PenPack *pack = NULL;
    help_folder("some", 0, 18);
    PenIngestSettings s = help_ingest("some", "kept.pen");
    s.no_index = 1;
    CHECK_INT(run(&s, &result, &err), PEN_OK);
    tile_pack(s.out, at("append.pen"), s.shard_bytes); /* as an earlier build would have made it */
    CHECK_INT(pen_pack_open(at("append.pen"), NULL, &pack, &err), PEN_OK); /* stays what it is */
    s = help_ingest("photos", "append.pen");
    CHECK_INT(run(&s, &result, &err), PEN_E_EXISTS);
    s.append = 1;
    CHECK_INT(run(&s, &result, &err), PEN_OK);
    CHECK_INT(result.n_added, N - 18);
    CHECK_INT(result.n_known, 18);
    CHECK_INT(result.n_samples, N);
    CHECK_INT(result.stats.images[PEN_STORED_JPEG][PEN_HOW_TILED], 18);
    CHECK_INT(result.stats.images[PEN_STORED_JPEG][PEN_HOW_INDEXED], N - 18);
    check_good("append.pen", N);
    PenBuf buf = {0};
    for (uint64_t i = 0; i < 18; i++)
        help_read(pack, i, 0, &buf);
    pen__buf_free(&buf);
    pen_pack_close(&pack);
    CHECK_INT(run(&s, &result, &err), PEN_OK);
    CHECK_INT(result.n_added, 0);
    CHECK_INT(result.n_known, N);
    CHECK_INT(pen_ingest_gc(s.out, NULL, NULL, 0, &gc, &err), PEN_OK);
    check_good("append.pen", N);
    s = help_ingest("photos", "nothing.pen");
    s.append = 1;
    CHECK_INT(run(&s, &result, &err), PEN_E_NOT_FOUND);
}

TEST(broken_inputs_stop_or_are_left_out)
{
    PenError err = {0};
    PenIngestResult result;
    PenBuf report = {0};
    PenBuf jpeg = {0};
    help_folder("broken", 0, 11);
    help_jpeg(50, &jpeg);
    help_file("broken/class-1/cut.jpg", jpeg.data, jpeg.bytes / 2);
    help_text("broken/class-2/text.jpg", "this is no image");
    PenIngestSettings s = help_ingest("broken", "broken.pen");
    CHECK_INT(run(&s, &result, &err), PEN_E_DECODE);
    CHECK(strstr(err.message, "cut.jpg") || strstr(err.message, "text.jpg"));
    s.skip_bad = 1;
    s.max_bad = 1;
    CHECK_INT(run(&s, &result, &err), PEN_E_DECODE);
    CHECK(strstr(err.message, "more than 1 broken inputs"));
    CHECK(read_whole_file(at("broken.pen-bad.jsonl"), &report));
    CHECK(report.bytes > 0);
    s.max_bad = 2;
    CHECK_INT(run(&s, &result, &err), PEN_OK);
    CHECK_INT(result.n_bad, 2);
    CHECK_INT(result.n_samples, 11);
    CHECK_INT(result.stats.bad <= 2, 1);
    check_good("broken.pen", 11);
    CHECK(read_whole_file(at("broken.pen-bad.jsonl"), &report));
    CHECK(memmem(report.data, report.bytes, "class-1/cut.jpg", 15));
    CHECK(memmem(report.data, report.bytes, "class-2/text.jpg", 16));
    pen__buf_free(&report);
    pen__buf_free(&jpeg);
}

TEST(a_listed_file_that_is_missing_is_a_broken_input)
{
    PenError err = {0};
    PenIngestResult result;
    PenIngestSettings s = help_ingest("photos/list.csv", "missing.pen");
    help_text("photos/list.csv", "path,label\nclass-0/000.jpg,1\nclass-0/gone.jpg,2\n");
    CHECK(run(&s, &result, &err) < 0);
    CHECK(strstr(err.message, "gone.jpg"));
    s.skip_bad = 1;
    int r = run(&s, &result, &err);
    unlink(at("photos/list.csv"));
    CHECK_INT(r, PEN_OK);
    CHECK_INT(result.n_bad, 1);
    CHECK_INT(result.n_samples, 1);
}

/* What has been written is not thrown away because somebody changed an option. */
TEST(an_interrupted_run_is_kept_from_other_settings)
{
    static PenSys sys;
    PenError err = {0};
    PenIngestResult result;
    PenGcResult gc;
    uint64_t enough = 12;
    PenIngestSettings s = help_ingest("photos", "other.pen");
    s.shard_bytes = 1; /* a shard for each block */
    s.progress = stop_when_done;
    s.ctx = &enough;
    sys = pen__sys_real;
    sys.now_ns = fast_now;
    pen__sys = &sys;
    CHECK_INT(run(&s, &result, &err), PEN_E_CANCELLED);
    pen__sys = &pen__sys_real;
    s.progress = NULL;
    s.mode = PEN_MODE_RAW;
    CHECK_INT(run(&s, &result, &err), PEN_E_INVALID);
    CHECK(strstr(err.message, "gc"));
    CHECK_INT(pen_ingest_gc(s.out, NULL, NULL, 0, &gc, &err), PEN_OK);
    CHECK(gc.files > 1);
    CHECK_INT(run(&s, &result, &err), PEN_OK);
    check_good("other.pen", N);
}

static int fail_plan_open(const char *path, int how)
{
    const char *slash = strrchr(path, '/');
    return slash && strcmp(slash, "/plan") == 0 ? -EIO : pen__sys_real.open(path, how);
}

/* A plan that cannot be read is not a damaged one: nothing is removed for it. */
TEST(a_writer_keeps_a_plan_that_it_cannot_read)
{
    static PenSys sys;
    static const PenField field = {.name = "n", .type = PEN_TYPE_I64};
    PenError err = {0};
    PenIngestResult result;
    PenWriter *w = NULL;
    PenWriterSettings settings;
    PenIngestSettings s = help_ingest("photos", "unread.pen");
    CHECK_INT(pen_ingest_plan(&s, &result, &err), PEN_OK);
    pen_writer_settings_init(&settings);
    settings.fields = &field;
    settings.n_fields = 1;
    sys = pen__sys_real;
    sys.open = fail_plan_open;
    pen__sys = &sys;
    int r = pen_writer_open(s.out, &settings, &w, &err);
    pen__sys = &pen__sys_real;
    CHECK_INT(r, PEN_E_IO);
    CHECK_INT(pen__file_exists(at("unread.pen/.work/plan"), &err), 1);
    CHECK_INT(pen_writer_open(s.out, &settings, &w, &err), PEN_OK);
    CHECK_INT(pen__file_exists(at("unread.pen/.work/plan"), &err), 0);
    pen_writer_close(&w);
}

TEST(a_run_that_cannot_start_leaves_nothing)
{
    PenError err = {0};
    PenIngestResult result;
    PenIngestSettings s = help_ingest("no such folder", "never.pen");
    CHECK_INT(run(&s, &result, &err), PEN_E_NOT_FOUND);
    CHECK(strstr(err.message, "no such folder"));
    CHECK_INT(pen__file_exists(at("never.pen"), &err), 0);
}

/* A folder of that name that is not ours is nobody's to remove. */
TEST(gc_leaves_alone_what_it_did_not_make)
{
    PenError err = {0};
    PenGcResult gc;
    help_text("mine/.work/thesis.txt", "years of work");
    CHECK_INT(pen_ingest_gc(at("mine"), NULL, NULL, 0, &gc, &err), PEN_E_INVALID);
    CHECK(strstr(err.message, "thesis.txt"));
    CHECK_INT(pen__file_exists(at("mine/.work/thesis.txt"), &err), 1);
}

/* "Nothing is removed" holds for shards, too, which come before the work folder. */
TEST(gc_that_is_refused_leaves_shards)
{
    static const char shard[] = "mine/ab/abababababababababababababababab.shard";
    PenError err = {0};
    PenGcResult gc;
    help_text("mine/.work/thesis.txt", "years of work");
    help_text(shard, "not named by any manifest");
    CHECK_INT(pen_ingest_gc(at("mine"), NULL, NULL, 0, &gc, &err), PEN_E_INVALID);
    CHECK_INT(pen__file_exists(at(shard), &err), 1);
    unlink(at("mine/.work/thesis.txt"));
    CHECK_INT(pen_ingest_gc(at("mine"), NULL, NULL, 0, &gc, &err), PEN_OK);
    CHECK_INT(pen__file_exists(at(shard), &err), 0);
}

/* All shards were written, one of them with a short last block, when the run ended. */
TEST(an_interrupted_publication_is_done_again)
{
    static PenSys sys;
    PenError err = {0};
    PenIngestResult result;
    help_folder("late", 0, 9);
    help_text("late/class-2/zzz.jpg", "broken");
    PenIngestSettings s = help_ingest("late", "late.pen");
    s.order = PEN_PACK_SOURCE;
    s.skip_bad = 1;
    sys = pen__sys_real;
    sys.rename = fail_manifest_rename;
    pen__sys = &sys;
    int r = run(&s, &result, &err);
    pen__sys = &pen__sys_real;
    CHECK(r < 0);
    CHECK_INT(run(&s, &result, &err), PEN_OK);
    CHECK_INT(result.n_samples, 9);
    CHECK_INT(result.n_bad, 1);
    check_good("late.pen", 9);
}

static int fail_shard_unlink(int dir, const char *name)
{
    size_t n = strlen(name);
    if (n > 6 && strcmp(name + n - 6, ".shard") == 0)
        return -EIO;
    return pen__sys_real.unlink(dir, name);
}

/* The run ends when a shard has its new name and is listed, and its old file is still there. */
TEST(a_shard_that_was_being_moved_is_not_left_behind)
{
    static PenSys sys;
    PenError err = {0};
    PenIngestResult result;
    PenGcResult gc;
    PenBuf jpeg = {0};
    help_folder("before", 0, 6);
    help_folder("moved", 10, 9);
    help_text("moved/class-2/zzz.jpg", "broken");
    PenIngestSettings s = help_ingest("before", "moved.pen");
    s.order = PEN_PACK_SOURCE;
    s.block_samples = 2;
    s.shard_bytes = 1;
    CHECK_INT(run(&s, &result, &err), PEN_OK);
    PenIngestSettings before = s;
    s = help_ingest("moved", "moved.pen");
    s.order = before.order;
    s.block_samples = before.block_samples;
    s.shard_bytes = before.shard_bytes;
    s.append = 1;
    CHECK(run(&s, &result, &err) < 0);
    help_jpeg(50, &jpeg);
    help_file("moved/class-2/zzz.jpg", jpeg.data, jpeg.bytes);
    pen__buf_free(&jpeg);
    sys = pen__sys_real;
    sys.unlink = fail_shard_unlink;
    pen__sys = &sys;
    CHECK_INT(run(&s, &result, &err), PEN_E_IO);
    pen__sys = &pen__sys_real;
    CHECK_INT(run(&s, &result, &err), PEN_OK);
    CHECK_INT(result.n_resumed, 8);
    check_good("moved.pen", 16);
    CHECK_INT(pen_ingest_gc(s.out, NULL, NULL, 0, &gc, &err), PEN_OK);
    CHECK_INT(gc.files, 0);
}

/* Reading what is finished may take long; whoever stops it loses none of it. */
TEST(checking_finished_shards_can_be_stopped)
{
    static PenSys sys;
    PenError err = {0};
    PenIngestResult result;
    PenIngestSettings s = help_ingest("photos", "checked.pen");
    sys = pen__sys_real;
    sys.rename = fail_manifest_rename;
    pen__sys = &sys;
    CHECK_INT(run(&s, &result, &err), PEN_E_IO);
    pen__sys = &pen__sys_real;
    s.progress = stop_when_checking;
    CHECK_INT(run(&s, &result, &err), PEN_E_CANCELLED);
    s.progress = NULL;
    CHECK_INT(run(&s, &result, &err), PEN_OK);
    CHECK(result.n_resumed > 0);
    CHECK(same("threads0.pen", "checked.pen"));
}

TEST(class_numbers_come_from_another_pack)
{
    PenError err = {0};
    PenIngestResult result;
    PenPack *pack = NULL;
    help_folder("val", 1, 1); /* class-1 alone */
    PenIngestSettings s = help_ingest("val", "val.pen");
    char train[4400];
    snprintf(train, sizeof train, "%s", at("threads0.pen"));
    s.classes_from = train;
    CHECK_INT(run(&s, &result, &err), PEN_OK);
    CHECK_INT(pen_pack_open(s.out, NULL, &pack, &err), PEN_OK);
    CHECK_INT(pen_pack_info(pack)->n_classes, 3);
    int64_t label = 0;
    size_t bytes;
    CHECK_INT(pen_pack_read(pack, 0, 1, &label, 8, &bytes, &err), PEN_OK);
    CHECK_INT(label, 1);
    pen_pack_close(&pack);
    help_text("val/class-9/x.jpg", "x");
    s.out = at("val2.pen");
    CHECK_INT(run(&s, &result, &err), PEN_E_NOT_FOUND);
    CHECK(strstr(err.message, "class-9"));
}

TEST(two_runs_at_once_are_kept_apart)
{
    PenError err = {0};
    PenIngestResult result;
    PenLock lock = PEN_LOCK_NONE;
    PenIngestSettings s = help_ingest("photos", "busy.pen");
    CHECK_INT(mkdir(s.out, 0777), 0);
    CHECK_INT(pen__dir_lock(s.out, 1, &lock, &err), PEN_OK);
    CHECK_INT(run(&s, &result, &err), PEN_E_BUSY);
    pen__dir_unlock(&lock);
    CHECK_INT(run(&s, &result, &err), PEN_OK);
}

TEST(extracting_gives_images_with_their_metadata)
{
    PenError err = {0};
    PenPack *pack = NULL;
    CHECK_INT(pen_pack_open(at("threads0.pen"), NULL, &pack, &err), PEN_OK);
    for (uint64_t i = 0; i < N; i++) {
        char key[256] = "photos/";
        size_t bytes;
        void *data = NULL;
        const char *suffix = NULL;
        PenBuf source = {0};
        PenPixels a, b;
        CHECK_INT(pen_pack_key(pack, i, key + 7, sizeof key - 8, &bytes, &err), PEN_OK);
        CHECK(read_whole_file(at(key), &source));
        CHECK_INT(pen_pack_extract(pack, i, 0, 0, &data, &bytes, &suffix, &err), PEN_OK);
        CHECK_STR(suffix, ".jpg");
        CHECK_INT(reference_decode(data, bytes, &a), 0);
        CHECK_INT(reference_decode(source.data, source.bytes, &b), 0);
        CHECK_INT(a.width, b.width);
        CHECK_MEM(a.data, b.data, (size_t)a.width * a.height * a.channels);
        PenImageInfo x, y;
        CHECK_INT(pen__image_probe(data, bytes, &pen__limits_default, &x, &err), PEN_OK);
        CHECK_INT(pen__image_probe(source.data, source.bytes, &pen__limits_default, &y, &err), 0);
        CHECK_INT(x.orientation, y.orientation);
        pen__pixels_free(&a);
        pen__pixels_free(&b);
        pen__buf_free(&source);
        pen_free(data);
    }
    pen_pack_close(&pack);
}

int main(int argc, char **argv)
{
    TEST_START(argc, argv);
    help_begin();
    help_folder("photos", 0, N);
    RUN(any_number_of_threads_gives_the_same_bytes);
    RUN(a_stopped_run_goes_on_to_the_same_bytes);
    RUN(tasks_give_the_same_samples);
    RUN(appending_adds_only_what_is_new);
    RUN(broken_inputs_stop_or_are_left_out);
    RUN(a_listed_file_that_is_missing_is_a_broken_input);
    RUN(an_interrupted_run_is_kept_from_other_settings);
    RUN(a_writer_keeps_a_plan_that_it_cannot_read);
    RUN(a_run_that_cannot_start_leaves_nothing);
    RUN(gc_leaves_alone_what_it_did_not_make);
    RUN(gc_that_is_refused_leaves_shards);
    RUN(an_interrupted_publication_is_done_again);
    RUN(a_shard_that_was_being_moved_is_not_left_behind);
    RUN(checking_finished_shards_can_be_stopped);
    RUN(class_numbers_come_from_another_pack);
    RUN(two_runs_at_once_are_kept_apart);
    RUN(extracting_gives_images_with_their_metadata);
    help_end();
    return TEST_END();
}
