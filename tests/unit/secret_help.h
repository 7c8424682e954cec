/* SPDX-License-Identifier: Apache-2.0 */
/* For tests of credentials: a home of its own, an environment and clocks that tests set, the
 * scripted server of tests/net/metadata_server.py, and a small transport that brings every request
 * to it, whatever host the URL names. */
#ifndef PEN_TESTS_UNIT_SECRET_HELP_H
#define PEN_TESTS_UNIT_SECRET_HELP_H

#include <arpa/inet.h>
#include <ctype.h>
#include <errno.h>
#include <ftw.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "test.h"

#include "base/sys.h"
#include "base/thread.h"
#include "net/credentials/credentials.h"
#include "net/http/transport.h"

#define SECOND UINT64_C(1000000000)

/* ---- environment and clocks ---- */

enum { MAX_ENV = 32 };

typedef struct World {
    char names[MAX_ENV][64], values[MAX_ENV][1024];
    int n;
    char home[64];
    atomic_uint_fast64_t ahead_ns; /* of both clocks */
    atomic_uint_fast64_t wall_ns;  /* of the wall clock alone, on top of it */
    atomic_int pages;              /* rooms that are out */
    atomic_int dirty;              /* came back with something in them */
    atomic_int alloc_fails_at;     /* the n-th from now; 0: none */
} World;

extern World world;

void set_env(const char *name, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
void write_file(const char *name, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
void sleep_ms(int ms);

/* ---- the server ---- */

typedef struct Server {
    pid_t pid;
    int in;   /* it ends when this is closed */
    int port; /* 0: could not be started */
} Server;

extern Server server;

void script(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

/* What was asked since the last time, without the headers of the answer. */
const char *requests(void);
int count(const char *text, const char *what);

/* ---- the transport: one thread, one request at a time ---- */

typedef struct WireTransfer {
    PenTransfer base;
    const PenHttpRequest *request;
    void (*done)(void *ctx, const PenHttpReply *reply);
    void *ctx;
    struct WireTransfer *next;
} WireTransfer;

typedef struct Job {
    PenCall *call;
    void *ctx;
    struct Job *next;
} Job;

typedef struct Wire {
    PenTransport base;
    pthread_t thread;
    pthread_mutex_t mutex;
    pthread_cond_t cond;
    Job *jobs, **jobs_end;
    WireTransfer *transfers; /* of the loop */
    bool ends;
    atomic_bool mute; /* nothing is ever answered */
    atomic_int n_started, n_cancelled;
} Wire;

void wire_open(Wire *w);
void wire_close(Wire *w);

/* ---- all of it ---- */

extern PenSys world_sys;

void world_begin(void);
void world_end(void);

/* As it is on a machine where nothing is set up, and no metadata service answers for one. */
void world_reset(void);

#endif
