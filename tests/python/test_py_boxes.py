# SPDX-License-Identifier: Apache-2.0
"""Boxes, points and their labels follow the crops, resizes and flips of an image.

tests/long/long_boxes.py compares many random pipelines with NumPy."""

import re
import warnings

import pytest
from py_tools import encoded, need_penstock

penstock = need_penstock()
np = pytest.importorskip("numpy")

from penstock import ops  # noqa: E402

WIDTH, HEIGHT = 96, 80
RANDOM = "random_resized_crop 48 scale=0.3,1 nearest | hflip | vflip"
SCHEMA = {
    "image": "image", "other": "image", "mask": "mask",
    "boxes": "f32[*,4] boxes xyxy absolute", "relative": "f32[*,4]? boxes cxcywh relative",
    "points": "f32[*,2] points absolute", "labels": "i64[*]", "plain": "f32[*,4]",
    "one": "f32[4]", "caption": "text",
}  # fmt: skip


def sample(i):
    """Rectangles of different gray on a mask, their boxes, and the corners of the first one."""
    from PIL import Image, ImageDraw

    rng = np.random.default_rng(i)
    mask = Image.new("L", (WIDTH, HEIGHT), 0)
    boxes = []
    for k in range(i % 4):
        x, y = rng.integers(0, WIDTH - 30), 24 * k
        boxes.append((x, y, x + int(rng.integers(8, 30)), y + int(rng.integers(8, 22))))
        ImageDraw.Draw(mask).rectangle((boxes[-1][0], y, boxes[-1][2] - 1, boxes[-1][3] - 1), k + 1)
    boxes = np.array(boxes, np.float32).reshape(-1, 4)
    center = (boxes[:, :2] + boxes[:, 2:]) / 2
    relative = np.hstack([center, boxes[:, 2:] - boxes[:, :2]]) / [WIDTH, HEIGHT, WIDTH, HEIGHT]
    picture = encoded(mask, "PNG")
    return {
        "image": picture, "other": picture, "mask": picture, "boxes": boxes,
        "relative": None if i % 5 == 4 else relative, "points": boxes[:, :2],
        "labels": np.arange(len(boxes)) + 1, "plain": boxes, "one": [0, 0, 1, 1], "caption": "x",
    }  # fmt: skip


@pytest.fixture(scope="module")
def pack(tmp_path_factory):
    path = tmp_path_factory.mktemp("boxes") / "a.pen"
    penstock.write(path, (sample(i) for i in range(24)), SCHEMA, block_samples=4)
    return penstock.open(path)


def load(pack, pipeline, batch_size=8, **settings):
    settings = {"threads": 1, "memory": "64MiB", "output": "numpy", **settings}
    return penstock.Loader(pack, batch_size, pipeline=pipeline, **settings)


def rows(field):
    return [None if value is None else np.asarray(value).copy() for value in field]


def only(pack, pipeline, **settings):
    """The fields of the first batch, by name."""
    with load(pack, pipeline, **settings) as loader:
        return {name: rows(field) for name, field in zip(loader.fields, next(iter(loader)))}


@pytest.mark.parametrize(
    "geometry",
    [
        RANDOM,
        "random_crop 60 padding=20 | hflip",
        "resize 40,48",
        "hflip | center_crop 100,64 | resize 50,32 nearest",
    ],
)
def test_boxes_are_where_the_pixels_are(pack, geometry):
    """Gray k + 1 of the mask fills box k."""
    pipeline = {
        "image": f"decode | {geometry}",
        "mask": f"decode | {geometry}",
        "boxes": "boxes min_size=3",
        "labels": "keep boxes",
    }
    seen = 0
    for epoch in range(3):
        with load(pack, pipeline, seed=epoch) as loader:
            for batch in loader:
                for mask, boxes, labels in zip(batch.mask, batch.boxes, batch.labels):
                    assert len(boxes) == len(labels)
                    for box, label in zip(np.asarray(boxes), np.asarray(labels)):
                        y, x = np.nonzero(mask == label)
                        found = x.min(), y.min(), x.max() + 1, y.max() + 1
                        assert np.abs(box - found).max() <= 1.01
                        seen += 1
    assert seen > 40


