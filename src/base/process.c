/* SPDX-License-Identifier: Apache-2.0 */
#include "base/process.h"

#include <errno.h>
#include <poll.h>
#include <stdbool.h>
#include <string.h>

#include "base/attr.h"
#include "base/error.h"
#include "base/thread.h"

#define WHERE "base/process"

/* Waits are cut into pieces, so that the end of the program, a cancel or a turned clock is noticed
 * even while something else holds its pipes open. */
enum { SLICE_MS = 50, READ_BYTES = 65536, DYING_MS = 1000 };

typedef struct Run {
    const PenProcessSettings *settings;
    PenSpawned child;
    int out_fd, err_fd, side_fd; /* -1 when at their end */
    PenProcessResult *result;
} Run;

/* The last bytes of all that comes. */
static void keep_tail(PenProcessResult *r, const char *data, size_t bytes)
{
    if (bytes > PEN_PROCESS_TAIL) {
        data += bytes - PEN_PROCESS_TAIL;
        bytes = PEN_PROCESS_TAIL;
    }
    size_t keep = PEN_MIN(r->tail_bytes, PEN_PROCESS_TAIL - bytes);
    memmove(r->tail, r->tail + r->tail_bytes - keep, keep);
    memcpy(r->tail + keep, data, bytes);
    r->tail_bytes = keep + bytes;
    r->tail[r->tail_bytes] = 0;
}

static int take_out(Run *run, const char *data, size_t bytes, PenError *reterr)
{
    const PenProcessSettings *s = run->settings;
    run->result->out_bytes += bytes;
    if (s->out_bytes && run->result->out_bytes > s->out_bytes)
        return pen__fail(reterr, PEN_E_LIMIT, WHERE,
                         "%s: wrote more than %llu bytes to stdout; stopped", s->argv[0],
                         (unsigned long long)s->out_bytes);
    return s->take ? s->take(s->take_ctx, data, bytes, reterr) : PEN_OK;
}

static int take_side(Run *run, const char *data, size_t bytes, PenError *reterr)
{
    const PenProcessSettings *s = run->settings;
    run->result->side_bytes += bytes;
    if (s->side_bytes && run->result->side_bytes > s->side_bytes)
        return pen__fail(reterr, PEN_E_LIMIT, WHERE,
                         "%s: wrote more than %llu bytes to stderr; stopped", s->argv[0],
                         (unsigned long long)s->side_bytes);
    return s->take_side(s->take_ctx, data, bytes, reterr);
}

/* One read. 1: there may be more at once; 0: nothing now, or its end, and *fd is then -1. */
static int read_some(Run *run, int *fd, PenError *reterr)
{
    char data[READ_BYTES];
    int64_t n = pen__sys->read(*fd, data, sizeof data);
    if (n == -EAGAIN)
        return 0;
    int r = 0;
    if (n < 0)
        r = pen__fail_os(reterr, (int)-n, WHERE, "%s: cannot read its output",
                         run->settings->argv[0]);
    else if (n == 0)
        *fd = -1;
    else if (fd == &run->err_fd)
        keep_tail(run->result, data, (size_t)n);
    else if (fd == &run->side_fd)
        r = take_side(run, data, (size_t)n, reterr);
    else
        r = take_out(run, data, (size_t)n, reterr);
    explicit_bzero(data, n > 0 ? (size_t)n : 0); /* credentials come this way */
    return r < 0 ? r : n > 0;
}

