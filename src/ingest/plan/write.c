/* SPDX-License-Identifier: Apache-2.0 */
/* Writing the plan file; its layout is in plan_impl.h. */
#include <inttypes.h>
#include <string.h>

#include "base/bytes.h"
#include "base/crc32c.h"
#include "base/sha256.h"
#include "ingest/plan/plan_impl.h"
#include "io/dir.h"
#include "io/sink.h"
#include "pack/format/schema.h"

#define WHERE "ingest/plan"
#define BATCH_BYTES ((size_t)1 << 20)
#define REPORT_EVERY 65536

typedef struct Writer {
    PenPlanDraft *draft;
    PenSink *sink;
    PenBuf batch; /* not written yet */
    PenBuf table; /* what is not in the file of it */
    PenSpill table_file;
    uint64_t table_bytes;
    PenBuf marks;
    PenBuf texts;
    size_t hashed_texts; /* all but the roots, which are not part of the plan's identity */
    PenSha256 id;
    PenSha256 inputs;
    uint64_t source_bytes;
    uint64_t weight, stride; /* see pen__plan_marks */
    bool in_order;
    uint64_t table_offset;
} Writer;

static int flush(Writer *w, PenError *reterr)
{
    int r = pen__sink_write(w->sink, w->batch.data, w->batch.bytes, reterr);
    w->batch.bytes = 0;
    return r;
}

/* Of what the record says. */
static uint64_t count_bytes(Writer *w, const PenInput *input)
{
    uint64_t bytes = 0;
    const uint8_t *at = input->cells;
    for (uint32_t k = 0; k < input->n_cells; k++) {
        PenCell c;
        pen__cell_next(&at, &c);
        if (c.kind != PEN_PART_INLINE && c.kind != PEN_PART_NONE)
            bytes = pen__add_over(bytes, c.bytes, &bytes) ? UINT64_MAX : bytes;
        w->in_order = w->in_order || c.kind == PEN_PART_STREAM;
    }
    w->source_bytes += bytes;
    return bytes;
}

/* Behind the item at `position`. */
static int add_mark(Writer *w, uint64_t position, uint64_t item_bytes)
{
    uint8_t mark[8];
    if (item_bytes == UINT64_MAX || pen__add_over(w->weight, item_bytes + 1, &w->weight))
        w->weight = UINT64_MAX;
    if ((position + 1) % w->stride != 0 && position + 1 != w->draft->n)
        return PEN_OK;
    pen__store64(mark, w->weight);
    return pen__buf_add(&w->marks, mark, sizeof mark);
}

/* Of the record, its stamps, and those of the tar or .gulp that parts of it lie in. */
static void hash_inputs(const Writer *w, const PenInput *input, const uint8_t *record, size_t bytes,
                        uint8_t ret[PEN_ENTRY_INPUTS])
{
    PenSha256 sha;
    uint8_t hash[32], stamp[PEN_STAMP_BYTES + 8];
    pen__sha256_init(&sha);
    pen__sha256_update(&sha, record, bytes);
    const uint8_t *at = input->cells;
    for (uint32_t k = 0; k < input->n_cells; k++) {
        PenCell c;
        pen__cell_next(&at, &c);
        if (c.kind != PEN_PART_RANGE && c.kind != PEN_PART_STREAM && c.kind != PEN_PART_GULP)
            continue;
        const PenRoot *root = &w->draft->inputs.roots[c.source];
        pen__stamp_store(stamp, &root->stamp);
        pen__store64(stamp + PEN_STAMP_BYTES, root->bytes);
        pen__sha256_update(&sha, stamp, sizeof stamp);
    }
    pen__sha256_final(&sha, hash);
    memcpy(ret, hash, PEN_ENTRY_INPUTS);
}

/* The table follows the records, so that it has to wait for them. */
static int add_entry(Writer *w, const uint8_t entry[PEN_PLAN_ENTRY], PenError *reterr)
{
    if (pen__buf_add(&w->table, entry, PEN_PLAN_ENTRY) < 0)
        return pen__fail_memory(reterr, WHERE, "table of the plan");
    w->table_bytes += PEN_PLAN_ENTRY;
    if (!w->table_file.path || w->table.bytes < w->draft->inputs.space.memory)
        return PEN_OK;
    int r = pen__spill_write(&w->table_file, w->table.data, w->table.bytes, reterr);
    w->table.bytes = 0;
    return r;
}

