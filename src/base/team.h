/* SPDX-License-Identifier: Apache-2.0 */
/* Several threads that run one function, and the thread that waits for them. */
#ifndef PEN_BASE_TEAM_H
#define PEN_BASE_TEAM_H

#include <stdint.h>

#include <penstock/error.h>

typedef struct PenTeam PenTeam;

/* What each thread does. `number` counts the threads from 0. */
typedef struct PenTeamWork {
    const char *name; /* of the threads, at most 15 letters */
    void (*run)(void *ctx, unsigned number);
    /* Called by the waiting thread at once, then about ten times a second, and when all threads
     * have ended. Only pen__team_run calls it; may be NULL. */
    void (*tick)(void *ctx);
    void *ctx;
} PenTeamWork;

/* Starts the threads: all of them run, or none does and there is an error. */
int pen__team_start(const PenTeamWork *work, unsigned n_threads, PenTeam **ret, PenError *reterr);

/* PEN_OK: all threads have ended. PEN_E_TIMEOUT: the deadline has passed before that. */
int pen__team_wait(PenTeam *team, uint64_t deadline_ns);

/* Waits for the threads, however long they run, and frees the team. NULL is fine. */
void pen__team_join(PenTeam **team);

/* As pen__team_join if all threads have ended. Otherwise it returns at once: the threads go on, and
 * the last of them frees the team. What they use must stay until then. */
void pen__team_leave(PenTeam **team);

/* Starts the threads, calls `tick` while they run, and joins them. */
int pen__team_run(const PenTeamWork *work, unsigned n_threads, PenError *reterr);

/* Steps with numbers, such as requests to a server, that several threads do at once. */
typedef struct PenEach {
    const char *name; /* of the threads, at most 15 letters */
    uint64_t n;       /* steps */
    unsigned threads; /* at most; 1: the calling thread does all, in order */
    int (*step)(void *ctx, uint64_t number, PenError *reterr); /* < 0: no other one begins */
    /* The calling thread's, before the first step and about ten times a second; < 0: no other step
     * begins. May be NULL. */
    int (*tick)(void *ctx, PenError *reterr);
    /* After `tick` has ended it: 1, steps that wait are to give up; then 0. May be NULL. */
    void (*stop)(void *ctx, int stop);
    void *ctx;
} PenEach;

/* The error is that of `tick`, or of the lowest step that failed: it does not depend on the number
 * of threads. */
int pen__each(const PenEach *each, PenError *reterr);

#endif
