/* SPDX-License-Identifier: Apache-2.0 */
/* Credentials as they are now. They are fetched by a thread of their own, which ends when it has
 * them, and is started again ahead of their end. Ages are measured on the monotonic clock from the
 * moment of the fetch, so that a wall clock that is set does not matter. */
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/attr.h"
#include "base/error.h"
#include "base/mem.h"
#include "base/sys.h"
#include "base/thread.h"
#include "net/credentials/credentials.h"
#include "net/credentials/sources.h"

#define WHERE "net/credentials"
#define SECOND UINT64_C(1000000000)

enum {
    AHEAD_S = 300,   /* renewed so long before their end, ... */
    JITTER_S = 300,  /* ... and up to this longer */
    LEAST_S = 10,    /* between two renewals of such that end soon */
    BACK_OFF_S = 60, /* the longest wait after failures: 1 s, 2 s, 4 s, ... */
    FETCH_S = 120,   /* a fetch */
    PROCESS_MS = 60000,
    FREE_S = 1,
};

/* Held by the keyring and by the thread of a fetch, which may outlive it. */
typedef struct Core {
    pthread_mutex_t mutex;
    pthread_cond_t cond; /* a fetch has ended */
    unsigned refs;
    atomic_bool closed;
    PenAsk ask;
    PenAwsEnv env;
    char *profile;
    PenSecretCall *call;
    void *call_ctx;
    void (*call_free)(void *ctx);
    bool given; /* by the caller, for ever */

    PenAwsCredentials *now;
    uint64_t end_ns;     /* of `now` */
    uint64_t fetch_ns;   /* the next fetch is not before */
    uint64_t fetched_ns; /* when they came */
    bool refused;        /* `now` was, by a server */
    bool fetching;
    unsigned failures; /* in a row */
    PenError err;      /* of the last of them */
    char source[256];
} Core;

struct PenKeyring {
    Core *core;
    pthread_t thread; /* of the last fetch */
    bool started;     /* it has to be joined */
    int pid;          /* threads of a parent are not ours */
};

static void core_free(Core *k)
{
    pen__credentials_put(&k->now);
    if (k->call_free)
        k->call_free(k->call_ctx);
    pen__aws_env_free(&k->env);
    pen__ask_free(&k->ask);
    pthread_cond_destroy(&k->cond);
    pthread_mutex_destroy(&k->mutex);
    pen__free(k->profile);
    pen__free(k);
}

static uint64_t random_below(uint64_t n)
{
    uint64_t v = 0;
    return pen__sys->random(&v, sizeof v) < 0 ? 0 : v % n;
}

/* What is left of them, in seconds; UINT64_MAX for ever. */
static uint64_t left_s(const PenAwsCredentials *s, uint64_t date_s)
{
    uint64_t end = pen__credentials_expires(s);
    uint64_t now = date_s ? date_s : pen__sys->unix_ns() / SECOND;
    if (!end)
        return UINT64_MAX;
    return end > now ? end - now : 0;
}

static int ask_sources(Core *k, PenCred *c, PenAwsCredentials **ret, PenError *err)
{
    if (!k->call)
        return pen__cred_find(c, ret, err);
    pen__cred_set_source(c, "callback");
    int r = k->call(k->call_ctx, ret, c->deadline_ns, err);
    if (r >= 0 && !*ret)
        r = pen__fail(err, PEN_E_INVALID, WHERE, "callback: returned no credentials");
    return r < 0 ? r : PEN_OK;
}

/* With the mutex held. */
static void keep(Core *k, PenAwsCredentials *fetched, uint64_t left, const char *source)
{
    uint64_t now = pen__sys->now_ns(), ahead = AHEAD_S + random_below(JITTER_S + 1);
    pen__credentials_put(&k->now);
    k->now = fetched;
    k->refused = false;
    k->failures = 0;
    k->fetched_ns = now;
    k->end_ns = k->fetch_ns = UINT64_MAX;
    snprintf(k->source, sizeof k->source, "%s", source);
    if (left > UINT32_MAX)
        return;
    uint64_t wait = left > 2 * ahead ? left - ahead : left / 2;
    k->end_ns = now + left * SECOND;
    k->fetch_ns = now + PEN_MAX(wait, PEN_MIN(left, LEAST_S)) * SECOND;
}

/* With the mutex held. */
static void note_failure(Core *k, const PenError *err)
{
    uint64_t wait = k->failures < 6 ? UINT64_C(1) << k->failures : BACK_OFF_S;
    k->failures++;
    k->err = *err;
    k->fetch_ns = pen__deadline_after(wait * SECOND);
}

static void *fetch(void *arg)
{
    Core *k = arg;
    PenError err = {.status = PEN_E_IO};
    PenAwsCredentials *found = NULL;
    PenCred c = {
        .env = &k->env,
        .ask = &k->ask,
        .profile = k->profile,
        .cancel = &k->closed,
        .deadline_ns = pen__deadline_after(FETCH_S * SECOND),
        .process_ms = PROCESS_MS,
    };
    pen__thread_name("pen-keys");
    int r = ask_sources(k, &c, &found, &err);
    uint64_t left = r == PEN_OK ? left_s(found, c.date_s) : 0;
    if (r == PEN_OK && !left) {
        pen__credentials_put(&found);
        r = pen__fail(&err, PEN_E_ACCESS, WHERE,
                      "%s: returned expired credentials; check the clock of this machine",
                      c.source);
    }
    pen__cred_end(&c);
    pthread_mutex_lock(&k->mutex);
    if (r == PEN_OK)
        keep(k, found, left, c.source);
    else
        note_failure(k, &err);
    k->fetching = false;
    pthread_cond_broadcast(&k->cond);
    bool last = --k->refs == 0;
    pthread_mutex_unlock(&k->mutex);
    if (last)
        core_free(k);
    return NULL;
}

