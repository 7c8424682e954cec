/* SPDX-License-Identifier: Apache-2.0 */
#include "pack/format/manifest.h"

#include <inttypes.h>
#include <string.h>

#include "base/bytes.h"
#include "base/crc32c.h"
#include "base/sha256.h"

#define WHERE "pack/manifest"

void pen__shard_name(const uint8_t id[PEN_ID_BYTES], char ret[PEN_SHARD_NAME_BYTES])
{
    static const char hex[] = "0123456789abcdef";
    char *p = ret;
    *p++ = hex[id[0] >> 4];
    *p++ = hex[id[0] & 15];
    *p++ = '/';
    for (int i = 0; i < PEN_ID_BYTES; i++) {
        *p++ = hex[id[i] >> 4];
        *p++ = hex[id[i] & 15];
    }
    memcpy(p, ".shard", 7);
}

int pen__format_check(const char *name, uint32_t version, PenError *reterr)
{
    if (version == PEN_FORMAT_VERSION)
        return PEN_OK;
    return pen__fail(
        reterr, PEN_E_FORMAT, WHERE, "%s: format version %u, expected %u; %s", name, version,
        PEN_FORMAT_VERSION,
        version ? "a newer penstock can read it"
                : "made before the first release: pack the sources again, into a new pack");
}

/* ---- statistics ----------------------------------------------------------------------------- */

void pen__stats_load(PenPackStats *ret, const uint8_t *data, size_t n)
{
    uint64_t v[PEN_STAT_COUNT] = {0};
    for (size_t i = 0; i < n && i < PEN_STAT_COUNT; i++)
        v[i] = pen__load64(data + 8 * i);
    *ret = (PenPackStats){.source_bytes = v[PEN_STAT_SOURCE],
                          .payload_bytes = v[PEN_STAT_PAYLOAD],
                          .index_bytes = v[PEN_STAT_INDEX],
                          .section_bytes = v[PEN_STAT_SECTIONS],
                          .bad = v[PEN_STAT_BAD],
                          .videos = v[PEN_STAT_VIDEOS],
                          .video_frames = v[PEN_STAT_VIDEO_FRAMES]};
    memcpy(ret->images, v + PEN_STAT_IMAGES, sizeof ret->images);
    memcpy(ret->missing, v + PEN_STAT_MISSING, sizeof ret->missing);
}

size_t pen__stats_count(const uint64_t v[PEN_STAT_COUNT])
{
    size_t n = PEN_STAT_COUNT;
    while (n > PEN_STAT_PLAIN && v[n - 1] == 0)
        n--;
    return n;
}

static void stats_store(const PenPackStats *s, uint64_t v[PEN_STAT_COUNT])
{
    memset(v, 0, PEN_STAT_COUNT * sizeof *v);
    v[PEN_STAT_SOURCE] = s->source_bytes;
    v[PEN_STAT_PAYLOAD] = s->payload_bytes;
    v[PEN_STAT_INDEX] = s->index_bytes;
    v[PEN_STAT_SECTIONS] = s->section_bytes;
    v[PEN_STAT_BAD] = s->bad;
    v[PEN_STAT_VIDEOS] = s->videos;
    v[PEN_STAT_VIDEO_FRAMES] = s->video_frames;
    memcpy(v + PEN_STAT_IMAGES, s->images, sizeof s->images);
    memcpy(v + PEN_STAT_MISSING, s->missing, sizeof s->missing);
}

void pen__stats_add(PenPackStats *to, const PenPackStats *from)
{
    to->source_bytes += from->source_bytes;
    to->payload_bytes += from->payload_bytes;
    to->index_bytes += from->index_bytes;
    to->section_bytes += from->section_bytes;
    to->bad += from->bad;
    to->videos += from->videos;
    to->video_frames += from->video_frames;
    for (int c = 0; c < PEN_STORED_COUNT; c++)
        for (int h = 0; h < PEN_HOW_COUNT; h++)
            to->images[c][h] += from->images[c][h];
    for (int f = 0; f < PEN_FIELD_COUNT; f++)
        to->missing[f] += from->missing[f];
}

bool pen__manifest_is_mapped(const PenManifest *m)
{
    for (uint64_t i = 0; i < m->n_shards; i++)
        if (m->shards[i].stored_bytes)
            return true;
    return false;
}

static uint64_t must_of(const PenManifest *m)
{
    return pen__schema_must(&m->schema) | (pen__manifest_is_mapped(m) ? PEN_MUST_MAPPED : 0);
}

/* ---- writing -------------------------------------------------------------------------------- */

