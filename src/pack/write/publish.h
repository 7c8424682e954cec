/* SPDX-License-Identifier: Apache-2.0 */
/* Making shards a pack. */
#ifndef PEN_PACK_WRITE_PUBLISH_H
#define PEN_PACK_WRITE_PUBLISH_H

#include "pack/reader/reader.h"

/* The pack that a manifest would make of the shards in a store, before it is published. */
typedef struct PenPackDraft {
    PenStore *store; /* the caller's */
    PenBuf manifest;
    PenPack *pack;
} PenPackDraft;

int pen__draft_open(PenPackDraft *d, PenStore *store, PenManifest *m, PenError *reterr);
void pen__draft_close(PenPackDraft *d); /* a zeroed one is fine */

/* Writes the manifest (through part_path) and puts it in place: from then on the pack is what `m`
 * says. `base` is the pack that it replaces, or NULL; in an object store another one that came in
 * the meantime stays, and is an error. Keys that are there twice are PEN_E_EXISTS, and nothing is
 * published. To find them the keys of all shards are read, unless they are known to be unique. */
int pen__pack_publish(PenStore *store, const PenPack *base, const char *part_path, PenManifest *m,
                      int has_unique_keys, PenError *reterr);

/* The same for a manifest that has been written already. */
int pen__manifest_put(PenStore *store, const PenPack *base, const char *part_path,
                      const PenBuf *manifest, PenError *reterr);
/* 1: the manifest in the store has these bytes; 0: others; PEN_E_NOT_FOUND: there is none. */
int pen__manifest_is(PenStore *store, const PenBuf *manifest, PenError *reterr);

#endif
