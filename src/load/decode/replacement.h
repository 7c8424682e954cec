/* SPDX-License-Identifier: Apache-2.0 */
/* Another sample takes the place of a broken one. Which one depends on the seed, the epoch, the
 * number of the broken sample and which of its repeats it is, so that all ranks and restarts agree.
 * Only confirmed damage is replaced: bytes that do not match their checksum when read twice, or
 * that match it and cannot be decoded. Any other failure may be temporary, and the order must not
 * depend on it.
 *
 * Lock rule: called without the lock, which it takes for reservations and for the slot's list. */
#ifndef PEN_LOAD_DECODE_REPLACEMENT_H
#define PEN_LOAD_DECODE_REPLACEMENT_H

#include "load/decode/image.h"
#include "load/tasks.h"

/* For a task that failed, with its status. PEN_OK: the other sample is in its place. */
int pen__sample_replace(PenTasks *tasks, const PenImageDecoder *decoder, PenTask *task);

#endif
