/* SPDX-License-Identifier: Apache-2.0 */
/* Changes a pack (see pack_parts.h) and puts checksums and places right again, because without that
 * hardly any input would get past them. */
#ifndef PEN_TESTS_FUZZ_MUTATE_PACK_H
#define PEN_TESTS_FUZZ_MUTATE_PACK_H

#include <stddef.h>
#include <stdint.h>

/* As LLVMFuzzerCustomMutator: in place, returns the new size. */
size_t mutate_pack(uint8_t *data, size_t bytes, size_t max_bytes, unsigned seed);

#endif
