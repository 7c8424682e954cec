/* SPDX-License-Identifier: Apache-2.0 */
#include "pack_help.h"

void help_jpeg(uint32_t number, PenBuf *out)
{
    JpegSpec spec = {.width = 200 + number % 5 * 16,
                     .height = 120 + number % 7 * 8,
                     .quality = 80 + (int)(number % 15),
                     .h = 2,
                     .v = 2,
                     .orientation = (int)(number % 9)};
    make_jpeg(&spec, out);
}

void help_folder(const char *folder, uint32_t first, uint32_t n)
{
    PenBuf jpeg = {0};
    for (uint32_t i = first; i < first + n; i++) {
        char name[256];
        help_jpeg(i, &jpeg);
        snprintf(name, sizeof name, "%s/class-%u/%03u.jpg", folder, i % 3, i);
        help_file(name, jpeg.data, jpeg.bytes);
        CHECK_OK_SO_FAR();
    }
    pen__buf_free(&jpeg);
}

PenIngestSettings help_ingest(const char *folder, const char *out)
{
    static char paths[2][4400];
    static const char *sources[1];
    PenIngestSettings s;
    snprintf(paths[0], sizeof paths[0], "%s", at(folder));
    snprintf(paths[1], sizeof paths[1], "%s", at(out));
    sources[0] = paths[0];
    pen_ingest_settings_init(&s);
    s.sources = sources;
    s.n_sources = 1;
    s.out = paths[1];
    s.block_samples = 4;
    s.shard_bytes = 40000;
    s.threads = 1;
    return s;
}

void help_read(PenPack *pack, uint64_t sample, uint32_t field, PenBuf *out)
{
    PenError err = {0};
    size_t bytes = 0;
    CHECK_INT(pen_pack_read(pack, sample, field, NULL, 0, &bytes, &err), PEN_OK);
    out->bytes = 0;
    CHECK_INT(pen__buf_reserve(out, bytes + 1), PEN_OK);
    CHECK_INT(pen_pack_read(pack, sample, field, out->data, bytes, &out->bytes, &err), PEN_OK);
    CHECK_INT(out->bytes, bytes);
}

void help_check_image(PenPack *pack, uint64_t sample, PenBuf *found, PenBuf *expected)
{
    char key[64] = "", number[8] = "";
    size_t n = 0;
    CHECK_INT(pen_pack_key(pack, sample, key, sizeof key - 1, &n, NULL), PEN_OK);
    memcpy(number, key + n - 7, 3);
    help_read(pack, sample, 0, found);
    help_jpeg((uint32_t)strtoul(number, NULL, 10), expected);
    CHECK_INT(found->bytes, expected->bytes);
    CHECK(memcmp(found->data, expected->data, found->bytes) == 0);
}
