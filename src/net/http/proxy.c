/* SPDX-License-Identifier: Apache-2.0 */
#include "net/http/proxy.h"

#include <string.h>

#include "base/attr.h"
#include "base/error.h"
#include "base/mem.h"
#include "base/sys.h"

/* EC2, ECS, EKS */
#define METADATA "169.254.169.254,169.254.170.2,169.254.170.23,fd00:ec2::254,fd00:ec2::23"

/* The first that is set, though it be empty: that switches the later ones off. */
static const char *first_of(const char *const *names, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        const char *value = pen__sys->environment(names[i]);
        if (value)
            return value;
    }
    return "";
}

static char *except_list(const char *no_proxy)
{
    if (strcmp(no_proxy, "*") == 0) /* which curl knows on its own alone */
        return pen__strdup(no_proxy);
    PenBuf b = {0};
    if (pen__buf_add(&b, METADATA, strlen(METADATA)) < 0 ||
        (no_proxy[0] && pen__buf_add(&b, ",", 1) < 0) ||
        pen__buf_add(&b, no_proxy, strlen(no_proxy) + 1) < 0) {
        pen__buf_free(&b);
        return NULL;
    }
    return (char *)b.data;
}

int pen__proxy_read(const char *given, PenProxy *ret, PenError *reterr)
{
    /* HTTP_PROXY in capitals is left out: a web server sets it from a request's header. */
    static const char *const HTTP[] = {"http_proxy", "all_proxy", "ALL_PROXY"};
    static const char *const HTTPS[] = {"https_proxy", "HTTPS_PROXY", "all_proxy", "ALL_PROXY"};
    static const char *const EXCEPT[] = {"no_proxy", "NO_PROXY"};
    PenProxy p = {
        .http = pen__strdup(given ? given : first_of(HTTP, PEN_LEN(HTTP))),
        .https = pen__strdup(given ? given : first_of(HTTPS, PEN_LEN(HTTPS))),
        .except = except_list(given ? "" : first_of(EXCEPT, PEN_LEN(EXCEPT))),
    };
    if (!p.http || !p.https || !p.except) {
        pen__proxy_free(&p);
        return pen__fail_memory(reterr, "net/proxy", "the proxies' names");
    }
    *ret = p;
    return PEN_OK;
}

void pen__proxy_free(PenProxy *p)
{
    pen__free(p->http);
    pen__free(p->https);
    pen__free(p->except);
    *p = (PenProxy){0};
}
