# SPDX-License-Identifier: Apache-2.0
"""Ragged fields: numbers whose first dimension differs between samples."""

import copy
import io
import json
import pickle
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
        "tokens": draw.integers(-(2**31), 2**31, i * 3 % 7),  # as JAX has them by default
        "curve": draw.integers(0, 99, (i % 2 * 9, 2)) / 8,
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
    for _ in range(4000):
        text = "".join(draw.choice(words) for _ in range(draw.randrange(12)))
        if draw.random() < 0.5:
            text = f"f32[*,{draw.choice('24')}]" + text
        try:
            field = penstock._writer._parse_field("x", text)
        except penstock.InvalidError:
            continue
        assert penstock._writer._parse_field("x", str(field)) == field
        n += 1
    assert n > 50


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


# ---- in a batch

LISTS = {"boxes": "ragged 8", "points": "ragged", "tokens": "ragged", "curve": "ragged",
         "label": "tensor"}  # fmt: skip
PADDED = {"boxes": "ragged 3 pad=-1", "points": "ragged 5 pad=0", "tokens": "ragged 9 pad=-100",
          "curve": "ragged 9 pad=0.5"}  # fmt: skip


def batches(pack, pipeline, **settings):
    settings = {"threads": 2, "memory": "64MiB", "output": "numpy", **settings}
    with penstock.Loader(pack, 8, pipeline=pipeline, return_info=True, **settings) as loader:
        yield from loader


def first(pack, pipeline=LISTS, **settings):
    return next(batches(pack, pipeline, **settings))


def same(found, wanted):
    if wanted is None or found is None:
        return found is wanted
    return found.shape == wanted.shape and np.array_equal(np.asarray(found), wanted)


@pytest.mark.parametrize("output", ["numpy", "torch", "dlpack", "jax"])
def test_a_batch_has_the_values(pack, output):
    if output in ("torch", "jax"):
        pytest.importorskip(output)
    for batch in batches(pack, LISTS, output=output, order="random"):
        numbers = np.asarray(batch.info.samples).tolist()
        for name in ("boxes", "points", "tokens", "curve"):
            values = getattr(batch, name)
            wanted = [sample(i)[name] for i in numbers]
            assert isinstance(values, penstock.Ragged) and len(values) == len(wanted)
            assert all(map(same, values, wanted)) and same(values[-1], wanted[-1])
            assert all(map(same, values[2:7:2], wanted[2:7:2]))
            assert values.tolist() == [None if v is None else v.tolist() for v in wanted]
            rows = [v for v in wanted if v is not None]
            assert same(np.asarray(values.values), np.concatenate(rows))
            lengths = [0 if v is None else len(v) for v in wanted]
            assert np.diff(np.asarray(values.offsets)).tolist() == lengths


def test_arrays_are_views_of_the_batch(pack):
    boxes = first(pack).boxes
    assert np.shares_memory(boxes[3], boxes.values) and boxes.values.dtype == np.float32
    assert boxes.values.flags.c_contiguous and boxes.offsets.dtype == np.int64
    assert repr(boxes) == "<penstock.Ragged of 8 values [*, 4], 12 rows>"
    for wrong in (8, -9):
        with pytest.raises(IndexError, match=f"index {wrong}: the batch has 8 samples"):
            boxes[wrong]


@pytest.mark.parametrize("output", ["numpy", "torch", "dlpack", "jax"])
def test_padding_in_the_pipeline_and_after_it(pack, output):
    if output in ("torch", "jax"):
        pytest.importorskip(output)
    lists, padded = (first(pack, p, output=output) for p in (LISTS, PADDED))
    for name, (rows, value) in {"boxes": (3, -1), "points": (5, 0), "tokens": (9, -100),
                                "curve": (9, 0.5)}.items():  # fmt: skip
        dense, mask = (np.asarray(x) for x in getattr(lists, name).pad(value, rows))
        assert same(getattr(padded, name), dense) and same(getattr(padded, f"{name}_mask"), mask)
        assert mask.dtype == bool and dense.shape[:2] == mask.shape == (8, rows)
        for i in range(8):
            wanted = sample(i)[name]
            assert mask[i].sum() == (0 if wanted is None else len(wanted))
            assert (dense[i][~mask[i]] == value).all()
            assert wanted is None or np.array_equal(dense[i][mask[i]], wanted)
    assert np.asarray(lists.boxes.pad()[0]).shape == (8, 3, 4)


