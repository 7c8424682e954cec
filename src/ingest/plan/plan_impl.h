/* SPDX-License-Identifier: Apache-2.0 */
/* The steps from inputs to a plan file, and what making and reading one share. */
#ifndef PEN_INGEST_PLAN_PLAN_IMPL_H
#define PEN_INGEST_PLAN_PLAN_IMPL_H

#include "ingest/plan/plan.h"
#include "ingest/source/input.h"
#include "ingest/spill/scatter.h"

/* ---- shape: fields and classes --------------------------------------------------------------- */

typedef struct PenPlanSchema {
    uint32_t n_fields;
    PenField fields[PEN_FIELD_LIMIT]; /* names are the inputs' or the base pack's */
    uint16_t field_of_column[PEN_FIELD_LIMIT];
    int32_t label_field; /* -1 = none */
    int32_t class_field; /* the same, when the labels have names */
    uint32_t n_classes;
    const char **classes; /* the array is ours, the names are not */
    int64_t *numbers;     /* of each of the inputs' labels */
} PenPlanSchema;

int pen__plan_schema_make(const PenInputs *inputs, const PenPlanRequest *request,
                          PenPlanSchema *ret, PenError *reterr);
/* Fields of bytes, json and text that have fewer parts than there are inputs become
 * PEN_FIELD_OPTIONAL. */
void pen__plan_schema_mark_optional(PenPlanSchema *shape, const uint64_t *n_parts,
                                    uint64_t n_inputs);
void pen__plan_schema_free(PenPlanSchema *shape);
/* The step of it that deals with labels: classes and numbers, once the fields are known. */
int pen__plan_schema_labels(const PenInputs *inputs, const PenPlanRequest *request,
                            PenPlanSchema *shape, PenError *reterr);

/* ---- order ----------------------------------------------------------------------------------- */

int pen__order_check_keys(const PenInputs *inputs, PenError *reterr);

/* The chosen inputs, in the order of the pack. Zero-initialised is closed. */
typedef struct PenSequence {
    const PenInputs *inputs;
    PenScatter *numbers; /* by position, the number of an input in memory */
    PenSorter *sorter;   /* by position, the input */
} PenSequence;

int pen__sequence_open(PenSequence *q, const PenInputs *inputs, PenError *reterr);
/* Positions may have gaps between them. */
int pen__sequence_add(PenSequence *q, uint64_t position, const PenInput *input, PenError *reterr);
/* Once, after the last was added. */
int pen__sequence_start(PenSequence *q, PenError *reterr);
/* PEN_END behind the last one. An input lives until the next call. */
int pen__sequence_next(PenSequence *q, PenInput *ret, PenError *reterr);
void pen__sequence_close(PenSequence *q);

/* ---- records --------------------------------------------------------------------------------- */

/* What is needed to read a record. */
typedef struct PenRecordFrame {
    uint32_t n_fields;
    const PenField *fields;
    uint32_t n_roots;
    const PenRoot *roots;
    const char *advice; /* when an input has changed: what to do */
    PenPlaces *places;  /* of remote roots */
    const PenSummaries *summaries;
} PenRecordFrame;

/* Appends the record of an input to `out`, and its stamps, which begin at *ret_stamps. */
int pen__record_add(const PenPlanSchema *shape, const PenInput *input, PenBuf *out,
                    size_t *ret_stamps, PenError *reterr);
/* The record lies in `scratch` from its start to its end; what the item needs is put behind it. */
int pen__record_parse(const PenRecordFrame *frame, PenItem *ret, PenBuf *scratch, PenError *reterr);

/* ---- draft ----------------------------------------------------------------------------------- */

/* Some of the inputs, copied. */
#define PEN_PROBES 64
typedef struct PenProbes {
    uint32_t n;
    bool in_order; /* the first ones; otherwise evenly spaced */
    PenBuf inputs[PEN_PROBES];
} PenProbes;

/* A plan on its way to the file. */
typedef struct PenPlanDraft {
    const PenPlanRequest *request;
    PenInputs inputs;
    PenPlanSchema shape;
    PenSequence sequence; /* n inputs */
    uint64_t n, n_known;
    uint64_t n_parts[PEN_FIELD_LIMIT]; /* of all inputs, for each field */
    uint64_t total_bytes;              /* of all parts */
    uint64_t block_samples;            /* 0: to be chosen when the inputs are written */
    PenProbes probes;
} PenPlanDraft;

/* Which inputs, in the order of the pack. The list of inputs is shuffled (pen__shuffle) by the
 * stream PEN_ORDER_STREAM. Of each label the first ceil(fraction * its inputs) of the shuffled list
 * stay; for the source order what stays is sorted again. What the base pack knows is then left out.
 * Fills the sequence and counts its inputs and their parts. */
#define PEN_ORDER_STREAM 1
int pen__order_make(PenPlanDraft *draft, PenError *reterr);

/* ---- block size ------------------------------------------------------------------------------ */

