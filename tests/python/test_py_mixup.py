# SPDX-License-Identifier: Apache-2.0
"""mixup, cutmix and soft labels, against NumPy with the same draws."""

import pathlib
import re
import sys

import pytest
from py_tools import encoded, need_penstock

penstock = need_penstock()
np = pytest.importorskip("numpy")

from penstock import ops  # noqa: E402

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "long"))
import _draws  # noqa: E402

N, CLASSES, SIDE = 44, 7, 24
DTYPES = {"u8": np.uint8, "f16": np.float16, "f32": np.float32}
CROP = f"decode | random_crop {SIDE} | hflip"


def picture(i):
    from PIL import Image

    rng = np.random.default_rng(i)
    shape = (30, 40, 3) if i % 3 else (40, 30, 3)
    return Image.fromarray(rng.integers(0, 256, shape, np.uint8))


@pytest.fixture(scope="module")
def pack(tmp_path_factory):
    path = tmp_path_factory.mktemp("mixup") / "a.pen"
    rows = (
        {"image": encoded(picture(i), "PNG"), "label": i % CLASSES, "odd": i - 1} for i in range(N)
    )
    schema = {"image": "image", "label": "i64", "odd": "i64"}
    penstock.write(path, rows, schema, block_samples=4)
    return penstock.open(path)


def load(pack, pipeline, batch_size=8, **settings):
    settings = {"threads": 2, "memory": "64MiB", "output": "numpy", "seed": 5,
                "last_batch": "pad", **settings}
    return penstock.Loader(pack, batch_size, pipeline=pipeline, **settings)


def text(image, label=f"one_hot {CLASSES}"):
    return f"image: {image}; label: {label}"


def batches(pack, pipeline, *args, **settings):
    with load(pack, pipeline, *args, **settings) as loader:
        for _ in range(2):
            for batch in loader:
                yield {k: np.array(v) for k, v in batch._asdict().items()}


def weigh(a, b, share):
    own, other = np.float32(share), np.float32(1 - share)
    if a.dtype == np.uint8:
        mixed = own * a.astype(np.float32) + other * b.astype(np.float32) + np.float32(0.5)
        return mixed.astype(np.uint8)
    return (own * a.astype(np.float32) + other * b.astype(np.float32)).astype(a.dtype)


def mixed(images, labels, draws, layout, valid):
    """Of a batch: images and labels by the draws of its samples; what pads is not mixed."""
    half = len(images) // 2
    new_images, new_labels = images.copy(), labels.copy()
    for i, (kind, share, box) in enumerate(draws):
        k = (i + half) % len(images)
        if max(i, k) >= valid:
            continue
        if kind == "mixup":
            new_images[i] = weigh(images[i], images[k], share)
        if kind == "cutmix":
            rows, columns = slice(box.y, box.y + box.h), slice(box.x, box.x + box.w)
            place = (..., rows, columns) if layout == "nchw" else (rows, columns)
            new_images[i][place] = images[k][place]
        if kind:
            new_labels[i] = weigh(labels[i], labels[k], share)
    return new_images, new_labels


def draws_of(epoch, position, n, per, mixup, cutmix):
    def draw(at):
        return _draws.mixing(_draws.Draw(5, epoch, at, "mixup"), SIDE, SIDE, mixup, cutmix)

    return [draw(position + i) for i in range(n)] if per == "sample" else [draw(position)] * n


