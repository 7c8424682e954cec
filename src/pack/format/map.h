/* SPDX-License-Identifier: Apache-2.0 */
/* The map of a shard whose payloads lie in files outside of the pack: see "mapped shard" in
 * docs/explanation/format.md. */
#ifndef PEN_PACK_FORMAT_MAP_H
#define PEN_PACK_FORMAT_MAP_H

#include "base/mem.h"
#include "io/source.h"
#include "pack/format/format.h"

typedef struct PenExtent {
    uint64_t offset, source, skipped;
    uint32_t bytes, file;
} PenExtent;

typedef struct PenMappedFile {
    uint64_t bytes;
    int64_t mtime_ns;
    const char *path; /* or address; without an end */
    uint32_t path_bytes;
    uint32_t etag_bytes; /* 0: none */
    const char *etag;    /* of an object; without an end */
} PenMappedFile;

/* As it lies in the file, checked. */
typedef struct PenMap {
    uint8_t *data;
    uint64_t bytes; /* of it */
    uint64_t n_extents;
    uint32_t n_files;
    uint64_t file_bytes;   /* of the shard */
    uint64_t stored_bytes; /* of its file, before the map */
} PenMap;

/* Is this the file of a mapped shard? 1 yes, 0 no. */
int pen__map_is(PenSource *file, PenError *reterr);
/* Reads and checks the map of shard `id`. */
int pen__map_read(PenSource *file, const uint8_t *id, PenMap *ret, PenError *reterr);
void pen__map_free(PenMap *m); /* a zeroed one is fine */

PenExtent pen__map_extent(const PenMap *m, uint64_t i);
PenMappedFile pen__map_file(const PenMap *m, uint32_t i);
/* The first extent that ends behind `offset`; n_extents when there is none. */
uint64_t pen__map_find(const PenMap *m, uint64_t offset);
/* Does every extent lie behind the index of one block? `table` is the block table of the shard. */
int pen__map_check_blocks(const PenMap *m, const uint8_t *table, uint64_t n_blocks,
                          const char *name, PenError *reterr);

/* ---- writing ---- */

typedef struct PenMapBuild { /* zeroed is empty */
    PenBuf extents, files, paths;
    uint32_t n_files;
    uint64_t skipped;
} PenMapBuild;

/* A file of the map, by its path in the pack; one of the last few is found again. */
int pen__map_add_file(PenMapBuild *b, const PenMappedFile *file, uint32_t *ret, PenError *reterr);
/* Larger payloads become several extents. */
int pen__map_add_extent(PenMapBuild *b, uint32_t file, uint64_t source, uint64_t offset,
                        uint64_t bytes);
/* The map of a shard of `file_bytes` bytes. */
int pen__map_write(PenMapBuild *b, const uint8_t *id, uint64_t file_bytes, PenBuf *out);
void pen__map_build_free(PenMapBuild *b);

#endif
