/* SPDX-License-Identifier: Apache-2.0 */
/* The bytes of a part, from wherever it lies. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/bytes.h"
#include "base/sys.h"
#include "ingest/plan/part_impl.h"
#include "ingest/plan/part_stream.h"
#include "ingest/source/beneath.h"
#include "ingest/source/object.h"
#include "ingest/tar/summary.h"

#define WHERE "ingest/read"
#define SPAN_BYTES ((uint64_t)2 << 20) /* at most, for parts that are fetched together */
#define GAP_BYTES 4096                 /* between two of them: headers */
#define OPEN_TARS 32                   /* per reader; a process may have 1,024 files open */

typedef struct OpenTar {
    PenSource *source;
    uint32_t number;
} OpenTar;

struct PenPartReader {
    const PenRoot *roots;
    uint32_t n_roots;
    PenPlaces *places;
    OpenTar tars[OPEN_TARS]; /* number n is at n % OPEN_TARS */
    PenPartStream *stream;
    PenBuf span; /* bytes of a remote tar that hold all parts of the item at hand; empty = none */
    uint32_t span_source;
    uint64_t span_at;
    PenObject object; /* that was read last */
    const PenSummaries *summaries;
    PenSummary *summary; /* of the tar that was used last; NULL: none is open */
    uint32_t summary_source;
    PenBuf record;
    PenBuf path;
    const char *advice;
    char real[PEN_REAL_PATH_BYTES], real_frame[PEN_REAL_PATH_BYTES]; /* where paths lead to */
};

int pen__part_reader_open_frame(const PenRecordFrame *frame, PenPartReader **ret, PenError *reterr)
{
    PenPartReader *p = pen__zalloc(sizeof *p);
    if (!p)
        return pen__fail_memory(reterr, WHERE, "reader");
    p->roots = frame->roots;
    p->n_roots = frame->n_roots;
    p->places = frame->places;
    p->summaries = frame->summaries;
    p->advice = frame->advice;
    *ret = p;
    return PEN_OK;
}

int pen__part_reader_open(const PenPlan *plan, PenPartReader **ret, PenError *reterr)
{
    return pen__part_reader_open_frame(pen__plan_frame(plan), ret, reterr);
}

void pen__part_reader_close(PenPartReader **reader)
{
    if (!reader || !*reader)
        return;
    PenPartReader *p = *reader;
    for (uint32_t i = 0; i < OPEN_TARS; i++)
        pen__source_close(&p->tars[i].source);
    pen__part_stream_free(&p->stream);
    pen__summary_close(&p->summary);
    pen__buf_free(&p->record);
    pen__buf_free(&p->span);
    pen__buf_free(&p->path);
    pen__free(p);
    *reader = NULL;
}

static int reserve(PenBuf *out, uint64_t bytes, const char *name, PenError *reterr)
{
    if (bytes > PEN_PART_BYTES)
        return pen__fail(reterr, PEN_E_LIMIT, WHERE,
                         "%s: expected at most 256 MiB, found %" PRIu64 " bytes", name, bytes);
    out->bytes = 0;
    return pen__buf_reserve(out, (size_t)bytes + PEN_SLACK) < 0
               ? pen__fail_memory(reterr, WHERE, name)
               : PEN_OK;
}

static void finish(PenBuf *out, uint64_t bytes)
{
    memset(out->data + bytes, 0, PEN_SLACK);
    out->bytes = (size_t)bytes;
}

PenExpected pen__part_expected(const PenPartReader *p, const PenPart *part)
{
    return (PenExpected){part->bytes, part->stamp, p->advice};
}

bool pen__part_is_remote(const PenPartReader *reader, const PenPart *part)
{
    return (part->kind == PEN_PART_FILE || part->kind == PEN_PART_RANGE) &&
           part->source < reader->n_roots && pen_is_remote(reader->roots[part->source].path);
}

/* ---- files ----------------------------------------------------------------------------------- */

