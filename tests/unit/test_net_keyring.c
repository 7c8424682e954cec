/* SPDX-License-Identifier: Apache-2.0 */
/* Credentials over time: fetched, renewed, refused, expired. The clock is turned. */
#include "secret_help.h"

#include "base/error.h"

typedef struct Giver {
    atomic_int n;           /* how often it was asked */
    atomic_uint lifetime_s; /* 0: for ever */
    atomic_bool fails, hangs;
    atomic_int ms; /* that it takes */
} Giver;

static int give(void *ctx, PenAwsCredentials **ret, uint64_t deadline_ns, PenError *reterr)
{
    Giver *g = ctx;
    char id[32];
    int n = atomic_fetch_add(&g->n, 1) + 1;
    while (atomic_load(&g->hangs))
        sleep_ms(1);
    sleep_ms(atomic_load(&g->ms));
    if (atomic_load(&g->fails))
        return pen__fail(reterr, PEN_E_ACCESS, "test", "failure %d", n);
    if (deadline_ns <= pen__sys->now_ns())
        return pen__fail(reterr, PEN_E_TIMEOUT, "test", "no time");
    snprintf(id, sizeof id, "CANARY%d", n);
    unsigned lifetime = atomic_load(&g->lifetime_s);
    return pen__credentials_new(
        id, "canary", NULL, lifetime ? pen__sys->unix_ns() / SECOND + lifetime : 0, ret, reterr);
}

static void turn(uint64_t s)
{
    atomic_fetch_add(&world.ahead_ns, s * SECOND);
}

/* The number of the credentials there are now, -status when there are none. */
static int now(PenKeyring *k, PenError *err)
{
    PenAwsCredentials *s = NULL;
    int r = pen__keyring_now(k, &s, err);
    if (r < 0)
        return r;
    r = (int)strtol(pen__credentials_key_id(s) + 6, NULL, 10);
    pen__credentials_put(&s);
    return r;
}

/* The same when no fetch is under way any more, for 30 s at most. */
static int settle(PenKeyring *k, int busy, PenError *err)
{
    int r = now(k, err);
    for (int i = 0; i < 30000 && r == busy; i++) {
        sleep_ms(1);
        r = now(k, err);
    }
    return r;
}

static void open_ring(Giver *g, PenKeyring **ret)
{
    PenSecretSettings s = {.call = give, .call_ctx = g};
    world_reset();
    CHECK_INT(pen__keyring_new(&s, NULL, ret, NULL), PEN_OK);
}

TEST(given)
{
    PenSecretSettings s = {.key_id = "CANARY7", .secret = "canary", .token = "canary"};
    PenKeyring *k = NULL;
    PenAwsCredentials *secret = NULL;
    PenError err;
    char source[64];
    world_reset();
    CHECK_INT(pen__keyring_new(&s, NULL, &k, &err), PEN_OK);
    CHECK_INT(now(k, &err), 7);
    pen__keyring_source(k, source, sizeof source);
    CHECK_STR(source, "arguments");
    turn(1000000);
    CHECK_INT(pen__keyring_now(k, &secret, &err), PEN_OK);
    pen__keyring_refuse(k, secret);
    CHECK_INT(now(k, &err), PEN_E_ACCESS);
    pen__keyring_free(&k);
    pen__keyring_free(&k);
    CHECK_STR(pen__credentials_token(secret), "canary"); /* holds on */
    pen__credentials_put(&secret);
    s.secret = NULL;
    CHECK_INT(pen__keyring_new(&s, NULL, &k, &err), PEN_E_INVALID);
    CHECK(k == NULL);
    CHECK_INT(world.pages, 0);
    CHECK_INT(world.dirty, 0);
}

static void count_free(void *ctx)
{
    ++*(int *)ctx;
}

