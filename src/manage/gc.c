/* SPDX-License-Identifier: Apache-2.0 */
/* Removing what no manifest names: work of interrupted runs, shards of old states. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/attr.h"
#include "base/bytes.h"
#include "base/sys.h"
#include "base/team.h"
#include "io/dir.h"
#include "manage/gc.h"
#include "manage/work.h"
#include "manage/work_home.h"
#include "pack/format/manifest.h"
#include "pack/reader/reader.h"

#define WHERE "manage/gc"

static int by_id(const void *a, const void *b)
{
    return memcmp(a, b, PEN_ID_BYTES);
}

int pen__named_load(PenStore *store, PenNamed *ret, PenError *reterr)
{
    PenPack *pack = NULL;
    int r = pen__store_has(store, PEN_MANIFEST_NAME, reterr);
    if (r <= 0)
        return r;
    r = pen__pack_open_store(store, &pack, reterr);
    if (r < 0)
        return r;
    const PenManifest *m = pen__pack_manifest(pack);
    ret->ids = pen__alloc_array(m->n_shards, PEN_ID_BYTES);
    if (ret->ids) {
        ret->n = m->n_shards;
        for (uint64_t i = 0; i < m->n_shards; i++)
            memcpy(ret->ids[i], m->shards[i].id, PEN_ID_BYTES);
        qsort(ret->ids, (size_t)ret->n, PEN_ID_BYTES, by_id);
    } else {
        r = pen__fail_memory(reterr, WHERE, pen__store_name(store));
    }
    pen_pack_close(&pack);
    return r;
}

/* Is it the name of a shard of ours, in this folder? Then it is the one we would give. */
static int parse_name(const char *folder, const char *name, uint8_t id[PEN_ID_BYTES])
{
    char ours[PEN_SHARD_NAME_BYTES];
    if (strlen(name) < 2 * PEN_ID_BYTES)
        return 0;
    for (int i = 0; i < PEN_ID_BYTES; i++)
        id[i] = (uint8_t)((unsigned)pen__hex_value(name[2 * i]) << 4 |
                          (unsigned)pen__hex_value(name[2 * i + 1]));
    pen__shard_name(id, ours);
    return strncmp(ours, folder, 2) == 0 && strcmp(ours + 3, name) == 0;
}

static int is_named(const PenNamed *named, const uint8_t id[PEN_ID_BYTES])
{
    return named->n && bsearch(id, named->ids, (size_t)named->n, PEN_ID_BYTES, by_id) != NULL;
}

int pen__named_unused(const PenNamed *named, const char *name)
{
    uint8_t id[PEN_ID_BYTES];
    return strlen(name) > 3 && name[2] == '/' && parse_name(name, name + 3, id) &&
           !is_named(named, id);
}

static int clean_open_folder(int dir, const char *path, const char *folder, const PenNamed *named,
                             PenGcResult *ret, PenError *reterr)
{
    PenNames names = {0};
    int r = pen__dir_list_fd(dir, path, &names, reterr);
    uint64_t left = names.n;
    for (uint64_t i = 0; i < names.n && r == PEN_OK; i++) {
        uint8_t id[PEN_ID_BYTES];
        if (!parse_name(folder, names.names[i], id) || is_named(named, id))
            continue;
        r = pen__entry_remove(dir, names.names[i], path, &ret->files, &ret->bytes, reterr);
        left--;
    }
    pen__names_free(&names);
    return r < 0 ? r : left == 0;
}

/* Folder `folder` of the pack at `out`, whose handle is `top`. A link or a file with the name of a
 * folder of ours is somebody's, who keeps what it leads to. */
static int clean_folder(int top, const char *out, const char *folder, const PenNamed *named,
                        PenGcResult *ret, PenError *reterr)
{
    int fd = pen__sys->open_at(top, folder, PEN_OPEN_INNER_DIR);
    if (fd == -ENOTDIR || fd == -ELOOP)
        return PEN_OK;
    if (fd < 0)
        return pen__fail_os(reterr, -fd, WHERE, "%s/%s: cannot open directory", out, folder);
    char *path = pen__path_join(out, folder);
    int r = path ? clean_open_folder(fd, path, folder, named, ret, reterr)
                 : pen__fail_memory(reterr, WHERE, out);
    pen__sys->close(fd);
    int gone = r == 1 ? pen__sys->rmdir(top, folder) : 0;
    if (gone < 0 && gone != -ENOENT)
        r = pen__fail_os(reterr, -gone, WHERE, "%s: cannot remove directory", path);
    pen__free(path);
    return r < 0 ? r : PEN_OK;
}

static int clean_folders(const char *home, const PenNamed *named, PenGcResult *ret,
                         PenError *reterr)
{
    PenNames names = {0};
    int top = pen__sys->open(home, PEN_OPEN_DIR);
    if (top < 0)
        return pen__fail_os(reterr, -top, WHERE, "%s: cannot open directory", home);
    int r = pen__dir_list_fd(top, home, &names, reterr);
    for (uint64_t i = 0; i < names.n && r == PEN_OK; i++) {
        const char *name = names.names[i];
        if (strlen(name) == 2 && pen__hex_value(name[0]) >= 0 && pen__hex_value(name[1]) >= 0)
            r = clean_folder(top, home, name, named, ret, reterr);
    }
    pen__names_free(&names);
    pen__sys->close(top);
    return r;
}

/* Names are kept until the list has ended: removing changes what the next page would be. */
typedef struct Unused {
    const PenNamed *named;
    PenRemote *remote;
    PenNames names;
    uint64_t bytes;
} Unused;

