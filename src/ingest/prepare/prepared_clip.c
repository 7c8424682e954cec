/* SPDX-License-Identifier: Apache-2.0 */
/* The frames of a clip: read, then prepared as images are. */
#include <inttypes.h>
#include <string.h>

#include "base/sys.h"
#include "ingest/plan/part_impl.h"
#include "ingest/prepare/prepared.h"

#define WHERE "ingest/clip"

int pen__prepared_frame(PenPrepared *p, uint32_t field, PenPreparedImage **ret, PenError *reterr)
{
    PenStoredValue *value = &p->values[field];
    if (p->n_images == p->cap_images) {
        uint32_t cap = p->cap_images * 2 + 16; /* PEN_CLIP_FRAMES keeps it small */
        PenPreparedImage *images = pen__resize(p->images, cap * sizeof *images);
        if (images)
            p->images = images;
        PenStoredImage *stored = pen__resize(p->stored, cap * sizeof *stored);
        if (stored)
            p->stored = stored;
        if (!images || !stored)
            return pen__fail_memory(reterr, WHERE, "frames");
        p->cap_images = cap;
    }
    if (!value->n_images)
        p->first[field] = p->n_images;
    value->n_images++;
    *ret = &p->images[p->n_images];
    **ret = (PenPreparedImage){0};
    p->stored[p->n_images++] = (PenStoredImage){0};
    return PEN_OK;
}

static uint64_t video_memory(const PenPreparedVideo *v)
{
    return v->table.cap + v->crcs.cap + v->data.cap;
}

uint64_t pen__prepared_memory(const PenPrepared *p)
{
    uint64_t bytes = 0;
    for (uint32_t i = 0; i < p->n_images; i++)
        bytes += p->images[i].source.cap + p->images[i].index.cap +
                 (p->stored[i].data ? p->stored[i].bytes : 0);
    for (uint32_t f = 0; f < p->n_values; f++)
        bytes += p->blobs[f].cap + (p->videos ? video_memory(&p->videos[f]) : 0);
    return bytes;
}

typedef struct Reading {
    PenPrepared *p;
    uint32_t field;
} Reading;

static int keep_frame(void *ctx, PenBuf *data, PenError *reterr)
{
    const Reading *reading = ctx;
    PenPreparedImage *image = NULL;
    int r = pen__prepared_frame(reading->p, reading->field, &image, reterr);
    if (r < 0)
        return r;
    reading->p->source_bytes += data->bytes;
    image->source = *data;
    *data = (PenBuf){0};
    return PEN_OK;
}

/* A video is read when it is made: frame by frame, as its pixels come. Here its path is noted, and
 * that it is the file that was planned. */
static int read_video(PenPrepared *p, uint32_t field, const PenPart *part, PenPartReader *reader,
                      PenError *reterr)
{
    const char *path = NULL;
    PenFileStat st;
    int r = pen__part_path(reader, part, &path, reterr);
    if (r < 0)
        return r;
    r = pen__sys->stat_path(path, &st);
    if (r < 0 && pen__stamp_is_set(&part->stamp))
        return pen__expected_gone(path, -r, pen__part_expected(reader, part).advice, reterr);
    if (r < 0)
        return pen__fail_os(reterr, -r, WHERE, "%s: cannot stat", path);
    if (!st.is_file)
        return pen__fail(reterr, PEN_E_DECODE, WHERE, "%s: expected a video, found no file", path);
    PenExpected expected = pen__part_expected(reader, part);
    PenStamp found = pen__stamp_of(&st);
    r = pen__expected_check(path, &expected, st.bytes, &found, reterr);
    if (r < 0)
        return r;
    p->source_bytes += st.bytes;
    p->disk_bytes += st.disk_bytes;
    return pen__buf_add(&p->blobs[field], path, strlen(path) + 1) < 0
               ? pen__fail_memory(reterr, WHERE, path)
               : PEN_OK;
}

int pen__prepared_read_clip(PenPrepared *p, uint32_t field, const PenPart *part,
                            PenPartReader *reader, PenError *reterr)
{
    uint64_t disk = 0;
    Reading reading = {p, field};
    if (part->kind == PEN_PART_VIDEO)
        return read_video(p, field, part, reader, reterr);
    int r = pen__part_frames(reader, part, keep_frame, &reading, &disk, reterr);
    p->disk_bytes += disk;
    return r;
}

