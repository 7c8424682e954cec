/* SPDX-License-Identifier: Apache-2.0 */
/* How fast each stage of loading is by itself: what a loader could reach if the others cost
 * nothing. */
#ifndef PENSTOCK_BENCH_H
#define PENSTOCK_BENCH_H

#include <penstock/loader.h>

#ifdef __cplusplus
extern "C" {
#endif

enum {
    PEN_STAGE_READ = 0,   /* bytes of the samples from the pack */
    PEN_STAGE_VERIFY = 1, /* their checksums, from memory */
    PEN_STAGE_DECODE = 2, /* rows of the crops, from memory */
    PEN_STAGE_PIXELS = 3, /* resampling, flips and stores, from pixels in memory */
    PEN_STAGE_ALL = 4,    /* decode and pixels together, without a loader */
    PEN_STAGE_COUNT = 5
};
PEN_API const char *pen_stage_name(int stage); /* "read" */

typedef struct PenStages {
    uint32_t struct_size;
    uint32_t threads;
    uint64_t samples;                   /* that were gone through again and again */
    double per_second[PEN_STAGE_COUNT]; /* samples, all threads together; 0 = nothing to do */
} PenStages;

/* Times each stage for `seconds` with the threads, order and pipeline of the settings, on as many
 * samples from the start of the order as the memory holds, 1,000 at most. */
PEN_NODISCARD PEN_API int pen_bench_stages(PenPack *pack, const PenLoaderSettings *settings,
                                           double seconds, PenStages *ret, PenError *reterr);

/* "avx2": the highest tier of kernels in use. */
PEN_API const char *pen_cpu_tier(void);
/* How many cores this process may use: affinity and cgroup. */
PEN_API unsigned pen_cpu_cores(void);

#ifdef __cplusplus
}
#endif
#endif
