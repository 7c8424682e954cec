/* SPDX-License-Identifier: Apache-2.0 */
/* Starting tests/net/bad_server.py, names that resolve as a test wants it, and asking things
 * through an engine. */
#ifndef PEN_TESTS_ENGINE_HELP_H
#define PEN_TESTS_ENGINE_HELP_H

#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "test.h"

#include "base/attr.h"
#include "base/mem.h"
#include "base/sys.h"
#include "base/thread.h"
#include "net/http/engine.h"

#define SECOND 1000000000ull

#define FILE_BYTES 1000000u
#define FIRST 1000u /* the range that is asked for, of the file "data" */
#define BYTES 100000u

typedef struct BadServer {
    pid_t pid;
    int in; /* closing it ends the server */
    char root[64];
    char ca[256];
    uint8_t data[FILE_BYTES];
    struct {
        char name[32];
        int port;
    } ports[16];
    int n_ports;
} BadServer;

extern BadServer bad_server;

int help_port(const char *name);
void bad_server_stop(void);

/* --- names: what the resolver says is chosen by the name */

extern atomic_bool hang_over;

void nap(unsigned ms);

/* --- one request */

typedef struct Job {
    PenHttpRequest request;
    PenHttpHeader headers[8];
    char url[256], range[64];
    uint8_t *into;
    PenEngine *engine;
    PenTransfer *transfer;
    int started;
    bool ended;
    PenHttpReply reply;
    char error[256]; /* as much as fits of the body of an error */
} Job;

extern pthread_mutex_t help_mutex;
extern pthread_cond_t help_cond;

void job_done(void *ctx, const PenHttpReply *reply);

/* A GET of the range, with room for exactly it and limits that are not reached. */
void job_init(Job *j, PenEngine *engine, const char *port, const char *path);
void job_free(Job *j);
int job_post(Job *j);
bool jobs_run(Job *jobs, size_t n, uint64_t ms);

/* The text of /_stats, /_echo and the like. */
void engine_ask(PenEngine *e, const char *method, const char *path, char *ret, size_t room);
int stat_of(PenEngine *e, const char *name);

/* --- what is left behind */

int count_threads(void);
int count_files(void);

/* The engine most tests use; 0, or what main has to return. */
int engine_begin(PenEngine **ret);

#endif
