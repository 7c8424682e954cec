/* SPDX-License-Identifier: Apache-2.0 */
/* A listing whose pages are fetched side by side. A page can only be requested after the one before
 * it, so the names are divided into ranges that begin and end with a folder, and each is listed on
 * its own. Before that, the first pages tell how many folders a page has: a range is to have
 * several pages, or requests would be wasted at its end. */
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>

#include "base/attr.h"
#include "base/team.h"
#include "net/remote/list.h"
#include "net/remote/remote_impl.h"

#define WHERE "net/remote"

enum { AT_ONCE = 16 };
enum { RANGES_WANTED = 8 * AT_ONCE, PAGES_OF_A_RANGE = 4 };
enum { MOST_FOLDERS_OF_A_PAGE = 250 }; /* beyond, listing the folders would take too long */

typedef struct Wide {
    PenRemote *r;
    const PenWideList *list;
    PenListing *first;     /* the pages in order; then the first range */
    uint64_t pages;        /* of them */
    uint64_t folders;      /* in these pages */
    PenBuf folder;         /* the last of them, without its slash */
    char **bounds;         /* names of folders that come after these pages, in order */
    uint64_t n, cap;       /* of the bounds */
    uint64_t step;         /* a range ends with every so many of them */
    pthread_mutex_t mutex; /* held while the caller is called */
    atomic_bool is_failed;
    atomic_uint_fast64_t n_pages; /* of all ranges */
} Wide;

/* ---- pages in order -------------------------------------------------------------------------- */

static int note_folder(Wide *w, const char *name)
{
    const char *slash = strchr(name, '/');
    size_t bytes = slash ? (size_t)(slash - name) : 0;
    if (!slash ||
        (w->folders && bytes == w->folder.bytes && memcmp(w->folder.data, name, bytes) == 0))
        return PEN_OK;
    w->folders++;
    w->folder.bytes = 0;
    return pen__buf_add(&w->folder, name, bytes);
}

static int take_first(void *ctx, const char *name, const PenObject *object, PenError *reterr)
{
    Wide *w = ctx;
    if (note_folder(w, name) < 0)
        return pen__fail_memory(reterr, WHERE, "list");
    return w->list->each(w->list->ctx, name, object, reterr);
}

/* 1: there are more pages. */
static int list_first(Wide *w, PenError *reterr)
{
    int e = 0;
    do {
        int found = pen__listing_next(w->first, reterr);
        if (found <= 0)
            return found;
        e = pen__listing_each(w->first, NULL, take_first, w, reterr);
        w->pages++;
    } while (!e && pen__listing_more(w->first) && !w->list->is_ready(w->list->ctx));
    return e ? e : pen__listing_more(w->first);
}

/* ---- ranges ---------------------------------------------------------------------------------- */

static int add_bound(void *ctx, const char *name)
{
    Wide *w = ctx;
    if (w->n && strcmp(w->bounds[w->n - 1], name) >= 0)
        return PEN_OK;
    if (w->n == w->cap) {
        uint64_t cap = w->cap ? 2 * w->cap : 64;
        char **grown = pen__resize(w->bounds, (size_t)cap * sizeof *grown);
        if (!grown)
            return PEN_E_NO_MEMORY;
        w->bounds = grown;
        w->cap = cap;
    }
    w->bounds[w->n] = pen__strdup(name);
    if (!w->bounds[w->n])
        return PEN_E_NO_MEMORY;
    w->n++;
    return PEN_OK;
}

static void drop_bounds(Wide *w)
{
    while (w->n)
        pen__free(w->bounds[--w->n]);
}

static uint64_t count_ranges(const Wide *w)
{
    return w->n / w->step + 1;
}

