/* SPDX-License-Identifier: Apache-2.0 */
/* Entry tables: the parts of a JPEG file and their checksums. */
#include "pack/format/entry_table.h"

#include "base/bytes.h"
#include "base/error.h"
#include "test.h"

static const uint8_t id[16] = "0123456789abcde";
static uint8_t data[20000];
static const uint8_t coded[] = {1, 2, 3, 4, 5};

enum { WIDTH = 203, HEIGHT = 97 };

/* 4:2:0 of 13 x 7 MCUs, as a writer has it. */
static PenStoredEntries make_stored(uint32_t scan_bytes)
{
    PenStoredEntries s = {.lead_bytes = 20,
                          .head_bytes = 623,
                          .scan_bytes = scan_bytes,
                          .h_samp = 2,
                          .v_samp = 2,
                          .coded = coded,
                          .coded_bytes = sizeof coded};
    pen__entry_plan(13 * 7, 3, 8, 3, &s.plan);
    return s;
}

static const char *read_table(const PenBuf *b, uint64_t payload_bytes, PenEntryTable *ret)
{
    return pen__entry_table_read(ret, b->data, b->bytes, payload_bytes, WIDTH, HEIGHT);
}

static void check_round_trip(uint32_t scan_bytes, uint32_t n_runs)
{
    PenStoredEntries s = make_stored(scan_bytes);
    PenPlace place = {.id = id, .block = 3, .sample = 5};
    PenBuf b = {0};
    PenEntryTable t;
    uint64_t bytes = s.head_bytes + scan_bytes + 2, at = 0;
    CHECK_INT(pen__entry_table_write(&s, data, bytes, place, &b), PEN_OK);
    CHECK(pen__is_entry_table(b.data, b.bytes));
    CHECK(read_table(&b, bytes, &t) == NULL);
    CHECK_INT(t.stored.plan.n_entries, s.plan.n_entries);
    CHECK_INT(t.stored.plan.restart, 3);
    CHECK_INT(t.stored.coded_bytes, sizeof coded);
    CHECK_MEM(t.stored.coded, coded, sizeof coded);
    CHECK_INT(t.n_parts, n_runs + 3);
    for (uint32_t i = 0; i < t.n_parts; i++) {
        PenFilePart part = pen__entry_table_part(&t, i);
        CHECK_INT(part.offset, at);
        CHECK(part.bytes > 0 && (i < PEN_FILE_RUNS || part.bytes <= 4096));
        at += part.bytes;
        place.run = i;
        if (i)
            CHECK_INT(pen__entry_table_sum(&t, i),
                      pen__place_sum(&place, data + part.offset, (size_t)part.bytes));
    }
    CHECK_INT(at, bytes);
    pen__buf_free(&b);
}

TEST(parts_cover_the_file)
{
    for (size_t i = 0; i < sizeof data; i++)
        data[i] = (uint8_t)(i * 31 + i / 256);
    check_round_trip(1, 1);
    check_round_trip(4095, 1);
    check_round_trip(4096, 1);
    check_round_trip(4097, 2);
    check_round_trip(12289, 4);
}

/* A change of a number in the header of a table, and what is said of it. */
static void check_wrong(uint32_t offset, uint8_t xor_with, const char *expected)
{
    PenStoredEntries s = make_stored(9000);
    PenPlace place = {.id = id};
    PenBuf b = {0};
    PenEntryTable t;
    CHECK_INT(pen__entry_table_write(&s, data, 9700, place, &b), PEN_OK);
    b.data[offset] ^= xor_with;
    CHECK_STR(read_table(&b, 9700, &t), expected);
    pen__buf_free(&b);
}

TEST(what_a_table_must_not_say)
{
    static const char parts[] = "parts of an entry table do not add up to the payload";
    static const char sums[] = "number of checksums of an entry table does not match the payload";
    static const char size[] = "entry table does not match a JPEG of its size";
    static const char range[] = "intervals of an entry table are out of range";
    static const char count[] = "number of entries does not match the JPEG";
    check_wrong(1, 0x40, parts); /* head_bytes */
    check_wrong(4, 1, count);    /* n_entries */
    check_wrong(8, 1, sums);     /* n_sums */
    check_wrong(12, 8, range);   /* unit 0 */
    check_wrong(12, 16, range);  /* unit 24 */
    check_wrong(14, 3, "entry table too short");
    check_wrong(15, 1, size);     /* 2 components */
    check_wrong(15, 2, size);     /* 1 component with sampling 2 x 2 */
    check_wrong(16, 1, size);     /* 3 x 2 */
    check_wrong(17, 2, size);     /* 2 x 0 */
    check_wrong(18, 4, count);    /* restart */
    check_wrong(20, 20, parts);   /* lead_bytes 0 */
    check_wrong(21, 0x40, parts); /* lead_bytes above head_bytes */
    check_wrong(25, 0x40, parts); /* scan_bytes */
    check_wrong(25, 0x20, sums);
}

TEST(tables_end_where_they_should)
{
    PenStoredEntries s = make_stored(9000);
    PenPlace place = {.id = id};
    PenBuf b = {0};
    PenEntryTable t;
    CHECK_INT(pen__entry_table_write(&s, data, 9625, place, &b), PEN_OK);
    CHECK(read_table(&b, 9625, &t) == NULL);
    CHECK(read_table(&b, 9624, &t) != NULL); /* no room for EOI */
    b.bytes -= sizeof coded;
    CHECK(read_table(&b, 9625, &t) == NULL);
    CHECK_INT(t.stored.coded_bytes, 0);
    while (b.bytes) {
        b.bytes--;
        CHECK(read_table(&b, 9625, &t) != NULL);
    }
    pen__buf_free(&b);
}

int main(int argc, char **argv)
{
    TEST_START(argc, argv);
    RUN(parts_cover_the_file);
    RUN(what_a_table_must_not_say);
    RUN(tables_end_where_they_should);
    return TEST_END();
}
