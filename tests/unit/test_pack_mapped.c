/* SPDX-License-Identifier: Apache-2.0 */
/* In-place packs: shards whose payloads are read from the files that they were made of. */
#include <stdatomic.h>
#include <sys/resource.h>

#include "base/rng.h"
#include "base/sha256.h"
#include "base/team.h"
#include "fault_sweep.h"
#include "io/outside.h"
#include "lib/fault_sys.h"
#include "pack/format/map.h"
#include "pack_help.h"

enum { SAMPLES = 18, THREADS = 4 };

static void make_pack(const char *folder, const char *out)
{
    PenError err = {0};
    PenIngestResult result;
    PenIngestSettings s = help_ingest(folder, out);
    s.in_place = 1;
    s.mode = PEN_MODE_KEEP;
    CHECK_INT(pen_ingest_run(&s, &result, &err), PEN_OK);
    CHECK_INT(result.n_samples, SAMPLES);
    CHECK(result.pack_bytes < result.stats.payload_bytes / 4);
}

static void begin(void)
{
    help_begin();
    help_folder("files", 0, SAMPLES);
    make_pack("files", "p.pen");
}

/* ---- reading --------------------------------------------------------------------------------- */

static void read_samples(void *ctx, unsigned number)
{
    PenBuf found = {0}, expected = {0};
    for (uint64_t i = 0; i < SAMPLES; i++)
        help_check_image(ctx, (i + number) % SAMPLES, &found, &expected);
    pen__buf_free(&found);
    pen__buf_free(&expected);
}

TEST(threads_share_files)
{
    PenPack *pack = NULL;
    PenError err = {0};
    begin();
    CHECK_INT(pen_pack_open(at("p.pen"), NULL, &pack, &err), PEN_OK);
    CHECK(pen_pack_info(pack)->n_shards > 2);
    CHECK(pen_pack_info(pack)->stored_bytes < pen_pack_info(pack)->total_bytes);
    PenTeamWork work = {.name = "read", .run = read_samples, .ctx = pack};
    CHECK_INT(pen__team_run(&work, THREADS, &err), PEN_OK);
    pen_pack_close(&pack);
    help_end();
}

static char swept[300];

static int read_all(PenError *err)
{
    PenPack *pack = NULL;
    PenFileSettings files;
    static uint8_t data[1 << 17];
    const char *root = "/";
    size_t n = 0;
    pen_file_settings_init(&files);
    files.roots = &root;
    files.n_roots = 1;
    int r = pen_pack_open(swept, NULL, &pack, err);
    if (r == PEN_OK)
        r = pen_pack_files(pack, &files, err);
    for (uint64_t i = 0; r == PEN_OK && i < SAMPLES; i += 5)
        r = pen_pack_read(pack, i, 0, data, sizeof data, &n, err);
    pen_pack_close(&pack);
    return r;
}

TEST(every_call_may_fail)
{
    int points = 0;
    begin();
    snprintf(swept, sizeof swept, "%s", at("p.pen"));
    fault_sweep(read_all, &points);
    CHECK(points > 50);
    help_end();
}

TEST(copy_is_an_ordinary_pack)
{
    PenPack *pack = NULL;
    PenCopySettings s;
    PenCopyResult result;
    PenBuf found = {0}, expected = {0};
    begin();
    pen_copy_settings_init(&s);
    s.from = at("p.pen");
    s.to = at("copy.pen");
    CHECK_INT(pen_copy(&s, &result, NULL), PEN_OK);
    CHECK_INT(pen_pack_open(at("copy.pen"), NULL, &pack, NULL), PEN_OK);
    CHECK_INT(pen_pack_info(pack)->stored_bytes, pen_pack_info(pack)->total_bytes);
    CHECK(memcmp(pen_pack_info(pack)->id, result.id, sizeof result.id) == 0);
    for (uint64_t i = 0; i < SAMPLES; i++)
        help_check_image(pack, i, &found, &expected);
    pen_pack_close(&pack);
    pen__buf_free(&found);
    pen__buf_free(&expected);
    help_end();
}

