# SPDX-License-Identifier: Apache-2.0
"""Ragged fields: numbers whose first dimension differs between samples."""

import io
import json
import random
import struct
import tarfile
from array import array

import pytest
from cli_tools import good, run
from plain_reader import Pack as PlainPack
from plain_writer import Field, write_pack
from py_tools import need_penstock

penstock = need_penstock()
np = pytest.importorskip("numpy")

SCHEMA = {
    "boxes": "f32[*,4] boxes xyxy absolute",
    "points": "f32[*,3,2]? points relative",
    "tokens": "i64[*]",
    "curve": "f64[*,2]",
    "label": "i64",
}


def sample(i):
    draw = np.random.default_rng(i)
    points = None if i % 5 == 3 else draw.random((i % 3, 3, 2), np.float32)
    return {
        "boxes": draw.random((i % 4, 4), np.float32) * 100,
        "points": points,
        "tokens": draw.integers(-(2**62), 2**62, i * 3 % 7),
        "curve": draw.random((i % 2 * 9, 2)),
        "label": i,
    }


@pytest.fixture(scope="module")
def pack(tmp_path_factory):
    path = tmp_path_factory.mktemp("ragged") / "r.pen"
    penstock.write(path, (sample(i) for i in range(23)), SCHEMA, block_samples=4)
    return penstock.open(path)


def test_values_are_read_back(pack):
    dtypes = {"boxes": np.float32, "points": np.float32, "tokens": np.int64, "curve": np.float64}
    for i in range(len(pack)):
        for name, value in sample(i).items():
            found = pack[i][name]
            if value is None:
                assert found is None and pack.missing(i, name)
                continue
            found = np.asarray(found)
            assert found.shape == np.shape(value) and np.array_equal(found, value)
            assert found.dtype == dtypes.get(name, np.int64)
            assert not pack.missing(i, name)


def test_the_schema_names_the_convention(pack):
    assert pack.schema == SCHEMA
    boxes, points, tokens, curve, label = pack.fields
    assert boxes.shape == (None, 4) and boxes.coordinates == "boxes xyxy absolute" and boxes.ragged
    assert points.optional and points.coordinates == "points relative"
    assert points.shape == (None, 3, 2) and tokens.shape == (None,) and tokens.coordinates == ""
    assert not label.ragged and label.shape == ()
    assert pack.info["missing"] == {"points": 4}
    copy = {name: kind for name, kind in pack.schema.items() if name != "label"}
    assert [str(penstock._writer._parse_field(n, kind)) for n, kind in copy.items()] == [
        *copy.values()
    ]


def test_the_plain_reader_finds_the_same(pack):
    plain = PlainPack(pack.path)
    assert plain.head.must == 1 + 8
    for i, (key, values) in enumerate(plain.samples):
        assert key.decode() == pack.key(i)
        for name, value in sample(i).items():
            given = value if value is None or name == "label" else tuple(np.ravel(value).tolist())
            assert values[name] == given


def test_a_pack_of_the_plain_writer(tmp_path):
    fields = [Field("boxes", "f32", (0, 4), flags=12 + 32), Field("n", "f64", (0,), optional=True)]
    samples = [(b"a", {"boxes": [1, 2, 3, 4], "n": None}), (b"b", {"boxes": [], "n": [0.5]})]
    write_pack(tmp_path, fields, samples)
    pack = penstock.open(tmp_path)
    assert pack.schema == {"boxes": "f32[*,4] boxes cxcywh relative", "n": "f64[*]?"}
    assert pack[0]["boxes"].tolist() == [[1, 2, 3, 4]] and pack[0]["n"] is None
    assert pack[1]["boxes"].shape == (0, 4) and pack[1]["n"].tolist() == [0.5]
    good("verify", str(tmp_path))


def test_what_the_writer_takes(tmp_path):
    class Tensor:
        def tolist(self):
            return [[1, 2]]

    values = [
        [], [[1, 2], [3, 4]], np.zeros((0, 2), np.float32), np.zeros(0), Tensor(),
        np.arange(8, dtype=np.float32).reshape(4, 2)[::2], np.array([[True, False]]),
        memoryview(array("f", [1, 2, 3, 4])).cast("B").cast("f", (2, 2)),
    ]  # fmt: skip
    penstock.write(tmp_path / "x.pen", ({"x": value} for value in values), {"x": "f32[ *, 2 ]"})
    found = [sample["x"].tolist() for sample in penstock.open(tmp_path / "x.pen")]
    assert found == [
        [], [[1, 2], [3, 4]], [], [], [[1, 2]], [[0, 1], [4, 5]], [[1, 0]], [[1, 2], [3, 4]]
    ]  # fmt: skip


