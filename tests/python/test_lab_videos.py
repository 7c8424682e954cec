# SPDX-License-Identifier: Apache-2.0
"""penstock-lab videos: tables, aims, the sets, ranged reads, and a small run of penstock alone."""

import ast
import contextlib
import importlib.util
import os
import pathlib
import shutil

import pytest
from packet_tools import PLUGIN, encode
from py_tools import need_penstock

need_penstock()

from penstock.lab import LabError, _cli, program, shapes  # noqa: E402
from penstock.lab.experiment import parameters, report  # noqa: E402
from penstock.lab.loaders import environments  # noqa: E402
from penstock.lab.videos import encode as encoding  # noqa: E402
from penstock.lab.videos import question, sets, sizes, tables, turns  # noqa: E402
from penstock.lab.videos.question import Parameters  # noqa: E402

WORKER = pathlib.Path(turns.TURN).parent


def cell(loader, gop=12, storage="warm", length="short"):
    return {"task": "speed", "length": length, "gop": gop, "loader": loader, "storage": storage}


def record(times, **more):
    """A report: {(loader, gop, storage): seconds of its turns}."""
    chosen = parameters.to_dict(Parameters(**more))
    lines = [{"kind": "parameters", "parameters": chosen, "date": "2026-11-18T06:00:00Z",
              "machine": {"cpu": "c", "cores": 2, "memory_gb": 4}}]
    for (name, gop, storage), seconds in times.items():
        at = cell(name, gop, storage)
        lines.append({"kind": "prepared", "cell": at, "title": name, "versions": {"x": "1"},
                      "check": {"mean": 0.5, "max": 3}, "disk": 5_000_000})
        lines += [{"kind": "turn", "cell": at, "round": i, "seconds": one, "cpu": 2.0,
                   "samples": 100, "bytes": 4_000_000} for i, one in enumerate(seconds)]
    return lines


def test_loaders_of_each_gop_are_compared():
    lines = record({("penstock", 12, "warm"): [1.0, 1.1, 1.0],
                    ("torchcodec", 12, "warm"): [3.0, 3.0, 3.3],
                    ("penstock", 48, "warm"): [2.0] * 3, ("torchcodec", 48, "warm"): [3.0] * 3},
                   aims=("penstock/torchcodec>=2.5:12", "penstock/torchcodec>=2:48"))
    text = tables.markdown(lines)
    assert "3.00 (2.73-3.30)" in text and "1.50 (1.50-1.50)" in text
    assert "| 100.0 (90.9-100.0) |" in text and "20.0 |       5.0 |" in text
    assert "| 40 |" in text.replace("  ", "") and "0.50 (3)" in text
    aims = tables.aim_table(lines).rows
    assert [row[0] + " " + row[-1] for row in aims] == ["short, GOP 12 reached",
                                                        "short, GOP 48 NOT reached"]


def test_a_store_is_an_arm_of_its_own():
    lines = record({("penstock", 12, "warm"): [1.0] * 3,
                    ("penstock", 12, "store=110ms"): [1.02] * 3},
                   aims=("penstock@store=110ms/penstock>=0.95",))
    (section,) = tables.sections_of(lines, "speed")
    assert list(section.found) == ["penstock", "penstock@store=110ms"]
    assert tables.aim_table(lines).rows[0][-1] == "reached"


def sizes_record(sizes, **more):
    """A report of sizes: {form: (payload, index)} of 1,000 frames as they are."""
    lines = record({}, tasks=("size",), **more)
    for form, (payload, index) in sizes.items():
        at = {"task": "size", "length": "source", "gop": 0, "form": form}
        lines += [{"kind": "prepared", "cell": at, "title": form},
                  {"kind": "turn", "cell": at, "round": 0, "seconds": 0.1, "cpu": 0.1, "files": 1,
                   "samples": 1000, "payload": payload, "index": index, "slack": 0}]
    return lines


def test_sizes_are_compared_with_the_files():
    lines = sizes_record({"videos": (2_000_000, 4096), "kept.pen": (2_000_000, 20_000),
                          "frames.pen": (9_000_000, 1_000_000)})
    (table,) = tables.tables_of(lines)
    assert table.rows[1] == ["as they are", "kept.pen", "2.00", "0.02", "2,020", "1.01"]
    assert table.rows[2][-2:] == ["10,000", "5.00"]
    assert "Sizes of ffmpeg's test pictures" in tables.markdown(lines)


