/* SPDX-License-Identifier: Apache-2.0 */
/* Writing samples as files, and the list samples.csv of them. */
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
    uint32_t main_field; /* the image or clip that takes the key as its name; n_fields = none */
    FILE *list;          /* samples.csv */
    CliCsv row; /* of the sample at hand: goes into the list when all its files are there */
    char *row_text;
    size_t row_bytes;
    uint64_t sample;
    CliBuffer key, value;
    uint64_t files, bytes; /* written so far */
    int unnamed;           /* a label is not the number of any class */
} CliExtractor;

/* `dir` must live as long as the extractor. Close it in any case. */
int cli_extractor_open(PenPack *pack, const char *dir, CliExtractor *ret, PenError *reterr);
/* PEN_E_INVALID: the key is no safe name. After that and after PEN_E_CORRUPT, PEN_E_DECODE,
 * PEN_E_EXISTS and the like it can go on with other samples. */
int cli_extractor_sample(CliExtractor *extractor, uint64_t sample, PenError *reterr);
/* Says whether the list could be written. */
int cli_extractor_close(CliExtractor *extractor, PenError *reterr);

#endif
