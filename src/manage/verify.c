/* SPDX-License-Identifier: Apache-2.0 */
/* Checking all of a pack: threads take block after block. */
#include <inttypes.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <string.h>

#include "base/bytes.h"
#include "base/machine/cores.h"
#include "base/team.h"
#include "codec/jpeg/decoder/scan.h"
#include "codec/jpeg/tiled.h"
#include "pack/format/keys.h"
#include "pack/mapped/mapped.h"
#include "pack/reader/column.h"
#include "pack/reader/sections.h"
#include "pack/reader/shard_check.h"

#define WHERE "manage/verify"

enum { MOST_THREADS = 64 };

typedef struct Verify {
    PenPack *pack;
    const PenVerifySettings *settings;
    atomic_uint_fast64_t next, bytes;
    atomic_bool is_cancelled;
    pthread_mutex_t mutex; /* of all below, and of the problem callback */
    PenVerifyResult result;
    PenError first, last;
    PenError failure; /* not of the pack: no memory; status 0 when there is none */
    PenError passed;  /* why blocks were passed over without a report; status 0 when none were */
} Verify;

/* A file of an in-place pack that is missing is a problem of each of its samples: said once. */
static void report(Verify *v, const PenError *e)
{
    pthread_mutex_lock(&v->mutex);
    if (e->status == PEN_E_NO_MEMORY && v->failure.status == PEN_OK)
        v->failure = *e;
    bool again = v->result.problems && strcmp(e->message, v->last.message) == 0;
    if (!again && v->result.problems++ == 0)
        v->first = *e;
    v->last = *e;
    if (!again && v->settings->problem)
        v->settings->problem(v->settings->ctx, e);
    pthread_mutex_unlock(&v->mutex);
}

/* What the thread that has the shard's first block reports for all of them; should that one have
 * met no failure, somebody has to. */
static void pass_over(Verify *v, const PenError *e)
{
    pthread_mutex_lock(&v->mutex);
    if (v->passed.status == PEN_OK)
        v->passed = *e;
    pthread_mutex_unlock(&v->mutex);
}

static void check(Verify *v, int r, const PenError *e)
{
    if (r < 0)
        report(v, e);
}

/* ---- one block ------------------------------------------------------------------------------ */

/* Is each segment of a tiled JPEG as long as its table says, up to and with its marker? */
static int check_markers(const PenSpot *at, const PenImageEntry *image, const uint8_t *data,
                         PenError *reterr)
{
    const PenBlock *b = at->block;
    PenSegmentTable t = pen__block_segments(&b->view, image);
    const uint8_t *end = data + t.head_bytes;
    for (uint32_t i = 0; i < t.n_segments; i++) {
        uint64_t bytes = pen__segment_bytes(&t, i);
        uint8_t marker = i + 1 == t.n_segments ? 0xD9 : (uint8_t)(0xD0 + i % 8);
        end += bytes;
        if (bytes >= 2 && end[-2] == 0xFF && end[-1] == marker)
            continue;
        pen__fail(reterr, PEN_E_CORRUPT, WHERE,
                  "%s: block %u, sample %u, field '%s': segment %u: expected the marker ff %02x at "
                  "the end",
                  b->shard->shard.source->name, b->view.block, at->sample,
                  b->view.schema->fields[at->field].name, i, marker);
        reterr->sample = (int64_t)(b->first_sample + at->sample);
        return PEN_E_CORRUPT;
    }
    return PEN_OK;
}

/* Does the table describe this file? */
static bool is_described(const PenStoredEntries *stored, const PenJpegInfo *info,
                         const uint8_t *data)
{
    static const uint8_t eoi[] = {0xFF, 0xD9};
    bool grey = info->components == 1;
    return info->lead_bytes == stored->lead_bytes && info->head_bytes == stored->head_bytes &&
           info->components == stored->plan.components &&
           info->restart_interval == stored->plan.restart &&
           stored->h_samp == (grey ? 1 : info->h_samp[0]) &&
           stored->v_samp == (grey ? 1 : info->v_samp[0]) &&
           memcmp(data + stored->head_bytes + stored->scan_bytes, eoi, sizeof eoi) == 0;
}

/* All that can be said about a table without reading the scan. */
static int check_table(const PenEntryTable *t, const uint8_t *data, size_t bytes, PenError *reterr)
{
    const PenStoredEntries *stored = &t->stored;
    PenJpegHeader header;
    PenJpegEntries index;
    PenBuf entries = {0};
    int r = pen__jpeg_header(data, bytes, &pen__limits_default, &header, reterr);
    if (r == PEN_OK && !is_described(stored, &header.info, data))
        r = pen__fail(reterr, PEN_E_CORRUPT, WHERE,
                      "entry table: expected the parts, sampling and restart interval of this "
                      "file, found others");
    if (r == PEN_OK)
        r = pen__entries_parse(stored->coded, stored->coded_bytes, &stored->plan,
                               stored->scan_bytes, &entries, &index, reterr);
    pen__buf_free(&entries);
    return r;
}

