/* SPDX-License-Identifier: Apache-2.0 */
/* Objects that a pack refers to: which places share connections, more of them than are kept, and
 * objects that are others by now. */
#include <stdlib.h>

#include "engine_help.h"
#include "ingest_help.h"
#include "object_server.h"

#include "io/objects.h"
#include "io/outside.h"
#include "io/places.h"
#include "pack/mapped/gather.h"

enum { OBJECTS = 1100, OBJECT_BYTES = 100, ALL_BYTES = OBJECTS * OBJECT_BYTES };

static uint8_t all[ALL_BYTES]; /* what the objects have, one after another */
static int port, at_start;     /* at_start: the number of threads */

/* What is at /x/n, x is any name: object n. */
static bool find_number(void *ctx, const char *path, ServedObject *ret)
{
    (void)ctx;
    unsigned long n = strtoul(strrchr(path, '/') + 1, NULL, 10);
    ret->data = all + n * OBJECT_BYTES;
    ret->bytes = OBJECT_BYTES;
    return n < OBJECTS;
}

static void begin(ServeFn find, void *ctx)
{
    for (size_t i = 0; i < sizeof all; i++)
        all[i] = (uint8_t)(i * 7919 >> 5);
    port = object_server_start(find, ctx);
}

static PenOutsideFile file_at(char *path, size_t cap, uint32_t number, const char *root)
{
    int n = snprintf(path, cap, "%s/%u", root, number);
    return (PenOutsideFile){1, number, (uint32_t)n, path, OBJECT_BYTES};
}

/* ---- what is shared -------------------------------------------------------------------------- */

/* A thread is counted for a moment after it was joined. */
static bool threads_end(int base)
{
    for (int i = 0; i < 2000 && count_threads() > base; i++)
        nap(10);
    return count_threads() == base;
}

/* The threads that these roots take: without any there are `base`. -1: something fails. */
static int threads_of(PenObjects *o, int base, const char *const *roots, uint32_t n,
                      const PenRemoteSettings *remote)
{
    PenFileSettings s;
    pen_file_settings_init(&s);
    if (pen__objects_set(o, &s, NULL) < 0 || !threads_end(base))
        return -1;
    s.roots = roots;
    s.n_roots = n;
    s.remote = remote;
    return pen__objects_set(o, &s, NULL) < 0 ? -1 : count_threads() - base;
}

TEST(roots_at_one_server_share_connections)
{
    PenObjects *o = NULL;
    PenError err = {0};
    PenPolicyCounts counts = {0};
    char roots[4][64], path[100];
    uint8_t found[OBJECT_BYTES];
    struct iovec v = {found, sizeof found};
    CHECK(threads_end(at_start)); /* those of the tests before */
    begin(find_number, NULL);
    for (int i = 0; i < 4; i++) /* the last one is at a port of its own, where nobody is */
        snprintf(roots[i], sizeof roots[i], "http://127.0.0.1:%d/r%d", i < 3 ? port : 1, i);
    const char *const texts[] = {roots[0], roots[1], roots[2], roots[3]};
    CHECK_INT(pen__objects_new("p.pen", "/dir", &o, &err), PEN_OK);
    int base = count_threads(), one = threads_of(o, base, texts, 1, NULL);
    CHECK(one > 0);
    CHECK_INT(threads_of(o, base, texts, 4, NULL), 2 * one);
    CHECK_INT(threads_of(o, base, texts, 3, NULL), one);
    for (uint32_t i = 0; i < 3; i++) {
        PenOutsideFile file = file_at(path, sizeof path, i, roots[i]);
        CHECK_INT(pen__objects_read(o, &file, &v, 1, 0, NULL, &err), PEN_OK);
        CHECK_MEM(found, all + i * OBJECT_BYTES, OBJECT_BYTES);
    }
    pen__objects_count(o, &counts); /* each request once */
    CHECK_INT(counts.ops, 3);
    pen__objects_close(&o);
    object_server_stop();
}

