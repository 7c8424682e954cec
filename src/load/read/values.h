/* SPDX-License-Identifier: Apache-2.0 */
/* Values of variable length. Those of a sample that lie near one another come from a remote pack
 * with one request. */
#ifndef PEN_LOAD_READ_VALUES_H
#define PEN_LOAD_READ_VALUES_H

#include "load/read/location.h"
#include "load/task.h"

/* Chooses what is read with one request, and adds it to at->bytes. */
void pen__values_locate(const PenLoadPlan *plan, PenTask *task, PenLocation *at);
/* Reads that. */
int pen__values_fetch(PenTask *task, const PenLocation *at, PenError *reterr);
/* A value, checked, from what was fetched or else from the pack. */
int pen__values_read(PenTask *task, const PenOutField *f, const PenLocation *at,
                     const PenBlobEntry *e, uint8_t *to, PenError *reterr);

#endif
