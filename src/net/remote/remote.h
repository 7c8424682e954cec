/* SPDX-License-Identifier: Apache-2.0 */
/* Objects below an address: s3://bucket/prefix, https://host/path. Thread-safe. Every call waits
 * until it is done or the outage budget is spent; what a server answers is checked before it is
 * believed. */
#ifndef PEN_NET_REMOTE_REMOTE_H
#define PEN_NET_REMOTE_REMOTE_H

#include <sys/uio.h>

#include <penstock/remote.h>

#include "base/mem.h"
#include "net/retry/policy.h"

typedef struct PenRemote PenRemote;

typedef struct PenObject {
    uint64_t bytes;
    char etag[132]; /* with its quotes; "" when the server gives none */
} PenObject;

/* The defaults for NULL. */
PenRemoteSettings pen__remote_settings(const PenRemoteSettings *given);
/* `settings` may be NULL. Connects to nothing yet. */
int pen__remote_open(const char *address, const PenRemoteSettings *settings, PenRemote **ret,
                     PenError *reterr);
/* Is the address in the same bucket or at the same server as `r`, which was opened with the same
 * settings (NULL: it was)? Then it can be opened beside it. */
int pen__remote_is_beside(const PenRemote *r, const char *address,
                          const PenRemoteSettings *settings);
/* Both share the thread, the connections, the credentials and the limits, which end with the last
 * of them. */
int pen__remote_open_beside(PenRemote *of, const char *address, PenRemote **ret, PenError *reterr);
PenRemote *pen__remote_ref(PenRemote *r);
void pen__remote_close(PenRemote **r);            /* the last one ends the thread; accepts NULL */
const char *pen__remote_text(const PenRemote *r); /* the address, for messages */
int pen__remote_is_s3(const PenRemote *r);        /* 0: can only be read */
/* 1: a thread that waits for it is to give up. Not with a lock held. */
int pen__remote_interrupted(const PenRemote *r);
/* Of all that share its connections. */
void pen__remote_counts(PenRemote *r, PenPolicyCounts *ret);
int pen__remote_was_opened_beside(const PenRemote *r); /* 1: another one has the same counts */
/* 1: from now on, until it is 0 again, all who wait for it give up. */
void pen__remote_stop(PenRemote *r, int stop);
/* What the oldest request is at, for messages; "" when there is none. */
void pen__remote_progress(PenRemote *r, char *ret, size_t bytes);

/* `name` is below the address: "manifest", "3f/3f...shard"; "" is the address itself, of http(s).
 */

/* The last `bytes` bytes, or all of them when there are fewer: *ret_bytes; and the object's size.
 */
int pen__remote_tail(PenRemote *r, const char *name, void *buf, size_t bytes, size_t *ret_bytes,
                     PenObject *ret, PenError *reterr);
/* Exactly these bytes of that very object; PEN_E_CHANGED when it is another by now. `fresh`: over a
 * new connection. */
int pen__remote_read(PenRemote *r, const char *name, const PenObject *of, void *buf, size_t bytes,
                     uint64_t offset, int fresh, PenError *reterr);
/* The same by one request into several places, one after another; `arrival` may be NULL. If the
 * ETag is not known yet, it is that of the response from then on. */
int pen__remote_read_v(PenRemote *r, const char *name, PenObject *of, const struct iovec *v, int n,
                       uint64_t offset, const PenArrival *arrival, PenError *reterr);
/* PEN_E_NOT_FOUND when there is none. */
int pen__remote_stat(PenRemote *r, const char *name, PenObject *ret, PenError *reterr);

/* What has to hold for a store to take place. */
typedef enum PenIf { PEN_IF_ANY, PEN_IF_ABSENT, PEN_IF_SAME } PenIf;

/* PEN_E_EXISTS when absent was wanted, PEN_E_CHANGED when the same (`than`) was. */
int pen__remote_store(PenRemote *r, const char *name, const void *data, size_t bytes, PenIf when,
                      const PenObject *than, PenObject *ret, PenError *reterr);
int pen__remote_remove(PenRemote *r, const char *name, PenError *reterr); /* also when not there */

/* What a caller may have to hold of a list: names, and for each some bytes more. */
enum { PEN_LIST_MIB = 256, PEN_LISTED_BYTES = 64 };

/* All objects below the address, in pages and in the order of their names' bytes; `each` returns 0
 * to go on. PEN_E_LIMIT: the list has more than PEN_LIST_MIB, or the server returns pages without
 * end. */
typedef int (*PenObjectFn)(void *ctx, const char *name, const PenObject *object);
int pen__remote_list(PenRemote *r, PenObjectFn each, void *ctx, PenError *reterr);
/* The same with up to 16 requests at a time, if what lies below the address is in folders. Names
 * are not counted: the caller holds them on disk. */
typedef int (*PenListedFn)(void *ctx, const char *name, const PenObject *object, PenError *reterr);
typedef struct PenWideList {
    /* By one thread at a time; 0 to go on. The first pages come in order. */
    PenListedFn each;
    /* After each of them: 1, what follows may come in any order, and from other threads. */
    int (*is_ready)(void *ctx);
    /* From then on: the calling thread's, now and then, never while `each` runs; < 0 is the end. */
    int (*tick)(void *ctx, PenError *reterr);
    void *ctx;
} PenWideList;
int pen__remote_list_wide(PenRemote *r, const PenWideList *list, PenError *reterr);
/* Uploads that were begun below the address and neither finished nor given up: gives up those begun
 * before `before_s` (0: all). */
int pen__remote_abort_uploads(PenRemote *r, uint64_t before_s, uint64_t *ret_n, PenError *reterr);

/* A large object in parts, several at once. What is added is copied. */
typedef struct PenUpload PenUpload;

int pen__upload_begin(PenRemote *r, const char *name, PenUpload **ret, PenError *reterr);
int pen__upload_add(PenUpload *u, const struct iovec *iov, int n, PenError *reterr);
/* The object is there, whole, when this returns PEN_OK. */
int pen__upload_finish(PenUpload **u, PenObject *ret, PenError *reterr);
void pen__upload_abort(PenUpload **u); /* accepts NULL */

#endif
