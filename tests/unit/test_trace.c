/* SPDX-License-Identifier: Apache-2.0 */
/* A trace: its ring, its text, its file, and what it does when the file cannot be written. */
#include <math.h>
#include <penstock/trace.h>

#include "base/thread.h"
#include "fault_sweep.h"
#include "ingest_help.h"
#include "io/source.h"
#include "trace/event.h"
#include "trace/trace.h"

static const PenSpan span = {.tag = PEN_SPAN_DECODE,
                             .begin_ns = 1002003,
                             .end_ns = 1002103,
                             .subject = 7,
                             .batch = 2,
                             .epoch = 1,
                             .tid = 44};

/* ---- ring ---- */

TEST(a_full_ring_counts_what_it_drops)
{
    PenSpanRing *ring = pen__span_ring_new();
    CHECK(ring);
    for (uint64_t round = 0; round < 3; round++) {
        for (uint64_t i = 0; i < PEN_SPAN_RING + 5; i++)
            pen__span_ring_add(ring, &(PenSpan){.subject = i});
        CHECK_INT(pen__span_ring_ready(ring), PEN_SPAN_RING);
        CHECK_INT(atomic_load(&ring->dropped), 5 * (round + 1));
        for (uint64_t i = 0; i < PEN_SPAN_RING; i++)
            CHECK_INT(pen__span_ring_at(ring, i)->subject, i);
        pen__span_ring_take(ring, PEN_SPAN_RING);
        CHECK_INT(pen__span_ring_ready(ring), 0);
    }
    CHECK(!pen__span_ring_is_left(ring));
    pen__span_ring_leave(ring);
    CHECK(pen__span_ring_is_left(ring));
    pen__span_ring_leave(ring);
}

/* ---- text ---- */

static void check_text(PenBuf *text, const char *expected)
{
    CHECK_INT(pen__buf_add(text, "", 1), PEN_OK);
    CHECK_STR((const char *)text->data, expected);
    text->bytes = 0;
}

TEST(events_are_lines_of_json)
{
    PenBuf text = {0};
    unsigned n;
    CHECK_INT(pen__event_span(&text, 9, &span, 1, &n), PEN_OK);
    CHECK_INT(n, 1);
    check_text(&text, "{\"ph\":\"X\",\"pid\":9,\"tid\":44,\"ts\":1002.003,\"dur\":0.100,\"name\":"
                      "\"decode\",\"args\":{\"sample\":7,\"batch\":2,\"epoch\":1}},\n");
    CHECK_OK_SO_FAR();
    PenSpan batch = span;
    batch.tag = PEN_SPAN_BATCH;
    CHECK_INT(pen__event_span(&text, 9, &batch, 5, &n), PEN_OK);
    CHECK_INT(n, 3);
    check_text(&text,
               "{\"ph\":\"b\",\"pid\":9,\"tid\":44,\"ts\":1002.003,\"cat\":\"batch\",\"id\":5"
               ",\"name\":\"get_batch\",\"args\":{\"batch\":2,\"epoch\":1}},\n"
               "{\"ph\":\"e\",\"pid\":9,\"tid\":44,\"ts\":1002.103,\"cat\":\"batch\",\"id\":5"
               ",\"name\":\"get_batch\",\"args\":{\"batch\":2,\"epoch\":1}},\n"
               "{\"ph\":\"i\",\"s\":\"t\",\"pid\":9,\"tid\":44,\"ts\":1002.103,\"name\":"
               "\"batch_ready\",\"args\":{\"batch\":2,\"epoch\":1}},\n");
    pen__buf_free(&text);
}

TEST(counters_are_numbers)
{
    static const struct {
        double value;
        const char *text;
    } cases[] = {{97.5, "97.5"}, {0, "0"}, {-1e300, "-1e+300"}, {INFINITY, "0"}, {NAN, "0"}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        PenBuf text = {0};
        char expected[200];
        snprintf(
            expected, sizeof expected,
            "{\"ph\":\"C\",\"pid\":9,\"ts\":1.002,\"name\":\"cpu\",\"args\":{\"a\\u0022\":%s}},\n",
            cases[i].text);
        CHECK_INT(pen__event_counter(&text, 9, 1002, "cpu", "a\"", cases[i].value), PEN_OK);
        check_text(&text, expected);
        CHECK_OK_SO_FAR();
        pen__buf_free(&text);
    }
}