static int write_shards(PenManifest *m, PenBuf *out)
{
    int r = pen__buf_reserve(out, (size_t)m->n_shards * PEN_SHARD_ENTRY_BYTES);
    if (r < 0)
        return r;
    m->n_blocks = m->n_samples = 0;
    for (uint64_t i = 0; i < m->n_shards; i++) {
        PenShardEntry *s = &m->shards[i];
        uint8_t *e = out->data + out->bytes;
        s->first_block = m->n_blocks;
        m->n_blocks += s->blocks_used;
        m->n_samples += s->samples_used;
        memset(e, 0, PEN_SHARD_ENTRY_BYTES);
        memcpy(e, s->id, PEN_ID_BYTES);
        pen__store64(e + 16, s->first_block);
        pen__store64(e + 24, s->blocks_used);
        pen__store64(e + 32, s->n_blocks);
        pen__store64(e + 40, s->samples_used);
        pen__store64(e + 48, s->file_bytes);
        pen__store64(e + 56, s->largest_block);
        memcpy(e + 64, s->digest, sizeof s->digest);
        pen__store64(e + 80, s->tail_bytes);
        pen__store64(e + 88, s->stored_bytes);
        out->bytes += PEN_SHARD_ENTRY_BYTES;
    }
    return PEN_OK;
}

typedef struct Section {
    char type[5];
    uint32_t must;
    PenBuf data;
} Section;

enum { SECTIONS = 5 };

static int fill_sections(PenManifest *m, Section sections[SECTIONS], int *ret_n)
{
    int n = 0;
    uint64_t stats[PEN_STAT_COUNT];
    Section *s = &sections[n++];
    *s = (Section){"SCHM", 1, {0}};
    int r = pen__schema_write(&m->schema, &s->data);
    if (r == PEN_OK && m->schema.class_field >= 0) {
        s = &sections[n++];
        *s = (Section){"CLAS", 0, {0}};
        r = pen__classes_write(&m->schema, &s->data);
    }
    if (r == PEN_OK && m->settings) {
        s = &sections[n++];
        *s = (Section){"SETT", 0, {0}};
        r = pen__buf_add(&s->data, m->settings, strlen(m->settings));
    }
    if (r == PEN_OK) {
        s = &sections[n++];
        *s = (Section){"STAT", 0, {0}};
        stats_store(&m->stats, stats);
        r = pen__buf_add(&s->data, stats, 8 * pen__stats_count(stats));
    }
    if (r == PEN_OK) {
        s = &sections[n++];
        *s = (Section){"SHRD", 1, {0}};
        r = write_shards(m, &s->data);
    }
    *ret_n = n;
    return r;
}

static int join_sections(PenManifest *m, const Section *sections, int n, PenBuf *out)
{
    size_t head = PEN_MANIFEST_HEADER_BYTES + (size_t)n * PEN_SECTION_ENTRY_BYTES;
    size_t total = head;
    for (int i = 0; i < n; i++)
        total += sections[i].data.bytes;
    out->bytes = 0;
    int r = pen__buf_reserve(out, total);
    if (r < 0)
        return r;
    uint8_t *h = out->data;
    memset(h, 0, head);
    out->bytes = head;
    for (int i = 0; i < n; i++) {
        uint8_t *e = h + PEN_MANIFEST_HEADER_BYTES + (size_t)i * PEN_SECTION_ENTRY_BYTES;
        const PenBuf *data = &sections[i].data;
        memcpy(e, sections[i].type, 4);
        pen__store32(e + 4, sections[i].must);
        pen__store64(e + 8, out->bytes);
        pen__store64(e + 16, data->bytes);
        pen__store32(e + 24, pen__crc32c(0, data->data, data->bytes));
        r = pen__buf_add(out, data->data, data->bytes);
    }
    memcpy(h, "PENSTOCK", 8);
    pen__store32(h + 8, PEN_FORMAT_VERSION);
    pen__store64(h + 16, must_of(m));
    pen__store64(h + 32, m->n_samples);
    pen__store64(h + 40, m->block_samples);
    pen__store64(h + 48, m->n_blocks);
    pen__store64(h + 56, m->n_shards);
    pen__store64(h + 64, total);
    pen__store32(h + 72, (uint32_t)n);
    pen__store32(h + 12, pen__crc32c(0, h + 16, head - 16));
    return r;
}

