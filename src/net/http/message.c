/* SPDX-License-Identifier: Apache-2.0 */
#include "net/http/message.h"

const char *pen__http_failure_text(PenHttpFailure failure)
{
    switch (failure) {
    case PEN_HTTP_OK:
        return "success";
    case PEN_HTTP_RESOLVE:
        return "cannot resolve the host name";
    case PEN_HTTP_CONNECT:
        return "cannot connect";
    case PEN_HTTP_TLS:
        return "the server's certificate is not valid";
    case PEN_HTTP_BROKEN:
        return "the connection was closed before the response was complete";
    case PEN_HTTP_GARBLED:
        return "the response is not valid HTTP";
    case PEN_HTTP_TOO_LONG:
        return "the response is longer than requested";
    case PEN_HTTP_ENCODED:
        return "the response has a content encoding that was not requested";
    case PEN_HTTP_T_CONNECT:
        return "no connection within the time limit";
    case PEN_HTTP_T_FIRST_BYTE:
        return "connected, but no response within the time limit";
    case PEN_HTTP_T_SLOW:
        return "the transfer was slower than the lowest speed allowed";
    case PEN_HTTP_T_DEADLINE:
        return "the response was not complete within the time limit";
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