static void copy_pack(const char *from, const char *to)
{
    PenCopySettings s;
    PenCopyResult result;
    char paths[2][300];
    snprintf(paths[0], sizeof paths[0], "%s", at(from));
    snprintf(paths[1], sizeof paths[1], "%s", at(to));
    pen_copy_settings_init(&s);
    s.from = paths[0];
    s.to = paths[1];
    CHECK_INT(pen_copy(&s, &result, NULL), PEN_OK);
}

/* Members of many sizes between the images: some are read over, some are not. */
static void make_tar_pack(void)
{
    static uint8_t filler[40000];
    char sources[300], out[300];
    const char *source = sources;
    PenIngestSettings s;
    PenIngestResult result;
    PenBuf jpeg = {0};
    HelpTar t;
    help_tar_begin(&t, archive_write_set_format_ustar, archive_write_add_filter_none);
    for (uint32_t i = 0; i < SAMPLES; i++) {
        char name[32];
        help_jpeg(i, &jpeg);
        snprintf(name, sizeof name, "%03u.jpg", i);
        help_tar_member(&t, name, AE_IFREG, NULL, jpeg.data, jpeg.bytes);
        snprintf(name, sizeof name, "%03u.bin", i);
        help_tar_member(&t, name, AE_IFREG, NULL, filler, i % 3 ? i * 100 : 14500 + i * 100);
    }
    help_tar_end(&t, "a.tar");
    snprintf(sources, sizeof sources, "%s", at("a.tar"));
    snprintf(out, sizeof out, "%s", at("tar.pen"));
    pen_ingest_settings_init(&s);
    s.sources = &source;
    s.n_sources = 1;
    s.out = out;
    s.in_place = 1;
    s.mode = PEN_MODE_KEEP;
    s.order = PEN_PACK_SOURCE;
    s.threads = 1;
    CHECK_INT(pen_ingest_run(&s, &result, NULL), PEN_OK);
    pen__buf_free(&jpeg);
}

static void compare_ranges(PenSource *a, PenSource *b, PenRng *rng)
{
    enum { RANGES = 400 };
    uint8_t *data = pen__alloc((size_t)a->bytes * 2);
    CHECK(data);
    CHECK_INT(a->bytes, b->bytes);
    for (int i = 0; i < RANGES; i++) {
        uint64_t from = i ? pen__rng_below(rng, a->bytes) : 0;
        uint64_t most = i % 2 ? PEN_MIN(a->bytes - from, 3000u) : a->bytes - from;
        uint64_t n = i ? 1 + pen__rng_below(rng, most) : a->bytes;
        CHECK_INT(pen__source_read(a, data, (size_t)n, from, NULL), PEN_OK);
        CHECK_INT(pen__source_read(b, data + n, (size_t)n, from, NULL), PEN_OK);
        CHECK(memcmp(data, data + n, (size_t)n) == 0);
        CHECK_OK_SO_FAR();
    }
    pen__free(data);
}

static void compare_packs(const char *mapped, const char *plain)
{
    PenPack *a = NULL, *b = NULL;
    PenRng rng = pen__rng_init(7, 0);
    CHECK_INT(pen_pack_open(at(mapped), NULL, &a, NULL), PEN_OK);
    CHECK_INT(pen_pack_open(at(plain), NULL, &b, NULL), PEN_OK);
    for (uint64_t i = 0; i < pen_pack_info(a)->n_shards; i++) {
        PenShardRef *x = NULL, *y = NULL;
        CHECK_INT(pen__pack_shard(a, i, &x, NULL), PEN_OK);
        CHECK_INT(pen__pack_shard(b, i, &y, NULL), PEN_OK);
        compare_ranges(x->shard.source, y->shard.source, &rng);
        pen__pack_shard_put(a, x);
        pen__pack_shard_put(b, y);
    }
    pen_pack_close(&a);
    pen_pack_close(&b);
}

/* ---- files that change while they are indexed ---- */

static PenSys changing;
static char changed_path[300];
static int changes_at, resolved;

