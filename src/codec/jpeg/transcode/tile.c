/* SPDX-License-Identifier: Apache-2.0 */
/* Tiled and baseline JPEG files: from other JPEG files without loss, and from pixels. */
#include "codec/jpeg/transcode/tile.h"

#include <string.h>

#include "codec/jpeg/markers.h"
#include "codec/jpeg/transcode/tokens.h"
#include "codec/jpeg/turbo/turbo.h"

static const char where[] = "codec/jpeg";

typedef struct Job {
    const uint8_t *data;
    size_t bytes;
    const char *why;
    bool unmarked;
    PenTiledJpeg *tiled;
} Job;

/* ---- what can be written ---- */

static uint8_t gcd(uint8_t a, uint8_t b)
{
    return b ? gcd(b, a % b) : a;
}

/* Factors that all planes share mean nothing; without them they must be 1 x 1 but for luma. */
static bool plan_sampling(const PenJpegFrame *f, PenTilePlan *plan)
{
    uint8_t h = 0, v = 0;
    for (size_t i = 0; i < f->n_planes; i++) {
        h = gcd(f->planes[i].h_samp, h);
        v = gcd(f->planes[i].v_samp, v);
    }
    if (!h || !v)
        return false;
    for (size_t i = 1; i < f->n_planes; i++)
        if (f->planes[i].h_samp != h || f->planes[i].v_samp != v)
            return false;
    plan->h_samp = f->planes[0].h_samp / h;
    plan->v_samp = f->planes[0].v_samp / v;
    return plan->h_samp <= 2 && plan->v_samp <= 2;
}

/* Baseline holds tables of 8 bits, and one in each slot. */
static bool quant_fits(const PenJpegFrame *f)
{
    for (size_t i = 0; i < f->n_planes; i++) {
        const PenJpegPlane *p = &f->planes[i];
        for (size_t k = 0; k < 64; k++)
            if (p->quant[k] > 255)
                return false;
        for (size_t j = 0; j < i; j++)
            if (f->planes[j].quant_slot == p->quant_slot &&
                memcmp(f->planes[j].quant, p->quant, 64 * sizeof *p->quant) != 0)
                return false;
    }
    return true;
}

/* NULL when it can be written, and then `plan` is set; else why not. */
static const char *make_plan(const PenJpegFrame *f, PenTilePlan *plan)
{
    *plan = (PenTilePlan){.frame = f};
    if (f->arithmetic)
        return "arithmetic";
    if (f->colour == PEN_JPEG_CMYK)
        return "CMYK";
    if (f->colour == PEN_JPEG_RGB || (f->n_planes != 1 && f->n_planes != 3))
        return "not YCbCr";
    if (f->incomplete)
        return f->progressive ? "incomplete progressive" : "incomplete scans";
    if (!plan_sampling(f, plan))
        return "sampling";
    for (size_t i = 0; i < f->n_planes; i++)
        if (!f->planes[i].quant)
            return "quantization";
    if (!quant_fits(f))
        return "quantization";
    PenJpegInfo info = {.width = f->width, .height = f->height, .components = f->n_planes};
    for (size_t i = 0; i < f->n_planes; i++) {
        info.h_samp[i] = i ? 1 : plan->h_samp;
        info.v_samp[i] = i ? 1 : plan->v_samp;
    }
    pen__tile_geometry(&info, &plan->geometry);
    return NULL;
}

/* ---- from a JPEG file ---- */

static int start_tokens(PenTiledJpeg *tiled, const PenTilePlan *plan, PenTokens *t,
                        PenError *reterr)
{
    uint32_t n = plan->geometry.n_segments;
    tiled->segment_buf.bytes = tiled->tokens.bytes = 0;
    if (pen__buf_reserve(&tiled->segment_buf, (size_t)n * sizeof(uint32_t)) < 0)
        return pen__fail_memory(reterr, where, "segment table");
    tiled->segment_bytes = (uint32_t *)(void *)tiled->segment_buf.data;
    tiled->n_segments = n;
    *t = (PenTokens){.buf = &tiled->tokens, .segment_tokens = tiled->segment_bytes};
    return PEN_OK;
}

static int use_scan(void *ctx, const PenJpegFrame *frame, const PenJpegScan *scan, PenError *reterr)
{
    Job *job = ctx;
    PenTilePlan plan;
    PenTokens tokens;
    if (make_plan(frame, &plan))
        return PEN_END;
    /* The scan is read in the order of its own MCUs: they must be those of the tiled file. */
    if (frame->n_planes > 1 &&
        (plan.h_samp != frame->planes[0].h_samp || plan.v_samp != frame->planes[0].v_samp))
        return PEN_END;
    int r = start_tokens(job->tiled, &plan, &tokens, reterr);
    if (r < 0)
        return r;
    r = pen__tokens_of_scan(&tokens, &plan, scan, job->data, job->bytes, &job->tiled->entropy,
                            reterr);
    return r == PEN_OK ? pen__tiled_write(&tokens, &plan, job->tiled, reterr) : r;
}