static void name_frame(const PenPrepared *p, uint32_t field, uint64_t number, const PenPlan *plan,
                       PenError *reterr)
{
    PenItem item;
    PenBuf scratch = {0};
    char name[PEN_INPUT_NAME_BYTES], key[PEN_INPUT_NAME_BYTES / 2];
    size_t key_bytes = PEN_MIN(p->sample.key_bytes, sizeof key - 1);
    memcpy(key, p->sample.key, key_bytes);
    key[key_bytes] = 0;
    if (pen__plan_item(plan, p->sample.position, &item, &scratch, NULL) == PEN_OK) {
        pen__part_frame_name(plan, &item.parts[field], key, number, name, sizeof name);
        pen__error_prefix(reterr, "%s", name);
    }
    pen__buf_free(&scratch);
}

/* Behind frames that were stored in another way their source is not needed. */
static void drop_source(PenPreparedImage *image)
{
    if (image->image.data != image->source.data)
        pen__buf_free(&image->source);
}

/* ---- videos ---------------------------------------------------------------------------------- */

enum { TRIES = 3 };

typedef struct Making {
    PenPrepared *p;
    uint32_t field;
    const PenPrepareSettings *prepare;
    uint64_t bytes;
} Making;

static int make_frame(void *ctx, const PenPixels *pixels, PenError *reterr)
{
    Making *m = ctx;
    PenPrepared *p = m->p;
    PenPreparedImage *image = NULL;
    int r = pen__prepared_frame(p, m->field, &image, reterr);
    if (r == PEN_OK)
        r = pen__prepare_pixels(m->prepare, p->sample.key, p->sample.key_bytes, pixels, image,
                                reterr);
    if (r < 0)
        return r;
    p->stored[p->n_images - 1] = image->image;
    m->bytes += image->image.bytes;
    if (m->bytes > PEN_CLIP_BYTES)
        return pen__fail(reterr, PEN_E_LIMIT, WHERE,
                         "%s: expected a clip of at most 2 GiB of frames, found more; take fewer "
                         "with --fps, or cut it in a list with start and end",
                         (const char *)p->blobs[m->field].data);
    return PEN_OK;
}

/* Back to no frames at all. */
static void drop_frames(PenPrepared *p, uint32_t field)
{
    PenStoredValue *value = &p->values[field];
    for (; value->n_images; value->n_images--)
        pen__prepared_image_free(&p->images[--p->n_images]);
}

/* What ended from outside is tried again: the frames are the same each time. */
static int make_video(PenPrepared *p, uint32_t field, const PenPrepareSettings *prepare,
                      const PenPart *part, PenError *reterr)
{
    PenBuf times = {0};
    PenVideoPart video = {(const char *)p->blobs[field].data, part->offset, part->end};
    int r = PEN_E_IO;
    for (int i = 0; r == PEN_E_IO && i < TRIES; i++) {
        Making making = {p, field, prepare, 0};
        drop_frames(p, field);
        times.bytes = 0;
        r = pen__video_read(&prepare->video, &video, make_frame, &making, &times, reterr);
    }
    uint32_t n = p->values[field].n_images, first = p->first[field];
    for (uint32_t i = 0; r == PEN_OK && i < n; i++)
        memcpy(&p->stored[first + i].timestamp_ns, times.data + i * sizeof(int64_t),
               sizeof(int64_t));
    if (r == PEN_OK) /* of the file, once for all frames */
        p->stored[first].source_bytes = part->bytes;
    pen__buf_free(&times);
    return r;
}

/* ---- videos that are stored as they are ------------------------------------------------------ */

/* The tick nearest to a time from the start of the file, as ffmpeg rounds it. */
static __int128 tick_at(const PenVideoList *list, uint64_t ns)
{
    __int128 unit = (__int128)list->stream.tick_num * 1000000000;
    __int128 twice = 2 * ((__int128)ns + list->start_ns) * list->stream.tick_den + unit;
    __int128 rest = twice % (2 * unit);
    return (twice - rest) / (2 * unit) - (rest < 0);
}

