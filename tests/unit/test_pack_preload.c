/* SPDX-License-Identifier: Apache-2.0 */
/* A pack in memory: what is read from it, what is refused, and what is told. */
#include "lib/fault_sys.h"
#include "preload_help.h"

/* ---- one process ----------------------------------------------------------------------------- */

TEST(reads_the_same_and_nothing_from_the_files)
{
    PenError err = {0};
    PenPreloadResult result = {0};
    make_pack("gone", SMALL, SMALL_BYTES, 50000);
    PenPack *pack = open_pack("gone");
    CHECK(pack && pen_pack_info(pack)->n_shards > 2);
    CHECK_INT(first_wrong(pack, SMALL_BYTES), -1); /* shards and blocks are open */
    CHECK_INT(pen_pack_preload(pack, NULL, &result, &err), PEN_OK);
    CHECK_INT(result.read_bytes, shard_bytes(pack));
    CHECK(result.bytes >= shard_bytes(pack));
    CHECK_INT(result.was_there, 0);
    CHECK_INT(result.is_sealed, 1);
    CHECK_INT(pen__pack_is_remote(pack), 0);
    nftw(at("gone"), help_remove, 16, FTW_DEPTH | FTW_PHYS);
    CHECK_INT(first_wrong(pack, SMALL_BYTES), -1);
    uint64_t sample = 0;
    uint32_t key[2] = {7, (uint32_t)getpid()};
    CHECK_INT(pen_pack_find(pack, key, sizeof key, &sample, &err), PEN_OK);
    CHECK_INT(sample, 7);
    CHECK_INT(pen_pack_preload(pack, NULL, &result, &err), PEN_OK); /* again: nothing to do */
    CHECK_INT(result.read_bytes, 0);
    CHECK_INT(names_of(pack), 1);
    pen_pack_close(&pack);
}

TEST(what_is_refused)
{
    PenError err = {0};
    PenPreloadSettings s;
    PenPack *pack = open_pack("two");
    pen_preload_settings_init(&s);
    s.threads = -1;
    CHECK_INT(pen_pack_preload(pack, &s, NULL, &err), PEN_E_INVALID);
    CHECK_STR(err.message, "threads: expected a number, 0 or more, found -1");
    PenPack *cached = open_pack("two");
    PenCacheSettings cache;
    pen_cache_settings_init(&cache);
    cache.directory = at("cache");
    CHECK_INT(pen_pack_cache(cached, &cache, &err), PEN_OK);
    CHECK_INT(pen_pack_preload(cached, NULL, NULL, &err), PEN_E_INVALID);
    CHECK(strstr(err.message, "cannot preload a pack that has a cache"));
    pen_pack_close(&cached);
    cached = open_pack("two");
    CHECK_INT(pen_pack_preload(cached, NULL, NULL, &err), PEN_OK);
    CHECK_INT(pen_pack_cache(cached, &cache, &err), PEN_E_INVALID);
    pen_pack_close(&cached);
    PenPack *other = pen__pack_ref(pack);
    CHECK_INT(pen_pack_preload(pack, NULL, NULL, &err), PEN_E_INVALID);
    CHECK(strstr(err.message, "right after opening"));
    pen_pack_close(&other);
    pid_t child = fork();
    if (child == 0)
        _exit(pen_pack_preload(pack, NULL, NULL, NULL) == PEN_E_CLOSED ? 0 : 1);
    int status = -1;
    CHECK_INT(waitpid(child, &status, 0), child);
    CHECK_INT(status, 0);
    pen_pack_close(&pack);
}

/* ---- damage ---------------------------------------------------------------------------------- */

TEST(damage_is_told_as_of_a_disk)
{
    static uint8_t buf[MOST];
    PenError local = {0}, err = {0};
    PenPreloadResult result = {0};
    size_t n;
    PenPack *pack = open_pack("bad");
    CHECK_INT(pen_pack_read(pack, 0, 0, buf, sizeof buf, &n, &local), PEN_E_CORRUPT);
    CHECK_INT(pen_pack_preload(pack, NULL, &result, &err), PEN_OK);
    CHECK_INT(result.is_sealed, 0);
    CHECK_INT(pen_pack_read(pack, 0, 0, buf, sizeof buf, &n, &err), PEN_E_CORRUPT);
    CHECK_STR(err.message, local.message);
    CHECK_INT(err.sample, 0);
    CHECK_INT(first_wrong(pack, SMALL_BYTES), 0);
    CHECK_INT(pen_pack_read(pack, 1, 0, buf, sizeof buf, &n, &err), PEN_OK);
    pen_pack_close(&pack);
}