static int use_blocks(void *ctx, const PenJpegFrame *frame, PenError *reterr)
{
    Job *job = ctx;
    PenTilePlan plan;
    PenTokens tokens;
    job->why = make_plan(frame, &plan);
    if (job->why)
        return PEN_END;
    plan.unmarked = job->unmarked;
    int r = start_tokens(job->tiled, &plan, &tokens, reterr);
    if (r < 0)
        return r;
    r = pen__tokens_of_blocks(&tokens, &plan, reterr);
    if (r == PEN_END)
        job->why = "coefficient range";
    return r == PEN_OK ? pen__tiled_write(&tokens, &plan, job->tiled, reterr) : r;
}

/* What the header of the tiled file says, known without parsing it. */
static void set_info(PenTiledJpeg *tiled, const PenJpegInfo *source)
{
    PenJpegInfo *info = &tiled->info;
    uint8_t h = info->h_samp[0], v = info->v_samp[0];
    *info = *source;
    info->sof = PEN_MARKER_SOF0;
    info->scan_components = info->components;
    info->adobe_transform = PEN_ADOBE_NONE;
    info->restart_interval = PEN_TILE_MCUS;
    info->head_bytes = tiled->head_bytes;
    for (size_t i = 0; i < info->components; i++) {
        info->h_samp[i] = i ? 1 : h;
        info->v_samp[i] = i ? 1 : v;
    }
}

static int transcode(Job *job, const PenLimits *limits, PenJpegInfo *ret_source,
                     const char **ret_why, PenError *reterr)
{
    int r = pen__jpeg_info(job->data, job->bytes, limits, ret_source, reterr);
    if (r < 0)
        return r;
    job->why = "12 bit";
    if (ret_source->precision == 12) { /* libjpeg is built for 8 bits: only check the markers */
        r = pen__jpeg_check(job->data, job->bytes, limits, reterr);
        r = r < 0 ? r : PEN_END;
    } else {
        PenTurboUser user = {
            .scan = job->unmarked ? NULL : use_scan, .blocks = use_blocks, .ctx = job};
        r = pen__turbo_read(job->data, job->bytes, limits, &user, reterr);
    }
    if (r == PEN_END)
        *ret_why = job->why;
    return r;
}

int pen__jpeg_tile(const uint8_t *data, size_t bytes, const PenLimits *limits, PenTiledJpeg *ret,
                   const char **ret_why, PenError *reterr)
{
    PenJpegInfo info;
    Job job = {.data = data, .bytes = bytes, .tiled = ret};
    int r = transcode(&job, limits, &info, ret_why, reterr);
    if (r == PEN_OK)
        set_info(ret, &info);
    return r;
}

int pen__jpeg_baseline(const uint8_t *data, size_t bytes, const PenLimits *limits, PenBuf *ret,
                       const char **ret_why, PenError *reterr)
{
    PenJpegInfo info;
    PenTiledJpeg made = {.jpeg = *ret};
    Job job = {.data = data, .bytes = bytes, .unmarked = true, .tiled = &made};
    int r = transcode(&job, limits, &info, ret_why, reterr);
    *ret = made.jpeg;
    made.jpeg = (PenBuf){0};
    pen__tiled_free(&made);
    return r;
}

/* ---- from pixels ---- */

int pen__jpeg_encode(const PenPixels *pixels, int quality, const PenLimits *limits,
                     PenTiledJpeg *ret, PenError *reterr)
{
    uint32_t *lengths;
    ret->jpeg.bytes = 0;
    int r = pen__turbo_encode(pixels, quality, PEN_TILE_MCUS, limits, &ret->jpeg, reterr);
    if (r < 0)
        return r;
    r = pen__jpeg_info(ret->jpeg.data, ret->jpeg.bytes, limits, &ret->info, reterr);
    if (r < 0)
        return r;
    r = pen__jpeg_segments(ret->jpeg.data, ret->jpeg.bytes, limits, &ret->head_bytes, &lengths,
                           &ret->n_segments, reterr);
    if (r < 0)
        return r;
    pen__free(ret->segment_buf.data);
    size_t cap = (size_t)ret->n_segments * sizeof *lengths;
    ret->segment_buf = (PenBuf){.data = (uint8_t *)lengths, .bytes = cap, .cap = cap};
    ret->segment_bytes = lengths;
    return PEN_OK;
}
