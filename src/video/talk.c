/* SPDX-License-Identifier: Apache-2.0 */
#include "video/talk.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>

#include "base/thread.h"

#define WHERE "video/process"
#define NAME "video decoder process"

/* Waits are cut into pieces: the end of the process is noticed even while a program that was forked
 * meanwhile holds its end of the socket open. */
enum { SLICE_MS = 50, DYING_MS = 1000 };

/* ---- how it ended ---- */

/* The first line that it printed, as plain text. */
static void read_line(const PenTalk *t, char *ret, size_t cap)
{
    int64_t n = pen__sys->read(t->process.err_fd, ret, cap - 1);
    ret[n > 0 ? n : 0] = 0;
    for (char *p = ret; *p; p++)
        if (*p == '\n')
            *p = 0;
        else if ((unsigned char)*p < ' ' || (unsigned char)*p > '~')
            *p = '?';
}

static bool wait_for_end(const PenTalk *t, PenExit *ret)
{
    uint64_t deadline = pen__deadline_after(DYING_MS * UINT64_C(1000000));
    while (!pen__sys->process_ended(t->process.pid, ret)) {
        if (pen__sys->now_ns() >= deadline)
            return false;
        (void)pen__sys->poll(NULL, 0, 1);
    }
    return true;
}

static int fail_ended(const PenTalk *t, PenError *reterr)
{
    char line[160];
    PenExit how = {.code = -1};
    if (!wait_for_end(t, &how))
        return pen__fail(reterr, PEN_E_DECODE, WHERE,
                         NAME ": expected a reply, found that it closed its socket");
    read_line(t, line, sizeof line);
    if (how.lost)
        return pen__fail(reterr, PEN_E_DECODE, WHERE, NAME ": expected a reply, found its end");
    if (how.signal == SIGKILL)
        return pen__fail(reterr, PEN_E_DECODE, WHERE,
                         NAME ": expected a reply, found that it was killed (signal 9), maybe "
                              "because the machine has no memory left");
    if (how.signal)
        return pen__fail(reterr, PEN_E_DECODE, WHERE,
                         NAME ": expected a reply, found that it crashed (signal %d)%s%s",
                         how.signal, *line ? ": " : "", line);
    return pen__fail(reterr, PEN_E_DECODE, WHERE,
                     NAME ": expected a reply, found that it ended with code %d%s%s", how.code,
                     *line ? ": " : "", line);
}

/* ---- bytes ---- */

static int wait_for(const PenTalk *t, short events, uint64_t deadline, PenError *reterr)
{
    uint64_t now = pen__sys->now_ns();
    if (now >= deadline)
        return pen__fail(reterr, PEN_E_DECODE_TIMEOUT, WHERE,
                         NAME ": expected a reply within %.3g s, found none; stopped",
                         (double)t->reply_ns / 1e9);
    uint64_t left_ms = (deadline - now) / 1000000 + 1;
    struct pollfd fd = {.fd = t->process.out_fd, .events = events};
    PenExit how;
    int n = pen__sys->poll(&fd, 1, (int)(left_ms < SLICE_MS ? left_ms : SLICE_MS));
    if (n < 0)
        return pen__fail_os(reterr, -n, WHERE, NAME ": cannot wait for it");
    return n == 0 && pen__sys->process_ended(t->process.pid, &how) ? fail_ended(t, reterr) : PEN_OK;
}

static bool is_end(int64_t n)
{
    return n == 0 || n == -EPIPE || n == -ECONNRESET;
}

static int send_all(const PenTalk *t, const void *data, uint64_t bytes, uint64_t deadline,
                    PenError *reterr)
{
    const uint8_t *at = data;
    int r = PEN_OK;
    while (bytes && r == PEN_OK) {
        int64_t n = pen__sys->send(t->process.out_fd, at, (size_t)bytes);
        if (n > 0) {
            at += n;
            bytes -= (uint64_t)n;
        } else if (n == -EAGAIN) {
            r = wait_for(t, POLLOUT, deadline, reterr);
        } else {
            r = is_end(n) ? fail_ended(t, reterr)
                          : pen__fail_os(reterr, (int)-n, WHERE, NAME ": cannot write to it");
        }
    }
    return r;
}

static int read_all(const PenTalk *t, void *ret, size_t bytes, uint64_t deadline, PenError *reterr)
{
    uint8_t *at = ret;
    int r = PEN_OK;
    while (bytes && r == PEN_OK) {
        int64_t n = pen__sys->read(t->process.out_fd, at, bytes);
        if (n > 0) {
            at += n;
            bytes -= (size_t)n;
        } else if (n == -EAGAIN) {
            r = wait_for(t, POLLIN, deadline, reterr);
        } else {
            r = is_end(n) ? fail_ended(t, reterr)
                          : pen__fail_os(reterr, (int)-n, WHERE, NAME ": cannot read from it");
        }
    }
    return r;
}

int pen__talk_hear(const PenTalk *t, PenChildReply *ret, PenError *reterr)
{
    return read_all(t, ret, sizeof *ret, pen__deadline_after(t->reply_ns), reterr);
}

int pen__talk_ask(const PenTalk *t, const PenChildRequest *request, const void *data,
                  PenChildReply *ret, PenError *reterr)
{
    uint64_t deadline = pen__deadline_after(t->reply_ns);
    int r = send_all(t, request, sizeof *request, deadline, reterr);
    if (r == PEN_OK)
        r = send_all(t, data, request->bytes, deadline, reterr);
    return r == PEN_OK ? read_all(t, ret, sizeof *ret, deadline, reterr) : r;
}
