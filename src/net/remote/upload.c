/* SPDX-License-Identifier: Apache-2.0 */
/* A large object in parts: filled one after another, sent several at once. The object appears when
 * the last call is answered, whole, or not at all. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/attr.h"
#include "base/sys.h"
#include "base/thread.h"
#include "net/remote/remote_impl.h"
#include "net/s3/response.h"

#define WHERE "net/upload"

/* Parts of 8 MiB allow 78 GiB; larger objects have larger parts from a thousand on. */
enum {
    PART_BYTES = 8 << 20,
    MOST_PARTS = 10000,
    AT_ONCE = 4,
    MOST_AT_ONCE = 64,
    ANSWER_BYTES = 65536,
    GROWS_AT = 1000,
    LOOK_MS = 250,
    JOIN_ATTEMPTS = 6
};

typedef struct Part {
    struct PenUpload *u;
    PenRemoteOp op;
    PenHttpHeader query[2];
    char number[16], hash[65];
    struct iovec body;
    uint8_t *data;
    size_t bytes, cap;
    uint32_t index;
    enum { PART_FREE, PART_FILLING, PART_SENDING } state;
} Part;

typedef char ETag[132];

struct PenUpload {
    PenRemote *r;
    char *name, *id;
    pthread_mutex_t mutex;
    pthread_cond_t cond;
    Part parts[MOST_AT_ONCE + 1]; /* one is filled while the others are sent */
    uint32_t at_once, n_parts;
    Part *filling;
    ETag *etags;
    uint32_t n, cap, sending;
    uint64_t bytes;
    int status; /* of the first part that failed */
    PenError error;
};

/* ---- one part -------------------------------------------------------------------------------- */

static void part_done(void *ctx, int r, const PenError *err)
{
    Part *p = (Part *)(void *)((char *)ctx - offsetof(Part, op));
    PenUpload *u = p->u;
    if (r == PEN_OK && !p->op.ret_etag[0])
        r = PEN_E_IO;
    pthread_mutex_lock(&u->mutex);
    if (r == PEN_OK)
        memcpy(u->etags[p->index], p->op.ret_etag, sizeof(ETag));
    else if (u->status == PEN_OK) {
        u->status = r;
        if (err)
            u->error = *err;
        else
            pen__fail(&u->error, r, WHERE, "%s: expected an ETag for part %s, found none",
                      p->op.title, p->number);
    }
    pen__remote_end(&p->op);
    p->state = PART_FREE;
    u->sending--;
    pthread_cond_broadcast(&u->cond);
    pthread_mutex_unlock(&u->mutex);
}

/* On the loop. */
static void part_start(void *ctx)
{
    Part *p = ctx;
    PenError err = {0};
    PenOperation *started = NULL;
    PenOperationSpec spec = pen__remote_spec(&p->op);
    spec.done = part_done;
    int r = pen__remote_begin(&p->op, &err);
    if (r == PEN_OK)
        r = pen__policy_start(p->u->r->policy, &spec, &started, &err);
    if (r < 0)
        part_done(&p->op, r, &err);
}

static int grow_etags(PenUpload *u)
{
    if (u->n < u->cap)
        return PEN_OK;
    uint32_t cap = u->cap ? u->cap * 2 : 64;
    ETag *grown = pen__resize(u->etags, cap * sizeof *grown);
    if (!grown)
        return PEN_E_NO_MEMORY;
    u->etags = grown;
    u->cap = cap;
    return PEN_OK;
}

static int failed(PenUpload *u, PenError *reterr)
{
    if (u->status < 0 && reterr)
        *reterr = u->error;
    return u->status;
}

/* Until a part has ended or it is time to look whether somebody interrupts. With the lock. */
static int wait_a_little(PenUpload *u, uint64_t deadline)
{
    uint64_t until = PEN_MIN(deadline, pen__deadline_after(LOOK_MS * 1000000ull));
    if (pen__cond_wait(&u->cond, &u->mutex, until) == PEN_OK)
        return PEN_OK;
    pthread_mutex_unlock(&u->mutex);
    int r = pen__remote_interrupted(u->r)    ? PEN_E_CANCELLED
            : pen__sys->now_ns() >= deadline ? PEN_E_TIMEOUT
                                             : PEN_OK;
    pthread_mutex_lock(&u->mutex);
    return r;
}