@pytest.mark.parametrize(
    "kind, value, message",
    [
        ("f32[*,2]", [[1, 2, 3]], r"'x': expected f32 of shape \(None, 2\), found \[\[1, 2, 3\]\]"),
        ("f32[*,2]", [1, 2], r"expected f32 of shape \(None, 2\)"),
        ("f32[*,2]", 7, r"expected f32 of shape \(None, 2\), found 7"),
        ("f32[*]", "abc", r"expected f32 of shape \(None,\)"),
        ("i64[*]", [0.5], "expected i64 of shape"),
        ("i64[*]", None, r'found None; if values may be missing, use the type "i64\[\*\]\?"'),
        ("f32[*,2] points absolute", None, r'use the type "f32\[\*,2\]\? points absolute"'),
    ],
)
def test_wrong_values(tmp_path, kind, value, message):
    with penstock.Writer(tmp_path / "x.pen", {"x": kind}) as writer:
        with pytest.raises(penstock.InvalidError, match=message):
            writer.add(x=value)
        writer.add(x=[])


@pytest.mark.parametrize(
    "kind, message",
    [
        ("f32[2,*]", "the first one may be \\*, found '2,\\*'"),
        ("f32[*,*]", "the first one may be"),
        ("f32[**]", "the first one may be"),
        ("f32[*,1,1,1,1]", "at most 4 numbers"),
        ("f32[*,0]", "expected no 0 in the shape, found '\\*,0'"),
        ("f32[0]", "expected no 0 in the shape, found '0'"),
        ("f32[*,65537]", "expected 1 to 65536 elements"),
        ("text[*]", "only numbers have a shape"),
        ("f32[4]?", "only bytes, json, text and shapes with \\* may be optional"),
        ("f32[*,4] boxes", "expected coordinates like 'boxes xyxy absolute'"),
        ("f32[*,4] boxes xyxy", "expected coordinates like"),
        ("f32[*,4] boxes xyxx absolute", "boxes are xyxy, xywh or cxcywh"),
        ("f32[*,4] points absolute", "expected f32\\[\\*,2\\] for 'points absolute'"),
        ("f32[*,2] boxes xyxy absolute", "expected f32\\[\\*,4\\] for 'boxes xyxy absolute'"),
        ("f32[4] boxes xyxy absolute", "expected f32\\[\\*,4\\]"),
        ("f64[*,4] boxes xyxy absolute", "expected f32\\[\\*,4\\]"),
        ("f32[*,2,4] boxes xyxy absolute", "expected f32\\[\\*,4\\]"),
        ("image boxes", "expected coordinates like"),
        ("f32[*,4] boxes; drop", "expected a type like"),
    ],
)
def test_wrong_types(tmp_path, kind, message):
    with pytest.raises(penstock.InvalidError, match=message):
        penstock.Writer(tmp_path / "x.pen", {"x": kind})
    assert not list(tmp_path.iterdir())


def test_random_types_are_parsed_or_refused():
    """A type that is accepted comes back as the same type."""
    draw, n = random.Random(7), 0
    words = ["f32", "i64", "text", "[", "]", "*", ",", "4", "2", "0", "?", " ", "boxes", "xyxy",
             "points", "absolute", "relative", "cxcywh", "\n", "é"]  # fmt: skip
    for _ in range(20_000):
        text = "".join(draw.choice(words) for _ in range(draw.randrange(12)))
        if draw.random() < 0.5:
            text = f"f32[*,{draw.choice('24')}]" + text
        try:
            field = penstock._writer._parse_field("x", text)
        except penstock.InvalidError:
            continue
        assert penstock._writer._parse_field("x", str(field)) == field
        n += 1
    assert n > 100


def damaged(path, edit):
    fields = [Field("boxes", "f32", (0, 4), flags=4)]
    samples = [(b"a", {"boxes": [1.0] * 8}), (b"b", {"boxes": [2.0] * 4})]
    write_pack(path, fields, samples, edit=edit)


