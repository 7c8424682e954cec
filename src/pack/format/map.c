/* SPDX-License-Identifier: Apache-2.0 */
#include "pack/format/map.h"

#include <inttypes.h>
#include <string.h>

#include "base/bytes.h"
#include "io/outside.h"
#include "pack/format/manifest.h"
#include "pack/format/place.h"

#define WHERE "pack/map"
#define MAGIC "PENSHMAP"

static int damaged(const char *name, const char *what, PenError *reterr)
{
    return pen__fail(reterr, PEN_E_CORRUPT, WHERE,
                     "%s: %s: the map of the shard is damaged or belongs to another pack", name,
                     what);
}

PenExtent pen__map_extent(const PenMap *m, uint64_t i)
{
    const uint8_t *e = m->data + i * PEN_EXTENT_BYTES;
    return (PenExtent){.offset = pen__load64(e),
                       .source = pen__load64(e + 8),
                       .bytes = pen__load32(e + 16),
                       .file = pen__load32(e + 20),
                       .skipped = pen__load64(e + 24)};
}

static const uint8_t *file_entry(const PenMap *m, uint32_t i)
{
    return m->data + m->n_extents * PEN_EXTENT_BYTES + (size_t)i * PEN_MAPPED_FILE_BYTES;
}

PenMappedFile pen__map_file(const PenMap *m, uint32_t i)
{
    const uint8_t *e = file_entry(m, i), *paths = file_entry(m, m->n_files);
    const char *path = (const char *)paths + pen__load64(e + 16);
    return (PenMappedFile){.bytes = pen__load64(e),
                           .mtime_ns = (int64_t)pen__load64(e + 8),
                           .path = path,
                           .path_bytes = pen__load32(e + 24),
                           .etag_bytes = pen__load32(e + 28),
                           .etag = path + pen__load32(e + 24)};
}

uint64_t pen__map_find(const PenMap *m, uint64_t offset)
{
    uint64_t low = 0, high = m->n_extents;
    while (low < high) {
        uint64_t middle = low + (high - low) / 2;
        PenExtent e = pen__map_extent(m, middle);
        if (e.offset + e.bytes > offset)
            high = middle;
        else
            low = middle + 1;
    }
    return low;
}

/* ---- reading --------------------------------------------------------------------------------- */

static bool extents_ok(const PenMap *m)
{
    uint64_t end = PEN_SHARD_HEADER_BYTES, skipped = 0;
    for (uint64_t i = 0; i < m->n_extents; i++) {
        PenExtent e = pen__map_extent(m, i);
        if (!e.bytes || e.offset < end || !pen__range_ok(e.offset, e.bytes, m->file_bytes) ||
            e.skipped != skipped || e.file >= m->n_files ||
            !pen__range_ok(e.source, e.bytes, pen__map_file(m, e.file).bytes))
            return false;
        end = e.offset + e.bytes;
        skipped += e.bytes;
    }
    return m->stored_bytes == m->file_bytes - skipped;
}

/* Only objects have one, and it may be sent to a server. */
static bool etag_ok(const PenMappedFile *f)
{
    if (!f->etag_bytes)
        return true;
    if (f->etag_bytes > PEN_MAX_ETAG || !pen__outside_is_address(f->path, f->path_bytes))
        return false;
    for (uint32_t i = 0; i < f->etag_bytes; i++)
        if ((uint8_t)f->etag[i] < 0x20 || f->etag[i] == 0x7F)
            return false;
    return true;
}

/* `bytes` of paths follow the files. */
static bool files_ok(const PenMap *m, uint64_t bytes)
{
    uint64_t at = 0;
    for (uint32_t i = 0; i < m->n_files; i++) {
        const uint8_t *e = file_entry(m, i);
        uint64_t n = (uint64_t)pen__load32(e + 24) + pen__load32(e + 28);
        if (pen__load64(e + 16) != at || !pen__range_ok(at, n, bytes))
            return false;
        PenMappedFile f = pen__map_file(m, i);
        if (!pen__outside_path_ok(f.path, f.path_bytes) || !etag_ok(&f))
            return false;
        at += n;
    }
    return at == bytes;
}

