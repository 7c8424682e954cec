#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Check the structure of the source tree.

- Includes point down (tools/structure/layers.py), and the docs have that table.
- Only the system interface calls the operating system (tools/structure/system_calls.py).
- No circles between files: includes, calls, imports (tools/structure/circles.py).
- No type has two definitions (tools/structure/names.py).
- No folder has more than 30 .c and .h files.

    check_structure.py             prints what is wrong, and fails
    check_structure.py --report    prints the figures
    check_structure.py --write     writes the table of layers into the docs
    check_structure.py --self-test
"""

import collections
import os
import sys

from check_sizes import functions
from structure import circles, documents, layers, names, system_calls
from structure.source import Tree

FILES_A_FOLDER = 30
PRODUCT = ("src", "cli", "python", "sim")
C_FILES = (".c", ".h")

# Folder and reason: more than FILES_A_FOLDER files.
MANY_FILES = {}


def folders(tree):
    """Number of C files of each folder of the product."""
    return collections.Counter(
        os.path.dirname(path)
        for path in tree.paths()
        if path.split("/")[0] in PRODUCT and path.endswith(C_FILES)
    )


def too_many_files(tree):
    counts = folders(tree)
    for folder, n in sorted(counts.items()):
        if n > FILES_A_FOLDER and folder not in MANY_FILES:
            yield f"{folder}: {n} .c and .h files, the limit is {FILES_A_FOLDER}"


def circle_findings(tree):
    for kind, files, edges in circles.all_circles(tree, PRODUCT):
        yield f"{len(files)} files in a circle of {kind}s:\n    " + "\n    ".join(edges)


def unneeded_exceptions(tree):
    needed = {folder for folder, n in folders(tree).items() if n > FILES_A_FOLDER}
    needed |= set(system_calls.callers(tree))
    for name in sorted({*MANY_FILES, *system_calls.ALLOWED} - needed):
        yield f"{name}: its exception is not needed any more"


def product_tree(root):
    return Tree(root, (*PRODUCT, "examples"), (*C_FILES, ".py"))


def typed_tree(root):
    return Tree(root, ("include", *PRODUCT, "examples", "tests", "bench"), C_FILES)


def check_tree(root):
    tree = product_tree(root)
    found = [*layers.findings(tree), *system_calls.findings(tree), *circle_findings(tree)]
    found += too_many_files(tree)
    for name, paths in names.duplicates(typed_tree(root)):
        found.append(f"{name}: defined in {', '.join(paths)}")
    return found


def longest_function(tree):
    lengths = [
        (lines, f"{path}: {name}")
        for path in tree.paths()
        if path.endswith(C_FILES)
        for name, _, lines, _, _ in functions(tree.texts[path])
    ]
    return max(lengths, default=(0, "none"))


def report(root):
    tree = product_tree(root)
    print(layers.table())
    for folder, n in sorted(folders(tree).items()):
        print(f"{n:4}  {folder}")
    lines, where = longest_function(tree)
    print(f"most files in a folder: {max(folders(tree).values())} (limit {FILES_A_FOLDER})")
    print(f"circles between files: {len(list(circles.all_circles(tree, PRODUCT)))}")
    print(f"types defined twice: {len(names.duplicates(typed_tree(root)))}")
    print(f"includes that do not point down: {len(list(layers.findings(tree)))}")
    print(f"longest function: {lines} lines ({where})")


def main():
    root = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    if sys.argv[1:] == ["--self-test"]:
        from structure.self_test import self_test

        return self_test(check_tree)
    if sys.argv[1:] == ["--write"]:
        documents.write(root)
    if sys.argv[1:] == ["--report"]:
        report(root)
    found = check_tree(root)
    tree = product_tree(root)
    found += [*unneeded_exceptions(tree), *layers.missing_folders(tree), *documents.findings(root)]
    for line in found:
        print(line)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