@pytest.mark.parametrize("per", ["batch", "sample"])
@pytest.mark.parametrize("layout", ["nhwc", "nchw"])
@pytest.mark.parametrize("dtype", DTYPES)
def test_as_numpy(pack, dtype, layout, per):
    store = f"{CROP} | tensor {dtype} {layout}"
    target = f"one_hot {CLASSES} label_smoothing=0.1 | tensor {'f16' if dtype == 'f16' else 'f32'}"
    mix = f"{store} | mixup alpha=0.8 p=0.4 per={per} | cutmix alpha=1 p=0.3 per={per}"
    kinds = set()
    plain = batches(pack, text(store, target))
    for n, (a, b) in enumerate(zip(plain, batches(pack, text(mix, target)), strict=True)):
        epoch, position = divmod(n, -(-N // 8))
        draws = draws_of(epoch, position * 8, 8, per, (0.8, 0.4), (1, 0.3))
        kinds |= {kind for kind, _, _ in draws}
        images, labels = mixed(a["image"], a["label"], draws, layout, N - position * 8)
        assert np.array_equal(b["image"], images)
        assert np.array_equal(b["label"], labels)
        assert b["image"].dtype == DTYPES[dtype]
    assert kinds == {None, "mixup", "cutmix"}


def test_bf16_is_rounded_once(pack):
    torch = pytest.importorskip("torch")
    store = f"{CROP} | tensor bf16"
    label = f"one_hot {CLASSES} | tensor bf16"
    with load(pack, text(store, label), output="torch") as loader:
        plain = [batch.image.clone() for batch in loader]
    with load(pack, text(f"{store} | mixup 0.8", label), output="torch") as loader:
        for n, batch in enumerate(loader):
            _, share, _ = draws_of(0, n * 8, 1, "batch", (0.8, 1), (1, 0))[0]
            a = plain[n].float().numpy()
            weighed = weigh(a, np.roll(a, 4, axis=0), share)
            weighed[max(N - n * 8 - 4, 0) : 4] = a[max(N - n * 8 - 4, 0) : 4]
            weighed[N - n * 8 :] = a[N - n * 8 :]
            expected = torch.from_numpy(weighed).bfloat16()
            assert torch.equal(batch.image, expected)
            assert batch.label.dtype == torch.bfloat16


@pytest.mark.parametrize("layout", ["nthwc", "ncthw", "ntchw"])
def test_a_clip_has_one_box(tmp_path, layout):
    """All frames and channels of a clip, and nothing outside of the box."""
    rows = (
        {"clip": [encoded(picture(6 * i + k), "PNG") for k in (1, 2)], "label": i} for i in range(8)
    )
    penstock.write(tmp_path / "a.pen", rows, {"clip": "clip", "label": "i64"})
    pack = penstock.open(tmp_path / "a.pen")
    clip = f"decode | clip 2 | center_crop {SIDE} | tensor u8 {layout}"
    label = "label: one_hot 8"
    plain = next(batches(pack, f"clip: {clip}; {label}"))
    one = next(batches(pack, f"clip: {clip} | cutmix; {label}"))
    _, share, box = draws_of(0, 0, 1, "batch", (1, 0), (1, 1))[0]
    a, b = plain["clip"], np.roll(plain["clip"], 4, axis=0)
    if layout == "nthwc":
        a, b, found = (np.moveaxis(x, 4, 2) for x in (a, b, one["clip"]))
    else:
        found = one["clip"]
    expected, place = a.copy(), (..., slice(box.y, box.y + box.h), slice(box.x, box.x + box.w))
    expected[place] = b[place]
    assert np.array_equal(found, expected)
    labels = weigh(plain["label"], np.roll(plain["label"], 4, axis=0), share)
    assert np.array_equal(one["label"], labels)


def test_label_smoothing_alone(pack):
    pipeline = text(CROP, f"one_hot {CLASSES} label_smoothing=0.25")
    one = next(batches(pack, pipeline, order="sequential"))
    expected = np.full((8, CLASSES), 0.25 / CLASSES, np.float32)
    expected[np.arange(8), np.arange(8) % CLASSES] = np.float32(0.75 + 0.25 / CLASSES)
    assert np.array_equal(one["label"], expected)
    bare = next(batches(pack, "label: one_hot 7", order="sequential"))["label"]
    assert np.array_equal(bare, np.eye(7, dtype=np.float32)[np.arange(8) % 7])


MIX = text(f"{CROP} | tensor f32 | mixup 0.8 p=0.5 per=sample | cutmix p=0.5 per=sample")
MIX_BATCH = text(f"{CROP} | tensor f32 | mixup 0.8 p=0.5 | cutmix p=0.5")


@pytest.mark.parametrize("pipeline", [MIX, MIX_BATCH], ids=["sample", "batch"])
@pytest.mark.parametrize("order", ["sequential", "random", "shuffle", "sticky"])
def test_the_same_for_any_ranks_and_threads(pack, pipeline, order):
    settings = {"order": order, "shuffle_buffer": 24}
    whole = list(batches(pack, pipeline, 24, threads=1, **settings))
    for world, threads in ((2, 1), (3, 2), (4, 2)):
        settings |= {"world_size": world, "threads": threads}
        parts = [list(batches(pack, pipeline, 24 // world, rank=rank, **settings))
                 for rank in range(world)]
        for n, batch in enumerate(whole):
            for name in ("image", "label"):
                ours = np.stack([part[n][name] for part in parts], 1)
                assert np.array_equal(ours.reshape(batch[name].shape), batch[name])


def test_resume_gives_the_same_batches(pack):
    whole = list(batches(pack, MIX))
    with load(pack, MIX) as loader:
        it = iter(loader)
        for _ in range(3):
            next(it)
        state = loader.state_dict()
    with load(pack, MIX, threads=1) as loader:
        loader.load_state_dict(state)
        for n, batch in enumerate(loader, 3):
            assert np.array_equal(batch.image, whole[n]["image"])
            assert np.array_equal(batch.label, whole[n]["label"])
    with load(pack, MIX.replace("0.8", "0.7")) as loader, pytest.raises(penstock.InvalidError):
        loader.load_state_dict(state)


def test_views_have_draws_of_their_own(pack):
    pipeline = (
        f"a = image: {CROP} | tensor f32 | mixup; b = image: {CROP} | tensor f32 | mixup; "
        f"la = label: one_hot {CLASSES} of=a; lb = label: one_hot {CLASSES} of=b"
    )
    one = next(batches(pack, pipeline))
    assert not np.array_equal(one["la"], one["lb"])
    draw = _draws.Draw(5, 0, 0, "mixup", view="b")
    share = _draws.mixing(draw, 1, 1, (1, 1))[1]
    assert np.isclose(one["lb"].max(1), max(share, 1 - share)).any()


def test_functions_run_after_mixing(pack):
    def note(sample, rng):
        return {**sample, "total": np.float64(sample["label"].sum())}

    image = [ops.decode(), ops.random_crop(SIDE), ops.tensor("f32"), ops.mixup()]
    pipeline = {"image": image, "label": [ops.one_hot(CLASSES)]}
    plain = next(batches(pack, pipeline))
    with load(pack, [pipeline, ops.python(note)]) as loader:
        batch = next(iter(loader))
    assert np.array_equal(batch.image, plain["image"])
    assert np.allclose(batch.total, 1)


def test_bad_labels(pack):
    pipeline = text(CROP, "one_hot 7").replace("label:", "odd:")
    message = r"sample 0 '.*': field 'odd': one_hot: expected a class number from 0 to 6, found -1"
    with load(pack, pipeline, order="sequential") as loader, pytest.raises(
        penstock.DecodeError, match=message
    ) as info:
        list(loader)
    assert info.value.sample == 0
    mix = text(f"{CROP} | mixup", "one_hot 43").replace("label:", "odd:")
    with load(pack, mix, order="sequential", on_bad="substitute") as loader:
        rows = np.concatenate([np.array(b.odd) for b in loader])
        assert loader.bad_samples()[0].sample == 0
    assert np.allclose(rows.sum(1), 1)


REFUSED = [
    (f"{CROP} | mixup", "label: tensor", "labels of 'image' must be mixed too; add a field with"),
    (f"{CROP} | mixup | cutmix", "label: one_hot 7", "probabilities of mixup and cutmix are 1"),
    (f"{CROP} | mixup p=0.5 | cutmix p=0.5 per=sample", "label: one_hot 7", "per differs"),
    (f"{CROP} | mixup p=0.1 | mixup p=0.1", "label: one_hot 7", "mixup is given twice"),
    (f"{CROP} | mixup | tensor", "label: one_hot 7", "must be the last operations; move tensor"),
    (f"{CROP} | mixup | repeat 2", "label: one_hot 7", "repeat returns several results"),
    (f"{CROP} | repeat 2 | mixup", "label: one_hot 7", "repeat returns several results"),
    ("decode | resize max_side=20 | mixup", "label: one_hot 7", "different sizes cannot be mixed"),
    ("decode | resize max_side=20 | mixup | pad_batch", "label: one_hot 7", "replace pad_batch"),
    (CROP, "label: one_hot 7 of=image", "no image 'image' with mixup or cutmix"),
    (CROP, "label: one_hot 7 | tensor u8", "cannot be u8; expected f32, f16 or bf16"),
    (CROP, "label: tensor | one_hot 7", "one_hot must be the first operation"),
    (f"{CROP} | one_hot 7", "label: tensor", "one_hot cannot be applied to an image"),
]


@pytest.mark.parametrize(("image", "label", "message"), REFUSED)
def test_refused(pack, image, label, message):
    with pytest.raises(penstock.InvalidError, match=re.escape(message)):
        load(pack, f"image: {image}; {label}")


FOLLOWED = [
    (f"{CROP} | mixup", "label: one_hot 7 | tensor f32"),
    (f"{CROP} | mixup p=0.5 | cutmix p=0.5", "label: one_hot 7"),
    (f"{CROP} | mixup p=0.1 per=sample | cutmix p=0.9 per=sample", "label: one_hot 7"),
    (f"{CROP} | tensor | mixup", "label: one_hot 7"),
    ("decode | resize max_side=20 | center_crop 8 | mixup", "label: one_hot 7"),
    ("decode | resize 8,8 | mixup", "label: one_hot 7"),
]


@pytest.mark.parametrize(("image", "label"), FOLLOWED)
def test_advice_can_be_followed(pack, image, label):
    one = next(batches(pack, f"image: {image}; {label}"))
    assert one["label"].shape == (8, 7)


def test_pairs_need_an_even_batch(pack):
    with pytest.raises(penstock.InvalidError, match="expected an even number, found 7"):
        load(pack, MIX, 7)
    with pytest.raises(penstock.InvalidError, match="a single sample has no partner"):
        penstock.Dataset(pack, MIX)[0]


def test_two_mixed_images_need_a_name(pack):
    pipeline = f"a = image: {CROP} | mixup; b = image: {CROP} | mixup; label: one_hot 7"
    with pytest.raises(penstock.InvalidError, match="mixes 2 images; name the one .* of=a"):
        load(pack, pipeline)
    with pytest.raises(penstock.InvalidError, match="labels of 'b' must be mixed too"):
        load(pack, pipeline + " of=a")


def test_buckets_pair_neighbours(pack):
    crop = "decode | random_resized_crop bucket | tensor f32"
    settings = {"buckets": [(16, 24), (24, 16)]}
    plain = list(batches(pack, text(crop), **settings))
    whole = list(batches(pack, text(f"{crop} | mixup"), **settings))
    for a, b in zip(plain, whole, strict=True):
        pairs = np.arange(8) ^ 1
        moved = ~np.isclose(a["label"], a["label"][pairs]).all(1)
        share = [max(row[row > 0]) for row in b["label"][moved]]
        assert np.allclose(share, share[0])
        for weight in (share[0], 1 - share[0]):
            ours = a["image"] * weight + a["image"][pairs] * (1 - weight)
            if np.allclose(ours, b["image"], atol=1e-5):
                break
        else:
            raise AssertionError("neighbours are not mixed")


@pytest.mark.parametrize("order", ["random", "shuffle"])
def test_buckets_pair_the_same_samples_on_any_number_of_ranks(pack, order):
    """Also in the groups that are filled up."""
    settings = {"buckets": [(16, 24), (24, 16)], "order": order, "shuffle_buffer": 6}
    pipeline = text("decode | random_resized_crop bucket | tensor f32 | mixup per=sample")
    one = list(batches(pack, pipeline, 8, **settings))
    parts = [list(batches(pack, pipeline, 4, rank=rank, world_size=2, **settings))
             for rank in range(2)]
    for whole, *ranks in zip(one, *parts, strict=True):
        for name in ("image", "label"):
            assert np.array_equal(whole[name], np.concatenate([part[name] for part in ranks]))


def test_shares_are_beta(pack):
    """Kolmogorov and Smirnov; the class of a sample is its number."""
    image = "image: decode | center_crop 2 | mixup 0.5 per=sample"
    pipeline = f"{image}; odd: one_hot 43"
    found = []
    with load(pack, pipeline, 42, subset=range(1, 43), return_info=True) as loader:
        for _ in range(24):
            for batch in loader:
                samples = np.array(batch.info.samples)
                found += list(np.array(batch.odd)[np.arange(42), samples - 1])
    cdf = 2 / np.pi * np.arcsin(np.sqrt(np.sort(found)))
    steps = np.arange(len(found)) / len(found)
    assert np.abs(cdf - steps).max() < 1.95 / np.sqrt(len(found))
