/* SPDX-License-Identifier: Apache-2.0 */
/* Reading the plan file; its layout is in plan_impl.h. Nothing of it is trusted: a record is read
 * through its entry in the table, whose checksum covers the record and its position, so neither a
 * damaged entry nor a damaged record goes unnoticed, and opening does not have to read them all. */
#include <inttypes.h>
#include <string.h>

#include "base/bytes.h"
#include "base/crc32c.h"
#include "base/sha256.h"
#include "ingest/plan/plan_impl.h"
#include "io/pages.h"
#include "io/remote_source.h"

#define WHERE "ingest/plan"
#define MAX_TEXTS ((uint64_t)1 << 30)

struct PenPlan {
    PenSource *source;
    PenRemote *remote; /* where the source is; NULL: it is a file */
    uint64_t table_offset;
    uint64_t stride; /* of the marks; 0: there are none */
    PenBuf marks;
    PenBuf texts;
    PenField *fields;
    const char **classes;
    PenRoot *roots;
    PenListed *lists;
    uint32_t n_lists;
    size_t fields_end; /* in the texts: of the settings and fields */
    PenPlanInfo info;
    PenRecordFrame frame;
};

static int fail(const PenPlan *p, int status, const char *what, PenError *reterr)
{
    return pen__fail(reterr, status, WHERE,
                     "%s: %s; discard it with 'penstock gc --abandon' and start again",
                     p->source->name, what);
}

static int fail_corrupt(const PenPlan *p, const char *what, PenError *reterr)
{
    return fail(p, PEN_E_CORRUPT, what, reterr);
}

/* ---- texts ----------------------------------------------------------------------------------- */

typedef struct Texts {
    const uint8_t *p, *end;
} Texts;

/* NULL when there are not that many bytes. */
static const uint8_t *take(Texts *t, uint64_t bytes)
{
    if (bytes > (uint64_t)(t->end - t->p))
        return NULL;
    const uint8_t *p = t->p;
    t->p += bytes;
    return p;
}

static const char *take_string(Texts *t)
{
    const uint8_t *head = take(t, 4);
    const uint8_t *text = head ? take(t, (uint64_t)pen__load32(head) + 1) : NULL;
    return text && strnlen((const char *)text, pen__load32(head) + (size_t)1) == pen__load32(head)
               ? (const char *)text
               : NULL;
}

static bool take_field(Texts *t, PenField *ret)
{
    const uint8_t *head = take(t, 20);
    const char *name = head ? take_string(t) : NULL;
    if (!name || head[0] < PEN_TYPE_IMAGE || head[0] > PEN_TYPE_F64 || head[2] || head[3])
        return false;
    *ret = (PenField){.name = name, .type = head[0], .flags = head[1]};
    return true;
}

static bool take_root(Texts *t, PenRoot *ret)
{
    const uint8_t *head = take(t, 9 + PEN_STAMP_BYTES);
    const char *path = head ? take_string(t) : NULL;
    if (!path || head[0] < PEN_ROOT_FOLDER || head[0] > PEN_ROOT_ANYWHERE)
        return false;
    *ret = (PenRoot){head[0], path, pen__load64(head + 1), pen__stamp_load(head + 9)};
    return true;
}

static bool take_list(Texts *t, PenListed *ret)
{
    const uint8_t *head = take(t, 8 + PEN_STAMP_BYTES);
    const char *path = head ? take_string(t) : NULL;
    if (!path)
        return false;
    *ret = (PenListed){path, pen__load64(head), pen__stamp_load(head + 8)};
    return true;
}

static int parse_texts(PenPlan *p, uint32_t n_roots, PenError *reterr)
{
    Texts t = {p->texts.data, p->texts.data + p->texts.bytes};
    PenPlanInfo *info = &p->info;
    info->settings = take_string(&t);
    bool ok = info->settings;
    for (uint32_t i = 0; ok && i < info->n_fields; i++)
        ok = take_field(&t, &p->fields[i]);
    p->fields_end = (size_t)(t.p - p->texts.data);
    for (uint32_t i = 0; ok && i < info->n_classes; i++) {
        p->classes[i] = take_string(&t);
        ok = p->classes[i];
    }
    for (uint32_t i = 0; ok && i < n_roots; i++)
        ok = take_root(&t, &p->roots[i]);
    for (uint32_t i = 0; ok && i < p->n_lists; i++)
        ok = take_list(&t, &p->lists[i]);
    if (!ok || t.p != t.end)
        return fail_corrupt(
            p, "expected settings, fields, classes and sources, found something else", reterr);
    bool has_classes = info->class_field >= 0;
    if (info->class_field < -1 || info->class_field >= (int32_t)info->n_fields ||
        (has_classes && p->fields[info->class_field].type != PEN_TYPE_I64) ||
        (!has_classes && info->n_classes))
        return fail_corrupt(p, "expected classes of an integer field, found another field", reterr);
    return PEN_OK;
}

