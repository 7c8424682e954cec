/* SPDX-License-Identifier: Apache-2.0 */
#include "arguments/help.h"

#include <string.h>

#include "arguments/commands.h"

enum { WIDTH = 80, OPTION_COLUMN = 26 };

/* Writes the words of `text` from column `column` on, never beyond WIDTH; further lines are
 * indented by `indent`. Returns the column it ends in. */
static size_t put_words(FILE *to, const char *text, size_t column, size_t indent)
{
    int first = 1;
    while (*text) {
        size_t n = strcspn(text, " \n");
        if (*text == '\n' || (!first && column + 1 + n > WIDTH)) {
            fprintf(to, "\n%s%*s", *text == '\n' ? "\n" : "", (int)indent, "");
            column = indent;
            first = 1;
        }
        if (*text == '\n') {
            text++;
            continue;
        }
        if (n > 0) {
            column += (size_t)fprintf(to, "%s%.*s", first ? "" : " ", (int)n, text);
            first = 0;
        }
        text += n;
        text += *text == ' ';
    }
    return column;
}

static void put_paragraphs(FILE *to, const char *text)
{
    put_words(to, text, 0, 0);
    fputs("\n", to);
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

/* What stands in parentheses behind an option's text: its words, its default. */
static void option_note(const CliOption *o, char *buf, size_t cap)
{
    char words[128] = "";
    if (o->choices && strchr(o->choices, '|'))
        cli_choice_list(o->choices, UINT32_MAX, words, sizeof words);
    if (o->initial)
        snprintf(buf, cap, " (%s%sdefault: %s)", words, words[0] ? "; " : "", o->initial);
    else if (o->otherwise)
        snprintf(buf, cap, " (without it: %s)", o->otherwise);
    else
        buf[0] = '\0';
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
    snprintf(text, sizeof text, "%s%s", o->help, note);
    put_words(to, text, OPTION_COLUMN, OPTION_COLUMN);
    fputs("\n", to);
}

static void put_options(FILE *to, CliCommandId command, CliOpt first, CliOpt end)
{
    for (CliOpt i = first; i < end; i++)
        if (cli_options[i].commands & 1u << command)
            put_option(to, &cli_options[i]);
}

void cli_help_command(FILE *to, CliCommandId command)
{
    const CliCommand *v = &cli_commands[command];
    fprintf(to, "penstock %s - %s\n\nUsage: penstock %s %s\n\n", v->name, v->summary, v->name,
            v->usage);
    put_paragraphs(to, v->about);
    fputs("\nExamples:\n", to);
    put_lines(to, v->examples);
    fputs("\nOptions:\n", to);
    put_options(to, command, 0, CLI_OPT_WORK);
    if (cli_options[CLI_OPT_ENDPOINT].commands & 1u << command) {
        fputs("\nFor a pack at s3://bucket/name or https://host/path:\n", to);
        put_options(to, command, CLI_OPT_WORK, CLI_N_OPTIONS);
    }
    fputs("\nNext: ", to);
    put_words(to, v->next, strlen("Next: "), 0);
    fputs("\n", to);
}

void cli_help_program(FILE *to)
{
    fputs("penstock - datasets of images in a few large files that can be trusted\n\n"
          "Usage: penstock COMMAND ...\n\nCommands:\n",
          to);
    for (CliCommandId i = 0; i < CLI_N_COMMANDS; i++)
        fprintf(to, "  %-10s %s\n", cli_commands[i].name, cli_commands[i].summary);
    fputs("\nFrom a folder to a pack and back:\n"
          "  penstock pack photos -o photos.pen     folder -> pack, pixels unchanged\n"
          "  penstock info photos.pen               what is in it\n"
          "  penstock verify photos.pen             every byte checked\n"
          "  penstock extract photos.pen -o out     pack -> files\n\n",
          to);
    put_paragraphs(to, "'penstock help COMMAND' or 'penstock COMMAND --help' explains a command; "
                       "'penstock --version' prints the version. Data goes to stdout, messages "
                       "to stderr; every command takes --json. Exit codes: 0 done, 1 failed, 2 "
                       "wrong use, 130 interrupted.");
}
