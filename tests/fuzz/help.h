/* SPDX-License-Identifier: Apache-2.0 */
/* What the fuzz targets share. A target gives its input to the library as a heap block of exactly
 * that size, so that the address sanitizer sees every byte read behind it, and requires more than
 * that nothing crashes: a failure has a filled-in error, and what was accepted holds together. */
#ifndef PEN_TESTS_FUZZ_HELP_H
#define PEN_TESTS_FUZZ_HELP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

/* libFuzzer calls the first three, the last is its own. */
int LLVMFuzzerInitialize(int *argc, char ***argv);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes);
size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t bytes, size_t max_bytes, unsigned seed);
size_t LLVMFuzzerMutate(uint8_t *data, size_t bytes, size_t max_bytes);

_Noreturn void require_failed(const char *file, int line, const char *condition,
                              const PenError *error);

#define REQUIRE(condition)                                                                         \
    ((condition) ? (void)0 : require_failed(__FILE__, __LINE__, #condition, NULL))

/* With a PenError `err` in scope: makes the call and gives its result, which has to be a success
 * that left the error alone, or a failure that filled it in. */
#define CALL(call) (err = (PenError){0}, checked((call), &err, __FILE__, __LINE__, #call))
#define GOES(call) (CALL(call) == PEN_OK)
/* The call has to succeed. */
#define MUST(call)                                                                                 \
    (CALL(call) == PEN_OK ? (void)0 : require_failed(__FILE__, __LINE__, #call, &err))

int checked(int r, const PenError *err, const char *file, int line, const char *call);

/* Every byte has been written: what the memory sanitizer knows, and nothing else does. */
void require_written(const void *data, size_t bytes);

/* Exactly so many bytes; free() it. */
void *copy_of(const void *data, size_t bytes);

/* An input that is taken apart from the front; when it is used up all numbers are 0. */
typedef struct Input {
    const uint8_t *data;
    size_t bytes;
} Input;

uint8_t take_byte(Input *in);
uint32_t take_below(Input *in, uint32_t end); /* [0, end); end is at most 65,536 */
/* At most `bytes`; fewer when there are no more. */
const uint8_t *take_bytes(Input *in, size_t bytes, size_t *ret_bytes);

/* For mutators, which get nothing but a seed. */
typedef struct Dice {
    uint64_t state;
} Dice;

uint32_t roll(Dice *dice, size_t end); /* [0, end), 0 when end is 0 */
/* Overwrites 1, 2, 4 or 8 bytes somewhere in `data` by a number that tends to be awkward. */
void put_awkward(Dice *dice, uint8_t *data, size_t bytes);

/* The checksum of PNG and gzip. */
uint32_t crc32_of(const uint8_t *data, size_t bytes);

#endif
