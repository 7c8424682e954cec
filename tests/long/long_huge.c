/* SPDX-License-Identifier: Apache-2.0 */
/* A pack of 10^9 samples: a real manifest of about 208,000 shards, and of the shards that are
 * looked into sparse files whose tails and indexes are real. How long it takes to open, to find a
 * sample's shard and block, and to find a block in its shard, and what memory that needs. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <malloc.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/attr.h"
#include "base/bytes.h"
#include "base/rng.h"
#include "base/sha256.h"
#include "base/sys.h"
#include "lib/sweep.h"
#include "lib/tree.h"
#include "pack/format/block_write.h"
#include "pack/format/manifest.h"
#include "pack/format/place.h"
#include "pack/reader/reader.h"
#include "unit/test.h"

/* Photographs of 110 kB: a block of 32 is 3.5 MB, a shard of 150 blocks half a gigabyte. */
#define N_SAMPLES 1000000000ull
#define K 32u
#define N_BLOCKS (N_SAMPLES / K)
enum { PHOTO_BYTES = 110000, FEWEST_BLOCKS = 140, MOST_BLOCKS = 160, KEY_BYTES = 12 };
enum { N_LOCATED = 100000, ROUNDS = 5 };

/* What is asked for. */
#define MOST_OPEN_SECONDS 1.0
#define MOST_OPEN_BYTES 100000000.0
#define MOST_LOCATE_NS 2000.0

typedef struct Touched { /* a shard that has a file, and the block in it that has an index */
    uint64_t shard;
    uint32_t block;
} Touched;

static struct {
    const char *dir;
    PenManifest m;
    Touched *touched;
    uint64_t n_touched;
    PenPack *pack;
    PenRng rng;
    PenBlockBuild build;
} huge;

static uint64_t now_ns(void)
{
    return pen__sys_real.now_ns();
}

/* ---- counting calls -------------------------------------------------------------------------- */

static atomic_uint_fast64_t n_opens, n_reads;

static int counting_open(const char *path, int how)
{
    atomic_fetch_add(&n_opens, 1);
    return pen__sys_real.open(path, how);
}

static int64_t counting_pread(int fd, void *buf, size_t bytes, uint64_t offset)
{
    atomic_fetch_add(&n_reads, 1);
    return pen__sys_real.pread(fd, buf, bytes, offset);
}

static PenSys counting;

static void count_calls(void)
{
    counting = pen__sys_real;
    counting.open = counting_open;
    counting.pread = counting_pread;
    pen__sys = &counting;
}

/* ---- making the pack ------------------------------------------------------------------------- */

static void key_of(uint64_t sample, char key[KEY_BYTES + 1])
{
    snprintf(key, KEY_BYTES + 1, "%012" PRIu64, sample);
}

/* The photographs are zeros, as the holes of a sparse file are: even their checksums are right. */
static void build_block(const PenSchema *schema, const uint8_t *id, uint32_t block, uint64_t first)
{
    static uint8_t photo[PHOTO_BYTES];
    static char keys[K][KEY_BYTES + 1];
    static PenStoredSample samples[K];
    static PenStoredValue values[K][2];
    static const int64_t label = 7;
    const PenStoredSample *list[K];
    static const PenStoredImage image = {.data = photo,
                                         .bytes = PHOTO_BYTES,
                                         .width = 500,
                                         .height = 375,
                                         .codec = PEN_STORED_JPEG,
                                         .orientation = 1,
                                         .channels = 3,
                                         .source_bytes = PHOTO_BYTES};
    for (uint32_t i = 0; i < K; i++) {
        key_of(first + i, keys[i]);
        values[i][0] = (PenStoredValue){.images = &image, .n_images = 1};
        values[i][1] = (PenStoredValue){.data = &label, .bytes = sizeof label};
        samples[i] = (PenStoredSample){
            .key = (const uint8_t *)keys[i], .key_bytes = KEY_BYTES, .values = values[i]};
        list[i] = &samples[i];
    }
    MUST(pen__block_build(&huge.build, schema, id, block, list, K, NULL, NULL) == PEN_OK);
}

static uint64_t tail_bytes(uint64_t n_blocks)
{
    return n_blocks * PEN_BLOCK_ENTRY_BYTES + 8ull * PEN_STAT_PLAIN + PEN_SHARD_FOOTER_BYTES;
}

