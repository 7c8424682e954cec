/* SPDX-License-Identifier: Apache-2.0 */
/* How many samples a block gets. */
#include <inttypes.h>
#include <string.h>

#include "base/bytes.h"
#include "codec/codec.h"
#include "ingest/plan/part_impl.h"
#include "ingest/video/video.h"
#include "pack/format/video_table.h"

#define WHERE "ingest/plan"
#define BLOCK_BYTES ((uint64_t)4 << 20)
/* Of kept videos a reader fetches the index of a block, and the bytes of clips. What copies a pack
 * or appends to it holds an entire block in memory. */
#define VIDEO_INDEX_BYTES ((uint64_t)1 << 20)
#define VIDEO_BYTES ((uint64_t)256 << 20)
#define TABLE_HEAD 256 /* header, groups and configuration of the codec, about */
#define TABLE_PACKET 6 /* bytes for a packet, about */
#define MAX_CHOSEN 65536
#define MAX_GIVEN ((uint64_t)1 << 31) /* of the pack format */

/* The size an image gets when its longer or shorter side is made `side`; it is only ever made
 * smaller. */
static uint64_t pixels_after(const PenIngestSettings *s, const PenImageInfo *image,
                             bool *ret_resized)
{
    uint64_t w = image->width, h = image->height;
    uint64_t have = s->max_side ? PEN_MAX(w, h) : PEN_MIN(w, h);
    uint64_t want = s->max_side ? s->max_side : s->short_side;
    *ret_resized = want && have > want;
    if (!*ret_resized)
        return w * h;
    return PEN_MAX(w * want / have, 1u) * PEN_MAX(h * want / have, 1u);
}

/* About what an image takes in the pack. One that is encoded anew is reckoned at a quarter byte
 * per pixel. */
static uint64_t stored_bytes(const PenIngestSettings *s, const PenImageInfo *image, uint64_t bytes)
{
    bool resized;
    uint64_t pixels = pixels_after(s, image, &resized);
    uint64_t raw = pixels * image->channels;
    uint64_t encoded = pixels / 4;
    switch (s->mode) {
    case PEN_MODE_RAW:
        return raw;
    case PEN_MODE_ENCODE:
        return encoded;
    case PEN_MODE_MIX:
        return (uint64_t)(s->raw_share * (double)raw +
                          (1 - s->raw_share) * (double)(resized ? encoded : bytes));
    case PEN_MODE_SMART:
        return raw <= s->smart_threshold ? raw : encoded;
    default:
        return bytes;
    }
}

/* What is wrong with an input is reported when it is packed. What is wrong here and now (memory, a
 * disk, a server) must not change the outcome. */
static bool is_passing(int r)
{
    return r < 0 && r != PEN_E_DECODE && r != PEN_E_LIMIT && r != PEN_E_UNSUPPORTED &&
           r != PEN_E_NOT_FOUND && r != PEN_E_INVALID && r != PEN_E_CORRUPT && r != PEN_E_FORMAT;
}

static int measure_part(PenPartReader *reader, const PenIngestSettings *s, const PenPart *part,
                        PenBuf *data, uint64_t *ret, PenError *reterr)
{
    PenError local = {0};
    PenImageInfo image;
    *ret = part->bytes;
    int r = pen__part_read(reader, part, data, NULL, &local);
    if (r == PEN_OK)
        r = pen__image_probe(data->data, data->bytes, &pen__limits_default, &image, &local);
    if (r == PEN_OK)
        *ret = stored_bytes(s, &image, part->bytes);
    if (is_passing(r)) {
        if (reterr)
            *reterr = local;
        return r;
    }
    return PEN_OK;
}

typedef struct FirstFrame {
    PenImageInfo image;
    uint64_t bytes;
} FirstFrame;

static int look_at_frame(void *ctx, PenBuf *data, PenError *reterr)
{
    FirstFrame *f = ctx;
    f->bytes = data->bytes;
    int r = pen__image_probe(data->data, data->bytes, &pen__limits_default, &f->image, reterr);
    return r < 0 ? r : PEN_END;
}

/* All frames are taken to be as the first. */
static int measure_frames(PenPartReader *reader, const PenIngestSettings *s, const PenPart *part,
                          uint64_t *ret, PenError *reterr)
{
    PenError local = {0};
    FirstFrame first;
    uint64_t bytes = 0;
    *ret = part->bytes;
    int r = pen__part_frames(reader, part, look_at_frame, &first, NULL, &local);
    if (r == PEN_END &&
        !pen__mul_over(stored_bytes(s, &first.image, first.bytes), part->offset, &bytes))
        *ret = bytes;
    if (is_passing(r)) {
        if (reterr)
            *reterr = local;
        return r;
    }
    return PEN_OK;
}

