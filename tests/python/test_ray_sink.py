# SPDX-License-Identifier: Apache-2.0
"""penstock.ray.PackSink with real Ray Data: datasets of several kinds become one pack."""

import os
import re
import signal
import sys
import time

import bucket_tools
import pytest
import ray_tools
from bucket_tools import tree
from cli_tools import ROOT, good, run
from py_tools import need_penstock, pixels, png
from remote_tools import options

penstock = need_penstock()
ray_tools.need_ray()
import numpy  # noqa: E402
import penstock.ray  # noqa: E402, F811
import pyarrow as pa  # noqa: E402
import pyarrow.parquet as pq  # noqa: E402
import ray  # noqa: E402

pytestmark = pytest.mark.slow  # a cluster takes 10 s to start, on a busy machine a minute
IMAGES = [png(i, 12, 10) for i in range(8)]
SCHEMA = {"image": "image", "label": "i64", "note": "text?", "box": "f32[2,2]"}
MANY = {"block_samples": 4, "shard_size": 1}
N, KILLED = 60, (1, 4)


@pytest.fixture(scope="module", autouse=True)
def cluster():
    before = dict(os.environ)
    os.environ["PYTHONPATH"] = os.path.dirname(os.path.dirname(penstock.__file__))
    ray.cloudpickle.register_pickle_by_value(sys.modules[__name__])
    try:
        with ray_tools.cluster(2):
            context = ray.data.DataContext.get_current()
            context.execution_options.preserve_order = True
            context.enable_progress_bars = False
            yield
    finally:
        os.environ.clear()
        os.environ.update(before)


def row(i):
    return {"name": f"s{i}", "image": IMAGES[i % 8], "label": i, "note": None if i % 3 else f"n{i}",
            "box": [[i, i + 1.0], [0.5, -i]]}


def check(pack, numbers):
    """Every sample and field is equal."""
    assert len(pack) == len(numbers)
    keys = {pack.key(i): i for i in range(len(pack))}
    for i in numbers:
        sample, expected = pack[keys[f"s{i}"]], row(i)
        assert bytes(sample["image"]) == expected["image"] and sample["label"] == i
        assert sample["note"] == expected["note"]
        assert sample["box"].tolist() == expected["box"]


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """Parquet files of 10 rows, in row groups of 5."""
    top = tmp_path_factory.mktemp("parquet")
    for first in range(0, N, 10):
        table = pa.Table.from_pylist([row(i) for i in range(first, first + 10)])
        pq.write_table(table, top / f"{first:03d}.parquet", row_group_size=5)
    return str(top)


def test_parquet(files, tmp_path):
    sink = penstock.ray.PackSink(tmp_path / "a.pen", SCHEMA, key="name", **MANY)
    ray.data.read_parquet(files).write_datasink(sink)
    assert sink.samples == N
    check(penstock.open(tmp_path / "a.pen"), range(N))
    good("verify", tmp_path / "a.pen")
    assert not (tmp_path / "a.pen" / ".work").exists()


def in_six_blocks():
    """The same rows, in a dataset with a write task for each of six blocks. (Ray Data reads several
    small files in one task.)"""
    return ray.data.range(N, override_num_blocks=6).map(lambda found: row(int(found["id"])))


class Counting(penstock.ray.PackSink):
    """Notes how many write tasks there were."""

    def on_write_complete(self, result):
        self.n_tasks = len(result.write_returns)
        super().on_write_complete(result)


def test_two_runs_give_the_same_bytes(tmp_path):
    trees = []
    for name in ("a.pen", "b.pen"):
        sink = Counting(tmp_path / name, SCHEMA, key="name", **MANY)
        in_six_blocks().write_datasink(sink, concurrency=2)
        assert sink.n_tasks == 6
        trees.append(tree(tmp_path / name))
    assert trees[0] == trees[1] and len(trees[0]) > 8


