/* SPDX-License-Identifier: Apache-2.0 */
/* One file of any origin, decoded as a loader decodes it. */
#ifndef PEN_OPS_RUN_DECODE_FILE_H
#define PEN_OPS_RUN_DECODE_FILE_H

#include "ops/run/program.h"

/* Reads the header, checks the box, and sets item->size. With item->pixels decodes too. The
 * settings have been checked. */
int pen__decode_file(PenDecodeContext *k, PenDecodeItem *item, const PenDecodeSettings *settings,
                     PenError *reterr);

#endif
