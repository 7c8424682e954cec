# SPDX-License-Identifier: Apache-2.0
"""The decoder plug-in: pictures equal those of ffmpeg, for each codec that ffmpeg can write."""

import itertools
import os
import random
import subprocess

import pytest
from c_tools import ROOT, run
from cli_tools import good
from conftest import BUILD, is_sanitized
from packet_tools import (
    LEADING,
    PLUGIN,
    WANTED,
    Video,
    decode,
    encode,
    need_plugin,
    output,
)

need_plugin()

X264 = ("-c:v", "libx264", "-pix_fmt")
X265 = ("-c:v", "libx265", "-pix_fmt")
CASES = {
    "h264": ("a.mp4", *X264, "yuv420p", "-g", "12"),
    "h264-open": ("a.mp4", *X264, "yuv420p", "-x264-params",
                  "open-gop=1:keyint=10:min-keyint=10:scenecut=0:bframes=3:b-pyramid=normal"),
    "h264-no-b": ("a.mp4", *X264, "yuvj420p", "-bf", "0", "-g", "9"),
    "h264-422-10": ("a.mp4", *X264, "yuv422p10le", "-g", "12", "-flags", "+ilme+ildct"),
    "hevc-open": ("a.mp4", *X265, "yuv420p", "-x265-params",
                  "log-level=none:keyint=10:min-keyint=10:open-gop=1:bframes=4"),
    "hevc-layers": ("a.mp4", *X265, "yuv420p", "-x265-params",
                    "log-level=none:keyint=12:temporal-layers=1:bframes=3:b-adapt=0"),
    "hevc-444-12": ("a.mp4", *X265, "yuv444p12le", "-x265-params", "log-level=none:keyint=12"),
    "vp9": ("a.mp4", "-c:v", "libvpx-vp9", "-pix_fmt", "yuv420p", "-g", "12", "-cpu-used", "8"),
    "av1": ("a.mp4", "-c:v", "libsvtav1", "-pix_fmt", "yuv420p10le", "-g", "12", "-preset", "10"),
    "mpeg4": ("a.mp4", "-c:v", "mpeg4", "-pix_fmt", "yuv420p", "-g", "12", "-bf", "2"),
    "mjpeg": ("a.mov", "-c:v", "mjpeg", "-pix_fmt", "yuvj422p"),
    "vp8": ("a.ivf", "-c:v", "libvpx", "-pix_fmt", "yuv420p", "-g", "12", "-cpu-used", "8"),
}
SIZES = {"av1": "64x64"}  # SVT-AV1 needs as many
# (planes, bits, shifts of chroma)
PLANES = {"yuv420p": (3, 8, 1, 1), "yuvj420p": (3, 8, 1, 1), "yuv422p10le": (3, 10, 1, 0),
          "yuv444p12le": (3, 12, 0, 0), "yuvj422p": (3, 8, 1, 0), "yuv420p10le": (3, 10, 1, 1)}


@pytest.fixture(scope="module")
def videos(tmp_path_factory):
    """The video of a case, which is written when the first test needs it."""
    folder, made = tmp_path_factory.mktemp("videos"), {}

    def get(case):
        if case not in made:
            (folder / case).mkdir()
            name, *options = CASES[case]
            try:
                path = encode(folder / case / name, *options, size=SIZES.get(case, "64x48"))
            except subprocess.CalledProcessError as error:
                pytest.skip(f"no encoder here: {error.stderr.decode()[:80]}")
            made[case] = Video(path)
        return made[case]

    return get


def random_clips(video, seed, n=12):
    rng = random.Random(seed)
    return [sorted(rng.sample(video.times, rng.choice((1, 2, 8)))) for _ in range(n)]


@pytest.mark.parametrize("case", CASES)
def test_equals_ffmpeg(case, videos, tmp_path):
    """Every frame, then clips at random places with one decoder, which is flushed between them."""
    video = videos(case)
    expected = video.pixels
    wanted = [video.times, *random_clips(video, 1)]
    got = decode([line for clip in wanted for line in video.clip(set(clip))], tmp_path)
    assert (got.errors, got.stderr) == ([], "")
    assert got.times == [time for clip in wanted for time in clip]
    differ = [t for t, pixels in zip(got.times, got.frames(), strict=True) if pixels != expected[t]]
    assert differ == []
    width, height = video.stream["width"], video.stream["height"]
    is_full = video.stream["pix_fmt"].startswith("yuvj")
    for _, *numbers in got.pictures:
        assert tuple(numbers[:6]) == (width, height, *PLANES[video.stream["pix_fmt"]])
        assert (numbers[6] == 2) == is_full


