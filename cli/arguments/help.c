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
            fprintf(to, "\n%*s", (int)indent, "");
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
        put_words(to, paragraph + 2 * is_item, 2 * (size_t)is_item, 4 * (size_t)is_item);
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
    put_words(to, text, OPTION_COLUMN, OPTION_COLUMN);
    fputs("\n", to);
}

static void put_group(FILE *to, CliCommandId command, CliGroup group)
{
    static const char *const titles[CLI_N_GROUPS] = {
        [CLI_GROUP_MAIN] = "Options",
        [CLI_GROUP_INPUT] = "Inputs",
        [CLI_GROUP_IMAGES] = "How images are stored",
        [CLI_GROUP_SAMPLES] = "Samples and classes",
        [CLI_GROUP_BAD] = "Broken inputs",
        [CLI_GROUP_LAYOUT] = "Layout and parts of the pack",
        [CLI_GROUP_DATASET] = "Dataset, if there is no NAME.pen",
        [CLI_GROUP_JOB] = "Training job",
        [CLI_GROUP_LOADER] = "Loader",
        [CLI_GROUP_STORE] = "Network and object store",
        [CLI_GROUP_SIMULATION] = "Simulation",
        [CLI_GROUP_CACHE] = "Cache",
        [CLI_GROUP_REMOTE] = "Remote packs (s3://bucket/name, https://host/path)",
    };
    int any = 0;
    for (CliOpt i = 0; i < CLI_N_OPTIONS; i++) {
        if (cli_options[i].group != group || !(cli_options[i].commands & 1u << command))
            continue;
        if (!any)
            fprintf(to, "\n%s:\n", titles[group]);
        put_option(to, &cli_options[i]);
        any = 1;
    }
}

void cli_help_command(FILE *to, CliCommandId command)
{
    const CliCommand *c = &cli_commands[command];
    fprintf(to, "penstock %s - %s\n\nUsage: penstock %s %s\n\n", c->name, c->summary, c->name,
            c->usage);
    put_paragraphs(to, c->about);
    fputs("\nExamples:\n", to);
    put_lines(to, c->examples);
    for (CliGroup i = 0; i < CLI_N_GROUPS; i++)
        put_group(to, command, i);
    fputs("\nNext: ", to);
    put_words(to, c->next, strlen("Next: "), 0);
    fputs("\n", to);
}

void cli_help_program(FILE *to)
{
    fputs("penstock - pack images and clips into a few large files, and load them fast\n\n"
          "Usage: penstock COMMAND [arguments] [options]\n\nCommands:\n",
          to);
    for (CliCommandId i = 0; i < CLI_N_COMMANDS; i++)
        fprintf(to, "  %-10s %s\n", cli_commands[i].name, cli_commands[i].summary);
    fputs("\nExamples:\n"
          "  penstock pack photos -o photos.pen     pack a folder; pixels are unchanged\n"
          "  penstock info photos.pen               show what the pack contains\n"
          "  penstock verify photos.pen             check every byte\n"
          "  penstock extract photos.pen -o out     write the samples back to files\n\n",
          to);
    put_paragraphs(
        to, "'penstock help COMMAND' explains a command. 'penstock --version' prints the version.\n"
            "Results go to stdout, messages and progress to stderr. Every command accepts --json; "
            "names "
            "of JSON members end in the unit of the value (_bytes, _seconds, _ms). Exit codes: 0 "
            "success, 1 failure, 2 wrong usage, 130 interrupted.");
}