/* Every number at its largest fits into what is reserved. */
TEST(the_largest_events_fit)
{
    for (int tag = 0; tag < PEN_SPAN_THREAD; tag++) {
        PenSpan s = {.tag = (PenSpanTag)tag,
                     .end_ns = UINT64_MAX,
                     .subject = UINT64_MAX,
                     .bytes = UINT64_MAX,
                     .batch = UINT64_MAX,
                     .epoch = UINT64_MAX,
                     .tid = UINT32_MAX};
        PenBuf text = {0};
        unsigned n;
        CHECK_INT(pen__event_span(&text, INT32_MAX, &s, UINT64_MAX, &n), PEN_OK);
        CHECK(text.bytes < n * 400);
        pen__buf_free(&text);
    }
}

TEST(names_of_any_bytes_are_valid_json)
{
    static const struct {
        const char *name, *json;
    } cases[] = {
        {"forward", "\"forward\""},
        {"a \"b\" \\ \n\x7f", "\"a \\u0022b\\u0022 \\u005c \\u000a\\u007f\""},
        {"gr\xc3\xbc\xc3\x9f", "\"gr\xc3\xbc\xc3\x9f\""},
        {"\xf0\x9f\x98\x80", "\"\xf0\x9f\x98\x80\""},
        {"a\xff\xc3 b\x80", "\"a?? b?\""},
        {"\xed\xa0\x80", "\"???\""},           /* a surrogate */
        {"\xc0\xaf\xe0\x80\xaf", "\"?????\""}, /* longer than they need to be */
        {"\xe2\x82", "\"??\""},                /* cut */
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        PenBuf text = {0};
        char expected[200];
        snprintf(expected, sizeof expected,
                 "{\"ph\":\"M\",\"pid\":1,\"tid\":2,\"name\":\"k\",\"args\":{\"v\":%s}},\n",
                 cases[i].json);
        CHECK_INT(pen__event_text(&text, 1, 2, "k", "v", cases[i].name), PEN_OK);
        check_text(&text, expected);
        CHECK_OK_SO_FAR();
        pen__buf_free(&text);
    }
}

TEST(a_long_name_is_cut)
{
    static char name[9000];
    PenBuf text = {0};
    memset(name, '"', sizeof name - 1);
    CHECK_INT(pen__event_named(&text, 1, &span, name), PEN_OK);
    CHECK(text.bytes > 1000 && text.bytes < 1424);
    CHECK_MEM(text.data + text.bytes - 5, "2\"},\n", 5);
    pen__buf_free(&text);
}

/* ---- file ---- */

static int open_trace(const char *name, PenTrace **ret, PenError *err)
{
    return pen_trace_open(at(name), NULL, ret, err);
}

/* Writes a trace of one span of each kind. */
static int trace_once(const char *name, PenTraceStats *stats, PenError *err)
{
    PenTrace *t = NULL;
    PenSpanRing *ring = NULL;
    int r = open_trace(name, &t, err);
    if (r < 0)
        return r;
    r = pen__trace_join(t, "a.pen", "\"batch_size\":1", &ring, err);
    if (r == PEN_OK)
        pen__span_ring_add(ring, &span);
    pen__span_ring_leave(ring);
    pen_trace_span(t, "forward", 1, 2);
    pen_trace_counter(t, "cpu", "all", 1);
    pen_trace_thread(t, "main");
    PenError error = {0};
    int closed = pen_trace_close(&t, stats, &error);
    if (r == PEN_OK && closed < 0) {
        *err = error;
        r = closed;
    }
    return r;
}

TEST(all_of_it_is_in_the_file)
{
    PenTraceStats stats;
    PenError err = {0};
    PenBuf text = {0};
    help_text("a.json", "what was there is replaced");
    CHECK_INT(trace_once("a.json", &stats, &err), PEN_OK);
    CHECK_INT(stats.events, 9);
    CHECK_INT(stats.dropped, 0);
    CHECK_INT(pen__file_load(at("a.json"), 100000, &text, &err), PEN_OK);
    CHECK_INT(stats.bytes, text.bytes);
    CHECK_MEM(text.data, "[\n{", 3);
    CHECK_MEM(text.data + text.bytes - 5, "}}\n]\n", 5);
    CHECK_INT(pen__buf_add(&text, "", 1), PEN_OK);
    CHECK(strstr((char *)text.data, "\"name\":\"forward\"},\n"));
    CHECK(strstr((char *)text.data, "\"name\":\"decode\""));
    pen__buf_free(&text);
}

static int sweep_plain(PenError *err)
{
    int r = trace_once("f.json", NULL, err);
    (void)unlink(at("f.json"));
    return r;
}

static int sweep_gzip(PenError *err)
{
    int r = trace_once("f.json.gz", NULL, err);
    (void)unlink(at("f.json.gz"));
    return r;
}

static int sweep_replaced(PenError *err)
{
    help_text("f.json", "before");
    return sweep_plain(err);
}