/* ---- opening --------------------------------------------------------------------------------- */

static void take_foot(PenPlan *p, const uint8_t *foot)
{
    PenPlanInfo *info = &p->info;
    memcpy(info->id, foot + PEN_FOOT_ID, 32);
    memcpy(info->base, foot + PEN_FOOT_BASE, 16);
    memcpy(info->inputs, foot + PEN_FOOT_INPUTS, 32);
    info->n_items = pen__load64(foot + PEN_FOOT_N_ITEMS);
    info->n_known = pen__load64(foot + PEN_FOOT_N_KNOWN);
    info->block_samples = pen__load64(foot + PEN_FOOT_BLOCK_SAMPLES);
    info->source_bytes = pen__load64(foot + PEN_FOOT_SOURCE_BYTES);
    info->n_fields = pen__load32(foot + PEN_FOOT_N_FIELDS);
    info->n_classes = pen__load32(foot + PEN_FOOT_N_CLASSES);
    info->class_field = (int32_t)pen__load32(foot + PEN_FOOT_CLASS_FIELD);
    info->in_order = pen__load32(foot + PEN_FOOT_IN_ORDER) != 0;
    info->has_entries = (pen__load32(foot + PEN_FOOT_FEATURES) & PEN_PLAN_ENTRIES) != 0;
    info->has_videos = (pen__load32(foot + PEN_FOOT_FEATURES) & PEN_PLAN_VIDEOS) != 0;
    p->table_offset = pen__load64(foot + PEN_FOOT_TABLE_OFFSET);
    p->n_lists = pen__load32(foot + PEN_FOOT_N_LISTS);
    p->stride = pen__load32(foot + PEN_FOOT_STRIDE);
}

static int read_foot(PenPlan *p, uint8_t foot[PEN_PLAN_FOOT], PenError *reterr)
{
    uint8_t head[PEN_PLAN_HEAD];
    uint64_t bytes = p->source->bytes;
    if (bytes < PEN_PLAN_HEAD + PEN_PLAN_FOOT)
        return fail_corrupt(p, "expected a plan, found a file that is too short", reterr);
    int r = pen__source_read(p->source, head, sizeof head, 0, reterr);
    if (r == PEN_OK)
        r = pen__source_read(p->source, foot, PEN_PLAN_FOOT, bytes - PEN_PLAN_FOOT, reterr);
    if (r < 0)
        return r;
    if (memcmp(head, PEN_PLAN_MAGIC, 8) != 0 ||
        memcmp(foot + PEN_FOOT_MAGIC, PEN_PLAN_END_MAGIC, 8) != 0)
        return fail(p, PEN_E_FORMAT, "expected a plan, found another file", reterr);
    uint64_t version = pen__load64(head + 8);
    if ((version != PEN_PLAN_VERSION && version != PEN_PLAN_UNMARKED) ||
        pen__load32(foot + PEN_FOOT_VERSION) != version)
        return fail(p, PEN_E_FORMAT, "expected a plan of this version, found another", reterr);
    if (pen__crc32c(0, foot + PEN_FOOT_FILE_BYTES, PEN_PLAN_FOOT - PEN_FOOT_FILE_BYTES) !=
        pen__load32(foot + PEN_FOOT_CRC))
        return fail_corrupt(p, "the checksum of the footer does not match", reterr);
    if ((pen__load32(foot + PEN_FOOT_STRIDE) != 0) != (version == PEN_PLAN_VERSION))
        return fail_corrupt(p, "expected marks in a plan of this version alone", reterr);
    return PEN_OK;
}

