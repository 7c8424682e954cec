/* SPDX-License-Identifier: Apache-2.0 */
/* A plan file, read item by item and part by part. The first byte says what of it is put right
 * before (1 checksums, 2 places), or that the rest is a list of which a plan is made first (4). */
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "base/crc32c.h"
#include "help.h"
#include "ingest/plan/plan_impl.h"
#include "memory_fs.h"

enum { SUMS = 1, PLACES = 2, FROM_LIST = 4, MAX_ITEMS = 256, RECORD = 512, N_TASKS = 5 };

/* ---- files that the parts may lie in --------------------------------------------------------- */

static uint8_t *put_member(uint8_t *to, const char *name, const char *text)
{
    size_t bytes = strlen(text);
    unsigned sum = 8 * ' ';
    memset(to, 0, 2 * RECORD);
    memcpy(to, name, strlen(name));
    memcpy(to + 100, "0000644", 8);
    memcpy(to + 124, "00000000000", 12);
    to[134] = (uint8_t)('0' + bytes); /* texts are that short */
    to[156] = '0';
    memcpy(to + 257, "ustar\00000", 8);
    for (size_t i = 0; i < RECORD; i++)
        sum += to[i];
    for (int i = 5; i >= 0; i--, sum >>= 3)
        to[148 + i] = (uint8_t)('0' + (sum & 7));
    to[155] = ' ';
    memcpy(to + RECORD, text, bytes);
    return to + 2 * RECORD;
}

/* gzip without compressing, so that its size does not depend on a library. */
static void put_gzip(uint8_t *to, const uint8_t *data, size_t bytes)
{
    static const uint8_t head[] = {0x1F, 0x8B, 8, 0, 0, 0, 0, 0, 0, 3, 1};
    memcpy(to, head, sizeof head);
    pen__store16(to + 11, (uint16_t)bytes);
    pen__store16(to + 13, (uint16_t)~bytes);
    memcpy(to + 15, data, bytes);
    pen__store32(to + 15 + bytes, crc32_of(data, bytes));
    pen__store32(to + 19 + bytes, (uint32_t)bytes);
}

static void put_files(void)
{
    static uint8_t tar[5 * 2 * RECORD], packed[sizeof tar + 23]; /* end in an empty member */
    if (!tar[0]) {
        uint8_t *end = put_member(tar, ".hidden", "x");
        end = put_member(end, "k1.jpg", "first");
        end = put_member(end, "k1.cls", "7");
        put_member(end, "k2.jpg", "second");
        put_gzip(packed, tar, sizeof tar);
    }
    fs_folder("d");
    fs_folder("d/f");
    fs_file("d/f/1.png", "first", 5);
    fs_file("d/f/2.png", "second", 6);
    fs_file("d/a.png", "0123456789", 10);
    fs_file("t.tar", tar, sizeof tar);
    fs_file("t.tgz", packed, sizeof packed);
}

/* ---- the plan -------------------------------------------------------------------------------- */

static void repair_records(uint8_t *data, size_t bytes, const uint8_t *foot)
{
    uint64_t table = pen__load64(foot + PEN_FOOT_TABLE_OFFSET);
    uint64_t n = pen__load64(foot + PEN_FOOT_N_ITEMS);
    for (uint64_t i = 0; i < n && n <= bytes; i++) {
        uint64_t at = table + i * PEN_PLAN_ENTRY;
        if (!pen__range_ok(at, PEN_PLAN_ENTRY, bytes))
            return;
        uint64_t offset = pen__load64(data + at);
        uint32_t length = pen__load32(data + at + 8);
        if (pen__range_ok(offset, length, bytes)) {
            uint32_t crc = pen__crc32c(0, &i, sizeof i);
            crc = pen__crc32c(crc, data + offset, length);
            pen__store32(
                data + at + 12,
                pen__crc32c(crc, data + at + PEN_PLAN_ENTRY - PEN_ENTRY_INPUTS, PEN_ENTRY_INPUTS));
        }
    }
}

/* Between the table and the texts, as many as the number of items asks for. */
static uint64_t marks_bytes(const uint8_t *foot)
{
    return 8 * pen__marks_count(pen__load64(foot + PEN_FOOT_N_ITEMS),
                                pen__load32(foot + PEN_FOOT_STRIDE));
}

static void repair_marks(const uint8_t *data, size_t bytes, uint8_t *foot)
{
    uint64_t texts = pen__load64(foot + PEN_FOOT_TEXTS_OFFSET), n = marks_bytes(foot);
    if (n <= texts && texts <= bytes)
        pen__store32(foot + PEN_FOOT_MARKS_CRC, pen__crc32c(0, data + (texts - n), (size_t)n));
}

