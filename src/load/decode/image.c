/* SPDX-License-Identifier: Apache-2.0 */
#include "load/decode/image.h"

static int reserve(PenBudget *b, uint64_t bytes, PenError *reterr)
{
    pthread_mutex_lock(&b->lock->mutex);
    int r = pen__budget_take(b, bytes, NULL, "decoding it", reterr);
    pthread_mutex_unlock(&b->lock->mutex);
    return r;
}

static void release(PenBudget *b, uint64_t bytes)
{
    pthread_mutex_lock(&b->lock->mutex);
    pen__budget_release(b, bytes, false);
    pthread_mutex_unlock(&b->lock->mutex);
}

int pen__image_decoder_run(const PenImageDecoder *d, const PenProgram *p,
                           const PenSamplePlan *sample_plan, const PenEncoded *image, uint8_t *dst,
                           PenError *reterr)
{
    const PenLimits *limits = &pen__limits_default;
    PenImageHeader header;
    int r = pen__image_header(image, limits, &header, reterr);
    if (r < 0)
        return r;
    uint64_t need = pen__sample_plan_memory(p, sample_plan, &header);
    if (need > d->own_bytes) { /* a scan is not worth waiting for memory */
        header.no_scan = true;
        need = pen__sample_plan_memory(p, sample_plan, &header);
    }
    if (need > d->own_bytes)
        r = reserve(d->shared, need, reterr);
    if (r != PEN_OK)
        return r;
    r = pen__sample_run_parsed(d->context, p, sample_plan, &header, limits, dst, reterr);
    if (r == PEN_END)
        r = PEN_IMAGE_INCOMPLETE;
    if (need > d->own_bytes) {
        pen__decode_context_trim(d->context, d->own_bytes);
        release(d->shared, need);
    }
    return r;
}
