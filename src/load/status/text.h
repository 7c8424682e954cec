/* SPDX-License-Identifier: Apache-2.0 */
/* The status of a loader as text, which 'penstock top' of this or another version reads:
 *
 *     penstock-loader 1
 *     process 1234
 *     samples 51200
 *     ...                 one "name number" a line; a reader ignores names that it does not know
 *     pack /data/train.pen
 *     end 1a2b3c4d        CRC-32C of all before this line
 *
 * The rest of the memory is 0. A text that was read while it was written fails its checksum. */
#ifndef PEN_LOAD_STATUS_TEXT_H
#define PEN_LOAD_STATUS_TEXT_H

#include <stdbool.h>

#include <penstock/loader.h>

enum { PEN_STATUS_BYTES = 4096, PEN_STATUS_PACK_BYTES = 1024 };

#define PEN_STATUS_WHAT "loader" /* in the name of the memory */

typedef struct PenLoadStatus {
    uint64_t process, rank, world;
    uint64_t epoch, batch, batches; /* batch: delivered in this pass; of this many */
    uint64_t clock_ns;              /* monotonic, when it was written */
    uint64_t memory_limit_bytes;
    uint64_t requests_in_flight, cache_hits, cache_misses;
    PenLoaderStats stats;             /* of the last seconds */
    char pack[PEN_STATUS_PACK_BYTES]; /* path or URL; of a longer one the end */
} PenLoadStatus;

/* Replaces control characters in a path, which could end its line. */
void pen__status_set_pack(PenLoadStatus *s, const char *path);
/* Fills all of `ret`. */
void pen__status_write(const PenLoadStatus *s, char ret[PEN_STATUS_BYTES]);
/* Accepts any bytes. False: it is none, or damaged. */
bool pen__status_read(const char text[PEN_STATUS_BYTES], PenLoadStatus *ret);

#endif
