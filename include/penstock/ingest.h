/* SPDX-License-Identifier: Apache-2.0 */
/* Packing: folders, lists, tars, frames of video and videos into a pack.
 *
 * A run starts from a plan (which inputs, in which order, how many samples a block has) that it
 * writes under NAME.pen/.work; an interrupted run goes on from there when it is started again with
 * the same settings. The same input and settings give the same bytes for any number of threads. The
 * pack comes into being by one rename at the very end. A lock on the directory keeps two runs apart
 * and dies with the process. */
#ifndef PENSTOCK_INGEST_H
#define PENSTOCK_INGEST_H

#include <penstock/pack.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef enum PenMode {
    PEN_MODE_TILE = 0, /* JPEGs losslessly cut into tiles, all else kept; the default */
    PEN_MODE_KEEP = 1,
    PEN_MODE_ENCODE = 2,
    PEN_MODE_RAW = 3,
    PEN_MODE_MIX = 4 /* a share raw, the rest as in tile */
} PenMode;

/* What to do with a PNG of 16 bits a channel in an image field that is no mask. */
typedef enum PenSixteenBit {
    PEN_SIXTEEN_REFUSE = 0, /* it is a bad input (PEN_E_UNSUPPORTED); the default */
    PEN_SIXTEEN_REDUCE = 1  /* loading it gives the upper 8 bits */
} PenSixteenBit;

typedef enum PenPackOrder { PEN_PACK_SHUFFLED = 0, PEN_PACK_SOURCE = 1 } PenPackOrder;

/* What a sample of a folder or a list is. */
typedef enum PenInputKind {
    PEN_INPUT_AUTO = 0,   /* by the first input: a video by its name, frames when a list names a
                             folder, else images */
    PEN_INPUT_IMAGES = 1, /* a file: an image */
    PEN_INPUT_FRAMES = 2, /* a folder: a clip whose frames are the files in it */
    PEN_INPUT_VIDEOS = 3  /* a file: a clip, cut into frames by the program ffmpeg */
} PenInputKind;

typedef struct PenIngestProgress {
    const char *stage;    /* "plan", "check", "pack", "publish" */
    uint64_t done, total; /* samples; total 0 = not known yet */
    uint64_t done_bytes;  /* of source read so far */
    uint64_t bad;
} PenIngestProgress;

typedef struct PenIngestSettings {
    uint32_t struct_size; /* set by the init call */
    uint32_t n_sources;
    const char *const *sources;      /* a folder, .csv or .tsv lists, .tar files or patterns
                                        a-{000..017}.tar, a      folder of .gulp and .gmeta files */
    const char *out;                 /* NAME.pen, or an s3:// address */
    const PenRemoteSettings *remote; /* of such an address; NULL = as the environment says */
    const char *work; /* for such an address: where the work under way is kept; NULL = in the user's
                       * cache */

    int32_t kind;          /* a PenInputKind */
    const char *root;      /* what the paths of lists start from; NULL = the folder of the list */
    int32_t allow_outside; /* 1: lists may name files that do not lie below it; default 0 */
    double fps; /* of videos: frames to take a second, 0 = all, the default; of frames: how many a
                   second has, for their timestamps */
    uint32_t video_seconds; /* a video that takes longer counts as broken; default 600 */

    int32_t mode;         /* a PenMode */
    int32_t quality;      /* of encode: 1-100, default 90 */
    uint32_t max_side;    /* of encode, raw, mix: shrink to this; 0 = leave, the default */
    uint32_t short_side;  /* the same for the shorter side; at most one of the two */
    double raw_share;     /* of mix: 0 to 1, default 0.25 */
    int32_t check_decode; /* of keep: decode everything to find broken files; default 0 */
    int32_t sixteen_bit;  /* a PenSixteenBit */

    int32_t order;   /* a PenPackOrder */
    uint64_t seed;   /* of the shuffled order and of fraction; default 0 */
    double fraction; /* of each class; default 1 */
    const char
        *classes_from; /* take the class numbers of this pack; NULL = from the sorted names */

    int32_t skip_bad; /* 0 = stop at the first broken input, the default */
    uint64_t max_bad; /* with skip_bad: more than this many stop the run; default 0.1 % of inputs,
                         at least 10 */
    const char *bad_report; /* with skip_bad: JSON lines of what was left out; NULL = OUT-bad.jsonl
                               beside the pack */

    int32_t threads;        /* 0 = the cores this process may use, the default */
    uint64_t shard_bytes;   /* default 512 MiB: a shard is closed when it reaches this */
    uint64_t block_samples; /* 0 = chosen for blocks of about 4 MiB, the default */
    int32_t append;         /* add what an existing pack does not have yet */
    uint32_t task,
        n_tasks; /* this run does part `task` of n_tasks; 0 of 0 = all of it, and publishes */

    /* Called now and then from the calling thread; non-zero stops with PEN_E_CANCELLED. May be
     * NULL. */
    int (*progress)(void *ctx, const PenIngestProgress *progress);
    void *ctx;
} PenIngestSettings;

