/* SPDX-License-Identifier: Apache-2.0 */
/* Timers: a list in order of time. There are as many as operations that wait, which is few. */
#include "net/http/engine_impl.h"

#include "base/sys.h"

void pen__timer_clear(PenTransport *t, PenTimer *timer)
{
    if (!timer->set)
        return;
    PenTimer **at = &pen__engine_of(t)->timers;
    while (*at && *at != timer)
        at = &(*at)->next;
    if (*at)
        *at = timer->next;
    timer->next = NULL;
    timer->set = 0;
}

void pen__timer_set(PenTransport *t, PenTimer *timer, uint64_t at_ns, PenCall *call, void *ctx)
{
    pen__timer_clear(t, timer);
    PenTimer **at = &pen__engine_of(t)->timers;
    while (*at && (*at)->at_ns <= at_ns) /* of the same time: in the order they were set */
        at = &(*at)->next;
    *timer = (PenTimer){.at_ns = at_ns, .call = call, .ctx = ctx, .next = *at, .set = 1};
    *at = timer;
}

void pen__timers_run(PenEngine *e)
{
    uint64_t now = pen__sys->now_ns();
    size_t n = 0; /* a timer that sets itself again for now has to wait for the next turn */
    for (const PenTimer *t = e->timers; t && t->at_ns <= now; t = t->next)
        n++;
    for (; n && e->timers && e->timers->at_ns <= now; n--) {
        PenTimer *timer = e->timers;
        e->timers = timer->next;
        timer->next = NULL;
        timer->set = 0;
        timer->call(timer->ctx);
    }
}
