/* SPDX-License-Identifier: Apache-2.0 */
#include <inttypes.h>
#include <string.h>

#include "ingest/source/part.h"
#include "ingest/video/video_impl.h"

#define WHERE "ingest/video"
#define MAX_SIDE 65535 /* of a JPEG */
#define MAX_HEADS 256
#define MAX_TICKS ((int64_t)1 << 62)

static int fail(const PenFrameLog *log, const char *what, PenError *reterr)
{
    return pen__fail(reterr, PEN_E_DECODE, WHERE,
                     "%s: cannot parse the output of ffmpeg: found %s: \"%.60s\"", log->name, what,
                     log->line);
}

/* A whole number, which may have spaces before it. False when there is none, or it does not fit. */
static bool take_number(const char **text, int64_t *ret)
{
    const char *p = *text;
    while (*p == ' ')
        p++;
    bool minus = *p == '-';
    p += minus;
    const char *digits = p;
    int64_t v = 0;
    for (; *p >= '0' && *p <= '9'; p++)
        if (__builtin_mul_overflow(v, 10, &v) ||
            __builtin_add_overflow(v, minus ? '0' - *p : *p - '0', &v))
            return false;
    *text = p;
    *ret = v;
    return p > digits;
}

/* "begin" and two numbers above 0 with a byte between them. */
static bool take_pair(const char *text, const char *begin, char between, uint32_t ret[2])
{
    int64_t a = 0, b = 0;
    size_t n = strlen(begin);
    const char *p = text + n;
    if (strncmp(text, begin, n) != 0 || !take_number(&p, &a) || *p++ != between ||
        !take_number(&p, &b) || a < 1 || b < 1 || a > INT32_MAX || b > INT32_MAX)
        return false;
    ret[0] = (uint32_t)a;
    ret[1] = (uint32_t)b;
    return true;
}

static int take_size(PenFrameLog *log, PenError *reterr)
{
    uint32_t size[2];
    const PenLimits *limits = &pen__limits_default;
    if (!take_pair(log->line, "#dimensions 0:", 'x', size))
        return fail(log, "no size", reterr);
    uint32_t w = size[0], h = size[1];
    if (w > MAX_SIDE || h > MAX_SIDE || (uint64_t)w * h > limits->max_pixels)
        return pen__fail(reterr, PEN_E_LIMIT, WHERE,
                         "%s: expected frames of at most %" PRIu64 " pixels, found %" PRIu32
                         "x%" PRIu32,
                         log->name, limits->max_pixels, w, h);
    if (log->width && (w != log->width || h != log->height))
        return fail(log, "a second size", reterr);
    log->width = w;
    log->height = h;
    log->frame_bytes = (uint64_t)w * h * 3;
    return PEN_OK;
}

static int take_base(PenFrameLog *log, PenError *reterr)
{
    uint32_t base[2];
    if (!take_pair(log->line, "#tb 0:", '/', base))
        return fail(log, "no time base", reterr);
    if (log->tb_den && (base[0] != log->tb_num || base[1] != log->tb_den))
        return fail(log, "a second time base", reterr);
    log->tb_num = base[0];
    log->tb_den = base[1];
    return PEN_OK;
}

/* Ticks since the first frame as nanoseconds; what is too long for them stays at the end. */
static int64_t to_ns(const PenFrameLog *log, int64_t ticks)
{
    unsigned __int128 ns = (unsigned __int128)(uint64_t)ticks * log->tb_num * 1000000000u;
    ns = (ns + log->tb_den / 2) / log->tb_den;
    return ns > INT64_MAX ? INT64_MAX : (int64_t)ns;
}

/* Times that are missing or go back, as in damaged streams, become the next tick. */
static int64_t in_order(PenFrameLog *log, int64_t pts)
{
    bool known = pts > -MAX_TICKS && pts < MAX_TICKS;
    if (!log->has_first) {
        log->has_first = true;
        log->first = log->last = known ? pts : 0;
        return 0;
    }
    if (!known || pts <= log->last)
        pts = log->last + 1;
    log->last = pts;
    return pts - log->first;
}

static int take_frame(PenFrameLog *log, PenError *reterr)
{
    enum { STREAM, DTS, PTS, DURATION, BYTES, N };
    int64_t numbers[N];
    const char *p = log->line;
    bool ok = log->width && log->tb_den;
    for (int i = 0; ok && i < N; i++)
        ok = take_number(&p, &numbers[i]) && *p++ == ',';
    if (!ok || numbers[STREAM] != 0)
        return fail(log, "something else", reterr);
    if ((uint64_t)numbers[BYTES] != log->frame_bytes)
        return pen__fail(reterr, PEN_E_UNSUPPORTED, WHERE,
                         "%s: expected frames of one size (%" PRIu32 "x%" PRIu32
                         "), found another at frame %" PRIu64,
                         log->name, log->width, log->height, log->n + 1);
    if (log->n >= PEN_CLIP_FRAMES)
        return pen__fail(reterr, PEN_E_LIMIT, WHERE,
                         "%s: expected at most %" PRIu64
                         " frames, found more; take fewer with --fps, or cut it in a list with "
                         "start and end",
                         log->name, PEN_CLIP_FRAMES);
    int64_t ns = to_ns(log, in_order(log, numbers[PTS]));
    log->n++;
    return pen__buf_add(log->times, &ns, sizeof ns) < 0
               ? pen__fail_memory(reterr, WHERE, "times of frames")
               : PEN_OK;
}

static int take_line(PenFrameLog *log, PenError *reterr)
{
    if (strncmp(log->line, "#dimensions ", 12) == 0)
        return take_size(log, reterr);
    if (strncmp(log->line, "#tb ", 4) == 0)
        return take_base(log, reterr);
    if (log->line[0] != '#')
        return take_frame(log, reterr);
    return ++log->n_heads > MAX_HEADS ? fail(log, "no end of headers", reterr) : PEN_OK;
}

int pen__frame_log_take(PenFrameLog *log, const void *data, size_t bytes, PenError *reterr)
{
    const char *text = data;
    for (size_t i = 0; i < bytes; i++) {
        if (text[i] != '\n') {
            if (log->line_bytes == sizeof log->line - 1)
                return fail(log, "a line that is too long", reterr);
            log->line[log->line_bytes++] = text[i];
            continue;
        }
        log->line[log->line_bytes] = 0;
        log->line_bytes = 0;
        int r = take_line(log, reterr);
        if (r < 0)
            return r;
    }
    return PEN_OK;
}
