/* SPDX-License-Identifier: Apache-2.0 */
/* Opening a pack and closing it. */
#include "pack/reader/reader.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>
#include <unistd.h>

#include "base/bytes.h"
#include "base/sys.h"
#include "base/thread.h"
#include "io/dir.h"
#include "io/outside.h"
#include "io/remote_source.h"
#include "pack/mapped/mapped.h"
#include "pack/preload/layout.h"
#include "pack/reader/reader_impl.h"

#define WHERE "pack/reader"

static void fill_info(PenPack *p)
{
    const PenManifest *m = &p->m;
    p->info = (PenPackInfo){.format_version = PEN_FORMAT_VERSION,
                            .n_samples = m->n_samples,
                            .n_blocks = m->n_blocks,
                            .n_shards = m->n_shards,
                            .block_samples = m->block_samples,
                            .total_bytes = m->bytes,
                            .stored_bytes = m->bytes,
                            .n_fields = m->schema.n_fields,
                            .fields = m->schema.fields,
                            .class_field = m->schema.class_field,
                            .n_classes = m->schema.n_classes,
                            .classes = (const char *const *)m->schema.classes,
                            .settings = m->settings ? m->settings : "{}",
                            .stats = m->stats};
    memcpy(p->info.id, m->id, sizeof p->info.id);
    for (uint64_t i = 0; i < m->n_shards; i++) {
        p->first_blocks[i] = m->shards[i].first_block;
        p->info.total_bytes += m->shards[i].file_bytes;
        p->info.stored_bytes += pen__shard_stored(&m->shards[i]);
        p->info.largest_block_bytes =
            PEN_MAX(p->info.largest_block_bytes, m->shards[i].largest_block);
    }
}

static int open_in_store(void *ctx, const char *name, PenSource **ret, PenError *reterr)
{
    return pen__store_source(ctx, name, ret, reterr);
}

static int load_manifest(PenPack *p, PenSource **ret, PenError *reterr)
{
    PenError now = {0}, before = {0};
    int r = PEN_OK;
    for (int i = 0; i < PEN_REMOTE_READS; i++) {
        pen__source_close(ret);
        r = p->open(p->open_ctx, PEN_MANIFEST_NAME, ret, &now);
        if (r == PEN_OK)
            r = pen__manifest_read(&p->m, *ret, &now);
        if (r == PEN_OK || r == PEN_E_NO_MEMORY || r == PEN_E_CANCELLED || !*ret ||
            !(*ret)->is_remote || !pen__error_differs(&now, &before))
            break;
    }
    if (r < 0 && reterr)
        *reterr = now;
    return r;
}

static int open_outside(PenPack *p, PenError *reterr)
{
    PenOutsideMark mark = {.name = PEN_MANIFEST_NAME, .bytes = p->m.bytes};
    memcpy(mark.id, p->m.id, sizeof mark.id);
    /* Without a store it is not published yet, and its manifest is not there. */
    int r = pen__outside_new(p->path, p->store ? &mark : NULL, &p->outside, reterr);
    if (r == PEN_OK && pen__maps_new(p->m.n_shards, p->outside, &p->maps) < 0)
        r = pen__fail_memory(reterr, WHERE, p->path);
    return r;
}

static const PenFileSettings FILE_DEFAULTS = {0};

void pen_file_settings_init(PenFileSettings *settings)
{
    *settings = FILE_DEFAULTS;
}

