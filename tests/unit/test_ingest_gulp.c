/* SPDX-License-Identifier: Apache-2.0 */
/* Gulp directories: the two files of a pair, what is wrong with them, and a run over some. */
#include "fault_sweep.h"
#include "ingest/source/gulp.h"
#include "ingest/source/gulp_table.h"
#include "pack_help.h"

static PenIngestSettings settings;

static int scan_text(const char *text, uint64_t data_bytes, PenInputs *in, PenError *err)
{
    *in = (PenInputs){.settings = &settings, .kind = PEN_ROOT_GULP};
    int r = pen__scan_gmeta(in, "meta_0.gmeta", text, strlen(text), "data_0.gulp", data_bytes, err);
    if (r < 0)
        pen__inputs_free(in);
    return r;
}

TEST(metadata)
{
    PenInputs in;
    PenInput input;
    PenCell c;
    CHECK_GOES(scan_text("{\"7\": {\"frame_info\": [[0, 2, 100], [100, 0, 40], [20, 1, 11]],"
                         "\"meta_data\": [{\"label\": \"wave\", \"fps\": 12.5, \"id\": 7}]},"
                         "\"a\": {\"frame_info\": [[3, 0, 1]], \"meta_data\": [{\"label\": 3}]}}",
                         140, &in, &err));
    CHECK_INT(in.n, 2);
    pen__inputs_get(&in, 0, &input);
    CHECK(help_is(input.key, input.key_bytes, "7"));
    CHECK_STR(in.labels.names[input.label], "wave");
    pen__cell_next(&input.cells, &c);
    CHECK_INT(c.kind, PEN_PART_GULP);
    CHECK_INT(c.offset, 3);
    CHECK_INT(c.bytes, 98 + 40 + 10);
    PenGulpTable table = {(const uint8_t *)c.text, (const uint8_t *)c.text + c.text_bytes, 0};
    PenGulpFrame f;
    CHECK(pen__gulp_table_next(&table, &f));
    CHECK_INT(f.offset, 0);
    CHECK_INT(f.bytes, 98);
    CHECK(pen__gulp_table_next(&table, &f));
    CHECK_INT(f.offset, 100);
    CHECK(pen__gulp_table_next(&table, &f)); /* back in the file */
    CHECK_INT(f.offset, 20);
    CHECK_INT(f.bytes, 10);
    CHECK(!pen__gulp_table_next(&table, &f));
    pen__cell_next(&input.cells, &c);
    CHECK(help_is(c.text, c.text_bytes, "{\"label\":\"wave\",\"fps\":12.5,\"id\":7}"));
    pen__inputs_get(&in, 1, &input);
    CHECK_STR(in.labels.names[input.label], "3");
    CHECK_INT(in.columns[0].type, PEN_TYPE_CLIP);
    CHECK_INT(in.columns[1].type, PEN_TYPE_JSON);
    pen__inputs_free(&in);
    CHECK_GOES(
        scan_text("{\"7\": {\"frame_info\": [[0, 0, 1]], \"meta_data\": [{}]}}", 1, &in, &err));
    CHECK_INT(in.has_label, false);
    pen__inputs_free(&in);
}

#define CLIP(frames, meta) "{\"x\": {\"frame_info\": " frames ", \"meta_data\": " meta "}}"
#define ONE "[[0, 0, 4]]"