static int write_table(Writer *w, PenError *reterr)
{
    uint64_t bytes = w->table_file.bytes;
    int r = PEN_OK;
    if (bytes && pen__buf_reserve(&w->batch, BATCH_BYTES) < 0)
        return pen__fail_memory(reterr, WHERE, "table of the plan");
    for (uint64_t at = 0; r == PEN_OK && at < bytes; at += BATCH_BYTES) {
        size_t n = (size_t)PEN_MIN(bytes - at, (uint64_t)BATCH_BYTES);
        r = pen__spill_read(&w->table_file, w->batch.data, n, at, reterr);
        if (r == PEN_OK)
            r = pen__sink_write(w->sink, w->batch.data, n, reterr);
    }
    return r < 0 ? r : pen__sink_write(w->sink, w->table.data, w->table.bytes, reterr);
}

static int write_record(Writer *w, uint64_t position, const PenInput *input, PenError *reterr)
{
    size_t begin = w->batch.bytes;
    uint64_t offset = pen__sink_bytes(w->sink) + begin;
    size_t stamps = 0;
    int r = pen__record_add(&w->draft->shape, input, &w->batch, &stamps, reterr);
    if (r < 0)
        return r;
    size_t bytes = w->batch.bytes - begin;
    if (bytes > UINT32_MAX)
        return pen__fail(reterr, PEN_E_LIMIT, WHERE,
                         "input %" PRIu64 ": expected a record below 4 GiB, found %zu bytes",
                         input->number, bytes);
    uint8_t entry[PEN_PLAN_ENTRY];
    pen__store64(entry, offset);
    pen__store32(entry + 8, (uint32_t)bytes);
    uint32_t crc = pen__crc32c(0, &position, sizeof position);
    hash_inputs(w, input, w->batch.data + begin, bytes, entry + PEN_PLAN_ENTRY - PEN_ENTRY_INPUTS);
    pen__sha256_update(&w->inputs, entry + PEN_PLAN_ENTRY - PEN_ENTRY_INPUTS, PEN_ENTRY_INPUTS);
    crc = pen__crc32c(crc, w->batch.data + begin, bytes);
    pen__store32(entry + 12,
                 pen__crc32c(crc, entry + PEN_PLAN_ENTRY - PEN_ENTRY_INPUTS, PEN_ENTRY_INPUTS));
    r = add_entry(w, entry, reterr);
    if (r < 0)
        return r;
    uint8_t hashed[4]; /* without the stamps: the same data elsewhere gives the same pack */
    pen__store32(hashed, (uint32_t)(stamps - begin));
    pen__sha256_update(&w->id, hashed, sizeof hashed);
    pen__sha256_update(&w->id, w->batch.data + begin, stamps - begin);
    if (add_mark(w, position, count_bytes(w, input)) < 0)
        return pen__fail_memory(reterr, WHERE, "marks of the plan");
    return w->batch.bytes >= BATCH_BYTES ? flush(w, reterr) : PEN_OK;
}

/* ---- texts ----------------------------------------------------------------------------------- */

/* bytes u32, the text, a NUL: a reader points into what it has loaded. */
static int add_string(PenBuf *out, const char *text)
{
    size_t n = strlen(text);
    if (n > UINT32_MAX / 2)
        return PEN_E_NO_MEMORY;
    uint32_t bytes = (uint32_t)n;
    int r = pen__buf_add(out, &bytes, sizeof bytes);
    return r < 0 ? r : pen__buf_add(out, text, n + 1);
}

static int add_field(PenBuf *out, const PenField *f)
{
    uint8_t head[20] = {(uint8_t)f->type, (uint8_t)f->flags, (uint8_t)f->n_dims, 0};
    for (uint32_t i = 0; i < 4; i++)
        pen__store32(head + 4 + i * 4, i < f->n_dims ? f->dims[i] : 0);
    int r = pen__buf_add(out, head, sizeof head);
    return r < 0 ? r : add_string(out, f->name);
}

static int add_root(PenBuf *out, const PenRoot *root)
{
    uint8_t head[9 + PEN_STAMP_BYTES] = {root->kind};
    pen__store64(head + 1, root->bytes);
    pen__stamp_store(head + 9, &root->stamp);
    int r = pen__buf_add(out, head, sizeof head);
    return r < 0 ? r : add_string(out, root->path);
}

static int add_list(PenBuf *out, const PenListed *list)
{
    uint8_t head[8 + PEN_STAMP_BYTES];
    pen__store64(head, list->bytes);
    pen__stamp_store(head + 8, &list->stamp);
    int r = pen__buf_add(out, head, sizeof head);
    return r < 0 ? r : add_string(out, list->path);
}