static uint32_t sum_of(const uint8_t *id, uint8_t *map, uint64_t bytes)
{
    uint8_t *f = map + bytes - PEN_MAP_FOOTER_BYTES, head[16];
    PenPlace place = {.id = id, .block = PEN_ALL, .sample = PEN_ALL, .field = PEN_PART_MAP};
    memcpy(head, f, sizeof head);
    memmove(f, f + sizeof head, PEN_MAP_FOOTER_BYTES - sizeof head);
    uint32_t sum = pen__place_sum(&place, map, (size_t)bytes - sizeof head);
    memmove(f + sizeof head, f, PEN_MAP_FOOTER_BYTES - sizeof head);
    memcpy(f, head, sizeof head);
    return sum;
}

static int check_map(PenMap *m, const uint8_t *id, uint64_t bytes, const char *name,
                     PenError *reterr)
{
    const uint8_t *f = m->data + bytes - PEN_MAP_FOOTER_BYTES;
    uint64_t extents, left = bytes - PEN_MAP_FOOTER_BYTES;
    if (sum_of(id, m->data, bytes) != pen__load32(f + 12))
        return damaged(name, "checksum", reterr);
    m->file_bytes = pen__load64(f + 32);
    m->n_extents = pen__load64(f + 40);
    m->n_files = pen__load32(f + 48);
    uint64_t files = (uint64_t)m->n_files * PEN_MAPPED_FILE_BYTES;
    if (memcmp(f + 16, id, PEN_ID_BYTES) != 0 || pen__load32(f + 52) ||
        pen__load64(f + 56) != bytes || !m->n_files || !m->n_extents ||
        pen__mul_over(m->n_extents, PEN_EXTENT_BYTES, &extents) || extents > left ||
        files > left - extents)
        return damaged(name, "footer", reterr);
    if (!files_ok(m, left - extents - files))
        return damaged(name, "table of files", reterr);
    return extents_ok(m) ? PEN_OK : damaged(name, "extents", reterr);
}

static int read_footer(PenSource *file, uint8_t f[PEN_MAP_FOOTER_BYTES], PenError *reterr)
{
    if (file->bytes < PEN_MAP_FOOTER_BYTES)
        return damaged(file->name, "too short", reterr);
    return pen__source_read(file, f, PEN_MAP_FOOTER_BYTES, file->bytes - PEN_MAP_FOOTER_BYTES,
                            reterr);
}

int pen__map_is(PenSource *file, PenError *reterr)
{
    uint8_t f[PEN_MAP_FOOTER_BYTES];
    if (file->bytes < sizeof f)
        return 0;
    int r = read_footer(file, f, reterr);
    return r < 0 ? r : memcmp(f, MAGIC, 8) == 0;
}

int pen__map_read(PenSource *file, const uint8_t *id, PenMap *ret, PenError *reterr)
{
    uint8_t f[PEN_MAP_FOOTER_BYTES];
    int r = read_footer(file, f, reterr);
    if (r < 0)
        return r;
    if (memcmp(f, MAGIC, 8) != 0)
        return damaged(file->name, "no footer", reterr);
    r = pen__format_check(file->name, pen__load32(f + 8), reterr);
    if (r < 0)
        return r;
    uint64_t bytes = pen__load64(f + 56);
    if (bytes < sizeof f || bytes > file->bytes || bytes > PEN_MAX_MAP_BYTES)
        return damaged(file->name, "size", reterr);
    PenMap m = {
        .data = pen__alloc_array(bytes, 1), .bytes = bytes, .stored_bytes = file->bytes - bytes};
    if (!m.data)
        return pen__fail_memory(reterr, WHERE, file->name);
    r = pen__source_read(file, m.data, (size_t)bytes, m.stored_bytes, reterr);
    /* All that is used from here on comes from this second reading, and is under its checksum. */
    if (r == PEN_OK)
        r = check_map(&m, id, bytes, file->name, reterr);
    if (r < 0)
        pen__map_free(&m);
    else
        *ret = m;
    return r;
}

void pen__map_free(PenMap *m)
{
    pen__free(m->data);
    *m = (PenMap){0};
}

int pen__map_check_blocks(const PenMap *m, const uint8_t *table, uint64_t n_blocks,
                          const char *name, PenError *reterr)
{
    uint64_t b = 0;
    for (uint64_t i = 0; i < m->n_extents; i++) {
        PenExtent e = pen__map_extent(m, i);
        while (b < n_blocks && pen__load64(table + b * PEN_BLOCK_ENTRY_BYTES) +
                                       pen__load64(table + b * PEN_BLOCK_ENTRY_BYTES + 8) <=
                                   e.offset)
            b++;
        const uint8_t *t = table + b * PEN_BLOCK_ENTRY_BYTES;
        if (b == n_blocks || e.offset < pen__load64(t) + pen__load64(t + 16) ||
            e.offset + e.bytes > pen__load64(t) + pen__load64(t + 8) ||
            pen__load64(t + 8) > PEN_MAX_MAPPED_BLOCK)
            return damaged(name, "extents outside of payloads", reterr);
    }
    return PEN_OK;
}

