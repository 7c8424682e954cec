/* SPDX-License-Identifier: Apache-2.0 */
/* Small packs of images, masks and labels, and what a loader makes of them. */
#ifndef PEN_TESTS_UNIT_LOAD_HELP_H
#define PEN_TESTS_UNIT_LOAD_HELP_H

#include "base/sha256.h"
#include "pack_help.h"

#define PIPELINE "decode | random_resized_crop 32 | hflip | tensor u8 nhwc"

/* Opens a writer at `name`, and makes a pack of it if `r` is PEN_OK; NULL if it fails.
 * PEN_MODE_TILE gives a pack as earlier builds wrote it. */
int help_writer_open(const char *name, const PenWriterSettings *s, PenWriter **ret, PenError *err);
PenPack *help_writer_end(const char *name, const PenWriterSettings *s, PenWriter *w, int r,
                         PenError *err);

/* `n` samples: a JPEG, a mask (PNG) of its size, its number as label. `bad` (may be < 0) is one
 * whose JPEG cannot be decoded. */
PenPack *help_load_pack(const char *name, uint32_t n, int bad, int mode);
PenLoaderSettings help_loader_settings(uint32_t batch);

/* Takes batches until the pass ends, adding to a hash of everything in them; returns their number
 * or the error. */
int help_drain(PenLoader *l, PenSha256 *hash, int limit, PenError *err);

/* Hash of one whole pass; 0 when it fails. */
uint64_t help_epoch_hash(PenPack *pack, const PenLoaderSettings *s);

#endif
