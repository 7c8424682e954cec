# SPDX-License-Identifier: Apache-2.0
"""A pipeline returns what it names, and no other field of the pack."""

import itertools

import pytest
from cli_tools import good
from py_tools import encoded, need_penstock, pixels

penstock = need_penstock()
np = pytest.importorskip("numpy")
ops = penstock.ops

CROP = "decode | center_crop 16"
CLIP = "decode | clip 2 1 center | center_crop 4"
SCHEMA = {
    "mask": "mask", "weight": "f32", "image": "image", "second": "image", "video": "clip",
    "label": "i64", "box": "f32[4]", "caption": "text",
}  # fmt: skip


def picture(i, width=24, height=20):
    return encoded(pixels(i, width, height))


def sample(i):
    gray = encoded(pixels(i, 24, 20).convert("L"))
    return {
        "mask": gray, "weight": i / 2, "image": picture(i), "second": picture(i + 100, 30, 20),
        "video": [picture(i + k, 8, 6) for k in range(3)], "label": i % 3, "box": [0, 0, 8, 8],
        "caption": f"sample {i}",
    }  # fmt: skip


@pytest.fixture(scope="module")
def pack(tmp_path_factory):
    path = tmp_path_factory.mktemp("fields") / "a.pen"
    penstock.write(path, (sample(i) for i in range(8)), SCHEMA, block_samples=4)
    return penstock.open(path)


def write(path, rows, schema):
    penstock.write(path, rows, schema)
    return penstock.open(path)


def load(pack, pipeline=None, batch_size=4, **settings):
    settings = {"threads": 1, "memory": "64MiB", "output": "numpy", **settings}
    return penstock.Loader(pack, batch_size, pipeline=pipeline, **settings)


def first(pack, pipeline=None, **settings):
    with load(pack, pipeline, **settings) as loader:
        return next(iter(loader))


# ---- with a pipeline


@pytest.mark.parametrize(("pipeline", "fields"), [
    (CROP, ("image", "label")),
    ([ops.decode(), ops.center_crop(16)], ("image", "label")),
    ("decode | resize max_side=20", ("image", "label")),
    (CLIP, ("video", "label")),
    ([ops.decode(), ops.clip(2, 1, "center"), ops.center_crop(4)], ("video", "label")),
    ({"image": CROP}, ("image",)),
    ({"weight": "tensor", "image": CROP}, ("weight", "image")),
    ({"label": "tensor", "second": CROP, "caption": "text"}, ("label", "second", "caption")),
    ({"view": [ops.source("image"), ops.decode(), ops.center_crop(8)]}, ("view",)),
    ("caption: text; box: tensor", ("caption", "box")),
    ([{"image": CROP}, ops.python(lambda sample, rng: sample)], ("image",)),
    ([CROP, ops.python(lambda sample, rng: sample)], ("image", "label")),
])  # fmt: skip
def test_a_batch_has_what_the_pipeline_names(pack, pipeline, fields):
    assert first(pack, pipeline)._fields == fields
    dataset = penstock.Dataset(pack, pipeline, output="numpy", as_dict=True)
    assert tuple(dataset[3]) == fields


def test_the_first_image_field_is_no_mask(pack):
    batch = first(pack, "decode | center_crop 20,24", order="sequential")
    assert np.array_equal(batch.image[2], np.asarray(pixels(2, 24, 20)))
    assert batch.label.tolist() == [0, 1, 2, 0]


@pytest.mark.parametrize(("kind", "values", "expected"), [
    ("f64", [0.5, 1.5], [0.5, 1.5]),
    ("i64[2]", [[1, 2], [3, 4]], [[1, 2], [3, 4]]),
    ("f32[*,2]", [[[1, 2]], [[3, 4], [5, 6]]], [[[1, 2]], [[3, 4], [5, 6]]]),
    ("text", ["ant", "bee"], ["ant", "bee"]),
    ("text?", ["ant", None], ["ant", None]),
    ("json", [{"a": 1}, [2]], [{"a": 1}, [2]]),
    ("bytes", [b"a", b"bc"], [b"a", b"bc"]),
])  # fmt: skip
def test_a_label_of_any_type_comes_as_stored(tmp_path, kind, values, expected):
    rows = [{"image": picture(i), "label": value} for i, value in enumerate(values)]
    pack = write(tmp_path / "a.pen", rows, {"image": "image", "label": kind})
    for pipeline in (CROP, None):
        batch = first(pack, pipeline, batch_size=2, order="sequential")
        assert batch._fields == ("image", "label") and batch.label.tolist() == expected


