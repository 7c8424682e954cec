/* SPDX-License-Identifier: Apache-2.0 */
/* The two parts of base/spawn/confine.h that have a file each. System calls alone. */
#ifndef PEN_BASE_SPAWN_CONFINE_IMPL_H
#define PEN_BASE_SPAWN_CONFINE_IMPL_H

#include <linux/filter.h>

#include "base/spawn/confine.h"

/* For the calling process, which has PR_SET_NO_NEW_PRIVS; 0 or -errno. A kernel without Landlock is
 * no failure. */
int pen__confine_files(const PenConfine *confine);

/* The allow-list of system calls. */
typedef struct PenFilter {
    unsigned short n;
    struct sock_filter code[512];
} PenFilter;

/* `path` is the one that may be executed. */
void pen__filter_build(PenFilter *f, const PenExecPath *path);
/* For the calling process, as above. */
int pen__filter_install(PenFilter *f);

#endif
