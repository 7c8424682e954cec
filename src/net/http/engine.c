/* SPDX-License-Identifier: Apache-2.0 */
/* The thread, its loop, and what other threads post to it. */
#include "net/http/engine_impl.h"

#include <unistd.h>

#include "base/attr.h"
#include "base/error.h"
#include "base/sys.h"
#include "base/thread.h"

#define WHERE "net/engine"

#define MS 1000000ull
#define FREE_NS (1000 * MS)
#define CUT_NS                                                                                     \
    (30000 * MS) /* only a call that blocks the loop, or a starved machine, takes long             \
                  */
#define CONNECTIONS 512

static uint64_t now_ns(PenTransport *t)
{
    (void)t;
    return pen__sys->now_ns();
}

static uint64_t unix_ns(PenTransport *t)
{
    (void)t;
    return pen__sys->unix_ns();
}

static uint64_t random_bits(PenTransport *t)
{
    (void)t;
    uint64_t v;
    /* For jitter: the clock's low bits do where the system has nothing better. */
    return pen__sys->random(&v, sizeof v) < 0 ? pen__sys->now_ns() * 0x9e3779b97f4a7c15u : v;
}

static int post(PenTransport *t, PenCall *call, void *ctx)
{
    PenEngine *e = pen__engine_of(t);
    if (e->pid != getpid()) /* the mutex may be held by a thread that is not in this process */
        return PEN_E_CLOSED;
    PenPosted *p = pen__alloc(sizeof *p);
    if (!p)
        return PEN_E_NO_MEMORY;
    *p = (PenPosted){.call = call, .ctx = ctx};
    pthread_mutex_lock(&e->mutex);
    bool taken = !e->closing, first = !e->posted;
    if (taken) {
        *e->posted_end = p;
        e->posted_end = &p->next;
        if (first) /* under the mutex, so that the loop cannot have ended */
            pen__poll_wake(e);
    }
    pthread_mutex_unlock(&e->mutex);
    if (!taken)
        pen__free(p);
    return taken ? PEN_OK : PEN_E_CLOSED;
}

/* ---- timers: a list in order of time; as many as operations that wait, which is few ---- */

static void timer_clear(PenTransport *t, PenTimer *timer)
{
    if (!timer->set)
        return;
    PenTimer **at = &pen__engine_of(t)->timers;
    while (*at && *at != timer)
        at = &(*at)->next;
    if (*at)
        *at = timer->next;
    timer->next = NULL;
    timer->set = 0;
}

static void timer_set(PenTransport *t, PenTimer *timer, uint64_t at_ns, PenCall *call, void *ctx)
{
    timer_clear(t, timer);
    PenTimer **at = &pen__engine_of(t)->timers;
    while (*at && (*at)->at_ns <= at_ns) /* of the same time: in the order they were set */
        at = &(*at)->next;
    *timer = (PenTimer){.at_ns = at_ns, .call = call, .ctx = ctx, .next = *at, .set = 1};
    *at = timer;
}

static void run_timers(PenEngine *e)
{
    uint64_t now = pen__sys->now_ns();
    size_t n = 0; /* a timer that sets itself again for now has to wait for the next turn */
    for (const PenTimer *t = e->timers; t && t->at_ns <= now; t = t->next)
        n++;
    for (; n && e->timers && e->timers->at_ns <= now; n--) {
        PenTimer *timer = e->timers;
        e->timers = timer->next;
        timer->next = NULL;
        timer->set = 0;
        timer->call(timer->ctx);
    }
}

/* ---- the loop ---- */

static uint64_t progress(const PenTransfer *transfer)
{
    return ((const PenCurlTransfer *)transfer)->reply.bytes;
}

static const PenTransportClass CLASS = {
    .now_ns = now_ns,
    .unix_ns = unix_ns,
    .random = random_bits,
    .start = pen__transfer_start,
    .cancel = pen__transfer_cancel,
    .timer_set = timer_set,
    .timer_clear = timer_clear,
    .post = post,
    .progress = progress,
};

/* True when the engine is being freed. What was posted before that is still called. */
static bool run_posted(PenEngine *e)
{
    pthread_mutex_lock(&e->mutex);
    PenPosted *p = e->posted;
    bool closing = e->closing;
    e->posted = NULL;
    e->posted_end = &e->posted;
    pthread_mutex_unlock(&e->mutex);
    while (p) {
        PenPosted *next = p->next;
        p->call(p->ctx);
        pen__free(p);
        p = next;
    }
    return closing;
}

static void run_finished(PenEngine *e)
{
    int left;
    CURLMsg *m;
    while ((m = curl_multi_info_read(e->multi, &left))) {
        PenCurlTransfer *t = NULL;
        CURLcode code = m->data.result;
        if (m->msg == CURLMSG_DONE && !curl_easy_getinfo(m->easy_handle, CURLINFO_PRIVATE, &t) && t)
            pen__transfer_finish(t, code);
    }
}

static uint64_t next_ns(const PenEngine *e)
{
    return e->timers ? PEN_MIN(e->due_ns, e->timers->at_ns) : e->due_ns;
}

static void free_engine(PenEngine *e)
{
    pen__poll_free(e);
    pthread_cond_destroy(&e->changed);
    pthread_mutex_destroy(&e->mutex);
    pen__proxy_free(&e->proxy);
    pen__free(e->sockets);
    pen__free(e);
}