TEST(wrong_metadata)
{
    static const struct {
        const char *text;
        int status;
        const char *message;
    } cases[] = {
        {"", PEN_E_FORMAT, "meta_0.gmeta: expected a JSON object"},
        {"[]", PEN_E_FORMAT, "expected a JSON object"},
        {"\x80\x04\x95", PEN_E_FORMAT, "pickled"},
        {"{\"x\": 1}", PEN_E_FORMAT, "clip x: expected a list of frames"},
        {"{\"x\": {}, \"x\": {}}", PEN_E_FORMAT, "JSON object"},
        {CLIP("[]", "[{}]"), PEN_E_FORMAT, "expected a list of frames"},
        {CLIP("{}", "[{}]"), PEN_E_FORMAT, "expected a list of frames"},
        {CLIP("[[0, 0]]", "[{}]"), PEN_E_FORMAT, "[offset, fill, bytes]"},
        {CLIP("[[0, 0, 4, 1]]", "[{}]"), PEN_E_FORMAT, "[offset, fill, bytes]"},
        {CLIP("[[0, 4, 4]]", "[{}]"), PEN_E_FORMAT, "[offset, fill, bytes]"},
        {CLIP("[[-1, 0, 4]]", "[{}]"), PEN_E_FORMAT, "[offset, fill, bytes]"},
        {CLIP("[[0, -1, 4]]", "[{}]"), PEN_E_FORMAT, "[offset, fill, bytes]"},
        {CLIP("[[0.5, 0, 4]]", "[{}]"), PEN_E_FORMAT, "[offset, fill, bytes]"},
        {CLIP("[\"a\"]", "[{}]"), PEN_E_FORMAT, "[offset, fill, bytes]"},
        {CLIP("[[5, 0, 4]]", "[{}]"), PEN_E_FORMAT, "inside the .gulp file"},
        {CLIP("[[9223372036854775807, 0, 9223372036854775807]]", "[{}]"), PEN_E_FORMAT, "inside"},
        {CLIP(ONE, "[]"), PEN_E_FORMAT, "under meta_data"},
        {CLIP(ONE, "[1]"), PEN_E_FORMAT, "under meta_data"},
        {CLIP(ONE, "{}"), PEN_E_FORMAT, "under meta_data"},
        {"{\"\": {\"frame_info\": " ONE ", \"meta_data\": [{}]}}", PEN_E_LIMIT, "a key of 1 to"},
    };
    for (size_t i = 0; i < PEN_LEN(cases); i++) {
        PenInputs in;
        CHECK_FAILS(scan_text(cases[i].text, 8, &in, &err), cases[i].status, cases[i].message);
    }
    static char deep[200];
    memset(deep, '[', 100);
    PenInputs in;
    CHECK_FAILS(scan_text(deep, 8, &in, &err), PEN_E_LIMIT, "levels deep");
}

TEST(tables_that_are_none)
{
    static const struct {
        const char *bytes;
        size_t n;
    } cases[] = {{"", 0},
                 {"\x80", 1},
                 {"\x02", 1},
                 {"\x03\x01", 2}, /* before the file's begin */
                 {"\xff\xff\xff\xff\xff\xff\xff\xff\xff\x02\x01", 11},
                 {"\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01\x01", 11},
                 {"\x80\x80\x80\x80\x80\x80\x80\x80\x80\x80\x01", 11}};
    for (size_t i = 0; i < PEN_LEN(cases); i++) {
        PenGulpFrame f;
        PenGulpTable table = {(const uint8_t *)cases[i].bytes,
                              (const uint8_t *)cases[i].bytes + cases[i].n, 0};
        CHECK(!pen__gulp_table_next(&table, &f));
    }
}

/* ---- whole directories ----------------------------------------------------------------------- */

enum { CLIPS = 5, FRAMES = 4 };

/* As GulpIO writes it: JPEGs filled up to a multiple of four. */
static void make_gulp(const char *folder, int chunk, uint32_t first, uint32_t n)
{
    PenBuf data = {0}, jpeg = {0};
    char meta[8192] = "{", name[128];
    for (uint32_t i = first; i < first + n; i++) {
        help_add(meta, sizeof meta, "%s\"%u\": {\"meta_data\": [{\"label\": \"class %u\"}], ",
                 i > first ? ", " : "", i, i % 2);
        help_add(meta, sizeof meta, "\"frame_info\": [");
        for (uint32_t f = 0; f < FRAMES; f++) {
            help_jpeg(i * 10 + f, &jpeg);
            size_t fill = (4 - jpeg.bytes % 4) % 4;
            help_add(meta, sizeof meta, "%s[%zu, %zu, %zu]", f ? ", " : "", data.bytes, fill,
                     jpeg.bytes + fill);
            CHECK_INT(pen__buf_add(&data, jpeg.data, jpeg.bytes), 0);
            CHECK_INT(pen__buf_add(&data, "\0\0\0", fill), 0);
        }
        help_add(meta, sizeof meta, "]}");
    }
    help_add(meta, sizeof meta, "}");
    snprintf(name, sizeof name, "%s/meta_%d.gmeta", folder, chunk);
    help_text(name, meta);
    snprintf(name, sizeof name, "%s/data_%d.gulp", folder, chunk);
    help_file(name, data.data, data.bytes);
    pen__buf_free(&data);
    pen__buf_free(&jpeg);
}

