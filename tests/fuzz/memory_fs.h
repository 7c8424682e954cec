/* SPDX-License-Identifier: Apache-2.0 */
/* A file system in memory behind the system interface: fast, always empty at first, and nothing
 * that an input says can reach a real file. Not for several threads that write at once. */
#ifndef PEN_TESTS_FUZZ_MEMORY_FS_H
#define PEN_TESTS_FUZZ_MEMORY_FS_H

#include <stddef.h>
#include <stdint.h>

/* From here on the library uses it. A read or write does at most `piece` bytes at once; 0 = all. */
void fs_begin(size_t piece);
/* Everything has to be closed again. */
void fs_end(void);

/* Folders have to be there: "/" and "." are. */
void fs_folder(const char *path);
void fs_file(const char *path, const void *data, size_t bytes);
/* How many files there are. */
size_t fs_count(void);

#endif
