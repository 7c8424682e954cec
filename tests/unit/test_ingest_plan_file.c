/* SPDX-License-Identifier: Apache-2.0 */
#include <malloc.h>

#include "base/crc32c.h"
#include "fault_sweep.h"
#include "ingest_plan_help.h"

/* ---- the file -------------------------------------------------------------------------------- */

static uint8_t *load_plan(size_t *ret_bytes)
{
    FILE *f = fopen(at("plan"), "rb");
    fseek(f, 0, SEEK_END);
    *ret_bytes = (size_t)ftell(f);
    rewind(f);
    uint8_t *p = malloc(*ret_bytes);
    if (fread(p, 1, *ret_bytes, f) != *ret_bytes)
        abort();
    fclose(f);
    return p;
}

/* Opens the file "damaged" and reads every item of it. */
static int read_damaged(PenError *err)
{
    PenPlan *plan = NULL;
    PenBuf scratch = {0};
    int r = pen__plan_open(at("damaged"), &plan, err);
    for (uint64_t i = 0; r == 0 && i < pen__plan_info(plan)->n_items; i++) {
        PenItem item;
        char name[64];
        r = pen__plan_item(plan, i, &item, &scratch, err);
        for (uint32_t k = 0; r == 0 && k < item.n_parts; k++)
            pen__part_name(plan, &item.parts[k], name, sizeof name);
    }
    pen__buf_free(&scratch);
    pen__plan_close(&plan);
    return r;
}

static void make_small_plan(void)
{
    help_text("s.csv", "path,label,mask,x,t\n"
                       "f/cat/1.jpg,b,f/cat/2.jpg,1.5,u\nf/dog/1.jpg,a,,2,v\n");
    ask("s.csv");
    CHECK_GOES(make(&err));
}

TEST(the_same_twice)
{
    make_small_plan();
    size_t a, b;
    uint8_t *first = load_plan(&a);
    CHECK_GOES(make(&err)); /* written anew, the list would have another stamp */
    uint8_t *second = load_plan(&b);
    CHECK_INT(a, b);
    CHECK_MEM(first, second, a);
    free(first);
    free(second);
    struct stat st;
    CHECK(stat(at("plan.part"), &st) < 0);
}

TEST(every_bit_matters)
{
    size_t bytes;
    make_small_plan();
    uint8_t *p = load_plan(&bytes);
    for (size_t i = 0; i < bytes * 8; i++) {
        PenError err = {0};
        p[i / 8] ^= (uint8_t)(1u << i % 8);
        help_file("damaged", p, bytes);
        p[i / 8] ^= (uint8_t)(1u << i % 8);
        int r = read_damaged(&err);
        if (r >= 0 || err.status != r || !err.message[0])
            test__fail(__FILE__, __LINE__, "bit %zu of byte %zu of %zu went unnoticed", i % 8,
                       i / 8, bytes);
        CHECK_OK_SO_FAR();
    }
    for (size_t n = 0; n < bytes; n++) {
        PenError err = {0};
        help_file("damaged", p, n);
        CHECK(read_damaged(&err) < 0);
    }
    free(p);
}

static void repair(uint8_t *p, size_t bytes)
{
    uint8_t *foot = p + bytes - PEN_PLAN_FOOT;
    uint64_t table = pen__load64(foot + PEN_FOOT_TABLE_OFFSET);
    uint64_t texts = pen__load64(foot + PEN_FOOT_TEXTS_OFFSET);
    if (texts <= bytes - PEN_PLAN_FOOT)
        pen__store32(foot + PEN_FOOT_TEXTS_CRC,
                     pen__crc32c(0, p + texts, bytes - PEN_PLAN_FOOT - texts));
    uint64_t marks = table + 2 * PEN_PLAN_ENTRY;
    if (pen__range_ok(marks, 16, bytes))
        pen__store32(foot + PEN_FOOT_MARKS_CRC, pen__crc32c(0, p + marks, 16));
    for (uint64_t i = 0; i < 2 && pen__range_ok(table, 2 * PEN_PLAN_ENTRY, bytes); i++) {
        uint8_t *entry = p + table + i * PEN_PLAN_ENTRY;
        uint64_t offset = pen__load64(entry);
        uint32_t n = pen__load32(entry + 8);
        if (pen__range_ok(offset, n, bytes))
            pen__store32(entry + 12,
                         pen__crc32c(pen__crc32c(pen__crc32c(0, &i, 8), p + offset, n),
                                     entry + PEN_PLAN_ENTRY - PEN_ENTRY_INPUTS, PEN_ENTRY_INPUTS));
    }
    pen__store32(foot + PEN_FOOT_CRC,
                 pen__crc32c(0, foot + PEN_FOOT_FILE_BYTES, PEN_PLAN_FOOT - PEN_FOOT_FILE_BYTES));
}