/* Is the index of a JPEG the one that is found in the file? */
static int compare_index(PenEntryScan *scan, const PenStoredEntries *stored, const uint8_t *data,
                         size_t bytes, PenError *reterr)
{
    PenJpegHeader header;
    PenJpegEntries found;
    PenBuf coded = {0};
    const char *why = NULL;
    int r = pen__jpeg_header(data, bytes, &pen__limits_default, &header, reterr);
    if (r == PEN_OK)
        r = pen__entry_scan(scan, &header, data, bytes, stored->plan.unit, &found, &why, reterr);
    if (r == PEN_OK)
        r = pen__entries_write(&found, &coded, reterr);
    bool same = r == PEN_OK && found.scan_bytes == stored->scan_bytes &&
                coded.bytes == stored->coded_bytes &&
                memcmp(coded.data, stored->coded, coded.bytes) == 0;
    pen__buf_free(&coded);
    if (r < 0 || same)
        return r;
    return why ? pen__fail(reterr, PEN_E_CORRUPT, WHERE,
                           "entry table: expected none, because the file cannot have one (%s)", why)
               : pen__fail(reterr, PEN_E_CORRUPT, WHERE,
                           "entry table: expected the entries of this file, found others");
}

static int check_index(const PenEntryTable *t, const uint8_t *data, size_t bytes, PenError *reterr)
{
    PenEntryScan *scan = NULL;
    int r = pen__entry_scan_new(&scan, reterr);
    if (r == PEN_OK)
        r = compare_index(scan, &t->stored, data, bytes, reterr);
    pen__entry_scan_free(&scan);
    return r;
}

/* Does the image decode, to the size that the index states? */
static int check_decode(const PenImageEntry *e, const PenEntryTable *entries, const uint8_t *data,
                        PenError *reterr)
{
    PenPixels pixels = {0};
    if (e->codec == PEN_STORED_RAW)
        return PEN_OK; /* its size has been checked with the index */
    int r = pen__image_decode(data, (size_t)e->bytes, &pen__limits_default, &pixels, reterr);
    if (r == PEN_OK && (pixels.width != e->width || pixels.height != e->height))
        r = pen__fail(reterr, PEN_E_CORRUPT, WHERE, "%ux%u pixels, expected %ux%u", pixels.width,
                      pixels.height, e->width, e->height);
    if (r == PEN_OK && e->codec == PEN_STORED_JPEG && e->table_bytes && !entries) {
        uint32_t head, n;
        uint32_t *lengths = NULL;
        r = pen__jpeg_segments(data, (size_t)e->bytes, &pen__limits_default, &head, &lengths, &n,
                               reterr);
        pen__free(lengths);
    }
    pen__pixels_free(&pixels);
    return r == PEN_OK && entries ? check_index(entries, data, (size_t)e->bytes, reterr) : r;
}

/* Beyond the checksums: is the entry table that of the file, and does the image decode? */
static int check_content(const Verify *v, const PenSpot *at, const PenImageEntry *image,
                         const uint8_t *data, PenError *reterr)
{
    const PenBlock *b = at->block;
    bool indexed = pen__block_is_indexed(&b->view, image);
    PenEntryTable entries = {0};
    int r = PEN_OK;
    if (indexed) {
        entries = pen__block_entries(&b->view, image);
        r = check_table(&entries, data, (size_t)image->bytes, reterr);
    }
    if (r == PEN_OK && v->settings->decode)
        r = check_decode(image, indexed ? &entries : NULL, data, reterr);
    if (r < 0) {
        pen__error_prefix(reterr, "%s: sample %" PRIu64 ", field '%s', frame %u",
                          pen__pack_path(v->pack), b->first_sample + at->sample,
                          b->view.schema->fields[at->field].name, at->frame);
        reterr->sample = (int64_t)(b->first_sample + at->sample);
    }
    return r;
}

/* The bytes of a block: all of them, or, with videos, its index, and what is needed is read. */
typedef struct Bytes {
    const PenBlock *block;
    const uint8_t *all; /* NULL: only the index */
    PenBuf *buf;        /* for what is read */
} Bytes;

