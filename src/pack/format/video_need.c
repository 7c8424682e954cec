/* SPDX-License-Identifier: Apache-2.0 */
/* Which packets the frames of a video need. Only the groups that hold them are parsed.
 *
 * Let T be the time of a group's first packet, which is a key packet. Frames from T to the T of the
 * next group lie in the group, or, shown before the key packet they follow, in the next one. */
#include <stdlib.h>

#include "base/attr.h"
#include "base/bytes.h"
#include "pack/format/video_table.h"

#define WHERE "pack/video"

static int fail(const char *wrong, PenError *reterr)
{
    return pen__fail(reterr, PEN_E_CORRUPT, WHERE, "video table: %s", wrong);
}

/* ---- the frames of a group ------------------------------------------------------------------- */

/* The group, and the times of those beside it. */
typedef struct Window {
    PenVideoGroup group;
    int64_t before, after;        /* T of the groups before and after it */
    uint32_t end_packet;          /* after its packets */
    uint32_t first_frame, frames; /* that are shown from its T on, before the T of the next one */
} Window;

static Window window_of(const PenVideoTable *t, uint32_t group)
{
    Window w = {
        .group = pen__video_group(t, group), .after = INT64_MAX, .end_packet = t->n_packets};
    uint32_t end = t->n_frames;
    w.before = group ? pen__video_group(t, group - 1).time : w.group.time;
    if (group + 1 < t->n_groups) {
        PenVideoGroup next = pen__video_group(t, group + 1);
        w.after = next.time;
        w.end_packet = next.packet;
        end = next.frames;
    }
    w.first_frame = w.group.frames;
    w.frames = end - w.group.frames;
    return w;
}

static int add_frame(PenVideoNeeds *n, uint32_t packet, int64_t time)
{
    PenVideoFrame f = {.packet = packet, .time = time};
    return pen__buf_add(&n->shown, &f, sizeof f);
}

/* Notes the frames of a group from its T on, and its key packets. */
static int take_group(PenVideoCursor *c, const Window *w, PenVideoNeeds *n, const char **wrong)
{
    int64_t latest = w->group.time;
    int r = PEN_OK;
    while (c->packet < w->end_packet && r == PEN_OK) {
        PenVideoPacket p;
        uint32_t number = c->packet;
        *wrong = pen__video_next(c, &p);
        if (!*wrong && p.is_key && number != w->group.packet && p.time <= latest)
            *wrong = "key packet is shown before packets that precede it";
        if (!*wrong && ((!p.is_hidden && p.time < w->before) ||
                        ((p.is_key || !p.is_hidden) && p.time >= w->after)))
            *wrong = "frame does not belong to its group";
        if (*wrong)
            return PEN_E_CORRUPT;
        if (p.is_key || !p.is_hidden)
            latest = PEN_MAX(latest, p.time);
        if (p.is_key) {
            PenVideoFrame key = {.packet = number, .time = p.time};
            r = pen__buf_add(&n->keys, &key, sizeof key);
        }
        if (r == PEN_OK && !p.is_hidden && p.time >= w->group.time)
            r = add_frame(n, number, p.time);
    }
    return r;
}

/* And the frames of the group after it that are shown before its key packet. */
static int take_leading(PenVideoCursor *c, const Window *w, uint32_t end, PenVideoNeeds *n,
                        const char **wrong)
{
    int r = PEN_OK;
    while (c->packet < end && r == PEN_OK) {
        PenVideoPacket p;
        uint32_t number = c->packet;
        *wrong = pen__video_next(c, &p);
        if (!*wrong && !p.is_hidden && p.time < w->group.time)
            *wrong = "frame does not belong to its group";
        if (*wrong)
            return PEN_E_CORRUPT;
        if (!p.is_hidden && p.time < w->after)
            r = add_frame(n, number, p.time);
    }
    return r;
}

static int compare_times(const void *a, const void *b)
{
    const PenVideoFrame *x = a, *y = b;
    return (x->time > y->time) - (x->time < y->time);
}

static int compare_packets(const void *a, const void *b)
{
    const PenVideoFrame *x = a, *y = b;
    return (x->packet > y->packet) - (x->packet < y->packet);
}

static const char *check_frames(const Window *w, const PenVideoNeeds *n)
{
    const PenVideoFrame *f = (const PenVideoFrame *)n->shown.data;
    if (n->shown.bytes / sizeof *f != w->frames)
        return "number of frames does not match the packets";
    for (uint32_t i = 1; i < w->frames; i++)
        if (f[i].time == f[i - 1].time)
            return "two frames have the same time";
    return w->frames && !w->first_frame && f[0].time ? "times do not count from the first frame"
                                                     : NULL;
}

