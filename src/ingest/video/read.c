/* SPDX-License-Identifier: Apache-2.0 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "ingest/source/part.h"
#include "ingest/video/video_impl.h"

#define WHERE "ingest/video"
#define MAX_EARLY ((size_t)64 << 20) /* pixels that come before their size is known */
#define MAX_OUT ((uint64_t)1 << 40)
#define MAX_LOG ((uint64_t)128 << 20) /* 128 bytes for each of PEN_CLIP_FRAMES */

typedef struct Reading {
    PenVideoFn frame;
    void *ctx;
    PenFrameLog log;
    PenBuf pixels; /* of the frame at hand; all that came, until the size is known */
    uint64_t n;
} Reading;

/* ---- what comes ------------------------------------------------------------------------------ */

static int give_frame(Reading *r, const uint8_t *pixels, PenError *reterr)
{
    PenPixels p = {(uint8_t *)pixels, r->log.width, r->log.height, 3};
    r->n++;
    return r->frame(r->ctx, &p, reterr);
}

static int keep(Reading *r, const uint8_t *data, size_t bytes, PenError *reterr)
{
    return pen__buf_add(&r->pixels, data, bytes) < 0 ? pen__fail_memory(reterr, WHERE, r->log.name)
                                                     : PEN_OK;
}

/* What lies in `pixels` is given away frame by frame, and the rest moved to the front. */
static int give_kept(Reading *r, PenError *reterr)
{
    size_t each = (size_t)r->log.frame_bytes, at = 0;
    int ret = PEN_OK;
    while (ret == PEN_OK && r->pixels.bytes - at >= each) {
        ret = give_frame(r, r->pixels.data + at, reterr);
        at += each;
    }
    if (at && ret == PEN_OK) {
        memmove(r->pixels.data, r->pixels.data + at, r->pixels.bytes - at);
        r->pixels.bytes -= at;
    }
    return ret;
}

static int take_pixels(void *ctx, const void *data, size_t bytes, PenError *reterr)
{
    Reading *r = ctx;
    if (!r->log.width && r->pixels.bytes + bytes > MAX_EARLY)
        return pen__fail(reterr, PEN_E_LIMIT, WHERE,
                         "%s: expected ffmpeg to report the frame size, found only pixels",
                         r->log.name);
    int ret = keep(r, data, bytes, reterr);
    return ret < 0 || !r->log.width ? ret : give_kept(r, reterr);
}

static int take_log(void *ctx, const void *data, size_t bytes, PenError *reterr)
{
    Reading *r = ctx;
    return pen__frame_log_take(&r->log, data, bytes, reterr);
}

/* ---- the program ----------------------------------------------------------------------------- */

enum { MAX_ARGS = 64, NUMBER_BYTES = 64 };

typedef struct Command {
    const char *argv[MAX_ARGS];
    size_t n;
    char start[NUMBER_BYTES], length[NUMBER_BYTES], filter[256], base[NUMBER_BYTES];
    PenBuf url;
} Command;

static void add(Command *c, const char *a, const char *b)
{
    c->argv[c->n++] = a;
    if (b)
        c->argv[c->n++] = b;
}

static void add_range(Command *c, const PenVideoPart *part)
{
    if (part->start) {
        snprintf(c->start, sizeof c->start, "%" PRIu64 ".%09" PRIu64, part->start / 1000000000,
                 part->start % 1000000000);
        add(c, "-ss", c->start);
    }
    if (part->end != PEN_NO_END) {
        uint64_t length = part->end - part->start;
        snprintf(c->length, sizeof c->length, "%" PRIu64 ".%09" PRIu64, length / 1000000000,
                 length % 1000000000);
        add(c, "-t", c->length);
    }
}

/* The rate as a fraction: times are then exact. */
static void rate_of(double fps, uint64_t *ret_num, uint64_t *ret_den)
{
    uint64_t a = (uint64_t)(fps * 1e6 + 0.5), b = 1000000;
    *ret_num = a;
    *ret_den = b;
    while (b) {
        uint64_t rest = a % b;
        a = b;
        b = rest;
    }
    *ret_num /= a;
    *ret_den /= a;
}

/* Conversion that gives the same on every machine. */
#define TO_RGB "scale=flags=bicubic+accurate_rnd+full_chroma_int+bitexact,format=rgb24"

/* Frames at the same time, or without one, are kept: the muxer would not have them. */
#define RISING "setpts='if(gt(PTS,PREV_OUTPTS)+isnan(PREV_OUTPTS),PTS,PREV_OUTPTS+1)',"

