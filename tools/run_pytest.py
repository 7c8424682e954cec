#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""pytest that also writes a line of JSON about every test to the file PENSTOCK_TEST_LOG names.

    build/venv/bin/python tools/run_pytest.py [pytest options] FILE...

The lines are written while the tests run, so that tools/run_tests.py knows which tests have
finished when pytest itself crashes or exceeds its time limit:

    {"started": "tests/python/test_x.py::test_y"}
    {"test": "tests/python/test_x.py::test_y", "outcome": "failed", "seconds": 0.5, "cpu": 0.2,
     "output": "..."}

Outcomes are passed, failed and skipped. A test that fails in its teardown as well has two lines.
`cpu` is the processor time of this process and of the programs it has waited for.
"""

import json
import os
import sys

import pytest


def cpu_seconds():
    return sum(os.times()[:4])


class Log:
    def __init__(self, file):
        self.file = file
        self.cpu = 0.0
        self.seconds = 0.0

    def write(self, **line):
        self.file.write(json.dumps(line) + "\n")
        self.file.flush()

    def pytest_runtest_logstart(self, nodeid):
        self.cpu, self.seconds = cpu_seconds(), 0.0
        self.write(started=nodeid)

    def pytest_runtest_logreport(self, report):
        self.seconds += report.duration
        outcome = report.outcome
        if report.when == "setup" and outcome == "passed":
            return
        if report.when == "teardown" and outcome == "passed":
            return
        if hasattr(report, "wasxfail"):  # an expected failure is what the test is for
            outcome = "passed" if report.skipped else "failed"
        line = {"test": report.nodeid, "outcome": outcome, "seconds": round(self.seconds, 3),
                "cpu": round(cpu_seconds() - self.cpu, 3)}
        if outcome == "failed":
            line["output"] = f"{report.longreprtext}\n{report.capstdout}{report.capstderr}"
        self.write(**line)

    def pytest_collectreport(self, report):
        if report.failed:
            self.write(test=report.nodeid, outcome="failed", seconds=0, cpu=0,
                       output=report.longreprtext)


def main():
    sys.path[0] = ""  # as with `python -m pytest`
    # What a test starts must not write to it.
    path = os.environ.pop("PENSTOCK_TEST_LOG", None)
    if not path:
        return pytest.main(sys.argv[1:])
    with open(path, "a", encoding="utf-8") as file:
        return pytest.main(sys.argv[1:], plugins=[Log(file)])


if __name__ == "__main__":
    sys.exit(main())
