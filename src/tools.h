/* SPDX-License-Identifier: Apache-2.0 */
/* What the library has for the program and the Python package alone. This header is not installed,
 * and the shared library does not export what it declares. */
#ifndef PEN_TOOLS_H
#define PEN_TOOLS_H

#include <penstock/loader.h>

/* ---- counters -------------------------------------------------------------------------------- */

/* The counters by number, for programs that print all of them. Returns the name of a counter:
 * "wait_seconds", as docs/reference/counters.md lists them; NULL after the last one. */
const char *pen_stat_name(int stat);
/* Returns whether a counter is a whole number. */
int pen_stat_is_count(int stat);
/* Returns the value of a counter; times are in seconds. */
double pen_stat_value(const PenLoaderStats *stats, int stat);

/* Returns the instruction set that the kernels use: "avx2". The text is static. */
const char *pen_cpu_tier(void);
/* Returns how many cores this process may use, by its affinity mask and its cgroup. */
unsigned pen_cpu_cores(void);

/* ---- measuring ------------------------------------------------------------------------------- */

/* Rates in samples per second, of a loader that fetches, reads and checks samples, and does not
 * decode them. 0 = not measured. */
typedef struct PenMeasured {
    uint32_t short_side; /* a little more than the shorter side of the result; 0 = not known */
    double read;         /* of a local pack, from the page cache */
    double read_cold;    /* samples of a local pack that are not in the page cache */
    double read_half;    /* read_cold, or `read` if remote, with half of the reading threads */
    double copy_bytes;   /* bytes per second that all decoding threads together copy in memory */
    double raw_ratio;    /* bytes to read if the images were stored as pixels; 1 = as many as now */
    double area_ratio;   /* pixels if the images had a shorter side of short_side; 1 = as many */
} PenMeasured;

/* Takes about `seconds` for each rate, with the threads, order and pipeline of the settings. To
 * measure a disk, it drops blocks of a local pack from the page cache: up to 256 MiB, but at least
 * one block. The call blocks; other threads may use the pack meanwhile. */
PEN_NODISCARD int pen_measure(PenPack *pack, const PenLoaderSettings *settings, double seconds,
                              PenMeasured *ret, PenError *reterr);

/* ---- diagnosis ------------------------------------------------------------------------------- */

/* Decides what limits the speed of a loader, and what to change. The decision follows from the
 * counters alone, by the rules of docs/reference/counters.md; `penstock top`,
 * `penstock doctor` and Python share it. What pen_measure measures makes the predicted gains
 * better. */

/* Returns what limits the speed, as the counters show it: "consumer", "fetch", "read", "verify",
 * "decode", "resample", "store", "memory", or "unknown" if they do not show it. The counters of a
 * few seconds are enough. */
const char *pen_loader_bottleneck(const PenLoaderStats *stats);

/* What is known about a run besides its counters. 0 = not known, for each member. */
typedef struct PenRunFacts {
    uint32_t cores;              /* for all loading processes of this machine */
    const PenLoaderStats *since; /* if not NULL, only what was counted after these counts */
    const PenMeasured *measured; /* what was measured besides; may be NULL */
    double cpu_seconds;          /* CPU time of the process during the run */
    double transform_seconds;    /* the caller's, on functions that change each batch */
    uint64_t throttles;          /* responses of the store that asked to slow down */
    uint64_t pack_bytes;         /* size of the pack */
    uint64_t memory_bytes;       /* memory of this machine that is free for the pack */
    int32_t is_remote;           /* 1 = the pack is read from an object store */
    int32_t has_cache;           /* 1 = the pack has a cache */
    int32_t is_preloaded;        /* 1 = the pack is in memory: pen_pack_preload */
} PenRunFacts;

/* What the loader knows about its pack and this machine: cores, pack_bytes, memory_bytes,
 * is_remote, has_cache, is_preloaded; and the throttles of the pack since it was opened. */
void pen_run_facts_of(const PenLoader *loader, PenRunFacts *ret);

/* How fast a stage is if its threads do nothing else. */
typedef struct PenDiagnosisStage {
    const char *name;  /* "decode"; static */
    double per_second; /* samples */
    double ratio;      /* per_second, divided by that of the bottleneck */
} PenDiagnosisStage;

#define PEN_ADVICE_TEXT 256

/* One thing to change. */
typedef struct PenAdvice {
    const char *change;         /* "threads"; static; docs/reference/counters.md lists them */
    double per_second;          /* samples per second that are expected then */
    double gain;                /* per_second, divided by that of the run */
    char text[PEN_ADVICE_TEXT]; /* a sentence */
} PenAdvice;

enum { PEN_DIAGNOSIS_STAGES = 16, PEN_DIAGNOSIS_ADVICES = 16 };