def test_one_decoder_for_several_videos(videos, tmp_path):
    """Two videos with different parameters, in turns."""
    pair = videos("h264"), videos("h264-no-b")
    clips = [(video, clip) for seed in range(4) for video in pair
             for clip in random_clips(video, seed, 2)]
    got = decode([line for video, clip in clips for line in video.clip(set(clip))], tmp_path)
    assert got.errors == []
    assert got.times == [time for _, clip in clips for time in clip]
    assert got.frames() == [video.pixels[time] for video, clip in clips for time in clip]


@pytest.mark.parametrize("case", CASES)
def test_damaged_packets(case, videos, tmp_path):
    """Damage is an error or another picture, and nothing is printed; the next clip is right."""
    video = videos(case)
    lines = []
    for seed in range(1, 21):
        lines += [f"damage {seed}", *video.clip(set(video.times[seed:seed + 12]))]
    good = video.clip(set(video.times[:3]))
    got = decode([*lines, "damage 0", *good], tmp_path)
    assert got.stderr == ""
    assert got.times[-3:] == video.times[:3] and not got.lines[-1].startswith("error")
    assert got.errors
    assert {error.split()[0] for error in got.errors} <= {"-9", "-10"}, got.errors


def test_lost_packet(videos, tmp_path):
    """A picture that others refer to is missing: HEVC names all that a picture may refer to."""
    video = videos("hevc-open")
    lines = video.clip(set(video.times[:16]))
    got = decode([line for lost in range(2, 14) for line in lines[:lost] + lines[lost + 1:]],
                 tmp_path)
    pairs = zip(got.times, got.frames(), strict=True)
    assert [time for time, pixels in pairs if pixels != video.pixels[time]] == []
    assert len(got.errors) > 3
    assert {error[:42] for error in got.errors} == {"-9 hevc: missing picture: Could not find r"}


def test_lost_packet_h264(videos, tmp_path):
    """H.264 names a picture only where it is not the one that is expected."""
    video = videos("h264")
    lines = video.clip(set(video.times))
    got = decode([line for lost in range(2, 30) for line in lines[:lost] + lines[lost + 1:]],
                 tmp_path)
    assert "-9 h264: missing picture: reference picture missing during reorder" in got.errors


