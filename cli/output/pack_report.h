/* SPDX-License-Identifier: Apache-2.0 */
/* The parts of a report about a pack: its id, images, classes, and what its bytes are used for. */
#ifndef PEN_CLI_OUTPUT_PACK_REPORT_H
#define PEN_CLI_OUTPUT_PACK_REPORT_H

#include <penstock/ingest.h>

#include "output/report.h"

void cli_pack_report_id(CliReport *report, const uint8_t id[16]);
/* A table: codec, how it is stored, number of images. */
void cli_pack_report_images(CliReport *report, const PenPackStats *stats);
/* The list "found" of the problems that cli_report_error has added to `found`. */
void cli_pack_report_found(CliReport *report, const CliReport *found);
/* One row of the table of missing values; none if `samples` is 0. */
void cli_pack_report_missing(CliReport *report, const char *field, uint64_t samples);
/* Payload, index, metadata and, as `tables`, the rest of the files; payloads are not in an in-place
 * pack, and the rest is not known then. */
void cli_pack_report_parts(CliReport *report, const PenPackStats *stats, uint64_t pack_bytes,
                           int in_place);
/* The number of classes, and the first names. */
void cli_pack_report_classes(CliReport *report, const PenIngestResult *result);
/* Prints a warning if the pack has videos and this machine has no decoder for them. */
void cli_pack_report_decoder(const char *pack, const PenPackStats *stats);
/* The complete report of a packing run; `pack` is its name. */
void cli_pack_report_run(CliReport *report, const char *pack, const PenIngestResult *result,
                         double seconds, int in_place);

#endif