static int make_space(const Bytes *from, uint64_t bytes, PenError *reterr)
{
    from->buf->bytes = 0;
    if (bytes > SIZE_MAX / 4 || pen__buf_reserve(from->buf, (size_t)bytes + PEN_SLACK) < 0)
        return pen__fail_memory(reterr, WHERE, from->block->shard->shard.source->name);
    memset(from->buf->data + bytes, 0, PEN_SLACK);
    return PEN_OK;
}

static int get_image(const Bytes *from, const PenSpot *at, const PenImageEntry *e,
                     const uint8_t **ret, PenError *reterr)
{
    *ret = from->all ? from->all + e->offset : NULL;
    if (from->all)
        return pen__payload_check(at, e, *ret, reterr);
    int r = make_space(from, e->bytes, reterr);
    *ret = from->buf->data;
    return r < 0 ? r : pen__pack_read_image(at, e, from->buf->data, reterr);
}

static void check_image(Verify *v, const PenSpot *at, const Bytes *bytes, uint64_t *images)
{
    PenError e = {0};
    const PenBlockView *view = &at->block->view;
    PenImageEntry image = pen__block_image(view, at->sample, at->field, at->frame);
    const uint8_t *data = NULL;
    if (image.codec == PEN_STORED_NONE)
        return;
    (*images)++;
    int r = get_image(bytes, at, &image, &data, &e);
    if (r == PEN_OK && image.codec == PEN_STORED_JPEG && image.table_bytes &&
        !pen__block_is_indexed(view, &image))
        r = check_markers(at, &image, data, &e);
    if (r == PEN_OK)
        r = check_content(v, at, &image, data, &e);
    check(v, r, &e);
}

static void check_blob(Verify *v, const PenSpot *at, const Bytes *bytes)
{
    PenError e = {0};
    PenBlobEntry blob = pen__block_blob(&at->block->view, at->sample, at->field);
    int r = bytes->all ? pen__blob_check(at, &blob, bytes->all + blob.offset, &e)
                       : make_space(bytes, blob.bytes, &e);
    if (r == PEN_OK && !bytes->all)
        r = pen__pack_read_blob(at, &blob, bytes->buf->data, &e);
    check(v, r, &e);
}

/* Every packet in its table, and every run of its payload. */
static void check_video(Verify *v, const PenSpot *at, const PenVideoTable *table, PenBuf *buf)
{
    PenError e = {0};
    const PenBlock *b = at->block;
    int r = pen__video_table_check(table, &e);
    if (r < 0) {
        pen__error_prefix(&e, "%s: sample %" PRIu64 ", field '%s'", pen__pack_path(v->pack),
                          b->first_sample + at->sample, b->view.schema->fields[at->field].name);
        e.sample = (int64_t)(b->first_sample + at->sample);
    }
    check(v, r, &e);
    check(v, pen__pack_each_run(at, buf, NULL, NULL, &e), &e);
}

static void check_sample(Verify *v, const Bytes *bytes, uint32_t sample, uint64_t *images)
{
    const PenBlock *b = bytes->block;
    const PenSchema *schema = b->view.schema;
    PenSpot at = {.block = b, .sample = sample};
    for (at.field = 0; at.field < schema->n_fields; at.field++) {
        PenVideoTable video;
        uint32_t n = pen__block_images(&b->view, sample, at.field);
        for (at.frame = 0; at.frame < n; at.frame++)
            check_image(v, &at, bytes, images);
        at.frame = 0;
        if (pen__block_video(&b->view, sample, at.field, &video))
            check_video(v, &at, &video, bytes->buf);
        if (pen__field_is_blob(&schema->fields[at.field]))
            check_blob(v, &at, bytes);
    }
}

/* Does the shard's list of keys have the key of every sample? */
static int check_keys(const PenBlock *b, const uint8_t *keys, PenError *e)
{
    uint64_t n = b->shard->shard.n_samples;
    uint64_t first = (uint64_t)b->view.block * b->shard->shard.block_samples;
    for (uint32_t s = 0; s < b->view.n_samples; s++) {
        const uint8_t *key;
        uint32_t bytes;
        pen__block_key(&b->view, s, &key, &bytes);
        uint64_t hash = pen__key_hash(key, bytes);
        uint64_t i = pen__keys_lower(keys, n, hash);
        while (i < n && pen__keys_load(keys, i).hash == hash &&
               pen__keys_load(keys, i).sample != first + s)
            i++;
        if (i == n || pen__keys_load(keys, i).hash != hash)
            return pen__fail(e, PEN_E_CORRUPT, WHERE,
                             "%s: block %u, sample %u: its key is missing from the list of keys",
                             b->shard->shard.source->name, b->view.block, s);
    }
    return PEN_OK;
}

