/* SPDX-License-Identifier: Apache-2.0 */
#include "object_server.h"

#include <arpa/inet.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum { CONNECTIONS = 256, REQUEST_BYTES = 8192 };

typedef struct Connection {
    int fd;
    size_t bytes;
    char text[REQUEST_BYTES]; /* what has come of requests that are not complete */
} Connection;

static struct {
    ServeFn find;
    void *ctx;
    pthread_t thread;
    int listens, ends[2];
    atomic_int requests;
    int n;
    Connection connections[CONNECTIONS];
} server;

static void send_all(int fd, const void *data, size_t bytes)
{
    const char *at = data;
    while (bytes) {
        ssize_t n = send(fd, at, bytes, MSG_NOSIGNAL);
        if (n <= 0)
            return;
        at += n;
        bytes -= (size_t)n;
    }
}

static void answer(int fd, int status, const char *headers, const void *data, size_t bytes,
                   bool has_body)
{
    char head[512];
    int n = snprintf(head, sizeof head, "HTTP/1.1 %d x\r\nContent-Length: %zu\r\n%s\r\n", status,
                     bytes, headers);
    send_all(fd, head, (size_t)n);
    if (has_body)
        send_all(fd, data, bytes);
}

/* The value of a header, or NULL. */
static const char *value_of(const char *request, const char *header)
{
    const char *at = strstr(request, header);
    return at ? at + strlen(header) : NULL;
}

/* False: there is no such range. */
static bool parse_range(const char *text, size_t total, size_t *first, size_t *last)
{
    char *end;
    if (text[0] == '-') {
        size_t n = (size_t)strtoull(text + 1, NULL, 10);
        *first = n < total ? total - n : 0;
        *last = total - 1;
        return total != 0;
    }
    *first = (size_t)strtoull(text, &end, 10);
    *last = (size_t)strtoull(end + 1, NULL, 10);
    if (*last >= total)
        *last = total - 1;
    return *first < total;
}

static void answer_object(int fd, const char *request, const ServedObject *o, bool has_body)
{
    char headers[300];
    const char *range = value_of(request, "Range: bytes="),
               *match = value_of(request, "If-Match: ");
    size_t first, last;
    if (match && strncmp(match, o->etag, strlen(o->etag)) != 0) {
        answer(fd, 412, "", "", 0, has_body);
    } else if (!range) {
        snprintf(headers, sizeof headers, "ETag: %s\r\n", o->etag);
        answer(fd, 200, headers, o->data, o->bytes, has_body);
    } else if (!parse_range(range, o->bytes, &first, &last)) {
        snprintf(headers, sizeof headers, "Content-Range: bytes */%zu\r\n", o->bytes);
        answer(fd, 416, headers, "", 0, has_body);
    } else {
        snprintf(headers, sizeof headers, "ETag: %s\r\nContent-Range: bytes %zu-%zu/%zu\r\n",
                 o->etag, first, last, o->bytes);
        answer(fd, 206, headers, (const char *)o->data + first, last - first + 1, has_body);
    }
}

static void serve(int fd, const char *request)
{
    char path[1024] = "";
    ServedObject o = {.etag = "\"etag\""};
    const char *first = strchr(request, ' '), *end = first ? strchr(first + 1, ' ') : NULL;
    atomic_fetch_add(&server.requests, 1);
    if (!end || (size_t)(end - first) > sizeof path)
        return;
    memcpy(path, first + 1, (size_t)(end - first) - 1);
    bool has_body = strncmp(request, "HEAD ", 5) != 0;
    if (!server.find(server.ctx, path, &o))
        answer(fd, 404, "", "", 0, has_body);
    else if (o.status)
        answer(fd, o.status, "", o.data, o.bytes, has_body);
    else
        answer_object(fd, request, &o, has_body);
}

/* False: the connection has ended. */
static bool receive(Connection *c)
{
    ssize_t n = recv(c->fd, c->text + c->bytes, sizeof c->text - 1 - c->bytes, 0);
    if (n <= 0)
        return false;
    c->bytes += (size_t)n;
    c->text[c->bytes] = 0;
    for (char *end; (end = strstr(c->text, "\r\n\r\n"));) {
        size_t bytes = (size_t)(end - c->text) + 4;
        end[2] = 0;
        serve(c->fd, c->text);
        c->bytes -= bytes;
        memmove(c->text, c->text + bytes, c->bytes + 1);
    }
    return true;
}

static void take_connection(void)
{
    int fd = accept(server.listens, NULL, NULL), on = 1;
    (void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on); /* a body follows its head */
    if (fd >= 0 && server.n == CONNECTIONS)
        close(fd);
    else if (fd >= 0)
        server.connections[server.n++] = (Connection){.fd = fd};
}

static void *run(void *unused)
{
    (void)unused;
    for (;;) {
        struct pollfd fds[CONNECTIONS + 2] = {{.fd = server.ends[0], .events = POLLIN},
                                              {.fd = server.listens, .events = POLLIN}};
        int n = server.n;
        for (int i = 0; i < n; i++)
            fds[i + 2] = (struct pollfd){.fd = server.connections[i].fd, .events = POLLIN};
        if (poll(fds, (nfds_t)(n + 2), -1) < 0)
            continue;
        if (fds[0].revents)
            return NULL;
        for (int i = n; i-- > 0;) /* from the end: the last one takes the place of one that ends */
            if (fds[i + 2].revents && !receive(&server.connections[i])) {
                close(server.connections[i].fd);
                server.connections[i] = server.connections[--server.n];
            }
        if (fds[1].revents)
            take_connection();
    }
}

int object_server_start(ServeFn find, void *ctx)
{
    static const char *const proxies[] = {"http_proxy", "all_proxy", "ALL_PROXY"};
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}};
    socklen_t bytes = sizeof at;
    for (size_t i = 0; i < sizeof proxies / sizeof *proxies; i++)
        unsetenv(proxies[i]);
    server.find = find;
    server.ctx = ctx;
    atomic_store(&server.requests, 0);
    server.listens = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (server.listens < 0 || bind(server.listens, (struct sockaddr *)&at, sizeof at) < 0 ||
        listen(server.listens, CONNECTIONS) < 0 ||
        getsockname(server.listens, (struct sockaddr *)&at, &bytes) < 0 || pipe(server.ends) < 0 ||
        pthread_create(&server.thread, NULL, run, NULL) != 0)
        abort();
    return ntohs(at.sin_port);
}

void object_server_stop(void)
{
    if (write(server.ends[1], "", 1) != 1)
        abort();
    pthread_join(server.thread, NULL);
    for (; server.n; server.n--)
        close(server.connections[server.n - 1].fd);
    close(server.listens);
    close(server.ends[0]);
    close(server.ends[1]);
}

int object_server_requests(void)
{
    return atomic_load(&server.requests);
}
