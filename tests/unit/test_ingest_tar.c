/* SPDX-License-Identifier: Apache-2.0 */
#include "ingest/tar/tar.h"

#include <locale.h>

#include "fault_sweep.h"
#include "ingest/plan/plan_impl.h"
#include "ingest_help.h"

static PenIngestSettings settings;

static int scan_memory(const void *data, size_t bytes, PenInputs *in, PenError *err)
{
    PenSource *source = NULL;
    settings.fraction = 1;
    *in = (PenInputs){.settings = &settings, .kind = PEN_ROOT_TAR};
    int r = pen__source_open_memory("t.tar", data, bytes, &source, err);
    if (r == 0)
        r = pen__scan_tar_from(in, source, err);
    pen__source_close(&source);
    return r;
}

static int scan(const HelpTar *t, PenInputs *in, PenError *err)
{
    return scan_memory(t->data, t->bytes, in, err);
}

/* Scans the tar, expects that failure, and frees the tar. */
#define CHECK_TAR_FAILS(t, status, message)                                                        \
    do {                                                                                           \
        PenInputs found;                                                                           \
        CHECK_FAILS(scan(t, &found, &err), status, message);                                       \
        pen__inputs_free(&found);                                                                  \
        free((t)->data);                                                                           \
    } while (0)

static bool get_cell(const PenInputs *in, uint64_t i, const char *column, PenCell *ret)
{
    PenInput input;
    pen__inputs_get(in, i, &input);
    for (uint32_t k = 0; k < input.n_cells; k++) {
        pen__cell_next(&input.cells, ret);
        if (strcmp(in->columns[ret->column].name, column) == 0)
            return true;
    }
    return false;
}

#define CHECK_KEY(in, i, text)                                                                     \
    do {                                                                                           \
        PenInput input;                                                                            \
        pen__inputs_get(in, i, &input);                                                            \
        CHECK_INT(input.key_bytes, strlen(text));                                                  \
        CHECK_MEM(input.key, text, strlen(text));                                                  \
    } while (0)

static void check_name(const PenInputs *in, uint64_t i, const char *expected)
{
    char name[64];
    PenInput input;
    pen__inputs_get(in, i, &input);
    pen__input_name(in, &input, name, sizeof name);
    CHECK_STR(name, expected);
}

TEST(members_with_the_same_stem_are_a_sample)
{
    HelpTar t;
    help_tar_begin(&t, archive_write_set_format_ustar, NULL);
    help_tar_member(&t, "d/", AE_IFDIR, NULL, NULL, 0);
    help_tar_text(&t, "./d/001.jpg", "one");
    help_tar_text(&t, "./d/001.cls", " 7\n");
    help_tar_text(&t, "d/001.json", "{}");
    help_tar_text(&t, "d/._001.jpg", "left by a system");
    help_tar_text(&t, "d/002.cls", "3");
    help_tar_text(&t, "d/002.JPEG", "two");
    help_tar_text(&t, "d/002.Seg.PNG", "mask");
    help_tar_text(&t, "d.x/003.left.webp", "l");
    help_tar_text(&t, "d.x/003.txt", "text");
    help_tar_text(&t, "d.x/003.cls", "12");
    help_tar_text(&t, "d.x/003.a.npy", "npy");
    help_tar_text(&t, "d.x/003.meta.json", "[]");
    help_tar_end(&t, NULL);
    PenInputs in;
    CHECK_GOES(scan(&t, &in, &err));
    CHECK_INT(in.n, 3);
    CHECK_KEY(&in, 0, "d/001");
    CHECK_KEY(&in, 1, "d/002");
    CHECK_KEY(&in, 2, "d.x/003");
    CHECK_STR(in.labels.names[in.items[0].label], "7");
    CHECK_STR(in.labels.names[in.items[2].label], "12");
    PenPlanRequest request = {.settings = &settings};
    PenPlanSchema shape;
    CHECK_GOES(pen__plan_schema_make(&in, &request, &shape, &err));
    static const struct {
        const char *name;
        int32_t type;
        uint32_t flags;
    } expected[] = {{"image", PEN_TYPE_IMAGE, 0},
                    {"label", PEN_TYPE_I64, 0},
                    {"a.npy", PEN_TYPE_BYTES, 0},
                    {"json", PEN_TYPE_JSON, 0},
                    {"left", PEN_TYPE_IMAGE, 0},
                    {"meta", PEN_TYPE_JSON, 0},
                    {"seg", PEN_TYPE_IMAGE, PEN_FIELD_MASK},
                    {"text", PEN_TYPE_TEXT, 0}};
    CHECK_INT(shape.n_fields, PEN_LEN(expected));
    for (uint32_t i = 0; i < shape.n_fields; i++) {
        CHECK_STR(shape.fields[i].name, expected[i].name);
        CHECK_INT(shape.fields[i].type, expected[i].type);
        CHECK_INT(shape.fields[i].flags, expected[i].flags);
    }
    CHECK_INT(shape.class_field, -1);
    CHECK_INT(shape.numbers[in.items[1].label], 3);
    PenCell c;
    CHECK(get_cell(&in, 1, "image", &c));
    CHECK_INT(c.kind, PEN_PART_RANGE);
    CHECK(help_is(c.text, c.text_bytes, "JPEG")); /* the name as it was written */
    CHECK_MEM(t.data + c.offset, "two", 3);
    CHECK(!get_cell(&in, 2, "image", &c));
    check_name(&in, 1, "t.tar: d/002");
    pen__plan_schema_free(&shape);
    pen__inputs_free(&in);
    free(t.data);
}