static void plan_shards(void)
{
    PenManifest *m = &huge.m;
    uint64_t cap = N_BLOCKS / FEWEST_BLOCKS + 1;
    uint8_t id[PEN_ID_BYTES] = {0};
    build_block(&m->schema, id, 0, 0); /* all are equally long */
    m->block_samples = K;
    m->shards = calloc(cap, sizeof *m->shards);
    MUST(m->shards);
    for (uint64_t left = N_BLOCKS; left; m->n_shards++) {
        PenShardEntry *s = &m->shards[m->n_shards];
        uint64_t n = FEWEST_BLOCKS + pen__rng_below(&huge.rng, MOST_BLOCKS - FEWEST_BLOCKS + 1);
        n = PEN_MIN(n, left);
        left -= n;
        for (size_t i = 0; i < PEN_ID_BYTES; i++) {
            s->id[i] = (uint8_t)pen__rng_below(&huge.rng, 256);
            s->digest[i] = (uint8_t)pen__rng_below(&huge.rng, 256);
        }
        s->n_blocks = s->blocks_used = n;
        s->samples_used = n * K;
        s->largest_block = huge.build.bytes;
        s->first_block = N_BLOCKS - left - n;
        s->file_bytes = PEN_SHARD_HEADER_BYTES + n * huge.build.bytes + n * K * PEN_KEY_HASH_BYTES +
                        tail_bytes(n);
        s->tail_bytes = tail_bytes(n);
    }
}

/* Block table, statistics and footer as they end a shard; see docs/explanation/format.md,
 * section 4. */
static void make_tail(const PenShardEntry *s, uint32_t block, uint8_t *tail)
{
    uint64_t total = tail_bytes(s->n_blocks);
    uint64_t table = s->n_blocks * PEN_BLOCK_ENTRY_BYTES;
    uint8_t *f = tail + total - PEN_SHARD_FOOTER_BYTES;
    PenPlace place = {.id = s->id, .block = PEN_ALL, .sample = PEN_ALL};
    memset(tail, 0, total);
    for (uint64_t b = 0; b < s->n_blocks; b++) {
        uint8_t *e = tail + b * PEN_BLOCK_ENTRY_BYTES;
        pen__store64(e, PEN_SHARD_HEADER_BYTES + b * huge.build.bytes);
        pen__store64(e + 8, huge.build.bytes);
        pen__store64(e + 16, huge.build.index.bytes);
        pen__store32(e + 24, b == block ? huge.build.index_crc : 0);
        pen__store32(e + 28, K);
    }
    memcpy(f, "PENSHEND", 8);
    pen__store32(f + 8, PEN_FORMAT_VERSION);
    memcpy(f + 16, s->id, PEN_ID_BYTES);
    pen__store64(f + 32, s->file_bytes);
    pen__store64(f + 40, s->n_blocks);
    pen__store64(f + 48, s->n_blocks * K);
    pen__store64(f + 56, K);
    pen__store64(f + 64, s->file_bytes - total - s->n_blocks * K * PEN_KEY_HASH_BYTES);
    pen__store64(f + 72, s->file_bytes - total);
    pen__store32(f + 80, PEN_STAT_PLAIN);
    place.field = PEN_PART_TABLE;
    pen__store32(f + 88, pen__place_sum(&place, tail, table));
    place.field = PEN_PART_STATS;
    pen__store32(f + 92, pen__place_sum(&place, tail + table, 8 * PEN_STAT_PLAIN));
    place.field = PEN_PART_FOOTER;
    pen__store32(f + 12, pen__place_sum(&place, f + 16, PEN_SHARD_FOOTER_BYTES - 16));
}

static void make_shard(const Touched *t)
{
    PenShardEntry *s = &huge.m.shards[t->shard];
    uint8_t tail[MOST_BLOCKS * PEN_BLOCK_ENTRY_BYTES + 8 * PEN_STAT_PLAIN + PEN_SHARD_FOOTER_BYTES];
    uint8_t hash[32];
    char name[PEN_SHARD_NAME_BYTES], path[600];
    pen__shard_name(s->id, name);
    snprintf(path, sizeof path, "%s/%.2s", huge.dir, name);
    MUST(mkdir(path, 0777) == 0 || errno == EEXIST);
    snprintf(path, sizeof path, "%s/%s", huge.dir, name);
    build_block(&huge.m.schema, s->id, t->block, (s->first_block + t->block) * K);
    make_tail(s, t->block, tail);
    size_t bytes = (size_t)tail_bytes(s->n_blocks);
    pen__sha256(tail, bytes, hash);
    memcpy(s->digest, hash, sizeof s->digest);
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
    MUST(fd >= 0);
    const PenBuf *index = &huge.build.index;
    off_t at = (off_t)(PEN_SHARD_HEADER_BYTES + t->block * huge.build.bytes);
    MUST(pwrite(fd, index->data, index->bytes, at) == (ssize_t)index->bytes);
    MUST(pwrite(fd, tail, bytes, (off_t)(s->file_bytes - bytes)) == (ssize_t)bytes);
    MUST(close(fd) == 0);
}

