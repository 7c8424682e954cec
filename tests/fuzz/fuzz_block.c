/* SPDX-License-Identifier: Apache-2.0 */
/* A whole pack (see pack_parts.h) that is read in every way there is. The mutator puts checksums
 * and places right again, because without it hardly any input would get past them. */
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "codec/region/region.h"
#include "help.h"
#include "mutate_pack.h"
#include "pack/format/block_write.h"
#include "pack/reader/reader.h"
#include "pack/write/copy.h"
#include "pack_parts.h"

enum { MAX_SAMPLES = 64, MAX_BLOCKS = 16, MAX_FRAMES = 16 };

typedef struct Reading {
    PenPack *pack;
    uint64_t sample;
    uint32_t field;
    bool all_well; /* everything could be read so far */
} Reading;

/* ---- images ---------------------------------------------------------------------------------- */

/* Runs of an indexed JPEG have to be what they are in the payload, and its tables before them. */
static void read_runs(const PenSpot *at, const PenImageEntry *e, const uint8_t *whole,
                      uint32_t first, uint32_t last)
{
    PenError err;
    PenBuf data = {0};
    PenScanPart part;
    PenEntryTable t = pen__block_entries(&at->block->view, e);
    const PenStoredEntries *s = &t.stored;
    uint64_t from = first % s->scan_bytes, end = from + 1 + last % (s->scan_bytes - from);
    MUST(pen__pack_read_scan(at, from, end, &data, &part, &err));
    size_t tables = s->head_bytes - s->lead_bytes, runs = data.bytes - part.head_bytes;
    REQUIRE(part.head_bytes == 2 + tables && part.scan_offset <= from);
    REQUIRE(part.scan_offset + runs >= end && part.scan_offset + runs <= s->scan_bytes);
    REQUIRE(memcmp(data.data + 2, whole + s->lead_bytes, tables) == 0);
    REQUIRE(memcmp(data.data + part.head_bytes, whole + s->head_bytes + part.scan_offset, runs) ==
            0);
    pen__buf_free(&data);
}

/* The entries are parsed or refused; what is parsed lies in the scan. */
static void parse_entries(const PenSpot *at, const PenImageEntry *e)
{
    PenError err;
    PenBuf buf = {0};
    PenJpegEntries found;
    PenStoredEntries s = pen__block_entries(&at->block->view, e).stored;
    PenCut cut = {e->codec, (uint8_t)s.plan.components, s.h_samp, s.v_samp, e->width, e->height, 0};
    PenBox boxes[] = {{0, 0, e->width, e->height}, {e->width / 2, e->height / 2, 1, 1}};
    bool good =
        GOES(pen__entries_parse(s.coded, s.coded_bytes, &s.plan, s.scan_bytes, &buf, &found, &err));
    for (size_t i = 0; good && i < PEN_LEN(boxes); i++) {
        uint64_t from, end;
        pen__region_scan(&cut, &found, &boxes[i], &from, &end);
        REQUIRE(from < end && end <= s.scan_bytes);
    }
    pen__buf_free(&buf);
}

/* Some segments have to be what they are in the whole payload, which has been read and is right. */
static void read_slice(const PenSpot *at, const uint8_t *whole, uint32_t first, uint32_t last)
{
    PenError err;
    PenSlice slice = {.data = {0}};
    PenImageEntry e = pen__block_image(&at->block->view, at->sample, at->field, at->frame);
    bool indexed = pen__block_is_indexed(&at->block->view, &e);
    if (indexed) {
        read_runs(at, &e, whole, first, last);
        parse_entries(at, &e);
    }
    if (!e.table_bytes || indexed) {
        REQUIRE(CALL(pen__pack_read_slice(at, first, last, &slice, &err)) == PEN_E_INVALID);
        return;
    }
    PenSegmentTable t = pen__block_segments(&at->block->view, &e);
    first %= t.n_segments;
    last = first + last % (t.n_segments - first);
    MUST(pen__pack_read_slice(at, first, last, &slice, &err));
    REQUIRE(slice.first <= first && slice.end > last && slice.segments_offset == t.head_bytes);
    uint64_t start = t.head_bytes, bytes = 0;
    for (uint32_t i = 0; i < slice.first; i++)
        start += pen__segment_bytes(&t, i);
    for (uint32_t i = slice.first; i < slice.end; i++)
        bytes += pen__segment_bytes(&t, i);
    REQUIRE(slice.data.bytes == t.head_bytes + bytes);
    REQUIRE(memcmp(slice.data.data, whole, t.head_bytes) == 0);
    REQUIRE(memcmp(slice.data.data + t.head_bytes, whole + start, (size_t)bytes) == 0);
    pen__buf_free(&slice.data);
}