/* The bytes at the offset in the file are the member's, whatever stands in front of it. */
static void check_offsets(int (*format)(struct archive *))
{
    HelpTar t;
    help_tar_begin(&t, format, NULL);
    char name[600], text[3000];
    for (int i = 0; i < 40; i++) {
        int width = i % 4 == 3 ? 300 : i % 4 == 2 ? 120 : 6;
        snprintf(name, sizeof name, "%0*d.txt", width, i);
        if (format == archive_write_set_format_ustar || format == archive_write_set_format_v7tar)
            snprintf(name, sizeof name, "%06d.txt", i);
        memset(text, 'a' + i % 26, sizeof text);
        help_tar_member(&t, name, AE_IFREG, NULL, text, (size_t)(i * 73));
        CHECK_OK_SO_FAR();
    }
    help_tar_end(&t, NULL);
    PenInputs in;
    CHECK_GOES(scan(&t, &in, &err));
    CHECK_INT(in.n, 40);
    for (int i = 0; i < 40; i++) {
        PenCell c;
        CHECK(get_cell(&in, (uint64_t)i, "text", &c));
        CHECK_INT(c.bytes, i * 73);
        memset(text, 'a' + i % 26, sizeof text);
        CHECK_MEM(t.data + c.offset, text, c.bytes);
        CHECK_INT(t.data[c.offset + c.bytes], c.bytes % 512 ? 0 : t.data[c.offset + c.bytes]);
    }
    pen__inputs_free(&in);
    free(t.data);
}

TEST(offsets_are_those_of_the_data)
{
    check_offsets(archive_write_set_format_ustar);
    CHECK_OK_SO_FAR();
    check_offsets(archive_write_set_format_gnutar);
    CHECK_OK_SO_FAR();
    check_offsets(archive_write_set_format_pax);
    CHECK_OK_SO_FAR();
    check_offsets(archive_write_set_format_v7tar);
}

static void check_names(const char *locale, int (*format)(struct archive *))
{
    HelpTar t;
    setlocale(LC_ALL, "C.UTF-8"); /* the writer has to know what the bytes mean */
    help_tar_begin(&t, format, NULL);
    help_tar_text(&t, "gr\xc3\xbc\xc3\x9f/\xe7\x8c\xab.txt", "x");
    help_tar_end(&t, NULL);
    CHECK(setlocale(LC_ALL, locale));
    PenInputs in;
    CHECK_GOES(scan(&t, &in, &err));
    setlocale(LC_ALL, "C");
    CHECK_INT(in.n, 1);
    CHECK_KEY(&in, 0, "gr\xc3\xbc\xc3\x9f/\xe7\x8c\xab");
    pen__inputs_free(&in);
    free(t.data);
}

TEST(names_do_not_depend_on_the_locale)
{
    static const char *const locales[] = {"C", "C.UTF-8"};
    for (size_t i = 0; i < PEN_LEN(locales); i++) {
        check_names(locales[i], archive_write_set_format_ustar);
        CHECK_OK_SO_FAR();
        check_names(locales[i], archive_write_set_format_gnutar);
        CHECK_OK_SO_FAR();
        check_names(locales[i], archive_write_set_format_pax);
        CHECK_OK_SO_FAR();
    }
}