def test_extradata_damaged(videos, tmp_path):
    """Configurations that are cut off or changed."""
    video, lines = videos("h264"), []
    head, extra = video.start().rsplit(" ", 1)
    rng = random.Random(5)
    for _ in range(60):
        data = bytearray.fromhex(extra)[:rng.randrange(1, len(extra) // 2 + 1)]
        data[rng.randrange(len(data))] ^= 1 << rng.randrange(8)
        lines += [f"{head} {data.hex()}", *video.clip(set(video.times[:3]))[1:]]
    got = decode([*lines, *video.clip(set(video.times[:3]))], tmp_path)
    assert got.stderr == ""
    assert got.errors and got.times[-3:] == video.times[:3]


def test_wrong_parameters(videos, tmp_path):
    video = videos("mpeg4")
    packets = video.clip(set(video.times[:3]))[1:]
    extra = video.start().split()[-1]

    def error(line, packets=packets):
        (text,) = decode([line, *packets], tmp_path).errors
        return text

    assert error(video.start(60)) == "-9 video: expected frames of 60x48, found 64x48"
    for size in ("0 48", "64 16385", "16384 16384"):
        assert error(f"stream 5 {size} {extra}").startswith(
            "-13 video: expected frames of 1 to 16384 pixels per side and at most 67108864 pixels,"
            f" found {size.replace(' ', 'x')}")
    for codec in (0, 8):
        assert error(f"stream {codec} 64 48 -") == f"-10 codec: expected 1 to 7, found {codec}"
    assert error(video.start(), ["packet 0 0 0 1"]) == (
        "-1 packet: expected 1 to 2147479552 bytes and a time of at most 2^60")
    assert error(video.start(), [f"packet 0 9 {2**61} 1"]).startswith("-1 packet: expected")


@pytest.mark.parametrize("codec", ["mpeg4", "libx264"])
def test_larger_pictures_than_stated_are_not_allocated(codec, tmp_path):
    """The limit is 512 pixels more on each side: coded pictures may be larger than shown ones."""
    video = Video(encode(tmp_path / "a.mov", "-c:v", codec, "-pix_fmt", "yuv420p",
                         size="1280x720", frames=2))
    lines = [video.start(64, 48), *video.clip(set(video.times))[1:]]
    for mode in ("inline",) if is_sanitized(BUILD) else ("inline", "process"):
        (error,) = decode(lines, tmp_path, PENSTOCK_VIDEO=mode).errors
        assert "Picture size 1280x720 exceeds specified max pixel count 322560" in error


@pytest.mark.skipif("PENSTOCK_PLUGIN" in os.environ, reason="FFmpeg 7 makes up the picture")
def test_pictures_that_do_not_come_out(videos, tmp_path):
    """A B-frame without the second picture that it refers to."""
    video = videos("mpeg4")
    first, _, b = video.packets[:3]
    got = decode([video.start(), f"packet {first.offset} {first.size} 0 {WANTED}",
                         f"packet {b.offset} {b.size} 1 {WANTED}", "drain"], tmp_path)
    assert got.errors == [
        "-9 video: expected a picture for every packet, found none for 1 of them"]
    assert got.times == [0]


def test_leading_pictures_are_not_delivered(videos, tmp_path):
    video = videos("h264-open")
    first, second = next((key, after) for key, after in itertools.pairwise(video.packets)
                         if key.key and after.time < key.time)
    lines = [f"packet {p.offset} {p.size} {p.time} {f}"
             for p, f in ((first, WANTED), (second, LEADING))]
    got = decode([video.start(), *lines, "drain"], tmp_path)
    assert (got.errors, got.times) == ([], [first.time])


def test_gradual_refresh(tmp_path):
    """Key packets without an intra picture: the first pictures after them are incomplete."""
    path = tmp_path / "a.mp4"
    video = Video(encode(path, *X264, "yuv420p", "-x264-params", "intra-refresh=1:keyint=12"))
    got = decode(video.clip({video.times[-1]}), tmp_path)
    assert got.errors == ["-9 h264: expected an intra picture in the first packet, found another "
                          "kind; encode the video again with key frames"]


def test_rgb_is_refused(tmp_path):
    video = Video(encode(tmp_path / "a.mp4", "-c:v", "libx264rgb", frames=2))
    got = decode(video.clip(set(video.times)), tmp_path)
    assert got.errors == ["-10 pixel format: expected planar YUV or gray, found gbrp"]


def test_exports_one_function():
    lines = output("nm", "-D", "--defined-only", PLUGIN)
    names = {line.split()[-1] for line in lines.decode().splitlines()}
    assert {name for name in names if not name.startswith(("__asan", "__odr"))} == {
        "pen_video_plugin"}


def use(videos, tmp_path, path, **env):
    video = videos("mpeg4")
    lines = [*([f"use {path}"] if path else []), video.start()]
    return decode(lines, tmp_path, **env)


def test_plugin_missing(videos, tmp_path):
    help_ = (". In a clone of penstock, './dev setup' and './dev build' make build/video/"
             "libpenstock-video.so.0; set PENSTOCK_VIDEO_LIBRARY to its path. Or install the wheel "
             "that './dev wheel video' writes to build/wheels")
    for name, env in ((str(tmp_path / "none.so"), str(tmp_path / "none.so")),
                      ("libpenstock-video.so.0", None), ("libpenstock-video.so.0", "")):
        (error,) = use(videos, tmp_path, None, PENSTOCK_VIDEO_LIBRARY=env).errors
        assert error.startswith(f"-10 cannot open the video decoder: {name}: cannot open shared")
        assert error.endswith(help_)


def test_plugin_is_another_library(videos, tmp_path):
    (error,) = use(videos, tmp_path, None, PENSTOCK_VIDEO_LIBRARY="libm.so.6").errors
    assert error == ("-10 libm.so.6: expected a video decoder of penstock, found a library without "
                     "the function pen_video_plugin")


def test_plugin_of_another_release(videos, tmp_path):
    source, library = tmp_path / "other.c", tmp_path / "other.so"
    source.write_text("#include <penstock/video.h>\n"
                      "static const PenVideoPlugin plugin = {.abi = 2};\n"
                      "const PenVideoPlugin *pen_video_plugin(void) { return &plugin; }\n")
    run("gcc", "-shared", "-fPIC", "-I", ROOT / "include", "-o", library, source)
    (error,) = use(videos, tmp_path, library).errors
    assert error == (f"-10 {library}: expected a video decoder with interface 1, found 2; install "
                     "the video decoder of the same release as penstock")


def test_version_reports_the_plugin():
    found = good("--version", "--json", env={**os.environ, "PENSTOCK_VIDEO_LIBRARY": str(PLUGIN)})
    assert found.json()["features"]["video_decoder"] is True


def test_use(videos, tmp_path):
    """The path of the program counts before that of the environment, until a plug-in is open."""
    video = videos("mpeg4")
    got = decode(["use /none.so", f"use {PLUGIN}", *video.clip({0}), f"use {PLUGIN}"],
                 tmp_path, PENSTOCK_VIDEO_LIBRARY="/nowhere.so")
    assert got.times == [0]
    assert got.errors == [f"-1 {PLUGIN}: a video decoder is open already in this process; choose "
                          "another one before the first video is decoded"]
    got = decode(["use ", "use " + "x" * 5000], tmp_path)
    assert [error.split(", found")[0] for error in got.errors] == [
        "-1 path of the video decoder: expected 1 to 4095 bytes"] * 2