static int make_texts(Writer *w)
{
    const PenPlanSchema *shape = &w->draft->shape;
    const PenPlanRequest *request = w->draft->request;
    int r = add_string(&w->texts, request->settings_text);
    for (uint32_t i = 0; r == PEN_OK && i < shape->n_fields; i++)
        r = add_field(&w->texts, &shape->fields[i]);
    for (uint32_t i = 0; r == PEN_OK && i < shape->n_classes; i++)
        r = add_string(&w->texts, shape->classes[i]);
    w->hashed_texts = w->texts.bytes;
    for (uint32_t i = 0; r == PEN_OK && i < w->draft->inputs.n_roots; i++)
        r = add_root(&w->texts, &w->draft->inputs.roots[i]);
    for (uint32_t i = 0; r == PEN_OK && i < w->draft->inputs.n_lists; i++)
        r = add_list(&w->texts, &w->draft->inputs.lists[i]);
    return r;
}

/* ---- foot ------------------------------------------------------------------------------------ */

/* After the records: K, the fields, the classes, the settings and the base pack. */
static void finish_id(Writer *w, const uint8_t base[16], uint8_t ret[32])
{
    const PenPlanDraft *d = w->draft;
    uint8_t tail[48] = {0};
    pen__store64(tail, d->n);
    pen__store64(tail + 8, d->block_samples);
    pen__store32(tail + 16, d->shape.n_fields);
    pen__store32(tail + 20, d->shape.n_classes);
    pen__store32(tail + 24, (uint32_t)d->shape.class_field);
    memcpy(tail + 32, base, 16);
    pen__sha256_update(&w->id, tail, sizeof tail);
    pen__sha256_update(&w->id, w->texts.data, w->hashed_texts);
    pen__sha256_final(&w->id, ret);
}

/* May images of the pack have entry tables, and clips be videos? */
static uint32_t features(const PenPlanDraft *d)
{
    bool keeps = d->request->settings->video == PEN_VIDEOS_KEEP;
    bool entries =
        d->request->has_entries ||
        (d->request->makes_entries && pen__fields_have_images(d->shape.fields, d->shape.n_fields));
    return (entries ? PEN_PLAN_ENTRIES : 0u) |
           (keeps || d->request->has_videos ? PEN_PLAN_VIDEOS : 0u);
}

static void make_foot(Writer *w, uint8_t foot[PEN_PLAN_FOOT])
{
    const PenPlanDraft *d = w->draft;
    uint64_t texts_offset = w->table_offset + w->table_bytes + w->marks.bytes;
    static const char split[] = "parts by bytes"; /* tasks of an earlier version had other parts */
    memset(foot, 0, PEN_PLAN_FOOT);
    memcpy(foot + PEN_FOOT_MAGIC, PEN_PLAN_END_MAGIC, 8);
    pen__store32(foot + PEN_FOOT_VERSION, PEN_PLAN_VERSION);
    pen__store64(foot + PEN_FOOT_FILE_BYTES, texts_offset + w->texts.bytes + PEN_PLAN_FOOT);
    pen__store64(foot + PEN_FOOT_N_ITEMS, d->n);
    pen__store64(foot + PEN_FOOT_N_KNOWN, d->n_known);
    pen__store64(foot + PEN_FOOT_BLOCK_SAMPLES, d->block_samples);
    pen__store64(foot + PEN_FOOT_SOURCE_BYTES, w->source_bytes);
    pen__store64(foot + PEN_FOOT_TABLE_OFFSET, w->table_offset);
    pen__store64(foot + PEN_FOOT_TEXTS_OFFSET, texts_offset);
    pen__store32(foot + PEN_FOOT_TEXTS_CRC, pen__crc32c(0, w->texts.data, w->texts.bytes));
    pen__store32(foot + PEN_FOOT_N_FIELDS, d->shape.n_fields);
    pen__store32(foot + PEN_FOOT_N_CLASSES, d->shape.n_classes);
    pen__store32(foot + PEN_FOOT_N_ROOTS, d->inputs.n_roots);
    pen__store32(foot + PEN_FOOT_CLASS_FIELD, (uint32_t)d->shape.class_field);
    pen__store32(foot + PEN_FOOT_IN_ORDER, w->in_order);
    if (d->request->base)
        memcpy(foot + PEN_FOOT_BASE, d->request->base->id, 16);
    finish_id(w, foot + PEN_FOOT_BASE, foot + PEN_FOOT_ID);
    pen__store32(foot + PEN_FOOT_N_LISTS, d->inputs.n_lists);
    pen__store32(foot + PEN_FOOT_FEATURES, features(d));
    pen__store32(foot + PEN_FOOT_STRIDE, (uint32_t)w->stride);
    pen__store32(foot + PEN_FOOT_MARKS_CRC, pen__crc32c(0, w->marks.data, w->marks.bytes));
    pen__sha256_update(&w->inputs, split, sizeof split);
    pen__sha256_update(&w->inputs, foot + PEN_FOOT_ID, 32);
    pen__sha256_final(&w->inputs, foot + PEN_FOOT_INPUTS);
    pen__store32(foot + PEN_FOOT_CRC,
                 pen__crc32c(0, foot + PEN_FOOT_FILE_BYTES, PEN_PLAN_FOOT - PEN_FOOT_FILE_BYTES));
}

