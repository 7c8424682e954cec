/* SPDX-License-Identifier: Apache-2.0 */
/* The public calls that give out what is in a pack. */
#include <inttypes.h>
#include <string.h>

#include "base/bytes.h"
#include "pack/format/keys.h"
#include "pack/reader/reader.h"
#include "pack/reader/sections.h"

#define WHERE "pack/read"

const char *pen_stored_name(int codec)
{
    static const char *const names[] = {"none", "jpeg", "png", "webp", "raw"};
    return codec >= 0 && codec <= PEN_STORED_RAW ? names[codec] : "?";
}

const char *pen_how_name(int how)
{
    static const char *const names[PEN_HOW_COUNT] = {
        "kept",          "tiled",         "encoded",       "raw",
        "kept, untiled", "kept, quality", "kept, indexed", "converted"};
    return how >= 0 && how < PEN_HOW_COUNT ? names[how] : "?";
}

void pen_free(void *data)
{
    pen__free(data);
}

int pen_pack_field(const PenPack *pack, const char *name, uint32_t *ret_field, PenError *reterr)
{
    const PenPackInfo *info = pen_pack_info(pack);
    for (uint32_t f = 0; f < info->n_fields; f++)
        if (strcmp(info->fields[f].name, name) == 0) {
            *ret_field = f;
            return PEN_OK;
        }
    return pen__fail(reterr, PEN_E_NOT_FOUND, WHERE, "%s: no field '%s'", pen__pack_path(pack),
                     name);
}

/* Everything below finds a sample, does something with its block, and puts the block back. */
typedef struct At {
    PenPack *pack;
    PenBlock *block;
    uint32_t sample, field;
    uint64_t number;
} At;

static PenSpot spot_of(const At *at, uint32_t frame)
{
    return (PenSpot){at->block, at->sample, at->field, frame, NULL};
}

static int go_to(At *at, PenPack *pack, uint64_t sample, uint32_t field, PenError *reterr)
{
    *at = (At){.pack = pack, .field = field, .number = sample};
    if (field >= pen_pack_info(pack)->n_fields)
        return pen__fail(reterr, PEN_E_NOT_FOUND, WHERE, "%s: field %u: expected a number below %u",
                         pen__pack_path(pack), field, pen_pack_info(pack)->n_fields);
    int r = pen__pack_alive(pack, reterr);
    return r < 0 ? r : pen__pack_locate(pack, sample, &at->block, &at->sample, reterr);
}

static int go_away(At *at, int r, PenError *reterr)
{
    if (at->block)
        pen__pack_block_put(at->pack, at->block);
    if (r < 0 && reterr)
        reterr->sample = (int64_t)at->number;
    return r;
}

static const PenField *field_at(const At *at)
{
    return &at->block->view.schema->fields[at->field];
}

static int type_at(const At *at)
{
    return field_at(at)->type;
}

static int buffer_too_small(const At *at, size_t cap, uint64_t bytes, PenError *reterr)
{
    return pen__fail(reterr, PEN_E_LIMIT, WHERE,
                     "%s: sample %" PRIu64 ": %" PRIu64 " bytes, but the buffer holds %zu",
                     pen__pack_path(at->pack), at->number, bytes, cap);
}

static int wrong_type(const At *at, const char *expected, PenError *reterr)
{
    return pen__fail(reterr, PEN_E_INVALID, WHERE, "%s: field '%s': expected %s, found %s",
                     pen__pack_path(at->pack), field_at(at)->name, expected,
                     pen_type_name(type_at(at)));
}

/* Gives out bytes that are in memory. */
static int give(const At *at, const void *data, size_t bytes, void *buf, size_t cap,
                size_t *ret_bytes, PenError *reterr)
{
    if (buf && bytes > cap)
        return buffer_too_small(at, cap, bytes, reterr);
    if (buf && bytes)
        memcpy(buf, data, bytes);
    *ret_bytes = bytes;
    return PEN_OK;
}

