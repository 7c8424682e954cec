# SPDX-License-Identifier: Apache-2.0
"""The parts of packing on Ray that need no Ray: arguments, progress, and the child process."""

import fcntl
import io
import json
import os
import signal
import subprocess
import sys
import time

import pytest
from cli_tools import good, make_folder
from py_tools import need_penstock, run_python

penstock = need_penstock()
from penstock.ray import _account, _pack, _program, _progress, _task  # noqa: E402

RESULT = {"samples": 10, "resumed": 0, "broken_inputs_left_out": 0, "bytes": {"source": 1000}}


def latest(attempt, done):
    return {"attempt": attempt, "done": done, "done_bytes": 100 * done, "bad": 0}


def test_without_ray_the_extra_is_named(tmp_path):
    call = "import sys; sys.modules['ray'] = None\n"
    done = run_python(f"{call}import penstock.ray; penstock.ray.pack('a', 'b.pen')", cwd=tmp_path)
    assert "ImportError: packing on Ray needs the package ray" in done.stderr
    done = run_python(f"{call}from penstock._cli import main; raise SystemExit(main())",
                      "ray", "pack", "a", "-o", "b.pen", "--json", cwd=tmp_path)
    assert done.returncode == 1 and "pip install 'ray[data]'" in done.stderr
    assert "pip install" in json.loads(done.stdout)["error"]["message"]
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize("words,message", [
    (("ray",), "expected 'penstock ray pack'"),
    (("ray", "pack", "a"), "required: -o/--out"),
    (("ray", "pack", "-o", "a.pen"), "expected a source, found none"),
    (("ray", "pack", "a", "-o", "a.pen", "--task=1/2"), "--task: packing on Ray has no such"),
    (("ray", "pack", "a", "-o", "a.pen", "--resources", "CPU"), "expected NAME=AMOUNT"),
])
def test_wrong_use(words, message):
    done = run_python("from penstock._cli import main; raise SystemExit(main())", *words)
    assert done.returncode == 2 and message in done.stderr and done.stdout == ""


@pytest.mark.parametrize("given,error,message", [
    ({"tasks": 0}, penstock.InvalidError, "tasks: expected 1 or more, found 0"),
    ({"tasks": "3"}, TypeError, "tasks: expected an int, found str"),
    ({"retries": None}, TypeError, "retries: expected an int"),
    ({"wait": -1}, penstock.InvalidError, "wait: expected 0 or more"),
    ({"resources": {"CPU": -1}}, penstock.InvalidError, "resources: CPU: expected 0 or more"),
    ({"append": True}, penstock.InvalidError, "append: packing on Ray has no such option"),
])
def test_wrong_arguments(given, error, message):
    with pytest.raises(error, match=message):
        penstock.ray.pack("a", "b.pen", **given)
    with pytest.raises(penstock.InvalidError, match="source: expected a path"):
        penstock.ray.pack([], "b.pen")
    with pytest.raises(AttributeError, match="no attribute 'park'"):
        penstock.ray.park  # noqa: B018


def test_arguments_of_ray():
    job = _pack.Job(("a",), "b.pen", resources={"CPU": 2.5, "memory": 1e9, "disk": 1},
                    ray_remote_args={"max_retries": 2})
    found = job.remote_args()
    assert found["num_cpus"] == 2.5 and found["memory"] == 1e9 and found["resources"] == {"disk": 1}
    assert found["max_retries"] == 2 and job.n_threads() == 2
    assert _pack.Job(("a",), "b.pen", threads=7).n_threads() == 7
    given = {"mode": "encode", "no_index": True, "check": False, "fps": None, "seed": 3,
             "exclude": ["*.gif", "old"]}
    assert _pack.program_options(given, given) == (
        "--mode", "encode", "--no-index", "--seed", "3", "--exclude", "*.gif", "--exclude", "old")


def test_the_number_of_tasks_follows_the_inputs():
    mib, gib = 1 << 20, 1 << 30
    cases = {(1, 0): 1, (40, 1000): 1, (1000, 20 * mib): 2, (1000, 256 * mib): 16, (9, gib): 9,
             (10**6, 100 * gib): 100, (10**8, 10**5 * gib): 1000}
    assert {case: _pack.default_tasks(*case) for case in cases} == cases


def test_nodes_that_cannot_run_tasks(tmp_path, monkeypatch):
    monkeypatch.setattr(_task, "PLAN_S", 0)
    version = penstock.__version__
    spec = _task.Spec((), str(tmp_path / "a.pen"), 2, 0, "/", version)
    assert "a directory that all nodes share" in spec.problem()
    (tmp_path / "a.pen" / ".work").mkdir(parents=True)
    (tmp_path / "a.pen" / ".work" / "plan").touch()
    assert spec.problem() is None
    # Another driver has published the pack: the program reports that.
    (tmp_path / "a.pen" / ".work" / "plan").rename(tmp_path / "a.pen" / "manifest")
    assert spec.problem() is None
    assert _task.Spec((), "s3://b/a.pen", 2, 0, "/", version).problem() is None
    other = _task.Spec((), "s3://b/a.pen", 2, 0, "/", "9.9").problem()
    assert f"it has penstock {version}, and the driver has 9.9" in other


def test_only_the_last_attempt_reports():
    board = _task.Board()
    board.start(0, "a")
    board.report(0, "a", {"done": 5})
    board.start(0, "b")
    board.report(0, "a", {"done": 9})
    assert board.read() == (2, {0: {"done": 5, "attempt": "a"}})
    board.report(0, "b", {"done": 1})
    assert board.read() == (2, {0: {"done": 1, "attempt": "b"}})


