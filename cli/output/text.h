/* SPDX-License-Identifier: Apache-2.0 */
/* Writes untrusted bytes (keys, names, messages) so that they cannot control a terminal or break
 * the output format; and formats numbers. */
#ifndef PEN_CLI_OUTPUT_TEXT_H
#define PEN_CLI_OUTPUT_TEXT_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

/* Length of the UTF-8 character at `s`, or 0 if it is not valid. */
size_t cli_utf8_length(const uint8_t *s, size_t bytes);
int cli_utf8_valid(const void *s, size_t bytes);

/* For people: control characters and bytes that are not UTF-8 are written as \xNN. */
void cli_text_print(FILE *to, const void *s, size_t bytes);
/* For a cell of tab-separated values: the same, with doubled backslashes, so that the bytes can be
 * restored. */
void cli_text_tsv(FILE *to, const void *s, size_t bytes);
/* A JSON string with its quotes. Text that is not UTF-8 is read as Latin-1: \u00NN for each byte
 * over 0x7F. */
void cli_text_json(FILE *to, const void *s, size_t bytes);

enum { CLI_TEXT_COLUMNS = 80 };
/* Writes the words of our own `text` from column `column` on, never beyond CLI_TEXT_COLUMNS.
 * Further lines are indented by `indent`. Returns the column it ends in. */
size_t cli_text_words(FILE *to, const char *text, size_t column, size_t indent);

enum { CLI_NUMBER_TEXT = 32 };
/* 1234567 as "1,234,567". */
const char *cli_text_number(int64_t number, char buf[CLI_NUMBER_TEXT]);
/* "1 file", "2,000 files". */
const char *cli_text_count(uint64_t n, const char *noun, char buf[CLI_NUMBER_TEXT]);
/* 1234567 as "1.2 MiB". */
const char *cli_text_size(double bytes, char buf[CLI_NUMBER_TEXT]);
/* Seconds as "0.25 s", "46 s", "3 min 20 s", "2 h 05 min". */
const char *cli_text_time(double seconds, char buf[CLI_NUMBER_TEXT]);
/* What one request for a remote pack has, a PEN_FETCH_*: "blocks", "runs", "samples" or "none". */
const char *cli_text_fetch_unit(uint32_t unit);

#endif
