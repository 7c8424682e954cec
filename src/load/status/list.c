/* SPDX-License-Identifier: Apache-2.0 */
/* The loaders of all processes of this user. What they wrote is input like any other: everything is
 * checked, and what is not in order is left out. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/attr.h"
#include "base/error.h"
#include "base/mem.h"
#include "base/sys.h"
#include "io/memory_names.h"
#include "load/status/text.h"
#include "tools.h"

#define WHERE "load/status"

enum {
    MOST = 4096, /* loaders; any user can take many names */
    TRIES = 5    /* of reading one text, which may be written meanwhile */
};

struct PenLoaderList {
    PenLoadStatus *all;
    size_t n, cap;
};

/* ---- finding ---- */

static bool read_status(int fd, PenLoadStatus *ret)
{
    char text[PEN_STATUS_BYTES];
    for (int i = 0; i < TRIES; i++)
        if (pen__sys->pread(fd, text, sizeof text, 0) == sizeof text && pen__status_read(text, ret))
            return true;
    return false;
}

static bool reserve(PenLoaderList *list)
{
    if (list->n < list->cap)
        return true;
    size_t cap = list->cap ? 2 * list->cap : 16;
    PenLoadStatus *all = pen__alloc_array(cap, sizeof *all);
    if (!all)
        return false;
    if (list->n)
        memcpy(all, list->all, list->n * sizeof *all);
    pen__free(list->all);
    list->all = all;
    list->cap = cap;
    return true;
}

static int add(void *ctx, const PenMemoryPlace *place)
{
    PenLoaderList *list = ctx;
    int fd = pen__memory_place_open(place, PEN_STATUS_BYTES, PEN_OPEN_READ);
    if (fd < 0)
        return 0;
    int r = reserve(list) ? 0 : -ENOMEM;
    if (r == 0 && read_status(fd, &list->all[list->n]) &&
        list->all[list->n].process == (uint64_t)place->process)
        list->n++;
    pen__sys->close(fd);
    return r == 0 && list->n == MOST ? 1 : r;
}

static int order(uint64_t a, uint64_t b)
{
    return (a > b) - (a < b);
}

static int compare(const void *a, const void *b)
{
    const PenLoadStatus *x = a, *y = b;
    int r = strcmp(x->pack, y->pack);
    if (r == 0)
        r = order(x->world, y->world);
    if (r == 0)
        r = order(x->rank, y->rank);
    return r == 0 ? order(x->process, y->process) : r;
}

int pen_loader_list_open(PenLoaderList **ret_list, PenError *reterr)
{
    char prefix[PEN_MEMORY_NAME_BYTES];
    PenLoaderList *list = pen__zalloc(sizeof *list);
    pen__memory_names_prefix(PEN_STATUS_WHAT, prefix);
    int r = list ? pen__memory_names_each(prefix, add, list) : -ENOMEM;
    if (r < 0) {
        pen_loader_list_close(&list);
        return r == -ENOMEM ? pen__fail_memory(reterr, WHERE, "loaders")
                            : pen__fail_os(reterr, -r, WHERE, "cannot search for loaders in %s",
                                           pen__memory_names_list);
    }
    if (list->n)
        qsort(list->all, list->n, sizeof *list->all, compare);
    *ret_list = list;
    return PEN_OK;
}

void pen_loader_list_close(PenLoaderList **list)
{
    if (!list || !*list)
        return;
    pen__free((*list)->all);
    pen__free(*list);
    *list = NULL;
}

/* ---- reading ---- */

static uint64_t age_ns(const PenLoadStatus *s)
{
    uint64_t now = pen__sys->now_ns();
    return now > s->clock_ns ? now - s->clock_ns : 0;
}

int pen_loader_list_get(const PenLoaderList *list, uint64_t i, PenRunningLoader *ret)
{
    if (i >= list->n)
        return PEN_END;
    const PenLoadStatus *s = &list->all[i];
    *ret = (PenRunningLoader){.process = (int32_t)s->process,
                              .rank = (uint32_t)s->rank,
                              .world = (uint32_t)s->world,
                              .epoch = s->epoch,
                              .batch = s->batch,
                              .batches = s->batches,
                              .memory_limit_bytes = s->memory_limit_bytes,
                              .requests_in_flight = (uint32_t)s->requests_in_flight,
                              .cache_hits = s->cache_hits,
                              .cache_misses = s->cache_misses,
                              .age_ns = age_ns(s),
                              .pack = s->pack};
    return PEN_OK;
}

int pen_loader_list_stats(const PenLoaderList *list, uint64_t i, PenLoaderStats *ret)
{
    if (i >= list->n)
        return PEN_END;
    *ret = list->all[i].stats;
    return PEN_OK;
}
