/* SPDX-License-Identifier: Apache-2.0 */
#include "ingest/prepare/summarize.h"

#include <string.h>

#include "base/bytes.h"
#include "base/crc32c.h"
#include "ingest/source/input.h"
#include "ingest/source/object.h"
#include "pack/format/entry_table.h"

#define WHERE "ingest/summary"

/* An image in a record:
 *   +0     width u32, height u32, codec u8, how u8, orientation u8, channels u8, mask u8, zeros 3
 *   +16    lead_bytes u32, head_bytes u32, scan_bytes u32, h_samp u8, v_samp u8, zeros 2
 *   +32    of the entries' plan: n_mcus u32, restart u32, unit u32, components u32
 *   +48    sum u32, bytes of sums u32, of entries u32, of why it has none u32
 *   +64    sums, entries, why, NUL */
enum { FIXED = 64 };

typedef struct Tar {
    const PenSummarize *s;
    PenSource *source;
    PenSummaryWriter *out;
    PenBuf data, record;
} Tar;

/* ---- an image as bytes ----------------------------------------------------------------------- */

static int put_image(const PenPreparedImage *p, bool mask, PenBuf *out)
{
    const PenStoredImage *i = &p->image;
    const PenStoredEntries *e = &i->entries;
    bool indexed = e->plan.n_entries;
    PenBuf sums = {0};
    uint8_t f[FIXED] = {0};
    int r = indexed ? pen__entry_table_sums(e, i->data, i->bytes, &sums) : PEN_OK;
    const char *why = p->no_index ? p->no_index : "";
    uint64_t lead = indexed ? e->lead_bytes : i->bytes;
    pen__store32(f, i->width);
    pen__store32(f + 4, i->height);
    const uint8_t marks[] = {i->codec, i->how, i->orientation, i->channels, mask};
    memcpy(f + 8, marks, sizeof marks);
    pen__store32(f + 16, e->lead_bytes);
    pen__store32(f + 20, e->head_bytes);
    pen__store32(f + 24, e->scan_bytes);
    f[28] = e->h_samp;
    f[29] = e->v_samp;
    pen__store32(f + 32, e->plan.n_mcus);
    pen__store32(f + 36, e->plan.restart);
    pen__store32(f + 40, e->plan.unit);
    pen__store32(f + 44, e->plan.components);
    pen__store32(f + 48, pen__crc32c(0, i->data, (size_t)lead));
    pen__store32(f + 52, (uint32_t)sums.bytes);
    pen__store32(f + 56, (uint32_t)(indexed ? e->coded_bytes : 0));
    pen__store32(f + 60, (uint32_t)strlen(why));
    out->bytes = 0;
    if (r == PEN_OK)
        r = pen__buf_add(out, f, sizeof f);
    if (r == PEN_OK && indexed)
        r = pen__buf_add(out, sums.data, sums.bytes);
    if (r == PEN_OK && indexed)
        r = pen__buf_add(out, e->coded, e->coded_bytes);
    if (r == PEN_OK)
        r = pen__buf_add(out, why, strlen(why) + 1);
    pen__buf_free(&sums);
    return r;
}

/* Where the parts of a record are; false: it is too short. */
static bool parts_fit(const PenMemberRecord *m, uint64_t *ret_entries, uint64_t *ret_why)
{
    const uint8_t *f = m->data;
    if (m->data_bytes <= FIXED)
        return false;
    *ret_entries = FIXED + (uint64_t)pen__load32(f + 52);
    *ret_why = *ret_entries + pen__load32(f + 56);
    return *ret_why + pen__load32(f + 60) + 1 == m->data_bytes && !f[m->data_bytes - 1];
}

