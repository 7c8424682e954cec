/* SPDX-License-Identifier: Apache-2.0 */
/* The four time limits. curl's own options express the connection's alone; the rest is ours. */
#include "net/http/engine_impl.h"

#include <linux/sockios.h>
#include <sys/ioctl.h>

#include "base/attr.h"
#include "base/sys.h"

#define MS 1000000ull

static uint64_t tick_ns(const PenCurlTransfer *t)
{
    return PEN_MAX(t->request.limits.slow_ms * MS / PEN_ENGINE_TICKS, MS);
}

/* When this transfer has to be looked at next. */
static void set_due(PenCurlTransfer *t, uint64_t now)
{
    const PenHttpLimits *l = &t->request.limits;
    uint64_t at = t->start_ns + l->deadline_ms * MS;
    if (t->phase == PEN_PHASE_CONNECT)
        at = PEN_MIN(at, t->start_ns + l->connect_ms * MS);
    else if (t->phase == PEN_PHASE_WAIT)
        at = PEN_MIN(at, t->phase_ns + l->first_byte_ms * MS);
    else
        at = PEN_MIN(at, now + tick_ns(t));
    t->due_ns = at;
    t->engine->due_ns = PEN_MIN(t->engine->due_ns, at);
}

/* Bytes that have left curl but not this machine, as the kernel's buffer may hold megabytes. */
static uint64_t unsent(const PenCurlTransfer *t)
{
    int n = 0;
    if (t->fd == CURL_SOCKET_BAD || ioctl(t->fd, SIOCOUTQ, &n) < 0 || n < 0)
        return 0;
    return (uint64_t)n;
}

static uint64_t moved(const PenCurlTransfer *t)
{
    if (t->phase == PEN_PHASE_BODY) /* what is sent counts: the answer may come before its end */
        return t->reply.bytes + t->error.bytes + t->body_at;
    uint64_t waiting = unsent(t);
    return t->body_at > waiting ? t->body_at - waiting : 0;
}

void pen__limits_phase(PenCurlTransfer *t, PenPhase phase)
{
    uint64_t now = pen__sys->now_ns();
    t->phase = phase;
    t->phase_ns = now;
    t->tick = 0;
    uint64_t from = phase == PEN_PHASE_BODY ? t->body_at : 0;
    for (size_t i = 0; i < PEN_LEN(t->ticks); i++)
        t->ticks[i] = from;
    set_due(t, now);
}

/* Once in a tick: has the last stretch of slow_ms moved enough? */
static bool is_slow(PenCurlTransfer *t)
{
    uint64_t now = moved(t), *then = &t->ticks[t->tick++ % PEN_ENGINE_TICKS];
    uint64_t bytes = now > *then ? now - *then : 0;
    *then = now;
    return t->tick > PEN_ENGINE_TICKS && bytes < t->request.limits.slow_bytes;
}

PenHttpFailure pen__limits_over(PenCurlTransfer *t, uint64_t now)
{
    const PenHttpLimits *l = &t->request.limits;
    if (t->phase == PEN_PHASE_CONNECT && now >= t->start_ns + l->connect_ms * MS)
        return PEN_HTTP_T_CONNECT;
    if (t->phase == PEN_PHASE_WAIT && now >= t->phase_ns + l->first_byte_ms * MS)
        return PEN_HTTP_T_FIRST_BYTE;
    if (now >= t->start_ns + l->deadline_ms * MS)
        return PEN_HTTP_T_DEADLINE;
    if (t->phase == PEN_PHASE_SEND && moved(t) >= t->body_bytes)
        pen__limits_phase(t, PEN_PHASE_WAIT);
    else if ((t->phase == PEN_PHASE_SEND || t->phase == PEN_PHASE_BODY) && is_slow(t))
        return PEN_HTTP_T_SLOW;
    set_due(t, now);
    return PEN_HTTP_OK;
}
