/* SPDX-License-Identifier: Apache-2.0 */
/* New files under one directory, with names that may be hostile: nothing is written outside of it,
 * no symbolic link is followed below it, nothing that exists is touched. */
#ifndef PEN_CLI_EXTRACT_DIRECTORY_H
#define PEN_CLI_EXTRACT_DIRECTORY_H

#include <stddef.h>

#include <penstock/error.h>

typedef struct CliDirectory {
    int fd;
    const char *path; /* the caller's; for messages */
} CliDirectory;

enum { CLI_NAME_CAP = 4096 };

/* Opens the directory, or makes it (its parent must exist). */
int cli_directory_open(const char *path, CliDirectory *ret, PenError *reterr);
void cli_directory_close(CliDirectory *directory);

/* Is this the name of a file below a directory, and nothing else? PEN_E_INVALID says why not. */
int cli_directory_check(const void *name, size_t bytes, PenError *reterr);

/* Makes the file `name` (checked before) and the directories it lies in. PEN_E_EXISTS when there is
 * one. */
int cli_directory_create(const CliDirectory *directory, const char *name, int *ret_fd,
                         PenError *reterr);
/* The same with its content; takes the file away again when writing fails. */
int cli_directory_write(const CliDirectory *directory, const char *name, const void *data,
                        size_t bytes, PenError *reterr);

#endif
