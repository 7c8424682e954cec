/* SPDX-License-Identifier: Apache-2.0 */
/* Where the files of a pack lie: a directory, or a prefix of an object store. Names are those of
 * the format: "manifest", "3f/3f...shard". */
#ifndef PEN_IO_STORE_H
#define PEN_IO_STORE_H

#include "io/sink.h"
#include "io/source.h"
#include "net/remote/remote.h"

typedef struct PenStore PenStore;

/* A path, or an s3://, https:// or http:// URL; `settings` are for the latter and may be NULL.
 * Nothing is made, and nothing asked for. */
int pen__store_open(const char *where, const PenRemoteSettings *settings, PenStore **ret,
                    PenError *reterr);
PenStore *pen__store_ref(PenStore *s);
void pen__store_close(PenStore **s);             /* the last one; accepts NULL */
const char *pen__store_name(const PenStore *s);  /* for messages */
PenRemote *pen__store_remote(const PenStore *s); /* NULL: it is a directory */

/* PEN_E_NOT_FOUND when there is none. */
int pen__store_source(PenStore *s, const char *name, PenSource **ret, PenError *reterr);
/* The same, and its last `end_bytes` will be read next: they come with the first request. */
int pen__store_source_end(PenStore *s, const char *name, uint64_t end_bytes, PenSource **ret,
                          PenError *reterr);
int pen__store_has(PenStore *s, const char *name, PenError *reterr); /* 1, 0, < 0 */

/* PEN_E_UNSUPPORTED for an address that can only be read. */
int pen__store_check_kind(const PenStore *s, PenError *reterr);
/* Before anything is made ready to be written: may `name` be written? Of an object store this is
 * seen by an upload that is begun and given up, so that no object comes into being, and with no
 * other permissions than the writing itself needs. Of a directory whoever makes .work in it sees
 * it. */
int pen__store_check_writable(PenStore *s, const char *name, PenError *reterr);

/* A file that appears under its name when it is committed. In a directory it lies at `part_path`
 * until then. */
int pen__store_sink(PenStore *s, const char *part_path, const char *name, PenSink **ret,
                    PenError *reterr);
int pen__store_commit(PenStore *s, PenSink **sink, const char *name, PenError *reterr);
/* A small file at once. `when` holds in object stores; in a directory a lock keeps others out. */
int pen__store_put(PenStore *s, const char *part_path, const char *name, const PenBuf *data,
                   PenIf when, const PenObject *than, PenError *reterr);
/* Makes sure that the name lasts; NULL: all that the top holds. */
int pen__store_sync(PenStore *s, const char *name, PenError *reterr);
int pen__store_remove(PenStore *s, const char *name, PenError *reterr);

#endif
