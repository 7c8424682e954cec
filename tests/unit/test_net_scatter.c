/* SPDX-License-Identifier: Apache-2.0 */
/* One answer into several places: as it lies in one, whatever the server does. */
#include "base/iov.h"

#include "engine_help.h"
#include "test.h"

#include "base/crc32c.h"
#include "base/rng.h"
#include "io/remote_source.h"
#include "net/remote/list.h"

enum { PLACES = 16, GUARD = 64 };

static PenEngine *engine;
static PenRng rng;

/* A run of bytes cut at random into places that lie apart, with guards around each. */
typedef struct Places {
    uint8_t *memory;
    struct iovec v[PLACES];
    int n;
    size_t bytes;
} Places;

static void places_init(Places *p, size_t bytes, int n)
{
    size_t cuts[PLACES + 1] = {0}, at = GUARD;
    p->memory = malloc(bytes + (size_t)(n + 1) * GUARD);
    memset(p->memory, 0xee, bytes + (size_t)(n + 1) * GUARD);
    p->n = n;
    p->bytes = bytes;
    for (int i = 1; i < n; i++) {
        size_t cut = (size_t)pen__rng_below(&rng, bytes + 1);
        int k = i;
        for (; k > 1 && cuts[k - 1] > cut; k--)
            cuts[k] = cuts[k - 1];
        cuts[k] = cut;
    }
    cuts[n] = bytes;
    for (int i = 0; i < n; i++) {
        p->v[i] = (struct iovec){p->memory + at, cuts[i + 1] - cuts[i]};
        at += p->v[i].iov_len + GUARD;
    }
}

static void places_free(Places *p)
{
    free(p->memory);
}

static bool guards_hold(const Places *p)
{
    const uint8_t *from = p->memory;
    for (int i = 0; i <= p->n; i++) {
        for (int k = 0; k < GUARD; k++)
            if (from[k] != 0xee)
                return false;
        if (i < p->n)
            from += GUARD + p->v[i].iov_len;
    }
    return true;
}

static bool places_are(const Places *p, const uint8_t *expected, size_t bytes)
{
    static uint8_t flat[FILE_BYTES];
    return pen__iov_get(p->v, p->n, flat, bytes) == bytes && memcmp(flat, expected, bytes) == 0 &&
           guards_hold(p);
}

TEST(put_and_get)
{
    static uint8_t flat[300], back[300];
    struct iovec huge[2] = {{flat, SIZE_MAX}, {flat, 1}};
    for (int round = 0; round < 2000; round++) {
        Places p;
        size_t bytes = (size_t)pen__rng_below(&rng, 256), at = 0;
        places_init(&p, bytes, 1 + (int)pen__rng_below(&rng, PLACES));
        for (size_t i = 0; i < bytes; i++)
            flat[i] = (uint8_t)pen__rng_next(&rng);
        while (at < bytes) {
            size_t part = 1 + (size_t)pen__rng_below(&rng, bytes - at);
            pen__iov_put(p.v, p.n, at, flat + at, part);
            at += part;
        }
        CHECK_INT(pen__iov_bytes(p.v, p.n), bytes);
        CHECK(places_are(&p, flat, bytes));
        CHECK_INT(pen__iov_get(p.v, p.n, back, sizeof back), bytes);
        CHECK_MEM(back, flat, bytes);
        places_free(&p);
    }
    CHECK(pen__iov_bytes(huge, 2) == UINT64_MAX);
    CHECK_INT(pen__iov_bytes(NULL, 0), 0);
}

/* The bodies a server can send, and how many bytes of them are right. */
static const struct {
    const char *path;
    PenHttpFailure failure;
    bool right;
} BODIES[] = {
    {"/data", PEN_HTTP_OK, true},
    {"/behave/chunked_right/1/data", PEN_HTTP_OK, true},
    {"/behave/length_absent/1/data", PEN_HTTP_OK, true},
    {"/behave/range_short/1/data", PEN_HTTP_OK, true},
    {"/behave/body_endless/1/data", PEN_HTTP_TOO_LONG, false},
    {"/behave/body_longer_than_asked/1/data", PEN_HTTP_TOO_LONG, false},
    {"/behave/body_fin/1/data", PEN_HTTP_BROKEN, false},
};