@pytest.mark.parametrize("kind", ["pandas", "pyarrow", "numpy"])
def test_blocks_of_any_kind(tmp_path, kind):
    """The model outputs numbers with shapes, in batches of this kind."""
    def model(batch):
        i = numpy.asarray(batch["id"])
        out = {"id": i, "logits": numpy.stack([i * 0.5, i + 1.0, -i], axis=1).astype("f4"),
               "score": i / 7, "note": [None if n % 2 else f"n{n}" for n in i]}
        if kind == "pandas":
            import pandas

            return pandas.DataFrame({**out, "logits": list(out["logits"])})
        if kind == "pyarrow":
            return pa.table({**out, "logits": [row.tolist() for row in out["logits"]]})
        return {**out, "note": numpy.array(out["note"], object)}

    dataset = ray.data.range(40, override_num_blocks=4).map_batches(
        model, batch_size=10, batch_format=kind)
    schema = {"logits": "f32[3]", "value": "f64", "note": "text?"}
    dataset.write_datasink(penstock.ray.PackSink(
        tmp_path / "a.pen", schema, key="id", columns={"value": "score"}, **MANY))
    pack = penstock.open(tmp_path / "a.pen")
    assert len(pack) == 40
    for i in range(40):
        sample = pack[pack.index(str(i))]
        assert sample["logits"].tolist() == [i * 0.5, i + 1.0, -i] and sample["value"] == i / 7
        assert sample["note"] == (None if i % 2 else f"n{i}")


def test_images(tmp_path):
    """Files as they are, and pixels as PNG."""
    (tmp_path / "photos").mkdir()
    for i, data in enumerate(IMAGES):
        (tmp_path / "photos" / f"{i}.png").write_bytes(data)
    files = ray.data.read_binary_files(str(tmp_path / "photos"), include_paths=True)
    files.write_datasink(penstock.ray.PackSink(
        tmp_path / "a.pen", {"image": "image"}, key="path", columns={"image": "bytes"}))
    pack = penstock.open(tmp_path / "a.pen")
    found = {pack.key(i).rsplit("/")[-1]: bytes(pack[i]["image"]) for i in range(len(pack))}
    assert found == {f"{i}.png": data for i, data in enumerate(IMAGES)}

    images = ray.data.read_images(str(tmp_path / "photos"), include_paths=True)
    images.write_datasink(penstock.ray.PackSink(
        tmp_path / "b.pen", {"image": "image", "path": "text"}, key="path"))
    pack = penstock.open(tmp_path / "b.pen")
    for i in range(8):
        number = int(pack[i]["path"].rsplit("/")[-1].removesuffix(".png"))
        shown = penstock.decode(bytes(pack[i]["image"]))
        assert (numpy.asarray(shown) == numpy.asarray(pixels(number, 12, 10))).all()


def test_page(tmp_path, monkeypatch):
    """docs/how-to/ray-data.md runs as pasted."""
    rows = [{"name": f"s{i}", "image": IMAGES[i % 8], "caption": f"photo {i}", "label": i}
            for i in range(12)]
    for folder in ("captions", "photos"):
        (tmp_path / folder).mkdir()
    pq.write_table(pa.Table.from_pylist(rows), tmp_path / "captions" / "1.parquet")
    (tmp_path / "photos" / "1.png").write_bytes(IMAGES[0])
    monkeypatch.chdir(tmp_path)
    text = (ROOT / "docs" / "how-to" / "ray-data.md").read_text().replace(
        '("captions")', f'("{tmp_path}/captions")').replace('("photos"', f'("{tmp_path}/photos"')
    names = {}
    for block in re.findall(r"^```python\n(.*?)^```$", text, re.M | re.S):
        exec(compile(block, "ray-data.md", "exec"), names)
    assert [len(penstock.open(f"{n}.pen")) for n in ("captions", "photos", "embedded")] == [
        12, 1, 12]
    pack = penstock.open("embedded.pen")
    assert pack[pack.index("s10")]["embedding"].tolist() == [8, 0, 1]


class Dying(penstock.ray.PackSink):
    """Its first attempt at some tasks is killed in the middle of the task."""

    def __init__(self, marks, *args, **more):
        super().__init__(*args, **more)
        self.marks = marks

    def write(self, blocks, ctx):
        return super().write(self.cut(blocks, ctx.task_idx), ctx)

    def cut(self, blocks, number):
        for block in blocks:
            yield block
            mark = os.path.join(self.marks, str(number))
            if number in KILLED and not os.path.exists(mark):
                open(mark, "w").close()
                os.kill(os.getpid(), signal.SIGKILL)


