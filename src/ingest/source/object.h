/* SPDX-License-Identifier: Apache-2.0 */
/* Objects of a remote place as inputs. An object is known by its size and its ETag, of which the
 * stamp holds a hash. See docs/explanation/adr/0007-inputs-and-resumed-runs.md. */
#ifndef PEN_INGEST_SOURCE_OBJECT_H
#define PEN_INGEST_SOURCE_OBJECT_H

#include "ingest/source/stamp.h"
#include "io/places.h"
#include "io/source.h"

/* The name of an object that a list gives, relative to the root's address or as a URL below it.
 * PEN_E_UNSUPPORTED for any other: credentials go only where the user has said. Points into `path`.
 */
int pen__object_beneath(const char *root, const char *path, const char **ret, PenError *reterr);

/* The address of the object `name` below `root`, or of `root` itself when `name` is NULL, as it is
 * requested: without a trailing slash of the root, and encoded where a URL has to be. */
int pen__object_address(const char *root, const char *name, PenBuf *ret, PenError *reterr);

/* PEN_E_INVALID "NAME: changed since the plan was made: ...". */
int pen__object_check(const char *title, const PenExpected *expected, const PenObject *found,
                      PenError *reterr);
/* All bytes of the object that is expected, or an error: no byte of another one is returned.
 * `title` is its address, for messages. *ret is what the server says of it. */
int pen__object_read(PenRemote *remote, const char *name, const char *title,
                     const PenExpected *expected, uint8_t *to, PenObject *ret, PenError *reterr);

/* Bytes of an object that many parts lie in, a tar. It is compared with the plan when it is first
 * used; then requests carry its ETag. */
int pen__object_read_range(PenPlaces *places, const char *address, const PenExpected *expected,
                           uint8_t *to, uint64_t bytes, uint64_t offset, PenError *reterr);
/* To be read from its beginning to its end; pen__source_close. `expected` NULL: any; *ret_object
 * (may be NULL) is what it is. */
int pen__object_open(PenPlaces *places, const char *address, const PenExpected *expected,
                     PenSource **ret, PenObject *ret_object, PenError *reterr);

#endif
