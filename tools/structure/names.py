# SPDX-License-Identifier: Apache-2.0
"""Types that are defined in more than one file. Types without a prefix are local to their file."""

import re

from structure.source import blank

NAME = r"((?:Pen|Cli|Py)[A-Z]\w*)"
DEFINITION = re.compile(
    rf"\b(?:struct|union|enum)\s+{NAME}\s*\{{"  # struct PenThing {
    rf"|^\}}\s*{NAME}\s*;"  # } PenThing;
    rf"|^typedef\s+(?!struct\b|union\b|enum\b)[^;{{}}]*?\b{NAME}\s*;"  # typedef int PenThing;
    rf"|^typedef\s[^;{{}}]*?\(\s*\*\s*{NAME}\s*\)\s*\(",  # typedef int (*PenThing)(int);
    re.M,
)


def defined(text):
    return {next(filter(None, m.groups())) for m in DEFINITION.finditer(blank(text))}


def duplicates(tree):
    """(name, files) of each type that more than one file defines."""
    homes = {}
    for path in tree.paths():
        for name in defined(tree.texts[path]) if path.endswith((".c", ".h")) else ():
            homes.setdefault(name, []).append(path)
    return sorted((name, paths) for name, paths in homes.items() if len(paths) > 1)
