/* SPDX-License-Identifier: Apache-2.0 */
/* The operations of pipelines, from the table of the library. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <penstock/ops.h>

#include "arguments/commands.h"
#include "output/messages.h"
#include "output/result.h"

static void add_param(CliReport *report, const PenParam *p)
{
    cli_report_object(report, NULL);
    cli_report_text(report, "name", p->name);
    if (p->initial)
        cli_report_text(report, "default", p->initial);
    if (p->words)
        cli_report_text(report, "words", p->words);
    cli_report_text(report, "help", p->help);
    cli_report_close(report);
}

static void add_op(CliReport *report, const PenOp *op)
{
    cli_report_object(report, NULL);
    cli_report_text(report, "name", op->name);
    cli_report_text(report, "help", op->help);
    cli_report_list(report, "parameters");
    for (uint32_t i = 0; i < op->n_params; i++)
        add_param(report, &op->params[i]);
    cli_report_close(report);
    cli_report_close(report);
}

/* "size scale=0.08,1 ratio=...": as a user types it. */
static void print_usage(const PenOp *op)
{
    printf("%s", op->name);
    for (uint32_t i = 0; i < op->n_params; i++) {
        const PenParam *p = &op->params[i];
        if (p->initial)
            printf(" %s=%s", p->name, p->initial);
        else
            printf(" %s", p->name);
    }
    printf("\n    %s\n", op->help);
}

static void print_op(const PenOp *op)
{
    print_usage(op);
    for (uint32_t i = 0; i < op->n_params; i++) {
        const PenParam *p = &op->params[i];
        printf("    %-12s %s%s%s%s\n", p->name, p->help, p->words ? " (" : "",
               p->words ? p->words : "", p->words ? ")" : "");
    }
}

static int show(const CliArgs *args, const PenOp *ops, uint32_t n, void (*print)(const PenOp *op))
{
    CliReport report = {0};
    int code = CLI_EXIT_OK;
    if (args->values[CLI_OPT_JSON].given) {
        cli_report_list(&report, "operations");
        for (uint32_t i = 0; i < n; i++)
            add_op(&report, &ops[i]);
        cli_report_close(&report);
        code = cli_result_print(args, &report, NULL);
    } else {
        for (uint32_t i = 0; i < n; i++)
            print(&ops[i]);
    }
    cli_report_fini(&report);
    return code;
}

static int check(const CliArgs *args, const char *text)
{
    PenError error = {0};
    size_t bytes = 0;
    if (pen_pipeline_check(text, NULL, 0, &bytes, &error) < 0)
        return cli_result_error(args, &error);
    char *full = malloc(bytes + 1);
    if (!full || pen_pipeline_check(text, full, bytes + 1, &bytes, &error) < 0) {
        if (!full)
            cli_fail_memory(&error);
        free(full);
        return cli_result_error(args, &error);
    }
    CliReport report = {0};
    cli_report_text(&report, "pipeline", full);
    int code = cli_result_print(args, &report, full);
    cli_report_fini(&report);
    free(full);
    return code;
}

/* One word is the name of an operation, right or wrong; anything more is a pipeline. */
int cli_ops(const CliArgs *args)
{
    uint32_t n;
    const PenOp *ops = pen_ops(&n);
    if (!args->n_operands)
        return show(args, ops, n, print_usage);
    const char *text = args->operands[0];
    for (uint32_t i = 0; i < n; i++)
        if (strcmp(ops[i].name, text) == 0)
            return show(args, &ops[i], 1, print_op);
    return check(args, text);
}
