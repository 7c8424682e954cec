/* SPDX-License-Identifier: Apache-2.0 */
/* A diagnosis as members of a report. */
#ifndef PEN_CLI_OUTPUT_DIAGNOSIS_REPORT_H
#define PEN_CLI_OUTPUT_DIAGNOSIS_REPORT_H

#include "output/report.h"
#include "tools.h"

/* `more` is a further note; NULL = none. */
void cli_diagnosis_report(CliReport *report, const PenDiagnosis *diagnosis, const char *more);

#endif
