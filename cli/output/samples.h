/* SPDX-License-Identifier: Apache-2.0 */
/* The list of samples: one line each, read and printed one by one. */
#ifndef PEN_CLI_OUTPUT_SAMPLES_H
#define PEN_CLI_OUTPUT_SAMPLES_H

#include <penstock/pack.h>

/* Tab-separated with a line of names first, or with `json` one object a line. Damaged samples are
 * named on stderr and left out; the result is PEN_E_CORRUPT then. `reterr` must not be NULL. */
int cli_samples_print(PenPack *pack, int json, PenError *reterr);

#endif
