/* SPDX-License-Identifier: Apache-2.0 */
/* Lists the samples, one per line. */
#ifndef PEN_CLI_OUTPUT_SAMPLES_H
#define PEN_CLI_OUTPUT_SAMPLES_H

#include <penstock/pack.h>

/* Tab-separated after a line of names, or with `json` one object per line. Damaged samples are
 * reported on stderr and left out; the result is then PEN_E_CORRUPT. `reterr` must not be NULL. */
int cli_samples_print(PenPack *pack, int json, PenError *reterr);

#endif
