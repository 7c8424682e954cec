/* SPDX-License-Identifier: Apache-2.0 */
/* Columns through the C calls: ranges, reads, errors, and every call that can fail. */
#include <stdatomic.h>

#include "fault_sweep.h"
#include "load_help.h"
#include "pack/format/columns.h"

enum { SAMPLES = 70, WIDE = 9 };

static atomic_int columns_read, indexes_read;
static int64_t wide[WIDE];

static int64_t counting_pread(int fd, void *buf, size_t bytes, uint64_t offset)
{
    if (bytes == 8 * 8 + 4 || bytes == (SAMPLES % 8) * 8 + 4)
        columns_read++;
    else if (bytes > 300 && bytes < 700) /* other sizes are of files of the system */
        indexes_read++;
    return pen__sys_real.pread(fd, buf, bytes, offset);
}

/* Labels, and numbers that are too wide for a column; several shards of 8 samples. */
static int write_pack(const char *name, PenPack **ret, PenError *err)
{
    static const PenField fields[] = {
        {.name = "label", .type = PEN_TYPE_I64},
        {.name = "wide", .type = PEN_TYPE_I64, .n_dims = 1, .dims = {WIDE}},
        {.name = "text", .type = PEN_TYPE_TEXT}};
    PenWriterSettings s;
    PenWriter *w = NULL;
    pen_writer_settings_init(&s);
    s.fields = fields;
    s.n_fields = 3;
    s.block_samples = 4;
    s.shard_bytes = 1200;
    int r = pen_writer_open(at(name), &s, &w, err);
    for (int64_t i = 0; i < SAMPLES && r == PEN_OK; i++) {
        wide[WIDE - 1] = -i;
        PenValue values[3] = {{.data = &i, .bytes = sizeof i},
                              {.data = wide, .bytes = sizeof wide},
                              {.data = "x", .bytes = 1}};
        r = pen_writer_add(w, &i, sizeof i, values, 3, err);
    }
    if (r == PEN_OK)
        r = pen_writer_finish(w, NULL, err);
    pen_writer_close(&w);
    return r == PEN_OK && ret ? pen_pack_open(at(name), NULL, ret, err) : r;
}

TEST(ranges)
{
    PenError err = {0};
    PenPack *pack = NULL;
    size_t bytes = 0;
    CHECK_INT(write_pack("ranges.pen", &pack, &err), PEN_OK);
    CHECK(pen_pack_info(pack)->n_shards > 4);
    for (uint64_t first = 0; first < SAMPLES; first += 3)
        for (uint64_t n = 0; n <= SAMPLES - first; n += 1 + n / 2) {
            int64_t labels[SAMPLES + 1], rows[SAMPLES][WIDE];
            PenColumnRange range = {.field = 0, .first = first, .n = n};
            labels[n] = 77;
            CHECK_INT(pen_pack_column(pack, &range, labels, n * 8, &bytes, &err), PEN_OK);
            CHECK_INT(bytes, n * 8);
            CHECK_INT(labels[n], 77);
            range.field = 1;
            CHECK_INT(pen_pack_column(pack, &range, rows, sizeof rows, &bytes, &err), PEN_OK);
            CHECK_INT(bytes, n * sizeof rows[0]);
            for (uint64_t i = 0; i < n; i++) {
                CHECK_INT(labels[i], first + i);
                CHECK_INT(rows[i][WIDE - 1], -(int64_t)(first + i));
            }
        }
    pen_pack_close(&pack);
}

TEST(a_column_is_one_read_for_each_shard)
{
    static PenSys sys;
    PenError err = {0};
    PenPack *pack = NULL;
    int64_t labels[SAMPLES];
    size_t bytes;
    PenColumnRange range = {.field = 0, .n = SAMPLES};
    CHECK_INT(write_pack("reads.pen", &pack, &err), PEN_OK);
    CHECK_INT(pen_pack_column(pack, &range, labels, sizeof labels, &bytes, &err), PEN_OK);
    sys = pen__sys_real;
    sys.pread = counting_pread;
    pen__sys = &sys;
    CHECK_INT(pen_pack_column(pack, &range, labels, sizeof labels, &bytes, &err), PEN_OK);
    CHECK_INT(columns_read, pen_pack_info(pack)->n_shards); /* their tails are in memory */
    CHECK_INT(indexes_read, 0);
    range.field = 1;
    CHECK_INT(pen_pack_column(pack, &range, NULL, 0, &bytes, &err), PEN_OK);
    CHECK_INT(bytes, sizeof wide * SAMPLES);
    CHECK_INT(indexes_read, 0);
    void *rows = malloc(bytes);
    CHECK_INT(pen_pack_column(pack, &range, rows, bytes, &bytes, &err), PEN_OK);
    CHECK_INT(indexes_read, pen_pack_info(pack)->n_blocks);
    pen__sys = &pen__sys_real;
    free(rows);
    pen_pack_close(&pack);
}

