# SPDX-License-Identifier: Apache-2.0
"""Batches of clips: which frames, in what shape, and what is done to them.

PENSTOCK_SCALE=full compares 10,000 choices of frames instead of 2,000, and loads 10,000 damaged
clips instead of 400.
"""

import collections
import os
import random
import re
import resource
import time

import pytest
from plain_writer import Field, image, write_pack
from py_tools import encoded, need_penstock, pixels
from remote_tools import options

penstock = need_penstock()
np = pytest.importorskip("numpy")
ops = penstock.ops

pytestmark = pytest.mark.threads

FULL = os.environ.get("PENSTOCK_SCALE") == "full"
CASES = 10_000 if FULL else 2_000
DAMAGED = 10_000 if FULL else 400
GAP = 40_000_000  # ns from frame to frame: 25 a second
LENGTHS = [1, 2, 3, 5, 8, 15, 16, 17, 30, 31, 32, 33, 48, 64, 65]
ALL = len(LENGTHS)
H, W = 6, 8


def clip_of(number, length):
    return [encoded(pixels(number * 31 + i, W, H)) for i in range(length)]


@pytest.fixture(scope="module")
def pack(tmp_path_factory):
    path = tmp_path_factory.mktemp("clips") / "a.pen"
    with penstock.Writer(path, {"video": "clip", "label": "i64"}, block_samples=4) as writer:
        for i, length in enumerate(LENGTHS):
            times = [k * GAP for k in range(length)]
            writer.add(key=f"s{i}", video=(clip_of(i, length), times), label=i)
    return penstock.open(path)


@pytest.fixture(scope="module")
def decoded(pack):
    """All frames of all clips: [length, H, W, 3] each."""
    return [sample["video"].decode() for sample in pack]


def load(pack, *pipeline, batch=ALL, **settings):
    """The first batch, by name."""
    settings = {"order": "sequential", "output": "numpy", "threads": 2, **settings}
    with penstock.Loader(pack, batch, pipeline=list(pipeline), **settings) as loader:
        return next(iter(loader))._asdict()


# ---- which frames