static void read_slices(const Reading *r, uint32_t frame, const uint8_t *whole)
{
    PenError err;
    PenBlock *block = NULL;
    PenSpot at = {.field = r->field, .frame = frame};
    MUST(pen__pack_locate(r->pack, r->sample, &block, &at.sample, &err));
    at.block = block;
    read_slice(&at, whole, 0, 0);
    read_slice(&at, whole, 0, UINT32_MAX);
    read_slice(&at, whole, 7, 3);
    read_slice(&at, whole, UINT32_MAX, 0);
    pen__pack_block_put(r->pack, block);
}

static void read_meta(Reading *r, uint32_t frame)
{
    PenError err;
    size_t bytes = 0, again;
    if (!GOES(pen_pack_metadata(r->pack, r->sample, r->field, frame, NULL, 0, &bytes, &err))) {
        r->all_well = false;
        return;
    }
    uint8_t *buf = malloc(bytes);
    MUST(pen_pack_metadata(r->pack, r->sample, r->field, frame, buf, bytes, &again, &err));
    REQUIRE(again == bytes);
    free(buf);
}

/* `whole` is the frame's payload, or NULL when it could not be read. */
static void read_frame(Reading *r, uint32_t frame, const uint8_t *whole)
{
    PenError err;
    PenImage image;
    void *file = NULL;
    size_t bytes;
    const char *suffix;
    MUST(pen_pack_image(r->pack, r->sample, r->field, frame, &image, &err));
    read_meta(r, frame);
    if (image.codec == PEN_STORED_NONE || !whole)
        return;
    read_slices(r, frame, whole);
    /* Metadata need not be of a kind that can be put back, nor a jpeg what it says it is. */
    if (GOES(pen_pack_extract(r->pack, r->sample, r->field, frame, &file, &bytes, &suffix, &err)))
        REQUIRE(bytes && suffix[0] == '.');
    pen_free(file);
}

/* Its frames are found or its packets are refused; what is found is read with its runs. */
static void read_packets(Reading *r, const uint8_t *whole)
{
    PenError err;
    PenBlock *block = NULL;
    PenVideoTable t;
    PenVideoNeeds needs = {0};
    PenBuf data = {0};
    PenSpot at = {.field = r->field};
    MUST(pen__pack_locate(r->pack, r->sample, &block, &at.sample, &err));
    at.block = block;
    REQUIRE(pen__block_video(&block->view, at.sample, r->field, &t));
    if (!GOES(pen__video_table_check(&t, &err)))
        r->all_well = false;
    uint32_t frames[] = {t.n_frames / 3, t.n_frames / 2, t.n_frames - 1};
    bool good = GOES(pen__video_need(&t, frames, PEN_LEN(frames), &needs, &err));
    for (uint32_t i = 0; good && whole && i < needs.n_needs; i++) {
        const PenVideoNeed *need = &needs.needs[i];
        uint64_t from = 0, end = need->offset + need->bytes;
        data.bytes = 0;
        MUST(pen__pack_read_video(&at, need->offset, end, &data, &from, &err));
        REQUIRE(from <= need->offset && from + data.bytes >= end);
        REQUIRE(memcmp(data.data, whole + from, data.bytes) == 0);
    }
    pen__video_needs_free(&needs);
    pen__buf_free(&data);
    pen__pack_block_put(r->pack, block);
}

/* 1: the clip is a video. */
static int read_video(Reading *r, const uint8_t *whole)
{
    PenError err;
    PenClipVideo video;
    PenImage image;
    int is_video = CALL(pen_pack_video(r->pack, r->sample, r->field, &video, &err));
    REQUIRE(is_video == 0 || is_video == 1);
    if (!is_video)
        return 0;
    REQUIRE(CALL(pen_pack_image(r->pack, r->sample, r->field, 0, &image, &err)) ==
            PEN_E_UNSUPPORTED);
    read_packets(r, whole);
    return 1;
}

