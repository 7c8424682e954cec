/* SPDX-License-Identifier: Apache-2.0 */
/* The result as JSON: docs/explanation/simulator.md lists the members. */
#ifndef PEN_SIM_REPORT_H
#define PEN_SIM_REPORT_H

#include <stdio.h>

#include "sim/result.h"

int pen__sim_print(const PenSimSettings *s, const PenSimResult *r, FILE *to, PenError *reterr);

#endif