def sliced(frames, start, count, stride, pad):
    """By NumPy alone; None when there are too few and nothing is to be put there."""
    end = start + (count - 1) * stride + 1
    missing = max(0, end - len(frames))
    if missing and pad == "none":
        return None
    if missing and pad == "last":
        frames = np.pad(frames, [(0, missing), (0, 0), (0, 0), (0, 0)], mode="edge")
    elif missing:
        frames = np.concatenate([frames] * (end // len(frames) + 1))
    return frames[start:end:stride]


def begins(length, count, stride, offset):
    """All places where the clip may begin."""
    room = max(0, length - (count - 1) * stride - 1)
    if offset == "random":
        return range(room + 1)
    return [room // 2 if offset == "center" else offset]


def check_case(pack, decoded, rng, seed):
    count, stride = rng.randint(1, 20), rng.choice((1, 1, 2, 3, 5, 8))
    offset = rng.choice(("random", "random", "center", rng.randint(0, 40)))
    pad = rng.choice(("last", "loop", "none"))
    subset = [i for i, n in enumerate(LENGTHS)
              if sliced(decoded[i], begins(n, count, stride, offset)[-1], count, stride, pad)
              is not None]
    case = count, stride, offset, pad
    clip = ops.clip(count, stride, offset, pad, times="yes")
    for i in set(range(len(LENGTHS))) - set(subset):
        with pytest.raises(penstock.InvalidError, match=f"sample {i} 's{i}': clip: .*pad is none"):
            load(pack, ops.decode(), clip, ops.center_crop((H, W)), batch=1, subset=[i])
    if not subset:
        return len(LENGTHS)
    got = load(pack, ops.decode(), clip, ops.center_crop((H, W)), batch=len(subset), subset=subset,
               seed=seed)
    assert got["video"].shape == (len(subset), count, H, W, 3)
    for i, video, times in zip(subset, got["video"], got["video_times"]):
        starts = begins(LENGTHS[i], count, stride, offset)
        start = times[0] // GAP if offset == "random" else starts[0]
        assert start in starts, (case, i)
        expected = sliced(decoded[i], start, count, stride, pad)
        assert np.array_equal(video, expected), (case, i)
        numbers = start + stride * np.arange(count)
        numbers = numbers % LENGTHS[i] if pad == "loop" else np.minimum(numbers, LENGTHS[i] - 1)
        assert np.array_equal(times, numbers * GAP), (case, i)
    return len(LENGTHS)


def test_frames_are_those_of_a_slice(pack, decoded):
    """Every length with every choice; seeds differ, so that random places do."""
    rng, done = random.Random(8), 0
    while done < CASES:
        done += check_case(pack, decoded, rng, done)
    print(f"{done:,} clips taken are those of a slice")


def test_random_places_are_all_alike(pack):
    """Sample 6 has 16 frames: 9 places for 8 of them."""
    seen = collections.Counter()
    with penstock.Loader(
        pack, 1, pipeline=[ops.decode(), ops.clip(8, 1, times="yes"), ops.center_crop(2)],
        subset=[6], output="numpy",
    ) as loader:
        for _ in range(900):
            seen[int(next(iter(loader)).video_times[0, 0]) // GAP] += 1
    assert set(seen) == set(range(9)) and all(60 < count < 145 for count in seen.values()), seen


@pytest.mark.parametrize("words", [{"fps": 7}, {"fps": 60}, {"seconds": 0.5}, {"seconds": 3}])
@pytest.mark.parametrize("offset", ["center", 0, 0.3])
def test_frames_by_time(pack, decoded, words, offset):
    count = 6
    got = load(pack, ops.decode(), ops.clip(count, offset=offset, **words), ops.center_crop((H, W)),
               subset=range(1, len(LENGTHS)), batch=len(LENGTHS) - 1)
    step = 1e9 / words["fps"] if "fps" in words else words["seconds"] * 1e9 / count
    for length, frames, video in zip(LENGTHS[1:], decoded[1:], got["video"]):
        room = max(0, length * GAP - round(count * step))
        start = room // 2 if offset == "center" else round(offset * 1e9)
        at = start + np.floor(step * np.arange(count) + 0.5)
        at = np.minimum(at, length * GAP - 1)
        numbers = np.abs(at[:, None] - GAP * np.arange(length)).argmin(1)
        assert np.array_equal(video, frames[numbers]), (length, numbers)


def test_frames_by_list(pack, decoded):
    got = load(pack, ops.decode(), ops.clip(indices=[5, 0, 40, 5], pad="loop"),
               ops.center_crop((H, W)))
    for frames, video in zip(decoded, got["video"]):
        assert np.array_equal(video, frames[np.array([5, 0, 40, 5]) % len(frames)])


def test_several_clips(pack, decoded):
    """In the middles of equal parts; one behind the other."""
    middle = load(pack, ops.decode(), ops.clip(2, 3, "center", n=3, times="yes"),
                  ops.center_crop((H, W)))
    behind = load(pack, ops.decode(), ops.clip(2, 3, 1, n=3), ops.center_crop((H, W)))
    assert middle["video"].shape == (len(LENGTHS), 3, 2, H, W, 3)
    assert middle["video_times"].shape == (len(LENGTHS), 3, 2)
    for i, frames in enumerate(decoded):
        room = max(0, LENGTHS[i] - 4)
        for k in range(3):
            expected = sliced(frames, room * (2 * k + 1) // 6, 2, 3, "last")
            assert np.array_equal(middle["video"][i, k], expected)
            assert np.array_equal(behind["video"][i, k], sliced(frames, 1 + 6 * k, 2, 3, "last"))
    apart = load(pack, ops.decode(), ops.clip(2, n=8), ops.random_crop(3), subset=[14], batch=1)
    assert len({clip.tobytes() for clip in apart["video"][0]}) > 4


# ---- what is done to them


def test_all_frames_have_the_same_draws(tmp_path):
    """A clip of equal frames stays one, whatever is done by chance; two clips do not agree."""
    frame = encoded(pixels(3, 60, 40), "JPEG", quality=95)
    with penstock.Writer(tmp_path / "a.pen", {"video": "clip"}) as writer:
        for i in range(20):
            writer.add(key=str(i), video=[frame] * 9)
    got = load(tmp_path / "a.pen", ops.decode(), ops.clip(5, 2, n=2), ops.random_resized_crop(16),
               ops.hflip(), ops.vflip(), ops.color_jitter(0.5, 0.5, 0.5, 0.2), ops.grayscale(0.3),
               ops.random_erasing(0.5), batch=20)["video"]
    assert (got == got[:, :, :1]).all()
    assert len({clip[0].tobytes() for sample in got for clip in sample}) == 40


def test_three_crops(pack, decoded):
    got = load(pack, ops.decode(), ops.clip(4, 1, 0), ops.three_crop((6, 4)))["video"]
    assert got.shape == (len(LENGTHS), 3, 4, 6, 4, 3)
    for frames, views in zip(decoded, got):
        clip = sliced(frames, 0, 4, 1, "last")
        for view, x in zip(views, (0, 2, 4)):
            assert np.array_equal(view, clip[:, :, x:x + 4])
    tall = load(pack, ops.decode(), ops.clip(4, 1, 0, n=2), ops.resize((8, 4)),
                ops.three_crop(4))["video"]
    whole = load(pack, ops.decode(), ops.clip(4, 1, 0, n=2), ops.resize((8, 4)))["video"]
    assert tall.shape == (len(LENGTHS), 6, 4, 4, 4, 3)
    for k in range(2):
        for c, y in enumerate((0, 2, 4)):
            assert np.array_equal(tall[:, 3 * k + c], whole[:, k, :, y:y + 4])


# ---- shapes


@pytest.mark.parametrize("layout, axes", [
    ("nhwc", (0, 1, 2, 3, 4)), ("nthwc", (0, 1, 2, 3, 4)), ("nchw", (0, 4, 1, 2, 3)),
    ("ncthw", (0, 4, 1, 2, 3)), ("ntchw", (0, 1, 4, 2, 3)),
])
def test_layouts(pack, layout, axes):
    begin = ops.decode(), ops.clip(4, 1, 0), ops.center_crop((H, W))
    plain = load(pack, *begin)["video"]
    for dtype in ("u8", "f32"):
        got = load(pack, *begin, ops.tensor(dtype, layout))["video"]
        expected = plain.transpose(axes) / np.float32(1 if dtype == "u8" else 255)
        assert got.flags.c_contiguous and np.allclose(got, expected, atol=1e-6)


def test_torch_sees_channels_first(pack):
    torch = pytest.importorskip("torch")
    begin = ops.decode(), ops.clip(4, 1, 0), ops.center_crop((H, W))
    plain = load(pack, *begin)["video"]
    got = load(pack, *begin, output="torch")["video"]
    assert got.shape == (len(LENGTHS), 3, 4, H, W)
    assert got.is_contiguous(memory_format=torch.channels_last_3d)
    assert np.array_equal(got.numpy(), plain.transpose(0, 4, 1, 2, 3))
    planes = load(pack, *begin, ops.tensor("u8", "ncthw"), output="torch")["video"]
    assert planes.is_contiguous() and torch.equal(planes, got)
    views = load(pack, ops.decode(), ops.clip(4, n=2), ops.three_crop(4), output="torch")["video"]
    assert views.shape == (len(LENGTHS), 6, 3, 4, 4, 4)


def test_which_field_is_meant(tmp_path):
    with penstock.Writer(tmp_path / "a.pen", {"thumb": "image", "video": "clip"}) as writer:
        writer.add(key="a", thumb=encoded(pixels(1, W, H)), video=clip_of(2, 5))
    crop = ops.center_crop((H, W))
    assert load(tmp_path / "a.pen", ops.decode(), ops.clip(2), crop, batch=1).keys() == {"video"}
    assert load(tmp_path / "a.pen", ops.decode(), crop, batch=1).keys() == {"thumb"}
    both = {"video": [ops.decode(), ops.clip(2, times="yes"), crop], "thumb": [ops.decode(), crop]}
    with penstock.Loader(tmp_path / "a.pen", 1, pipeline=both, output="numpy") as loader:
        assert next(iter(loader))._fields == ("video", "video_times", "thumb")
    with penstock.Writer(tmp_path / "b.pen", {"video": "clip", "video_times": "i64"}) as writer:
        writer.add(key="a", video=clip_of(2, 5), video_times=3)
    with pytest.raises(penstock.InvalidError, match="'video_times', is also a field of the pack"):
        penstock.Loader(tmp_path / "b.pen", 1, pipeline={
            "video": [ops.decode(), ops.clip(2, times="yes"), crop], "video_times": "tensor"})
    one = load(tmp_path / "b.pen", ops.decode(), ops.clip(2, times="yes"), crop, batch=1)
    assert one.keys() == {"video", "video_times"} and one["video_times"].shape == (1, 2)


def test_operations_in_python():
    assert str(ops.clip()) == "clip" and str(ops.clip(8, 1)) == "clip 8 1"
    assert str(ops.clip(offset=3, pad="none", n=2)) == "clip offset=3 pad=none n=2"
    assert str(ops.clip(8, 1, "center", "loop")) == "clip 8 1 center loop"
    assert str(ops.clip(indices=range(3))) == "clip indices=0,1,2"
    assert str(ops.clip(indices=(4,), times="yes")) == "clip indices=4 times=yes"
    for wrong, message in [
        ({"offset": "middle"}, "offset: expected one of random, center, found 'middle'"),
        ({"offset": -1}, "offset: expected 0 to 1000000000, found -1"),
        ({"indices": []}, "indices: expected at least one number"),
        ({"indices": [1.5]}, "indices: expected an integer, found 1.5"),
        ({"frames": 0}, "frames: expected 1 to 4096, found 0"),
    ]:
        with pytest.raises(penstock.InvalidError, match=message):
            ops.clip(**wrong)
    with pytest.raises(TypeError, match="expected a number"):
        ops.clip(frames="8")


# ---- damage


def damaged(data, rng):
    """Some bytes changed, left out, doubled or cut off; not its first two."""
    data = bytearray(data)
    for _ in range(rng.choice((1, 1, 2, 5, 20))):
        at, n = rng.randrange(2, len(data)), rng.choice((1, 1, 2, 4, 50))
        how = rng.randrange(5)
        if how == 0:
            data[at] ^= 1 << rng.randrange(8)
        elif how == 1:
            data[at:at + n] = rng.randbytes(len(data[at:at + n]))
        elif how == 2:
            data[at:at + n] = data[at:at + n] * 2
        elif at > 20:
            del data[at:at + n if how == 3 else None]
    return bytes(data)


def damaged_clips(n, rng):
    """A frame of each is damaged, under checksums that are right."""
    kinds = [("jpeg", "JPEG", {"quality": 80}), ("jpeg", "JPEG", {"progressive": True}),
             ("png", "PNG", {}), ("webp", "WEBP", {})]
    whole = [(kind, encoded(pixels(i, 16, 12), save, **more))
             for kind, save, more in kinds for i in range(6)]
    for i in range(n):
        frames, hit = [rng.choice(whole) for _ in range(3)], rng.randrange(3)
        yield str(i).encode(), {"video": [
            image(damaged(data, rng) if k == hit else data, 16, 12, codec=kind)
            for k, (kind, data) in enumerate(frames)
        ]}


def take_all(loader):
    """How often which came: pixels, or an error that names its sample and frame."""
    found, batches = collections.Counter(), iter(loader)
    while True:
        start = time.monotonic()
        try:
            assert next(batches).video.shape == (1, 3, 3, 8, 8)
            found["pixels"] += 1
        except StopIteration:
            return found
        except (penstock.DecodeError, penstock.LimitError, penstock.UnsupportedError) as error:
            assert re.match(rf"(instead of )?sample {error.sample}\b.*: frame \d: ", str(error))
            found[type(error).__name__] += 1
        assert time.monotonic() - start < 60


def test_damaged_clips_are_errors_or_pixels(tmp_path):
    """In time, and with no more memory than others take. A header that asks for more than is
    allowed, or for what no decoder knows, is no damage that is passed over."""
    clips = list(damaged_clips(DAMAGED, random.Random(3)))
    write_pack(tmp_path / "a.pen", [Field("video", "clip")], clips, block_samples=8)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    settings = {"pipeline": "decode | clip 3 1 0 | center_crop 8 | tensor f32 ncthw",
                "output": "numpy", "memory": "64MiB"}
    with penstock.Loader(tmp_path / "a.pen", 1, **settings) as loader:
        found = take_all(loader)
    grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
    print(dict(found), f"{grown} KiB more")
    assert sum(found.values()) == DAMAGED and found["DecodeError"] > DAMAGED / 3
    assert grown < 128 << 10
    with penstock.Loader(tmp_path / "a.pen", 1, on_bad="substitute", max_bad=DAMAGED,
                         **settings) as loader:
        again = take_all(loader)
        # Where most are broken, all that are tried instead may be.
        assert again["DecodeError"] < found["DecodeError"] / 20
        assert sum(again.values()) == DAMAGED
        assert loader.stats()["substituted"] > found["DecodeError"] / 2


# ---- from elsewhere


def test_clips_from_s3_are_those_of_the_disk(s3, no_other_settings, pack, tmp_path):
    begin = ops.decode(), ops.clip(6, 2, n=2, times="yes"), ops.random_resized_crop(5), ops.hflip()
    (tmp_path / "packs").mkdir()
    os.symlink(pack.path, tmp_path / "packs" / "a.pen")
    far = penstock.open("s3://packs/a.pen", options(s3(directory=tmp_path)))
    assert far[9]["video"][3:30:2] == pack[9]["video"][3:30:2]
    for order in ("sequential", "random", "shuffle"):
        settings = {"order": order, "seed": 4, "batch": 5}
        near, got = load(pack, *begin, **settings), load(far, *begin, **settings)
        assert all(np.array_equal(near[name], got[name]) for name in near)
