/* SPDX-License-Identifier: Apache-2.0 */
#include "fault_sweep.h"
#include "ingest/plan/plan_impl.h"
#include "ingest_help.h"

static PenIngestSettings settings;

static int scan(const char *text, char separator, PenInputs *in, PenError *err)
{
    PenSource *source = NULL;
    settings.fraction = 1;
    *in = (PenInputs){.settings = &settings, .kind = PEN_ROOT_LIST};
    int r = pen__source_open_memory(at("t.csv"), text, strlen(text), &source, err);
    if (r == 0)
        r = pen__scan_list_from(in, source, separator, err);
    pen__source_close(&source);
    return r;
}

static int shape_of(const PenInputs *in, PenPlanSchema *ret, PenError *err)
{
    PenPlanRequest request = {.settings = &settings};
    return pen__plan_schema_make(in, &request, ret, err);
}

static void make_files(void)
{
    help_text("a.jpg", "1");
    help_text("d/b.jpg", "22");
    help_text("c.jpg", "333");
    help_text("m.png", "4444");
}

#define CHECK_BAD(text, status, message)                                                           \
    do {                                                                                           \
        PenInputs in;                                                                              \
        CHECK_FAILS(scan(text, ',', &in, &err), status, message);                                  \
        pen__inputs_free(&in);                                                                     \
    } while (0)

static void get_cell(const PenInputs *in, uint64_t i, const char *column, PenCell *ret)
{
    PenInput input;
    pen__inputs_get(in, i, &input);
    *ret = (PenCell){.kind = 99};
    for (uint32_t k = 0; k < input.n_cells; k++) {
        PenCell c;
        pen__cell_next(&input.cells, &c);
        if (strcmp(in->columns[c.column].name, column) == 0)
            *ret = c;
    }
}

TEST(columns_become_fields)
{
    PenInputs in;
    PenPlanSchema shape;
    CHECK_GOES(scan("zoom,path,mask,label,count,note\n"
                    "1,a.jpg,m.png,cat,1,x\n"
                    "1.5,d/b.jpg,,dog,-2,\"y,z\"\n"
                    "2e3,c.jpg,m.png,cat,3,4\n",
                    ',', &in, &err));
    CHECK_INT(in.n, 3);
    CHECK_GOES(shape_of(&in, &shape, &err));
    static const struct {
        const char *name;
        int32_t type;
        uint32_t flags;
    } expected[] = {{"image", PEN_TYPE_IMAGE, 0}, {"label", PEN_TYPE_I64, 0},
                    {"count", PEN_TYPE_I64, 0},   {"mask", PEN_TYPE_IMAGE, PEN_FIELD_MASK},
                    {"note", PEN_TYPE_TEXT, 0},   {"zoom", PEN_TYPE_F64, 0}};
    CHECK_INT(shape.n_fields, 6);
    for (uint32_t i = 0; i < 6; i++) {
        CHECK_STR(shape.fields[i].name, expected[i].name);
        CHECK_INT(shape.fields[i].type, expected[i].type);
        CHECK_INT(shape.fields[i].flags, expected[i].flags);
    }
    CHECK_INT(shape.class_field, 1);
    CHECK_INT(shape.n_classes, 2);
    CHECK_STR(shape.classes[0], "cat");
    PenCell c;
    get_cell(&in, 1, "image", &c);
    CHECK_INT(c.kind, PEN_PART_FILE);
    CHECK_INT(c.bytes, 2);
    get_cell(&in, 0, "mask", &c);
    CHECK_INT(c.bytes, 4);
    CHECK(help_is(c.text, c.text_bytes, "m.png"));
    get_cell(&in, 1, "mask", &c);
    CHECK_INT(c.kind, 99); /* an empty cell is no mask */
    get_cell(&in, 1, "note", &c);
    CHECK_INT(c.kind, PEN_PART_INLINE);
    CHECK(help_is(c.text, c.text_bytes, "y,z"));
    pen__plan_schema_free(&shape);
    pen__inputs_free(&in);
}

TEST(names_of_the_path_column)
{
    static const char *const headers[] = {"path", "image", "file", "filename"};
    for (size_t i = 0; i < PEN_LEN(headers); i++) {
        char text[64];
        PenInputs in;
        snprintf(text, sizeof text, "%s,class\na.jpg,7\n", headers[i]);
        CHECK_GOES(scan(text, ',', &in, &err));
        CHECK_STR(in.columns[0].name, "image");
        CHECK_INT(in.n_columns, 1);
        CHECK_INT(in.has_label, true);
        pen__inputs_free(&in);
    }
    PenInputs in;
    CHECK_GOES(scan("file\tpath\nx\ta.jpg\n", '\t', &in, &err));
    CHECK_STR(in.columns[0].name, "file"); /* path comes before file: this one is a value */
    CHECK_STR(in.columns[1].name, "image");
    pen__inputs_free(&in);
}

