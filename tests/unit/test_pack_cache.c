/* SPDX-License-Identifier: Apache-2.0 */
/* Packs that are read through a cache. A local one stands for all: what is removed from its
 * directory cannot come from there. */
#include <stdatomic.h>
#include <sys/wait.h>

#include "cache/cache_impl.h"
#include "pack/reader/reader_impl.h"
#include "pack_help.h"

enum { N = 12 };

static PenBuf right[N];
static char pack_dir[4400];
static PenSys sys;

static PenPack *open_with(const char *cache, uint64_t bytes, uint32_t wait_ms, PenError *err)
{
    PenPack *pack = NULL;
    PenCacheSettings s;
    PenError e = {0};
    pen_cache_settings_init(&s);
    s.directory = cache;
    s.bytes = bytes;
    s.wait_ms = wait_ms;
    if (pen_pack_open(pack_dir, NULL, &pack, &e) < 0)
        printf("%s\n", e.message);
    if (pack && pen_pack_cache(pack, &s, err ? err : &e) < 0) {
        if (!err)
            printf("%s\n", e.message);
        pen_pack_close(&pack);
    }
    return pack;
}

static PenCacheStats stats_of(const PenPack *pack)
{
    PenCacheStats s;
    pen_pack_cache_stats(pack, &s);
    return s;
}

/* The bytes of all images are those that the pack was made of. */
static void check_all(PenPack *pack)
{
    PenBuf buf = {0};
    for (uint64_t i = 0; i < N; i++) {
        help_read(pack, i, 0, &buf);
        CHECK_OK_SO_FAR();
        CHECK_INT(buf.bytes, right[i].bytes);
        CHECK_MEM(buf.data, right[i].data, buf.bytes);
    }
    pen__buf_free(&buf);
}

static void check_with(const char *cache, PenCacheStats *ret)
{
    PenPack *pack = open_with(cache, 0, 0, NULL);
    CHECK(pack);
    check_all(pack);
    *ret = stats_of(pack);
    pen_pack_close(&pack);
}

static int (*on_file)(const char *path);

static int see(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
    (void)st, (void)ftw;
    return type == FTW_F ? on_file(path) : 0;
}

static void for_files(const char *dir, int (*each)(const char *path))
{
    on_file = each;
    nftw(dir, see, 16, FTW_PHYS);
}

static unsigned flips;

static int flip_a_bit(const char *path)
{
    struct stat st;
    uint8_t byte = 0;
    if (!strstr(path, ".block") && !strstr(path, ".tail"))
        return 0;
    int fd = open(path, O_RDWR);
    fstat(fd, &st);
    off_t at_byte = (off_t)(flips++ * 7919u % (unsigned)st.st_size);
    int r = pread(fd, &byte, 1, at_byte) == 1 ? 0 : -1;
    byte = (uint8_t)(byte ^ 1u << flips % 8);
    r |= pwrite(fd, &byte, 1, at_byte) == 1 ? 0 : -1;
    close(fd);
    return r;
}

static int cut(const char *path)
{
    return strstr(path, ".block") || strstr(path, ".tail") ? truncate(path, 5) : 0;
}

static int hide_shard(const char *path)
{
    char away[4500];
    size_t n = strlen(path);
    snprintf(away, sizeof away, "%s-away", path);
    return n > 6 && strcmp(path + n - 6, ".shard") == 0 ? rename(path, away) : 0;
}

static int show_shard(const char *path)
{
    char back[4500];
    size_t n = strlen(path);
    snprintf(back, sizeof back, "%.*s", (int)(n > 5 ? n - 5 : 0), path);
    return n > 5 && strcmp(path + n - 5, "-away") == 0 ? rename(path, back) : 0;
}

/* ---- what it is for -------------------------------------------------------------------------- */