def test_a_label_of_pixels_has_to_be_named(tmp_path):
    rows = [{"image": picture(i), "label": encoded(pixels(i, 24, 20).convert("L"))}
            for i in range(4)]  # fmt: skip
    pack = write(tmp_path / "a.pen", rows, {"image": "image", "label": "mask"})
    assert first(pack, CROP)._fields == first(pack)._fields == ("image",)
    assert first(pack, {"image": CROP, "label": CROP})._fields == ("image", "label")


def test_a_pack_without_a_label(tmp_path):
    rows = [{"weight": 1.0, "image": picture(i)} for i in range(4)]
    pack = write(tmp_path / "a.pen", rows, {"weight": "f32", "image": "image"})
    assert first(pack, CROP)._fields == first(pack)._fields == ("image",)


def test_a_mixture_adds_the_source(pack, tmp_path):
    rows = [{"image": picture(i, 16, 40), "label": i} for i in range(8)]
    other = write(tmp_path / "b.pen", rows, {"image": "image", "label": "i64"})
    mixed = penstock.mix([(pack, 1), (other, 1)])
    assert first(mixed, CROP)._fields == first(mixed)._fields == ("image", "label", "source")
    assert {image.shape for image in first(mixed).image} == {(20, 24, 3), (40, 16, 3)}
    other = write(tmp_path / "c.pen", [{"image": picture(0)}], {"image": "image"})
    with pytest.raises(penstock.InvalidError, match="field 'label' .* is missing in"):
        load(penstock.mix([(pack, 1), (other, 1)]), CROP)
    other = write(tmp_path / "d.pen", [{"x": 1}], {"x": "i64"})
    with pytest.raises(penstock.InvalidError, match="field 'image' .* is missing in"):
        load(penstock.mix([(pack, 1), (other, 1)]))


# ---- without a pipeline


def test_images_of_one_size_are_a_tensor(pack):
    for output in ("numpy", "torch"):
        batch = first(pack, order="sequential", output=output)
        assert batch._fields == ("image", "label")
        assert tuple(batch.image.shape) == ((4, 20, 24, 3) if output == "numpy" else (4, 3, 20, 24))
    assert np.array_equal(first(pack).image[3], np.asarray(pixels(3, 24, 20)))
    image, label = penstock.Dataset(pack, output="numpy")[7]
    assert np.array_equal(image, np.asarray(pixels(7, 24, 20))) and label == 1


SIZES = [(24, 20), (20, 24), (1, 30), (30, 1), (17, 29)]


@pytest.mark.parametrize("settings", [{}, {"shuffle": True}, {"subset": range(2, 9)}])
def test_images_of_different_sizes_are_a_list(tmp_path, settings):
    rows = [{"image": picture(i, *SIZES[i % 5]), "label": i} for i in range(10)]
    pack = write(tmp_path / "a.pen", rows, {"image": "image", "label": "i64"})
    with load(pack, batch_size=2, **settings) as loader:
        for batch in loader:
            assert batch._fields == loader.fields == ("image", "label")
            assert isinstance(batch.image, list)
            for image, i in zip(batch.image, batch.label):
                assert np.array_equal(image, np.asarray(pixels(int(i), *SIZES[i % 5])))


def test_photos_that_stand_upright(tmp_path):
    exif = pixels(0).getexif()
    exif[0x0112] = 6  # turn to the right
    turned = encoded(pixels(0, 24, 20), "JPEG", exif=exif)
    rows = [{"image": turned}, {"image": encoded(pixels(1, 20, 24), "JPEG")}]
    pack = write(tmp_path / "a.pen", rows, {"image": "image"})
    assert first(pack, batch_size=2).image.shape == (2, 24, 20, 3)


def test_packs_that_store_no_pixels_themselves(tmp_path):
    for i, size in enumerate([(24, 20), (24, 20), (40, 9)]):
        file = tmp_path / "photos" / "ab"[i % 2] / f"{i}.png"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(picture(i, *size))
    good("index", tmp_path / "photos", "-o", tmp_path / "p.pen")
    batch = first(tmp_path / "p.pen", batch_size=3)
    assert sorted(image.shape[:2] for image in batch.image) == [(9, 40), (20, 24), (20, 24)]


