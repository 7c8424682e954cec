# SPDX-License-Identifier: Apache-2.0
"""penstock index over LeRobot datasets: one sample for each episode, videos stay in their files."""

import json
import os
import re
import shutil
import subprocess
import sys

import pytest
from cli_tools import ROOT, good
from packet_tools import PLUGIN, need_plugin
from py_tools import need_penstock

need_plugin()
os.environ.setdefault("PENSTOCK_VIDEO_LIBRARY", str(PLUGIN))
penstock = need_penstock()
np = pytest.importorskip("numpy")
pytest.importorskip("pyarrow")

from lerobot_tools import FPS, NUMBERS, SIZE, TASKS, Dataset  # noqa: E402
from penstock import lerobot  # noqa: E402
from penstock.lerobot._rows import TOLERANCE_S, Rows  # noqa: E402

ops = penstock.ops
LENGTHS = (25, 14, 40, 9, 30)
TOP, WRIST = "observation.images.top", "observation.images.wrist"


@pytest.fixture(scope="module")
def dataset(tmp_path_factory):
    """Written once; tests that change it copy it."""
    return Dataset(tmp_path_factory.mktemp("lerobot") / "robot", LENGTHS)


@pytest.fixture(scope="module")
def pack(dataset):
    path = dataset.root.parent / "robot.pen"
    done = lerobot.index(dataset.root, path)
    assert done == (len(LENGTHS), sum(LENGTHS), (), len(LENGTHS))
    return penstock.open(path)


@pytest.fixture
def copied(dataset, tmp_path):
    shutil.copytree(dataset.root, tmp_path / "robot", copy_function=shutil.copy2)
    copy = Dataset.__new__(Dataset)
    copy.__dict__.update(dataset.__dict__, root=tmp_path / "robot")
    return copy


def load(pack, pipeline, batch, **settings):
    with penstock.Loader(pack, batch, pipeline=pipeline, output="numpy", threads=2,
                         **{"order": "sequential", **settings}) as loader:
        for values in loader:
            yield dict(zip(loader.fields, values))


def difference(a, b):
    assert a.shape == b.shape
    return int(np.abs(a.astype(int) - b).max())


def test_numbers_equal_the_parquet_files(dataset, pack):
    assert pack.schema == {
        TOP: "clip", WRIST: "clip", "observation.state": "f32[*,6]", "action": "f32[*,3]",
        "next.reward": "f32[*]", "next.done": "i64[*]", "timestamp": "f32[*]",
        "task_index": "i64[*]", "task": "text", "episode_index": "i64", "length": "i64",
        "fps": "f64"}
    assert len(pack) == len(LENGTHS)
    for i, length in enumerate(LENGTHS):
        sample = pack[i]
        assert sample.key == f"episode_{i:06d}"
        for name in (*NUMBERS, "timestamp", "task_index"):
            assert np.array_equal(sample[name], dataset.rows(name, i)), (i, name)
        assert sample["task"] == TASKS[i % 2] and sample["fps"] == FPS
        assert (sample["episode_index"], sample["length"]) == (i, length)


def test_frames_equal_ffmpeg(dataset, pack):
    for i, length in enumerate(LENGTHS):
        clip = f"decode | clip {length} 1 0 | center_crop {SIZE[0]},{SIZE[1]} | tensor u8 nthwc"
        for batch in load(pack, {TOP: clip, WRIST: clip}, 1, subset=[i]):
            for camera in (TOP, WRIST):
                assert difference(batch[camera][0], dataset.frames(camera, i)) <= 1, (i, camera)


def test_cameras_share_the_draws(dataset, pack):
    clip = [ops.decode(), ops.clip(5, 1, times="yes"), ops.random_crop(32), ops.tensor()]
    starts = set()
    for epoch in range(3):
        for batch in load(pack, {TOP: clip, WRIST: clip}, len(LENGTHS), seed=epoch):
            assert np.array_equal(batch[f"{TOP}_times"], batch[f"{WRIST}_times"])
            starts |= set(batch[f"{TOP}_times"][:, 0].tolist())
    assert len(starts) > 4


def test_nothing_is_copied_and_copies_are_ordinary(dataset, pack):
    videos = sum(f.stat().st_size for f in dataset.root.rglob("*.mp4"))
    shards = sum(f.stat().st_size for f in dataset.root.parent.glob("robot.pen/**/*")
                 if f.is_file())
    assert shards < videos / 4
    good("verify", dataset.root.parent / "robot.pen")
    copy = dataset.root.parent / "copy.pen"
    good("copy", dataset.root.parent / "robot.pen", copy)
    clip = "decode | clip 3 2 center | center_crop 40 | tensor u8"
    a, b = (next(load(p, {TOP: clip}, len(LENGTHS)))[TOP] for p in (pack, str(copy)))
    assert np.array_equal(a, b) and a.any()