/* Where everything lies: the parts follow each other without a gap. */
static int check_places(PenPlan *p, const uint8_t *foot, PenError *reterr)
{
    const PenPlanInfo *info = &p->info;
    uint64_t texts = pen__load64(foot + PEN_FOOT_TEXTS_OFFSET);
    uint64_t end = p->source->bytes - PEN_PLAN_FOOT;
    uint64_t table_bytes, table_end;
    uint64_t n_marks = pen__marks_count(info->n_items, p->stride);
    if (pen__load64(foot + PEN_FOOT_FILE_BYTES) != p->source->bytes ||
        p->table_offset < PEN_PLAN_HEAD ||
        pen__mul_over(info->n_items, PEN_PLAN_ENTRY, &table_bytes) ||
        pen__add_over(p->table_offset, table_bytes, &table_end) || n_marks > PEN_PLAN_MARKS ||
        table_end > texts || texts - table_end != n_marks * 8 || texts > end ||
        end - texts > MAX_TEXTS)
        return fail_corrupt(p, "expected contiguous sections, found other offsets", reterr);
    /* A text takes at least five bytes, so that no count asks for more memory than the file has. */
    uint64_t n_texts = (uint64_t)info->n_fields + info->n_classes +
                       pen__load32(foot + PEN_FOOT_N_ROOTS) + p->n_lists;
    if (info->n_fields < 1 || info->n_fields > PEN_FIELD_LIMIT || n_texts > (end - texts) / 5 ||
        info->block_samples < 1 || info->block_samples > (uint64_t)1 << 31)
        return fail_corrupt(p, "expected counts that fit into the file, found larger ones", reterr);
    return PEN_OK;
}

static int load_marks(PenPlan *p, const uint8_t *foot, PenError *reterr)
{
    size_t bytes = (size_t)pen__marks_count(p->info.n_items, p->stride) * 8;
    uint64_t offset = pen__load64(foot + PEN_FOOT_TEXTS_OFFSET) - bytes;
    if (pen__buf_reserve(&p->marks, bytes + 1) < 0)
        return pen__fail_memory(reterr, WHERE, p->source->name);
    int r = pen__source_read(p->source, p->marks.data, bytes, offset, reterr);
    if (r < 0)
        return r;
    p->marks.bytes = bytes;
    if (pen__crc32c(0, p->marks.data, bytes) != pen__load32(foot + PEN_FOOT_MARKS_CRC))
        return fail_corrupt(p, "the checksum of the marks does not match", reterr);
    for (size_t at = 8; at < bytes; at += 8)
        if (pen__load64(p->marks.data + at) < pen__load64(p->marks.data + at - 8))
            return fail_corrupt(p, "expected marks that rise, found others", reterr);
    return PEN_OK;
}

static int load_texts(PenPlan *p, const uint8_t *foot, PenError *reterr)
{
    uint64_t offset = pen__load64(foot + PEN_FOOT_TEXTS_OFFSET);
    size_t bytes = (size_t)(p->source->bytes - PEN_PLAN_FOOT - offset);
    uint32_t n_roots = pen__load32(foot + PEN_FOOT_N_ROOTS);
    p->fields = pen__alloc_array(p->info.n_fields, sizeof *p->fields);
    p->classes = pen__alloc_array(p->info.n_classes, sizeof *p->classes);
    p->roots = pen__alloc_array(n_roots, sizeof *p->roots);
    p->lists = pen__alloc_array(p->n_lists, sizeof *p->lists);
    if (!p->fields || !p->classes || !p->roots || !p->lists ||
        pen__buf_reserve(&p->texts, bytes + 1) < 0)
        return pen__fail_memory(reterr, WHERE, p->source->name);
    int r = pen__source_read(p->source, p->texts.data, bytes, offset, reterr);
    if (r < 0)
        return r;
    p->texts.bytes = bytes;
    if (pen__crc32c(0, p->texts.data, bytes) != pen__load32(foot + PEN_FOOT_TEXTS_CRC))
        return fail_corrupt(p, "the checksum of the texts does not match", reterr);
    r = parse_texts(p, n_roots, reterr);
    if (r < 0)
        return r;
    p->info.fields = p->fields;
    p->info.classes = p->classes;
    p->frame =
        (PenRecordFrame){p->info.n_fields, p->fields, n_roots, p->roots, PEN_RUN_AGAIN, NULL, NULL};
    return PEN_OK;
}

