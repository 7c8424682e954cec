/* SPDX-License-Identifier: Apache-2.0 */
/* A whole pack in memory, once for all processes of a user on a machine.
 *
 * The first process that asks reads the pack (all of its bytes, side by side, checked); others that
 * ask meanwhile help, and those that come later find it there. Memory is the kernel's, not any
 * process's: it goes when the last process that uses it has closed the pack or ended, by kill -9
 * too, and leaves no files behind. A forked child keeps it until it ends. Everything read from it
 * is checked as if it came from a disk. Processes find each other in one network namespace and one
 * process namespace; those that do not each have memory of their own. */
#ifndef PENSTOCK_PRELOAD_H
#define PENSTOCK_PRELOAD_H

#include <penstock/pack.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct PenPreloadSettings {
    uint32_t struct_size; /* set by the init call */
    int32_t threads;      /* that read; 0 = chosen, the default */
    /* Called now and then, by the calling thread, with what is in memory; non-zero stops with
     * PEN_E_CANCELLED. May be NULL. */
    int (*progress)(void *ctx, uint64_t done_bytes, uint64_t total_bytes);
    void *ctx;
} PenPreloadSettings;

typedef struct PenPreloadResult {
    uint64_t bytes;      /* of memory that the pack takes */
    uint64_t read_bytes; /* of the pack, by this process */
    int32_t was_there;   /* 1: another process, or this one, had the memory already */
    int32_t is_sealed;   /* 1: nobody can change it any more; 0: some of it is damaged */
} PenPreloadResult;

PEN_API void pen_preload_settings_init(PenPreloadSettings *settings);
/* Returns when all of the pack is in memory; from then on nothing is read from where it lies, and a
 * pack at an address counts as a local one. To be called before anything else uses the pack
 * (PEN_E_INVALID when a loader does, or it has a cache); a second call does nothing.
 * PEN_E_NO_MEMORY when there is too little for it. On failure the pack is as it was. Damage in the
 * pack is no failure: it shows when the sample is read, as of a local pack. `settings` and `ret`
 * may be NULL. */
PEN_NODISCARD PEN_API int pen_pack_preload(PenPack *pack, const PenPreloadSettings *settings,
                                           PenPreloadResult *ret, PenError *reterr);

#ifdef __cplusplus
}
#endif
#endif
