/* SPDX-License-Identifier: Apache-2.0 */
/* What is known of an open pack, and what of it is being read. */
#include <string.h>
#include <unistd.h>

#include "base/sys.h"
#include "base/thread.h"
#include "io/outside.h"
#include "pack/reader/reader_impl.h"

#define WHERE "pack/reader"
#define LOOK_NS 250000000u /* between two looks whether somebody interrupts */

const PenManifest *pen__pack_manifest(const PenPack *p)
{
    return &p->m;
}

const char *pen__pack_path(const PenPack *p)
{
    return p->path;
}

const PenPackInfo *pen_pack_info(const PenPack *pack)
{
    return &pack->info;
}

int pen__pack_is_remote(const PenPack *p)
{
    return p->is_remote;
}

int pen__pack_is_preloaded(const PenPack *p)
{
    return p->preload != NULL;
}

int pen__pack_is_whole(const PenPack *p)
{
    return p->is_whole;
}

int pen__pack_has_cache(const PenPack *p)
{
    return p->cache != NULL;
}

PenStore *pen__pack_store(const PenPack *p)
{
    return p->store;
}

PenRemote *pen__pack_place(const PenPack *p)
{
    PenRemote *remote = p->store ? pen__store_remote(p->store) : NULL;
    PenRemote *outside = p->outside ? pen__outside_place(p->outside) : NULL;
    return outside ? outside : remote; /* most requests go there */
}

void pen__pack_stop(const PenPack *p, int stop)
{
    PenRemote *remote = p->store ? pen__store_remote(p->store) : NULL;
    if (remote)
        pen__remote_stop(remote, stop);
    if (p->outside)
        pen__outside_stop(p->outside, stop);
}

void pen__pack_progress(const PenPack *p, char *ret, size_t bytes)
{
    PenRemote *remote = pen__pack_place(p);
    ret[0] = 0;
    if (!remote)
        return;
    pen__remote_progress(remote, ret, bytes);
    size_t n = strlen(p->path);
    if (strncmp(ret, p->path, n) == 0) /* said already where this is shown */
        memmove(ret, ret + n, strlen(ret + n) + 1);
}

const PenObject *pen__pack_object(const PenPack *p)
{
    return &p->object;
}

int pen__pack_alive(const PenPack *p, PenError *reterr)
{
    if (PEN_LIKELY(p->pid == getpid()))
        return PEN_OK;
    return pen__fail(reterr, PEN_E_CLOSED, WHERE,
                     "%s: opened by process %d; open it again in process %d", p->path, (int)p->pid,
                     (int)getpid());
}

PenPack *pen__pack_ref(PenPack *p)
{
    pthread_mutex_lock(&p->mutex);
    p->refs++;
    pthread_mutex_unlock(&p->mutex);
    return p;
}

uint64_t pen__pack_shard_of(const PenPack *p, uint64_t block)
{
    uint64_t low = 0;
    uint64_t n = p->m.n_shards;
    while (n > 1) {
        uint64_t half = n / 2;
        low = p->first_blocks[low + half] <= block ? low + half : low;
        n -= half;
    }
    return low;
}

/* Is it worth reading once more? What is wrong in the same way lies there so. */
bool pen__error_differs(const PenError *now, PenError *before)
{
    bool other = strcmp(now->message, before->message) != 0;
    *before = *now;
    return other;
}

/* ---- what is being read; with the lock ---- */

static bool is_loading(const PenPack *p, uint64_t what)
{
    for (uint32_t i = 0; i < p->n_loading; i++)
        if (p->loading[i] == what)
            return true;
    return false;
}

/* Whoever interrupts may need other locks. */
static bool is_interrupted(PenPack *p)
{
    PenRemote *remote = pen__pack_place(p);
    if (!remote)
        return false;
    pthread_mutex_unlock(&p->mutex);
    bool yes = pen__remote_interrupted(remote) != 0;
    pthread_mutex_lock(&p->mutex);
    return yes;
}

static bool is_shared(const PenPack *p)
{
    return p->is_remote || p->cache;
}

int pen__loading_wait(PenPack *p, uint64_t what, uint64_t *look_ns)
{
    if (!is_shared(p) || !is_loading(p, what))
        return 0;
    if (!*look_ns)
        *look_ns = pen__deadline_after(LOOK_NS);
    (void)pen__cond_wait(&p->loaded, &p->mutex, *look_ns);
    if (pen__sys->now_ns() < *look_ns)
        return 1;
    *look_ns = 0;
    return !is_interrupted(p);
}

void pen__loading_begin(PenPack *p, uint64_t what)
{
    if (is_shared(p) && p->n_loading < LOADING)
        p->loading[p->n_loading++] = what;
}

bool pen__loading_try(PenPack *p, uint64_t what)
{
    if (is_loading(p, what))
        return false;
    pen__loading_begin(p, what);
    return true;
}

void pen__loading_end(PenPack *p, uint64_t what)
{
    for (uint32_t i = 0; i < p->n_loading; i++)
        if (p->loading[i] == what) {
            p->loading[i] = p->loading[--p->n_loading];
            pthread_cond_broadcast(&p->loaded);
            return;
        }
}

bool pen__pack_is_fresh(PenPack *p)
{
    pthread_mutex_lock(&p->mutex);
    bool fresh = !p->preload && p->refs == 1 && !p->kept_bytes && !p->keep_chosen;
    for (uint64_t i = 0; i < p->shard_slots; i++)
        fresh = fresh && !p->shards[i];
    pthread_mutex_unlock(&p->mutex);
    return fresh;
}