/* What a callback stands on is let go once, whatever comes of it. */
TEST(callback_is_let_go)
{
    PenError err;
    for (int i = 0; i < 4; i++) {
        int freed = 0;
        PenKeyring *k = NULL;
        PenSecretSettings s = {.call = give, .call_ctx = &freed, .call_free = count_free};
        world_reset();
        s.key_id = i == 1 ? "CANARY1" : NULL;
        atomic_store(&world.alloc_fails_at, i > 1 ? i - 1 : 0);
        int r = pen__keyring_new(&s, NULL, &k, &err);
        atomic_store(&world.alloc_fails_at, 0);
        CHECK_INT(r, i == 0 ? PEN_OK : i == 1 ? PEN_E_INVALID : PEN_E_NO_MEMORY);
        CHECK_INT(freed, r < 0);
        pen__keyring_free(&k);
        CHECK_INT(freed, 1);
    }
}

TEST(first_fetch)
{
    Giver g = {.hangs = true};
    PenKeyring *k = NULL;
    PenError err;
    char source[64];
    open_ring(&g, &k);
    CHECK_OK_SO_FAR();
    CHECK_INT(g.n, 0); /* nothing before it is asked for */
    uint64_t start = pen__sys_real.now_ns();
    for (int i = 0; i < 100; i++)
        CHECK_INT(now(k, &err), PEN_E_BUSY);
    CHECK(pen__sys_real.now_ns() - start < 20 * SECOND); /* never waits, or it would for ever */
    atomic_store(&g.hangs, false);
    CHECK_INT(settle(k, PEN_E_BUSY, &err), 1);
    CHECK_INT(g.n, 1);
    pen__keyring_source(k, source, sizeof source);
    CHECK_STR(source, "callback");
    turn(10000000);
    CHECK_INT(now(k, &err), 1); /* for ever */
    pen__keyring_free(&k);
}

/* 5 to 10 minutes ahead of the end, and jittered. */
TEST(renewed_ahead)
{
    int renewed_at[20];
    for (int i = 0; i < 20; i++) {
        Giver g = {.lifetime_s = 3600};
        PenKeyring *k = NULL;
        PenError err;
        open_ring(&g, &k);
        CHECK_OK_SO_FAR();
        CHECK_INT(settle(k, PEN_E_BUSY, &err), 1);
        turn(2990);
        CHECK_INT(now(k, &err), 1);
        CHECK_INT(g.n, 1);
        int at = 2990;
        for (; at < 3310 && g.n == 1; at += 10) {
            turn(10);
            CHECK(now(k, &err) >= 1); /* the old ones, meanwhile */
            sleep_ms(1);
        }
        CHECK_INT(settle(k, 1, &err), 2);
        CHECK_INT(g.n, 2);
        renewed_at[i] = at;
        pen__keyring_free(&k);
    }
    int equal = 0;
    for (int i = 1; i < 20; i++)
        equal += renewed_at[i] == renewed_at[0];
    CHECK(equal < 15);
}

TEST(failed_renewal_keeps_what_is_valid)
{
    Giver g = {.lifetime_s = 3600};
    PenKeyring *k = NULL;
    PenError err;
    open_ring(&g, &k);
    CHECK_OK_SO_FAR();
    CHECK_INT(settle(k, PEN_E_BUSY, &err), 1);
    atomic_store(&g.fails, true);
    turn(3350);
    CHECK_INT(now(k, &err), 1);
    for (int i = 0; i < 20000 && g.n < 2; i++)
        sleep_ms(1);
    CHECK_INT(g.n, 2);
    CHECK_INT(now(k, &err), 1);
    turn(240);
    CHECK_INT(now(k, &err), 1); /* 10 s before the end */
    sleep_ms(5);
    turn(11);
    int r = settle(k, PEN_E_BUSY, &err);
    CHECK_INT(r, PEN_E_ACCESS);
    CHECK(strstr(err.message, "failure"));
    atomic_store(&g.fails, false);
    turn(61);
    CHECK_INT(now(k, &err), PEN_E_BUSY);
    r = settle(k, PEN_E_BUSY, &err);
    CHECK(r > 2);
    pen__keyring_free(&k);
}

