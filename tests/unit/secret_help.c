/* SPDX-License-Identifier: Apache-2.0 */
#include "secret_help.h"

/* ---- environment and clocks ---- */

World world;

static const char *world_environment(const char *name)
{
    for (int i = 0; i < world.n; i++)
        if (strcmp(world.names[i], name) == 0)
            return world.values[i];
    return NULL;
}

static uint64_t world_now_ns(void)
{
    return pen__sys_real.now_ns() + atomic_load(&world.ahead_ns);
}

static uint64_t world_unix_ns(void)
{
    return pen__sys_real.unix_ns() + atomic_load(&world.ahead_ns) + atomic_load(&world.wall_ns);
}

/* Pauses make time pass, and are over. */
static int world_poll(struct pollfd *fds, unsigned n, int timeout_ms)
{
    if (n || timeout_ms < 10)
        return pen__sys_real.poll(fds, n, timeout_ms);
    atomic_fetch_add(&world.ahead_ns, (uint64_t)timeout_ms * 1000000);
    return 0;
}

static bool alloc_fails(void)
{
    return atomic_load(&world.alloc_fails_at) > 0 &&
           atomic_fetch_sub(&world.alloc_fails_at, 1) == 1;
}

static void *world_alloc(size_t bytes)
{
    return alloc_fails() ? NULL : malloc(bytes);
}

static void *world_resize(void *p, size_t bytes)
{
    return alloc_fails() ? NULL : realloc(p, bytes);
}

static void *world_pages_take(size_t bytes)
{
    void *p = alloc_fails() ? NULL : pen__sys_real.pages_take(bytes);
    atomic_fetch_add(&world.pages, p != NULL);
    return p;
}

static void world_pages_give(void *p, size_t bytes)
{
    for (size_t i = 0; i < bytes; i++)
        if (((const char *)p)[i]) {
            atomic_fetch_add(&world.dirty, 1);
            break;
        }
    atomic_fetch_sub(&world.pages, 1);
    pen__sys_real.pages_give(p, bytes);
}

void set_env(const char *name, const char *fmt, ...)
{
    va_list args;
    snprintf(world.names[world.n], sizeof world.names[0], "%s", name);
    va_start(args, fmt);
    vsnprintf(world.values[world.n], sizeof world.values[0], fmt, args);
    va_end(args);
    world.n++;
}

void write_file(const char *name, const char *fmt, ...)
{
    char path[256];
    va_list args;
    snprintf(path, sizeof path, "%s/%s", world.home, name);
    FILE *f = fopen(path, "w");
    if (!f)
        return;
    va_start(args, fmt);
    vfprintf(f, fmt, args);
    va_end(args);
    fclose(f);
}

void sleep_ms(int ms)
{
    poll(NULL, 0, ms);
}

/* ---- the server ---- */

Server server;

static void server_start(void)
{
    static const char script[] = TESTS_DIR "/net/metadata_server.py";
    char line[64] = "";
    int in[2], out[2];
    if (access(script, R_OK) < 0 || pipe(in) < 0 || pipe(out) < 0)
        return;
    server.pid = fork();
    if (server.pid == 0) {
        dup2(in[0], 0);
        dup2(out[1], 1);
        for (int fd = 3; fd < 64; fd++)
            close(fd);
        execlp("python3", "python3", script, (char *)NULL);
        _exit(127);
    }
    close(in[0]);
    close(out[1]);
    server.in = in[1];
    size_t n = 0;
    while (n < sizeof line - 1 && read(out[0], line + n, 1) == 1 && line[n] != '\n')
        n++;
    close(out[0]);
    if (strncmp(line, "port ", 5) == 0)
        server.port = (int)strtol(line + 5, NULL, 10);
}

static void server_stop(void)
{
    if (server.pid <= 0)
        return;
    close(server.in);
    waitpid(server.pid, NULL, 0);
}

/* One exchange over a connection of its own. `ret` gets all that came, and ends in NUL. */
static ssize_t talk(const char *head, const void *body, size_t body_bytes, char *ret, size_t bytes)
{
    struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons((uint16_t)server.port)};
    to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    struct timeval limit = {.tv_sec = 5};
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
    size_t n = 0;
    ssize_t got = -1;
    if (connect(fd, (struct sockaddr *)&to, sizeof to) == 0 &&
        send(fd, head, strlen(head), MSG_NOSIGNAL) >= 0 &&
        (!body_bytes || send(fd, body, body_bytes, MSG_NOSIGNAL) >= 0))
        while (n < bytes - 1 && (got = recv(fd, ret + n, bytes - 1 - n, 0)) > 0)
            n += (size_t)got;
    close(fd);
    ret[n] = 0;
    return got < 0 ? -1 : (ssize_t)n;
}

