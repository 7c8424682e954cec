/* SPDX-License-Identifier: Apache-2.0 */
/* The report when a batch does not arrive in time: what is missing, and what the threads are doing.
 *
 * Lock rule: the lock of lock.h is held. */
#ifndef PEN_LOAD_STALL_H
#define PEN_LOAD_STALL_H

#include "load/epoch/pass.h"
#include "load/ring.h"
#include "load/threads.h"

/* PEN_E_TIMEOUT, with the report as its message. */
int pen__stall_report(const PenThreads *threads, const PenRing *ring, const PenEpochPass *pass,
                      uint64_t waited_ns, PenError *reterr);

#endif
