/* SPDX-License-Identifier: Apache-2.0 */
#include "ingest/tar/summary.h"

#include <stdio.h>
#include <string.h>

#include "base/bytes.h"
#include "base/crc32c.h"
#include "base/sha256.h"
#include "io/sink.h"

#define WHERE "ingest/summary"
#define MAGIC "PENTARS1"

enum { HEAD = 256, HEAD_SETTINGS = 8, HEAD_BYTES = 40, HEAD_ETAG = 48, HEAD_CRC = HEAD - 4 };
enum { RECORD_LEAD = 8, RECORD_FIXED = 24 };
enum { ENTRY = 16, FOOT = 16 };
/* A name, and what a member may have. */
#define RECORD_LIMIT (RECORD_FIXED + PEN_TAR_MEMBER_BYTES + (64 << 10))

struct PenSummaryWriter {
    PenSink *sink;
    char *path;
    PenBuf table;
    uint64_t n;
};

struct PenSummary {
    PenSource *source;
    PenObject object;
    uint64_t n, table_at;
};

char *pen__summary_path(const PenSummaries *all, const char *address, const char *suffix)
{
    uint8_t hash[32];
    char name[48];
    pen__sha256(address, strlen(address), hash);
    for (size_t i = 0; i < 16; i++)
        snprintf(name + 2 * i, 3, "%02x", hash[i]);
    snprintf(name + 32, sizeof name - 32, "%s", suffix);
    return pen__path_join(all->folder, name);
}

/* ---- writing --------------------------------------------------------------------------------- */

int pen__summary_create(const PenSummaries *all, const char *address, const PenObject *object,
                        PenSummaryWriter **ret, PenError *reterr)
{
    uint8_t head[HEAD] = MAGIC;
    PenSummaryWriter *w = pen__zalloc(sizeof *w);
    char *part = pen__summary_path(all, address, ".part");
    if (w)
        w->path = pen__summary_path(all, address, "");
    int r = w && part && w->path ? pen__sink_open(part, &w->sink, reterr)
                                 : pen__fail_memory(reterr, WHERE, address);
    pen__free(part);
    if (r == PEN_OK) {
        memcpy(head + HEAD_SETTINGS, all->settings, sizeof all->settings);
        pen__store64(head + HEAD_BYTES, object->bytes);
        memcpy(head + HEAD_ETAG, object->etag, strlen(object->etag));
        pen__store32(head + HEAD_CRC, pen__crc32c(0, head, HEAD_CRC));
        r = pen__sink_write(w->sink, head, sizeof head, reterr);
    }
    if (r < 0) {
        pen__summary_abort(&w);
        return r;
    }
    *ret = w;
    return PEN_OK;
}

int pen__summary_add(PenSummaryWriter *w, const PenMemberRecord *m, PenError *reterr)
{
    uint8_t head[RECORD_LEAD + RECORD_FIXED], entry[ENTRY];
    size_t name_bytes = strlen(m->member.name);
    uint8_t *fixed = head + RECORD_LEAD;
    uint64_t bytes = RECORD_FIXED + name_bytes + 1 + m->data_bytes;
    if (bytes > RECORD_LIMIT)
        return pen__fail(reterr, PEN_E_LIMIT, WHERE, "%.200s: expected a shorter name",
                         m->member.name);
    pen__store64(fixed, m->member.offset);
    pen__store64(fixed + 8, m->member.bytes);
    pen__store32(fixed + 16, m->kind);
    pen__store32(fixed + 20, (uint32_t)name_bytes);
    uint32_t crc = pen__crc32c(0, fixed, RECORD_FIXED);
    crc = pen__crc32c(crc, m->member.name, name_bytes + 1);
    crc = pen__crc32c(crc, m->data, m->data_bytes);
    pen__store32(head, (uint32_t)bytes);
    pen__store32(head + 4, crc);
    pen__store64(entry, m->member.offset);
    pen__store64(entry + 8, pen__sink_bytes(w->sink));
    if (pen__buf_add(&w->table, entry, sizeof entry) < 0)
        return pen__fail_memory(reterr, WHERE, w->path);
    w->n++;
    struct iovec pieces[] = {{head, sizeof head},
                             {(void *)m->member.name, name_bytes + 1},
                             {(void *)m->data, m->data_bytes}};
    return pen__sink_writev(w->sink, pieces, m->data_bytes ? 3 : 2, reterr);
}

