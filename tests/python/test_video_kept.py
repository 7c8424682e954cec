# SPDX-License-Identifier: Apache-2.0
"""Loading clips of kept videos: frames equal those of ffmpeg, and the choice of frames equals that
of a pack that stores frames as images."""

import os
import subprocess
import sys

import pytest
from cli_tools import good
from conftest import is_sanitized
from packet_tools import BUILD, PLUGIN, Video, encode, need_plugin, output
from py_tools import encoded, need_penstock
from remote_tools import options

need_plugin()
os.environ.setdefault("PENSTOCK_VIDEO_LIBRARY", str(PLUGIN))
penstock = need_penstock()
np = pytest.importorskip("numpy")
Image = pytest.importorskip("PIL.Image")
ops = penstock.ops

pytestmark = pytest.mark.threads

X264 = ("-c:v", "libx264", "-pix_fmt", "yuv420p")
OPEN = "open-gop=1:keyint=10:min-keyint=10:scenecut=0:bframes=3:b-pyramid=normal"
VIDEOS = {  # in the order of their samples
    "a-h264.mp4": (*X264, "-x264-params", OPEN),
    "b-hevc.mp4": ("-c:v", "libx265", "-preset", "ultrafast", "-pix_fmt", "yuv420p", "-x265-params",
                   "log-level=none:keyint=10:min-keyint=10:open-gop=1:bframes=4"),
    "c-vp9.mkv": ("-c:v", "libvpx-vp9", "-pix_fmt", "yuv420p", "-g", "12", "-cpu-used", "8"),
    "d-av1.mkv": ("-c:v", "libsvtav1", "-pix_fmt", "yuv420p", "-g", "12", "-preset", "12"),
    "e-mpeg4.mp4": ("-c:v", "mpeg4", "-pix_fmt", "yuv420p", "-g", "12", "-bf", "2"),
    "f-mjpeg.mkv": ("-c:v", "mjpeg", "-pix_fmt", "yuvj420p"),
    "g-vfr.mp4": (*X264, "-vf", "setpts=(N+floor(N/3)*2)/25/TB", "-vsync", "vfr", "-g", "100"),
    "h-rotated.mp4": (*X264, "-g", "12"),
    # Only the container states the colors.
    "i-colors.mkv": ("-c:v", "mpeg4", "-pix_fmt", "yuv420p", "-g", "12", "-strict", "unofficial",
                     "-color_range", "pc", "-colorspace", "bt2020nc"),
}
SIZES = {"d-av1.mkv": "64x64"}  # SVT-AV1 needs as many
# Of a converter that computes exactly; the one that ffmpeg takes by itself uses tables.
EXACT = ("-sws_flags", "neighbor+accurate_rnd+full_chroma_int")


def rotated(path):
    """Its display matrix turns it by 90 degrees."""
    upright = path.with_suffix(".upright.mp4")
    path.rename(upright)
    output("ffmpeg", "-nostdin", "-loglevel", "error", "-i", upright, "-c", "copy",
           "-metadata:s:v:0", "rotate=90", path)
    upright.unlink()


def rgb(path, *flags):
    """All frames as ffmpeg converts them, upright."""
    height, width = (64, 48) if "rotated" in path.name else (64 if "av1" in path.name else 48, 64)
    data = output("ffmpeg", "-nostdin", "-loglevel", "error", "-i", path, "-vsync", "passthrough",
                  *flags, "-f", "rawvideo", "-pix_fmt", "rgb24", "-")
    return np.frombuffer(data, np.uint8).reshape(-1, height, width, 3)


def pack_list(path, videos, *options):
    """Labels are 0, 1, 2, ..."""
    rows = [f"{video.name},{i}" for i, video in enumerate(videos)]
    table = path.with_suffix(".csv")
    table.write_text("\n".join(["path,label", *rows]) + "\n")
    good("pack", table, "-o", path, "--order", "source", *options)
    return penstock.open(path)