typedef struct PenDiagnosis {
    uint32_t n_stages;      /* of `stages` */
    uint32_t n_advices;     /* of `advices` */
    const char *bottleneck; /* "decode", as docs/reference/counters.md lists them; static */
    const char *second;     /* if it is not clear: the other candidate; otherwise NULL */
    const char *note;       /* if there is no advice: a sentence that tells why; static */
    double per_second;      /* samples per second of the run */
    double wait_share;      /* of the time, the caller waited for batches */
    PenDiagnosisStage stages[PEN_DIAGNOSIS_STAGES];
    PenAdvice advices[PEN_DIAGNOSIS_ADVICES]; /* the largest gain first */
} PenDiagnosis;

/* Decides what the bottleneck of a run is. `facts` may be NULL. It measures nothing. */
void pen_diagnose(const PenLoaderStats *stats, const PenRunFacts *facts, PenDiagnosis *ret);

/* ---- running loaders ------------------------------------------------------------------------- */

/* A loader writes its counters to memory that processes of the same user can read: with its first
 * batch, and then at most ten times a second while batches are requested from it. The kernel owns
 * the memory and frees it when the process ends. Reading it does not affect the loader. A process
 * with PENSTOCK_TOP=0 in its environment shows no loaders. Processes find each other within one
 * network namespace and one PID namespace. */

/* The loaders that were found at one moment. One thread at a time may use it. */
typedef struct PenLoaderList PenLoaderList;

typedef struct PenRunningLoader {
    int32_t process;
    uint32_t rank, world;
    uint64_t epoch, batch, batches; /* batches delivered in this pass, and all of it */
    uint64_t memory_limit_bytes;    /* memory_bytes of the settings */
    uint32_t requests_in_flight;
    uint64_t cache_hits, cache_misses; /* blocks; of the pack since it was opened */
    uint64_t age_ns;                   /* time since the counters were written */
    /* Path or URL, valid until the list is closed. Of one with 1,024 bytes or more, the end. */
    const char *pack;
} PenRunningLoader;

/* Finds the loaders. They are sorted by pack, number of ranks, rank and process. */
PEN_NODISCARD int pen_loader_list_open(PenLoaderList **ret_list, PenError *reterr);
void pen_loader_list_close(PenLoaderList **list);

/* Returns the i-th loader; PEN_END after the last. */
PEN_NODISCARD int pen_loader_list_get(const PenLoaderList *list, uint64_t i, PenRunningLoader *ret);

/* Returns the counters of the i-th loader, of the last one or two seconds before they were
 * written, or longer if a batch takes longer: ns_elapsed is the time. Slots and memory are those of
 * then. Percentiles and maxima are 0. PEN_END after the last. */
PEN_NODISCARD int pen_loader_list_stats(const PenLoaderList *list, uint64_t i, PenLoaderStats *ret);

/* ---- images of a pack ------------------------------------------------------------------------ */

/* Measures the images of a pack: JPEG quality, sampling, sizes, and the statistics of the pixels.
 * Several calls may run at the same time, on one pack or on several. */

/* What was found in one image, or one frame of a clip. */
typedef struct PenImageAnalysis {
    uint32_t field, frame;
    uint32_t width, height; /* as stored, before the orientation is applied */
    uint64_t sample;
    const void *key; /* of the sample; valid until the callback returns */
    size_t key_bytes;
    uint64_t bytes;      /* in the pack */
    int32_t codec;       /* PEN_STORED_* */
    int32_t quality;     /* of a JPEG: 1 to 100, from its quantization tables; 0 = unknown */
    int32_t progressive; /* 1 = a progressive JPEG */
    uint32_t channels;   /* of the pixels: 1, 3 or 4 */
    char sampling[8];    /* of a JPEG: "gray", "4:2:0" or the like, or "other"; "" = no JPEG */
    /* Of the values 0 to 255 of each channel: mean and standard deviation. Alpha has none. */
    double mean[3], deviation[3];
} PenImageAnalysis;

/* Initialize it with zeros. */
typedef struct PenAnalyseSettings {
    int32_t threads; /* 0 = the cores this process may use, the default */
    /* Called for every image in the order of the samples, from any thread but one call at a time.
     * A return value other than 0 stops the analysis with PEN_E_CANCELLED. */
    int (*image)(void *ctx, const PenImageAnalysis *image);
    void *ctx; /* for the callbacks */
    /* Called in the same way for an image that is damaged; the analysis continues. May be NULL. */
    void (*problem)(void *ctx, const PenError *error);
    /* Called every now and then from the calling thread; a return value other than 0 stops the
     * analysis with PEN_E_CANCELLED. May be NULL. */
    int (*progress)(void *ctx, uint64_t done_samples, uint64_t total_samples);
} PenAnalyseSettings;

typedef struct PenAnalyseResult {
    uint64_t samples;  /* that were read */
    uint64_t images;   /* that were measured */
    uint64_t problems; /* images that are damaged */
} PenAnalyseResult;

/* Decodes every image of the pack, except masks. A damaged image is no failure: `problem` gets
 * it. */
PEN_NODISCARD int pen_pack_analyse(PenPack *pack, const PenAnalyseSettings *settings,
                                   PenAnalyseResult *ret, PenError *reterr);

#endif