int pen__manifest_write(PenManifest *m, PenBuf *out, PenError *reterr)
{
    Section sections[SECTIONS];
    int n = 0;
    memset(sections, 0, sizeof sections);
    int r = fill_sections(m, sections, &n);
    if (r == PEN_OK)
        r = join_sections(m, sections, n, out);
    for (int i = 0; i < SECTIONS; i++)
        pen__buf_free(&sections[i].data);
    if (r < 0)
        return pen__fail_memory(reterr, WHERE, "manifest");
    uint8_t hash[32];
    pen__sha256(out->data, out->bytes, hash);
    memcpy(m->id, hash, sizeof m->id);
    m->bytes = out->bytes;
    return PEN_OK;
}

/* ---- reading -------------------------------------------------------------------------------- */

static int wrong(const char *name, const char *what, PenError *reterr)
{
    return pen__fail(reterr, PEN_E_CORRUPT, WHERE, "%s: %s: the manifest is damaged", name, what);
}

static void load_shard(const uint8_t *e, PenShardEntry *s)
{
    memcpy(s->id, e, PEN_ID_BYTES);
    s->first_block = pen__load64(e + 16);
    s->blocks_used = pen__load64(e + 24);
    s->n_blocks = pen__load64(e + 32);
    s->samples_used = pen__load64(e + 40);
    s->file_bytes = pen__load64(e + 48);
    s->largest_block = pen__load64(e + 56);
    memcpy(s->digest, e + 64, sizeof s->digest);
    s->tail_bytes = pen__load64(e + 80);
    s->stored_bytes = pen__load64(e + 88);
}

/* A table of its blocks, some statistics, a footer: no more than could be, since memory is taken
 * for it before a byte of it has been seen. */
static int bytes_fit(const PenShardEntry *s)
{
    uint64_t least = s->n_blocks * PEN_BLOCK_ENTRY_BYTES + PEN_SHARD_FOOTER_BYTES;
    return s->tail_bytes >= least && s->tail_bytes - least <= 8ull * PEN_MAX_STATS &&
           s->tail_bytes % 8 == 0 && s->largest_block <= s->file_bytes &&
           s->file_bytes >= PEN_SHARD_HEADER_BYTES &&
           s->tail_bytes <= s->file_bytes - PEN_SHARD_HEADER_BYTES;
}

/* Blocks are numbered through, all are full but the last of the pack. */
static int check_shards(const PenManifest *m, const char *name, PenError *reterr)
{
    uint64_t block = 0;
    uint64_t sample = 0;
    for (uint64_t i = 0; i < m->n_shards; i++) {
        const PenShardEntry *s = &m->shards[i];
        uint64_t full;
        int last = i + 1 == m->n_shards;
        if (s->first_block != block || s->blocks_used == 0 || s->blocks_used > s->n_blocks ||
            s->n_blocks >= PEN_ALL - 1 || !bytes_fit(s) ||
            pen__mul_over(s->blocks_used, m->block_samples, &full) || s->samples_used > full ||
            (last ? s->samples_used <= full - m->block_samples : s->samples_used != full) ||
            pen__add_over(block, s->blocks_used, &block) ||
            pen__add_over(sample, s->samples_used, &sample))
            return pen__fail(reterr, PEN_E_CORRUPT, WHERE,
                             "%s: shard %" PRIu64
                             ": its blocks and samples do not follow those of the shard before it",
                             name, i);
    }
    if (block != m->n_blocks || sample != m->n_samples)
        return wrong(name, "the shards do not add up to the pack", reterr);
    return PEN_OK;
}

static int read_shards(PenManifest *m, const uint8_t *data, size_t bytes, const char *name,
                       PenError *reterr)
{
    if (bytes % PEN_SHARD_ENTRY_BYTES || bytes / PEN_SHARD_ENTRY_BYTES != m->n_shards)
        return wrong(name, "size of the shard list does not match the number of shards", reterr);
    m->shards = pen__alloc_array(m->n_shards, sizeof *m->shards);
    if (!m->shards)
        return pen__fail_memory(reterr, WHERE, "list of shards");
    for (uint64_t i = 0; i < m->n_shards; i++) {
        load_shard(data + i * PEN_SHARD_ENTRY_BYTES, &m->shards[i]);
        if (m->shards[i].stored_bytes && !(m->must & PEN_MUST_MAPPED))
            return wrong(name, "a shard entry is not valid", reterr);
    }
    return check_shards(m, name, reterr);
}

static int read_settings(PenManifest *m, const uint8_t *data, size_t bytes, const char *name,
                         PenError *reterr)
{
    if (memchr(data, 0, bytes))
        return wrong(name, "settings are not text", reterr);
    m->settings = pen__strndup((const char *)data, bytes);
    return m->settings ? PEN_OK : pen__fail_memory(reterr, WHERE, "settings");
}