/* Someone who can reckon checksums gets no further than an error either. */
TEST(damage_with_right_checksums)
{
    size_t bytes;
    make_small_plan();
    uint8_t *good = load_plan(&bytes), *p = malloc(bytes);
    uint32_t state = 3;
    int refused = 0;
    for (int i = 0; i < 6000; i++) {
        memcpy(p, good, bytes);
        for (int k = 0; k <= i % 4; k++) {
            state = state * 1664525 + 1013904223;
            uint8_t value = (uint8_t)(state >> 24);
            p[(state >> 6) % bytes] = i % 2 ? value : (uint8_t)(value & 1 ? 0xff : 0);
        }
        repair(p, bytes);
        help_file("damaged", p, bytes);
        PenError err = {0};
        int r = read_damaged(&err);
        CHECK(r == 0 || (err.status == r && err.message[0]));
        refused += r < 0;
    }
    CHECK(refused > 1000 && refused < 6000);
    free(good);
    free(p);
}

/* Counts and places that the file has no room for are refused before memory is taken for them. */
TEST(counts_that_do_not_fit)
{
    static const struct {
        int at;
        uint32_t value;
    } cases[] = {{PEN_FOOT_N_CLASSES, 0x7fffffff},
                 {PEN_FOOT_N_ROOTS, 0x7fffffff},
                 {PEN_FOOT_N_FIELDS, 0},
                 {PEN_FOOT_N_FIELDS, 257},
                 {PEN_FOOT_N_ITEMS, 3},
                 {PEN_FOOT_N_ITEMS + 4, 0x10000000},
                 {PEN_FOOT_BLOCK_SAMPLES, 0},
                 {PEN_FOOT_TABLE_OFFSET, 0},
                 {PEN_FOOT_TEXTS_OFFSET + 4, 0xffffffff},
                 {PEN_FOOT_CLASS_FIELD, 0},
                 {PEN_FOOT_CLASS_FIELD, 0xfffffffe},
                 {PEN_FOOT_CLASS_FIELD, 5},
                 {PEN_FOOT_STRIDE, 0},
                 {PEN_FOOT_STRIDE, 2}};
    size_t bytes;
    make_small_plan();
    uint8_t *p = load_plan(&bytes);
    uint8_t *foot = p + bytes - PEN_PLAN_FOOT;
    for (size_t i = 0; i < PEN_LEN(cases); i++) {
        uint32_t was = pen__load32(foot + cases[i].at);
        CHECK(was != cases[i].value);
        pen__store32(foot + cases[i].at, cases[i].value);
        repair(p, bytes);
        help_file("damaged", p, bytes);
        pen__store32(foot + cases[i].at, was);
        PenError err = {0};
        int r = read_damaged(&err);
        if (r != PEN_E_CORRUPT)
            test__fail(__FILE__, __LINE__, "case %zu: found %d \"%s\"", i, r, err.message);
    }
    repair(p, bytes);
    help_file("damaged", p, bytes);
    CHECK_GOES(read_damaged(&err));
    free(p);
}

