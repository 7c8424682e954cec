/* SPDX-License-Identifier: Apache-2.0 */
/** @file
 * Loads batches.
 *
 * One thread at a time may call the functions of a loader, apart from pen_loader_get; any thread
 * may release batches. A loader starts its own threads with its first pass.
 *
 * The order of the samples is a function of the pack, the order, the shuffle buffer, the seed, the
 * epoch and the choice of samples (subset, weights, frames, mixture), and of nothing else: not of
 * the batch size, threads, memory, ranks, a cache, or where the pack is. With buckets and with a
 * token budget it also depends on the size of a global batch: batch size times ranks. Ranks share
 * each global batch; which of them has which of its samples depends on their number. What a sample
 * becomes depends on its number, the pipeline, the seed and the epoch. */
#ifndef PENSTOCK_LOADER_H
#define PENSTOCK_LOADER_H

#include <stddef.h>
#include <stdint.h>

#include <penstock/error.h>
#include <penstock/ops.h>
#include <penstock/pack.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct PenLoader PenLoader;

typedef enum PenDtype {
    PEN_U8 = 1,
    PEN_F16 = 2,
    PEN_BF16 = 3,
    PEN_F32 = 4,
    PEN_F64 = 5,
    PEN_I64 = 6,
    PEN_BOOL = 7 /**< a byte, 0 or 1 */
} PenDtype;
PEN_API const char *pen_dtype_name(int dtype); /**< "u8"; static */
PEN_API size_t pen_dtype_bytes(int dtype);     /**< bytes of one element */

#define PEN_TENSOR_DIMS 6

/** A dense tensor, in row-major order. */
typedef struct PenTensor {
    void *data;
    int32_t dtype; /**< a PenDtype */
    uint32_t n_dims;
    int64_t shape[PEN_TENSOR_DIMS];
    /** 1 = images, the last dimension is the channels; 2 = clips, as 1 with time before height */
    int32_t channels_last;
} PenTensor;

/** A field whose values have any length. */
enum {
    PEN_LIST_NONE = 0,   /**< the field is a tensor */
    PEN_LIST_TEXT = 1,   /**< UTF-8 */
    PEN_LIST_JSON = 2,   /**< UTF-8 that should be JSON; the library does not parse it */
    PEN_LIST_BYTES = 3,  /**< any bytes */
    PEN_LIST_KEY = 4,    /**< keys of the samples, usually UTF-8 */
    PEN_LIST_RAGGED = 5, /**< rows of numbers */
    PEN_LIST_IMAGES = 6  /**< images of different sizes */
};

/** The values of a field in a batch, one after another in the order of the samples, as Arrow's
 * large_binary, large_utf8 and large_list have them. They are the `data` of the field's tensor,
 * whose first dimension is the bytes or rows of all values; value i is [offsets[i], offsets[i + 1])
 * of it. The tensor of PEN_LIST_RAGGED has the type and the further dimensions of the field, that
 * of other lists is of type u8.
 *
 * Images stay where they were decoded. The tensor of PEN_LIST_IMAGES has the shape of
 * pen_loader_field_tensor, with -1 for height and width; those of image i are row i of the next
 * field, NAME_sizes. Image i is dense and begins at element offsets[i] of `data`, which is a
 * multiple of 64 bytes. What lies between two images is undefined. */
typedef struct PenList {
    int32_t kind;            /**< PEN_LIST_*; for PEN_LIST_NONE all other members are 0 */
    const int64_t *offsets;  /**< n_samples + 1; the first one is 0 */
    const uint8_t *validity; /**< bit i % 8 of byte i / 8 is 0: the sample lacks the value */
} PenList;

/** A batch in the memory of the loader. It is valid until its last reference is released with
 * pen_batch_unref; the loader then fills the memory again. */