/* 1 s, 2 s, 4 s, ... 60 s. */
TEST(back_off)
{
    Giver g = {.fails = true};
    PenKeyring *k = NULL;
    PenError err;
    open_ring(&g, &k);
    CHECK_OK_SO_FAR();
    unsigned wait = 1;
    for (int i = 1; i < 10; i++) {
        uint64_t start = pen__sys_real.now_ns();
        CHECK_INT(now(k, &err), PEN_E_BUSY);
        CHECK_INT(settle(k, PEN_E_BUSY, &err), PEN_E_ACCESS);
        CHECK_INT(g.n, i);
        char expected[32];
        snprintf(expected, sizeof expected, "failure %d", i);
        CHECK_STR(err.message, expected);
        atomic_fetch_add(&world.ahead_ns, wait * SECOND - SECOND / 2);
        if (pen__sys_real.now_ns() - start < SECOND / 4) { /* else the machine was slow */
            CHECK_INT(now(k, &err), PEN_E_ACCESS);         /* not yet */
            CHECK_INT(g.n, i);
        }
        atomic_fetch_add(&world.ahead_ns, SECOND / 2);
        wait = wait * 2 > 60 ? 60 : wait * 2;
    }
    pen__keyring_free(&k);
}

TEST(refused)
{
    Giver g = {.lifetime_s = 3600};
    PenKeyring *k = NULL;
    PenAwsCredentials *s = NULL;
    PenError err;
    open_ring(&g, &k);
    CHECK_OK_SO_FAR();
    CHECK_INT(settle(k, PEN_E_BUSY, &err), 1);
    CHECK_INT(pen__keyring_now(k, &s, &err), PEN_OK);
    turn(100);
    pen__keyring_refuse(k, s);
    pen__keyring_refuse(k, s);
    CHECK_INT(settle(k, PEN_E_BUSY, &err), 2);
    pen__keyring_refuse(k, s); /* the old ones: somebody was faster */
    CHECK_INT(now(k, &err), 2);
    pen__credentials_put(&s);
    /* A source that gives the same again and again is not asked more than once a second. */
    CHECK_INT(pen__keyring_now(k, &s, &err), PEN_OK);
    pen__keyring_refuse(k, s);
    pen__credentials_put(&s);
    CHECK_INT(now(k, &err), PEN_E_BUSY);
    sleep_ms(5);
    CHECK_INT(g.n, 2);
    turn(1);
    CHECK_INT(settle(k, PEN_E_BUSY, &err), 3);
    pen__keyring_free(&k);
    CHECK_INT(world.pages, 0);
}

TEST(short_lived)
{
    Giver g = {.lifetime_s = 30};
    PenKeyring *k = NULL;
    PenError err;
    open_ring(&g, &k);
    CHECK_OK_SO_FAR();
    CHECK_INT(settle(k, PEN_E_BUSY, &err), 1);
    turn(9);
    CHECK_INT(now(k, &err), 1);
    CHECK_INT(g.n, 1);
    turn(7);
    CHECK_INT(now(k, &err), 1);
    CHECK_INT(settle(k, 1, &err), 2);
    CHECK_INT(g.n, 2); /* and not over and over */
    pen__keyring_free(&k);
}

static int give_expired(void *ctx, PenAwsCredentials **ret, uint64_t deadline_ns, PenError *reterr)
{
    (void)ctx, (void)deadline_ns;
    return pen__credentials_new("CANARY1", "canary", NULL, pen__sys->unix_ns() / SECOND - 1, ret,
                                reterr);
}

static int give_nothing(void *ctx, PenAwsCredentials **ret, uint64_t deadline_ns, PenError *reterr)
{
    (void)ctx, (void)ret, (void)deadline_ns, (void)reterr;
    return PEN_OK;
}