TEST(names_that_are_not_utf8)
{
    HelpTar t;
    help_tar_begin(&t, archive_write_set_format_ustar, NULL);
    help_tar_text(&t, "\xff\xfe.txt", "x");
    help_tar_end(&t, NULL);
    PenInputs in;
    for (int i = 0; i < 2; i++) {
        setlocale(LC_ALL, i ? "C.UTF-8" : "C");
        CHECK_GOES(scan(&t, &in, &err));
        CHECK_KEY(&in, 0, "\xff\xfe");
        pen__inputs_free(&in);
    }
    setlocale(LC_ALL, "C");
    free(t.data);
    help_tar_begin(&t, archive_write_set_format_ustar, NULL);
    help_tar_text(&t, "a.\xff\xfe", "x");
    help_tar_end(&t, NULL);
    CHECK_TAR_FAILS(&t, PEN_E_INVALID, "UTF-8"); /* it would be the name of a field */
}

static void one_member(HelpTar *t, const char *name, unsigned type, const char *link)
{
    help_tar_begin(t, archive_write_set_format_ustar, NULL);
    help_tar_member(t, name, type, link, NULL, 0);
    help_tar_end(t, NULL);
}

TEST(what_is_no_file_is_refused)
{
    HelpTar t;
    one_member(&t, "a.jpg", AE_IFLNK, "b.jpg");
    CHECK_OK_SO_FAR();
    CHECK_TAR_FAILS(&t, PEN_E_UNSUPPORTED, "t.tar: a.jpg: expected a file, found a link");
    one_member(&t, "a.jpg", AE_IFREG, "b.jpg");
    CHECK_OK_SO_FAR();
    CHECK_TAR_FAILS(&t, PEN_E_UNSUPPORTED, "found a link");
    one_member(&t, "a.jpg", AE_IFIFO, NULL);
    CHECK_OK_SO_FAR();
    CHECK_TAR_FAILS(&t, PEN_E_UNSUPPORTED, "device or pipe");
    one_member(&t, "README", AE_IFREG, NULL);
    CHECK_OK_SO_FAR();
    CHECK_TAR_FAILS(&t, PEN_E_INVALID, "README: expected a name such as 0017.jpg");
    one_member(&t, "a.", AE_IFREG, NULL);
    CHECK_OK_SO_FAR();
    CHECK_TAR_FAILS(&t, PEN_E_INVALID, "without a suffix");
}

static void two_members(HelpTar *t, const char *a, const char *b, const char *text)
{
    help_tar_begin(t, archive_write_set_format_pax, NULL);
    help_tar_text(t, a, text);
    help_tar_text(t, b, text);
    help_tar_end(t, NULL);
}

TEST(parts_that_do_not_go_together)
{
    HelpTar t;
    two_members(&t, "a.jpg", "a.png", "1");
    CHECK_TAR_FAILS(&t, PEN_E_INVALID, "a.png: expected one part for field image");
    two_members(&t, "a.cls", "a.CLS", "1");
    CHECK_TAR_FAILS(&t, PEN_E_INVALID, "expected one label");
    two_members(&t, "a.seg", "b.seg.png", "1");
    CHECK_TAR_FAILS(&t, PEN_E_INVALID, "found bytes and mask");
    two_members(&t, "a.jpg", "a.cls", " \n");
    CHECK_TAR_FAILS(&t, PEN_E_INVALID, "a.cls: expected a class number");
    char name[400];
    snprintf(name, sizeof name, "a.%0300d", 0);
    two_members(&t, "a.jpg", name, "1");
    CHECK_TAR_FAILS(&t, PEN_E_LIMIT, "suffix of at most 255");
    help_tar_begin(&t, archive_write_set_format_ustar, NULL);
    for (int i = 0; i < 257; i++) {
        snprintf(name, sizeof name, "a.%d.jpg", i);
        help_tar_text(&t, name, "1");
    }
    help_tar_end(&t, NULL);
    CHECK_TAR_FAILS(&t, PEN_E_LIMIT, "(the key ends at the first dot)");
}

