/* SPDX-License-Identifier: Apache-2.0 */
/* A manifest. The first byte says what of it is put right before it is read: see REPAIR_*. */
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "help.h"
#include "pack/reader/reader.h"
#include "pack_parts.h"

static int read_from(const void *data, size_t bytes, PenManifest *ret)
{
    PenError err;
    PenSource *source = NULL;
    MUST(pen__source_open_memory("manifest", data, bytes, &source, &err));
    int r = CALL(pen__manifest_read(ret, source, &err));
    pen__source_close(&source);
    return r;
}

static void require_same_schema(const PenSchema *a, const PenSchema *b)
{
    REQUIRE(a->n_fields == b->n_fields && a->n_classes == b->n_classes);
    REQUIRE(a->class_field == b->class_field);
    for (uint32_t f = 0; f < a->n_fields; f++) {
        REQUIRE(strcmp(a->fields[f].name, b->fields[f].name) == 0);
        REQUIRE(a->fields[f].type == b->fields[f].type);
        REQUIRE(a->widths[f] == b->widths[f]);
    }
    for (uint32_t i = 0; i < a->n_classes; i++)
        REQUIRE(strcmp(a->classes[i], b->classes[i]) == 0);
}

/* What was read can be written, and is then read as the same. */
static void write_again(PenManifest *m)
{
    PenError err;
    PenBuf out = {0};
    PenManifest again;
    uint64_t n_samples = m->n_samples, n_blocks = m->n_blocks;
    MUST(pen__manifest_write(m, &out, &err));
    REQUIRE(m->n_samples == n_samples && m->n_blocks == n_blocks);
    REQUIRE(read_from(out.data, out.bytes, &again) == PEN_OK);
    REQUIRE(again.n_samples == n_samples && again.n_blocks == n_blocks);
    REQUIRE(again.n_shards == m->n_shards && again.block_samples == m->block_samples);
    REQUIRE(memcmp(again.id, m->id, sizeof m->id) == 0);
    REQUIRE(memcmp(again.shards, m->shards, (size_t)m->n_shards * sizeof *m->shards) == 0);
    REQUIRE(memcmp(&again.stats, &m->stats, sizeof m->stats) == 0);
    REQUIRE(!again.settings == !m->settings);
    REQUIRE(!m->settings || strcmp(again.settings, m->settings) == 0);
    require_same_schema(&again.schema, &m->schema);
    pen__manifest_fini(&again);
    pen__buf_free(&out);
}

static int open_part(void *ctx, const char *name, PenSource **ret, PenError *reterr)
{
    const Part *m = ctx;
    if (strcmp(name, PEN_MANIFEST_NAME) != 0)
        return pen__fail(reterr, PEN_E_NOT_FOUND, "fuzz", "%s: not there", name);
    return pen__source_open_memory(name, m->data, m->bytes, ret, reterr);
}

/* A pack that has no shard at its place: all can be located, nothing can be read. */
static void use_as_pack(Part *m)
{
    PenError err;
    PenPack *pack = NULL;
    PenVerifySettings settings;
    PenVerifyResult result;
    MUST(pen__pack_open_with("fuzz", open_part, m, &pack, &err));
    const PenPackInfo *info = pen_pack_info(pack);
    const PenManifest *read = pen__pack_manifest(pack);
    uint64_t tries[] = {0, info->n_blocks / 2, info->n_blocks - 1};
    for (size_t i = 0; i < PEN_LEN(tries); i++)
        if (tries[i] < info->n_blocks) {
            const PenShardEntry *e = &read->shards[pen__pack_shard_of(pack, tries[i])];
            REQUIRE(tries[i] >= e->first_block && tries[i] - e->first_block < e->blocks_used);
        }
    for (uint64_t i = 0; i < info->n_shards; i++)
        REQUIRE(read->shards[i].blocks_used && read->shards[i].samples_used);
    size_t bytes;
    uint64_t sample;
    int expected = info->n_shards ? PEN_E_CORRUPT : PEN_E_NOT_FOUND;
    REQUIRE(CALL(pen_pack_key(pack, 0, NULL, 0, &bytes, &err)) == expected);
    REQUIRE(CALL(pen_pack_key(pack, info->n_samples - 1, NULL, 0, &bytes, &err)) == expected);
    REQUIRE(CALL(pen_pack_find(pack, "key", 3, &sample, &err)) == expected);
    for (uint32_t f = 0; f < info->n_fields; f++) {
        uint32_t found;
        MUST(pen_pack_field(pack, info->fields[f].name, &found, &err));
        REQUIRE(found == f && strlen(pen_type_name(info->fields[f].type)) > 1);
    }
    pen_verify_settings_init(&settings);
    settings.threads = 1;
    int r = pen_pack_verify(pack, &settings, &result, &err);
    REQUIRE(r == (info->n_shards ? PEN_E_CORRUPT : PEN_OK));
    REQUIRE((r == PEN_OK) == (result.problems == 0));
    pen_pack_close(&pack);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    PenManifest m;
    if (!bytes)
        return 0;
    Part part = {copy_of(data + 1, bytes - 1), bytes - 1};
    if (data[0] & (REPAIR_SUMS | REPAIR_PLACES))
        repair_manifest(&part, data[0]);
    if (read_from(part.data, part.bytes, &m) == PEN_OK) {
        write_again(&m);
        pen__manifest_fini(&m);
        use_as_pack(&part);
    }
    free(part.data);
    return 0;
}
