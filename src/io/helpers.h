/* SPDX-License-Identifier: Apache-2.0 */
/* How many threads help with reads of many objects. A read waits until it can have all that it
 * wants, and reads get theirs in the order in which they came: otherwise each of them gets a share,
 * and the one that is needed first ends last. */
#ifndef PEN_IO_HELPERS_H
#define PEN_IO_HELPERS_H

#include <pthread.h>
#include <stdint.h>

#include <penstock/error.h>

typedef struct PenHelpersWait PenHelpersWait;

typedef struct PenHelpers {
    pthread_mutex_t mutex;
    pthread_cond_t changed;
    unsigned free;
    PenHelpersWait *first; /* in the order of their coming */
} PenHelpers;

/* A place in the queue, in the memory of whoever waits. */
struct PenHelpersWait {
    PenHelpersWait *next;
    unsigned n; /* wanted; at most as many as there are */
};

int pen__helpers_init(PenHelpers *h, unsigned n, PenError *reterr);
void pen__helpers_fini(PenHelpers *h);

void pen__helpers_queue(PenHelpers *h, PenHelpersWait *w);
/* PEN_OK: they are taken, and out of the queue. PEN_E_TIMEOUT: not yet. */
int pen__helpers_wait(PenHelpers *h, PenHelpersWait *w, uint64_t deadline_ns);
void pen__helpers_leave(PenHelpers *h, PenHelpersWait *w); /* after PEN_E_TIMEOUT */
void pen__helpers_put(PenHelpers *h, unsigned n);

#endif