TEST(what_is_in_the_cache_is_not_read_elsewhere)
{
    PenCacheStats first, second;
    PenPack *pack = open_with(at("c1"), 0, 0, NULL);
    CHECK(pack);
    CHECK_INT(pen__pack_is_whole(pack), 1);
    CHECK_INT(pen__pack_is_remote(pack), 0);
    check_all(pack);
    const PenPackInfo *info = pen_pack_info(pack);
    first = stats_of(pack);
    CHECK_INT(first.misses, info->n_blocks);
    CHECK_INT(first.hits, 0);
    CHECK_INT(first.tail_misses, info->n_shards);
    CHECK(info->n_shards > 1);
    CHECK_INT(first.stored, info->n_blocks + info->n_shards);
    CHECK(first.bytes_origin > 0 && first.bytes_origin <= info->total_bytes);
    check_with(at("c1"), &second);
    CHECK_OK_SO_FAR();
    CHECK_INT(second.hits, info->n_blocks);
    CHECK_INT(second.misses + second.tail_misses + second.stored + second.bytes_origin, 0);
    CHECK_INT(second.bytes_cache, first.bytes_origin);
    CHECK_INT(second.tail_hits, info->n_shards);
    pen_pack_close(&pack);
}

TEST(it_stands_in_for_a_disk_that_is_gone)
{
    PenCacheStats s;
    check_with(at("c2"), &s);
    CHECK_OK_SO_FAR();
    for_files(pack_dir, hide_shard);
    PenPack *pack = open_with(at("c2"), 0, 0, NULL);
    CHECK(pack);
    check_all(pack);
    pen_pack_close(&pack);
    /* Of an entry that is missing too the message says where it should be. */
    for_files(at("c2"), cut);
    pack = open_with(at("c2"), 0, 0, NULL);
    CHECK(pack);
    PenError err = {0};
    size_t bytes = 0;
    CHECK_INT(pen_pack_read(pack, 0, 0, NULL, 0, &bytes, &err), PEN_E_CORRUPT);
    CHECK(strstr(err.message, "is missing"));
    pen_pack_close(&pack);
    for_files(pack_dir, show_shard);
}

TEST(a_tail_from_the_cache_leads_to_blocks_that_are_not)
{
    PenCacheStats s;
    check_with(at("c3"), &s);
    CHECK_OK_SO_FAR();
    PenPack *pack = open_with(at("c3"), 0, 0, NULL);
    CHECK(pack);
    for (uint64_t b = 0; b < pen_pack_info(pack)->n_blocks; b += 2)
        pen__cache_drop(pack->cache, (PenCacheKey){PEN_CACHE_BLOCK, b});
    check_all(pack);
    s = stats_of(pack);
    CHECK_INT(s.misses, (pen_pack_info(pack)->n_blocks + 1) / 2);
    CHECK_INT(s.tail_misses, 0);
    CHECK_INT(s.stored, s.misses);
    /* Keys are not in the cache. */
    char key[64];
    size_t key_bytes;
    uint64_t found = 0;
    CHECK_INT(pen_pack_key(pack, 5, key, sizeof key, &key_bytes, NULL), PEN_OK);
    CHECK_INT(pen_pack_find(pack, key, key_bytes, &found, NULL), PEN_OK);
    CHECK_INT(found, 5);
    pen_pack_close(&pack);
}

/* ---- what is wrong in it --------------------------------------------------------------------- */

static void check_damage(const char *cache, int (*damage)(const char *path))
{
    PenCacheStats first, s;
    check_with(cache, &first);
    CHECK_OK_SO_FAR();
    for_files(cache, damage);
    check_with(cache, &s);
    CHECK_OK_SO_FAR();
    CHECK_INT(s.hits, 0);
    CHECK_INT(s.bad, first.stored);
    CHECK_INT(s.stored, first.stored); /* all were replaced */
    check_with(cache, &s);
    CHECK_OK_SO_FAR();
    CHECK_INT(s.misses + s.tail_misses + s.bad, 0);
    PenCacheTotal total;
    CHECK_INT(pen_cache_inspect(cache, NULL, NULL, &total, NULL), PEN_OK);
    CHECK_INT(total.bytes, first.stored_bytes);
}

