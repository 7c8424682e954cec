# SPDX-License-Identifier: Apache-2.0
"""penstock-lab growth: its packs, its turns, and a small run with its table and page."""

import io
import random

import penstock
import pytest
from penstock.lab import _cli, program
from penstock.lab.experiment import machine, report, sweep
from penstock.lab.experiment.progress import Progress
from penstock.lab.experiment.question import Arm, Question
from penstock.lab.growth import figures, packs
from penstock.lab.growth.question import THUMBNAIL_PIPELINE, Bench, Load

image = pytest.importorskip("PIL.Image")

@pytest.fixture(name="photos")
def fixture_photos(tmp_path):
    folder = tmp_path / "photos"
    folder.mkdir()
    for n in range(3):
        noise = image.frombytes("RGB", (20, 15), random.Random(n).randbytes(900))
        noise.resize((80, 60)).save(folder / f"{n}.jpg", quality=90)
    return folder


def sizes(path):
    """(width, height) of all images of a pack."""
    with penstock.open(path) as pack:
        files = [pack.extract(n, "image") for n in range(len(pack))]
    return [image.open(io.BytesIO(data)).size for data in files]


def test_packs_of_counts_and_sides(photos, tmp_path):
    made = packs.Packs(photos, tmp_path / "work")
    pack = made.of_count(7)
    assert sizes(pack) == [(80, 60)] * 7
    with penstock.open(pack) as opened:
        files = [opened.extract(n, "image") for n in range(7)]
    assert files[:3] == [file.read_bytes() for file in sorted(photos.iterdir())]
    assert files[3:] == [*files[:3], files[0]]
    assert sizes(made.of_side(40, 4)) == [(40, 30)] * 4
    assert sizes(made.of_side(300, 2)) == [(300, 225)] * 2
    assert sizes(made.thumbnails(5)) == [(64, 64)] * 5


def test_larger_images_have_no_gaps(photos):
    images = packs.endless(str(photos))
    whole = packs.picture(images, 300)
    assert whole.size == (300, 225)
    assert all(whole.crop((x, y, x + 5, y + 5)).getextrema() != ((0, 0),) * 3
               for x in range(0, 300, 5) for y in range(0, 225, 5))


def test_packs_are_made_once_and_after_a_kill_again(photos, tmp_path):
    made = packs.Packs(str(photos), tmp_path)
    broken = made.folder / "images-2.pen"
    broken.mkdir()
    (broken / "part").write_text("of a process that was killed")
    assert made.of_count(2) == broken and len(sizes(broken)) == 2
    before = (broken / "manifest").stat().st_mtime_ns
    assert made.of_count(2) == broken and (broken / "manifest").stat().st_mtime_ns == before
    assert packs.Packs(broken, tmp_path).folder != made.folder


def fake_bench(asked, real):
    """In the place of `penstock doctor`: two threads are twice as fast as one."""
    def output_json(*words):
        if words[0] != "doctor":
            return real(*words)
        given = dict(zip(words[2::2], words[3::2]))
        asked.append((words[1].name, given))
        return {"seconds": 2.0, "samples": 200 * int(given["--threads"]),
                "cpu_seconds_per_1000_samples": 0.8, "wait_for_a_batch": {"p99_ms": 3.5},
                "loader_memory_reserved_bytes": 287_000_000, "bottleneck": "decode"}
    return output_json


SMALL = ["--packs", "3,6", "--thumbnails", "8", "--batches", "1,4", "--sides", "40,100", "--images",
         "4", "--side-images", "2", "--rounds", "2", "--seconds", "1"]