int pen_pack_files(PenPack *pack, const PenFileSettings *settings, PenError *reterr)
{
    PenFileSettings own = settings ? *settings : FILE_DEFAULTS;
    int r = pen__pack_alive(pack, reterr);
    if (r == PEN_OK &&
        ((own.n_roots && !own.roots) || (own.n_moved && (!own.moved_from || !own.moved_to))))
        r = pen__fail(reterr, PEN_E_INVALID, WHERE,
                      "%s: directories of files: expected as many as the settings say, found none",
                      pack->path);
    if (r < 0 || !pack->outside)
        return r;
    if (!pen__pack_is_fresh(pack)) /* others may be using the directories */
        return pen__fail(reterr, PEN_E_INVALID, WHERE,
                         "%s: already in use; set the directories of its files right after opening "
                         "the pack",
                         pack->path);
    r = pen__outside_set(pack->outside, &own, reterr);
    if (r < 0 || pack->is_remote || !pen__outside_place(pack->outside))
        return r;
    /* Its payloads are objects, wherever its shards are: entire blocks are read, by few requests.
     */
    pack->is_remote = true;
    pack->is_whole = !pack->m.schema.has_videos;
    return pen__blocks_renew(pack, reterr);
}

static int read_manifest(PenPack *p, PenError *reterr)
{
    PenSource *source = NULL;
    int r = load_manifest(p, &source, reterr);
    if (r == PEN_OK) {
        const PenObject *object = pen__source_object(source);
        p->is_remote = source->is_remote;
        p->is_whole = p->is_remote && !p->m.schema.has_videos;
        if (object)
            p->object = *object;
        p->first_blocks = pen__alloc_array(p->m.n_shards, sizeof *p->first_blocks);
        /* The map of a mapped shard takes memory. */
        bool is_mapped = pen__manifest_is_mapped(&p->m);
        p->shard_slots = PEN_MIN(p->is_remote && !is_mapped ? PEN_REMOTE_SHARDS : SHARD_SLOTS,
                                 PEN_MAX(p->m.n_shards, 1u));
        p->shards = pen__zalloc(p->shard_slots * sizeof(PenShardRef *));
        if (!p->first_blocks || !p->shards)
            r = pen__fail_memory(reterr, WHERE, p->path);
        else if (is_mapped)
            r = open_outside(p, reterr);
    }
    pen__source_close(&source);
    return r;
}

static int open_with(const char *name, PenOpenFn open, void *ctx, PenStore *store, PenPack **ret,
                     PenError *reterr)
{
    PenPack *p = pen__zalloc(sizeof *p);
    if (!p || pen__cond_init(&p->loaded) < 0) {
        pen__free(p);
        return pen__fail_memory(reterr, WHERE, name);
    }
    pthread_mutex_init(&p->mutex, NULL);
    p->path = pen__strdup(name);
    p->open = open;
    p->open_ctx = ctx;
    p->store = store ? pen__store_ref(store) : NULL;
    p->refs = 1;
    p->pid = getpid();
    int r = p->path ? read_manifest(p, reterr) : pen__fail_memory(reterr, WHERE, name);
    if (r == PEN_OK)
        r = pen__blocks_open(p, reterr);
    if (r < 0) {
        pen_pack_close(&p);
        return r;
    }
    fill_info(p);
    *ret = p;
    return PEN_OK;
}

int pen__pack_open_with(const char *name, PenOpenFn open, void *ctx, PenPack **ret,
                        PenError *reterr)
{
    return open_with(name, open, ctx, NULL, ret, reterr);
}

int pen__pack_open_store(PenStore *store, PenPack **ret, PenError *reterr)
{
    return open_with(pen__store_name(store), open_in_store, store, store, ret, reterr);
}

/* There is no manifest: is there anything at all, or a pack that is not finished? */
static int no_pack(const char *path, PenError *reterr)
{
    char *work = pen__path_join(path, PEN_WORK_NAME);
    int under_way = work ? pen__file_exists(work, NULL) : 0;
    PenFileStat st;
    int there = pen__sys->stat_path(path, &st);
    pen__free(work);
    if (there == -ENOENT)
        return pen__fail(reterr, PEN_E_NOT_FOUND, WHERE, "%s: no such file or directory", path);
    if (under_way == 1)
        return pen__fail(reterr, PEN_E_NOT_FOUND, WHERE,
                         "%s: the pack is not finished; run the same 'penstock pack' again, or "
                         "'penstock finalise' after the last task",
                         path);
    if (there == 0 && !st.is_dir)
        return pen__fail(reterr, PEN_E_NOT_FOUND, WHERE,
                         "%s: not a pack: expected a directory such as NAME.pen, found a file",
                         path);
    return pen__fail(reterr, PEN_E_NOT_FOUND, WHERE,
                     "%s: not a pack: it has no file '%s'; to pack a folder, run: "
                     "penstock pack FOLDER -o NAME.pen",
                     path, PEN_MANIFEST_NAME);
}

