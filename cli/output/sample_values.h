/* SPDX-License-Identifier: Apache-2.0 */
/* Reads keys and values of samples into a buffer that is reused for the next sample. */
#ifndef PEN_CLI_OUTPUT_SAMPLE_VALUES_H
#define PEN_CLI_OUTPUT_SAMPLE_VALUES_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <penstock/pack.h>

typedef struct CliBuffer { /* starts as {0} */
    uint8_t *data;
    size_t bytes, cap;
} CliBuffer;

void cli_buffer_fini(CliBuffer *buffer);

int cli_value_key(PenPack *pack, uint64_t sample, CliBuffer *out, PenError *reterr);
int cli_value_read(PenPack *pack, uint64_t sample, uint32_t field, CliBuffer *out,
                   PenError *reterr);

int cli_field_is_numeric(const PenField *field);
int cli_field_is_ragged(const PenField *field);
/* Numbers in a value of a numeric field, and rows in one of a ragged field. */
uint64_t cli_value_numbers(const PenField *field, const CliBuffer *value);
uint64_t cli_value_rows(const PenField *field, const CliBuffer *value);
/* Number `i` of a numeric field that cli_value_read returned, as the shortest text that parses to
 * it. */
const char *cli_number_text(const PenField *field, const CliBuffer *value, uint64_t i,
                            char buf[32]);
/* The class name for the value of the class field; NULL if there is none. */
const char *cli_class_name(const PenPackInfo *info, const CliBuffer *value);

#endif
