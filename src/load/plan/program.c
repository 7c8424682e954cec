/* SPDX-License-Identifier: Apache-2.0 */
#include "load/plan/program.h"

#include <string.h>

#include "base/mem.h"
#include "ops/pipeline/bucket.h"

void pen__plan_describe(const PenField *f, PenFieldKind *ret)
{
    *ret = (PenFieldKind){.kind = PEN_KIND_LIST, .n_dims = f->n_dims};
    memcpy(ret->dims, f->dims, sizeof ret->dims);
    if (pen__field_is_blob(f))
        return;
    switch (f->type) {
    case PEN_TYPE_IMAGE:
        ret->kind = f->flags & PEN_FIELD_MASK ? PEN_KIND_MASK : PEN_KIND_IMAGE;
        return;
    case PEN_TYPE_CLIP:
        ret->kind = PEN_KIND_CLIP;
        return;
    case PEN_TYPE_I64:
        ret->dtype = PEN_I64;
        break;
    case PEN_TYPE_F32:
        ret->dtype = PEN_F32;
        break;
    default:
        ret->dtype = PEN_F64;
    }
    ret->kind = PEN_KIND_NUMBER;
}

void pen__plan_set_tensor(const PenLoadPlan *p, PenOutField *f, const PenTensor *one)
{
    f->tensor = *one;
    f->tensor.n_dims = one->n_dims + 1;
    f->tensor.shape[0] = p->set.batch_size;
    for (uint32_t i = 0; i < one->n_dims; i++)
        f->tensor.shape[i + 1] = one->shape[i];
}

static PenBatchShape shape_of(const PenLoadPlan *p, uint32_t shape)
{
    PenBatchShape ret = {.length = p->lengths ? p->lengths->length[shape] : 0};
    if (p->buckets) {
        ret.height = p->buckets->size[shape].height;
        ret.width = p->buckets->size[shape].width;
    }
    return ret;
}

int pen__plan_program(const PenLoadPlan *p, uint32_t shape, const PenSpecField *spec,
                      const PenFieldKind *kind, PenProgram **ret, PenError *reterr)
{
    PenSpecField with_size = *spec;
    if (!pen__bucket_used(spec))
        return pen__program_new(spec, kind, ret, reterr);
    PenBatchShape of_batch = shape_of(p, shape);
    int r = pen__bucket_resolve(spec, &of_batch, &with_size.ops, reterr);
    if (r < 0)
        return r;
    r = pen__program_new(&with_size, kind, ret, reterr);
    pen__free(with_size.ops);
    return r;
}
