# SPDX-License-Identifier: Apache-2.0
"""Sweeps of the lab: turns alternate, runs continue, and the report has what was not there."""

import io
import re

import pytest
from py_tools import need_penstock

need_penstock()
import lab_fake  # noqa: E402
from lab_fake import Fake, Parameters  # noqa: E402
from penstock.lab import LabError  # noqa: E402
from penstock.lab.experiment import machine, results, sweep  # noqa: E402
from penstock.lab.experiment.progress import Progress, duration  # noqa: E402
from penstock.lab.experiment.report import Report  # noqa: E402

HEAD = {"question": "fake", "name": "fake", "parameters": {}, "inputs": [],
        "machine": {"load_before": 0.1}, "versions": {}, "command": [], "date": ""}


class Stop(Exception):
    pass


def run(folder, chosen, stop_after=None, asked=None):
    """The lines of a run that ends, with Stop, before it has appended so many lines."""
    with Report.open(folder, HEAD) as opened:
        append, left = opened.append, [stop_after]

        def counted(kind, **fields):
            if left[0] is not None:
                if left[0] == 0:
                    raise Stop
                left[0] -= 1
            append(kind, **fields)

        opened.append = counted
        question = asked or Fake(chosen)
        total, done = sweep.remaining(question, opened, chosen.rounds)
        progress = Progress(total, done, io.StringIO())
        try:
            sweep.run(question, opened, chosen.rounds, progress)
            assert progress.done == progress.total
        except Stop:
            pass
        return opened.lines


def order(lines):
    return [(x["kind"], x["cell"]["threads"], x["cell"]["loader"]) for x in lines[1:]]


def test_turns_of_a_group_alternate(tmp_path):
    lines = run(tmp_path, Parameters(rounds=2, threads=(1, 2)))
    group = [("prepared", 1, "a"), ("first", 1, "a"), ("prepared", 1, "b"), ("first", 1, "b"),
             *[("turn", 1, "a"), ("turn", 1, "b")] * 2]
    assert order(lines) == group + [(kind, 2, name) for kind, _, name in group]
    assert [x["round"] for x in lines if x["kind"] == "turn"] == [0, 0, 1, 1] * 2


def test_a_run_that_stops_anywhere_continues_to_the_same_report(tmp_path):
    chosen = Parameters(rounds=2, threads=(1, 2), loaders=("a", "missing", "b", "breaks"))
    expected = run(tmp_path / "whole", chosen)
    table = results.table(expected)
    for n in range(len(expected)):
        folder = tmp_path / str(n)
        assert len(run(folder, chosen, stop_after=n)) == min(n + 1, len(expected))
        lines = run(folder, chosen)
        assert results.table(lines) == table
        assert sorted(order(lines)) == sorted(order(expected))
    assert len(run(folder, chosen, stop_after=0)) == len(expected)


def test_arms_that_are_complete_are_not_opened(tmp_path):
    chosen = Parameters(rounds=2, threads=(1, 2))
    stopped = run(tmp_path, chosen, stop_after=9)
    assert order(stopped)[-1] == ("prepared", 2, "a")
    opened = []

    class Watched(Fake):
        def open(self, cell):
            opened.append((cell["threads"], cell["loader"]))
            return super().open(cell)

    run(tmp_path, chosen, asked=Watched(chosen))
    assert opened == [(2, "a"), (2, "b")]


def test_all_arms_are_closed_when_one_fails(tmp_path):
    closed = []

    class Arm(lab_fake.FakeArm):
        def turn(self, number):
            if number == 1:
                raise RuntimeError("boom")
            return super().turn(number)

        def close(self):
            closed.append(self.cell["loader"])

    class Failing(Fake):
        def open(self, cell):
            return Arm(cell, 1.0)

        def close(self):
            closed.append("question")

    chosen = Parameters(rounds=2)
    with pytest.raises(RuntimeError, match="boom"):
        run(tmp_path, chosen, asked=Failing(chosen))
    assert sorted(closed) == ["a", "b", "question"]


def test_without_a_warm_up_there_is_no_first(tmp_path):
    chosen = Parameters(rounds=1)
    question = Fake(chosen)
    question.warm_up = False
    kinds = [line["kind"] for line in run(tmp_path, chosen, asked=question)]
    assert kinds == ["parameters", *["prepared"] * 2, *["turn"] * 2] + ["prepared"] * 2 + [
        "turn"] * 2


