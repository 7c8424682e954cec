/* SPDX-License-Identifier: Apache-2.0 */
#include "ingest_plan_help.h"

/* ---- lists ----------------------------------------------------------------------------------- */

TEST(values_of_a_list)
{
    help_text("l.csv", "path,label,mask,count,zoom,note\n"
                       "f/cat/1.jpg,cat,f/eel/9.png,-7,1.5,hello\n"
                       "f/dog/1.jpg,ant,,9223372036854775807,-0.25,\n");
    ask("l.csv");
    settings.order = PEN_PACK_SOURCE;
    PenPlan *plan = NULL;
    PenPartReader *reader = NULL;
    PenBuf scratch = {0}, data = {0};
    PenItem item;
    CHECK_GOES(make_open(&plan, &err));
    CHECK_GOES(pen__part_reader_open(plan, &reader, &err));
    CHECK_INT(pen__plan_info(plan)->n_fields, 6); /* image label count mask note zoom */
    CHECK_GOES(pen__plan_item(plan, 0, &item, &scratch, &err));
    CHECK(help_is(item.key, item.key_bytes, "f/cat/1.jpg"));
    CHECK_INT(number(&item.parts[1]), 1);
    CHECK_INT(number(&item.parts[2]), -7);
    CHECK_STR(item.parts[3].path, "f/eel/9.png");
    CHECK_GOES(pen__part_read(reader, &item.parts[3], &data, NULL, &err));
    CHECK(help_is(data.data, data.bytes, "eel/9.png"));
    CHECK_GOES(pen__part_read(reader, &item.parts[4], &data, NULL, &err));
    CHECK(help_is(data.data, data.bytes, "hello"));
    CHECK_GOES(pen__plan_item(plan, 1, &item, &scratch, &err));
    CHECK_INT(number(&item.parts[1]), 0);
    CHECK(number(&item.parts[2]) == INT64_MAX);
    CHECK_INT(item.parts[3].kind, PEN_PART_NONE);
    CHECK_GOES(pen__part_read(reader, &item.parts[3], &data, NULL, &err));
    CHECK_INT(data.bytes, 0);
    CHECK_INT(item.parts[4].kind, PEN_PART_INLINE);
    CHECK_INT(item.parts[4].bytes, 0);
    double zoom;
    memcpy(&zoom, item.parts[5].data, 8);
    CHECK(zoom == -0.25);
    pen__buf_free(&scratch);
    pen__buf_free(&data);
    pen__part_reader_close(&reader);
    pen__plan_close(&plan);
}

/* ---- tars ------------------------------------------------------------------------------------ */

/* Item of make_tar at a position: fields image, label, bin, text. */
static void check_tar_item(const PenPlan *plan, PenPartReader *reader, uint64_t position)
{
    static const char *const suffixes[] = {"jpg", NULL, "bin", "txt"};
    PenBuf scratch = {0}, data = {0};
    PenItem item;
    CHECK_GOES(pen__plan_item(plan, position, &item, &scratch, &err));
    int i = (int)strtol((const char *)item.key + 2, NULL, 10);
    CHECK_INT(number(&item.parts[1]), i % 3);
    for (uint32_t k = 0; k < 4; k++) {
        char text[4000], path[64];
        if (!suffixes[k])
            continue;
        size_t bytes = member_text(i, suffixes[k], text);
        snprintf(path, sizeof path, "d/%04d.%s", i, suffixes[k]);
        CHECK_STR(item.parts[k].path, path);
        uint64_t disk = UINT64_MAX;
        CHECK_GOES(pen__part_read(reader, &item.parts[k], &data, &disk, &err));
        CHECK_INT(data.bytes, bytes);
        CHECK_MEM(data.data, text, bytes);
        CHECK_INT(data.data[bytes + PEN_SLACK - 1], 0);
        CHECK(disk < (1 << 20));
    }
    pen__buf_free(&scratch);
    pen__buf_free(&data);
}

TEST(tars_in_shuffled_order)
{
    make_tar("t-000.tar", 0, 40, NULL);
    make_tar("t-001.tar", 40, 60, NULL);
    ask("t-{000..001}.tar");
    PenPlan *plan = NULL;
    PenPartReader *reader = NULL;
    CHECK_GOES(make_open(&plan, &err));
    CHECK_INT(pen__plan_info(plan)->n_items, 100);
    CHECK_INT(pen__plan_info(plan)->in_order, 0);
    CHECK_INT(pen__plan_info(plan)->class_field, -1);
    CHECK_GOES(pen__part_reader_open(plan, &reader, &err));
    for (uint64_t i = 0; i < 100; i++) {
        check_tar_item(plan, reader, i);
        CHECK_OK_SO_FAR();
    }
    PenBuf scratch = {0};
    PenItem item;
    char name[300], expected[300];
    CHECK_GOES(pen__plan_item(plan, 0, &item, &scratch, &err));
    pen__part_name(plan, &item.parts[0], name, sizeof name);
    snprintf(expected, sizeof expected, "%s: %s",
             at(item.parts[0].source ? "t-001.tar" : "t-000.tar"), item.parts[0].path);
    CHECK_STR(name, expected);
    pen__buf_free(&scratch);
    pen__part_reader_close(&reader);
    pen__plan_close(&plan);
}

