/* SPDX-License-Identifier: Apache-2.0 */
/* Opening a remote place: its address, its endpoint, its keys, the thread that carries requests. */
#include "net/remote/remote.h"

#include <string.h>

#include "base/attr.h"
#include "base/machine/ranks.h"
#include "base/sha256.h"
#include "base/thread.h"
#include "net/aws/config.h"
#include "net/remote/remote_impl.h"

#define WHERE "net/remote"

static const PenRemoteSettings DEFAULTS = {.path_style = -1};

void pen_remote_settings_init(PenRemoteSettings *settings)
{
    *settings = DEFAULTS;
}

PenRemoteSettings pen__remote_settings(const PenRemoteSettings *given)
{
    return given ? *given : DEFAULTS;
}

int pen_is_remote(const char *text)
{
    return pen__address_is_remote(text);
}

/* ---- keys ------------------------------------------------------------------------------------ */

/* What the keyring keeps of the caller's callback: it may outlive the place. */
typedef struct Caller {
    int (*credentials)(void *ctx, PenCredentials *ret, PenError *reterr);
    void (*taken)(void *ctx);
    void (*release)(void *ctx);
    void *ctx;
} Caller;

static void free_caller(void *ctx)
{
    Caller *caller = ctx;
    if (caller->release)
        caller->release(caller->ctx);
    pen__free(caller);
}

static int ask_caller(void *ctx, PenAwsCredentials **ret, uint64_t deadline_ns, PenError *reterr)
{
    const Caller *caller = ctx;
    PenCredentials c = {0};
    (void)deadline_ns;
    int r = caller->credentials(caller->ctx, &c, reterr);
    if (r == PEN_OK && (!c.key_id || !c.secret))
        r = pen__fail(reterr, PEN_E_ACCESS, WHERE,
                      "credentials: expected an access key id and a secret access key from the "
                      "callback, found none");
    if (r == PEN_OK)
        r = pen__credentials_new(c.key_id, c.secret, c.token, c.expires_s, ret, reterr);
    if (caller->taken)
        caller->taken(caller->ctx);
    return r;
}

static int make_keyring(PenRemote *r, const PenRemoteSettings *s, PenError *reterr)
{
    PenSecretSettings keys = {
        .key_id = s->key_id, .secret = s->secret, .token = s->token, .profile = s->profile};
    if (s->credentials && !s->key_id) {
        Caller *caller = pen__zalloc(sizeof *caller);
        if (!caller)
            return pen__fail_memory(reterr, WHERE, "credentials");
        *caller = (Caller){s->credentials, s->credentials_taken, s->release, s->ctx};
        if (s->hold)
            s->hold(s->ctx);
        keys.call = ask_caller;
        keys.call_ctx = caller;
        keys.call_free = free_caller;
    }
    return pen__keyring_new(&keys, r->transport, &r->keyring, reterr);
}

/* ---- what places have in common -----------------------------------------------------------------
 */

enum { DIGEST_BYTES = 32 };

static void add_text(PenSha256 *sum, const char *text)
{
    uint8_t is_given = text != NULL;
    pen__sha256_update(sum, &is_given, 1);
    if (text)
        pen__sha256_update(sum, text, strlen(text) + 1);
}

/* Of all that decides how requests are made, with the secrets. */
static void digest_settings(const PenRemoteSettings *s, uint8_t ret[DIGEST_BYTES])
{
    const char *const texts[] = {s->endpoint, s->region, s->profile, s->key_id,
                                 s->secret,   s->token,  s->ca_file, s->proxy};
    const uint64_t numbers[] = {(uint64_t)(int64_t)s->path_style,
                                s->no_sign,
                                s->requester_pays,
                                s->allow_http,
                                s->deadline_ms,
                                s->outage_ms,
                                s->in_flight,
                                s->upload_parts,
                                s->node_ranks,
                                (uintptr_t)s->credentials,
                                (uintptr_t)s->credentials_taken,
                                (uintptr_t)s->interrupted,
                                (uintptr_t)s->hold,
                                (uintptr_t)s->release,
                                (uintptr_t)s->ctx};
    PenSha256 sum;
    pen__sha256_init(&sum);
    for (size_t i = 0; i < PEN_LEN(texts); i++)
        add_text(&sum, texts[i]);
    pen__sha256_update(&sum, numbers, sizeof numbers);
    pen__sha256_final(&sum, ret);
    explicit_bzero(&sum, sizeof sum);
}

/* A short password could be found by its digest, so this is kept where secrets are. */
static int note_settings(PenRemote *r, const PenRemoteSettings *s, PenError *reterr)
{
    int e = pen__secret_memory_new(DIGEST_BYTES, &r->settings, reterr);
    if (e == PEN_OK)
        digest_settings(s, (uint8_t *)r->settings.data);
    return e;
}

/* ---- where ----------------------------------------------------------------------------------- */

