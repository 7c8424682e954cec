/* SPDX-License-Identifier: Apache-2.0 */
#include "load/plan/plan.h"

#include "base/mem.h"

void pen__load_plan_fini(PenLoadPlan *p)
{
    for (uint32_t i = 0; i < p->n_fields; i++) {
        pen__program_free(&p->fields[i].program);
        pen__free(p->fields[i].name);
    }
    pen__free(p->fields);
    pen__free(p->text);
    pen__free(p->subset);
    pen__free(p->ordinals);
    pen__free(p->warning);
    pen__spec_free(&p->spec);
    pen_pack_close(&p->pack);
    *p = (PenLoadPlan){0};
}
