/* SPDX-License-Identifier: Apache-2.0 */
/* The arguments of the program, KEY=VALUE each: their names, units, ranges and defaults. */
#ifndef PEN_SIM_ARGUMENTS_H
#define PEN_SIM_ARGUMENTS_H

#include <stdio.h>

#include <penstock/error.h>

#include "sim/settings.h"

/* Defaults, and over them these arguments, whose texts have to stay. */
int pen__sim_settings_parse(PenSimSettings *ret, char *const *arguments, int n, PenError *reterr);
int pen__sim_settings_check(const PenSimSettings *s, PenError *reterr); /* are they in range? */
void pen__sim_usage(FILE *to);

#endif
