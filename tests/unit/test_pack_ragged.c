/* SPDX-License-Identifier: Apache-2.0 */
/* Fields of numbers with any number of rows. */
#include "pack/format/format.h"
#include "pack/format/schema.h"
#include "pack_help.h"

static const PenField fields[] = {
    {.name = "boxes",
     .type = PEN_TYPE_F32,
     .flags = PEN_FIELD_BOXES_XYWH | PEN_FIELD_RELATIVE,
     .n_dims = 2,
     .dims = {PEN_DIM_ANY, 4}},
    {.name = "tokens",
     .type = PEN_TYPE_I64,
     .flags = PEN_FIELD_OPTIONAL,
     .n_dims = 1,
     .dims = {PEN_DIM_ANY}},
    {.name = "grid", .type = PEN_TYPE_F64, .n_dims = 3, .dims = {PEN_DIM_ANY, 2, 3}},
};
enum { N_FIELDS = sizeof fields / sizeof *fields, N = 7 };

static PenWriterSettings settings(const PenField *f, uint32_t n)
{
    PenWriterSettings s;
    pen_writer_settings_init(&s);
    s.fields = f;
    s.n_fields = n;
    s.block_samples = 3;
    return s;
}

/* Sample i has i boxes, 2i tokens or none, and i % 3 grids. */
static int add(PenWriter *w, uint32_t i, PenError *err)
{
    float boxes[4 * N];
    int64_t tokens[2 * N];
    double grid[3 * 6];
    for (uint32_t k = 0; k < 4 * N; k++)
        boxes[k] = (float)(i + k);
    for (uint32_t k = 0; k < 2 * N; k++)
        tokens[k] = (int64_t)i - k;
    for (uint32_t k = 0; k < 18; k++)
        grid[k] = i / (k + 1.0);
    PenValue values[N_FIELDS] = {{.data = boxes, .bytes = (size_t)i * 16},
                                 {.data = i == 4 ? NULL : tokens, .bytes = i == 4 ? 0 : i * 16ul},
                                 {.data = grid, .bytes = i % 3 * 48ul}};
    char key = (char)('a' + i);
    return pen_writer_add(w, &key, 1, values, N_FIELDS, err);
}

static void write_pack(const char *path)
{
    PenError err = {0};
    PenWriter *w = NULL;
    uint64_t n = 0;
    PenWriterSettings s = settings(fields, N_FIELDS);
    CHECK_INT(pen_writer_open(path, &s, &w, &err), PEN_OK);
    for (uint32_t i = 0; i < N; i++)
        CHECK_INT(add(w, i, &err), PEN_OK);
    CHECK_INT(pen_writer_finish(w, &n, &err), PEN_OK);
    pen_writer_close(&w);
}

TEST(values_come_back)
{
    PenError err = {0};
    PenPack *pack = NULL;
    float boxes[4 * N];
    int64_t tokens[2 * N];
    size_t bytes = 0;
    int32_t missing = -1;
    write_pack(at("ragged.pen"));
    CHECK_INT(pen_pack_open(at("ragged.pen"), NULL, &pack, &err), PEN_OK);
    for (uint32_t i = 0; i < N; i++) {
        CHECK_INT(pen_pack_read(pack, i, 0, boxes, sizeof boxes, &bytes, &err), PEN_OK);
        CHECK_INT(bytes, i * 16);
        for (uint32_t k = 0; k < 4 * i; k++)
            CHECK(boxes[k] == (float)(i + k));
        CHECK_INT(pen_pack_read(pack, i, 1, tokens, sizeof tokens, &bytes, &err), PEN_OK);
        CHECK_INT(bytes, i == 4 ? 0 : i * 16);
        for (uint32_t k = 0; k < bytes / 8; k++)
            CHECK_INT(tokens[k], (int64_t)i - k);
        CHECK_INT(pen_pack_missing(pack, i, 1, &missing, &err), PEN_OK);
        CHECK_INT(missing, i == 4);
        CHECK_INT(pen_pack_missing(pack, i, 0, &missing, &err), PEN_OK);
        CHECK_INT(missing, 0);
        CHECK_INT(pen_pack_read(pack, i, 2, NULL, 0, &bytes, &err), PEN_OK);
        CHECK_INT(bytes, i % 3 * 48);
    }
    pen_pack_close(&pack);
}

