# SPDX-License-Identifier: Apache-2.0
"""Kept videos of every kind that ffmpeg writes: frames, times and files are those of ffmpeg.

The kinds are combinations of codec, container, key frames, B-frames, times, rotation, pixel format,
colors and size (_video_matrix.py); files with edit lists, fragments and offsets
(_video_files.py); and real videos, also encoded again. They come from PENSTOCK_VIDEOS (a folder of
videos), or ../shared/data/videos beside the tree, and are left out if there are none.

Of each video, all frames and clips at random places are compared with ffmpeg's exact conversion to
RGB: at most 1 apart. Planes of MP4, MOV and VP8 are compared byte by byte before the conversion.
Only edit lists of several parts, and packets with two pictures, are refused when packing.
PENSTOCK_SCALE=full compares all of them; anything else a few.

    long_video_matrix.py [CODEC | files | real]...
"""

import fractions
import itertools
import json
import os
import pathlib
import random
import shutil
import subprocess
import sys

import _program as program
import _video_matrix as matrix
import numpy as np
from _package import FULL, ROOT, Tests, penstock, scaled

sys.path.insert(0, str(ROOT / "tests" / "python"))

import _video_files as files
from packet_tools import PLUGIN, Video, decode, output

os.environ.setdefault("PENSTOCK_VIDEO_LIBRARY", str(PLUGIN))
ops = penstock.ops
QUIET = ("ffmpeg", "-nostdin", "-y", "-loglevel", "error")
# Of a converter that computes exactly; the one that ffmpeg takes by itself uses tables.
EXACT = ("-sws_flags", "neighbor+accurate_rnd+full_chroma_int")
TOLERANCE = 1
PACKED = "found MPEG-4 with several pictures in a packet"
SAMPLE, SAMPLE_FILES = 2, 8  # cases of each codec, and files
ENCODERS = {
    "h264": ("-c:v", "libx264", "-threads", "1", "-preset", "veryfast", "-x264-params",
             "scenecut=0:keyint={0}"),
    "hevc": ("-c:v", "libx265", "-preset", "ultrafast", "-x265-params",
             "log-level=none:pools=none:frame-threads=1:scenecut=0:keyint={0}"),
    "vp9": ("-c:v", "libvpx-vp9", "-threads", "1", "-deadline", "realtime", "-cpu-used", "8",
            "-b:v", "500k", "-g", "{0}"),
    "av1": ("-c:v", "libsvtav1", "-preset", "12", "-g", "{0}", "-svtav1-params", "lp=1"),
}


def ffmpeg(*arguments):
    """What it writes to its output."""
    return subprocess.run([*QUIET, *map(str, arguments)], check=True, timeout=600,
                          capture_output=True).stdout