def test_a_size_without_the_files_has_no_ratio():
    lines = sizes_record({"kept.pen": (2_000_000, 20_000)})
    lines.append({"kind": "absent", "reason": "no libx264",
                  "cell": {"task": "size", "length": "source", "gop": 0, "form": "gop12.pen"}})
    rows = tables.size_table(lines).rows
    assert rows[0][-1] == "-" and rows[1][:3] == ["as they are", "gop12.pen", "absent: no libx264"]


def test_groups_of_tasks(tmp_path):
    chosen = Parameters(tasks=("size", "speed"), gop=(12,), lengths=("short",), work=str(tmp_path),
                        loaders=("penstock", "penstock-process"))
    groups = question.Videos(chosen, tmp_path).groups()
    assert [[tuple(one.values()) for one in group] for group in groups] == [
        *([("size", *place, form) for form in sizes.FORMS]
          for place in (("source", 0), ("short", 12))),
        [("speed", "short", 12, name, "warm") for name in chosen.loaders]]
    assert set(sizes.FORMS) == {"videos", *sets.PACKS}


def test_an_absent_loader_is_named():
    lines = record({("penstock", 12, "warm"): [1.0]}, aims=("penstock/decord2>=2",))
    lines.append({"kind": "absent", "cell": cell("decord2"), "reason": "no wheel"})
    assert "absent: no wheel" in tables.markdown(lines) and "not measured" in tables.markdown(lines)


@pytest.mark.parametrize("words", [
    ["--loaders", "tape"], ["--tasks", "sleep"], ["--lengths", "middle"],
    ["--storage", "disk=20MB/s"], ["--aims", "penstock>3"], ["--gop", "0"],
    ["--clips", "9"], ["--crop", "500"], ["--width", "341"], ["--frames", "0"], ["nowhere"]])
def test_wrong_arguments(words, tmp_path, capsys):
    assert _cli.main(["videos", *words, "--out", str(tmp_path)]) == 1
    assert words[-1] == "nowhere" or "expected" in capsys.readouterr().err


def test_aims_name_arms():
    aim = question.parse_aim("penstock@store=110ms/torchcodec>=1.2:48")
    assert aim == question.Aim("penstock@store=110ms", "torchcodec", 1.2, 48)
    with pytest.raises(LabError, match="no loader 'tape'"):
        question.parse_aim("tape/penstock>=1")


def test_every_loader_has_a_module_and_an_environment():
    known = environments.specs()
    for name, spec in turns.loaders().items():
        assert (WORKER / "readers" / f"{spec['module']}.py").exists(), name
        assert spec["environment"] is None or spec["environment"] in known, name
    for file in [WORKER / "turn.py", *(WORKER / "readers").glob("*.py")]:
        names = {alias.name for node in ast.walk(ast.parse(file.read_text(encoding="utf-8")))
                 if isinstance(node, ast.Import) for alias in node.names}
        assert "penstock" not in names or file.name == "penstock.py"


def test_ranged_reads_are_those_of_the_file(tmp_path):
    spec = importlib.util.spec_from_file_location("ranged", WORKER / "readers" / "ranged.py")
    ranged = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(ranged)
    data = bytes(i * 7919 % 251 for i in range(700_000))
    (tmp_path / "a.bin").write_bytes(data)
    (tmp_path / "b").touch()
    with shapes.Store(1).apply([tmp_path / "a.bin", tmp_path / "b"], measure=False) as place:
        url = place.address(tmp_path / "a.bin").replace("s3:/", place.url, 1)
        count = ranged.Count()
        with contextlib.closing(ranged.File(url, count)) as file:
            assert file.seek(300_000) == file.tell() == 300_000
            assert file.read(10) == data[300_000:300_010] and file.tell() == 300_010
            assert count.bytes == ranged.PIECE
            file.seek(-5, os.SEEK_END)
            assert file.read(10) == data[-5:] and file.read() == b""
            file.seek(0)
            assert file.read() == data and count.bytes == len(data)


NEEDS_DECODER = pytest.mark.skipif(not PLUGIN.exists() or not shutil.which("ffmpeg"),
                                   reason="no video decoder")


def small_run(tmp_path, *words):
    """The report of a run of few clips of a small video."""
    (tmp_path / "some").mkdir()
    encode(tmp_path / "some" / "a.mp4", "-pix_fmt", "yuv420p")
    code = _cli.main(["videos", str(tmp_path / "some"), "--width", "64", "--height", "48", "--crop",
                      "40", "--size", "16", "--gop", "12", "--clips", "16", "--seconds", "7",
                      "--rounds", "1", "--out", str(tmp_path / "lab"), "--work", str(tmp_path),
                      "--name", "run", *words])
    assert code == 0
    return report.read(tmp_path / "lab" / "videos" / "run" / "report.jsonl")


