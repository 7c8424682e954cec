/* SPDX-License-Identifier: Apache-2.0 */
/* Which certificates are trusted: a file or a directory of them. */
#ifndef PEN_NET_HTTP_CERTIFICATES_H
#define PEN_NET_HTTP_CERTIFICATES_H

#include <penstock/error.h>

typedef struct PenCa {
    char file[1024]; /* "" when there is none */
    char dir[1024];  /* hashed as openssl's programs do it; "" when there is none */
} PenCa;

/* `given`, else SSL_CERT_FILE and SSL_CERT_DIR, else where the systems keep them. A file that was
 * named and cannot be read is an error. Both empty when this system has none: then no https server
 * can be trusted, and requests say so. */
int pen__ca_find(const char *given, PenCa *ret, PenError *reterr);

#endif