TEST(errors)
{
    PenError err = {0};
    PenPack *pack = NULL;
    int64_t labels[SAMPLES];
    size_t bytes;
    static const struct {
        PenColumnRange range;
        int status;
        const char *message;
    } cases[] = {
        {{.field = 3, .n = 1}, PEN_E_NOT_FOUND, "field 3: expected a number below 3"},
        {{.field = 0, .first = 71}, PEN_E_NOT_FOUND, "0 samples from sample 71 on: it has 70"},
        {{.field = 0, .first = 69, .n = 2}, PEN_E_NOT_FOUND, "2 samples from sample 69 on"},
        {{.field = 0, .first = 1, .n = UINT64_MAX}, PEN_E_NOT_FOUND, "from sample 1 on"},
        {{.field = 1, .n = 70}, PEN_E_LIMIT, "70 values of 72 bytes, but the buffer holds 560"},
        {{.field = 0, .what = -1, .n = 1}, PEN_E_INVALID, "column -1: expected a number below 3"},
        {{.field = 0, .what = 3, .n = 1}, PEN_E_INVALID, "column 3: expected a number below 3"},
        {{.field = 0, .what = PEN_COLUMN_SIZE, .n = 1},
         PEN_E_INVALID,
         "field 'label': expected an image or clip, found i64"},
        {{.field = 0, .what = PEN_COLUMN_FRAMES, .n = 1},
         PEN_E_INVALID,
         "field 'label': expected a clip, found i64"},
        {{.field = 2, .n = 1},
         PEN_E_INVALID,
         "field 'text': expected numbers of one shape, found text"},
    };
    CHECK_INT(write_pack("errors.pen", &pack, &err), PEN_OK);
    for (size_t i = 0; i < PEN_LEN(cases); i++) {
        CHECK_INT(pen_pack_column(pack, &cases[i].range, labels, sizeof labels, &bytes, &err),
                  cases[i].status);
        CHECK(strstr(err.message, cases[i].message));
    }
    pen_pack_close(&pack);
}

/* A fault in a thread that reads may come at any of its calls: the sweep wants one order. */
static int read_once(PenError *err)
{
    PenPack *pack = NULL;
    int64_t labels[SAMPLES], rows[SAMPLES][WIDE];
    size_t bytes;
    PenColumnRange range = {.field = 0, .n = SAMPLES};
    int r = pen_pack_open(at("sweep.pen"), NULL, &pack, err);
    if (r == PEN_OK)
        r = pen_pack_column(pack, &range, labels, sizeof labels, &bytes, err);
    range.field = 1;
    if (r == PEN_OK)
        r = pen_pack_column(pack, &range, rows, sizeof rows, &bytes, err);
    pen_pack_close(&pack);
    return r;
}

TEST(every_call_may_fail)
{
    PenError err = {0};
    int points = 0;
    CHECK_INT(write_pack("sweep.pen", NULL, &err), PEN_OK);
    fault_sweep(read_once, &points);
    CHECK(points > 20);
}

static uint64_t section_bytes;

static int build_once(void)
{
    static const PenField fields[] = {{.name = "a", .type = PEN_TYPE_I64},
                                      {.name = "b", .type = PEN_TYPE_F64}};
    static const uint8_t id[PEN_ID_BYTES] = {1}, index[64 + 2 * (16 + 8 + 8)] = {2};
    PenSchema schema = {.n_fields = 0};
    PenColumns columns = {.n = 0};
    PenBuf section = {0};
    int r = pen__schema_init(&schema, fields, 2, NULL);
    for (int i = 0; i < 100 && r == PEN_OK; i++)
        r = pen__columns_add(&columns, &schema, index, 2, 500);
    if (r == PEN_OK)
        r = pen__columns_write(&columns, &schema, id, &section);
    section_bytes = section.bytes;
    pen__columns_free(&columns, &schema);
    pen__buf_free(&section);
    pen__schema_fini(&schema);
    return r;
}

TEST(columns_without_memory)
{
    CHECK(fault_sweep_memory(build_once) > 4);
    CHECK_INT(section_bytes, 32 + 2 * (200 * 8 + 4));
}

int main(void)
{
    help_begin();
    RUN(ranges);
    RUN(a_column_is_one_read_for_each_shard);
    RUN(errors);
    RUN(every_call_may_fail);
    RUN(columns_without_memory);
    help_end();
    return TEST_END();
}