@NEEDS_DECODER
@pytest.mark.slow
def test_penstock_alone(tmp_path, monkeypatch):
    """Local and from a store; the frames are those of ffmpeg."""
    monkeypatch.setenv("PENSTOCK_VIDEO_LIBRARY", str(PLUGIN))
    lines = small_run(tmp_path, "--loaders", "penstock,penstock-frames", "--storage",
                      "warm,store=5ms")
    sections = tables.sections_of(lines, "speed")
    assert [section.title() for section in sections] == ["short, GOP 12", "long, GOP 12"]
    for section in sections:
        assert not section.absent and len(section.found) == 4
        for figure in section.found.values():
            assert figure["turns"][0]["samples"] == 16 and figure["turns"][0]["bytes"] >= 0
        assert section.found["penstock"]["check"]["max"] <= 2
        assert section.found["penstock@store=5ms"]["turns"][0]["bytes"] > 0
        assert section.found["penstock@store=5ms"]["title"].endswith(", simulated store=5ms")
    kept, frames = (sections[1].found[name]["disk"] for name in ("penstock", "penstock-frames"))
    assert kept < frames
    made = sets.Set(next((tmp_path / "videos").glob("*-64x48-7")) / "long-12")
    assert made.names() == ["0.mp4"]


@NEEDS_DECODER
@pytest.mark.slow
def test_the_process_arm_decodes_in_a_process(tmp_path, monkeypatch):
    """Without the program of decoders beside the plug-in, only that arm is absent."""
    alone = tmp_path / PLUGIN.name
    shutil.copyfile(PLUGIN, alone)
    monkeypatch.setenv("PENSTOCK_VIDEO_LIBRARY", str(alone))
    monkeypatch.setenv("PENSTOCK_VIDEO", "process")
    lines = small_run(tmp_path, "--loaders", "penstock,penstock-process", "--lengths", "short")
    (section,) = tables.sections_of(lines, "speed")
    assert list(section.found) == ["penstock"]
    assert "penstock-video-decoder" in section.absent["penstock-process"]


@NEEDS_DECODER
@pytest.mark.slow
def test_sizes_of_a_small_video(tmp_path):
    lines = small_run(tmp_path, "--tasks", "size", "--lengths", "short")
    source, short = tables.sections_of(lines, "size")
    turn = {form: figure["turns"][0] for form, figure in source.found.items()}
    assert list(turn) == list(sizes.FORMS) and {one["samples"] for one in turn.values()} == {40}
    assert turn["kept.pen"]["payload"] == turn["videos"]["payload"] == \
        (tmp_path / "some" / "a.mp4").stat().st_size
    assert turn["frames.pen"]["payload"] > turn["kept.pen"]["payload"] < \
        short.found["gop12.pen"]["turns"][0]["payload"]


@NEEDS_DECODER
@pytest.mark.slow
def test_videos_that_cannot_be_kept_are_absent(tmp_path, monkeypatch):
    """They are named with the reason, and sizes of other forms are measured."""
    made = encoding.keepable

    def smaller(video, folder, number):
        made(video, folder, number)
        encode(folder / f"{number}.mp4", "-c:v", "mpeg2video", "-f", "mp4")

    monkeypatch.setattr(encoding, "keepable", smaller)
    lines = small_run(tmp_path, "--tasks", "size", "--lengths", "short")
    (source, _) = tables.sections_of(lines, "size")
    assert "kept.pen" in source.absent and "without --video keep" in source.absent["kept.pen"]
    assert "frames.pen" in source.found


@NEEDS_DECODER
@pytest.mark.parametrize("name, encoder, codec", [
    ("a.avi", "libxvid", "mpeg4"), ("b.avi", "mjpeg", "mjpeg"), ("c.mp4", "libx264", "h264")])
def test_keepable_files_have_the_same_frames(tmp_path, name, encoder, codec):
    """Xvid stores two frames in one packet, if they differ."""
    pixels = "yuvj420p" if codec == "mjpeg" else "yuv420p"
    source = encode(tmp_path / name, "-c:v", encoder, "-pix_fmt", pixels, "-bf",
                    "0" if codec == "mjpeg" else "2", "-vf", "noise=alls=30:allf=t")
    made = sets.Set(tmp_path / "set")
    encoding.keepable(str(source), made.videos, 3)
    made.write_list()
    made.need("kept.pen")
    told = program.output_json("info", made.folder / "kept.pen", "--json")
    assert told["videos"] == {"videos": 1, "frames": encoding.frames_of(source)}
    assert made.names() == ["3.mp4"] and encoding.codec_of(made.videos / "3.mp4") == codec
