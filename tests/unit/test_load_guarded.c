/* SPDX-License-Identifier: Apache-2.0 */
/* Every block of memory ends before a page that cannot be read: a kernel that reads further behind
 * its input than the input has room for ends the program. malloc's blocks, and those of sanitizers
 * where they are aligned, have readable memory behind them nearly always. */
#include <sys/mman.h>

#include "base/sys.h"
#include "load_help.h"

enum { N = 40, BATCH = 8, EPOCHS = 4, PAGE = 4096 };

static PenSys guarding;

/* In a page of its own, before the first one of the block. */
typedef struct Header {
    size_t bytes, map_bytes;
} Header;

static Header *header_of(void *p)
{
    return (Header *)(void *)((uint8_t *)p - (uintptr_t)p % PAGE - PAGE);
}

static void *guarded_alloc(size_t bytes)
{
    size_t room = (bytes + 15) / 16 * 16, pages = (room + PAGE - 1) / PAGE * PAGE;
    size_t map_bytes = pages + 2 * (size_t)PAGE;
    uint8_t *map =
        mmap(NULL, map_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (map == MAP_FAILED)
        return NULL;
    uint8_t *guard = map + PAGE + pages;
    if (mprotect(guard, PAGE, PROT_NONE) < 0)
        abort();
    *(Header *)(void *)map = (Header){bytes, map_bytes};
    return guard - room;
}

static void guarded_release(void *p)
{
    if (p)
        munmap(header_of(p), header_of(p)->map_bytes);
}

static void *guarded_resize(void *p, size_t bytes)
{
    void *grown = guarded_alloc(bytes);
    if (grown && p) {
        size_t before = header_of(p)->bytes;
        memcpy(grown, p, before < bytes ? before : bytes);
        guarded_release(p);
    }
    return grown;
}

static void load_all(PenPack *pack, const char *pipeline)
{
    PenError err = {0};
    PenLoader *l = NULL;
    PenBatch *b = NULL;
    PenLoaderSettings s = help_loader_settings(BATCH);
    s.pipeline = pipeline;
    CHECK_INT(pen_loader_open(pack, &s, &l, &err), PEN_OK);
    for (int epoch = 0; epoch < EPOCHS; epoch++) {
        int r;
        while ((r = pen_loader_next(l, -1, &b, &err)) == PEN_OK)
            pen_batch_unref(&b);
        CHECK_INT(r, PEN_END);
    }
    pen_loader_close(&l);
}

static void load_in(int mode, const char *name)
{
    PenPack *pack = help_load_pack(name, N, -1, mode);
    CHECK(pack);
    load_all(pack, "decode | random_resized_crop 24 | hflip | tensor u8");
    load_all(pack, "decode | random_resized_crop 64 filter=bicubic | tensor f16");
    load_all(pack, "decode | center_crop 16 | tensor u8 nhwc");
    pen_pack_close(&pack);
}

TEST(tiles)
{
    load_in(PEN_MODE_TILE, "tile.pen");
}

TEST(kept_files)
{
    load_in(PEN_MODE_KEEP, "keep.pen");
}

TEST(raw_pixels)
{
    load_in(PEN_MODE_RAW, "raw.pen");
}

int main(int argc, char **argv)
{
    TEST_START(argc, argv);
    guarding = pen__sys_real;
    guarding.alloc = guarded_alloc;
    guarding.resize = guarded_resize;
    guarding.release = guarded_release;
    pen__sys = &guarding;
    help_begin();
    RUN(tiles);
    RUN(kept_files);
    RUN(raw_pixels);
    help_end();
    return TEST_END();
}