int pen__part_beneath(PenPartReader *p, const PenPart *part, const char *path, const char **ret,
                      PenError *reterr)
{
    const PenRoot *root = &p->roots[part->source];
    if (root->kind != PEN_ROOT_LIST || pen_is_remote(root->path)) {
        *ret = path;
        return PEN_OK;
    }
    char *real = path == (const char *)p->path.data ? p->real : p->real_frame;
    int r = pen__beneath(root->path, path, real, reterr);
    if (r == PEN_E_NOT_FOUND && pen__stamp_is_set(&part->stamp))
        return pen__expected_gone(path, ENOENT, p->advice, reterr);
    if (r < 0)
        return r; /* never the path itself: it might be made to lead outside by now */
    *ret = real;
    return PEN_OK;
}

int pen__part_path(PenPartReader *p, const PenPart *part, const char **ret, PenError *reterr)
{
    const char *root = p->roots[part->source].path;
    size_t bytes = strlen(part->path);
    size_t need = strlen(root) + bytes + 2;
    p->path.bytes = 0;
    if (pen__buf_reserve(&p->path, need) < 0)
        return pen__fail_memory(reterr, WHERE, part->path);
    pen__root_path(root, part->path, bytes, (char *)p->path.data, need);
    return pen__part_beneath(p, part, (const char *)p->path.data, ret, reterr);
}

static int read_fd(int fd, const char *path, uint64_t bytes, uint8_t *to, PenError *reterr)
{
    uint64_t done = 0;
    while (done < bytes) {
        int64_t n = pen__sys->pread(fd, to + done, (size_t)(bytes - done), done);
        if (n < 0)
            return pen__fail_os(reterr, (int)-n, WHERE, "%s: cannot read at offset %" PRIu64, path,
                                done);
        if (n == 0)
            return pen__fail(reterr, PEN_E_INVALID, WHERE,
                             "%s: was truncated while it was read: expected %" PRIu64
                             " bytes, found %" PRIu64 "; " PEN_RUN_AGAIN,
                             path, bytes, done);
        done += (uint64_t)n;
    }
    return PEN_OK;
}

int pen__part_read_path(const char *path, const PenExpected *expected, PenBuf *out,
                        PenFileStat *ret_stat, PenError *reterr)
{
    int fd = -1;
    PenFileStat st = {0};
    int r = pen__file_open(path, &fd, &st, reterr);
    if (r == PEN_E_NOT_FOUND && expected && pen__stamp_is_set(&expected->stamp))
        return pen__expected_gone(path, ENOENT, expected->advice, reterr);
    if (r < 0)
        return r;
    PenStamp found = pen__stamp_of(&st);
    if (expected)
        r = pen__expected_check(path, expected, st.bytes, &found, reterr);
    if (r == PEN_OK)
        r = reserve(out, st.bytes, path, reterr);
    if (r == PEN_OK)
        r = read_fd(fd, path, st.bytes, out->data, reterr);
    pen__sys->close(fd); /* nothing was written: there is nothing to lose */
    if (r < 0)
        return r;
    finish(out, st.bytes);
    *ret_stat = st;
    return PEN_OK;
}

static int read_file(PenPartReader *p, const PenPart *part, PenBuf *out, uint64_t *ret_disk_bytes,
                     PenError *reterr)
{
    const char *path = NULL;
    int r = pen__part_path(p, part, &path, reterr);
    if (r < 0)
        return r;
    PenExpected expected = pen__part_expected(p, part);
    PenFileStat st;
    r = pen__part_read_path(path, &expected, out, &st, reterr);
    if (r == PEN_OK)
        *ret_disk_bytes = st.disk_bytes;
    return r;
}

