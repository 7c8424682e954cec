/* SPDX-License-Identifier: Apache-2.0 */
/* Packs of tiled JPEGs, as earlier builds wrote them. */
#ifndef PEN_TESTS_LIB_TILED_PACK_H
#define PEN_TESTS_LIB_TILED_PACK_H

#include <stdint.h>

/* Writes the pack `to`: the samples of the pack `from`, with their JPEGs as tiles where they can
 * be, and their metadata beside them. Aborts when it cannot. */
void tile_pack(const char *from, const char *to, uint64_t shard_bytes);

#endif
