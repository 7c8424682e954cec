/* SPDX-License-Identifier: Apache-2.0 */
#include "ingest/job/join.h"

#include <string.h>

#include "base/sys.h"
#include "ingest/job/job.h"
#include "manage/work.h"
#include "pack/write/publish.h"

#define WHERE "ingest/join"

int pen__join_add(PenJoin *j, const PenShardEntry *shards, uint64_t n, const PenPackStats *stats,
                  PenError *reterr)
{
    PenShardEntry *grown = pen__resize(j->shards, (size_t)(j->n_shards + n) * sizeof *grown);
    if (!grown)
        return pen__fail_memory(reterr, WHERE, pen__store_name(j->store));
    j->shards = grown;
    if (n)
        memcpy(grown + j->n_shards, shards, (size_t)n * sizeof *grown);
    j->n_shards += n;
    pen__stats_add(&j->stats, stats);
    return PEN_OK;
}

/* What a block adds to the totals: the block of a pack that is written anew must not count twice.
 */
static int block_stats(PenPack *p, uint64_t block, PenPackStats *ret, PenError *reterr)
{
    PenBlock *b = NULL;
    *ret = (PenPackStats){0};
    int r = pen__pack_block(p, block, &b, reterr);
    if (r < 0)
        return r;
    const PenBlockView *v = &b->view;
    ret->payload_bytes = v->sections_offset - v->index_bytes;
    ret->index_bytes = v->index_bytes;
    ret->section_bytes = v->bytes - v->sections_offset;
    for (uint32_t s = 0; s < v->n_samples; s++)
        for (uint32_t f = 0; f < v->schema->n_fields; f++) {
            PenVideoTable video;
            uint32_t n = pen__block_images(v, s, f);
            if (pen__block_video(v, s, f, &video)) {
                ret->videos++;
                ret->video_frames += video.n_frames;
                ret->source_bytes +=
                    pen__video_source(&video, pen__block_clip(v, s, f).source_bytes);
            }
            for (uint32_t i = 0; i < n; i++) {
                PenImageEntry e = pen__block_image(v, s, f, i);
                ret->source_bytes += e.source_bytes;
                if (e.codec != PEN_STORED_NONE)
                    ret->images[e.codec & 7][e.how & 7]++;
                else
                    ret->missing[f]++;
            }
            if (pen__field_is_blob(&v->schema->fields[f])) {
                PenBlobEntry e = pen__block_blob(v, s, f);
                ret->source_bytes += e.bytes;
                ret->missing[f] += e.flags & PEN_BLOB_MISSING;
            }
        }
    pen__pack_block_put(p, b);
    return PEN_OK;
}

static void subtract(PenPackStats *from, const PenPackStats *what)
{
    from->source_bytes -= what->source_bytes;
    from->payload_bytes -= what->payload_bytes;
    from->index_bytes -= what->index_bytes;
    from->section_bytes -= what->section_bytes;
    from->videos -= what->videos;
    from->video_frames -= what->video_frames;
    for (int c = 0; c < PEN_STORED_COUNT; c++)
        for (int h = 0; h < PEN_HOW_COUNT; h++)
            from->images[c][h] -= what->images[c][h];
    for (int f = 0; f < PEN_FIELD_COUNT; f++)
        from->missing[f] -= what->missing[f];
}

int pen__join_base(PenJoin *j, PenPack *base, PenError *reterr)
{
    j->base = base;
    const PenManifest *m = pen__pack_manifest(base);
    PenPackStats last = {0};
    uint64_t tail = m->n_samples % m->block_samples;
    int r = pen__join_add(j, m->shards, m->n_shards, &m->stats, reterr);
    if (r < 0 || !tail)
        return r;
    r = block_stats(base, m->n_blocks - 1, &last, reterr);
    if (r < 0)
        return r;
    subtract(&j->stats, &last);
    PenShardEntry *s = &j->shards[j->n_shards - 1];
    s->blocks_used--;
    s->samples_used -= tail;
    if (s->blocks_used == 0)
        j->n_shards--;
    return PEN_OK;
}

