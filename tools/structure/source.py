# SPDX-License-Identifier: Apache-2.0
"""The files of a tree, and what stands in C files."""

import os
import re

from check_sizes import NO_SIGNATURE, blank

INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]+(?:"([^"]+)"|<([^>]+)>)', re.M)
NAME_OF_FUNCTION = re.compile(r"(\w+)\s*\([^()]*(?:\([^()]*\)[^()]*)*\)\s*$")
LOCAL = re.compile(r"\b(?:static|INLINE|PEN_INLINE)\b")


class Tree:
    """The text of all files below some folders; paths are relative to the root."""

    def __init__(self, root, tops, endings):
        self.root = root
        self.texts = {}
        for top in tops:
            for folder, _, names in os.walk(os.path.join(root, top)):
                for name in names:
                    if name.endswith(endings):
                        self._read(os.path.relpath(os.path.join(folder, name), root))

    def _read(self, path):
        with open(os.path.join(self.root, path), encoding="utf-8") as f:
            self.texts[path] = f.read()

    def paths(self, top=""):
        return sorted(path for path in self.texts if path.startswith(top))


def includes(text):
    """(line number, target, whether in angle brackets) of each include."""
    for m in INCLUDE.finditer(text):
        yield text.count("\n", 0, m.start()) + 1, m.group(1) or m.group(2), m.group(1) is None


def unit(path):
    """What counts as one file: x.c, x.h and x_impl.h."""
    stem = os.path.splitext(path)[0]
    return stem[: -len("_impl")] if stem.endswith("_impl") else stem


def definitions(text):
    """(name, whether other files can call it) of each function, by the code style: the name is in
    the lines before a lone brace."""
    lines = blank(text).split("\n")
    for at, line in enumerate(lines):
        if line.rstrip() != "{":
            continue
        head = at - 1
        while head > 0 and lines[head - 1].strip() and not NO_SIGNATURE.match(lines[head - 1]):
            head -= 1
        signature = " ".join(lines[head:at])
        m = NAME_OF_FUNCTION.search(signature)
        if m:
            yield m.group(1), not LOCAL.search(signature)
