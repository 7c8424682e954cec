# SPDX-License-Identifier: Apache-2.0
"""Loader(tokens=..., lengths=...): every step has one length, and batches of tokens // length."""

import math

import pytest
from py_tools import encoded, need_penstock, pixels, write_pack

penstock = need_penstock()
np = pytest.importorskip("numpy")

N = 61
SIZES = [(32, 32), (60, 24), (24, 60), (41, 38), (90, 7), (3, 5)]
SIDE, TOKENS, LENGTHS = 8, 64, (4, 9, 16, 30)
ORDERS = ("sequential", "random", "shuffle", "sticky")


def image(number):
    return encoded(pixels(number, *SIZES[number % len(SIZES)]), "PNG")


@pytest.fixture(scope="module")
def pack(tmp_path_factory):
    return write_pack(penstock, tmp_path_factory.mktemp("tokens") / "a.pen", N, image)


def opened(pack, pipeline=f"decode | patches {SIDE}", **settings):
    base = {"tokens": TOKENS, "lengths": LENGTHS, "order": "random", "seed": 5,
            "pipeline": pipeline, "output": "numpy", "return_info": True, "memory": "64MiB",
            "threads": 2, "rank": 0, "world_size": 1, "shuffle_buffer": 48, "last_batch": "pad"}
    return penstock.Loader(pack, **{**base, **settings})


def taken(batches):
    return [(info.length, info.position, info.samples.tolist(), info.valid.tolist(),
             patches.tobytes(), sizes.tolist(), mask.tolist(), labels.tolist())
            for patches, sizes, mask, labels, info in batches]


def load(pack, epoch=0, state=None, strict=True, **settings):
    with opened(pack, **settings) as loader:
        loader.set_epoch(epoch)
        if state:
            loader.load_state_dict(state, strict)
        return taken(loader)


def siglip_size(height, width, side, length):
    """The rule as SigLIP 2 publishes it."""
    def scaled(size, scale):
        return max(side, math.ceil(size * scale / side) * side)

    low, high, eps = 1e-5 / 10, 100.0, 1e-5
    while high - low >= eps:
        scale = (low + high) / 2
        n = (scaled(height, scale) / side) * (scaled(width, scale) / side)
        low, high = (scale, high) if n <= length else (low, scale)
    return scaled(height, low), scaled(width, low)


