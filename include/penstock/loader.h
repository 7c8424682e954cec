/* SPDX-License-Identifier: Apache-2.0 */
/* Loading batches.
 *
 * Caveats. One thread at a time calls the functions of a loader; batches may be given back by any
 * thread. A loader starts its threads with its first batch. Handles opened before fork() answer
 * PEN_E_CLOSED in the child. What a batch holds depends on the pack, the subset, the pipeline, the
 * seed, the epoch and the position alone: not on threads, memory, ranks or restarts (in block order
 * lanes and window count too; they are chosen from the memory when they are not given, and kept in
 * the state). */
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
    PEN_I64 = 6
} PenDtype;
PEN_API const char *pen_dtype_name(int dtype); /* "u8" */
PEN_API size_t pen_dtype_bytes(int dtype);

#define PEN_TENSOR_DIMS 6

typedef struct PenTensor { /* dense, in the order of its dims */
    void *data;
    int32_t dtype;
    uint32_t n_dims;
    int64_t shape[PEN_TENSOR_DIMS];
    /* 1: an image batch whose last dim is the channels; 2: the same of clips, time before height */
    int32_t channels_last;
} PenTensor;

typedef struct PenBatch { /* a lease on a slot of the ring */
    uint64_t epoch;
    uint64_t position;  /* of its first sample in the epoch's order, counted over all ranks */
    uint32_t n_samples; /* always the batch size */
    uint32_t n_valid;   /* without those that only fill up the last batch */
    uint32_t n_fields;
    uint32_t n_substituted;
    const PenTensor *fields;
    const uint64_t *samples; /* numbers of the samples in the pack */
    const uint8_t *valid;    /* 0 = repeated to fill up the last batch */
    void *memory; /* all tensors lie in it; same addresses whenever the slot is used again */
    size_t memory_bytes;
} PenBatch;

/* Block: random within windows of blocks, for disks and object stores. Sticky: the same, and lanes
 * have the same blocks in every epoch, so that a node's cache serves it again. */
enum { PEN_ORDER_SEQUENTIAL = 0, PEN_ORDER_RANDOM = 1, PEN_ORDER_BLOCK = 2, PEN_ORDER_STICKY = 3 };
enum { PEN_BAD_RAISE = 0, PEN_BAD_SUBSTITUTE = 1 };

typedef struct PenLoaderSettings {
    uint32_t struct_size; /* set by the init call */
    uint32_t batch_size;  /* of this rank; 256 */
    const char *pipeline; /* NULL: every numeric field, no image */
    int32_t order;        /* PEN_ORDER_SEQUENTIAL */
    int32_t drop_last;    /* 1; 0 fills up the last batch by repetition */
    uint64_t seed;        /* 0 */
    uint32_t rank, world; /* 0 of 1 */
    /* Processes of this machine that load as this one does: they divide its cores, and their memory
     * together must not be more than it has. 0: as the environment says (torchrun's
     * LOCAL_WORLD_SIZE; in a task of Slurm SLURM_STEP_TASKS_PER_NODE or SLURM_NTASKS_PER_NODE), or
     * 1. */
    uint32_t node_ranks;
    int32_t threads;        /* that decode; 0 = the cores that this process is bound to, when
                               these are fewer than the machine has; or else an even share */
    int32_t io_threads;     /* that read; 0 = chosen */
    uint32_t prefetch;      /* batches made ahead; 0 = chosen */
    uint32_t lanes, window; /* of PEN_ORDER_BLOCK and PEN_ORDER_STICKY; 0 = chosen from
                               memory_bytes; lanes are a multiple of world then */
    uint64_t memory_bytes;  /* for ring, read-ahead and scratch; 2 GiB */
    int32_t on_bad;         /* PEN_BAD_RAISE */
    uint32_t stall_ms;      /* the longest a batch may take to come; 300,000 */
    int32_t keep_slots; /* 0; 1: memory of batches is not given back before the end: for pinning */
    uint64_t max_bad;   /* substitutions in an epoch, after which it raises; 100 */
    /* Only these samples: a list (copied), or [first, first + count) when count is not 0. The list
     * may name a sample several times; the ordinal of the entry among those of its sample (0, 1,
     * ...) enters the random draws, so that each repeat gets a crop of its own in an epoch. */
    const uint64_t *subset;
    uint64_t n_subset;
    uint64_t first, count;
} PenLoaderSettings;