static int write_records(Writer *w, PenError *reterr)
{
    PenPlanDraft *d = w->draft;
    PenInput input;
    uint64_t i = 0;
    int r = pen__sequence_start(&d->sequence, reterr);
    while (r == PEN_OK && (r = pen__sequence_next(&d->sequence, &input, reterr)) == PEN_OK) {
        if (i % REPORT_EVERY == 0)
            r = pen__inputs_report(&d->inputs, "plan", i, d->n, reterr);
        if (r == PEN_OK)
            r = pen__probes_offer(d, i, &input, reterr);
        if (r == PEN_OK)
            r = write_record(w, i++, &input, reterr);
    }
    return r == PEN_END ? flush(w, reterr) : r;
}

static int write_all(Writer *w, PenError *reterr)
{
    uint8_t head[PEN_PLAN_HEAD] = PEN_PLAN_MAGIC;
    pen__store64(head + 8, PEN_PLAN_VERSION);
    uint64_t table = w->draft->n * PEN_PLAN_ENTRY;
    if (w->table_file.path)
        table = PEN_MIN(table, w->draft->inputs.space.memory + PEN_PLAN_ENTRY);
    if (pen__buf_reserve(&w->table, (size_t)table) < 0 ||
        pen__buf_reserve(&w->marks, (size_t)pen__marks_count(w->draft->n, w->stride) * 8) < 0)
        return pen__fail_memory(reterr, WHERE, "table of the plan");
    int r = pen__sink_write(w->sink, head, sizeof head, reterr);
    if (r == PEN_OK)
        r = write_records(w, reterr);
    w->table_offset = pen__sink_bytes(w->sink);
    if (r == PEN_OK && !w->draft->block_samples)
        r = pen__block_samples_choose(w->draft, &w->draft->block_samples, reterr);
    if (r == PEN_OK)
        r = write_table(w, reterr);
    if (r < 0)
        return r;
    if (make_texts(w) < 0)
        return pen__fail_memory(reterr, WHERE, "texts of the plan");
    uint8_t foot[PEN_PLAN_FOOT];
    make_foot(w, foot);
    struct iovec pieces[] = {
        {w->marks.data, w->marks.bytes}, {w->texts.data, w->texts.bytes}, {foot, sizeof foot}};
    return pen__sink_writev(w->sink, pieces, (int)PEN_LEN(pieces), reterr);
}

int pen__plan_write(PenPlanDraft *draft, const char *path, PenError *reterr)
{
    Writer w = {.draft = draft,
                .stride = pen__marks_stride(draft->n),
                .table_file.path = draft->inputs.space.path};
    static const char begin[] = "penstock plan 0";
    pen__sha256_init(&w.id);
    pen__sha256_init(&w.inputs);
    pen__sha256_update(&w.id, begin, sizeof begin);
    char *part_path = pen__path_add(path, ".part");
    if (!part_path)
        return pen__fail_memory(reterr, WHERE, path);
    int r = pen__sink_open(part_path, &w.sink, reterr);
    if (r == PEN_OK)
        r = write_all(&w, reterr);
    if (r == PEN_OK)
        r = pen__sink_commit(&w.sink, path, reterr);
    else
        pen__sink_abort(&w.sink);
    pen__free(part_path);
    pen__buf_free(&w.batch);
    pen__buf_free(&w.table);
    pen__spill_close(&w.table_file);
    pen__buf_free(&w.marks);
    pen__buf_free(&w.texts);
    return r;
}