static void read_clip(Reading *r, const uint8_t *whole)
{
    PenError err;
    if (read_video(r, whole))
        return;
    uint32_t n = 0;
    uint64_t at = 0;
    size_t bytes = 0, again = 0, sizes[MAX_FRAMES];
    MUST(pen_pack_frame_count(r->pack, r->sample, r->field, &n, &err));
    for (uint32_t i = 0; i < n && i < MAX_FRAMES; i++) {
        PenImage image;
        MUST(pen_pack_image(r->pack, r->sample, r->field, i, &image, &err));
        read_frame(r, i, whole ? whole + at : NULL);
        at += image.bytes;
    }
    /* Every other one. */
    PenFrameRange range = {1, 2, PEN_MIN(n / 2, (uint32_t)MAX_FRAMES), sizes};
    MUST(pen_pack_read_frames(r->pack, r->sample, r->field, &range, NULL, 0, &bytes, &err));
    uint8_t *buf = malloc(bytes);
    if (GOES(pen_pack_read_frames(r->pack, r->sample, r->field, &range, buf, bytes, &again, &err)))
        REQUIRE(again == bytes);
    else
        REQUIRE(!whole);
    free(buf);
}

/* ---- samples --------------------------------------------------------------------------------- */

static void read_value(Reading *r)
{
    PenError err;
    size_t bytes = 0, again = 0;
    int type = pen_pack_info(r->pack)->fields[r->field].type;
    MUST(pen_pack_read(r->pack, r->sample, r->field, NULL, 0, &bytes, &err));
    int32_t missing = -1;
    MUST(pen_pack_missing(r->pack, r->sample, r->field, &missing, &err));
    REQUIRE(missing == 0 || (missing == 1 && bytes == 0));
    uint8_t *buf = malloc(bytes);
    if (bytes) /* one byte too few */
        REQUIRE(CALL(pen_pack_read(r->pack, r->sample, r->field, buf, bytes - 1, &again, &err)) ==
                PEN_E_LIMIT);
    bool right = GOES(pen_pack_read(r->pack, r->sample, r->field, buf, bytes, &again, &err));
    REQUIRE(!right || again == bytes);
    r->all_well = r->all_well && right;
    if (type == PEN_TYPE_CLIP)
        read_clip(r, right ? buf : NULL);
    else if (type == PEN_TYPE_IMAGE)
        read_frame(r, 0, right ? buf : NULL);
    free(buf);
}

static void read_sample(Reading *r)
{
    PenError err;
    uint8_t key[PEN_MAX_KEY_BYTES];
    size_t bytes = 0;
    uint64_t found = 0;
    if (!GOES(pen_pack_key(r->pack, r->sample, key, sizeof key, &bytes, &err))) {
        r->all_well = false;
        return;
    }
    if (!GOES(pen_pack_find(r->pack, key, bytes, &found, &err)) || found != r->sample)
        r->all_well = false; /* list of keys damaged, or the key is there twice */
    for (uint32_t f = 0; f < pen_pack_info(r->pack)->n_fields; f++) {
        r->field = f;
        read_value(r);
    }
}

/* ---- columns --------------------------------------------------------------------------------- */

/* The value of a sample, by the calls for single samples. */
static void value_of(const Reading *r, int what, uint8_t *ret, size_t bytes)
{
    PenError err;
    PenImage image = {.width = 0};
    uint32_t n = 0;
    if (what == PEN_COLUMN_VALUE) {
        MUST(pen_pack_read(r->pack, r->sample, r->field, ret, bytes, &bytes, &err));
        return;
    }
    MUST(pen_pack_frame_count(r->pack, r->sample, r->field, &n, &err));
    PenClipVideo video;
    bool is_clip = pen_pack_info(r->pack)->fields[r->field].type == PEN_TYPE_CLIP;
    if (is_clip && CALL(pen_pack_video(r->pack, r->sample, r->field, &video, &err)) == 1)
        image = (PenImage){.width = video.width, .height = video.height};
    else if (what == PEN_COLUMN_SIZE && n)
        MUST(pen_pack_image(r->pack, r->sample, r->field, 0, &image, &err));
    bool turned = image.orientation >= 5;
    pen__store32(ret, what == PEN_COLUMN_FRAMES ? n : turned ? image.height : image.width);
    if (what == PEN_COLUMN_SIZE)
        pen__store32(ret + 4, turned ? image.width : image.height);
}

