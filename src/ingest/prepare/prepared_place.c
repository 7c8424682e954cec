/* SPDX-License-Identifier: Apache-2.0 */
/* Clips that are parts of videos, and stay in their files. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/attr.h"
#include "ingest/prepare/prepared.h"
#include "ingest/prepare/video_copies.h"
#include "ingest/video/lists.h"

#define WHERE "ingest/video"

enum { SINGLE_NS = 1000000 };      /* tolerance of the time of a single frame */
#define MOST_NS (INT64_C(1) << 61) /* sums and differences of times fit */

__extension__ typedef __int128 Wide;

static int compare(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

/* From the start of the file, rounded down. */
static int64_t time_ns(const PenVideoList *list, int64_t ticks)
{
    Wide ns = (Wide)ticks * list->stream.tick_num * 1000000000;
    Wide den = list->stream.tick_den, rest = ns % den;
    ns = (ns - rest) / den - (rest < 0) - list->start_ns;
    return (int64_t)PEN_MAX(PEN_MIN(ns, (Wide)MOST_NS), -(Wide)MOST_NS);
}

/* The times of all frames, sorted: list->n_shown of them. */
static int64_t *list_times(const PenVideoList *list)
{
    int64_t *times = pen__alloc_array(list->n_shown, sizeof *times);
    uint32_t n = 0;
    for (uint32_t i = 0; times && i < list->n; i++)
        if (!list->packets[i].is_hidden)
            times[n++] = time_ns(list, list->packets[i].time);
    if (times)
        qsort(times, n, sizeof *times, compare);
    return times;
}

static bool is_time(int64_t ns)
{
    return ns >= 0 && ns < MOST_NS;
}

/* Of the times: a quarter of the distance between frames. Files that were joined from several have
 * rounded times. */
static int64_t tolerance_of(const PenVideoTimes *wanted)
{
    int64_t first = wanted->times_ns[0], last = wanted->times_ns[wanted->n - 1];
    bool rises = wanted->n > 1 && is_time(first) && is_time(last) && last > first;
    return rises ? (last - first) / (wanted->n - 1) / 4 : SINGLE_NS;
}

/* The first frame that is not before the time; n when all are. */
static uint32_t find_time(const int64_t *times, uint32_t n, int64_t time)
{
    uint32_t low = 0, high = n;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (times[middle] < time)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static int choose(const int64_t *times, uint32_t n, const PenVideoTimes *wanted,
                  PenVideoFrames *ret, PenError *reterr)
{
    int64_t tolerance = tolerance_of(wanted);
    int64_t start = is_time(wanted->times_ns[0]) ? wanted->times_ns[0] : 0;
    uint32_t first = find_time(times, n, start - tolerance);
    for (uint32_t i = 0; i < wanted->n; i++) {
        int64_t want = wanted->times_ns[i], found = times[PEN_MIN(first + (uint64_t)i, n - 1)];
        if (i < n - first && is_time(want) && found - want <= tolerance &&
            want - found <= tolerance)
            continue;
        return pen__fail(reterr, PEN_E_NOT_FOUND, WHERE,
                         "%s: frame %u of %u: expected a frame at %.6f s (to within %.3f ms), "
                         "found one at %.6f s; the times do not belong to this video",
                         wanted->path, i, wanted->n, (double)want / 1e9, (double)tolerance / 1e6,
                         (double)found / 1e9);
    }
    *ret = (PenVideoFrames){first, first + wanted->n};
    return PEN_OK;
}

static int find_frames(const PenVideoList *list, const PenVideoTimes *wanted, PenVideoFrames *ret,
                       PenError *reterr)
{
    if (wanted->n > list->n_shown)
        return pen__fail(reterr, PEN_E_NOT_FOUND, WHERE,
                         "%s: expected %u frames, found a video of %u", wanted->path, wanted->n,
                         list->n_shown);
    int64_t *times = list_times(list);
    if (!times)
        return pen__fail_memory(reterr, WHERE, wanted->path);
    int r = choose(times, list->n_shown, wanted, ret, reterr);
    pen__free(times);
    return r;
}

/* `path`: of the file, or of the copy of an object. */
static int place_listed(PenPrepared *p, uint32_t field, const PenPrepareSettings *prepare,
                        const PenVideoList *list, const char *path, const PenVideoTimes *wanted,
                        PenError *reterr)
{
    PenVideoFrames frames = {0, 0};
    PenPreparedVideo *video = &p->videos[field];
    int r = find_frames(list, wanted, &frames, reterr);
    if (r == PEN_OK)
        r = pen__prepare_video_in_place(&prepare->video, path, list, frames, video, reterr);
    if (r == PEN_OK)
        p->values[field].video = &video->video;
    return r;
}

static int place_file(PenPrepared *p, uint32_t field, const PenPrepareSettings *prepare,
                      const PenVideoTimes *wanted, PenError *reterr)
{
    const PenVideoList *list = NULL;
    int r = pen__video_lists_get(prepare->lists, &prepare->video, wanted->path, &list, reterr);
    if (r < 0)
        return r;
    r = place_listed(p, field, prepare, list, wanted->path, wanted, reterr);
    pen__video_lists_put(prepare->lists, list);
    return r;
}

/* The sample outlives the copy, so it has the ETag behind the address. */
static int note_object(PenPrepared *p, uint32_t field, const PenVideoCopy *copy, PenError *reterr)
{
    PenBuf *text = &p->blobs[field];
    PenStoredVideo *video = &p->videos[field].video;
    size_t at = text->bytes;
    if (pen__buf_add(text, copy->object.etag, strlen(copy->object.etag) + 1) < 0)
        return pen__fail_memory(reterr, WHERE, copy->path);
    video->origin = (const char *)text->data;
    video->origin_etag = (const char *)text->data + at;
    video->origin_mtime_ns = 0;
    return PEN_OK;
}

static int place_object(PenPrepared *p, uint32_t field, const PenPrepareSettings *prepare,
                        const PenVideoTimes *wanted, PenError *reterr)
{
    const PenVideoCopy *copy = NULL;
    int r =
        pen__video_copies_get(prepare->copies, &prepare->video, field, wanted->path, &copy, reterr);
    if (r < 0)
        return r;
    r = place_listed(p, field, prepare, &copy->list, copy->path, wanted, reterr);
    if (r < 0)
        pen__video_copy_rename(copy, reterr);
    return r < 0 ? r : note_object(p, field, copy, reterr);
}

int pen__prepared_place_video(PenPrepared *p, uint32_t field, const PenPrepareSettings *prepare,
                              const PenVideoTimes *wanted, PenError *reterr)
{
    PenBuf *path = &p->blobs[field];
    if (!p->videos)
        p->videos = pen__zalloc(p->n_values * sizeof *p->videos);
    if (!p->videos || pen__buf_add(path, wanted->path, strlen(wanted->path) + 1) < 0)
        return pen__fail_memory(reterr, WHERE, wanted->path);
    PenVideoTimes own = {(const char *)path->data, wanted->times_ns, wanted->n};
    return pen_is_remote(own.path) ? place_object(p, field, prepare, &own, reterr)
                                   : place_file(p, field, prepare, &own, reterr);
}