/* All but the items. */
static int load(PenPlan *p, PenError *reterr)
{
    uint8_t foot[PEN_PLAN_FOOT];
    int r = read_foot(p, foot, reterr);
    if (r == PEN_OK) {
        take_foot(p, foot);
        r = check_places(p, foot, reterr);
    }
    if (r == PEN_OK && p->stride)
        r = load_marks(p, foot, reterr);
    return r < 0 ? r : load_texts(p, foot, reterr);
}

static int open_source(PenSource **source, PenPlan **ret_plan, PenError *reterr)
{
    PenPlan *p = pen__zalloc(sizeof *p);
    if (!p) {
        pen__fail_memory(reterr, WHERE, (*source)->name);
        pen__source_close(source);
        return PEN_E_NO_MEMORY;
    }
    p->source = *source;
    *source = NULL;
    int r = load(p, reterr);
    if (r < 0)
        pen__plan_close(&p);
    else
        *ret_plan = p;
    return r;
}

int pen__plan_open(const char *path, PenPlan **ret_plan, PenError *reterr)
{
    PenSource *source = NULL;
    int r = pen__source_open_file(path, &source, reterr);
    return r < 0 ? r : open_source(&source, ret_plan, reterr);
}

int pen__plan_open_remote(PenRemote *remote, const char *name, uint64_t end_bytes,
                          PenPlan **ret_plan, PenError *reterr)
{
    PenPlan *p = NULL;
    PenSource *source = NULL;
    int r = pen__source_open_remote(remote, name, end_bytes, &source, reterr);
    if (r == PEN_OK)
        r = open_source(&source, &p, reterr);
    if (r != PEN_OK)
        return r;
    pen__source_settle(p->source);
    r = pen__source_pages(&p->source, reterr);
    p->remote = pen__remote_ref(remote);
    if (r < 0)
        pen__plan_close(&p);
    else
        *ret_plan = p;
    return r;
}

void pen__plan_stop(const PenPlan *plan, int stop)
{
    if (plan->remote)
        pen__remote_stop(plan->remote, stop);
}

void pen__plan_close(PenPlan **plan)
{
    if (!plan || !*plan)
        return;
    PenPlan *p = *plan;
    pen__source_close(&p->source);
    pen__remote_close(&p->remote);
    pen__buf_free(&p->marks);
    pen__buf_free(&p->texts);
    pen__free(p->fields);
    pen__free(p->classes);
    pen__free(p->roots);
    pen__free(p->lists);
    pen__free(p);
    *plan = NULL;
}

const PenPlanInfo *pen__plan_info(const PenPlan *plan)
{
    return &plan->info;
}

uint64_t pen__plan_end_bytes(const PenPlan *plan)
{
    return plan->source->bytes - plan->table_offset - plan->info.n_items * PEN_PLAN_ENTRY;
}

const PenRecordFrame *pen__plan_frame(const PenPlan *plan)
{
    return &plan->frame;
}

const PenListed *pen__plan_lists(const PenPlan *plan, uint32_t *ret_n)
{
    *ret_n = plan->n_lists;
    return plan->lists;
}

PenMarks pen__plan_marks(const PenPlan *plan)
{
    return (PenMarks){plan->stride ? plan->marks.data : NULL, plan->marks.bytes / 8, plan->stride};
}

void pen__plan_advise(PenPlan *plan, const char *advice)
{
    plan->frame.advice = advice;
}

void pen__plan_connect(PenPlan *plan, PenPlaces *places, const PenSummaries *summaries)
{
    plan->frame.summaries = summaries;
    plan->frame.places = places;
}

int pen__plan_is_remote(const PenPlan *plan)
{
    for (uint32_t i = 0; i < plan->frame.n_roots; i++)
        if (pen_is_remote(plan->frame.roots[i].path))
            return 1;
    return 0;
}

uint64_t pen__item_bytes(const PenItem *item)
{
    uint64_t bytes = 0;
    for (uint32_t i = 0; i < item->n_parts; i++)
        if (pen__add_over(bytes, item->parts[i].bytes, &bytes))
            return UINT64_MAX;
    return bytes;
}

/* ---- items ----------------------------------------------------------------------------------- */

/* A plan that was removed is not an input that is missing. */
static int read_bytes(const PenPlan *plan, void *buf, size_t bytes, uint64_t offset,
                      PenError *reterr)
{
    int r = pen__source_read(plan->source, buf, bytes, offset, reterr);
    if (r == PEN_E_NOT_FOUND)
        return pen__fail(reterr, PEN_E_CHANGED, WHERE,
                         "%s: the plan was removed while this task was running: the pack was "
                         "published, or the plan was discarded with 'penstock gc --abandon'",
                         plan->source->name);
    return r;
}

