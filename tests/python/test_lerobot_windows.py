# SPDX-License-Identifier: Apache-2.0
"""Samples that are frames: windows around each frame of a LeRobot dataset, as LeRobot selects them,
and the order of frames."""

import os
import shutil

import pytest
from packet_tools import PLUGIN, need_plugin
from py_tools import need_penstock, write_pack

need_plugin()
os.environ.setdefault("PENSTOCK_VIDEO_LIBRARY", str(PLUGIN))
penstock = need_penstock()
np = pytest.importorskip("numpy")
pytest.importorskip("pyarrow")

from lerobot_tools import FPS, SIZE, Dataset  # noqa: E402
from penstock import lerobot  # noqa: E402

LENGTHS = (25, 14, 40, 9, 30)
TOP, WRIST = "observation.images.top", "observation.images.wrist"
FRAME = {"timestamp": "ragged 1 at=0", "episode_index": "tensor"}
DELTAS = {TOP: [-6, -3, 0], WRIST: [0], "action": list(range(16)), "observation.state": [-1, 0],
          "next.done": [-12, -6, 0, 6, 12]}

pytestmark = pytest.mark.threads


@pytest.fixture(scope="module")
def dataset(tmp_path_factory):
    return Dataset(tmp_path_factory.mktemp("windows") / "robot", LENGTHS)


@pytest.fixture(scope="module")
def pack(dataset):
    path = dataset.root.parent / "robot.pen"
    lerobot.index(dataset.root, path)
    return penstock.open(path)


def loader(pack, batch=8, pipeline=FRAME, **settings):
    settings = {"shuffle": True, "threads": 2, "seed": 5, "frames": "length", **settings}
    return penstock.Loader(pack, batch, pipeline=pipeline, output="numpy", return_info=True,
                           **settings)


def named(batches, batch):
    return dict(zip((*batches.fields, "info"), batch))


def places(batches):
    """(episode, frame) of every sample of a pass, without those that fill up the last batch."""
    found = []
    for batch in batches:
        values = named(batches, batch)
        frames = np.rint(values["timestamp"][:, 0] * FPS).astype(int)
        both = zip(values["episode_index"].tolist(), frames.tolist())
        found += [place for place, valid in zip(both, values["info"].valid) if valid]
    return found


ALL = [(e, f) for e, length in enumerate(LENGTHS) for f in range(length)]


@pytest.mark.parametrize("size", [f"center_crop {SIZE[0]},{SIZE[1]} | ", ""])
def test_windows_equal_those_of_lerobot(dataset, pack, size):
    seconds = {name: [d / FPS for d in deltas] for name, deltas in DELTAS.items()}
    images = f"{size}tensor u8 nthwc"
    pipeline = lerobot.windows(pack, seconds, images) | FRAME
    done, padded = [], set()
    with loader(pack, 16, pipeline) as batches:
        assert batches.samples == sum(LENGTHS)
        for batch in batches:
            values = named(batches, batch)
            for i in range(values["info"].n_valid):
                place = (int(values["episode_index"][i]),
                         round(float(values["timestamp"][i, 0]) * FPS))
                done.append(place)
                for name, deltas in DELTAS.items():
                    expected, is_pad = dataset.window(name, *place, deltas)
                    assert np.array_equal(values[f"{name}_mask"][i], ~is_pad), (place, name)
                    found = values[name][i]
                    if name in dataset.cameras:
                        off = np.abs(found.astype(int) - expected).max()
                        assert found.shape == expected.shape and off <= 1, (place, name)
                    else:
                        assert np.array_equal(found, expected), (place, name)
                    padded |= {name} if is_pad.any() else set()
    assert sorted(done) == ALL and done != ALL
    assert padded == set(DELTAS) - {WRIST}


def test_images_keep_the_size_of_their_videos(pack):
    pipeline = lerobot.windows(pack, {TOP: [0.0]})
    assert pipeline == {TOP: f"decode | clip 1 1 at=0 | resize {SIZE[0]},{SIZE[1]}"}
    with loader(pack, 4, pipeline) as batches:
        assert next(batches.__iter__())[0].shape[2:4] == tuple(SIZE)


@pytest.mark.parametrize("order", ["sequential", "random", "shuffle", "sticky"])
def test_every_frame_is_in_an_epoch_once(order, pack):
    with loader(pack, 7, shuffle=None, order=order) as batches:
        epochs = [places(batches) for _ in range(2)]
    assert [sorted(epoch) for epoch in epochs] == [ALL, ALL]
    assert (epochs[0] == ALL) == (order == "sequential") == (epochs[0] == epochs[1])


def test_threads_make_no_difference(pack):
    orders = []
    for threads in (1, 3):
        with loader(pack, threads=threads) as batches:
            orders.append(places(batches))
    assert orders[0] == orders[1]


def test_ranks_share_an_epoch(pack):
    parts = []
    for rank in range(3):
        with loader(pack, 4, rank=rank, world_size=3) as batches:
            parts.append(places(batches))
    assert sorted(sum(parts, [])) == ALL