int pen__summary_commit(PenSummaryWriter **writer, PenError *reterr)
{
    PenSummaryWriter *w = *writer;
    uint8_t foot[FOOT] = {0};
    pen__store64(foot, w->n);
    memcpy(foot + 8, MAGIC, 8);
    int r = w->n ? pen__sink_write(w->sink, w->table.data, w->table.bytes, reterr) : PEN_OK;
    if (r == PEN_OK)
        r = pen__sink_write(w->sink, foot, sizeof foot, reterr);
    if (r == PEN_OK)
        r = pen__sink_commit(&w->sink, w->path, reterr);
    pen__summary_abort(writer);
    return r;
}

void pen__summary_abort(PenSummaryWriter **writer)
{
    PenSummaryWriter *w = *writer;
    *writer = NULL;
    if (!w)
        return;
    pen__sink_abort(&w->sink);
    pen__buf_free(&w->table);
    pen__free(w->path);
    pen__free(w);
}

/* ---- reading --------------------------------------------------------------------------------- */

static int damaged(const PenSummary *s, PenError *reterr)
{
    return pen__fail(reterr, PEN_E_CORRUPT, WHERE,
                     "%s: damaged, or made with other settings; run the same command again",
                     s->source->name);
}

static int read_head(PenSummary *s, const PenSummaries *all, PenError *reterr)
{
    uint8_t head[HEAD], foot[FOOT];
    uint64_t bytes = s->source->bytes;
    if (bytes < HEAD + FOOT)
        return damaged(s, reterr);
    int r = pen__source_read(s->source, head, sizeof head, 0, reterr);
    if (r == PEN_OK)
        r = pen__source_read(s->source, foot, sizeof foot, bytes - FOOT, reterr);
    if (r < 0)
        return r;
    s->n = pen__load64(foot);
    if (memcmp(head, MAGIC, 8) != 0 || memcmp(foot + 8, MAGIC, 8) != 0 ||
        pen__crc32c(0, head, HEAD_CRC) != pen__load32(head + HEAD_CRC) ||
        memcmp(head + HEAD_SETTINGS, all->settings, sizeof all->settings) != 0 ||
        s->n > (bytes - HEAD - FOOT) / ENTRY)
        return damaged(s, reterr);
    s->table_at = bytes - FOOT - s->n * ENTRY;
    s->object.bytes = pen__load64(head + HEAD_BYTES);
    memcpy(s->object.etag, head + HEAD_ETAG, sizeof s->object.etag - 1);
    return PEN_OK;
}

int pen__summary_open(const PenSummaries *all, const char *address, PenSummary **ret,
                      PenError *reterr)
{
    PenSummary *s = pen__zalloc(sizeof *s);
    char *path = pen__summary_path(all, address, "");
    int r = s && path ? pen__source_open_file(path, &s->source, reterr)
                      : pen__fail_memory(reterr, WHERE, address);
    if (r == PEN_OK)
        r = read_head(s, all, reterr);
    pen__free(path);
    if (r < 0) {
        pen__summary_close(&s);
        return r;
    }
    *ret = s;
    return PEN_OK;
}

void pen__summary_close(PenSummary **summary)
{
    PenSummary *s = *summary;
    *summary = NULL;
    if (!s)
        return;
    pen__source_close(&s->source);
    pen__free(s);
}

const PenObject *pen__summary_object(const PenSummary *s)
{
    return &s->object;
}

