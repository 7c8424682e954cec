# SPDX-License-Identifier: Apache-2.0
"""A plugin for pytest that records what each test runs: functions of C, lines of Python.

Programs that a test starts write their counters to a directory of its own (GCOV_PREFIX); the
package's counters are written when the test ends. Needs the tree that coverage.py builds."""

import atexit
import ctypes
import json
import os
import pathlib
import shutil
import sys
import tempfile
import threading
import time

import gcov_files
import pytest

OUT = pathlib.Path(os.environ["MUTATE_OUT"])  # BASE.jsonl and BASE/: the sum of all counters
SHM = "/dev/shm" if os.path.isdir("/dev/shm") else None
lines = set()
sums = {}


def trace_lines(frame, event, _):
    if event == "line":
        lines.add((os.path.basename(frame.f_code.co_filename), frame.f_lineno))
    return trace_lines


def trace_calls(frame, _event, _):
    return trace_lines if "/python/penstock/" in frame.f_code.co_filename else None


def dump_package():
    core = sys.modules.get("penstock._core")
    if core is not None:
        ctypes.CDLL(core.__file__).mutate_dump()


def collect(folder):
    """{object: functions run}, and the counters added to the sum."""
    found = {}
    for path in pathlib.Path(folder).rglob("*.gcda"):
        data = path.read_bytes()
        name = str(path.relative_to(folder))
        functions = gcov_files.functions_run(data)
        if functions:
            found[name] = functions
            sums[name] = gcov_files.added(sums.get(name), data)
    return found


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_protocol(item, nextitem):
    folder = tempfile.mkdtemp(prefix="mutate-", dir=SHM)
    os.environ["GCOV_PREFIX"] = folder
    lines.clear()
    item.mutate_failed = False
    start = time.monotonic()
    threading.settrace(trace_calls)
    sys.settrace(trace_calls)
    yield
    sys.settrace(None)
    threading.settrace(None)
    seconds = time.monotonic() - start
    dump_package()
    record = {
        "test": item.nodeid,
        "seconds": round(seconds, 2),
        "failed": item.mutate_failed,
        "functions": collect(folder),
        "lines": sorted(lines),
    }
    shutil.rmtree(folder, ignore_errors=True)
    with open(f"{OUT}.jsonl", "a") as file:
        file.write(json.dumps(record) + "\n")


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item, call):
    report = (yield).get_result()
    if not report.passed:
        item.mutate_failed = True  # a test that is skipped notices nothing either


def save_sums():
    for name, data in sums.items():
        path = OUT / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)


def pytest_sessionfinish():
    save_sums()
    os.environ["GCOV_PREFIX"] = tempfile.mkdtemp(prefix="mutate-", dir=SHM)
    atexit.register(shutil.rmtree, os.environ["GCOV_PREFIX"], True)
