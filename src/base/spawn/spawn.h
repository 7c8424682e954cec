/* SPDX-License-Identifier: Apache-2.0 */
/* Starting a program: the real form of PenSys.spawn. */
#ifndef PEN_BASE_SPAWN_SPAWN_H
#define PEN_BASE_SPAWN_SPAWN_H

#include <stdint.h>

#include "base/spawn/confine.h"

/* A program to be run: without a shell, in a process group of its own, with no input and none of
 * our files, unless they are stated here. */
typedef struct PenSpawn {
    const char *const *argv; /* ends in NULL; argv[0] without a slash is looked for in PATH */
    const char *const *env;  /* ends in NULL; NULL: as we have it */
    uint64_t memory_bytes;   /* address space it may take; 0: no limit */
    uint64_t cpu_seconds;    /* then SIGXCPU ends it; 0: no limit */
    /* NULL: not confined. Otherwise its `program` is run whatever argv[0] says, memory_bytes is at
     * most PEN_CONFINE_MEMORY, and -ENOSYS means that this kernel cannot confine it. */
    const PenConfine *confine;
    int has_side;   /* its descriptor 3 is a third output */
    int has_socket; /* its descriptors 0 and 1 are one end of a socket; out_fd is the other */
    int has_shared; /* its descriptor 3 is shared_fd, of ours; then it has no third output */
    int shared_fd;
} PenSpawn;

typedef struct PenSpawned {
    int pid;
    int out_fd, err_fd; /* what it prints; reads on these, and writes on a socket, do not wait */
    int side_fd;        /* the same of its descriptor 3; -1: it has none */
} PenSpawned;

int pen__spawn(const PenSpawn *what, PenSpawned *ret);

#endif
