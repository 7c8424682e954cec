/* SPDX-License-Identifier: Apache-2.0 */
/* Small inputs and packs for the long tests. All abort when they cannot be made. */
#ifndef PEN_TESTS_LIB_MAKE_PACK_H
#define PEN_TESTS_LIB_MAKE_PACK_H

#include <penstock/penstock.h>

/* A pack of every field type and way of storing. Packs that differ in their
 * seeds alone have the same names of shards and nearly the same layout. */
typedef struct MixSpec {
    uint32_t n_samples;
    uint32_t pixels; /* seed of all that is in payloads */
    uint32_t meta;   /* seed of the metadata */
    uint64_t block_samples, shard_bytes;
    int keep; /* the files as they are, with entry indexes; else some raw, and tiles of others */
} MixSpec;

void make_mixed(const char *dir, const MixSpec *spec);
/* The same through the writer, which makes no tiles; failures are returned, for tests that make
 * them.
 */
int try_mixed(const char *dir, const MixSpec *spec, PenError *reterr);

/* DIR/<class>/<number>.jpg, for numbers from `first` on. */
void make_folder(const char *dir, uint32_t first, uint32_t n);
/* DIR/list.csv with images, masks and two more columns, and the files it names. */
void make_list(const char *dir, uint32_t n);
/* A tar of samples with .jpg, .cls and .json members; compressed when the name ends in .gz. */
void make_tar(const char *path, uint32_t n);

/* Settings for a source (kept) packed to `out` (kept), with blocks of 3 samples and small shards.
 */
PenIngestSettings small_settings(const char *const *source, const char *out);

#endif