static int load_block(PenPack *p, uint64_t block, PenBuf *buf, PenShardRef *ref,
                      const PenBlockEntry *e, PenError *reterr)
{
    buf->bytes = 0;
    if (e->bytes > SIZE_MAX / 4 || pen__buf_reserve(buf, (size_t)e->bytes + PEN_SLACK) < 0)
        return pen__fail_memory(reterr, WHERE, ref->shard.source->name);
    return pen__block_fetch(p, block, ref, buf->data, reterr);
}

static int check_sections(const Bytes *from, PenError *reterr)
{
    const PenBlock *b = from->block;
    uint64_t offset = b->view.sections_offset, bytes = b->view.bytes - offset;
    if (from->all)
        return pen__sections_walk(b, from->all + offset, NULL, NULL, reterr);
    int r = make_space(from, bytes, reterr);
    if (r == PEN_OK)
        r = pen__block_read(b, offset, bytes, from->buf->data, reterr);
    if (r == PEN_OK)
        r = pen__sections_walk(b, from->buf->data, NULL, NULL, reterr);
    for (int i = 1; i < PEN_REMOTE_READS && r == PEN_E_CORRUPT; i++) {
        r = pen__block_read_again(b, offset, bytes, from->buf->data, reterr);
        if (r == PEN_OK)
            r = pen__sections_walk(b, from->buf->data, NULL, NULL, reterr);
    }
    return r;
}

static void check_all(Verify *v, PenShardRef *ref, const Bytes *bytes)
{
    PenError e = {0};
    uint64_t images = 0;
    const uint8_t *keys = NULL;
    const PenBlockView *view = &bytes->block->view;
    for (uint32_t s = 0; s < view->n_samples; s++)
        check_sample(v, bytes, s, &images);
    check(v, check_sections(bytes, &e), &e);
    /* A damaged list of keys is reported with the shard. */
    if (pen__pack_shard_keys(v->pack, ref, &keys, &e) == PEN_OK)
        check(v, check_keys(bytes->block, keys, &e), &e);
    else
        pass_over(v, &e);
    atomic_fetch_add(&v->bytes, view->bytes);
    pthread_mutex_lock(&v->mutex);
    v->result.blocks++;
    v->result.samples += view->n_samples;
    v->result.images += images;
    pthread_mutex_unlock(&v->mutex);
}

/* A block with videos may be larger than the memory. */
static void check_block_with_videos(Verify *v, PenShardRef *ref, uint64_t block, PenBuf *buf)
{
    PenError e = {0};
    PenBlock *b = NULL;
    if (pen__pack_block_take(v->pack, block, &b, &e) < 0) {
        report(v, &e);
        return;
    }
    check_all(v, ref, &(Bytes){.block = b, .buf = buf});
    pen__pack_block_put(v->pack, b);
}

static void check_block(Verify *v, PenShardRef *ref, uint64_t block, PenBuf *buf)
{
    PenError e = {0};
    PenBlock b;
    const PenManifest *m = pen__pack_manifest(v->pack);
    if (m->schema.has_videos) {
        check_block_with_videos(v, ref, block, buf);
        return;
    }
    PenBlockEntry entry = pen__shard_block(&ref->shard, block - m->shards[ref->number].first_block);
    int r = load_block(v->pack, block, buf, ref, &entry, &e);
    if (r == PEN_OK)
        r = pen__block_open_memory(v->pack, block, ref, buf->data, &b, &e);
    if (r < 0)
        report(v, &e);
    else
        check_all(v, ref, &(Bytes){.block = &b, .all = buf->data, .buf = buf});
}

/* ---- one shard ------------------------------------------------------------------------------ */

static int check_shard_header(const PenPack *p, PenShardRef *ref, PenError *e)
{
    uint8_t h[PEN_SHARD_HEADER_BYTES];
    int r = pen__source_read(ref->shard.source, h, sizeof h, 0, e);
    return r < 0 ? r : pen__shard_header_check(&ref->shard, &pen__pack_manifest(p)->schema, h, e);
}

static void check_shard(Verify *v, PenShardRef *ref)
{
    PenError e = {0};
    const uint8_t *keys;
    check(v, check_shard_header(v->pack, ref, &e), &e);
    check(v, pen__pack_shard_keys(v->pack, ref, &keys, &e), &e);
    uint64_t modified = pen__mapped_modified(ref->shard.source);
    atomic_fetch_add(&v->bytes,
                     PEN_SHARD_HEADER_BYTES + ref->shard.source->bytes - ref->shard.keys_offset);
    pthread_mutex_lock(&v->mutex);
    v->result.shards++;
    v->result.modified_files += modified;
    pthread_mutex_unlock(&v->mutex);
}

