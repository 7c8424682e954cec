/* SPDX-License-Identifier: Apache-2.0 */
#include "fault_sweep.h"
#include "ingest_help.h"

static int scan(const char *const *sources, uint32_t n, PenInputs *in, PenError *err)
{
    static PenIngestSettings settings;
    settings = help_settings(sources, n);
    *in = (PenInputs){.settings = &settings};
    return pen__scan_sources(in, err);
}

static int scan_one(const char *source, PenInputs *in, PenError *err)
{
    const char *path = at(source);
    return scan(&path, 1, in, err);
}

#define CHECK_KEY(in, i, text)                                                                     \
    do {                                                                                           \
        PenInput input;                                                                            \
        pen__inputs_get(in, i, &input);                                                            \
        CHECK_INT(input.key_bytes, strlen(text));                                                  \
        CHECK_MEM(input.key, text, strlen(text));                                                  \
    } while (0)

#define CHECK_LABEL(in, i, text) CHECK_STR((in)->labels.names[(in)->items[i].label], text)

TEST(sorted_by_path_with_classes)
{
    /* "b-x" sorts before "b/": the order is that of whole paths, not of names level by level. */
    help_text("f/b/2.jpg", "22");
    help_text("f/b/1.jpg", "1");
    help_text("f/b-x/9.jpg", "999");
    help_text("f/a/deep/er/3.png", "333");
    help_text("f/a/Z.JPEG", "");
    help_text("f/.hidden/4.jpg", "x");
    help_text("f/a/.DS_Store", "x");
    PenInputs in;
    CHECK_GOES(scan_one("f", &in, &err));
    CHECK_INT(in.n, 5);
    CHECK_KEY(&in, 0, "a/Z.JPEG");
    CHECK_KEY(&in, 1, "a/deep/er/3.png");
    CHECK_KEY(&in, 2, "b-x/9.jpg");
    CHECK_KEY(&in, 3, "b/1.jpg");
    CHECK_KEY(&in, 4, "b/2.jpg");
    CHECK_LABEL(&in, 1, "a");
    CHECK_LABEL(&in, 2, "b-x");
    CHECK_LABEL(&in, 4, "b");
    CHECK_INT(in.n_columns, 1);
    CHECK_STR(in.columns[0].name, "image");
    PenInput input;
    PenCell cell;
    pen__inputs_get(&in, 2, &input);
    CHECK_INT(input.n_cells, 1);
    pen__cell_next(&input.cells, &cell);
    CHECK_INT(cell.kind, PEN_PART_FILE);
    CHECK_INT(cell.path, PEN_PATH_KEY);
    CHECK_INT(cell.bytes, 3);
    char name[256];
    PenInput named;
    pen__inputs_get(&in, 2, &named);
    pen__input_name(&in, &named, name, sizeof name);
    CHECK_STR(name, at("f/b-x/9.jpg"));
    pen__inputs_free(&in);
}

TEST(flat_has_no_labels)
{
    help_text("flat/2.jpg", "2");
    help_text("flat/1.jpg", "1");
    mkdir(at("flat/empty"), 0777);
    PenInputs in;
    CHECK_GOES(scan_one("flat", &in, &err));
    CHECK_INT(in.n, 2);
    CHECK_INT(in.has_label, false);
    CHECK_KEY(&in, 0, "1.jpg");
    pen__inputs_free(&in);
}

TEST(mixed_depths_are_refused)
{
    help_text("mixed/a/1.jpg", "1");
    help_text("mixed/2.jpg", "2");
    PenInputs in;
    CHECK_FAILS(scan_one("mixed", &in, &err), PEN_E_INVALID, "mixed/2.jpg and ");
    pen__inputs_free(&in);
    help_text("one/a/1.jpg", "1");
    help_text("two/2.jpg", "1");
    const char *both[] = {at("one"), at("two")};
    CHECK_FAILS(scan(both, 2, &in, &err), PEN_E_INVALID, "one/a/1.jpg");
    pen__inputs_free(&in);
    const char *turned[] = {at("two"), at("one")};
    CHECK_FAILS(scan(turned, 2, &in, &err), PEN_E_INVALID, "two/2.jpg and ");
    pen__inputs_free(&in);
}

