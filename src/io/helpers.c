/* SPDX-License-Identifier: Apache-2.0 */
#include "io/helpers.h"

#include "base/error.h"
#include "base/thread.h"

#define WHERE "io/helpers"

int pen__helpers_init(PenHelpers *h, unsigned n, PenError *reterr)
{
    *h = (PenHelpers){.free = n};
    if (pen__cond_init(&h->changed) < 0)
        return pen__fail_memory(reterr, WHERE, "condition");
    pthread_mutex_init(&h->mutex, NULL);
    return PEN_OK;
}

void pen__helpers_fini(PenHelpers *h)
{
    pthread_cond_destroy(&h->changed);
    pthread_mutex_destroy(&h->mutex);
}

static void unlink_wait(PenHelpers *h, const PenHelpersWait *w)
{
    PenHelpersWait **at = &h->first;
    while (*at != w)
        at = &(*at)->next;
    *at = w->next;
    pthread_cond_broadcast(&h->changed);
}

void pen__helpers_queue(PenHelpers *h, PenHelpersWait *w)
{
    pthread_mutex_lock(&h->mutex);
    PenHelpersWait **at = &h->first;
    while (*at)
        at = &(*at)->next;
    *at = w;
    w->next = NULL;
    pthread_mutex_unlock(&h->mutex);
}

int pen__helpers_wait(PenHelpers *h, PenHelpersWait *w, uint64_t deadline_ns)
{
    int r = PEN_OK;
    pthread_mutex_lock(&h->mutex);
    while (r == PEN_OK && (h->first != w || h->free < w->n))
        r = pen__cond_wait(&h->changed, &h->mutex, deadline_ns);
    if (r == PEN_OK) {
        h->free -= w->n;
        unlink_wait(h, w);
    }
    pthread_mutex_unlock(&h->mutex);
    return r;
}

void pen__helpers_leave(PenHelpers *h, PenHelpersWait *w)
{
    pthread_mutex_lock(&h->mutex);
    unlink_wait(h, w);
    pthread_mutex_unlock(&h->mutex);
}

void pen__helpers_put(PenHelpers *h, unsigned n)
{
    pthread_mutex_lock(&h->mutex);
    h->free += n;
    pthread_cond_broadcast(&h->changed);
    pthread_mutex_unlock(&h->mutex);
}
