/* SPDX-License-Identifier: Apache-2.0 */
#include "output/result.h"

#include "output/messages.h"

static uint32_t schema_of(const CliArgs *args)
{
    return cli_commands[args->command].schema;
}

int cli_result_print(const CliArgs *args, const CliReport *report, const char *line)
{
    PenError error = {0};
    int r = PEN_OK;
    if (args->values[CLI_OPT_JSON].given)
        r = cli_report_print_json(report, schema_of(args), stdout, &error);
    else if (line)
        printf("%s\n", line);
    else
        r = cli_report_print_text(report, stdout, &error);
    if (r < 0)
        cli_print_error(&error);
    return r < 0 ? CLI_EXIT_FAILURE : CLI_EXIT_OK;
}

static void print_error(const CliArgs *args, const PenError *error)
{
    CliReport report = {0};
    if (!args->values[CLI_OPT_JSON].given)
        return;
    cli_report_error(&report, error);
    (void)cli_report_print_json(&report, schema_of(args), stdout, NULL);
    cli_report_fini(&report);
}

int cli_result_error(const CliArgs *args, const PenError *error)
{
    cli_print_error(error);
    print_error(args, error);
    return error->status == PEN_E_BUSY ? CLI_EXIT_BUSY : CLI_EXIT_FAILURE;
}

int cli_result_interrupted(const CliArgs *args, const PenError *error, const char *advice)
{
    cli_print_message("interrupted; %s", advice);
    print_error(args, error);
    return CLI_EXIT_INTERRUPTED;
}
