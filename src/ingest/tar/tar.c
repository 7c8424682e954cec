/* SPDX-License-Identifier: Apache-2.0 */
#include "ingest/tar/tar.h"

#include <archive.h>
#include <archive_entry.h>
#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "base/bytes.h"

#define WHERE "ingest/tar"
/* Of a plain tar only the headers are looked at, and what lies between is passed over. */
#define PLAIN_CHUNK_BYTES ((size_t)8 << 10)
#define PACKED_CHUNK_BYTES ((size_t)256 << 10)
#define RECORD 512 /* tar pads everything to this */

struct PenTar {
    PenSource *source;
    struct archive *archive;
    struct archive_entry *entry; /* libarchive's own may be missing when memory is short */
    uint8_t *chunk;
    size_t chunk_bytes;
    uint64_t taken;
    bool compressed;
    PenError failure; /* of the source; libarchive knows only that there was one */
    /* the member that next gave */
    uint64_t offset, bytes;
    uint64_t header_bytes; /* what the header in front of its data says */
    bool readable;
    bool ended;
};

/* ---- what libarchive reads from -------------------------------------------------------------- */

static la_ssize_t on_read(struct archive *a, void *ctx, const void **ret)
{
    PenTar *t = ctx;
    uint64_t left = t->source->bytes - t->taken;
    size_t bytes = left < t->chunk_bytes ? (size_t)left : t->chunk_bytes;
    int r = pen__source_read(t->source, t->chunk, bytes, t->taken, &t->failure);
    if (r < 0) {
        archive_set_error(a, EIO, "source failed");
        return ARCHIVE_FATAL;
    }
    t->taken += bytes;
    *ret = t->chunk;
    return (la_ssize_t)bytes;
}

static la_int64_t on_skip(PEN_UNUSED struct archive *a, void *ctx, la_int64_t request)
{
    PenTar *t = ctx;
    uint64_t left = t->source->bytes - t->taken;
    uint64_t bytes = request < 0 ? 0 : PEN_MIN((uint64_t)request, left);
    t->taken += bytes;
    return (la_int64_t)bytes;
}

/* ---- failures -------------------------------------------------------------------------------- */

static int fail_archive(const PenTar *t, const char *doing, PenError *reterr)
{
    if (t->failure.status < 0) {
        if (reterr)
            *reterr = t->failure;
        return t->failure.status;
    }
    if (archive_errno(t->archive) == ENOMEM)
        return pen__fail_memory(reterr, WHERE, t->source->name);
    const char *text = archive_error_string(t->archive);
    return pen__fail(reterr, PEN_E_CORRUPT, WHERE, "%s: %s near offset %" PRIu64 ": %s",
                     t->source->name, doing, t->taken, text ? text : "damaged or not a tar file");
}

static int fail_member(const PenTar *t, const char *name, int status, const char *what,
                       PenError *reterr)
{
    return pen__fail(reterr, status, WHERE, "%s: %.200s: %s", t->source->name, name, what);
}

/* ---- opening --------------------------------------------------------------------------------- */

typedef struct Packing {
    uint8_t magic[6];
    size_t bytes;
    int (*support)(struct archive *);
    const char *name;
} Packing;

static const Packing packings[] = {
    {{0x1f, 0x8b}, 2, archive_read_support_filter_gzip, "gzip"},
    {{'B', 'Z', 'h'}, 3, archive_read_support_filter_bzip2, "bzip2"},
    {{0xfd, '7', 'z', 'X', 'Z', 0}, 6, archive_read_support_filter_xz, "xz"},
    {{0x28, 0xb5, 0x2f, 0xfd}, 4, archive_read_support_filter_zstd, "zstd"},
    {{0x04, 0x22, 0x4d, 0x18}, 4, archive_read_support_filter_lz4, "lz4"},
};

/* Only the packing that the first bytes show is made known to libarchive: a packing it was built
 * without would be given to a program of that name. */
static int choose_packing(PenTar *t, PenError *reterr)
{
    uint8_t head[6] = {0};
    size_t bytes = t->source->bytes < sizeof head ? (size_t)t->source->bytes : sizeof head;
    int r = pen__source_read(t->source, head, bytes, 0, reterr);
    if (r < 0)
        return r;
    for (size_t i = 0; i < PEN_LEN(packings); i++) {
        const Packing *p = &packings[i];
        if (bytes < p->bytes || memcmp(head, p->magic, p->bytes) != 0)
            continue;
        t->compressed = true;
        if (p->support(t->archive) != ARCHIVE_OK)
            return pen__fail(reterr, PEN_E_UNSUPPORTED, WHERE,
                             "%s: libarchive was built without %s; unpack the file",
                             t->source->name, p->name);
    }
    return PEN_OK;
}