TEST(turned_bits_are_misses)
{
    char dir[4400];
    snprintf(dir, sizeof dir, "%s", at("c4"));
    check_damage(dir, flip_a_bit);
    for (int i = 0; i < 20; i++) {
        PenCacheStats s;
        for_files(dir, flip_a_bit);
        check_with(dir, &s);
        CHECK_OK_SO_FAR();
        CHECK_INT(s.hits, 0);
    }
}

TEST(short_entries_are_misses)
{
    char dir[4400];
    snprintf(dir, sizeof dir, "%s", at("c5"));
    check_damage(dir, cut);
}

/* What is wrong where the pack is is not kept, and is told as without a cache. */
TEST(a_damaged_pack_is_not_cached)
{
    char path[4500];
    PenError err = {0};
    PenPack *pack = NULL;
    CHECK_INT(pen_pack_open(pack_dir, NULL, &pack, &err), PEN_OK);
    PenBlock *b = NULL;
    uint32_t in_block;
    CHECK_INT(pen__pack_locate(pack, 1, &b, &in_block, &err), PEN_OK);
    PenImageEntry e = pen__block_image(&b->view, in_block, 0, 0);
    snprintf(path, sizeof path, "%s", b->shard->shard.source->name);
    int fd = open(path, O_RDWR);
    uint8_t byte = 0;
    off_t where = (off_t)(b->offset + e.offset + e.bytes / 2);
    CHECK_INT(pread(fd, &byte, 1, where), 1);
    byte ^= 1;
    CHECK_INT(pwrite(fd, &byte, 1, where), 1);
    uint64_t number = b->number;
    pen__pack_block_put(pack, b);
    pen_pack_close(&pack);
    pack = open_with(at("c6"), 0, 0, NULL);
    CHECK(pack);
    size_t bytes = 0;
    static uint8_t buf[1 << 20];
    CHECK_INT(pen_pack_read(pack, 1, 0, buf, sizeof buf, &bytes, &err), PEN_E_CORRUPT);
    CHECK_INT(pen_pack_read(pack, 2, 0, buf, sizeof buf, &bytes, &err), PEN_OK);
    PenCacheEntry entry;
    CHECK_INT(pen__cache_find(pack->cache, (PenCacheKey){PEN_CACHE_BLOCK, number}, &entry), 0);
    pen_pack_close(&pack);
    byte ^= 1;
    CHECK_INT(pwrite(fd, &byte, 1, where), 1);
    close(fd);
}

/* ---- others ---------------------------------------------------------------------------------- */

/* Somebody else fetches and does not come to an end: after a while it is fetched all the same. */
TEST(who_hangs_is_waited_for_and_then_not)
{
    PenPack *hangs = open_with(at("c7"), 0, 0, NULL), *pack = open_with(at("c7"), 0, 300, NULL);
    CHECK(hangs && pack);
    PenCacheKey key = {PEN_CACHE_BLOCK, 0};
    CHECK_INT(pen__cache_claim(hangs->cache, key), 1);
    uint64_t before = pen__sys->now_ns();
    check_all(pack);
    CHECK_OK_SO_FAR();
    uint64_t took = pen__sys->now_ns() - before;
    CHECK(took > 300000000u && took < 9000000000u);
    PenCacheStats s = stats_of(pack);
    CHECK_INT(s.misses, pen_pack_info(pack)->n_blocks);
    CHECK_INT(s.stored, s.misses + s.tail_misses - 1);
    pen__cache_release(hangs->cache, key);
    pen_pack_close(&hangs);
    pen_pack_close(&pack);
}

static void *fetch_soon(void *pack)
{
    static uint8_t buf[1 << 17];
    size_t bytes;
    (void)pen__sys->poll(NULL, 0, 50);
    return pen_pack_read(pack, 0, 0, buf, sizeof buf, &bytes, NULL) == PEN_OK ? pack : NULL;
}

