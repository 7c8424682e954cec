/* SPDX-License-Identifier: Apache-2.0 */
/* Figures that answer where the bytes of a pack come from and why it is smaller or larger than its
 * source. */
#ifndef PEN_CLI_OUTPUT_PACK_REPORT_H
#define PEN_CLI_OUTPUT_PACK_REPORT_H

#include <penstock/ingest.h>

#include "output/report.h"

void cli_pack_report_id(CliReport *report, const uint8_t id[16]);
/* A table: codec, what was done, how many. */
void cli_pack_report_images(CliReport *report, const PenPackStats *stats);
/* One row of the table of fields that some samples lack; none when `samples` is 0. */
void cli_pack_report_missing(CliReport *report, const char *field, uint64_t samples);
/* Payload, index, metadata and, as `tables`, all else that the files of the pack hold. */
void cli_pack_report_parts(CliReport *report, const PenPackStats *stats, uint64_t pack_bytes);
/* How many classes there are, and the first of their names. */
void cli_pack_report_classes(CliReport *report, const PenIngestResult *result);
/* The whole record of a packing run; `pack` is its name. */
void cli_pack_report_run(CliReport *report, const char *pack, const PenIngestResult *result,
                         double seconds);
/* To six digits: what is measured has no more. */
double cli_pack_report_round(double value);

#endif