TEST(the_prefix_of_a_pack_shares_its_connections)
{
    PenRemote *pack = NULL;
    PenObjects *o = NULL;
    PenError err = {0};
    PenPolicyCounts counts = {0};
    PenRemoteSettings s;
    const char *const roots[] = {"s3://bucket/a", "s3://other/a"};
    pen_remote_settings_init(&s);
    s.key_id = "key";
    s.secret = "secret";
    CHECK(threads_end(at_start)); /* those of the tests before */
    CHECK_INT(pen__remote_open("s3://bucket/dir/p.pen", &s, &pack, &err), PEN_OK);
    CHECK_INT(pen__objects_new("s3://bucket/dir/p.pen", "s3://bucket/dir", &o, &err), PEN_OK);
    CHECK_INT(pen__objects_open_home(o, pack, &err), PEN_OK);
    int base = count_threads();
    CHECK_INT(base, at_start + 1);
    CHECK_INT(threads_of(o, base, roots, 1, &s), 0);
    CHECK_INT(threads_of(o, base, roots, 2, &s), 1);
    CHECK_INT(threads_of(o, base, roots, 1, NULL), 1); /* other credentials */
    CHECK_INT(threads_of(o, base, roots, 1, &s), 0);
    pen__objects_count(o, &counts);
    CHECK_INT(counts.limit, 0); /* these are counted with the pack's own */
    pen__remote_close(&pack);   /* what is shared ends with the last one */
    CHECK_INT(count_threads(), base);
    pen__objects_close(&o);
    CHECK(threads_end(at_start));
}

TEST(only_the_same_settings_are_shared)
{
    PenRemote *r = NULL, *beside = NULL;
    PenError err = {0};
    PenRemoteSettings s, other;
    pen_remote_settings_init(&s);
    s.key_id = "key";
    s.secret = "secret";
    CHECK_INT(pen__remote_open("s3://bucket/dir/p.pen", &s, &r, &err), PEN_OK);
    CHECK_INT(pen__remote_is_beside(r, "s3://bucket/a", &s), 1);
    CHECK_INT(pen__remote_is_beside(r, "s3://bucket", NULL), 1);
    CHECK_INT(pen__remote_is_beside(r, "s3://bucket-2/a", &s), 0);
    CHECK_INT(pen__remote_is_beside(r, "https://bucket/a", &s), 0);
    CHECK_INT(pen__remote_is_beside(r, "s3://", &s), 0);
    const char *const texts[] = {NULL, "", "secret2"};
    for (size_t i = 0; i < PEN_LEN(texts); i++) {
        other = s;
        other.secret = texts[i];
        CHECK_INT(pen__remote_is_beside(r, "s3://bucket/a", &other), 0);
    }
    other = s;
    other.token = other.secret; /* one text in the place of another */
    other.secret = NULL;
    CHECK_INT(pen__remote_is_beside(r, "s3://bucket/a", &other), 0);
    other = s;
    other.in_flight = 1;
    CHECK_INT(pen__remote_is_beside(r, "s3://bucket/a", &other), 0);
    CHECK_INT(pen__remote_open_beside(r, "s3://bucket/a", &beside, &err), PEN_OK);
    CHECK_INT(pen__remote_is_beside(beside, "s3://bucket/b", &s), 1);
    CHECK_STR(pen__remote_text(beside), "s3://bucket/a");
    pen__remote_close(&beside);
    CHECK_INT(pen__remote_open_beside(r, "s3://other/a", &beside, &err), PEN_E_INVALID);
    CHECK_INT(pen__remote_open_beside(r, "s3://", &beside, &err), PEN_E_INVALID);
    pen__remote_close(&r);
}

/* Objects with encoded names are places of their own, and there may be thousands. */
TEST(inputs_at_one_server_share_connections)
{
    PenPlaces *places = NULL;
    PenObject object = {0};
    char address[100];
    int threads[2];
    CHECK(threads_end(at_start)); /* those of the tests before */
    begin(find_number, NULL);
    int before = count_threads();
    CHECK_GOES(pen__places_new(NULL, &places, &err));
    for (int i = 0; i < 2; i++) {
        for (int k = 0; k < 20; k++) {
            snprintf(address, sizeof address, "http://127.0.0.1:%d/a%d/%%31%d", port, i, k % 10);
            CHECK_GOES(pen__places_object(places, address, &object, &err));
        }
        threads[i] = count_threads() - before;
    }
    CHECK_INT(object.bytes, OBJECT_BYTES);
    CHECK(threads[0] > 0);
    CHECK_INT(threads[1], threads[0]);
    pen__places_free(&places);
    object_server_stop();
}

/* ---- more objects than are kept -------------------------------------------------------------- */

static const uint8_t id[PEN_ID_BYTES] = "0123456789abcdef";

typedef struct Many {
    PenOutside *outside;
    PenMap map;
} Many;

static int read_object(void *ctx, uint32_t number, const struct iovec *v, int n, uint64_t offset,
                       const PenArrival *arrival, PenError *reterr)
{
    const Many *m = ctx;
    PenMappedFile f = pen__map_file(&m->map, number);
    PenOutsideFile file = {1, number, f.path_bytes, f.path, f.bytes};
    return pen__outside_read(m->outside, &file, v, n, offset, arrival, reterr);
}

