/* SPDX-License-Identifier: Apache-2.0 */
/* Messages: one line each on stderr, after the name of the program. Coloured on a terminal. */
#ifndef PEN_CLI_OUTPUT_MESSAGES_H
#define PEN_CLI_OUTPUT_MESSAGES_H

#include <penstock/error.h>

#define CLI_PRINTF(at, args) __attribute__((format(printf, at, args)))

enum {
    CLI_EXIT_OK = 0,
    CLI_EXIT_FAILURE = 1,
    CLI_EXIT_USAGE = 2,
    CLI_EXIT_BUSY = 75, /* EX_TEMPFAIL of sysexits.h */
    CLI_EXIT_INTERRUPTED = 130
};

void cli_print_message(const char *format, ...) CLI_PRINTF(1, 2);
void cli_print_error(const PenError *error);

/* Fill in an error as the library does, and return the status. */
int cli_fail(PenError *reterr, int status, const char *format, ...) CLI_PRINTF(3, 4);
/* The text for EFBIG. */
#define CLI_TOO_LARGE                                                                              \
    "File too large: over the limit of this process (ulimit -f) or of the file system"
int cli_fail_os(PenError *reterr, int os_errno, const char *format, ...) CLI_PRINTF(3, 4);
int cli_fail_memory(PenError *reterr);

#endif