void script(const char *fmt, ...)
{
    char text[4096], head[256], answer[256];
    va_list args;
    va_start(args, fmt);
    int n = vsnprintf(text, sizeof text, fmt, args);
    va_end(args);
    snprintf(head, sizeof head,
             "POST /_script HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Length: %d\r\n\r\n",
             n);
    talk(head, text, (size_t)n, answer, sizeof answer);
    if (!strstr(answer, " 200 "))
        test__fail(__FILE__, __LINE__, "the server does not take: %s", text);
}

const char *requests(void)
{
    static char answer[16384];
    talk("GET /_log HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n", NULL, 0, answer,
         sizeof answer);
    const char *body = strstr(answer, "\r\n\r\n");
    return body ? body + 4 : "";
}

int count(const char *text, const char *what)
{
    int n = 0;
    for (; (text = strstr(text, what)); text++)
        n++;
    return n;
}

/* ---- the transport: one thread, one request at a time ---- */

static int wire_start(PenTransport *t, const PenHttpRequest *request,
                      void (*done)(void *ctx, const PenHttpReply *reply), void *ctx,
                      PenTransfer **ret, PenError *reterr)
{
    Wire *w = (Wire *)t;
    (void)reterr;
    WireTransfer *x = malloc(sizeof *x);
    *x = (WireTransfer){{t}, request, done, ctx, w->transfers};
    w->transfers = x;
    atomic_fetch_add(&w->n_started, 1);
    *ret = &x->base;
    return PEN_OK;
}

static void wire_unlink(Wire *w, WireTransfer *x)
{
    WireTransfer **at = &w->transfers;
    while (*at != x)
        at = &(*at)->next;
    *at = x->next;
    free(x);
}

static void wire_cancel(PenTransfer *transfer)
{
    Wire *w = (Wire *)transfer->transport;
    atomic_fetch_add(&w->n_cancelled, 1);
    wire_unlink(w, (WireTransfer *)transfer);
}

static int wire_post(PenTransport *t, PenCall *call, void *ctx)
{
    Wire *w = (Wire *)t;
    Job *j = malloc(sizeof *j);
    *j = (Job){call, ctx, NULL};
    pthread_mutex_lock(&w->mutex);
    *w->jobs_end = j;
    w->jobs_end = &j->next;
    pthread_cond_signal(&w->cond);
    pthread_mutex_unlock(&w->mutex);
    return PEN_OK;
}

static void fill_reply(const PenHttpRequest *q, char *answer, size_t bytes, PenHttpReply *reply)
{
    char *body = strstr(answer, "\r\n\r\n"), *date = strstr(answer, "\r\nDate: ");
    struct tm tm = {0};
    if (strncmp(answer, "HTTP/1.", 7) != 0 || !body) {
        reply->failure = PEN_HTTP_BROKEN;
        return;
    }
    body += 4;
    bytes -= (size_t)(body - answer);
    reply->status = (int)strtol(answer + 9, NULL, 10);
    if (date && strptime(date + 8, "%a, %d %b %Y %H:%M:%S GMT", &tm))
        reply->date_s = (uint64_t)timegm(&tm);
    if (reply->status / 100 != 2) {
        reply->error = body;
        reply->error_bytes = bytes;
    } else if (bytes > q->into_bytes) {
        reply->failure = PEN_HTTP_TOO_LONG;
    } else {
        reply->bytes = bytes;
        memcpy(q->into, body, bytes);
    }
}

