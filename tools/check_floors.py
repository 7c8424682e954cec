#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Check that includes point down, and that only the seam calls the operating system.

A file in src/ includes its own folder, lower floors and <penstock/...>; never a higher floor, never
another folder of the same floor. What stands on the library (cli, examples) includes its own files
and <penstock/...>. Run without arguments for the tree, with --self-test for the checker itself.
"""

import os
import re
import sys
import tempfile

FLOORS = (
    ("base",),
    ("net",),
    ("io", "codec", "dsp", "cache"),
    ("pack", "ops"),
    ("manage",),
    ("load", "ingest"),
    ("sim",),
)
ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
ON_TOP = ("cli", "python", "examples")

INCLUDE = re.compile(r'^\s*#\s*include\s+(?:"([^"]+)"|<([^>]+)>)')
NOT_CODE = re.compile(r'/\*.*?\*/|//[^\n]*|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\'', re.S)

# Memory, files, clock, threads and randomness go through base/sys.h; the library never prints. A
# line that must call one of these for a foreign library says so: /* seam: why */.
SEAM_FILES = {
    "src/base/sys.c",
    # What pen__sys->spawn does, most of it in the child before exec.
    "src/base/process/spawn.c", "src/base/process/confine.c", "src/base/process/confine_calls.c",
    "src/base/process/confine_files.c",
}
SEAM_CALL = re.compile(
    r"(?<![\w.>])(malloc|calloc|realloc|free|strdup|strndup|posix_memalign|aligned_alloc|mmap|"
    r"open|openat|fopen|creat|close|read|write|pread|pwrite|readv|writev|preadv|pwritev|lseek|"
    r"fsync|fdatasync|ftruncate|memfd_create|stat|fstat|lstat|statvfs|fstatvfs|rename|mkdir|unlink|rmdir|opendir|"
    r"flock|fcntl|"
    r"clock_gettime|gettimeofday|time|nanosleep|usleep|sleep|getrandom|rand|random|"
    r"pthread_create|printf|fprintf|puts|putchar|perror|exit|abort|_exit|signal|sigaction)\s*\("
)


def floor_of(folder):
    for number, folders in enumerate(FLOORS):
        if folder in folders:
            return number
    return None


def include_rule(path, target, angled):
    """The rule that an include breaks, or None. Paths are relative to the root."""
    parts = path.split("/")
    if target.startswith(".") or "/../" in target:
        return "includes are written from src/, without dots"
    if angled:
        if target.startswith("penstock/") or floor_of(target.split("/")[0]) is None:
            return None
        return "angle brackets are for the system and penstock/"
    if parts[0] in ON_TOP:
        if "/" in target and not os.path.exists(os.path.join(ROOT, parts[0], target)):
            return f"{parts[0]} uses its own files and <penstock/...> alone"
        return None
    own, folder = parts[1], target.split("/")[0]
    if "/" not in target:
        return 'includes are written from src/: "folder/file.h"'
    if floor_of(own) is None:
        return None if len(parts) == 2 else f"src/{own} has no floor; add it to the table"
    if floor_of(folder) is None:
        return f"{folder} is not a folder of src/ with a floor"
    if folder == own or floor_of(folder) < floor_of(own):
        return None
    where = "sideways" if floor_of(folder) == floor_of(own) else "up"
    return f"{own} (floor {floor_of(own)}) points {where} at {folder} (floor {floor_of(folder)})"


def check_file(root, path):
    with open(os.path.join(root, path), encoding="utf-8") as f:
        text = f.read()
    found = []
    for number, line in enumerate(text.splitlines(), 1):
        m = INCLUDE.match(line)
        if m:
            rule = include_rule(path, m.group(1) or m.group(2), m.group(1) is None)
            if rule:
                found.append(f"{path}:{number}: {line.strip()}: {rule}")
    if path.startswith("src/") and path not in SEAM_FILES:
        blank = NOT_CODE.sub(lambda m: re.sub(r"[^\n]", " ", m.group()), text)
        lines = text.splitlines()
        for number, line in enumerate(blank.splitlines(), 1):
            m = SEAM_CALL.search(line)
            if m and "/* seam: " not in lines[number - 1]:
                found.append(f"{path}:{number}: {m.group(1)}(): goes through base/sys.h or mem.h")
    return found


def check_tree(root):
    found, n_files = [], 0
    for top in ("src", *ON_TOP):
        for folder, _, names in sorted(os.walk(os.path.join(root, top))):
            for name in sorted(names):
                if name.endswith((".c", ".h")):
                    n_files += 1
                    found += check_file(root, os.path.relpath(os.path.join(folder, name), root))
    return found, n_files


GOOD = {
    "src/base/a.c": '#include "base/a.h"\n#include <stdio.h>\n',
    "src/base/b.c": '/* malloc( */ x("free("); p->open(1); pen__free(p);\n',
    "src/pack/b.c": '#include "pack/b.h"\n#include "io/s.h"\n#include <penstock/pack.h>\n',
    "src/ingest/c.c": '#include "ops/o.h"\n  #  include "codec/j.h"\n',
    "cli/d.c": '#include "cmd.h"\n#include <penstock/pack.h>\n',
    "src/base/sys.c": "void f(void) { free(p); }\n",
    "src/codec/e.c": "free(p); /* seam: libjpeg's own memory */\n",
}
BAD = {
    "src/base/a.c": '#include "io/source.h"\n',
    "src/io/b.c": '#include "codec/jpeg/jpeg.h"\n',
    "src/pack/c.c": '#include "ingest/plan/plan.h"\n',
    "src/pack/d.h": '#include "ops/operations/op.h"\n',
    "src/codec/e.c": '#include "../base/mem.h"\n',
    "src/codec/f.c": '#include "jpeg.h"\n',
    "src/new/g.c": '#include "base/mem.h"\n',
    "src/pack/h.c": "#include <io/source.h>\n",
    "cli/i.c": '#include "base/mem.h"\n',
    "examples/j.c": '#include "../src/base/mem.h"\n',
    "src/io/k.c": "int f(void) { return close(3); }\n",
    "src/io/l.c": "void *p = malloc(3);\n",
}


def self_test():
    failed = 0
    for files, expected in ((GOOD, 0), (BAD, 1)):
        for path, text in files.items():
            with tempfile.TemporaryDirectory() as root:
                os.makedirs(os.path.join(root, os.path.dirname(path)))
                with open(os.path.join(root, path), "w", encoding="utf-8") as f:
                    f.write(text)
                found, n_files = check_tree(root)
            if len(found) != expected or n_files != 1:
                failed += 1
                print(f"{path}: expected {expected} findings, found {found}")
    print(f"{len(GOOD) + len(BAD) - failed} passed, {failed} failed")
    return 1 if failed else 0


def main():
    if sys.argv[1:] == ["--self-test"]:
        return self_test()
    root = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    found, n_files = check_tree(root)
    for line in found:
        print(line)
    if not n_files:
        print("no source files found")
    return 1 if found or not n_files else 0


if __name__ == "__main__":
    sys.exit(main())