static void repair(uint8_t *data, size_t bytes, int what)
{
    if (bytes < PEN_PLAN_HEAD + PEN_PLAN_FOOT)
        return;
    uint8_t *foot = data + bytes - PEN_PLAN_FOOT;
    if (what & PLACES) {
        uint64_t table = pen__load64(foot + PEN_FOOT_TABLE_OFFSET);
        uint64_t n = pen__load64(foot + PEN_FOOT_N_ITEMS);
        memcpy(data, PEN_PLAN_MAGIC, 8);
        uint32_t version =
            pen__load32(foot + PEN_FOOT_STRIDE) ? PEN_PLAN_VERSION : PEN_PLAN_UNMARKED;
        pen__store64(data + 8, version);
        memcpy(foot, PEN_PLAN_END_MAGIC, 8);
        pen__store32(foot + PEN_FOOT_VERSION, version);
        pen__store64(foot + PEN_FOOT_FILE_BYTES, bytes);
        pen__store64(foot + PEN_FOOT_TEXTS_OFFSET, table + n * PEN_PLAN_ENTRY + marks_bytes(foot));
    }
    repair_records(data, bytes, foot);
    repair_marks(data, bytes, foot);
    uint64_t texts = pen__load64(foot + PEN_FOOT_TEXTS_OFFSET);
    if (texts <= bytes - PEN_PLAN_FOOT)
        pen__store32(foot + PEN_FOOT_TEXTS_CRC,
                     pen__crc32c(0, data + texts, bytes - PEN_PLAN_FOOT - (size_t)texts));
    pen__store32(foot + PEN_FOOT_CRC,
                 pen__crc32c(0, foot + PEN_FOOT_FILE_BYTES, PEN_PLAN_FOOT - PEN_FOOT_FILE_BYTES));
}

static int count_frame(void *n, PenBuf *data, PenError *reterr)
{
    (void)reterr;
    require_written(data->data, data->bytes);
    ++*(uint64_t *)n;
    return PEN_OK;
}

static void read_part(const PenPlan *plan, PenPartReader *reader, const PenPart *part)
{
    PenError err;
    PenBuf out = {0};
    uint64_t disk = 0;
    for (size_t cap = 1; cap <= 256; cap *= 16) {
        char *name = malloc(cap);
        pen__part_name(plan, part, name, cap);
        REQUIRE(strlen(name) < cap);
        free(name);
    }
    if (GOES(pen__part_read(reader, part, &out, &disk, &err)))
        REQUIRE(out.bytes == part->bytes);
    pen__buf_free(&out);
    if (!pen__part_has_frames(part))
        return;
    uint64_t n = 0;
    char name[64];
    if (GOES(pen__part_frames(reader, part, count_frame, &n, &disk, &err)))
        REQUIRE(n == part->offset);
    pen__part_frame_name(plan, part, "key", n, name, sizeof name);
    REQUIRE(strlen(name) < sizeof name);
}

/* Every item in exactly one part, whatever the plan says of sizes. */
static void split_plan(const PenPlan *plan, bool all)
{
    PenError err;
    uint64_t before = 0, at = 0, n = pen__plan_info(plan)->n_items;
    for (uint32_t task = 0; task <= N_TASKS; task++, before = at) {
        int r = CALL(pen__plan_split(plan, task, N_TASKS, &at, &err));
        REQUIRE(r == PEN_OK || !all);
        if (r < 0)
            return;
        REQUIRE(at >= before && at <= n && (task || !at));
    }
    REQUIRE(at == n);
}

/* `all`: it is the library's own, every item has to be there. */
static void read_plan(bool all)
{
    PenError err;
    PenPlan *plan = NULL;
    PenPartReader *reader = NULL;
    PenBuf scratch = {0};
    PenItem item;
    if (all)
        MUST(pen__plan_open("plan", &plan, &err));
    else if (!GOES(pen__plan_open("plan", &plan, &err)))
        return;
    const PenPlanInfo *info = pen__plan_info(plan);
    REQUIRE(info->n_fields && info->block_samples && info->settings);
    for (uint32_t i = 0; i < info->n_classes; i++)
        REQUIRE(info->classes[i]);
    MUST(pen__part_reader_open(plan, &reader, &err));
    for (uint64_t i = 0; i < info->n_items && i < MAX_ITEMS; i++) {
        int r = CALL(pen__plan_item(plan, i, &item, &scratch, &err));
        REQUIRE(r == PEN_OK || !all);
        if (r < 0)
            continue;
        REQUIRE(item.n_parts == info->n_fields && item.key_bytes);
        for (uint32_t f = 0; f < item.n_parts; f++)
            read_part(plan, reader, &item.parts[f]);
    }
    REQUIRE(CALL(pen__plan_item(plan, info->n_items, &item, &scratch, &err)) == PEN_E_NOT_FOUND);
    split_plan(plan, all);
    uint8_t hash[32];
    MUST(pen__plan_hash(plan, 0, UINT64_MAX, hash, &err));
    require_written(hash, sizeof hash);
    if (all) /* nothing has changed since */
        MUST(pen__plan_check_all(plan, &err));
    else
        (void)CALL(pen__plan_check_all(plan, &err));
    pen__part_reader_close(&reader);
    pen__buf_free(&scratch);
    pen__plan_close(&plan);
}

static void plan_list(const uint8_t *data, size_t bytes)
{
    PenError err;
    static const char *const sources[] = {"list.csv"};
    PenIngestSettings settings;
    PenPlanRequest request = {.settings = &settings, .settings_text = "{}"};
    pen_ingest_settings_init(&settings);
    settings.sources = sources;
    settings.n_sources = 1;
    settings.skip_bad = 1; /* so that the files need not be there */
    settings.mode = PEN_MODE_KEEP;
    fs_file("list.csv", data, bytes);
    if (GOES(pen__plan_make(&request, "plan", &err)))
        read_plan(true);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    if (!bytes)
        return 0;
    uint8_t *exact = copy_of(data + 1, bytes - 1);
    fs_begin(0);
    put_files();
    if (data[0] & FROM_LIST) {
        plan_list(exact, bytes - 1);
    } else {
        if (data[0] & (SUMS | PLACES))
            repair(exact, bytes - 1, data[0]);
        fs_file("plan", exact, bytes - 1);
        read_plan(false);
    }
    fs_end();
    free(exact);
    return 0;
}
