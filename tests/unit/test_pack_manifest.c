/* SPDX-License-Identifier: Apache-2.0 */
#include "pack/format/manifest.h"

#include "base/bytes.h"
#include "base/crc32c.h"
#include "test.h"

enum { SHARDS = 3 };

static PenShardEntry shards[SHARDS];
static PenBuf bytes;

/* 3 shards of 2, 3 and 2 blocks of 10 samples; the last block has 4. */
static void make(void)
{
    static const PenField fields[] = {{.name = "image", .type = PEN_TYPE_IMAGE},
                                      {.name = "label", .type = PEN_TYPE_I64}};
    static const char *const classes[] = {"cat", "dog", ""};
    PenError err = {0};
    PenManifest m = {.block_samples = 10,
                     .n_shards = SHARDS,
                     .shards = shards,
                     .settings = "{\"mode\":\"tile\"}"};
    for (int i = 0; i < SHARDS; i++) {
        uint64_t n = i == 1 ? 3 : 2;
        shards[i] = (PenShardEntry){.blocks_used = n,
                                    .n_blocks = n,
                                    .samples_used = n * 10 - (i == 2 ? 6 : 0),
                                    .file_bytes = 1000,
                                    .largest_block = 400,
                                    .tail_bytes = n * PEN_BLOCK_ENTRY_BYTES + 8 + 128};
        memset(shards[i].id, i + 1, sizeof shards[i].id);
    }
    m.stats.source_bytes = 77;
    m.stats.images[PEN_STORED_JPEG][PEN_HOW_TILED] = 64;
    CHECK_INT(pen__schema_init(&m.schema, fields, 2, &err), PEN_OK);
    CHECK_INT(pen__schema_set_classes(&m.schema, 1, classes, 3, &err), PEN_OK);
    CHECK_INT(pen__manifest_write(&m, &bytes, &err), PEN_OK);
    CHECK_INT(m.n_samples, 64);
    CHECK_INT(m.n_blocks, 7);
    pen__schema_fini(&m.schema);
}

static int read_back(PenManifest *ret, const void *data, size_t n, PenError *err)
{
    PenSource *s = NULL;
    int r = pen__source_open_memory("test", data, n, &s, err);
    if (r == PEN_OK)
        r = pen__manifest_read(ret, s, err);
    pen__source_close(&s);
    return r;
}

TEST(comes_back)
{
    PenError err = {0};
    PenManifest m;
    make();
    CHECK_INT(read_back(&m, bytes.data, bytes.bytes, &err), PEN_OK);
    CHECK_INT(m.n_samples, 64);
    CHECK_INT(m.n_shards, SHARDS);
    CHECK_INT(m.shards[2].first_block, 5);
    CHECK_INT(m.shards[2].samples_used, 14);
    CHECK_STR(m.settings, "{\"mode\":\"tile\"}");
    CHECK_INT(m.schema.n_fields, 2);
    CHECK_STR(m.schema.classes[1], "dog");
    CHECK_STR(m.schema.classes[2], "");
    CHECK_INT(m.stats.source_bytes, 77);
    CHECK_INT(m.stats.images[PEN_STORED_JPEG][PEN_HOW_TILED], 64);
    pen__manifest_fini(&m);
}

TEST(every_flipped_bit_and_every_cut_is_noticed)
{
    PenError err = {0};
    PenManifest m;
    make();
    for (size_t i = 0; i < bytes.bytes * 8; i++) {
        bytes.data[i / 8] ^= (uint8_t)(1 << i % 8);
        int r = read_back(&m, bytes.data, bytes.bytes, &err);
        bytes.data[i / 8] ^= (uint8_t)(1 << i % 8);
        CHECK(r == PEN_E_CORRUPT || r == PEN_E_FORMAT);
    }
    for (size_t n = 0; n < bytes.bytes; n++)
        CHECK(read_back(&m, bytes.data, n, &err) < 0);
}

/* Puts a changed header or section right again as far as checksums go. */
static void repair(void)
{
    uint32_t n = pen__load32(bytes.data + 72);
    for (uint32_t i = 0; i < n; i++) {
        uint8_t *e = bytes.data + 128 + 32 * i;
        pen__store32(e + 24, pen__crc32c(0, bytes.data + pen__load64(e + 8), pen__load64(e + 16)));
    }
    pen__store32(bytes.data + 12, pen__crc32c(0, bytes.data + 16, 128 + 32 * (size_t)n - 16));
}

