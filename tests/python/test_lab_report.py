# SPDX-License-Identifier: Apache-2.0
"""Reports of the lab: lines, torn lines, damage, other parameters, locks."""

import errno
import os

import pytest
from py_tools import need_penstock

need_penstock()
from penstock.lab import LabError  # noqa: E402
from penstock.lab.experiment import report  # noqa: E402
from penstock.lab.experiment.report import Report  # noqa: E402

HEAD = {"question": "fake", "name": "fake", "parameters": {"rounds": 3, "threads": [1]},
        "inputs": [{"id": "abc"}], "machine": {}, "versions": {}, "command": [], "date": ""}
CELL = {"threads": 1}


def made(folder, turns=2):
    with Report.create(folder, HEAD) as opened:
        for number in range(turns):
            opened.append("turn", cell=CELL, round=number, seconds=1.5, samples=10)
    return folder / report.NAME


def test_lines_are_read_back(tmp_path):
    path = made(tmp_path)
    lines = report.read(tmp_path)
    assert lines == report.read(path)
    assert [line["kind"] for line in lines] == ["parameters", "turn", "turn"]
    assert lines[0] == {"kind": "parameters", "format": 1, **HEAD}


def test_every_torn_length_is_resumed(tmp_path):
    path = made(tmp_path)
    data = path.read_bytes()
    first = data.index(b"\n") + 1
    for length in range(first, len(data), 7):
        path.write_bytes(data[:length])
        complete = data[:length].count(b"\n")
        assert len(report.read(path)) == complete
        with Report.open(tmp_path, HEAD) as opened:
            assert len(opened.lines) == complete
            opened.append("end")
        assert report.read(path)[complete] == {"kind": "end"}
        assert path.read_bytes().count(b"\n") == complete + 1


def test_a_torn_first_line_begins_anew(tmp_path):
    path = made(tmp_path)
    for length in (0, 1, 40):
        path.write_bytes(path.read_bytes()[:length])
        Report.open(tmp_path, HEAD).close()
        assert len(report.read(path)) == 1


def test_a_last_line_of_zeros_is_dropped(tmp_path):
    path = made(tmp_path)
    path.write_bytes(path.read_bytes() + b"\0" * 20 + b"\n")
    assert len(report.read(path)) == 3
    Report.resume(tmp_path, HEAD).close()
    assert b"\0" not in path.read_bytes()


@pytest.mark.parametrize("text,message", [
    (b'{"kind": "tu\n{"kind": "end"}\n', "line 4 is damaged"),
    (b"[1]\n", "line 4 is no line of a report"),
    (b'{"cell": 1}\n', "line 4 is no line of a report"),
])
def test_damage_is_an_error(tmp_path, text, message):
    path = made(tmp_path)
    path.write_bytes(path.read_bytes() + text)
    for function in (report.read, Report.resume):
        with pytest.raises(LabError, match=message):
            function(tmp_path)


@pytest.mark.parametrize("text,message", [
    ("", "its first line has no parameters"),
    ('{"kind": "turn"}\n', "its first line has no parameters"),
    ('{"kind": "parameters", "format": 2}\n', "has format 2; this version reads format 1"),
])
def test_not_a_report(tmp_path, text, message):
    (tmp_path / report.NAME).write_text(text, encoding="utf-8")
    with pytest.raises(LabError, match=message):
        report.read(tmp_path)


def test_no_report(tmp_path):
    with pytest.raises(LabError, match="No such file"):
        report.read(tmp_path)
    with pytest.raises(LabError, match="no run to continue"):
        Report.resume(tmp_path / "nowhere")


@pytest.mark.parametrize("change,message", [
    ({"parameters": {"rounds": 3, "threads": [2]}}, r"threads: \[1\] in the report, now \[2\]"),
    ({"parameters": {"rounds": 3}}, r"threads: \[1\] in the report, now None"),
    ({"question": "load"}, "question: 'fake' in the report, now 'load'"),
    ({"inputs": [{"id": "def"}]}, r"identity of the inputs: \['abc'\] in the report"),
])
def test_other_parameters_are_refused(tmp_path, change, message):
    before = made(tmp_path).read_bytes()
    with pytest.raises(LabError, match=message):
        Report.open(tmp_path, {**HEAD, **change})
    assert (tmp_path / report.NAME).read_bytes() == before


def test_other_dates_and_machines_are_not_refused(tmp_path):
    made(tmp_path)
    Report.open(tmp_path, {**HEAD, "date": "x", "machine": {"cpu": "y"}, "command": ["z"]}).close()


def test_create_keeps_what_exists(tmp_path):
    made(tmp_path)
    with pytest.raises(LabError, match="expected a folder without a report"):
        Report.create(tmp_path, HEAD)


def test_one_writer_at_a_time(tmp_path):
    with Report.create(tmp_path, HEAD):
        with pytest.raises(LabError, match="another penstock-lab writes it"):
            Report.resume(tmp_path)
    Report.resume(tmp_path).close()


def test_numbers_of_numpy_are_written(tmp_path):
    class Number:
        def item(self):
            return 2.5

    with Report.create(tmp_path, HEAD) as opened:
        opened.append("turn", seconds=Number())
        with pytest.raises(TypeError, match="not JSON serializable"):
            opened.append("turn", seconds=object())
    assert report.read(tmp_path)[1:] == [{"kind": "turn", "seconds": 2.5}]


def test_places_that_cannot_be_written(tmp_path):
    (tmp_path / "file").write_text("", encoding="utf-8")
    with pytest.raises(LabError, match="cannot write report '.*file/x/report.jsonl': Not a dir"):
        Report.create(tmp_path / "file" / "x", HEAD)


def test_a_full_disk(tmp_path, monkeypatch):
    made(tmp_path)
    with Report.resume(tmp_path) as opened:
        write = os.write
        monkeypatch.setattr(os, "write", lambda file, data: full(write, file, data))
        with pytest.raises(LabError, match=f"No space left.*penstock-lab resume {tmp_path}"):
            opened.append("turn", cell=CELL, round=2, seconds=1.0, samples=1)
        monkeypatch.undo()
    assert (tmp_path / report.NAME).read_bytes()[-1:] != b"\n"
    with Report.resume(tmp_path) as opened:  # as the message advises
        opened.append("end")
    assert [line["kind"] for line in report.read(tmp_path)][2:] == ["turn", "end"]


def full(write, file, data):
    """A disk that has room for ten bytes more."""
    if len(data) <= 10:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
    return write(file, data[:10]) if data.startswith(b'{"kind') else full(write, file, b"")



def test_figures_that_are_no_numbers_become_null(tmp_path):
    with Report.create(tmp_path, HEAD) as opened:
        opened.append("turn", loss=float("nan"), more=[float("inf"), (1, 2.5)], n={"x": -0.5})
    assert report.read(tmp_path)[1] == {"kind": "turn", "loss": None, "more": [None, [1, 2.5]],
                                        "n": {"x": -0.5}}