typedef struct PenBatch {
    uint32_t n_samples; /**< the batch size; fewer, or 0, in a short last batch */
    uint64_t epoch;
    uint64_t position; /**< of its first sample in the order of the epoch, over all ranks */
    uint32_t n_valid;  /**< n_samples without those that only pad the last batch */
    uint32_t n_fields;
    uint32_t n_substituted;  /**< samples that replace broken ones */
    const PenTensor *fields; /**< n_fields tensors */
    const uint64_t *samples; /**< numbers of the samples in the pack, n_samples of them */
    const uint8_t *valid;    /**< for each sample: 0 = repeated to pad the last batch */
    void *memory; /**< holds all tensors; a slot of the ring has the same address every time */
    size_t memory_bytes;
    const PenList *lists; /**< n_fields of them; NULL if all fields are tensors */
    /** For each sample: how often the epoch has it before this entry of the subset, which the
     * random draws depend on; of a mixture, a number that differs for each epoch of each source.
     * NULL if no sample is in an epoch twice. */
    const uint64_t *ordinals;
    /** Number of the bucket that all its samples are in, or of the length of its step; 0 without
     * buckets and lengths. */
    uint32_t bucket;
} PenBatch;

/** The size that images of a bucket are made to. */
typedef struct PenBucketSize {
    uint32_t height, width;
} PenBucketSize;

/** Sequential: as stored. Random: all samples are mixed at once; from an object store each is a
 * request. Shuffle: the samples of many blocks from all over the pack are mixed, as many as
 * shuffle_buffer, so that blocks are read with large requests; a pack that is not larger is mixed
 * at once. Sticky: as shuffle, but a rank has the same blocks in every epoch, so that the cache of
 * a node is used again; exactly so if the number of ranks divides half the blocks in the buffer. */
enum {
    PEN_ORDER_SEQUENTIAL = 0,
    PEN_ORDER_RANDOM = 1,
    PEN_ORDER_SHUFFLE = 2,
    PEN_ORDER_STICKY = 3
};
/** What becomes of the last step of an epoch if its samples do not fill the batches of all ranks;
 * with buckets, of the last step of each bucket. The number of steps is the same for every rank.
 * Short: the samples are divided so that the batches of the ranks differ by at most one sample; a
 * batch may have no sample. Pad: repeated samples fill the batches. Drop: the step is left out.
 * Auto: pad if the order is not sequential and there are several ranks; else short. The order of
 * the samples does not depend on it. */
enum { PEN_LAST_AUTO = 0, PEN_LAST_SHORT = 1, PEN_LAST_PAD = 2, PEN_LAST_DROP = 3 };
/** For a broken sample: fail, or load another sample in its place. */
enum { PEN_BAD_RAISE = 0, PEN_BAD_SUBSTITUTE = 1 };