static int read_stats(PenManifest *m, const uint8_t *data, size_t bytes)
{
    pen__stats_load(&m->stats, data, bytes / 8);
    return PEN_OK;
}

/* A schema that nobody could ask for is an invalid one there, and damage here. */
static int from_file(int r, const char *name, PenError *reterr)
{
    if (r >= 0)
        return r;
    pen__error_prefix(reterr, "%s", name);
    if (r == PEN_E_INVALID)
        r = PEN_E_CORRUPT;
    if (reterr)
        reterr->status = r;
    return r;
}

static int read_section(PenManifest *m, const uint8_t *e, const uint8_t *data, size_t bytes,
                        const char *name, PenError *reterr)
{
    if (memcmp(e, "SCHM", 4) == 0)
        return from_file(pen__schema_read(&m->schema, data, bytes, reterr), name, reterr);
    if (memcmp(e, "SHRD", 4) == 0)
        return read_shards(m, data, bytes, name, reterr);
    if (memcmp(e, "CLAS", 4) == 0)
        return from_file(pen__classes_read(&m->schema, data, bytes, reterr), name, reterr);
    if (memcmp(e, "SETT", 4) == 0)
        return read_settings(m, data, bytes, name, reterr);
    if (memcmp(e, "STAT", 4) == 0)
        return read_stats(m, data, bytes);
    if (pen__load32(e + 4) & 1)
        return pen__fail(
            reterr, PEN_E_FORMAT, WHERE,
            "%s: section '%.4s' is required but unknown; use a newer release of penstock", name,
            (const char *)e);
    return PEN_OK;
}

/* Has a section of this type come before? */
static int seen_before(const uint8_t *data, uint32_t i)
{
    const uint8_t *e = data + PEN_MANIFEST_HEADER_BYTES;
    for (uint32_t k = 0; k < i; k++)
        if (memcmp(e + k * PEN_SECTION_ENTRY_BYTES, e + i * PEN_SECTION_ENTRY_BYTES, 4) == 0)
            return 1;
    return 0;
}

static int read_sections(PenManifest *m, const uint8_t *data, uint32_t n, const char *name,
                         PenError *reterr)
{
    uint64_t at = PEN_MANIFEST_HEADER_BYTES + (uint64_t)n * PEN_SECTION_ENTRY_BYTES;
    for (uint32_t i = 0; i < n; i++) {
        const uint8_t *e = data + PEN_MANIFEST_HEADER_BYTES + i * PEN_SECTION_ENTRY_BYTES;
        uint64_t bytes = pen__load64(e + 16);
        if (pen__load64(e + 8) != at || !pen__range_ok(at, bytes, m->bytes) || pen__load32(e + 28))
            return wrong(name, "sections do not follow each other", reterr);
        if (seen_before(data, i))
            return wrong(name, "a section occurs twice", reterr);
        uint32_t sum = pen__crc32c(0, data + at, (size_t)bytes);
        if (sum != pen__load32(e + 24))
            return pen__fail(reterr, PEN_E_CORRUPT, WHERE,
                             "%s: section '%.4s' at offset %" PRIu64
                             ": checksum 0x%08x, expected 0x%08x: the manifest is damaged",
                             name, (const char *)e, at, sum, pen__load32(e + 24));
        int r = read_section(m, e, data + at, (size_t)bytes, name, reterr);
        if (r < 0)
            return r;
        at += bytes;
    }
    if (at != m->bytes || !m->schema.n_fields || !m->shards)
        return wrong(name, "sections are missing or do not add up", reterr);
    m->schema.has_entries = (m->must & PEN_MUST_ENTRIES) != 0;
    m->schema.has_videos = (m->must & PEN_MUST_VIDEOS) != 0;
    if (m->must != must_of(m))
        return wrong(name, "features do not match the fields", reterr);
    return PEN_OK;
}