/* The same pack at another place, where it is whole. */
TEST(damage_is_mended_by_who_has_it_whole)
{
    PenError err = {0};
    PenPreloadResult result = {0};
    make_pack("whole", SMALL, SMALL_BYTES, 50000);
    PenPack *bad = open_pack("bad"), *whole = open_pack("whole");
    CHECK_MEM(pen_pack_info(bad)->id, pen_pack_info(whole)->id, 16);
    CHECK_INT(pen_pack_preload(bad, NULL, &result, &err), PEN_OK);
    CHECK_INT(pen_pack_preload(whole, NULL, &result, &err), PEN_OK);
    CHECK_INT(result.was_there, 1);
    CHECK_INT(result.is_sealed, 1);
    CHECK(result.read_bytes > 0 && result.read_bytes < shard_bytes(whole));
    CHECK_INT(first_wrong(whole, SMALL_BYTES), -1);
    CHECK_INT(first_wrong(bad, SMALL_BYTES), -1);
    pen_pack_close(&bad);
    pen_pack_close(&whole);
}

TEST(a_missing_shard)
{
    PenError err = {0};
    char shard[PEN_SHARD_NAME_BYTES], path[4600];
    make_pack("short", SMALL, SMALL_BYTES, 50000);
    PenPack *pack = open_pack("short");
    pen__shard_name(pen__pack_manifest(pack)->shards[1].id, shard);
    snprintf(path, sizeof path, "%s/%s", at("short"), shard);
    CHECK_INT(unlink(path), 0);
    CHECK_INT(pen_pack_preload(pack, NULL, NULL, &err), PEN_E_CORRUPT);
    CHECK(strstr(err.message, "is missing"));
    static uint8_t buf[MOST];
    size_t n;
    CHECK_INT(pen_pack_read(pack, 0, 0, buf, sizeof buf, &n, &err), PEN_OK); /* as it was */
    CHECK_INT(names_of(pack), 0);
    pen_pack_close(&pack);
}

/* ---- room ------------------------------------------------------------------------------------ */

static struct {
    const char *meminfo, *cgroup, *max, *current;
} texts;

static int with_texts(const char *path, int how)
{
    const char *text = NULL;
    if (strcmp(path, "/proc/meminfo") == 0)
        text = texts.meminfo;
    else if (strcmp(path, "/proc/self/cgroup") == 0)
        text = texts.cgroup;
    else if (strcmp(path, "/sys/fs/cgroup/job/memory.max") == 0)
        text = texts.max;
    else if (strcmp(path, "/sys/fs/cgroup/job/memory.current") == 0)
        text = texts.current;
    else if (strncmp(path, "/sys/fs/cgroup", 14) == 0)
        return -ENOENT;
    if (!text)
        return pen__sys_real.open(path, how);
    help_text("text", text);
    return pen__sys_real.open(at("text"), how);
}

TEST(too_little_memory)
{
    static PenSys sys;
    PenError err = {0};
    PenPack *pack = open_pack("two");
    sys = pen__sys_real;
    sys.open = with_texts;
    texts.meminfo = "MemTotal: 900000 kB\nMemAvailable:   262200 kB\n";
    texts.cgroup = "0::/\n";
    pen__sys = &sys;
    int r = pen_pack_preload(pack, NULL, NULL, &err);
    pen__sys = &pen__sys_real;
    CHECK_INT(r, PEN_E_NO_MEMORY);
    CHECK(strstr(err.message,
                 "preload needs 0.2 MiB of memory and 256.0 MiB of reserve, but only 256.1 MiB is "
                 "available on this machine; open it without preload, or free memory"));
    texts.meminfo = "MemTotal: 900000 kB\nMemAvailable:   800000 kB\n";
    texts.cgroup = "0::/job\n";
    texts.max = "400000000\n";
    texts.current = "300000000\n";
    pen__sys = &sys;
    r = pen_pack_preload(pack, NULL, NULL, &err);
    pen__sys = &pen__sys_real;
    CHECK_INT(r, PEN_E_NO_MEMORY);
    CHECK(
        strstr(err.message, "only 95.4 MiB is available within the cgroup limit of this process"));
    texts.current = "100000000\n";
    pen__sys = &sys;
    r = pen_pack_preload(pack, NULL, NULL, &err);
    pen__sys = &pen__sys_real;
    CHECK_INT(r, PEN_OK);
    pen_pack_close(&pack);
}

/* ---- being stopped --------------------------------------------------------------------------- */

static int stop_at_once(void *ctx, uint64_t done, uint64_t total)
{
    uint64_t *seen = ctx;
    seen[0] = done;
    seen[1] = total;
    return 1;
}

static int64_t slow_pread(int fd, void *buf, size_t bytes, uint64_t offset)
{
    (void)poll(NULL, 0, 5);
    return pen__sys_real.pread(fd, buf, bytes, offset);
}

