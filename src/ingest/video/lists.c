/* SPDX-License-Identifier: Apache-2.0 */
#include "ingest/video/lists.h"

#include <string.h>

#include "base/thread.h"

#define WHERE "ingest/video"
#define MAX_BYTES ((size_t)64 << 20) /* of lists that nobody uses */

enum { MAX_UNUSED = 256 };

typedef struct Entry {
    PenVideoList list; /* first: a list of ours is an entry */
    struct Entry *next;
    unsigned users;
    bool is_listed; /* false: a thread lists it */
    char path[];
} Entry;

struct PenVideoLists {
    pthread_mutex_t mutex;
    pthread_cond_t listed;
    Entry *first; /* the one that was used last */
};

int pen__video_lists_new(PenVideoLists **ret, PenError *reterr)
{
    PenVideoLists *l = pen__zalloc(sizeof *l);
    if (!l)
        return pen__fail_memory(reterr, WHERE, "lists of packets");
    if (pen__cond_init(&l->listed) < 0) {
        pen__free(l);
        return pen__fail_memory(reterr, WHERE, "lists of packets");
    }
    pthread_mutex_init(&l->mutex, NULL);
    *ret = l;
    return PEN_OK;
}

static void free_entry(Entry *e)
{
    pen__video_list_free(&e->list);
    pen__free(e);
}

void pen__video_lists_free(PenVideoLists **lists)
{
    if (!lists || !*lists)
        return;
    PenVideoLists *l = *lists;
    for (Entry *e = l->first, *next; e; e = next) {
        next = e->next;
        free_entry(e);
    }
    pthread_cond_destroy(&l->listed);
    pthread_mutex_destroy(&l->mutex);
    pen__free(l);
    *lists = NULL;
}

/* Takes the entry out of the chain; NULL: there is none of this path. */
static Entry *take_out(PenVideoLists *l, const char *path)
{
    for (Entry **at = &l->first; *at; at = &(*at)->next)
        if (strcmp((*at)->path, path) == 0) {
            Entry *e = *at;
            *at = e->next;
            return e;
        }
    return NULL;
}

static Entry *put_first(PenVideoLists *l, Entry *e)
{
    e->next = l->first;
    l->first = e;
    return e;
}

static void evict(PenVideoLists *l)
{
    size_t bytes = 0, n = 0;
    for (Entry **at = &l->first; *at;) {
        Entry *e = *at;
        bytes += e->users ? 0 : e->list.memory.cap + e->list.extra.cap;
        n += !e->users;
        if (e->users || (bytes <= MAX_BYTES && n <= MAX_UNUSED)) {
            at = &e->next;
            continue;
        }
        *at = e->next;
        free_entry(e);
    }
}

static Entry *add_entry(PenVideoLists *l, const char *path)
{
    size_t bytes = strlen(path) + 1;
    Entry *e = pen__zalloc(sizeof *e + bytes);
    if (!e)
        return NULL;
    memcpy(e->path, path, bytes);
    e->users = 1;
    return put_first(l, e);
}

/* Called with the lock, which it releases in between. */
static int list_entry(PenVideoLists *l, const PenVideoSettings *settings, Entry *e,
                      PenError *reterr)
{
    pthread_mutex_unlock(&l->mutex);
    int r = pen__video_list_again(settings, e->path, &e->list, reterr);
    pthread_mutex_lock(&l->mutex);
    e->is_listed = r == PEN_OK;
    if (r < 0)
        free_entry(take_out(l, e->path));
    pthread_cond_broadcast(&l->listed);
    return r;
}

int pen__video_lists_get(PenVideoLists *lists, const PenVideoSettings *settings, const char *path,
                         const PenVideoList **ret, PenError *reterr)
{
    int r = PEN_OK;
    pthread_mutex_lock(&lists->mutex);
    Entry *e = take_out(lists, path);
    while (e && !put_first(lists, e)->is_listed) { /* it ends when the thread that lists it does */
        pen__cond_wait(&lists->listed, &lists->mutex, pen__deadline_after(1000000000));
        e = take_out(lists, path);
    }
    if (e)
        e->users++;
    else if ((e = add_entry(lists, path)))
        r = list_entry(lists, settings, e, reterr);
    else
        r = pen__fail_memory(reterr, WHERE, path);
    if (r == PEN_OK)
        *ret = &e->list;
    pthread_mutex_unlock(&lists->mutex);
    return r;
}

void pen__video_lists_put(PenVideoLists *lists, const PenVideoList *list)
{
    Entry *e = (Entry *)(uintptr_t)list;
    pthread_mutex_lock(&lists->mutex);
    e->users--;
    evict(lists);
    pthread_mutex_unlock(&lists->mutex);
}
