#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Mutation testing: changes one line at a time and sees whether the nearest tests notice.

    mutate [N] [--seed S]    N mutants (default 300) of the lines that tests run, at HEAD
    mutate again [--seed S]  those that survived, with the tests of HEAD
    mutate report [--seed S] the figures so far
    mutate self-test

What is not committed is not seen. Results go to build/mutate/results.jsonl, and a run that was
stopped continues there. tests/mutants/equivalent.txt lists mutants that no test can notice."""

import argparse
import concurrent.futures
import json
import os
import pathlib
import queue
import random
import subprocess
import sys
import threading
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
sys.dont_write_bytecode = True
from coverage import HOME, PYTHON, ROOT, cover  # noqa: E402
from operators import mutants_of  # noqa: E402
from trial import PYTEST_COUNT, PYTEST_SECONDS, UNIT_COUNT, UNIT_SECONDS, Worker  # noqa: E402

RESULTS = HOME / "results.jsonl"
EQUIVALENT = ROOT / "tests" / "mutants" / "equivalent.txt"
GOAL = 90  # percent


def git(*words):
    return subprocess.run(
        ["git", "-C", str(ROOT), *words], capture_output=True, text=True, check=True
    ).stdout


def candidates(commit, map_, seed):
    """All mutants of covered lines, one a line, in the order of the seed."""
    found = []
    rng = random.Random(seed)
    for path, covered in sorted(map_["covered"].items()):
        # A header of the lowest floor would build everything anew for each mutant.
        if path.startswith("src/base/") and path.endswith(".h"):
            continue
        text = git("show", f"{commit}:{path}")
        options = mutants_of(path, text)
        lines = text.split("\n")
        for line in covered:
            if line in options:
                operator, new = rng.choice(options[line])
                found.append(
                    {
                        "file": path,
                        "line": line,
                        "operator": operator,
                        "old": lines[line - 1],
                        "new": new,
                    }
                )
    rng.shuffle(found)
    return found


def top_folder(path):
    """net for src/net/s3/xml.c."""
    return path.removeprefix("src/").split("/")[0]


def is_near(test, path):
    """Whether a test's name says that it is of this file, as test_net_xml of src/net/s3/xml.c."""
    stem = pathlib.PurePath(test.split("::")[0]).stem.removeprefix("test_")
    own = pathlib.PurePath(path).stem.removeprefix("_")
    name = stem.removeprefix(f"{top_folder(path)}_")
    return stem in (f"cli_{own}", f"py_{own}") or own.startswith(name) or name.endswith(own)


def take(tests, seconds, count):
    """The first of these (name, seconds) that together stay within the limits; at least one."""
    taken, total = [], 0.0
    for name, each in tests:
        if taken and (total + each > seconds or len(taken) == count):
            break
        taken.append((name, each))
        total += each
    return taken


def nearest(map_, mutant, new_tests=(), patience=1):
    """The tests of the map that run the mutant's line, and new ones that may."""
    path, line = mutant["file"], mutant.get("map_line", mutant["line"])
    names = set(map_["lines"].get(path, {}).get(str(line), []))
    for span, tests in map_["functions"].get(path, {}).items():
        first, last = map(int, span.split("-"))
        if first <= line <= last:
            names.update(tests)
    if path.endswith(".py"):  # what runs when it is imported belongs to no test
        names.update(name for name in map_["tests"] if is_near(name, path))
    ordered = sorted(
        ((name, map_["tests"][name]) for name in names if name in map_["tests"]),
        key=lambda test: (not is_near(test[0], path), test[1], test[0]),
    )
    unit = [t for t in ordered if "::" not in t[0]]
    python = [t for t in ordered if "::" in t[0]]
    files = {name.split("::")[0] for name, _ in python}
    folder = f"tests/unit/test_{top_folder(path)}_"
    new_unit = [(name, 5.0) for name in new_tests if name.startswith(folder)]
    new_python = [(name, 5.0) for name in new_tests if name.split("::")[0] in files]
    return {
        "unit": new_unit + take(unit, UNIT_SECONDS * patience, UNIT_COUNT * patience),
        "pytest": new_python + take(python, PYTEST_SECONDS * patience, PYTEST_COUNT * patience),
    }


def key(mutant):
    return (mutant["file"], mutant["old"].strip(), mutant["new"].strip())


