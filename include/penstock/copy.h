/* SPDX-License-Identifier: Apache-2.0 */
/* Copying a pack between any two places: a directory, an s3:// address, and https:// or http:// to
 * copy from.
 *
 * The copy has the same bytes. Every one of them is checked on its way, and what does not fit its
 * checksum is asked for once more and then an error. Shards come first and the manifest last, in an
 * object store under the condition that there is none: before that there is no pack at the new
 * place, after it the whole one. Shards that are there from an interrupted copy are not copied
 * again. */
#ifndef PENSTOCK_COPY_H
#define PENSTOCK_COPY_H

#include <penstock/pack.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct PenCopySettings {
    uint32_t struct_size; /* set by the init call */
    int32_t threads;      /* transfers at once; 0 = 8, or the cores where both are directories */
    const char *from, *to;
    const PenRemoteSettings *from_remote, *to_remote; /* NULL = as the environment says */
    const char *work; /* as in PenIngestSettings: keeps two writers of this machine apart */
    /* Called now and then from the calling thread; non-zero stops with PEN_E_CANCELLED. May be
     * NULL. */
    int (*progress)(void *ctx, uint64_t done_bytes, uint64_t total_bytes);
    void *ctx;
} PenCopySettings;

typedef struct PenCopyResult {
    uint64_t n_samples;
    uint64_t shards, bytes;             /* copied; the manifest is among the bytes */
    uint64_t known_shards, known_bytes; /* were there already */
    uint8_t id[16];                     /* of the pack */
} PenCopyResult;

PEN_API void pen_copy_settings_init(PenCopySettings *settings);
/* PEN_E_EXISTS when another pack is at the new place. */
PEN_NODISCARD PEN_API int pen_copy(const PenCopySettings *settings, PenCopyResult *ret,
                                   PenError *reterr);

#ifdef __cplusplus
}
#endif
#endif
