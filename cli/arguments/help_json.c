/* SPDX-License-Identifier: Apache-2.0 */
/* The tables of commands and options as JSON, for programs: man pages, completions and the site are
 * made from it. */
#include "arguments/help.h"

#include <string.h>

#include <penstock/version.h>

#include "output/report.h"

/* A list of the parts of `text` between separators. */
static void add_parts(CliReport *report, const char *name, const char *text, const char *separator)
{
    cli_report_list(report, name);
    while (text && *text) {
        size_t n = strcspn(text, separator);
        cli_report_bytes(report, NULL, text, n);
        text += n;
        text += *text != '\0';
    }
    cli_report_close(report);
}

/* Leaves out what an option does not have. */
static void add_text(CliReport *report, const char *name, const char *text)
{
    if (text)
        cli_report_text(report, name, text);
}

static const char *kind_name(CliArgKind kind)
{
    static const char *const names[] = {
        [CLI_ARG_FLAG] = "flag",   [CLI_ARG_TEXT] = "text",     [CLI_ARG_NUMBER] = "integer",
        [CLI_ARG_BYTES] = "bytes", [CLI_ARG_SHARE] = "number",  [CLI_ARG_REAL] = "number",
        [CLI_ARG_RATE] = "number", [CLI_ARG_CHOICE] = "choice", [CLI_ARG_TASK] = "task",
        [CLI_ARG_RANGE] = "range",
    };
    return names[kind];
}

static void add_option(CliReport *report, const CliOption *o)
{
    char letter[2] = {o->letter, '\0'};
    cli_report_object(report, NULL);
    cli_report_text(report, "name", o->name);
    add_text(report, "letter", o->letter ? letter : NULL);
    cli_report_text(report, "kind", kind_name(o->kind));
    add_text(report, "argument", o->value);
    if (o->choices)
        add_parts(report, "choices", o->choices, "|");
    add_text(report, "default", o->initial ? o->initial : o->otherwise);
    cli_report_bool(report, "required", o->required);
    cli_report_bool(report, "repeatable", o->many);
    cli_report_text(report, "group", cli_group_titles[o->group]);
    cli_report_text(report, "text", o->help);
    cli_report_close(report);
}

static void add_options(CliReport *report, CliCommandId command)
{
    cli_report_list(report, "options");
    for (CliGroup g = 0; g < CLI_N_GROUPS; g++)
        for (CliOpt i = 0; i < CLI_N_OPTIONS; i++)
            if (cli_options[i].group == g && cli_options[i].commands & 1u << command)
                add_option(report, &cli_options[i]);
    cli_report_close(report);
}

static void add_command(CliReport *report, CliCommandId command)
{
    const CliCommand *c = &cli_commands[command];
    cli_report_object(report, NULL);
    cli_report_text(report, "name", c->name);
    add_text(report, "alias", c->also);
    cli_report_text(report, "summary", c->summary);
    cli_report_text(report, "usage", c->usage);
    cli_report_number(report, "schema", c->schema);
    cli_report_bool(report, "takes_arguments", !c->never);
    add_parts(report, "about", c->about, "\n");
    add_parts(report, "examples", c->examples, "\n");
    cli_report_text(report, "next", c->next);
    add_options(report, command);
    cli_report_close(report);
}

static void add_topic(CliReport *report, const CliTopic *topic)
{
    cli_report_object(report, NULL);
    cli_report_text(report, "name", topic->name);
    cli_report_text(report, "summary", topic->summary);
    add_parts(report, "about", topic->about, "\n");
    add_parts(report, "examples", topic->examples, "\n");
    cli_report_text(report, "group", cli_group_titles[CLI_GROUP_REMOTE]);
    cli_report_close(report);
}

int cli_help_json(FILE *to, PenError *reterr)
{
    CliReport report = {0};
    cli_report_text(&report, "version", pen_version());
    cli_report_text(&report, "summary", cli_program.summary);
    add_parts(&report, "about", cli_program.about, "\n");
    add_parts(&report, "examples", cli_program.examples, "\n");
    cli_report_list(&report, "commands");
    for (CliCommandId i = 0; i < CLI_N_COMMANDS; i++)
        add_command(&report, i);
    cli_report_close(&report);
    cli_report_list(&report, "topics");
    add_topic(&report, &cli_topic_s3);
    cli_report_close(&report);
    int r = cli_report_print_json(&report, CLI_HELP_SCHEMA, to, reterr);
    cli_report_fini(&report);
    return r;
}