def test_rates_and_time_left():
    meter = _progress.Meter(3, 40, 100.0)
    assert not meter.any_started and meter.progress(100).seconds_left is None
    meter.running(2, {0: latest("a", 4), 1: latest("b", 0)})  # 4 of an earlier run
    assert meter.progress(101).samples_per_second == 0
    meter.running(2, {0: latest("a", 8), 1: latest("b", 6)})
    now = meter.progress(110)
    assert now.samples_done == 14 and now.samples_per_second == pytest.approx(1)
    assert now.bytes_per_second == pytest.approx(100) and now.seconds_left == pytest.approx(26)
    meter.running(3, {1: latest("c", 2)})  # another attempt
    assert meter.progress(110).samples_done == 10
    meter.complete(1, {**RESULT, "samples": 9, "broken_inputs_left_out": 1})
    meter.running(4, {1: latest("d", 1)})  # of a worker that Ray has lost
    now = meter.progress(110)
    assert (now.tasks_done, now.samples_done, now.broken, now.retries) == (1, 18, 1, 1)
    meter.complete(2, {**RESULT, "resumed": 10})
    assert meter.progress(110).samples_per_second == pytest.approx(1.8)


class TerminalText(io.StringIO):
    def isatty(self):
        return True


def test_printing(monkeypatch):
    now = _progress.Progress("pack", 1, 3, 1000, 4000, 50.0, 2e6, 20.0, 3661.0, 2, 1)
    line = ("pack 25 %  1 of 3 tasks  1,000 of 4,000 samples  50 samples/s  2.0 MB/s  1:01:01 left"
            "  2 bad  1 retries")
    monkeypatch.setenv("COLUMNS", "200")
    to = TerminalText()
    printer = _progress.Printer(to)
    printer(now)
    printer(now)  # too early
    printer.message("hello")
    assert to.getvalue() == f"\r{line}\r\r{' ' * len(line)}\rpenstock: hello\n"
    monkeypatch.setenv("COLUMNS", "40")
    to = TerminalText()
    _progress.Printer(to)(now)
    assert to.getvalue() == "\rpack 25 %  1 of 3 tasks\r"
    to = io.StringIO()
    printer = _progress.Printer(to)
    printer(now)
    assert to.getvalue() == ""
    monkeypatch.setattr(time, "monotonic", lambda clock=time.monotonic: clock() + 31)
    printer(now)
    assert to.getvalue() == f"penstock: {line.replace('  ', ', ')}\n"
    to = io.StringIO()
    _progress.Printer(to, as_json=True)(now)
    assert json.loads(to.getvalue())["seconds_left"] == 3661.0


def test_account_as_text():
    result = {"pack": "a.pen", "id": "0f", "samples": 1234, "broken_inputs_left_out": 0,
              "bytes": {"pack": 5, "source": 6}}
    lines = _account.of_result(result, 2.25, 3, 0, None).text().splitlines()
    assert "samples       1,234" in lines and "seconds       2.2 s" in lines
    assert not any(line.startswith("bad report") for line in lines)


def test_the_child_reports_and_fails_as_the_program(tmp_path):
    make_folder(tmp_path / "in")
    seen = []
    result = _program.good(["pack", "in", "-o", "a.pen"], str(tmp_path), seen.append)
    assert result["samples"] == 8
    assert {"list", "check", "sort", "plan", "pack"} <= {line["stage"] for line in seen}
    assert all(line["done"] <= 8 and line["bad"] == 0 for line in seen)
    with pytest.raises(penstock.ExistsError, match="the pack already exists") as caught:
        _program.good(["pack", "in", "-o", "a.pen"], str(tmp_path))
    assert _program.status_name(caught.value) == "E_EXISTS"
    with pytest.raises(penstock.InvalidError, match="unknown option --colour"):
        _program.good(["pack", "in", "-o", "b.pen", "--colour"], str(tmp_path))
    assert "killed by signal 9" in str(_program.Outcome(-9, {}, "").error())
    good("verify", tmp_path / "a.pen")


def test_the_child_dies_with_its_parent(tmp_path):
    """It would wait for an hour."""
    make_folder(tmp_path / "in")
    good("plan", tmp_path / "in", "-o", tmp_path / "a.pen")
    code = (
        "import fcntl, os, sys\n"
        "from penstock.ray import _program\n"
        "fcntl.flock(os.open('a.pen', os.O_RDONLY), fcntl.LOCK_EX)\n"
        "_program.run(['finalise', 'a.pen', '--wait', '3600'], '.')\n"
    )
    parent = subprocess.Popen([sys.executable, "-c", code], cwd=tmp_path)
    children = f"/proc/{parent.pid}/task/{parent.pid}/children"
    deadline = time.monotonic() + 60
    while not (found := open(children).read().split()):
        assert time.monotonic() < deadline and parent.poll() is None
        time.sleep(0.02)
    parent.send_signal(signal.SIGKILL)
    parent.wait()
    while os.path.exists(f"/proc/{found[0]}/exe"):
        assert time.monotonic() < deadline
        time.sleep(0.02)


def test_the_child_is_stopped_on_request(tmp_path):
    """It would wait for an hour, too."""
    make_folder(tmp_path / "in")
    good("plan", tmp_path / "in", "-o", tmp_path / "a.pen")
    fd = os.open(tmp_path / "a.pen", os.O_RDONLY)
    fcntl.flock(fd, fcntl.LOCK_EX)
    asked = []
    with pytest.raises(_program.StoppedError):
        _program.run(["finalise", "a.pen", "--wait", "3600"], str(tmp_path),
                     is_stopped=lambda: asked.append(1) or len(asked) > 3)
    os.close(fd)
    assert len(asked) == 4
    children = f"/proc/{os.getpid()}/task/{os.getpid()}/children"
    assert all(b"_child.py" not in open(f"/proc/{pid}/cmdline", "rb").read()
               for pid in open(children).read().split())
