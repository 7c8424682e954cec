/* SPDX-License-Identifier: Apache-2.0 */
#include "dsp/weigh.h"

void pen__weigh_avx2(const PenAxisSpec *spec, void *scratch, PenAxis *axis)
{
    weigh_axis(spec, scratch, axis);
}
