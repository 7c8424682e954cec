/* SPDX-License-Identifier: Apache-2.0 */
#include "ingest/job/writer_plan.h"

#include <string.h>

#include "base/bytes.h"
#include "base/crc32c.h"
#include "base/sha256.h"
#include "base/sys.h"
#include "io/source.h"
#include "manage/work.h"
#include "pack/format/format.h"

#define WHERE "ingest/writer"
/* The names of the classes are the largest part. */
#define MAX_BYTES ((uint64_t)256 << 20)

/* Layout: magic 8, n_tasks u32, has_entries u32, block_samples u64, shard_bytes u64; four u32: the
 * bytes of the settings, the schema, the classes and the name of the data; random bytes 16; these
 * four; last a crc u32 over all before it. */
enum {
    HEAD_BYTES = 64,
    LENGTHS = 32,
    RANDOM = 48,
    RANDOM_BYTES = 16,
    CRC_BYTES = 4,
    MAGIC_BYTES = 8
};
enum { SETTINGS, SCHEMA, CLASSES, NAME, N_PARTS };
static const uint8_t magic[MAGIC_BYTES + 1] = "PENWPLN2";

/* ---- writing --------------------------------------------------------------------------------- */

static int write_parts(const PenWriterPlan *plan, const char *name, PenBuf parts[N_PARTS])
{
    int r = pen__buf_add(&parts[SETTINGS], plan->settings, strlen(plan->settings));
    if (r == PEN_OK)
        r = pen__schema_write(&plan->schema, &parts[SCHEMA]);
    if (r == PEN_OK && plan->schema.class_field >= 0)
        r = pen__classes_write(&plan->schema, &parts[CLASSES]);
    return r < 0 ? r : pen__buf_add(&parts[NAME], name, strlen(name));
}

static int write_all(const PenWriterPlan *plan, const PenBuf parts[N_PARTS], PenBuf *ret)
{
    uint8_t head[HEAD_BYTES] = {0}, crc[CRC_BYTES];
    memcpy(head, magic, MAGIC_BYTES);
    pen__store32(head + 8, plan->n_tasks);
    pen__store32(head + 12, (uint32_t)plan->schema.has_entries);
    pen__store64(head + 16, plan->block_samples);
    pen__store64(head + 24, plan->shard_bytes);
    for (int i = 0; i < N_PARTS; i++)
        pen__store32(head + LENGTHS + 4 * i, (uint32_t)parts[i].bytes);
    int r = pen__buf_add(ret, head, sizeof head);
    for (int i = 0; i < N_PARTS && r == PEN_OK; i++)
        r = pen__buf_add(ret, parts[i].data, parts[i].bytes);
    if (r < 0)
        return r;
    pen__store32(crc, pen__crc32c(0, ret->data, ret->bytes));
    return pen__buf_add(ret, crc, sizeof crc);
}

static void set_random(PenBuf *plan, const uint8_t random[RANDOM_BYTES])
{
    size_t end = plan->bytes - CRC_BYTES;
    memcpy(plan->data + RANDOM, random, RANDOM_BYTES);
    pen__store32(plan->data + end, pen__crc32c(0, plan->data, end));
}

int pen__writer_plan_draw(PenBuf *plan, PenError *reterr)
{
    uint8_t random[RANDOM_BYTES];
    int r = pen__sys->random(random, sizeof random);
    if (r < 0)
        return pen__fail_os(reterr, -r, WHERE, "cannot get random bytes");
    set_random(plan, random);
    return PEN_OK;
}

void pen__writer_plan_job(const PenBuf *plan, uint8_t ret[32])
{
    pen__sha256(plan->data, plan->bytes, ret);
}

int pen__writer_plan_write(PenWriterPlan *plan, const char *name, PenBuf *ret, PenError *reterr)
{
    PenBuf parts[N_PARTS] = {{0}};
    int r = write_parts(plan, name, parts);
    uint64_t bytes = HEAD_BYTES + CRC_BYTES;
    for (int i = 0; i < N_PARTS; i++)
        bytes += parts[i].bytes;
    if (r == PEN_OK && bytes > MAX_BYTES)
        r = pen__fail(reterr, PEN_E_LIMIT, WHERE,
                      "expected at most 256 MiB of fields and class names in a task, found more");
    else if (r < 0 || write_all(plan, parts, ret) < 0)
        r = pen__fail_memory(reterr, WHERE, "plan of a writer");
    if (r == PEN_OK)
        pen__sha256(ret->data, ret->bytes, plan->id);
    for (int i = 0; i < N_PARTS; i++)
        pen__buf_free(&parts[i]);
    return r;
}

/* ---- reading --------------------------------------------------------------------------------- */

static int fail_damaged(const char *name, PenError *reterr)
{
    return pen__fail(
        reterr, PEN_E_CORRUPT, WHERE,
        "%s: damaged; discard what the tasks have written with 'penstock gc --abandon'", name);
}