typedef struct Probe {
    const PenPlanDraft *draft;
    PenRecordFrame frame;
    PenPartReader *reader;
    PenBuf record, data;
    uint64_t total;
    uint64_t videos, tables; /* of videos that are stored as they are, which are not in the total */
} Probe;

typedef struct VideoSize {
    PenVideoInfo info;
    double seconds, frames; /* of the part */
} VideoSize;

/* As many frames as its header says, or as the part has seconds. PEN_END: they are not known. */
static int probe_video(const Probe *p, const PenPart *part, VideoSize *ret, PenError *reterr)
{
    const PenIngestSettings *s = p->draft->request->settings;
    const PenVideoSettings video = {.seconds = s->video_seconds};
    const char *path = NULL;
    PenVideoInfo *info = &ret->info;
    PenError local = {0};
    int r = pen__part_path(p->reader, part, &path, &local);
    if (r == PEN_OK)
        r = pen__video_probe(&video, path, info, &local);
    if (is_passing(r)) {
        if (reterr)
            *reterr = local;
        return r;
    }
    if (r < 0 || (uint64_t)info->width * info->height > pen__limits_default.max_pixels)
        return PEN_END;
    double start = (double)part->offset / 1e9;
    double end = part->end == PEN_NO_END ? info->seconds : (double)part->end / 1e9;
    double fps = s->fps > 0 ? s->fps : info->fps > 0 ? info->fps : 25;
    ret->seconds = PEN_MAX(PEN_MIN(end, info->seconds > 0 ? info->seconds : end) - start, 0.0);
    ret->frames = PEN_MIN(PEN_MAX(ret->seconds * fps, 1.0), (double)PEN_CLIP_FRAMES);
    return PEN_OK;
}

static int measure_video(const Probe *p, const PenPart *part, uint64_t *ret, PenError *reterr)
{
    const PenIngestSettings *s = p->draft->request->settings;
    VideoSize size = {.frames = 0};
    *ret = part->bytes;
    int r = probe_video(p, part, &size, reterr);
    if (r != PEN_OK)
        return r < 0 ? r : PEN_OK;
    PenImageInfo image = {.width = size.info.width, .height = size.info.height, .channels = 3};
    bool resized;
    uint64_t encoded = pixels_after(s, &image, &resized) / 4;
    *ret = (uint64_t)(size.frames * (double)stored_bytes(s, &image, encoded));
    return PEN_OK;
}

static int measure_kept_video(Probe *p, const PenPart *part, PenError *reterr)
{
    VideoSize size = {.frames = 0};
    double bytes = (double)part->bytes;
    int r = probe_video(p, part, &size, reterr);
    if (r < 0)
        return r;
    if (size.info.seconds > 0)
        bytes *= PEN_MIN(size.seconds / size.info.seconds, 1.0);
    p->videos += (uint64_t)bytes;
    p->tables += TABLE_HEAD + (uint64_t)(TABLE_PACKET * size.frames) +
                 4 * ((uint64_t)bytes / PEN_VIDEO_RUN_BYTES);
    return PEN_OK;
}

static int measure_input(Probe *p, const uint8_t *stored, PenError *reterr)
{
    const PenPlanDraft *d = p->draft;
    PenInput input;
    PenItem item;
    p->record.bytes = 0;
    size_t stamps;
    pen__input_load(stored, &input);
    int r = pen__record_add(&d->shape, &input, &p->record, &stamps, reterr);
    if (r == PEN_OK)
        r = pen__record_parse(&p->frame, &item, &p->record, reterr);
    for (uint32_t i = 0; r == PEN_OK && i < item.n_parts; i++) {
        const PenField *f = &d->shape.fields[i];
        uint64_t bytes = item.parts[i].bytes;
        if (f->type == PEN_TYPE_IMAGE && !(f->flags & PEN_FIELD_MASK) &&
            item.parts[i].kind != PEN_PART_NONE)
            r = measure_part(p->reader, d->request->settings, &item.parts[i], &p->data, &bytes,
                             reterr);
        if (pen__part_has_frames(&item.parts[i]))
            r = measure_frames(p->reader, d->request->settings, &item.parts[i], &bytes, reterr);
        if (item.parts[i].kind == PEN_PART_VIDEO &&
            d->request->settings->video == PEN_VIDEOS_KEEP) {
            r = measure_kept_video(p, &item.parts[i], reterr);
            bytes = 0;
        } else if (item.parts[i].kind == PEN_PART_VIDEO) {
            r = measure_video(p, &item.parts[i], &bytes, reterr);
        }
        p->total += bytes;
    }
    return r;
}

