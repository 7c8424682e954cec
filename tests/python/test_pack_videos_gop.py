# SPDX-License-Identifier: Apache-2.0
"""penstock pack --video keep --gop N: videos are encoded again, with a key frame every N frames."""

import json
import shutil
import subprocess

import pytest
from cli_tools import good, run, usage_error
from packet_tools import encode, output
from plain_reader import Pack

X264 = ("-c:v", "libx264", "-pix_fmt", "yuv420p")
SOUND = ("-f", "lavfi", "-i", "sine=duration=1.6:sample_rate=44100")
COLORS = ("-color_range", "pc", "-colorspace", "bt709", "-color_primaries", "bt709", "-color_trc",
          "bt709")
NTSC = ("-vf", "settb=1/30000,setpts=N*1001", "-vsync", "passthrough", "-enc_time_base", "1:30000")
VIDEOS = {
    "a/long.mp4": (*SOUND, *X264, "-g", "250", "-bf", "3", "-c:a", "aac"),
    "a/ntsc.mov": (*SOUND, *X264, *NTSC, "-bf", "2", "-output_ts_offset", "2.002", "-c:a",
                   "pcm_s16le"),
    "a/vfr.mkv": (*X264, "-vf", "setpts=(N+floor(N/3)*2)/25/TB", "-vsync", "vfr"),
    "b/deep.mp4": (*X264, "-pix_fmt", "yuv422p10le", *COLORS),
    "b/mpeg4.avi": ("-c:v", "mpeg4", "-g", "99"),
    "b/mjpeg.mkv": ("-c:v", "mjpeg", "-pix_fmt", "yuvj420p"),
    "b/turned.mp4": X264,
}


def has_encoder():
    found = shutil.which("ffmpeg") and output("ffmpeg", "-hide_banner", "-encoders")
    return found and b" libx264 " in found


pytestmark = pytest.mark.skipif(not has_encoder(), reason="no ffmpeg with libx264 here")


@pytest.fixture(scope="module")
def videos(tmp_path_factory):
    root = tmp_path_factory.mktemp("videos")
    for name, options in VIDEOS.items():
        (root / name).parent.mkdir(exist_ok=True)
        output("ffmpeg", "-nostdin", "-loglevel", "error", "-f", "lavfi", "-i",
               "testsrc2=s=64x48:r=25:d=1.6", *options, root / name)
    path = root / "b/turned.mp4"
    path.rename(root / "upright.mp4")
    output("ffmpeg", "-nostdin", "-loglevel", "error", "-i", root / "upright.mp4", "-c", "copy",
           "-metadata:s:v:0", "rotate=90", path)
    (root / "upright.mp4").unlink()
    return root


@pytest.fixture(scope="module")
def packed(videos, tmp_path_factory):
    pack = tmp_path_factory.mktemp("packed") / "v.pen"
    keep(videos, pack, 7, "--threads", "1")
    return pack


def keep(source, pack, gop, *options):
    return good("pack", source, "-o", pack, "--video", "keep", "--gop", str(gop), *options)


def clips(pack):
    return {key.decode(): values["video"] for key, values in Pack(pack).samples}


def probe(path, entries):
    return json.loads(output("ffprobe", "-loglevel", "error", "-select_streams", "v:0",
                             "-show_entries", entries, "-of", "json", path))


def shown(path):
    """Times of the frames, as fractions of a second in units of the time base, and that."""
    found = probe(path, "frame=pts:stream=time_base")
    num, den = map(int, found["streams"][0]["time_base"].split("/"))
    return [frame["pts"] for frame in found["frames"]], num, den


def seconds(clip):
    return [clip["tick_num"] * time / clip["tick_den"] for time in clip["times"]]


def keys(clip):
    """The numbers of those frames that are key frames; all packets are frames."""
    order = sorted(clip["packets"], key=lambda packet: packet.time)
    return [n for n, packet in enumerate(order) if packet.key]


def test_frames_and_times_are_those_of_the_source(videos, packed):
    good("verify", packed)
    found = clips(packed)
    assert sorted(found) == sorted(VIDEOS)
    for name, clip in found.items():
        times, num, den = shown(videos / name)
        assert len(times) == 40 == clip["n_frames"] == len(clip["packets"]), name
        assert clip["codec"] == 1 and clip["container"] == 1
        for time, tick in zip(times, clip["times"], strict=True):  # exactly
            assert (time - times[0]) * num * clip["tick_den"] == tick * clip["tick_num"] * den, name
        assert clip["first_time"] == pytest.approx(times[0] * num * 1e9 / den, abs=1), name