TEST(stopped_by_the_caller)
{
    static PenSys sys;
    PenError err = {0};
    uint64_t seen[2] = {0};
    PenPreloadSettings s;
    PenPack *pack = open_pack("two");
    pen_preload_settings_init(&s);
    s.progress = stop_at_once;
    s.ctx = seen;
    s.threads = 2;
    sys = pen__sys_real;
    sys.pread = slow_pread;
    pen__sys = &sys;
    int r = pen_pack_preload(pack, &s, NULL, &err);
    pen__sys = &pen__sys_real;
    CHECK_INT(r, PEN_E_CANCELLED);
    CHECK(strstr(err.message, "preload was stopped"));
    CHECK_INT(seen[1], shard_bytes(pack));
    CHECK(seen[0] < seen[1]);
    CHECK_INT(first_wrong(pack, SMALL_BYTES), -1);
    CHECK_INT(pen_pack_preload(pack, NULL, NULL, &err), PEN_OK);
    pen_pack_close(&pack);
}

static atomic_int mute, n_muted;

static int64_t mute_pread(int fd, void *buf, size_t bytes, uint64_t offset)
{
    if (bytes > 20000 && atomic_load(&mute)) { /* a part of a shard */
        atomic_fetch_add(&n_muted, 1);
        while (atomic_load(&mute))
            (void)poll(NULL, 0, 5);
        atomic_fetch_sub(&n_muted, 1);
    }
    return pen__sys_real.pread(fd, buf, bytes, offset);
}

static int stop_when_muted(void *ctx, uint64_t done, uint64_t total)
{
    (void)ctx, (void)done, (void)total;
    return atomic_load(&n_muted) == 2;
}

static int stop_a_hanging_read(void)
{
    static PenSys sys;
    PenPreloadSettings s;
    PenPack *pack = open_pack("two"), *again = open_pack("two");
    pen_preload_settings_init(&s);
    s.progress = stop_when_muted;
    s.threads = 2;
    sys = pen__sys_real;
    sys.pread = mute_pread;
    atomic_store(&mute, 1);
    pen__sys = &sys;
    if (pen_pack_preload(pack, &s, NULL, NULL) != PEN_E_CANCELLED || atomic_load(&n_muted) != 2)
        return 1;
    pen_pack_close(&pack);
    if (names_of(again) != 1) /* they hold it */
        return 2;
    atomic_store(&mute, 0);
    uint64_t until = pen__deadline_after(30000000000u);
    while (names_of(again) && pen__sys_real.now_ns() < until)
        (void)poll(NULL, 0, 5);
    return names_of(again) ? 3 : 0;
}

/* A file system that does not answer: the caller comes back, the threads are left behind. In a
 * process of its own, which goes on with the system interface that they began with. */
TEST(stopped_while_a_read_hangs)
{
    int status = -1;
    pid_t child = fork();
    if (child == 0)
        _exit(stop_a_hanging_read());
    CHECK_INT(waitpid(child, &status, 0), child);
    CHECK_INT(status, 0);
}

/* ---- every call fails once ------------------------------------------------------------------- */

TEST(every_call_fails)
{
    PenPreloadSettings s;
    pen_preload_settings_init(&s);
    s.threads = 1;
    for (int other = 0; other < 2; other++) {
        uint64_t failed = 0;
        int last = -1;
        for (uint64_t n = 1; n < 2000 && last != PEN_OK; n++) {
            PenError err = {0};
            PenPack *pack = NULL;
            FaultPlan plan = {.at = n, .other = other};
            fault_begin(&plan);
            int r = pen_pack_open(at("two"), NULL, &pack, &err);
            if (r == PEN_OK)
                r = pen_pack_preload(pack, &s, NULL, &err);
            pen_pack_close(&pack);
            FaultSeen seen = fault_end();
            if (seen.memory || seen.files)
                printf("call %u: %s failed: %s\n", (unsigned)n, fault_name(seen.first),
                       err.message);
            CHECK_INT(seen.memory, 0);
            CHECK_INT(seen.files, 0);
            CHECK(r == PEN_OK || (r == err.status && err.message[0]));
            failed += r < 0;
            last = seen.failed ? -1 : r;
        }
        CHECK_INT(last, PEN_OK);
        CHECK(failed > 50);
    }
}

int main(int argc, char **argv)
{
    TEST_START(argc, argv);
    help_begin();
    make_pack("two", SMALL, SMALL_BYTES, 50000);
    make_pack("bad", SMALL, SMALL_BYTES, 50000);
    damage("bad");
    RUN(reads_the_same_and_nothing_from_the_files);
    RUN(what_is_refused);
    RUN(damage_is_told_as_of_a_disk);
    RUN(damage_is_mended_by_who_has_it_whole);
    RUN(a_missing_shard);
    RUN(too_little_memory);
    RUN(stopped_by_the_caller);
    RUN(stopped_while_a_read_hangs);
    RUN(every_call_fails);
    help_end();
    return TEST_END();
}