def patchified(pixels, side):
    height, width, channels = pixels.shape
    split = pixels.reshape(height // side, side, width // side, side, channels)
    return split.transpose(0, 2, 1, 3, 4).reshape(-1, side * side * channels)


# ---- what a batch is


def test_batches_have_one_length_and_as_many_samples_as_fit(pack):
    with opened(pack) as loader:
        assert loader.fields == ("image", "image_sizes", "image_mask", "label")
        assert (loader.tokens, loader.lengths, loader.batch_size) == (TOKENS, LENGTHS, 16)
        batches = 0
        for patches, sizes, mask, labels, info in loader:
            n = TOKENS // info.length
            assert patches.shape == (n, info.length, SIDE * SIDE * 3)
            assert sizes.shape == (n, 2) and sizes.dtype == np.int64
            assert mask.shape == (n, info.length) and mask.dtype == np.bool_
            assert labels.shape == info.samples.shape == info.valid.shape == (n,)
            batches += 1
        assert batches == len(loader)


@pytest.mark.parametrize("side", (1, 3, 8, 14))
def test_patches_are_those_of_the_resized_image(pack, side):
    for patches, sizes, mask, _, info in opened(
        pack, f"decode | patches {side} filter=bicubic | hflip | tensor u8", shuffle=None,
    ):
        for i, number in enumerate(info.samples.tolist()):
            width, height = SIZES[number % len(SIZES)]
            h, w = siglip_size(height, width, side, info.length)
            down, across = sizes[i].tolist()
            assert (down * side, across * side) == (h, w)
            n = down * across
            assert mask[i].tolist() == [True] * n + [False] * (info.length - n)
            assert not patches[i][n:].any()
            with penstock.Loader(
                pack, 1, subset=[number], seed=5, output="numpy", rank=0, world_size=1,
                pipeline=f"decode | resize {h},{w} bicubic | hflip | tensor u8",
            ) as plain:
                expected = next(iter(plain))[0][0]
            assert (patches[i][:n] == patchified(expected, side)).all()


def test_a_fixed_length_needs_no_budget(pack):
    common = {"output": "numpy", "rank": 0, "world_size": 1, "batch_size": 8, "seed": 3}
    ops = "random_resized_crop 40,64 | patches 8 length=22 | hflip | normalize"
    after = "random_erasing p=1 value=1.5"
    pipeline = f"decode | {ops} | {after} | tensor f32"
    with penstock.Loader(pack, pipeline=pipeline, **common) as loader:
        patches, sizes, mask, _ = next(iter(loader))
    assert patches.shape == (8, 22, 192) and patches.dtype == np.float32
    plain = pipeline.replace("patches 8 length=22", "resize 32,40")
    with penstock.Loader(pack, pipeline=plain, **common) as loader:
        expected = next(iter(loader))[0]
    assert sizes.tolist() == [[4, 5]] * 8 and mask.sum() == 8 * 20
    for i in range(8):
        assert (patches[i][:20] == patchified(expected[i], 8)).all()
        assert not patches[i][20:].any()


def test_masks_boxes_and_gray_images(tmp_path):
    stored = penstock.Writer(tmp_path / "m.pen", {
        "image": "image", "mask": "mask", "boxes": "f32[*,4] boxes xyxy absolute"})
    with stored as writer:
        for i in range(6):
            writer.add(image=encoded(pixels(i, 60, 24)),
                       mask=encoded(pixels(i, 60, 24).convert("L")),
                       boxes=np.array([[0, 0, 60, 24]], "f4"))
    settings = {"tokens": 24, "lengths": [8, 12], "output": "numpy", "return_info": True,
                "rank": 0, "world_size": 1, "last_batch": "pad"}
    with penstock.Loader(tmp_path / "m.pen", pipeline={
        "image": "decode gray | patches 8 | tensor f16", "mask": "decode | patches 8 | tensor i64",
        "boxes": "boxes | ragged",
    }, **settings) as loader:
        for batch in loader:
            n = 24 // batch.info.length
            assert batch.image.shape == (n, batch.info.length, 64)
            assert batch.mask.shape == (n, batch.info.length, 64)
            assert batch.mask.dtype == np.int64 and batch.image.dtype == np.float16
            assert (batch.mask_sizes == batch.image_sizes).all()
            for i in range(n):
                down, across = batch.image_sizes[i].tolist()
                assert batch.boxes[i].tolist() == [[0, 0, across * 8, down * 8]]


# ---- the order


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("world", (1, 2, 3))
def test_every_sample_once_and_ranks_have_the_same_lengths(pack, order, world):
    for epoch in range(2):
        ranks = [load(pack, epoch, order=order, rank=rank, world_size=world)
                 for rank in range(world)]
        seen = [s for rank in ranks for batch in rank
                for s, valid in zip(batch[2], batch[3], strict=True) if valid]
        assert sorted(seen) == list(range(N))
        lengths = [[batch[0] for batch in rank] for rank in ranks]
        assert lengths == [lengths[0]] * world
        for i in range(0, len(lengths[0]) - 3, 4):
            assert sorted(lengths[0][i:i + 4]) == list(LENGTHS)


def test_the_last_batch_is_dropped_and_counted(pack):
    with opened(pack, last_batch="drop") as loader:
        found = taken(loader)
        assert all(all(batch[3]) for batch in found) and len(found) == len(loader)
        assert sum(len(batch[2]) for batch in found) + loader.dropped == N
    with opened(pack) as loader:
        assert loader.dropped == 0 and len(loader) == len(found) + 1


def test_threads_make_no_difference(pack):
    pipeline = "decode | random_resized_crop 32,48 | patches 8 | color_jitter 0.4 | tensor"
    one = load(pack, 1, threads=1, pipeline=pipeline)
    assert one == load(pack, 1, threads=4, pipeline=pipeline)
    assert one != load(pack, 1, threads=4, pipeline=pipeline, seed=6)


# ---- states


@pytest.mark.parametrize("order", ("random", "shuffle"))
def test_a_run_resumes_after_every_step(pack, order):
    with opened(pack, order=order) as loader:
        loader.set_epoch(3)
        states, batches = [], []
        for batch in loader:
            batches.extend(taken([batch]))
            states.append(loader.state_dict())
    assert [state["step"] for state in states] == list(range(1, len(states) + 1))
    for i, state in enumerate(states[:-1]):
        assert load(pack, 3, state, order=order) == batches[i + 1:]
    with opened(pack, order=order) as loader:
        loader.load_state_dict(states[-1])
        assert taken(loader) == []
        assert taken(loader) == load(pack, 4, order=order)


def test_other_ranks_continue_without_loss(pack):
    with opened(pack) as loader:
        passed = iter(loader)
        before = taken([next(passed) for _ in range(3)])
        state = loader.state_dict()
    lengths = [batch[0] for batch in load(pack)]
    for world, tokens in ((2, TOKENS), (2, TOKENS // 2), (3, 100)):
        settings = {"world_size": world, "tokens": tokens}
        with opened(pack, **settings) as loader, pytest.raises(
                penstock.InvalidError, match="global_batch"):
            loader.load_state_dict(state)
        ranks = [load(pack, 0, state, strict=False, rank=rank, **settings)
                 for rank in range(world)]
        seen = [s for batches in (before, *ranks) for batch in batches
                for s, valid in zip(batch[2], batch[3], strict=True) if valid]
        assert sorted(seen) == list(range(N))
        for batches in ranks:
            n = min(len(batches), len(lengths) - 3)
            assert [batch[0] for batch in batches][:n] == lengths[3:3 + n]


def test_states_with_and_without_a_budget(pack):
    with opened(pack) as loader:
        next(iter(loader))
        state = loader.state_dict()
        with pytest.raises(penstock.InvalidError, match="step is"):
            loader.load_state_dict({**state, "step": state["position"] + 1})
        with pytest.raises(penstock.InvalidError, match="expected global_batch with place"):
            loader.load_state_dict({k: v for k, v in state.items() if k != "step"})
        other = opened(pack, lengths=LENGTHS[::-1])
        with other, pytest.raises(penstock.InvalidError, match="buckets or lengths"):
            other.load_state_dict(state)
    plain = penstock.Loader(pack, 4, order="random", seed=5, output="numpy", rank=0, world_size=1,
                            pipeline="decode | resize 8,8")
    with plain:
        with pytest.raises(penstock.InvalidError, match="with a token budget"):
            plain.load_state_dict(state)
        plain.load_state_dict(state, strict=False)
        next(iter(plain))
        assert plain.state_dict()["position"] == state["position"] + 4
        state = plain.state_dict()
    with opened(pack) as loader:
        loader.load_state_dict(state, strict=False)
        next(iter(loader))
        assert loader.state_dict()["step"] == 1


# ---- what is refused


@pytest.mark.parametrize(("settings", "message"), [
    ({"batch_size": 4}, "found both"),
    ({"lengths": None}, "found only tokens"),
    ({"tokens": None}, "found only lengths"),
    ({"lengths": []}, "1 to 64 numbers, found 0"),
    ({"lengths": range(1, 66), "tokens": 1000}, "1 to 64 numbers, found 65"),
    ({"lengths": [4, 65]}, "entry 1: expected 1 to 64, found 65"),
    ({"lengths": [0]}, "entry 0"),
    ({"tokens": 0}, "tokens"),
    ({"tokens": 2**32 - 1, "lengths": [1]}, "at most 1048576 samples"),
    ({"buckets": [(8, 8)]}, "found both"),
    ({"pipeline": "decode | resize 8,8"}, "use 'patches 16'"),
    ({"pipeline": "decode | patches 8 length=4"}, "use 'patches 16'"),
    ({"pipeline": "decode | patches 8 | resize 8,8"}, "after patches"),
    ({"pipeline": "decode | patches 8 | patches 8"}, "after patches"),
    ({"pipeline": "decode | patches 8 | tensor u8 nchw"}, "channels last"),
    ({"pipeline": "decode | patches 8 | repeat 2"}, "several views"),
    ({"pipeline": "decode | five_crop 8 | patches 8"}, "several views"),
    ({"pipeline": "decode | patches 8 | pad_batch"}, "padded to their length"),
    ({"pipeline": "decode | patches 8 | mixup 0.2"}, "does not work with patches"),
    ({"pipeline": {"image": "decode | patches 8", "label": "one_hot 3",
                   "b": [penstock.ops.source("image"), penstock.ops.decode(),
                         penstock.ops.center_crop(8), penstock.ops.mixup(0.2)]}},
     "mixup does not work with a token budget"),
    ({"pipeline": "decode | cover bucket | patches 8"}, "no buckets"),
    ({"tokens": None, "lengths": None, "batch_size": 4}, "no token budget"),
    ({"memory": "8MiB", "tokens": 2**20}, "memory: expected at least"),
])
def test_refused(pack, settings, message):
    with pytest.raises(penstock.Error, match=message):
        opened(pack, **settings)


@pytest.mark.parametrize("settings", [
    {"pipeline": "decode | resize 8,8 | patches 16"},
    {"pipeline": "decode | patches 8 | tensor u8"},
    {"pipeline": {}},
    {"tokens": None, "lengths": None, "batch_size": 4, "pipeline": "decode | patches 8 length=256"},
    {"tokens": None, "lengths": None, "batch_size": 256, "pipeline": None},
])
def test_advice_is_followed(pack, settings):
    if isinstance(settings["pipeline"], dict):
        view = [penstock.ops.source("image"), penstock.ops.decode(), penstock.ops.patches(8)]
        settings = {"pipeline": {"a": view, "b": view}}
    with opened(pack, **settings) as loader:
        next(iter(loader))


def test_batch_size_or_tokens(pack):
    with pytest.raises(TypeError, match="batch_size=256, or tokens= and lengths="):
        penstock.Loader(pack)
    with pytest.raises(penstock.InvalidError, match="mixture"):
        opened(penstock.mix([(pack, 1.0), (pack, 1.0)]))
    with pytest.raises(penstock.InvalidError, match="no token budget"):
        penstock.Dataset(pack, "decode | patches 8")
    one = penstock.Dataset(pack, "decode | patches 8 length=4", output="numpy")[0]
    assert one[0].shape == (4, 192)
