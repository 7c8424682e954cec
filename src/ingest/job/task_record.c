/* SPDX-License-Identifier: Apache-2.0 */
/* The record of a complete task: in an object store, and of a task of a writer. */
#include <string.h>

#include "base/bytes.h"
#include "base/crc32c.h"
#include "ingest/job/job.h"
#include "io/sink.h"
#include "io/source.h"

#define WHERE "ingest/record"

/* Layout: magic 8, n_shards u64, n_samples u64, n_rest u64, inputs 32, bytes of the list of broken
 * inputs u64; for each shard, and for the rest when there is one, digest 16 and bytes u64; the list
 * of broken inputs; last a crc u32 over all before it. */
enum { HEAD_BYTES = 72, SHARD_BYTES = 24, CRC_BYTES = 4 };
static const uint8_t magic[9] = "PENTASK1";
#define MAX_BYTES ((uint64_t)1 << 30)

static uint64_t count(const PenTaskDone *done)
{
    return done->n_shards + (done->n_rest != 0);
}

static PenTaskShard shard_of(const PenShardEntry *entry)
{
    PenTaskShard s = {.bytes = entry->file_bytes};
    memcpy(s.digest, entry->digest, sizeof s.digest);
    return s;
}

bool pen__task_shard_is(const PenTaskShard *shard, const PenShardEntry *entry)
{
    return shard->bytes == entry->file_bytes &&
           memcmp(shard->digest, entry->digest, sizeof shard->digest) == 0;
}

PenTaskDone pen__task_done(const PenShardEntry *shards, uint64_t n, const PenShardEntry *rest,
                           const uint8_t inputs[32])
{
    PenTaskDone done = {.n_shards = n, .n_rest = rest->n_blocks ? rest->samples_used : 0};
    memcpy(done.inputs, inputs, sizeof done.inputs);
    for (uint64_t i = 0; i < n; i++)
        done.n_samples += shards[i].samples_used;
    done.n_samples += done.n_rest;
    return done;
}

int pen__task_record_make(const PenShardEntry *shards, const PenShardEntry *rest,
                          PenTaskRecord *record, PenError *reterr)
{
    uint64_t n = record->done.n_shards;
    record->shards = pen__alloc_array(n + 1, sizeof *record->shards);
    if (!record->shards)
        return pen__fail_memory(reterr, WHERE, "record of a task");
    for (uint64_t i = 0; i < n; i++)
        record->shards[i] = shard_of(&shards[i]);
    if (record->done.n_rest)
        record->shards[n] = shard_of(rest);
    return PEN_OK;
}

void pen__task_record_free(PenTaskRecord *record)
{
    pen__free(record->shards);
    pen__bad_free(&record->bad);
    *record = (PenTaskRecord){.shards = NULL};
}

static int write_record(const PenTaskRecord *record, PenBuf *out)
{
    uint8_t head[HEAD_BYTES], crc[CRC_BYTES];
    const PenTaskDone *done = &record->done;
    memcpy(head, magic, 8);
    pen__store64(head + 8, done->n_shards);
    pen__store64(head + 16, done->n_samples);
    pen__store64(head + 24, done->n_rest);
    memcpy(head + 32, done->inputs, sizeof done->inputs);
    pen__store64(head + 64, record->bad.lines.bytes);
    int r = pen__buf_add(out, head, sizeof head);
    for (uint64_t i = 0; i < count(done) && r == PEN_OK; i++) {
        uint8_t shard[SHARD_BYTES];
        memcpy(shard, record->shards[i].digest, 16);
        pen__store64(shard + 16, record->shards[i].bytes);
        r = pen__buf_add(out, shard, sizeof shard);
    }
    if (r == PEN_OK)
        r = pen__buf_add(out, record->bad.lines.data, record->bad.lines.bytes);
    if (r < 0)
        return r;
    pen__store32(crc, pen__crc32c(0, out->data, out->bytes));
    return pen__buf_add(out, crc, sizeof crc);
}

/* A task that is run again replaces its record: it is the one that belongs to the shards. */
int pen__task_record_put(PenStore *store, const char *part_path, const char *name,
                         const PenTaskRecord *record, PenError *reterr)
{
    PenBuf b = {0};
    int r = write_record(record, &b) == PEN_OK ? PEN_OK : pen__fail_memory(reterr, WHERE, name);
    if (r == PEN_OK)
        r = pen__store_put(store, part_path, name, &b, PEN_IF_ANY, NULL, reterr);
    pen__buf_free(&b);
    return r;
}

/* ---- of a task in a directory ---------------------------------------------------------------- */

enum { DONE_BYTES = 8 + 3 * 8 + 32 + 4 };
static const char done_magic[8] = "PENDON2";