/* Puts as many other bytes in place of the file, when it is resolved for the n-th time. */
static int change_file(const char *path, char *ret, size_t cap)
{
    struct stat st;
    size_t n = strlen(path), m = strlen(changed_path);
    if (n >= m && strcmp(path + n - m, changed_path) == 0 && ++resolved == changes_at &&
        stat(path, &st) == 0) {
        FILE *f = fopen(path, "r+b");
        if (f) {
            fputc('x', f);
            fclose(f);
        }
        struct timespec times[2] = {{.tv_sec = 1}, {.tv_sec = 1}};
        (void)utimensat(AT_FDCWD, path, times, 0);
    }
    return pen__sys_real.real_path(path, ret, cap);
}

static void index_changing(const char *source, const char *out, const char *name, int at_call,
                           int *ret, PenError *err)
{
    PenIngestResult result;
    PenIngestSettings s = help_ingest(source, out);
    s.in_place = 1;
    s.mode = PEN_MODE_KEEP;
    changing = pen__sys_real;
    changing.real_path = change_file;
    snprintf(changed_path, sizeof changed_path, "%s", name);
    changes_at = at_call;
    resolved = 0;
    pen__sys = &changing;
    *ret = pen_ingest_run(&s, &result, err);
    pen__sys = &pen__sys_real;
}

/* A file of the same size takes its place after it was read: nothing is published. */
TEST(a_file_changes_while_it_is_indexed)
{
    PenError err = {0};
    int r = PEN_OK;
    help_begin();
    help_folder("files", 0, SAMPLES);
    index_changing("files", "never.pen", "/005.jpg", 0, &r, &err);
    CHECK_INT(r, PEN_OK);
    CHECK_INT(resolved, 1);
    index_changing("files", "p.pen", "/005.jpg", 1, &r, &err);
    CHECK_INT(r, PEN_E_CHANGED);
    CHECK(strstr(err.message, "005.jpg: has changed while it was indexed"));
    help_end();
}

/* Any range of a mapped shard has the bytes of the ordinary one. */
TEST(ranges)
{
    begin();
    make_tar_pack();
    copy_pack("p.pen", "copy.pen");
    copy_pack("tar.pen", "tar-copy.pen");
    compare_packs("p.pen", "copy.pen");
    compare_packs("tar.pen", "tar-copy.pen");
    help_end();
}

/* Reads of files while all samples are read twice, by turns from shards that do not stay open. */
static void count_reads(const char *name, uint64_t *ret_reads, uint64_t *ret_shards)
{
    static uint8_t data[1 << 17];
    PenPack *pack = NULL;
    FaultPlan none = {.at = 0};
    size_t bytes = 0;
    fault_begin(&none);
    CHECK_INT(pen_pack_open(at(name), NULL, &pack, NULL), PEN_OK);
    *ret_shards = pen_pack_info(pack)->n_shards;
    for (uint64_t i = 0; i < 2 * pen_pack_info(pack)->n_samples; i++)
        CHECK_INT(pen_pack_read(pack, i % pen_pack_info(pack)->n_samples, 0, data, sizeof data,
                                &bytes, NULL),
                  PEN_OK);
    pen_pack_close(&pack);
    *ret_reads = fault_end().by_kind[FAULT_PREAD];
}

/* More shards than stay open: the map of each is read once, and not for every sample. */
TEST(maps_are_read_once)
{
    enum { MANY = 300 };
    PenIngestResult result;
    uint64_t n = 0, n_plain = 0, plain = 0, mapped = 0;
    help_begin();
    PenBuf jpeg = {0};
    help_jpeg(0, &jpeg);
    for (uint32_t i = 0; i < MANY; i++) {
        char name[32];
        snprintf(name, sizeof name, "files/a/%03u.jpg", i);
        help_file(name, jpeg.data, jpeg.bytes);
    }
    pen__buf_free(&jpeg);
    PenIngestSettings s = help_ingest("files", "p.pen");
    s.in_place = 1;
    s.mode = PEN_MODE_KEEP;
    s.block_samples = 1;
    s.shard_bytes = 1;
    CHECK_INT(pen_ingest_run(&s, &result, NULL), PEN_OK);
    copy_pack("p.pen", "copy.pen");
    count_reads("copy.pen", &plain, &n_plain);
    count_reads("p.pen", &mapped, &n);
    CHECK(n == n_plain && n > 2 * 128);
    /* The manifest, and of each shard the end of the map and all of it, once. */
    CHECK(mapped <= plain + 1 + 2 * n);
    help_end();
}

