/* SPDX-License-Identifier: Apache-2.0 */
/* Packs of noise, and what the tests of preloading look at. */
#ifndef PEN_TESTS_UNIT_PRELOAD_HELP_H
#define PEN_TESTS_UNIT_PRELOAD_HELP_H

#include <poll.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/thread.h"
#include "pack_help.h"

enum { SMALL = 40, SMALL_BYTES = 5000, LARGE = 100, LARGE_BYTES = 260000, MOST = 260000 };

/* ---- packs ----------------------------------------------------------------------------------- */

void make_pack(const char *name, uint32_t n, size_t bytes, uint64_t shard_bytes);
PenPack *open_pack(const char *name);
uint64_t shard_bytes(const PenPack *pack);

/* Is each sample the one that was written? The first that is not, or -1. */
int64_t first_wrong(PenPack *pack, size_t bytes);

/* Turns a bit in the first sample of the pack. */
void damage(const char *name);

/* Names that the kernel lists for this pack. */
int names_of(const PenPack *pack);

/* ---- a clock that can be turned ---------------------------------------------------------------
 */

extern atomic_uint_fast64_t turned_ns;

uint64_t turned_now(void);

#endif