static const char *either(const char *given, const char *found)
{
    return given && *given ? given : *found ? found : NULL;
}

static int find_endpoint(PenRemote *r, const PenRemoteSettings *s, const PenAwsConfig *aws,
                         PenError *reterr)
{
    const char *endpoint = either(s->endpoint, aws->endpoint);
    int e = pen__endpoint_make(endpoint, either(s->region, aws->region), &r->endpoint, reterr);
    if (e < 0)
        return e;
    r->given_host = endpoint != NULL;
    if (s->path_style >= 0)
        r->endpoint.path_style = s->path_style > 0;
    else if (aws->path_style)
        r->endpoint.path_style = 1;
    r->endpoint.unsigned_ = s->no_sign || aws->unsigned_;
    r->endpoint.requester_pays = s->requester_pays;
    r->endpoint.allow_http = s->allow_http;
    if (!r->endpoint.unsigned_ && !pen__endpoint_is_safe(&r->endpoint))
        return pen__fail(reterr, PEN_E_ACCESS, WHERE,
                         "%s: refusing to send a signed request over http to %s; use https, or "
                         "pass --allow-http (Python: allow_http=True) if you trust the network",
                         (char *)r->text.data, r->endpoint.host);
    return PEN_OK;
}

static void policy_settings(const PenRemoteSettings *s, uint32_t node_ranks, PenPolicySettings *ret)
{
    pen__policy_settings_init(ret);
    if (s->deadline_ms) {
        PenHttpLimits *l = &ret->limits;
        l->deadline_ms = s->deadline_ms;
        l->connect_ms = PEN_MIN(l->connect_ms, s->deadline_ms);
        l->first_byte_ms = PEN_MIN(l->first_byte_ms, s->deadline_ms);
        l->slow_ms = PEN_MIN(l->slow_ms, s->deadline_ms);
        l->slow_bytes = (uint32_t)((uint64_t)l->slow_bytes * l->slow_ms / 5000) + 1;
    }
    if (s->outage_ms)
        ret->outage_ms = s->outage_ms;
    ret->in_flight = s->in_flight ? pen__node_share(s->in_flight, node_ranks)
                                  : pen__node_usual(ret->in_flight, node_ranks);
}

static int start(PenRemote *r, const PenRemoteSettings *s, PenError *reterr)
{
    PenAwsConfig aws = {0};
    PenPolicySettings policy;
    int e = pen__node_ranks(s->node_ranks, &r->node_ranks, reterr);
    if (e == PEN_OK && pen__remote_is_s3(r)) {
        e = pen__aws_config(s->profile, &aws, reterr);
        if (e == PEN_OK)
            e = find_endpoint(r, s, &aws, reterr);
    }
    if (e < 0)
        return e;
    PenEngineSettings engine = {.ca_file = either(s->ca_file, aws.ca_file), .proxy = s->proxy};
    e = pen__engine_new(&engine, &r->engine, reterr);
    if (e < 0)
        return e;
    r->transport = pen__engine_transport(r->engine);
    policy_settings(s, r->node_ranks, &policy);
    r->outage_ms = policy.outage_ms;
    r->upload_parts = s->upload_parts;
    r->hashes = !r->endpoint.unsigned_ && strcmp(r->endpoint.scheme, "https") != 0;
    e = pen__policy_new(r->transport, &policy, &r->policy, reterr);
    if (e == PEN_OK && pen__remote_is_s3(r) && !r->endpoint.unsigned_)
        e = make_keyring(r, s, reterr);
    return e;
}

typedef struct Farewell {
    PenPolicy *policy;
    pthread_mutex_t mutex;
    pthread_cond_t cond;
    int done;
} Farewell;

static void free_policy(void *ctx)
{
    Farewell *f = ctx;
    pen__policy_free(&f->policy);
    pthread_mutex_lock(&f->mutex);
    f->done = 1;
    pthread_cond_signal(&f->cond);
    pthread_mutex_unlock(&f->mutex);
}

/* The policy belongs to the loop, and goes before it. The loop only ends with us, so this wait has
 * an end; in a forked child there is no loop, and the memory stays. */
static void end_policy(PenRemote *r)
{
    Farewell f = {.policy = r->policy, .mutex = PTHREAD_MUTEX_INITIALIZER};
    r->policy = NULL;
    if (!f.policy || pen__cond_init(&f.cond) < 0)
        return;
    if (r->transport->class_->post(r->transport, free_policy, &f) == PEN_OK) {
        pthread_mutex_lock(&f.mutex);
        while (!f.done)
            (void)pen__cond_wait(&f.cond, &f.mutex, pen__deadline_after(1000000000u));
        pthread_mutex_unlock(&f.mutex);
    }
    pthread_cond_destroy(&f.cond);
}