/* Directories are named before the pack is used: threads read them without a lock. */
TEST(directories_are_named_first)
{
    PenPack *pack = NULL;
    PenFileSettings files;
    PenError err = {0};
    char key[64];
    size_t n;
    begin();
    pen_file_settings_init(&files);
    CHECK_INT(pen_pack_open(at("p.pen"), NULL, &pack, &err), PEN_OK);
    CHECK_INT(pen_pack_files(pack, &files, &err), PEN_OK);
    CHECK_INT(pen_pack_files(pack, &files, &err), PEN_OK);
    CHECK_INT(pen_pack_key(pack, 0, key, sizeof key, &n, NULL), PEN_OK);
    CHECK_INT(pen_pack_files(pack, &files, &err), PEN_E_INVALID);
    CHECK(strstr(err.message, "already in use"));
    pen_pack_close(&pack);
    help_end();
}

/* ---- where files may be ---------------------------------------------------------------------- */

TEST(paths)
{
    static const char *const good[] = {
        "a",         "/a",  "a/b",   "/a/b.c",   "...",        "a/..b",
        ".a",        "s3:", "s3:/a", "s3://b/k", "s3://b/k@v", "https://h:1/a%20b",
        "http://h/a"};
    static const char *const bad[] = {"",
                                      "/",
                                      "a/",
                                      "//a",
                                      "a//b",
                                      ".",
                                      "a/.",
                                      "./a",
                                      "..",
                                      "../a",
                                      "a/..",
                                      "/..",
                                      "a/b/../c",
                                      "/a/",
                                      "S3://b/k",
                                      "s3://",
                                      "s3://b",
                                      "s3://b/",
                                      "s3:///k",
                                      "s3://b/../k",
                                      "s3://b//k",
                                      "s3://b/k?x",
                                      "s3://b/k#x",
                                      "s3://b/k\n",
                                      "https://u@h/k",
                                      "https://u:p@h/k",
                                      "ftp://h/k",
                                      "file:///etc/passwd"};
    char text[PEN_OUTSIDE_PATH_BYTES];
    memset(text, 'a', sizeof text);
    for (size_t i = 0; i < PEN_LEN(good); i++)
        CHECK(pen__outside_path_ok(good[i], strlen(good[i])));
    for (size_t i = 0; i < PEN_LEN(bad); i++)
        CHECK(!pen__outside_path_ok(bad[i], strlen(bad[i])));
    CHECK(!pen__outside_path_ok("a\0b", 3));
    CHECK(pen__outside_path_ok(text, sizeof text - 1));
    CHECK(!pen__outside_path_ok(text, sizeof text));
}

static int take(PenOutside *o, const char *path, uint64_t bytes, PenError *err)
{
    PenOutsideFile file = {pen__outside_owner(o), 0, (uint32_t)strlen(path), path, bytes};
    PenOutsideUse use;
    int r = pen__outside_take(o, &file, &use, err);
    if (r == PEN_OK)
        pen__outside_put(o, &use);
    return r;
}

static void set(PenOutside *o, const char *root, const char *from, const char *to)
{
    PenFileSettings s;
    pen_file_settings_init(&s);
    s.roots = &root;
    s.n_roots = root != NULL;
    s.moved_from = &from;
    s.moved_to = &to;
    s.n_moved = from != NULL;
    CHECK_INT(pen__outside_set(o, &s, NULL), PEN_OK);
}

