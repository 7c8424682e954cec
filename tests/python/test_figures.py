# SPDX-License-Identifier: Apache-2.0
"""./dev figures: what is measured, kept, left out and reported as failed. Nothing is measured."""

import json
import pathlib
import re
import sys

import pytest
from py_tools import need_penstock

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tools"))

import figures  # noqa: E402
import record  # noqa: E402

TABLE = "| loader | images/s |\n|---|---:|\n| penstock | 12 |\n"
RUNS = """
[first]
command = "show first"
paths = ["src"]
minutes = 1
tables = {first-a = 1, first-b = 2}
[second]
command = "show second"
paths = ["src"]
minutes = 90
picture = "second.svg"
[other]
command = "kept elsewhere"
paths = ["src"]
"""


@pytest.fixture
def top(tmp_path, monkeypatch):
    """A top folder in which two runs are to be measured, on an idle machine."""
    runs = record.runs_of(RUNS)
    for name, value in {"ROOT": tmp_path, "FOLDER": tmp_path / "docs" / "records", "RUNS": runs,
                        "RECORDS": {name: run for run in runs for name in run.tables},
                        "commit": lambda: "abc1234", "staleness": lambda _: None}.items():
        monkeypatch.setattr(record, name, value)
    monkeypatch.setattr(record.write, "__defaults__", (tmp_path / "docs" / "records",))
    stolen = iter(range(100))  # seconds: one more with each call
    for name, value in {"WORK": tmp_path / "build", "load": lambda: 0.1,
                        "processor_seconds": lambda: (0.0, float(next(stolen))),
                        "cores_used": lambda: 0.02}.items():
        monkeypatch.setattr(figures, name, value)
    monkeypatch.setattr(figures.subprocess, "run", lambda *_, **__: None)  # ./dev record
    (tmp_path / "second.svg").write_text("<svg/>")
    return tmp_path


def shown(monkeypatch, answers):
    """Commands that print: {name of the run: (text, exit code)}; the list of those that ran."""
    ran = []

    def printed(words):
        ran.append(words)
        return answers[words[1]]
    monkeypatch.setattr(figures, "printed", printed)
    return ran


def kept(top, name):
    return json.loads((top / "docs" / "records" / f"{name}.json").read_text())


def test_runs_are_measured_once_and_those_that_failed_again(top, monkeypatch, capsys):
    ran = shown(monkeypatch, {"first": (TABLE + "\n" + TABLE.replace("12", "34"), 1),
                              "second": ("no table", 0)})
    assert figures.main([]) == 1
    told = capsys.readouterr().out
    assert "failed: second: exit code 0; no table for second" in told
    assert "warning: the host of this virtual machine took 10.0 cores" in told
    assert kept(top, "first-b")["table"][1] == ["penstock", "34"]
    assert [kept(top, "first-a")[key] for key in ("load", "load_after", "others", "stolen")] == [
        0.1, 0.1, [0.02, 0.02], 10.0]
    shown(monkeypatch, {"second": (TABLE, 0)})
    assert figures.main([]) == 0
    assert (top / "docs" / "records" / "second.svg").read_text() == "<svg/>"
    assert len(ran) == 2
    assert figures.main([]) == 0  # nothing is left: a command that runs would fail
    with pytest.raises(KeyError):
        figures.main(["first", "--again"])


def test_a_crash_and_a_stale_record_are_measured_again(top, monkeypatch):
    shown(monkeypatch, {"second": (TABLE, 139)})
    assert figures.main(["second"]) == 1
    ran = shown(monkeypatch, {"second": (TABLE, 0)})
    assert figures.main(["second"]) == 0
    monkeypatch.setattr(record, "staleness", lambda _: "src has changed")
    assert figures.main(["second"]) == 0 and len(ran) == 2


def test_a_trial_leaves_the_records_alone(top, monkeypatch):
    ran = shown(monkeypatch, {"second": (TABLE, 0)})
    assert figures.main(["second", "--", "--rounds", "1"]) == 0
    assert ran == [["show", "second", "--rounds", "1"]]
    assert (top / "build" / "second.json").exists() and not (top / "docs").exists()


def test_a_busy_machine_is_refused(top, monkeypatch):
    ran = shown(monkeypatch, {"second": (TABLE, 0)})
    monkeypatch.setattr(figures, "load", lambda: 1.25)
    monkeypatch.setattr(figures.wait_until_idle, "__defaults__", (0,))
    with pytest.raises(SystemExit, match=r"load average 1\.25: expected at most 0\.5"):
        figures.main(["second"])
    assert not ran
    assert figures.main(["second", "--busy"]) == 0
    assert kept(top, "second")["load"] == 1.25


def test_names_and_time_left(top, capsys):
    with pytest.raises(SystemExit, match="no run is called 'other'; expected first, second"):
        figures.main(["other"])
    assert [run.name for run in figures.chosen_runs(["first-b"])] == ["first"]
    assert figures.main(["--list"]) == 0
    assert "2 runs, about 1 h 31 min; 0 are done" in capsys.readouterr().out


def line(kind, **more):
    return json.dumps({"kind": kind, **more}) + "\n"


HEAD = {"format": 1, "question": "mlperf", "name": "n", "parameters": {}, "inputs": [],
        "machine": {}, "versions": {"commit": "abc1234"}}
END = {"load_after": 1.0, "other_cores": 0.0}


def test_the_table_of_a_lab_report(tmp_path):
    """Of any verb: its own table, or the general one."""
    need_penstock()
    report = tmp_path / "report.jsonl"
    with pytest.raises(figures.Failed, match="cannot read report"):
        figures.report_text(tmp_path)
    report.write_text(line("parameters", **HEAD))
    with pytest.raises(figures.Failed, match="not complete"):
        figures.report_text(tmp_path)
    report.write_text(line("parameters", **HEAD) + line("end", **END))
    assert record.rows_of(figures.report_text(tmp_path))[0][0] == "workload"


def test_an_interrupted_run_continues(top, monkeypatch):
    """If it is the same command, of the same code."""
    need_penstock()
    run = record.runs_of(RUNS.replace('"show first"', '"show first"\nreport = "out"'))[0]
    report, changed = top / "out" / "report.jsonl", []
    monkeypatch.setattr(record, "changes_since", lambda *_: changed)

    def is_kept(command, *lines):
        report.parent.mkdir(exist_ok=True)
        report.write_text("".join(lines))
        figures.forget(run, command)
        return report.exists()

    begun, end = line("parameters", **HEAD), line("end", **END)
    assert not is_kept("show first", begun)  # nobody knows what began it
    assert is_kept("show first", begun)
    assert not is_kept("show first --rounds 1", begun)
    assert not is_kept("show first", begun) and is_kept("show first", begun)
    assert not is_kept("show first", begun, end)
    changed.append("1 commit has changed src")
    assert not is_kept("show first", begun)


def test_each_record_has_one_block_and_each_path_exists():
    pages = "".join(path.read_text(encoding="utf-8") for path in record.doc_files())
    blocks = sorted(re.findall("<!-- record ([^ ]+) -->", pages))
    assert blocks == sorted(set(blocks)), "a record in two places"
    shown = {name for name, run in record.RECORDS.items() if not run.page}
    assert not shown - set(blocks), "a record without a block"
    assert not set(blocks) - set(record.RECORDS), "a block without a record"
    missing = [path for run in record.RUNS for path in run.paths
               if not list(ROOT.glob(path.removeprefix(":(glob)")))]
    assert not missing