/* False: its numbers do not fit together, so that the table could not be written. */
static bool get_entries(const PenMemberRecord *m, uint64_t entries, PenStoredEntries *ret)
{
    const uint8_t *f = m->data;
    *ret = (PenStoredEntries){.lead_bytes = pen__load32(f + 16),
                              .head_bytes = pen__load32(f + 20),
                              .scan_bytes = pen__load32(f + 24),
                              .h_samp = f[28],
                              .v_samp = f[29],
                              .coded = f + entries,
                              .coded_bytes = pen__load32(f + 56),
                              .sums = f + FIXED};
    uint32_t n_mcus = pen__load32(f + 32), restart = pen__load32(f + 36),
             unit = pen__load32(f + 40);
    uint64_t runs = ((uint64_t)ret->scan_bytes + PEN_RUN_BYTES - 1) / PEN_RUN_BYTES;
    if (!n_mcus || !unit || unit > UINT16_MAX || restart > UINT16_MAX ||
        4 * (runs + 2) != pen__load32(f + 52) || ret->lead_bytes > ret->head_bytes ||
        (uint64_t)ret->head_bytes + ret->scan_bytes > m->member.bytes)
        return false;
    pen__entry_plan(n_mcus, restart, unit, pen__load32(f + 44), &ret->plan);
    return true;
}

static int broken(const PenMemberRecord *m, const char *name, PenError *reterr)
{
    const char *where = (const char *)m->data + 4;
    if (m->data_bytes < 6 || m->data[m->data_bytes - 1])
        return PEN_END;
    const char *message = where + strlen(where) + 1, *end = (const char *)m->data + m->data_bytes;
    int status = (int32_t)pen__load32(m->data);
    if (message >= end || !pen__status_is_bad_input(status))
        return PEN_END;
    return pen__fail(reterr, status, where, "%s: %s", name, message);
}

int pen__summary_image(const PenMemberRecord *m, bool mask, const char *name, PenPreparedImage *p,
                       PenError *reterr)
{
    const uint8_t *f = m->data;
    uint64_t entries, why;
    if (m->kind == PEN_MEMBER_BAD)
        return broken(m, name, reterr);
    if (m->kind != PEN_MEMBER_IMAGE || !parts_fit(m, &entries, &why) || f[12] != mask)
        return PEN_END;
    p->image = (PenStoredImage){.bytes = m->member.bytes,
                                .width = pen__load32(f),
                                .height = pen__load32(f + 4),
                                .codec = f[8],
                                .how = f[9],
                                .orientation = f[10],
                                .channels = f[11],
                                .source_bytes = m->member.bytes,
                                .sum = pen__load32(f + 48)};
    if (pen__load32(f + 52) && !get_entries(m, entries, &p->image.entries))
        return PEN_END;
    p->no_index = f[why] ? (const char *)f + why : NULL;
    return PEN_OK;
}

/* ---- a tar ----------------------------------------------------------------------------------- */

/* PEN_END: what is stored would not be the file itself. */
static int prepare_image(Tar *t, const PenMember *m, bool mask, uint32_t *ret_kind,
                         PenError *reterr)
{
    PenPreparedImage p = {.source = t->data};
    PenError e = {0};
    uint8_t status[4];
    int r = pen__prepare_image(t->s->prepare, (const uint8_t *)m->name, pen__member_stem(m->name),
                               mask, &p, &e);
    *ret_kind = PEN_MEMBER_IMAGE;
    t->record.bytes = 0;
    if (r == PEN_OK)
        r = p.image.data != p.source.data || p.image.meta_bytes || p.image.segments.n_segments
                ? PEN_END
                : put_image(&p, mask, &t->record);
    else if (pen__status_is_bad_input(r)) {
        *ret_kind = PEN_MEMBER_BAD;
        pen__store32(status, (uint32_t)r);
        r = pen__buf_add(&t->record, status, sizeof status);
        if (r == PEN_OK)
            r = pen__buf_add(&t->record, e.where, strlen(e.where) + 1);
        if (r == PEN_OK)
            r = pen__buf_add(&t->record, e.message, strlen(e.message) + 1);
    } else if (reterr) {
        *reterr = e;
        pen__error_prefix(reterr, "%s: %.200s", t->source->name, m->name);
    }
    if (r == PEN_E_NO_MEMORY)
        pen__fail_memory(reterr, WHERE, t->source->name);
    t->data = p.source; /* to be used again */
    p.source = (PenBuf){0};
    pen__prepared_image_free(&p);
    return r;
}

