/* SPDX-License-Identifier: Apache-2.0 */
/* A pack in memory that processes share: who brings it there, how they find it, what is left. */
#include "io/shared.h"
#include "preload_help.h"

/* The memory of a pack, as docs/explanation/adr/0013-a-pack-in-shared-memory.md and
 * pack/preload/preload.h say that it lies.
 */
static uint64_t shared_head(const PenPack *pack, uint8_t head[PEN_SHARED_HEAD_BYTES])
{
    const PenManifest *m = pen__pack_manifest(pack);
    uint64_t bytes = 4096 + 16 * m->n_shards;
    for (uint64_t i = 0; i < m->n_shards; i++)
        bytes += m->shards[i].n_blocks + 3;
    for (uint64_t i = 0; i < m->n_shards; i++)
        bytes = pen__padded(bytes, 4096) + m->shards[i].file_bytes;
    bytes = pen__padded(bytes, 4096);
    memset(head, 0, PEN_SHARED_HEAD_BYTES);
    memcpy(head, "PENSHARE", 8);
    head[8] = 1;
    memcpy(head + 16, m->id, 16);
    pen__store64(head + 32, bytes);
    return bytes;
}

static int open_shared(const PenPack *pack, PenShared **ret)
{
    uint8_t head[PEN_SHARED_HEAD_BYTES];
    uint64_t bytes = shared_head(pack, head);
    PenSharedKey key = {pen_pack_info(pack)->id, head, bytes, "test"};
    return pen__shared_open(&key, ret, NULL);
}

/* ---- one process, several handles --------------------------------------------------------------
 */

/* Not even we can write to it any more. */
TEST(sealed_when_it_is_there)
{
    static uint8_t garbage[100000];
    PenError err = {0};
    PenShared *shared = NULL;
    PenPack *pack = open_pack("two");
    memset(garbage, 7, sizeof garbage);
    CHECK_INT(pen_pack_preload(pack, NULL, NULL, &err), PEN_OK);
    CHECK_INT(open_shared(pack, &shared), 1);
    CHECK_INT(pen__shared_is_sealed(shared), 1);
    CHECK_INT(pen__shared_write(shared, garbage, sizeof garbage, 4096, &err), PEN_OK);
    CHECK_INT(first_wrong(pack, SMALL_BYTES), -1);
    pen__shared_close(&shared);
    pen_pack_close(&pack);
}

TEST(two_handles_share_and_leave_nothing)
{
    PenError err = {0};
    PenPreloadResult result = {0};
    PenPack *one = open_pack("two"), *two = open_pack("two"), *three = open_pack("two");
    CHECK_INT(pen_pack_preload(one, NULL, &result, &err), PEN_OK);
    CHECK_INT(pen_pack_preload(two, NULL, &result, &err), PEN_OK);
    CHECK_INT(result.was_there, 1);
    CHECK_INT(result.read_bytes, 0);
    pen_pack_close(&one); /* the one that made it */
    CHECK_INT(first_wrong(two, SMALL_BYTES), -1);
    CHECK_INT(pen_pack_preload(three, NULL, &result, &err), PEN_OK);
    CHECK_INT(result.was_there, 1);
    pen_pack_close(&three);
    CHECK_INT(names_of(two), 1);
    pen_pack_close(&two);
    PenPack *four = open_pack("two");
    CHECK_INT(names_of(four), 0);
    CHECK_INT(pen_pack_preload(four, NULL, &result, &err), PEN_OK);
    CHECK_INT(result.was_there, 0);
    pen_pack_close(&four);
}

/* ---- several processes ----------------------------------------------------------------------- */

typedef struct Told { /* by children, in memory that they share with us */
    atomic_int ready, go, done, wrong;
    atomic_uint_fast64_t read_bytes;
} Told;

