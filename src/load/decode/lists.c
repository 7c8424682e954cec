/* SPDX-License-Identifier: Apache-2.0 */
#include "load/decode/lists.h"

#include <string.h>

/* Values move to lower addresses only, and in order, so none is overwritten before it has moved. */
static int64_t join(const PenOutField *f, uint8_t *memory, uint32_t n)
{
    uint8_t *data = memory + f->offset, *validity = memory + f->validity;
    int64_t *offsets = (int64_t *)(void *)(memory + f->lengths), end = 0;
    memset(validity, 0, n / 8 + 1);
    offsets[0] = 0;
    for (uint32_t i = 0; i < n; i++) {
        int64_t bytes = offsets[i + 1];
        if (bytes >= 0) {
            memmove(data + end, data + i * f->bytes, (size_t)bytes);
            validity[i / 8] |= (uint8_t)(1u << i % 8);
            end += bytes;
        }
        offsets[i + 1] = end;
    }
    return end;
}

void pen__lists_join(const PenLoadPlan *plan, PenSlot *s)
{
    for (uint32_t i = 0; i < plan->n_fields; i++)
        if (plan->fields[i].list)
            s->tensors[i].shape[0] = join(&plan->fields[i], s->batch.memory, plan->set.batch_size);
}
