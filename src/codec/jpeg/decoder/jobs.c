/* SPDX-License-Identifier: Apache-2.0 */
/* Which segments a box needs, and how far each has to be decoded. */
#include "codec/jpeg/decoder/decoder_impl.h"

/* Blocks of one component along one axis, of `side` samples each. `shared` pixels have one sample.
 */
static void want_axis(uint32_t from, uint32_t n, uint32_t size, uint32_t shared, uint32_t side,
                      uint32_t *ret_first, uint32_t *ret_last)
{
    /* Of two pixels with one sample, upsampling takes the sample before for the first one, and that
     * behind for the second. */
    uint32_t guard = shared > 1;
    uint32_t first = (from - PEN_MIN(from, guard)) / shared, last = (from + n - 1 + guard) / shared;
    uint32_t samples = (size + shared - 1) / shared;
    *ret_first = first / side;
    *ret_last = PEN_MIN(last, samples - 1) / side;
}

void pen__own_want(const PenTileGeometry *g, const PenOwnHead *head, const PenOwnBox *at,
                   uint32_t width, uint32_t height, PenOwnWanted *ret)
{
    const PenBox *box = &at->box;
    width = pen__shrunk_side(width, at->shrink);
    height = pen__shrunk_side(height, at->shrink);
    *ret = (PenOwnWanted){.left = g->mcus_x, .top = g->mcus_y};
    for (size_t i = 0; i < head->components; i++) {
        PenOwnScale scale = pen__own_scale(head, (uint32_t)i, at->shrink);
        uint32_t *left = &ret->block_left[i], *right = &ret->block_right[i];
        uint32_t *top = &ret->block_top[i], *bottom = &ret->block_bottom[i];
        want_axis(box->x, box->w, width, scale.h, scale.side, left, right);
        want_axis(box->y, box->h, height, scale.v, scale.side, top, bottom);
        uint32_t in_x = i ? 1 : head->h, in_y = i ? 1 : head->v; /* blocks of an MCU */
        ret->left = PEN_MIN(ret->left, *left / in_x);
        ret->right = PEN_MAX(ret->right, *right / in_x);
        ret->top = PEN_MIN(ret->top, *top / in_y);
        ret->bottom = PEN_MAX(ret->bottom, *bottom / in_y);
    }
}

uint32_t pen__own_first_wanted(const PenOwnJobs *jobs, uint32_t mcu)
{
    uint32_t row = mcu / jobs->g->mcus_x, column = mcu % jobs->g->mcus_x;
    const PenOwnWanted *w = jobs->wanted;
    if (row < w->top)
        return w->top * jobs->g->mcus_x + w->left;
    if (column > w->right)
        return (row + 1) * jobs->g->mcus_x + w->left;
    return column < w->left ? mcu - column + w->left : mcu;
}

uint32_t pen__own_last_wanted(const PenOwnJobs *jobs, uint32_t mcu)
{
    const PenOwnWanted *w = jobs->wanted;
    mcu = PEN_MIN(mcu, w->bottom * jobs->g->mcus_x + w->right);
    uint32_t column = mcu % jobs->g->mcus_x;
    if (column > w->right)
        return mcu - column + w->right;
    return column < w->left ? mcu - column - jobs->g->mcus_x + w->right : mcu;
}

/* Is the segment between its markers? So it is what libjpeg sees as one, whatever the table of
 * lengths says. */
static bool has_markers(const PenOwnJobs *jobs, uint32_t segment, uint64_t end)
{
    const uint8_t *data = jobs->image->data, *before = data + jobs->at - 2,
                  *behind = data + end - 2;
    uint32_t n = jobs->g->n_segments;
    if (segment > jobs->image->first_segment &&
        (before[0] != 0xFF || before[1] != pen__tile_closing_code(segment - 1, n)))
        return false;
    return behind[0] == 0xFF && behind[1] == pen__tile_closing_code(segment, n);
}

static uint32_t bytes_of(const PenOwnJobs *jobs, uint32_t segment)
{
    return jobs->image->segment_bytes[segment - jobs->image->first_segment];
}

/* Passes over segments; false when the table leaves the data. */
static bool go_to(PenOwnJobs *jobs, uint32_t segment)
{
    for (; jobs->segment < segment; jobs->segment++)
        jobs->at += bytes_of(jobs, jobs->segment);
    return jobs->at <= jobs->image->bytes;
}

int pen__own_next_job(PenOwnJobs *jobs, PenOwnJob *ret)
{
    const PenTileGeometry *g = jobs->g;
    uint32_t wanted = pen__own_first_wanted(jobs, jobs->segment * PEN_TILE_MCUS);
    if (jobs->over || wanted / g->mcus_x > jobs->wanted->bottom)
        return PEN_OWN_NO_JOB;
    uint32_t segment = wanted / PEN_TILE_MCUS, mcu = segment * PEN_TILE_MCUS;
    if (segment < jobs->image->first_segment || segment >= jobs->image->end_segment ||
        !go_to(jobs, segment))
        return PEN_END;
    uint32_t bytes = bytes_of(jobs, segment);
    uint64_t end = jobs->at + bytes;
    if (bytes < 2 || bytes > PEN_OWN_MAX_SEGMENT_BYTES || end > jobs->image->bytes ||
        !has_markers(jobs, segment, end))
        return PEN_END;
    uint32_t n = PEN_MIN(g->mcus_x * g->mcus_y - mcu, (uint32_t)PEN_TILE_MCUS);
    uint32_t last = pen__own_last_wanted(jobs, mcu + n - 1);
    *ret = (PenOwnJob){.data = jobs->image->data + jobs->at,
                       .bytes = bytes - 2,
                       .mcu = mcu,
                       .n_mcus = last - mcu + 1,
                       .first_block = (PEN_TILE_MCUS - n) * jobs->mcu_blocks,
                       .first_row = wanted / g->mcus_x,
                       .last_row = last / g->mcus_x};
    jobs->over = segment + 1 == g->n_segments;
    jobs->at = end;
    jobs->segment = segment + 1;
    return PEN_OK;
}
