/* SPDX-License-Identifier: Apache-2.0 */
/* Everything about a run that is known before the first read: fields and their programs, the
 * samples and their order, the layout of a slot, the shares of the memory. */
#ifndef PEN_LOAD_PLAN_PLAN_H
#define PEN_LOAD_PLAN_PLAN_H

#include <stdbool.h>

#include <penstock/loader.h>

#include "load/epoch/buckets.h"
#include "load/epoch/split.h"
#include "load/epoch/state.h"
#include "load/epoch/weights.h"
#include "load/mix/mixture.h"
#include "load/remote/shares.h"
#include "ops/run/program.h"
#include "ops/sample/follow.h"
#include "pack/reader/reader.h"

typedef struct PenOutField {
    char *name;
    uint32_t field; /* in the pack */
    int32_t kind;   /* PEN_KIND_* */
    PenProgram *program;
    PenTensor tensor; /* of a batch, without data */
    uint64_t bytes;   /* of one sample */
    uint64_t offset;  /* in a slot's memory */
    uint32_t image;   /* of images and masks: the first of its views; or which of a task's clips */
    uint32_t repeats; /* of images and masks: its views, one after another */
    uint32_t n_views; /* of the first field that reads a stored image: views of all that do, from
                       * `image` on; of the others 0 */
    int32_t follows;  /* of a mask: the image whose size it has; -1: none */
    uint64_t draws;   /* of the view that it is or follows: pen__draw_name; 0: of none */
    uint32_t times;   /* of a clip: the field for its frames' times; 0: none */
    int32_t list;     /* PEN_LIST_*: `bytes` are the most that a value may have */
    uint64_t lengths; /* of a list, in a slot's memory: in bytes, they become its offsets */
    uint64_t validity;
    uint32_t row_bytes; /* of a list: what offsets count; 1 for bytes */
    uint32_t max_rows;  /* of a ragged field */
    uint32_t mask;      /* of a ragged field that is padded: the field of its mask; 0: a list */
    double pad;         /* the number that it is padded with */
    uint32_t inside;    /* of a clip or rows around a frame: the field for the mask of those that
                         * the sample has; 0: none */
    int64_t at;         /* of such rows: the first one, counted from the frame */
    uint32_t stride;    /* and from one to the next */
    bool is_target;     /* of one_hot, of an image that is mixed: */
    uint32_t mixed_by;  /* the field of the image */
    uint32_t sizes;     /* of images and masks of different sizes, in a list or padded: the field of
                         * their sizes; 0: all have one */
    uint32_t grid;      /* of patches: the field of their numbers down and across, and behind it
                         * that of their mask; 0: it has none */
} PenOutField;

/* Fields of the loader's own, which have no program: the times of a clip's frames; lists, padded or
 * not; the mask of a padded one or of a window; the rows that are kept; the sizes of images; the
 * number of the sample's source, which `field` is; rows around the frame that the sample is. */
enum {
    PEN_KIND_TIMES = 100,
    PEN_KIND_LIST = 101,
    PEN_KIND_ROW_MASK = 102,
    PEN_KIND_KEPT = 103,
    PEN_KIND_SIZES = 104,
    PEN_KIND_SOURCE = 105,
    PEN_KIND_WINDOW = 106
};
enum { PEN_NO_FIELD = UINT32_MAX }; /* in the pack: the sample's key */

static inline bool pen__field_is_image(const PenOutField *f)
{
    return f->kind == PEN_KIND_IMAGE || f->kind == PEN_KIND_MASK;
}

/* One image of a batch's sample: of which field, and which of its repeats. Views of one stored
 * image follow one another: it is read once for all of them. */
typedef struct PenView {
    uint32_t field, repeat;
} PenView;

enum { PEN_MAX_VIEWS = 256 }; /* of a sample */

/* A ragged field whose rows follow an image, or the rows of another field, or both. */
typedef struct PenFollow {
    uint32_t field;
    PenFollowRule rule; /* boxes and points; `stored` is 0: none */
    uint32_t image;     /* whose pixels they follow */
    uint32_t kept;      /* the field for the numbers of its rows; 0: none */
    uint32_t source;    /* which of the plan's follows chooses the rows; PEN_NO_FIELD: none */
} PenFollow;

/* Batches of several shapes. */
typedef struct PenShapes {
    uint32_t n;
    PenOutField *fields[PEN_MAX_BUCKETS]; /* n_fields each; those of the first are the plan's */
} PenShapes;

typedef struct PenBucketPlan {
    uint32_t n;
    PenBucketSize size[PEN_MAX_BUCKETS];
    uint8_t *of_entry; /* the bucket of each of the samples chosen */
    uint64_t counted;  /* the epoch of `counts` + 1; 0: of none */
    PenBucketCounts counts;
} PenBucketPlan;

/* The pack, or all packs of a mixture together. */
typedef struct PenPackFacts {
    uint64_t n_blocks, total_bytes;
    uint64_t prefetched_samples, prefetched_bytes; /* of packs whose blocks are */
    uint64_t index_bytes;                          /* in memory, of all blocks */
    uint64_t largest_block_bytes;                  /* in memory */
    bool is_whole;  /* blocks are read completely, of one pack at least */
    bool is_ranged; /* of one at least, every read of a sample is a request */
    bool has_cache;
} PenPackFacts;