static int parse(const void *record, size_t bytes, PenError *err)
{
    static const PenField fields[] = {{.name = "image", .type = PEN_TYPE_IMAGE},
                                      {.name = "n", .type = PEN_TYPE_I64}};
    static const PenRoot roots[] = {{.kind = PEN_ROOT_FOLDER, .path = "f"},
                                    {.kind = PEN_ROOT_TAR, .path = "t"}};
    PenRecordFrame frame = {.n_fields = 2, .fields = fields, .n_roots = 2, .roots = roots};
    PenBuf scratch = {0};
    PenItem item;
    int r = pen__buf_add(&scratch, record, bytes);
    if (r == 0)
        r = pen__record_parse(&frame, &item, &scratch, err);
    pen__buf_free(&scratch);
    return r;
}

#define KEY "\1\0\0\0k"
#define FILE_PART "\x11\0\0\0\0\7\0\0\0\0\0\0\0"
#define TAR_PART "\x22\1\0\0\0\0\0\0\0\0\0\0\0\7\0\0\0\0\0\0\0\3\0\0\0jpg"
#define NUMBER                                                                                     \
    "\4\x8\0\0\0"                                                                                  \
    "12345678"
#define STAMP "123456781234567812345678"

/* Records whose checksums are right and which still make no sense. */
TEST(records_that_do_not_fit)
{
    static const struct {
        const char *record;
        size_t bytes;
        int status;
    } cases[] = {
#define RECORD(text, status) {text, sizeof(text) - 1, status}
        RECORD(KEY FILE_PART NUMBER STAMP, PEN_OK),
        RECORD(KEY TAR_PART NUMBER, PEN_OK),
        RECORD(KEY "\0" NUMBER, PEN_OK),
        RECORD(KEY FILE_PART NUMBER STAMP "x", PEN_E_CORRUPT), /* more behind it */
        RECORD(KEY FILE_PART NUMBER, PEN_E_CORRUPT),           /* no stamp */
        RECORD(KEY TAR_PART NUMBER STAMP, PEN_E_CORRUPT),      /* a stamp, and no file of its own */
        RECORD(KEY FILE_PART "\0", PEN_E_CORRUPT),             /* no number */
        RECORD(KEY FILE_PART "\4\4\0\0\0abcd", PEN_E_CORRUPT), /* half a number */
        RECORD(KEY FILE_PART FILE_PART, PEN_E_CORRUPT),        /* a file for a number */
        RECORD(KEY "\4\1\0\0\0x" NUMBER, PEN_E_CORRUPT),       /* an image in the plan */
        RECORD(KEY "\x11\1\0\0\0\7\0\0\0\0\0\0\0" NUMBER, PEN_E_CORRUPT), /* a file in a tar */
        RECORD(KEY "\x11\2\0\0\0\7\0\0\0\0\0\0\0" NUMBER, PEN_E_CORRUPT), /* no such source */
        RECORD(KEY "\x31\0\0\0\0\7\0\0\0\0\0\0\0\3\0\0\0a\0b" NUMBER, PEN_E_CORRUPT),
        RECORD(KEY "\x31\0\0\0\0\7\0\0\0\0\0\0\0\xff\xff\xff\xff" NUMBER, PEN_E_CORRUPT),
        RECORD(KEY "\x15" NUMBER, PEN_E_CORRUPT), /* no such kind */
        RECORD("\0\0\0\0" FILE_PART NUMBER, PEN_E_CORRUPT),
        RECORD("\1\0\0\0\0" FILE_PART NUMBER, PEN_E_CORRUPT),
        RECORD("\xff\xff\xff\xffk" FILE_PART NUMBER, PEN_E_CORRUPT),
        RECORD("", PEN_E_CORRUPT),
#undef RECORD
    };
    for (size_t i = 0; i < PEN_LEN(cases); i++) {
        PenError err = {0};
        int r = parse(cases[i].record, cases[i].bytes, &err);
        if (r != cases[i].status)
            test__fail(__FILE__, __LINE__, "record %zu: found %d \"%s\"", i, r, err.message);
    }
    for (size_t n = 0; n < cases[1].bytes; n++) {
        PenError err = {0};
        CHECK_INT(parse(cases[1].record, n, &err), PEN_E_CORRUPT);
    }
}

/* ---- memory ---------------------------------------------------------------------------------- */

static struct {
    size_t now, most;
} counted;

