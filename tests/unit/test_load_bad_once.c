/* SPDX-License-Identifier: Apache-2.0 */
/* A read that returns wrong bytes once: it is read again, and the batches are right. */
#include <stdatomic.h>

#include "clip_help.h"

static atomic_int n_reads, bad_from, bad_to;

/* Turns a bit in the middle of reads number bad_from to bad_to - 1. */
static int64_t sometimes_bad(int fd, void *buf, size_t bytes, uint64_t offset)
{
    int64_t n = pen__sys_real.pread(fd, buf, bytes, offset);
    if (n != (int64_t)bytes) /* a file of the system's; those of a pack are read in full */
        return n;
    int i = atomic_fetch_add(&n_reads, 1);
    if (i >= bad_from && i < bad_to)
        ((uint8_t *)buf)[n / 2] ^= 0x10;
    return n;
}

typedef struct Kind {
    const char *name;
    int n_batches; /* of 4 */
} Kind;

static const Kind images = {"images.pen", 5}, clips = {"clips.pen", 3};

typedef struct Pass {
    int result; /* batches, or the failure */
    uint64_t hash;
    int n_reads;
    PenLoaderStats stats;
} Pass;

static Pass run_pass(const Kind *kind, int from, int to)
{
    Pass p = {0};
    PenError err = {0};
    PenPack *pack = NULL;
    PenLoader *l = NULL;
    PenSys sys = pen__sys_real;
    PenSha256 hash;
    uint8_t sum[32];
    PenLoaderSettings s = kind == &clips ? clip_settings(4, "decode | clip 6 1 | center_crop 16")
                                         : help_loader_settings(4);
    s.threads = 1;
    n_reads = 0;
    bad_from = from;
    bad_to = to;
    sys.pread = sometimes_bad;
    pen__sha256_init(&hash);
    p.result = pen_pack_open(at(kind->name), NULL, &pack, &err);
    pen__sys = &sys;
    if (p.result == PEN_OK)
        p.result = pen_loader_open(pack, &s, &l, &err);
    if (p.result == PEN_OK)
        p.result = help_drain(l, &hash, -1, &err);
    if (p.result >= 0)
        pen_loader_stats(l, &p.stats);
    pen_loader_close(&l);
    pen_pack_close(&pack);
    pen__sys = &pen__sys_real;
    pen__sha256_final(&hash, sum);
    memcpy(&p.hash, sum, sizeof p.hash);
    p.n_reads = n_reads;
    return p;
}

static void check_once(const Kind *kind)
{
    Pass good = run_pass(kind, 0, 0);
    CHECK_INT(good.result, kind->n_batches);
    CHECK(good.n_reads > 4 * kind->n_batches);
    for (int i = 0; i < good.n_reads; i++) {
        Pass p = run_pass(kind, i, i + 1);
        CHECK_INT(p.result, kind->n_batches);
        CHECK(p.hash == good.hash);
        CHECK(p.n_reads > good.n_reads);
        CHECK_INT(p.stats.substituted, 0);
        CHECK_INT(p.stats.samples, 4 * kind->n_batches);
    }
}

TEST(bad_once_is_read_again)
{
    check_once(&images);
}

TEST(clips_that_are_bad_once_are_read_again)
{
    check_once(&clips);
}

/* What is bad twice in a row is no accident. */
static void check_twice(const Kind *kind)
{
    Pass good = run_pass(kind, 0, 0);
    int n_bad = 0;
    for (int i = 0; i < good.n_reads; i++)
        n_bad += run_pass(kind, i, i + 2).result == PEN_E_CORRUPT;
    CHECK(n_bad >= 4 * kind->n_batches); /* every sample at least */
    CHECK_INT(run_pass(kind, 0, INT32_MAX).result, PEN_E_CORRUPT);
}

TEST(bad_twice_is_an_error)
{
    check_twice(&images);
}

TEST(clips_that_are_bad_twice_are_an_error)
{
    check_twice(&clips);
}

int main(int argc, char **argv)
{
    TEST_START(argc, argv);
    help_begin();
    ClipSpec spec = {12, PEN_MODE_KEEP, clip_lengths, -1, -1};
    PenPack *packs[] = {help_load_pack(images.name, 20, -1, PEN_MODE_KEEP),
                        clip_pack(clips.name, &spec)};
    pen_pack_close(&packs[0]);
    pen_pack_close(&packs[1]);
    RUN(bad_once_is_read_again);
    RUN(clips_that_are_bad_once_are_read_again);
    RUN(bad_twice_is_an_error);
    RUN(clips_that_are_bad_twice_are_an_error);
    help_end();
    return TEST_END();
}
