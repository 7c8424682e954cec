/* SPDX-License-Identifier: Apache-2.0 */
/* One search for credentials, and what it found. All that is secret in these tests has "canary" in
 * it, and no message may have. */
#ifndef PEN_TESTS_UNIT_CRED_HELP_H
#define PEN_TESTS_UNIT_CRED_HELP_H

#include "secret_help.h"

#include "net/credentials/sources.h"

typedef struct Found {
    int r;
    PenError err;
    char key_id[64], secret[64], token[64];
    uint64_t expires_s, date_s;
    char source[256];
} Found;

void check_clean(const PenError *err, int line);
void find_at(Found *f, const char *profile, uint32_t process_ms, int line);

#define FIND(profile) (find_at(&f, profile, 10000, __LINE__), f.r)
#define NEED_SERVER()                                                                              \
    do {                                                                                           \
        if (!server.port)                                                                          \
            SKIP("no python3, or no tests/net/metadata_server.py");                                \
    } while (0)

#endif
