/* SPDX-License-Identifier: Apache-2.0 */
/* Memory for what is secret: pages of its own, kept out of core dumps, wiped when given back. */
#ifndef PEN_BASE_SECRET_MEMORY_H
#define PEN_BASE_SECRET_MEMORY_H

#include <stddef.h>

#include <penstock/error.h>

/* Zero-initialised is empty. */
typedef struct PenSecretMemory {
    char *data; /* cleared at first, so that text put there ends in NUL as long as bytes < cap */
    size_t bytes;
    size_t cap;
} PenSecretMemory;

int pen__secret_memory_new(size_t cap, PenSecretMemory *ret, PenError *reterr);
void pen__secret_memory_free(PenSecretMemory *room); /* accepts an empty one */

/* 0, or -1 when there is no room for all of it and the NUL behind it. */
int pen__secret_memory_add(PenSecretMemory *room, const void *data, size_t bytes);

/* A whole file, with a NUL behind it. PEN_E_NOT_FOUND when there is none, and when it is no regular
 * file (a pipe could make the caller wait); PEN_E_LIMIT when it is longer than `limit`. */
int pen__secret_memory_read(const char *path, size_t limit, PenSecretMemory *ret, PenError *reterr);

#endif
