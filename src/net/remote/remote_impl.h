/* SPDX-License-Identifier: Apache-2.0 */
/* Inside of a remote place: what its files share. */
#ifndef PEN_NET_REMOTE_REMOTE_IMPL_H
#define PEN_NET_REMOTE_REMOTE_IMPL_H

#include <pthread.h>
#include <stdatomic.h>

#include "base/error.h"
#include "base/secret_memory.h"
#include "net/address/address.h"
#include "net/aws/sign.h"
#include "net/credentials/credentials.h"
#include "net/http/engine.h"
#include "net/remote/remote.h"

struct PenRemote {
    PenAddress address;
    PenBuf text; /* the address as text, for messages */
    /* Whose thread, connections, credentials, limits and endpoint it uses: itself mostly. Pointers
     * to these, and what does not change, are copied. */
    PenRemote *shared;
    PenSecretMemory settings; /* a digest of those that it was opened with; empty: not its own */
    PenEngine *engine;
    PenTransport *transport;
    PenPolicy *policy;
    PenKeyring *keyring; /* NULL: nothing is signed */
    uint32_t outage_ms;
    uint32_t node_ranks;
    uint32_t upload_parts;
    atomic_int is_stopped;
    int (*interrupted)(void *ctx);
    void (*release)(void *ctx);
    void *ctx;      /* of both */
    uint8_t hashes; /* what is sent is hashed for its signature: http has no other seal */
    atomic_uint refs;
    /* The loop's own from here on, and those of `shared` alone are used. */
    PenEndpoint endpoint;
    int64_t skew_s;     /* what to add to our clock to have the server's */
    uint8_t reached;    /* it has answered before */
    uint8_t given_host; /* an endpoint was given: another region changes the signature alone */
};

enum { OP_HEADERS = 12, OP_NAME_BYTES = 1200 };

/* One request from its making to what came of it. */
typedef struct PenRemoteOp {
    PenRemote *r;
    const char *method;
    const char *name;           /* below the address */
    const PenHttpHeader *query; /* of S3 */
    size_t n_query;
    const PenHttpHeader *extra; /* further headers, all signed */
    size_t n_extra;
    const struct iovec *body;
    int n_body;
    const char *payload_hash; /* of the body; NULL: unsigned when that is safe, else computed */
    void *into;
    size_t into_bytes;
    const struct iovec *into_v; /* instead of `into` */
    int n_into;
    const PenArrival *arrival; /* NULL: nobody */
    uint8_t ranged, suffix, fresh, may_be_absent;
    uint64_t range_first, range_bytes;
    const char *etag;  /* "": any */
    PenIf when;        /* of a store */
    uint8_t at_bucket; /* the request is about the bucket, not an object */

    /* What came. */
    int status;
    uint64_t bytes, content_length, range_total;
    char ret_etag[132];

    /* Of the attempt. */
    PenAwsCredentials *secret;
    PenSigned sign;
    PenBuf url;
    char range[64], match[132], title[OP_NAME_BYTES], hash[65];
    PenHttpHeader headers[OP_HEADERS + 4];
    PenAwsCredentials *refused; /* by the server, last */
    unsigned n_refused;         /* different credentials */
    unsigned wrong;             /* answers that contradict the request */
    unsigned unreached;         /* attempts without a connection */
} PenRemoteOp;

/* Runs it to the end. What it holds is freed; results stay. */
int pen__remote_run(PenRemoteOp *op, PenError *reterr);
/* For those who start it on the loop themselves. */
PenOperationSpec pen__remote_spec(PenRemoteOp *op);
int pen__remote_begin(PenRemoteOp *op, PenError *reterr); /* its title; refuses what cannot be */
void pen__remote_end(PenRemoteOp *op);
/* Of a message with words of the server's: nothing of the keys is left. Accepts NULL. */
void pen__remote_hide(PenRemote *r, PenError *err);

/* classify.c */
/* Has it an ETag that If-Match can compare? That is strong: a weak one (W/"...") never matches. */
int pen__remote_has_strong_etag(const PenRemoteOp *op);
PenVerdict pen__remote_classify(void *ctx, const PenHttpReply *reply, unsigned *cause,
                                PenError *err);

#endif
