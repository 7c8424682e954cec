/* SPDX-License-Identifier: Apache-2.0 */
/* Running a program: its output bounded, its time and memory too, and nothing of it left behind.
 *
 * No shell is involved unless argv says so. The program has no input, and its own process group,
 * which is killed when the call ends, however it ends. It sees the environment, but no open files.
 */
#ifndef PEN_BASE_PROCESS_H
#define PEN_BASE_PROCESS_H

#include <stdatomic.h>
#include <stdbool.h>

#include <penstock/error.h>

#include "base/mem.h"
#include "base/spawn/confine.h"
#include "base/sys.h"

#define PEN_PROCESS_TAIL 4096

typedef struct PenProcessSettings {
    const char *const *argv; /* ends in NULL; argv[0] without a slash is looked for in PATH */
    const char *const *env;  /* ends in NULL; NULL: as we have it */
    /* Gets what it prints, piece by piece; < 0 (with the error filled in) ends it. NULL: dropped.
     */
    int (*take)(void *ctx, const void *data, size_t bytes, PenError *reterr);
    /* The same for what it writes to descriptor 3. NULL: it has none. */
    int (*take_side)(void *ctx, const void *data, size_t bytes, PenError *reterr);
    void *take_ctx;            /* of both */
    uint64_t out_bytes;        /* more output is PEN_E_LIMIT; 0: no limit */
    uint64_t side_bytes;       /* the same for descriptor 3 */
    uint64_t memory_bytes;     /* address space; 0: no limit */
    uint64_t cpu_seconds;      /* 0: no limit */
    const PenConfine *confine; /* NULL: it can do what we can; see base/sys.h */
    uint64_t deadline_ns;      /* then it is killed: PEN_E_TIMEOUT */
    const atomic_bool *cancel; /* when set and true it is killed: PEN_E_CANCELLED; looked at every
                                  50 ms */
} PenProcessSettings;

typedef struct PenProcessResult {
    PenExit exit;
    uint64_t out_bytes, side_bytes;
    size_t tail_bytes;
    char tail[PEN_PROCESS_TAIL + 1]; /* the end of its error output; ends in NUL. May hold secrets
                                        of whoever wrote the program */
} PenProcessResult;

/* PEN_OK when it ran and ended, whatever its exit code. Messages name argv[0] alone: arguments may
 * be secret. */
int pen__process_run(const PenProcessSettings *settings, PenProcessResult *ret, PenError *reterr);

/* For one that pen__sys->spawn started: kills its group, and takes it out of the process table. */
void pen__process_end(int pid);

/* A `take` that fills a PenBuf. */
int pen__process_take_buf(void *buf, const void *data, size_t bytes, PenError *reterr);

#endif
