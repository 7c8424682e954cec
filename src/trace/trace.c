/* SPDX-License-Identifier: Apache-2.0 */
#include "trace/trace.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <penstock/version.h>

#include "base/attr.h"
#include "base/error.h"
#include "base/sys.h"
#include "base/thread.h"
#include "base/timing/stage_clock.h"
#include "trace/event.h"
#include "trace/trace_file.h"

#define WHERE "trace"

enum {
    PERIOD_MS = 100,            /* after which spans are taken from the rings */
    FLUSH_MS = 500,             /* after which they are in the file */
    CLOSE_MS = 10000,           /* that the writer is waited for */
    TEXT_BYTES = 1 << 20,       /* of text that is flushed earlier */
    GIVEN_BYTES = 4 * (1 << 20) /* of text that other threads may add in a period */
};

struct PenTrace {
    pid_t pid;
    pthread_t writer;
    /* The mutex guards these. The writer alone removes rings. */
    pthread_mutex_t mutex;
    pthread_cond_t wake;
    bool stop;
    bool ended; /* the writer has */
    bool left;  /* nobody waits for the writer, which frees the trace */
    PenSpanRing *rings;
    PenBuf given; /* text of events that other threads have added */
    uint64_t given_events, given_dropped;
    /* Of the writer. */
    PenTraceFile file;
    PenBuf text; /* not yet written */
    uint64_t text_events, flushed_ns;
    uint64_t batches; /* so far: each has its number in the file */
    PenTraceStats stats;
    int error; /* errno of the first failure: nothing is written any more */
};

static const PenTraceSettings DEFAULTS = {.world = 1};

void pen_trace_settings_init(PenTraceSettings *settings)
{
    *settings = DEFAULTS;
}

/* ---- the writer ---- */

/* Nothing after a failure: the file ends as it would after a kill. */
static void write_text(PenTrace *t, bool end)
{
    int r = t->error ? -t->error : pen__trace_file_write(&t->file, &t->text, end);
    if (r < 0) {
        t->error = -r;
        t->stats.dropped += t->text_events;
    } else {
        t->stats.events += t->text_events;
    }
    t->text.bytes = 0;
    t->text_events = 0;
    t->flushed_ns = pen__sys->now_ns();
}

static void add_span(PenTrace *t, const PenSpan *span)
{
    unsigned n;
    t->batches += span->tag == PEN_SPAN_BATCH;
    if (pen__event_span(&t->text, t->pid, span, t->batches, &n) < 0)
        t->stats.dropped++;
    else
        t->text_events += n;
    if (t->text.bytes >= TEXT_BYTES)
        write_text(t, false);
}

static void drain_ring(PenTrace *t, PenSpanRing *ring)
{
    uint64_t n = pen__span_ring_ready(ring);
    for (uint64_t i = 0; i < n; i++)
        add_span(t, pen__span_ring_at(ring, i));
    pen__span_ring_take(ring, n);
}

static void drop_ring(PenTrace *t, PenSpanRing *ring)
{
    t->stats.dropped += atomic_load(&ring->dropped);
    pen__span_ring_leave(ring);
}

/* Takes all rings that their loaders have left off the list, and returns them as one. */
static PenSpanRing *unlink_left(PenTrace *t)
{
    PenSpanRing *left = NULL;
    for (PenSpanRing **at = &t->rings; *at;) {
        PenSpanRing *ring = *at;
        if (!pen__span_ring_is_left(ring)) {
            at = &ring->next;
            continue;
        }
        *at = ring->next;
        ring->next = left;
        left = ring;
    }
    return left;
}

static void take_given(PenTrace *t)
{
    if (pen__buf_add(&t->text, t->given.data, t->given.bytes) < 0)
        t->stats.dropped += t->given_events;
    else
        t->text_events += t->given_events;
    t->stats.dropped += t->given_dropped;
    t->given.bytes = 0;
    t->given_events = t->given_dropped = 0;
}

/* Takes what there is. */
static void collect(PenTrace *t)
{
    pthread_mutex_lock(&t->mutex);
    take_given(t);
    PenSpanRing *left = unlink_left(t);
    PenSpanRing *rings = t->rings; /* others are added before these */
    pthread_mutex_unlock(&t->mutex);
    for (PenSpanRing *ring = rings; ring; ring = ring->next)
        drain_ring(t, ring);
    for (PenSpanRing *next; left; left = next) {
        next = left->next;
        drain_ring(t, left);
        drop_ring(t, left);
    }
}