static void check_clip(PenPack *pack, uint64_t sample)
{
    static uint8_t data[1 << 20];
    PenError e = {0};
    PenBuf jpeg = {0};
    char key[32] = "";
    size_t bytes = 0;
    int64_t label = -1;
    CHECK_INT(pen_pack_key(pack, sample, key, sizeof key, &bytes, &e), PEN_OK);
    uint32_t number = (uint32_t)strtoul(key, NULL, 10);
    CHECK_INT(pen_pack_read(pack, sample, 1, &label, sizeof label, &bytes, &e), PEN_OK);
    CHECK_INT(label, number % 2);
    size_t each[FRAMES];
    PenFrameRange range = {.first = 0, .step = 1, .n = FRAMES, .ret_frame_bytes = each};
    CHECK_INT(pen_pack_read_frames(pack, sample, 0, &range, data, sizeof data, &bytes, &e), PEN_OK);
    const uint8_t *p = data;
    for (uint32_t f = 0; f < FRAMES; f++) {
        help_jpeg(number * 10 + f, &jpeg);
        CHECK_INT(each[f], jpeg.bytes);
        CHECK_MEM(p, jpeg.data, jpeg.bytes);
        p += each[f];
    }
    CHECK_INT(pen_pack_read(pack, sample, 2, data, sizeof data, &bytes, &e), PEN_OK);
    CHECK(help_is(data, bytes, number % 2 ? "{\"label\":\"class 1\"}" : "{\"label\":\"class 0\"}"));
    pen__buf_free(&jpeg);
}

TEST(a_directory)
{
    PenIngestResult result;
    PenPack *pack = NULL;
    make_gulp("gulp", 0, 0, 2);
    make_gulp("gulp", 1, 2, CLIPS - 2);
    help_text("gulp/label2idx.json", "{\"class 0\": 0, \"class 1\": 1}");
    PenIngestSettings s = help_ingest("gulp", "gulp.pen");
    s.mode = PEN_MODE_KEEP;
    CHECK_GOES(pen_ingest_run(&s, &result, &err));
    CHECK_INT(result.n_samples, CLIPS);
    CHECK_GOES(pen_pack_open(s.out, NULL, &pack, &err));
    CHECK_INT(pen_pack_info(pack)->n_fields, 3);
    CHECK_STR(pen_pack_info(pack)->fields[2].name, "meta");
    for (uint64_t i = 0; i < CLIPS; i++) {
        check_clip(pack, i);
        CHECK_OK_SO_FAR();
    }
    pen_pack_close(&pack);
}

TEST(wrong_directories)
{
    PenIngestResult result;
    make_gulp("g1", 0, 0, 1);
    CHECK_INT(unlink(at("g1/data_0.gulp")), 0);
    PenIngestSettings s = help_ingest("g1", "g1.pen");
    CHECK_FAILS(pen_ingest_run(&s, &result, &err), PEN_E_NOT_FOUND, "cannot find the data of ");
    make_gulp("g2", 0, 0, 2);
    make_gulp("g2", 1, 1, 1);
    s = help_ingest("g2", "g2.pen");
    CHECK_FAILS(pen_ingest_run(&s, &result, &err), PEN_E_EXISTS, "1");
    /* Cut short after it was planned. */
    make_gulp("g3", 0, 0, 2);
    s = help_ingest("g3", "g3.pen");
    CHECK_GOES(pen_ingest_plan(&s, &result, &err));
    CHECK_INT(truncate(at("g3/data_0.gulp"), 100), 0);
    s.n_tasks = 1;
    CHECK_FAILS(pen_ingest_run(&s, &result, &err), PEN_E_INVALID, "changed since the plan");
    s.n_tasks = 0;
    CHECK_FAILS(pen_ingest_run(&s, &result, &err), PEN_E_FORMAT, "the file may be truncated");
}

TEST(a_broken_frame_is_named)
{
    PenIngestResult result;
    make_gulp("g4", 0, 0, 3);
    FILE *f = fopen(at("g4/data_0.gulp"), "r+b");
    CHECK(f);
    CHECK_INT(fwrite("garbage", 1, 7, f), 7);
    CHECK_INT(fclose(f), 0);
    PenIngestSettings s = help_ingest("g4", "g4.pen");
    CHECK_FAILS(pen_ingest_run(&s, &result, &err), PEN_E_DECODE, "data_0.gulp: 0: frame 1: ");
    s.skip_bad = 1;
    CHECK_GOES(pen_ingest_run(&s, &result, &err));
    CHECK_INT(result.n_samples, 2);
}

/* jansson's own memory is not the system interface's. */
static int sweep_body(PenError *err)
{
    PenInputs in = {.settings = &settings};
    int r = pen__scan_gulp(&in, at("gulp"), err);
    pen__inputs_free(&in);
    return r;
}

TEST(every_call_fails)
{
    int points = 0;
    fault_sweep(sweep_body, &points);
    printf("every_call_fails: %d points\n", points);
    CHECK(points > 50);
}

int main(int argc, char **argv)
{
    TEST_START(argc, argv);
    help_begin();
    pen_ingest_settings_init(&settings);
    RUN(metadata);
    RUN(wrong_metadata);
    RUN(tables_that_are_none);
    RUN(a_directory);
    RUN(wrong_directories);
    RUN(a_broken_frame_is_named);
    RUN(every_call_fails);
    help_end();
    return TEST_END();
}
