#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Check the names that leave the library, with nm.

Every global symbol of the static library starts with pen_; the shared library exports exactly the
functions that include/penstock declares PEN_API; the program uses no pen__ name. The library, the
program and the Python module use no function that glibc 2.28 lacks, which wheels are built for.

    check_symbols.py BUILD_DIR | --self-test
"""

import glob
import os
import re
import subprocess
import sys

DECLARED = re.compile(r"\bPEN_API\b(?!\s*__)[^;{}()]*?\b(\w+)\s*\(")
COMMENT = re.compile(r"/\*.*?\*/|^\s*#[^\n]*(?:\\\n[^\n]*)*", re.S | re.M)

OLDEST_GLIBC = 28  # of 2.x
# Functions that glibc 2.28 has, too, under an older version or in another library.
OLD_FUNCTIONS = re.compile(
    r"exp|log|pow|exp2|log2|f?stat(at)?(64)?|lstat(64)?|pthread_\w+|sem_\w+|dl\w+|__libc_start_main"
    r"|__isoc23_\w+")


def nm(*args):
    return subprocess.run(("nm", *args), check=True, capture_output=True, text=True).stdout


def names(nm_text, kinds):
    """Names with one of these letters; lines are 'address kind name' or 'kind name'."""
    found = set()
    for line in nm_text.splitlines():
        m = re.match(r"^(?:[0-9a-f]+)?\s*([A-Za-z])\s+(\S+)$", line)
        if m and m.group(1) in kinds:
            found.add(m.group(2).split("@")[0])
    return found


def too_new(nm_text):
    """Functions that glibc has had for a shorter time than wheels may expect."""
    found = re.findall(r" (\w+)@+GLIBC_2\.(\d+)", nm_text)
    return {name for name, minor in found
            if int(minor) > OLDEST_GLIBC and not OLD_FUNCTIONS.fullmatch(name)}


def declared(header_texts):
    found = set()
    for text in header_texts:
        found.update(DECLARED.findall(COMMENT.sub("", text)))
    return found


def is_compilers(name):
    return name.startswith(("__asan_", "__odr_asan", "_GLOBAL_", "__tsan_", "__sancov"))


def check(static, exported, public, used_by_program):
    found = []
    for name in sorted(static):
        if not name.startswith("pen_") and not is_compilers(name):
            found.append(f"static library: {name}: a global name that does not start with pen_")
    for name in sorted(exported - public):
        found.append(f"shared library: {name}: exported, but not declared PEN_API")
    for name in sorted(public - exported):
        found.append(f"shared library: {name}: declared PEN_API, but not exported")
    for name in sorted(used_by_program):
        if name.startswith("pen__"):
            found.append(f"program: {name}: not a public name")
    return found


def self_test():
    header = (
        "/* PEN_API old( */\n#define PEN_API x\n"
        "PEN_API const char *pen_a(int b);\nPEN_API\nint pen_c(void);"
    )
    text = "0000 T pen_a\n0010 t helper\n     U free\n0020 D loose\n"
    cases = (
        (declared([header]), {"pen_a", "pen_c"}),
        (names(text, "TD"), {"pen_a", "loose"}),
        (too_new(" U gettid@GLIBC_2.30\n U stat64@GLIBC_2.33\n U read@GLIBC_2.2.5\n"), {"gettid"}),
        (too_new("      U getrandom@GLIBC_2.25\n      w __cxa_finalize@GLIBC_2.2.5\n"), set()),
        (len(check({"pen_a", "pen__b"}, {"pen_a"}, {"pen_a"}, {"pen_a"})), 0),
        (len(check({"loose"}, {"pen_a"}, {"pen_a"}, set())), 1),
        (len(check(set(), {"pen_a", "pen__b"}, {"pen_a"}, set())), 1),
        (len(check(set(), set(), {"pen_a"}, set())), 1),
        (len(check(set(), set(), set(), {"pen__b"})), 1),
    )
    failed = 0
    for found, expected in cases:
        if found != expected:
            failed += 1
            print(f"expected {expected}, found {found}")
    print(f"{len(cases) - failed} passed, {failed} failed")
    return 1 if failed else 0


def main():
    if sys.argv[1:] == ["--self-test"]:
        return self_test()
    build = sys.argv[1]
    root = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    headers = []
    for path in sorted(glob.glob(os.path.join(root, "include/penstock/*.h"))):
        with open(path, encoding="utf-8") as f:
            headers.append(f.read())
    static = names(nm("-g", "--defined-only", f"{build}/src/libpenstock.a"), "TDBRVWCGSiu")
    exported = names(nm("-D", "--defined-only", f"{build}/src/libpenstock.so"), "TDBRVWCGSiu")
    objects = glob.glob(f"{build}/penstock.p/*.o")
    used = names(nm("-u", *objects), "Uw") if objects else set()
    found = check(static, exported, declared(headers), used)
    for path in ("src/libpenstock.so", "penstock", "python/penstock/_core.abi3.so"):
        if os.path.exists(f"{build}/{path}"):
            found += [f"{path}: {name}: glibc 2.{OLDEST_GLIBC} does not have it"
                      for name in sorted(too_new(nm("-D", "-u", f"{build}/{path}")))]
    for line in found:
        print(line)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
