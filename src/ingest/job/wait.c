/* SPDX-License-Identifier: Apache-2.0 */
#include "ingest/job/wait.h"

#include "base/attr.h"
#include "base/error.h"
#include "base/sys.h"
#include "base/thread.h"
#include "ingest/job/settings.h"

#define WHERE "ingest/wait"
/* The kernel does not report when a lock becomes free. */
#define RETRY_NS 100000000u

PenLockWait pen__lock_wait(const PenIngestSettings *settings)
{
    return (PenLockWait){settings, pen__deadline_after(settings->wait_seconds * 1000000000ull)};
}

/* Returns at the deadline: nobody signals the condition. */
static int pause_until(uint64_t deadline_ns, PenError *reterr)
{
    pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
    pthread_cond_t cond;
    if (pen__cond_init(&cond) < 0)
        return pen__fail_memory(reterr, WHERE, "wait");
    pthread_mutex_lock(&mutex);
    while (pen__cond_wait(&cond, &mutex, deadline_ns) == PEN_OK)
        ;
    pthread_mutex_unlock(&mutex);
    pthread_cond_destroy(&cond);
    return PEN_OK;
}

int pen__lock_in_time(const PenLockWait *wait, PenLockFn lock, void *ctx, PenError *reterr)
{
    const PenIngestSettings *s = wait->settings;
    for (;;) {
        int r = lock(ctx, reterr);
        if (r != PEN_E_BUSY || !s->wait_seconds)
            return r;
        if (pen__sys->now_ns() >= wait->deadline_ns) {
            pen__error_prefix(reterr, "after waiting for %u s", s->wait_seconds);
            return r;
        }
        r = pen__settings_report(s, (PenIngestProgress){.stage = "wait"}, reterr);
        if (r == PEN_OK)
            r = pause_until(PEN_MIN(wait->deadline_ns, pen__deadline_after(RETRY_NS)), reterr);
        if (r < 0)
            return r;
    }
}
