# SPDX-License-Identifier: Apache-2.0
"""penstock.convert: broken images, malformed files, workers that die, runs that are killed, and the
command."""

import functools
import json
import os
import shutil
import signal
import subprocess
import sys
import time

import pytest
from convert_tools import need_library, penstock, samples, tree
from py_tools import jpeg, png, run_python

pa, pq = need_library("pyarrow", "pyarrow.parquet")
convert = functools.partial(penstock.convert, workers=1)


def command(*words, **options):
    return subprocess.run([sys.executable, "-m", "penstock", *map(str, words)], text=True,
                          capture_output=True, timeout=300, check=False, **options)


def write(path, columns, row_group_size=10, **options):
    pq.write_table(pa.table(columns), path, row_group_size=row_group_size, **options)
    return path


@pytest.fixture
def broken(tmp_path):
    """Every tenth image is cut off."""
    images = [jpeg(i)[: 300 if i % 10 == 9 else None] for i in range(40)]
    return write(tmp_path / "a.parquet", {"image": images, "n": list(range(40))})


def test_broken_images_stop(broken, tmp_path):
    for workers in (1, 2):
        with pytest.raises(penstock.DecodeError, match="key '00000./000000009'"):
            penstock.convert(broken, tmp_path / "a.pen", workers=workers)
        assert not (tmp_path / "a.pen" / "manifest").exists()


def test_broken_images_can_be_left_out(broken, tmp_path):
    done = convert(broken, tmp_path / "a.pen", on_bad="skip")
    assert (done.samples, done.skipped, len(done.bad)) == (36, 4, 4)
    assert done.bad[0][0] == "000000/000000009" and "jpeg" in done.bad[0][1]
    numbers = sorted(values["n"] for _, values in samples(tmp_path / "a.pen"))
    assert numbers == [i for i in range(40) if i % 10 != 9]


def test_too_many_broken_images(broken, tmp_path):
    with pytest.raises(penstock.LimitError, match="and 3 are allowed; the first is '000000/0000"):
        convert(broken, tmp_path / "a.pen", on_bad="skip", max_bad=3)
    assert not (tmp_path / "a.pen" / "manifest").exists()
    images = [b"\xff\xd8\xff"] * 11 + [png(1)]
    write(tmp_path / "b.parquet", {"image": images})
    with pytest.raises(penstock.LimitError, match="11 rows have broken images, and 10 are allowed"):
        convert(tmp_path / "b.parquet", tmp_path / "b.pen", on_bad="skip")


@pytest.mark.parametrize("settings, message", [
    ({"columns": ["imag"]}, "no column 'imag'; it has image, n; did you mean 'image'"),
    ({"key": "id"}, "a.parquet: no column 'id'; it has image, n"),
    ({"label": "kind"}, "no column 'kind'"),
    ({"columns": ["n", ""]}, "a.parquet: no column ''; it has image, n"),
    ({"label": ""}, "a.parquet: no column ''; it has image, n"),
    ({"columns": {"n": "i32"}}, "did you mean"),
    ({"columns": {"n": "text"}}, "row '000000/000000000': field 'n': expected str or bytes"),
    ({"columns": []}, "columns: expected different names"),
    ({"columns": ["n", "n"]}, "columns: expected different names"),
    ({"format": "csv"}, "format: expected one of .*huggingface, parquet"),
    ({"on_bad": "ignore"}, "on_bad: expected one of stop, skip"),
    ({"workers": 0}, "workers: expected 1 to 1024, found 0"),
    ({"max_bad": -1}, "max_bad: expected 0"),
    ({"mode": "tiles"}, "mode: expected one of"),
    ({"block_samples": 0}, "block_samples: expected 1"),
])
def test_wrong_arguments(tmp_path, settings, message):
    source = write(tmp_path / "a.parquet", {"image": [png(1)] * 3, "n": [1, 2, 3]})
    with pytest.raises(penstock.InvalidError, match=message):
        penstock.convert(source, tmp_path / "a.pen", **{"workers": 1, **settings})
    assert not (tmp_path / "a.pen" / "manifest").exists()