TEST(several_roots)
{
    help_text("r1/a/1.jpg", "1");
    help_text("r2/a/0.jpg", "1");
    help_text("r2/b/1.jpg", "1");
    const char *roots[] = {at("r1"), at("r2")};
    PenInputs in;
    CHECK_GOES(scan(roots, 2, &in, &err));
    CHECK_INT(in.n, 3);
    CHECK_INT(in.n_roots, 2);
    CHECK_KEY(&in, 0, "a/1.jpg"); /* root by root, as they were given */
    CHECK_KEY(&in, 1, "a/0.jpg");
    CHECK_INT(in.labels.n, 2);
    pen__inputs_free(&in);
}

TEST(links)
{
    help_text("l/a/1.jpg", "12345");
    CHECK_INT(symlink("1.jpg", at("l/a/2.jpg")), 0);
    CHECK_INT(symlink("a", at("l/b")), 0);
    PenInputs in;
    CHECK_GOES(scan_one("l", &in, &err));
    CHECK_INT(in.n, 4);
    CHECK_KEY(&in, 3, "b/2.jpg");
    pen__inputs_free(&in);
    CHECK_INT(symlink("..", at("l/a/up")), 0);
    CHECK_FAILS(scan_one("l", &in, &err), PEN_E_LIMIT,
                "check for a symbolic link to a parent folder");
    pen__inputs_free(&in);
    CHECK_INT(unlink(at("l/a/up")), 0);
    CHECK_INT(symlink(".", at("l/a/self")), 0); /* here the kernel gives up first */
    CHECK_FAILS(scan_one("l", &in, &err), PEN_E_LIMIT,
                "check for a symbolic link to a parent folder");
    pen__inputs_free(&in);
    CHECK_INT(unlink(at("l/a/self")), 0);
    CHECK_INT(symlink("nowhere", at("l/a/broken.jpg")), 0);
    CHECK_FAILS(scan_one("l", &in, &err), PEN_E_NOT_FOUND,
                "l/a/broken.jpg: expected a file, found a symbolic link to nothing");
    pen__inputs_free(&in);
}

TEST(depth)
{
    char path[600] = "deep";
    for (int i = 0; i < 64; i++)
        help_add(path, sizeof path, "/d");
    size_t end = strlen(path);
    help_add(path, sizeof path, "/1.jpg");
    help_text(path, "1");
    PenInputs in;
    CHECK_GOES(scan_one("deep", &in, &err));
    CHECK_INT(in.n, 1);
    pen__inputs_free(&in);
    path[end] = 0;
    help_add(path, sizeof path, "/d/1.jpg");
    help_text(path, "1");
    CHECK_FAILS(scan_one("deep", &in, &err), PEN_E_LIMIT, "at most 64 nested folders");
    pen__inputs_free(&in);
}

TEST(other_files_are_passed_over)
{
    help_text("odd/a/1.jpg", "1");
    CHECK_INT(mkfifo(at("odd/a/pipe"), 0600), 0);
    PenInputs in;
    CHECK_GOES(scan_one("odd", &in, &err));
    CHECK_INT(in.n, 1);
    pen__inputs_free(&in);
}

/* The pack may be made inside the folder that is packed. */
TEST(packs_are_passed_over)
{
    help_text("home/a/1.jpg", "1");
    help_text("home/out.pen/manifest", "m");
    help_text("home/out.pen/3f/3f00.shard", "s");
    help_text("home/new.pen/.work/plan", "p");
    help_text("home/new.pen/3f/3f00.shard", "s");
    help_text("home/class.pen/2.jpg", "2"); /* only its name is like that */
    PenInputs in;
    CHECK_GOES(scan_one("home", &in, &err));
    CHECK_INT(in.n, 2);
    CHECK_KEY(&in, 1, "class.pen/2.jpg");
    pen__inputs_free(&in);
}