typedef struct PenLoaderSettings {
    uint32_t batch_size; /**< samples per batch of this rank; default 256 */
    /** See ops.h. NULL, the default: the first image field, or if there is none the first clip
     * field, with the field "label"; if there is neither, all numeric fields. Images are as they
     * are stored: a list, if their sizes differ. The size of each is read when the loader opens. */
    const char *pipeline;
    int32_t order;        /**< PEN_ORDER_*; default PEN_ORDER_SEQUENTIAL */
    int32_t last_batch;   /**< PEN_LAST_*; default PEN_LAST_AUTO */
    uint64_t seed;        /**< of the order and of random operations; default 0 */
    uint32_t rank, world; /**< default 0 of 1 */
    /** Loading processes on this machine, which share its cores and its memory. 0, the default =
     * LOCAL_WORLD_SIZE of torchrun; in a Slurm task SLURM_STEP_TASKS_PER_NODE or
     * SLURM_NTASKS_PER_NODE; otherwise 1. */
    uint32_t node_ranks;
    /** Threads that decode. 0, the default = the cores that this process is bound to, if they are
     * fewer than the machine has; otherwise an equal share of all cores. */
    int32_t threads;
    int32_t io_threads; /**< threads that read; 0 = chosen by the library, the default */
    uint32_t prefetch;  /**< batches that are loaded in advance; 0 = chosen, the default */
    /** For PEN_ORDER_SHUFFLE and PEN_ORDER_STICKY: samples that are mixed, rounded up to 3 * 2^k
     * blocks. 0, the default = as many as 1 GiB of the pack holds, at least 3,072; of kept videos
     * all. */
    uint64_t shuffle_buffer;
    uint64_t memory_bytes; /**< limit for batches, prefetched blocks and scratch; default 2 GiB */
    int32_t on_bad;        /**< PEN_BAD_*; default PEN_BAD_RAISE */
    uint32_t stall_ms;     /**< longest wait for a batch; default 300,000 */
    int32_t keep_slots;    /**< 1 = keep the memory of batches until the loader is closed, for
                              pinning; default 0 */
    uint64_t max_bad;      /**< substitutions in an epoch before the loader fails; default 100 */
    /** Load only these samples: a list, which the library copies, or [first, first + count) if
     * count is not 0. A list may contain a sample several times; random operations then draw
     * different values for each occurrence. */
    const uint64_t *subset;
    uint64_t n_subset;
    uint64_t first, count;
    /** How often each of these samples is in an epoch: one number of 0 or more for each, which the
     * library copies. An epoch has as many samples as without weights, and sample i floor(x) or
     * ceil(x) times, where x is their number times weight i, divided by the sum of the weights.
     * Random operations draw different values for each occurrence. NULL, the default: once. */
    const double *weights;
    uint64_t n_weights;
    /** Batches of several sizes, at most 255, which the library copies: all samples of a batch are
     * in one bucket, and so are the batches of all ranks in a step. In the pipeline, `bucket` is
     * its size: 'cover bucket'. NULL, the default: none. */
    const PenBucketSize *buckets;
    uint32_t n_buckets;
    /** The bucket of each of these samples. NULL, the default: the one whose aspect ratio is
     * nearest to that of the upright image, and of several the nearest in area. */
    const uint8_t *bucket_of;
    uint64_t n_bucket_of;
    /** A token budget instead of batch_size: every step has one of these lengths, and its batch
     * tokens / length samples of this rank. All ranks have the same length in a step. Every
     * n_lengths steps have each of them once, in an order by the seed; at most 64, which the
     * library copies, and which may be equal. In the pipeline, 'patches 16' has so many patches. 0
     * and NULL, the default: none. */
    uint32_t tokens;
    uint32_t n_lengths;
    const uint32_t *lengths;
    /** Samples that are frames: how many frames each of these samples has, at most 2^32 - 1, which
     * the library copies. An epoch has every frame once, and 'clip' and 'ragged' with `at` count
     * from it. Random operations draw different values for each frame. NULL, the default: none. */
    const uint64_t *frames;
    uint64_t n_frames;
} PenLoaderSettings;

PEN_API void pen_loader_settings_init(PenLoaderSettings *settings);

/** Checks the settings and prepares a loader. It reads no shard, except the sizes of images for
 * buckets and where there is no pipeline. The loader holds its own reference to the pack, so the
 * caller may close the pack. */
PEN_NODISCARD PEN_API int pen_loader_open(PenPack *pack, const PenLoaderSettings *settings,
                                          PenLoader **ret_loader, PenError *reterr);
/** Stops the threads and releases the loader. Batches that the caller holds stay valid until they
 * are released. */
PEN_API void pen_loader_close(PenLoader **loader);

PEN_API uint64_t pen_loader_len(const PenLoader *loader); /**< batches per epoch, of every rank */
PEN_API uint64_t pen_loader_samples(const PenLoader *loader); /**< per epoch, over all ranks */
/** PEN_LAST_* of this loader; never PEN_LAST_AUTO. */
PEN_API int pen_loader_last_batch(const PenLoader *loader);
/** Samples that PEN_LAST_DROP leaves out of the current or next epoch, over all ranks. */
PEN_API uint64_t pen_loader_dropped(const PenLoader *loader);
PEN_API uint64_t pen_loader_epoch(const PenLoader *loader); /**< the current or the next epoch */
/** Returns the pipeline in its full form. The text is valid until the loader is closed. */
PEN_API const char *pen_loader_pipeline(const PenLoader *loader);
/** Returns a warning about settings that are allowed but probably a mistake, such as boxes that do
 * not follow a crop: one line, valid until the loader is closed, or NULL. */
PEN_API const char *pen_loader_warning(const PenLoader *loader);
PEN_API uint32_t pen_loader_fields(const PenLoader *loader); /**< number of fields in a batch */
/** Returns the name of a field, valid until the loader is closed; NULL if there is no such field
 * number. */