def test_the_table_has_what_was_absent(tmp_path):
    text = results.table(run(tmp_path, Parameters(rounds=3, threads=(1,),
                                                  loaders=("a", "missing", "breaks"))))
    rows = [[part.strip() for part in line.split("|")[1:-1]] for line in text.splitlines()]
    assert rows[0] == ["cell", "n", "samples/s", "sd", "95 % interval", "first epoch s"]
    assert rows[2][1] == "3" and re.fullmatch(r"[\d.]+ to [\d.]+", rows[2][4])
    assert rows[3][1:3] == ["0", "absent: it is not installed"]
    assert rows[4][1] == "1" and rows[4][3:5] == ["-", "-"]


def test_rates_are_samples_by_seconds():
    cell = {"x": 1}
    lines = [{"kind": "turn", "cell": cell, "round": n, "samples": 10 * s, "seconds": s, "cpu": 1}
             for n, s in ((1, 4), (0, 2))]
    assert results.rates(lines, cell) == [10, 10]
    assert results.cpu_per_1000(lines, cell) == pytest.approx(1000 * 2 / 60)
    assert results.values(lines, cell, "samples") == [20, 40]


@pytest.mark.parametrize("load,other,message", [
    (0.1, 0.0, ""), (3.0, 0.0, "the load average was 3.00 before the run"),
    (0.1, 0.8, "other processes, or the host of this virtual machine, used 0.80 cores during the "
               "run"),
])
def test_the_warning_of_a_busy_machine(load, other, message):
    lines = [{**HEAD, "kind": "parameters", "machine": {"load_before": load}},
             {"kind": "turn", "cell": {}, "wall": 10.0, "other_cpu": 10 * other}]
    assert results.warning(lines) == message


def test_the_warning_after_a_resume():
    lines = [{**HEAD, "kind": "parameters"}, {"kind": "resumed", "load_before": 9.0}]
    assert "9.00" in results.warning(lines)


def test_shapes_are_in_the_report_and_misses_are_warned_of(tmp_path):
    check = {"shape": "disk=20MB/s", "what": "bandwidth", "asked": 20.0, "unit": "MB/s",
             "simulated": True}

    class Arm(lab_fake.FakeArm):
        def shapes(self):
            return [{**check, "measured": 20.5, "within": True},
                    {**check, "measured": 24.0, "within": False}]

    class Shaped(Fake):
        def open(self, cell):
            return Arm(cell, 1.0)

    chosen = Parameters(rounds=1, threads=(1,), loaders=("a",))
    lines = run(tmp_path, chosen, asked=Shaped(chosen))
    assert [line["kind"] for line in lines[1:]] == ["prepared", "shape", "shape", "first", "turn"]
    assert results.all_warnings(lines)[:1] == [
        "simulated disk=20MB/s: bandwidth: 20 MB/s requested, 24 measured, which is more than 5 % "
        "off"]


def test_the_machine():
    here = machine.describe()
    assert here["cores"] >= 1 and here["memory_gb"] > 0 and here["cpu"] and here["kernel"]
    assert machine.busy_seconds() > 0
    assert machine.versions()["penstock"]


class Terminal(io.StringIO):
    def isatty(self):
        return True


def test_progress_on_a_terminal(monkeypatch):
    now = [100.0]
    monkeypatch.setattr("time.monotonic", lambda: now[0])
    progress = Progress(10, 4, Terminal())
    progress.start("a")
    assert "left" not in progress.stream.getvalue()
    now[0] += 30
    progress.step("b")
    bar = "[############............]"
    assert progress.stream.getvalue().endswith(f"{bar} 5/10, 2 min 30 s left  b")
    progress.close()
    assert progress.stream.getvalue().endswith("\r\x1b[K")


def test_progress_elsewhere(monkeypatch):
    now = [100.0]
    monkeypatch.setattr("time.monotonic", lambda: now[0])
    progress = Progress(100, 0, io.StringIO())
    for _ in range(50):
        now[0] += 1
        progress.step("cell")
    assert progress.stream.getvalue() == "30/100, 1 min 10 s left  cell\n"


def test_durations():
    assert [duration(s) for s in (0.4, 59, 61, 3720)] == ["0 s", "59 s", "1 min 01 s", "1 h 02 min"]


def test_inputs_have_an_identity(tmp_path):
    from penstock.lab.experiment import inputs

    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "x").write_bytes(b"123")
    first = inputs.describe(tmp_path / "a")
    assert first["samples"] == 1 and first["bytes"] == 3
    (tmp_path / "a" / "x").write_bytes(b"1234")
    assert inputs.describe(tmp_path / "a")["id"] != first["id"]
    with pytest.raises(LabError, match="no such pack, folder or file"):
        inputs.describe(tmp_path / "b")
