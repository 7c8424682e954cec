# SPDX-License-Identifier: Apache-2.0
"""Packing clips with the program: frames named by lists, frames in class folders, gulps."""

import json
import os

import pytest
from cli_tools import good, image_bytes, run


def make_clip(folder, seed, frames):
    folder.mkdir(parents=True)
    for i in range(frames):
        (folder / f"{i + 1:05d}.jpg").write_bytes(image_bytes(seed * 1000 + i, width=96, height=64))


@pytest.fixture
def jester(tmp_path):
    """frames/ID/NNNNN.jpg and train.csv with id;label, as 20BN gives them out."""
    lines = []
    for i in range(12):
        make_clip(tmp_path / "frames" / str(100 + i), i, 5 + i % 3)
        lines.append(f"{100 + i};{('Stop Sign', 'No gesture', 'Swiping, Left')[i % 3]}\n")
    (tmp_path / "train.csv").write_text("".join(lines))
    return tmp_path


def pack_bytes(pack):
    return {f.name: f.read_bytes() for f in pack.rglob("*") if f.is_file()}


def samples(pack):
    lines = good("info", pack, "--samples").out.splitlines()
    names = lines[0].split("\t")
    return [dict(zip(names, line.split("\t"), strict=True)) for line in lines[1:]]


def test_list_without_header(jester):
    pack = jester / "j.pen"
    good("pack", jester / "train.csv", "--root", jester / "frames", "-o", pack, "--mode", "keep")
    rows = {row["key"]: row for row in samples(pack)}
    assert len(rows) == 12
    assert rows["101"]["video.frames"] == "6"
    assert rows["101"]["label.class"] == "No gesture"
    assert rows["102"]["label.class"] == "Swiping, Left"
    good("verify", pack, "--decode")
    assert good("info", pack, "--json").json()["bytes"]["source"] == sum(
        frame.stat().st_size for frame in (jester / "frames").glob("*/*"))
    good("extract", pack, "-o", jester / "out")
    for key in rows:
        for frame in (jester / "frames" / key).iterdir():
            assert (jester / "out" / key / frame.name).read_bytes() == frame.read_bytes()


def test_what_was_extracted_can_be_packed(jester):
    good("pack", jester / "train.csv", "--root", jester / "frames", "-o", jester / "a.pen")
    good("extract", jester / "a.pen", "-o", jester / "out")
    good("pack", jester / "out" / "samples.csv", "-o", jester / "b.pen")
    key = ("key", "video.frames", "label.class")
    left, right = (sorted([row[k] for k in key] for row in samples(jester / p))
                   for p in ("a.pen", "b.pen"))
    assert left == right


def test_frames_in_class_folders(tmp_path):
    for label in ("wave", "clap"):
        for i in range(2):
            make_clip(tmp_path / "set" / label / f"clip{i}", i, 3)
    good("pack", tmp_path / "set", "-o", tmp_path / "s.pen", "--kind", "frames", "--fps", "12.5")
    rows = samples(tmp_path / "s.pen")
    assert {row["key"] for row in rows} == {
        f"{label}/clip{i}" for label in ("clap", "wave") for i in range(2)}
    assert {row["video.how"] for row in rows} == {"kept, indexed"}
    info = good("info", tmp_path / "s.pen", "--json").json()
    assert json.loads(json.dumps(info))["classes"] == ["clap", "wave"]


@pytest.mark.parametrize("mode", ["keep", "raw"])
def test_threads_make_no_difference(jester, mode):
    packs = []
    for threads in (1, 3):
        pack = jester / f"{mode}{threads}.pen"
        good("pack", jester / "train.csv", "--root", jester / "frames", "-o", pack, "--mode", mode,
             "--threads", str(threads), "--shard-bytes", "10KiB", "--block-samples", "2")
        packs.append(pack_bytes(pack))
    assert packs[0] == packs[1]
    assert len(packs[0]) > 3


def test_tasks_and_finalise(jester):
    options = ("--root", jester / "frames", "--block-samples", "2")
    good("pack", jester / "train.csv", *options, "-o", jester / "whole.pen")
    good("plan", jester / "train.csv", *options, "-o", jester / "parts.pen")
    for i in range(3):
        good("pack", jester / "train.csv", *options, "-o", jester / "parts.pen", "--task", f"{i}/3")
    good("finalise", jester / "parts.pen")
    good("verify", jester / "parts.pen", "--decode")
    assert sorted(row["key"] for row in samples(jester / "parts.pen")) == sorted(
        row["key"] for row in samples(jester / "whole.pen"))


