/* SPDX-License-Identifier: Apache-2.0 */
/* Structs that a program and the library share and that may grow: docs/reference/c-abi.md.
 *
 * Such a struct starts with `uint32_t struct_size`. A program may be built with an older or a newer
 * header than the library, so the library never reads or writes more than the program has. */
#ifndef PEN_BASE_ABI_H
#define PEN_BASE_ABI_H

#include <stddef.h>

#include "base/error.h"

/* Writes the defaults to the program's settings, `bytes` of them, and sets struct_size to that. */
void pen__settings_default(void *ret, size_t bytes, const void *defaults, size_t default_bytes);

/* Copies the program's settings over the library's own, which hold the defaults: members that the
 * program does not have keep them. `given` NULL changes nothing. `init` is the name of the init
 * function, for messages. PEN_E_INVALID: struct_size is not one that an init function sets.
 * PEN_E_UNSUPPORTED: the program sets a member that this library does not have. */
int pen__settings_copy(void *own, size_t own_bytes, const void *given, const char *init,
                       PenError *reterr);

/* Copies a result to the program, `ret_bytes` of it. Members that this library does not have become
 * 0; struct_size becomes the number of bytes that are filled. `ret` may be NULL. */
void pen__result_copy(void *ret, size_t ret_bytes, const void *own, size_t own_bytes);

#endif
