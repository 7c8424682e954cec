/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "base/thread.h"
#include "ingest/video/video_impl.h"

#define WHERE "ingest/video"

/* The programs are no input: without them nothing goes. */
static int fail_none(const char *program, PenError *reterr)
{
    return pen__fail(reterr, PEN_E_IO, WHERE,
                     "%s: no such program; install the package ffmpeg, which contains it and is "
                     "needed to read videos",
                     program);
}

static int fail_start(const PenConfinedProgram *program, const PenError *e, PenError *reterr)
{
    if (e->os_errno == ENOSYS)
        return pen__fail(reterr, PEN_E_IO, WHERE,
                         "%s: videos are read only in a sandbox, and this kernel has no seccomp "
                         "filters. Pack them on another "
                         "machine, or pack frames (docs/how-to/video.md)",
                         program->path);
    if (pen__video_program_is_script(program))
        return pen__fail(reterr, PEN_E_IO, WHERE,
                         "%s: expected a binary, found a script, which cannot run in the sandbox; "
                         "put the folder of the binary first in PATH",
                         program->path);
    return pen__fail(reterr, PEN_E_IO, WHERE, "%s: cannot run it (%s)", program->path,
                     strerror(e->os_errno));
}

static int fail_signal(const PenVideoSettings *settings, const char *program, const char *name,
                       int number, PenError *reterr)
{
    switch (number) {
    case SIGXCPU:
        return pen__fail(reterr, PEN_E_LIMIT, WHERE,
                         "%s: expected %s to take at most %" PRIu32
                         " seconds of CPU time, found more",
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
        return pen__fail(reterr, PEN_E_IO, WHERE,
                         "%s: %s was killed by another process (signal %d)", name, program, number);
    }
}

/* `input`: what it reads; NULL: nothing. */
static int run_program(const PenVideoSettings *settings, PenConfinedProgram *program,
                       const char *input, PenProcessSettings *s, PenProcessResult *ret,
                       PenError *reterr)
{
    PenError e = {0};
    const char *inputs[] = {input, NULL};
    if (!pen__video_program_find(s->argv[0], program))
        return fail_none(s->argv[0], reterr);
    PenConfine confine = {
        .program = program->path, .libraries = program->libraries, .inputs = inputs};
    s->env = program->environment;
    s->memory_bytes = PEN_CONFINE_MEMORY;
    s->cpu_seconds = settings->seconds;
    s->deadline_ns = pen__deadline_after(settings->seconds * UINT64_C(1000000000));
    s->confine = &confine;
    s->cancel = settings->cancel;
    int r = pen__process_run(s, ret, &e);
    s->confine = NULL;
    s->env = NULL;
    if (r < 0 && (e.os_errno == ENOENT || e.os_errno == EACCES || e.os_errno == ENOEXEC ||
                  e.os_errno == ENOSYS))
        return fail_start(program, &e, reterr);
    if (r < 0 && reterr)
        *reterr = e;
    return r;
}

static int run_input(const PenVideoSettings *settings, const char *name, const char *input,
                     PenProcessSettings *s, PenProcessResult *ret, PenError *reterr)
{
    PenError e = {0};
    PenConfinedProgram *program = pen__alloc(sizeof *program);
    if (!program)
        return pen__fail_memory(reterr, WHERE, name);
    int r = run_program(settings, program, input, s, ret, &e);
    pen__free(program);
    if (r == PEN_E_TIMEOUT)
        return pen__fail(reterr, PEN_E_LIMIT, WHERE,
                         "%s: expected %s to take at most %" PRIu32
                         " seconds, found more; raise the limit with --video-seconds",
                         name, s->argv[0], settings->seconds);
    if (r < 0) {
        if (reterr)
            *reterr = e;
        return r;
    }
    if (ret->exit.lost)
        return pen__fail(reterr, PEN_E_IO, WHERE,
                         "%s: the exit status of %s is unknown: this process reaps all of its "
                         "children elsewhere",
                         name, s->argv[0]);
    return ret->exit.signal ? fail_signal(settings, s->argv[0], name, ret->exit.signal, reterr)
                            : PEN_OK;
}

int pen__video_run(const PenVideoSettings *settings, const char *name, PenProcessSettings *s,
                   PenProcessResult *ret, PenError *reterr)
{
    return run_input(settings, name, name, s, ret, reterr);
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
    return *line ? line : "no output";
}

int pen__video_fail_exit(const char *program, const char *name, PenProcessResult *result,
                         PenError *reterr)
{
    enum { STOPPED = 255 }; /* ffmpeg, asked by a signal to end */
    if (result->exit.code == STOPPED)
        return pen__fail(reterr, PEN_E_IO, WHERE, "%s: %s was stopped by another process", name,
                         program);
    return pen__fail(reterr, PEN_E_DECODE, WHERE, "%s: %s cannot read this video: %.200s", name,
                     program, last_line(result));
}

/* Whatever keeps it from starting, it is not the videos. */
static int check_program(const PenVideoSettings *settings, const char *program, PenError *reterr)
{
    const char *argv[] = {program, "-hide_banner", "-version", NULL};
    PenProcessSettings s = {.argv = argv, .out_bytes = 1 << 20};
    PenProcessResult result;
    int r = run_input(settings, program, NULL, &s, &result, reterr);
    if (r < 0)
        return r;
    if (result.exit.code)
        return pen__fail(
            reterr, PEN_E_IO, WHERE,
            "%s: expected the version of the program, found %.200s; use a binary, not a script, "
            "with its libraries in a system folder, in ../lib or in LD_LIBRARY_PATH",
            program, last_line(&result));
    return PEN_OK;
}

int pen__video_check_programs(const PenVideoSettings *settings, PenError *reterr)
{
    static const char *const programs[] = {"ffmpeg", "ffprobe"};
    for (size_t i = 0; i < PEN_LEN(programs); i++) {
        PenError e = {0};
        int r = check_program(settings, programs[i], &e);
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
