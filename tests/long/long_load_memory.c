/* SPDX-License-Identifier: Apache-2.0 */
/* Sixteen threads on images that are far too large: the process grows by no more than `memory` and
 * 64 MiB, or an error names the limit. Where there are memory cgroups, the kernel watches too. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/attr.h"
#include "lib/big_images.h"
#include "lib/load_pack.h"
#include "lib/sweep.h"
#include "lib/tree.h"
#include "unit/test.h"

enum { THREADS = 16, SLACK_MIB = 64, CHILD_SECONDS = 300 };
#define MiB (1ull << 20)

typedef enum Coding { BASELINE, PROGRESSIVE, PNG, MIXED } Coding;

typedef struct Kind {
    const char *name;
    Coding coding;
    uint32_t width, height, n;
    bool subsample;
    bool sampled; /* also in the sample */
} Kind;

static const Kind kinds[] = {
    {"baseline, 60 megapixels", BASELINE, 10000, 6000, 16, true, true},
    {"baseline 4:4:4, 60 megapixels", BASELINE, 10000, 6000, 16, false, false},
    {"baseline, 60,000 wide", BASELINE, 60000, 1000, 16, true, false},
    {"progressive, 60 megapixels", PROGRESSIVE, 10000, 6000, 16, true, true},
    {"PNG, 60 megapixels", PNG, 10000, 6000, 16, false, true},
    {"progressive, 16 megapixels", PROGRESSIVE, 4600, 3450, 32, true, false},
    {"progressive, 12 megapixels", PROGRESSIVE, 4000, 3000, 32, true, true},
    {"PNG, 12 megapixels", PNG, 4000, 3000, 32, false, false},
    {"PNG, 5 megapixels", PNG, 2560, 2048, 32, false, true},
    {"all of them, 2 megapixels", MIXED, 1600, 1200, 96, true, false},
};
static const uint64_t memories[] = {256, 512};

static const char *const pipelines[] = {
    "decode | random_resized_crop 224 | hflip | tensor u8 nhwc",
    "decode | resize 256 | center_crop 224 | color_jitter 0.1 0.1 0.1 0.1 | tensor f32",
    "decode | resize 1536,1536 | tensor f32"}; /* 27 MiB each */

typedef struct Case {
    const Kind *kind;
    const char *dir;
    const char *cgroup; /* "" = none */
    uint64_t memory;    /* MiB */
    struct Seen {       /* shared with the child */
        uint64_t growth_kib, batches, refused;
    } * seen;
} Case;

/* ---- packs ----------------------------------------------------------------------------------- */

/* The same bytes for all samples of a kind; only what differs is made anew. */
static void kind_image(void *ctx, uint32_t i, LoadImage *image)
{
    static PenBuf kept[3];
    static const Kind *of;
    const Kind *k = ctx;
    uint32_t coding = k->coding == MIXED ? i % 3 : (uint32_t)k->coding;
    PenBuf *b = &kept[coding];
    if (of != k)
        for (int c = 0; c < 3; c++)
            pen__buf_free(&kept[c]);
    of = k;
    if (!b->bytes && coding == PNG)
        big_png(k->width, k->height, b);
    else if (!b->bytes)
        big_jpeg(&(BigSpec){k->width, k->height, 3, k->subsample, coding == PROGRESSIVE, false, 0},
                 b);
    image->file.bytes = 0;
    MUST(pen__buf_add(&image->file, b->data, b->bytes) == 0);
    image->width = k->width;
    image->height = k->height;
    image->channels = 3;
    image->codec = coding == PNG ? PEN_STORED_PNG : PEN_STORED_JPEG;
}

/* ---- control groups -------------------------------------------------------------------------- */

static bool write_text(const char *dir, const char *name, const char *text)
{
    char path[400];
    snprintf(path, sizeof path, "%s/%s", dir, name);
    int fd = open(path, O_WRONLY | O_CLOEXEC);
    bool ok = fd >= 0 && write(fd, text, strlen(text)) == (ssize_t)strlen(text);
    if (fd >= 0)
        close(fd);
    return ok;
}

/* A group of our own; "" when there are none, or they are not ours to make. */
static const char *make_cgroup(void)
{
    static const char *const tops[] = {"/sys/fs/cgroup/memory", "/sys/fs/cgroup"};
    static char dir[300];
    for (size_t i = 0; i < PEN_LEN(tops); i++) {
        snprintf(dir, sizeof dir, "%s/penstock-test-%d", tops[i], (int)getpid());
        if (mkdir(dir, 0755) < 0)
            continue;
        if (write_text(dir, "memory.limit_in_bytes", "1G") || write_text(dir, "memory.max", "1G"))
            return dir;
        rmdir(dir);
    }
    return "";
}

