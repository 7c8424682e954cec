/* SPDX-License-Identifier: Apache-2.0 */
#include "arguments/help.h"

#include <string.h>

#include "arguments/commands.h"
#include "output/text.h"

enum { OPTION_COLUMN = 26 };

/* Paragraphs end in "\n". Those that begin with two spaces are items of a list: they have no empty
 * lines between them. */
static void put_paragraphs(FILE *to, const char *text)
{
    char paragraph[1024];
    int was_item = 0;
    for (int first = 1; *text; first = 0) {
        size_t n = strcspn(text, "\n");
        int is_item = strncmp(text, "  ", 2) == 0;
        snprintf(paragraph, sizeof paragraph, "%.*s", (int)n, text);
        if (!first && !(is_item && was_item))
            fputs("\n", to);
        if (is_item)
            fputs("  ", to);
        cli_text_words(to, paragraph + 2 * is_item, 2 * (size_t)is_item, 4 * (size_t)is_item);
        fputs("\n", to);
        was_item = is_item;
        text += n;
        text += *text == '\n';
    }
}

static void put_lines(FILE *to, const char *lines)
{
    while (*lines) {
        size_t n = strcspn(lines, "\n");
        fprintf(to, "  %.*s\n", (int)n, lines);
        lines += n;
        lines += *lines != '\0';
    }
}

/* The choices, if the text does not list them, and the default of an option, in parentheses. */
static void option_note(const CliOption *o, char *buf, size_t cap)
{
    const char *value = o->initial ? o->initial : o->otherwise;
    char words[128] = "";
    buf[0] = '\0';
    if (o->choices && strchr(o->choices, '|') && !strchr(o->help, '\n'))
        cli_choice_list(o->choices, UINT32_MAX, words, sizeof words);
    if (value)
        snprintf(buf, cap, " (%s%sdefault: %s)", words, words[0] ? "; " : "", value);
}

static void put_option(FILE *to, const CliOption *o)
{
    char text[640], head[64], note[256];
    snprintf(head, sizeof head, "  %c%c%s--%s%s%s", o->letter ? '-' : ' ',
             o->letter ? o->letter : ' ', o->letter ? ", " : "  ", o->name, o->value ? " " : "",
             o->value ? o->value : "");
    fputs(head, to);
    if (strlen(head) + 2 > OPTION_COLUMN)
        fprintf(to, "\n%*s", OPTION_COLUMN, "");
    else
        fprintf(to, "%*s", OPTION_COLUMN - (int)strlen(head), "");
    option_note(o, note, sizeof note);
    int first = (int)strcspn(o->help, "\n");
    snprintf(text, sizeof text, "%.*s%s%s", first, o->help, note, o->help + first);
    cli_text_words(to, text, OPTION_COLUMN, OPTION_COLUMN);
    fputs("\n", to);
}

static int is_shown(CliOpt opt, CliCommandId command, CliGroup group)
{
    return cli_options[opt].group == group && cli_options[opt].commands & 1u << command;
}

static const char *group_title(CliCommandId command, CliGroup group)
{
    for (CliOpt i = 0; i < CLI_N_OPTIONS && group == CLI_GROUP_COMMON; i++)
        if (cli_options[i].group != group && cli_options[i].commands & 1u << command)
            return cli_group_titles[group];
    return group == CLI_GROUP_COMMON ? "Options" : cli_group_titles[group];
}

static void put_group(FILE *to, CliCommandId command, CliGroup group)
{
    int any = 0;
    for (CliOpt i = 0; i < CLI_N_OPTIONS; i++) {
        if (!is_shown(i, command, group))
            continue;
        if (!any)
            fprintf(to, "\n%s:\n", group_title(command, group));
        put_option(to, &cli_options[i]);
        any = 1;
    }
}

/* Only the names: cli_help_s3 explains them, once for all commands. */
static void put_remote(FILE *to, CliCommandId command)
{
    char names[256] = "";
    size_t used = 0;
    for (CliOpt i = 0; i < CLI_N_OPTIONS && used < sizeof names; i++)
        if (is_shown(i, command, CLI_GROUP_REMOTE))
            used += (size_t)snprintf(names + used, sizeof names - used, "%s--%s", used ? ", " : "",
                                     cli_options[i].name);
    if (used == 0)
        return;
    fprintf(to, "\n%s:\n  ", cli_group_titles[CLI_GROUP_REMOTE]);
    cli_text_words(to, names, 2, 2);
    fputs("\n  'penstock help s3' explains these options.\n", to);
}

void cli_help_command(FILE *to, CliCommandId command)
{
    const CliCommand *c = &cli_commands[command];
    fprintf(to, "penstock %s - %s\n\nUsage: penstock %s %s\n\n", c->name, c->summary, c->name,
            c->usage);
    put_paragraphs(to, c->about);
    fputs("\nExamples:\n", to);
    put_lines(to, c->examples);
    for (CliGroup i = 0; i < CLI_GROUP_REMOTE; i++)
        put_group(to, command, i);
    put_remote(to, command);
    fputs("\nNext: ", to);
    cli_text_words(to, c->next, strlen("Next: "), 0);
    fputs("\n", to);
}

/* "pack, gc and copy": the commands in `mask`. */
static void command_list(uint32_t mask, char *buf, size_t cap)
{
    size_t used = 0;
    for (CliCommandId i = 0; i < CLI_N_COMMANDS && used < cap; i++) {
        if (!(mask >> i & 1))
            continue;
        const char *before = used == 0 ? "" : mask >> i == 1 ? " and " : ", ";
        used += (size_t)snprintf(buf + used, cap - used, "%s%s", before, cli_commands[i].name);
    }
}

static void put_option_owners(FILE *to, const CliOption *o)
{
    char commands[128], text[160];
    command_list(o->commands, commands, sizeof commands);
    snprintf(text, sizeof text, "Options of %s:", commands);
    fputs("\n", to);
    cli_text_words(to, text, 0, 0);
    fputs("\n", to);
}

void cli_help_s3(FILE *to)
{
    const CliTopic *topic = &cli_topic_s3;
    uint32_t owners = 0;
    fprintf(to, "penstock help %s - %s\n\n", topic->name, topic->summary);
    put_paragraphs(to, topic->about);
    fputs("\nExamples:\n", to);
    put_lines(to, topic->examples);
    for (CliOpt i = 0; i < CLI_N_OPTIONS; i++) {
        if (cli_options[i].group != CLI_GROUP_REMOTE)
            continue;
        if (cli_options[i].commands != owners)
            put_option_owners(to, &cli_options[i]);
        put_option(to, &cli_options[i]);
        owners = cli_options[i].commands;
    }
}

void cli_help_program(FILE *to)
{
    fprintf(to, "%s - %s\n\nUsage: penstock COMMAND [arguments] [options]\n\nCommands:\n",
            cli_program.name, cli_program.summary);
    for (CliCommandId i = 0; i < CLI_N_COMMANDS; i++)
        fprintf(to, "  %-10s %s\n", cli_commands[i].name, cli_commands[i].summary);
    fputs("\nExamples:\n", to);
    put_lines(to, cli_program.examples);
    fputs("\n", to);
    put_paragraphs(to, cli_program.about);
}