TEST(bodies_into_places)
{
    for (size_t i = 0; i < PEN_LEN(BODIES); i++)
        for (int n = 1; n <= PLACES; n += 5) {
            Job j;
            Places p;
            job_init(&j, engine, "http", BODIES[i].path);
            places_init(&p, BYTES, n);
            j.request.into = NULL;
            j.request.into_v = p.v;
            j.request.n_into = n;
            CHECK(jobs_run(&j, 1, 10000));
            CHECK_INT(j.reply.failure, BODIES[i].failure);
            CHECK(j.reply.bytes <= BYTES);
            CHECK(guards_hold(&p));
            if (BODIES[i].right)
                CHECK(places_are(&p, bad_server.data + FIRST, j.reply.bytes));
            places_free(&p);
            job_free(&j);
        }
}

/* Room is what the places have, not what was said. */
TEST(less_room_than_said)
{
    Job j;
    Places p;
    job_init(&j, engine, "http", "/behave/length_absent/1/data");
    places_init(&p, BYTES - 1, 3);
    j.request.into = NULL;
    j.request.into_v = p.v;
    j.request.n_into = 3;
    CHECK(jobs_run(&j, 1, 10000));
    CHECK_INT(j.reply.failure, PEN_HTTP_TOO_LONG);
    CHECK(guards_hold(&p));
    places_free(&p);
    job_free(&j);
}

static PenRemote *open_at(const char *behaviour)
{
    char address[256];
    PenRemote *r = NULL;
    snprintf(address, sizeof address, "http://127.0.0.1:%d%s%s%s", help_port("http"),
             *behaviour ? "/behave/" : "", behaviour, *behaviour ? "/2-3" : "");
    return pen__remote_open(address, NULL, &r, NULL) == PEN_OK ? r : NULL;
}

/* A checksum of the bytes that have arrived, computed by the thread that receives them. */
typedef struct Running {
    const Places *places;
    uint64_t seen;
    uint32_t sum;
    unsigned starts;
    bool shrank;
} Running;

static void run_on(void *ctx, uint64_t bytes)
{
    static uint8_t flat[FILE_BYTES];
    Running *c = ctx;
    if (!bytes) {
        c->starts++;
        c->seen = c->sum = 0;
        return;
    }
    c->shrank = c->shrank || bytes <= c->seen;
    if (c->shrank)
        return;
    pen__iov_get(c->places->v, c->places->n, flat, (size_t)bytes);
    c->sum = pen__crc32c(c->sum, flat + c->seen, (size_t)(bytes - c->seen));
    c->seen = bytes;
}

/* Attempts that fail leave some bytes in the places; the one that succeeds leaves its own. A
 * checksum over what arrives begins again with every attempt. */
TEST(reads_that_are_tried_again)
{
    static const char *const names[] = {"body_rst",    "body_fin",   "range_other",
                                        "range_short", "status_503", "body_endless"};
    for (size_t i = 0; i < PEN_LEN(names); i++) {
        Places p;
        PenSource *s = NULL;
        PenError err = {0};
        PenRemote *r = open_at(names[i]); /* all but the first, which is the tail's */
        CHECK(r);
        CHECK_INT(pen__source_open_remote(r, "data", 0, &s, &err), PEN_OK);
        places_init(&p, BYTES, PLACES);
        Running running = {.places = &p};
        const PenArrival arrival = {.call = run_on, .ctx = &running};
        int e = pen__source_read_v(s, p.v, p.n, FIRST, &arrival, &err);
        if (e < 0)
            printf("%s: %s\n", names[i], err.message);
        CHECK_INT(e, PEN_OK);
        CHECK_INT(running.seen, BYTES);
        CHECK_INT(running.sum, pen__crc32c(0, bad_server.data + FIRST, BYTES));
        CHECK(running.starts >= 2 && !running.shrank);
        CHECK(places_are(&p, bad_server.data + FIRST, BYTES));
        places_free(&p);
        pen__source_close(&s);
        pen__remote_close(&r);
    }
}

