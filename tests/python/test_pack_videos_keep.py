# SPDX-License-Identifier: Apache-2.0
"""penstock pack --video keep: videos are stored as they are."""

import hashlib
import json
import random
import re
import shutil
import struct
import subprocess
import time

import pytest
from bucket_tools import filled, serve
from cli_tools import PENSTOCK, ROOT, good, make_folder, run, usage_error
from packet_tools import encode, output
from plain_reader import Pack
from py_tools import need_penstock

pytestmark = pytest.mark.skipif(not shutil.which("ffmpeg"), reason="no ffmpeg here")
H264 = ("-pix_fmt", "yuv420p", "-c:v", "libx264", "-g", "12", "-bf", "2")


@pytest.fixture(scope="module")
def videos(tmp_path_factory):
    """Three containers; the first one has sound, B-frames and a picture every 0.04 s."""
    root = tmp_path_factory.mktemp("videos")
    for folder in ("a", "b"):
        (root / folder).mkdir()
    silent = encode(tmp_path_factory.mktemp("silent") / "0.mp4", *H264, frames=60)
    output("ffmpeg", "-nostdin", "-loglevel", "error", "-i", silent, "-f", "lavfi", "-i",
           "sine=duration=2.4", "-c:v", "copy", root / "a" / "0.mp4")
    encode(root / "a" / "1.mov", *H264, size="48x64")
    encode(root / "b" / "2.mkv", *H264, frames=200)
    encode(root / "b" / "3.webm", "-c:v", "libvpx", frames=20)
    return root


def files(folder):
    return {f.relative_to(folder): hashlib.sha256(f.read_bytes()).hexdigest()
            for f in folder.rglob("*") if f.is_file()}


def clips(pack):
    """By key, as the plain reader has them, which checks everything."""
    return {key.decode(): values["video"] for key, values in Pack(pack).samples}


def keep(source, pack, *options):
    return good("pack", source, "-o", pack, "--video", "keep", *options)


SHARDS = ("--order", "source", "--block-samples", "1", "--shard-bytes", "1KiB")


@pytest.fixture(scope="module")
def shards(videos, tmp_path_factory):
    """A pack of four shards, made in one run by one thread."""
    pack = tmp_path_factory.mktemp("shards") / "v.pen"
    keep(videos, pack, *SHARDS, "--threads", "1")
    return pack


def test_extracted_files_are_the_same(videos, tmp_path):
    keep(videos, tmp_path / "v.pen")
    good("verify", tmp_path / "v.pen")
    good("extract", tmp_path / "v.pen", "-o", tmp_path / "out")
    out = files(tmp_path / "out")
    assert {f: out.get(f) for f in files(videos)} == files(videos)
    found = clips(tmp_path / "v.pen")
    assert {key: clip["n_frames"] for key, clip in found.items()} == {
        "a/0.mp4": 60, "a/1.mov": 40, "b/2.mkv": 200, "b/3.webm": 20}
    assert [found[key]["container"] for key in sorted(found)] == [1, 2, 3, 4]
    assert found["a/0.mp4"]["data"] == (videos / "a/0.mp4").read_bytes()


def test_videos_with_more_key_frames(tmp_path):
    """The command of docs/how-to/video.md."""
    page = (ROOT / "docs" / "how-to" / "video.md").read_text()
    (command,) = re.findall(r"^```sh\n(ffmpeg .*?)^```$", page, re.M | re.S)
    for folder in ("videos", "more-keys"):
        (tmp_path / folder).mkdir()
    output("ffmpeg", "-nostdin", "-loglevel", "error", "-f", "lavfi", "-i", "testsrc2=s=64x48:r=25",
           "-f", "lavfi", "-i", "sine", "-frames:v", "40", "-c:v", "mpeg4", "-g", "99", "-c:a",
           "ac3", tmp_path / "videos" / "a.avi")
    assert run("pack", tmp_path / "videos", "-o", tmp_path / "no.pen", "--video", "keep").code == 1
    subprocess.run(command, shell=True, check=True, cwd=tmp_path, stdin=subprocess.DEVNULL)
    keep(tmp_path / "more-keys", tmp_path / "v.pen")
    (clip,) = clips(tmp_path / "v.pen").values()
    shown = sorted(clip["packets"], key=lambda packet: packet.time)
    assert [n for n, packet in enumerate(shown) if packet.key] == [0, 12, 24, 36]
    tick = 25 * clip["tick_num"] / clip["tick_den"]  # in frames
    assert [time * tick for time in clip["times"]] == pytest.approx(range(40))