@pytest.mark.parametrize("number", range(1, 9))
def test_coordinates_are_those_of_the_upright_image(tmp_path, number):
    from PIL import Image, ImageDraw

    upright = Image.new("L", (64, 48))
    ImageDraw.Draw(upright).rectangle((8, 16, 23, 39), 255)
    turns = {2: 0, 3: 3, 4: 1, 5: 5, 6: 2, 7: 6, 8: 4}  # Image.Transpose that stores it so
    stored = upright.transpose(turns[number]) if number in turns else upright
    exif = Image.Exif()
    exif[0x0112] = number
    data = encoded(stored, "JPEG", exif=exif, quality=95)
    penstock.write(
        tmp_path / "a.pen",
        [{"image": data, "boxes": [[8, 16, 24, 40]]}],
        {"image": "image", "boxes": "f32[*,4] boxes xyxy absolute"},
    )
    batch = only(
        tmp_path / "a.pen",
        {"image": "decode gray | hflip 1 | center_crop 40,56", "boxes": "boxes"},
        batch_size=1,
    )
    x1, y1, x2, y2 = batch["boxes"][0][0].astype(int)
    assert (x1, y1, x2, y2) == (36, 12, 52, 36)
    image = batch["image"][0][..., 0]
    assert image[y1:y2, x1:x2].min() > 128
    image[y1:y2, x1:x2] = 0
    assert image.max() < 128


def test_formats_and_units(pack):
    pipeline = {"image": "decode | resize 40,96 | hflip 1"}
    stored = only(pack, {**pipeline, "boxes": "boxes", "relative": "boxes"})
    for i, boxes in enumerate(stored["boxes"]):
        was = sample(i)["boxes"]
        moved = np.stack([96 - was[:, 2], was[:, 1] / 2, 96 - was[:, 0], was[:, 3] / 2], 1)
        assert np.array_equal(boxes, moved) and boxes.dtype == np.float32
        relative = stored["relative"][i]
        assert (relative is None) == (i % 5 == 4)
        if relative is not None:
            size = (moved[:, 2:] - moved[:, :2]) / [96, 40]
            assert np.allclose(relative[:, 2:], size, atol=1e-6)
    same = only(pack, {**pipeline, "relative": ops.boxes(format="xyxy", unit="absolute")})
    for boxes, other in zip(stored["boxes"], same["relative"]):
        assert other is None or np.allclose(boxes, other, atol=1e-4)


def test_kept_rows_and_fields_that_follow(pack):
    pipeline = {
        "image": "decode | center_crop 40",
        "boxes": "boxes min_size=4 kept=yes",
        "labels": "keep boxes",
        "plain": "keep boxes",
        "points": "points drop=no | keep boxes",
    }
    batch = only(pack, pipeline)
    assert list(batch) == ["image", "boxes", "labels", "plain", "points", "boxes_kept"]
    for i, kept in enumerate(batch["boxes_kept"]):
        assert kept.dtype == np.int64
        assert np.array_equal(batch["labels"][i], kept + 1)
        assert np.array_equal(batch["plain"][i], sample(i)["boxes"][kept])
        assert np.array_equal(batch["points"][i], sample(i)["points"][kept] - [28, 20])
    counts = [len(kept) for kept in batch["boxes_kept"]]
    assert 0 < sum(counts) < sum(i % 4 for i in range(8))


def test_points_alone(pack):
    batch = only(pack, {"image": "decode | center_crop 40", "points": "points kept=yes clip=yes"})
    everything = only(
        pack, {"image": "decode | center_crop 40", "points": "points drop=no unit=relative"}
    )
    for i, points in enumerate(batch["points"]):
        kept = batch["points_kept"][i]
        assert np.array_equal(points, sample(i)["points"][kept] - [28, 20])
        assert ((points >= 0) & (points <= 40)).all()
        assert np.allclose(everything["points"][i] * 40, sample(i)["points"] - [28, 20], atol=1e-4)