@pytest.mark.parametrize("settings", [
    {"columns": "n"}, {"columns": {"n": 3}}, {"columns": [3]}, {"classes": "ab"}, {"key": 3},
    {"progress": 3}, {"schema": {}}, {"task": (0, 1)}, {"no_such": 1},
])
def test_arguments_of_wrong_types(tmp_path, settings):
    source = write(tmp_path / "a.parquet", {"n": [1, 2, 3]})
    with pytest.raises(TypeError, match=next(iter(settings))):
        convert(source, tmp_path / "a.pen", **settings)


def test_texts_that_contain_json(tmp_path):
    source = write(tmp_path / "a.parquet", {"good": ['{"a": 1}', None], "bad": ["[", "1"]})
    convert(source, tmp_path / "a.pen", columns={"good": "json?"})
    with penstock.open(tmp_path / "a.pen") as pack:
        assert [sample["good"] for sample in pack] == [{"a": 1}, None]
    with pytest.raises(penstock.InvalidError, match="column 'bad': expected JSON, found '.'"):
        convert(source, tmp_path / "b.pen", columns={"bad": "json"})


def test_missing_numbers_and_labels(tmp_path):
    source = write(tmp_path / "a.parquet", {"n": [1, None], "kind": ["a", None]})
    with pytest.raises(penstock.InvalidError, match="missing values, .* store it as 'n:json[?]'"):
        convert(source, tmp_path / "a.pen", columns={"n": "i64"})
    with pytest.raises(penstock.InvalidError, match="expected the name of a class, found None"):
        convert(source, tmp_path / "b.pen", label="kind")
    with pytest.raises(penstock.InvalidError, match="column 'kind': expected a key, .* found None"):
        convert(source, tmp_path / "c.pen", key="kind")


@pytest.mark.parametrize("kind", ["image", "mask", "bytes", "bytes?", "clip"])
def test_columns_that_have_no_files(tmp_path, kind):
    """They would be stored as missing."""
    values = {"text": ["ab"], "list": pa.array([[1, 2]], pa.list_(pa.uint8())),
              "other": [{"data": b"x"}], "wrong": [{"bytes": "x", "path": None}]}
    source = write(tmp_path / "a.parquet", values)
    expected = {"text": "str", "list": "list|int", "other": "dict|str", "wrong": "str"}
    for name, found in expected.items():
        with pytest.raises(penstock.InvalidError,
                           match=f"column '{name}': expected the bytes of a file, found ({found})"):
            convert(source, tmp_path / f"{name}.pen", columns={name: kind})


def test_a_column_that_is_key_and_label(tmp_path):
    source = write(tmp_path / "a.parquet", {"kind": ["owl", "ant"], "n": [1, 2]})
    convert(source, tmp_path / "a.pen", key="kind", label="kind")
    assert samples(tmp_path / "a.pen") == [("owl", {"kind": 1, "n": 1}),
                                           ("ant", {"kind": 0, "n": 2})]


def test_arrays_of_many_dimensions(tmp_path):
    """A field has at most four."""
    value, kind = 1, pa.int64()
    for _ in range(5):
        value, kind = [value], pa.list_(kind, 1)
    source = write(tmp_path / "a.parquet", {"x": pa.array([value], kind)})
    convert(source, tmp_path / "a.pen")
    assert samples(tmp_path / "a.pen")[0][1] == {"x": value}


@pytest.mark.parametrize("name", ["a.parquet", "a.arrow", "a.tar", "a.beton", "a.tfrecord"])
def test_pipes_are_refused(tmp_path, name):
    """To open one would block."""
    os.mkfifo(tmp_path / name)
    with pytest.raises(penstock.InvalidError, match="expected a file, found a pipe|unknown format"):
        convert(tmp_path / name, tmp_path / "a.pen")


