# SPDX-License-Identifier: Apache-2.0
"""kill -9 at every write-like system call of a pack run, and at random times.

After each kill there is the old pack or the new one, whole, or none where there was none; the same
command run again gives the bytes of an uninterrupted run; gc leaves only what is named.
"""

import collections
import random
import shutil
import subprocess
import sys
import time

import _program as program
from _program import Sweep, scaled

CALLS = (
    "write", "writev", "pwrite64", "pwritev", "pwritev2", "fsync", "fdatasync", "rename",
    "renameat", "renameat2", "mkdir", "mkdirat", "unlink", "unlinkat", "rmdir", "ftruncate",
    "fallocate", "link", "linkat",
)


class Case:
    """A command that makes `out` from what is in `start` (None: nothing)."""

    def __init__(self, name, folder, start, out, *options):
        self.name, self.start, self.out = name, start, out
        self.command = ["pack", folder, "-o", out, *options]
        self.reset()
        program.must(*self.command)
        self.after = program.tree(out)
        self.old = program.tree(start) if start else None
        self.clean = {}
        for manifest, source in ((self.after["manifest"], out), (self.old_manifest(), start)):
            if source:
                self.clean[manifest] = self.cleaned(source)
        self.seconds = self.time()

    def old_manifest(self):
        return self.old["manifest"] if self.old else None

    def reset(self):
        shutil.rmtree(self.out, ignore_errors=True)
        if self.start:
            shutil.copytree(self.start, self.out)

    def cleaned(self, source):
        copy = self.out.removesuffix(".pen") + "-copy.pen"  # gc takes only what can be a pack
        shutil.rmtree(copy, ignore_errors=True)
        shutil.copytree(source, copy)
        code, text = program.run("gc", copy)
        return program.tree(copy) if code == 0 else {"gc": text}

    def time(self):
        self.reset()
        begin = time.monotonic()
        program.must(*self.command)
        return time.monotonic() - begin

    def check(self, sweep, when):
        sweep.n += 1
        found = program.tree(self.out)
        manifest = found.get("manifest") if found is not None else None
        if manifest not in (self.old_manifest(), self.after["manifest"]):
            sweep.complain(f"{when}: neither the old pack nor the new")
            return
        if manifest is not None:
            code, text = program.run("verify", self.out)
            if code != 0:
                sweep.complain(f"{when}: verify: {text}")
        if found is not None:
            wrong = program.difference(self.clean.get(manifest, {}), self.cleaned(self.out))
            if wrong:
                sweep.complain(f"{when}: gc: {wrong}")
        self.check_again(sweep, when, manifest == self.after["manifest"])

    def check_again(self, sweep, when, is_new):
        code, text = program.run(*self.command)
        if code == 1 and is_new and "the pack already exists" in text:
            code, text = program.run("gc", self.out)
        if code != 0:
            sweep.complain(f"{when}: run again: {text}")
            return
        wrong = program.difference(self.after, program.tree(self.out))
        if wrong:
            sweep.complain(f"{when}: run again: {wrong}")


def kill_at(case, call, n):
    """Kill the program when it makes that call for the n-th time. False: it ended before that."""
    case.reset()
    done = subprocess.run(
        ["strace", "-f", "-qq", "-o", "/dev/null", "-e", f"trace={call}", "-e",
         f"inject={call}:signal=SIGKILL:when={n}", program.BIN, *case.command],
        stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
        timeout=program.TIME_LIMIT, check=False,
    )
    if done.returncode in (-9, 137):
        return True
    if done.returncode != 0:
        sys.exit(f"strace: exit {done.returncode}: {done.stderr.decode('utf-8', 'replace')}")
    return False


def calls_made(case):
    """Which of the calls the program makes at all."""
    case.reset()
    log = case.out + "-calls"
    command = ["strace", "-f", "-qq", "-o", log, "-e", f"trace={','.join(CALLS)}", program.BIN]
    subprocess.run([*command, *case.command], stdout=subprocess.DEVNULL, check=True)
    with open(log, encoding="utf-8", errors="replace") as f:
        made = collections.Counter(line.split(None, 1)[1].split("(")[0] for line in f)
    print(f"{case.name} makes: " + ", ".join(f"{n} {call}" for call, n in made.items()))
    return [call for call in CALLS if made[call]]


def sweep_calls(case):
    sweep = Sweep(f"kill -9 at a call of {case.name}")
    begin = time.monotonic()
    step = scaled(1, 4)
    for call in calls_made(case):
        n = 1
        while kill_at(case, call, n):
            case.check(sweep, f"{call} number {n}")
            n += step
    sweep.end(f"{sweep.n} points, {time.monotonic() - begin:.1f} s")


def kill_after(case, seconds):
    case.reset()
    process = subprocess.Popen(
        [program.BIN, *case.command], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    time.sleep(seconds)
    process.kill()
    return process.wait() == -9


def sweep_times(case, n, dice):
    sweep = Sweep(f"kill -9 at random times of {case.name}")
    begin = time.monotonic()
    late = 0
    while sweep.n < n:
        seconds = dice.random() * case.seconds
        if kill_after(case, seconds):
            case.check(sweep, f"after {seconds * 1000:.2f} ms")
        else:
            late += 1
            if late > n + 100:
                sweep.complain("the program ends before it can be killed")
                break
    sweep.end(
        f"{sweep.n} kills in runs of {case.seconds * 1000:.0f} ms ({late} came too late), "
        f"{time.monotonic() - begin:.1f} s"
    )


def main():
    if not shutil.which("strace"):
        sys.exit("long_kill.py: needs strace")
    dice = random.Random(5)
    small = ("--block-samples", "3", "--shard-bytes", "12000")
    with program.scratch() as top:
        few, some, many = f"{top}/few", f"{top}/some", f"{top}/many"
        program.make_inputs("folder", few, 0, 7)
        program.make_inputs("folder", some, 0, 12)
        program.make_inputs("folder", many, 0, 60)
        start = f"{top}/start.pen"
        program.must("pack", few, "-o", start, "--threads", "1", *small)
        one = ("--threads", "1", *small)
        fresh = Case("a fresh pack", some, None, f"{top}/a.pen", *one)
        append = Case("an append", some, start, f"{top}/b.pen", "--append", *one)
        sweep_calls(fresh)
        sweep_calls(append)
        two = ("--threads", "2", *small)
        fresh = Case("a fresh pack", many, None, f"{top}/c.pen", *two)
        append = Case("an append", many, start, f"{top}/d.pen", "--append", *two)
        sweep_times(fresh, scaled(700, 28), dice)
        sweep_times(append, scaled(300, 12), dice)
    return Sweep.total()


if __name__ == "__main__":
    sys.exit(main())
