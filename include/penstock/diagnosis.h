/* SPDX-License-Identifier: Apache-2.0 */
/** @file
 * Decides what limits the speed of a loader, and what to change. The decision follows from the
 * counters alone, by the rules of docs/reference/counters.md; `penstock top`, `penstock bench`,
 * `penstock doctor` and Python share it. Rates that were measured for each stage make the predicted
 * gains better. */
#ifndef PENSTOCK_DIAGNOSIS_H
#define PENSTOCK_DIAGNOSIS_H

#include <penstock/bench.h>

#ifdef __cplusplus
extern "C" {
#endif

/** What is known about a run besides its counters. 0 = not known, for each member. */
typedef struct PenRunFacts {
    uint32_t cores;              /**< for all loading processes of this machine */
    const PenLoaderStats *since; /**< if not NULL, only what was counted after these counts */
    const PenStages *stages;     /**< measured rates of the stages; may be NULL */
    double cpu_seconds;          /**< CPU time of the process during the run */
    double transform_seconds;    /**< the caller's, on functions that change each batch */
    uint64_t throttles;          /**< responses of the store that asked to slow down */
    uint64_t pack_bytes;         /**< size of the pack */
    uint64_t memory_bytes;       /**< memory of this machine that is free for the pack */
    int32_t is_remote;           /**< 1 = the pack is read from an object store */
    int32_t has_cache;           /**< 1 = the pack has a cache */
    int32_t is_preloaded;        /**< 1 = the pack is in memory: pen_pack_preload */
} PenRunFacts;

PEN_API void pen_run_facts_init(PenRunFacts *facts);

/** Fills in what the loader knows about its pack and this machine: cores, pack_bytes, memory_bytes,
 * is_remote, has_cache, is_preloaded; and the throttles of the pack since it was opened. */
PEN_NODISCARD PEN_API int pen_run_facts_of(const PenLoader *loader, PenRunFacts *facts,
                                           PenError *reterr);

/** How fast a stage is if its threads do nothing else. */
typedef struct PenDiagnosisStage {
    const char *name;  /**< "decode"; static */
    double per_second; /**< samples */
    double ratio;      /**< per_second, divided by that of the bottleneck */
} PenDiagnosisStage;

#define PEN_ADVICE_TEXT 256

/** One thing to change. */
typedef struct PenAdvice {
    const char *change;         /**< "threads"; static; docs/reference/counters.md lists them */
    double per_second;          /**< samples per second that are expected then */
    double gain;                /**< per_second, divided by that of the run */
    char text[PEN_ADVICE_TEXT]; /**< a sentence */
} PenAdvice;

enum { PEN_DIAGNOSIS_STAGES = 16, PEN_DIAGNOSIS_ADVICES = 16 };

typedef struct PenDiagnosis {
    uint32_t n_stages;      /**< of `stages` */
    uint32_t n_advices;     /**< of `advices` */
    const char *bottleneck; /**< "decode", as docs/reference/counters.md lists them; static */
    const char *second;     /**< if it is not clear: the other candidate; otherwise NULL */
    double per_second;      /**< samples per second of the run */
    double wait_share;      /**< of the time, the caller waited for batches */
    PenDiagnosisStage stages[PEN_DIAGNOSIS_STAGES];
    PenAdvice advices[PEN_DIAGNOSIS_ADVICES]; /**< the largest gain first */
} PenDiagnosis;

/** Decides what the bottleneck of a run is. `facts` may be NULL. It measures nothing. */
PEN_NODISCARD PEN_API int pen_diagnose(const PenLoaderStats *stats, const PenRunFacts *facts,
                                       PenDiagnosis *ret, PenError *reterr);

/** Writes the diagnosis for people, in lines of at most 80 columns, as snprintf does: returns the
 * bytes of the complete text, without its end. */
PEN_API size_t pen_diagnosis_text(const PenDiagnosis *diagnosis, char *buf, size_t bytes);

#ifdef __cplusplus
}
#endif
#endif
