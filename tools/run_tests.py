#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Run test programs with a time limit and add up what they report.

A test program ends with a line `N passed, M failed` (`, K skipped` may follow) and exits 0, 1, or
77 when everything was skipped; pytest's closing line is understood too. A program that crashes,
runs out of time, reports nothing, or exits with an error although nothing failed counts as one
failure.
Every run adds a line to a tally file; `sum` prints the total, which is the last line of ./dev ci.

    run_tests.py run --tally F --label L [--limit S] [--jobs N] [--plain] [--show RE] COMMAND...
    run_tests.py fail --tally F --label L       a step that could not run at all
    run_tests.py sum --tally F
    run_tests.py self-test
"""

import argparse
import concurrent.futures
import os
import re
import shlex
import signal
import subprocess
import sys
import time

OWN_LINE = re.compile(r"^(\d+) passed, (\d+) failed(?:, (\d+) skipped)?$")
PYTEST_PART = re.compile(r"(\d+) (passed|failed|errors?|skipped|xfailed|xpassed|deselected)\b")
PYTEST_LINE = re.compile(r"^=* ?((no tests ran|\d+ [a-z]+)(, \d+ [a-z]+)*) in [\d.]+s.*$")
SHOWN_ON_FAILURE = 60  # lines


def parse_counts(text):
    """(passed, failed, skipped) of the last line that reports, or None."""
    for line in reversed(text.splitlines()):
        line = line.strip()
        own = OWN_LINE.match(line)
        if own:
            return tuple(int(n or 0) for n in own.groups())
        closing = PYTEST_LINE.match(line)
        if closing:
            n = dict.fromkeys(("passed", "failed", "skipped"), 0)
            for count, what in PYTEST_PART.findall(closing.group(1)):
                if what in ("passed", "xfailed"):
                    n["passed"] += int(count)
                elif what in ("failed", "error", "errors", "xpassed"):
                    n["failed"] += int(count)
                elif what == "skipped":
                    n["skipped"] += int(count)
            return n["passed"], n["failed"], n["skipped"]
    return None


def judge(code, text, plain):
    """((passed, failed, skipped), why it failed or None) from an exit code (None: out of time)."""
    counts = parse_counts(text)
    if code is None:
        why = "ran out of time"
    elif code < 0:
        why = f"killed by signal {-code} ({signal.strsignal(-code)})"
    elif plain:
        return ((1, 0, 0), None) if code == 0 else ((0, 1, 0), f"exit {code}")
    elif counts is None:
        why = f"exit {code} and no line 'N passed, M failed'"
    elif counts[1]:
        return counts, f"{counts[1]} failed"
    elif code == 77 and not counts[0]:
        return counts, None
    elif code == 5 and not counts[0]:
        return counts, None  # pytest: nothing selected, or whole files skipped
    elif code != 0:
        why = f"exit {code} although nothing failed"
    elif sum(counts) == 0:
        why = "ran no tests"
    else:
        return counts, None
    passed, failed, skipped = counts or (0, 0, 0)
    return (passed, failed + 1, skipped), why


def run_one(command, limit, plain):
    start = time.monotonic()
    try:
        # A session of its own, so that running out of time ends the children too.
        process = subprocess.Popen(
            shlex.split(command),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    except OSError as error:
        return command, (0, 1, 0), "could not start", str(error), 0
    try:
        output, _ = process.communicate(timeout=limit)
        code = process.returncode
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        output, _ = process.communicate()
        code = None
    text = output.decode("utf-8", "replace")
    counts, why = judge(code, text, plain)
    return command, counts, why, text, time.monotonic() - start


def name_of(command):
    words = shlex.split(command)
    while len(words) > 1 and (words[0] in ("env", "qemu-aarch64") or "=" in words[0]):
        words.pop(0)
    scripts = [w for w in words if w.endswith((".py", ".sh"))]
    return os.path.basename((scripts or words)[0])


def shortened(command):
    return command if len(command) <= 300 else command[:300] + " ..."


def add_to_tally(path, label, counts, seconds):
    os.makedirs(os.path.dirname(path) or ".", exist_ok=True)
    with open(path, "a", encoding="utf-8") as f:
        f.write(f"{counts[0]} {counts[1]} {counts[2]} {seconds:.1f} {label}\n")


def total_line(counts):
    line = f"{counts[0]} passed, {counts[1]} failed"
    return line + (f", {counts[2]} skipped" if counts[2] else "")


def do_run(args):
    total = [0, 0, 0]
    start = time.monotonic()
    with concurrent.futures.ThreadPoolExecutor(args.jobs) as threads:
        tasks = [threads.submit(run_one, c, args.limit, args.plain) for c in args.command]
        for task in concurrent.futures.as_completed(tasks):
            command, counts, why, text, seconds = task.result()
            total = [a + b for a, b in zip(total, counts)]
            if why:
                lines = text.rstrip().splitlines()
                print(f"--- {name_of(command)}: {why}; to run it again: {shortened(command)}")
                print("\n".join(lines[-SHOWN_ON_FAILURE:]))
            elif args.verbose or seconds > 30:
                print(f"    {name_of(command)}: {total_line(counts)} in {seconds:.1f} s")
            if args.show:
                for line in text.splitlines():
                    if re.search(args.show, line):
                        print(f"    {name_of(command)}: {line.strip()}")
            sys.stdout.flush()
    seconds = time.monotonic() - start
    add_to_tally(args.tally, args.label, total, seconds)
    print(f"{args.label}: {total_line(total)} in {seconds:.1f} s", flush=True)
    return 1 if total[1] else 0


def do_fail(args):
    add_to_tally(args.tally, args.label, (0, 1, 0), 0)
    print(f"{args.label}: could not run", flush=True)
    return 1


def do_sum(args):
    total = [0, 0, 0]
    try:
        with open(args.tally, encoding="utf-8") as f:
            rows = [line.split(None, 4) for line in f]
    except FileNotFoundError:
        rows = []
    print(f"{'step':<24} {'passed':>8} {'failed':>7} {'skipped':>8} {'seconds':>8}")
    for passed, failed, skipped, seconds, label in rows:
        total = [a + int(b) for a, b in zip(total, (passed, failed, skipped))]
        print(f"{label.strip():<24} {passed:>8} {failed:>7} {skipped:>8} {seconds:>8}")
    if not total[0] and not total[1]:
        print("no test reported anything")
        total[1] = 1
    print(total_line(total), flush=True)
    return 1 if total[1] else 0


def self_test(_):
    cases = (
        (judge(0, "3 passed, 0 failed\n", False), (3, 0, 0), False),
        (judge(0, "x\n3 passed, 0 failed, 2 skipped\n", False), (3, 0, 2), False),
        (judge(1, "3 passed, 1 failed\n", False), (3, 1, 0), True),
        (judge(1, "3 passed, 0 failed\nleak found\n", False), (3, 1, 0), True),
        (judge(-11, "3 passed, 0 failed\n", False), (3, 1, 0), True),
        (judge(None, "", False), (0, 1, 0), True),
        (judge(0, "all good\n", False), (0, 1, 0), True),
        (judge(0, "0 passed, 0 failed\n", False), (0, 1, 0), True),
        (judge(77, "0 passed, 0 failed, 1 skipped\n", False), (0, 0, 1), False),
        (judge(77, "1 passed, 0 failed\n", False), (1, 1, 0), True),
        (judge(0, "..\n2 passed, 1 skipped in 0.12s\n", False), (2, 0, 1), False),
        (judge(1, "1 failed, 2 passed, 1 error in 62.1s (0:01:02)\n", False), (2, 2, 0), True),
        (judge(0, "==== 2 passed in 0.12s ====\n", False), (2, 0, 0), False),
        (judge(5, "3 deselected in 0.1s\n", False), (0, 0, 0), False),
        (judge(5, "no tests ran in 0.01s\n", False), (0, 0, 0), False),
        (judge(0, "", True), (1, 0, 0), False),
        (judge(2, "", True), (0, 1, 0), True),
        (run_one("sh -c 'echo 1 passed, 0 failed; kill -9 $$'", 9, False)[1:3], (1, 1, 0), True),
        (run_one("sh -c 'sleep 60 & sleep 60'", 0.1, False)[1:3], (0, 1, 0), True),
        (run_one("/does/not/exist", 9, False)[1:3], (0, 1, 0), True),
    )
    failed = 0
    for number, ((counts, why), expected, fails) in enumerate(cases):
        if counts != expected or bool(why) != fails:
            failed += 1
            print(f"case {number}: expected {expected} and {fails}, found {counts} and {why}")
    print(total_line((len(cases) - failed, failed, 0)))
    return 1 if failed else 0


def main():
    # A shell that starts us in the background has Ctrl-C ignored, and so would all that we start.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    verbs = parser.add_subparsers(dest="verb", required=True)
    run = verbs.add_parser("run")
    run.add_argument("--limit", type=float, default=120, help="seconds for each program")
    run.add_argument("--jobs", type=int, default=1)
    run.add_argument("--plain", action="store_true", help="judge by the exit code alone")
    run.add_argument("--show", help="print the output lines that match this pattern")
    run.add_argument("--verbose", action="store_true", help="a line for every program")
    run.add_argument("command", nargs="+", help="one program with its arguments, quoted")
    for verb in (run, verbs.add_parser("fail")):
        verb.add_argument("--label", required=True)
        verb.add_argument("--tally", required=True)
    verbs.add_parser("sum").add_argument("--tally", required=True)
    verbs.add_parser("self-test")
    args = parser.parse_args()
    jobs = {"run": do_run, "fail": do_fail, "sum": do_sum, "self-test": self_test}
    return jobs[args.verb](args)


if __name__ == "__main__":
    sys.exit(main())