/* Waits until `most` parts at most are under way, and for the first failure. */
static int wait_for(PenUpload *u, uint32_t most, PenError *reterr)
{
    uint64_t deadline = pen__deadline_after((u->r->outage_ms + 60000ull) * 1000000u);
    int r = PEN_OK;
    pthread_mutex_lock(&u->mutex);
    while (u->sending > most && r == PEN_OK)
        r = wait_a_little(u, deadline);
    if (r == PEN_OK)
        r = failed(u, reterr);
    else
        r = pen__fail(reterr, r, WHERE, "%s/%s: %s", pen__remote_text(u->r), u->name,
                      r == PEN_E_CANCELLED ? "interrupted" : "a part was not uploaded in time");
    pthread_mutex_unlock(&u->mutex);
    return r;
}

/* Hands the part that is being filled over to the loop. */
static int send_part(PenUpload *u, PenError *reterr)
{
    Part *p = u->filling;
    u->filling = NULL;
    if (u->r->hashes) /* here, because the loop has all other transfers to serve */
        pen__sha256_hex(p->data, p->bytes, p->hash);
    int r = wait_for(u, u->at_once - 1, reterr);
    if (r < 0)
        return r;
    pthread_mutex_lock(&u->mutex);
    r = u->n < MOST_PARTS ? grow_etags(u) : PEN_E_LIMIT;
    if (r == PEN_OK) {
        p->index = u->n++;
        p->state = PART_SENDING;
        u->sending++;
    }
    pthread_mutex_unlock(&u->mutex);
    if (r < 0)
        return pen__fail(reterr, r, WHERE, "%s/%s: no buffer is free for another part",
                         pen__remote_text(u->r), u->name);
    snprintf(p->number, sizeof p->number, "%" PRIu32, p->index + 1);
    p->query[0] = (PenHttpHeader){"partNumber", p->number};
    p->query[1] = (PenHttpHeader){"uploadId", u->id};
    p->body = (struct iovec){p->data, p->bytes};
    p->op = (PenRemoteOp){.r = u->r,
                          .method = "PUT",
                          .name = u->name,
                          .query = p->query,
                          .n_query = 2,
                          .body = &p->body,
                          .n_body = 1,
                          .payload_hash = u->r->hashes ? p->hash : NULL};
    r = u->r->transport->class_->post(u->r->transport, part_start, p);
    if (r < 0) {
        pthread_mutex_lock(&u->mutex);
        p->state = PART_FREE;
        u->sending--;
        pthread_mutex_unlock(&u->mutex);
        return pen__fail(reterr, r, WHERE, "%s/%s: the network thread has ended",
                         pen__remote_text(u->r), u->name);
    }
    return PEN_OK;
}

static int next_part(PenUpload *u, PenError *reterr)
{
    int r = wait_for(u, u->at_once, reterr);
    if (r < 0)
        return r;
    pthread_mutex_lock(&u->mutex);
    for (uint32_t i = 0; i < u->n_parts && !u->filling; i++)
        if (u->parts[i].state == PART_FREE)
            u->filling = &u->parts[i];
    Part *p = u->filling;
    if (p)
        p->state = PART_FILLING;
    pthread_mutex_unlock(&u->mutex);
    if (!p) /* cannot be: fewer are being sent than there are */
        return pen__fail(reterr, PEN_E_LIMIT, WHERE, "%s: no buffer is free for another part",
                         u->name);
    size_t want = (size_t)PART_BYTES * (1 + u->n / GROWS_AT);
    if (p->cap < want) {
        pen__free_large(p->data, p->cap);
        p->data = pen__alloc(want);
        p->cap = p->data ? want : 0;
    }
    if (!p->data)
        return pen__fail_memory(reterr, WHERE, "part of an upload");
    p->bytes = 0;
    return PEN_OK;
}

/* ---- the whole ------------------------------------------------------------------------------- */

