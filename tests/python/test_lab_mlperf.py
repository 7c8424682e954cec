# SPDX-License-Identifier: Apache-2.0
"""penstock-lab mlperf: the search for the line, images of a given size, and a small run."""

import io
import itertools
import random

import pytest
from penstock.lab import LabError, _cli
from penstock.lab.experiment import report
from penstock.lab.mlperf import accelerator, images, workloads
from penstock.lab.mlperf.accelerator import Point
from penstock.lab.verbs import mlperf

SMALL = workloads.Workload("retinanet", "Small", 4, 0.004, 0.85, 3000, "random",
                           "decode | resize 16,16 | tensor u8")


def host(limit, line):
    """Measurements of a host that feeds LIMIT accelerators at the line."""
    def measure(n):
        assert n > 0
        return Point(n, min(1.0, line * limit / n), 1.0, 100, 2.0)
    return measure


@pytest.mark.parametrize("limit, guess", [
    (0.84, 0.84), (0.84, 1.2), (0.84, 0.5), (12.0, 11.0), (12.0, 14.0), (0.05, 0.06)])
def test_the_search_finds_the_line(limit, guess):
    points = accelerator.search(host(limit, 0.9), 0.9, guess)
    best = accelerator.fed(points, 0.9)
    assert len(points) <= accelerator.MOST_POINTS
    assert limit * 0.97 <= best.accelerators <= limit * 1.0001


def test_a_host_that_feeds_nothing():
    points = accelerator.search(lambda n: Point(n, 0.1, 1.0, 100, 2.0), 0.9, 1.0)
    assert accelerator.fed(points, 0.9) is None
    assert len(points) == accelerator.MOST_POINTS


def test_utilization_is_steps_times_step_time():
    taken = []
    batches = (taken.append(n) or n for n in itertools.count())
    point = accelerator.consume(batches, SMALL, 0.5, 0.1)
    assert point.samples == 4 * (len(taken) - accelerator.PREFETCH - 1)
    assert point.utilization == pytest.approx(point.samples / 4 * 0.008 / point.seconds)
    assert accelerator.consume(batches, SMALL, 0.0, 0.01).utilization == 0.0


def photo(seed, side=400):
    pillow = pytest.importorskip("PIL.Image")
    noise = pillow.frombytes("RGB", (40, 40), random.Random(seed).randbytes(4800))
    data = io.BytesIO()
    noise.resize((side, side * 3 // 4)).save(data, "JPEG", quality=92)
    return data.getvalue()


@pytest.mark.parametrize("size", [120_000, 323_000])
def test_images_of_a_size(size):
    assert abs(len(images.of_size(photo(1), size)) / size - 1) < 0.12


def test_workloads():
    one = workloads.workload("resnet50")
    assert (one.batch, one.step, one.utilization) == (400, 0.224, 0.9)
    other = workloads.workload("retinanet")
    assert (other.batch, other.step, other.utilization) == (24, 0.04755, 0.85)
    with pytest.raises(LabError, match="unknown workload"):
        workloads.workload("bert")


@pytest.mark.parametrize("words", [
    [], ["nothing"], ["x", "--workloads", "bert"], ["x", "--images", "0"], ["x", "--seconds", "0"],
    ["x", "--threads", "-1"]])
def test_wrong_arguments(words, tmp_path, capsys):
    assert _cli.main(["mlperf", *words, "--out", str(tmp_path)]) == 1
    assert "expected" in capsys.readouterr().err or words == ["nothing"]


def test_a_run_and_its_page(tmp_path, monkeypatch, capsys):
    monkeypatch.setitem(workloads.WORKLOADS, "retinanet", SMALL)
    monkeypatch.setattr(images, "SIDE", 64)
    photos = tmp_path / "photos"
    photos.mkdir()
    for n in range(6):
        (photos / f"{n}.jpg").write_bytes(photo(n, 64))
    words = ["mlperf", str(photos), "--workloads", "retinanet", "--images", "4", "--rounds", "2",
             "--seconds", "0.02", "--threads", "1", "--out", str(tmp_path / "out"), "--cold"]
    assert _cli.main(words) == 0
    said = capsys.readouterr().out
    assert "not a submission" in said and "Small, 1 threads (simulated)" in said
    lines = report.read(next((tmp_path / "out").rglob("report.jsonl")))
    assert [line["kind"] for line in lines].count("turn") == 2
    assert all(line["simulated"] for line in lines if line["kind"] == "turn")
    pytest.importorskip("matplotlib")
    assert _cli.main(["report", str(tmp_path / "out")]) == 0
    page = (tmp_path / "out" / "page.html").read_text(encoding="utf-8")
    assert "accelerators fed" in page and "not a submission" in page and "<svg" in page


def test_a_host_that_feeds_none_has_no_cores_each():
    cell = {"workload": "resnet50", "threads": 0}
    turn = {"kind": "turn", "cell": cell, "round": 0, "seconds": 1.0, "samples": 1,
            "accelerators": 0.0, "cores": 1.0, "utilization": 0.0}
    assert mlperf._row([turn], cell)[-1] == "-"
