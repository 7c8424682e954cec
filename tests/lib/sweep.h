/* SPDX-License-Identifier: Apache-2.0 */
/* Counting many small cases as one test. PENSTOCK_SCALE=full asks for all of them, "few" for a
 * small sample, as CI does under sanitizers, and anything else for a sample. */
#ifndef PEN_TESTS_LIB_SWEEP_H
#define PEN_TESTS_LIB_SWEEP_H

#include <stdbool.h>
#include <stdint.h>

bool scale_is_full(void);
uint64_t scaled(uint64_t full, uint64_t sample);
/* For what takes long under a sanitizer. */
uint64_t scaled_to_few(uint64_t full, uint64_t sample, uint64_t few);

typedef struct Sweep {
    const char *name;
    uint64_t n;   /* cases looked at */
    uint64_t bad; /* complaints; only the first few are printed */
    double began; /* seconds */
} Sweep;

Sweep sweep_begin(const char *name);
__attribute__((format(printf, 2, 3))) void sweep_bad(Sweep *s, const char *fmt, ...);
/* Prints "name: ..., N complaints, S s". */
__attribute__((format(printf, 2, 3))) void sweep_end(const Sweep *s, const char *fmt, ...);

/* For what has to work before the test can begin: prints the place and ends the program. */
#define MUST(cond) ((cond) ? (void)0 : must_failed(__FILE__, __LINE__, #cond))
_Noreturn void must_failed(const char *file, int line, const char *what);

#endif
