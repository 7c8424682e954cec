/* SPDX-License-Identifier: Apache-2.0 */
/* Starting tests/net/bad_server.py, names that resolve as a test wants it, and asking things
 * through an engine. For one file of a program. */
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

#define HELP_UNUSED __attribute__((unused))
#define SECOND 1000000000ull

#define FILE_BYTES 1000000u
#define FIRST 1000u /* the range that is asked for, of the file "data" */
#define BYTES 100000u

static struct {
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
} server;

static int help_port(const char *name)
{
    for (int i = 0; i < server.n_ports; i++) {
        if (strcmp(server.ports[i].name, name) == 0)
            return server.ports[i].port;
    }
    return 0;
}

static void help_make_data(void)
{
    snprintf(server.root, sizeof server.root, "/tmp/penstock-engine-XXXXXX");
    if (!mkdtemp(server.root))
        abort();
    uint32_t x = 12345;
    for (size_t i = 0; i < FILE_BYTES; i++)
        server.data[i] = (uint8_t)((x = x * 1664525u + 1013904223u) >> 24);
    char path[128];
    snprintf(path, sizeof path, "%s/data", server.root);
    FILE *f = fopen(path, "wb");
    if (!f || fwrite(server.data, 1, FILE_BYTES, f) != FILE_BYTES || fclose(f) != 0)
        abort();
}

static void help_script(char *ret, size_t room)
{
    snprintf(ret, room, "%s/net/bad_server.py", TESTS_DIR);
}

static void help_take_line(char *line)
{
    line[strcspn(line, "\n")] = 0;
    char *space = strchr(line, ' ');
    if (!space)
        return;
    *space = 0;
    if (strcmp(line, "ca") == 0) {
        snprintf(server.ca, sizeof server.ca, "%.255s", space + 1);
    } else if (server.n_ports < 16) {
        snprintf(server.ports[server.n_ports].name, 32, "%.31s", line);
        server.ports[server.n_ports++].port = (int)strtol(space + 1, NULL, 10);
    }
}

static bool help_read_ports(int fd)
{
    FILE *f = fdopen(fd, "r");
    char line[512];
    bool ready = false;
    while (!ready && f && fgets(line, sizeof line, f)) {
        ready = strcmp(line, "ready\n") == 0;
        help_take_line(line);
    }
    if (f)
        fclose(f);
    return ready;
}

/* False when there is no python3 (or it does not start). */
HELP_UNUSED static bool server_start(void)
{
    char script[512];
    int in[2], out[2];
    help_script(script, sizeof script);
    help_make_data();
    if (pipe2(in, O_CLOEXEC) < 0 || pipe2(out, O_CLOEXEC) < 0)
        abort();
    server.pid = fork();
    if (server.pid == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        dup2(in[0], 0);
        dup2(out[1], 1);
        execlp("python3", "python3", script, "--root", server.root, "--seconds", "100", NULL);
        _exit(127);
    }
    close(in[0]);
    close(out[1]);
    server.in = in[1];
    return help_read_ports(out[0]);
}

HELP_UNUSED static void server_stop(void)
{
    static const char *const FILES[] = {"data", "up"};
    char path[128];
    close(server.in);
    waitpid(server.pid, NULL, 0);
    for (size_t i = 0; i < PEN_LEN(FILES); i++) {
        snprintf(path, sizeof path, "%s/%s", server.root, FILES[i]);
        unlink(path);
    }
    if (rmdir(server.root) != 0)
        printf("not removed: %s\n", server.root);
}

/* --- names: what the resolver says is chosen by the name */

static atomic_bool hang_over;

static int call_real(const char *node, const char *service, const struct addrinfo *hints,
                     struct addrinfo **ret)
{
    int (*real)(const char *, const char *, const struct addrinfo *, struct addrinfo **);
    *(void **)&real = dlsym(RTLD_NEXT, "getaddrinfo");
    return real(node, service, hints, ret);
}

static void nap(unsigned ms)
{
    nanosleep(&(struct timespec){.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000}, NULL);
}

/* Takes the place of libc's for this program, so for libcurl too. */
int getaddrinfo(const char *node, const char *service, const struct addrinfo *hints,
                struct addrinfo **ret)
{
    if (!node || !strstr(node, ".test"))
        return call_real(node, service, hints, ret);
    if (strcmp(node, "none.test") == 0)
        return EAI_NONAME;
    for (int i = 0; strcmp(node, "hang.test") == 0 && !hang_over && i < 3000; i++)
        nap(10);
    if (strcmp(node, "slow.test") == 0)
        nap(200);
    if (strcmp(node, "dead.test") != 0)
        return call_real("127.0.0.1", service, hints, ret);
    /* The first address refuses: nobody listens on it. */
    int r = call_real("127.0.0.77", service, hints, ret);
    return r ? r : call_real("127.0.0.1", service, hints, &(*ret)->ai_next);
}

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

static pthread_mutex_t help_mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t help_cond = PTHREAD_COND_INITIALIZER;

static void job_done(void *ctx, const PenHttpReply *reply)
{
    Job *j = ctx;
    pthread_mutex_lock(&help_mutex);
    j->reply = *reply;
    snprintf(j->error, sizeof j->error, "%.*s", (int)reply->error_bytes, reply->error);
    j->reply.error = NULL;
    j->ended = true;
    pthread_cond_broadcast(&help_cond);
    pthread_mutex_unlock(&help_mutex);
}