def test_append(jester):
    lines = (jester / "train.csv").read_text().splitlines(keepends=True)
    (jester / "some.csv").write_text("".join(lines[:5]))
    options = ("--root", jester / "frames", "--block-samples", "2")
    good("pack", jester / "some.csv", *options, "-o", jester / "a.pen")
    good("pack", jester / "train.csv", *options, "-o", jester / "a.pen", "--append")
    assert len(samples(jester / "a.pen")) == 12
    good("verify", jester / "a.pen", "--decode")


def test_a_run_that_was_stopped_goes_on(jester):
    """A frame that cannot be read ends the run; mended, it goes on behind its finished shards."""
    options = ("--root", jester / "frames", "--block-samples", "1", "--shard-bytes", "8KiB",
               "--order", "source", "--threads", "1")
    good("pack", jester / "train.csv", *options, "-o", jester / "whole.pen")
    frame = jester / "frames" / "109" / "00003.jpg"
    right = frame.read_bytes()
    frame.write_bytes(bytes(len(right)))
    result = run("pack", jester / "train.csv", *options, "-o", jester / "a.pen")
    assert result.code == 1
    assert "frames/109/00003.jpg: " in result.message()
    frame.write_bytes(right)
    result = good("pack", jester / "train.csv", *options, "-o", jester / "a.pen")
    assert "resumed: " in result.err
    assert pack_bytes(jester / "a.pen") == pack_bytes(jester / "whole.pen")


def test_broken_clips_are_left_out(jester):
    (jester / "frames" / "103" / "00002.jpg").write_bytes(b"\xff\xd8\xff nothing")
    options = ("--root", jester / "frames", "-o", jester / "a.pen")
    result = run("pack", jester / "train.csv", *options)
    assert result.code == 1
    assert "skip broken inputs with --on-bad skip" in result.message()
    good("pack", jester / "train.csv", *options, "--on-bad", "skip")
    assert len(samples(jester / "a.pen")) == 11
    bad = [json.loads(line) for line in open(f"{jester}/a.pen-bad.jsonl", encoding="utf-8")]
    assert [b["key"] for b in bad] == ["103"]
    assert "frames/103/00002.jpg" in bad[0]["why"]


def test_options_of_clips(jester):
    train = jester / "train.csv"
    for fps in ("0", "-1", "x", "1001", "0.0001"):
        result = run("pack", train, "-o", jester / "a.pen", "--fps", fps)
        assert result.code == 2
        assert "a number from 0.001 to 1000" in result.message()
    result = run("pack", train, "-o", jester / "a.pen")  # the root is missing
    assert result.code == 1
    assert "expected a header" in result.message()
    assert not os.path.exists(jester / "a.pen")


def test_gulp(tmp_path):
    """Two chunks as GulpIO and GulpIO2 write them."""
    gulp = tmp_path / "gulp"
    gulp.mkdir()
    frames = {}
    for chunk in range(2):
        meta, data = {}, b""
        for i in range(3):
            number = str(chunk * 3 + i)
            meta[number] = {"meta_data": [{"id": number, "label": f"class {i}"}], "frame_info": []}
            for f in range(4):
                jpeg = image_bytes(int(number) * 10 + f)
                frames[number, f] = jpeg
                fill = -len(jpeg) % 4
                meta[number]["frame_info"].append([len(data), fill, len(jpeg) + fill])
                data += jpeg + bytes(fill)
        (gulp / f"data_{chunk}.gulp").write_bytes(data)
        (gulp / f"meta_{chunk}.gmeta").write_text(json.dumps(meta))
    pack = tmp_path / "g.pen"
    good("pack", gulp, "-o", pack, "--mode", "keep", "--fps", "25")
    rows = samples(pack)
    assert {(row["key"], row["label.class"]) for row in rows} == {
        (str(n), f"class {n % 3}") for n in range(6)}
    good("extract", pack, "-o", tmp_path / "out")
    for (number, f), jpeg in frames.items():
        [found] = (tmp_path / "out").glob(f"{number}*/{f + 1:05d}.jpg")
        assert found.read_bytes() == jpeg
