/* SPDX-License-Identifier: Apache-2.0 */
#include "engine_help.h"

BadServer bad_server;

int help_port(const char *name)
{
    for (int i = 0; i < bad_server.n_ports; i++) {
        if (strcmp(bad_server.ports[i].name, name) == 0)
            return bad_server.ports[i].port;
    }
    return 0;
}

static void help_make_data(void)
{
    snprintf(bad_server.root, sizeof bad_server.root, "/tmp/penstock-engine-XXXXXX");
    if (!mkdtemp(bad_server.root))
        abort();
    uint32_t x = 12345;
    for (size_t i = 0; i < FILE_BYTES; i++)
        bad_server.data[i] = (uint8_t)((x = x * 1664525u + 1013904223u) >> 24);
    char path[128];
    snprintf(path, sizeof path, "%s/data", bad_server.root);
    FILE *f = fopen(path, "wb");
    if (!f || fwrite(bad_server.data, 1, FILE_BYTES, f) != FILE_BYTES || fclose(f) != 0)
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
        snprintf(bad_server.ca, sizeof bad_server.ca, "%.255s", space + 1);
    } else if (bad_server.n_ports < 16) {
        snprintf(bad_server.ports[bad_server.n_ports].name, 32, "%.31s", line);
        bad_server.ports[bad_server.n_ports++].port = (int)strtol(space + 1, NULL, 10);
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
static bool bad_server_start(void)
{
    char script[512];
    int in[2], out[2];
    help_script(script, sizeof script);
    help_make_data();
    if (pipe2(in, O_CLOEXEC) < 0 || pipe2(out, O_CLOEXEC) < 0)
        abort();
    bad_server.pid = fork();
    if (bad_server.pid == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        dup2(in[0], 0);
        dup2(out[1], 1);
        execlp("python3", "python3", script, "--root", bad_server.root, "--seconds", "100", NULL);
        _exit(127);
    }
    close(in[0]);
    close(out[1]);
    bad_server.in = in[1];
    return help_read_ports(out[0]);
}

void bad_server_stop(void)
{
    static const char *const FILES[] = {"data", "up"};
    char path[128];
    close(bad_server.in);
    waitpid(bad_server.pid, NULL, 0);
    for (size_t i = 0; i < PEN_LEN(FILES); i++) {
        snprintf(path, sizeof path, "%s/%s", bad_server.root, FILES[i]);
        unlink(path);
    }
    if (rmdir(bad_server.root) != 0)
        printf("not removed: %s\n", bad_server.root);
}

/* --- names: what the resolver says is chosen by the name */

atomic_bool hang_over;

static int call_real(const char *node, const char *service, const struct addrinfo *hints,
                     struct addrinfo **ret)
{
    int (*real)(const char *, const char *, const struct addrinfo *, struct addrinfo **);
    *(void **)&real = dlsym(RTLD_NEXT, "getaddrinfo");
    return real(node, service, hints, ret);
}

void nap(unsigned ms)
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

pthread_mutex_t help_mutex = PTHREAD_MUTEX_INITIALIZER;

pthread_cond_t help_cond = PTHREAD_COND_INITIALIZER;

void job_done(void *ctx, const PenHttpReply *reply)
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

void job_init(Job *j, PenEngine *engine, const char *port, const char *path)
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

void job_free(Job *j)
{
    free(j->into);
}

/* False after `ms`. */
static bool jobs_wait(const Job *jobs, size_t n, uint64_t ms)
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

int job_post(Job *j)
{
    PenTransport *t = pen__engine_transport(j->engine);
    return t->class_->post(t, job_start, j);
}

bool jobs_run(Job *jobs, size_t n, uint64_t ms)
{
    for (size_t i = 0; i < n; i++) {
        if (job_post(&jobs[i]) < 0)
            return false;
    }
    return jobs_wait(jobs, n, ms);
}

void engine_ask(PenEngine *e, const char *method, const char *path, char *ret, size_t room)
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

int stat_of(PenEngine *e, const char *name)
{
    char text[1024], key[64];
    engine_ask(e, "GET", "/_stats", text, sizeof text);
    snprintf(key, sizeof key, "\"%s\": ", name);
    const char *at = strstr(text, key);
    return at ? (int)strtol(at + strlen(key), NULL, 10) : -1;
}

/* --- what is left behind */

static int count_dir(const char *path)
{
    int n = 0;
    DIR *d = opendir(path);
    while (d && readdir(d))
        n++;
    if (d)
        closedir(d);
    return n - 3; /* . and .. and the directory itself, where that counts */
}

int count_threads(void)
{
    return count_dir("/proc/self/task");
}

int count_files(void)
{
    return count_dir("/proc/self/fd");
}

int engine_begin(PenEngine **ret)
{
    static const char *const NAMES[] = {"http_proxy", "https_proxy", "HTTPS_PROXY",
                                        "all_proxy",  "ALL_PROXY",   "SSL_CERT_FILE"};
    for (size_t i = 0; i < PEN_LEN(NAMES); i++)
        unsetenv(NAMES[i]);
    if (!bad_server_start() || !bad_server.ca[0]) {
        printf("skipped: python3 or openssl is not there\n");
        bad_server_stop();
        return 77;
    }
    PenEngineSettings settings = {.ca_file = bad_server.ca};
    PenError err;
    if (pen__engine_new(&settings, ret, &err) >= 0)
        return 0;
    printf("%s\n", err.message);
    return 1;
}
