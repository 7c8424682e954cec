#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""How binaries are protected: tests/wheel/hardening.py FILE... prints a table, in Markdown.

FILE is a program, a shared object or a wheel. Exits with 1 if a protection is missing."""

import os
import pathlib
import re
import subprocess
import sys
import tempfile
import zipfile

# A disassembler, and what it shows where a function checks its stack frame.
CANARIES = {
    "X86-64": ("objdump", r"%fs:0x28,"),
    "AArch64": ("aarch64-linux-gnu-objdump", r"\tldur\t(x\d+), \[x29, #-\d+\]\n"
                r".*\tldr\t(x\d+), \[.*\n.*\tcmp\t\2, \1\n.*\tb\.ne\t"),
}


def readelf(path):
    done = subprocess.run(["readelf", "--wide", "-hld", "--dyn-syms", "-S", "-n", path],
                          capture_output=True, text=True, check=True)
    return done.stdout


def machine(text):
    return re.search(r"Machine: +(.+)", text)[1].split()[-1]


def checks_canary(path, text):
    """Functions compare it before they return; zig brings its own __stack_chk_fail. More than 100
    do so, or more than one in 4 KiB of a small program."""
    program, comparison = CANARIES[machine(text)]
    done = subprocess.run([program, "-d", "--no-show-raw-insn", path], capture_output=True,
                          text=True, check=True)
    return len(re.findall(comparison, done.stdout)) > min(100, os.path.getsize(path) // 4096)


def protections(path):
    """{protection: what there is of it, empty if there is none}"""
    text = readelf(path)
    symbols = set(re.findall(r" UND (\w+)", text))
    fortified = {name for name in symbols if name.endswith("_chk")}
    program = " INTERP " in text
    stack = re.search(r"GNU_STACK.*? (R[WE ]*?) +0", text)
    is_pic = "DYN (" in text and "(TEXTREL)" not in text
    return {
        "RELRO": "yes" if "GNU_RELRO" in text else "",
        "BIND_NOW": "yes" if re.search(r"BIND_NOW|Flags:.*\bNOW\b", text) else "",
        "stack not executable": "yes" if stack and "E" not in stack[1] else "",
        "PIE or PIC": ("PIE" if program else "PIC") if is_pic else "",
        "stack protector": "yes" if checks_canary(path, text) else "",
        "FORTIFY": f"{len(fortified)} functions" if fortified else "",
        "no RPATH": "" if re.search(r"\((RPATH|RUNPATH)\)", text) else "yes",
        "stripped": "" if ".symtab" in text else "yes",
    }


def binaries(path, folder):
    """[(name, path)] of a file, or of all binaries in a wheel."""
    if path.suffix != ".whl":
        return [(path.name, path)]
    with zipfile.ZipFile(path) as z:
        names = [name for name in z.namelist() if z.read(name)[:4] == b"\x7fELF"]
        return [(pathlib.PurePath(name).name, pathlib.Path(z.extract(name, folder)))
                for name in names]


def main():
    rows, lacking = [], 0
    with tempfile.TemporaryDirectory() as folder:
        for number, path in enumerate(map(pathlib.Path, sys.argv[1:])):
            for name, binary in binaries(path, f"{folder}/{number}"):
                rows.append((f"`{name}`, {machine(readelf(binary)).lower()}", protections(binary)))
    print("| Protection |", " | ".join(name for name, _ in rows), "|")
    print("|---" * (len(rows) + 1) + "|")
    for protection in rows[0][1] if rows else ():
        found = [row[protection] for _, row in rows]
        lacking += found.count("")
        print(f"| {protection} |", " | ".join(word or "**no**" for word in found), "|")
    return 1 if lacking or not rows else 0


if __name__ == "__main__":
    sys.exit(main())
