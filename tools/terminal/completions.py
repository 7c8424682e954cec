#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Write the completions of bash, zsh and fish from the table of commands and options.

    completions.py TABLE BASH ZSH FISH

TABLE is what `penstock help --json` prints; the others are the files to write.
"""

import json
import pathlib
import re
import sys


def value_kind(option):
    """What follows an option: "none", "choices", "directories", "files" or "text"."""
    argument = option.get("argument")
    if argument is None:
        return "none"
    if "choices" in option:
        return "choices"
    if option["kind"] != "text":
        return "text"
    return {"DIR": "directories", "FILE": "files", "NAME.pen": "files", "P.pen": "files"}.get(
        argument, "text")


def takes_files(command):
    return re.search(r"SRC|DIR|\.pen", command["usage"]) is not None


def short(text):
    """The first part of an explanation, for one line of a menu."""
    return re.split(r"[;\n]|(?<=\w)\. | \(", text)[0]


def names(command):
    return [command["name"], command["alias"]] if "alias" in command else [command["name"]]


def flags(option):
    return ([f"-{option['letter']}"] if "letter" in option else []) + [f"--{option['name']}"]


def commands_and(table, *more):
    """Without aliases: one of two spellings is enough to offer."""
    return " ".join([command["name"] for command in table["commands"]] + list(more))


def topics(table):
    return commands_and(table, *(topic["name"] for topic in table["topics"]))


BASH = """\
# Completion of penstock for bash. Made from `penstock help --json` by
# tools/terminal/completions.py.

# The words to complete from. Files are bash's own default, which is off if there is nothing.
_penstock_words()
{
    compopt +o default 2>/dev/null
    mapfile -t COMPREPLY < <(compgen -W "$1" -- "$2")
}

_penstock_directories()
{
    compopt +o default -o dirnames 2>/dev/null
}

# The value of option $2 of command $1, as far as it is typed: $3. Fails if no value follows.
_penstock_value()
{
    case "$1 $2" in
@VALUES@
    *) return 1 ;;
    esac
}

_penstock()
{
    local command=${COMP_WORDS[1]} word=${COMP_WORDS[COMP_CWORD]} before
    local option=${COMP_WORDS[COMP_CWORD - 1]}
    COMPREPLY=()
    if ((COMP_CWORD == 1)); then
        _penstock_words "@WORDS@ --help --version" "$word"
        return
    fi
    # --name=value is three words.
    if [[ $word == = ]]; then
        word=
    elif [[ $option == = ]]; then
        option=${COMP_WORDS[COMP_CWORD - 2]}
    fi
    for before in "${COMP_WORDS[@]:2:COMP_CWORD-2}"; do
        [[ $before == -- ]] && return
    done
    _penstock_value "$command" "$option" "$word" && return
    case $command in
    help) _penstock_words "@TOPICS@" "$word" ;;
@OPTIONS@
    esac
}

complete -o default -F _penstock penstock
"""


def bash_value(option):
    return {
        "choices": '_penstock_words "%s" "$3"' % " ".join(option.get("choices", [])),
        "directories": "_penstock_directories",
        "files": ":",
        "text": '_penstock_words "" "$3"',
    }[value_kind(option)]


def bash(table):
    values, options = [], []
    for command in table["commands"]:
        for option in command["options"]:
            if value_kind(option) != "none":
                cases = " | ".join(f'"{name} {flag}"' for name in names(command)
                                   for flag in flags(option))
                values.append(f"    {cases}) {bash_value(option)} ;;")
        own = " ".join(flag for option in command["options"] for flag in flags(option))
        test = "[[ $word == -* ]] && " if takes_files(command) else ""
        case = " | ".join(names(command))
        options.append(f'    {case}) {test}_penstock_words "{own}" "$word" ;;')
    return fill(BASH, VALUES="\n".join(values), OPTIONS="\n".join(options),
                WORDS=commands_and(table, "help"), TOPICS=topics(table))


ZSH = """\
#compdef penstock
# Completion of penstock for zsh. Made from `penstock help --json` by
# tools/terminal/completions.py.

