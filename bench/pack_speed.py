#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""How fast pack and verify are beside the tools people have: tar, jpegtran and cat.

    pack_speed.py [--photos DIR] [--penstock PROGRAM] [--rounds N] [keep] [index] [verify]

keep    `pack --mode keep --no-index` of the photographs times 20 (hard links), and of the same
        files `tar --hard-dereference -cf`
index   `pack --mode keep` of the photographs times 2, which finds the entries of every JPEG, and of
        the same files `jpegtran -copy none -optimize -restart 8B` under `xargs -P2`, the usual way
        to JPEGs that can be entered; fewer files, because they take jpegtran 11 milliseconds each
verify  `verify` of the pack that keep makes, and `cat` of its shards to /dev/null

The writers of other formats are in pack_peers.py (`./dev bench pack peers`).

All with a warm cache, 2 threads, and `sync` inside the time of what writes. The two sides take
turns, so that what else the machine does falls on both; a figure is the median of the rounds, and
the spread that of the ratios of one round. Ends with 1 when a ratio is under what is needed. With
--json FILE a line of JSON for each comparison is added to FILE.
"""

import argparse
import json
import os
import pathlib
import shutil
import statistics
import subprocess
import sys
import time

from common import places
from penstock.lab.loaders import report

ROOT = pathlib.Path(__file__).resolve().parents[1]
TIMES = {"keep": 20, "index": 2}
THREADS = 2
NEEDED = {"keep": 0.8, "index": 3.0, "verify": 0.5}


def run(*command, feed=None, cwd=None):
    done = subprocess.run([os.fspath(part) for part in command], input=feed, cwd=cwd, check=False,
                          stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    if done.returncode:
        sys.exit(f"{command[0]} ended with {done.returncode}: {done.stderr.decode()[-500:]}")


def remove(path):
    """Not in the time of anything: what is removed must be gone from the disk's queue too."""
    if path.is_dir():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)
    os.sync()


def link_all(photos, folder, times):
    """The photographs as DIR/CLASS/NAME-K.jpg, each K another link to one copy."""
    if (folder / ".done").exists():
        return
    copies = folder.parent / "copies"
    if not (copies / ".done").exists():
        shutil.rmtree(copies, ignore_errors=True)
        shutil.copytree(photos, copies, copy_function=shutil.copyfile)
        (copies / ".done").touch()
    shutil.rmtree(folder, ignore_errors=True)
    for file in sorted(copies.glob("*/*")):
        (folder / file.parent.name).mkdir(parents=True, exist_ok=True)
        for k in range(times):
            os.link(file, folder / file.parent.name / f"{file.stem}-{k:02}{file.suffix}")
    (folder / ".done").touch()


class Keep:
    what = "files/s"
    sides = "pack --mode keep --no-index", "tar -cf"

    def __init__(self, options):
        self.penstock, self.folder = options.penstock, options.work / "keep"
        self.pack, self.tar = options.work / "keep.pen", options.work / "keep.tar"
        link_all(options.photos, self.folder, options.times["keep"])
        self.amount = sum(1 for _ in self.folder.glob("*/*"))

    def before(self):
        remove(self.pack)
        remove(self.tar)

    def ours(self):
        run(self.penstock, "pack", self.folder, "-o", self.pack, "--mode", "keep",
            "--no-index", "--threads", str(THREADS))
        os.sync()

    def theirs(self):
        run("tar", "--hard-dereference", "-cf", self.tar, "-C", self.folder, ".")
        os.sync()


class Index:
    what = "files/s"
    sides = "pack --mode keep", "jpegtran under xargs -P2"

    def __init__(self, options):
        self.penstock, self.folder = options.penstock, options.work / "index"
        self.pack, self.out = options.work / "index.pen", options.work / "jpegtran"
        link_all(options.photos, self.folder, options.times["index"])
        files = sorted(self.folder.glob("*/*"))
        self.amount = len(files)
        self.pairs = "".join(f"{self.out / str(n)}\0{file}\0" for n, file in enumerate(files))

    def before(self):
        remove(self.pack)
        remove(self.out)
        self.out.mkdir()

    def ours(self):
        run(self.penstock, "pack", self.folder, "-o", self.pack, "--mode", "keep", "--threads",
            str(THREADS))
        os.sync()

    def theirs(self):
        run("xargs", "-0", f"-P{THREADS}", "-n2", "jpegtran", "-copy", "none", "-optimize",
            "-restart", "8B", "-outfile", feed=self.pairs.encode())
        os.sync()