TEST(every_call_may_fail)
{
    int (*const bodies[])(PenError *) = {sweep_plain, sweep_gzip, sweep_replaced};
    for (int i = 0; i < 3; i++) {
        int points = 0;
        fault_sweep(bodies[i], &points);
        CHECK_OK_SO_FAR();
        CHECK(points > 10);
    }
}

TEST(names_that_are_not_files_are_refused)
{
    PenTrace *t = NULL;
    PenError err = {0};
    CHECK_INT(mkdir(at("dir.json"), 0700), 0);
    CHECK_INT(mkfifo(at("fifo.json"), 0600), 0);
    help_text("real.json", "keep");
    CHECK_INT(symlink(at("real.json"), at("link.json")), 0);
    CHECK_INT(open_trace("dir.json", &t, &err), PEN_E_EXISTS);
    CHECK(strstr(err.message, "found a directory"));
    CHECK_INT(open_trace("fifo.json", &t, &err), PEN_E_EXISTS);
    CHECK_INT(open_trace("link.json", &t, &err), PEN_E_EXISTS);
    CHECK(strstr(err.message, "found a symbolic link"));
    CHECK_INT(open_trace("no/such/dir.json", &t, &err), PEN_E_NOT_FOUND);
    CHECK(!t);
    PenBuf text = {0};
    CHECK_INT(pen__file_load(at("real.json"), 100, &text, &err), PEN_OK);
    CHECK_INT(text.bytes, 4);
    pen__buf_free(&text);
}

TEST(a_trace_that_is_being_written_is_not_replaced)
{
    PenTrace *first = NULL, *second = NULL;
    PenError err = {0};
    CHECK_INT(open_trace("busy.json", &first, &err), PEN_OK);
    CHECK_INT(open_trace("busy.json", &second, &err), PEN_E_EXISTS);
    CHECK(strstr(err.message, "found one that a process is writing"));
    CHECK_INT(pen_trace_close(&first, NULL, &err), PEN_OK);
    CHECK_INT(open_trace("busy.json", &second, &err), PEN_OK);
    CHECK_INT(pen_trace_close(&second, NULL, &err), PEN_OK);
    CHECK_INT(pen_trace_close(&second, NULL, &err), PEN_OK); /* NULL */
}

/* ---- a disk that is full, or slow ---- */

static atomic_int writes, writes_allowed;
static atomic_bool held;

static int64_t full_pwritev(int fd, const struct iovec *iov, int n, uint64_t offset)
{
    if (atomic_fetch_add(&writes, 1) >= atomic_load(&writes_allowed))
        return -ENOSPC;
    return pen__sys_real.pwritev(fd, iov, n, offset);
}

static int64_t held_pwritev(int fd, const struct iovec *iov, int n, uint64_t offset)
{
    atomic_fetch_add(&writes, 1);
    for (int i = 0; i < 6000 && atomic_load(&held); i++)
        usleep(10000);
    return pen__sys_real.pwritev(fd, iov, n, offset);
}

static void use_pwritev(int64_t (*pwritev)(int, const struct iovec *, int, uint64_t))
{
    static PenSys sys;
    sys = pen__sys_real;
    if (pwritev)
        sys.pwritev = pwritev;
    atomic_store(&writes, 0);
    pen__sys = pwritev ? &sys : &pen__sys_real;
}

TEST(a_full_disk_is_reported_at_the_end)
{
    PenTrace *t = NULL;
    PenTraceStats stats;
    PenError err = {0};
    atomic_store(&writes_allowed, 1);
    use_pwritev(full_pwritev);
    CHECK_INT(open_trace("full.json", &t, &err), PEN_OK);
    for (int i = 0; i < 50; i++)
        pen_trace_span(t, "forward", 1, 2);
    CHECK_INT(pen_trace_close(&t, &stats, &err), PEN_E_IO);
    use_pwritev(NULL);
    CHECK_INT(err.os_errno, ENOSPC);
    CHECK_INT(stats.events, 2);
    CHECK_INT(stats.dropped, 51);
    CHECK(strstr(err.message, "51"));
}

TEST(a_full_disk_at_the_start_is_an_error)
{
    PenTrace *t = NULL;
    PenError err = {0};
    atomic_store(&writes_allowed, 0);
    use_pwritev(full_pwritev);
    CHECK_INT(open_trace("none.json", &t, &err), PEN_E_IO);
    use_pwritev(NULL);
    CHECK(!t);
    CHECK_INT(access(at("none.json"), F_OK), -1);
}