static void choose_touched(void)
{
    uint8_t *chosen = calloc(huge.m.n_shards, 1);
    huge.n_touched = scaled(5000, 500);
    huge.touched = calloc(huge.n_touched, sizeof *huge.touched);
    MUST(chosen && huge.touched);
    for (uint64_t i = 0; i < huge.n_touched;) {
        uint64_t shard = pen__rng_below(&huge.rng, huge.m.n_shards);
        if (chosen[shard]++)
            continue;
        uint64_t n = huge.m.shards[shard].n_blocks;
        huge.touched[i++] = (Touched){shard, (uint32_t)pen__rng_below(&huge.rng, n)};
    }
    free(chosen);
}

static void make_pack(void)
{
    static const PenField fields[] = {{.name = "image", .type = PEN_TYPE_IMAGE},
                                      {.name = "label", .type = PEN_TYPE_I64}};
    PenBuf manifest = {0};
    char path[600];
    huge.dir = scratch("huge.pen");
    huge.rng = pen__rng_init(9, 0);
    MUST(mkdir(huge.dir, 0777) == 0);
    MUST(pen__schema_init(&huge.m.schema, fields, PEN_LEN(fields), NULL) == PEN_OK);
    plan_shards();
    choose_touched();
    for (uint64_t i = 0; i < huge.n_touched; i++)
        make_shard(&huge.touched[i]);
    MUST(pen__manifest_write(&huge.m, &manifest, NULL) == PEN_OK);
    snprintf(path, sizeof path, "%s/manifest", huge.dir);
    file_store(path, manifest.data, manifest.bytes);
    MUST(huge.m.n_samples == N_SAMPLES && huge.m.n_blocks == N_BLOCKS);
    printf("huge: %llu samples, %" PRIu64 " blocks, %" PRIu64 " shards, manifest of %zu bytes\n",
           N_SAMPLES, huge.m.n_blocks, huge.m.n_shards, manifest.bytes);
    pen__buf_free(&manifest);
}

/* ---- opening --------------------------------------------------------------------------------- */

/* A line of /proc/self/status in bytes. */
static double memory(const char *name)
{
    char line[200];
    double kib = 0;
    FILE *f = fopen("/proc/self/status", "r");
    MUST(f);
    while (fgets(line, sizeof line, f))
        if (strncmp(line, name, strlen(name)) == 0)
            kib = strtod(line + strlen(name) + 1, NULL);
    fclose(f);
    return kib * 1024;
}

/* From here on the peak is counted anew. */
static void forget_peak(void)
{
    malloc_trim(0);
    FILE *f = fopen("/proc/self/clear_refs", "w");
    if (f) {
        fputs("5", f);
        fclose(f);
    }
}

TEST(opens_in_time_and_memory)
{
    double best = 1e9;
    double grown = 0;
    for (int i = 0; i < ROUNDS; i++) {
        pen_pack_close(&huge.pack);
        forget_peak();
        double before = memory("VmRSS");
        atomic_store(&n_reads, 0);
        uint64_t start = now_ns();
        CHECK_INT(pen_pack_open(huge.dir, NULL, &huge.pack, NULL), PEN_OK);
        best = PEN_MIN(best, (double)(now_ns() - start) / 1e9);
        double peak = memory("VmHWM");
        grown = PEN_MAX(grown, PEN_MAX(peak, memory("VmRSS")) - before);
    }
    printf("open: %.3f s, at most %.1f MB more while it does, %.1f MB kept, %u reads\n", best,
           grown / 1e6, (double)huge.m.n_shards * (sizeof(PenShardEntry) + 8) / 1e6,
           (unsigned)atomic_load(&n_reads));
    CHECK_INT(pen_pack_info(huge.pack)->n_samples, N_SAMPLES);
    CHECK_INT(atomic_load(&n_reads), 1);
    CHECK(best < MOST_OPEN_SECONDS);
    CHECK(grown > (double)huge.m.n_shards * sizeof(PenShardEntry)); /* else it is measured wrong */
    CHECK(grown < MOST_OPEN_BYTES);
}

/* ---- locating -------------------------------------------------------------------------------- */

TEST(locates_samples_in_time)
{
    uint64_t *samples = calloc(N_LOCATED, sizeof *samples);
    uint64_t *shards = calloc(N_LOCATED, sizeof *shards);
    double best = 1e9;
    uint64_t wrong = 0;
    MUST(samples && shards);
    for (uint64_t i = 0; i < N_LOCATED; i++)
        samples[i] = pen__rng_below(&huge.rng, N_SAMPLES);
    samples[0] = 0;
    samples[1] = N_SAMPLES - 1;
    for (int k = 0; k < ROUNDS; k++) {
        uint64_t start = now_ns();
        for (uint64_t i = 0; i < N_LOCATED; i++)
            shards[i] = pen__pack_shard_of(huge.pack, samples[i] / K);
        best = PEN_MIN(best, (double)(now_ns() - start) / N_LOCATED);
    }
    for (uint64_t i = 0; i < N_LOCATED; i++) {
        const PenShardEntry *s = &huge.m.shards[shards[i]];
        uint64_t block = samples[i] / K;
        wrong += block < s->first_block || block >= s->first_block + s->blocks_used;
    }
    printf("locate: %d random samples, %.0f ns each, %" PRIu64 " wrong\n", N_LOCATED, best, wrong);
    free(samples);
    free(shards);
    CHECK_INT(wrong, 0);
    CHECK(best < MOST_LOCATE_NS);
}