/* The map of a shard whose payloads are all these objects. */
static void make_map(Many *m, const char *root, PenBuf *out)
{
    PenMapBuild b = {0};
    PenSource *source = NULL;
    CHECK_INT(pen__buf_reserve(out, 64), PEN_OK);
    out->bytes = 64;
    memset(out->data, 0, 64);
    for (uint32_t i = 0; i < OBJECTS; i++) {
        char path[100];
        uint32_t number = 0;
        PenOutsideFile f = file_at(path, sizeof path, i, root);
        PenMappedFile file = {.bytes = f.bytes, .path = path, .path_bytes = f.path_bytes};
        CHECK_INT(pen__map_add_file(&b, &file, &number, NULL), PEN_OK);
        CHECK_INT(pen__map_add_extent(&b, number, 0, 64 + i * OBJECT_BYTES, OBJECT_BYTES), PEN_OK);
    }
    CHECK_INT(pen__map_write(&b, id, 64 + ALL_BYTES, out), PEN_OK);
    pen__map_build_free(&b);
    CHECK_INT(pen__source_open_memory("shard", out->data, out->bytes, &source, NULL), PEN_OK);
    CHECK_INT(pen__map_read(source, id, &m->map, NULL), PEN_OK);
    pen__source_close(&source);
}

/* By 16 threads. More objects are in use than have a cell, and in the second round the cells have
 * others than those that are needed. */
TEST(more_objects_in_a_read_than_are_kept)
{
    static uint8_t found[ALL_BYTES];
    struct iovec v = {found, sizeof found};
    Many m = {0};
    PenBuf shard = {0};
    PenError err = {0};
    PenFileSettings s;
    char root[64];
    const char *roots = root;
    help_begin();
    help_text("p.pen/manifest", "");
    begin(find_number, NULL);
    snprintf(root, sizeof root, "http://127.0.0.1:%d/in", port);
    pen_file_settings_init(&s);
    s.roots = &roots;
    s.n_roots = 1;
    CHECK_INT(pen__outside_new(at("p.pen"), NULL, &m.outside, &err), PEN_OK);
    CHECK_INT(pen__outside_set(m.outside, &s, &err), PEN_OK);
    make_map(&m, root, &shard);
    CHECK_OK_SO_FAR();
    PenSource *file = NULL;
    CHECK_INT(pen__source_open_memory("shard", shard.data, shard.bytes, &file, &err), PEN_OK);
    PenGatherFrom from = {.map = &m.map,
                          .file = file,
                          .outside = m.outside,
                          .read = read_object,
                          .ctx = &m,
                          .name = "shard"};
    for (int round = 0; round < 2; round++) {
        memset(found, 0, sizeof found);
        CHECK_INT(pen__gather(&from, &v, 1, 64, &err), PEN_OK);
        CHECK_MEM(found, all, sizeof found);
    }
    CHECK(object_server_requests() >= 2 * OBJECTS);
    pen__outside_forget(m.outside, 1);
    pen__source_close(&file);
    pen__map_free(&m.map);
    pen__outside_close(&m.outside);
    pen__buf_free(&shard);
    object_server_stop();
    help_end();
}

/* ---- objects that are others by now ---------------------------------------------------------- */

typedef struct Served {
    ServedObject object;
    pthread_mutex_t mutex;
} Served;

static bool find_served(void *ctx, const char *path, ServedObject *ret)
{
    Served *s = ctx;
    (void)path;
    pthread_mutex_lock(&s->mutex);
    *ret = s->object;
    pthread_mutex_unlock(&s->mutex);
    return true;
}

static void put(Served *s, size_t bytes, const char *etag, int status)
{
    pthread_mutex_lock(&s->mutex);
    s->object = (ServedObject){all, bytes, etag, status};
    pthread_mutex_unlock(&s->mutex);
}

static void open_root(const char *root, const PenRemoteSettings *remote, PenObjects **ret)
{
    PenFileSettings s;
    pen_file_settings_init(&s);
    s.roots = &root;
    s.n_roots = 1;
    s.remote = remote;
    CHECK_INT(pen__objects_new("p.pen", "/dir", ret, NULL), PEN_OK);
    CHECK_INT(pen__objects_set(*ret, &s, NULL), PEN_OK);
}

/* Each response tells the size, so an object is not read as if it were the old one, and what it was
 * is not requested again and again. */