/* The frames from start to before end. */
static PenVideoFrames frames_of(const PenVideoList *list, const PenPart *part)
{
    PenVideoFrames frames = {0, 0};
    __int128 start = tick_at(list, part->offset);
    __int128 end = part->end == PEN_NO_END ? INT64_MAX : tick_at(list, part->end);
    if (!part->offset && part->end == PEN_NO_END)
        return (PenVideoFrames){0, UINT32_MAX};
    for (uint32_t i = 0; i < list->n; i++) {
        const PenVideoPacket *p = &list->packets[i];
        frames.first += !p->is_hidden && p->time < start;
        frames.end += !p->is_hidden && p->time < end;
    }
    return frames;
}

static int keep_listed(PenPrepared *p, uint32_t field, const PenPrepareSettings *prepare,
                       const PenPart *part, const PenVideoList *list, PenError *reterr)
{
    const char *path = (const char *)p->blobs[field].data;
    PenVideoFrames frames = frames_of(list, part);
    if (frames.first >= frames.end)
        return pen__fail(reterr, PEN_E_DECODE, WHERE,
                         "%s: expected frames between start and end, found none", path);
    if (!p->videos)
        p->videos = pen__zalloc(p->n_values * sizeof *p->videos);
    if (!p->videos)
        return pen__fail_memory(reterr, WHERE, path);
    PenPreparedVideo *video = &p->videos[field];
    int r = pen__prepare_video(&prepare->video, path, list, frames, video, reterr);
    if (r == PEN_OK)
        p->values[field].video = &video->video;
    return r;
}

static int keep_video(PenPrepared *p, uint32_t field, const PenPrepareSettings *prepare,
                      const PenPart *part, PenError *reterr)
{
    const PenVideoList *list = NULL;
    int r = pen__video_lists_get(prepare->lists, &prepare->video,
                                 (const char *)p->blobs[field].data, &list, reterr);
    if (r < 0)
        return r;
    r = keep_listed(p, field, prepare, part, list, reterr);
    pen__video_lists_put(prepare->lists, list);
    return r;
}

/* ---- both ------------------------------------------------------------------------------------ */

static int make_planned_video(PenPrepared *p, uint32_t field, const PenPrepareSettings *prepare,
                              const PenPlan *plan, PenError *reterr)
{
    PenItem item;
    PenBuf scratch = {0};
    int r = pen__plan_item(plan, p->sample.position, &item, &scratch, reterr);
    if (r == PEN_OK)
        r = prepare->keep_videos ? keep_video(p, field, prepare, &item.parts[field], reterr)
                                 : make_video(p, field, prepare, &item.parts[field], reterr);
    if (r ==
        PEN_OK) { /* another program has read it, by its name: has it been the same all along? */
        const PenPart *part = &item.parts[field];
        PenExpected expected = {part->bytes, part->stamp, pen__plan_frame(plan)->advice};
        r = pen__expected_check_path((const char *)p->blobs[field].data, &expected, reterr);
    }
    pen__buf_free(&scratch);
    return r;
}

/* ---- frames ---------------------------------------------------------------------------------- */

int pen__prepared_make_clip(PenPrepared *p, uint32_t field, const PenPrepareSettings *prepare,
                            const PenPlan *plan, PenError *reterr)
{
    if (p->blobs[field].bytes)
        return make_planned_video(p, field, prepare, plan, reterr);
    uint32_t first = p->first[field], n = p->values[field].n_images;
    for (uint32_t i = 0; i < n; i++) {
        PenPreparedImage *image = &p->images[first + i];
        int r = pen__prepare_image(prepare, p->sample.key, p->sample.key_bytes, 0, image, reterr);
        if (r < 0) {
            name_frame(p, field, i, plan, reterr);
            return r;
        }
        p->stored[first + i] = image->image;
        if (prepare->video.fps > 0)
            p->stored[first + i].timestamp_ns =
                (int64_t)((double)i * 1e9 / prepare->video.fps + 0.5);
        drop_source(image);
    }
    return PEN_OK;
}