class Verify:
    what = "MB/s"
    sides = "verify", "cat > /dev/null"

    def __init__(self, options):
        self.penstock, self.pack = options.penstock, options.work / "keep.pen"
        if not (self.pack / "manifest").exists():
            keep = Keep(options)
            keep.before()
            keep.ours()
        self.shards = sorted(self.pack.glob("*/*.shard"))
        self.amount = sum(file.stat().st_size for file in self.shards) / 1e6
        self.theirs()  # warms the cache

    def before(self):
        pass

    def ours(self):
        run(self.penstock, "verify", self.pack, "--threads", str(THREADS))

    def theirs(self):
        run("cat", *self.shards)


def timed(call):
    start = time.monotonic()
    call()
    return time.monotonic() - start


def compare(name, kind, options):
    test = kind(options)
    rates = ([], [])
    for n in range(options.rounds):
        sides = [(test.ours, 0), (test.theirs, 1)]
        for call, side in sides if n % 2 == 0 else sides[::-1]:
            test.before()
            rates[side].append(test.amount / timed(call))
            if options.verbose:
                print(f"{name}: {test.sides[side]}: {rates[side][-1]:.0f} {test.what}", flush=True)
    ratios = sorted(a / b for a, b in zip(*rates))
    ours, theirs = (statistics.median(side) for side in rates)
    return {"name": name, "what": test.what, "ours": round(ours, 1), "theirs": round(theirs, 1),
            "ratio": round(ours / theirs, 3), "spread": [round(ratios[0], 3), round(ratios[-1], 3)],
            "needed": NEEDED[name], "rounds": options.rounds, "amount": round(test.amount, 1),
            "sides": list(test.sides)}


KINDS = {"keep": Keep, "index": Index, "verify": Verify}


def options_of(arguments):
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--photos", type=pathlib.Path, default=places.default_photos())
    parser.add_argument("--penstock", type=pathlib.Path, default=ROOT / "build" / "penstock")
    parser.add_argument("--work", type=pathlib.Path, default=ROOT / "build" / "bench")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--json", type=pathlib.Path)
    parser.add_argument("--verbose", action="store_true", help="a line for each run")
    parser.add_argument("what", nargs="*", choices=[*KINDS, []])
    options = parser.parse_args(arguments)
    options.times = TIMES
    if not options.photos.is_dir():
        parser.exit(77, f"no photographs at {options.photos}; say where with --photos\n")
    return options


def record_row(row):
    ours, theirs = row["sides"]
    amount = f"{row['amount']:,.0f} {row['what'].split('/')[0]}"
    return [f"`{ours}`, {amount}", f"{row['ours']:,.0f} {row['what']}",
            f"`{theirs}`: {row['theirs']:,.0f}",
            f"{row['ratio']:.2f} ({row['spread'][0]:.2f}-{row['spread'][1]:.2f})",
            str(row["needed"])]


def table(rows):
    return report.table([["", "penstock", "other", "ratio (rounds)", "needed"],
                         *map(record_row, rows)])


def main():
    options = options_of(None)
    rows = []
    options.work.mkdir(parents=True, exist_ok=True)
    options.work = options.work.resolve()
    here, short = places.machine(), False
    print(f"{here['cpu']}, {here['cores']} cores, kernel {here['kernel']}, {options.rounds} rounds")
    print(f"{'':<8} {'ours':>9} {'theirs':>9} {'':<8} {'ratio':>6} {'spread':>13} {'needed':>6}")
    for name in options.what or KINDS:
        row = compare(name, KINDS[name], options)
        rows.append(row)
        low, high = row["spread"]
        enough = row["ratio"] >= row["needed"]
        short |= not enough
        print(f"{name:<8} {row['ours']:>9.0f} {row['theirs']:>9.0f} {row['what']:<8} "
              f"{row['ratio']:>6.2f} {low:>6.2f}-{high:<6.2f} {row['needed']:>6.2f}"
              f"{'' if enough else '  SHORT'}", flush=True)
        if options.json:
            with open(options.json, "a", encoding="utf-8") as f:
                f.write(json.dumps({**row, **here}) + "\n")
    print("\n" + table(rows))
    return 1 if short else 0


if __name__ == "__main__":
    sys.exit(main())