enum { REMOVED_AT_ONCE = 16 };

static int note(void *ctx, const char *name, const PenObject *object)
{
    Unused *u = ctx;
    if (!pen__named_unused(u->named, name) && !pen__work_is_shared(name))
        return 0;
    u->bytes += object->bytes;
    return pen__names_add(&u->names, name) < 0 ? PEN_E_NO_MEMORY : 0;
}

static int remove_step(void *ctx, uint64_t number, PenError *reterr)
{
    const Unused *u = ctx;
    return pen__remote_remove(u->remote, u->names.names[number], reterr);
}

static int remove_unused(Unused *u, PenError *reterr)
{
    PenEach each = {.name = "pen-gc",
                    .n = u->names.n,
                    .threads = REMOVED_AT_ONCE,
                    .step = remove_step,
                    .ctx = u};
    return pen__each(&each, reterr);
}

static int fail_planned(const PenStore *store, PenError *reterr)
{
    const char *name = pen__store_name(store);
    return pen__fail(reterr, PEN_E_BUSY, WHERE,
                     "%.300s: tasks that share the plan " PEN_SHARED_PLAN
                     " may be running; run 'penstock finalise %.300s', or discard the plan and "
                     "what the tasks have written with 'penstock gc --abandon %.300s'",
                     name, name, name);
}

/* Tasks may be running whose shards no manifest names yet. */
static int check_plan(PenStore *store, PenError *reterr)
{
    int r = pen__store_has(store, PEN_SHARED_PLAN, reterr);
    return r == 1 ? fail_planned(store, reterr) : r;
}

/* The same in a directory. There, what is left beside a manifest is of no use: the process that
 * published it was stopped before it could remove the plan. */
static int check_tasks(PenStore *store, const char *home, PenError *reterr)
{
    int r = pen__store_has(store, PEN_MANIFEST_NAME, reterr);
    if (r)
        return r < 0 ? r : PEN_OK;
    r = pen__work_is_planned(home, reterr);
    return r == 1 ? fail_planned(store, reterr) : r;
}

static int clean_remote(PenStore *store, const PenNamed *named, int abandon, PenGcResult *ret,
                        PenError *reterr)
{
    PenRemote *remote = pen__store_remote(store);
    Unused u = {.named = named, .remote = remote};
    /* Without the plan no task starts, and none of those that run is joined. */
    int r = abandon ? pen__store_remove(store, PEN_SHARED_PLAN, reterr) : check_plan(store, reterr);
    if (r == PEN_OK)
        r = pen__remote_list(remote, note, &u, reterr);
    if (r == PEN_E_NO_MEMORY)
        pen__fail_memory(reterr, WHERE, pen__remote_text(remote));
    if (r == PEN_OK && !abandon && u.names.n)
        r = check_plan(store, reterr); /* tasks may have begun while it was listed */
    if (r == PEN_OK)
        r = remove_unused(&u, reterr);
    if (r == PEN_OK) {
        ret->files += u.names.n;
        ret->bytes += u.bytes;
        r = pen__remote_abort_uploads(remote, 0, &ret->uploads, reterr);
    }
    pen__names_free(&u.names);
    return r;
}

static int clean_directory(PenStore *store, const char *home, const PenNamed *named, int abandon,
                           PenGcResult *ret, PenError *reterr)
{
    int r = abandon ? PEN_OK : check_tasks(store, home, reterr);
    return r < 0 ? r : clean_folders(home, named, ret, reterr);
}

int pen__gc_locked(PenStore *store, const char *home, int abandon, PenGcResult *ret,
                   PenError *reterr)
{
    PenNamed named = {0};
    *ret = (PenGcResult){0};
    /* Without knowing what is in use nothing is removed. */
    int r = pen__named_load(store, &named, reterr);
    if (r == PEN_OK)
        r = pen__work_check(home, reterr);
    if (r == PEN_OK && pen__store_remote(store))
        r = clean_remote(store, &named, abandon, ret, reterr);
    else if (r == PEN_OK)
        r = clean_directory(store, home, &named, abandon, ret, reterr);
    /* The plan goes last: as long as it exists, the next run knows that there is more to remove. */
    if (r == PEN_OK)
        r = pen__work_remove(home, &ret->files, &ret->bytes, reterr);
    pen__free(named.ids);
    return r;
}

static int collect(const char *out, const PenRemoteSettings *remote, const char *work, int abandon,
                   PenGcResult *ret, PenError *reterr)
{
    PenLock lock = PEN_LOCK_NONE;
    PenStore *store = NULL;
    char *home = NULL;
    int r = pen__home_find(out, work, &home, reterr);
    if (r == PEN_OK)
        r = pen__store_open(out, remote, &store, reterr);
    if (r == PEN_OK && pen__store_remote(store))
        r = pen__home_make(out, home, reterr);
    if (r == PEN_OK)
        r = pen__dir_lock(home, 1, &lock, reterr);
    if (r == PEN_OK)
        r = pen__gc_locked(store, home, abandon, ret, reterr);
    if (r == PEN_OK && pen__store_remote(store)) {
        pen__home_leave_parts(out, work);
        pen__home_leave(home);
    }
    pen__dir_unlock(&lock);
    pen__store_close(&store);
    pen__free(home);
    return r;
}

int pen_ingest_gc(const char *out, const PenRemoteSettings *remote, const char *work, int abandon,
                  PenGcResult *ret, PenError *reterr)
{
    PenGcResult result;
    int r = collect(out, remote, work, abandon, &result, reterr);
    if (r == PEN_OK && ret)
        *ret = result;
    return r;
}