TEST(labels)
{
    HelpTar t;
    char digits[1100];
    memset(digits, '1', sizeof digits);
    help_tar_begin(&t, archive_write_set_format_ustar, NULL);
    help_tar_member(&t, "a.cls", AE_IFREG, NULL, digits, 1025);
    help_tar_end(&t, NULL);
    CHECK_TAR_FAILS(&t, PEN_E_LIMIT, "1024 bytes");
    help_tar_begin(&t, archive_write_set_format_ustar, NULL);
    help_tar_member(&t, "a.cls", AE_IFREG, NULL, "1\0002", 3);
    help_tar_end(&t, NULL);
    CHECK_TAR_FAILS(&t, PEN_E_INVALID, "a.cls: expected a class number");
    two_members(&t, "a.cls", "b.jpg", "1");
    PenInputs in;
    PenPlanSchema shape;
    PenPlanRequest request = {.settings = &settings};
    CHECK_GOES(scan(&t, &in, &err));
    CHECK_FAILS(pen__plan_schema_make(&in, &request, &shape, &err), PEN_E_INVALID,
                "t.tar: b: expected a label");
    pen__plan_schema_free(&shape);
    pen__inputs_free(&in);
    free(t.data);
    two_members(&t, "a.cls", "a.label.jpg", "1");
    CHECK_GOES(scan(&t, &in, &err));
    CHECK_FAILS(pen__plan_schema_make(&in, &request, &shape, &err), PEN_E_INVALID, "field label");
    pen__plan_schema_free(&shape);
    pen__inputs_free(&in);
    free(t.data);
}

/* A header that says 256 MiB and one byte, and nothing behind it. */
TEST(sizes)
{
    HelpTar t;
    one_member(&t, "a.jpg", AE_IFREG, NULL);
    CHECK_OK_SO_FAR();
    static const struct {
        const char *octal;
        int status;
        const char *message;
    } cases[] = {{"02000000001", PEN_E_LIMIT, "a.jpg: expected at most 256 MiB"},
                 {"02000000000", PEN_E_CORRUPT, "found the end of the file before it"},
                 {"77777777777", PEN_E_LIMIT, "256 MiB"}};
    for (size_t i = 0; i < PEN_LEN(cases); i++) {
        memcpy(t.data + 124, cases[i].octal, 12);
        memset(t.data + 148, ' ', 8);
        unsigned sum = 0;
        for (int k = 0; k < 512; k++)
            sum += t.data[k];
        snprintf((char *)t.data + 148, 8, "%06o", sum);
        PenInputs in;
        CHECK_FAILS(scan(&t, &in, &err), cases[i].status, cases[i].message);
        pen__inputs_free(&in);
    }
    free(t.data);
}

TEST(sparse_members_are_refused)
{
    HelpTar t;
    help_tar_begin(&t, archive_write_set_format_pax, NULL);
    struct archive_entry *e = archive_entry_new();
    archive_entry_set_pathname(e, "a.jpg");
    archive_entry_set_filetype(e, AE_IFREG);
    archive_entry_set_size(e, 200000);
    archive_entry_sparse_add_entry(e, 0, 100);
    archive_entry_sparse_add_entry(e, 100000, 100);
    static const char zeros[200000];
    CHECK_INT(archive_write_header(t.archive, e), ARCHIVE_OK);
    CHECK_INT(archive_write_data(t.archive, zeros, sizeof zeros), sizeof zeros);
    archive_entry_free(e);
    help_tar_end(&t, NULL);
    CHECK_TAR_FAILS(&t, PEN_E_UNSUPPORTED, "found a sparse one");
}

/* A header made by hand. */
static void put_header(uint8_t *p, const char *name, char type, unsigned bytes)
{
    memset(p, 0, 512);
    snprintf((char *)p, 100, "%s", name);
    memcpy(p + 100, "0000644", 8);
    snprintf((char *)p + 124, 12, "%011o", bytes);
    memcpy(p + 136, "00000000000", 12);
    memset(p + 148, ' ', 8);
    p[156] = (uint8_t)type;
    memcpy(p + 257, "ustar\00000", 8);
    unsigned sum = 0;
    for (int i = 0; i < 512; i++)
        sum += p[i];
    snprintf((char *)p + 148, 8, "%06o", sum);
}

/* A pax record may say that a file is smaller or larger than its data. The place of the next header
 * shows it, or its own header: without that check a plan would have offsets and sizes that do not
 * belong together. */
TEST(sizes_that_differ_from_the_data)
{
    static const char *const records[] = {"27 GNU.sparse.realsize=100\n",
                                          "28 GNU.sparse.realsize=3500\n",
                                          "28 GNU.sparse.realsize=3001\n"};
    static const char *const found[] = {"expected the next header", "expected the next header",
                                        "expected the same size in its header"};
    for (int i = 0; i < 3; i++) {
        uint8_t *p = calloc(1, 16 * 512);
        put_header(p, "x", 'x', (unsigned)strlen(records[i]));
        memcpy(p + 512, records[i], strlen(records[i]));
        put_header(p + 2 * 512, "a.txt", '0', 3000);
        memset(p + 3 * 512, 'a', 3000);
        put_header(p + 9 * 512, "b.txt", '0', 5);
        memcpy(p + 10 * 512, "bbbbb", 5);
        PenInputs in;
        CHECK_FAILS(scan_memory(p, 16 * 512, &in, &err), PEN_E_CORRUPT, found[i]);
        pen__inputs_free(&in);
        /* Without the record it is a good tar. */
        CHECK_GOES(scan_memory(p + 1024, 14 * 512, &in, &err));
        CHECK_INT(in.n, 2);
        pen__inputs_free(&in);
        free(p);
    }
}