static int read_object(PenPartReader *p, const PenPart *part, PenBuf *out, uint64_t *ret_disk_bytes,
                       PenError *reterr)
{
    const char *title = NULL, *name = NULL, *root = p->roots[part->source].path;
    PenRemote *remote = NULL;
    PenExpected expected = pen__part_expected(p, part);
    int r = pen__part_path(p, part, &title, reterr);
    if (r == PEN_OK)
        r = pen__object_beneath(root, part->path, &name, reterr);
    if (r == PEN_OK)
        r = pen__places_get(p->places, root, &remote, reterr);
    if (r == PEN_OK)
        r = reserve(out, part->bytes, title, reterr);
    if (r == PEN_OK)
        r = pen__object_read(remote, name, title, &expected, out->data, &p->object, reterr);
    if (r == PEN_OK) {
        finish(out, part->bytes);
        *ret_disk_bytes = part->bytes;
    }
    return r;
}

/* ---- tars ------------------------------------------------------------------------------------ */

static int open_tar(PenPartReader *p, uint32_t number, PenSource **ret, PenError *reterr)
{
    OpenTar *slot = &p->tars[number % OPEN_TARS];
    if (slot->source && slot->number == number) {
        *ret = slot->source;
        return PEN_OK;
    }
    pen__source_close(&slot->source);
    const PenRoot *root = &p->roots[number];
    PenSource *source = NULL;
    int r = pen__source_open_file(root->path, &source, reterr);
    if (r < 0)
        return r;
    PenExpected expected = {root->bytes, root->stamp, p->advice};
    r = pen__expected_check_path(root->path, &expected, reterr);
    if (r < 0) {
        pen__source_close(&source);
        return r;
    }
    *slot = (OpenTar){source, number};
    *ret = source;
    return PEN_OK;
}

static int read_at(PenPartReader *p, uint32_t source, uint8_t *to, uint64_t bytes, uint64_t offset,
                   PenError *reterr)
{
    const PenRoot *root = &p->roots[source];
    PenExpected expected = {root->bytes, root->stamp, p->advice};
    return pen__object_read_range(p->places, root->path, &expected, to, bytes, offset, reterr);
}

/* The bytes from the first to the last part of a remote tar. False: they are not worth one request,
 * or there are none. */
static bool find_span(const PenPartReader *p, const PenItem *item, PenPart *ret)
{
    uint64_t low = UINT64_MAX, high = 0, sum = 0;
    uint32_t n = 0;
    for (uint32_t i = 0; i < item->n_parts; i++) {
        const PenPart *part = &item->parts[i];
        uint64_t end;
        if (part->kind != PEN_PART_RANGE)
            continue;
        if (p->summaries)
            return false; /* what is needed of them is on disk */
        if (part->source >= p->n_roots || !pen_is_remote(p->roots[part->source].path) ||
            pen__add_over(part->offset, part->bytes, &end) || part->bytes > SPAN_BYTES ||
            (n && part->source != ret->source))
            return false;
        ret->source = part->source;
        low = PEN_MIN(low, part->offset);
        high = PEN_MAX(high, end);
        sum += part->bytes + GAP_BYTES;
        n++;
    }
    ret->offset = low;
    ret->bytes = n > 1 ? high - low : 0;
    return ret->bytes && ret->bytes <= sum && ret->bytes <= SPAN_BYTES;
}

int pen__part_gather(PenPartReader *reader, const PenItem *item, PenError *reterr)
{
    PenPart all = {0};
    reader->span.bytes = 0;
    if (!find_span(reader, item, &all))
        return PEN_OK;
    int r = reserve(&reader->span, all.bytes, reader->roots[all.source].path, reterr);
    if (r == PEN_OK)
        r = read_at(reader, all.source, reader->span.data, all.bytes, all.offset, reterr);
    if (r < 0)
        return r;
    reader->span.bytes = (size_t)all.bytes;
    reader->span_source = all.source;
    reader->span_at = all.offset;
    return PEN_OK;
}