PEN_API const char *pen_loader_field_name(const PenLoader *loader, uint32_t field);
/** Returns the shape and type of a field in every full batch; `data` is NULL. The length of a list
 * is -1: it differs from batch to batch. So do the height and the width of images of different
 * sizes, padded or in a list, and of images that have the size of a bucket. */
PEN_API PenTensor pen_loader_field_tensor(const PenLoader *loader, uint32_t field);
/** Returns whether a field is a list: a PEN_LIST_*. */
PEN_API int pen_loader_field_list(const PenLoader *loader, uint32_t field);

/** Sets the epoch of the next pass, 0 to 2^63 - 1. A pass that has begun and delivered no batch
 * changes to this epoch. After pen_loader_restore, the restored epoch keeps the position. */
PEN_NODISCARD PEN_API int pen_loader_set_epoch(PenLoader *loader, uint64_t epoch, PenError *reterr);
/** Begins a pass over an epoch: at the restored position; or at the start of the epoch that was
 * set; or at the start of the next epoch, if a pass was begun before. Undelivered batches of an
 * earlier pass are discarded. */
PEN_NODISCARD PEN_API int pen_loader_begin(PenLoader *loader, PenError *reterr);
/** Returns PEN_OK and the next batch, which the caller releases with pen_batch_unref; PEN_END at
 * the end of the pass; or an error. Waits at most timeout_ms (< 0: the stall_ms of the settings),
 * then fails with PEN_E_TIMEOUT, and the call may be repeated. After another error the next call
 * continues after the batch that failed. */
PEN_NODISCARD PEN_API int pen_loader_next(PenLoader *loader, int timeout_ms, PenBatch **ret_batch,
                                          PenError *reterr);
/** As pen_loader_next, but the batch does not count as delivered: it stays the next one, and
 * pen_loader_save does not include it. pen_loader_next then returns it without waiting. So a
 * program that is interrupted while it converts a batch neither loses it nor reads it again. */
PEN_NODISCARD PEN_API int pen_loader_peek(PenLoader *loader, int timeout_ms, PenBatch **ret_batch,
                                          PenError *reterr);
/** Returns one sample by its number, as a batch of one: number `index` of the subset, or of the
 * pack, with the values that it has in this epoch; of a mixture, the sample at position `index`.
 * The loader must have a batch_size of 1. The call reads and decodes on the calling thread and
 * starts no other. Any number of threads may call it at once, also during a pass. Its memory is
 * apart from memory_bytes, and stays valid after the loader is closed. With PEN_BAD_SUBSTITUTE,
 * n_substituted is 1 for a broken sample; max_bad is not used. */
PEN_NODISCARD PEN_API int pen_loader_get(PenLoader *loader, uint64_t epoch, uint64_t index,
                                         PenBatch **ret_batch, PenError *reterr);
/** Adds a reference and returns the batch. Any thread may call it. */
PEN_API PenBatch *pen_batch_ref(PenBatch *batch);
/** Releases a reference and sets *batch to NULL; accepts NULL. Any thread may call it. */
PEN_API void pen_batch_unref(PenBatch **batch);

#define PEN_STATE_BYTES 512

/** Writes the position as one line of text, "key=value ...", which is the same on every rank. `buf`
 * has PEN_STATE_BYTES bytes. A batch counts as delivered when pen_loader_next has returned it. */
PEN_NODISCARD PEN_API int pen_loader_save(const PenLoader *loader, char *buf, PenError *reterr);
/** Continues at a saved position with the next pass. Fails if the state is of another pack,
 * pipeline, subset or seed, unless `strict` is 0. */
PEN_NODISCARD PEN_API int pen_loader_restore(PenLoader *loader, const char *text, int strict,
                                             PenError *reterr);

/** The stages of loading, each on the time of the threads that run it. */
enum {
    PEN_LOAD_STAGE_FETCH = 0,    /**< request blocks of a remote pack, receive and check them */
    PEN_LOAD_STAGE_READ = 1,     /**< find samples and read them */
    PEN_LOAD_STAGE_VERIFY = 2,   /**< compute checksums of samples */
    PEN_LOAD_STAGE_DECODE = 3,   /**< decode images */
    PEN_LOAD_STAGE_RESAMPLE = 4, /**< resize, and all operations on decoded pixels */
    PEN_LOAD_STAGE_STORE = 5,    /**< convert pixels and store them in the batch */
    PEN_LOAD_STAGE_COUNT = 6
};