/* No bounds: it is not worth it, or the server does not do it. */
static int find_bounds(Wide *w, PenError *reterr)
{
    static const char behind[] = "0"; /* the character after the slash: the end of a folder */
    const char *last = pen__listing_last(w->first);
    uint64_t folders = (w->folders - 1) / w->pages + 1;
    if (!last || !strchr(last, '/') || folders > MOST_FOLDERS_OF_A_PAGE)
        return PEN_OK;
    if (pen__buf_add(&w->folder, behind, sizeof behind) < 0)
        return pen__fail_memory(reterr, WHERE, "list");
    int e = pen__remote_list_folders(w->r, (const char *)w->folder.data, add_bound, w, reterr);
    if (e == PEN_E_NO_MEMORY)
        return pen__fail_memory(reterr, WHERE, "list");
    if (e == 0)
        drop_bounds(w);
    w->step = PEN_MAX(PEN_MIN(w->n / RANGES_WANTED, PAGES_OF_A_RANGE * folders), folders);
    return e < 0 ? e : PEN_OK;
}

static int take(void *ctx, const char *name, const PenObject *object, PenError *reterr)
{
    const Wide *w = ctx;
    return w->list->each(w->list->ctx, name, object, reterr);
}

static int list_pages(Wide *w, PenListing *l, const char *until, PenError *reterr)
{
    int e = 0;
    while (!e && !atomic_load(&w->is_failed)) {
        e = pen__listing_next(l, reterr);
        if (e <= 0)
            break;
        e = pen__listing_count(l, atomic_fetch_add(&w->n_pages, 1) + 1, reterr);
        if (e < 0)
            break;
        pthread_mutex_lock(&w->mutex);
        e = pen__listing_each(l, until, take, w, reterr);
        pthread_mutex_unlock(&w->mutex);
    }
    return e;
}

static int list_range(void *ctx, uint64_t number, PenError *reterr)
{
    Wide *w = ctx;
    uint64_t end = (number + 1) * w->step - 1;
    PenListing *l = NULL;
    int e = number ? pen__listing_open(w->r, w->bounds[end - w->step], &l, reterr) : PEN_OK;
    if (e == PEN_OK)
        e = list_pages(w, l ? l : w->first, end < w->n ? w->bounds[end] : NULL, reterr);
    if (e < 0)
        atomic_store(&w->is_failed, true);
    pen__listing_close(&l);
    return e;
}

static int tick(void *ctx, PenError *reterr)
{
    Wide *w = ctx;
    pthread_mutex_lock(&w->mutex);
    int e = w->list->tick(w->list->ctx, reterr);
    pthread_mutex_unlock(&w->mutex);
    return e;
}

static void stop(void *ctx, int stop)
{
    pen__remote_stop(((Wide *)ctx)->r, stop);
}

/* ---- all ------------------------------------------------------------------------------------- */

static int list_in_order(Wide *w, PenError *reterr)
{
    int e;
    while ((e = pen__listing_next(w->first, reterr)) == 1) {
        e = pen__listing_each(w->first, NULL, take, w, reterr);
        if (!e)
            e = tick(w, reterr);
        if (e)
            break;
    }
    return e;
}

static int list_rest(Wide *w, PenError *reterr)
{
    int e = find_bounds(w, reterr);
    if (e < 0 || !w->n)
        return e < 0 ? e : list_in_order(w, reterr);
    PenEach each = {.name = "pen-list",
                    .n = count_ranges(w),
                    .threads = AT_ONCE,
                    .step = list_range,
                    .tick = tick,
                    .stop = stop,
                    .ctx = w};
    return pen__each(&each, reterr);
}

int pen__remote_list_wide(PenRemote *r, const PenWideList *list, PenError *reterr)
{
    Wide w = {.r = r, .list = list};
    int e = pen__listing_open(r, NULL, &w.first, reterr);
    if (e < 0)
        return e;
    pthread_mutex_init(&w.mutex, NULL);
    e = list_first(&w, reterr);
    if (e == 1)
        e = list_rest(&w, reterr);
    pthread_mutex_destroy(&w.mutex);
    pen__listing_close(&w.first);
    drop_bounds(&w);
    pen__free(w.bounds);
    pen__buf_free(&w.folder);
    return e;
}
