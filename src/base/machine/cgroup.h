/* SPDX-License-Identifier: Apache-2.0 */
/* The control groups that this process is in, of versions 1 and 2. */
#ifndef PEN_BASE_MACHINE_CGROUP_H
#define PEN_BASE_MACHINE_CGROUP_H

#include <stdbool.h>
#include <stddef.h>

/* The whole of a small file of the kernel's as text; false when it cannot be read. */
bool pen__small_text(const char *path, char *ret, size_t cap);
/* The file `name` in a group's directory. */
bool pen__cgroup_text(const char *dir, const char *name, char *ret, size_t cap);

/* Calls `each` with the directory of every group that has a say: the process's own and all that
 * contain it. Inside a container the path may be the host's, of which only the root is visible. */
void pen__cgroup_each(const char *controller, void (*each)(void *ctx, int version, const char *dir),
                      void *ctx);

#endif
