/* SPDX-License-Identifier: Apache-2.0 */
#include "output/diagnosis_report.h"

static void add_stages(CliReport *report, const PenDiagnosis *diagnosis)
{
    cli_report_rare_list(report, "stages");
    for (uint32_t i = 0; i < diagnosis->n_stages; i++) {
        cli_report_object(report, NULL);
        cli_report_text(report, "name", diagnosis->stages[i].name);
        cli_report_measured(report, "samples_per_second", diagnosis->stages[i].per_second, NULL);
        cli_report_measured(report, "ratio", diagnosis->stages[i].ratio, NULL);
        cli_report_close(report);
    }
    cli_report_close(report);
}

static void add_advice(CliReport *report, const PenDiagnosis *diagnosis)
{
    cli_report_rare_list(report, "advice");
    for (uint32_t i = 0; i < diagnosis->n_advices; i++) {
        const PenAdvice *a = &diagnosis->advices[i];
        cli_report_object(report, NULL);
        cli_report_text(report, "change", a->change);
        cli_report_measured(report, "expected_samples_per_second", a->per_second, NULL);
        cli_report_measured(report, "expected_gain", a->gain, NULL);
        cli_report_prose(report, "text", a->text);
        cli_report_close(report);
    }
    cli_report_close(report);
}

void cli_diagnosis_report(CliReport *report, const PenDiagnosis *diagnosis, const char *more)
{
    cli_report_text(report, "bottleneck", diagnosis->bottleneck);
    cli_report_text(report, "confidence", diagnosis->second ? "close" : "clear");
    if (diagnosis->second)
        cli_report_text(report, "second", diagnosis->second);
    cli_report_measured(report, "wait_percent", 100 * diagnosis->wait_share, "%");
    add_stages(report, diagnosis);
    add_advice(report, diagnosis);
    cli_report_rare_list(report, "notes");
    if (diagnosis->note)
        cli_report_prose(report, NULL, diagnosis->note);
    if (more)
        cli_report_prose(report, NULL, more);
    cli_report_close(report);
}
