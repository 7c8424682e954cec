/* SPDX-License-Identifier: Apache-2.0 */
/* A value of a list: its bytes go straight to the sample's place in the batch. Called without the
 * lock, by the thread that has the task. */
#ifndef PEN_LOAD_READ_LIST_H
#define PEN_LOAD_READ_LIST_H

#include "load/read/location.h"
#include "load/task.h"

/* PEN_E_LIMIT: it is longer than the place. PEN_E_DECODE: text or JSON that is not UTF-8. If a
 * checksum does not match, it reads once more before it reports damage. */
int pen__list_read(PenTask *task, const PenOutField *f, const PenLocation *at, PenError *reterr);

#endif
