/* SPDX-License-Identifier: Apache-2.0 */
/* One HTTP request and what came of it, in plain values: nothing here knows who carries it. */
#ifndef PEN_NET_HTTP_MESSAGE_H
#define PEN_NET_HTTP_MESSAGE_H

#include <stddef.h>
#include <stdint.h>
#include <sys/uio.h>

#include "base/arrival.h"

#define PEN_HTTP_ERROR_BYTES                                                                       \
    16384                           /* of the body of an answer that is an error; the rest is cut  \
                                     */
#define PEN_HTTP_HEADER_BYTES 65536 /* all headers of an answer; more is an error */
#define PEN_HTTP_HEADER_LINES 100

typedef struct PenHttpHeader {
    const char *name, *value;
} PenHttpHeader;

/* Every one is enforced; none may be 0. */
typedef struct PenHttpLimits {
    uint32_t connect_ms;    /* name, connection and TLS */
    uint32_t first_byte_ms; /* from the connection (and the request's body) to the head's end */
    uint32_t slow_bytes;    /* a body has to bring (or take) so many bytes ... */
    uint32_t slow_ms;       /* ... in any stretch of this length */
    uint32_t deadline_ms;   /* the whole attempt */
} PenHttpLimits;

/* Borrowed by the transport until the transfer has ended. */
typedef struct PenHttpRequest {
    const char *method; /* GET HEAD PUT POST DELETE */
    const char *url;    /* percent-encoded; sent as it stands */
    const PenHttpHeader *headers;
    size_t n_headers; /* without Host, Content-Length, Accept-Encoding: those are the transport's */
    const struct iovec *body; /* of a PUT or POST */
    int n_body;
    void *into; /* the body of a 2xx answer; NULL: not wanted, more than 0 bytes are a failure */
    size_t into_bytes; /* more than this is PEN_HTTP_TOO_LONG */
    /* Instead of `into`: the body goes to these places, one after another; into_bytes is their sum.
     */
    const struct iovec *into_v;
    int n_into;
    const PenArrival *arrival; /* of the body of a 2xx answer; NULL: nobody */
    uint8_t fresh;             /* a connection of its own, none that was used before */
    PenHttpLimits limits;
} PenHttpRequest;

typedef enum PenHttpFailure {
    PEN_HTTP_OK,       /* an answer came, whole as its own headers say; look at the status */
    PEN_HTTP_RESOLVE,  /* no address for the name */
    PEN_HTTP_CONNECT,  /* no connection */
    PEN_HTTP_TLS,      /* a certificate that does not hold: wrong host, expired, untrusted */
    PEN_HTTP_BROKEN,   /* the connection ended before the answer did; also TLS alerts in mid-body */
    PEN_HTTP_GARBLED,  /* not HTTP, or HTTP that contradicts itself, or too many headers */
    PEN_HTTP_TOO_LONG, /* the body is longer than wanted or than declared */
    PEN_HTTP_ENCODED,  /* a content encoding that was not asked for */
    PEN_HTTP_T_CONNECT, /* the four time limits */
    PEN_HTTP_T_FIRST_BYTE,
    PEN_HTTP_T_SLOW,
    PEN_HTTP_T_DEADLINE,
    PEN_HTTP_NO_MEMORY
} PenHttpFailure;

#define PEN_HTTP_NONE UINT64_MAX

/* Valid during the call that hands it over. Texts are cut to the size of their arrays and always
 * end in NUL; those that were not there are empty, numbers PEN_HTTP_NONE. */
typedef struct PenHttpReply {
    PenHttpFailure failure;
    int os_errno;
    int status;                                    /* 0 when no status line came */
    uint64_t bytes;                                /* of the body that lie in `into` or `into_v` */
    uint64_t content_length;                       /* as declared */
    uint64_t range_first, range_last, range_total; /* Content-Range; total NONE for "*" */
    uint64_t retry_after_ms;                       /* Retry-After, seconds or a date */
    uint64_t date_s;                               /* the server's clock, seconds since 1970 */
    char etag[132];  /* with its quotes; empty also when it does not fit or has odd characters */
    char region[64]; /* x-amz-bucket-region */
    char request_id[128]; /* x-amz-request-id */
    char content_type[64];
    char peer[64];     /* address and port; for messages */
    char detail[128];  /* what the transport says; never a secret */
    const char *error; /* body of a status outside 2xx */
    size_t error_bytes;
    uint64_t connect_ns, first_byte_ns, total_ns; /* since the start */
    uint8_t reused;                               /* came over a connection used before */
} PenHttpReply;

const char *pen__http_failure_text(PenHttpFailure failure);

/* Where the body goes, whichever way it was said; `one` is memory for it. Returns how many places.
 */
int pen__http_into(const PenHttpRequest *request, struct iovec *one, const struct iovec **ret);

#endif