def test_resumes(pack):
    with loader(pack, 4) as batches:
        complete = places(batches)
    with loader(pack, 4) as batches:
        each = iter(batches)
        for _ in range(5):
            next(each)
        state = batches.state_dict()
    with loader(pack, 4) as batches:
        batches.load_state_dict(state)
        assert places(batches) == complete[20:]
    with loader(pack, 4, frames=[n - 1 for n in LENGTHS]) as batches, \
            pytest.raises(penstock.InvalidError):
        batches.load_state_dict(state)


def test_frames_of_a_subset(pack):
    with loader(pack, 4, subset=[3, 1]) as batches:
        assert sorted(places(batches)) == sorted(p for p in ALL if p[0] in (1, 3))
    with loader(pack, 4, subset=range(2, 4), frames=TOP) as batches:
        assert sorted(places(batches)) == [p for p in ALL if p[0] in (2, 3)]
    with loader(pack, 4, frames=[0, 3, 0, 0, 1]) as batches:
        assert sorted(places(batches)) == [(1, 0), (1, 1), (1, 2), (4, 0)]


def test_frames_have_their_own_draws(pack):
    crop = "decode | clip 1 1 0 | random_crop 8 | tensor u8"
    with loader(pack, LENGTHS[3], {TOP: crop, WRIST: crop}, subset=[3]) as batches:
        crops = named(batches, next(iter(batches)))[TOP]
    assert len({crop.tobytes() for crop in crops}) > 3


WRONG = {
    "samples are no frames; pass frames": dict(frames=None),
    "clip, or an i64 field .* found 'action'": dict(frames="action"),
    "no such field; did you mean 'length'": dict(frames="lenght"),
    "5 integers, one for each sample, found an array": dict(frames=[1, 2]),
    "entry 0: expected .* found -1": dict(frames=[-1] * 5),
    "at least one that is not 0": dict(frames=[0] * 5),
    "neither weights nor buckets": dict(weights=[1.0] * 5),
    "subset without repeated samples": dict(subset=[1, 1]),
    "at selects frames by frames and stride; remove offset": dict(
        pipeline={TOP: "decode | clip 2 1 center at=0 | center_crop 8 | tensor"}),
    "at selects frames by frames and stride; remove pad": dict(
        pipeline={TOP: "decode | clip 2 1 pad=loop at=0 | center_crop 8 | tensor"}),
    "at selects frames by frames and stride; remove fps": dict(
        pipeline={TOP: "decode | clip 2 fps=2 at=0 | center_crop 8 | tensor"}),
    "at and pad are mutually exclusive": dict(pipeline={"action": "ragged 2 pad=0 at=0"}),
    "stride needs at": dict(pipeline={"action": "ragged 2 stride=2"}),
}


@pytest.mark.parametrize("message", WRONG)
def test_wrong_settings(message, pack):
    with pytest.raises(penstock.InvalidError, match=message):
        loader(pack, **WRONG[message])


def test_frames_that_samples_do_not_have(pack):
    clip = {TOP: "decode | clip 1 1 at=0 | center_crop 8 | tensor"}
    with loader(pack, 4, frames=[99] * 5) as batches, \
            pytest.raises(penstock.InvalidError, match="the sample is frame .* rows; pass the num"):
        list(batches)
    with loader(pack, 4, clip, frames=[99] * 5) as batches, \
            pytest.raises(penstock.InvalidError, match="is frame .* but the clip has .*; pass the"):
        list(batches)


def test_broken_videos_are_replaced_by_frames_of_others(dataset, tmp_path):
    shutil.copytree(dataset.root, tmp_path / "robot", copy_function=shutil.copy2)
    lerobot.index(tmp_path / "robot", tmp_path / "robot.pen")
    (tmp_path / "robot" / "videos" / TOP / "chunk-000" / "file-000.mp4").unlink()
    pipeline = {TOP: "decode | clip 1 1 at=0 times=yes | center_crop 8 | tensor u8"} | FRAME
    with loader(str(tmp_path / "robot.pen"), 8, pipeline, on_bad="substitute") as batches:
        found, replaced = places(batches), batches.stats()["substituted"]
    assert replaced == LENGTHS[0] + LENGTHS[1] and len(found) == len(ALL)
    assert {episode for episode, _ in found} == {2, 3, 4} and set(found) <= set(ALL)


def test_mixtures_have_no_frames(pack):
    with pytest.raises(penstock.InvalidError, match="frames: a mix has all samples"):
        loader(penstock.mix([(pack, 1), (pack, 1)]))


def test_wrong_deltas(pack, tmp_path):
    for message, deltas in {
        "multiples of 1/30 s, found 0.05 s": {"action": [0.05]},
        "rise in equal steps": {"action": [0, 1 / 30, 3 / 30]},
        "at least one delta": {"action": []},
        "expected cameras and numbers": {"task": [0]},
        "did you mean 'action'": {"actoin": [0]},
    }.items():
        with pytest.raises(penstock.InvalidError, match=message):
            lerobot.windows(pack, deltas)
    with pytest.raises(TypeError, match="list of seconds"):
        lerobot.windows(pack, {"action": 0})
    other = write_pack(penstock, tmp_path / "a.pen", 3)
    with pytest.raises(penstock.InvalidError, match="found one without fps"):
        lerobot.windows(other, {})