int pen__plan_item(const PenPlan *plan, uint64_t position, PenItem *ret, PenBuf *scratch,
                   PenError *reterr)
{
    const char *name = plan->source->name;
    if (position >= plan->info.n_items)
        return pen__fail(reterr, PEN_E_NOT_FOUND, WHERE,
                         "%s: expected a position below %" PRIu64 ", found %" PRIu64, name,
                         plan->info.n_items, position);
    uint8_t entry[PEN_PLAN_ENTRY];
    int r = read_bytes(plan, entry, sizeof entry, plan->table_offset + position * PEN_PLAN_ENTRY,
                       reterr);
    if (r < 0)
        return r;
    uint64_t offset = pen__load64(entry);
    uint32_t bytes = pen__load32(entry + 8);
    if (offset < PEN_PLAN_HEAD || !pen__range_ok(offset, bytes, plan->table_offset))
        return pen__fail(reterr, PEN_E_CORRUPT, WHERE,
                         "%s: item %" PRIu64 ": expected its record below offset %" PRIu64
                         ", found %" PRIu32 " bytes at %" PRIu64,
                         name, position, plan->table_offset, bytes, offset);
    scratch->bytes = 0;
    if (pen__buf_reserve(scratch, bytes) < 0)
        return pen__fail_memory(reterr, WHERE, name);
    r = read_bytes(plan, scratch->data, bytes, offset, reterr);
    if (r < 0)
        return r;
    uint32_t crc = pen__crc32c(0, &position, sizeof position);
    crc = pen__crc32c(crc, scratch->data, bytes);
    crc = pen__crc32c(crc, entry + PEN_PLAN_ENTRY - PEN_ENTRY_INPUTS, PEN_ENTRY_INPUTS);
    if (crc != pen__load32(entry + 12))
        return pen__fail(reterr, PEN_E_CORRUPT, WHERE,
                         "%s: item %" PRIu64 ": the checksum of its record at offset %" PRIu64
                         " does not match; discard it with 'penstock gc --abandon' and start again",
                         name, position, offset);
    scratch->bytes = bytes;
    r = pen__record_parse(&plan->frame, ret, scratch, reterr);
    if (r < 0)
        pen__error_prefix(reterr, "%s: item %" PRIu64, name, position);
    return r;
}

/* ---- what samples follow from ---------------------------------------------------------------- */

enum { HASHED_AT_ONCE = 512 };

static int hash_entries(const PenPlan *plan, uint64_t first, uint64_t end, PenSha256 *sha,
                        PenError *reterr)
{
    uint8_t entries[HASHED_AT_ONCE * PEN_PLAN_ENTRY];
    while (first < end) {
        uint64_t n = PEN_MIN(end - first, (uint64_t)HASHED_AT_ONCE);
        int r = read_bytes(plan, entries, (size_t)n * PEN_PLAN_ENTRY,
                           plan->table_offset + first * PEN_PLAN_ENTRY, reterr);
        if (r < 0)
            return r;
        for (uint64_t i = 0; i < n; i++)
            pen__sha256_update(sha, entries + (i + 1) * PEN_PLAN_ENTRY - PEN_ENTRY_INPUTS,
                               PEN_ENTRY_INPUTS);
        first += n;
    }
    return PEN_OK;
}

int pen__plan_hash(const PenPlan *plan, uint64_t first, uint64_t end, uint8_t ret[32],
                   PenError *reterr)
{
    static const char begin[] = "penstock inputs 1";
    uint8_t numbers[8];
    PenSha256 sha;
    end = PEN_MIN(end, plan->info.n_items);
    pen__store64(numbers, plan->info.block_samples);
    pen__sha256_init(&sha);
    pen__sha256_update(&sha, begin, sizeof begin);
    pen__sha256_update(&sha, numbers, sizeof numbers);
    pen__sha256_update(&sha, plan->info.base, sizeof plan->info.base);
    pen__sha256_update(&sha, plan->texts.data, plan->fields_end);
    int r = hash_entries(plan, first, end, &sha, reterr);
    if (r == PEN_OK)
        pen__sha256_final(&sha, ret);
    return r;
}