_penstock()
{
    local curcontext=$curcontext state line
    local -a commands
    typeset -A opt_args
    commands=(
@COMMANDS@
    )
    _arguments -C '(- *)'{-h,--help}'[list the commands]' \\
        '(- *)'{-V,--version}'[print the version]' \\
        '1: :->command' '*:: :->arguments'
    case $state in
    command) _describe command commands ;;
    arguments)
        case $line[1] in
        help) _values topic @TOPICS@ ;;
@OPTIONS@
        esac
        ;;
    esac
}

_penstock "$@"
"""


def zsh_text(text):
    return re.sub(r"([\\\[\]:])", r"\\\1", text).replace("'", "'\\''")


def zsh_option(option):
    action = {
        "choices": "(%s)" % " ".join(option.get("choices", [])),
        "directories": "_files -/",
        "files": "_files",
        "text": " ",
        "none": "",
    }[value_kind(option)]
    value = f":{zsh_text(option['argument'])}:{action}" if action else ""
    again = "*" if option["repeatable"] else ""
    forms = flags(option)
    exclude = f"'({' '.join(forms)})'" if len(forms) > 1 and not again else ""
    signs = {2: "=" if action else "", 1: "+" if action else ""}
    typed = [form + signs[2 if form.startswith("--") else 1] for form in forms]
    spec = "{%s}" % ",".join(typed) if len(typed) > 1 else typed[0]
    repeat = f"'{again}'" if again else ""
    return f"{exclude}{repeat}{spec}'[{zsh_text(short(option['text']))}]{value}'"


def zsh(table):
    commands, options = [], []
    for command in table["commands"]:
        commands.append(f"        '{command['name']}:{zsh_text(command['summary'])}'")
        specs = [zsh_option(option) for option in command["options"]]
        if takes_files(command):
            specs.append("'*:file:_files'")
        options.append(f"        {' | '.join(names(command))})\n            _arguments -s \\\n"
                       + " \\\n".join(f"                {spec}" for spec in specs)
                       + "\n            ;;")
    commands.append("        'help:explain a command'")
    return fill(ZSH, COMMANDS="\n".join(commands), OPTIONS="\n".join(options),
                TOPICS=topics(table))


def fish_text(text):
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"


def fish_option(option):
    form = f"-l {option['name']}" + (f" -s {option['letter']}" if "letter" in option else "")
    value = {
        "choices": "-x -a " + fish_text(" ".join(option.get("choices", []))),
        "directories": "-x -a '(__fish_complete_directories)'",
        "files": "-r -F",
        "text": "-x",
        "none": "",
    }[value_kind(option)]
    return " ".join(part for part in (form, value, "-d", fish_text(short(option["text"]))) if part)


def fish(table):
    first = "complete -c penstock -n __fish_use_subcommand"
    lines = ["# Completion of penstock for fish. Made from `penstock help --json` by",
             "# tools/terminal/completions.py.", "",
             f"{first} -f -l help -s h -d 'list the commands'",
             f"{first} -f -l version -s V -d 'print the version'",
             f"{first} -f -a help -d 'explain a command'"]
    for command in table["commands"]:
        lines.append(f"{first} -f -a {command['name']} -d {fish_text(command['summary'])}")
    lines.append("complete -c penstock -n '__fish_seen_subcommand_from help' -f -a "
                 + fish_text(topics(table)))
    for command in table["commands"]:
        seen = f"complete -c penstock -n '__fish_seen_subcommand_from {' '.join(names(command))}'"
        if not takes_files(command):
            lines.append(f"{seen} -f")
        lines += [f"{seen} {fish_option(option)}" for option in command["options"]]
    return "\n".join(lines) + "\n"


def fill(template, **parts):
    for name, text in parts.items():
        template = template.replace(f"@{name}@", text)
    return template


def main(table_file, *outputs):
    table = json.loads(pathlib.Path(table_file).read_text())
    for output, make in zip(outputs, (bash, zsh, fish)):
        pathlib.Path(output).write_text(make(table))


if __name__ == "__main__":
    main(*sys.argv[1:])
