/* SPDX-License-Identifier: Apache-2.0 */
#include "ingest/prepare/prepared_video.h"

#include <stdlib.h>
#include <string.h>

#include "base/attr.h"
#include "base/sys.h"

#define WHERE "ingest/video"

enum {
    SMALL_BYTES = 1 << 20, /* payloads up to this stay in memory */
    PART_BYTES = 1 << 20   /* of a large one, read at once; runs end there */
};

/* ---- parts ----------------------------------------------------------------------------------- */

/* The packets of a part, and the bytes that hold them. */
typedef struct Part {
    PenVideoPacket *packets;
    uint32_t n;
    uint64_t offset, bytes;
    bool is_all;
} Part;

static int compare_times(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

/* The times of the first and the last frame. */
static int find_times(const PenVideoList *list, PenVideoFrames frames, int64_t ret[2],
                      PenError *reterr)
{
    int64_t *times = pen__alloc_array(list->n, sizeof *times);
    uint32_t n = 0;
    if (!times)
        return pen__fail_memory(reterr, WHERE, "packets of a video");
    for (uint32_t i = 0; i < list->n; i++)
        if (!list->packets[i].is_hidden)
            times[n++] = list->packets[i].time;
    uint32_t end = PEN_MIN(frames.end, n);
    if (n)
        qsort(times, n, sizeof *times, compare_times);
    if (frames.first < end) {
        ret[0] = times[frames.first];
        ret[1] = times[end - 1];
    }
    pen__free(times);
    return frames.first < end
               ? PEN_OK
               : pen__fail(reterr, PEN_E_NOT_FOUND, WHERE,
                           "frames %u to %u: expected frames of the video, which has %u",
                           frames.first, frames.end - 1, n);
}

/* The last key packet at or before a time that is shown after everything before it. */
static uint32_t find_key(const PenVideoList *list, int64_t time)
{
    uint32_t key = 0;
    int64_t latest = INT64_MIN;
    for (uint32_t i = 0; i < list->n; i++) {
        const PenVideoPacket *p = &list->packets[i];
        bool starts = p->is_key && p->time > latest;
        if (starts && p->time <= time)
            key = i;
        if (starts || !p->is_hidden)
            latest = PEN_MAX(latest, p->time);
    }
    return key;
}

/* Takes the packets that the frames need, and hides those that are not its frames. */
static void cut(const PenVideoList *list, const int64_t times[2], Part *part)
{
    uint64_t from = UINT64_MAX, end = 0;
    uint32_t first = find_key(list, times[0]), last = first;
    for (uint32_t i = first; i < list->n; i++) {
        const PenVideoPacket *p = &list->packets[i];
        if (!p->is_hidden && p->time >= times[0] && p->time <= times[1])
            last = i;
    }
    for (uint32_t i = first; i <= last; i++) {
        PenVideoPacket p = list->packets[i];
        p.is_hidden = p.is_hidden || p.time < times[0] || p.time > times[1];
        from = PEN_MIN(from, p.offset);
        end = PEN_MAX(end, p.offset + p.bytes);
        part->packets[part->n++] = p;
    }
    for (uint32_t i = 0; i < part->n; i++)
        part->packets[i].offset -= from;
    part->offset = from;
    part->bytes = end - from;
}

static int make_part(const PenVideoList *list, PenVideoFrames frames, Part *ret, PenError *reterr)
{
    int64_t times[2] = {0};
    *ret = (Part){.packets = list->packets, .n = list->n, .bytes = list->file_bytes};
    ret->is_all = frames.first == 0 && frames.end >= list->n_shown;
    if (ret->is_all)
        return PEN_OK;
    int r = find_times(list, frames, times, reterr);
    if (r < 0)
        return r;
    *ret = (Part){.packets = pen__alloc_array(list->n, sizeof *ret->packets)};
    if (!ret->packets)
        return pen__fail_memory(reterr, WHERE, "packets of a video");
    cut(list, times, ret);
    return PEN_OK;
}

/* ---- bytes ----------------------------------------------------------------------------------- */

static int read_small(PenPreparedVideo *p, const Part *part, PenError *reterr)
{
    size_t bytes = (size_t)part->bytes;
    if (pen__buf_reserve(&p->data, bytes) < 0)
        return pen__fail_memory(reterr, WHERE, p->source->name);
    int r = pen__source_read(p->source, p->data.data, bytes, part->offset, reterr);
    if (r < 0)
        return r;
    p->data.bytes = bytes;
    p->video.data = p->data.data;
    pen__source_close(&p->source);
    return pen__video_run_crcs(p->data.data, bytes, &p->crcs) < 0
               ? pen__fail_memory(reterr, WHERE, "checksums of a video")
               : PEN_OK;
}

static int read_large(const PenVideoSettings *settings, PenPreparedVideo *p, const Part *part,
                      PenError *reterr)
{
    uint8_t *buf = pen__alloc(PART_BYTES);
    int r = buf ? PEN_OK : pen__fail_memory(reterr, WHERE, p->source->name);
    for (uint64_t at = 0; at < part->bytes && r == PEN_OK; at += PART_BYTES) {
        size_t n = (size_t)PEN_MIN(part->bytes - at, (uint64_t)PART_BYTES);
        if (settings->cancel && atomic_load(settings->cancel))
            r = pen__fail(reterr, PEN_E_CANCELLED, WHERE, "%s: stopped", p->source->name);
        else
            r = pen__source_read(p->source, buf, n, part->offset + at, reterr);
        if (r == PEN_OK && pen__video_run_crcs(buf, n, &p->crcs) < 0)
            r = pen__fail_memory(reterr, WHERE, "checksums of a video");
    }
    pen__free(buf);
    p->video.source = p->source;
    return r;
}

/* ---- files that are opened for each read: a block may have more than a process may open -------
 */

typedef struct ReopenedFile {
    PenSource source;
    char path[];
} ReopenedFile;

static int reopen_read(PenSource *s, void *buf, size_t bytes, uint64_t offset, int again,
                       PenError *reterr)
{
    PenSource *file = NULL;
    (void)again;
    int r = pen__source_open_file(s->name, &file, reterr);
    if (r == PEN_OK)
        r = pen__source_read(file, buf, bytes, offset, reterr);
    pen__source_close(&file);
    return r;
}

static void reopen_close(PenSource *s)
{
    pen__free(s);
}

static int open_later(const char *path, uint64_t bytes, PenSource **ret, PenError *reterr)
{
    static const PenSourceClass class_ = {.read = reopen_read, .close = reopen_close};
    size_t path_bytes = strlen(path) + 1;
    ReopenedFile *f = pen__zalloc(sizeof *f + path_bytes);
    if (!f)
        return pen__fail_memory(reterr, WHERE, path);
    memcpy(f->path, path, path_bytes);
    f->source = (PenSource){.class_ = &class_, .name = f->path, .bytes = bytes};
    *ret = &f->source;
    return PEN_OK;
}

/* A file that has become shorter since its packets were listed. */
static int open_file(const char *path, const PenVideoList *list, PenSource **ret, PenError *reterr)
{
    PenFileStat st = {0};
    int r = pen__sys->stat_path(path, &st);
    if (r < 0)
        return pen__fail_os(reterr, -r, WHERE, "%s: cannot stat", path);
    r = open_later(path, st.bytes, ret, reterr);
    if (r == PEN_OK && st.bytes != list->file_bytes)
        r = pen__fail(reterr, PEN_E_CHANGED, WHERE,
                      "%s: has changed while it was packed; run the same command again", path);
    return r;
}

static int prepare(const PenVideoSettings *settings, const char *path, const PenVideoList *list,
                   const Part *part, PenPreparedVideo *p, PenError *reterr)
{
    PenVideoStream stream = list->stream;
    if (!part->is_all)
        stream.container = PEN_CONTAINER_PART;
    int r = pen__video_table_write(&stream, part->packets, part->n, part->bytes, &p->table,
                                   &p->video.n_frames, reterr);
    if (r < 0)
        pen__error_prefix(reterr, "%s", path);
    if (r == PEN_OK)
        r = open_file(path, list, &p->source, reterr);
    if (r == PEN_OK)
        r = part->bytes <= SMALL_BYTES ? read_small(p, part, reterr)
                                       : read_large(settings, p, part, reterr);
    p->video.bytes = part->bytes;
    p->video.source_offset = part->offset;
    p->video.crcs = p->crcs.data;
    p->video.table = p->table.data;
    p->video.table_bytes = p->table.bytes;
    p->video.source_bytes = list->file_bytes;
    return r;
}

int pen__prepare_video(const PenVideoSettings *settings, const char *path, const PenVideoList *list,
                       PenVideoFrames frames, PenPreparedVideo *ret, PenError *reterr)
{
    Part part;
    *ret = (PenPreparedVideo){0};
    int r = make_part(list, frames, &part, reterr);
    if (r == PEN_OK)
        r = prepare(settings, path, list, &part, ret, reterr);
    if (part.packets != list->packets)
        pen__free(part.packets);
    if (r < 0)
        pen__prepared_video_free(ret);
    return r;
}

int pen__prepare_video_in_place(const PenVideoSettings *settings, const char *path,
                                const PenVideoList *list, PenVideoFrames frames,
                                PenPreparedVideo *ret, PenError *reterr)
{
    int r = pen__prepare_video(settings, path, list, frames, ret, reterr);
    if (r < 0)
        return r;
    pen__buf_free(&ret->data);
    pen__source_close(&ret->source);
    ret->video.data = NULL;
    ret->video.source = NULL;
    ret->video.origin = path;
    ret->video.origin_offset = ret->video.source_offset;
    ret->video.origin_bytes = list->file_bytes;
    ret->video.origin_mtime_ns = list->mtime_ns;
    ret->video.origin_etag = "";
    return PEN_OK;
}

void pen__prepared_video_free(PenPreparedVideo *p)
{
    pen__buf_free(&p->table);
    pen__buf_free(&p->crcs);
    pen__buf_free(&p->data);
    pen__source_close(&p->source);
    *p = (PenPreparedVideo){0};
}
