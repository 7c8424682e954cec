/* SPDX-License-Identifier: Apache-2.0 */
/* Numbers are written by hand: a loader of small images makes 100,000 spans a second. */
#include "trace/event.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include <penstock/error.h>

#include "base/timing/stage_clock.h"

enum { EVENT_BYTES = 400, NAME_BYTES = 1024 }; /* upper bounds of an event, and of a name in it */

static const char *const names[PEN_SPAN_COUNT] = {
    [PEN_SPAN_REQUEST] = "request",
    [PEN_SPAN_READ] = "read",
    [PEN_SPAN_VERIFY] = "verify",
    [PEN_SPAN_DECODE] = "decode",
    [PEN_SPAN_RESAMPLE] = "resample",
    [PEN_SPAN_STORE] = "store",
    [PEN_SPAN_WAIT_SLOT] = "wait_slot",
    [PEN_SPAN_WAIT_QUEUE] = "wait_queue",
    [PEN_SPAN_WAIT_BYTES] = "wait_bytes",
    [PEN_SPAN_WAIT_WORK] = "wait_work",
    [PEN_SPAN_NEXT] = "next",
    [PEN_SPAN_BATCH] = "get_batch",
};

/* ---- pieces of an event; the text has room for them ---- */

static void put(PenBuf *t, const char *piece)
{
    size_t n = strlen(piece);
    memcpy(t->data + t->bytes, piece, n);
    t->bytes += n;
}

static void put_number(PenBuf *t, uint64_t v)
{
    char digits[20];
    size_t n = 0;
    do
        digits[n++] = (char)('0' + v % 10);
    while (v /= 10);
    while (n)
        t->data[t->bytes++] = (uint8_t)digits[--n];
}

static void put_member(PenBuf *t, const char *name, uint64_t v)
{
    put(t, name);
    put_number(t, v);
}

/* Microseconds, as the format wants them. */
static void put_time(PenBuf *t, const char *name, uint64_t ns)
{
    put_member(t, name, ns / 1000);
    t->data[t->bytes++] = '.';
    for (unsigned each = 100; each; each /= 10)
        t->data[t->bytes++] = (uint8_t)('0' + ns % 1000 / each % 10);
}

/* Bytes of the character, if it is valid UTF-8; else 0. */
static size_t character_bytes(const uint8_t *s)
{
    size_t n = *s < 0x80 ? 1 : *s < 0xc2 ? 0 : *s < 0xe0 ? 2 : *s < 0xf0 ? 3 : *s < 0xf5 ? 4 : 0;
    for (size_t i = 1; i < n; i++)
        if ((s[i] & 0xc0) != 0x80)
            return 0;
    bool overlong = (s[0] == 0xe0 && s[1] < 0xa0) || (s[0] == 0xf0 && s[1] < 0x90);
    bool outside = (s[0] == 0xed && s[1] > 0x9f) || (s[0] == 0xf4 && s[1] > 0x8f);
    return overlong || outside ? 0 : n;
}

/* A JSON string. Long ones are cut, and what is not UTF-8 becomes question marks. */
static void put_string(PenBuf *t, const char *text)
{
    const uint8_t *s = (const uint8_t *)text;
    size_t end = t->bytes + NAME_BYTES - 8;
    put(t, "\"");
    while (*s && t->bytes < end) {
        size_t n = character_bytes(s);
        if (*s < 0x20 || *s == 0x7f || *s == '"' || *s == '\\') {
            t->bytes += (size_t)snprintf((char *)t->data + t->bytes, 8, "\\u%04x", *s);
        } else {
            memcpy(t->data + t->bytes, n ? s : (const uint8_t *)"?", n ? n : 1);
            t->bytes += n ? n : 1;
        }
        s += n ? n : 1;
    }
    put(t, "\"");
}

static void put_place(PenBuf *t, pid_t pid, const PenSpan *s)
{
    put_member(t, ",\"pid\":", (uint64_t)pid);
    put_member(t, ",\"tid\":", s->tid);
}

static void put_span(PenBuf *t, pid_t pid, const PenSpan *s)
{
    put(t, "{\"ph\":\"X\"");
    put_place(t, pid, s);
    put_time(t, ",\"ts\":", s->begin_ns);
    put_time(t, ",\"dur\":", s->end_ns > s->begin_ns ? s->end_ns - s->begin_ns : 0);
}

/* ---- events ---- */

static void put_sample(PenBuf *t, const PenSpan *s)
{
    put_member(t, ",\"args\":{\"sample\":", s->subject);
    put_member(t, ",\"batch\":", s->batch);
    put_member(t, ",\"epoch\":", s->epoch);
    if (s->tag == PEN_SPAN_READ)
        put_member(t, ",\"bytes\":", s->bytes);
    else if (s->tag != PEN_SPAN_DECODE)
        put_member(t, ",\"one_in\":", PEN_TIMED_EVERY);
    put(t, "}},\n");
}

