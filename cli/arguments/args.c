/* SPDX-License-Identifier: Apache-2.0 */
#include "arguments/args.h"

#include <stdlib.h>
#include <string.h>

#include "output/messages.h"

typedef struct Parser {
    CliArgs *args;
    int argc, at;
    char **argv;
} Parser;

static int is_remote(CliCommandId command, const char *option)
{
    CliOpt opt = cli_option_find(command, option, strlen(option), 0);
    return cli_options[opt].group == CLI_GROUP_REMOTE;
}

static int fail_unknown(CliCommandId command, const char *word, size_t bytes, PenError *reterr)
{
    char name[32];
    const char *own = cli_commands[command].name;
    if (bytes < sizeof name) {
        memcpy(name, word, bytes);
        name[bytes] = '\0';
        const char *near = cli_option_near(command, name);
        CliOpt other = cli_option_find(command, name, bytes, 1);
        if (near && is_remote(command, near))
            return cli_fail(reterr, PEN_E_INVALID,
                            "unknown option --%s; did you mean --%s? 'penstock help s3' explains "
                            "it",
                            name, near);
        if (near)
            return cli_fail(
                reterr, PEN_E_INVALID,
                "unknown option --%s; did you mean --%s? 'penstock %s --help' explains it", name,
                near, own);
        if (other < CLI_N_OPTIONS)
            return cli_fail(reterr, PEN_E_INVALID,
                            "%s has no option --%s; 'penstock %s --help' lists its options", own,
                            name, own);
    }
    return cli_fail(reterr, PEN_E_INVALID,
                    "unknown option --%.*s; 'penstock %s --help' lists the options",
                    (int)(bytes < 200 ? bytes : 200), word, own);
}

static int store(CliArgs *args, CliOpt opt, const char *text, PenError *reterr)
{
    const CliOption *o = &cli_options[opt];
    CliValue value = {.given = 1};
    int r = cli_value_parse(o, text, &value, reterr);
    if (r < 0)
        return r;
    if (args->values[opt].given && !o->many && o->kind != CLI_ARG_FLAG)
        return cli_fail(reterr, PEN_E_INVALID, "--%s is given twice: %s and %s", o->name,
                        args->values[opt].text, text);
    if (o->many)
        args->items[args->n_items++] = (CliItem){.opt = opt, .value = value};
    args->values[opt] = value;
    return PEN_OK;
}

/* `attached` is the value in --name=value or -nvalue, or NULL. */
static int take_option(Parser *p, CliOpt opt, const char *attached, PenError *reterr)
{
    const CliOption *o = &cli_options[opt];
    if (o->kind == CLI_ARG_FLAG) {
        if (attached)
            return cli_fail(reterr, PEN_E_INVALID, "--%s takes no value, found %s", o->name,
                            attached);
        return store(p->args, opt, "", reterr);
    }
    if (attached)
        return store(p->args, opt, attached, reterr);
    const char *next = p->at < p->argc ? p->argv[p->at] : NULL;
    if (!next)
        return cli_fail(reterr, PEN_E_INVALID, "--%s needs a value: --%s %s", o->name, o->name,
                        o->value);
    if (next[0] == '-' && next[1] == '-')
        return cli_fail(reterr, PEN_E_INVALID,
                        "--%s needs a value, found %s; if that is the value, write --%s=%s",
                        o->name, next, o->name, next);
    p->at++;
    return store(p->args, opt, next, reterr);
}

static int take_long(Parser *p, const char *word, PenError *reterr)
{
    size_t bytes = strcspn(word, "=");
    CliOpt opt = cli_option_find(p->args->command, word, bytes, 0);
    if (opt == CLI_N_OPTIONS)
        return fail_unknown(p->args->command, word, bytes, reterr);
    return take_option(p, opt, word[bytes] == '=' ? word + bytes + 1 : NULL, reterr);
}