def test_padding_that_does_not_fit(pack):
    batch = first(pack)
    with pytest.raises(penstock.InvalidError, match="at least 3, the rows of value 3, found 2"):
        batch.boxes.pad(0, 2)
    with pytest.raises(penstock.InvalidError, match="value: expected an integer for int64"):
        batch.tokens.pad(0.5)


def test_torch(pack):
    torch = pytest.importorskip("torch")
    boxes = first(pack, output="torch").boxes
    nested = boxes.nested()
    assert nested.layout == torch.jagged and nested.values().data_ptr() == boxes.values.data_ptr()
    assert all(torch.equal(a, b) for a, b in zip(nested.unbind(), boxes))
    moved = boxes.to("cpu", torch.float64)
    assert moved.values.dtype == torch.float64 and moved.offsets.dtype == torch.int64
    assert moved.tolist() == boxes.tolist()
    for name in ("nested", "to"):
        with pytest.raises(penstock.InvalidError, match=f"{name}: expected a loader with output"):
            getattr(first(pack).boxes, name)()


def test_arrow(pack):
    pa = pytest.importorskip("pyarrow")
    batch = first(pack)
    for name in ("boxes", "points", "tokens", "curve"):
        array = pa.array(getattr(batch, name))
        array.validate(full=True)
        assert array.to_pylist() == getattr(batch, name).tolist()
    array = pa.array(batch.tokens)
    assert array.type == pa.large_list(pa.int64())
    assert array.values.buffers()[1].address == batch.tokens.values.ctypes.data


@pytest.mark.parametrize("output", ["numpy", "torch"])
def test_copies_hold_no_batch(pack, output):
    if output == "torch":
        pytest.importorskip("torch")
    points = first(pack, output=output).points
    for made in (pickle.loads(pickle.dumps(points)), copy.deepcopy(points)):
        assert made.tolist() == points.tolist() and isinstance(made, penstock.Ragged)
        assert not np.shares_memory(np.asarray(made.values), np.asarray(points.values))


def test_too_many_rows_name_the_sample(pack):
    for pipeline in ("curve: ragged 8", "curve: ragged 8 pad=0"):
        with pytest.raises(penstock.LimitError, match="field 'curve': expected at most 8 rows"):
            list(batches(pack, pipeline))
        try:
            first(pack, pipeline, subset=[4, 1])
        except penstock.LimitError as error:
            assert error.sample == 1 and "increase max_rows" in str(error)


def test_the_same_field_in_a_dataset(pack):
    lists = penstock.Dataset(pack, LISTS, output="numpy", as_dict=True)
    padded = penstock.Dataset(pack, PADDED, output="numpy", as_dict=True)
    for i in (0, 3, 7, 22):
        wanted, dense = sample(i), padded[i]
        assert all(same(value, wanted[name]) for name, value in lists[i].items() if name != "label")
        assert same(dense["boxes"][dense["boxes_mask"]], wanted["boxes"])


def test_ops_in_python(pack):
    ops = penstock.ops
    pipeline = {"boxes": [ops.ragged(8)], "tokens": ops.ragged(pad=-1)}
    loader = penstock.Loader(pack, 2, pipeline=pipeline, output="numpy")
    assert loader.pipeline == ("boxes: ragged max_rows=8 pad=none; "
                               "tokens: ragged max_rows=1024 pad=-1")  # fmt: skip


def test_hostile_lengths_in_a_batch(tmp_path):
    """Of the right size for the block, and beyond the place that a batch has for it."""
    write_pack(tmp_path, [Field("boxes", "f32", (0, 4))], [(b"a", {"boxes": [0.5] * 4000})])
    with pytest.raises(penstock.LimitError, match="at most 999 rows .*, found 1000"):
        first(penstock.open(tmp_path), "boxes: ragged 999")
    (tmp_path / "b").mkdir()
    write_pack(tmp_path / "b", [Field("boxes", "f32", (0, 4))], [(b"a", {"boxes": [0.5] * 5})])
    with pytest.raises(penstock.CorruptError, match="value with an incomplete row"):
        first(penstock.open(tmp_path / "b"), "boxes: ragged 999 pad=0")
