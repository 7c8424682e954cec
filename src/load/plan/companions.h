/* SPDX-License-Identifier: Apache-2.0 */
/* Fields that describe places in an image: masks and boxes. What moves the pixels of the image has
 * to move these too. */
#ifndef PEN_LOAD_PLAN_COMPANIONS_H
#define PEN_LOAD_PLAN_COMPANIONS_H

#include "load/plan/plan.h"

/* PEN_E_INVALID when a mask has another geometry than every image of the pipeline. */
int pen__companions_check(const PenLoadPlan *p, PenError *reterr);
/* Boxes that are given as they are stored while images are cropped: a text in *ret, or NULL. */
int pen__companions_warn(const PenLoadPlan *p, char **ret, PenError *reterr);

#endif