def test_links_and_hidden_names_below_a_folder(tmp_path):
    folder = tmp_path / "set"
    (folder / "part").mkdir(parents=True)
    (folder / ".cache").mkdir()
    write(folder / "part" / "a.parquet", {"n": [1]})
    write(tmp_path / "b.parquet", {"n": [2]})
    (folder / "part" / "b.parquet").symlink_to(tmp_path / "b.parquet")
    for name in (".cache/a.parquet", ".a.parquet"):
        write(folder / name, {"n": [3]})
    for i in range(20):
        (folder / f"again{i}").symlink_to(folder)
    convert(folder, tmp_path / "a.pen")
    assert [values["n"] for _, values in samples(tmp_path / "a.pen")] == [1, 2]


def test_a_label_with_too_many_values(tmp_path, monkeypatch):
    from penstock._convert import _job

    source = write(tmp_path / "a.parquet", {"kind": list("abc")})
    monkeypatch.setattr(_job, "CLASSES", 2)
    with pytest.raises(penstock.LimitError, match="more than 2 different values; expected names"):
        convert(source, tmp_path / "a.pen", label="kind")


def test_files_that_differ(tmp_path):
    write(tmp_path / "0.parquet", {"n": [1], "x": ["a"]})
    write(tmp_path / "1.parquet", {"n": [2], "x": [0.5]})
    with pytest.raises(penstock.InvalidError, match="1.parquet: column 'x' has another type than"):
        convert(tmp_path, tmp_path / "a.pen")
    assert convert(tmp_path, tmp_path / "a.pen", columns=["n"]).samples == 2


def test_sources_that_are_not_there(tmp_path):
    for name in ("x.parquet", "x.tar", "x.arrow", "*.parquet"):
        with pytest.raises(penstock.NotFoundError, match=name.replace("*", ".")):
            convert(tmp_path / name, tmp_path / "a.pen")
    with pytest.raises(penstock.NotFoundError, match="no such file or directory; expected one of"):
        convert(tmp_path / "nothing", tmp_path / "a.pen")
    for format in (None, "parquet"):
        with pytest.raises(penstock.UnsupportedError, match="local files only; download them"):
            convert("s3://bucket/a.parquet", tmp_path / "a.pen", format)
    (tmp_path / "a.csv").write_text("x")
    with pytest.raises(penstock.InvalidError, match="unknown format; expected one of .* or --from"):
        convert(tmp_path / "a.csv", tmp_path / "a.pen")


def test_an_existing_pack_is_left_alone(tmp_path):
    source = write(tmp_path / "a.parquet", {"n": [1, 2, 3]})
    convert(source, tmp_path / "a.pen")
    before = tree(tmp_path / "a.pen")
    with pytest.raises(penstock.ExistsError, match="already exists"):
        penstock.convert(source, tmp_path / "a.pen")
    assert tree(tmp_path / "a.pen") == before


def test_an_empty_dataset(tmp_path):
    source = write(tmp_path / "a.parquet", {"n": pa.array([], pa.int64())})
    with pytest.raises(penstock.InvalidError, match="no task has added a sample"):
        convert(source, tmp_path / "a.pen")


# ---- malformed files


def test_damaged_parquet_files(tmp_path):
    """Every change of a file gives an error of penstock, or the pack; never another exception."""
    good = write(tmp_path / "good.parquet", {
        "image": [png(i) for i in range(20)], "s": [f"text {i}" for i in range(20)],
        "v": [[i, 2] for i in range(20)]}, compression="zstd").read_bytes()
    damage_and_convert(tmp_path, good, "a.parquet", 60)


def test_damaged_arrow_files(tmp_path):
    table = pa.table({"s": [f"text {i}" for i in range(20)], "v": [[i, 2] for i in range(20)],
                      "d": pa.array(["a", "b"] * 10).dictionary_encode()})
    with pa.ipc.new_stream(str(tmp_path / "good.arrow"), table.schema) as file:
        file.write_table(table)
    damage_and_convert(tmp_path, (tmp_path / "good.arrow").read_bytes(), "a.arrow", 120)


