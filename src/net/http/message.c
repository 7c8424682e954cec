/* SPDX-License-Identifier: Apache-2.0 */
#include "net/http/message.h"

const char *pen__http_failure_text(PenHttpFailure failure)
{
    switch (failure) {
    case PEN_HTTP_OK:
        return "an answer came";
    case PEN_HTTP_RESOLVE:
        return "no address found for the host's name";
    case PEN_HTTP_CONNECT:
        return "no connection";
    case PEN_HTTP_TLS:
        return "the server's certificate does not hold";
    case PEN_HTTP_BROKEN:
        return "the connection ended before the answer did";
    case PEN_HTTP_GARBLED:
        return "the answer is not valid HTTP";
    case PEN_HTTP_TOO_LONG:
        return "the answer is longer than what was asked for";
    case PEN_HTTP_ENCODED:
        return "the answer has an encoding that was not asked for";
    case PEN_HTTP_T_CONNECT:
        return "no connection within the time limit";
    case PEN_HTTP_T_FIRST_BYTE:
        return "connected, but no answer within the time limit";
    case PEN_HTTP_T_SLOW:
        return "bytes moved slower than the lowest speed allowed";
    case PEN_HTTP_T_DEADLINE:
        return "not complete within the time limit of an attempt";
    case PEN_HTTP_NO_MEMORY:
        return "out of memory";
    }
    return "unknown failure";
}

int pen__http_into(const PenHttpRequest *request, struct iovec *one, const struct iovec **ret)
{
    *ret = request->into_v ? request->into_v : one;
    if (request->into_v)
        return request->n_into;
    *one = (struct iovec){request->into, request->into_bytes};
    return request->into != NULL;
}