static void enter_cgroup(const Case *c)
{
    char bytes[32], pid[32];
    if (!c->cgroup[0])
        return;
    /* What the process has already is not counted: it was charged to where it comes from. */
    snprintf(bytes, sizeof bytes, "%llu", (c->memory + SLACK_MIB) * MiB);
    snprintf(pid, sizeof pid, "%d", (int)getpid());
    MUST(write_text(c->cgroup, "memory.limit_in_bytes", bytes) ||
         write_text(c->cgroup, "memory.max", bytes));
    MUST(write_text(c->cgroup, "cgroup.procs", pid));
}

/* ---- one case -------------------------------------------------------------------------------- */

static int load_all(const Case *c, PenPack *pack, const char *pipeline)
{
    PenLoader *l = NULL;
    PenError e = {0};
    int failed = 0, r;
    bool fill = pipeline == pipelines[2]; /* the ring */
    PenLoaderSettings s = load_settings(fill ? (uint32_t)c->memory / 128 : 8);
    s.pipeline = pipeline;
    s.threads = THREADS;
    s.io_threads = 4;
    s.memory_bytes = c->memory * MiB;
    s.stall_ms = CHILD_SECONDS * 1000;
    MUST(pen_loader_open(pack, &s, &l, NULL) == PEN_OK);
    do {
        PenBatch *b = NULL;
        r = pen_loader_next(l, -1, &b, &e);
        c->seen->batches += r == PEN_OK;
        c->seen->refused += r < 0;
        if (r < 0 && (r != PEN_E_LIMIT || !strstr(e.message, "memory=")))
            failed = printf("  %s: status %d: %s\n", c->kind->name, r, e.message) > 0;
        pen_batch_unref(&b);
    } while (r != PEN_END && r != PEN_E_TIMEOUT);
    pen_loader_close(&l);
    return failed;
}

static int run_case(void *ctx)
{
    const Case *c = ctx;
    PenPack *pack = load_pack_open(c->dir);
    int failed = 0;
    enter_cgroup(c);
    MUST(write_text("/proc/self", "clear_refs", "5")); /* the peak begins here */
    LoadHeld before = load_held();
    for (size_t i = scaled(0, 1); i < PEN_LEN(pipelines); i++)
        failed |= load_all(c, pack, pipelines[i]);
    LoadHeld after = load_held();
    pen_pack_close(&pack);
    c->seen->growth_kib = after.peak_kib - before.rss_kib;
    if (!load_is_sanitized() && c->seen->growth_kib > (c->memory + SLACK_MIB) * 1024)
        failed = printf("  %s: grown by %" PRIu64 " MiB, memory is %" PRIu64 "\n", c->kind->name,
                        c->seen->growth_kib / 1024, c->memory) > 0;
    return failed;
}

static void try_kind(Sweep *sweep, const Kind *kind, Case *c)
{
    LoadSpec spec = {kind->n, LOAD_AS_IS, 4, 64 << 20, kind_image, (void *)(uintptr_t)kind};
    c->kind = kind;
    c->dir = scratch("large.pen");
    load_pack_write(c->dir, &spec);
    for (size_t m = 0; m < PEN_LEN(memories); m++, sweep->n++) {
        c->memory = memories[m];
        *c->seen = (struct Seen){0};
        int r = load_child_end(load_child_start(run_case, c, CHILD_SECONDS));
        if (r)
            sweep_bad(sweep, "%s, memory %" PRIu64 " MiB: ended with %d", kind->name, c->memory, r);
        printf("%s, memory %" PRIu64 " MiB: grown by %" PRIu64 " MiB, %" PRIu64 " batches, %" PRIu64
               " refused\n",
               kind->name, c->memory, c->seen->growth_kib / 1024, c->seen->batches,
               c->seen->refused);
    }
    dir_remove(c->dir);
}

TEST(large_images_stay_inside_the_memory)
{
    Sweep sweep = sweep_begin("large images");
    Case c = {.cgroup = load_is_sanitized() ? "" : make_cgroup(),
              .seen = mmap(NULL, sizeof *c.seen, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS,
                           -1, 0)};
    MUST(c.seen != MAP_FAILED);
    for (size_t i = 0; i < PEN_LEN(kinds); i++)
        if (kinds[i].sampled || scale_is_full())
            try_kind(&sweep, &kinds[i], &c);
    if (c.cgroup[0])
        rmdir(c.cgroup);
    munmap(c.seen, sizeof *c.seen);
    sweep_end(&sweep, "%" PRIu64 " cases on %d threads, %s", sweep.n, THREADS,
              c.cgroup[0] ? "each in a memory cgroup of memory + 64 MiB" : "without a cgroup");
    CHECK_INT(sweep.bad, 0);
}

int main(int argc, char **argv)
{
    TEST_START(argc, argv);
    RUN(large_images_stay_inside_the_memory);
    return TEST_END();
}