/* Passes over the blocks of a shard that cannot be read: the manifest may claim billions of them.
 */
static void go_on_at(Verify *v, uint64_t block)
{
    uint_fast64_t next = atomic_load(&v->next);
    while (next < block && !atomic_compare_exchange_weak(&v->next, &next, block))
        ;
}

static void take_blocks(void *ctx, unsigned number)
{
    Verify *v = ctx;
    PenBuf buf = {0};
    const PenManifest *m = pen__pack_manifest(v->pack);
    (void)number;
    while (!atomic_load(&v->is_cancelled)) {
        uint64_t block = atomic_fetch_add(&v->next, 1);
        if (block >= m->n_blocks)
            break;
        PenError e = {0};
        PenShardRef *ref = NULL;
        uint64_t shard = pen__pack_shard_of(v->pack, block);
        int first = block == m->shards[shard].first_block;
        int r = pen__pack_shard(v->pack, shard, &ref, &e);
        if (r < 0) {
            if (first) /* once for all of its blocks */
                report(v, &e);
            else
                pass_over(v, &e);
            go_on_at(v, m->shards[shard].first_block + m->shards[shard].blocks_used);
            continue;
        }
        if (first)
            check_shard(v, ref);
        check_block(v, ref, block, &buf);
        pen__pack_shard_put(v->pack, ref);
    }
    pen__buf_free(&buf);
}

/* ---- all ------------------------------------------------------------------------------------ */

static void show_progress(void *ctx)
{
    Verify *v = ctx;
    const PenVerifySettings *s = v->settings;
    uint64_t total = pen_pack_info(v->pack)->total_bytes;
    if (s->progress && !atomic_load(&v->is_cancelled) &&
        s->progress(s->ctx, atomic_load(&v->bytes), total))
        atomic_store(&v->is_cancelled, true);
}

static int outcome(Verify *v, PenError *reterr)
{
    if (atomic_load(&v->is_cancelled))
        return pen__fail(reterr, PEN_E_CANCELLED, WHERE, "%s: verification was stopped",
                         pen__pack_path(v->pack));
    if (!v->result.problems)
        return PEN_OK;
    if (reterr)
        *reterr = v->failure.status ? v->failure : v->first;
    return v->failure.status ? v->failure.status : PEN_E_CORRUPT;
}

static int run_all(Verify *v, PenError *reterr)
{
    PenTeamWork work = {"pen-verify", take_blocks, show_progress, v};
    unsigned n = v->settings->threads > 0 ? (unsigned)v->settings->threads : pen__thread_cores();
    PenError e = {0};
    int r = pen__team_run(&work, PEN_MIN(n, (unsigned)MOST_THREADS), reterr);
    if (r < 0)
        return r;
    if (!v->result.problems && v->passed.status)
        report(v, &v->passed);
    if (!atomic_load(&v->is_cancelled) && !v->result.problems)
        check(v, pen__pack_check_duplicates(v->pack, &e), &e);
    if (!atomic_load(&v->is_cancelled) && !v->result.problems)
        check(v, pen__pack_check_columns(v->pack, &e), &e);
    v->result.bytes = atomic_load(&v->bytes) + pen__pack_manifest(v->pack)->bytes;
    return outcome(v, reterr);
}

static int check_settings(const PenVerifySettings *s, PenError *reterr)
{
    if (s->threads < 0)
        return pen__fail(reterr, PEN_E_INVALID, WHERE,
                         "threads: expected a number, 0 or more, found %d", (int)s->threads);
    if (s->decode != 0 && s->decode != 1)
        return pen__fail(reterr, PEN_E_INVALID, WHERE, "decode: expected 0 or 1, found %d",
                         (int)s->decode);
    return PEN_OK;
}

static const PenVerifySettings DEFAULTS = {0};

void pen_verify_settings_init(PenVerifySettings *settings)
{
    *settings = DEFAULTS;
}

int pen_pack_verify(PenPack *pack, const PenVerifySettings *settings, PenVerifyResult *ret,
                    PenError *reterr)
{
    PenVerifySettings own = settings ? *settings : DEFAULTS;
    int r = check_settings(&own, reterr);
    if (r < 0)
        return r;
    Verify v = {.pack = pack, .settings = &own};
    pthread_mutex_init(&v.mutex, NULL);
    r = run_all(&v, reterr);
    if (ret)
        *ret = v.result;
    pthread_mutex_destroy(&v.mutex);
    return r;
}