/* Fills n->shown with the frames of a window, in order, and n->keys. */
static int load_window(const PenVideoTable *t, uint32_t group, PenVideoNeeds *n, Window *ret,
                       PenError *reterr)
{
    Window w = window_of(t, group);
    PenVideoCursor c = pen__video_seek(t, group);
    const char *wrong = NULL;
    n->shown.bytes = n->keys.bytes = 0;
    int r = take_group(&c, &w, n, &wrong);
    if (r == PEN_OK && group + 1 < t->n_groups)
        r = take_leading(&c, &w, window_of(t, group + 1).end_packet, n, &wrong);
    if (r == PEN_E_NO_MEMORY)
        return pen__fail_memory(reterr, WHERE, "frames of a video");
    if (!wrong && n->shown.bytes)
        qsort(n->shown.data, n->shown.bytes / sizeof(PenVideoFrame), sizeof(PenVideoFrame),
              compare_times);
    if (!wrong)
        wrong = check_frames(&w, n);
    *ret = w;
    return wrong ? fail(wrong, reterr) : PEN_OK;
}

/* The last group that begins at or before a frame. */
static uint32_t group_of(const PenVideoTable *t, uint32_t frame)
{
    uint32_t low = 0, high = t->n_groups;
    while (high - low > 1) {
        uint32_t middle = low + (high - low) / 2;
        if (pen__video_group(t, middle).frames <= frame)
            low = middle;
        else
            high = middle;
    }
    return low;
}

/* ---- what frames need ------------------------------------------------------------------------ */

/* The last key packet at or before a time; the first one is. */
static uint32_t key_of(const PenVideoNeeds *n, int64_t time)
{
    const PenVideoFrame *keys = (const PenVideoFrame *)n->keys.data;
    size_t low = 0, high = n->keys.bytes / sizeof *keys;
    while (high - low > 1) {
        size_t middle = low + (high - low) / 2;
        if (keys[middle].time <= time)
            low = middle;
        else
            high = middle;
    }
    return keys[low].packet;
}

/* Frames come in the order of their times, so their key packets do too. */
static int add_need(PenVideoNeeds *n, uint32_t group, const PenVideoFrame *frame)
{
    uint32_t key = key_of(n, frame->time);
    PenVideoNeed *last = n->n_needs ? &n->needs[n->n_needs - 1] : NULL;
    if (last && key <= last->end) {
        last->end = PEN_MAX(last->end, frame->packet + 1);
        return PEN_OK;
    }
    PenVideoNeed need = {.first = key, .end = frame->packet + 1, .group = group};
    int r = pen__buf_add(&n->need_memory, &need, sizeof need);
    if (r == PEN_OK)
        n->n_needs++;
    n->needs = (PenVideoNeed *)n->need_memory.data;
    return r;
}

static int find_needs(const PenVideoTable *t, const uint32_t *frames, uint32_t n,
                      PenVideoNeeds *ret, PenError *reterr)
{
    Window w = {.frames = 0};
    uint32_t group = 0;
    for (uint32_t i = 0; i < n; i++) {
        if (i && frames[i] == frames[i - 1])
            continue;
        if (frames[i] - w.first_frame >= w.frames) {
            group = group_of(t, frames[i]);
            int r = load_window(t, group, ret, &w, reterr);
            if (r < 0)
                return r;
        }
        PenVideoFrame *f = (PenVideoFrame *)ret->shown.data + (frames[i] - w.first_frame);
        f->frame = frames[i];
        if (add_need(ret, group, f) < 0 || pen__buf_add(&ret->frame_memory, f, sizeof *f) < 0)
            return pen__fail_memory(reterr, WHERE, "frames of a video");
        ret->n_frames++;
    }
    ret->frames = (PenVideoFrame *)ret->frame_memory.data;
    return PEN_OK;
}

static const char *go_to(const PenVideoTable *t, const PenVideoNeed *need, PenVideoCursor *ret)
{
    PenVideoPacket p;
    const char *wrong = NULL;
    *ret = pen__video_seek(t, need->group);
    while (ret->packet < need->first && !wrong)
        wrong = pen__video_next(ret, &p);
    return wrong;
}

static const char *measure(const PenVideoTable *t, PenVideoNeed *need)
{
    PenVideoCursor c;
    PenVideoPacket p;
    uint64_t from = UINT64_MAX, end = 0;
    const char *wrong = go_to(t, need, &c);
    while (!wrong && c.packet < need->end) {
        wrong = pen__video_next(&c, &p);
        if (wrong)
            return wrong;
        from = PEN_MIN(from, p.offset);
        end = PEN_MAX(end, p.offset + p.bytes);
    }
    need->offset = from;
    need->bytes = end - from;
    return wrong;
}

/* Each frame to the packets that it comes out of. */
static void divide_frames(PenVideoNeeds *n)
{
    uint32_t at = 0;
    qsort(n->frames, n->n_frames, sizeof *n->frames, compare_packets);
    for (uint32_t i = 0; i < n->n_needs; i++) {
        n->needs[i].first_frame = at;
        while (at < n->n_frames && n->frames[at].packet < n->needs[i].end)
            at++;
        n->needs[i].n_frames = at - n->needs[i].first_frame;
    }
}