def test_a_run_and_its_page(photos, tmp_path, monkeypatch, capsys):
    asked = []
    monkeypatch.setattr(program, "output_json", fake_bench(asked, program.output_json))
    words = ["growth", str(photos), *SMALL, "--out", str(tmp_path / "out"), "--name", "small",
             "--work", str(tmp_path / "packs")]
    assert _cli.main(words) == 0
    threads, count = [given["--threads"] for _, given in asked], len(asked)
    assert threads[:4] == ["1", "2", "1", "2"] and set(threads[4:]) == {"2"} and count == 18
    assert [name for name, _ in asked[4:8]] == ["images-3.pen", "images-6.pen"] * 2
    assert [(name, given["--batch"]) for name, given in asked[14:16]] == [
        ("side-40-2.pen", "2"), ("side-100-2.pen", "2")]
    assert {given["--pipeline"] == THUMBNAIL_PIPELINE for name, given in asked
            if name == "thumbnails-8.pen"} == {True}
    said = capsys.readouterr().out
    for name in ("2 threads", "100 pixels wide", "batch of 4"):
        assert said.count(f"| {name} ") == 2
    assert "2 threads against 1 thread: 2.000 times the rate (95 % interval 2.000 to 2.000)" in said
    assert "6 images against 3 images: 1.000 times" in said
    assert "First batch of 8 thumbnails: 0.0" in said and "not reached" not in said
    folder = tmp_path / "out" / "growth" / "small"
    assert not (folder / "work").exists()
    lines = (folder / "report.jsonl").read_text().splitlines(keepends=True)
    (folder / "report.jsonl").write_text("".join(lines[:-3]))
    assert _cli.main(words) == 0
    kinds = [line["kind"] for line in report.read(folder)]
    assert len(asked) == count + 2 and kinds.count("turn") == 18 and "resumed" in kinds
    pytest.importorskip("matplotlib")
    assert _cli.main(["report", str(tmp_path / "out")]) == 0
    page = (tmp_path / "out" / "page.html").read_text(encoding="utf-8")
    assert page.count("<svg") == 4 and "Loading rate by image width" in page


def line(part, value, rates):
    return [{"kind": "turn", "round": n, "cell": {"part": part, "value": value}, "samples": rate,
             "seconds": 1.0} for n, rate in enumerate(rates)]


@pytest.mark.parametrize("rates, verdict", [
    ([195.0, 195.1, 195.2], "reached."), ([150.0, 150.1, 150.2], "not reached."),
    ([170.0, 195.0, 210.0], "which is in the interval."), ([195.0], "reached."),
    ([185.0], "not reached.")])
def test_aims_say_whether_they_are_reached(rates, verdict):
    lines = line("threads", 1, [100.0] * len(rates)) + line("threads", 2, rates)
    assert [said.partition("1.9, ")[2] for said in figures.aims(lines)] == [verdict]


@pytest.mark.parametrize("words", [
    [], ["x", "--parts", "loaders"], ["x", "--threads", "0"], ["x", "--packs", ","],
    ["x", "--seconds", "0"], ["x", "--side-images", "-1"], ["x", "--parts", ","]])
def test_wrong_arguments(words, tmp_path, capsys):
    assert _cli.main(["growth", *words, "--out", str(tmp_path)]) == 1
    assert "expected" in capsys.readouterr().err and not any(tmp_path.iterdir())


class Busy(Arm, Question):
    """Uses processor time that its figures do not have: that of a child, and its own."""

    def groups(self):
        return [[{"n": 1}]]

    def open(self, cell):
        return self

    def turn(self, number):
        program.output("--version")
        return {"seconds": 1.0, "samples": 1, "cpu": 0.0}


def test_the_time_of_a_child_is_not_that_of_others(tmp_path, monkeypatch):
    monkeypatch.setattr(machine, "busy_seconds", machine.own_seconds)
    with report.Report.open(tmp_path / "run", {"question": "busy", "parameters": {}}) as opened:
        sweep.run(Busy(), opened, 1, Progress(1, 0))
        assert opened.lines[-1]["other_cpu"] == 0.0


@pytest.mark.slow
def test_a_turn_of_penstock_bench(photos, tmp_path):
    arm = Bench(Load(packs.Packs(photos, tmp_path).of_count(40), 2, 8), 1)
    assert arm.prepared()["images"] == 40 and arm.prepared()["batch"] == 8
    turn = arm.turn(0)
    assert turn["samples"] > 100 and turn["seconds"] > 0.5 and 0 < turn["cpu"] < 4
    assert 0 < turn["first_batch_seconds"] < 10 and turn["loader_mb"] > 1 and turn["bottleneck"]
