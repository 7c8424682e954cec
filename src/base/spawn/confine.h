/* SPDX-License-Identifier: Apache-2.0 */
/* What a program that reads hostile files is kept from, beyond its limits of time and memory
 * (docs/explanation/adr/0023-frames-by-a-confined-ffmpeg.md):
 *
 *   always          It executes no other program, starts no process, opens no file for writing,
 *                   changes no file or name, makes no socket, signals nobody, changes no limit and
 *                   takes no system call but those that a decoder needs. It has no capability but
 *                   that of reading files, gets no rights by exec, and dies with the thread that
 *                   started it. All this is enforced by a seccomp filter and by limits.
 *   with Landlock   It also reads nothing but its libraries and the files it is given: not the
 *                   files of the user, not /proc.
 */
#ifndef PEN_BASE_SPAWN_CONFINE_H
#define PEN_BASE_SPAWN_CONFINE_H

#include <stdbool.h>
#include <stdint.h>

typedef struct PenConfine {
    const char *program;          /* its path; nothing else is ever executed */
    const char *const *libraries; /* directories that it loads from; ends in NULL */
    const char *const *inputs;    /* files that it reads; ends in NULL */
    bool no_landlock;             /* tests: as on a kernel without it */
} PenConfine;

/* The filter relies on a limit of the address space, and on its being no larger. */
#define PEN_CONFINE_MEMORY ((uint64_t)4 << 30)

/* Where the path of the program is while it is executed. The filter lets through an execve of this
 * very address, and no mapping that would cover it in the new program. */
typedef struct PenExecPath {
    char *at;
} PenExecPath;

int pen__exec_path_map(const char *program, PenExecPath *ret); /* 0 or -errno */
void pen__exec_path_unmap(PenExecPath *path);

/* For the calling process, which is about to execute `path`: between this and execve nothing is
 * possible but to write and to exit. memory_bytes: the limit of its address space, at most
 * PEN_CONFINE_MEMORY. System calls alone. 0, or -errno: then nothing must be executed. */
int pen__confine(const PenConfine *confine, const PenExecPath *path, uint64_t memory_bytes);

#endif