def test_changed_videos_are_noticed(copied, tmp_path):
    lerobot.index(copied.root, tmp_path / "r.pen")
    video = copied.video_path(TOP, 1)
    data = bytearray(video.read_bytes())
    data[len(data) // 2] ^= 1
    video.write_bytes(data)
    clip = "decode | clip 40 1 0 | center_crop 40 | tensor u8"
    with pytest.raises(penstock.CorruptError, match=r"file-001\.mp4.*modified"):
        next(load(str(tmp_path / "r.pen"), {TOP: clip}, 1, subset=[2]))
    assert next(load(str(tmp_path / "r.pen"), {TOP: clip}, 1, subset=[0]))[TOP].any()
    video.unlink()
    with pytest.raises(penstock.CorruptError, match=r"file-001\.mp4"):
        next(load(str(tmp_path / "r.pen"), {TOP: clip}, 1, subset=[2]))


def penstock_command(*words):
    return subprocess.run([sys.executable, "-m", "penstock", *map(str, words)], check=False,
                          capture_output=True, text=True, timeout=60)


def test_command(dataset, tmp_path):
    done = penstock_command("index", dataset.root, "-o", tmp_path / "r.pen", "--json",
                            "--block-samples", 2)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["samples"] == len(LENGTHS)
    pack = penstock.open(tmp_path / "r.pen", roots=[dataset.root])
    assert pack.info["block_samples"] == 2 and pack[3]["length"] == LENGTHS[3]
    done = penstock_command("index", dataset.root, "-o", tmp_path / "r.pen")
    assert done.returncode == 1 and "already exists" in done.stderr
    done = penstock_command("index", dataset.root, "-o", tmp_path / "s.pen")
    assert done.stdout.startswith(f"{tmp_path}/s.pen: 5 episodes, 118 frames")


@pytest.mark.slow
def test_how_to_page(tmp_path, monkeypatch):
    """Its commands and its code; what needs a bucket is run by test_lerobot_remote.py."""
    page = (ROOT / "docs/how-to/lerobot.md").read_text()
    monkeypatch.chdir(tmp_path)
    Dataset(tmp_path / "data/robot", (70, 33))
    for command in re.findall(r"^penstock (.*?) *(?:#.*)?$", page, re.M):
        if command.startswith(("index", "verify")) and "s3://" not in command:
            done = penstock_command(*command.split())
            assert done.returncode == 0, (command, done.stderr)
    names = {}
    for code in re.findall(r"^```python\n(.*?)^```$", page, re.M | re.S):
        if "s3://" not in code:
            exec(compile(code, "lerobot.md", "exec"), names)
    left = (70 + 33) % 64  # of the last batch
    assert tuple(names["images"].shape) == (left, 2, 3, 224, 224)
    assert tuple(names["actions"].shape) == (left, 50, 3)
    assert tuple(names["is_real"].shape) == (left, 50)
    clips = next(iter(names["episodes"]))
    assert tuple(clips[0].shape) == (2, 3, 16, 224, 224)
    names["loader"].close()
    names["episodes"].close()


def camera(name, what):
    return f"videos/{name}/{what}"


def wrong_times(dataset):
    start = dataset.episode_columns()[camera(WRIST, "from_timestamp")].copy()
    start[3] += 0.011
    dataset.write_episodes(**{camera(WRIST, "from_timestamp"): start})


def beyond_the_end(dataset):
    start = dataset.episode_columns()[camera(TOP, "from_timestamp")] + 5.0
    dataset.write_episodes(**{camera(TOP, "from_timestamp"): start})


def other_length(dataset):
    dataset.write_episodes(length=np.array(LENGTHS) + 1)


def column(**changes):
    return lambda dataset: dataset.write_episodes(**changes)


def swapped(dataset):
    dataset.write_data(episode_index=dataset.columns["episode_index"][::-1].copy())


def times(change):
    """Other timestamps, of which there are as many."""
    return lambda dataset: dataset.write_data(
        timestamp=change(dataset.columns["timestamp"]).astype(np.float32))


def late(timestamps):
    timestamps = timestamps.copy()
    timestamps[7:] += 1 / FPS  # a frame is missing
    return timestamps


def short_file(dataset):
    file = dataset.root / "data/chunk-000/file-001.parquet"
    file.write_bytes(file.read_bytes()[:-20])


def info(**changes):
    return lambda dataset: dataset.write_info(**changes)


def without(name):
    return lambda dataset: (dataset.root / name).unlink()


N = len(LENGTHS)
DAMAGES = {
    "times of no frame": (wrong_times, "NotFoundError", r"file-001\.mp4: frame 0 of 9: expected a "
                          r"frame at 1\.344333 s \(to within 8\.333 ms\), found one at 1\.3"),
    "times behind the end": (beyond_the_end, "NotFoundError", r"file-000\.mp4: frame 0 of 25"),
    "another length": (other_length, "InvalidError", "episode 0: expected dataset_to_index 26"),
    "a length of 0": (column(length=np.zeros(N, int)), "InvalidError", "length: expected an int"),
    "an episode twice": (column(episode_index=np.zeros(N, int)), "InvalidError", "0 occurs twice"),
    "no column": (column(**{camera(TOP, "file_index"): None}), "InvalidError",
                  "expected a column 'videos/observation.images.top/file_index', found none"),
    "missing file": (column(**{camera(TOP, "file_index"): np.full(N, 7)}), "NotFoundError",
                     r"file-007\.mp4: no such file"),
    "no number": (column(**{camera(TOP, "from_timestamp"): np.full(N, np.nan)}), "InvalidError",
                  "from_timestamp of .*: expected a number"),
    "frames of others": (swapped, "InvalidError", "expected frames 0 to 24 of episode 0"),
    "damaged data": (short_file, "InvalidError", r"file-001\.parquet: cannot read"),
    "no data": (without("data/chunk-000/file-001.parquet"), "NotFoundError", "no such file"),
    "no tasks": (without("meta/tasks.parquet"), "NotFoundError", "incomplete"),
    "no info": (without("meta/info.json"), "NotFoundError", "expected a LeRobot dataset"),
    "another version": (info(codebase_version="v2.1"), "UnsupportedError", "found 'v2.1'"),
    "no rate": (info(fps=0), "InvalidError", "fps: expected a number"),
    "another rate": (info(fps=FPS / 2), "InvalidError", r"episode 0: expected timestamps that are "
                     r"1/15 s apart, found 0 s and 0\.0333333 s of frames 0 and 1; correct fps"),
    "a rate that is nearly right": (info(fps=FPS + 0.1), "InvalidError", "1/30.1 s apart"),
    "a frame is missing": (times(late), "InvalidError", r"0\.2 s and 0\.266667 s of frames 6"),
    "times of nothing": (times(lambda t: t * np.nan), "InvalidError", "found nan s and nan s"),
    "missing episodes": (info(total_episodes=9), "InvalidError", "expected 9 episodes"),
    "a path outside": (info(video_path="../{video_key}.mp4"), "InvalidError", "below the dataset"),
    "an unknown variable": (info(data_path="{x}"), "InvalidError", "unknown variable '{x}'"),
    "no features": (info(features=[]), "InvalidError", "object of features"),
    "no video": (info(features={"action": {"dtype": "float32", "shape": [3]}}), "UnsupportedError",
                 "penstock convert"),
    "a name of the pack's own": (info(features={TOP: {"dtype": "video", "shape": [3]},
                                                "task": {"dtype": "int64", "shape": [1]}}),
                                 "InvalidError", "rename the feature"),
    "images": (info(features={"a": {"dtype": "image", "shape": [3]}}), "UnsupportedError", "'a'"),
    "another shape": (lambda d: d.write_data(action=d.columns["action"][:, :2]), "InvalidError",
                      r"column 'action': expected numbers of shape \(3,\)"),
    "a missing column": (lambda d: d.write_data(action=None), "InvalidError",
                         "expected a column 'action'"),
    "an unknown task": (lambda d: d.write_tasks(texts=TASKS[:1]), "InvalidError",
                        "episode 1: expected a task_index"),
}


@pytest.mark.parametrize("case", DAMAGES)
def test_damaged_datasets_are_refused(case, copied, tmp_path):
    damage, kind, message = DAMAGES[case]
    damage(copied)
    with pytest.raises(getattr(penstock, kind), match=message):
        lerobot.index(copied.root, tmp_path / "r.pen")
    assert not (tmp_path / "r.pen" / "manifest").exists()


def test_rounded_times_are_accepted():
    """32-bit floats of an hour are 0.24 ms apart, more than the tolerance."""
    times = (3600 + np.arange(90) / FPS).astype(np.float32).astype(float)
    assert np.abs(np.diff(times) - 1 / FPS).max() > TOLERANCE_S
    Rows(None, [], {}, FPS)._check_times(times, None)


def test_writer_refuses_what_is_no_video(dataset, tmp_path):
    video = dataset.video_path(TOP, 0)
    times = [round(i * 1e9 / FPS) for i in range(3)]
    with pytest.raises(penstock.InvalidError, match="needs in_place"), \
            penstock.Writer(tmp_path / "a.pen", {"video": "clip"}) as writer:
        writer.add(video=(video, times))
    cases = {
        "expected the path of a video and the times": (video, []),
        "frame 1 of 2: expected a frame at 0.100000 s": (video, [0, 10**8]),
        "frame 0 of 1: expected a frame at -0.000001 s": (video, [-1000]),
        "expected 40 frames, found a video of 39": (video, [0] * 40),
        "expected the path of a video": ([b"jpeg"], [0]),
    }
    for message, value in cases.items():
        with pytest.raises(penstock.Error, match=message), \
                penstock.Writer(tmp_path / "b.pen", {"video": "clip"}, in_place=True) as writer:
            writer.add(video=value)
    for more in ({"mode": "encode"}, {"task": (0, 2)}):
        with pytest.raises(penstock.Error, match="in-place pack"):
            penstock.Writer(tmp_path / "c.pen", {"video": "clip"}, in_place=True, **more)
    with penstock.Writer(tmp_path / "d.pen", {"video": "clip"}, in_place=True) as writer:
        writer.add(video=(video, times))
    assert penstock.open(tmp_path / "d.pen", roots=[video.parent]).column(
        "video", "frames").tolist() == [3]