/* What somebody else fetches meanwhile is waited for, and counts as found. */
TEST(who_fetches_is_waited_for)
{
    PenPack *slow = open_with(at("c13"), 0, 0, NULL), *pack = open_with(at("c13"), 0, 20000, NULL);
    CHECK(slow && pack);
    pthread_t thread;
    void *fetched = NULL;
    CHECK_INT(pen__cache_claim(slow->cache, (PenCacheKey){PEN_CACHE_BLOCK, 0}), 1);
    CHECK_INT(pthread_create(&thread, NULL, fetch_soon, slow), 0);
    check_all(pack);
    CHECK_INT(pthread_join(thread, &fetched), 0);
    CHECK_OK_SO_FAR();
    CHECK(fetched);
    PenCacheStats s = stats_of(pack);
    CHECK(s.waited >= 1);
    CHECK_INT(s.misses, pen_pack_info(pack)->n_blocks - 1);
    CHECK_INT(s.misses + stats_of(slow).misses, pen_pack_info(pack)->n_blocks);
    pen_pack_close(&slow);
    pen_pack_close(&pack);
}

static atomic_int n_looks;

static int interrupt_once(void *ctx)
{
    (void)ctx;
    return atomic_fetch_add(&n_looks, 1) == 0;
}

static PenPack *open_mapped(const char *path, const char *cache, PenError *err)
{
    PenPack *pack = NULL;
    PenFileSettings files;
    PenRemoteSettings remote;
    PenCacheSettings s;
    const char *root = "http://127.0.0.1:1/images";
    pen_remote_settings_init(&remote);
    remote.interrupted = interrupt_once;
    pen_file_settings_init(&files);
    files.roots = &root;
    files.n_roots = 1;
    files.remote = &remote;
    pen_cache_settings_init(&s);
    s.directory = cache;
    s.wait_ms = 100000;
    int r = pen_pack_open(path, NULL, &pack, err);
    if (r == PEN_OK)
        r = pen_pack_files(pack, &files, err);
    if (r == PEN_OK)
        r = pen_pack_cache(pack, &s, err);
    if (r < 0)
        pen_pack_close(&pack);
    return pack;
}

/* Of an in-place pack on a disk: its user interrupts the requests to the roots, and so this wait.
 */
TEST(who_hangs_is_not_waited_for_after_ctrl_c)
{
    PenError err = {0};
    PenIngestResult result;
    PenBuf buf = {0};
    PenIngestSettings s = help_ingest("photos", "mapped.pen");
    s.mode = PEN_MODE_KEEP;
    s.in_place = 1;
    CHECK_INT(pen_ingest_run(&s, &result, &err), PEN_OK);
    PenPack *hangs = open_mapped(s.out, at("c14"), &err),
            *pack = open_mapped(s.out, at("c14"), &err);
    CHECK(hangs && pack);
    PenCacheKey key = {PEN_CACHE_BLOCK, 0};
    CHECK_INT(pen__cache_claim(hangs->cache, key), 1);
    uint64_t before = pen__sys->now_ns();
    help_read(pack, 0, 0, &buf);
    CHECK_OK_SO_FAR();
    CHECK(pen__sys->now_ns() - before < 50000000000u);
    CHECK(atomic_load(&n_looks) > 0);
    CHECK_INT(stats_of(pack).waited, 0);
    pen__cache_release(hangs->cache, key);
    pen_pack_close(&hangs);
    pen_pack_close(&pack);
    pen__buf_free(&buf);
}

static void read_in_child(const char *cache, int start)
{
    char go;
    if (read(start, &go, 1) != 0)
        _exit(2);
    PenCacheStats s;
    check_with(cache, &s);
    /* All together: each block was fetched by one of them. */
    _exit(test__now.state == TEST_PASSED ? (int)(s.misses + s.tail_misses) : 100);
}

