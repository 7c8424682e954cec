# SPDX-License-Identifier: Apache-2.0
"""penstock.lab.documents: figures from times. `penstock-lab seeds` measures these."""

import contextlib
import io

import pytest
from PIL import Image
from py_tools import need_penstock, pixels

penstock = need_penstock()
pytest.importorskip("numpy")

from penstock.lab import Absent, shapes  # noqa: E402
from penstock.lab.documents import Options, dl2, ffcv, gulpio, turns  # noqa: E402


def jpeg(number, width=200, height=120):
    out = io.BytesIO()
    pixels(number, width, height).save(out, "JPEG")
    return out.getvalue()


@pytest.fixture(scope="module")
def photos(tmp_path_factory):
    folder = tmp_path_factory.mktemp("photos") / "a"
    folder.mkdir()
    for number in range(3):
        (folder / f"{number}.jpg").write_bytes(jpeg(number))
    return folder.parent


@pytest.fixture
def options(photos, tmp_path):
    return Options(str(photos), str(tmp_path / "work"), 2, lambda text: None)


@contextlib.contextmanager
def unlimited(shape, paths, measure=True):
    yield shapes.Place(paths[0].parent)


def epoch(seconds, samples=200, data=0.0):
    return {"seconds": seconds, "samples": samples, "batches": 20, "data": data, "first": 0.1}


# ---- GulpIO


def test_clips_are_cut_from_photographs(photos, tmp_path):
    gulpio.cut_clip(photos / "a" / "0.jpg", 5, tmp_path / "clip")
    files = sorted((tmp_path / "clip").iterdir())
    assert len(files) == 37 and Image.open(files[0]).size == (176, 100)
    assert files[0].read_bytes() != files[36].read_bytes()


def test_sizes_are_explained(options, monkeypatch):
    monkeypatch.setattr(gulpio, "CLIPS", 2)
    folder = gulpio.make(options)
    row = gulpio.size_figure(folder)
    assert float(row.ours) < 1 and row.ratio == pytest.approx(float(row.ours) / 0.81, rel=0.02)
    assert "Files: " in row.note and "slack of blocks" in row.note and not row.simulated
    assert gulpio.make(options) == folder


def test_gulpio_compares_files_with_a_pack(options, tmp_path, monkeypatch):
    def turn(loader, task, place, log):
        seconds = 30.0 if loader == "jpeg" else 3.0
        reads = 3600 if loader == "jpeg" else 200
        assert task["shuffle"] == (task["step"] > 0)
        return {**epoch(seconds, data=seconds / 2), "reads": reads, "seeks": reads}

    monkeypatch.setattr(gulpio, "make", lambda options: tmp_path)
    monkeypatch.setattr(gulpio, "size_figure", lambda folder: "size")
    monkeypatch.setattr(shapes.Seeks, "apply", unlimited)
    monkeypatch.setattr(gulpio.turns, "turn", turn)
    size, fetch, reads, whole, wait, files, pack = gulpio.figures(options)
    assert size == "size" and fetch.ours == "10.0 times (30.0 / 3.0 s)" and fetch.simulated
    assert fetch.ratio == pytest.approx(10 / (61.415 / 5.916)) and "n = 2" in fetch.note
    assert reads.ours == "18.0 / 1.00" and whole.ours.startswith("10.0 times")
    assert files.ours == pack.ours == "50.0%"
    assert wait.ours == "10.0 times (750 / 75.0 ms)"


def refuse(shape, paths, measure=True):
    raise Absent("no FUSE here")


def test_what_is_absent_has_a_reason(options, tmp_path, monkeypatch):
    monkeypatch.setattr(gulpio, "make", lambda options: tmp_path)
    monkeypatch.setattr(gulpio, "size_figure", lambda folder: "size")
    monkeypatch.setattr(ffcv, "make", lambda options, name: tmp_path)
    monkeypatch.setattr(dl2, "make", lambda options, quality: tmp_path)
    monkeypatch.setattr(ffcv.ffcv_sizes, "figures", lambda options, command: [])
    for kind in (shapes.Seeks, shapes.Disk, shapes.Memory):
        monkeypatch.setattr(kind, "apply", refuse)
    rows = [gulpio.figures(options)[1], *ffcv.figures(options), *dl2.figures(options)]
    assert [(row.ours, row.note) for row in rows] == [("absent", "no FUSE here")] * 6


# ---- FFCV


