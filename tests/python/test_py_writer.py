# SPDX-License-Identifier: Apache-2.0
"""penstock.Writer: what it takes, what it refuses, what it leaves behind."""

import io
import os

import pytest
from PIL import Image
from py_tools import in_child, jpeg, need_penstock, pixels, png

penstock = need_penstock()

NUMBERS = {"label": "i64", "score": "f64", "box": "f32[2,2]"}


def write_one(path, schema, key="k", **values):
    with penstock.Writer(path, schema) as writer:
        writer.add(key, **values)
    return penstock.open(path)[0]


@pytest.mark.parametrize("label", [-(2**63), 2**63 - 1, True])
def test_whole_numbers(tmp_path, label):
    assert write_one(tmp_path / "a.pen", {"label": "i64"}, label=label)["label"] == label


def test_arrays_of_any_kind(tmp_path):
    numpy = pytest.importorskip("numpy")
    box = [[1, 2], [3, 4.5]]
    kinds = {
        "list": box,
        "tuple": tuple(map(tuple, box)),
        "f4": numpy.array(box, "f4"),
        "f8": numpy.array(box),
        "fortran": numpy.asfortranarray(numpy.array(box, "f4")),
        "big": numpy.array(box, ">f4"),
        "ints": numpy.array([[1, 2], [3, 4]]),
    }
    for name, value in kinds.items():
        sample = write_one(tmp_path / f"{name}.pen", {"box": "f32[2,2]"}, box=value)
        expected = [[1, 2], [3, 4]] if name == "ints" else box
        assert sample["box"].tolist() == expected, name
    scalars = write_one(
        tmp_path / "s.pen", {"a": "i64", "b": "i64[2]", "c": "f64"},
        a=numpy.int64(7), b=numpy.array([1, 2]), c=numpy.float32(0.5),
    )
    assert (scalars["a"], scalars["b"].tolist(), scalars["c"]) == (7, [1, 2], 0.5)


@pytest.mark.parametrize(
    "values, message",
    [
        ({"label": "3"}, "field 'label': expected i64, found '3'"),
        ({"label": 1.5}, "field 'label': expected i64"),
        ({"label": 2**63}, "field 'label': expected i64"),
        ({"label": [1]}, "field 'label': expected i64"),
        ({"box": [1, 2, 3, 4]}, r"field 'box': expected f32 of shape \(2, 2\)"),
        ({"box": 3}, r"field 'box': expected f32 of shape \(2, 2\)"),
        ({"image": "cat.jpg"}, "bytes of a JPEG, PNG or WebP file, found str"),
        ({"clip": png(1)}, "field 'clip': expected a list of frames"),
        ({"clip": ([png(1)], [1, 2])}, "one time for each of 1 frames, found 2"),
        ({"raw": "text"}, "field 'raw': expected bytes, found str"),
        ({"raw": None}, "field 'raw': expected bytes, found None; if values may be missing, use"),
        ({"text": 3}, "field 'text': expected str or bytes, found int$"),
        ({"text": None}, "'text': expected str or bytes, found None; if .*the type \"text[?]\"$"),
        ({"meta": {1, 2}}, "field 'meta': expected JSON"),
        ({"lable": 1}, "the schema has no field 'lable'; did you mean 'label'"),
    ],
)
def test_wrong_values_name_the_field(tmp_path, values, message):
    good = {
        "label": 1, "box": [[1, 2], [3, 4]], "image": png(1), "clip": [png(1)], "raw": b"",
        "meta": None, "text": "",
    }
    schema = {
        "label": "i64", "box": "f32[2,2]", "image": "image", "clip": "clip", "raw": "bytes",
        "meta": "json", "text": "text",
    }
    with penstock.Writer(tmp_path / "a.pen", schema) as writer:
        with pytest.raises(penstock.InvalidError, match=message):
            writer.add("k", **{**good, **values})
        writer.add("k", **good)
        assert len(writer) == 1
    assert len(penstock.open(tmp_path / "a.pen")) == 1


def test_pixels_are_refused_with_the_way_out(tmp_path):
    numpy = pytest.importorskip("numpy")
    with pytest.raises(penstock.InvalidError, match="ndarray; encode pixels first"):
        write_one(tmp_path / "a.pen", {"image": "image"}, image=numpy.zeros((4, 4, 3), "u1"))


def test_missing_value(tmp_path):
    with pytest.raises(penstock.InvalidError, match="field 'score' has no value"):
        write_one(tmp_path / "a.pen", NUMBERS, label=1, box=[[1, 2], [3, 4]])


def test_exception_leaves_no_pack(tmp_path):
    with pytest.raises(ZeroDivisionError):
        with penstock.Writer(tmp_path / "a.pen", {"label": "i64"}) as writer:
            writer.add(label=1)
            raise ZeroDivisionError
    assert not list(tmp_path.rglob("manifest")) and not list(tmp_path.rglob("*.shard"))
    assert write_one(tmp_path / "a.pen", {"label": "i64"}, label=4)["label"] == 4


def test_broken_image_leaves_the_writer_usable(tmp_path):
    with penstock.Writer(tmp_path / "a.pen", {"image": "image"}) as writer:
        writer.add("a", image=jpeg(1))
        with pytest.raises(penstock.DecodeError, match="key 'b'"):
            writer.add("b", image=jpeg(2)[:200])
        writer.add("c", image=jpeg(3))
    pack = penstock.open(tmp_path / "a.pen")
    assert [pack.key(i) for i in range(2)] == ["a", "c"]


