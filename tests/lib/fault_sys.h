/* SPDX-License-Identifier: Apache-2.0 */
/* A system interface that counts the calls and makes the n-th fail, once or from then on. It also
 * keeps count of what is held: memory and files. */
#ifndef PEN_TESTS_LIB_FAULT_SYS_H
#define PEN_TESTS_LIB_FAULT_SYS_H

#include <stdbool.h>
#include <stdint.h>

typedef enum FaultKind {
    FAULT_ALLOC,
    FAULT_OPEN,
    FAULT_CLOSE,
    FAULT_PREAD,
    FAULT_PWRITEV,
    FAULT_FSYNC,
    FAULT_STAT,
    FAULT_RENAME,
    FAULT_MKDIR,
    FAULT_UNLINK,
    FAULT_RMDIR,
    FAULT_LOCK,
    FAULT_LIST,
    FAULT_RANDOM,
    FAULT_THREAD,
    FAULT_LOCK_BYTE,
    FAULT_ROOM,
    FAULT_MEMORY,
    FAULT_NAME,
    FAULT_REAL_PATH,
    FAULT_SPAWN,
    FAULT_SEND,
    FAULT_MAP,
    FAULT_KINDS
} FaultKind;

typedef struct FaultPlan {
    uint64_t at;   /* the call that fails, counted from 1; 0 = none */
    bool for_ever; /* and all after it */
    bool other;    /* another errno than the usual one of the call */
    bool trickle;  /* reads and writes do 1 byte at a time, which is no failure */
} FaultPlan;

typedef struct FaultSeen {
    uint64_t calls;
    uint64_t by_kind[FAULT_KINDS];
    uint64_t failed;       /* how many were made to fail */
    FaultKind first;       /* the first of them */
    int64_t memory, files; /* held at the end */
} FaultSeen;

void fault_begin(const FaultPlan *plan);
FaultSeen fault_end(void);
/* Do calls after the first failing one fail as well? */
bool fault_is_for_ever(void);
const char *fault_name(FaultKind kind);

#endif
