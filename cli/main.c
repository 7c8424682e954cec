/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "arguments/commands.h"
#include "arguments/help.h"
#include "output/messages.h"

/* Commands that are written in Python, and not part of this program. */
static int is_of_python(const char *word)
{
    return strcmp(word, "trace") == 0 || strcmp(word, "convert") == 0 || strcmp(word, "ray") == 0;
}

static int unknown_command(const char *word)
{
    const char *near = cli_command_near(word);
    if (is_of_python(word))
        cli_print_message("%s is a command of the Python package; run 'python3 -m penstock %s'",
                          word, word);
    else if (near)
        cli_print_message("unknown command %s; did you mean %s? 'penstock --help' lists all", word,
                          near);
    else
        cli_print_message("unknown command %s; 'penstock --help' lists all", word);
    return CLI_EXIT_USAGE;
}

static int print_help_json(void)
{
    PenError error = {0};
    if (cli_help_json(stdout, &error) == PEN_OK)
        return CLI_EXIT_OK;
    cli_print_error(&error);
    return CLI_EXIT_FAILURE;
}

static int print_help_about(const char *name)
{
    CliCommandId command = cli_command_find(name);
    if (strcmp(name, cli_topic_s3.name) == 0)
        cli_help_s3(stdout);
    else if (command < CLI_N_COMMANDS)
        cli_help_command(stdout, command);
    else
        return unknown_command(name);
    return CLI_EXIT_OK;
}

static int print_help(const char *about)
{
    if (about && strcmp(about, "--json") == 0)
        return print_help_json();
    if (about)
        return print_help_about(about);
    cli_help_program(stdout);
    return CLI_EXIT_OK;
}

static int run_command(CliCommandId command, int argc, char **argv)
{
    CliArgs args;
    PenError error = {0};
    int code;
    int r = cli_args_parse(command, argc, argv, &args, &error);
    if (r < 0) {
        cli_print_error(&error);
        code = r == PEN_E_INVALID ? CLI_EXIT_USAGE : CLI_EXIT_FAILURE;
    } else if (args.values[CLI_OPT_HELP].given) {
        cli_help_command(stdout, command);
        code = CLI_EXIT_OK;
    } else {
        code = cli_commands[command].run(&args);
    }
    cli_args_fini(&args);
    return code;
}

static int run(int argc, char **argv)
{
    if (argc < 2) {
        cli_help_program(stderr);
        return CLI_EXIT_USAGE;
    }
    const char *word = argv[1];
    if (strcmp(word, "--version") == 0 || strcmp(word, "-V") == 0)
        return cli_version(argc > 2 && strcmp(argv[2], "--json") == 0);
    if (strcmp(word, "--help") == 0 || strcmp(word, "-h") == 0 || strcmp(word, "help") == 0)
        return print_help(argc > 2 ? argv[2] : NULL);
    if (word[0] == '-') {
        cli_print_message("the command comes before its options, found %s; 'penstock --help' "
                          "lists the commands",
                          word);
        return CLI_EXIT_USAGE;
    }
    CliCommandId command = cli_command_find(word);
    return command == CLI_N_COMMANDS ? unknown_command(word)
                                     : run_command(command, argc - 2, argv + 2);
}

int main(int argc, char **argv)
{
    /* Beyond the limit of ulimit -f, a write then fails with a message instead of a signal. */
    (void)signal(SIGXFSZ, SIG_IGN);
    int code = run(argc, argv);
    /* If the disk is full, the result was not printed. */
    errno = 0;
    if (fflush(stdout) != 0 || ferror(stdout)) {
        cli_print_message("stdout: cannot write the result: %s", errno == EFBIG ? CLI_TOO_LARGE
                                                                 : errno        ? strerror(errno)
                                                                                : "write failed");
        return code == CLI_EXIT_OK ? CLI_EXIT_FAILURE : code;
    }
    return code;
}
