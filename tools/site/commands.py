# SPDX-License-Identifier: Apache-2.0
"""The page of the program's commands, from the tables that `penstock help --json` prints."""

import itertools
import json
import re
import subprocess

INTRODUCTION = """# Commands

The program `penstock` packs, checks, copies and measures. `penstock help COMMAND` prints the same
text in a terminal, and `penstock help --json` prints it for programs.
"""


def tables(program):
    done = subprocess.run([program, "help", "--json"], capture_output=True, text=True, check=True,
                          timeout=60)
    return json.loads(done.stdout)


CODE = re.compile(r"'(penstock [^']*)'|(?<![\w-])(--[a-z][a-z0-9-]*)")


def plain(text):
    """Text as Markdown: commands and options are code, other marks are themselves."""
    parts = CODE.split(text)
    words = [re.sub(r"([\\*_<>|\[\]`])", r"\\\1", part) for part in parts[::3]]
    codes = [f"`{command or option}`" for command, option in zip(parts[1::3], parts[2::3])]
    made = "".join(word + code for word, code in zip(words, [*codes, ""]))
    return made.replace("\n", "<br>")


def sentence(summary):
    return plain(summary[0].upper() + summary[1:]) + ".\n"


def code(lines):
    return "```text\n" + "\n".join(lines) + "\n```\n"


def option_name(option):
    letter = f"-{option['letter']}, " if "letter" in option else ""
    argument = f" {option['argument']}" if option.get("argument") else ""
    name = f"{letter}--{option['name']}{argument}".replace("|", "\\|")
    return f"`{name}`"


def option_row(option):
    notes = []
    if "choices" in option and "\n" not in option["text"]:
        notes.append(", ".join(f"`{choice}`" for choice in option["choices"]))
    if "default" in option:
        notes.append("default: " + plain(option["default"]))
    if option["repeatable"]:
        notes.append("may be repeated")
    first, mark, rest = plain(option["text"]).partition("<br>")
    note = f" ({'; '.join(notes)})" if notes else ""
    return f"| {option_name(option)} | {first}{note}{mark}{rest} |"


def option_tables(options):
    for title, group in itertools.groupby(options, key=lambda option: option["group"]):
        rows = "\n".join(option_row(option) for option in group)
        yield f"**{plain(title)}**\n\n| Option | Meaning |\n|---|---|\n{rows}\n"


def about(topic):
    """Paragraphs, of which the indented ones are items of a list; then the examples."""
    lines = [f"- {plain(text[2:])}" if text.startswith("  ") else f"\n{plain(text)}\n"
             for text in topic["about"]]
    return ["\n".join(lines).replace("\n\n\n", "\n\n") + "\n", code(topic["examples"])]


def command(entry, shared):
    """The section of a command. Options of the group `shared` have a section of their own."""
    options = [option for option in entry["options"] if option["group"] != shared["group"]]
    parts = [f"## penstock {entry['name']}\n", sentence(entry["summary"]),
             code([f"penstock {entry['name']} {entry['usage']}"]), *about(entry),
             *option_tables(options)]
    others = [option_name(option) for option in entry["options"] if option not in options]
    if others:
        parts.append(f"**{plain(shared['group'])}**\n\n{', '.join(others)}: see "
                     f"[{plain(shared['summary'])}](#penstock-help-{shared['name']}).\n")
    return parts + [f"Next: {plain(entry['next'])}\n"]


def topic_section(topic, commands):
    options = {option["name"]: option for entry in commands for option in entry["options"]
               if option["group"] == topic["group"]}
    return [f"## penstock help {topic['name']}\n", sentence(topic["summary"]), *about(topic),
            *option_tables(options.values())]


def page(program):
    known = tables(program)
    (shared,) = known["topics"]
    rows = [f"| [`{entry['name']}`](#penstock-{entry['name']}) | {plain(entry['summary'])} |"
            for entry in known["commands"]]
    parts = [INTRODUCTION, "| Command | What it does |\n|---|---|\n" + "\n".join(rows) + "\n",
             code(known["examples"]), *(plain(text) + "\n" for text in known["about"])]
    for entry in known["commands"]:
        parts += command(entry, shared)
    return "\n".join(parts + topic_section(shared, known["commands"]))