TEST(eight_processes_fetch_each_block_once)
{
    enum { CHILDREN = 8 };
    char cache[4400];
    int start[2], fetched = 0;
    pid_t children[CHILDREN];
    snprintf(cache, sizeof cache, "%s", at("c8"));
    CHECK_INT(pipe(start), 0);
    for (int i = 0; i < CHILDREN; i++) {
        children[i] = fork();
        if (children[i] == 0) {
            close(start[1]);
            read_in_child(cache, start[0]);
        }
    }
    close(start[0]);
    close(start[1]);
    for (int i = 0; i < CHILDREN; i++) {
        int status = 0;
        CHECK_INT(waitpid(children[i], &status, 0), children[i]);
        CHECK(WIFEXITED(status) && WEXITSTATUS(status) < 100);
        fetched += WEXITSTATUS(status);
    }
    PenCacheTotal total;
    CHECK_INT(pen_cache_inspect(cache, NULL, NULL, &total, NULL), PEN_OK);
    CHECK_INT(fetched, total.entries);
}

typedef struct Reader {
    PenPack *pack;
    pthread_t thread;
    unsigned wrong;
} Reader;

static void *read_in_thread(void *arg)
{
    Reader *r = arg;
    static _Thread_local uint8_t buf[1 << 17];
    for (uint64_t i = 0; i < 3 * N; i++) {
        uint64_t n = i * 5 % N;
        size_t bytes = 0;
        int e = pen_pack_read(r->pack, n, 0, buf, sizeof buf, &bytes, NULL);
        r->wrong +=
            e != PEN_OK || bytes != right[n].bytes || memcmp(buf, right[n].data, bytes) != 0;
    }
    return NULL;
}

/* Two packs of one process exclude each other as two processes do; threads of one pack wait for
 * each other in it. */
TEST(threads_of_two_packs_fetch_each_block_once)
{
    enum { READERS = 8 };
    PenPack *packs[2] = {open_with(at("c12"), 0, 0, NULL), open_with(at("c12"), 0, 0, NULL)};
    Reader readers[READERS] = {0};
    CHECK(packs[0] && packs[1]);
    for (int i = 0; i < READERS; i++) {
        readers[i].pack = packs[i % 2];
        CHECK_INT(pthread_create(&readers[i].thread, NULL, read_in_thread, &readers[i]), 0);
    }
    for (int i = 0; i < READERS; i++) {
        CHECK_INT(pthread_join(readers[i].thread, NULL), 0);
        CHECK_INT(readers[i].wrong, 0);
    }
    PenCacheStats a = stats_of(packs[0]), b = stats_of(packs[1]);
    CHECK_INT(a.misses + b.misses, pen_pack_info(packs[0])->n_blocks);
    CHECK_INT(a.tail_misses + b.tail_misses, pen_pack_info(packs[0])->n_shards);
    pen_pack_close(&packs[0]);
    pen_pack_close(&packs[1]);
}

/* ---- limits and refusals --------------------------------------------------------------------- */

TEST(half_a_cache_gives_half_the_blocks)
{
    uint64_t half = 0, bytes = 0;
    PenCacheStats s;
    PenPack *pack = NULL;
    CHECK_INT(pen_pack_open(pack_dir, NULL, &pack, NULL), PEN_OK);
    bytes = pen_pack_info(pack)->total_bytes / 2;
    pen_pack_close(&pack);
    for (int epoch = 0; epoch < 3; epoch++) {
        pack = open_with(at("c9"), bytes, 0, NULL);
        CHECK(pack);
        check_all(pack);
        s = stats_of(pack);
        if (epoch == 1)
            half = s.hits;
        CHECK_INT(s.hits, epoch ? half : 0);
        CHECK(s.not_stored_full > 0);
        CHECK_INT(s.hits + s.misses, pen_pack_info(pack)->n_blocks);
        pen_pack_close(&pack);
    }
    PenCacheTotal total;
    CHECK_INT(pen_cache_inspect(at("c9"), NULL, NULL, &total, NULL), PEN_OK);
    CHECK(total.bytes <= bytes);
    CHECK(half > 0 && s.misses > 0);
}

