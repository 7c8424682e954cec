# SPDX-License-Identifier: Apache-2.0
"""penstock.convert with Parquet files and Hugging Face datasets of the real libraries. Every sample
and field is compared."""

import datetime
import decimal
import functools
import io
import json
import os
import subprocess
import sys

import pytest
from convert_tools import need_library, penstock, samples, tree
from PIL import Image
from py_tools import encoded, jpeg, pixels, png, run_python

pa, pq, numpy = need_library("pyarrow", "pyarrow.parquet", "numpy")
N = 100
convert = functools.partial(penstock.convert, workers=1)


def write_parquet(path, n=N, row_group_size=17, **more):
    """A table with the columns that image datasets have, and its rows."""
    columns = {
        "id": [f"row-{i}" for i in range(n)],
        "image": [jpeg(i) if i % 2 else png(i) for i in range(n)],
        "caption": [f"Überschrift {i}" for i in range(n)],
        "score": pa.array([i / 7 for i in range(n)], pa.float32()),
        "label": [i % 3 for i in range(n)],
        **more,
    }
    table = pa.table(columns)
    pq.write_table(table, path, row_group_size=row_group_size)
    return table.to_pylist()


def test_every_row_and_field_of_parquet(tmp_path):
    rows = write_parquet(tmp_path / "a.parquet")
    done = convert(tmp_path / "a.parquet", tmp_path / "a.pen", key="id")
    assert (done.samples, done.skipped, done.bad, done.n_rows) == (N, 0, [], N)
    found = samples(tmp_path / "a.pen")
    assert [key for key, _ in found] == [row.pop("id") for row in rows]
    assert [values for _, values in found] == rows
    with penstock.open(tmp_path / "a.pen") as pack:
        assert dict(pack.schema) == {
            "image": "image", "caption": "text", "score": "f32", "label": "i64"}


def test_pack_is_the_same_for_any_number_of_workers(tmp_path):
    for part in range(3):
        write_parquet(tmp_path / f"{part}.parquet", n=40, row_group_size=11,
                      where=[f"{part}/{i}" for i in range(40)])
    for workers in (1, 3):
        convert(tmp_path / "?.parquet", tmp_path / f"{workers}.pen", workers=workers,
                         block_samples=8, label="caption", key="where")
    assert tree(tmp_path / "1.pen") == tree(tmp_path / "3.pen")
    keys = [key for key, _ in samples(tmp_path / "1.pen")]
    assert keys == [f"{part}/{i}" for part in range(3) for i in range(40)]


