#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Check rules of the text itself: white space, line length, licence line, banned functions.

    check_text.py | --self-test
"""

import os
import re
import subprocess
import sys

SKIPPED = ("tests/golden/", "tests/fuzz/corpus/", "tests/data/", "build/")
TEXT = (".c", ".h", ".py", ".sh", ".md", ".build", ".txt", ".toml", "dev", ".ci/run")
NEEDS_SPDX = (".c", ".h", ".py", ".sh", "meson.build", "dev", ".ci/run")
SPDX = "SPDX-License-Identifier: Apache-2.0"
BANNED = re.compile(
    r"(?<![\w.>])(strcpy|strcat|strncpy|strncat|sprintf|vsprintf|gets|strtok|atoi|atol|atoll|atof|"
    r"system|popen|alloca|tmpnam|mktemp|sscanf|scanf)\s*\("
)
NOT_CODE = re.compile(r'/\*.*?\*/|//[^\n]*|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\'', re.S)
# Characters that cannot be seen or that turn the reading direction.
HIDDEN = re.compile("[\u00a0\u00ad\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff]")
MAX_COLUMNS = 100
# No index has these packages, so anybody could register their names. The name may be on the next
# line, or in the next one of two strings.
PACKAGE = re.compile(
    r"\b(?:pipx?3?|uv|conda|mamba|poetry)\s+(?:pip\s+)?(?:install|download|add)\b"
    r"(?:[\s#*\"'`]+|(?:[ \t]+[^\s`#]+)*[ \t]+[\"']?)penstock(?:[-_](?:video|lab|ray))?"
    r"(?:\[[^\]\n]*\])?(?![-\w/*]|\.\w)"
)


def check(path, text):
    found = []
    if path.endswith(NEEDS_SPDX) and SPDX not in "\n".join(text.split("\n")[:2]):
        found.append(f"{path}:1: expected the line {SPDX}")
    if text and not text.endswith("\n"):
        found.append(f"{path}: expected a newline at the end")
    for number, line in enumerate(text.split("\n"), 1):
        place = f"{path}:{number}"
        if "\t" in line and not path.endswith(".md"):
            found.append(f"{place}: a tab")
        if line != line.rstrip():
            found.append(f"{place}: white space at the end of the line")
        if HIDDEN.search(line):
            found.append(f"{place}: a hidden character")
        if path.endswith((".c", ".h")) and len(line) > MAX_COLUMNS:
            found.append(f"{place}: {len(line)} columns, the limit is {MAX_COLUMNS}")
    for m in PACKAGE.finditer(text):
        line = text.count("\n", 0, m.start()) + 1
        found.append(f"{path}:{line}: {m.group()!r}: name a clone or the path of a wheel")
    if path.endswith((".c", ".h")):
        code = NOT_CODE.sub(lambda m: re.sub(r"[^\n]", " ", m.group()), text)
        for number, line in enumerate(code.split("\n"), 1):
            m = BANNED.search(line)
            if m:
                found.append(f"{path}:{number}: {m.group(1)}() is not used here")
    return found


def tree_files(root):
    try:
        listed = subprocess.run(
            ("git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"),
            cwd=root, check=True, capture_output=True, text=True,
        ).stdout.split("\0")
    except (OSError, subprocess.CalledProcessError):
        listed = [
            os.path.relpath(os.path.join(folder, name), root)
            for folder, _, names in os.walk(root)
            for name in names
        ]
    for path in sorted(set(listed)):
        if path.endswith(TEXT) and not path.startswith(SKIPPED):
            if os.path.isfile(os.path.join(root, path)):
                yield path


def self_test():
    pip = "pip install"
    good = f"/* {SPDX} */\n/* system( */ x(\"gets(\"); pen__strcpy(a); b->system(c);\n"
    cases = (
        ("a.c", good, 0),
        ("a.c", good + "\tx\n", 1),
        ("a.c", good + "x \n", 1),
        ("a.c", good + "x", 1),
        ("a.c", "x\n", 1),
        ("a.c", good + "strcpy(a, b);\n", 1),
        ("a.c", good + "x" * 101 + "\n", 1),
        ("a.md", "x\u200b\n", 1),
        ("a.md", "x\n", 0),
        ("a.md", pip + " penstock\n", 1),
        ("a.md", f"`{pip}\n'penstock[lab]' torch`\n", 1),
        ("a.md", pip + " -q torch penstock-video.\n", 1),
        ("a.c", good + f'"`{pip} "\n    "penstock-video`"\n', 1),
        ("a.md", pip + " penstock-*.whl '.[lab]' build/wheels/penstock_video-0.1.0.whl\n", 0),
        ("a.md", pip + " . torch  # compiles penstock\npenstock pack photos\n", 0),
        ("a.md", f"`{pip} .` installs penstock\n", 0),
    )
    failed = 0
    for path, text, expected in cases:
        found = check(path, text)
        if len(found) != expected:
            failed += 1
            print(f"{text!r}: expected {expected} findings, found {found}")
    print(f"{len(cases) - failed} passed, {failed} failed")
    return 1 if failed else 0


def main():
    if sys.argv[1:] == ["--self-test"]:
        return self_test()
    root = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    found, n_files = [], 0
    for path in tree_files(root):
        with open(os.path.join(root, path), encoding="utf-8") as f:
            found += check(path, f.read())
        n_files += 1
    for line in found:
        print(line)
    return 1 if found or not n_files else 0


if __name__ == "__main__":
    sys.exit(main())