static int open_archive(PenTar *t, PenError *reterr)
{
    int r = choose_packing(t, reterr);
    if (r < 0)
        return r;
    t->chunk_bytes = t->compressed ? PACKED_CHUNK_BYTES : PLAIN_CHUNK_BYTES;
    t->chunk = pen__alloc(t->chunk_bytes);
    if (!t->chunk)
        return pen__fail_memory(reterr, WHERE, t->source->name);
    if (archive_read_support_format_tar(t->archive) != ARCHIVE_OK ||
        archive_read_set_read_callback(t->archive, on_read) != ARCHIVE_OK ||
        archive_read_set_skip_callback(t->archive, on_skip) != ARCHIVE_OK ||
        archive_read_set_callback_data(t->archive, t) != ARCHIVE_OK ||
        archive_read_open1(t->archive) != ARCHIVE_OK)
        return fail_archive(t, "cannot open", reterr);
    /* The file itself counts as one; a second packing inside the first would unpack without bound.
     */
    if (archive_filter_count(t->archive) > 2)
        return pen__fail(
            reterr, PEN_E_UNSUPPORTED, WHERE,
            "%s: expected a tar that is compressed once, found one compressed twice; unpack it",
            t->source->name);
    return PEN_OK;
}

int pen__tar_open(PenSource *source, PenTar **ret, PenError *reterr)
{
    PenTar *t = pen__zalloc(sizeof *t);
    if (!t)
        return pen__fail_memory(reterr, WHERE, source->name);
    int r;
    t->source = source;
    t->archive = archive_read_new();
    t->entry = t->archive ? archive_entry_new2(t->archive) : NULL;
    if (!t->entry)
        r = pen__fail_memory(reterr, WHERE, source->name);
    else
        r = open_archive(t, reterr);
    if (r < 0) {
        pen__tar_close(&t);
        return r;
    }
    *ret = t;
    return PEN_OK;
}

void pen__tar_close(PenTar **tar)
{
    if (!tar || !*tar)
        return;
    PenTar *t = *tar;
    archive_entry_free(t->entry);
    if (t->archive)
        archive_read_free(t->archive);
    pen__free(t->chunk);
    pen__free(t);
    *tar = NULL;
}

bool pen__tar_compressed(const PenTar *t)
{
    return t->compressed;
}

uint64_t pen__tar_taken(const PenTar *t)
{
    return t->taken;
}

/* ---- members --------------------------------------------------------------------------------- */

/* What the header in front of the data says; UINT64_MAX for a number that is not written in octal
 * digits, as only far larger sizes are. */
static uint64_t header_size(const uint8_t header[RECORD])
{
    const uint8_t *p = header + 124, *end = p + 12;
    uint64_t v = 0;
    while (p < end && *p == ' ')
        p++;
    if (p == end || *p < '0' || *p > '7')
        return UINT64_MAX;
    for (; p < end && *p >= '0' && *p <= '7'; p++)
        v = v << 3 | (uint64_t)(*p - '0');
    return v;
}

/* The data of a plain tar's member is read from the file by its offset later on. That is right only
 * when the data lies there in one piece, which the place of what follows tells, and when it has the
 * size that libarchive gives: what records of sparse files claim beyond it would be zeros. */
static int check_end(const PenTar *t, PenError *reterr)
{
    if (!t->bytes || t->compressed)
        return PEN_OK;
    uint64_t end = t->offset + (t->bytes + RECORD - 1) / RECORD * RECORD;
    uint64_t found = (uint64_t)archive_read_header_position(t->archive);
    if (found != end)
        return pen__fail(reterr, PEN_E_CORRUPT, WHERE,
                         "%s: member of %" PRIu64 " bytes at offset %" PRIu64
                         ": expected the next header at %" PRIu64 ", found it at %" PRIu64,
                         t->source->name, t->bytes, t->offset, end, found);
    if (t->header_bytes != t->bytes)
        return pen__fail(reterr, PEN_E_CORRUPT, WHERE,
                         "%s: member of %" PRIu64 " bytes at offset %" PRIu64
                         ": expected the same size in its header, found %" PRIu64,
                         t->source->name, t->bytes, t->offset, t->header_bytes);
    return PEN_OK;
}

/* Read while the header is near: what lies far back may be remote. */
static int read_header_size(PenTar *t, PenError *reterr)
{
    uint8_t header[RECORD];
    t->header_bytes = 0;
    if (!t->bytes || t->compressed)
        return PEN_OK;
    int r = pen__source_read(t->source, header, sizeof header, t->offset - RECORD, reterr);
    if (r == PEN_OK)
        t->header_bytes = header_size(header);
    return r;
}

