/* SPDX-License-Identifier: Apache-2.0 */
/* Broken inputs that are left out: a list of JSON lines, kept beside the work so that a continued
 * run knows them. */
#ifndef PEN_INGEST_JOB_BAD_H
#define PEN_INGEST_JOB_BAD_H

#include "base/error.h"
#include "base/mem.h"

typedef struct PenBadList {
    PenBuf lines; /* each with its line feed */
    uint64_t n;
} PenBadList;

int pen__bad_add(PenBadList *list, uint64_t position, const void *key, size_t key_bytes,
                 const PenError *why, PenError *reterr);
/* Reads a list that an interrupted run left, without what lies at or behind `position`. None there
 * is fine. */
int pen__bad_load(PenBadList *list, const char *path, uint64_t position, PenError *reterr);
/* The same of a list in memory; `path` is for messages. */
int pen__bad_parse(PenBadList *list, const void *data, size_t bytes, uint64_t position,
                   const char *path, PenError *reterr);
int pen__bad_store(const PenBadList *list, const char *part_path, const char *path,
                   PenError *reterr);
void pen__bad_free(PenBadList *list);

#endif
