/* SPDX-License-Identifier: Apache-2.0 */
/* Are the inputs still what they were when the plan was made? */
#include <errno.h>

#include "ingest/plan/part_impl.h"
#include "ingest/source/frames.h"
#include "ingest/source/object.h"
#include "io/dir.h"

static int check_list(const PenRecordFrame *frame, const char *path, const PenExpected *expected,
                      PenError *reterr)
{
    PenObject object;
    if (!pen_is_remote(path))
        return pen__expected_check_path(path, expected, reterr);
    int r = pen__places_object(frame->places, path, &object, reterr);
    return r < 0 ? r : pen__object_check(path, expected, &object, reterr);
}

int pen__plan_check_lists(const PenPlan *plan, PenError *reterr)
{
    uint32_t n;
    const PenListed *lists = pen__plan_lists(plan, &n);
    int r = PEN_OK;
    for (uint32_t i = 0; r == PEN_OK && i < n; i++) {
        PenExpected expected = {lists[i].bytes, lists[i].stamp, pen__plan_frame(plan)->advice};
        r = check_list(pen__plan_frame(plan), lists[i].path, &expected, reterr);
    }
    return r;
}

static int check_root(const PenRecordFrame *frame, uint32_t i, PenError *reterr)
{
    const PenRoot *root = &frame->roots[i];
    PenExpected expected = {root->bytes, root->stamp, frame->advice};
    if (root->kind != PEN_ROOT_TAR && root->kind != PEN_ROOT_GULP)
        return PEN_OK;
    if (pen_is_remote(root->path))
        return PEN_OK; /* every request carries its ETag */
    return pen__expected_check_path(root->path, &expected, reterr);
}

int pen__plan_check_shared(const PenPlan *plan, PenError *reterr)
{
    const PenRecordFrame *frame = pen__plan_frame(plan);
    int r = PEN_OK;
    for (uint32_t i = 0; r == PEN_OK && i < frame->n_roots; i++)
        r = check_root(frame, i, reterr);
    return r;
}

/* ---- every file ------------------------------------------------------------------------------ */

typedef struct Files {
    PenPartReader *reader;
    int some_here;
    PenError gone; /* the first that is not there; status 0 when there is none */
} Files;

/* 1: it is what it was; 0: there is nothing to compare; PEN_E_NOT_FOUND: it is not there. */
static int check_part(PenPartReader *reader, const PenPart *part, PenError *reterr)
{
    const char *path = NULL;
    PenFramesSize size = {0};
    PenExpected expected = pen__part_expected(reader, part);
    if (!pen__kind_has_stamp(part->kind) || !pen__stamp_is_set(&part->stamp))
        return 0; /* it was broken when the plan was made: it has been reported */
    int r = pen__part_path(reader, part, &path, reterr);
    if (r == PEN_OK && part->kind != PEN_PART_FRAMES) {
        r = pen__expected_check_path(path, &expected, reterr);
    } else if (r == PEN_OK) {
        r = pen__frames_measure(path, &size, reterr);
        if (r == PEN_E_NOT_FOUND)
            r = pen__expected_gone(path, ENOENT, expected.advice, reterr);
        if (r == PEN_OK)
            r = pen__expected_check(path, &expected, size.bytes, &size.stamp, reterr);
    }
    return r < 0 ? r : 1;
}

/* A file that is gone is an error where another one is there. Where none is, this machine does not
 * have them: a list may name files of a disk that only the tasks' machines have. */
static int count_part(Files *f, const PenPart *part, PenError *reterr)
{
    PenError e = {0};
    int r = check_part(f->reader, part, &e);
    if (r < 0 && r != PEN_E_NOT_FOUND) {
        if (reterr)
            *reterr = e;
        return r;
    }
    if (r < 0 && f->gone.status == PEN_OK)
        f->gone = e;
    f->some_here |= r == 1;
    if (f->some_here && f->gone.status && reterr)
        *reterr = f->gone;
    return f->some_here ? f->gone.status : PEN_OK;
}

static int check_files(const PenPlan *plan, PenError *reterr)
{
    Files f = {.reader = NULL};
    PenBuf scratch = {0};
    int r = pen__part_reader_open(plan, &f.reader, reterr);
    for (uint64_t i = 0; r == PEN_OK && i < pen__plan_info(plan)->n_items; i++) {
        PenItem item;
        r = pen__plan_item(plan, i, &item, &scratch, reterr);
        for (uint32_t k = 0; r == PEN_OK && k < item.n_parts; k++)
            r = count_part(&f, &item.parts[k], reterr);
    }
    pen__buf_free(&scratch);
    pen__part_reader_close(&f.reader);
    return r;
}

/* Can this machine see the sources at all? 1 yes, 0 no. */
static int sources_here(const PenPlan *plan, PenError *reterr)
{
    const PenRecordFrame *frame = pen__plan_frame(plan);
    uint32_t n;
    const PenListed *lists = pen__plan_lists(plan, &n);
    int r = 1;
    for (uint32_t i = 0; r == 1 && i < n; i++)
        r = pen_is_remote(lists[i].path) ? 0 : pen__file_exists(lists[i].path, reterr);
    for (uint32_t i = 0; r == 1 && i < frame->n_roots; i++)
        if (pen_is_remote(frame->roots[i].path))
            r = 0; /* the tasks have compared the objects that they read */
        else if (*frame->roots[i].path)
            r = pen__file_exists(frame->roots[i].path, reterr);
    return r;
}

int pen__plan_check_all(const PenPlan *plan, PenError *reterr)
{
    int r = sources_here(plan, reterr);
    if (r <= 0)
        return r;
    r = pen__plan_check_lists(plan, reterr);
    if (r == PEN_OK)
        r = pen__plan_check_shared(plan, reterr);
    return r < 0 ? r : check_files(plan, reterr);
}