TEST(files_below_roots_alone)
{
    PenOutside *o = NULL;
    PenError err = {0};
    char inside[300], outside[300];
    help_begin();
    help_text("in/p.pen/manifest", "");
    help_text("in/a/b", "four");
    help_text("out/c", "four");
    CHECK_INT(symlink("../out/c", at("in/link")), 0);
    CHECK_INT(symlink("a", at("in/dir")), 0);
    CHECK_INT(mkfifo(at("in/fifo"), 0600), 0);
    snprintf(inside, sizeof inside, "%s", at("in/a/b"));
    snprintf(outside, sizeof outside, "%s", at("out/c"));
    CHECK_INT(pen__outside_new(at("in/p.pen"), NULL, &o, &err), PEN_OK);
    CHECK_INT(take(o, "a/b", 4, &err), PEN_OK);
    CHECK_INT(take(o, "a/b", 5, &err), PEN_E_CORRUPT);
    CHECK_INT(take(o, "../out/c", 4, &err), PEN_E_CORRUPT);
    CHECK_INT(take(o, "link", 4, &err), PEN_E_CORRUPT);
    CHECK_INT(take(o, "dir/b", 4, &err), PEN_E_CORRUPT);
    CHECK_INT(take(o, "fifo", 0, &err), PEN_E_CORRUPT);
    CHECK_INT(take(o, "a", 4096, &err), PEN_E_CORRUPT);
    CHECK_INT(take(o, "a/b/c", 4, &err), PEN_E_CORRUPT);
    CHECK_INT(take(o, "none", 4, &err), PEN_E_CORRUPT);
    CHECK_INT(take(o, inside, 4, &err), PEN_E_INVALID);
    CHECK_INT(take(o, outside, 4, &err), PEN_E_INVALID);
    set(o, at("out"), NULL, NULL);
    CHECK_INT(take(o, outside, 4, &err), PEN_OK);
    CHECK_INT(take(o, inside, 4, &err), PEN_E_INVALID);
    CHECK_INT(take(o, "a/b", 4, &err), PEN_OK);
    set(o, "/", NULL, NULL);
    CHECK_INT(take(o, outside, 4, &err), PEN_OK);
    CHECK_INT(take(o, inside, 4, &err), PEN_OK);
    CHECK_INT(take(o, "/etc", 0, &err), PEN_E_CORRUPT);
    set(o, NULL, "/old/place", at("out"));
    CHECK_INT(take(o, "/old/place/c", 4, &err), PEN_OK);
    CHECK_INT(take(o, "/old/placec", 4, &err), PEN_E_INVALID);
    CHECK_INT(take(o, "s3://bucket/dir/c", 4, &err), PEN_E_INVALID);
    CHECK(strstr(err.message, "roots=[\"s3://bucket/dir\"]"));
    set(o, NULL, "s3://bucket/dir", at("out"));
    CHECK_INT(take(o, "s3://bucket/dir/c", 4, &err), PEN_OK);
    CHECK_INT(take(o, "s3://bucket/c", 4, &err), PEN_E_INVALID);
    set(o, NULL, at("in/a"), at("out"));
    CHECK_INT(take(o, "a/c", 4, &err), PEN_OK);
    pen__outside_close(&o);
    help_end();
}

/* Files stay those below the directory that held the pack when it was opened. */
TEST(the_directory_is_held)
{
    PenOutside *o = NULL;
    PenError err = {0};
    char pack[300], out[300];
    help_begin();
    help_text("in/p.pen/manifest", "");
    help_text("in/a/b", "four");
    help_text("out/x/manifest", "");
    help_text("out/c", "four");
    help_text("root/d", "four");
    snprintf(pack, sizeof pack, "%s", at("in/p.pen"));
    snprintf(out, sizeof out, "%s", at("root/d"));
    CHECK_INT(chdir(help_root), 0);
    CHECK_INT(pen__outside_new("in/p.pen", NULL, &o, &err), PEN_OK);
    set(o, "root", NULL, NULL);
    CHECK_INT(chdir("/"), 0);
    CHECK_INT(take(o, "a/b", 4, &err), PEN_OK);
    /* A link in place of the pack does not make another directory the one that holds it. */
    CHECK_INT(rename(pack, at("in/moved")), 0);
    CHECK_INT(symlink("../out/x", pack), 0);
    CHECK_INT(take(o, "c", 4, &err), PEN_E_CORRUPT);
    CHECK_INT(take(o, "a/b", 4, &err), PEN_OK);
    /* Nor does another directory in its place, or in that of one that was named. */
    snprintf(pack, sizeof pack, "%s", at("in"));
    CHECK_INT(rename(pack, at("in2")), 0);
    CHECK_INT(symlink("out", pack), 0);
    CHECK_INT(take(o, "c", 4, &err), PEN_E_CORRUPT);
    CHECK_INT(take(o, "a/b", 4, &err), PEN_OK);
    snprintf(pack, sizeof pack, "%s", at("root"));
    CHECK_INT(rename(pack, at("root2")), 0);
    CHECK_INT(take(o, out, 4, &err), PEN_OK);
    pen__outside_close(&o);
    help_end();
}

