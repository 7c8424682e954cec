/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "base/thread.h"
#include "ingest/video_inner.h"

#define WHERE "ingest/video"
#define MEMORY_BYTES ((uint64_t)4 << 30)

/* The environment can make ffmpeg write reports and load other things, so that little of it is
 * passed on. */
enum { MAX_ENV = 8, ENV_BYTES = 4096 };

typedef struct Environment {
    char texts[MAX_ENV][ENV_BYTES];
    const char *list[MAX_ENV + 1];
} Environment;

static void make_environment(Environment *e)
{
    static const char *const passed[] = {"PATH", "LD_LIBRARY_PATH", "HOME", "TMPDIR"};
    static const char *const fixed[] = {"LC_ALL=C", "MALLOC_ARENA_MAX=2", "AV_LOG_FORCE_NOCOLOR=1"};
    size_t n = 0;
    for (size_t i = 0; i < PEN_LEN(passed); i++) {
        const char *value = pen__sys->environment(passed[i]);
        int bytes = value ? snprintf(e->texts[n], ENV_BYTES, "%s=%s", passed[i], value) : -1;
        if (bytes > 0 && bytes < ENV_BYTES) {
            e->list[n] = e->texts[n];
            n++;
        }
    }
    for (size_t i = 0; i < PEN_LEN(fixed); i++)
        e->list[n++] = fixed[i];
    e->list[n] = NULL;
}

/* The programs are no input: without them nothing goes. */
static int fail_start(const char *program, PenError *reterr)
{
    return pen__fail(
        reterr, PEN_E_IO, WHERE,
        "%s: expected the program to read videos with, found none; install the package "
        "ffmpeg, which has it",
        program);
}

static int fail_signal(const PenVideoSettings *settings, const char *program, const char *name,
                       int number, PenError *reterr)
{
    switch (number) {
    case SIGXCPU:
        return pen__fail(reterr, PEN_E_LIMIT, WHERE,
                         "%s: expected %s to take at most %" PRIu32
                         " seconds of the processor, found more",
                         name, program, settings->seconds);
    case SIGSEGV:
    case SIGABRT:
    case SIGBUS:
    case SIGFPE:
    case SIGILL:
    case SIGSYS:
    case SIGTRAP:
    case SIGXFSZ:
        return pen__fail(reterr, PEN_E_DECODE, WHERE, "%s: %s crashed on it (signal %d)", name,
                         program, number);
    default:
        return pen__fail(reterr, PEN_E_IO, WHERE, "%s: %s was killed from outside (signal %d)",
                         name, program, number);
    }
}

int pen__video_run(const PenVideoSettings *settings, const char *name, PenProcessSettings *s,
                   PenProcessResult *ret, PenError *reterr)
{
    PenError e = {0};
    Environment *environment = pen__alloc(sizeof *environment);
    if (!environment)
        return pen__fail_memory(reterr, WHERE, name);
    make_environment(environment);
    s->env = environment->list;
    s->memory_bytes = MEMORY_BYTES;
    s->cpu_seconds = settings->seconds;
    s->deadline_ns = pen__deadline_after(settings->seconds * UINT64_C(1000000000));
    s->confined = true;
    s->cancel = settings->cancel;
    int r = pen__process_run(s, ret, &e);
    pen__free(environment);
    if (r == PEN_E_TIMEOUT)
        return pen__fail(reterr, PEN_E_LIMIT, WHERE,
                         "%s: expected %s to take at most %" PRIu32
                         " seconds, found more; --video-seconds gives it longer",
                         name, s->argv[0], settings->seconds);
    if (r < 0 && (e.os_errno == ENOENT || e.os_errno == EACCES))
        return fail_start(s->argv[0], reterr);
    if (r < 0) {
        if (reterr)
            *reterr = e;
        return r;
    }
    if (ret->exit.lost)
        return pen__fail(reterr, PEN_E_IO, WHERE,
                         "%s: how %s ended is not known: the program around takes its children's "
                         "ends",
                         name, s->argv[0]);
    return ret->exit.signal ? fail_signal(settings, s->argv[0], name, ret->exit.signal, reterr)
                            : PEN_OK;
}

/* The last line that is not empty; what is no plain text in it becomes a question mark. */
static const char *last_line(PenProcessResult *result)
{
    char *text = result->tail;
    size_t n = result->tail_bytes;
    while (n && (text[n - 1] == '\n' || text[n - 1] == '\r' || text[n - 1] == ' '))
        n--;
    text[n] = 0;
    const char *line = memrchr(text, '\n', n);
    line = line ? line + 1 : text;
    for (char *p = text; *p; p++)
        if ((uint8_t)*p < 0x20 || (uint8_t)*p > 0x7e)
            *p = *p == '\n' ? *p : '?';
    return *line ? line : "nothing";
}

int pen__video_fail_exit(const char *program, const char *name, PenProcessResult *result,
                         PenError *reterr)
{
    enum { STOPPED = 255 }; /* ffmpeg, asked by a signal to end */
    if (result->exit.code == STOPPED)
        return pen__fail(reterr, PEN_E_IO, WHERE, "%s: %s was stopped from outside", name, program);
    return pen__fail(reterr, PEN_E_DECODE, WHERE,
                     "%s: expected a video that %s can read, found that it says: %.200s", name,
                     program, last_line(result));
}

int pen__video_check_programs(const PenVideoSettings *settings, PenError *reterr)
{
    static const char *const programs[] = {"ffmpeg", "ffprobe"};
    for (size_t i = 0; i < PEN_LEN(programs); i++) {
        const char *argv[] = {programs[i], "-hide_banner", "-version", NULL};
        PenProcessSettings s = {.argv = argv, .out_bytes = 1 << 20};
        PenProcessResult result;
        PenError e = {0};
        int r = pen__video_run(settings, programs[i], &s, &result, &e);
        if (r == PEN_E_IO || r == PEN_E_DECODE) {
            r = PEN_E_NOT_FOUND;
            e.status = r;
        }
        if (r < 0) {
            if (reterr)
                *reterr = e;
            return r;
        }
    }
    return PEN_OK;
}