/* It is the last event, without a comma. */
static void add_end(PenTrace *t)
{
    char args[200];
    snprintf(args, sizeof args,
             "\"events\":%" PRIu64 ",\"dropped\":%" PRIu64 ",\"end_us\":%" PRIu64,
             t->stats.events + t->text_events + 1, t->stats.dropped, pen__sys->now_ns() / 1000);
    if (pen__event_args(&t->text, t->pid, "penstock_end", args) < 0)
        return;
    t->text_events++;
    t->text.bytes -= 2;
    (void)pen__buf_add(&t->text, "\n]\n", 3);
}

/* The end of the file. */
static void finish(PenTrace *t)
{
    for (PenSpanRing *ring = t->rings; ring; ring = ring->next)
        t->stats.dropped += atomic_load(&ring->dropped);
    add_end(t);
    write_text(t, true);
    t->stats.bytes = t->file.bytes;
    int r = pen__trace_file_close(&t->file);
    if (r < 0 && !t->error)
        t->error = -r;
}

static void free_trace(PenTrace *t)
{
    for (PenSpanRing *next; t->rings; t->rings = next) {
        next = t->rings->next;
        pen__span_ring_leave(t->rings);
    }
    pen__buf_free(&t->text);
    pen__buf_free(&t->given);
    pthread_cond_destroy(&t->wake);
    pthread_mutex_destroy(&t->mutex);
    pen__free(t);
}

static void *run_writer(void *trace)
{
    PenTrace *t = trace;
    bool stop = false;
    pen__thread_name("pen-trace");
    while (!stop) {
        uint64_t deadline = pen__deadline_after(PERIOD_MS * 1000000ull);
        pthread_mutex_lock(&t->mutex);
        while (!t->stop && pen__cond_wait(&t->wake, &t->mutex, deadline) == PEN_OK)
            ;
        stop = t->stop;
        pthread_mutex_unlock(&t->mutex);
        collect(t);
        if (!stop && pen__sys->now_ns() - t->flushed_ns >= FLUSH_MS * 1000000ull)
            write_text(t, false);
    }
    finish(t);
    pthread_mutex_lock(&t->mutex);
    t->ended = true;
    bool left = t->left;
    pthread_cond_broadcast(&t->wake);
    pthread_mutex_unlock(&t->mutex);
    if (left)
        free_trace(t);
    return NULL;
}

/* ---- opening and closing ---- */

/* Readers convert the times of a file to the wall clock by `unix_minus_monotonic_us`. */
static int add_start(PenTrace *t, const PenTraceSettings *s)
{
    char name[64], args[200];
    uint64_t unix_ns = pen__sys->unix_ns(), now_ns = pen__sys->now_ns();
    snprintf(name, sizeof name, "rank %" PRIu32 " of %" PRIu32, s->rank, s->world);
    snprintf(args, sizeof args,
             "\"version\":\"%s\",\"rank\":%" PRIu32 ",\"world\":%" PRIu32
             ",\"unix_minus_monotonic_us\":%" PRId64 ",\"begin_us\":%" PRIu64 ",\"one_in\":%d",
             pen_version(), s->rank, s->world, (int64_t)(unix_ns - now_ns) / 1000, now_ns / 1000,
             PEN_TIMED_EVERY);
    int r = pen__buf_add(&t->text, "[\n", 2);
    if (r == 0)
        r = pen__event_text(&t->text, t->pid, 0, "process_name", "name", name);
    if (r == 0)
        r = pen__event_args(&t->text, t->pid, "penstock", args);
    t->text_events = 2;
    return r;
}

static int start(PenTrace *t, const char *path, const PenTraceSettings *s, PenError *reterr)
{
    if (add_start(t, s) < 0)
        return pen__fail_memory(reterr, WHERE, "trace");
    int r = pen__trace_file_open(&t->file, path, reterr);
    if (r < 0)
        return r;
    write_text(t, false); /* a path that cannot be written is known at once */
    if (t->error)
        r = pen__fail_os(reterr, t->error, WHERE, "trace path '%s': cannot write", path);
    if (r == PEN_OK)
        r = pen__thread_start(&t->writer, run_writer, t, reterr);
    if (r < 0) {
        (void)pen__trace_file_close(&t->file);
        (void)pen__sys->unlink(PEN_AT_CWD, path);
    }
    return r;
}

int pen_trace_open(const char *path, const PenTraceSettings *settings, PenTrace **ret_trace,
                   PenError *reterr)
{
    PenTraceSettings s = settings ? *settings : DEFAULTS;
    PenTrace *t = pen__zalloc(sizeof *t);
    if (!t || pen__cond_init(&t->wake) < 0) {
        pen__free(t);
        return pen__fail_memory(reterr, WHERE, "trace");
    }
    pthread_mutex_init(&t->mutex, NULL);
    t->pid = getpid();
    int r = start(t, path, &s, reterr);
    if (r < 0) {
        free_trace(t);
        return r;
    }
    *ret_trace = t;
    return PEN_OK;
}

