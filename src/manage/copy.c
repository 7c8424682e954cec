/* SPDX-License-Identifier: Apache-2.0 */
/* Copying a pack: shards first, the manifest last. */
#include <string.h>

#include "base/attr.h"
#include "base/machine/cores.h"
#include "base/sha256.h"
#include "base/thread.h"
#include "io/dir.h"
#include "manage/copy_shards.h"
#include "manage/work.h"
#include "manage/work_home.h"
#include "pack/write/publish.h"

#define WHERE "manage/copy"

enum { REMOTE_THREADS = 8 };

typedef struct Copier {
    const PenCopySettings *settings;
    PenPack *pack;
    PenStore *from, *to;
    PenBuf manifest; /* of the copy: as it lies there, or made for it */
    uint8_t id[PEN_ID_BYTES];
    char *home;
    PenLock lock;
    int is_home_ours; /* 0: it holds the work of a run that was interrupted */
    int is_published; /* this very pack is there */
} Copier;

static const PenCopySettings DEFAULTS = {0};

void pen_copy_settings_init(PenCopySettings *settings)
{
    *settings = DEFAULTS;
}

static int check_settings(const PenCopySettings *s, PenError *reterr)
{
    if (!s->from || !*s->from || !s->to || !*s->to)
        return pen__fail(reterr, PEN_E_INVALID, WHERE,
                         "expected a source and a destination, found one or none");
    if (s->threads < 0)
        return pen__fail(reterr, PEN_E_INVALID, WHERE,
                         "threads: expected a number, 0 or more, found %d", (int)s->threads);
    return PEN_OK;
}

/* Of an in-place pack on a disk. */
static bool reads_objects(const PenFileSettings *f)
{
    bool yes = false;
    for (uint32_t i = 0; f && i < f->n_roots; i++)
        yes = yes || pen_is_remote(f->roots[i]);
    for (uint32_t i = 0; f && i < f->n_moved; i++)
        yes = yes || pen_is_remote(f->moved_to[i]);
    return yes;
}

static unsigned count_threads(const PenCopySettings *s)
{
    if (s->threads > 0)
        return (unsigned)s->threads;
    return pen_is_remote(s->from) || pen_is_remote(s->to) || reads_objects(s->files)
               ? REMOTE_THREADS
               : pen__thread_cores();
}

/* ---- what is copied -------------------------------------------------------------------------- */

static int load_manifest(Copier *c, PenError *reterr)
{
    const PenManifest *m = pen__pack_manifest(c->pack);
    PenSource *source = NULL;
    uint8_t hash[32];
    int r = pen__store_source(c->from, PEN_MANIFEST_NAME, &source, reterr);
    if (r < 0)
        return r;
    c->manifest.bytes = 0;
    if (source->bytes != m->bytes)
        r = PEN_E_CHANGED;
    else if (pen__buf_reserve(&c->manifest, (size_t)m->bytes) < 0)
        r = pen__fail_memory(reterr, WHERE, source->name);
    else
        r = pen__source_read(source, c->manifest.data, (size_t)m->bytes, 0, reterr);
    if (r == PEN_OK) {
        c->manifest.bytes = (size_t)m->bytes;
        pen__sha256(c->manifest.data, c->manifest.bytes, hash);
        r = memcmp(hash, m->id, PEN_ID_BYTES) == 0 ? PEN_OK : PEN_E_CHANGED;
    }
    if (r == PEN_E_CHANGED)
        pen__fail(reterr, r, WHERE, "%s: changed since it was opened; run the same command again",
                  source->name);
    pen__source_close(&source);
    return r;
}

static int open_from(Copier *c, PenError *reterr)
{
    const PenCopySettings *s = c->settings;
    int r = pen_pack_open(s->from, s->from_remote, &c->pack, reterr);
    if (r == PEN_OK && s->files)
        r = pen_pack_files(c->pack, s->files, reterr);
    if (r < 0)
        return r;
    c->from = pen__store_ref(pen__pack_store(c->pack));
    const PenManifest *m = pen__pack_manifest(c->pack);
    memcpy(c->id, m->content_id, sizeof c->id);
    r = load_manifest(c, reterr);
    if (r == PEN_E_CHANGED && pen__pack_is_remote(c->pack)) /* or wrong on its way */
        r = load_manifest(c, reterr);
    if (r == PEN_OK && pen__manifest_is_mapped(m)) /* the copy has all samples itself */
        pen__manifest_unmap(c->manifest.data);
    return r;
}

/* ---- where to -------------------------------------------------------------------------------- */