/* How many class names a result carries, and how long they may be with the NUL; longer ones end in
 * "...". */
enum { PEN_FIRST_CLASSES = 8, PEN_CLASS_NAME_BYTES = 64 };

typedef struct PenMissing {
    char field[PEN_CLASS_NAME_BYTES]; /* its name, cut as those of classes are */
    uint64_t n;                       /* samples that lack it */
} PenMissing;

typedef struct PenIngestResult {
    uint64_t n_samples; /* in the pack, or written by the task */
    uint64_t n_added;   /* by this run (and the interrupted ones it went on from) */
    uint64_t n_known;   /* append: inputs left out because their key is there already */
    uint64_t n_resumed; /* of n_added, found finished from an interrupted run */
    uint64_t n_bad;
    uint64_t n_shards, block_samples;
    uint64_t source_disk_bytes; /* what the sources read by this run take on disk */
    uint64_t pack_bytes, pack_disk_bytes;
    PenPackStats stats;
    uint32_t n_classes; /* that have names */
    char first_classes[PEN_FIRST_CLASSES][PEN_CLASS_NAME_BYTES];
    uint32_t n_missing;                  /* fields that some samples lack */
    PenMissing missing[PEN_FIELD_COUNT]; /* n_missing of them */
    int32_t published;                   /* 0 for a task */
    uint8_t id[16];                      /* of the pack, when published */
} PenIngestResult;

PEN_API void pen_ingest_settings_init(PenIngestSettings *settings);

/* Makes the plan only, for tasks to share. PEN_E_EXISTS when there is a pack and `append` is not
 * set. */
PEN_NODISCARD PEN_API int pen_ingest_plan(const PenIngestSettings *settings, PenIngestResult *ret,
                                          PenError *reterr);

/* Packs; makes the plan when there is none. With n_tasks > 0 it writes its part and does not
 * publish. */
PEN_NODISCARD PEN_API int pen_ingest_run(const PenIngestSettings *settings, PenIngestResult *ret,
                                         PenError *reterr);

/* Joins what all tasks have written and publishes. */
PEN_NODISCARD PEN_API int pen_ingest_finalise(const char *out, PenIngestResult *ret,
                                              PenError *reterr);

typedef struct PenGcResult {
    uint64_t files, bytes; /* removed */
    uint64_t uploads;      /* given up */
} PenGcResult;

/* Removes from the directory of a pack what no manifest names: work of interrupted runs, shards of
 * old states. Touches nothing that penstock did not make. */
PEN_NODISCARD PEN_API int pen_ingest_gc(const char *out, PenGcResult *ret, PenError *reterr);
/* The same in an object store, with uploads that were left. `remote` and `work` as in
 * PenIngestSettings. */
PEN_NODISCARD PEN_API int pen_ingest_gc_at(const char *out, const PenRemoteSettings *remote,
                                           const char *work, PenGcResult *ret, PenError *reterr);

#ifdef __cplusplus
}
#endif
#endif