def test_the_law_is_about_stored_bytes():
    found = ffcv.Measured(ffcv.Rate(36.1, 500e3), ffcv.Rate(57.0, 333e3), 500e3, "checked")
    whole, crops = ffcv.law_figures("512 raw", found, 3, 12.0)
    assert whole.ratio == pytest.approx(0.95) and "-5.0%: within 10 %" in whole.note
    assert crops.ours == "57.0 images/s; 1.50" and "more than 10 % off" in crops.note
    assert (whole.seconds, crops.seconds) == (12.0, 0.0)
    row = ffcv.order_figure(dict.fromkeys(ffcv.SETS, found))
    assert (row.published, row.ours) == ("1.0 : 3.5 : 8.5", "1.0 : 1.0 : 1.0")


def test_photographs_are_used_several_times_if_there_are_few(options):
    folder = ffcv.links(options, 7)
    assert len(list((folder / "photo").iterdir())) == 7
    assert ffcv.links(options, 7) == folder


def test_sizes_are_relative_to_raw_pixels(options, monkeypatch):
    found = dict.fromkeys(ffcv.ffcv_sizes.GRID, [10, 20, 30, 40]) | {"raw": [100, 200, 600, 1000]}
    rows = ffcv.ffcv_sizes.rows(found, "command", 3.0)
    assert [row.seconds for row in rows] == [3, 0, 0, 0, 0, 0]
    assert rows[1].published == "0.130 / 0.109 / 0.106 / 0.095"
    assert rows[1].ours == "0.100 / 0.100 / 0.050 / 0.040"
    assert rows[1].ratio == pytest.approx(0.47, rel=0.01)
    monkeypatch.setattr(ffcv.ffcv_sizes, "GRID", {"jpeg50": (9.23,)})
    monkeypatch.setattr(ffcv.ffcv_sizes, "SIDES", (256,))
    monkeypatch.setattr(ffcv.ffcv_sizes, "COMPARED", 0)
    (row,) = ffcv.ffcv_sizes.figures(options, "command")
    assert row.published == "0.054" and 0 < float(row.ours) < 1


# ---- (DL)2


def test_dl2_compares_two_qualities(options, tmp_path, monkeypatch):
    for name in ("originals", "q75"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "data").write_bytes(bytes(4000 if name == "originals" else 1000))
    monkeypatch.setattr(dl2, "make", lambda options, quality:
                        tmp_path / (f"q{quality}" if quality else "originals"))
    monkeypatch.setattr(dl2, "COUNT", 4)
    monkeypatch.setattr(dl2, "from_memory", lambda pack: (1000.0, 5000))
    limits = []

    def from_disk(pack, shape, epochs):
        limits.append(shape)
        return (1100.0 if pack.name == "q75" else 100.0), "checked"

    monkeypatch.setattr(dl2, "from_disk", from_disk)
    row, memory_row = dl2.figures(options)
    assert memory_row.ours == "1.00 times (1000 / 1000)" and not memory_row.simulated
    assert row.ours == "11.0 times (1100 / 100)"
    assert row.ratio == pytest.approx(11 / 14.48, rel=0.01)
    disk, memory = limits[0].shapes
    assert limits[0] == limits[1] and memory.limit == 5000 + round(4000 * 64 / 138)
    assert disk.mb_per_second == round(204 / 2461 * 1000 * 1000 / 1e6, 1)


def test_the_first_epoch_is_not_counted():
    assert dl2.rate([epoch(100), epoch(2), epoch(4)]) == pytest.approx(75)


# ---- a turn


@pytest.fixture
def pack(tmp_path):
    path = tmp_path / "set.pen"
    with penstock.Writer(path, {"image": "image", "label": "i64"}) as writer:
        for number in range(12):
            writer.add(image=jpeg(number, 40, 32), label=number)
    return path


def test_a_turn_is_a_process_of_its_own(pack):
    task = {"path": str(pack), "batch": 5, "order": "random", "threads": 1, "epochs": 2,
            "pipeline": "decode | center_crop 16 | tensor u8", "step": 0.01}
    found = turns.turn("pack", task, shapes.Place(pack.parent))
    assert [one["samples"] for one in found["epochs"]] == [12, 12] and found["counts"] == {}
    assert all(one["batches"] == 3 and one["seconds"] >= 0.03 for one in found["epochs"])
    assert all(one["memory"] > 0 for one in found["epochs"])


def test_a_failed_turn_says_why(pack):
    task = {"path": str(pack) + "x", "batch": 5, "order": "random", "threads": 1, "epochs": 1,
            "pipeline": "decode"}
    with pytest.raises(Absent, match="ended with code 1: .*set.penx"):
        turns.turn("pack", task, shapes.Place(pack.parent))