TEST(more_tars_than_are_kept_open)
{
    char name[64];
    for (int i = 0; i < 70; i++) {
        snprintf(name, sizeof name, "many-%02d.tar", i);
        make_tar(name, i * 2, 2, NULL);
        CHECK_OK_SO_FAR();
    }
    ask("many-{00..69}.tar");
    PenPlan *plan = NULL;
    PenPartReader *reader = NULL;
    CHECK_GOES(make_open(&plan, &err));
    CHECK_GOES(pen__part_reader_open(plan, &reader, &err));
    for (uint64_t i = 0; i < 140; i++) {
        check_tar_item(plan, reader, i);
        CHECK_OK_SO_FAR();
    }
    pen__part_reader_close(&reader);
    pen__plan_close(&plan);
}

TEST(compressed_tars)
{
    make_tar("c-0.tar.gz", 0, 30, archive_write_add_filter_gzip);
    make_tar("c-1.tar.zst", 30, 30, archive_write_add_filter_zstd);
    const char *both[] = {at("c-0.tar.gz"), at("c-1.tar.zst")};
    ask("c-0.tar.gz");
    settings.sources = both;
    settings.n_sources = 2;
    CHECK_PLAN_FAILS(PEN_E_INVALID, "c-0.tar.gz: expected an uncompressed tar");
    settings.order = PEN_PACK_SOURCE;
    PenPlan *plan = NULL;
    PenPartReader *reader = NULL;
    CHECK_GOES(make_open(&plan, &err));
    CHECK_INT(pen__plan_info(plan)->in_order, 1);
    CHECK_GOES(pen__part_reader_open(plan, &reader, &err));
    for (uint64_t i = 0; i < 60; i++) {
        check_tar_item(plan, reader, i);
        CHECK_OK_SO_FAR();
    }
    /* Back, and on from the middle: slow, but right. */
    static const uint64_t positions[] = {45, 10, 11, 59, 0};
    for (size_t i = 0; i < PEN_LEN(positions); i++) {
        check_tar_item(plan, reader, positions[i]);
        CHECK_OK_SO_FAR();
    }
    pen__part_reader_close(&reader);
    CHECK_GOES(pen__part_reader_open(plan, &reader, &err));
    check_tar_item(plan, reader, 20); /* as a run does that goes on */
    pen__part_reader_close(&reader);
    pen__plan_close(&plan);
}

static int n_opened;

static int counting_open(const char *path, int how)
{
    n_opened++;
    return pen__sys_real.open(path, how);
}

/* Parts in another order than the fields, with what some systems put between them: one pass all the
 * same. */
TEST(compressed_tars_are_unpacked_once)
{
    HelpTar t;
    help_tar_begin(&t, archive_write_set_format_pax, archive_write_add_filter_gzip);
    for (int i = 0; i < 5; i++) {
        char name[32];
        static const char *const begins[] = {"._", "", "._", ""};
        for (size_t k = 0; k < 4; k++) {
            snprintf(name, sizeof name, "d/%s%d.%s", begins[k], i, k < 2 ? "txt" : "jpg");
            help_tar_text(&t, name, name);
        }
    }
    help_tar_end(&t, "hidden.tgz");
    ask("hidden.tgz");
    settings.order = PEN_PACK_SOURCE;
    CHECK_GOES(make(&err));
    PenSys sys = pen__sys_real;
    sys.open = counting_open;
    n_opened = 0;
    pen__sys = &sys;
    CHECK_GOES(read_all(&err));
    pen__sys = &pen__sys_real;
    CHECK_INT(n_opened, 2); /* the plan and the tar */
}

/* What a compressed tar takes on disk is told once, in pieces. */
TEST(disk_bytes_of_a_stream)
{
    ask("c-0.tar.gz");
    settings.order = PEN_PACK_SOURCE;
    PenPlan *plan = NULL;
    PenPartReader *reader = NULL;
    PenBuf scratch = {0}, data = {0};
    CHECK_GOES(make_open(&plan, &err));
    CHECK_GOES(pen__part_reader_open(plan, &reader, &err));
    uint64_t total = 0;
    for (uint64_t i = 0; i < 30; i++) {
        PenItem item;
        CHECK_GOES(pen__plan_item(plan, i, &item, &scratch, &err));
        for (uint32_t k = 0; k < 4; k++) {
            uint64_t disk;
            CHECK_GOES(pen__part_read(reader, &item.parts[k], &data, &disk, &err));
            total += disk;
        }
    }
    struct stat st;
    CHECK_INT(stat(at("c-0.tar.gz"), &st), 0);
    CHECK(total > 0 && total <= (uint64_t)st.st_size);
    pen__buf_free(&scratch);
    pen__buf_free(&data);
    pen__part_reader_close(&reader);
    pen__plan_close(&plan);
}