static int read_at(const At *at, uint64_t offset, uint64_t bytes, void *buf, PenError *reterr)
{
    return pen__block_read(at->block, offset, bytes, buf, reterr);
}

int pen_pack_key(PenPack *pack, uint64_t sample, void *buf, size_t cap, size_t *ret_bytes,
                 PenError *reterr)
{
    At at;
    int r = go_to(&at, pack, sample, 0, reterr);
    if (r < 0)
        return r;
    const uint8_t *key;
    uint32_t bytes;
    pen__block_key(&at.block->view, at.sample, &key, &bytes);
    return go_away(&at, give(&at, key, bytes, buf, cap, ret_bytes, reterr), reterr);
}

/* Is there space for a payload, if there is a buffer? */
static int fits(const At *at, uint64_t bytes, const void *buf, size_t cap, PenError *reterr)
{
    return buf && bytes > cap ? buffer_too_small(at, cap, bytes, reterr) : PEN_OK;
}

static int read_image(const At *at, void *buf, size_t cap, size_t *ret_bytes, PenError *reterr)
{
    PenImageEntry e = pen__block_image(&at->block->view, at->sample, at->field, 0);
    PenSpot spot = spot_of(at, 0);
    int r = fits(at, e.bytes, buf, cap, reterr);
    if (r == PEN_OK && buf)
        r = pen__pack_read_image(&spot, &e, buf, reterr);
    if (r == PEN_OK)
        *ret_bytes = (size_t)e.bytes;
    return r;
}

static int read_blob(const At *at, void *buf, size_t cap, size_t *ret_bytes, PenError *reterr)
{
    PenBlobEntry e = pen__block_blob(&at->block->view, at->sample, at->field);
    PenSpot spot = spot_of(at, 0);
    int r = fits(at, e.bytes, buf, cap, reterr);
    if (r == PEN_OK && buf)
        r = pen__pack_read_blob(&spot, &e, buf, reterr);
    if (r == PEN_OK)
        *ret_bytes = (size_t)e.bytes;
    return r;
}

/* How many bytes the frames have, and from where to where in the block they lie. */
static uint64_t measure(const At *at, const PenFrameRange *range, uint64_t *ret_start,
                        uint64_t *ret_end)
{
    const PenBlockView *v = &at->block->view;
    uint64_t total = 0;
    for (uint32_t i = 0; i < range->n; i++) {
        PenImageEntry e =
            pen__block_image(v, at->sample, at->field, range->first + i * range->step);
        if (i == 0)
            *ret_start = e.offset;
        *ret_end = e.offset + e.bytes;
        total += e.bytes;
        if (range->ret_frame_bytes)
            range->ret_frame_bytes[i] = (size_t)e.bytes;
    }
    return total;
}

/* Checks the frames in `all`, which begins at `start` of the block, and moves them together. */
static int gather(const At *at, const PenFrameRange *range, const uint8_t *all, uint64_t start,
                  uint8_t *to, PenError *reterr)
{
    const PenBlockView *v = &at->block->view;
    for (uint32_t i = 0; i < range->n; i++) {
        PenSpot spot = spot_of(at, range->first + i * range->step);
        PenImageEntry e = pen__block_image(v, at->sample, at->field, spot.frame);
        const uint8_t *data = all + (e.offset - start);
        int r = pen__payload_check(&spot, &e, data, reterr);
        if (r < 0)
            return r;
        if (data != to)
            memcpy(to, data, (size_t)e.bytes);
        to += e.bytes;
    }
    return PEN_OK;
}

