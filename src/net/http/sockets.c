/* SPDX-License-Identifier: Apache-2.0 */
/* The sockets that curl has open, and waiting for them.
 *
 * curl does not tell which socket a transfer has got when that was used before, and without it we
 * could not see what lies in it. curl's own waiting looks at every transfer whenever one of them
 * has something: with 256 of them that cost three times the work per byte. So epoll waits here. */
#include "net/http/engine_impl.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/attr.h"
#include "base/error.h"
#include "base/sys.h"

#define MS 1000000ull
#define EVENTS 64
/* With more than this that wait, receiving comes first: others check what has arrived. */
#define FEW_EVENTS 16

/* ---- which are open ---- */

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

/* ---- waiting for them ---- */

/* A socket of one that is not connected yet: curl gives an address up, and some versions (7.88) do
 * not begin with the next one before they are called again, which they do not ask for. */
static void note_given_up(PenEngine *e, CURL *easy)
{
    char *private = NULL;
    if (curl_easy_getinfo(easy, CURLINFO_PRIVATE, &private) || !private)
        return;
    const PenCurlTransfer *t = (const PenCurlTransfer *)(const void *)private;
    e->look = e->look || t->phase == PEN_PHASE_CONNECT;
}

/* curl says what it waits for on a socket. Always before it closes it, so that none is left in the
 * set that a child process still has open. */
static int on_socket(CURL *easy, curl_socket_t fd, int what, void *ctx, void *known)
{
    PenEngine *e = ctx;
    struct epoll_event ev = {.data.fd = fd};
    if (what == CURL_POLL_REMOVE) {
        epoll_ctl(e->epoll_fd, EPOLL_CTL_DEL, fd, &ev);
        note_given_up(e, easy);
        return 0;
    }
    if (what & CURL_POLL_IN)
        ev.events |= EPOLLIN;
    if (what & CURL_POLL_OUT)
        ev.events |= EPOLLOUT;
    /* One that cannot be added runs into its time limits; a failure here would end all transfers.
     */
    if (epoll_ctl(e->epoll_fd, known ? EPOLL_CTL_MOD : EPOLL_CTL_ADD, fd, &ev) < 0)
        epoll_ctl(e->epoll_fd, errno == EEXIST ? EPOLL_CTL_MOD : EPOLL_CTL_ADD, fd, &ev);
    curl_multi_assign(e->multi, fd, e);
    return 0;
}

static int on_timer(CURLM *multi, long ms, void *ctx)
{
    (void)multi;
    PenEngine *e = ctx;
    e->curl_ns = ms < 0 ? UINT64_MAX : pen__sys->now_ns() + (uint64_t)ms * MS;
    return 0;
}

int pen__poll_init(PenEngine *e, PenError *reterr)
{
    e->curl_ns = UINT64_MAX;
    e->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
    e->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    struct epoll_event ev = {.events = EPOLLIN, .data.fd = e->wake_fd};
    if (e->epoll_fd < 0 || e->wake_fd < 0 ||
        epoll_ctl(e->epoll_fd, EPOLL_CTL_ADD, e->wake_fd, &ev) < 0)
        return pen__fail_os(reterr, errno, "net/engine", "cannot wait for sockets");
    if (curl_multi_setopt(e->multi, CURLMOPT_SOCKETFUNCTION, on_socket) ||
        curl_multi_setopt(e->multi, CURLMOPT_SOCKETDATA, e) ||
        curl_multi_setopt(e->multi, CURLMOPT_TIMERFUNCTION, on_timer) ||
        curl_multi_setopt(e->multi, CURLMOPT_TIMERDATA, e))
        return pen__fail(reterr, PEN_E_UNSUPPORTED, "net/engine", "cannot wait for libcurl");
    return PEN_OK;
}

void pen__poll_free(PenEngine *e)
{
    if (e->epoll_fd >= 0)
        pen__sys->close(e->epoll_fd);
    if (e->wake_fd >= 0)
        pen__sys->close(e->wake_fd);
}

void pen__poll_wake(PenEngine *e)
{
    eventfd_write(e->wake_fd, 1); /* fails when it is full, and then it wakes anyway */
}

static void take_event(PenEngine *e, const struct epoll_event *ev)
{
    int running, bits = 0;
    eventfd_t n;
    if (ev->data.fd == e->wake_fd) {
        eventfd_read(e->wake_fd, &n);
        return;
    }
    if (ev->events & EPOLLIN)
        bits |= CURL_CSELECT_IN;
    if (ev->events & EPOLLOUT)
        bits |= CURL_CSELECT_OUT;
    if (ev->events & (EPOLLERR | EPOLLHUP))
        bits |= CURL_CSELECT_ERR;
    curl_multi_socket_action(e->multi, ev->data.fd, bits, &running);
}

/* Deprecated because it is slow with many; there is no other call that looks at one without a timer
 * or a socket, and it is seldom. */
static void look_at_all(PenEngine *e)
{
    int running;
    e->look = 0;
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"
    curl_multi_socket_all(e->multi, &running);
#pragma GCC diagnostic pop
}

void pen__poll_turn(PenEngine *e, uint64_t until_ns)
{
    struct epoll_event events[EVENTS];
    int running;
    uint64_t now = pen__sys->now_ns(), at = PEN_MIN(until_ns, e->curl_ns);
    uint64_t ms = at > now ? (at - now + MS - 1) / MS : 0;
    int n = epoll_wait(e->epoll_fd, events, EVENTS, (int)PEN_MIN(ms, 1000));
    e->crowded = n > FEW_EVENTS;
    for (int i = 0; i < n; i++)
        take_event(e, &events[i]);
    if (pen__sys->now_ns() >= e->curl_ns) {
        e->curl_ns = UINT64_MAX;
        curl_multi_socket_action(e->multi, CURL_SOCKET_TIMEOUT, 0, &running);
    }
    if (e->look)
        look_at_all(e);
}