def read_equivalent(text):
    """{(file, old line, new line): reason}; entries are four lines, separated by blank ones."""
    found = {}
    for entry in text.split("\n\n"):
        lines = [line for line in entry.strip().splitlines() if not line.startswith("#")]
        if not lines:
            continue
        if len(lines) != 4 or not lines[1].startswith("- ") or not lines[2].startswith("+ "):
            raise SystemExit(
                f"mutate: {EQUIVALENT.name}: expected a file, '- old', '+ new' and a reason, "
                f"found {lines}"
            )
        found[(lines[0], lines[1][2:].strip(), lines[2][2:].strip())] = lines[3]
    return found


def by_hand():
    return read_equivalent(EQUIVALENT.read_text()) if EQUIVALENT.exists() else {}


class Record:
    """The verdicts of one seed; the last one of a mutant counts."""

    def __init__(self, seed):
        self.seed, self.lock, self.last = seed, threading.Lock(), {}
        if RESULTS.exists():
            for line in RESULTS.read_text().splitlines():
                result = json.loads(line)
                if result["seed"] == seed:
                    self.last[key(result), result["line"]] = result

    def of(self, mutant):
        return self.last.get((key(mutant), mutant.get("map_line", mutant["line"])))

    def add(self, mutant, verdict, by, seconds, commit):
        mutant = {**mutant, "line": mutant.get("map_line", mutant["line"])}
        result = {
            **mutant,
            "seed": self.seed,
            "commit": commit,
            "verdict": verdict,
            "by": by,
            "seconds": round(seconds, 1),
        }
        with self.lock:
            self.last[key(mutant), mutant["line"]] = result
            with open(RESULTS, "a") as file:
                file.write(json.dumps(result) + "\n")
            print(
                f"{verdict:14} {seconds:5.1f} s  {mutant['file']}:{mutant['line']}: "
                + mutant["operator"]
                + (f"  [{by[:90]}]" if by else ""),
                flush=True,
            )


def run_all(mutants, record, map_, commit, jobs, wanted=None, **how):
    """Tries mutants in order until `wanted` of them have a verdict that counts."""
    workers = queue.Queue()
    for number in range(jobs):
        workers.put(Worker(number, commit))

    def one(mutant):
        worker = workers.get()
        start = time.monotonic()
        try:
            verdict, by = worker.trial(mutant, nearest(map_, mutant, **how))
        finally:
            workers.put(worker)
        record.add(mutant, verdict, by, time.monotonic() - start, commit)
        return verdict

    with concurrent.futures.ThreadPoolExecutor(jobs) as pool:
        counted, running, left = 0, set(), iter(mutants)
        while True:
            while len(running) < jobs and (wanted is None or counted + len(running) < wanted):
                mutant = next(left, None)
                if mutant is None:
                    break
                if wanted is not None and record.of(mutant):
                    counted += record.of(mutant)["verdict"] != "does not build"
                    continue
                running.add(pool.submit(one, mutant))
            if not running:
                return
            done, running = concurrent.futures.wait(
                running, return_when=concurrent.futures.FIRST_COMPLETED
            )
            counted += sum(task.result() != "does not build" for task in done)


def place_again(commit, mutant):
    """The mutant in a newer tree: the same text, nearest to where it was. None: it is gone."""
    try:
        lines = git("show", f"{commit}:{mutant['file']}").split("\n")
    except subprocess.CalledProcessError:
        return None
    places = [i + 1 for i, line in enumerate(lines) if line == mutant["old"]]
    if not places:
        return None
    return {
        **{k: mutant[k] for k in ("file", "operator", "old", "new")},
        "map_line": mutant["line"],
        "line": min(places, key=lambda place: abs(place - mutant["line"])),
    }


def tests_since(map_, commit):
    """Tests that the map does not have: new unit programs, and pytest's of files that changed."""
    changed = git("diff", "--name-only", map_["commit"], commit, "--", "tests").split()
    unit = [name.removesuffix(".c") for name in changed if name.startswith("tests/unit/test_")]
    files = [n for n in changed if n.startswith("tests/python/test_") and (ROOT / n).exists()]
    words = [str(PYTHON), "-m", "pytest", "--collect-only"]  # -q is set in pyproject.toml
    listed = subprocess.run(words + files, cwd=ROOT, capture_output=True, text=True, check=False)
    python = [line for line in listed.stdout.splitlines() if files and "::" in line]
    return [name for name in unit + python if name not in map_["tests"]]