static int take_short(Parser *p, const char *word, PenError *reterr)
{
    CliCommandId command = p->args->command;
    for (CliOpt i = 0; i < CLI_N_OPTIONS; i++)
        if (cli_options[i].letter == word[0] && cli_options[i].commands & 1u << command)
            return take_option(p, i, word[1] ? word + 1 : NULL, reterr);
    /* For example -quality, which lacks a dash. */
    if (cli_option_find(command, word, strcspn(word, "="), 0) < CLI_N_OPTIONS)
        return cli_fail(reterr, PEN_E_INVALID, "unknown option -%s; did you mean --%s?", word,
                        word);
    return cli_fail(reterr, PEN_E_INVALID,
                    "unknown option -%s; 'penstock %s --help' lists the options", word,
                    cli_commands[command].name);
}

static int take_words(Parser *p, PenError *reterr)
{
    int options_ended = 0, r = PEN_OK;
    while (r == PEN_OK && p->at < p->argc) {
        const char *word = p->argv[p->at++];
        if (options_ended || word[0] != '-' || word[1] == '\0')
            p->args->operands[p->args->n_operands++] = word;
        else if (strcmp(word, "--") == 0)
            options_ended = 1;
        else if (word[1] == '-')
            r = take_long(p, word + 2, reterr);
        else
            r = take_short(p, word + 1, reterr);
    }
    return r;
}

static int fill_defaults(CliArgs *args, PenError *reterr)
{
    for (CliOpt i = 0; i < CLI_N_OPTIONS; i++) {
        if (args->values[i].given || !cli_options[i].initial)
            continue;
        int r = cli_value_parse(&cli_options[i], cli_options[i].initial, &args->values[i], reterr);
        if (r < 0)
            return r;
    }
    return PEN_OK;
}

static int count_operands(const CliArgs *args, PenError *reterr)
{
    const CliCommand *command = &cli_commands[args->command];
    if (args->n_operands == 0 && !command->none)
        return cli_fail(reterr, PEN_E_INVALID, "%s needs %s: penstock %s %s", command->name,
                        command->operand_help, command->name, command->usage);
    if (args->n_operands && command->never)
        return cli_fail(reterr, PEN_E_INVALID, "%s takes no argument, found: %s", command->name,
                        args->operands[0]);
    if (command->two && args->n_operands != 2)
        return cli_fail(reterr, PEN_E_INVALID, "%s takes two arguments, found %zu: penstock %s %s",
                        command->name, args->n_operands, command->name, command->usage);
    if (args->n_operands > 1 && !command->many && !command->two)
        return cli_fail(reterr, PEN_E_INVALID, "%s takes one argument, found another: %s",
                        command->name, args->operands[1]);
    return PEN_OK;
}

static int check_operands(const CliArgs *args, PenError *reterr)
{
    const CliCommand *command = &cli_commands[args->command];
    int r = count_operands(args, reterr);
    if (r < 0)
        return r;
    for (size_t i = 0; i < args->n_operands; i++)
        if (args->operands[i][0] == '\0')
            return cli_fail(reterr, PEN_E_INVALID, "argument %zu of %s is empty", i + 1,
                            command->name);
    for (CliOpt i = 0; i < CLI_N_OPTIONS; i++)
        if (cli_options[i].required && cli_options[i].commands & 1u << args->command &&
            !args->values[i].given)
            return cli_fail(reterr, PEN_E_INVALID, "%s needs --%s %s: penstock %s %s",
                            command->name, cli_options[i].name, cli_options[i].value, command->name,
                            command->usage);
    return PEN_OK;
}

static int check_mode(const CliArgs *args, const CliOption *o, PenError *reterr)
{
    const CliValue *mode = &args->values[CLI_OPT_MODE];
    char list[128];
    if (o->modes == 0 || o->modes & 1u << mode->number)
        return PEN_OK;
    cli_choice_list(cli_options[CLI_OPT_MODE].choices, o->modes, list, sizeof list);
    return cli_fail(
        reterr, PEN_E_INVALID,
        "--%s applies to --mode %s, but the mode is %s; leave it out or change the mode", o->name,
        list, mode->text);
}

