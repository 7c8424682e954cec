/* SPDX-License-Identifier: Apache-2.0 */
/* Rows around the frame that a sample is. */
#ifndef PEN_LOAD_READ_WINDOW_H
#define PEN_LOAD_READ_WINDOW_H

#include "load/read/location.h"
#include "load/task.h"

/* Adds what is read of the field to at->bytes. */
void pen__window_locate(const PenOutField *f, PenLocation *at);
/* Reads the rows of the sample, and copies those that are wanted to their place in the slot. */
int pen__window_read(PenTask *task, const PenOutField *f, const PenLocation *at, PenError *reterr);
/* Which of n frames or rows around frame `frame` does the sample have, of `all`? */
void pen__window_mask(const PenTask *task, const PenOutField *f, int64_t first, uint32_t stride,
                      uint32_t n, uint64_t all);

#endif