int pen__part_record(PenPartReader *reader, const PenPart *part, PenBuf *scratch,
                     PenMemberRecord *ret, PenError *reterr)
{
    int r = PEN_OK;
    if (!reader->summaries || part->kind != PEN_PART_RANGE || !pen__part_is_remote(reader, part))
        return PEN_END;
    const char *address = reader->roots[part->source].path;
    if (reader->summary && reader->summary_source != part->source)
        pen__summary_close(&reader->summary);
    if (!reader->summary)
        r = pen__summary_open(reader->summaries, address, &reader->summary, reterr);
    if (r == PEN_E_NOT_FOUND) /* which would mean: a bad input */
        r = pen__fail(reterr, PEN_E_CORRUPT, WHERE,
                      "%s: what was read of it is no longer there; " PEN_RUN_AGAIN, address);
    reader->summary_source = part->source;
    if (r == PEN_OK)
        r = pen__summary_find(reader->summary, part->offset, scratch, ret, reterr);
    if (r == PEN_OK)
        reader->object = *pen__summary_object(reader->summary);
    return r == PEN_OK && ret->member.bytes != part->bytes ? PEN_END : r;
}

/* PEN_END: the bytes are not on disk. */
static int read_recorded(PenPartReader *p, const PenPart *part, PenBuf *out, PenError *reterr)
{
    PenMemberRecord record;
    int r = pen__part_record(p, part, &p->record, &record, reterr);
    if (r != PEN_OK || record.kind != PEN_MEMBER_DATA || record.data_bytes != part->bytes)
        return r < 0 ? r : PEN_END;
    r = reserve(out, part->bytes, p->roots[part->source].path, reterr);
    if (r < 0)
        return r;
    memcpy(out->data, record.data, record.data_bytes);
    finish(out, part->bytes);
    return PEN_OK;
}

static int read_remote_range(PenPartReader *p, const PenPart *part, PenBuf *out, PenError *reterr)
{
    int r = reserve(out, part->bytes, p->roots[part->source].path, reterr);
    if (r < 0)
        return r;
    if (p->span.bytes && p->span_source == part->source && part->offset >= p->span_at &&
        pen__range_ok(part->offset - p->span_at, part->bytes, p->span.bytes))
        memcpy(out->data, p->span.data + (part->offset - p->span_at), (size_t)part->bytes);
    else
        r = read_at(p, part->source, out->data, part->bytes, part->offset, reterr);
    if (r == PEN_OK)
        finish(out, part->bytes);
    return r;
}

int pen__part_read_range(PenPartReader *p, const PenPart *part, PenBuf *out, PenError *reterr)
{
    if (pen_is_remote(p->roots[part->source].path)) {
        int r = read_recorded(p, part, out, reterr);
        return r == PEN_END ? read_remote_range(p, part, out, reterr) : r;
    }
    PenSource *source = NULL;
    int r = open_tar(p, part->source, &source, reterr);
    if (r == PEN_OK)
        r = reserve(out, part->bytes, source->name, reterr);
    if (r == PEN_OK)
        r = pen__source_read(source, out->data, (size_t)part->bytes, part->offset, reterr);
    if (r == PEN_OK)
        finish(out, part->bytes);
    return r;
}

static int read_stream(PenPartReader *p, const PenPart *part, PenBuf *out, uint64_t *ret_disk_bytes,
                       PenError *reterr)
{
    int r = p->stream ? PEN_OK : pen__part_stream_new(&p->stream, reterr);
    if (r < 0)
        return r;
    const PenRoot *root = &p->roots[part->source];
    PenExpected expected = {root->bytes, root->stamp, p->advice};
    const PenStreamFile file = {root->path, p->places, &expected};
    return pen__part_stream_read(p->stream, &file, part, out, ret_disk_bytes, reterr);
}

static int read_inline(const PenPart *part, PenBuf *out, PenError *reterr)
{
    int r = reserve(out, part->bytes, "value", reterr);
    if (r < 0)
        return r;
    if (part->bytes)
        memcpy(out->data, part->data, (size_t)part->bytes);
    finish(out, part->bytes);
    return PEN_OK;
}