DAMAGE = """
import pathlib, random, shutil, sys
import penstock
source, n = pathlib.Path(sys.argv[1]), int(sys.argv[2])
good = source.with_name("good" + source.suffix).read_bytes()
draw = random.Random(17)
for _ in range(n):
    data = bytearray(good)
    for _ in range(draw.randint(1, 4)):
        data[draw.randrange(len(data))] = draw.randrange(256)
    source.write_bytes(data[: draw.choice([len(data), draw.randrange(len(data))])])
    shutil.rmtree("out.pen", ignore_errors=True)
    try:
        penstock.convert(source, "out.pen", workers=1)
        print("ok")
    except penstock.Error as error:
        print("error")
"""


def damage_and_convert(folder, good, name, n):
    """In a process of its own, which would not survive a crash."""
    done = run_python(DAMAGE, folder / name, n, cwd=folder, seconds=300)
    assert done.returncode == 0, done.stderr[-2000:]
    assert done.stdout.count("\n") == n and done.stdout.count("error") > n // 4


def test_malformed_descriptions_of_hugging_face(tmp_path):
    table = pa.table({"n": [1, 2]})
    (tmp_path / "set").mkdir()
    with pa.ipc.new_stream(str(tmp_path / "out.arrow"), table.schema) as file:
        file.write_table(table)
    for state in ("{", "[]", "{}", '{"_data_files": [{"filename": "../out.arrow"}]}',
                  '{"_data_files": [{"filename": 3}]}', '{"_data_files": []}', "[" * 5000):
        (tmp_path / "set" / "state.json").write_text(state)
        with pytest.raises(penstock.InvalidError):
            convert(tmp_path / "set", tmp_path / "a.pen")
    for metadata in ("{", "[]", '{"info": {"features": 3}}', '{"info": {"features": {"n": [1]}}}',
                     '{"info": {"features": {"n": {"_type": "ClassLabel", "names": 3}}}}',
                     '{"info": {"features": {"n": {"_type": "Array2D", "shape": "ab"}}}}'):
        schema = table.schema.with_metadata({"huggingface": metadata})
        pq.write_table(table.cast(schema), tmp_path / "b.parquet")
        convert(tmp_path / "b.parquet", tmp_path / "b.pen")
        assert [values for _, values in samples(tmp_path / "b.pen")] == [{"n": 1}, {"n": 2}]
        for file in sorted((tmp_path / "b.pen").rglob("*"), reverse=True):
            file.rmdir() if file.is_dir() else file.unlink()
        (tmp_path / "b.pen").rmdir()


# ---- processes


def test_a_worker_that_dies_is_an_error(tmp_path):
    """Something outside kills a worker, for example when the machine is out of memory."""
    source = write(tmp_path / "a.parquet", {"n": list(range(40_000))}, row_group_size=1_000)
    killed = []

    def kill(_):
        if not killed:
            children = open(f"/proc/self/task/{os.getpid()}/children").read().split()
            killed.append(int(children[-1]))
            os.kill(killed[0], signal.SIGKILL)

    with pytest.raises(penstock.Error, match="ended with exit code -9; if the machine is out of"):
        penstock.convert(source, tmp_path / "a.pen", workers=2, progress=kill)
    assert not (tmp_path / "a.pen" / "manifest").exists()


def test_settings_that_workers_cannot_get(tmp_path):
    source = write(tmp_path / "a.parquet", {"n": list(range(40))})
    options = {"credentials": lambda: {"key_id": "a", "secret": "b"}}
    with pytest.raises(penstock.InvalidError, match="worker processes; use workers=1"):
        penstock.convert(source, "s3://bucket/a.pen", workers=2, storage_options=options)


def processes_with(word):
    found = []
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{pid}/environ", "rb") as file:
                if word.encode() in file.read():
                    found.append(int(pid))
        except OSError:
            pass
    return found