TEST(useless)
{
    PenSecretCall *const calls[] = {give_expired, give_nothing};
    const int expected[] = {PEN_E_ACCESS, PEN_E_INVALID};
    for (int i = 0; i < 2; i++) {
        PenSecretSettings s = {.call = calls[i]};
        PenKeyring *k = NULL;
        PenError err;
        world_reset();
        CHECK_INT(pen__keyring_new(&s, NULL, &k, &err), PEN_OK);
        CHECK_INT(settle(k, PEN_E_BUSY, &err), expected[i]);
        CHECK(strstr(err.message, "callback: "));
        CHECK(!strstr(err.message, "anary"));
        pen__keyring_free(&k);
    }
    CHECK_INT(world.pages, 0);
}

/* A wall clock that jumps does not make valid ones invalid. */
TEST(wall_clock_jumps)
{
    Giver g = {.lifetime_s = 3600};
    PenKeyring *k = NULL;
    PenError err;
    open_ring(&g, &k);
    CHECK_OK_SO_FAR();
    CHECK_INT(settle(k, PEN_E_BUSY, &err), 1);
    atomic_store(&world.wall_ns, 86400 * SECOND);
    CHECK_INT(now(k, &err), 1);
    CHECK_INT(g.n, 1);
    atomic_store(&world.wall_ns, 0);
    pen__keyring_free(&k);
}

enum { N_THREADS = 8 };

typedef struct Asker {
    PenKeyring *k;
    int bad;
} Asker;

static void *ask_often(void *arg)
{
    Asker *a = arg;
    for (int i = 0; i < 300; i++) {
        PenError err;
        int r = now(a->k, &err);
        a->bad += r < 1 && r != PEN_E_BUSY;
        if (r == PEN_E_BUSY)
            sleep_ms(1);
    }
    a->bad += settle(a->k, PEN_E_BUSY, NULL) < 1;
    return NULL;
}

TEST(one_fetch_for_many_threads)
{
    Giver g = {.lifetime_s = 3600, .ms = 20};
    PenKeyring *k = NULL;
    PenError err;
    open_ring(&g, &k);
    CHECK_OK_SO_FAR();
    for (int round = 1; round <= 3; round++) {
        pthread_t t[N_THREADS];
        Asker a[N_THREADS];
        for (int i = 0; i < N_THREADS; i++) {
            a[i] = (Asker){.k = k};
            CHECK_INT(pen__thread_start(&t[i], ask_often, &a[i], NULL), PEN_OK);
        }
        for (int i = 0; i < N_THREADS; i++)
            pen__thread_join(t[i]);
        for (int i = 0; i < N_THREADS; i++)
            CHECK_INT(a[i].bad, 0);
        if (round > 1)
            CHECK_INT(settle(k, round - 1, &err), round);
        CHECK_INT(g.n, round);
        turn(3400); /* near their end */
    }
    pen__keyring_free(&k);
    CHECK_INT(world.pages, 0);
}

/* In the middle of a fetch, whatever it hangs in. */
TEST(free_does_not_hang)
{
    Giver g = {.hangs = true};
    PenKeyring *k = NULL;
    PenError err;
    open_ring(&g, &k);
    CHECK_OK_SO_FAR();
    CHECK_INT(now(k, &err), PEN_E_BUSY);
    uint64_t start = pen__sys_real.now_ns();
    pen__keyring_free(&k);
    CHECK(pen__sys_real.now_ns() - start < 20 * SECOND);
    atomic_store(&g.hangs, false); /* the thread is on its own, and clears up behind itself */
    for (int i = 0; i < 20000 && world.pages; i++)
        sleep_ms(1);
    sleep_ms(20);

    PenSecretSettings s = {.profile = "p"};
    world_reset();
    write_file(".aws/config", "[profile p]\ncredential_process = sleep 60\n");
    CHECK_INT(pen__keyring_new(&s, NULL, &k, &err), PEN_OK);
    CHECK_INT(now(k, &err), PEN_E_BUSY);
    sleep_ms(20);
    start = pen__sys_real.now_ns();
    pen__keyring_free(&k);
    CHECK(pen__sys_real.now_ns() - start < 20 * SECOND); /* is killed */
    CHECK_INT(world.pages, 0);

    Wire wire;
    PenSecretSettings none = {0};
    wire_open(&wire);
    atomic_store(&wire.mute, true);
    world_reset();
    CHECK_INT(pen__keyring_new(&none, &wire.base, &k, &err), PEN_OK);
    CHECK_INT(now(k, &err), PEN_E_BUSY);
    for (int i = 0; i < 20000 && !wire.n_started; i++)
        sleep_ms(1);
    CHECK_INT(wire.n_started, 1);
    start = pen__sys_real.now_ns();
    pen__keyring_free(&k);
    CHECK(pen__sys_real.now_ns() - start < 20 * SECOND);
    wire_close(&wire);
    CHECK_INT(wire.n_cancelled, 1);
    CHECK_INT(world.pages, 0);
}

