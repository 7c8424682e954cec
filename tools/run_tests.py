#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Run test programs with a time limit and add up what they report.

A test program ends with a line `N passed, M failed` (`, K skipped` may follow) and exits 0, 1, or
77 when everything was skipped; pytest's closing line is understood too. A program that crashes,
exceeds its time limit, reports nothing, or exits with an error although nothing failed counts as
one failure. Of a pytest that ends like that (tools/run_pytest.py), the finished tests are counted,
and the failure has the name of the test that was running.

Every run adds a line to a tally file, and every failure a line to F.failed; `sum` prints the
failures and then the total, which is the last line of ./dev ci.

With --again, tests that failed are run once more when all others are done, alone. Processes that
wait for each other can be late on a busy machine; a defect fails twice. What passes the second time
counts as passed, is written to F.again with its first output, and is listed by `sum`. Crashes,
findings of sanitizers and time limits are never repeated.

    run_tests.py run --tally F --label L [--limit S] [--jobs N] [--plain] [--again] [--show RE]
                     COMMAND...
    run_tests.py fail --tally F --label L       a step that could not run at all
    run_tests.py sum --tally F
    run_tests.py flakes --tally F --runs N      which tests failed in how many of N runs
    run_tests.py self-test
"""

import argparse
import collections
import concurrent.futures
import contextlib
import io
import json
import os
import re
import shlex
import signal
import subprocess
import sys
import tempfile
import time

OWN_LINE = re.compile(r"^(\d+) passed, (\d+) failed(?:, (\d+) skipped)?$")
PYTEST_PART = re.compile(r"(\d+) (passed|failed|errors?|skipped|xfailed|xpassed|deselected)\b")
PYTEST_LINE = re.compile(r"^=* ?((no tests ran|\d+ [a-z]+)(, \d+ [a-z]+)*) in [\d.]+s.*$")
# What no second run excuses.
DEFECT = re.compile(
    r"Sanitizer|runtime error:|[Ss]egmentation fault|SIG(SEGV|ABRT|BUS|ILL)|core dumped")
# C++, of which the core has none: at exit, threads of torch's Gloo may still hold tensors of Python
# (github.com/pytorch/pytorch/issues/190489).
FOREIGN_ABORT = "terminate called without an active exception"
# What Ray says of any worker that is gone. One of its threads calls getenv() while another one sets
# variables, and sometimes crashes.
RAY_ADVICE = "due to SIGSEGV or another unexpected error"
UNIT_FAILURE = re.compile(r"^\S+:\d+: (\w+): ")  # as tests/unit/test.h prints it
SHOWN_ON_FAILURE = 60  # lines
SHOWN_IN_SUM = 60  # lines of all failures together: ./dev ci is to be read from its last 100

Result = collections.namedtuple("Result", "command counts why text seconds failures")
Failure = collections.namedtuple("Failure", "name output")


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


class TestLog:
    """What tools/run_pytest.py has written: the tests that finished, and the one that did not."""

    def __init__(self, lines):
        self.finished, self.running = [], None
        for line in lines:
            if "started" in line:
                self.running = line["started"]
            else:
                self.finished.append(line)
                if line["test"] == self.running:
                    self.running = None

    @classmethod
    def read(cls, path):
        with open(path, encoding="utf-8") as f:
            # A program that was killed may have left half a line.
            return cls(json.loads(line) for line in f if line.endswith("\n"))

    def counts(self):
        """As parse_counts; None when no test finished."""
        n = collections.Counter(line["outcome"] for line in self.finished)
        return (n["passed"], n["failed"], n["skipped"]) if n else None

    def failures(self):
        return [Failure(line["test"], line["output"]) for line in self.finished
                if line["outcome"] == "failed"]


NO_LOG = TestLog(())


def judge(code, text, plain, log=NO_LOG):
    """((passed, failed, skipped), why it failed or None) from an exit code (None: out of time)."""
    counts = parse_counts(text) or log.counts()
    if code is None:
        why = "exceeded its time limit"
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
    if log.running:
        why += f" in {log.running}"
    return (passed, failed + 1, skipped), why


def failures_of(command, counts, why, text, log):
    """The failures by name, each with its output: as many as were counted, where that is known."""
    if not why:
        return []
    found = log.failures()
    if not found:
        names = dict.fromkeys(m.group(1) for m in map(UNIT_FAILURE.match, text.splitlines()) if m)
        found = [Failure(f"{name_of(command)} {name}", text) for name in names]
    if len(found) < counts[1]:
        found.append(Failure(log.running or name_of(command), f"{text}\n{why}"))
    return found


def run_process(command, limit, log_path):
    """(exit code or None when out of time, output)."""
    # A session of its own, so that running out of time ends the children too.
    process = subprocess.Popen(
        shlex.split(command),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        start_new_session=True,
        env={**os.environ, "PENSTOCK_TEST_LOG": log_path},
    )
    try:
        output, _ = process.communicate(timeout=limit)
        code = process.returncode
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        output, _ = process.communicate()
        code = None
    return code, output.decode("utf-8", "replace")


def run_one(command, limit, plain):
    start = time.monotonic()
    with tempfile.NamedTemporaryFile(prefix="penstock-tests-") as file:
        try:
            code, text = run_process(command, limit, file.name)
        except OSError as error:
            failure = Failure(name_of(command), str(error))
            return Result(command, (0, 1, 0), "could not start", str(error), 0, [failure])
        log = TestLog.read(file.name)
    counts, why = judge(code, text, plain, log)
    failures = failures_of(command, counts, why, text, log)
    return Result(command, counts, why, text, time.monotonic() - start, failures)


def name_of(command):
    words = shlex.split(command)
    while len(words) > 1 and (words[0] in ("env", "qemu-aarch64") or "=" in words[0]):
        words.pop(0)
    scripts = [w for w in words if w.endswith((".py", ".sh")) and not w.endswith("/run_pytest.py")]
    return os.path.basename((scripts or words)[0])


def shortened(command):
    return command if len(command) <= 300 else command[:300] + " ..."


def add_to_tally(path, label, counts, seconds):
    os.makedirs(os.path.dirname(path) or ".", exist_ok=True)
    with open(path, "a", encoding="utf-8") as f:
        f.write(f"{counts[0]} {counts[1]} {counts[2]} {seconds:.1f} {label}\n")


def add_to_failures(path, label, failures):
    if not failures:
        return
    with open(path, "a", encoding="utf-8") as f:
        for failure in failures:
            lines = failure.output.rstrip().splitlines()[-SHOWN_IN_SUM:]
            f.write(json.dumps({"label": label, "name": failure.name, "output": lines}) + "\n")


def read_failures(path):
    try:
        with open(path, encoding="utf-8") as f:
            return [json.loads(line) for line in f]
    except FileNotFoundError:
        return []


def total_line(counts):
    line = f"{counts[0]} passed, {counts[1]} failed"
    return line + (f", {counts[2]} skipped" if counts[2] else "")


def print_result(result, args):
    name = name_of(result.command)
    if result.why:
        lines = result.text.rstrip().splitlines()
        print(f"--- {name}: {result.why}; to run it again: {shortened(result.command)}")
        print("\n".join(lines[-SHOWN_ON_FAILURE:]))
    elif args.verbose or result.seconds > 30:
        print(f"    {name}: {total_line(result.counts)} in {result.seconds:.1f} s")
    if args.show:
        for line in result.text.splitlines():
            if re.search(args.show, line):
                print(f"    {name}: {line.strip()}")
    sys.stdout.flush()


def is_pytest(command):
    return any(word.endswith("/run_pytest.py") for word in shlex.split(command))


def is_defect(output):
    return DEFECT.search(output.replace(RAY_ADVICE, "")) and FOREIGN_ABORT not in output


def may_run_again(result):
    """Only what ended by itself. Of a pytest the failures are run by name, so all must be known."""
    return (result.why in (f"{result.counts[1]} failed", "exit 1")
            and (len(result.failures) == result.counts[1] or not is_pytest(result.command))
            and not any(is_defect(failure.output) for failure in result.failures))


def command_of(result):
    """Of a pytest, the command that runs the failed tests alone."""
    if not is_pytest(result.command):
        return result.command
    words = shlex.split(result.command)
    words = [w for w in words if not w.endswith(".py") or w.endswith("/run_pytest.py")]
    return shlex.join([*words, *dict.fromkeys(failure.name for failure in result.failures)])


def run_again(result, args):
    """The result with what passed the second time counted as passed."""
    second = run_one(command_of(result), args.limit, args.plain)
    if second.why:
        print_result(second, args)
        return result
    print(f"{args.label}: passed when run again, alone: "
          + ", ".join(failure.name for failure in result.failures), flush=True)
    add_to_failures(args.tally + ".again", args.label, result.failures)
    passed, failed, skipped = result.counts
    return result._replace(counts=(passed + failed, 0, skipped), why=None, failures=[])


def run_all(args):
    with concurrent.futures.ThreadPoolExecutor(args.jobs) as threads:
        tasks = [threads.submit(run_one, c, args.limit, args.plain) for c in args.command]
        for task in concurrent.futures.as_completed(tasks):
            print_result(task.result(), args)
    for result in (task.result() for task in tasks):
        yield run_again(result, args) if args.again and may_run_again(result) else result


def do_run(args):
    total = [0, 0, 0]
    start = time.monotonic()
    for result in run_all(args):
        total = [a + b for a, b in zip(total, result.counts)]
        add_to_failures(args.tally + ".failed", args.label, result.failures)
    seconds = time.monotonic() - start
    add_to_tally(args.tally, args.label, total, seconds)
    print(f"{args.label}: {total_line(total)} in {seconds:.1f} s", flush=True)
    return 1 if total[1] else 0


def do_fail(args):
    add_to_tally(args.tally, args.label, (0, 1, 0), 0)
    add_to_failures(args.tally + ".failed", args.label, [Failure(args.label, "could not run")])
    print(f"{args.label}: could not run", flush=True)
    return 1


def print_failures(failures):
    """The ends of their outputs, SHOWN_IN_SUM lines in all, then their names."""
    each = max(3, SHOWN_IN_SUM // len(failures) - 1)
    for failure in failures[: SHOWN_IN_SUM // 4]:
        print(f"--- {failure['label']}: {failure['name']}")
        for line in failure["output"][-each:]:
            print(f"    {line}")
    print("failed:")
    for failure in failures[:SHOWN_ON_FAILURE]:
        print(f"  {failure['label']}: {failure['name']}")
    if len(failures) > SHOWN_ON_FAILURE:
        print(f"  and {len(failures) - SHOWN_ON_FAILURE} more")


def do_sum(args):
    total = [0, 0, 0]
    try:
        with open(args.tally, encoding="utf-8") as f:
            rows = [line.split(None, 4) for line in f]
    except FileNotFoundError:
        rows = []
    for late in read_failures(args.tally + ".again"):
        print(f"passed when run again, alone: {late['label']}: {late['name']}")
    failures = read_failures(args.tally + ".failed")
    if failures:
        print_failures(failures)
    print(f"{'step':<24} {'passed':>8} {'failed':>7} {'skipped':>8} {'seconds':>8}")
    for passed, failed, skipped, seconds, label in rows:
        total = [a + int(b) for a, b in zip(total, (passed, failed, skipped))]
        print(f"{label.strip():<24} {passed:>8} {failed:>7} {skipped:>8} {seconds:>8}")
    if not total[0] and not total[1]:
        print("no test reported anything")
        total[1] = 1
    print(total_line(total), flush=True)
    return 1 if total[1] else 0


def do_flakes(args):
    failures = collections.Counter(f"{f['label']}: {f['name']}"
                                   for f in read_failures(args.tally + ".failed"))
    for name, count in failures.most_common():
        print(f"{count:>4} of {args.runs} runs  {name}")
    print(f"{len(failures)} tests failed at least once in {args.runs} runs")
    return 1 if failures else 0


# A pytest that hangs in its sixth test, as tools/run_pytest.py logs it.
HANGS = """cat >$PENSTOCK_TEST_LOG <<'END'
{"started": "t.py::a"}
{"test": "t.py::a", "outcome": "passed"}
{"test": "t.py::b", "outcome": "passed"}
{"test": "t.py::c", "outcome": "failed", "output": "1 is not 2"}
{"test": "t.py::d", "outcome": "skipped"}
{"started": "t.py::e"}
{"started":
END
truncate -s -1 $PENSTOCK_TEST_LOG
sleep 60"""


def check_names(unfinished):
    """How many of the failures have a wrong name."""
    unit = "src/x.c:7: adds: 1 is not 2\nsrc/x.c:9: adds: no\n1 passed, 1 failed\n"
    cases = (
        (unfinished.failures, ["t.py::c", "t.py::e"]),
        (failures_of("build/test_x", (1, 1, 0), "1 failed", unit, NO_LOG), ["test_x adds"]),
        (failures_of("build/test_x", (1, 1, 0), "exit 1", "", NO_LOG), ["test_x"]),
        (failures_of("build/test_x", (1, 0, 0), None, "", NO_LOG), []),
    )
    wrong = [(found, names) for found, names in cases if [f.name for f in found] != names]
    for found, names in wrong:
        print(f"names of failures: expected {names}, found {found}")
    return len(wrong)


# A test that fails when it is run for the first time, and one that crashes then.
ONCE = "test -e {0} && echo 1 passed, 0 failed && exit; touch {0}; echo 0 passed, {1} failed; {2}"


def check_again():
    """How many commands are wrongly judged after a second run."""
    wrong = 0
    with tempfile.TemporaryDirectory(prefix="penstock-tests-") as folder:
        cases = ((1, "exit 1", 0), (2, "exit 1", 0), (1, "echo ERROR: AddressSanitizer; exit 1", 1),
                 (1, "kill -9 $$", 1), (1, "rm " + folder + "/4; exit 1", 1))
        for number, (failed, end, code) in enumerate(cases):
            command = ONCE.format(f"{folder}/{number}", failed, end)
            args = argparse.Namespace(tally=f"{folder}/tally{number}", label="again", limit=9,
                                      jobs=1, plain=False, again=True, verbose=False, show=None,
                                      command=[f"sh -c {shlex.quote(command)}"])
            with contextlib.redirect_stdout(io.StringIO()):
                found = do_run(args)
            if found != code or os.path.exists(args.tally + ".again") != (code == 0):
                wrong += 1
                print(f"run again, {end}: expected {code}, found {found}")
    return wrong


def self_test(_):
    unfinished = run_one(f"sh -c {shlex.quote(HANGS)}", 2, False)
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
        (unfinished[1:3], (2, 2, 1), True),
    )
    failed = check_names(unfinished) + check_again()
    for number, ((counts, why), expected, fails) in enumerate(cases):
        if counts != expected or bool(why) != fails:
            failed += 1
            print(f"case {number}: expected {expected} and {fails}, found {counts} and {why}")
    print(total_line((len(cases) + 9 - failed, failed, 0)))
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
    run.add_argument("--again", action="store_true", help="run what failed once more, alone")
    run.add_argument("--show", help="print the output lines that match this pattern")
    run.add_argument("--verbose", action="store_true", help="a line for every program")
    run.add_argument("command", nargs="+", help="one program with its arguments, quoted")
    for verb in (run, verbs.add_parser("fail")):
        verb.add_argument("--label", required=True)
        verb.add_argument("--tally", required=True)
    verbs.add_parser("sum").add_argument("--tally", required=True)
    flakes = verbs.add_parser("flakes")
    flakes.add_argument("--tally", required=True)
    flakes.add_argument("--runs", type=int, required=True)
    verbs.add_parser("self-test")
    args = parser.parse_args()
    jobs = {"run": do_run, "fail": do_fail, "sum": do_sum, "flakes": do_flakes,
            "self-test": self_test}
    return jobs[args.verb](args)


if __name__ == "__main__":
    sys.exit(main())
