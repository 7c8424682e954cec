/* SPDX-License-Identifier: Apache-2.0 */
#include "codec/jpeg/transcode/baseline.h"

#include <string.h>

#include "codec/jpeg/header.h"
#include "codec/jpeg/transcode/tokens.h"
#include "codec/jpeg/turbo/turbo.h"

typedef struct Job {
    const char *why;
    PenBuf tokens;
    PenBuf *out;
} Job;

static uint8_t gcd(uint8_t a, uint8_t b)
{
    return b ? gcd(b, a % b) : a;
}

/* Factors that all planes share mean nothing; without them they must be 1 x 1 but for luma. */
static bool plan_sampling(const PenJpegFrame *f, PenBaselinePlan *plan)
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
static const char *make_plan(const PenJpegFrame *f, PenBaselinePlan *plan)
{
    *plan = (PenBaselinePlan){.frame = f};
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

static int use_blocks(void *ctx, const PenJpegFrame *frame, PenError *reterr)
{
    Job *job = ctx;
    PenBaselinePlan plan;
    PenTokens tokens = {.buf = &job->tokens};
    job->why = make_plan(frame, &plan);
    if (job->why)
        return PEN_END;
    int r = pen__tokens_of_blocks(&tokens, &plan, reterr);
    if (r == PEN_END)
        job->why = "coefficient range";
    return r == PEN_OK ? pen__baseline_write(&tokens, &plan, job->out, reterr) : r;
}

int pen__jpeg_baseline(const uint8_t *data, size_t bytes, const PenLimits *limits, PenBuf *ret,
                       const char **ret_why, PenError *reterr)
{
    PenJpegInfo info;
    Job job = {.why = "12 bit", .out = ret};
    int r = pen__jpeg_info(data, bytes, limits, &info, reterr);
    if (r < 0)
        return r;
    if (info.precision == 12) { /* libjpeg is built for 8 bits: only check the markers */
        r = pen__jpeg_check(data, bytes, limits, reterr);
        r = r < 0 ? r : PEN_END;
    } else {
        PenTurboUser user = {.blocks = use_blocks, .ctx = &job};
        r = pen__turbo_read(data, bytes, limits, &user, reterr);
    }
    if (r == PEN_END)
        *ret_why = job.why;
    pen__buf_free(&job.tokens);
    return r;
}