int pen__result_sizes(PenStore *store, const PenManifest *m, PenIngestResult *ret, PenError *reterr)
{
    const char *out = pen__store_name(store);
    int far = pen__store_remote(store) != NULL;
    ret->pack_bytes = m->bytes;
    ret->pack_disk_bytes = 0;
    for (uint64_t i = 0; i <= m->n_shards; i++) {
        PenFileStat st;
        char name[PEN_SHARD_NAME_BYTES] = PEN_MANIFEST_NAME;
        if (i < m->n_shards) {
            pen__shard_name(m->shards[i].id, name);
            ret->pack_bytes += pen__shard_stored(&m->shards[i]);
        }
        if (far)
            continue; /* what a store takes is its own matter */
        char *path = pen__path_join(out, name);
        if (!path)
            return pen__fail_memory(reterr, WHERE, out);
        int r = pen__sys->stat_path(path, &st);
        if (r < 0)
            r = pen__fail_os(reterr, -r, WHERE, "%s: cannot stat", path);
        pen__free(path);
        if (r < 0)
            return r;
        ret->pack_disk_bytes += st.disk_bytes;
    }
    return PEN_OK;
}

/* Cuts a long name between two UTF-8 characters. */
static void copy_name(char ret[PEN_CLASS_NAME_BYTES], const char *name)
{
    static const char dots[] = "...";
    size_t n = strlen(name), keep = PEN_CLASS_NAME_BYTES - sizeof dots;
    memset(ret, 0, PEN_CLASS_NAME_BYTES);
    if (n < PEN_CLASS_NAME_BYTES) {
        memcpy(ret, name, n);
        return;
    }
    while (keep && ((uint8_t)name[keep] & 0xc0) == 0x80)
        keep--;
    memcpy(ret, name, keep);
    memcpy(ret + keep, dots, sizeof dots);
}

void pen__result_classes(PenIngestResult *ret, const char *const *names, uint32_t n)
{
    ret->n_classes = n;
    for (uint32_t i = 0; i < PEN_MIN(n, (uint32_t)PEN_FIRST_CLASSES); i++)
        copy_name(ret->first_classes[i], names[i]);
}

void pen__result_missing(PenIngestResult *ret, const PenField *fields, uint32_t n)
{
    ret->n_missing = 0;
    for (uint32_t f = 0; f < n; f++) {
        if (!ret->stats.missing[f])
            continue;
        PenMissing *m = &ret->missing[ret->n_missing++];
        copy_name(m->field, fields[f].name);
        m->n = ret->stats.missing[f];
    }
}

int pen__join_publish(PenJoin *j, PenIngestResult *ret, PenError *reterr)
{
    PenManifest m = {.block_samples = j->block_samples,
                     .n_shards = j->n_shards,
                     .schema = *j->schema,
                     .shards = j->shards,
                     .settings = (char *)j->settings,
                     .stats = j->stats};
    char *part = pen__work_path(j->home, "manifest.part");
    int r = part ? pen__pack_publish(j->store, j->base, part, &m, j->has_unique_keys, reterr)
                 : pen__fail_memory(reterr, WHERE, pen__store_name(j->store));
    pen__free(part);
    if (r < 0)
        return r;
    ret->n_samples = m.n_samples;
    ret->n_shards = m.n_shards;
    ret->block_samples = m.block_samples;
    ret->stats = m.stats;
    pen__result_classes(ret, (const char *const *)j->schema->classes, j->schema->n_classes);
    pen__result_missing(ret, j->schema->fields, j->schema->n_fields);
    ret->published = 1;
    memcpy(ret->id, m.id, sizeof ret->id);
    /* The pack is there: that its size on disk cannot be told is no failure. */
    pen__result_sizes(j->store, &m, ret, NULL);
    return PEN_OK;
}

void pen__join_fini(PenJoin *j)
{
    pen__free(j->shards);
    j->shards = NULL;
}

/* "ab" of "a" and "b"; NULL when out of memory. */
static char *concat(const char *a, size_t n, const char *b)
{
    char *p = pen__alloc(n + strlen(b) + 1);
    if (p) {
        memcpy(p, a, n);
        memcpy(p + n, b, strlen(b) + 1);
    }
    return p;
}

int pen__report_store(const char *out, const char *path, const PenBadList *bad, PenError *reterr)
{
    /* Of a pack in a store it lies in the current directory, by the pack's name. */
    const char *slash = pen_is_remote(out) ? strrchr(out, '/') : NULL;
    out = slash && slash[1] ? slash + 1 : out;
    size_t n = strlen(out);
    while (n > 1 && out[n - 1] == '/')
        n--;
    char *chosen = path ? pen__strdup(path) : concat(out, n, "-bad.jsonl");
    /* Beside its own name: it may lie on another file system than the pack. */
    char *part = chosen ? concat(chosen, strlen(chosen), ".part") : NULL;
    int r = part ? pen__bad_store(bad, part, chosen, reterr) : pen__fail_memory(reterr, WHERE, out);
    pen__free(chosen);
    pen__free(part);
    return r;
}