TEST(the_manifest_marks_the_directory)
{
    PenOutside *o = NULL;
    PenError err = {0};
    PenOutsideMark mark = {.name = "manifest", .bytes = 4};
    uint8_t hash[32];
    help_begin();
    help_text("in/p.pen/manifest", "four");
    pen__sha256("four", 4, hash);
    memcpy(mark.id, hash, sizeof mark.id);
    CHECK_INT(pen__outside_new(at("in/p.pen"), &mark, &o, &err), PEN_OK);
    pen__outside_close(&o);
    help_text("in/p.pen/manifest", "five");
    CHECK_INT(pen__outside_new(at("in/p.pen"), &mark, &o, &err), PEN_E_CHANGED);
    help_text("in/p.pen/manifest", "fours");
    CHECK_INT(pen__outside_new(at("in/p.pen"), &mark, &o, &err), PEN_E_CHANGED);
    CHECK_INT(unlink(at("in/p.pen/manifest")), 0);
    CHECK_INT(pen__outside_new(at("in/p.pen"), &mark, &o, &err), PEN_E_CHANGED);
    CHECK(strstr(err.message, "open it again"));
    help_end();
}

/* At the limit of the process, a file that nobody uses is closed for the next. */
TEST(idle_files_make_space)
{
    PenOutside *o = NULL;
    PenError err = {0};
    struct rlimit before, low;
    char name[16];
    help_begin();
    help_text("p.pen/manifest", "");
    for (int i = 0; i < 20; i++) {
        snprintf(name, sizeof name, "d/%d", i);
        help_text(name, "four");
    }
    CHECK_INT(pen__outside_new(at("p.pen"), NULL, &o, &err), PEN_OK);
    int free_fds[4];
    for (size_t i = 0; i < PEN_LEN(free_fds); i++)
        free_fds[i] = dup(0);
    for (size_t i = 0; i < PEN_LEN(free_fds); i++)
        close(free_fds[i]);
    CHECK_INT(getrlimit(RLIMIT_NOFILE, &before), 0);
    low = before;
    low.rlim_cur = (rlim_t)free_fds[3] + 1;
    CHECK_INT(setrlimit(RLIMIT_NOFILE, &low), 0);
    for (int i = 0; i < 40; i++) {
        snprintf(name, sizeof name, "d/%d", i % 20);
        CHECK_INT(take(o, name, 4, &err), PEN_OK);
    }
    low.rlim_cur = (rlim_t)free_fds[0];
    CHECK_INT(setrlimit(RLIMIT_NOFILE, &low), 0);
    CHECK_INT(take(o, "d/0", 4, &err), PEN_E_IO);
    CHECK_INT(setrlimit(RLIMIT_NOFILE, &before), 0);
    CHECK_INT(take(o, "d/0", 4, &err), PEN_OK);
    pen__outside_close(&o);
    help_end();
}

enum { MANY_FILES = 150 };

