/* SPDX-License-Identifier: Apache-2.0 */
#include "load/status/writer.h"

#include <string.h>
#include <unistd.h>

#include <penstock/cache.h>

#include "base/sys.h"
#include "io/memory_names.h"
#include "load/figures.h"
#include "load/status/text.h"

#define PERIOD_NS 100000000u  /* between two texts, at least */
#define WINDOW_NS 1000000000u /* between two marks, at least */

static bool is_wanted(void)
{
    const char *value = pen__sys->environment("PENSTOCK_TOP");
    return !value || strcmp(value, "0") != 0;
}

/* False: it cannot be shown. */
static bool begin(PenStatusWriter *w)
{
    char prefix[PEN_MEMORY_NAME_BYTES];
    if (!is_wanted())
        return false;
    int fd = pen__sys->memory_make("penstock-loader", PEN_STATUS_BYTES);
    if (fd < 0)
        return false;
    pen__memory_names_prefix(PEN_STATUS_WHAT, prefix);
    int name_fd = pen__memory_name_take(prefix, fd);
    if (name_fd < 0) {
        pen__sys->close(fd);
        return false;
    }
    w->is_open = true;
    w->fd = fd;
    w->name_fd = name_fd;
    w->from.ns = w->next.ns = pen__sys->now_ns();
    return true;
}

/* The counters of the last seconds; marks the present ones for later. */
static void read_recent(PenStatusWriter *w, PenLoadEngine *e, PenLoaderStats *ret)
{
    PenStatusMark now;
    pthread_mutex_lock(&e->lock.mutex);
    now.ns = pen__sys->now_ns();
    pen__load_engine_count(e, &now.counters);
    *ret = pen__figures_now(e);
    pthread_mutex_unlock(&e->lock.mutex);
    if (now.ns - w->next.ns >= WINDOW_NS) {
        w->from = w->next;
        w->next = now;
    }
    ret->ns_elapsed = now.ns - w->from.ns;
    pen__counters_subtract(&now.counters, &w->from.counters);
    pen__counters_report(&now.counters, UINT64_MAX, ret);
}

static void describe(PenStatusWriter *w, PenLoadEngine *e, uint64_t epoch, PenLoadStatus *ret)
{
    char path[4 * PEN_STATUS_PACK_BYTES];
    PenRemoteStats remote;
    PenCacheStats cache;
    pen_pack_remote_stats(e->plan.pack, &remote);
    pen_pack_cache_stats(e->plan.pack, &cache);
    *ret = (PenLoadStatus){.process = (uint64_t)getpid(),
                           .rank = e->plan.set.rank,
                           .world = e->plan.set.world,
                           .epoch = epoch,
                           .batch = e->pass.delivered,
                           .batches = e->pass.steps,
                           .clock_ns = pen__sys->now_ns(),
                           .memory_limit_bytes = e->plan.shares.total,
                           .requests_in_flight = remote.in_flight,
                           .cache_hits = cache.hits,
                           .cache_misses = cache.misses};
    pen__figures_path(&e->plan, path, sizeof path);
    pen__status_set_pack(ret, path);
    read_recent(w, e, &ret->stats);
}

/* If the program has closed our file, another one may have its number by now: only memory of a
 * fixed size is written to. */
static bool write_text(const PenStatusWriter *w, char text[PEN_STATUS_BYTES])
{
    struct iovec iov = {text, PEN_STATUS_BYTES};
    return pen__sys->memory_is_sealed(w->fd) == 0 &&
           pen__sys->pwritev(w->fd, &iov, 1, 0) == PEN_STATUS_BYTES;
}

static bool show(PenStatusWriter *w, PenLoadEngine *e, uint64_t epoch)
{
    PenLoadStatus status;
    char text[PEN_STATUS_BYTES];
    if (!w->is_open && !begin(w))
        return false;
    if (!w->has_begun && e->pass.steps) {
        w->has_begun = true;
        w->from.ns = w->next.ns = e->pass_began_ns;
    }
    describe(w, e, epoch, &status);
    pen__status_write(&status, text);
    w->due_ns = w->has_begun ? status.clock_ns + PERIOD_NS : 0; /* the first request is shown */
    return write_text(w, text);
}

void pen__status_show(PenStatusWriter *w, PenLoadEngine *e, uint64_t epoch)
{
    if (show(w, e, epoch))
        return;
    pen__status_close(w);
    w->due_ns = UINT64_MAX;
}

void pen__status_close(PenStatusWriter *w)
{
    if (!w->is_open)
        return;
    w->is_open = false;
    pen__sys->close(w->name_fd);
    pen__sys->close(w->fd);
}