TEST(reads_of_the_end)
{
    Places p;
    PenSource *s = NULL;
    PenError err = {0};
    PenRemote *r = open_at("");
    CHECK(r);
    CHECK_INT(pen__source_open_remote(r, "data", 0, &s, &err), PEN_OK);
    /* Inside of what opening has brought, across its beginning, and beyond the end. */
    const uint64_t from[] = {FILE_BYTES - 5000, FILE_BYTES - 70000};
    for (size_t i = 0; i < PEN_LEN(from); i++) {
        places_init(&p, FILE_BYTES - from[i], 7);
        CHECK_INT(pen__source_read_v(s, p.v, p.n, from[i], NULL, &err), PEN_OK);
        CHECK(places_are(&p, bad_server.data + from[i], p.bytes));
        CHECK_INT(pen__source_read_v(s, p.v, p.n, from[i] + 1, NULL, &err), PEN_E_CORRUPT);
        places_free(&p);
    }
    pen__source_close(&s);
    pen__remote_close(&r);
}

/* An object store's error that says 200: its text is seen however it is cut. */
TEST(an_error_that_says_200)
{
    char endpoint[64], nothing[64];
    PenRemoteSettings s;
    PenRemote *r = NULL;
    PenError err = {0};
    PenObject object = {.bytes = FILE_BYTES};
    static uint8_t into[4096];
    struct iovec v[PLACES];
    engine_ask(engine, "POST", "/_behave?name=status_200_error&path=/bucket", nothing,
               sizeof nothing);
    snprintf(endpoint, sizeof endpoint, "http://127.0.0.1:%d", help_port("http"));
    pen_remote_settings_init(&s);
    s.endpoint = endpoint;
    s.region = "us-east-1";
    s.no_sign = 1;
    s.path_style = 1;
    CHECK_INT(pen__remote_open("s3://bucket/pack", &s, &r, &err), PEN_OK);
    for (size_t i = 0; i < PLACES; i++) /* so short that tags lie across them */
        v[i] = (struct iovec){into + i * 5, i < PLACES - 1 ? 5 : sizeof into - i * 5};
    int e = pen__remote_read_v(r, "shard", &object, v, PLACES, 0, NULL, &err);
    CHECK_INT(e, PEN_E_IO);
    CHECK(strstr(err.message, "found an error document with status 200"));
    pen__remote_close(&r);
}

/* Nobody waits for so many pages, so the limit is checked by itself. */
TEST(pages_of_a_list_are_limited)
{
    PenRemoteSettings s;
    PenRemote *r = NULL;
    PenListing *l = NULL;
    PenError err = {0};
    pen_remote_settings_init(&s);
    s.no_sign = 1;
    CHECK_INT(pen__remote_open("s3://bucket/set", &s, &r, &err), PEN_OK);
    CHECK_INT(pen__listing_open(r, NULL, &l, &err), PEN_OK);
    CHECK_INT(pen__listing_count(l, 1000000, &err), PEN_OK);
    CHECK_INT(pen__listing_count(l, 1000001, &err), PEN_E_LIMIT);
    CHECK(strstr(err.message, "s3://bucket/set: expected a list of at most 1,000,000 pages"));
    pen__listing_close(&l);
    pen__remote_close(&r);
}

int main(int argc, char **argv)
{
    TEST_START(argc, argv);
    rng = pen__rng_init(5, 0);
    int r = engine_begin(&engine);
    if (r)
        return r;
    RUN(put_and_get);
    RUN(bodies_into_places);
    RUN(less_room_than_said);
    RUN(reads_that_are_tried_again);
    RUN(reads_of_the_end);
    RUN(an_error_that_says_200);
    RUN(pages_of_a_list_are_limited);
    pen__engine_free(&engine);
    bad_server_stop();
    return TEST_END();
}