def test_child_process_leaves_the_files_alone(tmp_path):
    writer = penstock.Writer(tmp_path / "a.pen", {"label": "i64"}, block_samples=1, shard_size=1)
    for i in range(4):
        writer.add(label=i)

    def use():
        with pytest.raises(penstock.ClosedError, match="parent process"):
            writer.add(label=9)
        writer.close()

    assert in_child(use) is None
    assert writer.finish() == 4
    assert [sample["label"] for sample in penstock.open(tmp_path / "a.pen")] == [0, 1, 2, 3]


def test_write_takes_a_generator(tmp_path):
    samples = ({"key": f"k{i}", "label": i} for i in range(5))
    assert penstock.write(tmp_path / "a.pen", samples, {"label": "i64"}, name="five") == 5
    assert penstock.open(tmp_path / "a.pen").index("k3") == 3


def test_keys_are_numbers_when_not_given(tmp_path):
    penstock.write(tmp_path / "a.pen", ({"label": i} for i in range(3)), {"label": "i64"})
    assert penstock.open(tmp_path / "a.pen").key(2) == "000000000002"
    with pytest.raises(TypeError, match="key"):
        write_one(tmp_path / "b.pen", {"label": "i64"}, key=7, label=1)


def test_field_may_be_called_key(tmp_path):
    with penstock.Writer(tmp_path / "a.pen", {"key": "text"}) as writer:
        writer.add("k", key="v")
    sample = penstock.open(tmp_path / "a.pen")[0]
    assert (sample.key, sample["key"]) == ("k", "v")


def test_existing_pack_is_left_alone(tmp_path):
    write_one(tmp_path / "a.pen", {"label": "i64"}, label=1)
    with pytest.raises(FileExistsError, match="the pack already exists"):
        penstock.Writer(tmp_path / "a.pen", {"label": "i64"})
    assert penstock.open(tmp_path / "a.pen")[0]["label"] == 1


def test_raw_pixels(tmp_path):
    with penstock.Writer(tmp_path / "a.pen", {"image": "image"}, mode="raw") as writer:
        writer.add(image=png(3))
    pack = penstock.open(tmp_path / "a.pen")
    assert pack.image(0, "image").codec == "raw"
    assert pack[0]["image"] == pixels(3).tobytes()
    assert Image.open(io.BytesIO(pack.extract(0, "image"))).tobytes() == pixels(3).tobytes()


def test_finish_inside_the_block(tmp_path):
    with penstock.Writer(tmp_path / "a.pen", {"label": "i64"}) as writer:
        writer.add(label=1)
        assert writer.finish() == 1
    with pytest.raises(penstock.ClosedError):
        writer.add(label=2)


def test_nothing_added_is_an_error(tmp_path):
    with pytest.raises(penstock.InvalidError, match="no sample was added"):
        with penstock.Writer(tmp_path / "a.pen", {"label": "i64"}):
            pass


@pytest.mark.parametrize(
    "schema, settings, message",
    [
        ({"label": "int64"}, {}, "field 'label': expected one of .*did you mean 'i64'"),
        ({"label": "i64["}, {}, r"expected a type like image, i64 or f32\[2,3\]"),
        ({"image": "image[3]"}, {}, "only numbers have a shape"),
        ({"x": "i64[1,1,1,1,1]"}, {}, r"'x': expected a shape of at most 4 numbers below 2\^32"),
        ({"x": "i64[4294967296]"}, {}, "expected a shape of .* found '4294967296'"),
        ({"x": f"i64[{'1' * 5000}]"}, {}, "expected a shape of at most 4 numbers"),
        ({"x": "i64[1 2]"}, {}, "expected a shape of .* found '1 2'"),
        ({"\udcff": "i64"}, {}, "expected a name in UTF-8, without NUL"),
        ({"a\0": "i64"}, {}, "expected a name in UTF-8, without NUL"),
        ({"label": "i64"}, {"mode": "kep"}, "mode: .*did you mean 'keep'"),
        ({"label": "i64"}, {"quality": 0}, "quality: expected 1 to 100, found 0"),
        ({"image": "image"}, {"mode": "tile"}, "tiles can be read, but are no longer written; use"),
        ({"image": "image"}, {"mode": "raw", "index": False}, "index=False.: only the modes keep"),
        ({"image": "image"}, {"mode": "mix", "index": False}, "choose one of them, or leave"),
        ({"image": "image"}, {"classes": ["a"]}, "an i64 field without a shape"),
        ({"a": "i64"}, {"classes": ["a"], "class_field": "b"}, "the field 'b' of the classes in"),
        ({"label": "i64"}, {"shard_size": "1 mile"}, "a size like 2GiB"),
    ],
)
def test_wrong_settings(tmp_path, schema, settings, message):
    with pytest.raises(penstock.InvalidError, match=message):
        penstock.Writer(tmp_path / "a.pen", schema, **settings)
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize("text, n_bytes", [
    ("77", 77), ("77B", 77), ("3KB", 3000), ("3KiB", 3072), ("5 MB", 5_000_000),
    ("5mib", 5 << 20), ("2GB", 2_000_000_000), ("2GiB", 2 << 30), ("1TB", 10**12),
    ("1TiB", 1 << 40), ("1.5GiB", 3 << 29), (4096, 4096),
])
def test_units_of_sizes(tmp_path, text, n_bytes):
    with penstock.Writer(tmp_path / "a.pen", {"x": "i64"}, shard_size=text) as writer:
        writer.add(x=1)
    assert penstock.open(tmp_path / "a.pen").info["settings"]["shard_bytes"] == n_bytes


def test_timestamps_of_frames(tmp_path):
    write_one(tmp_path / "a.pen", {"clip": "clip"}, clip=([png(1), png(2)], [0, 40_000_000]))
    assert penstock.open(tmp_path / "a.pen").image(0, "clip", 1).timestamp_ns == 40_000_000