/* The file that has its own number as text, of one of three owners. */
static int read_number(PenOutside *o, const uint64_t *owners, uint32_t i, PenError *err)
{
    char path[16], data[4] = "", wanted[16];
    int bytes = snprintf(path, sizeof path, "d/%03u", i);
    PenOutsideFile file = {owners[i % 3], i / 3, (uint32_t)bytes, path, 3};
    struct iovec v = {data, 3};
    int r = pen__outside_read(o, &file, &v, 1, 0, NULL, err);
    snprintf(wanted, sizeof wanted, "%03u", i);
    return r < 0 ? r : strcmp(data, wanted) != 0;
}

typedef struct Numbers {
    PenOutside *o;
    uint64_t owners[3];
    atomic_int wrong;
} Numbers;

static void read_numbers(void *ctx, unsigned number)
{
    Numbers *n = ctx;
    PenRng rng = pen__rng_init(number, 0);
    for (int i = 0; i < 4 * MANY_FILES; i++) {
        uint32_t which = (uint32_t)pen__rng_below(&rng, MANY_FILES);
        n->wrong += read_number(n->o, n->owners, which, NULL) != 0;
    }
}

/* More files than stay open, of several shards, read by several threads: each has its own bytes,
 * and one that is open is found without its path. */
TEST(many_files)
{
    Numbers n = {.o = NULL};
    PenError err = {0};
    help_begin();
    help_text("p.pen/manifest", "");
    for (int i = 0; i < MANY_FILES; i++) {
        char name[16], text[16];
        snprintf(name, sizeof name, "d/%03d", i);
        snprintf(text, sizeof text, "%03d", i);
        help_text(name, text);
    }
    CHECK_INT(pen__outside_new(at("p.pen"), NULL, &n.o, &err), PEN_OK);
    for (int i = 0; i < 3; i++)
        n.owners[i] = pen__outside_owner(n.o);
    PenTeamWork work = {.name = "read", .run = read_numbers, .ctx = &n};
    CHECK_INT(pen__team_run(&work, THREADS, &err), PEN_OK);
    CHECK_INT(n.wrong, 0);
    CHECK_INT(read_number(n.o, n.owners, 0, &err), 0);
    CHECK_INT(unlink(at("d/000")), 0);
    CHECK_INT(read_number(n.o, n.owners, 0, &err), 0);
    pen__outside_forget(n.o, n.owners[0]);
    CHECK_INT(read_number(n.o, n.owners, 0, &err), PEN_E_CORRUPT);
    CHECK_INT(read_number(n.o, n.owners, 1, &err), 0);
    pen__outside_close(&n.o);
    help_end();
}

/* ---- the map --------------------------------------------------------------------------------- */

static const uint8_t id[PEN_ID_BYTES] = "0123456789abcdef";

/* A shard of 1,000 bytes; 100 of them at 200 and 50 at 400 are those of a file. */
static void make_map_of(const PenMappedFile *given, PenBuf *out, uint64_t source,
                        uint64_t file_bytes)
{
    PenMapBuild b = {0};
    uint32_t file = 7, again = 7;
    PenMappedFile f = *given;
    f.bytes = file_bytes;
    CHECK_INT(pen__map_add_file(&b, &f, &file, NULL), PEN_OK);
    CHECK_INT(pen__map_add_file(&b, &f, &again, NULL), PEN_OK);
    CHECK_INT(file, 0);
    CHECK_INT(again, 0);
    CHECK_INT(pen__map_add_extent(&b, file, source, 200, 100), PEN_OK);
    CHECK_INT(pen__map_add_extent(&b, file, 0, 400, 50), PEN_OK);
    out->bytes = 0;
    CHECK_INT(pen__buf_reserve(out, 850), PEN_OK);
    memset(out->data, 1, 850);
    out->bytes = 850;
    CHECK_INT(pen__map_write(&b, id, 1000, out), PEN_OK);
    pen__map_build_free(&b);
}

static void make_map(PenBuf *out, uint64_t source, uint64_t file_bytes)
{
    PenMappedFile f = {.mtime_ns = -1, .path = "dir/x", .path_bytes = 5};
    make_map_of(&f, out, source, file_bytes);
}

