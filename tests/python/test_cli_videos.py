# SPDX-License-Identifier: Apache-2.0
"""Packing videos with the program, through the ffmpeg that is installed."""

import json
import os
import shutil
import subprocess

import pytest
from cli_tools import PENSTOCK, good, run

pytestmark = pytest.mark.skipif(not shutil.which("ffmpeg"), reason="no ffmpeg here")


def make_video(path, seconds=1, rate=10, size="64x48", hue=0):
    path.parent.mkdir(parents=True, exist_ok=True)
    source = f"testsrc=size={size}:rate={rate}:duration={seconds},hue=h={hue}"
    subprocess.run(
        ["ffmpeg", "-nostdin", "-y", "-loglevel", "error", "-f", "lavfi", "-i", source,
         "-pix_fmt", "yuv420p", path], check=True)


@pytest.fixture(scope="module")
def videos(tmp_path_factory):
    root = tmp_path_factory.mktemp("videos")
    for i in range(2):
        make_video(root / "wave" / f"{i}.mp4", hue=i * 40)
        make_video(root / "clap" / f"{i}.avi", hue=100 + i * 40, seconds=2)
    return root


def pack_bytes(pack):
    return {f.name: f.read_bytes() for f in pack.rglob("*") if f.is_file()}


def samples(pack):
    lines = good("info", pack, "--samples").out.splitlines()
    names = lines[0].split("\t")
    return {row[1]: dict(zip(names, row, strict=True)) for row in
            (line.split("\t") for line in lines[1:])}


def test_class_folders(videos, tmp_path):
    pack = tmp_path / "v.pen"
    good("pack", videos, "-o", pack)
    rows = samples(pack)
    assert sorted(rows) == ["clap/0.avi", "clap/1.avi", "wave/0.mp4", "wave/1.mp4"]
    assert rows["clap/0.avi"]["video.frames"] == "20"
    assert rows["wave/1.mp4"]["video.frames"] == "10"
    assert rows["wave/1.mp4"]["label.class"] == "wave"
    assert rows["wave/1.mp4"]["video.how"] == "encoded"
    good("verify", pack, "--decode")
    info = good("info", pack, "--json").json()
    assert info["bytes"]["source"] == sum(f.stat().st_size for f in videos.rglob("*.*"))


def test_a_lower_limit_of_the_user_holds(videos, tmp_path):
    """Confined, ffmpeg gets no more open files than the user allows, and fewer are enough."""
    packed = [PENSTOCK, "pack", videos, "-o", tmp_path / "v.pen"]
    done = subprocess.run(["bash", "-c", 'ulimit -n 100; exec "$0" "$@"', *packed],
                          capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert len(samples(tmp_path / "v.pen")) == 4


def test_rate_size_and_quality(videos, tmp_path):
    pack = tmp_path / "v.pen"
    good("pack", videos, "-o", pack, "--fps", "5", "--mode", "encode", "--short-side", "24",
         "--quality", "50")
    rows = samples(pack)
    assert rows["wave/0.mp4"]["video.frames"] == "5"
    assert rows["wave/0.mp4"]["video.width"] == "32"
    assert rows["wave/0.mp4"]["video.height"] == "24"
    settings = good("info", pack, "--json").json()["settings"]
    assert settings["fps"] == 5
    assert settings["quality"] == 50


def test_list_with_times(videos, tmp_path):
    (tmp_path / "list.csv").write_text(
        "path,label,start,end\nwave/0.mp4,a,0.2,0.7\nwave/0.mp4,b,0.5,\nclap/0.avi,a,,\n")
    pack = tmp_path / "v.pen"
    good("pack", tmp_path / "list.csv", "--root", videos, "-o", pack)
    rows = samples(pack)
    assert {key: row["video.frames"] for key, row in rows.items()} == {
        "wave/0.mp4#t=0.2,0.7": "5", "wave/0.mp4#t=0.5": "5", "clap/0.avi": "20"}


def test_threads_make_no_difference(videos, tmp_path):
    packs = []
    for threads in (1, 3):
        pack = tmp_path / f"{threads}.pen"
        good("pack", videos, "-o", pack, "--threads", str(threads), "--block-samples", "1",
             "--shard-bytes", "20KiB")
        packs.append(pack_bytes(pack))
    assert packs[0] == packs[1]
    assert len(packs[0]) > 3


def test_broken_videos(videos, tmp_path):
    folder = tmp_path / "set"
    shutil.copytree(videos, folder)
    data = (folder / "wave" / "1.mp4").read_bytes()
    (folder / "wave" / "1.mp4").write_bytes(data[: len(data) // 2])
    (folder / "clap" / "1.avi").write_text("#EXTM3U\nfile:///etc/passwd\n")
    options = (folder, "-o", tmp_path / "v.pen", "--order", "source", "--threads", "2")
    result = run("pack", *options)
    assert result.code == 1
    assert "clap/1.avi: ffmpeg cannot read this video" in result.message()
    assert "--on-bad skip" in result.message()
    good("pack", *options, "--on-bad", "skip")
    assert sorted(samples(tmp_path / "v.pen")) == ["clap/0.avi", "wave/0.mp4"]
    bad = [json.loads(line) for line in (tmp_path / "v.pen-bad.jsonl").read_text().splitlines()]
    assert sorted(b["key"] for b in bad) == ["clap/1.avi", "wave/1.mp4"]


def test_a_stopped_run_goes_on(videos, tmp_path):
    options = ("--order", "source", "--threads", "1", "--block-samples", "1",
               "--shard-bytes", "1KiB")
    good("pack", videos, "-o", tmp_path / "whole.pen", *options)
    folder = tmp_path / "set"
    shutil.copytree(videos, folder)
    last = folder / "wave" / "1.mp4"
    right = last.read_bytes()
    last.write_bytes(bytes(len(right)))
    result = run("pack", folder, "-o", tmp_path / "v.pen", *options)
    assert result.code == 1
    last.write_bytes(right)
    result = good("pack", folder, "-o", tmp_path / "v.pen", *options)
    assert "resumed: 3 of 4" in result.err
    assert pack_bytes(tmp_path / "v.pen") == pack_bytes(tmp_path / "whole.pen")


def test_without_ffmpeg(videos, tmp_path):
    result = run("pack", videos, "-o", tmp_path / "v.pen", env={**os.environ, "PATH": "/nowhere"})
    assert result.code == 1
    assert "ffmpeg: no such program; install the package ffmpeg" in result.message()
    assert not (tmp_path / "v.pen").exists()


def test_videos_are_not_only_stored(videos, tmp_path):
    result = run("pack", videos, "-o", tmp_path / "v.pen", "--no-index")
    assert result.code == 1
    assert "leave --no-index out" in result.message()


def test_images_are_images_still(tmp_path):
    """Beside videos it has to be said what is packed."""
    folder = tmp_path / "set"
    make_video(folder / "a" / "b.mp4")
    (folder / "a" / "a.jpg").write_bytes(b"no image")
    result = run("pack", folder, "-o", tmp_path / "v.pen")
    assert "found both, such as a/b.mp4; choose with --kind" in result.message()
    result = run("pack", folder, "-o", tmp_path / "v.pen", "--kind", "images")
    assert "a/a.jpg" in result.message()
    good("pack", folder, "-o", tmp_path / "v.pen", "--kind", "videos")
    assert sorted(samples(tmp_path / "v.pen")) == ["a/b.mp4"]