/* ---- writing --------------------------------------------------------------------------------- */

enum { FILES_BACK = 16 }; /* a sample's parts lie in one tar, or in files of their own */

static bool find_file(const PenMapBuild *b, const PenMappedFile *file, uint32_t *ret)
{
    for (uint32_t k = 1; k <= PEN_MIN(b->n_files, (uint32_t)FILES_BACK); k++) {
        const uint8_t *e = b->files.data + (size_t)(b->n_files - k) * PEN_MAPPED_FILE_BYTES;
        if (pen__load32(e + 24) == file->path_bytes && pen__load64(e) == file->bytes &&
            memcmp(b->paths.data + pen__load64(e + 16), file->path, file->path_bytes) == 0) {
            *ret = b->n_files - k;
            return true;
        }
    }
    return false;
}

int pen__map_add_file(PenMapBuild *b, const PenMappedFile *file, uint32_t *ret, PenError *reterr)
{
    uint8_t e[PEN_MAPPED_FILE_BYTES] = {0};
    if (find_file(b, file, ret))
        return PEN_OK;
    if (b->n_files == PEN_ALL)
        return pen__fail(reterr, PEN_E_LIMIT, WHERE,
                         "a shard has 2^32 files; choose smaller shards");
    pen__store64(e, file->bytes);
    pen__store64(e + 8, (uint64_t)file->mtime_ns);
    pen__store64(e + 16, b->paths.bytes);
    pen__store32(e + 24, file->path_bytes);
    pen__store32(e + 28, file->etag_bytes);
    if (pen__buf_add(&b->files, e, sizeof e) < 0 ||
        pen__buf_add(&b->paths, file->path, file->path_bytes) < 0 ||
        (file->etag_bytes && pen__buf_add(&b->paths, file->etag, file->etag_bytes) < 0))
        return pen__fail_memory(reterr, WHERE, "table of files");
    *ret = b->n_files++;
    return PEN_OK;
}

int pen__map_add_extent(PenMapBuild *b, uint32_t file, uint64_t source, uint64_t offset,
                        uint64_t bytes)
{
    int r = PEN_OK;
    while (bytes && r == PEN_OK) {
        uint8_t e[PEN_EXTENT_BYTES];
        uint32_t n = (uint32_t)PEN_MIN(bytes, UINT64_C(1) << 31);
        pen__store64(e, offset);
        pen__store64(e + 8, source);
        pen__store32(e + 16, n);
        pen__store32(e + 20, file);
        pen__store64(e + 24, b->skipped);
        r = pen__buf_add(&b->extents, e, sizeof e);
        offset += n;
        source += n;
        bytes -= n;
        b->skipped += n;
    }
    return r;
}

int pen__map_write(PenMapBuild *b, const uint8_t *id, uint64_t file_bytes, PenBuf *out)
{
    uint8_t f[PEN_MAP_FOOTER_BYTES] = MAGIC;
    size_t start = out->bytes;
    uint64_t bytes = b->extents.bytes + b->files.bytes + b->paths.bytes + sizeof f;
    pen__store32(f + 8, PEN_FORMAT_VERSION);
    memcpy(f + 16, id, PEN_ID_BYTES);
    pen__store64(f + 32, file_bytes);
    pen__store64(f + 40, b->extents.bytes / PEN_EXTENT_BYTES);
    pen__store32(f + 48, b->n_files);
    pen__store64(f + 56, bytes);
    int r = pen__buf_add(out, b->extents.data, b->extents.bytes);
    if (r == PEN_OK)
        r = pen__buf_add(out, b->files.data, b->files.bytes);
    if (r == PEN_OK)
        r = pen__buf_add(out, b->paths.data, b->paths.bytes);
    if (r == PEN_OK)
        r = pen__buf_add(out, f, sizeof f);
    if (r == PEN_OK)
        pen__store32(out->data + out->bytes - sizeof f + 12,
                     sum_of(id, out->data + start, out->bytes - start));
    return r;
}

void pen__map_build_free(PenMapBuild *b)
{
    pen__buf_free(&b->extents);
    pen__buf_free(&b->files);
    pen__buf_free(&b->paths);
    *b = (PenMapBuild){0};
}