@pytest.mark.parametrize("size", [12, 1, 33, 2**31, 2**40 + 16, 2**64 - 16, 2**64 - 1])
def test_hostile_lengths_with_right_checksums(tmp_path, size):
    def edit(part, data, shard, block):
        if part == "index":  # two entries of keys, then the first value
            assert struct.unpack_from("<Q", data, 32 + 8) == (32,)
            struct.pack_into("<Q", data, 32 + 8, size)

    damaged(tmp_path, edit)
    pack = penstock.open(tmp_path)
    with pytest.raises(penstock.CorruptError, match="sample 0, field 'boxes': "):
        pack[1]["boxes"]
    assert "field 'boxes': " in run("verify", str(tmp_path)).err


def test_incomplete_rows_with_right_checksums(tmp_path):
    """The payloads fit the block, but not the rows."""
    fields = [Field("boxes", "f32", (0, 4))]
    write_pack(tmp_path, fields, [(b"a", {"boxes": [1.0] * 6}), (b"b", {"boxes": [1.0] * 2})])
    with pytest.raises(penstock.CorruptError, match="value with an incomplete row"):
        penstock.open(tmp_path)[0]["boxes"]


@pytest.mark.parametrize("flags", [8 | 4 | 16, 20, 32, 64, 128, 1])
def test_hostile_flags(tmp_path, flags):
    write_pack(tmp_path, [Field("boxes", "f32", (0, 4), flags=flags)], [(b"a", {"boxes": []})])
    with pytest.raises(penstock.Error, match="field 'boxes'"):
        penstock.open(tmp_path)


@pytest.mark.parametrize("must", [0, 1, 9])
def test_features_that_do_not_fit_the_fields(tmp_path, must):
    def edit(part, data, shard, block):
        if part == "manifest":
            struct.pack_into("<Q", data, 0, must)

    damaged(tmp_path, edit)
    with pytest.raises(penstock.CorruptError, match="features do not match the fields"):
        penstock.open(tmp_path)


def test_info_and_extract(pack, tmp_path):
    text = good("info", pack.path).out
    assert "f32[*x4] boxes xyxy absolute" in text and "i64[*]" in text
    assert "f32[*x3x2]? points relative" in text
    listed = good("info", "--samples", "--json", pack.path).out.splitlines()
    for i, line in enumerate(listed):
        fields, wanted = json.loads(line)["fields"], sample(i)
        assert fields["boxes"]["rows"] == len(wanted["boxes"])
        assert np.allclose(fields["boxes"]["values"], np.ravel(wanted["boxes"]))
        assert fields["points"]["missing"] == (wanted["points"] is None)
        assert fields["tokens"]["values"] == wanted["tokens"].tolist()
    good("extract", pack.path, "-o", str(tmp_path / "out"))


def test_a_ragged_field_is_not_in_a_batch_by_itself(pack):
    loader = penstock.Loader(pack, 2, output="numpy")
    assert loader.fields == ("label",)


def values_of(path):
    with penstock.open(path) as pack:
        return [(s.key, {name: v if v is None or isinstance(v, int) else v.tolist()
                         for name, v in s.items()}) for s in pack]  # fmt: skip


def test_to_parquet_and_back(pack, tmp_path):
    pytest.importorskip("pyarrow.parquet")
    from penstock import _cli

    words = ["extract", pack.path, "-o", str(tmp_path / "out"), "--to", "parquet"]
    assert _cli._of_python(words) == 0
    kinds = ",".join(f"{name}:{kind}" for name, kind in pack.schema.items())
    words = ["convert", str(tmp_path / "out"), "-o", str(tmp_path / "b.pen"), "--key", "key",
             "--columns", kinds, "--workers", "1"]  # fmt: skip
    assert _cli._of_python(words) == 0
    assert values_of(tmp_path / "b.pen") == values_of(pack.path)
    assert penstock.open(tmp_path / "b.pen").schema == pack.schema


def test_to_webdataset(pack, tmp_path):
    from penstock import _cli

    out = tmp_path / "tars"
    assert _cli._of_python(["extract", pack.path, "-o", str(out), "--to", "webdataset"]) == 0
    with tarfile.open(out / "samples-000000.tar") as tar:
        files = {member.name: tar.extractfile(member).read() for member in tar}
    for i in range(len(pack)):
        for name, value in sample(i).items():
            if name == "label":
                continue
            file = files.get(f"{pack.key(i)}.{name}.npy")
            assert (file is None) == (value is None)
            assert file is None or np.array_equal(np.load(io.BytesIO(file)), value)
