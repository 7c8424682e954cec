# SPDX-License-Identifier: Apache-2.0
"""Runs of penstock-lab that are killed with -9 at random moments.

A sweep with fixed figures is killed again and again and continued with the same command, with
`resume`, or after its report has lost its last bytes. In the end its table is that of an
undisturbed run. `rerun` from the first line alone then has the same configuration and table.
"""

import json
import os
import pathlib
import random
import signal
import subprocess
import sys
import time

from _program import BUILD, ROOT, Sweep, scaled, scratch

KILLS = scaled(20, 5)
ROUNDS = scaled(20, 5)
TURN_S = 0.02
LIMIT_S = 120
FAKE = [sys.executable, str(ROOT / "tests" / "python" / "lab_fake.py")]
FLAGS = ["--rounds", str(ROUNDS), "--loaders", "a,b,missing,breaks"]


def environment(turn_s):
    return {**os.environ, "PYTHONPATH": str(BUILD / "python"), "LAB_FAKE_SLEEP": str(turn_s)}


def start(words, top, turn_s):
    return subprocess.Popen([*FAKE, *map(str, words)], cwd=top, env=environment(turn_s),
                            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def table(words, top):
    """The table that a run prints when it is complete; its message if it fails."""
    process = start(words, top, 0)
    out, err = process.communicate(timeout=LIMIT_S)
    if process.returncode:
        return f"exit code {process.returncode}: {err}"
    return [line for line in out.splitlines() if line.startswith("|")]


def tear(report, dice):
    """Cuts the last line, as a machine that lost its power may; never the first one."""
    data = report.read_bytes()
    last = data.rstrip(b"\n").rfind(b"\n") + 1
    if last > 0:
        report.write_bytes(data[: dice.randrange(last, len(data))])


def lines_of(report):
    return report.read_bytes().count(b"\n") if report.exists() else 0


def kill_once(sweep, top, report, dice):
    """Kills a run when it has written up to four lines; True when it was still running."""
    before = lines_of(report)
    words = ["resume", report.parent] if before and dice.random() < 0.5 else ["fake", *FLAGS]
    process = start(words, top, TURN_S)
    until = before + dice.randrange(5)
    while lines_of(report) < until and process.poll() is None:
        time.sleep(0.001)
    time.sleep(dice.uniform(0.0, 2 * TURN_S))
    process.send_signal(signal.SIGKILL)
    _, err = process.communicate(timeout=LIMIT_S)
    if process.returncode != -signal.SIGKILL:
        sweep.complain(f"'{' '.join(map(str, words))}' ended with {process.returncode} before it "
                       f"was killed: {err.strip()[-300:]}")
        return False
    if report.exists() and dice.random() < 0.3:
        tear(report, dice)
    return True


def killed(top, dice):
    sweep = Sweep("lab kills")
    expected = table(["fake", *FLAGS, "--out", "undisturbed"], top)
    name = f"fake-loaders_a+b+missing+breaks-r{ROUNDS}"
    report = top / "lab" / "fake" / name / "report.jsonl"
    for _ in range(KILLS):
        sweep.n += kill_once(sweep, top, report, dice)
    found = table(["fake", *FLAGS], top)
    if found != expected:
        sweep.complain(f"expected {expected}, found {found}")
    sweep.end(f"{sweep.n} runs killed and continued")
    return report, expected


def rerun(top, report, expected):
    sweep = Sweep("lab reruns")
    head = report.read_text(encoding="utf-8").splitlines()[0]
    (top / "first.jsonl").write_text(head + "\n", encoding="utf-8")
    for number in range(2):
        found = table(["rerun", "first.jsonl", "--out", f"rerun{number}"], top)
        if found != expected:
            sweep.complain(f"expected {expected}, found {found}")
            continue
        again = next((top / f"rerun{number}").rglob("report.jsonl"))
        lines = again.read_text(encoding="utf-8").splitlines()
        old, new = json.loads(head), json.loads(lines[0])
        if any(old[key] != new[key] for key in ("question", "name", "parameters", "inputs")):
            sweep.complain(f"expected the configuration {old}, found {new}")
        sweep.n += 1
    sweep.end(f"{sweep.n} runs repeated from the first line")


def main():
    if not (BUILD / "python" / "penstock" / "lab").is_dir():
        print("0 passed, 0 failed, 1 skipped")
        return 0
    with scratch() as place:
        top = pathlib.Path(place)
        report, expected = killed(top, random.Random(20))
        rerun(top, report, expected)
    return Sweep.total()


if __name__ == "__main__":
    sys.exit(main())