static int read_map(const PenBuf *file, PenMap *ret)
{
    PenError err = {0};
    PenSource *source = NULL;
    int r = pen__source_open_memory("map", file->data, file->bytes, &source, NULL);
    if (r == PEN_OK)
        r = pen__map_read(source, id, ret, &err);
    pen__source_close(&source);
    return r;
}

TEST(map_round_trip)
{
    PenBuf file = {0};
    PenMap m = {0};
    make_map(&file, 0, 100);
    CHECK_INT(read_map(&file, &m), PEN_OK);
    CHECK_INT(m.n_extents, 2);
    CHECK_INT(m.stored_bytes, 850);
    CHECK_INT(pen__map_extent(&m, 1).skipped, 100);
    CHECK_INT(pen__map_find(&m, 0), 0);
    CHECK_INT(pen__map_find(&m, 299), 0);
    CHECK_INT(pen__map_find(&m, 300), 1);
    CHECK_INT(pen__map_find(&m, 450), 2);
    CHECK_INT(pen__map_file(&m, 0).mtime_ns, -1);
    pen__map_free(&m);
    make_map(&file, 1, 100); /* ends behind the file */
    CHECK_INT(read_map(&file, &m), PEN_E_CORRUPT);
    pen__buf_free(&file);
}

TEST(objects_have_etags)
{
    char long_etag[PEN_MAX_ETAG + 1];
    PenBuf file = {0};
    PenMap m = {0};
    PenMappedFile f = {.path = "s3://b/k", .path_bytes = 8, .etag = "\"abc\"", .etag_bytes = 5};
    make_map_of(&f, &file, 0, 100);
    CHECK_INT(read_map(&file, &m), PEN_OK);
    PenMappedFile found = pen__map_file(&m, 0);
    CHECK_INT(found.path_bytes, 8);
    CHECK_INT(found.etag_bytes, 5);
    CHECK(memcmp(found.path, "s3://b/k\"abc\"", 13) == 0 && found.etag == found.path + 8);
    pen__map_free(&m);
    f.etag = "a\nb";
    f.etag_bytes = 3;
    make_map_of(&f, &file, 0, 100);
    CHECK_INT(read_map(&file, &m), PEN_E_CORRUPT);
    memset(long_etag, 'a', sizeof long_etag);
    f.etag = long_etag;
    f.etag_bytes = sizeof long_etag;
    make_map_of(&f, &file, 0, 100);
    CHECK_INT(read_map(&file, &m), PEN_E_CORRUPT);
    f = (PenMappedFile){.path = "dir/x", .path_bytes = 5, .etag = "\"a\"", .etag_bytes = 3};
    make_map_of(&f, &file, 0, 100); /* a file has none */
    CHECK_INT(read_map(&file, &m), PEN_E_CORRUPT);
    pen__buf_free(&file);
}

TEST(every_byte_of_a_map_counts)
{
    PenBuf file = {0};
    PenMap m = {0};
    make_map(&file, 0, 100);
    for (size_t i = 850; i < file.bytes; i++) {
        file.data[i] ^= 1u << i % 8;
        CHECK(read_map(&file, &m) < 0);
        file.data[i] ^= 1u << i % 8;
    }
    for (size_t n = 0; n < file.bytes; n++) {
        PenBuf cut = {.data = file.data, .bytes = n};
        CHECK(read_map(&cut, &m) < 0);
    }
    pen__buf_free(&file);
}

int main(int argc, char **argv)
{
    TEST_START(argc, argv);
    RUN(threads_share_files);
    RUN(every_call_may_fail);
    RUN(copy_is_an_ordinary_pack);
    RUN(a_file_changes_while_it_is_indexed);
    RUN(ranges);
    RUN(maps_are_read_once);
    RUN(directories_are_named_first);
    RUN(paths);
    RUN(files_below_roots_alone);
    RUN(the_directory_is_held);
    RUN(the_manifest_marks_the_directory);
    RUN(idle_files_make_space);
    RUN(many_files);
    RUN(map_round_trip);
    RUN(objects_have_etags);
    RUN(every_byte_of_a_map_counts);
    return TEST_END();
}