typedef int (*Filter)(struct archive *);
static const Filter filters[] = {archive_write_add_filter_gzip, archive_write_add_filter_bzip2,
                                 archive_write_add_filter_xz, archive_write_add_filter_zstd,
                                 archive_write_add_filter_lz4};

TEST(compressed_tars_need_the_source_order)
{
    for (size_t i = 0; i < PEN_LEN(filters); i++) {
        HelpTar t;
        help_tar_begin(&t, archive_write_set_format_pax, filters[i]);
        help_tar_text(&t, "a.jpg", "one");
        help_tar_text(&t, "a.cls", "5");
        help_tar_text(&t, "b.jpg", "four");
        help_tar_text(&t, "b.cls", "6");
        help_tar_end(&t, NULL);
        PenInputs in;
        settings.order = PEN_PACK_SHUFFLED;
        CHECK_FAILS(scan(&t, &in, &err), PEN_E_INVALID, "add --order source or unpack");
        pen__inputs_free(&in);
        settings.order = PEN_PACK_SOURCE;
        CHECK_GOES(scan(&t, &in, &err));
        settings.order = PEN_PACK_SHUFFLED;
        CHECK_INT(in.n, 2);
        PenCell c;
        CHECK(get_cell(&in, 1, "image", &c));
        CHECK_INT(c.kind, PEN_PART_STREAM);
        CHECK_INT(c.bytes, 4);
        pen__inputs_free(&in);
        free(t.data);
    }
}

TEST(packed_twice_is_refused)
{
    HelpTar inner, outer;
    help_tar_begin(&inner, archive_write_set_format_pax, archive_write_add_filter_gzip);
    help_tar_text(&inner, "a.jpg", "one");
    help_tar_end(&inner, NULL);
    outer.cap = 1 << 20;
    outer.data = malloc(outer.cap);
    outer.bytes = 0;
    outer.archive = archive_write_new();
    archive_write_set_format_raw(outer.archive);
    archive_write_add_filter_gzip(outer.archive);
    CHECK_INT(archive_write_open_memory(outer.archive, outer.data, outer.cap, &outer.bytes), 0);
    struct archive_entry *e = archive_entry_new();
    archive_entry_set_filetype(e, AE_IFREG);
    CHECK_INT(archive_write_header(outer.archive, e), 0);
    archive_write_data(outer.archive, inner.data, inner.bytes);
    archive_entry_free(e);
    help_tar_end(&outer, NULL);
    free(inner.data);
    settings.order = PEN_PACK_SOURCE;
    CHECK_TAR_FAILS(&outer, PEN_E_UNSUPPORTED, "compressed twice");
    settings.order = PEN_PACK_SHUFFLED;
}

TEST(not_a_tar)
{
    PenInputs in;
    CHECK_FAILS(scan_memory("", 0, &in, &err), PEN_E_CORRUPT, "t.tar: cannot");
    pen__inputs_free(&in);
    char text[2000];
    memset(text, 'x', sizeof text);
    CHECK_FAILS(scan_memory(text, sizeof text, &in, &err), PEN_E_CORRUPT, "Unrecognized");
    pen__inputs_free(&in);
    memcpy(text, "PK\3\4", 4); /* a zip is none either */
    CHECK_FAILS(scan_memory(text, sizeof text, &in, &err), PEN_E_CORRUPT, "Unrecognized");
    pen__inputs_free(&in);
    memset(text, 0, sizeof text);
    CHECK_GOES(scan_memory(text, 1024, &in, &err)); /* empty, and ended as it should be */
    CHECK_INT(in.n, 0);
    pen__inputs_free(&in);
}

