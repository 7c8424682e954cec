/* SPDX-License-Identifier: Apache-2.0 */
/* Packs with videos that are read through a cache: by pieces of their shards. The payloads are no
 * real videos. A local pack stands for all: what is removed from it cannot come from there. */
#include <ftw.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "load_help.h"
#include "pack/reader/pieces.h"
#include "pack/write/publish.h"
#include "pack/write/roll.h"
#include "video_table_help.h"

enum { SAMPLES = 4, FIELDS = 2, BYTES = 1500000 };

typedef struct Made {
    HelpVideo v;
    PenBuf table;
    PenStoredVideo stored;
    PenStoredValue values[FIELDS];
    PenStoredSample sample;
    char key[16];
} Made;

static Made made[SAMPLES];
static uint8_t payloads[SAMPLES][BYTES];
static char note[] = "a value that is not a video";
static PenSys sys;

static void make_sample(uint32_t i)
{
    Made *m = &made[i];
    PenError err = {0};
    uint32_t n_frames = 0;
    uint64_t state = 200 + i;
    do
        help_video(&state, &m->v);
    while (m->v.payload_bytes > BYTES || m->v.n < 100 || m->v.packets[0].is_hidden);
    m->v.stream.container = PEN_CONTAINER_MATROSKA;
    CHECK_INT(pen__video_table_write(&m->v.stream, m->v.packets, m->v.n, BYTES, &m->table,
                                     &n_frames, &err),
              PEN_OK);
    for (size_t k = 0; k < BYTES; k++)
        payloads[i][k] = (uint8_t)help_random(&state, 256);
    m->stored = (PenStoredVideo){.data = payloads[i],
                                 .bytes = BYTES,
                                 .table = m->table.data,
                                 .table_bytes = m->table.bytes,
                                 .n_frames = n_frames,
                                 .source_bytes = BYTES};
    m->values[0].video = &m->stored;
    m->values[1] = (PenStoredValue){.data = note, .bytes = sizeof note};
    snprintf(m->key, sizeof m->key, "video-%u", i);
    m->sample = (PenStoredSample){.key = (const uint8_t *)m->key,
                                  .key_bytes = (uint32_t)strlen(m->key),
                                  .position = i,
                                  .values = m->values};
}

static void release(void *ctx, const PenStoredSample *sample)
{
    (void)ctx;
    (void)sample;
}

/* Blocks of 2 samples, in one shard. */
static void make_pack(void)
{
    static const PenField fields[FIELDS] = {{.name = "video", .type = PEN_TYPE_CLIP},
                                            {.name = "note", .type = PEN_TYPE_TEXT}};
    PenError err = {0};
    PenSchema schema;
    PenStore *store = NULL;
    PenRoll *roll = NULL;
    char part[600], path[512];
    snprintf(path, sizeof path, "%s", at("videos.pen"));
    snprintf(part, sizeof part, "%s/part", path);
    mkdir(path, 0777);
    CHECK_INT(pen__schema_init(&schema, fields, FIELDS, &err), PEN_OK);
    schema.has_videos = 1;
    CHECK_INT(pen__store_open(path, NULL, &store, &err), PEN_OK);
    PenRollSettings s = {.store = store,
                         .part_path = part,
                         .schema = &schema,
                         .block_samples = 2,
                         .shard_bytes = 1 << 30,
                         .release = release};
    CHECK_INT(pen__roll_open(&s, &roll, &err), PEN_OK);
    for (uint32_t i = 0; i < SAMPLES; i++) {
        make_sample(i);
        CHECK_INT(pen__roll_add(roll, &made[i].sample, &err), PEN_OK);
    }
    CHECK_INT(pen__roll_finish(roll, NULL, &err), PEN_OK);
    PenManifest m = {.block_samples = 2, .schema = schema};
    m.shards = (PenShardEntry *)(uintptr_t)pen__roll_shards(roll, &m.n_shards);
    m.stats = *pen__roll_stats(roll);
    CHECK_INT(pen__pack_publish(store, NULL, part, &m, 0, &err), PEN_OK);
    pen__roll_close(&roll);
    pen__store_close(&store);
    pen__schema_fini(&schema);
}

/* ---- reading ---- */

static PenPack *open_with(const char *cache, uint64_t bytes)
{
    PenError err = {0};
    PenPack *pack = NULL;
    PenCacheSettings s;
    pen_cache_settings_init(&s);
    s.directory = at(cache);
    s.bytes = bytes;
    if (pen_pack_open(at("videos.pen"), NULL, &pack, &err) < 0 ||
        pen_pack_cache(pack, &s, &err) < 0)
        test__fail(__FILE__, __LINE__, "%s", err.message);
    return pack;
}