typedef struct PenMixSource { /* of a mixture */
    PenPack *pack;
    PenOutField *fields; /* the plan's, with the numbers that they have in this pack */
    uint64_t n;          /* samples */
    uint64_t seed;       /* of its order */
    uint64_t block_samples;
    uint32_t streams;
    uint64_t first_block; /* number of its first block, when those of all sources are counted */
} PenMixSource;

typedef struct PenLoadPlan {
    PenLoaderSettings set; /* subset, weights and buckets are NULL: see below */
    PenPack *pack;         /* of a mixture: the first one */
    PenPackFacts packs;
    uint32_t n_sources; /* of a mixture; else 0, and these are NULL: */
    PenMixSource *sources;
    PenMixture *mixture; /* which of them a position has */
    PenOrder *orders;    /* of each source, in the epoch of its latest sample; guarded by lock.h */
    PenSpec spec;
    char *text;    /* the pipeline's full form */
    char *warning; /* NULL: none */
    uint32_t n_fields, n_clips;
    uint32_t
        n_values;     /* fields that are finished when all samples of a batch are there: of
                       * PEN_KIND_LIST, images of different sizes or that are mixed; of these are */
    uint32_t n_lists; /* not padded */
    bool has_pairs;   /* samples are mixed */
    PenOutField *fields;
    uint32_t n_stored; /* images that are read for a sample, for n_views results */
    uint32_t n_views;
    PenView *views;
    uint32_t n_follows;
    PenFollow *follows;
    int32_t first_image; /* among fields; masks have its size; -1 = none */
    uint64_t *subset;    /* NULL: samples first, first + 1, ... */
    uint32_t *ordinals;  /* of entries of subset; NULL: it has no repeats */
    PenWeights *weights; /* of the samples chosen; NULL: each is in an epoch once */
    bool has_frames;     /* samples of an epoch are frames: their ordinals are numbers of these */
    PenShapes *shapes;   /* of buckets or lengths; NULL: all batches have one shape */
    PenBucketPlan *buckets; /* NULL: none */
    PenLengths *lengths;    /* of a token budget; NULL: all batches have set.batch_size samples,
                             * which otherwise is that of the largest */
    uint64_t epoch_most;    /* the last epoch that there may be */
    PenState state;         /* order, ids and hashes; epoch and position are the loader's */
    uint64_t slot_bytes;    /* of a slot's tensors */
    uint64_t slot_cost;     /* and with everything else a slot takes */
    uint32_t slots;         /* being filled, full or leased in the usual case */
    uint32_t tasks;         /* samples that are read or decoded at the same time */
    uint32_t threads, io_threads;
    PenFetchPlan fetch;
    uint32_t tickets; /* of a remote pack: samples that may wait for their blocks */
    bool no_decode;   /* to measure how fast samples are read: the results stay as they are */
    PenShares shares;
    uint64_t remote_rest; /* the least for all but batches and blocks */
    uint64_t remote_ring; /* of a remote pack: the ring with enough memory */
} PenLoadPlan;

/* Can a sample be in an epoch more than once? */
static inline bool pen__load_plan_repeats(const PenLoadPlan *p)
{
    return p->ordinals || p->weights || p->mixture;
}

/* What samples of a batch become, by the number of its bucket or length. */
static inline const PenOutField *pen__load_plan_fields(const PenLoadPlan *p, uint32_t shape)
{
    return p->shapes ? p->shapes->fields[shape] : p->fields;
}

/* And how many samples it has. */
static inline uint32_t pen__load_plan_batch(const PenLoadPlan *p, uint32_t shape)
{
    return p->lengths ? p->lengths->batch[shape] : p->set.batch_size;
}

typedef struct PenChosen {
    PenPack *pack;
    const PenOutField *fields;
    uint64_t sample;  /* number in the pack */
    uint64_t epoch;   /* of its source */
    uint32_t ordinal; /* how many before it in the epoch are the same sample */
    uint32_t source;  /* of a mixture; else 0 */
} PenChosen;

/* The sample at a position of a mixture. `orders` are the plan's, and its lock is held; or NULL. */
PenChosen pen__sources_at(const PenLoadPlan *p, PenOrder *orders, uint64_t epoch,
                          uint64_t position);

/* Tells the occurrences of one sample in an epoch apart. */
static inline uint64_t pen__load_plan_ordinal(const PenLoadPlan *p, const PenChosen *chosen)
{
    return p->mixture ? chosen->epoch * p->n_sources + chosen->source : chosen->ordinal;
}

/* The order of an epoch. Positions of a mixture are mixed by its sources. */
static inline PenOrderPlan pen__load_plan_order(const PenLoadPlan *p)
{
    PenOrderPlan order = p->state.order;
    if (p->mixture)
        order.kind = PEN_ORDER_SEQUENTIAL;
    return order;
}

/* Of the samples of an epoch before they are mixed, the i-th. */
static inline PenChosen pen__load_plan_choose(const PenLoadPlan *p, uint64_t epoch, uint64_t i)
{
    PenDrawn drawn = {i, 0};
    if (p->mixture)
        return pen__sources_at(p, NULL, epoch, i);
    if (p->weights)
        drawn = pen__weights_at(p->weights, p->set.seed, epoch, i);
    if (p->ordinals)
        drawn.ordinal = p->ordinals[i];
    return (PenChosen){.pack = p->pack,
                       .fields = p->fields,
                       .sample = p->subset ? p->subset[drawn.entry] : p->set.first + drawn.entry,
                       .epoch = epoch,
                       .ordinal = drawn.ordinal};
}

#endif
