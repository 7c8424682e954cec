/* SPDX-License-Identifier: Apache-2.0 */
#include "io/store.h"

#include <stdatomic.h>
#include <string.h>

#include "io/dir.h"
#include "io/inner.h"
#include "io/remote_source.h"

#define WHERE "io/store"

struct PenStore {
    char *path;
    PenRemote *remote;
    atomic_uint refs;
};

int pen__store_open(const char *where, const PenRemoteSettings *settings, PenStore **ret,
                    PenError *reterr)
{
    PenStore *s = pen__zalloc(sizeof *s);
    if (!s)
        return pen__fail_memory(reterr, WHERE, "store");
    atomic_init(&s->refs, 1);
    int r = PEN_OK;
    if (pen_is_remote(where))
        r = pen__remote_open(where, settings, &s->remote, reterr);
    s->path = pen__strdup(s->remote ? pen__remote_text(s->remote) : where);
    if (r == PEN_OK && !s->path)
        r = pen__fail_memory(reterr, WHERE, "store");
    if (r < 0)
        pen__store_close(&s);
    else
        *ret = s;
    return r;
}

PenStore *pen__store_ref(PenStore *s)
{
    atomic_fetch_add(&s->refs, 1);
    return s;
}

void pen__store_close(PenStore **s)
{
    PenStore *old = *s;
    *s = NULL;
    if (!old || atomic_fetch_sub(&old->refs, 1) != 1)
        return;
    pen__remote_close(&old->remote);
    pen__free(old->path);
    pen__free(old);
}

const char *pen__store_name(const PenStore *s)
{
    return s->path;
}

PenRemote *pen__store_remote(const PenStore *s)
{
    return s->remote;
}

static char *path_of(const PenStore *s, const char *name, PenError *reterr)
{
    char *path = pen__path_join(s->path, name);
    if (!path)
        pen__fail_memory(reterr, WHERE, name);
    return path;
}

/* How much of what path_of gives names the directory. */
static size_t root_bytes(const PenStore *s)
{
    size_t n = strlen(s->path);
    while (n > 1 && s->path[n - 1] == '/')
        n--;
    return n;
}

int pen__store_source(PenStore *s, const char *name, PenSource **ret, PenError *reterr)
{
    return pen__store_source_end(s, name, 0, ret, reterr);
}

int pen__store_source_end(PenStore *s, const char *name, uint64_t end_bytes, PenSource **ret,
                          PenError *reterr)
{
    if (s->remote)
        return pen__source_open_remote(s->remote, name, end_bytes, ret, reterr);
    char *path = path_of(s, name, reterr);
    int r = path ? pen__source_open_file(path, ret, reterr) : PEN_E_NO_MEMORY;
    pen__free(path);
    return r;
}

int pen__store_has(PenStore *s, const char *name, PenError *reterr)
{
    if (s->remote) {
        PenObject object;
        int r = pen__remote_stat(s->remote, name, &object, reterr);
        return r == PEN_OK ? 1 : pen__error_accept(r, PEN_E_NOT_FOUND, reterr);
    }
    char *path = path_of(s, name, reterr);
    int r = path ? pen__file_exists(path, reterr) : PEN_E_NO_MEMORY;
    pen__free(path);
    return r;
}

int pen__store_sink(PenStore *s, const char *part_path, const char *name, PenSink **ret,
                    PenError *reterr)
{
    if (s->remote)
        return pen__sink_open_remote(s->remote, name, ret, reterr);
    return pen__sink_open(part_path, ret, reterr);
}

int pen__store_check_kind(const PenStore *s, PenError *reterr)
{
    if (!s->remote || pen__remote_is_s3(s->remote))
        return PEN_OK;
    return pen__fail(reterr, PEN_E_UNSUPPORTED, WHERE,
                     "%s: packs can only be read over http(s); write to s3:// or a directory",
                     pen__store_name(s));
}

int pen__store_check_writable(PenStore *s, const char *name, PenError *reterr)
{
    PenUpload *upload = NULL;
    if (!s->remote)
        return PEN_OK;
    int r = pen__upload_begin(s->remote, name, &upload, reterr);
    if (r < 0)
        pen__error_prefix(reterr, "%s: not writable; nothing was packed or uploaded",
                          pen__store_name(s));
    pen__upload_abort(&upload);
    return r;
}

/* The folder that the name has in front. */
static int make_folder(const PenStore *s, const char *name, PenError *reterr)
{
    const char *slash = strchr(name, '/');
    if (!slash)
        return PEN_OK;
    char *path = path_of(s, name, reterr);
    if (!path)
        return PEN_E_NO_MEMORY;
    path[strlen(path) - strlen(slash)] = 0;
    int r = pen__inner_make(path, root_bytes(s), reterr);
    pen__free(path);
    return r;
}

int pen__store_commit(PenStore *s, PenSink **sink, const char *name, PenError *reterr)
{
    if (s->remote)
        return pen__sink_commit(sink, "", reterr);
    int r = make_folder(s, name, reterr);
    char *path = r == PEN_OK ? path_of(s, name, reterr) : NULL;
    if (path)
        r = pen__sink_commit_in(sink, path, root_bytes(s), reterr);
    else
        pen__sink_abort(sink);
    pen__free(path);
    return path || r < 0 ? r : PEN_E_NO_MEMORY;
}

int pen__store_put(PenStore *s, const char *part_path, const char *name, const PenBuf *data,
                   PenIf when, const PenObject *than, PenError *reterr)
{
    if (s->remote)
        return pen__remote_store(s->remote, name, data->data, data->bytes, when, than, NULL,
                                 reterr);
    char *path = path_of(s, name, reterr);
    int r =
        path ? pen__file_store_in(part_path, path, root_bytes(s), data->data, data->bytes, reterr)
             : PEN_E_NO_MEMORY;
    pen__free(path);
    return r;
}

int pen__store_sync(PenStore *s, const char *name, PenError *reterr)
{
    if (s->remote)
        return PEN_OK;
    if (!name)
        return pen__dir_sync(s->path, reterr);
    char *path = path_of(s, name, reterr);
    int r = path ? pen__inner_sync(path, root_bytes(s), reterr) : PEN_E_NO_MEMORY;
    pen__free(path);
    return r;
}

int pen__store_remove(PenStore *s, const char *name, PenError *reterr)
{
    if (s->remote)
        return pen__remote_remove(s->remote, name, reterr);
    char *path = path_of(s, name, reterr);
    int r = path ? pen__inner_remove(path, root_bytes(s), reterr) : PEN_E_NO_MEMORY;
    pen__free(path);
    return r;
}