static void check_numbers(const char *rows, const char *classes, int64_t first, int64_t second)
{
    char text[256];
    PenInputs in;
    PenPlanSchema shape;
    snprintf(text, sizeof text, "path,label\n%s", rows);
    CHECK_GOES(scan(text, ',', &in, &err));
    CHECK_GOES(shape_of(&in, &shape, &err));
    char found[128] = "";
    for (uint32_t i = 0; i < shape.n_classes; i++)
        help_add(found, sizeof found, "%s ", shape.classes[i]);
    CHECK_STR(found, classes);
    CHECK_INT(shape.class_field, *classes ? 1 : -1);
    CHECK_INT(shape.numbers[in.items[0].label], first);
    CHECK_INT(shape.numbers[in.items[1].label], second);
    pen__plan_schema_free(&shape);
    pen__inputs_free(&in);
}

TEST(labels_are_numbers_or_names)
{
    check_numbers("a.jpg,17\nc.jpg,3\n", "", 17, 3);
    check_numbers("a.jpg,-1\nc.jpg,3\n", "", -1, 3);
    check_numbers("a.jpg,dog\nc.jpg,cat\n", "cat dog ", 1, 0);
    check_numbers("a.jpg,1.5\nc.jpg,cat\n", "1.5 cat ", 0, 1);
}

static void check_mixed(const char *rows, const char *said)
{
    char text[256];
    PenInputs in;
    PenPlanSchema shape;
    snprintf(text, sizeof text, "path,label\n%s", rows);
    CHECK_GOES(scan(text, ',', &in, &err));
    CHECK_FAILS(shape_of(&in, &shape, &err), PEN_E_INVALID, said);
    pen__plan_schema_free(&shape);
    pen__inputs_free(&in);
}

TEST(labels_are_not_both)
{
    check_mixed("a.jpg,17\nc.jpg,cat\na.jpg,dog\n",
                "t.csv: line 3: expected a label that is an integer, as \"17\" before it, found "
                "\"cat\"; write all labels as integers, or all as names");
    check_mixed(
        "a.jpg,cat\nc.jpg,cat\na.jpg,7\n",
        "t.csv: line 4: expected a label that is a name, as \"cat\" before it, found \"7\"");
    check_mixed("a.jpg,3\nc.jpg, 3\n", "line 3: expected a label that is an integer");
    check_mixed("a.jpg,3\nc.jpg,99999999999999999999\n", "line 3: expected a label that is an");
    check_mixed("a.jpg,1.5\nc.jpg,2\n", "line 3: expected a label that is a name");
}

TEST(value_types)
{
    static const struct {
        const char *rows;
        int32_t type;
    } cases[] = {
        {"a.jpg,1\nc.jpg,-2\n", PEN_TYPE_I64},
        {"a.jpg,1\nc.jpg,2.5\n", PEN_TYPE_F64},
        {"a.jpg,9223372036854775808\nc.jpg,1\n", PEN_TYPE_F64},
        {"a.jpg,1\nc.jpg,\n", PEN_TYPE_TEXT},
        {"a.jpg,nan\nc.jpg,1\n", PEN_TYPE_TEXT},
    };
    for (size_t i = 0; i < PEN_LEN(cases); i++) {
        char text[128];
        PenInputs in;
        PenPlanSchema shape;
        snprintf(text, sizeof text, "path,v\n%s", cases[i].rows);
        CHECK_GOES(scan(text, ',', &in, &err));
        CHECK_GOES(shape_of(&in, &shape, &err));
        CHECK_INT(shape.fields[1].type, cases[i].type);
        pen__plan_schema_free(&shape);
        pen__inputs_free(&in);
    }
}

TEST(bad_headers)
{
    CHECK_BAD("", PEN_E_INVALID, "found an empty file");
    CHECK_BAD("name,label\n", PEN_E_INVALID, "expected a header with a column path");
    CHECK_BAD("path,,x\n", PEN_E_INVALID, "line 1, column 2: expected a name");
    CHECK_BAD("path, label\n", PEN_E_INVALID, "column 2: expected a name without spaces");
    CHECK_BAD("path,x,y,x\n", PEN_E_INVALID, "columns 2 and 4: expected different names");
    CHECK_BAD("path,image\n", PEN_E_INVALID, "column 2: expected a name other than image");
    char text[4000] = "path";
    for (int i = 0; i < 300; i++)
        help_add(text, sizeof text, ",c%d", i);
    CHECK_BAD(text, PEN_E_LIMIT, "at most 256 fields");
    snprintf(text, sizeof text, "path,%0300d\n", 0);
    CHECK_BAD(text, PEN_E_INVALID, "1 to 255 bytes");
}