def test_padded(pack):
    pipeline = {
        "image": "decode | center_crop 40",
        "boxes": "boxes kept=yes | ragged 5 pad=-2",
        "labels": "keep boxes | ragged 5 pad=-1",
    }
    with load(pack, pipeline) as loader:
        batch = next(iter(loader))
        lists = only(pack, {"image": "decode | center_crop 40", "boxes": "boxes"})["boxes"]
        assert batch.boxes.shape == (8, 5, 4) and batch.boxes_kept.shape == (8, 5)
        for i, boxes in enumerate(lists):
            n = len(boxes)
            assert batch.boxes_mask[i].tolist() == [True] * n + [False] * (5 - n)
            assert np.array_equal(batch.boxes[i, :n], boxes) and (batch.boxes[i, n:] == -2).all()
            assert np.array_equal(batch.labels[i, :n], batch.boxes_kept[i, :n] + 1)
            assert (batch.boxes_kept[i, n:] == -1).all()
            assert np.array_equal(batch.labels_mask[i], batch.boxes_mask[i])


def test_views(pack):
    views = {
        "a": [ops.source("image"), *"decode|random_crop 40|hflip".split("|")],
        "b": [ops.source("image"), *"decode|random_crop 40|hflip".split("|")],
        "of_a": [ops.source("boxes"), ops.boxes(of="a")],
        "of_b": [ops.source("boxes"), ops.boxes(of="b")],
    }
    batch = only(pack, views)
    for name in "ab":
        for image, boxes in zip(batch[name], batch["of_" + name]):
            for x1, y1, x2, y2 in boxes.astype(int):
                assert (image[y1:y2, x1:x2] > 0).all()
    assert any(
        a.shape != b.shape or not np.array_equal(a, b) for a, b in zip(batch["of_a"], batch["of_b"])
    )
    with pytest.raises(
        penstock.InvalidError, match="2 images; name the one to follow: 'boxes of=a'"
    ):
        load(pack, {**views, "of_a": [ops.source("boxes"), ops.boxes()]})
    for last in ("repeat 2", "five_crop 8"):
        with pytest.raises(penstock.InvalidError, match="without repeat, five_crop and ten_crop"):
            load(pack, {"a": [*views["a"], last], "of_a": views["of_a"]})


def all_batches(pack, pipeline, **settings):
    """{sample: (boxes, labels)} of two epochs."""
    found = {}
    with load(pack, pipeline, return_info=True, shuffle=True, **settings) as loader:
        for epoch in range(2):
            for batch in loader:
                for i, number in enumerate(batch.info.samples):
                    found[epoch, int(number)] = (
                        np.asarray(batch.boxes[i]).tobytes(),
                        np.asarray(batch.labels[i]).tobytes(),
                    )
    return found


@pytest.mark.parametrize(
    "settings",
    [{"threads": 2}, {"threads": 8, "batch_size": 3}, {"order": "shuffle", "batch_size": 5}],
)
def test_the_same_boxes_for_any_threads_and_orders(pack, settings):
    pipeline = {"image": f"decode | {RANDOM}", "boxes": "boxes", "labels": "keep boxes"}
    one = all_batches(pack, pipeline)
    other = all_batches(pack, pipeline, **settings)
    assert len(one) == 48 and one == other


def test_resume(pack):
    pipeline = {"image": f"decode | {RANDOM}", "boxes": "boxes", "labels": "keep boxes"}
    with load(pack, pipeline, shuffle=True, batch_size=5) as loader:
        batches = [(rows(b.boxes), rows(b.labels)) for b in loader]
    with load(pack, pipeline, shuffle=True, batch_size=5) as loader:
        next(iter(loader))
        state = loader.state_dict()
    with load(pack, pipeline, shuffle=True, batch_size=5) as loader:
        loader.load_state_dict(state)
        for (boxes, labels), batch in zip(batches[1:], loader):
            assert all(map(np.array_equal, boxes, batch.boxes))
            assert all(map(np.array_equal, labels, batch.labels))


def test_dataset(pack):
    pipeline = {"image": "decode | center_crop 40", "boxes": "boxes", "labels": "keep boxes"}
    batch = only(pack, pipeline)
    dataset = penstock.Dataset(pack, pipeline, output="numpy")
    for i in range(8):
        assert np.array_equal(dataset[i].boxes, batch["boxes"][i])
        assert np.array_equal(dataset[i].labels, batch["labels"][i])