int pen__task_done_store(const char *folder, const PenTaskDone *done, PenError *reterr)
{
    uint8_t b[DONE_BYTES];
    memcpy(b, done_magic, sizeof done_magic);
    pen__store64(b + 8, done->n_shards);
    pen__store64(b + 16, done->n_samples);
    pen__store64(b + 24, done->n_rest);
    memcpy(b + 32, done->inputs, sizeof done->inputs);
    pen__store32(b + 64, pen__crc32c(0, b, 64));
    char *part = pen__path_join(folder, "done.part");
    char *path = pen__path_join(folder, "done");
    int r = part && path ? pen__file_store(part, path, b, sizeof b, reterr)
                         : pen__fail_memory(reterr, WHERE, folder);
    pen__free(part);
    pen__free(path);
    return r;
}

int pen__task_done_load(const char *folder, PenTaskDone *ret, PenError *reterr)
{
    PenBuf b = {0};
    char *path = pen__path_join(folder, "done");
    int r = path ? pen__file_exists(path, reterr) : pen__fail_memory(reterr, WHERE, folder);
    if (r <= 0)
        goto out;
    r = pen__file_load(path, DONE_BYTES, &b, reterr);
    if (r < 0)
        goto out;
    if (b.bytes != DONE_BYTES || memcmp(b.data, done_magic, 8) != 0 ||
        pen__crc32c(0, b.data, 64) != pen__load32(b.data + 64)) {
        r = pen__fail(reterr, PEN_E_CORRUPT, WHERE, "%s: damaged; run that task again", path);
        goto out;
    }
    *ret = (PenTaskDone){.n_shards = pen__load64(b.data + 8),
                         .n_samples = pen__load64(b.data + 16),
                         .n_rest = pen__load64(b.data + 24)};
    memcpy(ret->inputs, b.data + 32, sizeof ret->inputs);
    r = 1;
out:
    pen__buf_free(&b);
    pen__free(path);
    return r;
}

/* ---- reading --------------------------------------------------------------------------------- */

static int fail_damaged(const char *name, PenError *reterr)
{
    return pen__fail(reterr, PEN_E_CORRUPT, WHERE, "%s: damaged; run that task again", name);
}

static int parse(const uint8_t *p, uint64_t bytes, const char *name, PenTaskRecord *ret,
                 PenError *reterr)
{
    if (bytes < HEAD_BYTES + CRC_BYTES || memcmp(p, magic, 8) != 0 ||
        pen__crc32c(0, p, (size_t)bytes - CRC_BYTES) != pen__load32(p + bytes - CRC_BYTES))
        return fail_damaged(name, reterr);
    PenTaskDone *done = &ret->done;
    *done = (PenTaskDone){.n_shards = pen__load64(p + 8),
                          .n_samples = pen__load64(p + 16),
                          .n_rest = pen__load64(p + 24)};
    memcpy(done->inputs, p + 32, sizeof done->inputs);
    uint64_t bad = pen__load64(p + 64), room = bytes - HEAD_BYTES - CRC_BYTES;
    if (done->n_shards > room / SHARD_BYTES || count(done) * SHARD_BYTES > room ||
        room - count(done) * SHARD_BYTES != bad)
        return fail_damaged(name, reterr);
    ret->shards = pen__alloc_array(count(done) + 1, sizeof *ret->shards);
    if (!ret->shards)
        return pen__fail_memory(reterr, WHERE, name);
    p += HEAD_BYTES;
    for (uint64_t i = 0; i < count(done); i++, p += SHARD_BYTES) {
        memcpy(ret->shards[i].digest, p, 16);
        ret->shards[i].bytes = pen__load64(p + 16);
    }
    return pen__bad_parse(&ret->bad, p, (size_t)bad, UINT64_MAX, name, reterr);
}

int pen__task_record_get(PenStore *store, const char *name, PenTaskRecord *ret, PenError *reterr)
{
    PenSource *source = NULL;
    *ret = (PenTaskRecord){.shards = NULL};
    int r = pen__store_source(store, name, &source, reterr);
    if (r < 0)
        return pen__error_accept(r, PEN_E_NOT_FOUND, reterr);
    uint64_t bytes = source->bytes;
    uint8_t *data = bytes <= MAX_BYTES ? pen__alloc((size_t)bytes + 1) : NULL;
    if (bytes > MAX_BYTES)
        r = fail_damaged(source->name, reterr);
    else if (!data)
        r = pen__fail_memory(reterr, WHERE, source->name);
    if (r == PEN_OK)
        r = pen__source_read(source, data, (size_t)bytes, 0, reterr);
    if (r == PEN_OK)
        r = parse(data, bytes, source->name, ret, reterr);
    if (r < 0)
        pen__task_record_free(ret);
    pen__free(data);
    pen__source_close(&source);
    return r < 0 ? r : 1;
}