class Kept:
    """Some videos, a pack that keeps them, and one of their frames."""

    def __init__(self, folder):
        self.paths = []
        for name, coded in VIDEOS.items():
            path = folder / name
            try:
                encode(path, *coded, size=SIZES.get(name, "64x48"))
            except subprocess.CalledProcessError:
                continue  # this ffmpeg has no such encoder
            if "rotated" in name:
                rotated(path)
            self.paths.append(path)
        self.folder = folder
        self.kept = pack_list(folder / "kept.pen", self.paths, "--video", "keep")
        self.frames = pack_list(folder / "frames.pen", self.paths, "--mode", "raw")
        self.times = [load(self.frames, ops.clip(40, 1, 0, times="yes"), subset=[i]).video_times[0]
                      for i in range(len(self.paths))]


@pytest.fixture(scope="module")
def videos(tmp_path_factory):
    return Kept(tmp_path_factory.mktemp("kept"))


def load(pack, *pipeline, size=(40, 40), batch=None, n=0, **settings):
    """Batch `n`."""
    settings = {"order": "sequential", "output": "numpy", "threads": 2, **settings}
    pipeline = [ops.decode(), *pipeline]
    if size:
        pipeline.append(ops.center_crop(size))
    batch = batch or len(settings.get("subset", pack))
    with penstock.Loader(pack, batch, pipeline=pipeline, **settings) as loader:
        batches = iter(loader)
        for _ in range(n):
            next(batches)
        return next(batches)


def difference(a, b):
    assert a.shape == b.shape
    return int(np.abs(a.astype(int) - b).max())


def test_every_frame_equals_ffmpeg(videos):
    for i, path in enumerate(videos.paths):
        expected = rgb(path, *EXACT)
        batch = load(videos.kept, ops.clip(40, 1, 0, times="yes"), size=expected.shape[1:3],
                     subset=[i])
        assert difference(batch.video[0], expected) <= 1, path.name
        assert i or difference(batch.video[0], rgb(path)) <= 3
        assert np.array_equal(batch.video_times[0], videos.times[i]), path.name


CLIPS = {
    "stride": dict(frames=8, stride=2),
    "center": dict(frames=5, stride=4, offset="center"),
    "fps": dict(frames=6, fps=7),
    "seconds": dict(frames=6, seconds=0.8, offset="center"),
    "indices": dict(indices=(39, 0, 17, 17, 3)),
    "several": dict(frames=4, stride=1, n=3),
    "spread": dict(frames=5, stride=9, offset=1),
    "padded": dict(frames=30, stride=2, offset=20),
    "loop": dict(frames=30, stride=2, offset=20, pad="loop"),
}


@pytest.mark.parametrize("case", CLIPS)
def test_chooses_frames_as_of_images(case, videos):
    """And shows those frames."""
    clip = ops.clip(**CLIPS[case], times="yes")
    got, expected = (load(pack, clip, seed=5) for pack in (videos.kept, videos.frames))
    assert np.array_equal(got.video_times, expected.video_times)
    for i in range(len(videos.paths)):
        every = load(videos.kept, ops.clip(40, 1, 0), subset=[i]).video[0]
        numbers = np.searchsorted(videos.times[i], got.video_times[i])
        assert np.array_equal(got.video[i], every[numbers])


@pytest.fixture(scope="module")
def images(videos):
    """The pixels of all frames as PNGs."""
    path = videos.folder / "images.pen"
    with penstock.Writer(path, {"video": "clip"}, block_samples=2) as writer:
        for i in range(len(videos.paths)):
            frames = [encoded(Image.fromarray(frame))
                      for frame in videos.kept[i]["video"].decode()]
            writer.add(key=str(i), video=(frames, videos.times[i].tolist()))
    return penstock.open(path)


def test_views_show_the_same_parts_as_of_images(videos, images):
    """Crops and flips have the same draws."""
    begin = ops.clip(6, 3, n=2, times="yes"), ops.random_resized_crop(32), ops.hflip()
    crops = ops.clip(4, 2, n=2, times="yes"), ops.resize(40), ops.three_crop(40)
    for pipeline in (begin, crops):
        got, expected = (load(pack, *pipeline, size=None, seed=2)
                         for pack in (videos.kept, images))
        assert np.array_equal(got.video_times, expected.video_times)
        assert got.video.shape == expected.video.shape
        for i, path in enumerate(videos.paths):
            assert difference(got.video[i], expected.video[i]) <= ("rotated" in path.name)


