/* SPDX-License-Identifier: Apache-2.0 */
/* The status of a loader, as another process may write it. The input is the text without its last
 * line, which is added with the right checksum; and, without it, the text as it is. What is read is
 * written down and then reads the same. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/crc32c.h"
#include "help.h"
#include "load/status/text.h"

enum { END_BYTES = 13 };

static void try(const char *text)
{
    char first[PEN_STATUS_BYTES], second[PEN_STATUS_BYTES];
    PenLoadStatus s, again;
    if (!pen__status_read(text, &s))
        return;
    REQUIRE(strlen(s.pack) < sizeof s.pack);
    pen__status_write(&s, first);
    REQUIRE(pen__status_read(first, &again));
    pen__status_write(&again, second);
    REQUIRE(memcmp(first, second, sizeof first) == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    char *text = calloc(1, PEN_STATUS_BYTES);
    size_t n = bytes < PEN_STATUS_BYTES ? bytes : PEN_STATUS_BYTES;
    memcpy(text, data, n);
    try(text);
    n = strnlen(text, PEN_STATUS_BYTES - END_BYTES - 1);
    memset(text + n, 0, PEN_STATUS_BYTES - n);
    snprintf(text + n, PEN_STATUS_BYTES - n, "end %08" PRIx32 "\n", pen__crc32c(0, text, n));
    try(text);
    free(text);
    return 0;
}
