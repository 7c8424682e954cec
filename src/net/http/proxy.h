/* SPDX-License-Identifier: Apache-2.0 */
/* Which proxy a request goes through. Read from the environment once, by the thread that makes the
 * engine: other threads may change it later, and getenv is not safe against that. */
#ifndef PEN_NET_HTTP_PROXY_H
#define PEN_NET_HTTP_PROXY_H

#include <penstock/error.h>

typedef struct PenProxy {
    char *http, *https; /* "" means none; never NULL once read */
    char *except;       /* hosts that are asked directly, as no_proxy has them */
} PenProxy;

/* given: for everything; NULL: as the environment says. Metadata services are never asked through
 * a proxy: what comes back are credentials. */
int pen__proxy_read(const char *given, PenProxy *ret, PenError *reterr);
void pen__proxy_free(PenProxy *p);

#endif