static void put_args(PenBuf *t, const PenSpan *s)
{
    if (s->tag <= PEN_SPAN_STORE && s->tag != PEN_SPAN_REQUEST) {
        put_sample(t, s);
        return;
    }
    if (s->tag == PEN_SPAN_REQUEST) {
        put_member(t, ",\"args\":{\"block\":", s->subject);
        put_member(t, ",\"bytes\":", s->bytes);
        put(t, "}");
    } else if (s->tag == PEN_SPAN_NEXT || s->tag == PEN_SPAN_BATCH) {
        put_member(t, ",\"args\":{\"batch\":", s->batch);
        put_member(t, ",\"epoch\":", s->epoch);
        put(t, "}");
    }
    put(t, "},\n");
}

/* Batches overlap, so they are not on the track of a thread. */
static void put_edge(PenBuf *t, pid_t pid, const PenSpan *s, uint64_t id, bool is_end)
{
    put(t, is_end ? "{\"ph\":\"e\"" : "{\"ph\":\"b\"");
    put_place(t, pid, s);
    put_time(t, ",\"ts\":", is_end ? s->end_ns : s->begin_ns);
    put_member(t, ",\"cat\":\"batch\",\"id\":", id);
    put(t, ",\"name\":\"get_batch\"");
    put_args(t, s);
}

static void put_batch(PenBuf *t, pid_t pid, const PenSpan *s, uint64_t id)
{
    put_edge(t, pid, s, id, false);
    put_edge(t, pid, s, id, true);
    put(t, "{\"ph\":\"i\",\"s\":\"t\"");
    put_place(t, pid, s);
    put_time(t, ",\"ts\":", s->end_ns);
    put(t, ",\"name\":\"batch_ready\"");
    put_args(t, s);
}

int pen__event_span(PenBuf *text, pid_t pid, const PenSpan *span, uint64_t id, unsigned *ret_events)
{
    *ret_events = 1;
    if (span->tag == PEN_SPAN_THREAD) {
        char name[64];
        snprintf(name, sizeof name, "%s %llu", span->name, (unsigned long long)span->subject);
        return pen__event_text(text, pid, span->tid, "thread_name", "name", name);
    }
    int r = pen__buf_reserve(text, 3 * EVENT_BYTES);
    if (r < 0)
        return r;
    if (span->tag == PEN_SPAN_BATCH) {
        *ret_events = 3;
        put_batch(text, pid, span, id);
        return 0;
    }
    put_span(text, pid, span);
    put(text, ",\"name\":\"");
    put(text, names[span->tag]);
    put(text, "\"");
    put_args(text, span);
    return 0;
}

int pen__event_named(PenBuf *text, pid_t pid, const PenSpan *span, const char *name)
{
    int r = pen__buf_reserve(text, EVENT_BYTES + NAME_BYTES);
    if (r < 0)
        return r;
    put_span(text, pid, span);
    put(text, ",\"name\":");
    put_string(text, name);
    put(text, "},\n");
    return 0;
}

int pen__event_counter(PenBuf *text, pid_t pid, uint64_t ns, const char *name, const char *series,
                       double value)
{
    int r = pen__buf_reserve(text, EVENT_BYTES + 2 * NAME_BYTES);
    if (r < 0)
        return r;
    put_member(text, "{\"ph\":\"C\",\"pid\":", (uint64_t)pid);
    put_time(text, ",\"ts\":", ns);
    put(text, ",\"name\":");
    put_string(text, name);
    put(text, ",\"args\":{");
    put_string(text, series);
    /* JSON has no word for what is not a number. */
    text->bytes += (size_t)snprintf((char *)text->data + text->bytes, 40, ":%.9g}},\n",
                                    isfinite(value) ? value : 0);
    return 0;
}

int pen__event_text(PenBuf *text, pid_t pid, uint32_t tid, const char *kind, const char *key,
                    const char *value)
{
    int r = pen__buf_reserve(text, EVENT_BYTES + NAME_BYTES);
    if (r < 0)
        return r;
    put(text, "{\"ph\":\"M\"");
    put_place(text, pid, &(PenSpan){.tid = tid});
    put(text, ",\"name\":\"");
    put(text, kind);
    put(text, "\",\"args\":{\"");
    put(text, key);
    put(text, "\":");
    put_string(text, value);
    put(text, "}},\n");
    return 0;
}

int pen__event_args(PenBuf *text, pid_t pid, const char *kind, const char *args)
{
    int r = pen__buf_reserve(text, EVENT_BYTES + NAME_BYTES);
    if (r < 0)
        return r;
    put_member(text, "{\"ph\":\"M\",\"pid\":", (uint64_t)pid);
    put(text, ",\"name\":\"");
    put(text, kind);
    put(text, "\",\"args\":{");
    put(text, args);
    put(text, "}},\n");
    return 0;
}