static PenCacheStats stats_of(const PenPack *pack)
{
    PenCacheStats s;
    pen_pack_cache_stats(pack, &s);
    return s;
}

static void check_all(PenPack *pack)
{
    PenBuf buf = {0};
    for (uint32_t i = 0; i < SAMPLES; i++) {
        help_read(pack, i, 0, &buf);
        CHECK_OK_SO_FAR();
        CHECK_INT(buf.bytes, BYTES);
        CHECK_MEM(buf.data, payloads[i], BYTES);
        help_read(pack, i, 1, &buf);
        CHECK_OK_SO_FAR();
        CHECK_MEM(buf.data, note, sizeof note);
    }
    pen__buf_free(&buf);
}

static PenCacheStats check_with(const char *cache)
{
    PenPack *pack = open_with(cache, 0);
    check_all(pack);
    PenCacheStats s = stats_of(pack);
    pen_pack_close(&pack);
    return s;
}

/* Of the shard, without its tail. */
static uint64_t n_pieces(PenPack *pack)
{
    const PenShardEntry *e = &pen__pack_manifest(pack)->shards[0];
    return (e->file_bytes - e->tail_bytes + PEN_PIECE_BYTES - 1) / PEN_PIECE_BYTES;
}

static int (*on_piece)(const char *path);

static int see(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
    (void)st, (void)ftw;
    return type == FTW_F && strstr(path, ".piece") ? on_piece(path) : 0;
}

static void for_pieces(const char *cache, int (*each)(const char *path))
{
    on_piece = each;
    CHECK_INT(nftw(at(cache), see, 16, FTW_PHYS), 0);
}

static int see_shard(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
    char other[4500];
    size_t n = strlen(path);
    (void)st, (void)ftw;
    if (type != FTW_F)
        return 0;
    if (n > 6 && strcmp(path + n - 6, ".shard") == 0)
        snprintf(other, sizeof other, "%s-away", path);
    else if (n > 5 && strcmp(path + n - 5, "-away") == 0)
        snprintf(other, sizeof other, "%.*s", (int)n - 5, path);
    else
        return 0;
    return rename(path, other);
}

/* Hides the shards, or shows them again. */
static void move_shards(void)
{
    CHECK_INT(nftw(at("videos.pen"), see_shard, 16, FTW_PHYS), 0);
}

/* ---- what it is for ---- */

TEST(what_is_in_the_cache_is_not_read_elsewhere)
{
    PenPack *pack = open_with("c1", 0);
    CHECK_INT(pen__pack_is_whole(pack), 0);
    check_all(pack);
    CHECK_OK_SO_FAR();
    uint64_t pieces = n_pieces(pack);
    CHECK(pieces > 5);
    PenCacheStats s = stats_of(pack);
    CHECK_INT(s.misses, pieces);
    CHECK_INT(s.stored, pieces + 1);
    CHECK_INT(s.bytes_origin, pen__pack_manifest(pack)->shards[0].file_bytes -
                                  pen__pack_manifest(pack)->shards[0].tail_bytes);
    pen_pack_close(&pack);
    move_shards();
    s = check_with("c1");
    move_shards();
    CHECK_OK_SO_FAR();
    CHECK_INT(s.misses + s.tail_misses + s.bytes_origin + s.stored + s.bad, 0);
    CHECK(s.hits > 0 && s.bytes_cache >= (uint64_t)SAMPLES * BYTES);
}

/* A clip takes the pieces it lies in, and of those from the cache only its runs. */
TEST(a_part_takes_its_pieces)
{
    static uint8_t found[70000];
    PenError err = {0};
    PenPack *pack = open_with("c2", 0);
    CHECK_INT(pen_pack_video_bytes(pack, 0, 0, 700000, found, sizeof found, &err), PEN_OK);
    CHECK_MEM(found, payloads[0] + 700000, sizeof found);
    PenCacheStats s = stats_of(pack);
    CHECK_INT(s.misses, 1); /* with the index of the block */
    CHECK_INT(s.bytes_origin, PEN_PIECE_BYTES);
    uint64_t before = s.bytes_cache;
    CHECK_INT(pen_pack_video_bytes(pack, 0, 0, 700000, found, sizeof found, &err), PEN_OK);
    s = stats_of(pack);
    CHECK_INT(s.misses, 1);
    CHECK(s.bytes_cache - before <= 3 * PEN_VIDEO_RUN_BYTES);
    pen_pack_close(&pack);
}

typedef struct Reader {
    PenPack *pack;
    pthread_t thread;
    uint64_t seed;
    unsigned wrong;
} Reader;

