/* SPDX-License-Identifier: Apache-2.0 */
/* Packs for the long tests of the loader, passes through them as one number for each position, and
 * what a process holds. All abort when something cannot be made. */
#ifndef PEN_TESTS_LIB_LOAD_PACK_H
#define PEN_TESTS_LIB_LOAD_PACK_H

#include <stdbool.h>
#include <sys/types.h>

#include <penstock/penstock.h>

#include "base/mem.h"

/* ---- packs ----------------------------------------------------------------------------------- */

/* A file as an image, and what the pack's index is to say of it. */
typedef struct LoadImage {
    PenBuf file;
    uint32_t width, height;
    uint8_t codec, channels;
} LoadImage;

/* Fills in the i-th; the buffer is used again. */
typedef void (*LoadImageFn)(void *ctx, uint32_t i, LoadImage *image);

typedef struct LoadSpec {
    uint32_t n;
    int mode; /* a PenMode; LOAD_AS_IS stores whatever the bytes are, checksums right. KEEP stores
                 broken files, too; TILE makes a pack as earlier builds
                 did; LOAD_INDEXED is KEEP with entry indexes, LOAD_FORGED is AS_IS
                 with indexes that are not those of the files */
    uint64_t block_samples, shard_bytes;
    LoadImageFn image;
    void *ctx;
} LoadSpec;

enum { LOAD_AS_IS = -1, LOAD_INDEXED = -2, LOAD_FORGED = -3 };

/* Fields "image" and "label" (the sample's number); keys "s-<number>". */
void load_pack_write(const char *dir, const LoadSpec *spec);
PenPack *load_pack_open(const char *dir);

/* Photographs in little: indexed, raw, progressive, CMYK, grey, PNG, turned. */
void load_mixed_image(void *ctx, uint32_t i, LoadImage *image);
/* A header that is right, and data behind it that is not. */
void load_break_jpeg(PenBuf *file);
/* Turns one bit of the sample's image on disk. */
void load_damage(const char *dir, PenPack *pack, uint64_t sample);

/* ---- passes ---------------------------------------------------------------------------------- */

PenLoaderSettings load_settings(uint32_t batch);

/* What one rank was given, put at the places of the whole sequence: sums[p] is a hash of all that
 * belongs to position p. */
typedef struct LoadPass {
    uint64_t *sums;
    uint64_t n; /* positions in all; those behind are repetitions, and have to say so */
    uint64_t batches, errors, substituted;
    uint64_t first_error; /* the batch; UINT64_MAX when there is none */
    PenError error;       /* the first */
} LoadPass;

/* Takes `limit` batches (errors count as one), or all that are left of the pass. PEN_OK, PEN_END,
 * or the first error when `stop` is set. A timeout always ends it. */
int load_take(PenLoader *l, const PenLoaderSettings *s, uint64_t start, uint64_t limit, bool stop,
              LoadPass *pass);
/* Open, all batches, close. The place to go on from may be NULL. */
int load_run(PenPack *pack, const PenLoaderSettings *s, const char *from, LoadPass *pass);
uint64_t load_batch_sum(const PenBatch *b, uint32_t i);

/* ---- the process ----------------------------------------------------------------------------- */

typedef struct LoadHeld {
    unsigned files, threads, shared; /* shared: mappings of files in memory */
    uint64_t rss_kib, peak_kib;
} LoadHeld;

LoadHeld load_held(void);
/* Waits until there are so many threads again; false after `seconds`. */
bool load_threads_gone(unsigned threads, double seconds);
double load_seconds(void);     /* monotonic */
double load_cpu_seconds(void); /* of the process */
/* Memory of a sanitizer is not the library's. */
bool load_is_sanitized(void);

/* Runs it in a process of its own, which is killed after `seconds`. The end gives what it returns
 * (0 to 100), or 256 + the signal that ended it. */
pid_t load_child_start(int (*run)(void *ctx), void *ctx, unsigned seconds);
int load_child_end(pid_t child);

#endif