static const char *member_name(struct archive_entry *entry)
{
    /* The bytes as they are in the file: libarchive takes them over unchanged when the locale
     * cannot show them, and the UTF-8 form is the same for all locales that can. */
    const char *name = archive_entry_pathname_utf8(entry);
    if (!name)
        name = archive_entry_pathname(entry);
    if (!name)
        return NULL;
    while (name[0] == '.' && name[1] == '/')
        name += 2;
    return name;
}

static int check_member(const PenTar *t, struct archive_entry *entry, const char *name,
                        PenError *reterr)
{
    if (!name || !*name)
        return pen__fail(reterr, PEN_E_CORRUPT, WHERE,
                         "%s: expected a name for every member, found none near offset %" PRIu64,
                         t->source->name, t->offset);
    if (archive_entry_hardlink(entry) || archive_entry_filetype(entry) == AE_IFLNK)
        return fail_member(t, name, PEN_E_UNSUPPORTED,
                           "expected a file, found a link; make the tar with --dereference "
                           "--hard-dereference",
                           reterr);
    if (archive_entry_filetype(entry) != AE_IFREG)
        return fail_member(t, name, PEN_E_UNSUPPORTED, "expected a file, found a device or pipe",
                           reterr);
    if (archive_entry_sparse_count(entry) > 0)
        return fail_member(t, name, PEN_E_UNSUPPORTED,
                           "expected a regular file, found a sparse one; make the tar "
                           "without --sparse",
                           reterr);
    la_int64_t bytes = archive_entry_size(entry);
    if (bytes < 0 || (uint64_t)bytes > PEN_TAR_MEMBER_BYTES)
        return fail_member(t, name, PEN_E_LIMIT, "expected at most 256 MiB, found a larger member",
                           reterr);
    if (!t->compressed && !pen__range_ok(t->offset, (uint64_t)bytes, t->source->bytes))
        return fail_member(t, name, PEN_E_CORRUPT,
                           "expected its data inside the file, found the end of the file before it",
                           reterr);
    return PEN_OK;
}

int pen__tar_next(PenTar *t, PenMember *ret, PenError *reterr)
{
    for (;;) {
        if (t->ended)
            return PEN_END;
        struct archive_entry *entry = t->entry;
        t->readable = false;
        int r = archive_read_next_header2(t->archive, entry);
        /* A warning is about owners, times or the encoding of names: nothing that is used. */
        if (r != ARCHIVE_OK && r != ARCHIVE_WARN && r != ARCHIVE_EOF)
            return fail_archive(t, "cannot read", reterr);
        int s = check_end(t, reterr);
        if (s < 0)
            return s;
        t->bytes = 0;
        if (r == ARCHIVE_EOF) {
            t->ended = true;
            return PEN_END;
        }
        t->offset = (uint64_t)archive_filter_bytes(t->archive, 0);
        const char *name = member_name(entry);
        if (archive_entry_filetype(entry) == AE_IFDIR && !archive_entry_hardlink(entry))
            continue;
        r = check_member(t, entry, name, reterr);
        if (r < 0)
            return r;
        t->bytes = (uint64_t)archive_entry_size(entry);
        r = read_header_size(t, reterr);
        if (r < 0)
            return r;
        t->readable = true;
        *ret = (PenMember){name, t->offset, t->bytes};
        return PEN_OK;
    }
}

int pen__tar_read(PenTar *t, PenBuf *out, PenError *reterr)
{
    if (!t->readable)
        return pen__fail(reterr, PEN_E_INVALID, WHERE, "%s: no member to read", t->source->name);
    t->readable = false;
    out->bytes = 0;
    if (pen__buf_reserve(out, (size_t)t->bytes + PEN_SLACK) < 0)
        return pen__fail_memory(reterr, WHERE, t->source->name);
    size_t done = 0;
    while (done < t->bytes) {
        la_ssize_t n = archive_read_data(t->archive, out->data + done, (size_t)t->bytes - done);
        if (n < 0)
            return fail_archive(t, "cannot read a member", reterr);
        if (n == 0)
            return pen__fail(reterr, PEN_E_CORRUPT, WHERE,
                             "%s: member at offset %" PRIu64 ": expected %" PRIu64
                             " bytes, found %zu",
                             t->source->name, t->offset, t->bytes, done);
        done += (size_t)n;
    }
    memset(out->data + done, 0, PEN_SLACK);
    out->bytes = done;
    return PEN_OK;
}