static void make_sample_tar(HelpTar *t, Filter filter)
{
    help_tar_begin(t, archive_write_set_format_pax, filter);
    char name[200], text[700];
    for (int i = 0; i < 6; i++) {
        memset(text, 'a' + i, sizeof text);
        snprintf(name, sizeof name, "%0*d.txt", i % 2 ? 130 : 4, i);
        help_tar_member(t, name, AE_IFREG, NULL, text, (size_t)(i * 139));
        snprintf(name, sizeof name, "%0*d.cls", i % 2 ? 130 : 4, i);
        help_tar_text(t, name, "3");
    }
    help_tar_end(t, NULL);
}

/* Every truncation is an error or loses whole members only; what is given lies in the file. */
TEST(every_truncation)
{
    HelpTar t;
    make_sample_tar(&t, NULL);
    CHECK_OK_SO_FAR();
    int failed = 0;
    for (size_t bytes = 0; bytes < t.bytes; bytes += 7) {
        uint8_t *exact = malloc(bytes ? bytes : 1);
        memcpy(exact, t.data, bytes);
        PenInputs in;
        PenError err = {0};
        int r = scan_memory(exact, bytes, &in, &err);
        failed += r < 0;
        for (uint64_t i = 0; r == 0 && i < in.n; i++) {
            PenCell c;
            if (get_cell(&in, i, "text", &c))
                CHECK(c.offset + c.bytes <= bytes);
        }
        pen__inputs_free(&in);
        free(exact);
        CHECK(r == 0 || (err.status == r && err.message[0]));
    }
    CHECK(failed > 100);
    free(t.data);
}

/* Damage anywhere never leads outside the file; in a compressed one it never goes unnoticed for
 * long. */
static void check_damage(Filter filter, int rounds)
{
    HelpTar t;
    make_sample_tar(&t, filter);
    CHECK_OK_SO_FAR();
    settings.order = PEN_PACK_SOURCE;
    uint32_t state = 7;
    for (int i = 0; i < rounds; i++) {
        uint8_t *copy = malloc(t.bytes);
        memcpy(copy, t.data, t.bytes);
        for (int k = 0; k <= i % 3; k++) {
            state = state * 1664525 + 1013904223;
            copy[(state >> 4) % t.bytes] ^= (uint8_t)(1u << (state & 7));
        }
        PenInputs in;
        PenError err = {0};
        int r = scan_memory(copy, t.bytes, &in, &err);
        for (uint64_t n = 0; r == 0 && n < in.n; n++) {
            PenCell c;
            if (get_cell(&in, n, "text", &c) && c.kind == PEN_PART_RANGE)
                CHECK(pen__range_ok(c.offset, c.bytes, t.bytes));
        }
        pen__inputs_free(&in);
        free(copy);
        CHECK(r == 0 || (err.status == r && err.message[0]));
    }
    settings.order = PEN_PACK_SHUFFLED;
    free(t.data);
}

TEST(damage)
{
    check_damage(NULL, 3000);
    CHECK_OK_SO_FAR();
    for (size_t i = 0; i < PEN_LEN(filters); i++) {
        check_damage(filters[i], 300);
        CHECK_OK_SO_FAR();
    }
}

static int sweep_file(PenError *err)
{
    const char *path = at("swept.tar");
    PenIngestSettings s = help_settings(&path, 1);
    s.order = PEN_PACK_SOURCE;
    PenInputs in = {.settings = &s};
    int r = pen__scan_sources(&in, err);
    pen__inputs_free(&in);
    return r;
}

TEST(every_call_fails)
{
    for (int packed = 0; packed < 2; packed++) {
        HelpTar t;
        make_sample_tar(&t, packed ? archive_write_add_filter_gzip : NULL);
        CHECK_OK_SO_FAR();
        help_file("swept.tar", t.data, t.bytes);
        free(t.data);
        int points = 0;
        fault_sweep(sweep_file, &points);
        CHECK_OK_SO_FAR();
        CHECK(points > 40);
    }
}

int main(int argc, char **argv)
{
    TEST_START(argc, argv);
    help_begin();
    RUN(members_with_the_same_stem_are_a_sample);
    RUN(offsets_are_those_of_the_data);
    RUN(names_do_not_depend_on_the_locale);
    RUN(names_that_are_not_utf8);
    RUN(what_is_no_file_is_refused);
    RUN(parts_that_do_not_go_together);
    RUN(labels);
    RUN(sizes);
    RUN(sparse_members_are_refused);
    RUN(sizes_that_differ_from_the_data);
    RUN(compressed_tars_need_the_source_order);
    RUN(packed_twice_is_refused);
    RUN(not_a_tar);
    RUN(every_truncation);
    RUN(damage);
    RUN(every_call_fails);
    help_end();
    return TEST_END();
}