static uint8_t *section(const char *type)
{
    for (uint32_t i = 0; i < pen__load32(bytes.data + 72); i++) {
        uint8_t *e = bytes.data + 128 + 32 * i;
        if (memcmp(e, type, 4) == 0)
            return e;
    }
    return NULL;
}

static uint8_t *shard_entry(int i)
{
    return bytes.data + pen__load64(section("SHRD") + 8) + 96 * i;
}

#define CHECK_REFUSED(change, status, text)                                                        \
    do {                                                                                           \
        PenError err = {0};                                                                        \
        PenManifest m;                                                                             \
        make();                                                                                    \
        change;                                                                                    \
        repair();                                                                                  \
        CHECK_INT(read_back(&m, bytes.data, bytes.bytes, &err), status);                           \
        CHECK(strstr(err.message, text));                                                          \
    } while (0)

TEST(what_does_not_fit_is_refused)
{
    CHECK_REFUSED(pen__store64(bytes.data + 16, 32), PEN_E_FORMAT, "needs features 0x20");
    CHECK_REFUSED(pen__store64(bytes.data + 16, 8), PEN_E_CORRUPT,
                  "features do not match the fields");
    CHECK_REFUSED(pen__store32(bytes.data + 8, 0), PEN_E_FORMAT,
                  "format version 0, expected 1; made before the first release: pack the "
                  "sources again");
    CHECK_REFUSED(pen__store32(bytes.data + 8, 2), PEN_E_FORMAT,
                  "format version 2, expected 1; a newer penstock");
    CHECK_REFUSED(pen__store64(bytes.data + 32, 65), PEN_E_CORRUPT, "add up");
    CHECK_REFUSED(pen__store64(bytes.data + 40, 0), PEN_E_CORRUPT, "out of range");
    CHECK_REFUSED(pen__store64(bytes.data + 40, 1ull << 60), PEN_E_CORRUPT, "out of range");
    CHECK_REFUSED(pen__store64(bytes.data + 56, 1ull << 58), PEN_E_CORRUPT, "number");
    CHECK_REFUSED(pen__store64(shard_entry(1) + 16, 1), PEN_E_CORRUPT, "shard 1");
    CHECK_REFUSED(pen__store64(shard_entry(1) + 24, 0), PEN_E_CORRUPT, "shard 1");
    CHECK_REFUSED(pen__store64(shard_entry(1) + 24, UINT64_MAX), PEN_E_CORRUPT, "shard 1");
    CHECK_REFUSED(pen__store64(shard_entry(1) + 40, 29), PEN_E_CORRUPT, "shard 1");
    CHECK_REFUSED(pen__store64(shard_entry(2) + 40, 10), PEN_E_CORRUPT, "shard 2");
    CHECK_REFUSED(pen__store64(shard_entry(1) + 80, 3 * 32 + 120), PEN_E_CORRUPT, "shard 1");
    CHECK_REFUSED(pen__store64(shard_entry(1) + 80, 3 * 32 + 132), PEN_E_CORRUPT, "shard 1");
    CHECK_REFUSED(pen__store64(shard_entry(1) + 80, 944), PEN_E_CORRUPT, "shard 1");
    CHECK_REFUSED(pen__store64(shard_entry(1) + 80, UINT64_MAX - 7), PEN_E_CORRUPT, "shard 1");
    CHECK_REFUSED(pen__store64(shard_entry(1) + 48, 63), PEN_E_CORRUPT, "shard 1");
    CHECK_REFUSED(shard_entry(0)[90] = 1, PEN_E_CORRUPT, "a shard entry is not valid");
    CHECK_REFUSED(memcpy(section("STAT"), "SCHM", 4), PEN_E_CORRUPT, "");
    CHECK_REFUSED(section("STAT")[4] = 1; memcpy(section("STAT"), "WHAT", 4), PEN_E_FORMAT, "WHAT");
}

TEST(an_unknown_section_that_may_be_ignored_is)
{
    PenError err = {0};
    PenManifest m;
    make();
    memcpy(section("STAT"), "NEWS", 4);
    repair();
    CHECK_INT(read_back(&m, bytes.data, bytes.bytes, &err), PEN_OK);
    CHECK_INT(m.n_samples, 64);
    pen__manifest_fini(&m);
}

int main(int argc, char **argv)
{
    TEST_START(argc, argv);
    RUN(comes_back);
    RUN(every_flipped_bit_and_every_cut_is_noticed);
    RUN(what_does_not_fit_is_refused);
    RUN(an_unknown_section_that_may_be_ignored_is);
    pen__buf_free(&bytes);
    return TEST_END();
}