CROP = {"image": "decode | center_crop 40"}
WRONG = [
    ({"boxes": "boxes"}, "column 8: boxes: the pipeline has no image to follow; add one"),
    ({**CROP, "other": "decode | center_crop 9", "boxes": "boxes"},
     "boxes: the pipeline has 2 images; name the one to follow: 'boxes of=image'"),
    ({**CROP, "boxes": "boxes of=other"}, "boxes: of: no field 'other' in the pipeline"),
    ({**CROP, "near": "boxes of=image: boxes clip=no"},
     "of: it belongs to the operation; write 'near = boxes: boxes of=image'"),
    ({**CROP, "boxes": "boxes of=boxes"}, "of: the field 'boxes' is no image; expected an image"),
    ({**CROP, "points": "boxes"}, "boxes: the field 'points' holds points; use 'points'"),
    ({**CROP, "boxes": "points"}, "points: the field 'boxes' holds boxes; use 'boxes'"),
    ({**CROP, "plain": "boxes"}, "boxes: the schema does not say what the numbers of 'plain' are; "
     "pack it with the type 'f32[*,4] boxes xyxy absolute'"),
    ({**CROP, "one": "boxes"}, "boxes: the field holds numbers"),
    ({**CROP, "caption": "boxes"}, "boxes: the field holds text; use 'text', 'json' or 'bytes'"),
    ({"image": "decode | boxes | center_crop 40"}, "boxes cannot be applied to an image"),
    ({**CROP, "boxes": "boxes | boxes"}, "boxes after boxes: only keep or ragged can follow"),
    ({**CROP, "boxes": "boxes | ragged | ragged"}, "ragged after ragged: ragged must be the last"),
    ({**CROP, "boxes": "boxes", "labels": "keep boxes | keep boxes"},
     "keep after keep: only ragged can follow"),
    ({**CROP, "boxes": "boxes | keep points", "points": "points"},
     "keep after boxes: only one of them can choose the rows; use 'boxes drop=no'"),
    ({**CROP, "boxes": "boxes drop=no kept=yes"}, "boxes: kept=yes needs drop=yes"),
    ({**CROP, "boxes": "boxes drop=no min_area=4"}, "min_area and min_visibility need drop=yes"),
    ({**CROP, "labels": "keep boxes"}, "keep: no field 'boxes' with the operation boxes or points"),
    ({**CROP, "boxes": "ragged", "labels": "keep boxes"}, "keep: no field 'boxes' with the"),
    ({**CROP, "labels": "keep labels"}, "keep: no field 'labels' with the operation"),
]  # fmt: skip


@pytest.mark.parametrize("pipeline, message", WRONG)
def test_what_does_not_fit_is_refused(pack, pipeline, message):
    with pytest.raises(penstock.InvalidError, match=re.escape(message)):
        load(pack, pipeline)


def test_the_name_of_kept_rows(tmp_path):
    schema = {"image": "image", "b": "f32[*,4] boxes xyxy absolute", "b_kept": "i64"}
    row = {"image": sample(1)["image"], "b": [[0, 0, 9, 9]], "b_kept": 1}
    penstock.write(tmp_path / "a.pen", [row], schema)
    with pytest.raises(penstock.InvalidError, match="name of the kept rows, 'b_kept', is also a"):
        load(tmp_path / "a.pen", {**CROP, "b": "boxes kept=yes", "b_kept": "tensor"})


@pytest.fixture(scope="module")
def hostile(tmp_path_factory):
    """Rows that are no boxes, fields of other lengths, more rows than a batch has room for."""
    path = tmp_path_factory.mktemp("hostile") / "a.pen"
    schema = {
        "image": "image",
        "boxes": "f32[*,4] boxes xywh absolute",
        "labels": "i64[*]",
        "points": "f32[*,2,2] points relative",
    }
    nan, inf = np.nan, np.inf
    bad = [
        [nan, 0, 9, 9],
        [0, 0, inf, 9],
        [-inf, 0, 9, 9],
        [9, 9, -5, 9],
        [9, 9, 5, -1],
        [30, 30, 20, 20],
        [3e38, 3e38, 3e38, 3e38],
        [-3e38, 0, 3e38, 80],
    ]
    picture = sample(3)["image"]
    dots = [[[nan, 0.5], [0.5, 0.5]], [[nan, nan], [nan, nan]], [[inf, -inf], [0.5, 0.5]]]
    counts = [(bad, 8), ([[0, 0, 90, 70]], 2), (np.tile([[9, 9, 30, 30]], (10000, 1)), 10000)]
    with penstock.Writer(path, schema) as writer:
        for boxes, n in counts:
            writer.add(image=picture, boxes=boxes, labels=range(n), points=dots)
    return penstock.open(path)