/* ---- looking into shards --------------------------------------------------------------------- */

static int by_value(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a;
    uint64_t y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

static void print_times(const char *what, uint64_t *ns, uint64_t n, uint64_t reads, uint64_t opens)
{
    qsort(ns, n, sizeof *ns, by_value);
    printf("%s: %" PRIu64 " times, %.2f reads and %.2f opens each, median %.1f us, p99 %.1f us\n",
           what, n, (double)reads / (double)n, (double)opens / (double)n, (double)ns[n / 2] / 1e3,
           (double)ns[n * 99 / 100] / 1e3);
}

/* Each shard for the first time: its tail is read, with it the place of each of its blocks. */
TEST(finds_blocks_with_one_read)
{
    uint64_t *ns = calloc(huge.n_touched, sizeof *ns);
    uint64_t wrong = 0;
    MUST(ns);
    atomic_store(&n_reads, 0);
    atomic_store(&n_opens, 0);
    for (uint64_t i = 0; i < huge.n_touched; i++) {
        const Touched *t = &huge.touched[i];
        PenShardRef *ref = NULL;
        uint64_t start = now_ns();
        int r = pen__pack_shard(huge.pack, t->shard, &ref, NULL);
        PenBlockEntry e =
            r == PEN_OK ? pen__shard_block(&ref->shard, t->block) : (PenBlockEntry){0};
        ns[i] = now_ns() - start;
        wrong += e.offset != PEN_SHARD_HEADER_BYTES + t->block * huge.build.bytes;
        if (r == PEN_OK)
            pen__pack_shard_put(huge.pack, ref);
    }
    uint64_t reads = atomic_load(&n_reads);
    print_times("find block", ns, huge.n_touched, reads, atomic_load(&n_opens));
    free(ns);
    CHECK_INT(wrong, 0);
    CHECK_INT(reads, huge.n_touched);
}

/* All the way to a sample: the tail, the block's index, the payload. */
TEST(reads_samples_with_three_reads)
{
    uint64_t *ns = calloc(huge.n_touched, sizeof *ns);
    uint8_t *photo = malloc(PHOTO_BYTES);
    uint64_t wrong = 0;
    MUST(ns && photo);
    pen_pack_close(&huge.pack); /* so that none is open */
    MUST(pen_pack_open(huge.dir, NULL, &huge.pack, NULL) == PEN_OK);
    atomic_store(&n_reads, 0);
    atomic_store(&n_opens, 0);
    for (uint64_t i = 0; i < huge.n_touched; i++) {
        const Touched *t = &huge.touched[i];
        uint64_t sample =
            (huge.m.shards[t->shard].first_block + t->block) * K + pen__rng_below(&huge.rng, K);
        char key[KEY_BYTES + 1] = "", expected[KEY_BYTES + 1];
        size_t bytes = 0;
        uint64_t start = now_ns();
        int r = pen_pack_read(huge.pack, sample, 0, photo, PHOTO_BYTES, &bytes, NULL);
        ns[i] = now_ns() - start;
        if (r == PEN_OK)
            r = pen_pack_key(huge.pack, sample, key, sizeof key, &bytes, NULL);
        key_of(sample, expected);
        wrong += r != PEN_OK || bytes != KEY_BYTES || memcmp(key, expected, KEY_BYTES) != 0;
    }
    uint64_t reads = atomic_load(&n_reads);
    print_times("read sample", ns, huge.n_touched, reads, atomic_load(&n_opens));
    free(ns);
    free(photo);
    CHECK_INT(wrong, 0);
    CHECK_INT(reads, 3 * huge.n_touched);
}

int main(int argc, char **argv)
{
    TEST_START(argc, argv);
    make_pack();
    count_calls();
    RUN(opens_in_time_and_memory);
    RUN(locates_samples_in_time);
    RUN(finds_blocks_with_one_read);
    RUN(reads_samples_with_three_reads);
    pen_pack_close(&huge.pack);
    pen__block_build_fini(&huge.build);
    pen__schema_fini(&huge.m.schema);
    free(huge.m.shards);
    free(huge.touched);
    return TEST_END();
}