def all_batches(loader):
    return [tuple(np.array(part) for part in batch) for batch in loader]


def same(a, b):
    return len(a) == len(b) and all(np.array_equal(x, y) for p, q in zip(a, b)
                                    for x, y in zip(p, q, strict=True))


RANDOM = [ops.decode(), ops.clip(5, 2, n=2, times="yes"), ops.random_resized_crop(16), ops.hflip()]


def loader_of(videos, **settings):
    settings = {"seed": 3, "output": "numpy", "threads": 2, **settings}
    return penstock.Loader(videos.kept, 2, pipeline=RANDOM, **settings)


def test_threads_restarts_and_ranks_make_no_difference(videos):
    with loader_of(videos) as loader:
        expected = all_batches(loader)
    with loader_of(videos, threads=1) as loader:
        assert same(all_batches(loader), expected)
    with loader_of(videos) as loader:
        next(iter(loader))
        state = loader.state_dict()
    with loader_of(videos) as loader:
        loader.load_state_dict(state)
        assert same(all_batches(loader), expected[1:])
    by_time = {}
    for rank in range(2):
        with loader_of(videos, rank=rank, world_size=2) as loader:
            for batch in all_batches(loader):
                by_time.update({int(label): video for video, label in zip(batch[0], batch[-1])})
    for batch in expected:
        for video, label in zip(batch[0], batch[-1]):
            assert np.array_equal(by_time[int(label)], video)


def test_single_samples(videos):
    """By a Dataset, and as pixels of a pack."""
    pipeline = [ops.decode(), ops.clip(4, 3, offset=2), ops.center_crop(40)]
    batch = load(videos.kept, *pipeline[1:2])
    data = penstock.Dataset(videos.kept, pipeline=pipeline, output="numpy")
    for i, path in enumerate(videos.paths):
        assert np.array_equal(data[i].video, batch.video[i]), path.name
        pixels = videos.kept[i]["video"][2:12:3].decode()
        every = load(videos.kept, ops.clip(4, 3, offset=2), size=pixels.shape[1:3],
                     subset=[i]).video[0]
        assert np.array_equal(pixels, every), path.name
    assert np.array_equal(videos.kept[0]["video"][11:1:-3].decode(),
                          videos.kept[0]["video"][2:12:3].decode()[::-1])
    gray = videos.kept[0]["video"][:2].decode("gray")
    assert gray.shape[3] == 1


def test_stages_can_be_measured(videos):
    stages = good("doctor", videos.folder / "kept.pen", "--batch", "2", "--seconds", "1",
                  "--pipeline", "decode | clip 4 2 | center_crop 16", "--json").json()
    assert all(stage["samples_per_second"] > 0 for stage in stages["stages"])


def test_videos_and_frames_in_one_pack(videos):
    """Tasks of the loader take one after the other."""
    mixed = pack_list(videos.folder / "mixed.pen", videos.paths[:2], "--video", "keep")
    mixed = pack_list(videos.folder / "mixed.pen", videos.paths[-2:], "--mode", "raw", "--append")
    clip, n = ops.clip(5, 3, 1, times="yes"), len(videos.paths)
    expected = [load(pack, clip, subset=subset)
                for pack, subset in ((videos.kept, [0, 1]), (videos.frames, [n - 2, n - 1]))]
    got = load(mixed, clip, subset=[0, 2, 1, 3] * 20, threads=1)
    for name in ("video", "video_times"):
        both = np.concatenate([getattr(batch, name) for batch in expected])
        assert np.array_equal(getattr(got, name), np.concatenate([both[[0, 2, 1, 3]]] * 20))


# ---- from elsewhere