class Source:
    """A video, and what ffmpeg finds in it."""

    def __init__(self, path):
        self.path = path
        probe = json.loads(output(
            "ffprobe", "-loglevel", "error", "-select_streams", "v:0", "-show_entries",
            "frame=best_effort_timestamp:stream=time_base,width,height,pix_fmt,color_range,"
            "color_space:stream_side_data=rotation", "-of", "json", path))
        (self.stream,) = probe["streams"]
        tick = fractions.Fraction(self.stream["time_base"]) * 10**9
        ticks = [int(frame["best_effort_timestamp"]) for frame in probe["frames"]]
        self.times = [float((t - ticks[0]) * tick) for t in ticks]
        turns = [int(data["rotation"]) for data in self.stream.get("side_data_list", ())
                 if "rotation" in data]
        self.turn = turns[0] % 360 if turns else 0

    def rgb(self):
        """All frames, upright. ffmpeg moves the chroma of odd sides when it turns a video, so NumPy
        turns those; and it copies gray of 8 bits, whatever its range is."""
        height, width = self.stream["height"], self.stream["width"]
        is_odd = bool(height % 2 or width % 2)
        is_gray = (self.stream["pix_fmt"], self.stream.get("color_range")) == ("gray", "tv")
        data = ffmpeg(*(["-noautorotate"] if is_odd else []), "-i", self.path, "-map",
                      "0:v:0", "-vsync", "passthrough", *EXACT, "-f", "rawvideo", "-pix_fmt",
                      "gray" if is_gray else "rgb24", "-")
        if self.turn % 180 and not is_odd:
            height, width = width, height
        frames = np.frombuffer(data, np.uint8).reshape(-1, height, width, 1 if is_gray else 3)
        if is_gray:
            exact = np.clip((frames.astype(float) - 16) * 255 / 219, 0, 255)
            frames = np.rint(exact).astype(np.uint8).repeat(3, axis=3)
        return np.rot90(frames, self.turn // 90, (1, 2)) if is_odd else frames


class Totals:
    def __init__(self):
        self.videos = self.frames = self.clip_frames = self.differing = self.largest = 0
        self.planes, self.refused = 0, {}

    def __str__(self):
        return (f"{self.videos} videos, {self.frames} frames and {self.clip_frames} of clips, "
                f"{self.differing} differ by more than {TOLERANCE}, at most {self.largest} apart, "
                f"{self.planes} frames with equal planes, {len(self.refused)} videos refused")

    def compare(self, found, expected, what):
        assert found.shape == expected.shape, f"{what}: {found.shape} instead of {expected.shape}"
        apart = np.maximum(found, expected) - np.minimum(found, expected)
        worst = apart.reshape(len(apart), -1).max(axis=1)
        self.largest = max(self.largest, int(worst.max()))
        beyond = np.flatnonzero(worst > TOLERANCE)
        self.differing += len(beyond)
        assert not len(beyond), f"{what}: frames {beyond[:8]} differ by up to {worst.max()}"


def load(pack, number, clip, size, seed=0):
    """(frames, their times) of all clips of a sample."""
    pipeline = [ops.decode(), clip, ops.center_crop(size)]
    with penstock.Loader(pack, 1, pipeline=pipeline, subset=[number], order="sequential", seed=seed,
                         output="numpy", threads=1, memory="2GiB") as loader:
        batch = next(iter(loader))
        return batch.video.reshape(-1, *size, 3), batch.video_times.reshape(-1)


def random_clips(n, dice):
    """Seeks, strides, and frames backwards and repeated."""
    few = min(n, 12)
    yield ops.clip(4, dice.choice((1, 2, 7)), n=4, times="yes")
    yield ops.clip(indices=[dice.randrange(n) for _ in range(few)], times="yes")
    yield ops.clip(indices=sorted(dice.sample(range(n), few), reverse=True), times="yes")


def check_pixels(totals, pack, number, source):
    """All frames in order, then clips."""
    expected, times = source.rgb(), np.array(source.times)
    size = expected.shape[1:3]
    assert len(expected) == len(times), f"{len(expected)} frames, {len(times)} times"
    found, found_times = load(pack, number, ops.clip(len(times), 1, 0, times="yes"), size)
    assert len(pack[number]["video"]) == len(times), "another number of frames"
    assert np.abs(found_times - times).max() <= 1, f"times differ: {found_times} {times}"
    totals.compare(found, expected, "all frames")
    totals.frames += len(times)
    dice = random.Random(source.path.name)
    for clip in random_clips(len(times), dice):
        found, clip_times = load(pack, number, clip, size, dice.randrange(1000))
        places = np.searchsorted(found_times, clip_times)
        assert np.array_equal(found_times[places], clip_times), f"{clip}: times of no frames"
        totals.compare(found, expected[places], clip)
        totals.clip_frames += len(places)


def check_planes(totals, source, folder):
    """Before they are converted, of containers whose packets ffprobe can place."""
    path = source.path
    if path.name.startswith("vp8"):
        path = folder / "planes.ivf"
        ffmpeg("-i", source.path, "-c", "copy", path)
    elif path.suffix not in (".mp4", ".mov"):
        return
    video = Video(path)
    dice = random.Random(path.name)
    clips = [video.times, *(sorted(dice.sample(video.times, 4)) for _ in range(3))]
    got = decode([line for clip in clips for line in video.clip(set(clip))], folder)
    assert got.errors == [], f"planes: {got.errors[:2]}"
    wanted = [time for clip in clips for time in clip]
    assert got.times == wanted, "planes: other frames"
    differ = [t for t, data in zip(wanted, got.frames(), strict=True) if data != video.pixels[t]]
    assert not differ, f"planes of the frames at {differ[:8]} differ"
    totals.planes += len(wanted)


def pack_videos(folder, paths):
    """The pack of a list of videos, and {name: why} of those that are refused."""
    table, out = folder / "list.csv", folder / "kept.pen"
    table.write_text("\n".join(["path,label", *(f"{path.name},{i}" for i, path in
                                                enumerate(paths))]) + "\n")
    code, text = program.run("pack", table, "-o", out, "--video", "keep", "--order", "source",
                             "--on-bad", "skip", "--max-bad", len(paths), "--threads", 1,
                             "--kind", "videos", limit=600)
    assert code == 0, text
    report = folder / "kept.pen-bad.jsonl"
    lines = report.read_text().splitlines() if report.exists() else []
    refused = {line["key"]: line["why"] for line in map(json.loads, lines)}
    code, text = program.run("extract", out, "-o", folder / "extracted")
    assert code == 0, text
    return penstock.open(out), refused


def check_videos(folder, paths, must_refuse=None):
    """Packs and compares them. `must_refuse` has names, and a part of the message of each."""
    totals, wrong, must_refuse = Totals(), [], must_refuse or {}
    pack, totals.refused = pack_videos(folder, paths)
    by_name = {path.name: path for path in paths}
    for name, why in totals.refused.items():
        print(f"  refused: {name}: {why}")
        if must_refuse.get(name, "not expected") not in why:
            wrong.append(f"{name}: refused: {why}")
    for name in must_refuse.keys() - totals.refused.keys():
        wrong.append(f"{name}: not refused")
    for number, sample in enumerate(pack):
        source = Source(by_name.pop(sample.key))
        try:
            kept = (folder / "extracted" / sample.key).read_bytes()
            assert kept == source.path.read_bytes(), "the extracted file differs"
            check_pixels(totals, pack, number, source)
            if "edited" not in sample.key:
                check_planes(totals, source, folder)
        except (AssertionError, penstock.Error) as error:
            wrong.append(f"{sample.key}: {error}")
        totals.videos += 1
    assert set(by_name) == set(totals.refused), "videos are missing"
    for text in wrong:
        print(f"  {text}", flush=True)
    assert not wrong, f"{totals}; {len(wrong)} videos are wrong"
    return str(totals)


# ---- generated videos


def write_case(folder, codec, case):
    """ffmpeg writes a rotation only when it copies."""
    path = folder / matrix.name(codec, case)
    upright = folder / f"upright.{case.container}" if case.turn else path
    ffmpeg("-f", "lavfi", "-i", f"testsrc2=s={case.size}:r=25", "-frames:v", "60",
           *matrix.options(codec, case), upright)
    if case.turn:
        ffmpeg("-i", upright, "-c", "copy", "-metadata:s:v:0", f"rotate={case.turn}", path)
        upright.unlink()
    return path


def check_codec(folder, codec):
    """Those that this ffmpeg cannot write are counted."""
    cases = matrix.combinations(codec)
    if not FULL:
        cases = random.Random(1).sample(cases, SAMPLE)
    paths, failed = [], []
    for case in cases:
        try:
            paths.append(write_case(folder, codec, case))
        except subprocess.CalledProcessError as error:
            failed.append(matrix.name(codec, case))
            print(f"  not written: {failed[-1]}: {error.stderr.decode()[-120:].strip()}")
    text = check_videos(folder, paths)
    return f"{text}, {len(failed)} combinations that ffmpeg cannot write"


def check_files(folder):
    """Files of other layouts and with edit lists."""
    paths = files.write(folder)
    if not FULL:
        paths = random.Random(1).sample(paths, SAMPLE_FILES)
    names = {path.name for path in paths}
    return check_videos(folder, paths, {n: why for n, why in files.REFUSED.items() if n in names})


# ---- real videos


def real_videos():
    place = os.environ.get("PENSTOCK_VIDEOS") or ROOT.parent / "shared" / "data" / "videos"
    found = sorted(path for path in pathlib.Path(place).glob("*") if path.is_file())
    return found[:: scaled(1, 10)]


def copies(folder, video):
    """The file, or its packets in other containers, with a message if they are refused: AVI files
    may have two pictures in a packet, and then a tiny packet in the place of the second one."""
    if video.suffix in (".mp4", ".mov", ".mkv", ".webm"):
        yield pathlib.Path(shutil.copy(video, folder)), None
        return
    sizes = output("ffprobe", "-loglevel", "error", "-select_streams", "v:0", "-show_entries",
                   "packet=size", "-of", "csv=p=0", video).decode().replace(",", " ").split()
    for container in ("mp4", "mkv"):
        path = folder / f"{video.stem}.{container}"
        # AVI has no times of frames.
        ffmpeg("-fflags", "+genpts", "-i", video, "-map", "0:v:0", "-c", "copy", path)
        yield path, PACKED if min(map(int, sizes)) < 10 else None


def encoded_again(folder, video):
    for codec, gop in itertools.product(scaled(ENCODERS, ("h264",)), scaled((12, 48, 250), (48,))):
        path = folder / f"{video.stem}-{codec}-{gop}.{'mkv' if gop == 48 else 'mp4'}"
        ffmpeg("-i", video, "-map", "0:v:0", "-pix_fmt", "yuv420p",
               *(word.format(gop) for word in ENCODERS[codec]), path)
        yield path


def check_real(folder, video):
    copied = dict(copies(folder, video))
    refused = {path.name: why for path, why in copied.items() if why}
    return check_videos(folder, [*copied, *encoded_again(folder, video)], refused)


def main(names):
    if not PLUGIN.exists() or not shutil.which("ffmpeg"):
        print("video matrix: no video plug-in or no ffmpeg here\n0 passed, 0 failed, 1 skipped")
        return 77
    tests = Tests("video matrix")
    checks = [(codec, check_codec, codec) for codec in matrix.CODECS]
    checks.append(("files", check_files))
    checks += [("real", check_real, video) for video in real_videos()]
    for kind, check, *arguments in checks:
        if names and kind not in names:
            continue
        with program.scratch() as folder:
            label = f"{kind} {arguments[0].name}" if kind == "real" else kind
            tests.run(label, check, pathlib.Path(folder), *arguments)
    return tests.end()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
