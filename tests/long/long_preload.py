# SPDX-License-Identifier: Apache-2.0
"""The program with a malloc that fails at the n-th call, in whatever library it is called.

Each time it ends with exit 0 and the right result, or with exit 1 and a message; never by a signal,
never not at all. After a failed pack the same command makes the pack that an undisturbed run makes.
"""

import os
import re
import shutil
import sys
import time

import _program as program
from _program import Sweep, scaled

MODULE = program.BUILD / "tests/long/libfailing_malloc.so"
MESSAGE = re.compile(r"^penstock: \S", re.M)
# libarchive ends the process itself when it has no memory for a text, and cannot be told not to.
LIBARCHIVE = re.compile(r"^Fatal Internal Error in libarchive: \S", re.M)


def environment(top, at=0, ever=False):
    env = dict(os.environ, LD_PRELOAD=str(MODULE), FAIL_COUNT=f"{top}/count")
    if at:
        env["FAIL_AT"] = str(at)
    if ever:
        env["FAIL_EVER"] = "1"
    return env


def count(top):
    with open(f"{top}/count", encoding="ascii") as f:
        return int(f.read())


class Command:
    """A command, what it makes (None: nothing), and what is there before."""

    def __init__(self, top, name, command, makes=None, start=None):
        self.top, self.name, self.command, self.makes, self.start = top, name, command, makes, start
        self.ended_by_libarchive = 0
        self.reset()
        code, text = program.run(*command, env=environment(top))
        if code != 0:
            sys.exit(f"cannot go on: {name}: {text}")
        self.calls = count(top)
        self.after = program.tree(makes) if makes else None

    def reset(self):
        if self.makes:
            shutil.rmtree(self.makes, ignore_errors=True)
        if self.start:
            shutil.copytree(self.start, self.makes)

    def compare(self, sweep, what):
        wrong = self.makes and program.difference(self.after, program.tree(self.makes) or {})
        if wrong:
            sweep.complain(f"{what}: {wrong}")

    def check_again(self, sweep, what):
        """Only packing goes on from where it was; an extraction is begun anew."""
        if self.command[0] == "extract":
            self.reset()
        code, text = program.run(*self.command)
        if code == 1 and "the pack already exists" in text:
            code, text = program.run("gc", self.makes)
        if code != 0:
            sweep.complain(f"{what}: run again: {text}")
        else:
            self.compare(sweep, f"{what}: run again")

    def by_libarchive(self, text):
        found = "tar" in self.name and LIBARCHIVE.search(text)
        self.ended_by_libarchive += bool(found)
        return found

    def try_point(self, sweep, at, ever):
        self.reset()
        sweep.n += 1
        what = f"allocation {at} of {self.calls}{' and all after it' if ever else ''}"
        code, text = program.run(*self.command, env=environment(self.top, at, ever), limit=20)
        if code == 0:
            # A pack that is there is a success even when its work folder would not go away.
            if self.makes and self.command[0] != "extract":
                program.must("gc", self.makes)
            self.compare(sweep, f"{what}: says all is well")
        elif code != 1 or not (MESSAGE.search(text) or self.by_libarchive(text)):
            sweep.complain(f"{what}: exit {code}, {text!r}")
        elif self.makes:
            self.check_again(sweep, what)

    def sweep(self, most):
        sweep, begin = Sweep(f"failing malloc in {self.name}"), time.monotonic()
        step = max(1, self.calls // scaled(10**9, most))
        for ever in (False, True):
            for at in range(1 + step * ever // 2, self.calls + 1, step):
                self.try_point(sweep, at, ever)
        text = f"{self.calls} allocations, {sweep.n} points"
        if self.ended_by_libarchive:
            text += f" ({self.ended_by_libarchive} ended by libarchive)"
        sweep.end(f"{text}, {time.monotonic() - begin:.1f} s")


def main():
    small = ("--threads", "1", "--block-samples", "3", "--shard-bytes", "12000")
    with program.scratch() as top:
        program.make_inputs("folder", f"{top}/photos", 0, 6)
        program.make_inputs("folder", f"{top}/few", 0, 3)
        program.make_inputs("list", f"{top}/list", 0, 3)
        program.make_inputs("tar", f"{top}/a.tar", 0, 3)
        program.must("pack", f"{top}/photos", "-o", f"{top}/whole.pen", *small)
        program.must("pack", f"{top}/few", "-o", f"{top}/few.pen", *small)
        whole, out = f"{top}/whole.pen", f"{top}/out.pen"
        commands = (
            ("info", ("info", whole, "--json", "--samples"), None, None),
            ("verify", ("verify", whole, "--decode", "--threads", "1"), None, None),
            ("extract", ("extract", whole, "-o", f"{top}/files"), f"{top}/files", None),
            ("pack of a folder", ("pack", f"{top}/photos", "-o", out, *small), out, None),
            ("pack of a list, encode", ("pack", f"{top}/list/list.csv", "-o", out, "--mode",
             "encode", "--max-side", "32", *small), out, None),
            ("pack of a tar, raw", ("pack", f"{top}/a.tar", "-o", out, "--mode", "raw", *small),
             out, None),
            ("append", ("pack", f"{top}/photos", "-o", out, "--append", *small), out,
             f"{top}/few.pen"),
            ("pack with broken inputs left out", ("pack", f"{top}/photos", "-o", out, "--on-bad",
             "skip", *small), out, None),
        )
        for name, command, makes, start in commands:
            Command(top, name, command, makes, start).sweep(24)
    return Sweep.total()


if __name__ == "__main__":
    sys.exit(main())
