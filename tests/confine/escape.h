/* SPDX-License-Identifier: Apache-2.0 */
/* What a program could do that runs in ffmpeg's place, one escape a function. */
#ifndef PEN_TESTS_CONFINE_ESCAPE_H
#define PEN_TESTS_CONFINE_ESCAPE_H

#include <stdint.h>
#include <sys/syscall.h>
#include <unistd.h>

/* Set before an escape runs. */
extern char *escape_dir; /* holds victim, empty/, .aws/credentials, input */
extern int escape_parent;
extern uintptr_t escape_address; /* of 8 bytes in the parent's memory */

const char *escape_path(const char *name); /* in escape_dir; the last 4 are kept */

/* < 0: refused, and errno says how. Otherwise it went through. */
typedef long (*EscapeFn)(void);

typedef struct Escape {
    const char *name;
    EscapeFn run;
} Escape;

extern const Escape escapes_of_files[], escapes_of_kernel[], escapes_of_parent[]; /* end in NULL */

#endif