def test_threads_and_tasks_make_no_difference(videos, shards, tmp_path):
    keep(videos, tmp_path / "two.pen", *SHARDS, "--threads", "2")
    assert files(tmp_path / "two.pen") == files(shards)
    assert len(files(shards)) == 5
    good("plan", videos, "-o", tmp_path / "tasks.pen", "--video", "keep")
    other = run("pack", videos, "-o", tmp_path / "tasks.pen", "--task", "0/2")
    assert "the plan was made with other sources or settings" in other.message()
    for task in ("0/2", "1/2"):
        keep(videos, tmp_path / "tasks.pen", "--task", task)
    good("finalise", tmp_path / "tasks.pen")
    assert clips(tmp_path / "tasks.pen") == clips(shards)


def test_a_plan_of_frames_is_another(videos, tmp_path):
    good("plan", videos / "b", "-o", tmp_path / "v.pen")
    result = run("pack", videos / "b", "-o", tmp_path / "v.pen", "--video", "keep", "--task", "0/1")
    assert "the plan was made with other sources or settings" in result.message()


def test_a_stopped_run_continues(videos, shards, tmp_path):
    """It stops at the last video, which is broken, and has another plan without --video keep."""
    shutil.copytree(videos, tmp_path / "set")
    last = tmp_path / "set" / "b" / "3.webm"
    right = last.read_bytes()
    last.write_bytes(bytes(len(right)))
    command = ("pack", tmp_path / "set", "-o", tmp_path / "v.pen", *SHARDS)
    assert run(*command, "--video", "keep").code == 1
    last.write_bytes(right)
    assert "an interrupted run with other sources or settings" in run(*command).message()
    assert "resumed: 3 of 4" in good(*command, "--video", "keep").err
    assert files(tmp_path / "v.pen") == files(shards)


def test_a_killed_run_continues(videos, shards, tmp_path):
    """It is killed when the first shard is there."""
    pack = tmp_path / "v.pen"
    command = ("pack", videos, "-o", pack, *SHARDS, "--video", "keep", "--threads", "1")
    process = subprocess.Popen([PENSTOCK, *command], stderr=subprocess.DEVNULL)
    end = time.monotonic() + 30
    while not list(pack.rglob("*.shard")) and time.monotonic() < end:
        time.sleep(0.01)
    process.kill()
    if process.wait() == 0:
        pytest.skip("it ended before it was killed")
    good(*command)
    assert files(pack) == files(shards)


def test_info_has_no_line_for_images(shards):
    lines = good("info", shards).out.splitlines()
    assert not [line for line in lines if line.startswith("images")]
    assert [line.split() for line in lines if line.startswith("  videos")] == [["videos", "4"]]
    assert good("info", shards, "--json").json()["images"] == []


def test_a_default_that_is_typed_changes_nothing(videos, tmp_path):
    good("pack", videos / "a", "-o", tmp_path / "v.pen")
    assert all(isinstance(clip, list) for clip in clips(tmp_path / "v.pen").values())
    for i, typed in enumerate((("--mode", "keep"), ("--video", "frames"))):
        good("pack", videos / "a", "-o", tmp_path / f"{i}.pen", *typed)
        assert files(tmp_path / f"{i}.pen") == files(tmp_path / "v.pen")
    keep(videos / "a", tmp_path / "a.pen")
    keep(videos / "a", tmp_path / "b.pen", "--mode", "keep")
    assert files(tmp_path / "a.pen") == files(tmp_path / "b.pen") != files(tmp_path / "v.pen")


def test_only_videos_can_be_kept(tmp_path):
    make_folder(tmp_path / "images")
    command = ("pack", tmp_path / "images", "-o", tmp_path / "v.pen")
    for kind, found in (("images", "images"), ("frames", "folders of frames")):
        result = run(*command, "--video", "keep", "--kind", kind)
        assert f"video keep: expected videos, found {found}; leave --video out" in result.message()
    good(*command)


