/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of the engine share. All of it belongs to the loop but what says otherwise. */
#ifndef PEN_NET_HTTP_ENGINE_IMPL_H
#define PEN_NET_HTTP_ENGINE_IMPL_H

#include <curl/curl.h>
#include <pthread.h>
#include <stdbool.h>
#include <sys/types.h>

#include "base/mem.h"
#include "net/http/certificates.h"
#include "net/http/engine.h"
#include "net/http/proxy.h"
#include "net/http/response_head.h"

#if LIBCURL_VERSION_NUM < 0x075700
#error                                                                                             \
    "libcurl 7.87 or newer is needed: CURLOPT_QUICK_EXIT, or a resolver that hangs stops the loop"
#endif

#define PEN_ENGINE_TICKS 4 /* a stretch of slow_ms is looked at so many times */

typedef enum PenPhase {
    PEN_PHASE_CONNECT, /* name, connection, TLS */
    PEN_PHASE_SEND,    /* the request and its body */
    PEN_PHASE_WAIT,    /* for the head of the answer, to its end */
    PEN_PHASE_BODY
} PenPhase;

typedef struct PenCurlTransfer {
    PenTransfer base; /* first: a PenTransfer * of this transport is one of these */
    struct PenCurlTransfer *prev,
        *next; /* in the list it is in, which has a head of the same type */
    PenEngine *engine;
    PenHttpRequest request;
    void (*done)(void *ctx, const PenHttpReply *reply);
    void *ctx;

    CURL *easy;
    CURLU *url;
    curl_socket_t fd; /* of its connection; CURL_SOCKET_BAD before it has one */
    struct curl_slist *headers;
    char why[CURL_ERROR_SIZE];

    PenHead head;
    PenHttpReply reply;
    PenBuf error;   /* body of an answer that is an error */
    uint8_t is_cut; /* ... of which we took enough and ended the transfer */
    uint8_t stale;  /* its connection had bytes nobody asked for; nothing was sent */

    uint64_t body_bytes, body_at; /* to send; handed to curl */
    int iov;                      /* where body_at lies */
    size_t iov_at;

    uint64_t start_ns, phase_ns;
    uint64_t due_ns; /* nothing has to be looked at before */
    PenPhase phase;
    unsigned tick;
    uint64_t ticks[PEN_ENGINE_TICKS]; /* bytes moved at the last ones */
} PenCurlTransfer;

typedef struct PenSocket {
    curl_socket_t fd;
    int port; /* ours; 0: not asked for yet */
} PenSocket;

typedef struct PenPosted {
    struct PenPosted *next;
    PenCall *call;
    void *ctx;
} PenPosted;

struct PenEngine {
    PenTransport transport; /* first: a PenTransport * is a PenEngine * */
    pid_t pid;              /* that made it */
    pthread_t thread;
    PenCa ca;
    PenProxy proxy;
    CURLM *multi;
    int epoll_fd, wake_fd;
    uint64_t curl_ns;                   /* when curl wants to be called, whatever its sockets do */
    uint8_t look;                       /* curl has to be called for all transfers */
    uint8_t crowded;                    /* many sockets wait for this thread */
    PenCurlTransfer transfers, expired; /* heads of lists */
    uint64_t due_ns;                    /* the earliest of the transfers */
    PenTimer *timers;                   /* in order */
    PenSocket *sockets;                 /* that curl has open */
    size_t n_sockets, sockets_cap;

    /* Any thread's, under the mutex. */
    pthread_mutex_t mutex;
    pthread_cond_t changed;
    PenPosted *posted, **posted_end;
    uint8_t closing; /* no calls are taken any more */
    uint8_t cut;     /* no transfers are left, nor calls */
    uint8_t ended;   /* the loop has; nothing of curl is left */
    uint8_t left;    /* by who freed it: the thread frees what remains */
};

static inline PenEngine *pen__engine_of(PenTransport *t)
{
    return (PenEngine *)t;
}

/* transfer.c */
int pen__transfer_start(PenTransport *t, const PenHttpRequest *request,
                        void (*done)(void *ctx, const PenHttpReply *reply), void *ctx,
                        PenTransfer **ret, PenError *reterr);
void pen__transfer_cancel(PenTransfer *transfer);
/* Takes it out of curl and hands the reply over. */
void pen__transfer_finish(PenCurlTransfer *t, CURLcode code);
void pen__transfers_check_limits(PenEngine *e); /* ends those whose time is over */

/* request_setup.c: everything curl is told about a request. < 0 with the error filled in. */
int pen__transfer_setup(PenCurlTransfer *t, PenError *reterr);

/* callbacks.c: what curl calls. */
size_t pen__flow_header(char *line, size_t one, size_t bytes, void *ctx);
size_t pen__flow_write(char *data, size_t one, size_t bytes, void *ctx);
size_t pen__flow_read(char *buf, size_t one, size_t bytes, void *ctx);
int pen__flow_seek(void *ctx, curl_off_t offset, int origin);
int pen__flow_connected(void *ctx, char *peer_ip, char *local_ip, int peer_port, int local_port);

/* sockets.c */
curl_socket_t pen__socket_open(void *ctx, curlsocktype purpose, struct curl_sockaddr *a);
int pen__socket_close(void *ctx, curl_socket_t fd);
curl_socket_t pen__socket_find(PenEngine *e, const char *peer_ip, int peer_port,
                               const char *local_ip, int local_port);
bool pen__socket_has_bytes(curl_socket_t fd);

int pen__poll_init(PenEngine *e, PenError *reterr);
void pen__poll_free(PenEngine *e);
void pen__poll_wake(PenEngine *e); /* from any thread */
/* Waits for sockets, at most until then and at most a second, and has curl do what there is to do.
 */
void pen__poll_turn(PenEngine *e, uint64_t until_ns);

/* time_limits.c */
void pen__limits_phase(PenCurlTransfer *t, PenPhase phase);
/* The limit that is over, or PEN_HTTP_OK and `due_ns` is set anew. */
PenHttpFailure pen__limits_over(PenCurlTransfer *t, uint64_t now_ns);

static inline void pen__list_init(PenCurlTransfer *head)
{
    head->prev = head->next = head;
}

static inline void pen__list_add(PenCurlTransfer *head, PenCurlTransfer *t)
{
    t->prev = head->prev;
    t->next = head;
    t->prev->next = t->next->prev = t;
}

static inline void pen__list_remove(PenCurlTransfer *t)
{
    t->prev->next = t->next;
    t->next->prev = t->prev;
    t->prev = t->next = t;
}

#endif
