/* SPDX-License-Identifier: Apache-2.0 */
/** @file
 * Copies a pack between two places: a directory, an s3:// URL, or, as the origin only, an
 * https:// or http:// URL.
 *
 * The copy has the same bytes. Every byte is checked on the way; data that does not match its
 * checksum is fetched once more, then the copy fails. Shards are copied first and the manifest
 * last, so the new place holds either no pack or the complete one. A repeated copy skips the shards
 * that an interrupted one has finished. */
#ifndef PENSTOCK_COPY_H
#define PENSTOCK_COPY_H

#include <penstock/pack.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct PenCopySettings {
    int32_t threads; /**< parallel transfers; 0 = 8, or all cores between two directories */
    const char *from, *to;
    const PenRemoteSettings *from_remote, *to_remote; /**< NULL = from the environment */
    const char *work; /**< as in PenIngestSettings; keeps two writers on this machine apart */
    /** Called every now and then from the calling thread; a return value other than 0 stops the
     * copy with PEN_E_CANCELLED. May be NULL. */
    int (*progress)(void *ctx, uint64_t done_bytes, uint64_t total_bytes);
    void *ctx;
    const PenFileSettings *files; /**< where the files of an in-place pack are; NULL = beside it */
} PenCopySettings;

typedef struct PenCopyResult {
    uint64_t n_samples;
    uint64_t shards, bytes;             /**< copied; bytes include the manifest */
    uint64_t known_shards, known_bytes; /**< skipped because they existed already */
    uint8_t id[16];                     /**< of the pack */
} PenCopyResult;

PEN_API void pen_copy_settings_init(PenCopySettings *settings);

/** Copies and blocks until the copy is complete. Fails with PEN_E_EXISTS if a different pack is at
 * the new place. Threads may run copies to different places at the same time. */
PEN_NODISCARD PEN_API int pen_copy(const PenCopySettings *settings, PenCopyResult *ret,
                                   PenError *reterr);

#ifdef __cplusplus
}
#endif
#endif