static void *count_alloc(size_t bytes)
{
    void *p = malloc(bytes);
    counted.now += malloc_usable_size(p);
    counted.most = PEN_MAX(counted.most, counted.now);
    return p;
}

static void *count_resize(void *old, size_t bytes)
{
    counted.now -= malloc_usable_size(old);
    void *p = realloc(old, bytes);
    counted.now += malloc_usable_size(p);
    counted.most = PEN_MAX(counted.most, counted.now);
    return p;
}

static void count_release(void *p)
{
    counted.now -= malloc_usable_size(p);
    free(p);
}

TEST(memory_per_input)
{
    enum { N = 20000 };
    size_t cap = N * 64 + 100;
    char *text = malloc(cap);
    size_t n = (size_t)snprintf(text, cap, "path,label,note\n");
    for (int i = 0; i < N; i++)
        n += (size_t)snprintf(text + n, cap - n, "class%03d/n0144076%04d_%05d.JPEG,class%03d,%d\n",
                              i % 100, i % 100, i, i % 100, i);
    help_file("memory.csv", text, n);
    free(text);
    ask("memory.csv");
    settings.skip_bad = 1; /* the files do not matter */
    PenSys sys = pen__sys_real;
    sys.alloc = count_alloc;
    sys.resize = count_resize;
    sys.release = count_release;
    memset(&counted, 0, sizeof counted);
    pen__sys = &sys;
    PenError err = {0};
    int r = make(&err);
    pen__sys = &pen__sys_real;
    CHECK_INT(r, 0);
    CHECK_INT(counted.now, 0);
    printf("memory_per_input: %zu bytes\n", counted.most / N);
    CHECK(counted.most / N < 305);
}

/* ---- failures -------------------------------------------------------------------------------- */

/* What the plan is when nothing fails. */
static uint8_t *right_plan;
static size_t right_bytes;

static int make_and_compare(PenError *err)
{
    unlink(at("plan"));
    int r = make_and_read(err);
    if (r == 0) {
        size_t bytes;
        uint8_t *p = load_plan(&bytes);
        bool same = bytes == right_bytes && memcmp(p, right_plan, bytes) == 0;
        free(p);
        if (!same)
            return pen__fail(err, PEN_E_CORRUPT, "", "wrong plan"); /* no place: found out */
    }
    return r;
}

static void sweep(const char *what)
{
    int points = 0;
    CHECK_GOES(make(&err));
    right_plan = load_plan(&right_bytes);
    fault_sweep(make_and_compare, &points);
    free(right_plan);
    CHECK_OK_SO_FAR();
    printf("every_call_fails: %s: %d points\n", what, points);
    CHECK(points > 100);
}

TEST(every_call_fails)
{
    ask("f");
    sweep("folder");
    CHECK_OK_SO_FAR();
    make_small_plan();
    const char *classes[] = {"a", "b"};
    PenPackInfo from = with_classes(classes, 2);
    request.classes_from = &from;
    settings.fraction = 0.9;
    sweep("list");
    CHECK_OK_SO_FAR();
    make_tar("ch.tar", 0, 3, NULL);
    ask("ch.tar");
    sweep("tar");
    CHECK_OK_SO_FAR();
    make_tar("ch.tgz", 0, 3, archive_write_add_filter_gzip);
    ask("ch.tgz");
    settings.order = PEN_PACK_SOURCE;
    sweep("compressed tar");
    CHECK_OK_SO_FAR();
    make_png("{p,q}/a/1.png", 900, 600);
    make_png("{p,q}/b/2.png", 600, 900);
    help_text("p/a/1.png", "not these, which the name would stand for if it were a pattern");
    help_text("q/a/2.png", "nor these");
    ask("{p,q}");
    settings.mode = PEN_MODE_RAW;
    sweep("raw");
}

int main(int argc, char **argv)
{
    TEST_START(argc, argv);
    help_begin();
    make_folder("f");
    RUN(the_same_twice);
    RUN(every_bit_matters);
    RUN(damage_with_right_checksums);
    RUN(counts_that_do_not_fit);
    RUN(records_that_do_not_fit);
    RUN(memory_per_input);
    RUN(every_call_fails);
    help_end();
    return TEST_END();
}