/* Says how far the end has come. True when nobody waits for it any more. */
static bool note(PenEngine *e, uint8_t *what)
{
    pthread_mutex_lock(&e->mutex);
    *what = 1;
    bool left = e->left;
    pthread_cond_broadcast(&e->changed);
    pthread_mutex_unlock(&e->mutex);
    return left;
}

static void *run(void *arg)
{
    PenEngine *e = arg;
    pen__thread_name("pen-net");
    while (!run_posted(e)) {
        run_timers(e);
        pen__poll_turn(e, next_ns(e));
        run_finished(e);
        /* After what has come was taken: a process that was stopped for a while has not waited. */
        pen__transfers_check_limits(e);
    }
    while (e->transfers.next != &e->transfers)
        pen__transfer_cancel(&e->transfers.next->base);
    note(e, &e->cut);
    curl_multi_cleanup(e->multi);
    if (note(e, &e->ended))
        free_engine(e);
    return NULL;
}

static void init_curl(void)
{
    curl_global_init(CURL_GLOBAL_DEFAULT); /* never undone: others in this process may use it too */
}

/* 7.88 was tried; older ones cannot let go of a name that is never resolved. */
static int check_curl(PenError *reterr)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, init_curl);
    const curl_version_info_data *v = curl_version_info(CURLVERSION_NOW);
    if (v->version_num < 0x075700)
        return pen__fail(reterr, PEN_E_UNSUPPORTED, WHERE,
                         "libcurl %s: too old; install 7.87 or newer", v->version);
    if (!(v->features & CURL_VERSION_SSL) || !(v->features & CURL_VERSION_ASYNCHDNS))
        return pen__fail(reterr, PEN_E_UNSUPPORTED, WHERE,
                         "libcurl %s: built without TLS or without asynchronous name resolution",
                         v->version);
    return PEN_OK;
}

static int make_multi(PenEngine *e, unsigned connections, PenError *reterr)
{
    long n = (long)PEN_MIN(connections ? connections : CONNECTIONS, 1u << 20);
    e->multi = curl_multi_init();
    if (!e->multi || curl_multi_setopt(e->multi, CURLMOPT_MAXCONNECTS, n) ||
        curl_multi_setopt(e->multi, CURLMOPT_PIPELINING, (long)CURLPIPE_NOTHING))
        return pen__fail(reterr, PEN_E_NO_MEMORY, WHERE,
                         "cannot initialize libcurl: out of memory or file descriptors");
    return pen__poll_init(e, reterr);
}

static int make_locks(PenEngine *e, PenError *reterr)
{
    if (pthread_mutex_init(&e->mutex, NULL) != 0)
        return pen__fail_memory(reterr, WHERE, "a lock");
    if (pen__cond_init(&e->changed) < 0) {
        pthread_mutex_destroy(&e->mutex);
        return pen__fail_memory(reterr, WHERE, "a lock");
    }
    return PEN_OK;
}

int pen__engine_new(const PenEngineSettings *settings, PenEngine **ret, PenError *reterr)
{
    int r = check_curl(reterr);
    if (r < 0)
        return r;
    PenEngine *e = pen__zalloc(sizeof *e);
    if (!e)
        return pen__fail_memory(reterr, WHERE, "the connections");
    e->transport.class_ = &CLASS;
    e->pid = getpid();
    e->due_ns = UINT64_MAX;
    e->epoll_fd = e->wake_fd = -1;
    e->posted_end = &e->posted;
    pen__list_init(&e->transfers);
    pen__list_init(&e->expired);
    r = make_locks(e, reterr);
    if (r < 0) {
        pen__free(e);
        return r;
    }
    r = pen__ca_find(settings->ca_file, &e->ca, reterr);
    if (r >= 0)
        r = pen__proxy_read(settings->proxy, &e->proxy, reterr);
    if (r >= 0)
        r = make_multi(e, settings->connections, reterr);
    if (r >= 0)
        r = pen__thread_start(&e->thread, run, e, reterr);
    if (r < 0) {
        curl_multi_cleanup(e->multi);
        free_engine(e);
        return r;
    }
    *ret = e;
    return PEN_OK;
}

/* True when the loop has ended in time. Else it frees the engine itself, when it ends. */
static bool end_loop(PenEngine *e)
{
    uint64_t deadline = pen__deadline_after(FREE_NS), cut_deadline = pen__deadline_after(CUT_NS);
    pthread_mutex_lock(&e->mutex);
    e->closing = 1;
    pen__poll_wake(e);
    /* Until then bytes may come into memory that the caller is about to free. */
    while (!e->cut && pen__cond_wait(&e->changed, &e->mutex, cut_deadline) == PEN_OK)
        ;
    while (!e->ended && pen__cond_wait(&e->changed, &e->mutex, deadline) == PEN_OK)
        ;
    bool ended = e->ended;
    e->left = !ended;
    if (!ended)
        pthread_detach(e->thread);
    pthread_mutex_unlock(&e->mutex);
    return ended;
}

void pen__engine_free(PenEngine **engine)
{
    PenEngine *e = *engine;
    *engine = NULL;
    if (!e)
        return;
    if (e->pid != getpid()) {
        /* Sockets and locks are shared with the parent or held by its thread: not ours to touch. */
        pen__proxy_free(&e->proxy);
        pen__free(e->sockets);
        pen__free(e);
        return;
    }
    if (!end_loop(e))
        return;
    pen__thread_join(e->thread);
    free_engine(e);
}

PenTransport *pen__engine_transport(PenEngine *engine)
{
    return &engine->transport;
}