def test_rows_that_are_no_boxes_are_dropped(hostile):
    pipeline = {**CROP, "boxes": "boxes", "labels": "keep boxes", "points": "points"}
    batch = only(hostile, pipeline, batch_size=1)
    assert batch["labels"][0].tolist() == [5]
    assert batch["boxes"][0].tolist() == [[2, 10, 20, 20]]
    assert len(batch["points"][0]) == 2 and np.isnan(batch["points"][0][0, 0, 0])


def test_rows_that_are_no_boxes_are_an_error_without_drop(hostile):
    with load(hostile, {**CROP, "boxes": "boxes drop=no"}, batch_size=1) as loader:
        with pytest.raises(
            penstock.DecodeError,
            match="sample 0 .*field 'boxes': box 0: expected "
            "finite numbers, and a width and a height of at least 0; use drop=yes",
        ):
            next(iter(loader))
    with load(
        hostile,
        {**CROP, "boxes": "boxes drop=no"},
        batch_size=1,
        on_bad="substitute",
        subset=[1, 0],
    ) as loader:
        assert [batch.boxes[0].tolist() for batch in loader] == [[[0, 0, 40, 40]]] * 2


def test_labels_of_another_length_are_an_error(hostile):
    pipeline = {**CROP, "boxes": "boxes", "labels": "keep boxes"}
    with load(hostile, pipeline, batch_size=1, subset=[1]) as loader:
        with pytest.raises(
            penstock.InvalidError,
            match="sample 1 .*field 'labels': expected 1 " "rows, as many as 'boxes' has, found 2",
        ):
            next(iter(loader))


def test_too_many_boxes_are_a_limit_error(hostile):
    with load(hostile, {**CROP, "boxes": "boxes"}, batch_size=1, subset=[2]) as loader:
        with pytest.raises(penstock.LimitError, match="at most 1024 rows .max_rows., found 10000"):
            next(iter(loader))
    batch = only(hostile, {**CROP, "boxes": "boxes | ragged 10000"}, batch_size=1, subset=[2])
    assert batch["boxes"][0].shape == (10000, 4)


def test_warnings(pack):
    def warned(pipeline):
        with warnings.catch_warnings(record=True) as seen:
            warnings.simplefilter("always")
            load(pack, pipeline).close()
        return [str(one.message) for one in seen]

    form = (
        "penstock: field '{0}' holds {0} and is delivered as stored, while the pipeline crops, "
        "resizes or flips 'image'; use the operation '{0}'"
    )
    for name in ("boxes", "points"):
        assert warned({**CROP, name: "ragged"}) == [form.format(name)]
        assert warned({**CROP, name: f"{name} | ragged 9 pad=0"}) == []
    assert warned({**CROP, "boxes": "boxes", "points": "points", "labels": "keep boxes"}) == []
    assert warned({"image": "decode | hflip 0 | center_crop 9", "labels": "ragged"}) == []


def test_operations_as_text():
    assert str(ops.boxes()) == "boxes"
    assert str(ops.boxes("image", min_size=2, kept="yes")) == "boxes of=image min_size=2 kept=yes"
    assert str(ops.boxes(of="my image")) == 'boxes of="my image"'
    assert str(ops.keep("boxes")) == "keep boxes" and str(ops.keep("my boxes")) == 'keep "my boxes"'
    assert str(ops.points(clip="yes")) == "points clip=yes"
    for wrong in (1, None, b"a"):
        with pytest.raises(TypeError, match="keep: of: expected"):
            ops.keep(wrong)
