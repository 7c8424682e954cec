/* SPDX-License-Identifier: Apache-2.0 */
/** @file
 * Holds a complete pack in memory, once for all processes of a user on a machine.
 *
 * The first process reads the pack with several threads and checks every byte. Processes that call
 * meanwhile help it; later ones find the memory filled. The kernel owns the memory: it is released
 * when the last process that uses it has closed the pack or ended, also by kill -9, and no files
 * remain. A forked child holds it until it ends. Reads from the memory are checked like reads from
 * a disk. Processes share the memory within one network namespace and one PID namespace. */
#ifndef PENSTOCK_PRELOAD_H
#define PENSTOCK_PRELOAD_H

#include <penstock/pack.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct PenPreloadSettings {
    int32_t threads; /**< threads that read; 0 = chosen by the library, the default */
    /** Called every now and then from the calling thread with the bytes in memory; a return value
     * other than 0 stops the call with PEN_E_CANCELLED. May be NULL. */
    int (*progress)(void *ctx, uint64_t done_bytes, uint64_t total_bytes);
    void *ctx;
} PenPreloadSettings;

typedef struct PenPreloadResult {
    int32_t was_there;   /**< 1 = the memory existed already, from this or another process */
    int32_t is_sealed;   /**< 1 = nobody can change the memory; 0 = a part of the pack is damaged */
    uint64_t bytes;      /**< memory that the pack takes */
    uint64_t read_bytes; /**< bytes of the pack that this process read */
} PenPreloadResult;

PEN_API void pen_preload_settings_init(PenPreloadSettings *settings);

/** Blocks until the complete pack is in memory. From then on nothing is read from its original
 * place, and a remote pack counts as a local one. `ret` may be NULL.
 *
 * Call it before any other use of the pack: it fails with PEN_E_INVALID if a loader uses the pack
 * or the pack has a cache. A second call does nothing. It fails with PEN_E_NO_MEMORY if too little
 * memory is available. After a failure the pack is unchanged. Damage in the pack is not a failure
 * of this call: reading the damaged sample fails later. */
PEN_NODISCARD PEN_API int pen_pack_preload(PenPack *pack, const PenPreloadSettings *settings,
                                           PenPreloadResult *ret, PenError *reterr);

#ifdef __cplusplus
}
#endif
#endif
