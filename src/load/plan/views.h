/* SPDX-License-Identifier: Apache-2.0 */
/* Several results of one stored image: fields that are views of it, and their repeats. */
#ifndef PEN_LOAD_PLAN_VIEWS_H
#define PEN_LOAD_PLAN_VIEWS_H

#include "load/plan/plan.h"

/* Numbers the views, finds which ones masks follow, and names their draws. All fields have been
 * added. */
int pen__plan_views_choose(PenLoadPlan *p, PenError *reterr);

/* The field of the batch of that name; NULL: none. */
const PenOutField *pen__plan_find(const PenLoadPlan *p, const char *name);
/* The text of a field; NULL: it has none, as the times of clips. */
const PenSpecField *pen__plan_spec(const PenLoadPlan *p, const PenOutField *f);

#endif
