/* SPDX-License-Identifier: Apache-2.0 */
#include "ingest/job/finished.h"

#include <string.h>

#include "base/bytes.h"
#include "base/crc32c.h"
#include "io/dir.h"

#define WHERE "ingest/finished"
#define MAX_BYTES ((uint64_t)1 << 30)

/* Layout: magic 8, then for each shard id 16, end u64, inputs 32, digest 16, file_bytes u64,
 * stored_bytes u64, stored_crc u32; last a crc u32 over all before it. */
enum { MAGIC_BYTES = 8, SHARD_BYTES = PEN_ID_BYTES + 8 + 32 + 16 + 8 + 12, CRC_BYTES = 4 };
static const uint8_t magic[MAGIC_BYTES + 1] = "PENSHRD2";

static void put(uint8_t *p, const PenFinished *s)
{
    memcpy(p, s->id, PEN_ID_BYTES);
    pen__store64(p + 16, s->end);
    memcpy(p + 24, s->inputs, 32);
    memcpy(p + 56, s->digest, 16);
    pen__store64(p + 72, s->file_bytes);
    pen__store64(p + 80, s->stored_bytes);
    pen__store32(p + 88, s->stored_crc);
}

static PenFinished get(const uint8_t *p)
{
    PenFinished s = {.end = pen__load64(p + 16),
                     .file_bytes = pen__load64(p + 72),
                     .stored_bytes = pen__load64(p + 80),
                     .stored_crc = pen__load32(p + 88)};
    memcpy(s.id, p, PEN_ID_BYTES);
    memcpy(s.inputs, p + 24, 32);
    memcpy(s.digest, p + 56, 16);
    return s;
}

int pen__finished_set(PenFinishedList *list, uint64_t i, const PenFinished *shard, PenError *reterr)
{
    if (i == list->cap) {
        uint64_t cap = list->cap ? list->cap * 2 : 16;
        PenFinished *grown = pen__resize(list->shards, (size_t)cap * sizeof *grown);
        if (!grown)
            return pen__fail_memory(reterr, WHERE, "list of shards");
        list->shards = grown;
        list->cap = cap;
    }
    list->shards[i] = *shard;
    list->n = PEN_MAX(list->n, i + 1);
    return PEN_OK;
}

static int parse(const PenBuf *b, PenFinishedList *ret, PenError *reterr)
{
    size_t n =
        b->bytes < MAGIC_BYTES + CRC_BYTES ? 0 : (b->bytes - MAGIC_BYTES - CRC_BYTES) / SHARD_BYTES;
    size_t bytes = MAGIC_BYTES + n * SHARD_BYTES;
    int r = PEN_OK;
    if (b->bytes != bytes + CRC_BYTES || memcmp(b->data, magic, MAGIC_BYTES) != 0 ||
        pen__crc32c(0, b->data, bytes) != pen__load32(b->data + bytes))
        return PEN_OK;
    for (size_t i = 0; i < n && r == PEN_OK; i++) {
        PenFinished s = get(b->data + MAGIC_BYTES + i * SHARD_BYTES);
        r = pen__finished_set(ret, i, &s, reterr);
    }
    return r;
}

int pen__finished_load(const char *folder, PenFinishedList *ret, PenError *reterr)
{
    PenBuf b = {0};
    char *path = pen__path_join(folder, "shards");
    int r = path ? pen__file_exists(path, reterr) : pen__fail_memory(reterr, WHERE, folder);
    if (r == 1) {
        r = pen__file_load(path, MAX_BYTES, &b, reterr);
        if (r == PEN_OK)
            r = parse(&b, ret, reterr);
    }
    pen__buf_free(&b);
    pen__free(path);
    return r;
}

int pen__finished_store(const char *folder, const PenFinishedList *list, PenError *reterr)
{
    PenBuf b = {0};
    char *part = pen__path_join(folder, "shards.part");
    char *path = pen__path_join(folder, "shards");
    size_t bytes = MAGIC_BYTES + (size_t)list->n * SHARD_BYTES;
    int r = part && path && pen__buf_reserve(&b, bytes + CRC_BYTES) == PEN_OK
                ? PEN_OK
                : pen__fail_memory(reterr, WHERE, folder);
    if (r == PEN_OK) {
        memcpy(b.data, magic, MAGIC_BYTES);
        for (uint64_t i = 0; i < list->n; i++)
            put(b.data + MAGIC_BYTES + i * SHARD_BYTES, &list->shards[i]);
        pen__store32(b.data + bytes, pen__crc32c(0, b.data, bytes));
        r = pen__file_store(part, path, b.data, bytes + CRC_BYTES, reterr);
    }
    pen__buf_free(&b);
    pen__free(part);
    pen__free(path);
    return r;
}

void pen__finished_free(PenFinishedList *list)
{
    pen__free(list->shards);
    *list = (PenFinishedList){0};
}

int pen__finished_discard(const PenFinishedList *list, uint64_t first, PenStore *store,
                          PenError *reterr)
{
    PenNamed named = {0};
    int r = first < list->n ? pen__named_load(store, &named, reterr) : PEN_OK;
    for (uint64_t i = first; i < list->n && r == PEN_OK; i++) {
        char name[PEN_SHARD_NAME_BYTES];
        pen__shard_name(list->shards[i].id, name);
        if (pen__named_unused(&named, name))
            r = pen__store_remove(store, name, reterr);
    }
    pen__free(named.ids);
    return r;
}