/* ---- what changes after the plan ------------------------------------------------------------- */

static int read_first(PenError *err)
{
    PenPlan *plan = NULL;
    PenPartReader *reader = NULL;
    PenBuf scratch = {0}, data = {0};
    PenItem item;
    int r = pen__plan_open(at("plan"), &plan, err);
    if (r == 0)
        r = pen__part_reader_open(plan, &reader, err);
    if (r == 0)
        r = pen__plan_item(plan, 0, &item, &scratch, err);
    if (r == 0)
        r = pen__part_read(reader, &item.parts[0], &data, NULL, err);
    pen__buf_free(&scratch);
    pen__buf_free(&data);
    pen__part_reader_close(&reader);
    pen__plan_close(&plan);
    return r;
}

TEST(inputs_that_changed)
{
    help_text("ch/a/1.jpg", "12345");
    ask("ch");
    CHECK_GOES(make(&err));
    CHECK_GOES(read_first(&err));
    help_text("ch/a/1.jpg", "123456");
    CHECK_FAILS(read_first(&err), PEN_E_INVALID,
                "changed since the plan was made: expected 5 bytes, found 6");
    unlink(at("ch/a/1.jpg"));
    CHECK_FAILS(read_first(&err), PEN_E_NOT_FOUND,
                "ch/a/1.jpg: changed since the plan was made: cannot open");
    mkdir(at("ch/a/1.jpg"), 0777);
    CHECK_FAILS(read_first(&err), PEN_E_INVALID, "found a directory");
    make_tar("ch.tar", 0, 3, NULL);
    ask("ch.tar");
    CHECK_GOES(make(&err));
    CHECK_GOES(read_first(&err));
    make_tar("ch.tar", 0, 4, NULL);
    CHECK_FAILS(read_first(&err), PEN_E_INVALID, "ch.tar: changed since the plan was made");
    make_tar("ch.tgz", 0, 3, archive_write_add_filter_gzip);
    ask("ch.tgz");
    settings.order = PEN_PACK_SOURCE;
    CHECK_GOES(make(&err));
    CHECK_GOES(read_first(&err));
    make_tar("ch.tgz", 0, 4, archive_write_add_filter_gzip);
    CHECK_FAILS(read_first(&err), PEN_E_INVALID, "ch.tgz: changed since the plan was made");
}

/* Of the size it had: its times tell. */
TEST(inputs_replaced_at_equal_size)
{
    struct stat was;
    help_text("eq/a/1.jpg", "12345");
    ask("eq");
    CHECK_GOES(make(&err));
    CHECK_INT(stat(at("eq/a/1.jpg"), &was), 0);
    usleep(20000); /* longer than a tick of the file system's clock */
    help_text("eq/a/1.jpg", "54321");
    CHECK_FAILS(read_first(&err), PEN_E_INVALID, "its modification time differs; run the same");
    struct timespec times[2] = {was.st_atim, was.st_mtim};
    CHECK_INT(utimensat(AT_FDCWD, at("eq/a/1.jpg"), times, 0), 0);
    CHECK_FAILS(read_first(&err), PEN_E_INVALID, "its change time (ctime) differs");
}

TEST(a_part_over_the_limit)
{
    help_text("big/a/1.jpg", "");
    CHECK_INT(truncate(at("big/a/1.jpg"), (256 << 20) + 1), 0);
    ask("big");
    CHECK_GOES(make(&err));
    CHECK_FAILS(read_first(&err), PEN_E_LIMIT, "expected at most 256 MiB, found 268435457");
}

TEST(missing_files_are_found_when_read)
{
    help_text("miss.csv", "path\nnone.jpg\n");
    ask("miss.csv");
    CHECK_PLAN_FAILS(PEN_E_NOT_FOUND, "line 2, column 1: no such file");
    settings.skip_bad = 1;
    CHECK_GOES(make(&err));
    CHECK_FAILS(read_first(&err), PEN_E_NOT_FOUND, "none.jpg: cannot open");
}

int main(int argc, char **argv)
{
    TEST_START(argc, argv);
    help_begin();
    make_folder("f");
    RUN(values_of_a_list);
    RUN(tars_in_shuffled_order);
    RUN(more_tars_than_are_kept_open);
    RUN(compressed_tars);
    RUN(compressed_tars_are_unpacked_once);
    RUN(disk_bytes_of_a_stream);
    RUN(inputs_that_changed);
    RUN(inputs_replaced_at_equal_size);
    RUN(a_part_over_the_limit);
    RUN(missing_files_are_found_when_read);
    help_end();
    return TEST_END();
}
