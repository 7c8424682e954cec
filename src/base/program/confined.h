/* SPDX-License-Identifier: Apache-2.0 */
/* A program that runs confined (base/spawn/confine.h): where it is, what it may read of the system,
 * and its environment. */
#ifndef PEN_BASE_PROGRAM_CONFINED_H
#define PEN_BASE_PROGRAM_CONFINED_H

#include <stddef.h>

enum { PEN_PROGRAM_PATH = 4096 };

typedef struct PenConfinedProgram {
    char path[PEN_PROGRAM_PATH];
    const char *libraries[48]; /* ends in NULL; for PenConfine */
    size_t n_libraries;
    /* Ends in NULL. Nothing of ours but LD_LIBRARY_PATH, where there is one: an environment holds
     * credentials, and can make ffmpeg write reports and load other things. */
    const char *environment[8];
    size_t n_environment;
    char beside[2][PEN_PROGRAM_PATH], listed[PEN_PROGRAM_PATH], variable[PEN_PROGRAM_PATH + 32];
} PenConfinedProgram;

/* Fills in everything but `path`, which is set before. The system's libraries are allowed, those in
 * ../lib beside the program, and those in LD_LIBRARY_PATH. */
void pen__confined_program_fill(PenConfinedProgram *program);
/* Another folder or file that it reads; the text is not copied. */
void pen__confined_program_allow(PenConfinedProgram *program, const char *path);

#endif
