# SPDX-License-Identifier: Apache-2.0
"""Asks for the bottleneck where one thing is slow, and compares the gain of the first advice with
the predicted one. Cases that need root, cgroups, FUSE or a network namespace are skipped if these
are missing."""

import pathlib
import re
import sys
import tempfile

from _package import BUILD, FULL, ROOT, Tests, scaled

sys.path.insert(0, str(ROOT / "tests" / "verdict"))

import cases
import gains
import packs
import shapes

GAINS = ("slow disk", "request latency", "decoding", "too few threads", "memory", "Python function")
OFF = 0.30  # how far the gain may be from the predicted one


def ask_loader(case, folder):
    """Its counters, and the text of its report. A second time, and for longer, if other programs
    may have been what was slow."""
    try:
        return ask_once(case, folder, scaled(5, 1.5))
    except AssertionError as error:
        print(f"{case.name}: asked again: {error}")
        return ask_once(case, folder, 5)


def ask_once(case, folder, seconds):
    report = cases.run(case, folder, seconds)["report"]
    assert report["bottleneck"] == case.verdict, f"expected {case.verdict}, found {report}"
    assert report["straggler"] == case.straggler, f"expected {case.straggler}, found {report}"
    first = report["text"].splitlines()[0]
    assert re.match(rf"Bottleneck: {case.verdict}\b", first), report["text"]
    return f"{case.verdict}, waited for {report['wait_share_max']:.0%} of the time"


def ask_doctor(case, folder):
    report = cases.run(case, folder, 5, doctor=True)["report"]
    advice = [f"{one['change']} {one['expected_gain']:.2f}" for one in report["advice"]]
    text = f"{report['samples_per_second']:.0f} samples/s, {report['bottleneck']}; {advice}"
    assert report["bottleneck"] == case.verdict, f"expected {case.verdict}, found {text}"
    assert report["advice"][0]["change"] == case.advice, f"expected {case.advice}, found {text}"
    return text


def predict(case, folder, seconds):
    """The gain of the first advice. Of what only Python knows, the report has it."""
    report = cases.run(case, folder, seconds, doctor=not is_python(case))["report"]
    if "advice" in report:
        return report["advice"][0]["expected_gain"]
    advice = report["text"].partition("what to change")[2]
    return float(re.search(r"([\d.]+) times ", advice)[1])


def compare_gain(case, folder):
    seconds = 12 if case.remote else 5  # slow responses come in bursts
    expected = predict(case, folder, seconds)
    found = gains.measure(case, folder, rounds=3, seconds=seconds)
    text = f"{case.advice}: predicted {expected:.2f} times the rate, measured {found:.2f}"
    assert abs(found / expected - 1) <= OFF, text
    return text


def is_python(case):
    return bool({"transform", "beside"} & set(case.job))


def ask(tests, case, folder):
    tests.run(case.name, ask_loader, case, folder)
    if FULL and not is_python(case):
        tests.run(f"{case.name}, doctor", ask_doctor, case, folder)
    if FULL and case.name in GAINS:
        tests.run(f"{case.name}, gain", compare_gain, case, folder)


def main():
    tests, skipped = Tests("verdict"), 0
    with tempfile.TemporaryDirectory(prefix="penstock-verdict-", dir=BUILD) as name:
        folder = pathlib.Path(name)
        (folder / "packs").mkdir()
        for kind in packs.KINDS:
            packs.make(kind, folder / "packs" / f"{kind}.pen")
        for case in cases.CASES:
            try:
                ask(tests, case, folder)
            except shapes.Absent as why:
                print(f"verdict: {case.name}: skipped: {why}")
                skipped += 1
    return tests.end(skipped)


if __name__ == "__main__":
    sys.exit(main())