int pen__video_need(const PenVideoTable *t, const uint32_t *frames, uint32_t n, PenVideoNeeds *ret,
                    PenError *reterr)
{
    ret->n_needs = ret->n_frames = 0;
    ret->need_memory.bytes = ret->frame_memory.bytes = 0;
    int r = find_needs(t, frames, n, ret, reterr);
    if (r < 0 || !n)
        return r;
    divide_frames(ret);
    for (uint32_t i = 0; i < ret->n_needs; i++) {
        const char *wrong = measure(t, &ret->needs[i]);
        if (wrong)
            return fail(wrong, reterr);
    }
    return PEN_OK;
}

void pen__video_needs_free(PenVideoNeeds *n)
{
    pen__buf_free(&n->need_memory);
    pen__buf_free(&n->frame_memory);
    pen__buf_free(&n->shown);
    pen__buf_free(&n->keys);
    *n = (PenVideoNeeds){0};
}

int pen__video_walk(const PenVideoTable *t, const PenVideoNeeds *needs, uint32_t need,
                    PenVideoWalk *ret, PenError *reterr)
{
    const PenVideoNeed *one = &needs->needs[need];
    ret->end = one->end;
    ret->frame = needs->frames + one->first_frame;
    ret->frames_end = ret->frame + one->n_frames;
    const char *wrong = go_to(t, one, &ret->cursor);
    return wrong ? fail(wrong, reterr) : PEN_OK;
}

int pen__video_walk_next(PenVideoWalk *w, PenVideoPacket *ret, const PenVideoFrame **ret_frame,
                         PenError *reterr)
{
    uint32_t number = w->cursor.packet;
    if (number >= w->end)
        return 0;
    const char *wrong = pen__video_next(&w->cursor, ret);
    if (wrong)
        return fail(wrong, reterr);
    bool is_wanted = w->frame < w->frames_end && w->frame->packet == number;
    *ret_frame = is_wanted ? w->frame++ : NULL;
    return 1;
}

/* ---- times ----------------------------------------------------------------------------------- */

int64_t pen__video_ns(const PenVideoTable *t, int64_t time)
{
    unsigned __int128 ns = (unsigned __int128)(uint64_t)time * t->stream.tick_num * 1000000000u;
    ns = (ns + t->stream.tick_den / 2) / t->stream.tick_den;
    return ns > INT64_MAX ? INT64_MAX : (int64_t)ns;
}

int pen__video_frame_ns(const PenVideoTable *t, uint32_t frame, PenVideoNeeds *scratch,
                        int64_t *ret, PenError *reterr)
{
    Window w;
    int r = load_window(t, group_of(t, frame), scratch, &w, reterr);
    if (r == PEN_OK)
        *ret = pen__video_ns(
            t, ((const PenVideoFrame *)scratch->shown.data)[frame - w.first_frame].time);
    return r;
}

int pen__video_all_ns(const PenVideoTable *t, PenVideoNeeds *scratch, int64_t *ret,
                      PenError *reterr)
{
    int r = PEN_OK;
    for (uint32_t g = 0; g < t->n_groups && r == PEN_OK; g++) {
        Window w;
        r = load_window(t, g, scratch, &w, reterr);
        const PenVideoFrame *f = (const PenVideoFrame *)scratch->shown.data;
        for (uint32_t i = 0; i < w.frames && r == PEN_OK; i++)
            ret[w.first_frame + i] = pen__video_ns(t, f[i].time);
    }
    return r;
}

/* ---- all of a table -------------------------------------------------------------------------- */

/* Does every group end where a writer ends it, and are ticks as long as they can be? */
static const char *check_form(const PenVideoTable *t)
{
    PenVideoCursor c = pen__video_seek(t, 0);
    uint32_t start = 0, late_key = 0, leading = 0; /* packets of the group */
    int64_t time = 0;                              /* of its first one */
    uint64_t tick = 0;
    while (c.packet < t->n_packets) {
        PenVideoPacket p;
        uint32_t number = c.packet;
        bool is_first = number == c.group_end;
        const char *wrong = pen__video_next(&c, &p);
        if (wrong)
            return wrong;
        tick = pen__gcd((uint64_t)(p.time < 0 ? -p.time : p.time), tick);
        if (is_first) {
            start = late_key = leading = number;
            time = p.time;
        }
        if (p.is_key && number - start >= PEN_VIDEO_GROUP_PACKETS)
            late_key = number;
        if (!p.is_hidden && p.time < time)
            leading = number;
        if (c.packet == c.group_end && late_key > leading)
            return "group does not end at the first key packet that it could";
    }
    if (c.at != t->coded_bytes)
        return "bytes after the last packet";
    return tick > 1 ? "ticks are shorter than they could be" : NULL;
}

int pen__video_table_check(const PenVideoTable *t, PenError *reterr)
{
    PenVideoNeeds n = {0};
    const char *wrong = check_form(t);
    int r = wrong ? fail(wrong, reterr) : PEN_OK;
    for (uint32_t g = 0; g < t->n_groups && r == PEN_OK; g++) {
        Window w;
        r = load_window(t, g, &n, &w, reterr);
    }
    pen__video_needs_free(&n);
    return r;
}