def test_a_key_frame_every_few_frames(videos, packed, tmp_path):
    """No frame needs one from before the key frame before it."""
    def check(found, gop):
        for name, clip in found.items():
            assert keys(clip) == list(range(0, 40, gop)), name
            latest = -1
            for packet in clip["packets"]:
                assert not packet.hidden and (packet.time > latest or not packet.key)
                latest = packet.time if packet.key else latest
                assert packet.time >= latest, name

    check(clips(packed), 7)
    for gop in (1, 40):
        keep(videos / "b", tmp_path / f"{gop}.pen", gop)
        check(clips(tmp_path / f"{gop}.pen"), gop)


def test_files_have_what_the_source_has(videos, packed, tmp_path):
    """Rotation, color, sound, and pictures that look the same."""
    good("extract", packed, "-o", tmp_path)
    for name in VIDEOS:
        entries = ("stream=codec_name,width,height,pix_fmt,color_range,color_space,color_primaries,"
                   "color_transfer,sample_aspect_ratio:stream_side_data=rotation")
        paths = (videos / name, tmp_path / (name if name.endswith(".mp4") else f"{name}.mp4"))
        before, after = (probe(path, entries)["streams"][0] for path in paths)
        assert after["codec_name"] == "h264"
        known = {key: value for key, value in before.items() if key != "codec_name"}
        assert known.items() <= after.items(), name
        inputs = [word for path in paths for word in ("-noautorotate", "-i", path)]
        text = subprocess.run(["ffmpeg", "-nostdin", *inputs, "-lavfi", "[0:v][1:v]psnr", "-f",
                               "null", "-"], capture_output=True, text=True, check=True).stderr
        assert float(text.rsplit("average:", 1)[1].split()[0]) > 38, (name, text)
    turned = probe(tmp_path / "b/turned.mp4", "stream_side_data=rotation")["streams"][0]
    assert abs(turned["side_data_list"][0]["rotation"]) == 90


def sound(path):
    """Times and hashes of its packets."""
    text = output("ffprobe", "-loglevel", "error", "-select_streams", "a", "-show_entries",
                  "packet=pts,data_hash", "-show_data_hash", "md5", "-of", "json", path)
    return [(packet["pts"], packet["data_hash"]) for packet in json.loads(text)["packets"]]


def test_sound(videos, packed, tmp_path):
    """What MP4 can hold is copied, other sound is left out."""
    good("extract", packed, "-o", tmp_path)
    assert len(sound(videos / "a/long.mp4")) > 9
    assert sound(tmp_path / "a/long.mp4") == sound(videos / "a/long.mp4")
    assert sound(videos / "a/ntsc.mov") and not sound(tmp_path / "a/ntsc.mov.mp4")


def files(folder):
    return {f.relative_to(folder): f.read_bytes() for f in folder.rglob("*") if f.is_file()}


def test_threads_make_no_difference(videos, packed, tmp_path):
    keep(videos, tmp_path / "v.pen", 7, "--threads", "3")
    assert files(tmp_path / "v.pen") == files(packed)
    assert not (packed / ".work").exists()
    assert good("info", packed, "--json").json()["settings"]["gop"] == 7


def test_parts_are_files(videos, tmp_path):
    (tmp_path / "list.csv").write_text(
        "path,label,start,end\na/long.mp4,x,0.2,0.6\na/long.mp4,x,,0.3\na/long.mp4,x,1.5,\n"
        "a/ntsc.mov,y,0.1001,0.2002\n")
    keep(tmp_path / "list.csv", tmp_path / "v.pen", 4, "--root", videos)
    good("pack", tmp_path / "list.csv", "-o", tmp_path / "f.pen", "--root", videos)
    found, frames = clips(tmp_path / "v.pen"), clips(tmp_path / "f.pen")
    assert len(found) == len(frames) == 4
    for name, clip in found.items():
        times = [image["timestamp"] / 1e9 for image in frames[name]]
        assert seconds(clip) == pytest.approx(times, abs=1e-8), name
        assert clip["container"] == 1 and keys(clip) == list(range(0, len(times), 4))
    assert found["a/long.mp4#t=0.2,0.6"]["first_time"] == pytest.approx(0.2e9)
    assert len(found["a/long.mp4#t=0.2,0.6"]["times"]) == 10
    good("extract", tmp_path / "v.pen", "-o", tmp_path / "out")
    part = probe(tmp_path / "out/a/long.mp4#t=0.2,0.6.mp4", "format=start_time")
    assert float(part["format"]["start_time"]) > 0.15