static void *read_in_thread(void *arg)
{
    Reader *r = arg;
    static _Thread_local uint8_t found[200000];
    for (int i = 0; i < 40; i++) {
        uint64_t sample = help_random(&r->seed, SAMPLES);
        uint64_t from = help_random(&r->seed, BYTES - sizeof found);
        int e = pen_pack_video_bytes(r->pack, sample, 0, from, found, sizeof found, NULL);
        r->wrong += e != PEN_OK || memcmp(found, payloads[sample] + from, sizeof found) != 0;
    }
    return NULL;
}

/* Two packs of one process exclude each other as two processes do. */
TEST(each_piece_is_fetched_once)
{
    enum { READERS = 8 };
    PenPack *packs[2] = {open_with("c3", 0), open_with("c3", 0)};
    Reader readers[READERS] = {0};
    for (int i = 0; i < READERS; i++) {
        readers[i].pack = packs[i % 2];
        readers[i].seed = (uint64_t)i;
        CHECK_INT(pthread_create(&readers[i].thread, NULL, read_in_thread, &readers[i]), 0);
    }
    for (int i = 0; i < READERS; i++) {
        CHECK_INT(pthread_join(readers[i].thread, NULL), 0);
        CHECK_INT(readers[i].wrong, 0);
    }
    CHECK_INT(stats_of(packs[0]).misses + stats_of(packs[1]).misses, n_pieces(packs[0]));
    CHECK_INT(stats_of(packs[0]).stored + stats_of(packs[1]).stored, n_pieces(packs[0]) + 1);
    pen_pack_close(&packs[0]);
    pen_pack_close(&packs[1]);
}

/* ---- what is wrong in it ---- */

static int damage_all(const char *path)
{
    struct stat st;
    int fd = open(path, O_RDWR), r = fstat(fd, &st);
    for (off_t where = 100; r == 0 && where < st.st_size; where += 50000) {
        uint8_t byte = 0;
        r |= pread(fd, &byte, 1, where) == 1 ? 0 : -1;
        byte ^= 4;
        r |= pwrite(fd, &byte, 1, where) == 1 ? 0 : -1;
    }
    close(fd);
    return r;
}

static int cut(const char *path)
{
    return truncate(path, 70000);
}

static void check_damage(const char *cache, int (*damage)(const char *path))
{
    PenCacheStats first = check_with(cache), s;
    CHECK_OK_SO_FAR();
    for_pieces(cache, damage);
    s = check_with(cache);
    CHECK_OK_SO_FAR();
    CHECK(s.bad >= first.stored - 1); /* without the tail */
    (void)check_with(cache);
    s = check_with(cache);
    CHECK_OK_SO_FAR();
    CHECK_INT(s.bad + s.misses + s.tail_misses, 0); /* all were replaced */
    PenCacheTotal total;
    CHECK_INT(pen_cache_inspect(at(cache), NULL, NULL, &total, NULL), PEN_OK);
    CHECK_INT(total.bytes, first.stored_bytes);
}

TEST(damaged_pieces_are_replaced)
{
    check_damage("c4", damage_all);
}

TEST(short_pieces_are_replaced)
{
    check_damage("c5", cut);
}

/* What is wrong where the pack is is told as without a cache, and asked for again. */
TEST(a_damaged_pack_is_named)
{
    static uint8_t found[1000];
    char path[4500];
    PenError err = {0};
    PenBlock *b = NULL;
    uint32_t in_block;
    uint8_t byte = 0;
    PenPack *pack = open_with("c6", 0);
    CHECK_INT(pen__pack_locate(pack, 1, &b, &in_block, &err), PEN_OK);
    snprintf(path, sizeof path, "%s", b->shard->shard.source->name);
    off_t where = (off_t)(b->offset + pen__block_clip(&b->view, in_block, 0).offset + 900000);
    pen__pack_block_put(pack, b);
    int fd = open(path, O_RDWR);
    CHECK_INT(pread(fd, &byte, 1, where), 1);
    byte ^= 1;
    CHECK_INT(pwrite(fd, &byte, 1, where), 1);
    CHECK_INT(pen_pack_video_bytes(pack, 1, 0, 900000, found, 1000, &err), PEN_E_CORRUPT);
    CHECK(strstr(err.message, "checksum"));
    byte ^= 1;
    CHECK_INT(pwrite(fd, &byte, 1, where), 1);
    close(fd);
    CHECK_INT(pen_pack_video_bytes(pack, 1, 0, 900000, found, 1000, &err), PEN_OK);
    CHECK_MEM(found, payloads[1] + 900000, 1000);
    pen_pack_close(&pack);
}