/* Mode mix encodes only images that it resizes. */
static int check_mix(const CliArgs *args, PenError *reterr)
{
    const CliValue *v = args->values;
    CliOpt given = v[CLI_OPT_QUALITY].given ? CLI_OPT_QUALITY : CLI_OPT_CODEC;
    if (!v[given].given || strcmp(v[CLI_OPT_MODE].text, "mix") != 0 || v[CLI_OPT_MAX_SIDE].given ||
        v[CLI_OPT_SHORT_SIDE].given)
        return PEN_OK;
    const char *name = cli_options[given].name;
    return cli_fail(reterr, PEN_E_INVALID,
                    "--mode mix applies --%s only to resized images; add --max-side or "
                    "--short-side, or leave --%s out",
                    name, name);
}

/* Videos that are kept have no frames that a mode could store. */
static int check_videos(const CliArgs *args, PenError *reterr)
{
    const CliValue *v = args->values;
    int keeps = strcmp(v[CLI_OPT_VIDEO].text, "keep") == 0;
    if (keeps && v[CLI_OPT_MODE].number != 0)
        return cli_fail(reterr, PEN_E_INVALID,
                        "--video keep stores video files as they are, but --mode %s is for "
                        "frames; leave one of them out",
                        v[CLI_OPT_MODE].text);
    return PEN_OK;
}

/* The options of an analysis do nothing without it. */
static int check_analyse(const CliArgs *args, PenError *reterr)
{
    const CliValue *v = args->values;
    if (args->command != CLI_INFO || v[CLI_OPT_ANALYSE].given)
        return PEN_OK;
    CliOpt given = v[CLI_OPT_CSV].given ? CLI_OPT_CSV : CLI_OPT_THREADS;
    return v[given].given ? cli_fail(reterr, PEN_E_INVALID,
                                     "--%s needs --analyse; add --analyse or leave it out",
                                     cli_options[given].name)
                          : PEN_OK;
}

static int check_combinations(const CliArgs *args, PenError *reterr)
{
    for (size_t i = 0; i < cli_n_conflicts; i++) {
        const CliConflict *c = &cli_conflicts[i];
        if (args->values[c->a].given && args->values[c->b].given)
            return cli_fail(reterr, PEN_E_INVALID, "--%s and --%s cannot be combined; %s",
                            cli_options[c->a].name, cli_options[c->b].name, c->advice);
    }
    for (CliOpt i = 0; i < CLI_N_OPTIONS; i++) {
        const CliOption *o = &cli_options[i];
        if (!args->values[i].given)
            continue;
        int r = check_mode(args, o, reterr);
        if (r < 0)
            return r;
        if (o->needs_skip && strcmp(args->values[CLI_OPT_ON_BAD].text, "skip") != 0)
            return cli_fail(reterr, PEN_E_INVALID,
                            "--%s needs --on-bad skip; add --on-bad skip or leave it out", o->name);
    }
    int r = check_mix(args, reterr);
    if (r == PEN_OK)
        r = check_videos(args, reterr);
    return r < 0 ? r : check_analyse(args, reterr);
}

int cli_args_parse(CliCommandId command, int argc, char **argv, CliArgs *ret, PenError *reterr)
{
    *ret = (CliArgs){.command = command};
    ret->items = calloc((size_t)argc + 1, sizeof *ret->items);
    ret->operands = calloc((size_t)argc + 1, sizeof *ret->operands);
    if (!ret->items || !ret->operands)
        return cli_fail_memory(reterr);
    Parser parser = {.args = ret, .argc = argc, .argv = argv};
    int r = take_words(&parser, reterr);
    if (r < 0 || ret->values[CLI_OPT_HELP].given)
        return r;
    r = fill_defaults(ret, reterr);
    if (r == PEN_OK)
        r = check_operands(ret, reterr);
    return r == PEN_OK ? check_combinations(ret, reterr) : r;
}

void cli_args_fini(CliArgs *args)
{
    free(args->items);
    free(args->operands);
    *args = (CliArgs){0};
}
