# SPDX-License-Identifier: Apache-2.0
"""Images of different sizes in a batch: as a list, or padded to the largest."""

import re

import pytest
from py_tools import encoded, need_penstock

penstock = need_penstock()
np = pytest.importorskip("numpy")

from penstock import ops  # noqa: E402

SIZES = [
    (90, 60), (60, 90), (64, 63), (200, 20), (20, 200), (33, 47), (1, 400), (400, 1), (128, 96),
]  # fmt: skip
SCHEMA = {
    "image": "image", "mask": "mask", "boxes": "f32[*,4] boxes xyxy absolute", "label": "i64",
}  # fmt: skip


def picture(i):
    from PIL import Image

    width, height = SIZES[i % len(SIZES)]
    rng = np.random.default_rng(i)
    small = Image.fromarray(rng.integers(0, 256, (4, 4, 3), np.uint8))
    return small.resize((width, height), Image.Resampling.BICUBIC)


def sample(i):
    width, height = SIZES[i % len(SIZES)]
    image = picture(i)
    kind = ("JPEG", "PNG")[i // len(SIZES) % 2]
    return {
        "image": encoded(image, kind), "mask": encoded(image.convert("L"), "PNG"),
        "boxes": np.array([[0, 0, width, height], [width / 4, height / 4, width / 2, height / 2]]),
        "label": i,
    }  # fmt: skip


@pytest.fixture(scope="module")
def pack(tmp_path_factory):
    path = tmp_path_factory.mktemp("sizes") / "a.pen"
    rows = (sample(i) for i in range(3 * len(SIZES)))
    penstock.write(path, rows, SCHEMA, block_samples=4)
    return penstock.open(path)


def load(pack, pipeline, batch_size=9, **settings):
    settings = {"threads": 1, "memory": "64MiB", "output": "numpy", **settings}
    return penstock.Loader(pack, batch_size, pipeline=pipeline, **settings)


def sizes_of(images, first=False):
    """Height and width of each image of a list; `first`: channels come first."""
    return np.array([image.shape[1:] if first else image.shape[:2] for image in images])


def with_sizes(batches, first=False):
    """Image, sizes and the other fields: a padded batch has its sizes, those of a list are its
    shapes."""
    for image, *rest in batches:
        yield image, *([sizes_of(image, first)] if isinstance(image, list) else []), *rest


def expected_size(width, height, low, high, multiple=1, enlarge=True):
    """torchvision's rule; no side is 0, and both are rounded to the nearest multiple."""
    short, long = min(width, height), max(width, height)
    if low is None:
        new_short, new_long = high * short // long, high
    else:
        new_short, new_long = low, low * long // short
        if high is not None and new_long > high:
            new_short, new_long = high * new_short // new_long, high
    if not enlarge and new_long >= long:
        new_short, new_long = short, long

    def rounded(side):
        n = max(1, (max(side, 1) + multiple // 2) // multiple)
        return min(n, high // multiple) * multiple

    new_short, new_long = rounded(new_short), rounded(new_long)
    return (new_long, new_short) if height >= width else (new_short, new_long)


FORMS = [
    ("resize min_side=48 max_side=80", (48, 80, 1)),
    ("resize max_side=50", (None, 50, 1)),
    ("resize min_side=100 max_side=60", (100, 60, 1)),
    ("resize min_side=48 max_side=80 to_multiple_of=32", (48, 80, 32)),
    ("resize max_side=90 to_multiple_of=7", (None, 90, 7)),
    ("resize min_side=48 max_side=80 enlarge=no", (48, 80, 1, False)),
    ("resize max_side=90 enlarge=no", (None, 90, 1, False)),
    ("resize min_side=63 max_side=400 enlarge=no", (63, 400, 1, False)),
    ("resize min_side=48 max_side=80 to_multiple_of=8 enlarge=no", (48, 80, 8, False)),
]


@pytest.mark.parametrize(("form", "rule"), FORMS)
def test_sizes_follow_torchvisions_rule(pack, form, rule):
    loader = load(pack, f"decode | {form}")
    assert loader.fields == ("image", "label")
    for image, label in loader:
        assert isinstance(image, list) and len(image) == 9
        for one, i in zip(image, label):
            assert one.shape == (*expected_size(*SIZES[i % len(SIZES)], *rule), 3)


def same_as_fixed(pack, i, pipeline, size, **settings):
    """Sample i with a pipeline whose `{}` is replaced by a resize to exactly this size."""
    text = pipeline.format(f"resize {size[0]},{size[1]}")
    return penstock.Dataset(pack, text, **{"output": "numpy", **settings})[int(i)].image


@pytest.mark.parametrize("pipeline", [
    "decode | {} | tensor u8 nhwc",
    "decode shrink=auto | {} | hflip | tensor u8 nchw",
    "decode | hflip | {} | color_jitter 0.4 0.4 0.2 0.1 | vflip | normalize | tensor f32 nchw",
    "decode gray | {} | random_erasing 1 | tensor f16 nhwc",
    "decode | {} | normalize | random_erasing 1 value=7 | tensor f32 nhwc",
    "decode | {} bicubic | normalize | tensor f32 nchw | pad_batch 8 value=-2.5",
])  # fmt: skip
@pytest.mark.parametrize("padded", [False, True])
def test_pixels_are_those_of_an_exact_resize(pack, pipeline, padded):
    pipeline, _, pad = pipeline.partition(" | pad_batch")
    text = pipeline.format("resize min_side=24 max_side=40")
    loader = load(pack, text + (f" | pad_batch{pad}" if padded else ""), memory="128MiB")
    first = "nchw" in pipeline
    for images, sizes, label in with_sizes(loader, first):
        if padded:
            unit, value = (8, -2.5) if pad else (1, 0)
            sides = tuple(-(-side // unit) * unit for side in sizes.max(0))
            assert images.shape[2:] == sides if first else images.shape[1:3] == sides
        for i, image, (height, width) in zip(label, images, sizes):
            if padded:
                box = (slice(None),) * first + (slice(height), slice(width))
                rest = np.ones(image.shape, bool)
                rest[box] = False
                assert (image[rest] == value).all()
                image = image[box]
            assert np.array_equal(image, same_as_fixed(pack, i, pipeline, (height, width)))


@pytest.mark.parametrize("mode", ["raw", "encode", "mix", "smart"])
def test_other_modes_of_storage(tmp_path, mode):
    rows = ({"image": encoded(picture(i), "JPEG"), "label": i} for i in range(9))
    penstock.write(tmp_path / "a.pen", rows, {"image": "image", "label": "i64"}, mode=mode)
    pack = penstock.open(tmp_path / "a.pen")
    pipeline = "decode shrink=auto | {} | hflip | tensor u8 nchw"
    text = pipeline.format("resize min_side=24 max_side=40")
    images, label = next(iter(load(pack, text)))
    dense, sizes, _ = next(iter(load(pack, text + " | pad_batch")))
    for i, image, padded, (height, width) in zip(label, images, dense, sizes):
        assert (height, width) == expected_size(*SIZES[i], 24, 40)
        assert np.array_equal(image, same_as_fixed(pack, i, pipeline, (height, width)))
        assert np.array_equal(image, padded[:, :height, :width])


def test_masks_and_boxes_follow(pack):
    resize = "resize min_side=24,32,40 max_side=64 nearest | hflip"
    loader = load(pack, {
        "image": f"decode gray | {resize}", "mask": f"decode | {resize} | tensor i64",
        "boxes": "boxes min_size=0 drop=no",
    })  # fmt: skip
    assert loader.fields == ("image", "mask", "boxes")
    for image, mask, boxes in loader:
        for one, of_mask, rows in zip(image, mask, boxes):
            height, width = of_mask.shape
            assert one.shape == (height, width, 1)
            assert of_mask.dtype == np.int64
            assert np.allclose(rows[0], [0, 0, width, height])
            assert np.allclose(rows[1][1::2], [height / 4, height / 2])
            assert min(abs(rows[1][0] - width / 4), abs(rows[1][0] - width / 2)) < 1e-4


def test_a_list_of_min_sides_is_drawn_from(pack):
    sides = [16, 24, 32]
    text = ",".join(map(str, sides))
    loader = load(pack, f"decode | resize min_side={text} max_side=400", seed=3)
    found, again = [], []
    for seen in (found, again):
        loader.set_epoch(1)
        for _, sizes, label in with_sizes(loader):
            seen += [int(min(size)) for size, i in zip(sizes, label) if i % 9 in (0, 1, 2, 5, 8)]
    assert set(found) == set(sides) and found == again
    loader.set_epoch(2)
    assert [int(min(size)) for _, sizes, label in with_sizes(loader) for size, i in
            zip(sizes, label) if i % 9 in (0, 1, 2, 5, 8)] != found  # fmt: skip


def contents(loader):
    return [
        (b"".join(one.tobytes() for one in image), sizes.tobytes(), label.tobytes())
        for image, sizes, label in with_sizes(loader, first=True)
    ]


@pytest.mark.parametrize("pad", ["", " | pad_batch to_multiple_of=16 value=3"])
def test_batches_depend_neither_on_threads_nor_on_restarts(pack, pad):
    text = f"decode | resize min_side=24,40 max_side=64 | hflip | tensor u8 nchw{pad}"
    settings = {"order": "random", "seed": 5, "batch_size": 4}
    want = contents(load(pack, text, **settings))
    for threads in (2, 8):
        assert contents(load(pack, text, threads=threads, **settings)) == want
    loader = load(pack, text, threads=2, **settings)
    batches = iter(loader)
    for _ in range(3):
        next(batches)
    state = loader.state_dict()
    resumed = load(pack, text, threads=1, **settings)
    resumed.load_state_dict(state)
    assert contents(resumed) == want[3:]


def test_views_of_one_image_have_their_own_sizes(pack):
    loader = load(pack, "a = image: decode | resize max_side=40; "
                        "b = image: decode | resize min_side=8 max_side=20 | pad_batch; "
                        "c = image: decode | resize 12,10", batch_size=3)  # fmt: skip
    assert loader.fields == ("a", "b", "b_sizes", "c")
    for a, b, b_sizes, c in loader:
        assert {max(one.shape) for one in a} == {40}
        assert b.shape[1:3] == tuple(b_sizes.max(0)) and c.shape == (3, 12, 10, 3)


@pytest.mark.parametrize("pad", ["", " | pad_batch 8"])
def test_a_mixture_of_packs(pack, tmp_path, pad):
    rows = [{"image": encoded(picture(i), "PNG"), "label": 100 + i} for i in range(9)]
    penstock.write(tmp_path / "b.pen", rows, {"image": "image", "label": "i64"})
    mixed = penstock.mix([(pack, 2), (penstock.open(tmp_path / "b.pen"), 1)])
    loader = load(mixed, f"decode | resize min_side=24 max_side=40{pad}", batch_size=6)
    image, sizes, label, source = next(with_sizes(loader))
    assert set(source) == {0, 1}
    for one, size, i in zip(image, sizes, label):
        assert tuple(size) == expected_size(*SIZES[i % 100 % len(SIZES)], 24, 40)
        assert pad or one.shape == (*size, 3)


def test_samples_of_a_dataset(pack):
    for pad in ("", " | pad_batch 32"):
        dataset = penstock.Dataset(pack, f"decode | resize min_side=24 max_side=40{pad}",
                                   output="numpy")  # fmt: skip
        for i in range(9):
            height, width = expected_size(*SIZES[i], 24, 40)
            want = (-(-height // 32) * 32, -(-width // 32) * 32) if pad else (height, width)
            assert dataset[i].image.shape == (*want, 3)
            assert not pad or tuple(dataset[i].image_sizes) == (height, width)


def test_torch_tensors_are_views_of_the_batch(pack):
    torch = pytest.importorskip("torch")
    loader = load(pack, "decode | resize min_side=24 max_side=40 | tensor u8 nhwc", output="torch")
    image, label = next(iter(loader))
    for one, i in zip(image, label.tolist()):
        assert one.shape == (3, *expected_size(*SIZES[i], 24, 40))
    first = min(one.data_ptr() for one in image)
    stride = 24 * 40 * 3
    assert [one.data_ptr() - first for one in image] == [i * stride for i in range(len(image))]
    dense, sizes, _ = next(iter(load(
        pack, "decode | resize min_side=24 max_side=40 | tensor bf16 nchw | pad_batch value=1.5",
        output="torch")))  # fmt: skip
    assert dense.dtype == torch.bfloat16 and dense.shape == (9, 3, *sizes.max(0).values.tolist())
    for one, (height, width) in zip(dense, sizes.tolist()):
        assert (one[:, height:] == 1.5).all() and (one[:, :, width:] == 1.5).all()


def test_broken_samples_are_replaced(tmp_path):
    rows = [{"image": encoded(picture(i), "JPEG"), "label": i} for i in range(9)]
    path = tmp_path / "a.pen"
    penstock.write(path, rows, {"image": "image", "label": "i64"})
    shard = next(path.glob("*/*.shard"))
    content = bytearray(shard.read_bytes())
    content[content.find(rows[4]["image"]) + 50] ^= 1
    shard.write_bytes(content)
    for pad in ("", " | pad_batch"):
        loader = load(path, f"decode | resize max_side=40{pad}", on_bad="substitute")
        image, sizes, label = next(with_sizes(loader))
        assert len(loader.bad_samples()) == 1 and label[4] != 4
        for one, size, i in zip(image, sizes, label):
            assert tuple(size) == expected_size(*SIZES[i], None, 40)
            assert pad or one.shape == (*size, 3)


def test_functions_per_sample(pack):
    def height(sample, rng):
        return {"n": sample["image"].shape[0]}

    loader = load(pack, [ops.decode(), ops.resize(min_side=16, max_side=24), ops.python(height)])
    for batch in loader:
        assert batch.n.shape == (9,) and batch.n.max() == 24


@pytest.mark.parametrize(("pipeline", "message"), [
    ("decode | resize", "column 10: resize needs size, or min_side and max_side"),
    ("decode | resize 24 max_side=48",
     "size excludes min_side, max_side, to_multiple_of and enlarge"),
    ("decode | resize 24 48", "size excludes min_side"),
    ("decode | resize 24 enlarge=no", "size excludes min_side"),
    ("decode | resize enlarge=no", "resize needs size, or min_side and max_side"),
    ("decode | resize to_multiple_of=8", "resize needs size, or min_side and max_side"),
    ("decode | resize min_side=24", "for images of different sizes 'resize min_side=800 max_side="),
    ("decode | resize 24", "the size of the images has no bound"),
    ("decode | resize max_side=24 | resize 16", "the size of the images has no bound"),
    ("decode | resize max_side=24 to_multiple_of=32",
     "to_multiple_of: expected at most max_side (24), found 32"),
    ("decode | resize max_side=20000", "max_side: expected 1 to 16384"),
    ("decode | resize max_side=24 | repeat 2", "repeat needs results of one size"),
    ("decode | resize 24,24 | pad_batch", "pad_batch: all results have 24 x 24 pixels; remove it"),
    ("decode | pad_batch | resize max_side=24", "resize after pad_batch: pad_batch must be"),
    ("decode | resize max_side=24 | pad_batch value=256", "expected an integer from 0 to 255"),
    ("decode | resize max_side=24 | pad_batch value=0.5", "expected an integer from 0 to 255"),
    ("image: decode | resize max_side=24; label: pad_batch", "the field holds numbers"),
    ("image: decode | resize max_side=24; boxes: pad_batch", "pad_batch"),
])  # fmt: skip
def test_errors(pack, pipeline, message):
    with pytest.raises(penstock.InvalidError, match=re.escape(message)):
        load(pack, pipeline)


def test_an_image_too_long_for_min_side_alone(pack):
    loader = load(pack, "decode | resize min_side=200 | center_crop 16")
    with pytest.raises(penstock.LimitError, match="the longest side allowed is 65535"):
        list(loader)


def test_a_name_of_the_sizes_that_a_field_has(tmp_path):
    rows = [{"image": encoded(picture(0), "PNG"), "image_sizes": 1}]
    penstock.write(tmp_path / "a.pen", rows, {"image": "image", "image_sizes": "i64"})
    with pytest.raises(penstock.InvalidError, match="the name of the images' sizes, 'image_sizes'"):
        load(penstock.open(tmp_path / "a.pen"),
             {"image": "decode | resize max_side=24", "image_sizes": "tensor"}, 1)  # fmt: skip


def test_hostile_sides(tmp_path):
    from PIL import Image

    Image.MAX_IMAGE_PIXELS = None
    sizes = [(1, 60000), (60000, 1)]
    rows = [{"image": encoded(Image.new("RGB", size, 9), "PNG")} for size in sizes]
    penstock.write(tmp_path / "a.pen", rows, {"image": "image"})
    pack = penstock.open(tmp_path / "a.pen")
    for pad, shape in (("", None), (" | pad_batch", (2, 1333, 1333, 3))):
        image, sizes = next(with_sizes(load(
            pack, f"decode | resize min_side=800 max_side=1333{pad}", 2, memory="256MiB")))
        assert sizes.tolist() == [[1333, 1], [1, 1333]]
        assert not shape or image.shape == shape
        assert image[0][0, 0, 0] == 9 and image[1][0, 1332, 0] == 9


def test_memory_of_a_batch_is_bounded_before_it_is_read(pack):
    text = "decode | resize min_side=800 max_side=1333 | tensor f32 | pad_batch 32"
    n = 2 * 1344**2 * 12 + 128
    with pytest.raises(penstock.LimitError, match=f"for batches of {n} bytes"):
        load(pack, text, 2)
