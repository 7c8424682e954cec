/* SPDX-License-Identifier: Apache-2.0 */
#include "io/remote_source.h"

#include <stdatomic.h>
#include <string.h>

#include "base/attr.h"
#include "base/iov.h"

#define WHERE "io/remote"

typedef struct RemoteSource {
    PenSource base;
    PenRemote *remote;
    char *object_name;
    PenObject object; /* its ETag is valid when `known` says so */
    atomic_int known; /* UNKNOWN, LEARNING, KNOWN */
    uint8_t *tail;    /* the last bytes of it */
    size_t tail_bytes;
} RemoteSource;

enum { UNKNOWN, LEARNING, KNOWN };

static void get_object(RemoteSource *s, PenObject *ret)
{
    if (atomic_load_explicit(&s->known, memory_order_acquire) == KNOWN)
        *ret = s->object;
    else
        *ret = (PenObject){.bytes = s->object.bytes};
}

/* Of several first responses one counts; the others are requests of the same moment. */
static void learn(RemoteSource *s, const char *etag)
{
    int unknown = UNKNOWN;
    if (!*etag || !atomic_compare_exchange_strong(&s->known, &unknown, LEARNING))
        return;
    memcpy(s->object.etag, etag, sizeof s->object.etag);
    atomic_store_explicit(&s->known, KNOWN, memory_order_release);
}

static int remote_read(PenSource *source, void *buf, size_t bytes, uint64_t offset, int again,
                       PenError *reterr)
{
    RemoteSource *s = (RemoteSource *)source;
    PenObject object;
    uint64_t tail_at = s->object.bytes - s->tail_bytes;
    if (offset >= tail_at && s->tail && !again) {
        memcpy(buf, s->tail + (offset - tail_at), bytes);
        return PEN_OK;
    }
    get_object(s, &object);
    return pen__remote_read(s->remote, s->object_name, &object, buf, bytes, offset, again, reterr);
}

static int remote_read_v(PenSource *source, const struct iovec *v, int n, uint64_t offset,
                         const PenArrival *arrival, PenError *reterr)
{
    RemoteSource *s = (RemoteSource *)source;
    PenObject object;
    uint64_t tail_at = s->object.bytes - s->tail_bytes;
    if (offset < tail_at || pen__arrival_is_again(arrival)) {
        get_object(s, &object);
        int r =
            pen__remote_read_v(s->remote, s->object_name, &object, v, n, offset, arrival, reterr);
        if (r == PEN_OK)
            learn(s, object.etag);
        return r;
    }
    pen__iov_put(v, n, 0, s->tail + (offset - tail_at), (size_t)pen__iov_bytes(v, n));
    return PEN_OK;
}

static void remote_close(PenSource *source)
{
    RemoteSource *s = (RemoteSource *)source;
    pen__remote_close(&s->remote);
    pen__free((char *)s->base.name);
    pen__free(s->object_name);
    pen__free(s->tail);
    pen__free(s);
}

static const PenSourceClass remote_class = {
    .read = remote_read, .close = remote_close, .read_v = remote_read_v};

static char *full_name(PenRemote *remote, const char *name)
{
    const char *place = pen__remote_text(remote);
    size_t n = strlen(place);
    char *full = pen__alloc(n + strlen(name) + 2);
    if (!full)
        return NULL;
    memcpy(full, place, n);
    if (*name && n && place[n - 1] != '/')
        full[n++] = '/';
    memcpy(full + n, name, strlen(name) + 1);
    return full;
}

int pen__source_open_remote(PenRemote *remote, const char *name, uint64_t end_bytes,
                            PenSource **ret, PenError *reterr)
{
    size_t end = PEN_MAX((size_t)PEN_MIN(end_bytes, PEN_REMOTE_END_MOST), (size_t)PEN_REMOTE_END);
    RemoteSource *s = pen__zalloc(sizeof *s);
    if (!s)
        return pen__fail_memory(reterr, WHERE, name);
    s->remote = pen__remote_ref(remote);
    s->object_name = pen__strdup(name);
    s->tail = pen__alloc(end);
    s->base = (PenSource){.class_ = &remote_class, .name = full_name(remote, name), .is_remote = 1};
    int r =
        s->object_name && s->tail && s->base.name ? PEN_OK : pen__fail_memory(reterr, WHERE, name);
    if (r == PEN_OK)
        r = pen__remote_tail(remote, name, s->tail, end, &s->tail_bytes, &s->object, reterr);
    if (r < 0) {
        remote_close(&s->base);
        return r;
    }
    s->base.bytes = s->object.bytes;
    atomic_store(&s->known, KNOWN);
    *ret = &s->base;
    return PEN_OK;
}

int pen__source_open_object(PenRemote *remote, const char *name, uint64_t bytes, PenSource **ret,
                            PenError *reterr)
{
    RemoteSource *s = pen__zalloc(sizeof *s);
    if (!s)
        return pen__fail_memory(reterr, WHERE, name);
    s->remote = pen__remote_ref(remote);
    s->object_name = pen__strdup(name);
    s->object.bytes = bytes;
    s->base = (PenSource){
        .class_ = &remote_class, .name = full_name(remote, name), .bytes = bytes, .is_remote = 1};
    if (!s->object_name || !s->base.name) {
        remote_close(&s->base);
        return pen__fail_memory(reterr, WHERE, name);
    }
    *ret = &s->base;
    return PEN_OK;
}

void pen__source_settle(PenSource *source)
{
    RemoteSource *s = (RemoteSource *)source;
    if (source->class_ != &remote_class)
        return;
    pen__free(s->tail);
    s->tail = NULL;
    s->tail_bytes = 0;
}

const PenObject *pen__source_object(const PenSource *source)
{
    return source->class_ == &remote_class ? &((const RemoteSource *)source)->object : NULL;
}