static bool record_fits(const PenBuf *b, PenMemberRecord *ret)
{
    uint64_t name_bytes = pen__load32(b->data + 20);
    if (name_bytes + 1 > b->bytes - RECORD_FIXED || b->data[RECORD_FIXED + name_bytes] != 0)
        return false;
    const uint8_t *data = b->data + RECORD_FIXED + name_bytes + 1;
    *ret = (PenMemberRecord){.member = {.name = (const char *)b->data + RECORD_FIXED,
                                        .offset = pen__load64(b->data),
                                        .bytes = pen__load64(b->data + 8)},
                             .kind = pen__load32(b->data + 16),
                             .data = data,
                             .data_bytes = (size_t)(b->data + b->bytes - data)};
    return true;
}

int pen__summary_next(PenSummary *s, uint64_t *place, PenBuf *scratch, PenMemberRecord *ret,
                      PenError *reterr)
{
    uint8_t lead[RECORD_LEAD];
    uint64_t at = *place ? *place : HEAD;
    if (at == s->table_at)
        return PEN_END;
    if (at > s->table_at || s->table_at - at < RECORD_LEAD + RECORD_FIXED + 1)
        return damaged(s, reterr);
    int r = pen__source_read(s->source, lead, sizeof lead, at, reterr);
    if (r < 0)
        return r;
    uint64_t bytes = pen__load32(lead);
    at += RECORD_LEAD;
    if (bytes <= RECORD_FIXED || bytes > RECORD_LIMIT || bytes > s->table_at - at)
        return damaged(s, reterr);
    scratch->bytes = 0;
    if (pen__buf_reserve(scratch, (size_t)bytes + PEN_SLACK) < 0)
        return pen__fail_memory(reterr, WHERE, s->source->name);
    r = pen__source_read(s->source, scratch->data, (size_t)bytes, at, reterr);
    if (r < 0)
        return r;
    scratch->bytes = (size_t)bytes;
    memset(scratch->data + bytes, 0, PEN_SLACK);
    if (pen__crc32c(0, scratch->data, scratch->bytes) != pen__load32(lead + 4) ||
        !record_fits(scratch, ret))
        return damaged(s, reterr);
    *place = at + bytes;
    return PEN_OK;
}

static int read_entry(PenSummary *s, uint64_t i, uint64_t *ret_offset, uint64_t *ret_place,
                      PenError *reterr)
{
    uint8_t entry[ENTRY];
    int r = pen__source_read(s->source, entry, sizeof entry, s->table_at + i * ENTRY, reterr);
    if (r < 0)
        return r;
    *ret_offset = pen__load64(entry);
    *ret_place = pen__load64(entry + 8);
    return *ret_place >= HEAD ? PEN_OK : damaged(s, reterr);
}

int pen__summary_find(PenSummary *s, uint64_t offset, PenBuf *scratch, PenMemberRecord *ret,
                      PenError *reterr)
{
    uint64_t low = 0, high = s->n, at = 0, place = 0;
    int r = PEN_OK;
    while (low < high && r == PEN_OK) {
        uint64_t middle = low + (high - low) / 2;
        r = read_entry(s, middle, &at, &place, reterr);
        if (r == PEN_OK && at == offset)
            break;
        if (at < offset)
            low = middle + 1;
        else
            high = middle;
    }
    if (r == PEN_OK && low < high)
        r = pen__summary_next(s, &place, scratch, ret, reterr);
    if (r < 0)
        return r;
    return r == PEN_OK && low < high && ret->member.offset == offset ? PEN_OK : damaged(s, reterr);
}

int pen__summary_check(PenSummary *s, PenError *reterr)
{
    PenBuf scratch = {0};
    PenMemberRecord record;
    uint64_t place = HEAD;
    int r = PEN_OK;
    for (uint64_t i = 0; i < s->n && r == PEN_OK; i++) {
        uint64_t offset, at;
        r = read_entry(s, i, &offset, &at, reterr);
        if (r == PEN_OK && at != place)
            r = damaged(s, reterr);
        if (r == PEN_OK)
            r = pen__summary_next(s, &place, &scratch, &record, reterr);
        if (r == PEN_END || (r == PEN_OK && record.member.offset != offset))
            r = damaged(s, reterr);
    }
    pen__buf_free(&scratch);
    return r == PEN_OK && place != s->table_at ? damaged(s, reterr) : r;
}