static void wire_carry(const PenHttpRequest *q, PenHttpReply *reply)
{
    static char answer[1 << 20]; /* of the one loop there is */
    char head[16384], lengths[64] = "";
    const char *host = strstr(q->url, "://") + 3;
    size_t host_bytes = strcspn(host, "/?"), n = 0;
    if (q->n_body || strcmp(q->method, "GET") != 0)
        snprintf(lengths, sizeof lengths, "Content-Length: %zu\r\n",
                 q->n_body ? q->body->iov_len : 0);
    n += (size_t)snprintf(head, sizeof head, "%s %s HTTP/1.1\r\nHost: %.*s\r\n%s", q->method,
                          host[host_bytes] ? host + host_bytes : "/", (int)host_bytes, host,
                          lengths);
    for (size_t i = 0; i < q->n_headers && n < sizeof head - 64; i++)
        n += (size_t)snprintf(head + n, sizeof head - n, "%s: %s\r\n", q->headers[i].name,
                              q->headers[i].value);
    snprintf(head + n, sizeof head - n, "Connection: close\r\n\r\n");
    *reply = (PenHttpReply){.date_s = PEN_HTTP_NONE};
    ssize_t got = talk(head, q->n_body ? q->body->iov_base : NULL, q->n_body ? q->body->iov_len : 0,
                       answer, sizeof answer);
    if (got < 0)
        reply->failure = PEN_HTTP_CONNECT;
    else
        fill_reply(q, answer, (size_t)got, reply);
}

static void wire_step(Wire *w)
{
    WireTransfer *x = atomic_load(&w->mute) ? NULL : w->transfers;
    if (!x)
        return;
    PenHttpReply reply;
    WireTransfer copy = *x;
    wire_carry(x->request, &reply);
    wire_unlink(w, x);
    copy.done(copy.ctx, &reply);
}

static void *wire_run(void *arg)
{
    Wire *w = arg;
    pthread_mutex_lock(&w->mutex);
    while (!w->ends || w->jobs) {
        Job *j = w->jobs;
        if (j) {
            w->jobs = j->next;
            if (!w->jobs)
                w->jobs_end = &w->jobs;
        } else if (!w->transfers || atomic_load(&w->mute)) {
            pthread_cond_wait(&w->cond, &w->mutex);
            continue;
        }
        pthread_mutex_unlock(&w->mutex);
        if (j) {
            j->call(j->ctx);
            free(j);
        } else {
            wire_step(w);
        }
        pthread_mutex_lock(&w->mutex);
    }
    pthread_mutex_unlock(&w->mutex);
    return NULL;
}

static const PenTransportClass wire_class = {
    .start = wire_start, .cancel = wire_cancel, .post = wire_post};

void wire_open(Wire *w)
{
    *w = (Wire){.base = {&wire_class}};
    w->jobs_end = &w->jobs;
    pthread_mutex_init(&w->mutex, NULL);
    pthread_cond_init(&w->cond, NULL);
    pthread_create(&w->thread, NULL, wire_run, w);
}

void wire_close(Wire *w)
{
    pthread_mutex_lock(&w->mutex);
    w->ends = true;
    pthread_cond_signal(&w->cond);
    pthread_mutex_unlock(&w->mutex);
    pthread_join(w->thread, NULL);
    while (w->transfers)
        wire_unlink(w, w->transfers);
    pthread_cond_destroy(&w->cond);
    pthread_mutex_destroy(&w->mutex);
}

/* ---- all of it ---- */

PenSys world_sys;

void world_begin(void)
{
    char dir[96];
    world_sys = pen__sys_real;
    world_sys.environment = world_environment;
    world_sys.now_ns = world_now_ns;
    world_sys.unix_ns = world_unix_ns;
    world_sys.poll = world_poll;
    world_sys.alloc = world_alloc;
    world_sys.resize = world_resize;
    world_sys.pages_take = world_pages_take;
    world_sys.pages_give = world_pages_give;
    pen__sys = &world_sys;
    snprintf(world.home, sizeof world.home, "/tmp/pen-secret-XXXXXX");
    if (!mkdtemp(world.home))
        exit(1);
    snprintf(dir, sizeof dir, "%s/.aws", world.home);
    mkdir(dir, 0700);
    server_start();
}

static int remove_one(const char *path, const struct stat *st, int flag, struct FTW *ftw)
{
    (void)st, (void)flag, (void)ftw;
    return remove(path);
}

void world_end(void)
{
    server_stop();
    if (nftw(world.home, remove_one, 8, FTW_DEPTH | FTW_PHYS) != 0)
        printf("%s is left behind\n", world.home);
}

void world_reset(void)
{
    world.n = 0;
    set_env("HOME", "%s", world.home);
    set_env("AWS_REGION", "eu-west-1");
    write_file(".aws/config", "%s", "");
    write_file(".aws/credentials", "%s", "");
    atomic_store(&world.ahead_ns, 0);
    if (server.port) {
        script("{\"lifetime\": 3600, \"clock\": 0, \"fail\": {}, \"body\": {}, \"role\": "
               "\"train-role\", \"auth\": \"\", \"keys\": {}, \"web_token\": \"\"}");
        requests();
    }
}