static int open_to(Copier *c, unsigned threads, PenError *reterr)
{
    const PenCopySettings *s = c->settings;
    PenRemoteSettings remote = pen__remote_settings(s->to_remote);
    if (!remote.upload_parts)
        remote.upload_parts = threads;
    int r = pen__store_open(s->to, &remote, &c->to, reterr);
    return r < 0 ? r : pen__store_check_kind(c->to, reterr);
}

/* An interrupted run of 'pack' has its plan there, and shards that only it knows. */
static int check_home(Copier *c, PenError *reterr)
{
    char *plan = pen__work_path(c->home, "plan");
    if (!plan)
        return pen__fail_memory(reterr, WHERE, c->home);
    int r = pen__file_exists(plan, reterr);
    pen__free(plan);
    c->is_home_ours = r == PEN_OK;
    if (r == 1)
        return pen__fail(reterr, PEN_E_EXISTS, WHERE,
                         "%s: an interrupted run of 'penstock pack' exists here; run that command "
                         "again, or discard it with 'penstock gc %s'",
                         c->settings->to, c->settings->to);
    return r;
}

static int check_target(Copier *c, PenError *reterr)
{
    PenError e = {0};
    int r = pen__manifest_is(c->to, &c->manifest, &e);
    c->is_published = r == 1;
    if (r == 1 || r == PEN_E_NOT_FOUND)
        return PEN_OK;
    if (r < 0) {
        if (reterr)
            *reterr = e;
        return r;
    }
    return pen__fail(
        reterr, PEN_E_EXISTS, WHERE,
        "%s: another pack already exists here; choose another name, or remove that pack",
        pen__store_name(c->to));
}

static int take_place(Copier *c, PenError *reterr)
{
    const PenCopySettings *s = c->settings;
    int r = pen__home_find(s->to, s->work, &c->home, reterr);
    if (r == PEN_OK)
        r = pen__home_make(s->to, c->home, reterr);
    if (r == PEN_OK)
        r = pen__dir_lock(c->home, 1, &c->lock, reterr);
    return r == PEN_OK ? check_home(c, reterr) : r;
}

static int publish(Copier *c, PenError *reterr)
{
    if (c->is_published)
        return PEN_OK;
    char *part = pen__work_path(c->home, "manifest.part");
    int r = part ? pen__manifest_put(c->to, NULL, part, &c->manifest, reterr)
                 : pen__fail_memory(reterr, WHERE, c->home);
    pen__free(part);
    return r;
}

static int copy(Copier *c, PenCopyResult *ret, PenError *reterr)
{
    unsigned threads = count_threads(c->settings);
    int r = open_from(c, reterr);
    if (r == PEN_OK)
        r = open_to(c, threads, reterr);
    if (r == PEN_OK)
        r = check_target(c, reterr);
    if (r == PEN_OK)
        r = take_place(c, reterr);
    if (r == PEN_OK) /* again: nobody else of this machine is at it from here on */
        r = check_target(c, reterr);
    if (r == PEN_OK && !c->is_published)
        r = pen__store_check_writable(c->to, PEN_MANIFEST_NAME, reterr);
    /* Of files that are near, checking takes the time: more threads than cores only take memory. */
    unsigned readers =
        c->pack && pen__pack_is_remote(c->pack) ? threads : PEN_MIN(threads, pen__thread_cores());
    PenCopyJob job = {c->settings, c->pack, c->to, c->home, readers};
    if (r == PEN_OK)
        r = pen__copy_shards(&job, ret, reterr);
    if (r == PEN_OK)
        r = publish(c, reterr);
    if (r < 0)
        return r;
    if (!c->is_published)
        ret->bytes += c->manifest.bytes;
    else
        ret->known_bytes += c->manifest.bytes;
    ret->n_samples = pen_pack_info(c->pack)->n_samples;
    memcpy(ret->id, c->id, sizeof ret->id);
    return PEN_OK;
}

int pen_copy(const PenCopySettings *settings, PenCopyResult *ret, PenError *reterr)
{
    PenCopySettings own = settings ? *settings : DEFAULTS;
    Copier c = {.settings = &own, .lock = PEN_LOCK_NONE};
    PenCopyResult result = {0};
    int r = check_settings(&own, reterr);
    if (r == PEN_OK)
        r = copy(&c, &result, reterr);
    /* What is there to go on from are the shards themselves. */
    if (c.is_home_ours)
        pen__home_leave(c.home);
    pen__dir_unlock(&c.lock);
    pen__free(c.home);
    pen__buf_free(&c.manifest);
    pen__store_close(&c.to);
    pen__store_close(&c.from);
    pen_pack_close(&c.pack);
    if (r == PEN_OK && ret)
        *ret = result;
    return r;
}