int pen__part_read(PenPartReader *reader, const PenPart *part, PenBuf *out,
                   uint64_t *ret_disk_bytes, PenError *reterr)
{
    uint64_t disk_bytes = 0;
    bool placed = part->kind != PEN_PART_NONE && part->kind != PEN_PART_INLINE;
    if (placed && part->source >= reader->n_roots)
        return pen__fail(reterr, PEN_E_INVALID, WHERE,
                         "expected a source below %" PRIu32 ", found %" PRIu32, reader->n_roots,
                         part->source);
    int r;
    switch (part->kind) {
    case PEN_PART_FILE:
        r = pen_is_remote(reader->roots[part->source].path)
                ? read_object(reader, part, out, &disk_bytes, reterr)
                : read_file(reader, part, out, &disk_bytes, reterr);
        break;
    case PEN_PART_RANGE:
        r = pen__part_read_range(reader, part, out, reterr);
        disk_bytes = (part->bytes + 511) / 512 * 512;
        break;
    case PEN_PART_FRAMES:
    case PEN_PART_VIDEO:
    case PEN_PART_GULP:
        r = pen__fail(reterr, PEN_E_INVALID, WHERE,
                      "expected one payload, found the frames of a clip");
        break;
    case PEN_PART_STREAM:
        r = read_stream(reader, part, out, &disk_bytes, reterr);
        break;
    default:
        r = read_inline(part, out, reterr);
    }
    if (r == PEN_OK && ret_disk_bytes)
        *ret_disk_bytes = disk_bytes;
    return r;
}

/* The address that the pack records. */
static int object_file(const char *root, const PenPart *part, PenBuf *ret, PenError *reterr)
{
    const char *name = NULL;
    int r =
        part->kind == PEN_PART_FILE ? pen__object_beneath(root, part->path, &name, reterr) : PEN_OK;
    return r < 0 ? r : pen__object_address(root, name, ret, reterr);
}

int pen__part_object(PenPartReader *reader, const PenPart *part, PenObject *ret, PenError *reterr)
{
    const char *root = reader->roots[part->source].path;
    if (part->kind == PEN_PART_RANGE && !reader->summaries)
        return pen__places_object(reader->places, root, ret, reterr);
    *ret = reader->object;
    return PEN_OK;
}

int pen__part_file(const PenPlan *plan, const PenPart *part, PenBuf *ret, PenError *reterr)
{
    const char *root = pen__plan_frame(plan)->roots[part->source].path;
    const char *path = part->kind == PEN_PART_FILE ? part->path : "";
    if (pen_is_remote(root))
        return object_file(root, part, ret, reterr);
    size_t bytes = strlen(path), need = strlen(root) + bytes + 2;
    ret->bytes = 0;
    if (pen__buf_reserve(ret, need) < 0)
        return pen__fail_memory(reterr, WHERE, root);
    if (part->kind == PEN_PART_FILE)
        pen__root_path(root, path, bytes, (char *)ret->data, need);
    else
        memcpy(ret->data, root, strlen(root) + 1);
    return PEN_OK;
}

void pen__part_times(const PenPlan *plan, const PenPart *part, uint64_t *ret_bytes,
                     int64_t *ret_mtime_ns)
{
    const PenRoot *root = &pen__plan_frame(plan)->roots[part->source];
    bool is_tar = part->kind == PEN_PART_RANGE;
    *ret_bytes = is_tar ? root->bytes : part->bytes;
    *ret_mtime_ns = is_tar ? root->stamp.mtime_ns : part->stamp.mtime_ns;
}

void pen__part_name(const PenPlan *plan, const PenPart *part, char *buf, size_t cap)
{
    const PenRecordFrame *frame = pen__plan_frame(plan);
    bool placed = part->path || part->kind == PEN_PART_GULP;
    const char *root =
        placed && part->source < frame->n_roots ? frame->roots[part->source].path : NULL;
    if (!root)
        snprintf(buf, cap, part->kind == PEN_PART_INLINE ? "value in the plan" : "nothing");
    else if (part->kind == PEN_PART_GULP)
        snprintf(buf, cap, "%s", root);
    else if (part->kind == PEN_PART_FILE || part->kind == PEN_PART_FRAMES ||
             part->kind == PEN_PART_VIDEO)
        pen__root_path(root, part->path, strlen(part->path), buf, cap);
    else
        snprintf(buf, cap, "%s: %s", root, part->path);
}