def test_clips_from_s3_are_those_of_the_disk(videos, s3, no_other_settings, tmp_path):
    (tmp_path / "packs").mkdir()
    os.symlink(videos.folder / "kept.pen", tmp_path / "packs" / "a.pen")
    server = s3(directory=tmp_path)
    far = penstock.open("s3://packs/a.pen", options(server))
    for order in ("sequential", "shuffle"):
        settings = {"order": order, "seed": 4, "batch": 3, "io_threads": 2}
        near, got = (load(pack, *RANDOM[1:], size=None, **settings) for pack in (videos.kept, far))
        assert all(np.array_equal(a, b) for a, b in zip(near, got, strict=True))
    with penstock.Loader(far, 1, pipeline=RANDOM, output="numpy",
                         subset=[*range(len(far))] * 4) as loader:
        assert loader.stats()["io_threads"] == 64  # each waits for its own request
        assert max(loader.stats()["slots"] for _ in loader) > 8  # and has one to make
    assert np.array_equal(far[1]["video"][3:30:9].decode(),
                          videos.kept[1]["video"][3:30:9].decode())


# ---- errors


@pytest.fixture(scope="module")
def damaged(videos):
    """The first of two videos has packets whose second half is overwritten, from the 15th on."""
    good_one, bad = videos.paths[0], videos.folder / "bad.mp4"
    body = bytearray(good_one.read_bytes())
    for packet in Video(good_one).packets[14:]:
        half = packet.size // 2
        body[packet.offset + half:packet.offset + packet.size] = b"\xa5" * (packet.size - half)
    bad.write_bytes(body)
    return pack_list(videos.folder / "damaged.pen", [bad, good_one], "--video", "keep")


def test_damaged_packets_name_the_frame(damaged):
    clip = ops.clip(4, 1, 0)
    assert load(damaged, clip, subset=[0]).video.shape == (1, 4, 40, 40, 3)
    with pytest.raises(penstock.DecodeError, match=r"sample 0 .*: frame 2\d at 0\.\d+ s: h264"):
        load(damaged, ops.clip(4, 1, 20), subset=[0])
    with pytest.raises(penstock.DecodeError, match="sample 0: h264"):
        damaged[0]["video"][20:24].decode()


def test_damaged_videos_are_replaced(damaged):
    batch = load(damaged, ops.clip(4, 1, 20, times="yes"), on_bad="substitute", max_bad=1)
    assert np.array_equal(batch.video[0], batch.video[1])
    assert list(batch.label) == [1, 1]


def test_bytes_that_do_not_match_their_checksum(videos, tmp_path):
    output("cp", "-r", videos.folder / "kept.pen", tmp_path / "a.pen")
    shard = max(tmp_path.rglob("*.shard"), key=lambda file: file.stat().st_size)
    body = bytearray(shard.read_bytes())
    at = body.index(videos.paths[0].read_bytes()[100:200])
    body[at + 20] ^= 1
    shard.chmod(0o644)
    shard.write_bytes(body)
    with pytest.raises(penstock.CorruptError, match="checksum"):
        load(penstock.open(tmp_path / "a.pen"), ops.clip(4, 1, 0), subset=[0])


def test_frames_that_do_not_exist(videos):
    with pytest.raises(penstock.InvalidError, match="pad is none"):
        load(videos.kept, ops.clip(41, 1, 0, pad="none"), subset=[0])


SCRIPT = """
import penstock, sys
from penstock import ops
pipeline = [ops.decode(), ops.clip(2), ops.center_crop(8)]
try:
    next(iter(penstock.Loader(sys.argv[1], 1, pipeline=pipeline, output="numpy")))
except penstock.UnsupportedError as error:
    print(error)
"""


def test_without_the_plugin(videos):
    env = {**os.environ, "PENSTOCK_VIDEO_LIBRARY": "/nowhere/libpenstock-video.so.0"}
    done = subprocess.run([sys.executable, "-c", SCRIPT, videos.folder / "kept.pen"], env=env,
                          capture_output=True, text=True, check=True, timeout=60)
    assert "'./dev build' make build/video/" in done.stdout
    if is_sanitized(BUILD):  # AddressSanitizer's dlopen ignores run paths
        return
    # What is built finds the plug-in that is built with it.
    env.pop("PENSTOCK_VIDEO_LIBRARY")
    done = subprocess.run([sys.executable, "-c", SCRIPT, videos.folder / "kept.pen"], env=env,
                          capture_output=True, text=True, check=True, timeout=60)
    assert done.stdout == ""
