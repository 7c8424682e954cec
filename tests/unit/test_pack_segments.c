/* SPDX-License-Identifier: Apache-2.0 */
#include "pack/format/segments.h"

#include "base/bytes.h"
#include "base/error.h"
#include "test.h"

static const uint8_t id[16] = "0123456789abcde";
static uint8_t data[200000];

static void fill(void)
{
    for (size_t i = 0; i < sizeof data; i++)
        data[i] = (uint8_t)(i * 31 + i / 256);
}

static void write_table(const PenSegments *s, uint64_t bytes, PenBuf *out)
{
    PenPlace place = {.id = id, .block = 3, .sample = 5};
    out->bytes = 0;
    CHECK_INT(pen__segments_write(s, data, bytes, place, out), PEN_OK);
}

TEST(runs_reach_4096_bytes_and_cover_the_payload)
{
    uint32_t lengths[100];
    uint64_t total = 400;
    for (uint32_t i = 0; i < 100; i++)
        total += lengths[i] = 50 + i * 37 % 900;
    PenSegments s = {.head_bytes = 400, .n_segments = 100, .lengths = lengths, .unit = 8};
    PenBuf buf = {0};
    PenSegmentTable t;
    PenRun run;
    write_table(&s, total, &buf);
    CHECK(pen__segments_read(&t, buf.data, buf.bytes, total) == NULL);
    CHECK_INT(t.length_bytes, 2);
    uint64_t at = 400;
    uint32_t n = 0;
    pen__run_first(&t, &run);
    do {
        CHECK_INT(run.run, n++);
        CHECK_INT(run.offset, at);
        CHECK(run.bytes >= 4096 || run.end == 100);
        CHECK(run.bytes - lengths[run.end - 1] < 4096);
        PenPlace place = {.id = id, .block = 3, .sample = 5, .run = run.run + 1};
        CHECK_INT(pen__run_sum(&t, run.run), pen__place_sum(&place, data + at, run.bytes));
        at += run.bytes;
    } while (pen__run_next(&t, &run));
    CHECK_INT(at, total);
    CHECK_INT(n, t.n_runs);
    pen__buf_free(&buf);
}

TEST(long_segments_take_four_bytes)
{
    uint32_t lengths[3] = {10, 70000, 20};
    PenSegments s = {.head_bytes = 100, .n_segments = 3, .lengths = lengths, .unit = 8};
    PenBuf buf = {0};
    PenSegmentTable t;
    write_table(&s, 70130, &buf);
    CHECK(pen__segments_read(&t, buf.data, buf.bytes, 70130) == NULL);
    CHECK_INT(t.length_bytes, 4);
    CHECK_INT(pen__segment_bytes(&t, 1), 70000);
    CHECK_INT(t.n_runs, 2);
    pen__buf_free(&buf);
}

TEST(rows_are_not_listed)
{
    PenSegments s = {.n_segments = 50};
    PenBuf buf = {0};
    PenSegmentTable t;
    write_table(&s, 50 * 1500, &buf);
    CHECK(pen__segments_read(&t, buf.data, buf.bytes, 50 * 1500) == NULL);
    CHECK_INT(t.length_bytes, 0);
    CHECK_INT(pen__segment_bytes(&t, 49), 1500);
    CHECK_INT(t.n_runs, 17);
    pen__buf_free(&buf);
}

TEST(a_table_that_does_not_fit_is_refused)
{
    uint32_t lengths[4] = {5000, 5000, 100, 300};
    PenSegments s = {.head_bytes = 40, .n_segments = 4, .lengths = lengths, .unit = 8};
    PenBuf buf = {0};
    PenSegmentTable t;
    write_table(&s, 10440, &buf);
    CHECK(pen__segments_read(&t, buf.data, buf.bytes, 10440) == NULL);
    CHECK(pen__segments_read(&t, buf.data, buf.bytes, 10441) != NULL);
    CHECK(pen__segments_read(&t, buf.data, buf.bytes, 10439) != NULL);
    CHECK(pen__segments_read(&t, buf.data, buf.bytes, 30) != NULL);
    for (size_t n = 0; n < buf.bytes; n++)
        CHECK(pen__segments_read(&t, buf.data, n, 10440) != NULL);
    for (size_t i = 0; i < 12; i++) { /* head, number of segments, number of runs */
        buf.data[i] ^= 1;
        CHECK(pen__segments_read(&t, buf.data, buf.bytes, 10440) != NULL);
        buf.data[i] ^= 1;
    }
    pen__store16(buf.data + buf.bytes - 4, 0); /* an empty segment, though the sum is right */
    pen__store16(buf.data + buf.bytes - 2, 400);
    CHECK(pen__segments_read(&t, buf.data, buf.bytes, 10440) != NULL);
    pen__buf_free(&buf);
}

int main(int argc, char **argv)
{
    TEST_START(argc, argv);
    fill();
    RUN(runs_reach_4096_bytes_and_cover_the_payload);
    RUN(long_segments_take_four_bytes);
    RUN(rows_are_not_listed);
    RUN(a_table_that_does_not_fit_is_refused);
    return TEST_END();
}