TEST(bad_rows)
{
    CHECK_BAD("path,label\na.jpg\n", PEN_E_INVALID, "line 2: expected 2 columns, found 1");
    CHECK_BAD("path,label\na.jpg,1\n\n,1\n", PEN_E_INVALID, "line 4, column 1: expected a path");
    CHECK_BAD("path,label\na.jpg,\n", PEN_E_INVALID, "line 2, column 2: expected a label");
    CHECK_BAD("path\nnone.jpg\n", PEN_E_NOT_FOUND, "line 2, column 1: no such file");
    CHECK_BAD("path\na.jpg\nd\n", PEN_E_INVALID, "line 3, column 1: expected the path of a file");
    CHECK_BAD("path,mask\na.jpg,none.png\n", PEN_E_NOT_FOUND, "line 2, column 2: no such file");
    char text[6000];
    snprintf(text, sizeof text, "path\n%05000d\n", 0);
    CHECK_BAD(text, PEN_E_UNSUPPORTED, "line 2");
    settings.skip_bad = 1;
    CHECK_BAD(text, PEN_E_LIMIT, "line 2: 000");
    settings.skip_bad = 0;
}

TEST(missing_files_with_skip_bad)
{
    PenInputs in;
    settings.skip_bad = 1;
    CHECK_GOES(scan("path\na.jpg\nnone.jpg\nd\n", ',', &in, &err));
    settings.skip_bad = 0;
    CHECK_INT(in.n, 3);
    PenCell c;
    get_cell(&in, 1, "image", &c);
    CHECK_INT(c.kind, PEN_PART_FILE);
    CHECK_INT(c.bytes, 0);
    pen__inputs_free(&in);
}

TEST(absolute_paths)
{
    char text[600];
    PenInputs in;
    snprintf(text, sizeof text, "path\n%s\n", at("d/b.jpg"));
    CHECK_GOES(scan(text, ',', &in, &err));
    PenCell c;
    get_cell(&in, 0, "image", &c);
    CHECK_INT(c.bytes, 2);
    char name[300];
    PenInput named;
    pen__inputs_get(&in, 0, &named);
    pen__input_name(&in, &named, name, sizeof name);
    CHECK_STR(name, at("d/b.jpg"));
    pen__inputs_free(&in);
}

static int scan_files(const char *const *names, uint32_t n, PenInputs *in, PenError *err)
{
    settings = help_settings(names, n);
    *in = (PenInputs){.settings = &settings};
    return pen__scan_sources(in, err);
}

TEST(several_lists)
{
    help_text("1.csv", "path,label,x\na.jpg,1,1\n");
    help_text("d/2.TSV", "x\tlabel\tpath\n2\tz\tb.jpg\n");
    help_text("3.csv", "path,label\na.jpg,1\n");
    help_text("4.csv", "path,x,y\na.jpg,1,2\n");
    const char *good[] = {at("1.csv"), at("d/2.TSV")};
    PenInputs in;
    CHECK_GOES(scan_files(good, 2, &in, &err));
    CHECK_INT(in.n, 2);
    PenCell c;
    get_cell(&in, 1, "image", &c);
    CHECK_INT(c.bytes, 2); /* found beside its own list */
    pen__inputs_free(&in);
    const char *fewer[] = {at("1.csv"), at("3.csv")};
    CHECK_FAILS(scan_files(fewer, 2, &in, &err), PEN_E_INVALID, "expected the same columns");
    pen__inputs_free(&in);
    const char *other[] = {at("1.csv"), at("4.csv")};
    CHECK_FAILS(scan_files(other, 2, &in, &err), PEN_E_INVALID, "expected the same columns");
    pen__inputs_free(&in);
}

static int sweep_body(PenError *err)
{
    PenInputs in;
    int r = scan("path,label,mask,x\na.jpg,u,m.png,1\nc.jpg,v,,2\n", ',', &in, err);
    pen__inputs_free(&in);
    return r;
}

TEST(every_call_fails)
{
    int points = 0;
    fault_sweep(sweep_body, &points);
    CHECK_OK_SO_FAR();
    CHECK(points > 40);
}

int main(int argc, char **argv)
{
    TEST_START(argc, argv);
    help_begin();
    make_files();
    RUN(columns_become_fields);
    RUN(names_of_the_path_column);
    RUN(labels_are_numbers_or_names);
    RUN(labels_are_not_both);
    RUN(value_types);
    RUN(bad_headers);
    RUN(bad_rows);
    RUN(missing_files_with_skip_bad);
    RUN(absolute_paths);
    RUN(several_lists);
    RUN(every_call_fails);
    help_end();
    return TEST_END();
}