/* What others use as well has its end with the one that has opened it. */
static void destroy(PenRemote *r)
{
    if (r->shared == r) {
        pen__keyring_free(&r->keyring);
        end_policy(r);
        pen__engine_free(&r->engine);
        pen__secret_memory_free(&r->settings);
    }
    pen__address_free(&r->address);
    pen__buf_free(&r->text);
    if (r->release)
        r->release(r->ctx);
    pen__free(r);
}

static int set_address(PenRemote *r, const char *address, PenError *reterr)
{
    int e = pen__address_parse(address, &r->address, reterr);
    if (e == PEN_OK && pen__address_text(&r->address, &r->text) < 0)
        e = pen__fail_memory(reterr, WHERE, "URL");
    return e;
}

int pen__remote_open(const char *address, const PenRemoteSettings *settings, PenRemote **ret,
                     PenError *reterr)
{
    PenRemote *r = pen__zalloc(sizeof *r);
    if (!r)
        return pen__fail_memory(reterr, WHERE, "remote place");
    atomic_init(&r->refs, 1);
    r->shared = r;
    if (settings && settings->interrupted) {
        r->interrupted = settings->interrupted;
        r->release = settings->release;
        r->ctx = settings->ctx;
        if (settings->hold)
            settings->hold(settings->ctx);
    }
    int e = set_address(r, address, reterr);
    if (e == PEN_OK)
        e = note_settings(r, settings ? settings : &DEFAULTS, reterr);
    if (e == PEN_OK)
        e = start(r, settings ? settings : &DEFAULTS, reterr);
    if (e < 0)
        destroy(r);
    else
        *ret = r;
    return e;
}

PenRemote *pen__remote_ref(PenRemote *r)
{
    atomic_fetch_add(&r->refs, 1);
    return r;
}

static bool lie_together(const PenAddress *a, const PenAddress *b)
{
    if (a->scheme != b->scheme)
        return false;
    return a->scheme == PEN_SCHEME_S3 ? strcmp(a->bucket, b->bucket) == 0
                                      : strcmp(a->host, b->host) == 0 && a->port == b->port;
}

int pen__remote_is_beside(const PenRemote *r, const char *address,
                          const PenRemoteSettings *settings)
{
    PenAddress other;
    uint8_t digest[DIGEST_BYTES];
    if (pen__address_parse(address, &other, NULL) < 0)
        return 0;
    bool yes = lie_together(&r->address, &other);
    pen__address_free(&other);
    if (!yes || !settings)
        return yes;
    digest_settings(settings, digest);
    yes = memcmp(digest, r->shared->settings.data, sizeof digest) == 0;
    explicit_bzero(digest, sizeof digest);
    return yes;
}

int pen__remote_open_beside(PenRemote *of, const char *address, PenRemote **ret, PenError *reterr)
{
    PenRemote *shared = of->shared;
    PenRemote *r = pen__zalloc(sizeof *r);
    if (!r)
        return pen__fail_memory(reterr, WHERE, "remote place");
    atomic_init(&r->refs, 1);
    r->shared = shared;
    r->transport = shared->transport;
    r->policy = shared->policy;
    r->keyring = shared->keyring;
    r->outage_ms = shared->outage_ms;
    r->node_ranks = shared->node_ranks;
    r->upload_parts = shared->upload_parts;
    r->interrupted = shared->interrupted; /* whose ctx it holds */
    r->ctx = shared->ctx;
    r->hashes = shared->hashes;
    int e = set_address(r, address, reterr);
    if (e == PEN_OK && !lie_together(&r->address, &of->address))
        e = pen__fail(reterr, PEN_E_INVALID, WHERE, "%s: expected an address beside %s",
                      pen__remote_text(r), pen__remote_text(of));
    if (e < 0) {
        destroy(r);
        return e;
    }
    pen__remote_ref(shared);
    *ret = r;
    return PEN_OK;
}

void pen__remote_close(PenRemote **r)
{
    PenRemote *old = *r;
    *r = NULL;
    while (old && atomic_fetch_sub(&old->refs, 1) == 1) {
        PenRemote *shared = old->shared != old ? old->shared : NULL;
        destroy(old);
        old = shared;
    }
}

int pen__remote_was_opened_beside(const PenRemote *r)
{
    return r->shared != r;
}

const char *pen__remote_text(const PenRemote *r)
{
    return (const char *)r->text.data;
}

int pen__remote_is_s3(const PenRemote *r)
{
    return r->address.scheme == PEN_SCHEME_S3;
}

int pen__remote_interrupted(const PenRemote *r)
{
    return atomic_load(&r->is_stopped) || (r->interrupted && r->interrupted(r->ctx));
}

void pen__remote_stop(PenRemote *r, int stop)
{
    atomic_store(&r->is_stopped, stop);
}

void pen__remote_counts(PenRemote *r, PenPolicyCounts *ret)
{
    pen__policy_counts(r->policy, ret);
}

void pen__remote_progress(PenRemote *r, char *ret, size_t bytes)
{
    pen__policy_progress(r->policy, ret, bytes);
}
