/* SPDX-License-Identifier: Apache-2.0 */
/* Opening a pack: by a thread, so that the caller hears Ctrl-C while a file system does not answer.
 */
#include "py_core.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { SLICE_NS = 100000000, SECOND_NS = 1000000000 };

typedef struct Opening {
    pthread_mutex_t lock;
    pthread_cond_t ended;
    PenPack *pack;
    PenError error;
    int r;
    int is_over;
    int is_left; /* by the caller: what comes of it is the thread's to free */
    CorePlace place;
    char text[]; /* of the place */
} Opening;

static Opening *opening_new(const CorePlace *place)
{
    size_t bytes = strlen(place->path) + 1, more = place->cache ? strlen(place->cache) + 1 : 0;
    pthread_condattr_t attr;
    Opening *o = calloc(1, sizeof *o + bytes + more + place->files_bytes);
    if (!o)
        return NULL;
    o->place = *place;
    o->place.path = memcpy(o->text, place->path, bytes);
    if (more)
        o->place.cache = memcpy(o->text + bytes, place->cache, more);
    if (place->files_bytes)
        o->place.files = memcpy(o->text + bytes + more, place->files, place->files_bytes);
    pthread_mutex_init(&o->lock, NULL);
    pthread_condattr_init(&attr);
    pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
    pthread_cond_init(&o->ended, &attr);
    pthread_condattr_destroy(&attr);
    return o;
}

static void opening_free(Opening *o)
{
    pen_pack_close(&o->pack);
    pthread_cond_destroy(&o->ended);
    pthread_mutex_destroy(&o->lock);
    free(o);
}

/* Python has checked that each text has its end, and that new directories follow old ones. */
static int set_files(const CorePlace *place, PenPack *pack, PenError *error)
{
    PenFileSettings settings;
    size_t n = 0, all = 0;
    for (size_t i = 0; i < place->files_bytes; i++)
        all += place->files[i] == 0;
    const char **texts = calloc(2 * all + 1, sizeof *texts);
    if (!texts) {
        *error = (PenError){.status = PEN_E_NO_MEMORY, .message = "no memory for paths"};
        return PEN_E_NO_MEMORY;
    }
    for (size_t at = 0; at < place->files_bytes; at += strlen(place->files + at) + 1)
        texts[n++] = place->files + at;
    pen_file_settings_init(&settings);
    settings.remote = place->remote ? core_remote_settings(place->remote) : NULL;
    settings.roots = texts;
    settings.n_roots = place->n_roots;
    settings.n_moved = (uint32_t)(all - place->n_roots) / 2;
    settings.moved_from = texts + all; /* taken apart into two lists behind the texts */
    settings.moved_to = texts + all + settings.n_moved;
    for (uint32_t i = 0; i < settings.n_moved; i++) {
        texts[all + i] = texts[place->n_roots + 2 * i];
        texts[all + settings.n_moved + i] = texts[place->n_roots + 2 * i + 1];
    }
    int r = pen_pack_files(pack, &settings, error);
    free(texts);
    return r;
}

/* Without the GIL. */
static int open_pack(const CorePlace *place, PenPack **ret, PenError *error)
{
    PenPack *pack = NULL;
    PenCacheSettings cache;
    int r = pen_pack_open(place->path, place->remote ? core_remote_settings(place->remote) : NULL,
                          &pack, error);
    if (r == PEN_OK && place->files_bytes)
        r = set_files(place, pack, error);
    if (r == PEN_OK && place->cache) {
        pen_cache_settings_init(&cache);
        cache.directory = place->cache;
        cache.bytes = place->cache_bytes;
        r = pen_pack_cache(pack, &cache, error);
    }
    if (r < 0)
        pen_pack_close(&pack);
    else
        *ret = pack;
    return r;
}

static void *run(void *arg)
{
    Opening *o = arg;
    o->r = open_pack(&o->place, &o->pack, &o->error);
    pthread_mutex_lock(&o->lock);
    o->is_over = 1;
    int left = o->is_left;
    pthread_cond_signal(&o->ended);
    pthread_mutex_unlock(&o->lock);
    if (left)
        opening_free(o);
    return NULL;
}

/* Signals are for the threads of Python. */
static int start(Opening *o, pthread_t *ret_thread)
{
    sigset_t all, old;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &old);
    int r = pthread_create(ret_thread, NULL, run, o);
    pthread_sigmask(SIG_SETMASK, &old, NULL);
    return r;
}

static int wait_slice(Opening *o)
{
    struct timespec until;
    clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_nsec += SLICE_NS;
    until.tv_sec += until.tv_nsec / SECOND_NS;
    until.tv_nsec %= SECOND_NS;
    pthread_mutex_lock(&o->lock);
    while (!o->is_over && pthread_cond_timedwait(&o->ended, &o->lock, &until) == 0)
        ;
    int over = o->is_over;
    pthread_mutex_unlock(&o->lock);
    return over;
}

/* 0 when it is over. With an exception: -1, and the thread has it. */
static int wait_for(Opening *o, pthread_t thread)
{
    for (;;) {
        int over;
        Py_BEGIN_ALLOW_THREADS over = wait_slice(o);
        if (over)
            pthread_join(thread, NULL);
        Py_END_ALLOW_THREADS;
        if (over)
            return 0;
        if (PyErr_CheckSignals() < 0)
            break;
    }
    pthread_detach(thread);
    pthread_mutex_lock(&o->lock);
    o->is_left = 1;
    int over = o->is_over;
    pthread_mutex_unlock(&o->lock);
    if (over)
        opening_free(o);
    return -1;
}

/* The library itself ends waits for servers. */
static PenPack *open_remote(CoreState *state, const CorePlace *place)
{
    PenError error = {0};
    PenPack *pack = NULL;
    CoreWait w;
    core_wait_begin(&w);
    int r = open_pack(place, &pack, &error);
    if (r == PEN_OK && w.raised)
        pen_pack_close(&pack);
    core_wait_end(&w);
    if (r < 0)
        core_remote_raise(state, place->remote, &w, &error);
    return pack;
}

PenPack *core_open(CoreState *state, const CorePlace *place)
{
    if (place->remote)
        return open_remote(state, place);
    pthread_t thread;
    Opening *o = opening_new(place);
    if (!o) {
        PyErr_NoMemory();
        return NULL;
    }
    if (start(o, &thread) != 0) { /* no thread to be had: then without Ctrl-C */
        Py_BEGIN_ALLOW_THREADS o->r = open_pack(&o->place, &o->pack, &o->error);
        Py_END_ALLOW_THREADS;
    } else if (wait_for(o, thread) < 0) {
        return NULL;
    }
    PenPack *pack = o->pack;
    o->pack = NULL;
    if (o->r < 0)
        core_raise(state, &o->error);
    opening_free(o);
    return pack;
}