static int read_frames(const At *at, const PenFrameRange *range, uint8_t *buf, size_t cap,
                       size_t *ret_bytes, PenError *reterr)
{
    uint64_t start = 0;
    uint64_t end = 0;
    uint64_t total = measure(at, range, &start, &end);
    if (buf && total > cap)
        return buffer_too_small(at, cap, total, reterr);
    int r = PEN_OK;
    if (buf && total) {
        int dense = end - start == total;
        uint8_t *all = dense ? buf : pen__alloc_array(end - start, 1);
        if (!all)
            return pen__fail_memory(reterr, WHERE, "frames of a clip");
        r = read_at(at, start, end - start, all, reterr);
        if (r == PEN_OK)
            r = gather(at, range, all, start, buf, reterr);
        if (r == PEN_E_CORRUPT) {
            r = pen__block_read_again(at->block, start, end - start, all, reterr);
            if (r == PEN_OK)
                r = gather(at, range, all, start, buf, reterr);
        }
        if (!dense)
            pen__free(all);
    }
    if (r == PEN_OK)
        *ret_bytes = (size_t)total;
    return r;
}

/* Frames of a video are packets, which need a decoder. */
static int not_images(const At *at, PenError *reterr)
{
    return pen__fail(reterr, PEN_E_UNSUPPORTED, WHERE,
                     "%s: sample %" PRIu64 ", field '%s': expected frames that are images, found a "
                     "video; load it with a clip operation, or extract its file",
                     pen__pack_path(at->pack), at->number, field_at(at)->name);
}

typedef struct Collect {
    uint8_t *to;
} Collect;

static int collect_bytes(void *ctx, const uint8_t *data, size_t bytes, PenError *reterr)
{
    Collect *collect = ctx;
    (void)reterr;
    memcpy(collect->to, data, bytes);
    collect->to += bytes;
    return PEN_OK;
}

/* The file, or the part of one, that the clip is. */
static int read_video(const At *at, const PenVideoTable *t, uint8_t *buf, size_t cap,
                      size_t *ret_bytes, PenError *reterr)
{
    PenSpot spot = spot_of(at, 0);
    PenBuf part = {0};
    Collect collect = {buf};
    int r = fits(at, t->payload_bytes, buf, cap, reterr);
    if (r == PEN_OK && buf)
        r = pen__pack_each_run(&spot, &part, collect_bytes, &collect, reterr);
    pen__buf_free(&part);
    if (r == PEN_OK)
        *ret_bytes = (size_t)t->payload_bytes;
    return r;
}

static bool is_video(const At *at)
{
    PenVideoTable t;
    return pen__block_video(&at->block->view, at->sample, at->field, &t);
}

int pen_pack_read(PenPack *pack, uint64_t sample, uint32_t field, void *buf, size_t cap,
                  size_t *ret_bytes, PenError *reterr)
{
    PenVideoTable video;
    At at;
    int r = go_to(&at, pack, sample, field, reterr);
    if (r < 0)
        return r;
    int type = type_at(&at);
    if (pen__block_video(&at.block->view, at.sample, field, &video))
        return go_away(&at, read_video(&at, &video, buf, cap, ret_bytes, reterr), reterr);
    if (type == PEN_TYPE_CLIP) {
        PenFrameRange range = {.step = 1,
                               .n = pen__block_clip(&at.block->view, at.sample, field).n_frames};
        return go_away(&at, read_frames(&at, &range, buf, cap, ret_bytes, reterr), reterr);
    }
    if (type == PEN_TYPE_IMAGE)
        r = read_image(&at, buf, cap, ret_bytes, reterr);
    else if (pen__field_is_blob(field_at(&at)))
        r = read_blob(&at, buf, cap, ret_bytes, reterr);
    else
        r = give(&at, pen__block_number(&at.block->view, at.sample, field),
                 at.block->view.schema->widths[field], buf, cap, ret_bytes, reterr);
    return go_away(&at, r, reterr);
}

int pen_pack_missing(PenPack *pack, uint64_t sample, uint32_t field, int32_t *ret, PenError *reterr)
{
    At at;
    int r = go_to(&at, pack, sample, field, reterr);
    if (r < 0)
        return r;
    const PenBlockView *v = &at.block->view;
    int type = type_at(&at);
    *ret = 0;
    if (type == PEN_TYPE_IMAGE)
        *ret = pen__block_image(v, at.sample, field, 0).codec == PEN_STORED_NONE;
    else if (pen__field_is_blob(field_at(&at)))
        *ret = (pen__block_blob(v, at.sample, field).flags & PEN_BLOB_MISSING) != 0;
    return go_away(&at, PEN_OK, reterr);
}