/* With the mutex held. */
static void begin(PenKeyring *ring)
{
    Core *k = ring->core;
    PenError err;
    if (ring->started)
        pen__thread_join(ring->thread); /* does not take the mutex any more: is at its end */
    ring->started = false;
    k->refs++;
    if (pen__thread_start(&ring->thread, fetch, k, &err) < 0) {
        k->refs--;
        note_failure(k, &err);
        return;
    }
    ring->started = true;
    k->fetching = true;
}

int pen__keyring_now(PenKeyring *ring, PenAwsCredentials **ret, PenError *reterr)
{
    Core *k = ring->core;
    int r = PEN_OK;
    pthread_mutex_lock(&k->mutex);
    uint64_t now = pen__sys->now_ns();
    bool valid = k->now && !k->refused && now < k->end_ns;
    if (!k->given && !k->fetching && now >= k->fetch_ns)
        begin(ring);
    if (valid)
        *ret = pen__credentials_get(k->now);
    else if (k->given)
        r = pen__fail(reterr, PEN_E_ACCESS, WHERE,
                      "the server reports that the credentials have expired; pass new ones, or a "
                      "callback that returns them");
    else if (k->fetching || !k->failures)
        r = pen__fail(reterr, PEN_E_BUSY, WHERE, "credentials are being fetched");
    else {
        r = k->err.status;
        if (reterr)
            *reterr = k->err;
    }
    pthread_mutex_unlock(&k->mutex);
    return r;
}

void pen__keyring_refuse(PenKeyring *ring, const PenAwsCredentials *s)
{
    Core *k = ring->core;
    pthread_mutex_lock(&k->mutex);
    if (k->now == s && !k->refused) {
        k->refused = true;
        k->fetch_ns = k->fetched_ns + SECOND; /* as the source may give the same again */
    }
    pthread_mutex_unlock(&k->mutex);
}

void pen__keyring_hide(PenKeyring *ring, char *message)
{
    Core *k = ring->core;
    pthread_mutex_lock(&k->mutex);
    if (k->now)
        pen__credentials_hide(k->now, message);
    pthread_mutex_unlock(&k->mutex);
}

void pen__keyring_source(PenKeyring *ring, char *ret, size_t bytes)
{
    Core *k = ring->core;
    pthread_mutex_lock(&k->mutex);
    snprintf(ret, bytes, "%s", k->source);
    pthread_mutex_unlock(&k->mutex);
}

static int core_fill(Core *k, const PenSecretSettings *s, PenError *reterr)
{
    k->call_ctx = s->call_ctx;
    k->call_free = s->call_free;
    if (s->key_id || s->secret) {
        k->given = true;
        k->end_ns = UINT64_MAX;
        snprintf(k->source, sizeof k->source, "arguments");
        return pen__credentials_new(s->key_id, s->secret, s->token, 0, &k->now, reterr);
    }
    k->call = s->call;
    if (s->profile && *s->profile && !(k->profile = pen__strdup(s->profile)))
        return pen__fail_memory(reterr, WHERE, "keyring");
    return s->call ? PEN_OK : pen__aws_env_read(&k->env, reterr);
}

int pen__keyring_new(const PenSecretSettings *settings, PenTransport *t, PenKeyring **ret,
                     PenError *reterr)
{
    PenKeyring *ring = pen__zalloc(sizeof *ring);
    Core *k = pen__zalloc(sizeof *k);
    if (!ring || !k || pen__cond_init(&k->cond) < 0) {
        pen__free(ring);
        pen__free(k);
        if (settings->call_free)
            settings->call_free(settings->call_ctx);
        return pen__fail_memory(reterr, WHERE, "keyring");
    }
    pthread_mutex_init(&k->mutex, NULL);
    pen__ask_init(&k->ask, t);
    k->refs = 1;
    ring->core = k;
    ring->pid = getpid();
    int r = core_fill(k, settings, reterr);
    if (r < 0)
        pen__keyring_free(&ring);
    else
        *ret = ring;
    return r;
}

void pen__keyring_free(PenKeyring **ring)
{
    PenKeyring *old = *ring;
    *ring = NULL;
    if (!old)
        return;
    if (old->pid != getpid()) { /* a forked child: what the parent's thread holds stays as it is */
        pen__free(old);
        return;
    }
    Core *k = old->core;
    atomic_store(&k->closed, true);
    pen__ask_close(&k->ask);
    uint64_t deadline = pen__deadline_after(FREE_S * SECOND);
    pthread_mutex_lock(&k->mutex);
    while (k->fetching && pen__cond_wait(&k->cond, &k->mutex, deadline) == PEN_OK)
        ;
    bool ended = !k->fetching, last = --k->refs == 0;
    pthread_mutex_unlock(&k->mutex);
    if (old->started && ended)
        pen__thread_join(old->thread);
    else if (old->started)
        pthread_detach(old->thread);
    if (last)
        core_free(k);
    pen__free(old);
}
