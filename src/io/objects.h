/* SPDX-License-Identifier: Apache-2.0 */
/* Objects that a pack refers to. What a pack names is hostile, and requests may carry the user's
 * credentials: an object is requested only below prefixes that the user has named, or below the
 * prefix that holds the pack itself. Thread-safe. */
#ifndef PEN_IO_OBJECTS_H
#define PEN_IO_OBJECTS_H

#include <sys/uio.h>

#include <penstock/pack.h>

#include "io/source.h"
#include "net/remote/remote.h"

typedef struct PenObjects PenObjects;

enum { PEN_OUTSIDE_PATH_BYTES = 4096 }; /* of a path or an address, and its end */

/* A file or an object that a pack refers to. */
typedef struct PenOutsideFile {
    uint64_t owner;  /* of pen__outside_owner */
    uint32_t number; /* among the owner's files */
    uint32_t path_bytes;
    const char *path; /* as the pack has it, without an end */
    uint64_t bytes;   /* that it had when it was indexed */
} PenOutsideFile;

/* Is it a path that a pack may have? No part is empty, "." or "..", and there is no NUL. An address
 * has a bucket or host and one more part, and nothing that could be a secret or a query. */
bool pen__outside_path_ok(const char *path, size_t bytes);
/* The address of an object as a pack has it: the host in lower case, no port that is the usual one.
 * PEN_E_UNSUPPORTED when a pack may not have it. */
int pen__outside_address(const char *address, char ret[PEN_OUTSIDE_PATH_BYTES], PenError *reterr);
/* Does it begin as the address of an object does? */
bool pen__outside_is_address(const char *path, size_t bytes);
/* What of `path` follows the directory or prefix `dir`; NULL: it does not lie below it. */
const char *pen__outside_below(const char *dir, const char *path);
/* The name that the rest of a URL stands for, whose escapes are valid. What has an encoded slash,
 * dot or NUL is no name. */
int pen__outside_decode(const char *pack, const char *rest, char *ret, size_t cap,
                        PenError *reterr);

/* `dir` is the directory or the prefix that holds the pack. Both texts are copied. */
int pen__objects_new(const char *pack, const char *dir, PenObjects **ret, PenError *reterr);
void pen__objects_close(PenObjects **o); /* accepts NULL */
/* Of a pack in a store: the prefix that holds it may be read as the pack, which is at `of`, is. */
int pen__objects_open_home(PenObjects *o, PenRemote *of, PenError *reterr);
/* The prefixes among the roots, and all that has moved. Connects to nothing yet. Those in one
 * bucket or at one server share connections, credentials and limits. */
int pen__objects_set(PenObjects *o, const PenFileSettings *settings, PenError *reterr);

/* Where objects are read from: one of these places, for messages; NULL: there is none. */
PenRemote *pen__objects_place(const PenObjects *o);
/* As pen__remote_stop, of all of them. */
void pen__objects_stop(const PenObjects *o, int stop);
/* Adds what the requests to all of them were, but for those that are counted with the pack's own.
 */
void pen__objects_count(const PenObjects *o, PenPolicyCounts *counts);

/* Reads a range by one request. 1: it is a file, and nothing was read. PEN_E_CORRUPT when the
 * object is missing or another one by now. Messages name it. */
int pen__objects_read(PenObjects *o, const PenOutsideFile *file, const struct iovec *v, int n,
                      uint64_t offset, const PenArrival *arrival, PenError *reterr);
/* Has the last read of it failed? PEN_E_CORRUPT, and why; PEN_OK: no, or it is not known any more.
 * 1: it is a file. Requests nothing. */
int pen__objects_failure(PenObjects *o, const PenOutsideFile *file, PenError *reterr);
/* None of the owner's objects is in use. */
void pen__objects_forget(PenObjects *o, uint64_t owner);

#endif
