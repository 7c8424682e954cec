/* SPDX-License-Identifier: Apache-2.0 */
/* Names by which the processes of a user find each other's memory:
 * "penstock/USER/WHAT/PROCESS.FILE" says which process has it and which of its files it is. A name
 * holds no data. The kernel lists all names, and forgets those of a process with it. */
#ifndef PEN_IO_MEMORY_NAMES_H
#define PEN_IO_MEMORY_NAMES_H

#include <stddef.h>
#include <stdint.h>

#include "base/sys.h"

enum { PEN_MEMORY_NAME_BYTES = 108, PEN_MEMORY_PATH_BYTES = 64 };

extern const char pen__memory_names_list[]; /* the file that lists them, for messages */

/* "penstock/USER/WHAT"; the same for all processes of this user. */
void pen__memory_names_prefix(const char *what, char ret[PEN_MEMORY_NAME_BYTES]);
/* Takes the name of this process's file `fd`: an fd that holds it, or -errno. */
int pen__memory_name_take(const char *prefix, int fd);

typedef struct PenMemoryPlace {
    int32_t process;
    char path[PEN_MEMORY_PATH_BYTES]; /* "/proc/7/fd/3" */
} PenMemoryPlace;

/* Anybody can take any name: `each` has to check what it finds. Stops when it returns non-zero and
 * returns that; 0 after the last name, or -errno. */
int pen__memory_names_each(const char *prefix, int (*each)(void *ctx, const PenMemoryPlace *place),
                           void *ctx);

/* Opens the memory to read (PEN_OPEN_READ) or to write as well (PEN_OPEN_MEMORY): an fd, if it is a
 * file of this user with this size, which nobody can change; otherwise -1. */
int pen__memory_place_open(const PenMemoryPlace *place, uint64_t bytes, int how);

#endif
