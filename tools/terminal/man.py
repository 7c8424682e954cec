#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Write the man pages from the table of commands and options.

    man.py TABLE OUT.1...

TABLE is what `penstock help --json` prints. The files must be penstock.1 and one penstock-COMMAND.1
for each command.
"""

import datetime
import json
import os
import pathlib
import re
import sys

ESCAPES = str.maketrans({"\\": "\\e", "'": "\\(aq", "~": "\\(ti", "^": "\\(ha", "`": "\\(ga"})


def plain(text):
    """Text as it is: a dot at the start of a line is no request, a hyphen stays one to copy."""
    return re.sub(r"^\.", r"\\&.", text.translate(ESCAPES).replace("-", "\\-"), flags=re.M)


def prose(text):
    """Running text, with the names of options in bold."""
    parts = re.split(r"(?<![\w-])(--[a-z][a-z0-9-]*)", text)
    return "".join(f"\\fB{plain(part)}\\fP" if at % 2 else
                   re.sub(r"^\.", r"\\&.", part.translate(ESCAPES))
                   for at, part in enumerate(parts))


def paragraphs(about):
    """Paragraphs that start with two spaces are the items of a list."""
    for text in about:
        if text.startswith("  "):
            yield from (".IP \\(bu 2", prose(text.strip()))
        else:
            yield from (".PP", prose(text))


def option(one):
    names = [f"\\fB\\-{one['letter']}\\fP"] if "letter" in one else []
    names.append(f"\\fB{plain('--' + one['name'])}\\fP")
    argument = f" \\fI{plain(one['argument'])}\\fP" if "argument" in one else ""
    first, *rest = one["text"].split("\n")
    if "choices" in one and not rest and len(one["choices"]) > 1:
        first += " (" + ", ".join(one["choices"]) + ")"
    if "default" in one:
        first += f" (default: {one['default']})"
    yield ".TP"
    yield ", ".join(names) + argument
    yield prose(first)
    for line in rest:
        yield from (".br", prose(line))


def options(of):
    group = None
    for one in of:
        if one["group"] != group:
            group = one["group"]
            yield f'.SS "{plain(group)}"'
        yield from option(one)


def examples(lines):
    return [".nf", ".RS 4", *map(plain, lines), ".RE", ".fi"]


def date():
    epoch = os.environ.get("SOURCE_DATE_EPOCH")
    return (datetime.datetime.fromtimestamp(int(epoch), datetime.timezone.utc).strftime("%Y-%m-%d")
            if epoch else "")


def page(table, name, summary):
    yield '.\\" Made from `penstock help --json` by tools/terminal/man.py.'
    yield f'.TH {plain(name.upper())} 1 "{date()}" "penstock {table["version"]}" "penstock manual"'
    yield from (".nh", ".ad l")  # names such as AWS_ENDPOINT_URL are not broken
    yield from (".SH NAME", f"{plain(name)} \\- {prose(summary)}", ".SH SYNOPSIS")


def command_page(table, command):
    name = command["name"]
    yield from page(table, f"penstock-{name}", command["summary"])
    yield from (f".B penstock {plain(name)}", plain(command["usage"]), ".SH DESCRIPTION")
    yield from paragraphs(command["about"])
    yield ".SH OPTIONS"
    yield from options(command["options"])
    yield ".SH EXAMPLES"
    yield from examples(command["examples"])
    yield from (".SH NEXT", prose(command["next"]), ".SH SEE ALSO", ".BR penstock (1)")


def program_page(table):
    yield from page(table, "penstock", table["summary"])
    yield from (".B penstock", plain("COMMAND [arguments] [options]"), ".SH COMMANDS")
    for command in table["commands"]:
        yield from (".TP", f".BR {plain('penstock-' + command['name'])} (1)",
                    prose(command["summary"]))
    yield ".SH DESCRIPTION"
    yield from paragraphs(table["about"])
    for topic in table["topics"]:
        yield f'.SH "{plain(topic["group"].split(" (")[0].upper())}"'
        yield from paragraphs(topic["about"])
        yield from (".PP", *examples(topic["examples"]))
    yield ".SH EXAMPLES"
    yield from examples(table["examples"])
    yield ".SH SEE ALSO"
    yield ",\n".join(f"\\fB{plain('penstock-' + command['name'])}\\fP(1)"
                     for command in table["commands"])


def main(table_file, *outputs):
    table = json.loads(pathlib.Path(table_file).read_text())
    pages = {"penstock.1": program_page(table)}
    for command in table["commands"]:
        pages[f"penstock-{command['name']}.1"] = command_page(table, command)
    files = {pathlib.Path(output).name: pathlib.Path(output) for output in outputs}
    if set(files) != set(pages):
        sys.exit(f"man.py: the pages are {sorted(pages)}, but the files are {sorted(files)}")
    for name, lines in pages.items():
        files[name].write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main(*sys.argv[1:])