static int full_disk(const char *path, int how)
{
    return how == PEN_OPEN_NEW ? -ENOSPC : pen__sys_real.open(path, how);
}

TEST(a_full_disk_is_no_error)
{
    PenPack *pack = open_with(at("c10"), 0, 0, NULL);
    CHECK(pack);
    sys = pen__sys_real;
    sys.open = full_disk;
    pen__sys = &sys;
    check_all(pack);
    PenCacheStats s = stats_of(pack);
    pen_pack_close(&pack);
    CHECK_OK_SO_FAR();
    CHECK_INT(s.stored, 0);
    CHECK_INT(s.not_stored_disk, s.misses + s.tail_misses);
    pack = open_with(at("c10"), 0, 0, NULL); /* one that is there can still be opened */
    CHECK(pack);
    pen_pack_close(&pack);
    pen__sys = &pen__sys_real;
}

TEST(a_cache_is_for_a_pack_just_opened)
{
    PenError err = {0};
    PenPack *pack = open_with(at("c11"), 0, 0, NULL);
    CHECK(pack);
    PenCacheSettings s;
    pen_cache_settings_init(&s);
    s.directory = at("c11");
    CHECK_INT(pen_pack_cache(pack, &s, &err), PEN_E_INVALID);
    CHECK(strstr(err.message, "already in use"));
    pen_pack_close(&pack);
    CHECK_INT(pen_pack_open(pack_dir, NULL, &pack, &err), PEN_OK);
    CHECK_INT(stats_of(pack).hits, 0);
    check_all(pack);
    CHECK_INT(pen_pack_cache(pack, &s, &err), PEN_E_INVALID);
    pen_pack_close(&pack);
    CHECK(!open_with(at("no/such/place"), 0, 0, &err));
    CHECK_INT(err.status, PEN_E_NOT_FOUND);
}

/* ---- all ------------------------------------------------------------------------------------- */

static void make_pack(void)
{
    PenError err = {0};
    PenPack *pack = NULL;
    PenIngestResult result;
    help_folder("photos", 0, N);
    CHECK_OK_SO_FAR();
    PenIngestSettings s = help_ingest("photos", "train.pen");
    s.mode = PEN_MODE_KEEP;
    s.block_samples = 2;
    CHECK_INT(pen_ingest_run(&s, &result, &err), PEN_OK);
    snprintf(pack_dir, sizeof pack_dir, "%s", s.out);
    CHECK_INT(pen_pack_open(pack_dir, NULL, &pack, &err), PEN_OK);
    for (uint64_t i = 0; i < N; i++)
        help_read(pack, i, 0, &right[i]);
    pen_pack_close(&pack);
}

int main(int argc, char **argv)
{
    TEST_START(argc, argv);
    help_begin();
    make_pack();
    RUN(what_is_in_the_cache_is_not_read_elsewhere);
    RUN(it_stands_in_for_a_disk_that_is_gone);
    RUN(a_tail_from_the_cache_leads_to_blocks_that_are_not);
    RUN(turned_bits_are_misses);
    RUN(short_entries_are_misses);
    RUN(a_damaged_pack_is_not_cached);
    RUN(who_hangs_is_waited_for_and_then_not);
    RUN(who_fetches_is_waited_for);
    RUN(who_hangs_is_not_waited_for_after_ctrl_c);
    RUN(eight_processes_fetch_each_block_once);
    RUN(threads_of_two_packs_fetch_each_block_once);
    RUN(half_a_cache_gives_half_the_blocks);
    RUN(a_full_disk_is_no_error);
    RUN(a_cache_is_for_a_pack_just_opened);
    for (int i = 0; i < N; i++)
        pen__buf_free(&right[i]);
    help_end();
    return TEST_END();
}