static int kill_at_rename(int from_dir, const char *from, int to_dir, const char *to)
{
    if (strstr(to, ".piece"))
        raise(SIGKILL);
    return pen__sys_real.rename(from_dir, from, to_dir, to);
}

static unsigned n_new;

static int count_new(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
    (void)st, (void)type;
    n_new += strncmp(path + ftw->base, "new-", 4) == 0;
    return 0;
}

/* What it was writing is removed, and the claim is gone with it. */
TEST(a_killed_process_does_no_harm)
{
    pid_t child = fork();
    int status = 0;
    if (child == 0) {
        PenPack *pack = open_with("c7", 0);
        sys = pen__sys_real;
        sys.rename = kill_at_rename;
        pen__sys = &sys;
        check_all(pack);
        _exit(1);
    }
    CHECK_INT(waitpid(child, &status, 0), child);
    CHECK(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
    PenCacheStats s = check_with("c7");
    CHECK_OK_SO_FAR();
    CHECK_INT(s.waited, 0);
    PenCacheTotal total;
    CHECK_INT(pen_cache_inspect(at("c7"), NULL, NULL, &total, NULL), PEN_OK);
    CHECK_INT(total.entries, s.misses + 1);
    n_new = 0;
    CHECK_INT(nftw(at("c7"), count_new, 16, FTW_PHYS), 0);
    CHECK_INT(n_new, 0);
}

/* ---- limits ---- */

/* Then only what is needed is read. */
TEST(a_full_cache_is_no_error)
{
    PenPack *pack = open_with("c8", 3 * PEN_PIECE_BYTES);
    for (int i = 0; i < 2; i++) {
        check_all(pack);
        CHECK_OK_SO_FAR();
    }
    PenCacheStats s = stats_of(pack);
    CHECK(s.not_stored_full > 0 && s.stored >= 2 && s.stored <= 4);
    CHECK(s.hits > 0);
    static uint8_t found[1000];
    uint64_t before = s.bytes_origin;
    CHECK_INT(pen_pack_video_bytes(pack, 3, 0, 1200000, found, 1000, NULL), PEN_OK);
    CHECK(stats_of(pack).bytes_origin - before <= 2 * PEN_VIDEO_RUN_BYTES);
    pen_pack_close(&pack);
}

static int64_t only_small(int fd, void *buf, size_t bytes, uint64_t offset)
{
    return bytes >= PEN_PIECE_BYTES ? 0 : pen__sys_real.pread(fd, buf, bytes, offset);
}

/* Something else in the piece is missing. */
TEST(what_is_there_is_read)
{
    static uint8_t found[1000];
    PenError err = {0};
    PenPack *pack = open_with("c10", 0);
    sys = pen__sys_real;
    sys.pread = only_small;
    pen__sys = &sys;
    int r = pen_pack_video_bytes(pack, 1, 0, 900000, found, 1000, &err);
    pen__sys = &pen__sys_real;
    CHECK_INT(r, PEN_OK);
    CHECK_MEM(found, payloads[1] + 900000, 1000);
    CHECK_INT(stats_of(pack).stored, 1); /* the tail */
    CHECK_INT(stats_of(pack).misses, 2); /* read once: the index, and a part of the video */
    pen_pack_close(&pack);
}

static int no_space(const char *path, int how)
{
    return how == PEN_OPEN_NEW ? -ENOSPC : pen__sys_real.open(path, how);
}

TEST(a_full_disk_is_no_error)
{
    PenPack *pack = open_with("c9", 0);
    sys = pen__sys_real;
    sys.open = no_space;
    pen__sys = &sys;
    check_all(pack);
    pen__sys = &pen__sys_real;
    CHECK_OK_SO_FAR();
    PenCacheStats s = stats_of(pack);
    CHECK_INT(s.stored, 0);
    CHECK(s.not_stored_disk > 0);
    pen_pack_close(&pack);
}

int main(int argc, char **argv)
{
    TEST_START(argc, argv);
    help_begin();
    make_pack();
    RUN(what_is_in_the_cache_is_not_read_elsewhere);
    RUN(a_part_takes_its_pieces);
    RUN(each_piece_is_fetched_once);
    RUN(damaged_pieces_are_replaced);
    RUN(short_pieces_are_replaced);
    RUN(a_damaged_pack_is_named);
    RUN(a_killed_process_does_no_harm);
    RUN(a_full_cache_is_no_error);
    RUN(a_full_disk_is_no_error);
    RUN(what_is_there_is_read);
    for (uint32_t i = 0; i < SAMPLES; i++)
        pen__buf_free(&made[i].table);
    help_end();
    return TEST_END();
}
