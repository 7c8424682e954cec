/* SPDX-License-Identifier: Apache-2.0 */
/* The frames of a clip, one after another, from a folder or a .gulp file. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "ingest/plan/part_impl.h"
#include "ingest/source/frames.h"
#include "ingest/source/gulp_table.h"

#define WHERE "ingest/read"

typedef struct Clip {
    PenPartReader *reader;
    const PenPart *part;
    const char *name;
    uint64_t n, bytes, disk_bytes; /* so far */
    PenStamp stamp;                /* likewise */
    const char *advice;
    PenBuf data; /* of the frame at hand */
    PenFrameFn frame;
    void *ctx;
} Clip;

static int give(Clip *c, PenError *reterr)
{
    c->n++;
    c->bytes += c->data.bytes;
    if (c->bytes > PEN_CLIP_BYTES || c->n > PEN_CLIP_FRAMES)
        return pen__fail(reterr, PEN_E_LIMIT, WHERE,
                         "%s: expected a clip of at most %" PRIu64 " frames and 2 GiB, found more",
                         c->name, PEN_CLIP_FRAMES);
    return c->frame(c->ctx, &c->data, reterr);
}

/* ---- folders --------------------------------------------------------------------------------- */

static int check_count(const Clip *c, const PenPart *part, uint64_t n, PenError *reterr)
{
    const char *name = c->name;
    if (n > PEN_CLIP_FRAMES)
        return pen__fail(reterr, PEN_E_LIMIT, WHERE,
                         "%s: expected a clip of at most %" PRIu64 " frames, found %" PRIu64, name,
                         PEN_CLIP_FRAMES, n);
    if (!n)
        return pen__fail(reterr, PEN_E_DECODE, WHERE, "%s: expected frames, found none", name);
    if (n != part->offset)
        return pen__fail(reterr, PEN_E_INVALID, WHERE,
                         "%s: changed since the plan was made: expected %" PRIu64
                         " frames, found %" PRIu64 "; %s",
                         name, part->offset, n, c->advice);
    return PEN_OK;
}

/* A folder in a folder of frames was there when the plan was made, too: a broken input. */
static int read_frame_file(Clip *c, const char *name, PenError *reterr)
{
    char *path = pen__path_join(c->name, name);
    PenFileStat st = {0};
    if (!path)
        return pen__fail_memory(reterr, WHERE, c->name);
    const char *at = NULL;
    int r = pen__part_beneath(c->reader, c->part, path, &at, reterr);
    if (r == PEN_OK)
        r = pen__part_read_path(at, NULL, &c->data, &st, reterr);
    c->disk_bytes += st.disk_bytes;
    pen__stamp_add(&c->stamp, name, &st);
    pen__free(path);
    return r;
}

/* Clips that could not be measured are in the plan as empty ones: skipping was asked for. */
static int explain_unmeasured(const char *folder, PenError *reterr)
{
    PenFramesSize size;
    int r = pen__frames_measure(folder, &size, reterr);
    if (r == PEN_E_INVALID)
        r = PEN_E_DECODE;
    if (reterr && r == PEN_E_DECODE)
        reterr->status = r;
    return r;
}

static int read_folder(PenPartReader *p, const PenPart *part, Clip *c, PenError *reterr)
{
    const char *path = NULL;
    int r = pen__part_path(p, part, &path, reterr);
    if (r < 0)
        return r;
    PenExpected expected = pen__part_expected(p, part);
    c->name = path;
    c->advice = expected.advice;
    PenNames names = {0};
    if (!part->offset)
        r = explain_unmeasured(path, reterr);
    if (r == PEN_OK)
        r = pen__frames_list(path, &names, reterr);
    if (r == PEN_E_NOT_FOUND && part->offset)
        r = pen__expected_gone(path, ENOENT, expected.advice, reterr);
    if (r == PEN_OK)
        r = check_count(c, part, names.n, reterr);
    for (uint64_t i = 0; r == PEN_OK && i < names.n; i++) {
        r = read_frame_file(c, names.names[i], reterr);
        if (r == PEN_OK)
            r = give(c, reterr);
    }
    if (r == PEN_OK)
        r = pen__expected_check(path, &expected, c->bytes, &c->stamp, reterr);
    pen__names_free(&names);
    return r;
}

/* ---- gulp ------------------------------------------------------------------------------------ */

static int read_gulp(PenPartReader *p, const PenPart *part, Clip *c, PenError *reterr)
{
    PenGulpTable table = {part->data, (const uint8_t *)part->data + part->data_bytes, 0};
    PenGulpFrame f;
    int r = PEN_OK;
    c->name = "clip in a gulp file";
    c->advice = pen__part_expected(p, part).advice;
    while (r == PEN_OK && pen__gulp_table_next(&table, &f)) {
        PenPart at = {
            .kind = PEN_PART_RANGE, .source = part->source, .offset = f.offset, .bytes = f.bytes};
        r = pen__part_read_range(p, &at, &c->data, reterr);
        c->disk_bytes += f.bytes;
        if (r == PEN_OK)
            r = give(c, reterr);
    }
    return r ? r : check_count(c, part, c->n, reterr);
}

int pen__part_frames(PenPartReader *reader, const PenPart *part, PenFrameFn frame, void *ctx,
                     uint64_t *ret_disk_bytes, PenError *reterr)
{
    Clip c = {.reader = reader, .part = part, .frame = frame, .ctx = ctx};
    int r = part->kind == PEN_PART_GULP ? read_gulp(reader, part, &c, reterr)
                                        : read_folder(reader, part, &c, reterr);
    pen__buf_free(&c.data);
    if (r == PEN_OK && ret_disk_bytes)
        *ret_disk_bytes = c.disk_bytes;
    return r;
}

void pen__part_frame_name(const PenPlan *plan, const PenPart *part, const char *key,
                          uint64_t number, char *buf, size_t cap)
{
    char folder[4096];
    PenNames names = {0};
    pen__part_name(plan, part, folder, sizeof folder);
    if (part->kind == PEN_PART_FRAMES && pen__frames_list(folder, &names, NULL) == PEN_OK &&
        number < names.n)
        snprintf(buf, cap, "%s/%s", folder, names.names[number]);
    else if (part->kind == PEN_PART_GULP)
        snprintf(buf, cap, "%s: %s: frame %" PRIu64, folder, key, number + 1);
    else
        snprintf(buf, cap, "%s: frame %" PRIu64, folder, number + 1);
    pen__names_free(&names);
}
