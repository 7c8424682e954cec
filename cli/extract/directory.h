/* SPDX-License-Identifier: Apache-2.0 */
/* Creates files below one directory, under names that are not trusted: nothing is written outside
 * of it, no symbolic link below it is followed, and existing files are not changed. */
#ifndef PEN_CLI_EXTRACT_DIRECTORY_H
#define PEN_CLI_EXTRACT_DIRECTORY_H

#include <stddef.h>

#include <penstock/error.h>

typedef struct CliDirectory {
    int fd;
    const char *path; /* the caller's; for messages */
} CliDirectory;

enum { CLI_NAME_CAP = 4096 };

/* Creates the directory (its parent must exist), or opens it if it is empty: otherwise
 * PEN_E_EXISTS. */
int cli_directory_open(const char *path, CliDirectory *ret, PenError *reterr);
void cli_directory_close(CliDirectory *directory);

/* Checks that this is a plain relative path. PEN_E_INVALID: the message has the reason. */
int cli_directory_check(const void *name, size_t bytes, PenError *reterr);

/* Creates the file `name`, which was checked, and its directories. PEN_E_EXISTS if it exists. */
int cli_directory_create(const CliDirectory *directory, const char *name, int *ret_fd,
                         PenError *reterr);
/* The next part of a file: 1, or 0 at its end. */
typedef int (*CliPartFn)(void *ctx, const void **ret_data, size_t *ret_bytes, PenError *reterr);
/* The same with its content; removes the file if writing fails. */
int cli_directory_write_parts(const CliDirectory *directory, const char *name, CliPartFn part,
                              void *ctx, PenError *reterr);
int cli_directory_write(const CliDirectory *directory, const char *name, const void *data,
                        size_t bytes, PenError *reterr);

#endif
