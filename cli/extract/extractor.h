/* SPDX-License-Identifier: Apache-2.0 */
/* Writes samples to files, and lists them in samples.csv. */
#ifndef PEN_CLI_EXTRACT_EXTRACTOR_H
#define PEN_CLI_EXTRACT_EXTRACTOR_H

#include <stdio.h>

#include <penstock/pack.h>

#include "extract/csv.h"
#include "extract/directory.h"
#include "output/sample_values.h"

typedef struct CliExtractor {
    PenPack *pack;
    const PenPackInfo *info;
    CliDirectory directory;
    uint32_t main_field; /* the image or clip whose file is named KEY; n_fields = none */
    FILE *list;          /* samples.csv */
    CliCsv row;          /* of the current sample; listed when all its files are written */
    char *row_text;
    size_t row_bytes;
    uint64_t sample;
    CliBuffer key, value;
    uint64_t files, bytes; /* written so far */
    int unnamed;           /* a label is not the number of any class */
} CliExtractor;

/* `dir` must live as long as the extractor. Close it in any case. */
int cli_extractor_open(PenPack *pack, const char *dir, CliExtractor *ret, PenError *reterr);
/* PEN_E_INVALID: the key is not a safe name. After this, PEN_E_CORRUPT, PEN_E_DECODE or
 * PEN_E_EXISTS, other samples can still be extracted. */
int cli_extractor_sample(CliExtractor *extractor, uint64_t sample, PenError *reterr);
/* Fails if the list could not be written. */
int cli_extractor_close(CliExtractor *extractor, PenError *reterr);

#endif
