/* SPDX-License-Identifier: Apache-2.0 */
/* Directories that somebody else prepared: what is written or removed stays inside. */
#include "io/inner.h"

#include <ftw.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "test.h"

#include "base/mem.h"
#include "base/sys.h"
#include "io/dir.h"
#include "io/sink.h"
#include "io/source.h"
#include "manage/work.h"

static char top[64];

static char *at(const char *name)
{
    static char paths[8][256];
    static int turn;
    char *path = paths[turn++ & 7];
    snprintf(path, sizeof paths[0], "%s/%s", top, name);
    return path;
}

static void put(const char *name, const char *text)
{
    FILE *f = fopen(at(name), "w");
    CHECK(f && fputs(text, f) >= 0 && fclose(f) == 0);
}

static const char *text_of(const char *name)
{
    static char text[64];
    FILE *f = fopen(at(name), "r");
    size_t n = f ? fread(text, 1, sizeof text - 1, f) : 0;
    text[n] = 0;
    if (f)
        fclose(f);
    return f ? text : "(not there)";
}

static bool is_there(const char *name)
{
    struct stat st;
    return lstat(at(name), &st) == 0;
}

TEST(how_much_of_a_path_names_the_pack)
{
    CHECK_INT(pen__inner_root("a/b.pen/.work/plan"), 8);
    CHECK_INT(pen__inner_root("a/b.pen/.work"), 8);
    CHECK_INT(pen__inner_root("/x/.work/b.pen/.work/run/bad"), 15);
    CHECK_INT(pen__inner_root("a/.worker/plan"), 10);
    CHECK_INT(pen__inner_root("a/b"), 2);
    CHECK_INT(pen__inner_root("b"), 0);
    CHECK_INT(pen__inner_root("/b"), 1);
    CHECK_INT(pen__inner_parent("a/.work/b.pen/"), 8);
}

TEST(a_part_file_is_never_written_through)
{
    PenError err = {0};
    mkdir(at("p"), 0777);
    mkdir(at("p/.work"), 0777);
    put("victim", "keep");
    CHECK_INT(symlink(at("victim"), at("p/.work/plan.part")), 0);
    CHECK_INT(pen__file_store(at("p/.work/plan.part"), at("p/.work/plan"), "new", 3, &err), PEN_OK);
    CHECK_STR(text_of("victim"), "keep");
    CHECK_STR(text_of("p/.work/plan"), "new");
    CHECK_INT(link(at("victim"), at("p/.work/plan.part")), 0);
    CHECK_INT(pen__file_store(at("p/.work/plan.part"), at("p/.work/plan"), "now", 3, &err), PEN_OK);
    CHECK_STR(text_of("victim"), "keep");
    CHECK_INT(mkfifo(at("p/.work/plan.part"), 0666), 0);
    CHECK_INT(pen__file_store(at("p/.work/plan.part"), at("p/.work/plan"), "nee", 3, &err), PEN_OK);
    CHECK_STR(text_of("p/.work/plan"), "nee");
    mkdir(at("p/.work/plan.part"), 0777);
    CHECK_INT(pen__file_store(at("p/.work/plan.part"), at("p/.work/plan"), "x", 1, &err), PEN_E_IO);
    CHECK(strstr(err.message, "plan.part"));
    rmdir(at("p/.work/plan.part"));
}