@pytest.mark.parametrize("place", ["directory", "store"])
def test_killed_workers(tmp_path, place):
    """Workers are killed after they have written shards; the pack is the undisturbed one."""
    (tmp_path / "marks").mkdir()
    with bucket_tools.serve() as server:
        bucket = bucket_tools.Bucket(server, tmp_path) if place == "store" else None
        out = bucket.at("a.pen") if bucket else tmp_path / "a.pen"
        more = {"storage_options": options(server)} if bucket else {}
        dataset = in_six_blocks()
        dataset.write_datasink(Dying(str(tmp_path / "marks"), out, SCHEMA, key="name", **MANY,
                                     **more))
        dataset.write_datasink(penstock.ray.PackSink(tmp_path / "b.pen", SCHEMA, key="name",
                                                     **MANY))
        assert len(os.listdir(tmp_path / "marks")) == len(KILLED)
        check(penstock.open(out, **more), range(N))
        if bucket:
            bucket.good("copy", out, tmp_path / "c.pen")
            out = tmp_path / "c.pen"
            names = [o["Key"] for o in bucket.client.list_objects_v2(
                Bucket=bucket.name)["Contents"]]
            assert len(names) == len(tree(tmp_path / "b.pen"))
        assert tree(out) == tree(tmp_path / "b.pen")


def fails(out, dataset, message, schema=None, **more):
    with pytest.raises(Exception, match=message):
        dataset.write_datasink(penstock.ray.PackSink(out, schema or {"id": "i64"}, **more))
    with pytest.raises(penstock.NotFoundError):
        penstock.open(out)


def discard(out):
    """Other tasks of a failed job can run a little longer, and write."""
    deadline = time.monotonic() + 300
    while (result := run("gc", "--abandon", out)).code and time.monotonic() < deadline:
        time.sleep(0.1)
    assert result.code == 0, result.err


def test_jobs_that_fail(tmp_path):
    numbers = ray.data.range(8, override_num_blocks=2)
    fails(tmp_path / "x.pen", numbers,
          "column 'x': expected it in the dataset, found the columns 'id'", {"x": "i64"})
    discard(tmp_path / "x.pen")
    same = numbers.map(lambda row: {"id": 7})
    fails(tmp_path / "same.pen", same, "key '7' occurs twice", key="id")
    # A task has begun.
    fails(tmp_path / "same.pen", numbers, "other settings or another", {"id": "f64"})
    discard(tmp_path / "same.pen")
    fails(tmp_path / "none.pen", numbers.filter(lambda row: False), "no blocks|added a sample")
    context = ray.data.DataContext.get_current()
    context.max_errored_blocks = 1
    try:
        fails(tmp_path / "errored.pen", numbers, "max_errored_blocks: expected 0")
    finally:
        context.max_errored_blocks = 0
    numbers.write_datasink(penstock.ray.PackSink(tmp_path / "a.pen", {"id": "i64"}))
    assert [s["id"] for s in penstock.open(tmp_path / "a.pen")] == list(range(8))
    with pytest.raises(Exception, match="already exists"):
        numbers.write_datasink(penstock.ray.PackSink(tmp_path / "a.pen", {"id": "i64"}))


@pytest.mark.parametrize("given, error, message", [
    ({"task": (0, 1)}, TypeError, "task: the sink sets it itself"),
    ({"schema": "image"}, TypeError, "schema: expected a dict"),
    ({"schema": {"x": "i65"}}, penstock.InvalidError, "field 'x'"),
    ({"columns": {"y": "x"}}, penstock.InvalidError, "the schema has no field 'y'"),
    ({"columns": "x"}, TypeError, "columns: expected a dict"),
    ({"key": 3}, TypeError, "key: expected str"),
    ({"rows_per_task": 0}, penstock.InvalidError, "rows_per_task: expected 1"),
    ({"wait": -1}, penstock.InvalidError, "wait: expected 0"),
])
def test_arguments(tmp_path, given, error, message):
    with pytest.raises(error, match=message):
        penstock.ray.PackSink(**{"out": tmp_path / "a.pen", "schema": {"x": "i64"}, **given})


def test_a_missing_task_result(tmp_path):
    sink = penstock.ray.PackSink(tmp_path / "a.pen", {"x": "i64"})

    class Result:
        pass

    for Result.write_returns in ([(0, 3), (2, 1)], [(0, 3), (1, 1), (1, 1)]):
        with pytest.raises(penstock.CorruptError, match="write tasks are missing or repeated"):
            sink.on_write_complete(Result)


def test_pixels_that_are_no_pixels(tmp_path):
    from penstock.ray._sink import _value

    field = penstock.ray.PackSink(tmp_path, {"image": "image"}).fields[0]
    with pytest.raises(penstock.InvalidError, match="found float32 of shape"):
        _value(field, numpy.zeros((2, 2, 3), "f4"))
    assert _value(field, {"bytes": b"x", "path": None}) == b"x"
    assert _value(field, float("nan")) is None
