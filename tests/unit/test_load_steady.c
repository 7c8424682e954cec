/* SPDX-License-Identifier: Apache-2.0 */
/* What a sample costs once a loader has warmed up: its reads, and nothing else of the system's. */
#include <stdatomic.h>

#include "base/sys.h"
#include "load_help.h"

enum { N = 60, BATCH = 10, EPOCHS = 20 };

static PenSys counting;
static atomic_uint n_allocs, n_reads;

static void *count_alloc(size_t bytes)
{
    atomic_fetch_add(&n_allocs, 1);
    return pen__sys_real.alloc(bytes);
}

static void *count_resize(void *p, size_t bytes)
{
    atomic_fetch_add(&n_allocs, 1);
    return pen__sys_real.resize(p, bytes);
}

static int64_t count_pread(int fd, void *buf, size_t bytes, uint64_t offset)
{
    atomic_fetch_add(&n_reads, 1);
    return pen__sys_real.pread(fd, buf, bytes, offset);
}

static int pass(PenLoader *l)
{
    PenError err = {0};
    PenBatch *b = NULL;
    int r;
    while ((r = pen_loader_next(l, -1, &b, &err)) == PEN_OK)
        pen_batch_unref(&b);
    if (r < 0)
        printf("%s\n", err.message);
    return r < 0 ? r : pen_loader_begin(l, &err);
}

static int passes(PenLoader *l, int n)
{
    int r = PEN_OK;
    for (int i = 0; i < n && r == PEN_OK; i++)
        r = pass(l);
    return r;
}

static void measure(int mode, const char *name, double reads)
{
    PenError err = {0};
    PenLoader *l = NULL;
    PenPack *pack = help_load_pack(name, N, -1, mode);
    PenLoaderSettings s = help_loader_settings(BATCH);
    CHECK(pack);
    CHECK_INT(pen_loader_open(pack, &s, &l, &err), PEN_OK);
    CHECK_INT(passes(l, EPOCHS), PEN_OK);
    atomic_store(&n_allocs, 0);
    atomic_store(&n_reads, 0);
    CHECK_INT(passes(l, EPOCHS), PEN_OK);
    double samples = (double)N * EPOCHS;
    double allocs_each = atomic_load(&n_allocs) / samples;
    double reads_each = atomic_load(&n_reads) / samples;
    printf("%s: %.4f allocations and %.2f reads a sample\n", name, allocs_each, reads_each);
    /* A buffer still grows now and then, when a thread meets the largest crop so far. */
    CHECK(allocs_each < 0.02);
    /* An epoch begins a batch ahead, so a few more or fewer are counted. */
    CHECK(reads_each > reads - 0.1 && reads_each < reads + 0.1);
    pen_loader_close(&l);
    pen_pack_close(&pack);
}

TEST(a_tiled_sample_costs_two_reads)
{
    measure(PEN_MODE_TILE, "tile.pen", 2); /* its head and its rows */
}

TEST(a_small_indexed_sample_costs_one_read)
{
    measure(PEN_MODE_KEEP, "keep.pen", 1); /* its crop needs the run that follows its tables */
}

TEST(a_raw_sample_costs_one_read)
{
    measure(PEN_MODE_RAW, "raw.pen", 1);
}

int main(int argc, char **argv)
{
    TEST_START(argc, argv);
    counting = pen__sys_real;
    counting.alloc = count_alloc;
    counting.resize = count_resize;
    counting.pread = count_pread;
    pen__sys = &counting;
    help_begin();
    RUN(a_tiled_sample_costs_two_reads);
    RUN(a_small_indexed_sample_costs_one_read);
    RUN(a_raw_sample_costs_one_read);
    help_end();
    return TEST_END();
}