TEST(folders_that_are_links_are_refused)
{
    PenError err = {0};
    mkdir(at("q"), 0777);
    mkdir(at("out"), 0777);
    put("out/plan", "keep");
    CHECK_INT(symlink(at("out"), at("q/.work")), 0);
    CHECK_INT(pen__work_make(at("q"), &err), PEN_E_EXISTS);
    CHECK(strstr(err.message, "q/.work: expected a directory, found a symbolic link"));
    CHECK_INT(pen__file_store(at("q/.work/a.part"), at("q/.work/a"), "x", 1, &err), PEN_E_EXISTS);
    CHECK_INT(pen__file_remove(at("q/.work/plan"), &err), PEN_E_EXISTS);
    CHECK_INT(pen__dir_remove(at("q/.work/plan"), &err), PEN_E_EXISTS);
    CHECK_INT(pen__work_remove(at("q"), NULL, NULL, &err), PEN_E_EXISTS);
    PenLock lock = PEN_LOCK_NONE;
    CHECK_INT(pen__inner_lock(at("q/.work"), &lock, &err), PEN_E_EXISTS);
    CHECK_STR(text_of("out/plan"), "keep");
    CHECK(!is_there("out/a") && !is_there("out/a.part"));
    CHECK_INT(unlink(at("q/.work")), 0);
    CHECK_INT(mkfifo(at("q/.work"), 0666), 0);
    CHECK_INT(pen__work_make(at("q"), &err), PEN_E_EXISTS);
    CHECK(strstr(err.message, "found a FIFO"));
}

/* The directory itself may be reached by a link. */
TEST(the_pack_may_be_named_by_a_link)
{
    PenError err = {0};
    mkdir(at("real"), 0777);
    CHECK_INT(symlink("real", at("by-link")), 0);
    CHECK_INT(pen__work_make(at("by-link"), &err), PEN_OK);
    CHECK_INT(pen__file_store(at("by-link/.work/a.part"), at("by-link/.work/a"), "x", 1, &err),
              PEN_OK);
    CHECK_STR(text_of("real/.work/a"), "x");
    CHECK_INT(pen__file_remove(at("by-link/.work/a"), &err), PEN_OK);
    CHECK_INT(pen__work_remove(at("by-link"), NULL, NULL, &err), PEN_OK);
    CHECK(!is_there("real/.work"));
    CHECK_INT(pen__work_remove(at("by-link"), NULL, NULL, &err), PEN_OK); /* is not there */
}

TEST(links_in_it_are_removed_not_followed)
{
    PenError err = {0};
    uint64_t files = 0, bytes = 0;
    mkdir(at("r"), 0777);
    mkdir(at("r/.work"), 0777);
    mkdir(at("r/.work/task-1-of-2"), 0777);
    put("r/.work/plan", "12345");
    CHECK_INT(symlink(at("out"), at("r/.work/task-0-of-2")), 0);
    CHECK_INT(symlink(at("out"), at("r/.work/task-1-of-2/deep")), 0);
    CHECK_INT(pen__work_remove(at("r"), &files, &bytes, &err), PEN_OK);
    CHECK(!is_there("r/.work"));
    CHECK_INT(files, 3);
    CHECK_STR(text_of("out/plan"), "keep");
}

TEST(what_is_no_file_is_not_waited_for)
{
    PenError err = {0};
    PenSource *source = NULL;
    CHECK_INT(mkfifo(at("fifo"), 0666), 0);
    CHECK_INT(pen__source_open_file(at("fifo"), &source, &err), PEN_E_INVALID);
    CHECK(strstr(err.message, "expected a file, found a FIFO"));
    CHECK_INT(pen__source_open_file("/dev/zero", &source, &err), PEN_E_INVALID);
    CHECK(strstr(err.message, "found a device"));
    CHECK_INT(pen__source_open_file(top, &source, &err), PEN_E_INVALID);
    CHECK(strstr(err.message, "found a directory"));
}

static int remove_one(const char *path, const struct stat *st, int kind, struct FTW *where)
{
    (void)st;
    (void)kind;
    (void)where;
    return remove(path);
}

int main(int argc, char **argv)
{
    TEST_START(argc, argv);
    const char *tmp = getenv("TMPDIR");
    snprintf(top, sizeof top, "%.40s/pen-inner-XXXXXX", tmp ? tmp : "/tmp");
    if (!mkdtemp(top))
        return 1;
    RUN(how_much_of_a_path_names_the_pack);
    RUN(a_part_file_is_never_written_through);
    RUN(folders_that_are_links_are_refused);
    RUN(the_pack_may_be_named_by_a_link);
    RUN(links_in_it_are_removed_not_followed);
    RUN(what_is_no_file_is_not_waited_for);
    nftw(top, remove_one, 16, FTW_DEPTH | FTW_PHYS);
    return TEST_END();
}
