/* SPDX-License-Identifier: Apache-2.0 */
/* Threads that fetch blocks of a remote pack, many at the same time: most of them wait for a
 * server.
 *
 * Lock rule: the lock of lock.h is held between requests, and released during one. */
#ifndef PEN_LOAD_PREFETCH_FETCHER_H
#define PEN_LOAD_PREFETCH_FETCHER_H

#include "load/prefetch/blocks.h"
#include "load/threads.h"

/* Until the loader stops; called and returns without the lock. */
void pen__fetcher_run(PenBlocks *b, PenThread *me);

#endif