static int frames_at(const At *at, uint32_t *ret_n, PenError *reterr)
{
    int type = type_at(at);
    if (type == PEN_TYPE_CLIP)
        *ret_n = pen__block_clip(&at->block->view, at->sample, at->field).n_frames;
    else if (type == PEN_TYPE_IMAGE)
        *ret_n = pen__block_image(&at->block->view, at->sample, at->field, 0).codec != 0;
    else
        return wrong_type(at, "an image or clip", reterr);
    return PEN_OK;
}

int pen_pack_frame_count(PenPack *pack, uint64_t sample, uint32_t field, uint32_t *ret_n,
                         PenError *reterr)
{
    At at;
    int r = go_to(&at, pack, sample, field, reterr);
    return r < 0 ? r : go_away(&at, frames_at(&at, ret_n, reterr), reterr);
}

/* Writes one number for each frame. */
static int write_times(const At *at, uint32_t n, int64_t *ret, PenError *reterr)
{
    const PenBlockView *v = &at->block->view;
    PenVideoTable t;
    PenVideoNeeds scratch = {0};
    if (pen__block_video(v, at->sample, at->field, &t)) {
        int r = pen__video_all_ns(&t, &scratch, ret, reterr);
        pen__video_needs_free(&scratch);
        return r;
    }
    for (uint32_t i = 0; i < n; i++)
        ret[i] = pen__block_image(v, at->sample, at->field, i).timestamp_ns;
    return PEN_OK;
}

int pen_pack_frame_times(PenPack *pack, uint64_t sample, uint32_t field, int64_t *buf, uint32_t cap,
                         uint32_t *ret_n, PenError *reterr)
{
    At at;
    uint32_t n = 0;
    int r = go_to(&at, pack, sample, field, reterr);
    if (r < 0)
        return r;
    if (type_at(&at) != PEN_TYPE_CLIP)
        r = wrong_type(&at, "a clip", reterr);
    if (r == PEN_OK)
        r = frames_at(&at, &n, reterr);
    if (r == PEN_OK)
        r = fits(&at, (uint64_t)n * sizeof *buf, buf, (size_t)cap * sizeof *buf, reterr);
    if (r == PEN_OK && buf)
        r = write_times(&at, n, buf, reterr);
    if (r == PEN_OK)
        *ret_n = n;
    return go_away(&at, r, reterr);
}

static int has_frame(const At *at, uint32_t frame, PenError *reterr)
{
    uint32_t n = 0;
    int r = frames_at(at, &n, reterr);
    if (r == PEN_OK && frame >= n && !(frame == 0 && type_at(at) == PEN_TYPE_IMAGE))
        r = pen__fail(reterr, PEN_E_NOT_FOUND, WHERE,
                      "%s: sample %" PRIu64 ": frame %u: expected a number below %u",
                      pen__pack_path(at->pack), at->number, frame, n);
    return r;
}

int pen_pack_image(PenPack *pack, uint64_t sample, uint32_t field, uint32_t frame,
                   PenImage *ret_image, PenError *reterr)
{
    At at;
    int r = go_to(&at, pack, sample, field, reterr);
    if (r < 0)
        return r;
    r = has_frame(&at, frame, reterr);
    if (r == PEN_OK && is_video(&at))
        r = not_images(&at, reterr);
    if (r == PEN_OK) {
        PenImageEntry e = pen__block_image(&at.block->view, at.sample, field, frame);
        *ret_image = (PenImage){.width = e.width,
                                .height = e.height,
                                .codec = e.codec,
                                .how = e.how,
                                .orientation = e.orientation,
                                .channels = e.channels,
                                .bytes = e.bytes,
                                .source_bytes = e.source_bytes,
                                .timestamp_ns = e.timestamp_ns};
    }
    return go_away(&at, r, reterr);
}