PEN_API void pen_loader_settings_init(PenLoaderSettings *settings);
/* Plans everything and reads nothing of the shards. The loader keeps the pack open for itself. */
PEN_NODISCARD PEN_API int pen_loader_open(PenPack *pack, const PenLoaderSettings *settings,
                                          PenLoader **ret_loader, PenError *reterr);
/* Batches that are out stay valid until they are given back. Accepts NULL; sets *loader to NULL. */
PEN_API void pen_loader_close(PenLoader **loader);

/* Batches of an epoch, the same for every rank. */
PEN_API uint64_t pen_loader_len(const PenLoader *loader);
PEN_API uint64_t pen_loader_samples(const PenLoader *loader);     /* of an epoch, over all ranks */
PEN_API uint64_t pen_loader_epoch(const PenLoader *loader);       /* that runs or comes next */
PEN_API const char *pen_loader_pipeline(const PenLoader *loader); /* its full form */
/* What the user should be told of the settings: they are allowed, and probably not what was meant
 * (boxes that do not follow a crop). One line that lives as long as the loader, or NULL. */
PEN_API const char *pen_loader_warning(const PenLoader *loader);
PEN_API uint32_t pen_loader_fields(const PenLoader *loader);
PEN_API const char *pen_loader_field_name(const PenLoader *loader, uint32_t field);
/* Shape and type of a field's batches; data is NULL. */
PEN_API PenTensor pen_loader_field_tensor(const PenLoader *loader, uint32_t field);

/* The next pass is of this epoch (0 to 2^63 - 1); one that was begun and has given nothing yet
 * becomes it. After a restore, naming the restored epoch keeps the place in it.
 */
PEN_NODISCARD PEN_API int pen_loader_set_epoch(PenLoader *loader, uint64_t epoch, PenError *reterr);
/* Begins a pass: at the restored place; or at the start of the epoch set; or, when a pass was begun
 * before and no epoch set since, of the following epoch. Batches not taken from an earlier pass are
 * given up. */
PEN_NODISCARD PEN_API int pen_loader_begin(PenLoader *loader, PenError *reterr);
/* PEN_OK and a lease; PEN_END at the end of the pass; or < 0. Waits timeout_ms at most (< 0: until
 * the loader's stall_ms is over): PEN_E_TIMEOUT then, and the call may be made again. After another
 * error the next call goes on behind the batch concerned. */
PEN_NODISCARD PEN_API int pen_loader_next(PenLoader *loader, int timeout_ms, PenBatch **ret_batch,
                                          PenError *reterr);
PEN_API PenBatch *pen_batch_ref(PenBatch *batch);
PEN_API void pen_batch_unref(PenBatch **batch); /* the last one frees the slot; accepts NULL */

#define PEN_STATE_BYTES 512

/* The place, as one line of text "key=value ..." that is the same on every rank. `buf` has
 * PEN_STATE_BYTES. Batches count as delivered when pen_loader_next has given them out. */
PEN_NODISCARD PEN_API int pen_loader_save(const PenLoader *loader, char *buf, PenError *reterr);
/* Refuses the state of another pack, pipeline, subset or seed unless strict is 0. */
PEN_NODISCARD PEN_API int pen_loader_restore(PenLoader *loader, const char *text, int strict,
                                             PenError *reterr);

typedef struct PenLoaderStats {
    uint32_t struct_size;
    uint32_t threads, io_threads;
    uint32_t node_ranks; /* processes of this machine that divide its cores */
    uint32_t slots, slots_ready, slots_leased;
    uint64_t batches, samples; /* delivered */
    uint64_t substituted;
    uint64_t bytes_read;
    uint64_t ns_wait;      /* the caller waited for a batch */
    uint64_t memory_bytes; /* held now: ring, read-ahead, scratch, indexes */
    uint64_t memory_peak_bytes;
} PenLoaderStats;

PEN_API void pen_loader_stats(const PenLoader *loader,
                              PenLoaderStats *ret); /* struct_size is set */

typedef struct PenBadSample {
    uint64_t epoch, sample, instead;
    int32_t status;
    char message[200];
} PenBadSample;

/* The i-th sample that was substituted (the first 1,000 are kept); PEN_END behind the last. */
PEN_NODISCARD PEN_API int pen_loader_bad_sample(const PenLoader *loader, uint64_t i,
                                                PenBadSample *ret);

#ifdef __cplusplus
}
#endif
#endif