static void job_start(void *ctx)
{
    Job *j = ctx;
    PenTransport *t = pen__engine_transport(j->engine);
    PenError err;
    PenTransfer *transfer = NULL;
    int r = t->class_->start(t, &j->request, job_done, j, &transfer, &err);
    pthread_mutex_lock(&help_mutex);
    j->started = r;
    j->transfer = transfer;
    if (r < 0)
        j->ended = true;
    pthread_cond_broadcast(&help_cond);
    pthread_mutex_unlock(&help_mutex);
}

/* A GET of the range, with room for exactly it and limits that are not reached. */
HELP_UNUSED static void job_init(Job *j, PenEngine *engine, const char *port, const char *path)
{
    bool tls = strncmp(port, "tls", 3) == 0 || strcmp(port, "https") == 0;
    *j = (Job){.engine = engine};
    snprintf(j->url, sizeof j->url, "%s://127.0.0.1:%d%s", tls ? "https" : "http", help_port(port),
             path);
    snprintf(j->range, sizeof j->range, "bytes=%u-%u", FIRST, FIRST + BYTES - 1);
    j->headers[0] = (PenHttpHeader){"Range", j->range};
    j->into = malloc(BYTES);
    memset(j->into, 0xee, BYTES);
    j->request = (PenHttpRequest){.method = "GET",
                                  .url = j->url,
                                  .headers = j->headers,
                                  .n_headers = 1,
                                  .into = j->into,
                                  .into_bytes = BYTES,
                                  .limits = {.connect_ms = 10000,
                                             .first_byte_ms = 10000,
                                             .slow_bytes = 1,
                                             .slow_ms = 10000,
                                             .deadline_ms = 20000}};
}

HELP_UNUSED static void job_free(Job *j)
{
    free(j->into);
}

/* False after `ms`. */
HELP_UNUSED static bool jobs_wait(const Job *jobs, size_t n, uint64_t ms)
{
    uint64_t end = pen__sys->now_ns() + ms * 1000000u;
    size_t ended = 0;
    pthread_mutex_lock(&help_mutex);
    while (pen__sys->now_ns() < end) {
        ended = 0;
        for (size_t i = 0; i < n; i++)
            ended += jobs[i].ended;
        if (ended == n)
            break;
        pen__cond_wait(&help_cond, &help_mutex, end);
    }
    pthread_mutex_unlock(&help_mutex);
    return ended == n;
}

HELP_UNUSED static int job_post(Job *j)
{
    PenTransport *t = pen__engine_transport(j->engine);
    return t->class_->post(t, job_start, j);
}

HELP_UNUSED static bool jobs_run(Job *jobs, size_t n, uint64_t ms)
{
    for (size_t i = 0; i < n; i++) {
        if (job_post(&jobs[i]) < 0)
            return false;
    }
    return jobs_wait(jobs, n, ms);
}

/* The text of /_stats, /_echo and the like. */
HELP_UNUSED static void ask(PenEngine *e, const char *method, const char *path, char *ret,
                            size_t room)
{
    Job j;
    job_init(&j, e, "http", path);
    j.request.method = method;
    j.request.n_headers = 0;
    bool whole = jobs_run(&j, 1, 10000) && j.reply.failure == PEN_HTTP_OK;
    snprintf(ret, room, "%.*s", whole ? (int)j.reply.bytes : 0, (char *)j.into);
    job_free(&j);
    CHECK(whole);
}

HELP_UNUSED static int stat_of(PenEngine *e, const char *name)
{
    char text[1024], key[64];
    ask(e, "GET", "/_stats", text, sizeof text);
    snprintf(key, sizeof key, "\"%s\": ", name);
    const char *at = strstr(text, key);
    return at ? (int)strtol(at + strlen(key), NULL, 10) : -1;
}

/* --- what is left behind */

HELP_UNUSED static int count_dir(const char *path)
{
    int n = 0;
    DIR *d = opendir(path);
    while (d && readdir(d))
        n++;
    if (d)
        closedir(d);
    return n - 3; /* . and .. and the directory itself, where that counts */
}

HELP_UNUSED static int count_threads(void)
{
    return count_dir("/proc/self/task");
}

HELP_UNUSED static int count_files(void)
{
    return count_dir("/proc/self/fd");
}

/* The engine most tests use; 0, or what main has to return. */
HELP_UNUSED static int help_begin(PenEngine **ret)
{
    static const char *const NAMES[] = {"http_proxy", "https_proxy", "HTTPS_PROXY",
                                        "all_proxy",  "ALL_PROXY",   "SSL_CERT_FILE"};
    for (size_t i = 0; i < PEN_LEN(NAMES); i++)
        unsetenv(NAMES[i]);
    if (!server_start() || !server.ca[0]) {
        printf("skipped: python3 or openssl is not there\n");
        server_stop();
        return 77;
    }
    PenEngineSettings settings = {.ca_file = server.ca};
    PenError err;
    if (pen__engine_new(&settings, ret, &err) >= 0)
        return 0;
    printf("%s\n", err.message);
    return 1;
}

#endif