def columns_of_all_types(n):
    when = datetime.datetime(2026, 1, 2, 3, 4, 5)
    return pa.table({
        "flag": [i % 2 == 0 for i in range(n)],
        "small": pa.array(range(n), pa.uint8()),
        "half": pa.array(numpy.arange(n, dtype="f2") / 2),
        "double": [i / 3 for i in range(n)],
        "nan": pa.array([float("inf")] * n, pa.float32()),
        "maybe": [None if i % 2 else i for i in range(n)],
        "note": [None if i % 3 else f"n{i}" for i in range(n)],
        "raw": [bytes([i % 256, 0, 255]) for i in range(n)],
        "tags": [["a"] * (i % 3) for i in range(n)],
        "nested": [{"x": i, "y": {"z": str(i)}} for i in range(n)],
        "vector": pa.array([[i, 1, 2] for i in range(n)], pa.list_(pa.float32(), 3)),
        "grid": pa.array([[[i, 1], [2, 3]] for i in range(n)],
                         pa.list_(pa.list_(pa.int32(), 2), 2)),
        "when": [when + datetime.timedelta(hours=i) for i in range(n)],
        "price": [decimal.Decimal(f"{i}.50") for i in range(n)],
        "word": pa.array(["one", "two"] * (n // 2)).dictionary_encode(),
        "large": pa.array([f"l{i}" for i in range(n)], pa.large_string()),
        "nothing": pa.nulls(n),
    })


TYPES = {
    "flag": "i64", "small": "i64", "half": "f32", "double": "f64", "nan": "f32", "maybe": "json?",
    "note": "text?", "raw": "bytes", "tags": "json?", "nested": "json?", "vector": "f32[3]",
    "grid": "i64[2,2]", "when": "text", "price": "text", "word": "text", "large": "text",
    "nothing": "json?",
}


def test_types_of_columns(tmp_path):
    table = columns_of_all_types(40)
    pq.write_table(table, tmp_path / "a.parquet", row_group_size=9)
    convert(tmp_path / "a.parquet", tmp_path / "a.pen")
    with penstock.open(tmp_path / "a.pen") as pack:
        assert dict(pack.schema) == TYPES
    expected = table.to_pylist()
    for row in expected:
        row.update(when=row["when"].isoformat(" ", "microseconds"), price=str(row["price"]))
    assert [values for _, values in samples(tmp_path / "a.pen")] == expected


def test_given_types(tmp_path):
    """A list without a fixed length gets a shape, numbers with missing values become NaN."""
    pq.write_table(pa.table({"vector": [[1.0, 2.0]] * 5, "x": [0.5, None] * 2 + [1.0],
                             "data": [png(1)] * 5, "left": [1] * 5}), tmp_path / "a.parquet")
    convert(tmp_path / "a.parquet", tmp_path / "a.pen",
                     columns={"vector": "f32[2]", "x": "f64", "data": "bytes"})
    values = [values for _, values in samples(tmp_path / "a.pen")]
    assert values[0] == {"vector": [1.0, 2.0], "x": 0.5, "data": png(1)}
    assert values[1]["x"] != values[1]["x"]


def test_class_names_are_numbered(tmp_path):
    pq.write_table(pa.table({"kind": ["owl", "ant", "owl", "bee"], "n": [0, 1, 2, 3]}),
                   tmp_path / "a.parquet", row_group_size=2)
    convert(tmp_path / "a.parquet", tmp_path / "a.pen", label="kind", columns=["n"])
    with penstock.open(tmp_path / "a.pen") as pack:
        assert pack.classes == ["ant", "bee", "owl"]
        assert [(s["n"], s["kind"]) for s in pack] == [(0, 2), (1, 0), (2, 2), (3, 1)]
    convert(tmp_path / "a.parquet", tmp_path / "b.pen", label="kind",
                     classes=["owl", "bee", "ant"])
    with penstock.open(tmp_path / "b.pen") as pack:
        assert [s["kind"] for s in pack] == [0, 2, 0, 1]
    with pytest.raises(penstock.InvalidError, match="name of a class, found 'ant'"):
        convert(tmp_path / "a.parquet", tmp_path / "c.pen", label="kind",
                         classes=["owl", "bee"])


def test_the_program_needs_no_guard(tmp_path):
    """Workers do not import the main module, and a script can call convert at its top level."""
    write_parquet(tmp_path / "a.parquet")
    script = tmp_path / "script.py"
    script.write_text("import sys, penstock\nprint('once')\n"
                      "print(penstock.convert(sys.argv[1], sys.argv[2], workers=2).samples)\n")
    done = subprocess.run([sys.executable, script, tmp_path / "a.parquet", tmp_path / "a.pen"],
                          capture_output=True, text=True, timeout=300, check=False)
    assert done.stdout == f"once\n{N}\n", done.stderr


# ---- Hugging Face


@pytest.fixture(scope="module")
def hugging(tmp_path_factory):
    """A dataset with features of every kind, saved in all ways."""
    (datasets,) = need_library("datasets")
    datasets.disable_progress_bars()
    n = 60
    features = datasets.Features({
        "image": datasets.Image(), "label": datasets.ClassLabel(names=["ant", "bee", "cat"]),
        "text": datasets.Value("string"), "vector": datasets.Sequence(
            datasets.Value("float32"), length=3),
        "tags": datasets.Sequence(datasets.Value("string")),
        "grid": datasets.Array2D((2, 3), "float32"), "meta": {"a": datasets.Value("int32")},
        "frames": datasets.Sequence(datasets.Image()), "flag": datasets.Value("bool"),
    })
    rows = {
        "image": [pixels(i) for i in range(n)], "label": [i % 3 for i in range(n)],
        "text": [None if i % 5 == 0 else f"Bild {i}" for i in range(n)],
        "vector": [[i, i + 1, i + 2] for i in range(n)],
        "tags": [["a", "b"][: i % 3] for i in range(n)],
        "grid": [[[i, 2, 3], [4, 5, 6]] for i in range(n)], "meta": [{"a": i} for i in range(n)],
        "frames": [[pixels(i), pixels(i + 1)] for i in range(n)],
        "flag": [i % 2 == 0 for i in range(n)],
    }
    dataset = datasets.Dataset.from_dict(rows, features=features)
    folder = tmp_path_factory.mktemp("hugging")
    dataset.save_to_disk(folder / "saved", num_shards=2)
    datasets.DatasetDict({"train": dataset, "test": dataset}).save_to_disk(folder / "splits")
    dataset.to_parquet(folder / "a.parquet", batch_size=13)
    return folder, dataset


def check_hugging(dataset, path):
    """As the library itself returns the rows: pixels of images, and all other values."""
    found = samples(path)
    assert len(found) == len(dataset) == 60
    for row, (_, values) in zip(dataset, found):
        image, frames = row.pop("image"), row.pop("frames")
        assert Image.open(io.BytesIO(values.pop("image"))).tobytes() == image.tobytes()
        assert [Image.open(io.BytesIO(frame)).tobytes() for frame in values.pop("frames")] == [
            frame.tobytes() for frame in frames]
        assert values == row
    with penstock.open(path) as pack:
        assert pack.classes == ["ant", "bee", "cat"]
        assert pack.schema["grid"] == "f32[2,3]" and pack.schema["frames"] == "clip"


@pytest.mark.parametrize("name", ["saved", "a.parquet", "splits/train", "shuffled"])
def test_every_row_and_field_of_hugging_face(hugging, tmp_path, name):
    folder, dataset = hugging
    source = folder / name
    if name == "shuffled":  # an order that is not that of the files
        source, dataset = tmp_path / name, dataset.shuffle(seed=1)
        dataset.save_to_disk(source)
    convert(source, tmp_path / "a.pen")
    check_hugging(dataset, tmp_path / "a.pen")


def test_several_splits_are_refused(hugging, tmp_path):
    folder, dataset = hugging
    with pytest.raises(penstock.InvalidError, match="one split, found train, test.*splits/train'"):
        convert(folder / "splits", tmp_path / "a.pen")
    for name in ("train-00000-of-00001", "test-00000-of-00001"):
        dataset.select(range(3)).to_parquet(tmp_path / "data" / f"{name}.parquet")
    with pytest.raises(penstock.InvalidError, match=r"found test, train; .*data/train-\*.parquet'"):
        convert(tmp_path / "data", tmp_path / "a.pen")
    done = convert(tmp_path / "data/train-*.parquet", tmp_path / "a.pen", "huggingface")
    assert done.samples == 3


def test_images_that_are_files(tmp_path):
    """Rows can name files; only those below the dataset are read."""
    (datasets,) = need_library("datasets")
    (tmp_path / "set").mkdir()
    inside, outside = tmp_path / "set" / "in.png", tmp_path / "out.png"
    for file in (inside, outside):
        file.write_bytes(png(1))
    kind = pa.struct({"bytes": pa.binary(), "path": pa.string()})
    metadata = {"huggingface": json.dumps({"info": {"features": datasets.Features(
        image=datasets.Image()).to_dict()}})}
    schema = pa.schema([("image", kind)], metadata=metadata)
    os.mkfifo(tmp_path / "set" / "pipe.png")
    for path, name in ((inside, "a"), ("in.png", "b"), (outside, "c"), ("../out.png", "d"),
                       ("no.png", "e"), ("pipe.png", "f")):
        rows = pa.table([pa.array([{"bytes": None, "path": str(path)}], kind)], schema)
        pq.write_table(rows, tmp_path / "set" / f"{name}.parquet")
    for name in "ab":
        convert(tmp_path / "set" / f"{name}.parquet", tmp_path / f"{name}.pen", key="image")
        key, values = samples(tmp_path / f"{name}.pen")[0]
        assert key.endswith("in.png") and values == {"image": png(1)}
    for name in "ef":
        with pytest.raises(penstock.NotFoundError, match=r"\.png: no such file, which a row names"):
            convert(tmp_path / "set" / f"{name}.parquet", tmp_path / f"{name}.pen")
    for name in "cd":
        with pytest.raises(penstock.InvalidError, match="not below .*store the bytes of images in"):
            convert(tmp_path / "set" / f"{name}.parquet", tmp_path / f"{name}.pen")


def test_arrow_file_format(tmp_path):
    """.arrow can also be the file format, which has a table of record batches."""
    table = pa.table({"x": list(range(50))})
    with pa.ipc.new_file(str(tmp_path / "a.arrow"), table.schema) as file:
        file.write_table(table, max_chunksize=7)
    convert(tmp_path / "a.arrow", tmp_path / "a.pen", block_samples=4)
    assert [values["x"] for _, values in samples(tmp_path / "a.pen")] == list(range(50))


def test_convert_imports_no_library_before_it_needs_it():
    done = run_python("import sys, penstock\npenstock.convert\n"
                      "print({'pyarrow', 'numpy', 'multiprocessing'} & set(sys.modules))")
    assert done.stdout == "set()\n", done.stderr


def test_cmyk_and_gray_are_kept(tmp_path):
    gray = encoded(pixels(1).convert("L"), "PNG")
    pq.write_table(pa.table({"image": [gray, jpeg(2)]}), tmp_path / "a.parquet")
    convert(tmp_path / "a.parquet", tmp_path / "a.pen")
    assert [values["image"] for _, values in samples(tmp_path / "a.pen")] == [gray, jpeg(2)]