def report(record):
    reasons = by_hand()
    groups = {
        "killed": [],
        "survived": [],
        "equivalent": [],
        "same code": [],
        "does not build": [],
        "gone": [],
    }
    for result in record.last.values():
        verdict = result["verdict"]
        if verdict == "survived" and key(result) in reasons:
            verdict = "equivalent"
        groups[verdict].append(result)
    for result in groups["survived"]:
        print(
            f"survived: {result['file']}:{result['line']}: {result['operator']}\n"
            f"  - {result['old'].strip()}\n  + {result['new'].strip()}"
        )
    for result in groups["equivalent"]:
        print(f"equivalent: {result['file']}: {result['new'].strip()}: {reasons[key(result)]}")
    killed, survived = len(groups["killed"]), len(groups["survived"])
    share = 100 * killed / max(1, killed + survived)
    commits = sorted({r["commit"][:12] for r in record.last.values()})
    print(
        f"seed {record.seed}, commits {' '.join(commits)}: {killed} killed, {survived} survived, "
        f"{len(groups['equivalent'])} equivalent by hand, {len(groups['same code'])} the same "
        f"code at -O2, "
        f"{len(groups['does not build'])} do not build: {share:.1f} % killed"
    )
    return share >= GOAL


def self_test():
    text = "int f(int a)\n{\n    /* a < b */\n    if (a < 3)\n"
    text += '        return g("x + 1", a);\n    h(a);\n}\n'
    found = mutants_of("x.c", text)
    assert sorted(found) == [4, 5, 6], found
    assert ("relation", "    if (a <= 3)") in found[4]
    assert ("negate", "    if (!(a < 3))") in found[4]
    assert ("constant", "    if (a < 4)") in found[4]
    assert found[5] == [("skip check", "        ;")], found[5]
    assert found[6] == [("remove statement", "    ;")]
    python = mutants_of(
        "x.py", 'def f(a):\n    """a + 1"""\n    if a is None:\n        return a + 1\n    g(a)\n'
    )
    assert sorted(python) == [3, 4, 5], python
    assert ("return", "        return None") in python[4]
    assert ("remove statement", "    pass") in python[5]
    entry = read_equivalent("# why\nsrc/a.c\n- x < 1\n+ x <= 1\nx is never 1\n")
    assert entry == {("src/a.c", "x < 1", "x <= 1"): "x is never 1"}
    assert take([("a", 9.0), ("b", 2.0)], 10, 5) == [("a", 9.0)]
    assert is_near("tests/unit/test_net_pace", "src/net/retry/pace.c")
    assert not is_near("tests/unit/test_net_sign", "src/net/retry/pace.c")
    print("1 passed, 0 failed")


def main():
    parser = argparse.ArgumentParser(prog="mutate")
    parser.add_argument(
        "what", nargs="?", default="300", help="a number, again, report or self-test"
    )
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--commit", default="HEAD", help="the tree to mutate")
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    args = parser.parse_args()
    if args.what == "self-test":
        return self_test()
    if args.what not in ("again", "report") and not args.what.isdigit():
        parser.error(f"expected a number, again, report or self-test, found {args.what!r}")
    os.nice(10)
    HOME.mkdir(parents=True, exist_ok=True)
    commit = git("rev-parse", args.commit).strip()
    record = Record(args.seed)
    if args.what == "again":
        map_ = json.loads((HOME / "map.json").read_text())
        left = [
            r
            for r in record.last.values()
            if r["verdict"] == "survived" and key(r) not in by_hand()
        ]
        placed = [(r, place_again(commit, r)) for r in left]
        for r, place in placed:
            if place is None:
                record.add(r, "gone", None, 0, commit)
        run_all(
            [p for _, p in placed if p],
            record,
            map_,
            commit,
            args.jobs,
            new_tests=tests_since(map_, commit),
            patience=3,
        )
    elif args.what != "report":
        map_ = cover(commit, args.jobs)
        run_all(
            candidates(commit, map_, args.seed), record, map_, commit, args.jobs, int(args.what)
        )
    return 0 if report(record) else 1


if __name__ == "__main__":
    sys.exit(main())