static Told *told_new(void)
{
    return mmap(NULL, sizeof(Told), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
}

static void wait_until(atomic_int *count, int n)
{
    for (int i = 0; i < 20000 && atomic_load(count) < n; i++)
        (void)poll(NULL, 0, 1);
}

static int64_t slow_pread(int fd, void *buf, size_t bytes, uint64_t offset)
{
    if (bytes > 20000)
        (void)poll(NULL, 0, 20);
    return pen__sys_real.pread(fd, buf, bytes, offset);
}

/* Preloads together with the others, and stays until all have. */
static int together(Told *t, const char *name, size_t bytes, int n)
{
    static PenSys sys;
    sys = pen__sys_real;
    sys.pread = slow_pread; /* so that none is done before the others begin */
    pen__sys = &sys;
    PenPreloadResult result = {0};
    PenPack *pack = open_pack(name);
    atomic_fetch_add(&t->ready, 1);
    wait_until(&t->ready, n);
    int r = pen_pack_preload(pack, NULL, &result, NULL);
    atomic_fetch_add(&t->read_bytes, result.read_bytes);
    if (r < 0 || first_wrong(pack, bytes) != -1)
        atomic_fetch_add(&t->wrong, 1);
    atomic_fetch_add(&t->done, 1);
    wait_until(&t->done, n);
    pen_pack_close(&pack);
    return 0;
}

TEST(four_processes_read_it_once)
{
    enum { CHILDREN = 4 };
    Told *t = told_new();
    pid_t children[CHILDREN];
    for (int i = 0; i < CHILDREN; i++) {
        children[i] = fork();
        if (children[i] == 0)
            _exit(together(t, "two", SMALL_BYTES, CHILDREN));
    }
    for (int i = 0; i < CHILDREN; i++)
        CHECK_INT(waitpid(children[i], NULL, 0), children[i]);
    PenPack *pack = open_pack("two");
    CHECK_INT(atomic_load(&t->done), CHILDREN);
    CHECK_INT(atomic_load(&t->wrong), 0);
    CHECK_INT(atomic_load(&t->read_bytes), shard_bytes(pack));
    CHECK_INT(names_of(pack), 0);
    pen_pack_close(&pack);
    munmap(t, sizeof *t);
}

static Told *filling; /* of the child that is to be killed */

/* Tells of every large write, and takes its time. */
static int64_t telling_pwritev(int fd, const struct iovec *iov, int n, uint64_t offset)
{
    if (iov->iov_len > 1 << 20) {
        atomic_fetch_add(&filling->ready, 1);
        (void)poll(NULL, 0, 20);
    }
    return pen__sys_real.pwritev(fd, iov, n, offset);
}

static pid_t start_filler(void)
{
    static PenSys sys;
    pid_t child = fork();
    if (child)
        return child;
    sys = pen__sys_real;
    sys.pwritev = telling_pwritev;
    pen__sys = &sys;
    PenPreloadSettings s;
    pen_preload_settings_init(&s);
    s.threads = 1;
    PenPack *pack = open_pack("large");
    _exit(pen_pack_preload(pack, &s, NULL, NULL) == PEN_OK ? 0 : 1);
}

/* Of one shard of 26 MB some parts are there when its filler dies. */
TEST(another_goes_on_where_a_killed_one_was)
{
    PenError err = {0};
    PenPreloadResult result = {0};
    PenPack *pack = open_pack("large"), *late = open_pack("large");
    filling = told_new();
    pid_t child = start_filler();
    wait_until(&filling->ready, 1);
    /* Memory that is to stay has to be open somewhere else than in the child. */
    PenShared *shared = NULL;
    CHECK_INT(open_shared(pack, &shared), 1);
    wait_until(&filling->ready, 3);
    CHECK_INT(kill(child, SIGKILL), 0);
    CHECK_INT(waitpid(child, NULL, 0), child);
    CHECK_INT(pen_pack_preload(pack, NULL, &result, &err), PEN_OK);
    CHECK_INT(result.was_there, 1);
    CHECK_INT(result.is_sealed, 1);
    CHECK(result.read_bytes > 0 && result.read_bytes < shard_bytes(pack));
    CHECK_INT(first_wrong(pack, LARGE_BYTES), -1);
    CHECK_INT(pen_pack_preload(late, NULL, &result, &err), PEN_OK);
    CHECK_INT(result.read_bytes, 0);
    pen__shared_close(&shared);
    pen_pack_close(&pack);
    pen_pack_close(&late);
    munmap(filling, sizeof *filling);
}

static int turn_the_clock(void *ctx, uint64_t done, uint64_t total)
{
    (void)ctx, (void)done, (void)total;
    atomic_fetch_add(&turned_ns, 15000000000u);
    return 0;
}

/* A process that is at a shard and stands still: after a minute it is not waited for. */
TEST(a_stopped_one_is_not_waited_for)
{
    static PenSys sys;
    PenError err = {0};
    PenPreloadResult result = {0};
    PenPreloadSettings s;
    PenPack *pack = open_pack("large");
    filling = told_new();
    pid_t child = start_filler();
    wait_until(&filling->ready, 2);
    CHECK_INT(kill(child, SIGSTOP), 0);
    pen_preload_settings_init(&s);
    s.progress = turn_the_clock;
    sys = pen__sys_real;
    sys.now_ns = turned_now;
    pen__sys = &sys;
    int r = pen_pack_preload(pack, &s, &result, &err);
    pen__sys = &pen__sys_real;
    CHECK_INT(r, PEN_OK);
    CHECK_INT(result.was_there, 1);
    CHECK_INT(result.is_sealed, 1);
    CHECK_INT(first_wrong(pack, LARGE_BYTES), -1);
    int status = -1;
    CHECK_INT(kill(child, SIGCONT), 0); /* finds everything done, and its own writes refused */
    CHECK_INT(waitpid(child, &status, 0), child);
    CHECK_INT(status, 0);
    CHECK_INT(first_wrong(pack, LARGE_BYTES), -1);
    pen_pack_close(&pack);
    munmap(filling, sizeof *filling);
}

/* ---- names ----------------------------------------------------------------------------------- */

static int take_name(const PenPack *pack, const char *place)
{
    char name[108];
    int n = snprintf(name, sizeof name, "penstock/%u/", (unsigned)geteuid());
    for (int i = 0; i < 16; i++)
        n += snprintf(name + n, sizeof name - (size_t)n, "%02x", pen_pack_info(pack)->id[i]);
    snprintf(name + n, sizeof name - (size_t)n, "%s", place);
    return pen__sys_real.name_take(name);
}

/* Anybody may hold such names: what they point at is looked at before it is believed. */
TEST(names_that_lie)
{
    PenError err = {0};
    PenPreloadResult result = {0};
    PenPack *pack = open_pack("two");
    char place[64];
    int pipes[2], fds[16], n = 0;
    uint8_t head[PEN_SHARED_HEAD_BYTES];
    uint64_t bytes = shared_head(pack, head);
    CHECK_INT(pipe(pipes), 0);
    help_text("text", "not memory");
    int small = pen__sys_real.memory_make("x", 4096), file = open(at("text"), O_RDWR);
    int unsealed = memfd_create("x", 0), empty = pen__sys_real.memory_make("x", bytes);
    CHECK(small >= 0 && file >= 0 && empty >= 0 && unsealed >= 0);
    CHECK(ftruncate(unsealed, (off_t)bytes) == 0 && pwrite(unsealed, head, sizeof head, 0) > 0);
    const int lies[] = {pipes[0], pipes[1], small, file, unsealed, empty, 9999};
    for (size_t i = 0; i < PEN_LEN(lies); i++) {
        snprintf(place, sizeof place, "/%d.%d", (int)getpid(), lies[i]);
        fds[n++] = take_name(pack, place);
    }
    static const char *const odd[] = {"/1.0",           "/",    "/x",  "/5", "/-3.4",
                                      "/99999999999.1", "/7.y", "/0.0"};
    for (size_t i = 0; i < PEN_LEN(odd); i++)
        fds[n++] = take_name(pack, odd[i]);
    for (int i = 0; i < n; i++)
        CHECK(fds[i] >= 0);
    CHECK_INT(pen_pack_preload(pack, NULL, &result, &err), PEN_OK);
    CHECK_INT(result.was_there, 0);
    CHECK_INT(first_wrong(pack, SMALL_BYTES), -1);
    for (int i = 0; i < n; i++)
        close(fds[i]);
    close(small), close(file), close(unsealed), close(empty), close(pipes[0]), close(pipes[1]);
    pen_pack_close(&pack);
}

static int turning_poll(struct pollfd *fds, unsigned n, int timeout_ms)
{
    (void)fds, (void)n, (void)timeout_ms;
    atomic_fetch_add(&turned_ns, 1000000000u);
    return 0;
}

/* Who holds the name for looking and does not give it back is not waited for. */
TEST(a_name_that_is_not_given_back)
{
    static PenSys sys;
    PenError err = {0};
    PenPack *pack = open_pack("two");
    int fd = take_name(pack, "");
    CHECK(fd >= 0);
    sys = pen__sys_real;
    sys.now_ns = turned_now;
    sys.poll = turning_poll;
    atomic_store(&turned_ns, 0);
    pen__sys = &sys;
    int r = pen_pack_preload(pack, NULL, NULL, &err);
    pen__sys = &pen__sys_real;
    close(fd);
    CHECK_INT(r, PEN_OK);
    CHECK(atomic_load(&turned_ns) >= 10000000000u);
    pen_pack_close(&pack);
}

int main(int argc, char **argv)
{
    TEST_START(argc, argv);
    help_begin();
    make_pack("two", SMALL, SMALL_BYTES, 50000);
    make_pack("large", LARGE, LARGE_BYTES, 1u << 30);
    RUN(sealed_when_it_is_there);
    RUN(two_handles_share_and_leave_nothing);
    RUN(four_processes_read_it_once);
    RUN(another_goes_on_where_a_killed_one_was);
    RUN(a_stopped_one_is_not_waited_for);
    RUN(names_that_lie);
    RUN(a_name_that_is_not_given_back);
    help_end();
    return TEST_END();
}