TEST(an_object_becomes_shorter)
{
    static const char *const etags[] = {"W/\"weak\"", "", "\"strong\""};
    uint8_t found[OBJECT_BYTES];
    char root[64], path[100];
    PenError err = {0};
    for (size_t i = 0; i < PEN_LEN(etags); i++) {
        Served served = {.mutex = PTHREAD_MUTEX_INITIALIZER};
        PenObjects *o = NULL;
        begin(find_served, &served);
        snprintf(root, sizeof root, "http://127.0.0.1:%d/in", port);
        open_root(root, NULL, &o);
        CHECK_OK_SO_FAR();
        PenOutsideFile file = file_at(path, sizeof path, 0, root);
        struct iovec v = {found, 40};
        put(&served, OBJECT_BYTES, etags[i], 0);
        CHECK_INT(pen__objects_read(o, &file, &v, 1, 50, NULL, &err), PEN_OK);
        CHECK_MEM(found, all + 50, 40);
        put(&served, 70, i < 2 ? etags[i] : "\"other\"", 0);
        CHECK_INT(pen__objects_read(o, &file, &v, 1, 50, NULL, &err), PEN_E_CORRUPT);
        CHECK(strstr(err.message, "/in/0: ") && strstr(err.message, "penstock index"));
        if (i < 2)
            CHECK(strstr(err.message, "expected at least 90 bytes, found an object of 70"));
        CHECK_INT(pen__objects_failure(o, &file, &err), PEN_E_CORRUPT);
        put(&served, 30, i < 2 ? etags[i] : "\"other\"", 0); /* 416, or 412 */
        CHECK_INT(pen__objects_read(o, &file, &v, 1, 50, NULL, &err), PEN_E_CORRUPT);
        CHECK(strstr(err.message, "/in/0: ") && strstr(err.message, "penstock index"));
        if (i < 2)
            CHECK(strstr(err.message, "416"));
        put(&served, 0, i < 2 ? etags[i] : "\"other\"", 0);
        CHECK_INT(pen__objects_read(o, &file, &v, 1, 0, NULL, &err), PEN_E_CORRUPT);
        PenPolicyCounts counts = {0};
        pen__objects_count(o, &counts);
        CHECK_INT(counts.ops, 4);
        CHECK_INT(counts.retries, 0);
        pen__objects_close(&o);
        object_server_stop();
    }
}

/* To those who may not list the bucket S3 says 403 of what does not exist. */
TEST(an_object_is_deleted_and_the_bucket_not_listed)
{
    static const char denied[] = "<?xml version=\"1.0\"?><Error><Code>AccessDenied</Code></Error>";
    Served served = {.mutex = PTHREAD_MUTEX_INITIALIZER,
                     .object = {denied, sizeof denied - 1, "", 403}};
    uint8_t found[OBJECT_BYTES];
    struct iovec v = {found, sizeof found};
    char endpoint[64], path[100];
    PenObjects *o = NULL;
    PenError err = {0};
    PenPolicyCounts counts = {0};
    PenRemoteSettings s;
    begin(find_served, &served);
    snprintf(endpoint, sizeof endpoint, "http://127.0.0.1:%d", port);
    pen_remote_settings_init(&s);
    s.endpoint = endpoint;
    s.region = "us-east-1";
    s.no_sign = 1;
    open_root("s3://bucket/in", &s, &o);
    CHECK_OK_SO_FAR();
    PenOutsideFile file = file_at(path, sizeof path, 7, "s3://bucket/in");
    CHECK_INT(pen__objects_read(o, &file, &v, 1, 0, NULL, &err), PEN_E_ACCESS);
    CHECK(strstr(err.message, "s3://bucket/in/7: "));
    CHECK(strstr(err.message, "does not exist or reading it is not allowed"));
    CHECK_INT(pen__objects_failure(o, &file, &err), PEN_OK); /* it may exist */
    pen__objects_count(o, &counts);
    CHECK_INT(counts.retries, 0);
    pen__objects_close(&o);
    object_server_stop();
}

static void *wait_for_end(void *arg)
{
    char none;
    return read(*(int *)arg, &none, 1) == 0 ? NULL : arg;
}

int main(int argc, char **argv)
{
    int ends[2];
    pthread_t thread;
    TEST_START(argc, argv);
    /* With the first thread, sanitizers start one of their own, which is to be counted, too. */
    if (pipe(ends) < 0 || pthread_create(&thread, NULL, wait_for_end, &ends[0]) != 0)
        return 1;
    at_start = count_threads();
    RUN(roots_at_one_server_share_connections);
    RUN(the_prefix_of_a_pack_shares_its_connections);
    RUN(only_the_same_settings_are_shared);
    RUN(inputs_at_one_server_share_connections);
    RUN(more_objects_in_a_read_than_are_kept);
    RUN(an_object_becomes_shorter);
    RUN(an_object_is_deleted_and_the_bucket_not_listed);
    close(ends[1]);
    pthread_join(thread, NULL);
    close(ends[0]);
    return TEST_END();
}