static int check_range(const At *at, const PenFrameRange *range, PenError *reterr)
{
    if (type_at(at) != PEN_TYPE_CLIP)
        return wrong_type(at, "a clip", reterr);
    if (range->n == 0)
        return PEN_OK;
    if (range->step == 0)
        return pen__fail(reterr, PEN_E_INVALID, WHERE, "frames: expected a step of 1 or more");
    uint64_t last = range->first + (uint64_t)(range->n - 1) * range->step;
    return has_frame(at, (uint32_t)PEN_MIN(last, PEN_ALL), reterr);
}

int pen_pack_read_frames(PenPack *pack, uint64_t sample, uint32_t field, const PenFrameRange *range,
                         void *buf, size_t cap, size_t *ret_bytes, PenError *reterr)
{
    At at;
    int r = go_to(&at, pack, sample, field, reterr);
    if (r < 0)
        return r;
    r = check_range(&at, range, reterr);
    if (r == PEN_OK && is_video(&at))
        r = not_images(&at, reterr);
    if (r == PEN_OK)
        r = read_frames(&at, range, buf, cap, ret_bytes, reterr);
    return go_away(&at, r, reterr);
}

/* ---- metadata ---- */

typedef struct Find {
    uint32_t sample, field, frame;
    const uint8_t *data;
    uint64_t bytes;
} Find;

static int match(void *ctx, const PenSection *s)
{
    Find *f = ctx;
    if (strcmp(s->type, "META") != 0 || s->sample != f->sample || s->field != f->field ||
        s->frame != f->frame)
        return PEN_OK;
    f->data = s->data;
    f->bytes = s->bytes;
    return PEN_END;
}

static int find_metadata(const PenBlock *b, Find *find, uint8_t **ret_all, PenError *reterr)
{
    uint64_t bytes = b->view.bytes - b->view.sections_offset;
    uint8_t *all = pen__alloc_array(bytes, 1);
    if (!all)
        return pen__fail_memory(reterr, WHERE, "metadata");
    int r = pen__block_read(b, b->view.sections_offset, bytes, all, reterr);
    if (r == PEN_OK)
        r = pen__sections_walk(b, all, match, find, reterr);
    if (r == PEN_E_CORRUPT) {
        r = pen__block_read_again(b, b->view.sections_offset, bytes, all, reterr);
        if (r == PEN_OK)
            r = pen__sections_walk(b, all, match, find, reterr);
    }
    if (r < 0) {
        pen__free(all);
        return r;
    }
    *ret_all = all;
    return PEN_OK;
}

int pen_pack_metadata(PenPack *pack, uint64_t sample, uint32_t field, uint32_t frame, void *buf,
                      size_t cap, size_t *ret_bytes, PenError *reterr)
{
    PenBlock *b = NULL;
    Find find = {.field = field, .frame = frame};
    uint8_t *all = NULL;
    int r = pen__pack_alive(pack, reterr);
    if (r == PEN_OK)
        r = pen__pack_locate(pack, sample, &b, &find.sample, reterr);
    if (r != PEN_OK)
        return r;
    r = find_metadata(b, &find, &all, reterr);
    if (r == PEN_OK && buf && find.bytes > cap)
        r = pen__fail(reterr, PEN_E_LIMIT, WHERE,
                      "%s: sample %" PRIu64 ": metadata of %" PRIu64
                      " bytes, but the buffer holds %zu",
                      pen__pack_path(pack), sample, find.bytes, cap);
    if (r == PEN_OK) {
        if (buf && find.bytes)
            memcpy(buf, find.data, (size_t)find.bytes);
        *ret_bytes = (size_t)find.bytes;
    } else if (reterr) {
        reterr->sample = (int64_t)sample;
    }
    pen__free(all);
    pen__pack_block_put(pack, b);
    return r;
}