def test_options_of_frames_are_refused(videos, tmp_path):
    command = ("pack", videos, "-o", tmp_path / "v.pen", "--video", "keep")
    result = run(*command, "--fps", "5")
    assert "leave --fps out and choose frames when loading" in result.message()
    assert "leave --no-index out" in run(*command, "--no-index").message()
    assert "--mode raw is for frames; leave one of them out" in usage_error(
        *command, "--mode", "raw")
    for option in ("--short-side", "--max-side", "--quality"):
        assert "but the mode is keep" in usage_error(*command, option, "64")
    assert not (tmp_path / "v.pen").exists()


def test_broken_videos_are_left_out(videos, tmp_path):
    folder = tmp_path / "set"
    shutil.copytree(videos, folder)
    data = (folder / "a" / "1.mov").read_bytes()
    (folder / "a" / "1.mov").write_bytes(data[: len(data) // 2])
    (folder / "b" / "4.mp4").write_text("no video")
    encode(folder / "b" / "5.avi", "-c:v", "mpeg4", frames=3)
    result = run("pack", folder, "-o", tmp_path / "v.pen", "--video", "keep", "--order", "source")
    assert result.code == 1
    assert "a/1.mov" in result.message()
    keep(folder, tmp_path / "v.pen", "--on-bad", "skip")
    assert sorted(clips(tmp_path / "v.pen")) == ["a/0.mp4", "b/2.mkv", "b/3.webm"]
    lines = (tmp_path / "v.pen-bad.jsonl").read_text().splitlines()
    bad = {line["key"]: line["why"] for line in map(json.loads, lines)}
    assert sorted(bad) == ["a/1.mov", "b/4.mp4", "b/5.avi"]
    assert "expected an MP4, MOV, Matroska or WebM file" in bad["b/5.avi"]


def test_parts_of_videos(videos, tmp_path):
    """The frames from start to before end; those that are needed to decode them are hidden."""
    (tmp_path / "list.csv").write_text(
        "path,label,start,end\nb/2.mkv,x,2.5,4\nb/2.mkv,x,,1\nb/2.mkv,x,7.9,\na/0.mp4,y,,\n"
        "a/0.mp4,y,0.2,0.24\n")
    keep(tmp_path / "list.csv", tmp_path / "v.pen", "--root", videos)
    good("verify", tmp_path / "v.pen")
    found, source = clips(tmp_path / "v.pen"), (videos / "b/2.mkv").read_bytes()
    part = found["b/2.mkv#t=2.5,4"]
    assert part["data"] in source and len(part["data"]) < len(source) / 2
    assert part["source_bytes"] == len(source) and part["container"] == 0
    times = [part["tick_num"] * t / part["tick_den"] for t in part["times"]]
    assert part["first_time"] == 2520_000_000  # frames are 0.04 s apart
    assert part["n_frames"] == 37 and times[-1] == pytest.approx(36 * 0.04, abs=0.001)
    assert sum(p.hidden for p in part["packets"]) >= 1 and part["packets"][0].key
    assert found["b/2.mkv#t=,1"]["n_frames"] == 25
    assert found["b/2.mkv#t=7.9"]["n_frames"] == 2
    assert found["a/0.mp4#t=0.2,0.24"]["n_frames"] == 1
    assert found["a/0.mp4"]["container"] == 1
    result = run("extract", tmp_path / "v.pen", "-o", tmp_path / "out")
    assert result.code == 1 and "extract it from that file with ffmpeg" in result.err


def test_times_of_frames(videos, tmp_path):
    """They are those that ffprobe lists, from the first frame on."""
    penstock = need_penstock()
    (tmp_path / "list.csv").write_text(
        "path,label,start,end\na/0.mp4,x,,\na/1.mov,x,,\nb/2.mkv,x,,\nb/3.webm,x,,\n"
        "b/2.mkv,x,2.5,4\n")
    keep(tmp_path / "list.csv", tmp_path / "v.pen", "--root", videos)
    with penstock.open(tmp_path / "v.pen") as pack:
        for sample in pack:
            name, _, part = sample.key.partition("#")
            clip = sample["video"]
            listed = output("ffprobe", "-loglevel", "error", "-select_streams", "v:0",
                            "-show_entries", "frame=pts_time", "-of", "csv=p=0", videos / name)
            times = [float(word) for word in listed.decode().replace(",", " ").split()]
            times = [time for time in times if not part or 2.4999 < time < 3.9999]
            assert len(times) == len(clip)
            expected = [round((time - times[0]) * 1e9) for time in times]
            assert clip.timestamps == pytest.approx(expected, abs=1001), name  # pts_time: 1 us
            assert clip[3:30:9].timestamps == clip.timestamps[3:30:9]
            assert clip[::-1].timestamps == clip.timestamps[::-1]


def test_a_part_without_frames(videos, tmp_path):
    (tmp_path / "list.csv").write_text("path,label,start,end\na/0.mp4,x,50,60\n")
    result = run("pack", tmp_path / "list.csv", "-o", tmp_path / "v.pen", "--video", "keep",
                 "--root", videos)
    assert "expected frames between start and end, found none" in result.message()


def test_append(videos, tmp_path):
    """Kept videos come to frames, and frames to kept videos, in one block."""
    pack = tmp_path / "v.pen"
    good("pack", videos / "a", "-o", pack, "--block-samples", "16")
    keep(videos / "b", pack, "--append")
    shutil.copytree(videos / "a", tmp_path / "c")
    (tmp_path / "c" / "0.mp4").rename(tmp_path / "c" / "9.mp4")
    good("pack", tmp_path / "c", "-o", pack, "--append")
    good("verify", pack)
    found = clips(pack)
    assert [type(found[key]) for key in sorted(found)] == [list, list, dict, dict, list]
    assert found["3.webm"]["data"] == (videos / "b" / "3.webm").read_bytes()


def test_samples_per_block(videos, tmp_path):
    """Tables count, of which a block has 1 MiB, and large videos, of which it has 256 MiB. Large
    ones are read in pieces while they are written."""
    def choose(source, pack, *options):
        keep(source, pack, *options)
        return good("info", pack, "--json").json()["samples_per_block"]

    one = tmp_path / "one"
    one.mkdir()
    shutil.copy(videos / "b" / "2.mkv", one)
    assert choose(one, tmp_path / "1.pen") == 512  # 256 + 6 bytes for each of 200 packets
    (one / "2.mkv").unlink()
    data = (videos / "a" / "0.mp4").read_bytes()
    data += struct.pack(">I4s", 9 << 20, b"free") + random.Random(1).randbytes((9 << 20) - 8)
    (one / "0.mp4").write_bytes(data)
    assert choose(one, tmp_path / "2.pen") == 16
    good("extract", tmp_path / "2.pen", "-o", tmp_path / "out")
    assert (tmp_path / "out" / "0.mp4").read_bytes() == data


def test_a_video_that_changes(videos, tmp_path):
    shutil.copytree(videos / "a", tmp_path / "set")
    good("plan", tmp_path / "set", "-o", tmp_path / "v.pen", "--video", "keep")
    with open(tmp_path / "set" / "1.mov", "ab") as f:
        f.write(bytes(8))
    result = run("pack", tmp_path / "set", "-o", tmp_path / "v.pen", "--video", "keep", "--task",
                 "0/1")
    assert result.code == 1
    assert "1.mov: changed since the plan was made" in result.message()


def test_into_a_bucket(videos, shards, tmp_path):
    """Also by tasks, which share the plan there."""
    with serve() as server:
        bucket = filled(server, tmp_path / "home", videos / "a", "none")
        command = ("pack", videos, "-o", bucket.at("v.pen"), *SHARDS, "--video", "keep")
        bucket.good(*command)
        bucket.good("verify", bucket.at("v.pen"))
        found = bucket.good("info", bucket.at("v.pen"), "--json").json()["id"]
        assert found == good("info", shards, "--json").json()["id"]
        task = ("-o", bucket.at("t.pen"), "--task", "0/1")
        bucket.good("plan", videos, *task[:2], "--video", "keep")
        other = bucket.run("pack", videos, *task)
        assert "the plan was made with other sources or settings" in other.message()
        bucket.good("pack", videos, *task, "--video", "keep")
        bucket.good("finalise", bucket.at("t.pen"))
        assert bucket.good("info", bucket.at("t.pen"), "--json").json()["videos"]["frames"] == 320
