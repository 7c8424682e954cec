/* SPDX-License-Identifier: Apache-2.0 */
/* Building a block: its index is made in memory, its payloads are only pointed at. */
#ifndef PEN_PACK_FORMAT_BLOCK_WRITE_H
#define PEN_PACK_FORMAT_BLOCK_WRITE_H

#include <sys/uio.h>

#include "pack/format/format.h"
#include "pack/format/schema.h"
#include "pack/format/stored.h"

/* A piece whose bytes stay in a file: number `iov` of those to write. */
typedef struct PenOutsidePiece {
    const char *path, *etag; /* as in PenStoredImage */
    uint64_t file_bytes;
    int64_t mtime_ns;
    uint64_t offset; /* in the file */
    size_t iov;
} PenOutsidePiece;

/* A piece that is read when it is written: the next one of those to write whose address is NULL. */
typedef struct PenSourcePiece {
    struct PenSource *source;
    uint64_t offset;
    const uint8_t *crcs; /* of its runs, u32 each: what its checksums were made from */
} PenSourcePiece;

typedef struct PenBlockBuild { /* buffers are used again for the next block */
    PenBuf index, heap, sections, sums;
    struct iovec *iov; /* what to write, in order */
    size_t n_iov, iov_cap;
    PenBuf outside; /* PenOutsidePiece, in order */
    PenBuf sources; /* PenSourcePiece, in order */
    uint64_t bytes;
    uint32_t index_crc;
    uint64_t stats[PEN_STAT_COUNT]; /* PEN_STAT_*: what this block adds */
} PenBlockBuild;

/* Lays out n samples as block number `block` of shard `id`. `columns` is the section with the
 * columns of the shard; NULL or empty: there is none. */
int pen__block_build(PenBlockBuild *b, const PenSchema *schema, const uint8_t *id, uint32_t block,
                     const PenStoredSample *const *samples, uint32_t n, const PenBuf *columns,
                     PenError *reterr);
void pen__block_build_fini(PenBlockBuild *b);

#endif