static int no_object(const char *address, PenError *reterr)
{
    if (reterr && strstr(reterr->message, "NoSuchBucket"))
        return PEN_E_NOT_FOUND; /* which says more */
    return pen__fail(reterr, PEN_E_NOT_FOUND, WHERE,
                     "%s: no pack is there: there is no object %s below it; is the URL right, "
                     "and is the pack published?",
                     address, PEN_MANIFEST_NAME);
}

void pen_pack_remote_stats(const PenPack *p, PenRemoteStats *ret)
{
    PenRemote *remote = p->store ? pen__store_remote(p->store) : NULL;
    PenPolicyCounts n = {0};
    if (remote)
        pen__remote_counts(remote, &n);
    if (p->outside)
        pen__outside_count(p->outside, &n);
    *ret = (PenRemoteStats){.in_flight = (uint32_t)n.in_flight,
                            .limit = (uint32_t)n.limit,
                            .requests = n.attempts,
                            .retries = n.retries,
                            .hedges = n.hedges,
                            .hedges_won = n.hedges_won,
                            .throttles = n.throttles,
                            .failures = n.failures,
                            .bytes = n.bytes};
}

int pen_pack_open(const char *where, const PenRemoteSettings *settings, PenPack **ret_pack,
                  PenError *reterr)
{
    PenStore *store = NULL;
    int r = pen__store_open(where, settings, &store, reterr);
    if (r < 0)
        return r;
    r = pen__pack_open_store(store, ret_pack, reterr);
    if (r == PEN_OK && pen__store_remote(store) && (*ret_pack)->outside) {
        r = pen__outside_open_home((*ret_pack)->outside, pen__store_remote(store), reterr);
        if (r < 0)
            pen_pack_close(ret_pack);
    }
    if (r == PEN_E_NOT_FOUND)
        r = pen__store_remote(store) ? no_object(pen__store_name(store), reterr)
                                     : no_pack(where, reterr);
    pen__store_close(&store);
    return r;
}

int pen__pack_move(PenPack *p, struct PenPreload *preload, PenError *reterr)
{
    bool was_remote = p->is_remote, was_whole = p->is_whole;
    p->is_remote = p->is_whole = false;
    int r = pen__blocks_renew(p, reterr);
    if (r < 0) {
        p->is_remote = was_remote;
        p->is_whole = was_whole;
        return r;
    }
    pen__shards_drop(p);
    p->preload = preload;
    return PEN_OK;
}

void pen_pack_close(PenPack **pack)
{
    if (!pack || !*pack)
        return;
    PenPack *p = *pack;
    *pack = NULL;
    if (p->pid != getpid())
        return; /* the child's copy stays as it is */
    pthread_mutex_lock(&p->mutex);
    int left = --p->refs;
    pthread_mutex_unlock(&p->mutex);
    if (left)
        return;
    pen__blocks_close(p);
    pen__shards_drop(p);
    pen__preload_close(&p->preload);
    pen__cache_close(&p->cache);
    pen__maps_close(&p->maps);
    pen__outside_close(&p->outside);
    pthread_mutex_destroy(&p->mutex);
    pthread_cond_destroy(&p->loaded);
    pen__store_close(&p->store);
    pen__manifest_fini(&p->m);
    pen__free(p->first_blocks);
    pen__free(p->shards);
    pen__free(p->path);
    pen__free(p);
}