def test_a_large_video_waits_in_a_file(tmp_path):
    """Of more than 1 MiB: noise."""
    (tmp_path / "set").mkdir()
    for name in ("0", "1"):
        output("ffmpeg", "-nostdin", "-loglevel", "error", "-f", "lavfi", "-i",
               "nullsrc=s=640x480:r=25,geq=random(1)*255:128:128", "-frames:v", "8", "-c:v",
               "mpeg4", "-q:v", "2", tmp_path / "set" / f"{name}.mp4")
    keep(tmp_path / "set", tmp_path / "v.pen", 3)
    good("verify", tmp_path / "v.pen")
    assert not (tmp_path / "v.pen" / ".work").exists()
    for clip in clips(tmp_path / "v.pen").values():
        assert len(clip["data"]) > 1 << 20 and keys(clip) == [0, 3, 6]


def test_another_gop_is_another_run(videos, tmp_path):
    """When a run is stopped, in tasks, and when a pack is appended to."""
    shutil.copytree(videos / "b", tmp_path / "set")
    last = tmp_path / "set" / "turned.mp4"
    right = last.read_bytes()
    last.write_bytes(bytes(9))
    command = ("pack", tmp_path / "set", "-o", tmp_path / "v.pen", "--video", "keep", "--order",
               "source", "--block-samples", "1", "--shard-bytes", "1KiB")
    assert run(*command, "--gop", "5").code == 1
    last.write_bytes(right)
    for other in ((), ("--gop", "6")):
        assert "an interrupted run with other sources" in run(*command, *other).message()
    assert "resumed: 3 of 4" in good(*command, "--gop", "5").err
    good("plan", tmp_path / "set", "-o", tmp_path / "t.pen", "--video", "keep", "--gop", "5")
    task = ("pack", tmp_path / "set", "-o", tmp_path / "t.pen", "--video", "keep", "--task", "0/1")
    for other in ((), ("--gop", "6")):
        assert "the plan was made with other" in run(*task, *other).message()
    good(*task, "--gop", "5")
    good("finalise", tmp_path / "t.pen")
    more = ("pack", videos / "a", "-o", tmp_path / "v.pen", "--video", "keep", "--append")
    good(*more, "--gop", "20")
    assert good("info", tmp_path / "v.pen", "--json").json()["settings"]["gop"] == 20
    found = clips(tmp_path / "v.pen")
    assert keys(found["mpeg4.avi"])[1] == 5 and keys(found["vfr.mkv"])[1] == 20


def test_wrong_uses(videos, tmp_path):
    command = ("pack", videos, "-o", tmp_path / "v.pen")
    assert "--gop needs --video keep" in usage_error(*command, "--gop", "5")
    for number in ("0", "1001", "x"):
        assert "--gop" in usage_error(*command, "--video", "keep", "--gop", number)


def test_videos_that_cannot_be_encoded(videos, tmp_path):
    folder = tmp_path / "set"
    folder.mkdir()
    shutil.copy(videos / "b" / "deep.mp4", folder)
    encode(folder / "0.mkv", "-c:v", "mjpeg", "-pix_fmt", "yuvj420p", "-vf", "scale=65:48",
           frames=3)
    data = (folder / "deep.mp4").read_bytes()
    (folder / "1.mp4").write_bytes(data[: len(data) // 2])
    result = run("pack", folder, "-o", tmp_path / "v.pen", "--video", "keep", "--gop", "5",
                 "--order", "source", "--threads", "1")
    assert result.code == 1 and "expected an even width and height" in result.message()
    for options in (("--video", "keep"), ()):
        good("pack", folder, "-o", tmp_path / "other.pen", *options, "--on-bad", "skip")
        assert "0.mkv" in clips(tmp_path / "other.pen")
        shutil.rmtree(tmp_path / "other.pen")
    keep(folder, tmp_path / "v.pen", 5, "--on-bad", "skip")
    assert sorted(clips(tmp_path / "v.pen")) == ["deep.mp4"]
    lines = (tmp_path / "v.pen-bad.jsonl").read_text().splitlines()
    assert sorted(json.loads(line)["key"] for line in lines) == ["0.mkv", "1.mp4"]
