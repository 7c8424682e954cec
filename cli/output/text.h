/* SPDX-License-Identifier: Apache-2.0 */
/* Bytes of any origin (keys, names, messages) written so that they can do no harm to a terminal or
 * to the form they are written in. */
#ifndef PEN_CLI_OUTPUT_TEXT_H
#define PEN_CLI_OUTPUT_TEXT_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

/* Length of the UTF-8 character at `s`, or 0 when there is no valid one. */
size_t cli_utf8_length(const uint8_t *s, size_t bytes);
int cli_utf8_valid(const void *s, size_t bytes);

/* For people: control characters and what is not UTF-8 come out as \xNN. */
void cli_text_print(FILE *to, const void *s, size_t bytes);
/* For a cell of a table of tab-separated values: as above, and a backslash is doubled, so that the
 * bytes can be told from what is written. */
void cli_text_tsv(FILE *to, const void *s, size_t bytes);
/* A JSON string with its quotes. What is not UTF-8 is taken as Latin-1: \u00NN for each byte over
 * 0x7F. */
void cli_text_json(FILE *to, const void *s, size_t bytes);

/* Is this one JSON value and nothing else? */
int cli_json_valid(const char *s);

enum { CLI_NUMBER_TEXT = 32 };
/* 1234567 as "1,234,567". */
const char *cli_text_number(int64_t number, char buf[CLI_NUMBER_TEXT]);
/* "1 file", "2,000 files". */
const char *cli_text_count(uint64_t n, const char *noun, char buf[CLI_NUMBER_TEXT]);
/* 1234567 as "1.2 MiB". */
const char *cli_text_size(double bytes, char buf[CLI_NUMBER_TEXT]);
/* Seconds as "0.25 s", "46 s", "3 min 20 s", "2 h 05 min". */
const char *cli_text_time(double seconds, char buf[CLI_NUMBER_TEXT]);

#endif