/* False: the disk does not respond, and the writer is left behind. */
static bool end_writer(PenTrace *t)
{
    uint64_t deadline = pen__deadline_after(CLOSE_MS * 1000000ull);
    pthread_mutex_lock(&t->mutex);
    t->stop = true;
    pthread_cond_broadcast(&t->wake);
    while (!t->ended && pen__cond_wait(&t->wake, &t->mutex, deadline) == PEN_OK)
        ;
    bool ended = t->ended;
    pthread_t writer = t->writer;
    t->left = !ended;
    pthread_mutex_unlock(&t->mutex);
    if (ended)
        pen__thread_join(writer);
    else
        pthread_detach(writer);
    return ended;
}

static int close_trace(PenTrace *t, PenTraceStats *ret_stats, PenError *reterr)
{
    if (!end_writer(t))
        return pen__fail(reterr, PEN_E_TIMEOUT, WHERE,
                         "the trace is not complete: the disk has not responded for %d s",
                         CLOSE_MS / 1000);
    int error = t->error;
    *ret_stats = t->stats;
    free_trace(t);
    if (!error)
        return PEN_OK;
    return pen__fail_os(reterr, error, WHERE,
                        "the trace is not complete, %" PRIu64 " events are not in it",
                        ret_stats->dropped);
}

int pen_trace_close(PenTrace **trace, PenTraceStats *ret, PenError *reterr)
{
    PenTrace *t = trace ? *trace : NULL;
    PenTraceStats stats = {0};
    int r = PEN_OK;
    if (t)
        *trace = NULL;
    if (t && t->pid == getpid())
        r = close_trace(t, &stats, reterr);
    if (ret)
        *ret = stats;
    return r;
}

/* ---- what is added ---- */

static void count_given(PenTrace *t, int r)
{
    if (r < 0)
        t->given_dropped++;
    else
        t->given_events++;
}

int pen__trace_join(PenTrace *t, const char *pack, const char *args, PenSpanRing **ret,
                    PenError *reterr)
{
    if (t->pid != getpid())
        return pen__fail(reterr, PEN_E_CLOSED, WHERE,
                         "this trace was opened by process %d; open another in process %d",
                         (int)t->pid, (int)getpid());
    PenSpanRing *ring = pen__span_ring_new();
    if (!ring)
        return pen__fail_memory(reterr, WHERE, "spans");
    pthread_mutex_lock(&t->mutex);
    ring->next = t->rings;
    t->rings = ring;
    count_given(t, pen__event_text(&t->given, t->pid, 0, "pack", "path", pack));
    count_given(t, pen__event_args(&t->given, t->pid, "loader", args));
    pthread_mutex_unlock(&t->mutex);
    *ret = ring;
    return PEN_OK;
}

/* The mutex is held from begin to end. */
static bool begin_given(PenTrace *t)
{
    if (!t || t->pid != getpid())
        return false;
    pthread_mutex_lock(&t->mutex);
    return true;
}

static bool has_room(const PenTrace *t)
{
    return t->given.bytes < GIVEN_BYTES;
}

static void end_given(PenTrace *t, int r)
{
    count_given(t, r);
    pthread_mutex_unlock(&t->mutex);
}

void pen_trace_span(PenTrace *trace, const char *name, uint64_t begin_ns, uint64_t end_ns)
{
    PenSpan span = {.begin_ns = begin_ns, .end_ns = end_ns, .tid = pen__thread_id()};
    if (begin_given(trace))
        end_given(trace, has_room(trace) ? pen__event_named(&trace->given, trace->pid, &span, name)
                                         : PEN_E_LIMIT);
}

void pen_trace_counter(PenTrace *trace, const char *name, const char *series, double value)
{
    uint64_t now = pen__sys->now_ns();
    if (begin_given(trace))
        end_given(trace, has_room(trace) ? pen__event_counter(&trace->given, trace->pid, now, name,
                                                              series, value)
                                         : PEN_E_LIMIT);
}

void pen_trace_thread(PenTrace *trace, const char *name)
{
    if (begin_given(trace))
        end_given(trace, has_room(trace)
                             ? pen__event_text(&trace->given, trace->pid, pen__thread_id(),
                                               "thread_name", "name", name)
                             : PEN_E_LIMIT);
}