static int parse_head(const PenBuf *b, PenWriterPlan *ret, uint64_t lengths[N_PARTS])
{
    const uint8_t *p = b->data;
    if (b->bytes < HEAD_BYTES + CRC_BYTES || memcmp(p, magic, MAGIC_BYTES) != 0 ||
        pen__crc32c(0, p, b->bytes - CRC_BYTES) != pen__load32(p + b->bytes - CRC_BYTES))
        return 0;
    uint64_t sum = HEAD_BYTES + CRC_BYTES;
    for (int i = 0; i < N_PARTS; i++)
        sum += lengths[i] = pen__load32(p + LENGTHS + 4 * i);
    ret->n_tasks = pen__load32(p + 8);
    ret->block_samples = pen__load64(p + 16);
    ret->shard_bytes = pen__load64(p + 24);
    return sum == b->bytes && ret->n_tasks && ret->block_samples &&
           ret->block_samples <= PEN_MAX_BLOCK_SAMPLES &&
           lengths[SETTINGS] < PEN_SETTINGS_TEXT_BYTES;
}

static int parse(PenBuf *b, const char *name, PenWriterPlan *ret, PenError *reterr)
{
    uint64_t lengths[N_PARTS];
    if (!parse_head(b, ret, lengths))
        return fail_damaged(name, reterr);
    const uint8_t *p = b->data + HEAD_BYTES;
    memcpy(ret->settings, p, (size_t)lengths[SETTINGS]);
    p += lengths[SETTINGS];
    int r = pen__schema_read(&ret->schema, p, (size_t)lengths[SCHEMA], reterr);
    p += lengths[SCHEMA];
    if (r == PEN_OK && lengths[CLASSES])
        r = pen__classes_read(&ret->schema, p, (size_t)lengths[CLASSES], reterr);
    if (r < 0) {
        pen__error_prefix(reterr, "%s", name);
        return r;
    }
    static const uint8_t zeros[RANDOM_BYTES];
    ret->schema.has_entries = pen__load32(b->data + 12) != 0;
    pen__writer_plan_job(b, ret->job);
    set_random(b, zeros);
    pen__sha256(b->data, b->bytes, ret->id);
    return PEN_OK;
}

/* An entire plan of a writer: 1 there, 0 none or one of 'penstock plan', which may be large. */
static int load(PenStore *store, PenBuf *ret, PenError *reterr)
{
    PenSource *source = NULL;
    uint8_t start[MAGIC_BYTES];
    int r = pen__store_source(store, PEN_SHARED_PLAN, &source, reterr);
    if (r < 0)
        return pen__error_accept(r, PEN_E_NOT_FOUND, reterr);
    size_t n = (size_t)source->bytes;
    int is_ours = source->bytes >= sizeof start && source->bytes <= MAX_BYTES;
    if (is_ours)
        r = pen__source_read(source, start, sizeof start, 0, reterr);
    is_ours = is_ours && r == PEN_OK && memcmp(start, magic, sizeof start) == 0;
    if (is_ours && pen__buf_reserve(ret, n) < 0)
        r = pen__fail_memory(reterr, WHERE, source->name);
    if (is_ours && r == PEN_OK)
        r = pen__source_read(source, ret->data, n, 0, reterr);
    if (is_ours && r == PEN_OK)
        ret->bytes = n;
    pen__source_close(&source);
    return r < 0 ? r : is_ours;
}

int pen__writer_plan_load(PenStore *store, PenWriterPlan *ret, PenError *reterr)
{
    PenBuf b = {0};
    *ret = (PenWriterPlan){.schema = {.class_field = -1}};
    int r = load(store, &b, reterr);
    if (r == 1) {
        r = parse(&b, pen__store_name(store), ret, reterr);
        r = r < 0 ? r : 1;
    }
    if (r < 0)
        pen__schema_fini(&ret->schema);
    pen__buf_free(&b);
    return r;
}

int pen__writer_plan_is_there(PenStore *store, PenError *reterr)
{
    PenBuf b = {0};
    int r = load(store, &b, reterr);
    pen__buf_free(&b);
    return r;
}

int pen__writer_plan_adopt(PenStore *store, PenBuf *plan, PenError *reterr)
{
    PenBuf b = {0};
    int r = load(store, &b, reterr);
    if (r == 1 && b.data && b.bytes == plan->bytes) {
        set_random(plan, b.data + RANDOM);
        r = memcmp(b.data, plan->data, b.bytes) == 0;
    } else if (r == 1) {
        r = 0;
    }
    pen__buf_free(&b);
    return r;
}

int pen__writer_plan_is(PenStore *store, const PenBuf *plan, PenError *reterr)
{
    PenBuf b = {0};
    int r = load(store, &b, reterr);
    if (r == 1)
        r = b.data && b.bytes == plan->bytes && memcmp(b.data, plan->data, b.bytes) == 0;
    pen__buf_free(&b);
    return r;
}