static bool sizes_change(const PenPlanDraft *d)
{
    return d->request->settings->mode != PEN_MODE_KEEP || d->inputs.what == PEN_INPUT_VIDEOS;
}

/* Some inputs, evenly spaced; of a compressed tar, which has to be unpacked up to the last one of
 * them, the first ones. */
int pen__probes_offer(PenPlanDraft *d, uint64_t position, const PenInput *input, PenError *reterr)
{
    PenProbes *p = &d->probes;
    uint64_t n = PEN_MIN(d->n, (uint64_t)PEN_PROBES);
    if (d->block_samples || p->n == n || !sizes_change(d))
        return PEN_OK;
    if (position == 0 && input->n_cells) {
        PenCell cell;
        pen__cell_next(&(const uint8_t *){input->cells}, &cell);
        p->in_order = cell.kind == PEN_PART_STREAM;
    }
    if (position != (p->in_order ? p->n : p->n * d->n / n))
        return PEN_OK;
    PenBuf *copy = &p->inputs[p->n];
    if (pen__buf_reserve(copy, pen__input_bytes(input)) < 0)
        return pen__fail_memory(reterr, WHERE, "inputs");
    pen__input_store(copy->data, input);
    p->n++;
    return PEN_OK;
}

void pen__probes_free(PenProbes *p)
{
    for (uint32_t i = 0; i < PEN_PROBES; i++)
        pen__buf_free(&p->inputs[i]);
}

/* What a sample takes, on average. */
typedef struct Mean {
    uint64_t bytes, videos, tables; /* as in Probe */
} Mean;

static int mean_by_probing(const PenPlanDraft *d, Mean *ret, PenError *reterr)
{
    Probe p = {.draft = d,
               .frame = {d->shape.n_fields, d->shape.fields, d->inputs.n_roots, d->inputs.roots,
                         PEN_RUN_AGAIN, d->inputs.places, NULL}};
    int r = pen__part_reader_open_frame(&p.frame, &p.reader, reterr);
    if (r < 0)
        return r;
    uint32_t n = d->probes.n;
    for (uint32_t i = 0; r == PEN_OK && i < n; i++)
        r = measure_input(&p, d->probes.inputs[i].data, reterr);
    pen__part_reader_close(&p.reader);
    pen__buf_free(&p.record);
    pen__buf_free(&p.data);
    if (r == PEN_OK && n)
        *ret = (Mean){p.total / n, p.videos / n, p.tables / n};
    return r;
}

int pen__block_samples_given(const PenPlanDraft *d, uint64_t *ret, PenError *reterr)
{
    const PenIngestSettings *s = d->request->settings;
    const PenPackInfo *base = d->request->base;
    uint64_t given = s->block_samples;
    if (given > MAX_GIVEN)
        return pen__fail(reterr, PEN_E_INVALID, WHERE,
                         "block samples: expected at most 2^31, found %" PRIu64, given);
    if (base && given && given != base->block_samples)
        return pen__fail(reterr, PEN_E_INVALID, WHERE,
                         "block samples: expected %" PRIu64 " as in the pack, found %" PRIu64
                         "; leave --block-samples out",
                         base->block_samples, given);
    *ret = base ? base->block_samples : given;
    return PEN_OK;
}

/* The largest power of two, at most `most`, that as many samples of `bytes` fit in `room`. */
static uint64_t fit(uint64_t most, uint64_t bytes, uint64_t room)
{
    uint64_t k = 1;
    while (k < most && 2 * k * PEN_MAX(bytes, 1u) <= room)
        k *= 2;
    return k;
}

int pen__block_samples_choose(PenPlanDraft *d, uint64_t *ret, PenError *reterr)
{
    /* Keeping leaves sizes about as they are, and those are known for all inputs. */
    Mean mean = {.bytes = d->n ? d->total_bytes / d->n : BLOCK_BYTES};
    int r = d->n && sizes_change(d) ? mean_by_probing(d, &mean, reterr) : PEN_OK;
    if (r < 0)
        return r;
    uint64_t k = fit(MAX_CHOSEN, mean.bytes, BLOCK_BYTES);
    k = fit(k, mean.tables, VIDEO_INDEX_BYTES);
    *ret = fit(k, mean.videos, VIDEO_BYTES);
    return PEN_OK;
}