/* K: what the settings or the base pack say; 0 when it has to be chosen. */
int pen__block_samples_given(const PenPlanDraft *draft, uint64_t *ret, PenError *reterr);
/* The largest power of two, at most 65,536, with which a block takes at most 4 MiB. That is
 * reckoned from the sizes of the inputs, and when the mode changes the sizes, from the headers of
 * up to 64 images. Videos that are stored as they are do not count; of those, the index of a block
 * has about 1 MiB at most, and all videos of a block 256 MiB. */
int pen__block_samples_choose(PenPlanDraft *draft, uint64_t *ret, PenError *reterr);
/* To be called with every input and its position, before K is chosen. Keeps what it needs. */
int pen__probes_offer(PenPlanDraft *draft, uint64_t position, const PenInput *input,
                      PenError *reterr);
void pen__probes_free(PenProbes *probes);

/* ---- file ------------------------------------------------------------------------------------ */

/* Reads the sequence, and chooses K if it is not given. */
int pen__plan_write(PenPlanDraft *draft, const char *path, PenError *reterr);

/* Layout of the file:
 *   +0     head      16: magic 8, version u32, zero u32
 *   +16    records   one behind another, in pack order
 *          table     32 for each record: offset u64, bytes u32, crc u32, hash 16. The hash is of
 *                    SHA-256 over the record and all stamps of what it names, the crc over position
 *                    u64, record and hash.
 *          marks     8 for each stride of items: weight u64 of all items up to the end of the
 *                    stride. An item weighs 1 more than the bytes of its inputs.
 *          texts     settings, fields, classes, roots, lists
 *          foot      192, ends the file */
#define PEN_PLAN_MAGIC "PENPLAN\n"
#define PEN_PLAN_END_MAGIC "PENPLEND"
/* 0 had no stamps; builds of 1 wrote tiles */
#define PEN_PLAN_VERSION 3
/* A version without marks, split by the number of items. It is read, too. */
#define PEN_PLAN_UNMARKED 2
#define PEN_PLAN_MARKS 4096 /* at most */
#define PEN_PLAN_HEAD 16
#define PEN_PLAN_ENTRY 32
#define PEN_ENTRY_INPUTS 16 /* where the hash is, and what it has */
#define PEN_PLAN_FOOT 192

enum { PEN_PLAN_ENTRIES = 1, PEN_PLAN_VIDEOS = 2 };

enum { /* offsets in the foot */
       PEN_FOOT_MAGIC = 0,
       PEN_FOOT_VERSION = 8,
       PEN_FOOT_CRC = 12, /* of what follows it */
       PEN_FOOT_FILE_BYTES = 16,
       PEN_FOOT_N_ITEMS = 24,
       PEN_FOOT_N_KNOWN = 32,
       PEN_FOOT_BLOCK_SAMPLES = 40,
       PEN_FOOT_SOURCE_BYTES = 48,
       PEN_FOOT_TABLE_OFFSET = 56,
       PEN_FOOT_TEXTS_OFFSET = 64,
       PEN_FOOT_TEXTS_CRC = 72,
       PEN_FOOT_N_FIELDS = 76,
       PEN_FOOT_N_CLASSES = 80,
       PEN_FOOT_N_ROOTS = 84,
       PEN_FOOT_CLASS_FIELD = 88, /* i32 */
       PEN_FOOT_IN_ORDER = 92,
       PEN_FOOT_BASE = 96,    /* 16 */
       PEN_FOOT_ID = 112,     /* 32 */
       PEN_FOOT_INPUTS = 144, /* 32: over the hashes of the table and the id */
       PEN_FOOT_N_LISTS = 176,
       PEN_FOOT_FEATURES = 180, /* PEN_PLAN_ENTRIES, PEN_PLAN_VIDEOS */
       PEN_FOOT_STRIDE = 184,   /* items for each mark; 0 where there are no marks */
       PEN_FOOT_MARKS_CRC = 188 /* ends it */
};

/* ---- parts ----------------------------------------------------------------------------------- */

int pen__part_reader_open_frame(const PenRecordFrame *frame, PenPartReader **ret, PenError *reterr);
const PenRecordFrame *pen__plan_frame(const PenPlan *plan);
const PenListed *pen__plan_lists(const PenPlan *plan, uint32_t *ret_n);

/* ---- parts of a run ---------------------------------------------------------------------------
 */

/* Items for each mark. */
static inline uint64_t pen__marks_stride(uint64_t n_items)
{
    uint64_t stride = n_items / PEN_PLAN_MARKS + (n_items % PEN_PLAN_MARKS != 0);
    return stride ? stride : 1;
}

static inline uint64_t pen__marks_count(uint64_t n_items, uint64_t stride)
{
    return stride ? n_items / stride + (n_items % stride != 0) : 0;
}

typedef struct PenMarks {
    const uint8_t *data; /* u64 each, rising; NULL: the plan has none */
    uint64_t n, stride;
} PenMarks;

PenMarks pen__plan_marks(const PenPlan *plan);

#endif