TEST(sources_that_are_none)
{
    help_text("x.bin", "1");
    help_text("kinds/a/1.jpg", "1");
    help_text("kinds.csv", "path\nkinds/a/1.jpg\n");
    mkdir(at("empty"), 0777);
    PenInputs in;
    CHECK_FAILS(scan_one("missing", &in, &err), PEN_E_NOT_FOUND,
                "missing: cannot open this source");
    pen__inputs_free(&in);
    CHECK_FAILS(scan_one("x.bin", &in, &err), PEN_E_INVALID, "expected a folder, a .csv");
    pen__inputs_free(&in);
    CHECK_FAILS(scan_one("empty", &in, &err), PEN_E_NOT_FOUND, "found none");
    pen__inputs_free(&in);
    const char *mixed[] = {at("kinds"), at("kinds.csv")};
    CHECK_FAILS(scan(mixed, 2, &in, &err), PEN_E_INVALID, "found a folder (");
    pen__inputs_free(&in);
    const char *nothing = "";
    CHECK_FAILS(scan(&nothing, 1, &in, &err), PEN_E_INVALID, "empty");
    pen__inputs_free(&in);
}

TEST(braces_in_a_name_that_exists)
{
    help_text("set{1,2}/a/1.jpg", "1");
    help_text("set1/a/2.jpg", "1");
    help_text("set2/a/3.jpg", "1");
    const char *sources[] = {at("set{1,2}"), at("set{1..2}")};
    PenInputs in;
    CHECK_GOES(scan(sources, 2, &in, &err));
    CHECK_INT(in.n, 3);
    CHECK_KEY(&in, 0, "a/1.jpg");
    CHECK_KEY(&in, 2, "a/3.jpg");
    pen__inputs_free(&in);
}

static int stop_at(void *ctx, const PenIngestProgress *p)
{
    uint64_t *seen = ctx;
    *seen = p->done;
    return strcmp(p->stage, "list") == 0 && p->done >= 2048;
}

TEST(progress_and_cancel)
{
    for (int i = 0; i < 2100; i++) {
        char name[64];
        snprintf(name, sizeof name, "many/c%d/%d.jpg", i % 3, i);
        help_text(name, "");
        CHECK_OK_SO_FAR();
    }
    const char *path = at("many");
    uint64_t seen = 0;
    PenIngestSettings settings = help_settings(&path, 1);
    settings.progress = stop_at;
    settings.ctx = &seen;
    PenInputs in = {.settings = &settings};
    CHECK_FAILS(pen__scan_sources(&in, &err), PEN_E_CANCELLED, "2048 inputs");
    CHECK_INT(seen, 2048);
    pen__inputs_free(&in);
}

static int sweep_body(PenError *err)
{
    PenInputs in;
    int r = scan_one("swept", &in, err);
    pen__inputs_free(&in);
    return r;
}

TEST(every_call_fails)
{
    help_text("swept/a/1.jpg", "1");
    help_text("swept/b/c/2.jpg", "2");
    help_text("swept/b/d.pen/.work/x", "2");
    int points = 0;
    fault_sweep(sweep_body, &points);
    CHECK_OK_SO_FAR();
    CHECK(points > 60);
}

int main(int argc, char **argv)
{
    TEST_START(argc, argv);
    help_begin();
    RUN(sorted_by_path_with_classes);
    RUN(flat_has_no_labels);
    RUN(mixed_depths_are_refused);
    RUN(several_roots);
    RUN(links);
    RUN(depth);
    RUN(other_files_are_passed_over);
    RUN(packs_are_passed_over);
    RUN(sources_that_are_none);
    RUN(braces_in_a_name_that_exists);
    RUN(progress_and_cancel);
    RUN(every_call_fails);
    help_end();
    return TEST_END();
}