#define PEN_WAIT_BUCKETS 28

/** Counters of a loader: of an epoch, or since it was opened. */
typedef struct PenLoaderStats {
    uint32_t threads, io_threads;
    uint32_t node_ranks; /**< processes that share the cores of this machine */
    uint32_t slots, slots_ready, slots_leased; /**< of the ring: all, filled, held by the caller */
    uint64_t batches, samples;                 /**< delivered */
    uint64_t substituted;                      /**< broken samples that were replaced */
    uint64_t bytes_read;                       /**< from the pack */
    uint64_t ns_wait;                          /**< time the caller waited for batches */
    uint64_t memory_bytes; /**< held now: ring, prefetched blocks, scratch, indexes */
    uint64_t memory_peak_bytes;
    uint64_t slots_limit; /**< slots that fit in memory_bytes of the settings */
    /** How long the caller waited for a batch; times are rounded up by an eighth at most. */
    uint64_t wait_p50_ns, wait_p95_ns, wait_p99_ns, wait_max_ns;
    /** How many waits took at most 2^i microseconds, but more than 2^(i-1); the last bucket has all
     * longer ones. */
    uint64_t wait_buckets[PEN_WAIT_BUCKETS];
    double ready_mean;          /**< batches that were ready when the caller asked for one */
    uint32_t samples_ready;     /**< now: samples that were read and wait to be decoded */
    uint32_t io_threads_wanted; /**< io_threads that there would be with more memory */
    /** The time of all threads in each stage. How it divides between read and verify, and between
     * decode, resample and store, is measured on one sample in 31. */
    uint64_t stage_ns[PEN_LOAD_STAGE_COUNT];
    /** The time that threads waited: for blocks to fetch, samples to read, samples to decode; and
     * that readers waited for memory. */
    uint64_t ns_fetch_idle, ns_read_idle, ns_decode_idle, ns_memory_wait;
    uint64_t ns_elapsed; /**< since the loader was opened; or of the pass, until it ended */
    /** CPU time of the stages decode, resample and store, estimated from one sample in 31. If it is
     * less than the time of these stages, their threads waited for a core. */
    uint64_t ns_decode_cpu;
    /** Of all that defines the order. Loaders of several ranks whose hashes differ would deliver
     * some samples twice and others never. */
    uint64_t order_hash;
    /** What one request for a remote pack has: a PEN_FETCH_*. */
    uint32_t fetch_unit;
    /** The memory_bytes with which entire blocks would be requested; 0 = they are, or the pack is
     * not remote. */
    uint64_t memory_wanted_bytes;
    uint64_t padded_samples; /**< delivered to pad batches; not among `samples` */
} PenLoaderStats;

/** How a remote pack is read. The order does not depend on it. */
enum {
    PEN_FETCH_NONE = 0,    /**< the pack is not remote, or its videos are read by packets */
    PEN_FETCH_BLOCKS = 1,  /**< entire blocks */
    PEN_FETCH_RUNS = 2,    /**< several neighboring samples of a block */
    PEN_FETCH_SAMPLES = 3, /**< single samples */
};

/** Returns the counters of a loader since it was opened; all are 0 in a forked child. */
PEN_API void pen_loader_stats(const PenLoader *loader, PenLoaderStats *ret);

/** Returns the counters since the last pass was begun. Slots and memory are those of now. */
PEN_API void pen_loader_epoch_stats(const PenLoader *loader, PenLoaderStats *ret);

/** A sample that could not be loaded, and the one that replaced it. */
typedef struct PenBadSample {
    int32_t status;                  /**< why the sample could not be loaded, a PenStatus */
    uint64_t epoch, sample, instead; /**< `instead`: the sample that replaced it */
    char message[200];
} PenBadSample;

/** Returns the i-th substituted sample; PEN_END after the last. The first 1,000 are kept. */
PEN_NODISCARD PEN_API int pen_loader_bad_sample(const PenLoader *loader, uint64_t i,
                                                PenBadSample *ret);

#ifdef __cplusplus
}
#endif
#endif
