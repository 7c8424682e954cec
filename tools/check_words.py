#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Refuse private words and British spelling in what users read.

That is Markdown, the comments of public headers, docstrings, and the strings of the library, the
program and the package.

    check_words.py | --self-test
"""

import ast
import os
import re
import sys

from check_text import tree_files

# Left: a pattern of words that are ours alone; right: what the field says. Names of the API are
# spelled as in PyTorch (color_jitter, normalize, utilization_percent), and so is the text.
WORDS = [
    (re.compile(rf"\b(?:{pattern})\b", re.I), instead)
    for pattern, instead in (
        (r"what binds|is what binds", "the bottleneck"),
        (r"(?<!so )(?<!as )(?<!too )far(?! from| more| less| too|,)|over the way", "remote"),
        (r"ask(?:ed|s)? (?:for )?again", "retried"),
        (r"g[ai]ven? (?:out|back)|gives? (?:out|back)|giving (?:out|back)", "return, release"),
        (r"lets? go|letting go|taken? apart|takes apart", "release, close, extract, parse"),
        (r"comes? into being|comes? last", "appears, is written last"),
        (r"told of|tells of|is told|are told", "described, reported"),
        (r"look(?:s|ed|ing)? (?:at|up|into)", "check, inspect, find"),
        (r"divided by commas|stands? behind", "separated by commas, follows"),
        (r"whole (?:blocks?|files?|packs?|shards?|pages?)", "entire, complete"),
        (r"beforehand", "in advance"),
        (r"kitchens?|cooks?|cooked", "decode context, run"),
        (r"takeouts?|shel(?:f|ves)|judged?|judges", "extract, directory, classify"),
        (r"a wish|the seam|the house", "operation, system interface, layers"),
        (r"second requests?", "hedged requests"),
        (r"goes on|go on|going on|went on", "continues, resumes"),
        (r"for ever and once|mute servers?", "always and once, unresponsive server"),
        (r"(?:(?:s3|https?)://|remote|server's) address(?:es)?", "URL"),
        (r"colour(?:s|ed)?|grey|(?:mis)?behaviours?|neighbour(?:s|ing)?", "color, gray, behavior"),
        (r"(?:utilis|initialis|normalis|optimis|synchronis)\w+", "utilization, initialize"),
    )
]
LITERAL = r'"(?:\\.|[^"\\\n])*"'
C_STRINGS = re.compile(rf"{LITERAL}(?:\s*{LITERAL})*")
C_COMMENT = re.compile(r"/\*.*?\*/|//[^\n]*", re.S)
LINE_START = re.compile(r"\s*\n\s*\*?\s*")


def line_of(text, match):
    return text.count("\n", 0, match.start()) + 1


def c_comments(text):
    for comment in C_COMMENT.finditer(text):
        yield line_of(text, comment), LINE_START.sub(" ", comment.group())


def c_strings(text):
    """Neighbouring literals are one string, as the compiler joins them."""
    code = C_COMMENT.sub(lambda m: re.sub(r"[^\n]", " ", m.group()), text)
    code = re.sub(r"^\s*#.*$", "", code, flags=re.M)
    for run in C_STRINGS.finditer(code):
        yield line_of(code, run), "".join(part[1:-1] for part in re.findall(LITERAL, run.group()))


def python_strings(text):
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and " " in node.value:
            yield node.lineno, node.value


def user_texts(path, text):
    """(line, text) of all that a user may read in a file."""
    if path.startswith("tests/"):
        return ()
    if path.endswith(".md"):
        return enumerate(text.split("\n"), 1)
    if path.startswith("include/penstock/"):
        return c_comments(text)
    if path.startswith(("src/", "cli/", "python/", "sim/")) and path.endswith((".c", ".h")):
        return c_strings(text)
    if path.startswith("python/") and path.endswith((".py", ".pyi")):
        return python_strings(text)
    return ()


def check(path, text):
    return [
        f"{path}:{line}: '{m.group()}' is not used here; say: {instead}"
        for line, words in user_texts(path, text)
        for pattern, instead in WORDS
        for m in pattern.finditer(words)
    ]


def self_test():
    cases = (
        ("a.md", "what binds\n", 1),
        ("a.md", "so far and as far as\n", 0),
        ("src/a.c", 'x("it is taken " /* far */\n  "apart");\n', 1),
        ("src/a.c", "/* taken apart */\n", 0),
        ("include/penstock/a.h", "/* taken\n * apart */\n", 1),
        ("python/a.py", '"""It goes on."""\n', 1),
        ("tests/a.md", "goes on\n", 0),
        ("a.md", "colours, `src/dsp/colour_c.c`, utilisation and finalise\n", 2),
        ("a.md", "an s3:// address, an IP address, the address space\n", 1),
    )
    failed = [case for case in cases if len(check(*case[:2])) != case[2]]
    for path, text, expected in failed:
        print(f"{path}: {text!r}: expected {expected} findings, found {check(path, text)}")
    print(f"{len(cases) - len(failed)} passed, {len(failed)} failed")
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
    print(*found, sep="\n", end="\n" if found else "")
    return 1 if found or not n_files else 0


if __name__ == "__main__":
    sys.exit(main())
