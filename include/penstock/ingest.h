/* SPDX-License-Identifier: Apache-2.0 */
/** @file
 * Packs folders, lists, tar files, folders of frames and videos.
 *
 * A run first writes a plan under NAME.pen/.work: which inputs, in which order, and how many
 * samples a block has. An interrupted run resumes from there when it is started again with the same
 * settings. The same inputs and settings produce the same bytes for any number of threads. The pack
 * becomes visible with one rename at the end. A lock on the directory keeps two runs apart; it ends
 * with the process.
 *
 * Threads may pack to different places at the same time. All calls here block until they end. */
#ifndef PENSTOCK_INGEST_H
#define PENSTOCK_INGEST_H

#include <penstock/pack.h>

#ifdef __cplusplus
extern "C" {
#endif

/** How images are stored. */
typedef enum PenMode {
    PEN_MODE_TILE = 0,   /**< an error: tiles are read, but no longer written */
    PEN_MODE_KEEP = 1,   /**< every file kept as it is, JPEGs with an entry index; the default */
    PEN_MODE_ENCODE = 2, /**< encoded again as JPEG or WebP with the given quality and size */
    PEN_MODE_RAW = 3,    /**< decoded pixels */
    PEN_MODE_MIX = 4,    /**< a share raw, the others as in PEN_MODE_KEEP */
    PEN_MODE_SMART = 5   /**< small images raw, the others as in PEN_MODE_ENCODE */
} PenMode;

/** How to handle a PNG with 16 bits per channel in an image field that is not a mask. */
typedef enum PenSixteenBit {
    PEN_SIXTEEN_REFUSE = 0, /**< as a broken input (PEN_E_UNSUPPORTED); the default */
    PEN_SIXTEEN_REDUCE = 1  /**< loading returns the upper 8 bits */
} PenSixteenBit;

/** What mode keep does with a progressive JPEG, or another one with several scans. Such a file has
 * no entry index, because decoding can start only at its beginning. */
typedef enum PenProgressive {
    PEN_PROGRESSIVE_KEEP = 0,   /**< stores the file as it is; the default */
    PEN_PROGRESSIVE_CONVERT = 1 /**< stores a baseline JPEG with the same pixels and an index; the
                                   file is kept if that is not possible */
} PenProgressive;

/** What images are encoded as. */
typedef enum PenEncoding {
    PEN_ENCODING_JPEG = 0, /**< baseline JPEG, 4:2:0; the default */
    PEN_ENCODING_WEBP = 1  /**< lossy WebP; gray images become RGB */
} PenEncoding;

/** How videos are stored. */
typedef enum PenVideos {
    PEN_VIDEOS_FRAMES = 0, /**< their frames, as JPEGs or as the mode says; the default */
    PEN_VIDEOS_KEEP = 1    /**< each file as it is, with a table of its packets, to be decoded while
                              it is loaded */
} PenVideos;

typedef enum PenPackOrder { PEN_PACK_SHUFFLED = 0, PEN_PACK_SOURCE = 1 } PenPackOrder;

/** What one sample of a folder or a list is. */
typedef enum PenInputKind {
    PEN_INPUT_AUTO = 0,   /**< by the first input: videos by the file name, frames if a list names a
                             folder, otherwise images */
    PEN_INPUT_IMAGES = 1, /**< a sample is a file: an image */
    PEN_INPUT_FRAMES = 2, /**< a sample is a folder: a clip whose frames are the files in it */
    PEN_INPUT_VIDEOS = 3  /**< a sample is a file: a clip, which ffmpeg cuts into frames */
} PenInputKind;

/** Progress of a run. The library owns the struct. */
typedef struct PenIngestProgress {
    /** "wait"; of a plan "list", "check", "sort", "plan" (it is written), "hash", "upload"; then
     * "pack", or of finalise "check" and "join"; "publish" */
    const char *stage;
    uint64_t done, total; /**< samples; total 0 = not known yet */
    uint64_t done_bytes;  /**< source bytes read so far */
    uint64_t bad;         /**< broken inputs so far */
} PenIngestProgress;

typedef struct PenIngestSettings {
    uint32_t n_sources;
    /** A folder, an s3:// prefix of images, .csv or .tsv lists, .tar files (both also as s3://,
     * https:// and http:// URLs) or patterns such as a-{000..017}.tar, or a folder of .gulp and
     * .gmeta files. */
    const char *const *sources;
    const char *out; /**< NAME.pen, or an s3:// URL */
    /** For the URLs of the sources and of the pack; NULL = from the environment. */
    const PenRemoteSettings *remote;
    /** For an s3:// URL: the directory that holds the state of the run. NULL = below the user's
     * cache directory. */
    const char *work;

    int32_t kind; /**< a PenInputKind */
    /** Base directory of the paths in lists, or a URL that the objects in lists are below; NULL =
     * the directory or the prefix of the list. */
    const char *root;
    int32_t allow_outside; /**< 1 = lists may name files outside of the root; default 0 */
    /** Videos: frames to take per second, 0 = all, the default. Frames: frames per second of the
     * source, for their timestamps. */
    double fps;
    uint32_t
        video_seconds; /**< a video that takes longer to decode counts as broken; default 600 */

    int32_t mode;        /**< a PenMode; default PEN_MODE_KEEP */
    int32_t quality;     /**< encode, mix, smart: quality 1 to 100; default 90 */
    uint32_t max_side;   /**< not keep: longest side in pixels; 0 = no limit, the default */
    uint32_t short_side; /**< the same for the shorter side; set at most one of the two */
    double raw_share;    /**< mix: share of raw images, 0 to 1; default 0.25 */
    /** keep with `no_index`: 1 = decode every image to find broken files; default 0. All other
     * packs are always checked. */
    int32_t check_decode;
    int32_t sixteen_bit; /**< a PenSixteenBit */

    int32_t order;            /**< a PenPackOrder */
    uint64_t seed;            /**< of the shuffled order and of `fraction`; default 0 */
    double fraction;          /**< share of each class to pack, more than 0 to 1; default 1 */
    const char *classes_from; /**< a pack whose class numbers to use; NULL = sorted class names */

    int32_t skip_bad; /**< 0 = stop at the first broken input, the default; 1 = leave it out */
    /** With skip_bad: the run stops after more broken inputs than this. The default, UINT64_MAX, is
     * 0.1 % of the inputs and at least 10. */
    uint64_t max_bad;
    /** With skip_bad: the file for the list of broken inputs, in JSON lines. NULL = OUT-bad.jsonl
     * beside the pack. */
    const char *bad_report;

    int32_t threads;        /**< 0 = the cores this process may use, the default */
    uint64_t shard_bytes;   /**< a shard is closed when it reaches this size; default 512 MiB */
    uint64_t block_samples; /**< samples per block; 0 = for blocks of about 4 MiB, the default */
    int32_t append;         /**< 1 = add the inputs whose keys an existing pack does not have */
    uint32_t task, n_tasks; /**< run part `task` of n_tasks; 0 of 0 = all, and publish the pack */

    /** Called every now and then from the calling thread; a return value other than 0 stops the run
     * with PEN_E_CANCELLED. May be NULL. */
    int (*progress)(void *ctx, const PenIngestProgress *progress);
    void *ctx;

    /** keep: 1 = store JPEGs without an entry index, and do not decode images; encode, smart: 1 =
     * JPEGs without an index; default 0. In the other modes, 1 is an error. An entry index lists
     * places of a JPEG at which decoding can start, so that a crop needs a part of the file only.
     */
    int32_t no_index;
    int32_t progressive; /**< keep, without no_index: a PenProgressive */
    /** 1 = an in-place pack: the bytes of images stay in their files, and the pack only refers to
     * them. Needs PEN_MODE_KEEP and a directory as `out`, and takes images: in folders, in lists
     * and in uncompressed tar files, whose samples keep their order. Default 0. */
    int32_t in_place;
    /** How long to wait for another process that writes this pack, or packs the same task. The
     * default, 0, fails at once with PEN_E_BUSY. While it waits, the stage of the progress is
     * "wait". */
    uint32_t wait_seconds;
    int32_t codec; /**< encode, mix, smart: a PenEncoding; default PEN_ENCODING_JPEG */
    /** smart: an image whose pixels take at most this many bytes, after it is resized, is stored
     * raw; default 65,536. */
    uint64_t smart_threshold;
    /** A PenVideos. PEN_VIDEOS_KEEP needs PEN_MODE_KEEP and inputs that are videos. */
    int32_t video;
    /** Folders and prefixes: `n_exclude` patterns of files and folders to leave out, as fnmatch(3)
     * compares them: with a name, or, if they contain a slash, with a path below the source. */
    uint32_t n_exclude;
    const char *const *exclude;
} PenIngestSettings;

/** How many class names a result holds, and the size of each with its NUL. A longer name is cut and
 * ends in "...". */
enum { PEN_FIRST_CLASSES = 8, PEN_CLASS_NAME_BYTES = 64 };

typedef struct PenMissing {
    char field[PEN_CLASS_NAME_BYTES]; /**< name of the field, cut as class names are */
    uint64_t n;                       /**< samples that lack it */
} PenMissing;

/** The number of reasons that a result can hold, and the size of each with its NUL. */
enum { PEN_NO_INDEX_REASONS = 16, PEN_NO_INDEX_BYTES = 32 };

typedef struct PenNoIndex {
    char why[PEN_NO_INDEX_BYTES]; /**< such as "progressive" or "small" */
    uint64_t n;                   /**< JPEGs, including frames of clips */
} PenNoIndex;

typedef struct PenIngestResult {
    int32_t published;  /**< 1 = the pack is visible; 0 for a task or a plan */
    uint8_t id[16];     /**< of the pack, when published */
    uint64_t n_samples; /**< in the pack, or written by the task */
    uint64_t n_added;   /**< by this run and the interrupted runs that it resumed */
    uint64_t n_known;   /**< append: inputs skipped because the pack has their keys */
    uint64_t n_resumed; /**< of n_added, finished by an interrupted run */
    uint64_t n_bad;     /**< broken inputs that were left out */
    uint64_t n_shards, block_samples;
    uint64_t source_disk_bytes; /**< disk space of the sources that this run read */
    uint64_t pack_bytes, pack_disk_bytes;
    PenPackStats stats;
    uint32_t n_classes; /**< classes with names; the first of them follow */
    uint32_t n_missing; /**< fields that some samples lack; entries of `missing` */
    char first_classes[PEN_FIRST_CLASSES][PEN_CLASS_NAME_BYTES];
    PenMissing missing[PEN_FIELD_COUNT];
    uint32_t n_no_index; /**< entries of `no_index` */
    /** JPEGs that this run kept without an entry index because they cannot have one. */
    PenNoIndex no_index[PEN_NO_INDEX_REASONS];
    /** finalise: the pack is published, and this is why what the tasks left could not be removed;
     * pen_ingest_gc with `abandon` removes it. "" = it was removed. */
    char not_removed[256];
    /** Files in folders or prefixes that were left out: by their names they are neither images nor
     * videos, or they are hidden or excluded. Those in hidden and excluded folders do not count.
     * Tasks find none, because they do not read the folders; the plan does. */
    uint64_t n_ignored;
} PenIngestResult;

PEN_API void pen_ingest_settings_init(PenIngestSettings *settings);

/** Writes only the plan, which tasks share: in the directory or at the s3:// URL `out`. Fails with
 * PEN_E_EXISTS if a pack exists and `append` is not set. */
PEN_NODISCARD PEN_API int pen_ingest_plan(const PenIngestSettings *settings, PenIngestResult *ret,
                                          PenError *reterr);

/** Packs, and writes the plan if none exists. With n_tasks > 0 it writes the part of its task and
 * does not publish. If the pack is already published, a task has nothing to do: `published` is 1
 * and the result describes the pack. */
PEN_NODISCARD PEN_API int pen_ingest_run(const PenIngestSettings *settings, PenIngestResult *ret,
                                         PenError *reterr);

/** Joins the parts that all tasks wrote at settings->out, a directory or an s3:// URL, and
 * publishes the pack. It uses the settings `remote`, `work`, `wait_seconds`, `progress` and `ctx`.
 * `n_tasks` is the number of tasks: needed for writers with PEN_TASKS_OPEN (writer.h), otherwise 0
 * or the number that the tasks were started with. All other settings are ignored. */
PEN_NODISCARD PEN_API int pen_ingest_finalise(const PenIngestSettings *settings,
                                              PenIngestResult *ret, PenError *reterr);

typedef struct PenGcResult {
    uint64_t files, bytes; /**< removed */
    uint64_t uploads;      /**< unfinished multipart uploads that were aborted */
} PenGcResult;

/** Removes from the place of a pack what its manifest does not name: the state of interrupted runs,
 * old shards and, in an object store, unfinished uploads. It removes only what penstock created.
 * `remote` and `work` are as in PenIngestSettings. With `abandon` 0 it fails with PEN_E_BUSY if
 * tasks share a plan there. With 1 it removes this plan too, and all that these tasks have written.
 * Tasks that run fail; in a directory this is PEN_E_BUSY until they have ended. */
PEN_NODISCARD PEN_API int pen_ingest_gc(const char *out, const PenRemoteSettings *remote,
                                        const char *work, int abandon, PenGcResult *ret,
                                        PenError *reterr);

/** Returns 1 if the programs ffmpeg and ffprobe, which videos need, are in PATH, and 0 otherwise.
 */
PEN_API int pen_has_ffmpeg(void);

#ifdef __cplusplus
}
#endif
#endif
