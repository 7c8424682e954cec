/* SPDX-License-Identifier: Apache-2.0 */
/* A plan that is being run, and its passes in parts: begun, fed with rows, ended. For this folder
 * alone. */
#ifndef PEN_OPS_RUN_RUN_H
#define PEN_OPS_RUN_RUN_H

#include <stdbool.h>

#include "ops/run/decode_context.h"
#include "ops/run/program_impl.h"
#include "ops/sample/orientation.h"

typedef struct PenPlanRun {
    PenDecodeContext *k;
    const PenProgram *p;
    const PenSamplePlan *sample_plan;
    const PenImageHeader *header;
    const PenLimits *limits;
    uint8_t *dst;
    PenError *reterr;
    uint8_t *image; /* between steps, of w x h pixels; NULL: not begun, or stored already */
    int spare;      /* which of the two images is free */
    uint32_t w, h;
} PenPlanRun;

typedef struct PenPassRun { /* takes the rows of a pass */
    const PenPlanRun *run;
    const PenPass *pass;
    PenResize resize;
    bool is_last;   /* step */
    bool is_seen;   /* something of the image is: rows are to be pushed */
    uint8_t *image; /* NULL: the result */
    size_t stride;
    uint8_t *row; /* with the border; NULL: there is none */
    PenBox place;
} PenPassRun;

typedef struct PenTurning { /* of the region of a plan */
    PenTurn turn;
    PenBox upright; /* its size then */
    uint32_t y;
} PenTurning;

int pen__run_check(const PenPlanRun *run);
/* `ret` is used until the pass ends, and has to stay where it is. */
int pen__run_begin_pass(const PenPlanRun *run, const PenPass *pass, bool is_last, PenPassRun *ret);
int pen__run_push_rows(PenDecodeContext *k, const uint8_t *rows, size_t stride, uint32_t n,
                       PenError *reterr);
void pen__run_end_pass(PenPlanRun *run, const PenPassRun *pass);

/* For an image that is not upright: its region as it is stored, row by row, then into the pass. */
int pen__run_begin_turn(const PenPlanRun *run, PenTurning *ret);
void pen__run_turn_rows(PenTurning *t, const uint8_t *rows, size_t stride, uint32_t n);
int pen__run_push_turned(const PenPlanRun *run, const PenTurning *t);

/* The steps from `first` on, and the result. */
int pen__run_steps(PenPlanRun *run, uint32_t first);
/* The most scratch memory that they take, without that of decoding. */
uint64_t pen__sample_plan_steps_memory(const PenProgram *p, const PenSamplePlan *sample_plan);

#endif
