/* SPDX-License-Identifier: Apache-2.0 */
/** @file
 * Finds the loaders that run on this machine, in all processes of this user.
 *
 * A loader writes its counters to memory that processes of the same user can read: with its first
 * batch, and then at most ten times a second while batches are requested from it. The kernel owns
 * the memory and frees it when the process ends. Reading it does not affect the loader. A process
 * with PENSTOCK_TOP=0 in its environment shows no loaders. Processes find each other within one
 * network namespace and one PID namespace. */
#ifndef PENSTOCK_RUNNING_H
#define PENSTOCK_RUNNING_H

#include <penstock/loader.h>

#ifdef __cplusplus
extern "C" {
#endif

/** The loaders that were found at one moment. One thread at a time may use it. */
typedef struct PenLoaderList PenLoaderList;

typedef struct PenRunningLoader {
    int32_t process;
    uint32_t rank, world;
    uint64_t epoch, batch, batches; /**< batches delivered in this pass, and all of it */
    uint64_t memory_limit_bytes;    /**< memory_bytes of the settings */
    uint32_t requests_in_flight;
    uint64_t cache_hits, cache_misses; /**< blocks; of the pack since it was opened */
    uint64_t age_ns;                   /**< time since the counters were written */
    /** Path or URL, valid until the list is closed. Of one with 1,024 bytes or more, the end. */
    const char *pack;
} PenRunningLoader;

/** Finds the loaders. They are sorted by pack, number of ranks, rank and process. */
PEN_NODISCARD PEN_API int pen_loader_list_open(PenLoaderList **ret_list, PenError *reterr);
PEN_API void pen_loader_list_close(PenLoaderList **list);

/** Returns the i-th loader; PEN_END after the last. */
PEN_NODISCARD PEN_API int pen_loader_list_get(const PenLoaderList *list, uint64_t i,
                                              PenRunningLoader *ret);

/** Returns the counters of the i-th loader, of the last one or two seconds before they were
 * written, or longer if a batch takes longer: ns_elapsed is the time. Slots and memory are those of
 * then. Percentiles and maxima are 0. PEN_END after the last. */
PEN_NODISCARD PEN_API int pen_loader_list_stats(const PenLoaderList *list, uint64_t i,
                                                PenLoaderStats *ret);

#ifdef __cplusplus
}
#endif
#endif
