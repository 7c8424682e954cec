/* SPDX-License-Identifier: Apache-2.0 */
/* Loaded before others, an own name service for tests: the names below, for so many look-ups
 * (ODD_NAMES; -1 for ever). Others are answered as if nothing were wrong, by 127.0.0.1.
 *
 *     fails.test  there is no such name
 *     slow.test   takes 4 s
 *     two.test    two addresses: 127.0.0.9, where nobody answers, and 127.0.0.1 */
#include <arpa/inet.h>
#include <dlfcn.h>
#include <netdb.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

typedef int Lookup(const char *, const char *, const struct addrinfo *, struct addrinfo **);

Lookup getaddrinfo;

static int is_odd(void)
{
    static atomic_uint lookups;
    const char *most = getenv("ODD_NAMES");
    return atomic_fetch_add(&lookups, 1) < (most ? (unsigned)strtol(most, NULL, 10) : 0);
}

int getaddrinfo(const char *name, const char *service, const struct addrinfo *hints,
                struct addrinfo **ret)
{
    Lookup *real = (Lookup *)dlsym(RTLD_NEXT, "getaddrinfo");
    size_t n = name ? strlen(name) : 0;
    if (n < 5 || strcmp(name + n - 5, ".test") != 0)
        return real(name, service, hints, ret);
    int odd = is_odd();
    if (odd && strcmp(name, "fails.test") == 0)
        return EAI_NONAME;
    if (odd && strcmp(name, "slow.test") == 0)
        sleep(4);
    struct addrinfo *live = NULL;
    int r = real("127.0.0.1", service, hints, &live);
    if (r == 0 && odd && strcmp(name, "two.test") == 0) {
        struct addrinfo *dead = NULL;
        r = real("127.0.0.9", service, hints, &dead);
        if (r != 0) {
            freeaddrinfo(live);
            return r;
        }
        dead->ai_next = live; /* freeaddrinfo goes through the list */
        live = dead;
    }
    *ret = live;
    return r;
}
