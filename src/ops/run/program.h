/* SPDX-License-Identifier: Apache-2.0 */
/* A pipeline made ready to run: for each field what comes out, and for each sample, from its size
 * and its draws, what is to be done (a sample_plan), before a byte of it is read. */
#ifndef PEN_OPS_RUN_PROGRAM_H
#define PEN_OPS_RUN_PROGRAM_H

#include <penstock/decode.h>
#include <penstock/loader.h>
#include <stdbool.h>

#include "base/timing/stage_clock.h"
#include "codec/region/region.h"
#include "ops/operations/draw.h"
#include "ops/operations/frame_choice.h"
#include "ops/operations/mix.h"
#include "ops/pipeline/spec.h"
#include "ops/sample/sample_plan.h"

/* What a field is, as far as operations are concerned. */
enum { PEN_KIND_IMAGE = 1, PEN_KIND_MASK = 2, PEN_KIND_NUMBER = 3, PEN_KIND_CLIP = 4 };

typedef struct PenFieldKind {
    int32_t kind;
    int32_t dtype;   /* of numbers: PEN_I64, PEN_F32, PEN_F64 */
    uint32_t n_dims; /* of numbers */
    uint32_t dims[4];
} PenFieldKind;

typedef struct PenProgram PenProgram;

/* How results lie in memory whose size differs from sample to sample. */
typedef struct PenSizesRule {
    uint32_t channels;
    uint32_t planes;    /* 1: each channel in a plane of its own */
    uint32_t element;   /* bytes */
    uint32_t pads;      /* sides of a batch are padded to a multiple of this; 0: they are not */
    uint64_t pad_value; /* an element */
} PenSizesRule;

/* Checks one field's operations against what the field is; fails with the operation's place in the
 * text when they do not fit, or when the size of the result has no bound. */
int pen__program_new(const PenSpecField *spec, const PenFieldKind *kind, PenProgram **ret,
                     PenError *reterr);
void pen__program_free(PenProgram **p); /* accepts NULL */

/* One sample's result: shape without the batch, so that its place in a batch is i * sample_bytes.
 * Sides that differ from sample to sample are -1, and the bytes are the most. */
PenTensor pen__program_result(const PenProgram *p);
uint64_t pen__program_bytes(const PenProgram *p); /* of one sample's result */
/* False: all results have one size. */
bool pen__program_sizes(const PenProgram *p, PenSizesRule *ret);
/* Results are sequences of patches. False: they are not. */
bool pen__program_patches(const PenProgram *p, PenPatches *ret);
int pen__program_colour(const PenProgram *p); /* PEN_COLOUR_*, of images and masks */

/* Results of one image, one after another in its place, each of pen__program_bytes / n. Which of
 * them a sample_plan is for is the `view` below. */
uint32_t pen__program_repeats(const PenProgram *p);

/* Makes all draws. A pure function of its arguments. After a failure *ret is not to be used. */
int pen__sample_plan_make(const PenProgram *p, const PenImageShape *shape, PenDrawKey key,
                          uint64_t sample, PenSamplePlan *ret, PenError *reterr);

/* Clips. A result is `views` clips of `frames` frames each: the n of the operation, each in all the
 * boxes of three_crop. All frames of a view are made with the same draws. */
typedef struct PenClipShape {
    uint32_t frames, views;
    uint32_t crops; /* 1 or 3: view v shows the frames of clip v / crops */
    int want_times; /* the frames' times are asked for too */
} PenClipShape;

const PenClipRule *pen__program_clip(const PenProgram *p, PenClipShape *ret); /* NULL: no clip */
/* Which frames a sample of `n` frames gives: rule->n * rule->frames numbers, clip by clip. */
int pen__program_choose(const PenProgram *p, const PenClipFrames *frames, PenDrawKey key,
                        uint64_t sample, uint32_t *ret, PenError *reterr);
int pen__sample_plan_make_view(const PenProgram *p, const PenImageShape *shape, PenDrawKey key,
                               uint64_t sample, uint32_t view, PenSamplePlan *ret,
                               PenError *reterr);
/* Where a frame of a view begins in the result, in bytes: what sample plans of clips are run on. */
uint64_t pen__program_frame_at(const PenProgram *p, uint32_t view, uint32_t frame);
/* The frame at `to` becomes that at `from`; both begin where the call above says. */
void pen__program_copy_frame(const PenProgram *p, uint8_t *to, const uint8_t *from);

/* Scratch for one thread at a time: decoder, streams, images between passes. */
typedef struct PenDecodeContext PenDecodeContext;
int pen__decode_context_new(PenDecodeContext **ret, PenError *reterr);
void pen__decode_context_free(PenDecodeContext **k); /* accepts NULL */
/* Gives back what is above `bytes`, so that one huge image does not stay for ever. */
/* From now on its samples are timed; NULL: they are not. */
void pen__decode_context_time(PenDecodeContext *k, PenStageClock *clock);
void pen__decode_context_trim(PenDecodeContext *k, uint64_t bytes);

/* The most scratch memory that running it in a new context takes. */
uint64_t pen__sample_plan_memory(const PenProgram *p, const PenSamplePlan *sample_plan,
                                 const PenImageHeader *header);
/* Decodes, resamples and stores; dst has pen__program_bytes. The result has the size of the plan.
 */
int pen__sample_run_parsed(PenDecodeContext *k, const PenProgram *p,
                           const PenSamplePlan *sample_plan, const PenImageHeader *header,
                           const PenLimits *limits, void *dst, PenError *reterr);
/* The same with the header parsed here, for callers that need it for nothing else. */
int pen__sample_run(PenDecodeContext *k, const PenProgram *p, const PenSamplePlan *sample_plan,
                    const PenEncoded *image, const PenLimits *limits, void *dst, PenError *reterr);
/* Of several plans for one image. */
typedef struct PenSampleRun {
    const PenProgram *program;
    const PenSamplePlan *sample_plan;
    void *dst;
} PenSampleRun;

enum { PEN_MAX_TOGETHER = 16 };
/* Runs `n` plans of the same colour and shrink, whose regions lie in the box: it is decoded once.
 * After a failure none of the results is to be used. */
int pen__sample_run_together(PenDecodeContext *k, const PenSampleRun *runs, uint32_t n,
                             const PenImageHeader *header, const PenBox *box,
                             const PenLimits *limits, PenError *reterr);
/* The most scratch memory that it takes. */
uint64_t pen__sample_memory_together(const PenSampleRun *runs, uint32_t n,
                                     const PenImageHeader *header, const PenBox *box);

/* The same for a number as it lies in the index. Fails for a class that there is not. */
int pen__program_store_number(const PenProgram *p, const uint8_t *number, void *dst,
                              PenError *reterr);

/* How samples of a batch are mixed; NULL: they are not. */
const PenMixRule *pen__program_mix(const PenProgram *p);
/* The targets of class numbers follow the mixing of an image of the pipeline. *ret_of is its name,
 * or NULL for the only one. False: it is no such field. */
bool pen__program_is_target(const PenProgram *p, const char **ret_of);

#endif