static int begin(PenUpload *u, PenError *reterr)
{
    char *answer = pen__alloc(ANSWER_BYTES);
    if (!answer)
        return pen__fail_memory(reterr, WHERE, u->name);
    PenHttpHeader query[] = {{"uploads", NULL}};
    PenHttpHeader type[] = {{"Content-Type", "application/octet-stream"}};
    PenRemoteOp op = {.r = u->r,
                      .method = "POST",
                      .name = u->name,
                      .query = query,
                      .n_query = 1,
                      .extra = type,
                      .n_extra = 1,
                      .into = answer,
                      .into_bytes = ANSWER_BYTES};
    PenS3Started started = {0};
    PenS3Error why = {0};
    int r = pen__remote_run(&op, reterr);
    if (r == PEN_OK)
        r = pen__s3_read_started(answer, (size_t)op.bytes, &started, &why, reterr);
    if (r > 0) {
        r = pen__fail(reterr, PEN_E_IO, WHERE, "%s: cannot start an upload: the server returned %s",
                      op.title, why.code);
        pen__remote_hide(u->r, reterr);
    }
    if (r == PEN_OK) {
        u->id = started.upload_id;
        started.upload_id = NULL;
    }
    pen__s3_started_free(&started);
    pen__free(answer);
    return r;
}

static void destroy(PenUpload *u)
{
    for (uint32_t i = 0; i < u->n_parts; i++)
        pen__free_large(u->parts[i].data, u->parts[i].cap);
    pen__free(u->etags);
    pen__free(u->id);
    pen__free(u->name);
    pthread_cond_destroy(&u->cond);
    pthread_mutex_destroy(&u->mutex);
    pen__remote_close(&u->r);
    pen__free(u);
}

int pen__upload_begin(PenRemote *r, const char *name, PenUpload **ret, PenError *reterr)
{
    PenUpload *u = pen__zalloc(sizeof *u);
    if (!u || pen__cond_init(&u->cond) < 0) {
        pen__free(u);
        return pen__fail_memory(reterr, WHERE, name);
    }
    pthread_mutex_init(&u->mutex, NULL);
    u->r = pen__remote_ref(r);
    u->name = pen__strdup(name);
    u->at_once = PEN_MIN(r->upload_parts ? r->upload_parts : AT_ONCE, (uint32_t)MOST_AT_ONCE);
    u->n_parts = u->at_once + 1;
    for (uint32_t i = 0; i < u->n_parts; i++)
        u->parts[i].u = u;
    int e = u->name ? begin(u, reterr) : pen__fail_memory(reterr, WHERE, name);
    if (e < 0)
        destroy(u);
    else
        *ret = u;
    return e;
}

static int add(PenUpload *u, const uint8_t *data, size_t bytes, PenError *reterr)
{
    int r = PEN_OK;
    while (bytes && r == PEN_OK) {
        if (!u->filling)
            r = next_part(u, reterr);
        if (r < 0)
            return r;
        Part *p = u->filling;
        size_t n = PEN_MIN(bytes, p->cap - p->bytes);
        memcpy(p->data + p->bytes, data, n);
        p->bytes += n;
        data += n;
        bytes -= n;
        if (p->bytes == p->cap)
            r = send_part(u, reterr);
    }
    return r;
}

int pen__upload_add(PenUpload *u, const struct iovec *iov, int n, PenError *reterr)
{
    int r = PEN_OK;
    for (int i = 0; i < n && r == PEN_OK; i++) {
        r = add(u, iov[i].iov_base, iov[i].iov_len, reterr);
        u->bytes += iov[i].iov_len;
    }
    return r;
}

static int list_parts(const PenUpload *u, PenBuf *body)
{
    char line[256];
    int r = pen__buf_add(body, "<CompleteMultipartUpload>", 25);
    for (uint32_t i = 0; i < u->n && r == PEN_OK; i++) {
        int n =
            snprintf(line, sizeof line, "<Part><PartNumber>%" PRIu32 "</PartNumber><ETag>", i + 1);
        r = pen__buf_add(body, line, (size_t)n);
        for (const char *c = u->etags[i]; *c && r == PEN_OK; c++) {
            if (*c == '"')
                r = pen__buf_add(body, "&quot;", 6);
            else if (*c != '<' && *c != '&' && *c != '>')
                r = pen__buf_add(body, c, 1);
        }
        if (r == PEN_OK)
            r = pen__buf_add(body, "</ETag></Part>", 14);
    }
    return r == PEN_OK ? pen__buf_add(body, "</CompleteMultipartUpload>", 26) : r;
}

static void rest(PenUpload *u, uint64_t ms)
{
    uint64_t deadline = pen__deadline_after(ms * 1000000u);
    pthread_mutex_lock(&u->mutex);
    while (pen__cond_wait(&u->cond, &u->mutex, deadline) == PEN_OK)
        ;
    pthread_mutex_unlock(&u->mutex);
}