static int wait_output(Run *run, PenError *reterr)
{
    uint64_t now = pen__sys->now_ns(), left = run->settings->deadline_ns - now;
    if (now >= run->settings->deadline_ns)
        return pen__fail(reterr, PEN_E_TIMEOUT, WHERE, "%s: timed out; killed",
                         run->settings->argv[0]);
    if (run->settings->cancel && atomic_load(run->settings->cancel))
        return pen__fail(reterr, PEN_E_CANCELLED, WHERE, "%s: cancelled", run->settings->argv[0]);
    /* With both pipes at their end only its exit is missing: that is a matter of moments. */
    bool open = run->out_fd >= 0 || run->err_fd >= 0 || run->side_fd >= 0;
    int ms = (int)PEN_MIN(left / 1000000 + 1, open ? SLICE_MS : 1);
    struct pollfd fds[3] = {{.fd = run->out_fd, .events = POLLIN},
                            {.fd = run->err_fd, .events = POLLIN},
                            {.fd = run->side_fd, .events = POLLIN}};
    int n = pen__sys->poll(fds, 3, ms);
    return n < 0 ? pen__fail_os(reterr, -n, WHERE, "%s: cannot wait for it", run->settings->argv[0])
                 : 0;
}

/* What is in the pipe by now, of a program that has ended: others may hold its other end open, and
 * even go on writing. A pipe holds no more than a megabyte. */
static int drain(Run *run, int *fd, PenError *reterr)
{
    int r = 1;
    for (int i = 0; r > 0 && *fd >= 0 && i < (2 << 20) / READ_BYTES; i++)
        r = read_some(run, fd, reterr);
    return r;
}

static int follow(Run *run, PenError *reterr)
{
    for (;;) {
        int ended = pen__sys->process_ended(run->child.pid, &run->result->exit);
        int r = PEN_OK;
        if (ended) {
            r = drain(run, &run->side_fd, reterr);
            if (r >= 0)
                r = drain(run, &run->out_fd, reterr);
            return r < 0 ? r : drain(run, &run->err_fd, reterr);
        }
        r = wait_output(run, reterr);
        if (r == PEN_OK && run->side_fd >= 0)
            r = read_some(run, &run->side_fd, reterr);
        if (r >= 0 && run->out_fd >= 0)
            r = read_some(run, &run->out_fd, reterr);
        if (r >= 0 && run->err_fd >= 0)
            r = read_some(run, &run->err_fd, reterr);
        if (r < 0)
            return r;
    }
}

/* The group is killed while its number cannot be another's: before its first process is reaped. */
void pen__process_end(int pid)
{
    PenExit how = {0};
    int ended = pen__sys->process_ended(pid, &how);
    if (ended && how.lost)
        return;
    pen__sys->process_kill(pid);
    uint64_t deadline = pen__sys_real.now_ns() + DYING_MS * UINT64_C(1000000);
    while (!ended && pen__sys_real.now_ns() < deadline) {
        (void)pen__sys->poll(NULL, 0, 1);
        ended = pen__sys->process_ended(pid, &how);
    }
    pen__sys->process_reap(pid);
}

int pen__process_run(const PenProcessSettings *settings, PenProcessResult *ret, PenError *reterr)
{
    Run run = {.settings = settings, .result = ret};
    PenSpawn what = {.argv = settings->argv,
                     .env = settings->env,
                     .memory_bytes = settings->memory_bytes,
                     .cpu_seconds = settings->cpu_seconds,
                     .confine = settings->confine,
                     .has_side = settings->take_side != NULL};
    *ret = (PenProcessResult){.exit = {.code = -1}};
    int e = pen__sys->spawn(&what, &run.child);
    if (e < 0)
        return pen__fail_os(reterr, -e, WHERE, "%s: cannot run it", settings->argv[0]);
    run.out_fd = run.child.out_fd;
    run.err_fd = run.child.err_fd;
    run.side_fd = run.child.side_fd;
    int r = follow(&run, reterr);
    pen__process_end(run.child.pid);
    pen__sys->close(run.child.out_fd);
    pen__sys->close(run.child.err_fd);
    if (run.child.side_fd >= 0)
        pen__sys->close(run.child.side_fd);
    return r < 0 ? r : PEN_OK;
}

int pen__process_take_buf(void *buf, const void *data, size_t bytes, PenError *reterr)
{
    return pen__buf_add(buf, data, bytes) < 0 ? pen__fail_memory(reterr, WHERE, "its output")
                                              : PEN_OK;
}
