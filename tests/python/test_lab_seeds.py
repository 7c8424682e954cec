# SPDX-License-Identifier: Apache-2.0
"""penstock-lab seeds: its page, its budget, how it continues, and figures from times."""

import contextlib
import dataclasses
import io
import pathlib
import types

import pytest
from penstock.lab import Absent, _cli, shapes
from penstock.lab.documents import (
    Figure,
    Options,
    aws,
    concurrent,
    dl2_accuracy,
    dl2_codec,
    question,
    turns,
)
from penstock.lab.experiment import report
from penstock.lab.verbs import seeds

pillow = pytest.importorskip("PIL.Image")
pytest.importorskip("matplotlib")
ROOT = pathlib.Path(__file__).resolve().parents[2]
HOSTILE = "<script>alert(1)</script> | x"


@pytest.fixture
def photos(tmp_path):
    folder = tmp_path / "photos" / "a"
    folder.mkdir(parents=True)
    for n in range(3):
        data = io.BytesIO()
        pillow.radial_gradient("L").resize((80, 60 + n)).convert("RGB").save(data, "JPEG")
        (folder / f"{n}.jpg").write_bytes(data.getvalue())
    return folder.parent


@pytest.fixture
def options(photos, tmp_path):
    return Options(str(photos), str(tmp_path / "work"), 2, lambda text: None)


class Fake(types.SimpleNamespace):
    """A document that measures nothing."""

    def __init__(self, name, calls, waits=None):
        super().__init__(TITLE=name, SOURCE="https://example.org", COMMAND=f"seeds {name}")
        self.calls = calls
        if waits:
            self.waits = lambda options: waits

    def figures(self, options):
        self.calls.append(self.TITLE)
        if self.TITLE == "dl2" and len(self.calls) == 2:
            raise KeyboardInterrupt
        return [Figure(f"{HOSTILE} {self.TITLE}", "3.0 times", "1.5 times", 0.5, True,
                       "conditions", "seeds", why="it is a test", lower=True),
                Figure("other", "1", "absent", None, False, "no root", "seeds")]


@pytest.fixture
def calls(monkeypatch):
    found = []
    waits = {HOSTILE: [[0.0, 0.5], [0.7, 0.1], [1.0, 0.1]]}
    for module in (question, seeds):
        monkeypatch.setattr(module, "module", lambda name: Fake(
            name, found, waits if name == "aws" else None))
    return found


def run(photos, tmp_path, *words):
    return _cli.main(["seeds", "--photos", str(photos), "--out", str(tmp_path / "out"), "--name",
                      "run", *words])


def test_a_run_that_is_interrupted_continues(photos, tmp_path, calls, capsys):
    folder = tmp_path / "out" / "seeds" / "run"
    assert run(photos, tmp_path, "aws", "dl2", "ffcv") == 130
    assert run(photos, tmp_path, "aws", "dl2", "ffcv") == 0
    assert calls == ["aws", "dl2", "dl2", "ffcv"]
    assert [x["cell"]["document"] for x in report.read(folder) if x["kind"] == "turn"] == [
        "aws", "dl2", "ffcv"]
    out = capsys.readouterr().out
    assert "0.50 (lower is better)" in out and "simulated" in out
    for name in ("page.html", "page.md"):
        page = (folder / name).read_text(encoding="utf-8")
        assert "worse than published: it is a test" in page and "0.50" in page and "absent" in page
        assert "simulated" in page
    page = (folder / "page.html").read_text(encoding="utf-8")
    assert "<script" not in page and page.count("<svg") == 2
    assert _cli.main(["report", str(tmp_path / "out")]) == 0


def test_the_budget(photos, tmp_path, calls):
    assert run(photos, tmp_path, "aws", "ffcv", "--budget", "0") == 0
    lines = report.read(tmp_path / "out" / "seeds" / "run")
    assert calls == [] and "budget of 0 minutes" in lines[1]["reason"]


@pytest.mark.parametrize("words", [["bert"], ["aws", "--repeats", "0"], ["aws", "--photos", ""]])
def test_wrong_arguments(photos, tmp_path, words, capsys):
    assert run(photos, tmp_path, *words) == 1
    assert "expected" in capsys.readouterr().err


def test_repeats_from_the_first_line(photos, tmp_path, calls):
    assert run(photos, tmp_path, "ffcv", "--repeats", "2") == 0
    assert _cli.main(["rerun", str(tmp_path / "out" / "seeds" / "run")]) == 0
    heads = [report.read(tmp_path / "out" / "seeds" / name)[0] for name in ("run", "run-2")]
    assert heads[0]["parameters"] == heads[1]["parameters"]


def test_the_page_of_the_docs(photos, tmp_path, calls, monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT / "tools"))
    import seeds_page

    assert run(photos, tmp_path, "aws", "ffcv") == 0
    folder, root = tmp_path / "out" / "seeds" / "run", tmp_path / "root"
    for name in ("docs/explanation", "docs/records"):
        (root / name).mkdir(parents=True)
    page = root / seeds_page.PAGE
    page.write_bytes((ROOT / seeds_page.PAGE).read_bytes())
    (root / "docs/records/published-figures-9.svg").write_text("old", encoding="utf-8")
    for _ in range(2):  # the second one replaces the first
        assert seeds_page.main([str(folder), "--busy"], root) == 0
        text = page.read_text(encoding="utf-8")
    assert text.count("## aws") == text.count("## ffcv") == 1 and "not measured yet" not in text
    assert "penstock-lab seeds" in text and "load average" in text and "0.50" in text
    assert text.count("aws 1 is worse than published: it is a test") == 1
    pictures = sorted(path.name for path in (root / "docs/records").iterdir())
    assert pictures == ["published-figures-1.svg", "published-figures-2.svg"]
    assert all(f"](../records/{name})" in text for name in pictures)
    assert "<script" not in text
    lines = report.read(folder)
    lines[0]["machine"]["load_before"] = 3.0
    assert "load average was 3.0" in seeds_page.refusal(lines)
    assert "not complete" in seeds_page.refusal(lines[:-1])