static int read_header(PenManifest *m, const uint8_t *h, const char *name, PenError *reterr)
{
    if (memcmp(h, "PENSTOCK", 8) != 0)
        return pen__fail(reterr, PEN_E_FORMAT, WHERE, "%s: not the manifest of a pack", name);
    int r = pen__format_check(name, pen__load32(h + 8), reterr);
    if (r < 0)
        return r;
    uint32_t n = pen__load32(h + 72);
    size_t head = PEN_MANIFEST_HEADER_BYTES + (size_t)n * PEN_SECTION_ENTRY_BYTES;
    if (n > PEN_MAX_SECTIONS || head > m->bytes)
        return wrong(name, "number of sections out of range", reterr);
    uint32_t sum = pen__crc32c(0, h + 16, head - 16);
    if (sum != pen__load32(h + 12))
        return pen__fail(reterr, PEN_E_CORRUPT, WHERE,
                         "%s: header checksum 0x%08x, expected 0x%08x: the manifest is damaged",
                         name, sum, pen__load32(h + 12));
    m->must = pen__load64(h + 16);
    if (m->must & ~PEN_MUST_KNOWN)
        return pen__fail(reterr, PEN_E_FORMAT, WHERE,
                         "%s: needs features 0x%" PRIx64
                         " that this release does not support; use a newer release of penstock",
                         name, m->must & ~PEN_MUST_KNOWN);
    m->n_samples = pen__load64(h + 32);
    m->block_samples = pen__load64(h + 40);
    m->n_blocks = pen__load64(h + 48);
    m->n_shards = pen__load64(h + 56);
    if (pen__load64(h + 64) != m->bytes)
        return pen__fail(reterr, PEN_E_CORRUPT, WHERE,
                         "%s: expected %" PRIu64 " bytes, found %" PRIu64
                         ": the manifest is truncated",
                         name, pen__load64(h + 64), m->bytes);
    for (size_t z = 76; z < PEN_MANIFEST_HEADER_BYTES; z++)
        if (h[z])
            return wrong(name, "the header is not valid", reterr);
    if (m->block_samples < 1 || m->block_samples > PEN_MAX_BLOCK_SAMPLES)
        return wrong(name, "samples per block out of range", reterr);
    return PEN_OK;
}

void pen__manifest_unmap(uint8_t *data)
{
    uint32_t n = pen__load32(data + 72);
    size_t head = PEN_MANIFEST_HEADER_BYTES + (size_t)n * PEN_SECTION_ENTRY_BYTES;
    for (uint32_t i = 0; i < n; i++) {
        uint8_t *e = data + PEN_MANIFEST_HEADER_BYTES + (size_t)i * PEN_SECTION_ENTRY_BYTES;
        uint8_t *section = data + pen__load64(e + 8);
        uint64_t bytes = pen__load64(e + 16);
        if (memcmp(e, "SHRD", 4) != 0)
            continue;
        for (uint64_t at = 0; at < bytes; at += PEN_SHARD_ENTRY_BYTES)
            pen__store64(section + at + 88, 0);
        pen__store32(e + 24, pen__crc32c(0, section, (size_t)bytes));
    }
    pen__store64(data + 16, pen__load64(data + 16) & ~PEN_MUST_MAPPED);
    pen__store32(data + 12, pen__crc32c(0, data + 16, head - 16));
}

static void set_ids(PenManifest *m, uint8_t *data)
{
    uint8_t hash[32];
    pen__sha256(data, (size_t)m->bytes, hash);
    memcpy(m->id, hash, sizeof m->id);
    if (pen__manifest_is_mapped(m)) {
        pen__manifest_unmap(data);
        pen__sha256(data, (size_t)m->bytes, hash);
    }
    memcpy(m->content_id, hash, sizeof m->content_id);
}

int pen__manifest_read(PenManifest *ret, PenSource *source, PenError *reterr)
{
    PenManifest m = {.bytes = source->bytes, .schema = {.class_field = -1}};
    uint8_t *data = NULL;
    int r;
    if (m.bytes < PEN_MANIFEST_HEADER_BYTES) {
        r = wrong(source->name, "too short for a manifest", reterr);
        goto out;
    }
    data = pen__alloc_array(m.bytes, 1);
    if (!data) {
        r = pen__fail_memory(reterr, WHERE, source->name);
        goto out;
    }
    r = pen__source_read(source, data, (size_t)m.bytes, 0, reterr);
    if (r == PEN_OK)
        r = read_header(&m, data, source->name, reterr);
    if (r == PEN_OK)
        r = read_sections(&m, data, pen__load32(data + 72), source->name, reterr);
    if (r == PEN_OK) {
        set_ids(&m, data);
        *ret = m;
        memset(&m, 0, sizeof m);
    }
out:
    pen__free(data);
    pen__manifest_fini(&m);
    return r;
}

void pen__manifest_fini(PenManifest *m)
{
    pen__schema_fini(&m->schema);
    pen__free(m->shards);
    pen__free(m->settings);
    memset(m, 0, sizeof *m);
    m->schema.class_field = -1;
}
