/* SPDX-License-Identifier: Apache-2.0 */
/* Shards from several hands joined to one pack: an old pack's and new ones, or those of all tasks.
 */
#ifndef PEN_INGEST_JOB_JOIN_H
#define PEN_INGEST_JOB_JOIN_H

#include <penstock/ingest.h>

#include "ingest/job/bad.h"
#include "pack/reader/reader.h"

typedef struct PenJoin {
    PenStore *store;
    const char *home; /* where .work is */
    PenPack *base;    /* that is appended to; NULL: there is none */
    const PenSchema *schema;
    const char *settings;
    uint64_t block_samples;
    int has_unique_keys; /* a plan has checked them */
    PenShardEntry *shards;
    uint64_t n_shards;
    PenPackStats stats;
} PenJoin;

/* All of the pack's shards but its short last block. */
int pen__join_base(PenJoin *j, PenPack *base, PenError *reterr);
int pen__join_add(PenJoin *j, const PenShardEntry *shards, uint64_t n, const PenPackStats *stats,
                  PenError *reterr);
/* Makes them the pack, and tells of it in *ret. */
int pen__join_publish(PenJoin *j, PenIngestResult *ret, PenError *reterr);
void pen__join_fini(PenJoin *j);

/* Puts into a result which fields some samples lack, from ret->stats. */
void pen__result_missing(PenIngestResult *ret, const PenField *fields, uint32_t n);
/* Puts the number of classes and their first names into a result. */
void pen__result_classes(PenIngestResult *ret, const char *const *names, uint32_t n);

/* The list of broken inputs as a file for people: `path`, or OUT-bad.jsonl beside the pack when
 * NULL. */
int pen__report_store(const char *out, const char *path, const PenBadList *bad, PenError *reterr);

#endif