# ---- figures from times


def timed(rates, idle=0.1):
    """A stand-in for turns.turn: images/s by what a task has."""
    def turn(kind, task, place):
        rate = rates(kind, task)
        return {"epochs": [{"seconds": 5.0, "samples": rate * 5, "data": 5.0 * idle,
                            "waits": [[0.0, 0.1], [0.3, 0.1]]}] * task["epochs"], "counts": {}}
    return turn


def test_aws(options, monkeypatch):
    def rates(kind, task):
        return 500.0 if "resized" in task["path"] else 100.0 * task["threads"]
    monkeypatch.setattr(turns, "turn", timed(rates))
    monkeypatch.setattr(aws.os, "sched_getaffinity", lambda pid: {0, 1})
    threads, out_of_band, busy = aws.figures(options)
    assert threads.ours == "2.0 times" and threads.ratio == pytest.approx(2 * 96 / 260)
    assert "8 vCPUs" in threads.why and not threads.simulated
    assert out_of_band.ours == "5.0 times" and out_of_band.ratio > 1
    assert busy.simulated and busy.ours == "90%, 90%, 90%"
    assert list(aws.waits(options)) == ["1 thread", "2 threads", "resized, 1 thread"]


# ---- accuracy


def trained(folder, encodings, top1=(90.0, 91.0)):
    head = {"question": "fashion", "name": "x", "parameters": {"epochs": 5}, "inputs": [],
            "machine": {}, "versions": {}, "command": [], "date": "2026-01-02T03:04:05+00:00"}
    with report.Report.create(folder, head) as made:
        for name in encodings:
            for number, value in enumerate(top1):
                less = 0.0 if name == "raw" else 9.0
                made.append("turn", cell={"data": name}, round=number, top1=value - less)
        made.append("end")


def test_accuracy_of_a_report(options, tmp_path):
    trained(tmp_path / "r", ["raw", "jpeg50", "webp50", "3:jpeg10,2:raw"])
    options = dataclasses.replace(options, fashion=str(tmp_path / "r"))
    half, tenth, webp, stages = dl2_accuracy.figures(options)
    assert half.ours == "0.901 (81.50 / 90.50 %)" and not half.simulated
    assert half.ratio == pytest.approx(0.90055 / (75.57 / 76.72), rel=1e-4)
    assert "28 x 28" in half.why and "n = 2" in half.note
    assert tenth.ours == "absent" and "no training on jpeg10" in tenth.note
    assert "WebP 50" in webp.what and stages.ours == half.ours and "then raw" in stages.what


def test_accuracy_of_the_newest_report(options, tmp_path):
    options = dataclasses.replace(options, work=str(tmp_path / "seeds" / "x" / "work"))
    with pytest.raises(Absent, match="penstock-lab fashion"):
        dl2_accuracy.figures(options)
    trained(tmp_path / "fashion" / "a", ["raw", "jpeg50"])
    half, *others = dl2_accuracy.figures(options)
    assert half.ratio and [row.ours for row in others] == ["absent"] * 3


def test_concurrent(options, monkeypatch):
    def rates(kind, task):
        if kind == "pack":
            return 400.0 if "://" in task["path"] else 500.0
        return 450.0 if "://" not in task["path"] else 30.0 * min(10, task["requests"])

    @contextlib.contextmanager
    def apply(self, paths, measure=True):
        yield shapes.StorePlace(paths[0], 1, [])

    monkeypatch.setattr(turns, "turn", timed(rates, 0.3))
    monkeypatch.setattr(shapes.Store, "apply", apply)
    monkeypatch.setattr(concurrent, "packed", lambda options, quality: options.folder("p"))
    slower, within, across, share, idle = concurrent.figures(options)
    assert (slower.ours, within.ours, across.ours) == ("15.0 times", "10.0 times", "13.3 times")
    assert share.ours == "80%" and idle.ours == "30.0%, 30.0%, 30.0%"
    assert all(figure.simulated for figure in (slower, within, across, share, idle))
    assert len(concurrent.waits(options)) == 3


def test_concurrent_without_a_store(options, monkeypatch):
    @contextlib.contextmanager
    def apply(self, paths, measure=True):
        raise Absent("no network")
        yield

    monkeypatch.setattr(shapes.Store, "apply", apply)
    found = concurrent.figures(options)
    assert [row.what for row in found] == list(concurrent.THERE)
    assert all(row.ours == "absent" and "no network" in row.note for row in found)


def test_codecs(options, monkeypatch):
    monkeypatch.setattr(dl2_codec, "COUNT", 3)
    (found,) = dl2_codec.figures(options)
    assert found.ours.endswith("times") and found.ratio > 0
    assert "webp" in found.note and not found.simulated
