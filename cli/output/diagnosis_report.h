/* SPDX-License-Identifier: Apache-2.0 */
/* The diagnosis on a run, as a part of a report. */
#ifndef PEN_CLI_OUTPUT_DIAGNOSIS_REPORT_H
#define PEN_CLI_OUTPUT_DIAGNOSIS_REPORT_H

#include "output/report.h"
#include "tools.h"

/* Adds bottleneck and confidence; and with `lists` stages and advice. */
void cli_diagnosis_report(CliReport *report, const PenDiagnosis *diagnosis, int lists);

#endif
