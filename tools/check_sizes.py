#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Check lengths: files, functions, branches, parameters.

Prints what is over a warning limit and fails on what is over the hard limit, unless
tools/size_exceptions.txt lists it with a reason. Functions are found by the house style: their
braces stand alone in the first column.

    check_sizes.py [--quiet] | --self-test
"""

import os
import re
import sys

#                  warn  fail
LIMITS = {
    "file lines": (600, 1000),
    "header lines": (300, 400),
    "function lines": (40, 60),
    "branches": (15, 25),
    "parameters": (6, 8),
}
FOLDERS = ("include", "src", "video", "cli", "python", "sim", "examples", "tests")
NOT_CODE = re.compile(r'/\*.*?\*/|//[^\n]*|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\'', re.S)
NO_SIGNATURE = re.compile(r"[#}]|.*[;{}]\s*$")
BRANCH = re.compile(r"\b(?:if|for|while|case)\b|&&|\|\||\?")


def blank(text):
    return NOT_CODE.sub(lambda m: re.sub(r"[^\n]", " ", m.group()), text)


def functions(text):
    """(name, first line, lines, branches, parameters) of each function."""
    lines = blank(text).split("\n")
    for start, line in enumerate(lines):
        if line.rstrip() != "{":
            continue
        head = start - 1
        while head > 0 and lines[head - 1].strip() and not NO_SIGNATURE.match(lines[head - 1]):
            head -= 1
        signature = " ".join(lines[head:start])
        m = re.search(r"(\w+)\s*\(([^()]*(?:\([^()]*\)[^()]*)*)\)\s*$", signature)
        end = next((i for i in range(start, len(lines)) if lines[i].rstrip() == "}"), None)
        if not m or end is None:
            continue
        inside = re.sub(r"\([^()]*\)", "", m.group(2)).strip()
        n_params = 0 if inside in ("", "void") else inside.count(",") + 1
        branches = 1 + len(BRANCH.findall("\n".join(lines[start:end])))
        yield m.group(1), head + 1, end - start - 1, branches, n_params


def measures(path, text):
    """(place, what, value) of all that has a limit."""
    kind = "header lines" if path.startswith("include/") else "file lines"
    yield path, kind, text.count("\n")
    for name, _, n_lines, branches, n_params in functions(text):
        place = f"{path}:{name}"
        yield place, "function lines", n_lines
        yield place, "branches", branches
        yield place, "parameters", n_params


def read_exceptions(path):
    allowed = {}
    try:
        with open(path, encoding="utf-8") as f:
            rows = [line.split(None, 1) for line in f if line.strip() and not line.startswith("#")]
    except FileNotFoundError:
        rows = []
    for row in rows:
        if len(row) != 2:
            sys.exit(f"{path}: {row[0]}: an exception needs a reason")
        allowed[row[0]] = row[1].strip()
    return allowed


def self_test():
    long_body = "\n".join(["    x();"] * 101)
    text = (
        "int a(int b, void (*c)(int, int),\n      int d)\n{\n    if (b && d) /* if */\n"
        '        return 1;\n    return "?" == 0;\n}\n\n'
        "static void big(void)\n{\n" + long_body + "\n}\n"
    )
    found = list(functions(text))
    cases = (
        ([f[0] for f in found], ["a", "big"]),
        ([f[1] for f in found], [1, 9]),
        ([f[2] for f in found], [3, 101]),
        ([f[3] for f in found], [3, 1]),
        ([f[4] for f in found], [3, 0]),
        (max(v for _, w, v in measures("src/x.c", text) if w == "function lines"), 101),
        (next(w for _, w, _ in measures("include/x.h", text)), "header lines"),
    )
    failed = 0
    for got, expected in cases:
        if got != expected:
            failed += 1
            print(f"expected {expected}, found {got}")
    print(f"{len(cases) - failed} passed, {failed} failed")
    return 1 if failed else 0


def main():
    if sys.argv[1:] == ["--self-test"]:
        return self_test()
    quiet = "--quiet" in sys.argv[1:]
    root = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    allowed = read_exceptions(os.path.join(root, "tools/size_exceptions.txt"))
    used, failed = set(), 0
    for top in FOLDERS:
        for folder, _, names in sorted(os.walk(os.path.join(root, top))):
            for name in sorted(n for n in names if n.endswith((".c", ".h"))):
                path = os.path.relpath(os.path.join(folder, name), root)
                with open(os.path.join(root, path), encoding="utf-8") as f:
                    text = f.read()
                for place, what, value in measures(path, text):
                    warn, fail = LIMITS[what]
                    if value > fail and place in allowed:
                        used.add(place)
                    elif value > fail:
                        failed += 1
                        print(f"{place}: {value} {what}, the limit is {fail}")
                    elif value > warn and not quiet:
                        print(f"{place}: {value} {what}, better at most {warn} (warning)")
    for place in sorted(set(allowed) - used):
        failed += 1
        print(f"tools/size_exceptions.txt: {place}: not needed any more")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