/* The server's own trouble, told behind an answer of 200. */
static int may_pass(const char *code)
{
    return strcmp(code, "InternalError") == 0 || strcmp(code, "ServiceUnavailable") == 0 ||
           strcmp(code, "SlowDown") == 0 || strcmp(code, "RequestTimeout") == 0;
}

/* An answer of 200 may still be an error: it was sent before the parts were joined. Such a one is
 * asked again, which the policy below cannot know. */
static int join_parts(PenUpload *u, PenRemoteOp *op, PenError *reterr)
{
    int r = 1;
    for (unsigned i = 0; r > 0; i++) {
        PenS3Completed done = {0};
        PenS3Error why = {0};
        PenRemoteOp attempt = *op;
        r = pen__remote_run(&attempt, reterr);
        if (r == PEN_OK)
            r = pen__s3_read_completed(op->into, (size_t)attempt.bytes, &done, &why, reterr);
        if (r > 0 && (i == JOIN_ATTEMPTS || !may_pass(why.code))) {
            r = pen__fail(reterr, PEN_E_IO, WHERE,
                          "%s: cannot complete the upload: the server returned %s", attempt.title,
                          why.code);
            pen__remote_hide(u->r, reterr);
        }
        if (r > 0)
            rest(u, 50u << i);
    }
    return r;
}

/* An upload that is gone may have been completed by an attempt whose answer was lost. */
static int complete(PenUpload *u, PenObject *ret, PenError *reterr)
{
    PenBuf body = {0};
    char *answer = pen__alloc(ANSWER_BYTES);
    int r = answer && list_parts(u, &body) == PEN_OK ? PEN_OK
                                                     : pen__fail_memory(reterr, WHERE, u->name);
    PenHttpHeader query[] = {{"uploadId", u->id}};
    struct iovec iov = {body.data, body.bytes};
    PenRemoteOp op = {.r = u->r,
                      .method = "POST",
                      .name = u->name,
                      .query = query,
                      .n_query = 1,
                      .body = &iov,
                      .n_body = 1,
                      .into = answer,
                      .into_bytes = ANSWER_BYTES};
    if (r == PEN_OK)
        r = join_parts(u, &op, reterr);
    pen__buf_free(&body);
    pen__free(answer);
    int gone = r == PEN_E_NOT_FOUND;
    if (r == PEN_OK || gone) {
        r = pen__remote_stat(u->r, u->name, ret, reterr);
        if (r == PEN_OK && ret->bytes != u->bytes)
            r = pen__fail(reterr, PEN_E_IO, WHERE,
                          "%s/%s: expected %" PRIu64 " bytes after the upload, found %" PRIu64,
                          pen__remote_text(u->r), u->name, u->bytes, ret->bytes);
    }
    return r;
}

int pen__upload_finish(PenUpload **upload, PenObject *ret, PenError *reterr)
{
    PenUpload *u = *upload;
    PenObject object = {0};
    int r = PEN_OK;
    if (!u->filling && !u->n) /* an object without bytes is one part without bytes */
        r = next_part(u, reterr);
    if (r == PEN_OK && u->filling && (u->filling->bytes || !u->n))
        r = send_part(u, reterr);
    if (r == PEN_OK)
        r = wait_for(u, 0, reterr);
    if (r == PEN_OK)
        r = complete(u, &object, reterr);
    if (r < 0) {
        pen__upload_abort(upload);
        return r;
    }
    *upload = NULL;
    destroy(u);
    if (ret)
        *ret = object;
    return PEN_OK;
}

void pen__upload_abort(PenUpload **upload)
{
    PenUpload *u = *upload;
    *upload = NULL;
    if (!u)
        return;
    /* Parts that are under way use its memory: when they do not end, it is left to them. */
    (void)wait_for(u, 0, NULL);
    pthread_mutex_lock(&u->mutex);
    uint32_t sending = u->sending;
    pthread_mutex_unlock(&u->mutex);
    if (sending)
        return;
    PenHttpHeader query[] = {{"uploadId", u->id}};
    PenRemoteOp op = {.r = u->r, .method = "DELETE", .name = u->name, .query = query, .n_query = 1};
    (void)pen__remote_run(&op, NULL);
    destroy(u);
}
