/* SPDX-License-Identifier: Apache-2.0 */
/** @file
 * Measures each stage of loading alone: the rate that a loader could reach if the other stages
 * cost nothing. */
#ifndef PENSTOCK_BENCH_H
#define PENSTOCK_BENCH_H

#include <penstock/loader.h>

#ifdef __cplusplus
extern "C" {
#endif

enum {
    /** fetch, read and check samples by a loader that does not decode them; of a local pack, from
     * the page cache */
    PEN_STAGE_READ = 0,
    PEN_STAGE_VERIFY = 1, /**< check their checksums, from memory */
    PEN_STAGE_DECODE = 2, /**< decode the pixel rows that the crops need, from memory */
    PEN_STAGE_PIXELS = 3, /**< resample, flip and store, from decoded pixels in memory */
    PEN_STAGE_ALL = 4,    /**< decode and pixels together, without a loader */
    /** PEN_STAGE_READ of samples that are not in the page cache; 0 if it cannot be measured */
    PEN_STAGE_READ_COLD = 5,
    /** PEN_STAGE_READ_COLD, or PEN_STAGE_READ of a remote pack, with half of the reading threads */
    PEN_STAGE_READ_HALF = 6,
    PEN_STAGE_COUNT = 7
};
/** Returns the name of a stage: "read". The text is static. */
PEN_API const char *pen_stage_name(int stage);

typedef struct PenStages {
    uint32_t threads;                   /**< threads that ran each stage */
    uint64_t samples;                   /**< distinct samples, which were processed repeatedly */
    double per_second[PEN_STAGE_COUNT]; /**< samples per second of all threads; 0 = no work */
    double copy_bytes; /**< bytes per second that all threads together copy in memory */
    double raw_ratio;  /**< bytes to read if the images were stored as pixels; 1 = as many as now */
    double area_ratio; /**< pixels if the images had a shorter side of short_side; 1 = as many */
    uint32_t short_side; /**< a little more than the shorter side of the result; 0 = not known */
} PenStages;

/** Runs each stage for `seconds` with the threads, order and pipeline of the settings. For stages
 * from memory it uses the first samples of the order, as many as fit into memory_bytes and can be
 * read in `seconds`, at most 1,000. To measure a disk, it drops blocks of a local pack from the
 * page cache: up to 256 MiB, but at least one block. The call blocks; other threads may use the
 * pack meanwhile. */
PEN_NODISCARD PEN_API int pen_bench_stages(PenPack *pack, const PenLoaderSettings *settings,
                                           double seconds, PenStages *ret, PenError *reterr);

/** Returns the instruction set that the kernels use: "avx2". The text is static. */
PEN_API const char *pen_cpu_tier(void);
/** Returns how many cores this process may use, by its affinity mask and its cgroup. */
PEN_API unsigned pen_cpu_cores(void);

#ifdef __cplusplus
}
#endif
#endif
