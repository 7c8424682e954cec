/* SPDX-License-Identifier: Apache-2.0 */
/* A read that returns wrong bytes once: it is read again, and the batches are right. */
#include <stdatomic.h>

#include "load_help.h"

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

typedef struct Pass {
    int result; /* batches, or the failure */
    uint64_t hash;
    int n_reads;
    PenLoaderStats stats;
} Pass;

static Pass run_pass(int from, int to)
{
    Pass p = {0};
    PenError err = {0};
    PenPack *pack = NULL;
    PenLoader *l = NULL;
    PenSys sys = pen__sys_real;
    PenSha256 hash;
    uint8_t sum[32];
    PenLoaderSettings s = help_loader_settings(4);
    s.threads = 1;
    n_reads = 0;
    bad_from = from;
    bad_to = to;
    sys.pread = sometimes_bad;
    pen__sha256_init(&hash);
    p.result = pen_pack_open(at("pack.pen"), &pack, &err);
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

TEST(bad_once_is_read_again)
{
    Pass good = run_pass(0, 0);
    CHECK_INT(good.result, 5);
    CHECK(good.n_reads > 20);
    for (int i = 0; i < good.n_reads; i++) {
        Pass p = run_pass(i, i + 1);
        CHECK_INT(p.result, 5);
        CHECK(p.hash == good.hash);
        CHECK(p.n_reads > good.n_reads);
        CHECK_INT(p.stats.substituted, 0);
        CHECK_INT(p.stats.samples, 20);
    }
}

/* What is bad twice in a row is no accident. */
TEST(bad_twice_is_an_error)
{
    Pass good = run_pass(0, 0);
    int n_bad = 0;
    for (int i = 0; i < good.n_reads; i++)
        n_bad += run_pass(i, i + 2).result == PEN_E_CORRUPT;
    CHECK(n_bad >= 20); /* every image at least */
    CHECK_INT(run_pass(0, INT32_MAX).result, PEN_E_CORRUPT);
}

int main(int argc, char **argv)
{
    TEST_START(argc, argv);
    help_begin();
    PenPack *pack = help_load_pack("pack.pen", 20, -1, PEN_MODE_TILE);
    pen_pack_close(&pack);
    RUN(bad_once_is_read_again);
    RUN(bad_twice_is_an_error);
    help_end();
    return TEST_END();
}