/* While the disk hangs, the ring fills; what does not fit is counted, exactly. */
TEST(a_slow_disk_costs_spans_and_no_time)
{
    enum { N = 2 * PEN_SPAN_RING };
    PenTrace *t = NULL;
    PenTraceStats stats;
    PenSpanRing *ring = NULL;
    PenError err = {0};
    use_pwritev(held_pwritev);
    CHECK_INT(open_trace("slow.json", &t, &err), PEN_OK);
    CHECK_INT(pen__trace_join(t, "a.pen", "", &ring, &err), PEN_OK);
    atomic_store(&held, true);
    atomic_store(&writes, 0);
    uint64_t deadline = pen__deadline_after(60000000000u);
    while (!atomic_load(&writes) && pen__sys_real.now_ns() < deadline)
        usleep(1000);
    for (int i = 0; i < N; i++)
        pen__span_ring_add(ring, &span);
    CHECK_INT(atomic_load(&ring->dropped), N - PEN_SPAN_RING);
    atomic_store(&held, false);
    pen__span_ring_leave(ring);
    CHECK_INT(pen_trace_close(&t, &stats, &err), PEN_OK);
    use_pwritev(NULL);
    CHECK_INT(stats.events, PEN_SPAN_RING + 5);
    CHECK_INT(stats.dropped, N - PEN_SPAN_RING);
}

static _Atomic uint64_t clock_calls;

static uint64_t fast_now_ns(void)
{
    return pen__sys_real.now_ns() + atomic_fetch_add(&clock_calls, 1) * 1000000000u;
}

/* A disk that hangs is not waited for. The writer frees the trace when it returns. */
TEST(a_disk_that_hangs_is_left_behind)
{
    static PenSys sys;
    PenTrace *t = NULL;
    PenTraceStats stats;
    PenError err = {0};
    sys = pen__sys_real;
    sys.pwritev = held_pwritev;
    sys.now_ns = fast_now_ns;
    atomic_store(&held, false);
    pen__sys = &sys;
    CHECK_INT(open_trace("hangs.json", &t, &err), PEN_OK);
    atomic_store(&held, true);
    CHECK_INT(pen_trace_close(&t, &stats, &err), PEN_E_TIMEOUT);
    CHECK(strstr(err.message, "the disk has not responded for 10 s"));
    CHECK(!t);
    CHECK_INT(stats.events, 0);
    atomic_store(&held, false);
}

/* ---- threads ---- */

enum { SPANS = 20000, THREADS = 4 };

typedef struct Adder {
    PenTrace *trace;
    PenSpanRing *ring;
} Adder;

static void *add_many(void *adder)
{
    Adder *a = adder;
    for (int i = 0; i < SPANS; i++) {
        pen__span_ring_add(a->ring, &span);
        if (i % 100 == 0)
            pen_trace_span(a->trace, "run_batch", 1, 2);
    }
    pen__span_ring_leave(a->ring);
    return NULL;
}

TEST(many_threads_add_at_once)
{
    PenTrace *t = NULL;
    PenTraceStats stats;
    PenError err = {0};
    Adder adders[THREADS];
    pthread_t threads[THREADS];
    CHECK_INT(open_trace("many.json.gz", &t, &err), PEN_OK);
    for (int i = 0; i < THREADS; i++) {
        adders[i] = (Adder){.trace = t};
        CHECK_INT(pen__trace_join(t, "a.pen", "", &adders[i].ring, &err), PEN_OK);
        CHECK_INT(pthread_create(&threads[i], NULL, add_many, &adders[i]), 0);
    }
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    CHECK_INT(pen_trace_close(&t, &stats, &err), PEN_OK);
    CHECK_INT(stats.events + stats.dropped, THREADS * (SPANS + SPANS / 100 + 2) + 3);
}

int main(int argc, char **argv)
{
    TEST_START(argc, argv);
    help_begin();
    RUN(a_full_ring_counts_what_it_drops);
    RUN(events_are_lines_of_json);
    RUN(counters_are_numbers);
    RUN(the_largest_events_fit);
    RUN(names_of_any_bytes_are_valid_json);
    RUN(a_long_name_is_cut);
    RUN(all_of_it_is_in_the_file);
    RUN(every_call_may_fail);
    RUN(names_that_are_not_files_are_refused);
    RUN(a_trace_that_is_being_written_is_not_replaced);
    RUN(a_full_disk_is_reported_at_the_end);
    RUN(a_full_disk_at_the_start_is_an_error);
    RUN(a_slow_disk_costs_spans_and_no_time);
    RUN(many_threads_add_at_once);
    RUN(a_disk_that_hangs_is_left_behind); /* the last: its thread keeps the other system */
    help_end();
    return TEST_END();
}
