/* SPDX-License-Identifier: Apache-2.0 */
/* Which sockets curl has open. It does not tell which one a transfer has got when that was used
 * before, and without it we could not see what lies in it. */
#include "net/http/engine_impl.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/sys.h"

curl_socket_t pen__socket_open(void *ctx, curlsocktype purpose, struct curl_sockaddr *a)
{
    (void)purpose;
    PenEngine *e = ctx;
    if (e->n_sockets == e->sockets_cap) {
        size_t cap = e->sockets_cap ? 2 * e->sockets_cap : 64;
        PenSocket *more = pen__resize(e->sockets, cap * sizeof *more);
        if (!more)
            return CURL_SOCKET_BAD;
        e->sockets = more;
        e->sockets_cap = cap;
    }
    /* Programs that are started by this process do not get it. */
    int fd = socket(a->family, a->socktype | SOCK_CLOEXEC, a->protocol);
    if (fd >= 0)
        e->sockets[e->n_sockets++] = (PenSocket){.fd = fd};
    return fd;
}

int pen__socket_close(void *ctx, curl_socket_t fd)
{
    PenEngine *e = ctx;
    for (size_t i = 0; i < e->n_sockets; i++) {
        if (e->sockets[i].fd == fd) {
            e->sockets[i] = e->sockets[--e->n_sockets];
            break;
        }
    }
    return pen__sys->close(fd) < 0;
}

static bool is_address(const struct sockaddr_storage *a, const char *ip, int port)
{
    char text[INET6_ADDRSTRLEN] = "";
    const void *bytes = a->ss_family == AF_INET6
                            ? (const void *)&((const struct sockaddr_in6 *)a)->sin6_addr
                            : (const void *)&((const struct sockaddr_in *)a)->sin_addr;
    /* The port lies at the same place in both. */
    return ntohs(((const struct sockaddr_in *)a)->sin_port) == port &&
           inet_ntop(a->ss_family, bytes, text, sizeof text) && strcmp(text, ip) == 0;
}

static bool is_between(int fd, const char *peer_ip, int peer_port, const char *local_ip,
                       int local_port)
{
    struct sockaddr_storage a, b;
    socklen_t na = sizeof a, nb = sizeof b;
    return getsockname(fd, (struct sockaddr *)&a, &na) == 0 &&
           getpeername(fd, (struct sockaddr *)&b, &nb) == 0 &&
           is_address(&a, local_ip, local_port) && is_address(&b, peer_ip, peer_port);
}

curl_socket_t pen__socket_find(PenEngine *e, const char *peer_ip, int peer_port,
                               const char *local_ip, int local_port)
{
    for (size_t i = 0; i < e->n_sockets; i++) {
        PenSocket *s = &e->sockets[i];
        if (s->port && s->port != local_port) /* asked before: another's */
            continue;
        if (is_between(s->fd, peer_ip, peer_port, local_ip, local_port)) {
            s->port = local_port;
            return s->fd;
        }
    }
    return CURL_SOCKET_BAD;
}

bool pen__socket_has_bytes(curl_socket_t fd)
{
    char c;
    return fd != CURL_SOCKET_BAD && recv(fd, &c, 1, MSG_PEEK | MSG_DONTWAIT) > 0;
}
