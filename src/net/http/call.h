/* SPDX-License-Identifier: Apache-2.0 */
/* Asking a server from a thread that may wait: the request is carried to the transport's loop, and
 * the answer brought back. Everything is copied into memory of its own, so that neither side has to
 * wait for the other to let go. */
#ifndef PEN_NET_HTTP_CALL_H
#define PEN_NET_HTTP_CALL_H

#include <pthread.h>
#include <stdbool.h>

#include "base/secret_memory.h"
#include "net/http/transport.h"

#define PEN_ASK_ANSWER_BYTES 65536

typedef struct PenAskCall PenAskCall;

/* One for each thread that asks: one question at a time. */
typedef struct PenAsk {
    PenTransport *t; /* not touched any more once it is closed */
    pthread_mutex_t mutex;
    bool closed;
    PenAskCall *call; /* under way */
} PenAsk;

typedef struct PenAnswer {
    PenHttpFailure failure;
    int status;
    uint64_t date_s;      /* the server's clock, or PEN_HTTP_NONE */
    PenSecretMemory body; /* of any status; text ends in NUL. May be secret */
    char detail[128];
} PenAnswer;

void pen__ask_init(PenAsk *ask, PenTransport *t); /* t may be NULL: then nothing can be asked */
void pen__ask_free(PenAsk *ask);                  /* nothing is under way */
/* From any thread: ends what is under way (PEN_E_CANCELLED) and all that would come. */
void pen__ask_close(PenAsk *ask);

/* request->into is not used. Any answer is PEN_OK, a connection that fails too: look at `failure`.
 * PEN_E_TIMEOUT, PEN_E_CANCELLED, PEN_E_CLOSED, PEN_E_NO_MEMORY. */
int pen__ask(PenAsk *ask, const PenHttpRequest *request, uint64_t deadline_ns, PenAnswer *ret,
             PenError *reterr);
void pen__answer_free(PenAnswer *answer);

/* The same up to `tries` times, while the answer may be another the next time: no connection, a
 * time-out, 408, 429, 5xx. Waits 100 ms, 200 ms, ... in between. */
int pen__ask_again(PenAsk *ask, const PenHttpRequest *request, unsigned tries, uint64_t deadline_ns,
                   PenAnswer *ret, PenError *reterr);

#endif
