/* SPDX-License-Identifier: Apache-2.0 */
#include "load/decode/image.h"

int pen__image_decoder_reserve(const PenImageDecoder *d, uint64_t need, PenError *reterr)
{
    PenBudget *b = d->shared;
    if (need <= d->own_bytes)
        return PEN_OK;
    pthread_mutex_lock(&b->lock->mutex);
    int r = pen__budget_take(b, need, NULL, "decoding it", reterr);
    pthread_mutex_unlock(&b->lock->mutex);
    return r;
}

void pen__image_decoder_release(const PenImageDecoder *d, uint64_t need)
{
    PenBudget *b = d->shared;
    if (need <= d->own_bytes)
        return;
    pen__decode_context_trim(d->context, d->own_bytes);
    pthread_mutex_lock(&b->lock->mutex);
    pen__budget_release(b, need, false);
    pthread_mutex_unlock(&b->lock->mutex);
}

int pen__image_decoder_run_parsed(const PenImageDecoder *d, const PenProgram *p,
                                  const PenSamplePlan *sample_plan, const PenImageHeader *parsed,
                                  uint8_t *dst, PenError *reterr)
{
    PenImageHeader header = *parsed;
    uint64_t need = pen__sample_plan_memory(p, sample_plan, &header);
    if (need > d->own_bytes) { /* a scan is not worth waiting for memory */
        header.no_scan = true;
        need = pen__sample_plan_memory(p, sample_plan, &header);
    }
    int r = pen__image_decoder_reserve(d, need, reterr);
    if (r != PEN_OK)
        return r;
    r = pen__sample_run_parsed(d->context, p, sample_plan, &header, &pen__limits_default, dst,
                               reterr);
    pen__image_decoder_release(d, need);
    return r == PEN_END ? PEN_IMAGE_INCOMPLETE : r;
}

int pen__image_decoder_run(const PenImageDecoder *d, const PenProgram *p,
                           const PenSamplePlan *sample_plan, const PenEncoded *image, uint8_t *dst,
                           PenError *reterr)
{
    PenImageHeader header;
    int r = pen__image_header(image, &pen__limits_default, &header, reterr);
    return r < 0 ? r : pen__image_decoder_run_parsed(d, p, sample_plan, &header, dst, reterr);
}