/* A loop that is stuck: the fetch gives up at its deadline by itself. */
TEST(mute_transport)
{
    Wire wire;
    PenSecretSettings none = {0};
    PenKeyring *k = NULL;
    PenError err;
    wire_open(&wire);
    atomic_store(&wire.mute, true);
    world_reset();
    CHECK_INT(pen__keyring_new(&none, &wire.base, &k, &err), PEN_OK);
    CHECK_INT(now(k, &err), PEN_E_BUSY);
    for (int i = 0; i < 20000 && !wire.n_started; i++)
        sleep_ms(1);
    turn(121);
    CHECK_INT(settle(k, PEN_E_BUSY, &err), PEN_E_TIMEOUT);
    pen__keyring_free(&k);
    wire_close(&wire);
    CHECK_INT(wire.n_cancelled, 1);
    CHECK_INT(world.pages, 0);
}

/* The whole of it: a role from the server, renewed by a second signed request. */
TEST(role_over_time)
{
    Wire wire;
    PenSecretSettings s = {.profile = "r"};
    PenKeyring *k = NULL;
    PenAwsCredentials *first = NULL, *second = NULL;
    PenError err;
    char source[64];
    if (!server.port)
        SKIP("no python3, or no tests/net/metadata_server.py");
    wire_open(&wire);
    world_reset();
    script("{\"keys\": {\"AKIACANARY\": \"canary\"}}");
    write_file(".aws/config", "[profile r]\nrole_arn = arn:r\nsource_profile = k\n"
                              "[profile k]\naws_access_key_id = AKIACANARY\n"
                              "aws_secret_access_key = canary\n");
    CHECK_INT(pen__keyring_new(&s, &wire.base, &k, &err), PEN_OK);
    CHECK(settle(k, PEN_E_BUSY, &err) >= 0);
    CHECK_INT(pen__keyring_now(k, &first, &err), PEN_OK);
    pen__keyring_source(k, source, sizeof source);
    CHECK_STR(source, "role of profile r");
    turn(3400);
    script("{\"clock\": 3400}");
    for (int i = 0; i < 2000; i++) {
        CHECK_INT(pen__keyring_now(k, &second, &err), PEN_OK); /* nothing is noticed */
        if (second != first)
            break;
        pen__credentials_put(&second);
        sleep_ms(1);
    }
    CHECK(second && second != first);
    CHECK_INT(count(requests(), "AssumeRole"), 2);
    pen__credentials_put(&first);
    pen__credentials_put(&second);
    pen__keyring_free(&k);
    wire_close(&wire);
    CHECK_INT(world.pages, 0);
    CHECK_INT(world.dirty, 0);
}

int main(int argc, char **argv)
{
    TEST_START(argc, argv);
    signal(SIGPIPE, SIG_IGN);
    world_begin();
    RUN(given);
    RUN(callback_is_let_go);
    RUN(first_fetch);
    RUN(renewed_ahead);
    RUN(failed_renewal_keeps_what_is_valid);
    RUN(back_off);
    RUN(refused);
    RUN(short_lived);
    RUN(useless);
    RUN(wall_clock_jumps);
    RUN(one_fetch_for_many_threads);
    RUN(free_does_not_hang);
    RUN(mute_transport);
    RUN(role_over_time);
    world_end();
    return TEST_END();
}
