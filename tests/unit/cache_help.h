/* SPDX-License-Identifier: Apache-2.0 */
/* Caches for tests: opening, putting, what is there. */
#ifndef PEN_TESTS_UNIT_CACHE_HELP_H
#define PEN_TESTS_UNIT_CACHE_HELP_H

#include <dirent.h>

#include "cache/cache_impl.h"
#include "ingest_help.h"

extern const uint8_t pack_a[16], pack_b[16];
extern const uint8_t pack_c[16];
extern PenSys sys;

PenCacheKey block(uint64_t n);
PenCache *open_for(const char *name, const uint8_t *id, uint64_t bytes, PenError *err);
int has(PenCache *c, uint64_t n, uint8_t fill, uint64_t bytes);
int put(PenCache *c, uint64_t n, uint8_t fill, uint64_t bytes);
PenAccounting books_of(PenCache *c);
PenCacheStats stats_of(PenCache *c);
bool there(const char *path);
unsigned names_in(const char *path, const char *with);
char *folder_of(const char *dir, const uint8_t *id);
const char *entry_of(const char *dir, const uint8_t *id, uint64_t number);

/* Clocks that the test turns. */
extern uint64_t unix_s, cache_turned_ns;

uint64_t given_unix_ns(void);
uint64_t turned_now_ns(void);

#endif