static void add_filter(Command *c, double fps)
{
    uint64_t num, den;
    if (!(fps > 0)) {
        add(c, "-vf", RISING TO_RGB);
        add(c, "-enc_time_base", "-1"); /* the stream's: its times as they are */
        return;
    }
    rate_of(fps, &num, &den);
    snprintf(c->filter, sizeof c->filter, "fps=fps=%" PRIu64 "/%" PRIu64 "," TO_RGB, num, den);
    snprintf(c->base, sizeof c->base, "%" PRIu64 "/%" PRIu64, den, num);
    add(c, "-vf", c->filter);
    add(c, "-enc_time_base", c->base);
}

/* `old`: of before 5.1, where an option had another name. */
static int make_command(Command *c, const PenVideoSettings *s, const PenVideoPart *part, bool old)
{
    int r = pen__buf_add(&c->url, "file:", 5); /* a name with a colon is no address */
    if (r == PEN_OK)
        r = pen__buf_add(&c->url, part->path, strlen(part->path) + 1);
    if (r < 0)
        return r;
    add(c, "ffmpeg", "-nostdin");
    add(c, "-hide_banner", "-xerror"); /* damage is an error, not a picture made up */
    add(c, "-loglevel", "error");
    add(c, "-filter_threads", "1");
    add(c, "-protocol_whitelist", "file,pipe");
    add(c, "-format_whitelist", PEN_VIDEO_FORMATS);
    add(c, "-threads", "1");
    add(c, "-flags", "+bitexact");
    add_range(c, part);
    add(c, "-i", (const char *)c->url.data);
    add(c, "-map", "0:V:0"); /* not the picture on a cover */
    add_filter(c, s->fps);
    add(c, old ? "-vsync" : "-fps_mode", "passthrough");
    add(c, "-threads", "1");
    add(c, "-c:v", "rawvideo");
    add(c, "-f", "tee");
    add(c, "[f=rawvideo]pipe:1|[f=framecrc:flush_packets=1]pipe:3", NULL);
    c->argv[c->n] = NULL;
    return PEN_OK;
}

static int check_end(const Reading *r, PenError *reterr)
{
    if (r->n == r->log.n && !r->pixels.bytes && !r->log.line_bytes && r->n)
        return PEN_OK;
    if (!r->n && !r->log.n)
        return pen__fail(reterr, PEN_E_DECODE, WHERE, "%s: expected frames, found none",
                         r->log.name);
    return pen__fail(reterr, PEN_E_DECODE, WHERE,
                     "%s: expected as many frames as ffmpeg lists, found %" PRIu64 " of %" PRIu64
                     " and %zu bytes",
                     r->log.name, r->n, r->log.n, r->pixels.bytes);
}

/* 1: this ffmpeg is old. */
static int read_once(const PenVideoSettings *s, const PenVideoPart *part, Reading *reading,
                     bool old, PenError *reterr)
{
    Command c = {.n = 0};
    PenProcessResult result;
    if (make_command(&c, s, part, old) < 0) {
        pen__buf_free(&c.url);
        return pen__fail_memory(reterr, WHERE, part->path);
    }
    PenProcessSettings process = {.argv = c.argv,
                                  .take = take_pixels,
                                  .take_side = take_log,
                                  .take_ctx = reading,
                                  .out_bytes = MAX_OUT,
                                  .side_bytes = MAX_LOG};
    int r = pen__video_run(s, part->path, &process, &result, reterr);
    if (r == PEN_OK && result.exit.code && !old && !reading->n && strstr(result.tail, "fps_mode"))
        r = 1;
    else if (r == PEN_OK && result.exit.code)
        r = pen__video_fail_exit("ffmpeg", part->path, &result, reterr);
    else if (r == PEN_OK && reading->log.width)
        r = give_kept(reading, reterr);
    pen__buf_free(&c.url);
    return r;
}

int pen__video_read(const PenVideoSettings *settings, const PenVideoPart *part, PenVideoFn frame,
                    void *ctx, PenBuf *times, PenError *reterr)
{
    Reading reading = {.frame = frame, .ctx = ctx, .log = {.name = part->path, .times = times}};
    int r = read_once(settings, part, &reading, false, reterr);
    if (r == 1)
        r = read_once(settings, part, &reading, true, reterr);
    if (r == PEN_OK)
        r = check_end(&reading, reterr);
    pen__buf_free(&reading.pixels);
    return r;
}
