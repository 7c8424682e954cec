/* SPDX-License-Identifier: Apache-2.0 */
/* Where a pack's bytes come from: something of known size that gives ranges of bytes. Thread-safe.
 */
#ifndef PEN_IO_SOURCE_H
#define PEN_IO_SOURCE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/uio.h>

#include "base/arrival.h"
#include "base/error.h"
#include "base/mem.h"
#include "base/sys.h"

typedef struct PenSource PenSource;

enum { PEN_SOURCE_PLACES = 16 }; /* of one read of a file; more take several */

/* Where a byte of a pack comes from that is not in the pack. */
typedef struct PenOrigin {
    char name[480];   /* "path, offset 17" */
    bool is_modified; /* it has another time of last change than the pack has recorded */
} PenOrigin;

typedef struct PenSourceClass {
    /* `again`: what came the last time was wrong; not from where it came from then. */
    int (*read)(PenSource *s, void *buf, size_t bytes, uint64_t offset, int again,
                PenError *reterr);
    void (*close)(PenSource *s);
    /* NULL: place by place. */
    int (*read_v)(PenSource *s, const struct iovec *v, int n, uint64_t offset,
                  const PenArrival *arrival, PenError *reterr);
    int (*drop)(PenSource *s, uint64_t bytes, uint64_t offset); /* NULL: it cannot */
    /* NULL: all bytes are its own. */
    int (*origin)(PenSource *s, uint64_t offset, PenOrigin *ret, PenError *reterr);
    void (*forget)(PenSource *s, uint64_t bytes, uint64_t offset); /* NULL: it keeps nothing */
} PenSourceClass;

struct PenSource {
    const PenSourceClass *class_;
    const char *name; /* for messages */
    uint64_t bytes;
    uint8_t is_remote; /* every read is a request: few and large ones are better than many */
};

/* A file to be read. What is no file (a FIFO, a device, a directory) is PEN_E_INVALID and is never
 * waited for. */
int pen__file_open(const char *path, int *ret_fd, PenFileStat *ret_st, PenError *reterr);
int pen__source_open_file(const char *path, PenSource **ret, PenError *reterr);
/* The same of a file that is open, which is the source's from here on, also on failure. */
int pen__source_open_fd(int fd, const char *path, uint64_t bytes, PenSource **ret,
                        PenError *reterr);
/* The memory stays the caller's and must outlive the source. `name` is copied. */
int pen__source_open_memory(const char *name, const void *data, uint64_t bytes, PenSource **ret,
                            PenError *reterr);

/* Exactly `bytes` bytes at `offset`, or an error that names the source and the offset: a range
 * beyond the end is PEN_E_CORRUPT ("expected at least ..., found ..."). */
int pen__source_read(PenSource *s, void *buf, size_t bytes, uint64_t offset, PenError *reterr);
/* The same once more, because the bytes did not fit their checksum. */
int pen__source_read_again(PenSource *s, void *buf, size_t bytes, uint64_t offset,
                           PenError *reterr);
/* Bytes that did not fit their checksum: what is kept of them is not used again. */
void pen__source_forget(PenSource *s, uint64_t bytes, uint64_t offset);
/* By one request into several places, one after another: blocks that lie side by side in a file,
 * but not in memory. `arrival` may be NULL. */
int pen__source_read_v(PenSource *s, const struct iovec *v, int n, uint64_t offset,
                       const PenArrival *arrival, PenError *reterr);
/* Drops a range from the page cache; true: it is not there now. */
bool pen__source_drop(PenSource *s, uint64_t bytes, uint64_t offset);
/* Does the byte at `offset` come from a file outside of the pack? 1: yes, and that can be read. 0:
 * no, or it cannot be known. PEN_E_CORRUPT: yes, but it is gone, or is another one: why. */
int pen__source_origin(PenSource *s, uint64_t offset, PenOrigin *ret, PenError *reterr);
void pen__source_close(PenSource **s); /* accepts NULL */

/* The whole of a small file, at most `limit` bytes; PEN_SLACK readable bytes follow. */
int pen__file_load(const char *path, uint64_t limit, PenBuf *ret, PenError *reterr);

#endif