def kill_a_run(words, out, mark):
    """Kill it when it has begun to write."""
    run = subprocess.Popen([sys.executable, "-m", "penstock", *words],
                           env={**os.environ, "PENSTOCK_TEST_MARK": str(mark)})
    deadline = time.monotonic() + 300
    while not out.exists():
        assert time.monotonic() < deadline and run.poll() is None
        time.sleep(0.01)
    run.kill()
    run.wait()


def test_a_killed_run_can_be_started_again(tmp_path):
    """Its workers end, too, and the pack is that of a run without disturbance."""
    source = write(tmp_path / "a.parquet", {"n": list(range(40_000))}, row_group_size=1_000)
    words = ["convert", source, "-o", tmp_path / "a.pen", "--workers", "2", "--wait", "60"]
    for _ in range(3):  # on a busy machine a run can end before it is killed
        shutil.rmtree(tmp_path / "a.pen", ignore_errors=True)
        kill_a_run(words, tmp_path / "a.pen", tmp_path)
        if not (tmp_path / "a.pen" / "manifest").exists():
            break
    assert not (tmp_path / "a.pen" / "manifest").exists()
    deadline = time.monotonic() + 300
    while processes_with(f"PENSTOCK_TEST_MARK={tmp_path}"):
        assert time.monotonic() < deadline, "workers of a killed run do not end"
        time.sleep(0.01)
    done = command(*words)
    assert done.returncode == 0, done.stderr
    convert(source, tmp_path / "b.pen")
    assert tree(tmp_path / "a.pen") == tree(tmp_path / "b.pen")


# ---- the command


def test_command(tmp_path):
    source = write(tmp_path / "a.parquet", {"id": ["a", "b"], "v": [[1.0, 2.0]] * 2, "x": [1, 2],
                                            "kind": ["owl", "ant"]})
    done = command("convert", source, "-o", tmp_path / "a.pen", "--key", "id", "--label", "kind",
                   "--columns", "v:f32[2],x", "--workers", 1, "--json")
    assert done.returncode == 0 and json.loads(done.stdout)["samples"] == 2, done.stderr
    assert samples(tmp_path / "a.pen")[0] == ("a", {"v": [1.0, 2.0], "x": 1, "kind": 1})
    done = command("convert", source, tmp_path / "b.pen", "--from", "parquet", "--shard-bytes",
                   "1MiB", "--workers", 1)
    assert done.returncode == 0 and "b.pen: 2 samples" in done.stdout, done.stderr
    done = command("convert", source, "-o", tmp_path / "b.pen")
    assert done.returncode == 1 and "already exists" in done.stderr
    assert "Traceback" not in done.stderr
    done = command("convert", source)
    assert done.returncode == 2 and "expected one pack to write: -o NAME.pen" in done.stderr


def test_command_lists_what_it_left_out(broken, tmp_path):
    done = command("convert", broken, "-o", tmp_path / "a.pen", "--on-bad", "skip", "--workers", 1)
    assert done.returncode == 0 and "36 samples" in done.stdout
    assert "left out: 4 rows" in done.stderr and "000003/000000009: " in done.stderr


def test_help():
    one, two = command("help", "convert"), command("convert", "--help")
    assert one.returncode == two.returncode == 0 and one.stdout == two.stdout
    from penstock._convert import _formats

    assert all(f"\n  {name} " in one.stdout for name in _formats.FORMATS)


def test_progress_line():
    from penstock._convert import _progress

    line = _progress.Line()
    done = _progress.Progress(500, 0, [], 2_000_000, 2000)
    assert line.text(done, 10) == "500 samples, 0.2 MB/s, 25 %, 0:30 left"
    assert line.text(done._replace(n_rows=None), 10) == "500 samples, 0.2 MB/s"


def test_pyarrow_is_optional(tmp_path, monkeypatch):
    source = write(tmp_path / "a.parquet", {"n": [1]})
    for name in [name for name in sys.modules if name.partition(".")[0] == "pyarrow"]:
        monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(penstock.UnsupportedError, match="needs pyarrow; run 'pip install pyarrow'"):
        convert(source, tmp_path / "a.pen")
