/* SPDX-License-Identifier: Apache-2.0 */
/* The steps of a signature, apart so that tests see them. */
#ifndef PEN_NET_AWS_SIGN_IMPL_H
#define PEN_NET_AWS_SIGN_IMPL_H

#include "net/aws/sign.h"

typedef struct PenUrlParts {
    char *host, *path; /* one allocation, of the host */
    const char *query; /* borrowed; "" when there is none */
} PenUrlParts;

int pen__url_split(const char *url, PenUrlParts *ret, PenError *reterr);
void pen__url_parts_free(PenUrlParts *parts);

/* The canonical request and the signed names ("host;x-amz-date"), both with a NUL behind them. The
 * request may hold the token (NULL: none): pen__buf_wipe. */
int pen__sign_canonical(const PenToSign *what, const PenUrlParts *url, const char *date,
                        const char *token, PenBuf *ret_request, PenBuf *ret_names,
                        PenError *reterr);

void pen__buf_wipe(PenBuf *b); /* and frees it */

#endif