/* 1: it is that of the samples. 0: it cannot be read, or is another one. */
static bool read_column(Reading *r, int what)
{
    PenError err;
    size_t bytes = 0, again = 0;
    uint64_t n = PEN_MIN(pen_pack_info(r->pack)->n_samples, (uint64_t)MAX_SAMPLES);
    PenColumnRange range = {.field = r->field, .what = what, .n = n};
    if (!n || CALL(pen_pack_column(r->pack, &range, NULL, 0, &bytes, &err)) == PEN_E_INVALID)
        return true; /* the field has none */
    uint8_t *all = malloc(bytes), *one = malloc(bytes / n);
    bool right = GOES(pen_pack_column(r->pack, &range, all, bytes, &again, &err));
    for (r->sample = 0; r->sample < n && right; r->sample++) {
        PenBlock *block = NULL;
        uint32_t sample;
        right = GOES(pen__pack_locate(r->pack, r->sample, &block, &sample, &err));
        if (!right)
            break;
        pen__pack_block_put(r->pack, block);
        value_of(r, what, one, bytes / n);
        right = memcmp(one, all + r->sample * (bytes / n), bytes / n) == 0;
    }
    free(all);
    free(one);
    return right;
}

static void read_columns(Reading *r)
{
    for (r->field = 0; r->field < pen_pack_info(r->pack)->n_fields; r->field++)
        for (int what = 0; what < PEN_COLUMN_COUNT; what++)
            r->all_well = read_column(r, what) && r->all_well;
}

/* ---- copying --------------------------------------------------------------------------------- */

/* What has been copied makes a block that can be read: an appended pack is as good as its source.
 */
static void build_again(const PenSchema *schema, const PenCopied *c)
{
    static const uint8_t id[PEN_ID_BYTES] = {1, 2, 3};
    PenError err;
    PenBlockBuild build = {.n_iov = 0};
    PenBlockView view;
    const PenStoredSample **samples = malloc(c->n * sizeof *samples);
    for (uint32_t i = 0; i < c->n; i++)
        samples[i] = &c->samples[i];
    MUST(pen__block_build(&build, schema, id, 5, samples, c->n, NULL, &err));
    PenBlockEntry entry = {.bytes = build.bytes,
                           .index_bytes = build.index.bytes,
                           .index_crc = build.index_crc,
                           .n_samples = c->n};
    uint8_t *index = copy_of(build.index.data, build.index.bytes);
    MUST(pen__block_view(&view, schema, id, 5, &entry, index, "copy", &err));
    free(index);
    free(samples);
    pen__block_build_fini(&build);
}

static bool copy_blocks(PenPack *pack)
{
    PenError err;
    bool all = true;
    uint64_t n = PEN_MIN(pen_pack_info(pack)->n_blocks, (uint64_t)MAX_BLOCKS);
    for (uint64_t b = 0; b < n; b++) {
        PenCopied c = {.n = 0};
        if (GOES(pen__copy_block(pack, b, &c, &err)))
            build_again(&pen__pack_manifest(pack)->schema, &c);
        else
            all = false;
        pen__copied_free(&c);
    }
    return all;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    PackParts parts;
    PenError err;
    Reading r = {.all_well = true};
    parts_split(data, bytes, &parts);
    if (GOES(pen__pack_open_with("fuzz", parts_open, &parts, &r.pack, &err))) {
        PenVerifySettings settings;
        PenVerifyResult result;
        uint64_t n = pen_pack_info(r.pack)->n_samples;
        for (r.sample = 0; r.sample < n && r.sample < MAX_SAMPLES; r.sample++)
            read_sample(&r);
        read_columns(&r);
        bool copied = copy_blocks(r.pack);
        pen_verify_settings_init(&settings);
        settings.threads = 1;
        /* A pack that is found right can be read. */
        int found = pen_pack_verify(r.pack, &settings, &result, &err);
        REQUIRE(found == (result.problems ? PEN_E_CORRUPT : PEN_OK));
        REQUIRE(found || (r.all_well && copied && result.samples == n));
        pen_pack_close(&r.pack);
    }
    parts_free(&parts);
    return 0;
}

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t bytes, size_t max_bytes, unsigned seed)
{
    return mutate_pack(data, bytes, max_bytes, seed);
}
