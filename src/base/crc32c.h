/* SPDX-License-Identifier: Apache-2.0 */
/* CRC-32C (Castagnoli), the checksum of every byte in a pack. */
#ifndef PEN_BASE_CRC32C_H
#define PEN_BASE_CRC32C_H

#include <stddef.h>
#include <stdint.h>

/* Start with crc = 0; feeding the result back continues:
 * pen__crc32c(pen__crc32c(0, a, n), b, m) is the checksum of a followed by b. */
uint32_t pen__crc32c(uint32_t crc, const void *data, size_t bytes);

/* The checksum of a followed by b, where `crc` is that of a, and `next` that of b alone, which has
 * `bytes` bytes, at most 2^28: without the bytes themselves. */
uint32_t pen__crc32c_join(uint32_t crc, uint32_t next, uint64_t bytes);

/* The same without special instructions: the fallback, and what tests compare with. */
uint32_t pen__crc32c_soft(uint32_t crc, const void *data, size_t bytes);

#endif