def test_a_pack_of_clips(tmp_path):
    rows = [{"video": [picture(i + k, 8, 6) for k in range(3)], "label": i, "fps": 25.0}
            for i in range(4)]  # fmt: skip
    schema = {"video": "clip", "label": "i64", "fps": "f32"}
    pack = write(tmp_path / "a.pen", rows, schema)
    batch = first(pack, order="sequential")
    assert batch._fields == ("video", "label") and batch.video.shape == (4, 16, 6, 8, 3)
    assert np.array_equal(batch.video[1, 1], np.asarray(pixels(3, 8, 6)))
    rows[2]["video"] = [picture(9, 10, 6)]
    with pytest.raises(penstock.InvalidError, match="'video' has clips of different sizes"):
        load(write(tmp_path / "b.pen", rows, schema))


def test_a_pack_of_numbers(tmp_path):
    rows = [{"x": i, "caption": "", "y": [i, 1], "rows": [[1]] * i} for i in range(4)]
    schema = {"x": "i64", "caption": "text", "y": "f32[2]", "rows": "f32[*,1]"}
    assert first(write(tmp_path / "a.pen", rows, schema))._fields == ("x", "y")
    rows = [{"caption": "", "rows": []}]
    pack = write(tmp_path / "b.pen", rows, {"caption": "text", "rows": "f32[*,1]"})
    with pytest.raises(penstock.InvalidError, match="has no field of images, clips or numbers; "
                       "pass a pipeline that names its fields"):  # fmt: skip
        load(pack)


def test_images_without_bound(tmp_path):
    schema = {"image": "image"}
    pack = write(tmp_path / "a.pen", [{"image": picture(0, 16385, 1)}], schema)
    with pytest.raises(penstock.InvalidError, match="'image' has images with sides of up to 16385 "
                       "pixels, and at most 16384 are returned"):  # fmt: skip
        load(pack, batch_size=1)
    assert first(pack, CROP, batch_size=1).image.shape == (1, 16, 16, 3)
    pack = write(tmp_path / "b.pen", [{"image": picture(0, 4000, 3000)}], schema)
    with pytest.raises(penstock.LimitError, match="expected at least .* MiB for batches"):
        load(pack, batch_size=1)


def test_functions_alone_get_the_stored_image(pack):
    def shape(sample, rng):
        assert list(sample) == ["image", "label"]
        return {"height": sample["image"].shape[0]}

    assert first(pack, [ops.python(shape)]).height.tolist() == [20] * 4


# ---- states


@pytest.mark.parametrize("sizes", [[(24, 20)], SIZES])
def test_the_text_of_no_pipeline_is_one(tmp_path, sizes):
    rows = [{"image": picture(i, *sizes[i % len(sizes)]), "label": i, "x": i} for i in range(12)]
    pack = write(tmp_path / "a.pen", rows, {"image": "image", "label": "i64", "x": "i64"})
    stored = load(pack, shuffle=True)
    named = load(pack, stored.pipeline, shuffle=True)
    assert named.pipeline == stored.pipeline and named.fields == stored.fields
    assert named.state_dict()["hash"] == stored.state_dict()["hash"]
    batches = [batch.label.tolist() for batch in stored]
    for _ in itertools.islice(stored, 1):
        pass
    named.load_state_dict(stored.state_dict())
    assert [batch.label.tolist() for batch in named] != batches  # of the second epoch
    resumed = load(pack, shuffle=True)
    part = iter(resumed)
    next(part)
    named.load_state_dict(resumed.state_dict())
    assert [batch.label.tolist() for batch in named] == batches[1:]


def test_a_state_with_other_fields_is_refused(pack):
    states = [load(pack, pipeline).state_dict() for pipeline in (CROP, {"image": CROP}, None)]
    for i, pipeline in enumerate((CROP, {"image": CROP}, None)):
        for k, state in enumerate(states):
            loader = load(pack, pipeline)
            if i == k:
                loader.load_state_dict(state)
            else:
                with pytest.raises(penstock.InvalidError, match="pipeline"):
                    loader.load_state_dict(state)
    load(pack, {"image": CROP, "label": "tensor"}).load_state_dict(
        load(pack, {"image": CROP, "label": [ops.tensor()]}).state_dict())  # fmt: skip