static int add_member(Tar *t, const PenMember *m, PenError *reterr)
{
    PenMemberRecord record = {.member = *m, .kind = PEN_MEMBER_DATA};
    bool mask = false;
    t->data.bytes = 0;
    if (pen__buf_reserve(&t->data, (size_t)m->bytes + PEN_SLACK) < 0)
        return pen__fail_memory(reterr, WHERE, t->source->name);
    int r = m->bytes
                ? pen__source_read(t->source, t->data.data, (size_t)m->bytes, m->offset, reterr)
                : PEN_OK;
    if (r < 0)
        return r;
    memset(t->data.data + m->bytes, 0, PEN_SLACK);
    t->data.bytes = (size_t)m->bytes;
    atomic_fetch_add(t->s->bytes, m->bytes);
    record.data = t->data.data;
    record.data_bytes = t->data.bytes;
    if (pen__member_is_image(m->name, &mask)) {
        r = prepare_image(t, m, mask, &record.kind, reterr);
        if (r == PEN_END)
            return pen__fail(reterr, PEN_E_INVALID, WHERE,
                             "%s: %.200s: expected an image that is stored as it is, found another",
                             t->source->name, m->name);
        if (r < 0)
            return r;
        atomic_fetch_add(t->s->images, 1);
        record.data = t->record.data;
        record.data_bytes = t->record.bytes;
    }
    return pen__summary_add(t->out, &record, reterr);
}

static int add_members(Tar *t, PenError *reterr)
{
    PenTar *tar = NULL;
    int r = pen__tar_open(t->source, &tar, reterr);
    if (r == PEN_OK && pen__tar_compressed(tar))
        r = pen__fail(reterr, PEN_E_UNSUPPORTED, WHERE,
                      "%s: the tar file is compressed, so its members cannot be read in place; "
                      "decompress it, or use 'penstock pack'",
                      t->source->name);
    while (r == PEN_OK) {
        PenMember m;
        if (atomic_load(t->s->stop))
            r = pen__fail(reterr, PEN_E_CANCELLED, WHERE, "%s: stopped", t->source->name);
        if (r == PEN_OK)
            r = pen__tar_next(tar, &m, reterr);
        if (r == PEN_OK && !pen__member_hidden(m.name))
            r = add_member(t, &m, reterr);
    }
    pen__tar_close(&tar);
    return r == PEN_END ? PEN_OK : r;
}

/* Is there a complete summary of the object as it is now? 1 yes, 0 no. */
static int is_summarized(const PenSummarize *s, const char *address, PenError *reterr)
{
    PenSummary *summary = NULL;
    PenObject object;
    int r = pen__summary_open(s->all, address, &summary, reterr);
    if (r == PEN_OK)
        r = pen__summary_check(summary, reterr);
    if (r == PEN_E_NOT_FOUND || r == PEN_E_CORRUPT) {
        pen__summary_close(&summary);
        return 0;
    }
    if (r == PEN_OK)
        r = pen__places_object(s->places, address, &object, reterr);
    if (r == PEN_OK) {
        const PenObject *of = pen__summary_object(summary);
        r = of->bytes == object.bytes && of->etag[0] && strcmp(of->etag, object.etag) == 0;
    }
    pen__summary_close(&summary);
    return r;
}

int pen__summarize_tar(const PenSummarize *s, const char *address, PenError *reterr)
{
    Tar t = {.s = s};
    PenObject object;
    int r = is_summarized(s, address, reterr);
    if (r)
        return PEN_MIN(r, 0);
    r = pen__object_open(s->places, address, NULL, &t.source, &object, reterr);
    if (r == PEN_OK)
        r = pen__summary_create(s->all, address, &object, &t.out, reterr);
    if (r == PEN_OK)
        r = add_members(&t, reterr);
    if (r == PEN_E_CHANGED)
        r = pen__fail(reterr, r, WHERE, "%s: changed while it was read; " PEN_RUN_AGAIN, address);
    if (r == PEN_OK)
        r = pen__summary_commit(&t.out, reterr);
    pen__summary_abort(&t.out);
    pen__source_close(&t.source);
    pen__buf_free(&t.data);
    pen__buf_free(&t.record);
    return r;
}