TEST(the_schema_says_what_they_are)
{
    PenError err = {0};
    PenPack *pack = NULL;
    PenVerifySettings v;
    PenVerifyResult result;
    CHECK_INT(pen_pack_open(at("ragged.pen"), NULL, &pack, &err), PEN_OK);
    const PenPackInfo *info = pen_pack_info(pack);
    for (uint32_t f = 0; f < N_FIELDS; f++) {
        CHECK_INT(info->fields[f].flags, fields[f].flags);
        CHECK_INT(info->fields[f].n_dims, fields[f].n_dims);
        CHECK_INT(info->fields[f].dims[0], PEN_DIM_ANY);
    }
    CHECK_INT(info->stats.missing[1], 1);
    CHECK_INT(info->stats.source_bytes, 21 * 16 + 17 * 16 + 6 * 48);
    pen_verify_settings_init(&v);
    CHECK_INT(pen_pack_verify(pack, &v, &result, &err), PEN_OK);
    CHECK_INT(result.samples, N);
    pen_pack_close(&pack);
}

/* Bit 3 of must: a reader that does not know it refuses the pack. */
TEST(must_names_the_feature)
{
    PenSchema s = {0};
    PenError err = {0};
    CHECK_INT(pen__schema_init(&s, fields, N_FIELDS, &err), PEN_OK);
    CHECK_INT(pen__schema_must(&s), PEN_MUST_RAGGED | PEN_MUST_MISSING);
    CHECK_INT(s.widths[0], PEN_BLOB_ENTRY_BYTES);
    CHECK_INT(pen__field_row_bytes(&s.fields[0]), 16);
    CHECK_INT(pen__field_row_bytes(&s.fields[1]), 8);
    CHECK_INT(pen__field_row_bytes(&s.fields[2]), 48);
    pen__schema_fini(&s);
}

TEST(incomplete_rows_are_refused)
{
    PenError err = {0};
    PenWriter *w = NULL;
    float boxes[4] = {0};
    PenWriterSettings s = settings(fields, 1);
    PenValue value = {.data = boxes, .bytes = 12};
    CHECK_INT(pen_writer_open(at("rows.pen"), &s, &w, &err), PEN_OK);
    CHECK_INT(pen_writer_add(w, "a", 1, &value, 1, &err), PEN_E_INVALID);
    CHECK(strstr(err.message, "field 'boxes': expected a multiple of 16 bytes, found 12"));
    pen_writer_close(&w);
}

static void check_refused(PenField f, const char *message)
{
    PenError err = {0};
    PenWriter *w = NULL;
    f.name = "x";
    PenWriterSettings s = settings(&f, 1);
    CHECK_INT(pen_writer_open(at("no.pen"), &s, &w, &err), PEN_E_INVALID);
    CHECK(strstr(err.message, message));
}

TEST(fields_that_make_no_sense_are_refused)
{
    const uint32_t xyxy = PEN_FIELD_BOXES_XYXY;
    const char *shape = "field 'x': expected f32[*,4] for boxes and f32[*,2] for points";
    check_refused((PenField){.type = PEN_TYPE_I64, .n_dims = 2, .dims = {2, 0}}, "elements");
    check_refused((PenField){.type = PEN_TYPE_I64, .n_dims = 2, .dims = {0, 0}}, "elements");
    check_refused((PenField){.type = PEN_TYPE_F32, .n_dims = 2, .dims = {0, 65537}}, "elements");
    check_refused((PenField){.type = PEN_TYPE_TEXT, .n_dims = 1}, "only for numbers");
    check_refused((PenField){.type = PEN_TYPE_F32, .n_dims = 5}, "at most 4 dimensions");
    check_refused((PenField){.type = PEN_TYPE_F64, .flags = xyxy, .n_dims = 2, .dims = {0, 4}},
                  "flags 0x4 are not valid for type f64");
    check_refused((PenField){.type = PEN_TYPE_F32, .flags = xyxy, .n_dims = 2, .dims = {3, 4}},
                  "flags 0x4 are not valid for type f32");
    check_refused((PenField){.type = PEN_TYPE_F32, .flags = xyxy, .n_dims = 2, .dims = {0, 5}},
                  shape);
    check_refused((PenField){.type = PEN_TYPE_F32, .flags = xyxy, .n_dims = 1}, shape);
    check_refused((PenField){.type = PEN_TYPE_F32, .flags = 20, .n_dims = 2, .dims = {0, 4}},
                  shape);
    check_refused(
        (PenField){.type = PEN_TYPE_F32, .flags = PEN_FIELD_RELATIVE, .n_dims = 2, .dims = {0, 4}},
        shape);
    check_refused(
        (PenField){.type = PEN_TYPE_F32, .flags = PEN_FIELD_POINTS, .n_dims = 2, .dims = {0, 3}},
        shape);
    check_refused((PenField){.type = PEN_TYPE_F32, .flags = 64, .n_dims = 1}, "flags 0x40");
}

int main(int argc, char **argv)
{
    TEST_START(argc, argv);
    help_begin();
    RUN(values_come_back);
    RUN(the_schema_says_what_they_are);
    RUN(must_names_the_feature);
    RUN(incomplete_rows_are_refused);
    RUN(fields_that_make_no_sense_are_refused);
    help_end();
    return TEST_END();
}
