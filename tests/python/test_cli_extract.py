# SPDX-License-Identifier: Apache-2.0
"""extract: the files it writes, and the names it refuses. And the formats of other libraries that
the Python package writes."""

import errno
import io
import json
import os
import signal
import subprocess
import sys
import tarfile
import urllib.parse

import pytest
from cli_tools import (
    PENSTOCK,
    good,
    image_bytes,
    make_folder,
    picture,
    read_list,
    run,
    samples,
    without_preload,
    write_list,
)
from PIL import Image
from plain_writer import NO_IMAGE, Field, image, write_pack
from py_tools import need_penstock

LISTS = ("samples.csv", "samples.classes.csv")


def tree(root):
    return {os.fspath(p.relative_to(root)): p.read_bytes() for p in root.rglob("*") if p.is_file()}


def pixels(data):
    return Image.open(io.BytesIO(data)).convert("RGB").tobytes()


@pytest.fixture
def photos(tmp_path):
    make_folder(tmp_path / "photos")
    good("pack", tmp_path / "photos", "-o", tmp_path / "p.pen")
    return tmp_path


def test_all_samples_come_back_with_their_pixels(photos):
    record = good("extract", photos / "p.pen", "-o", photos / "out", "--json").json()
    source, files = tree(photos / "photos"), tree(photos / "out")
    assert (record["samples"], record["failed"], record["files"]) == (8, 0, 8)
    assert set(files) == {*source, *LISTS}
    for name, data in source.items():
        assert pixels(files[name]) == pixels(data)
    assert record["bytes"] == sum(len(d) for n, d in files.items() if n not in LISTS)


def test_kept_files_come_back_byte_for_byte(photos):
    good("pack", photos / "photos", "-o", photos / "k.pen", "--mode", "keep")
    good("extract", photos / "k.pen", "-o", photos / "out")
    files = tree(photos / "out")
    for name in LISTS:
        del files[name]
    assert files == tree(photos / "photos")


def test_the_list_can_be_packed_again(photos):
    good("extract", photos / "p.pen", "-o", photos / "out")
    good("pack", photos / "out" / "samples.csv", "-o", photos / "again.pen")
    old, new = samples(photos / "p.pen"), samples(photos / "again.pen")
    assert {k: s["fields"]["label"] for k, s in old.items()} == {
        k: s["fields"]["label"] for k, s in new.items()}


def test_some_samples_each_once(photos):
    by_key = samples(photos / "p.pen")
    key = "dog/1.jpg"
    wanted = {k for k, s in by_key.items() if s["index"] in (0, 3, 4, 5)} | {key}
    record = good("extract", photos / "p.pen", "-s", "3-5", "-s0", "--sample=4", "-k", key,
                  "-k", key, "-o", photos / "out", "--json").json()
    assert record["samples"] == len(wanted)
    assert set(tree(photos / "out")) == {*wanted, *LISTS}
    assert {r["path"] for r in read_list(photos / "out" / "samples.csv")} == wanted


def test_unknown_number_or_key_writes_nothing(photos):
    for option, value, said in (("-s", "8", "has 8 samples"), ("-s", "7-8", "has 8 samples"),
                                ("-k", "no", "no sample has this key")):
        result = run("extract", photos / "p.pen", "-s", "0", option, value, "-o", photos / "out")
        assert result.code == 1
        assert said in result.message()
        assert not (photos / "out").exists()


def test_nothing_is_overwritten(photos):
    (photos / "out" / "cat").mkdir(parents=True)
    (photos / "out" / "cat" / "1.jpg").write_bytes(b"mine")
    before = tree(photos / "out")
    result = run("extract", photos / "p.pen", "-o", photos / "out")
    assert result.code == 1
    assert "expected a new or an empty directory, found one with files" in result.message()
    assert tree(photos / "out") == before
    good("extract", photos / "p.pen", "-o", photos / "new")
    before = tree(photos / "new")
    assert run("extract", photos / "p.pen", "-o", photos / "new").code == 1
    assert tree(photos / "new") == before


def test_links_are_not_followed(tmp_path):
    """Links that another process makes meanwhile."""
    for name, n in (("a", 5000), ("zz", 2)):
        (tmp_path / "photos" / name).mkdir(parents=True)
        for i in range(n):
            (tmp_path / "photos" / name / f"{i}.jpg").write_bytes(image_bytes(1))
    good("pack", tmp_path / "photos", "-o", tmp_path / "p.pen", "--order", "source", "--no-index")
    outside = tmp_path / "outside"
    outside.mkdir()
    for turn in range(10):
        out = tmp_path / f"out{turn}"
        process = subprocess.Popen([PENSTOCK, "extract", tmp_path / "p.pen", "-o", out],
                                   stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                                   env=without_preload())
        while not (out / "a").exists() and process.poll() is None:
            pass
        process.send_signal(signal.SIGSTOP)
        is_early = not (out / "zz").exists()
        if is_early:
            (out / "zz").symlink_to(outside)
        process.send_signal(signal.SIGCONT)
        _, err = process.communicate(timeout=60)
        if is_early:
            break
    assert process.returncode == 1 and err.count("a part of this is a symbolic link") == 2
    assert list(outside.iterdir()) == []
    assert len(tree(out)) == 5000 + 2


def test_a_list_that_is_a_link_is_left_alone(photos):
    (photos / "out").mkdir()
    (photos / "out" / "samples.csv").symlink_to(photos / "elsewhere")
    assert run("extract", photos / "p.pen", "-o", photos / "out").code == 1
    assert not (photos / "elsewhere").exists()


HOSTILE = ["../up.jpg", "in/../../up2.jpg", "./dot.jpg", "in//empty.jpg", "new\nline.jpg",
           "esc\x1b[31m.jpg", "del\x7f.jpg"]


def test_hostile_keys_are_refused_and_the_rest_written(tmp_path):
    work = tmp_path / "a" / "b"
    (work / "in").mkdir(parents=True)
    absolute = str(work / "abs.jpg")
    keys = [*HOSTILE, absolute, "good.jpg", "in/good.jpg"]
    for i, key in enumerate(keys):
        (work / key).write_bytes(image_bytes(i))
    write_list(work / "l.csv", ["path"], [[k] for k in keys])
    good("pack", work / "l.csv", "-o", work / "p.pen", "--order", "source",
         "--allow-outside")
    before = tree(tmp_path)
    target = work / "out" / "deep"
    target.parent.mkdir()
    result = run("extract", work / "p.pen", "-o", target, "--json")
    assert result.code == 1
    assert result.json()["failed"] == len(HOSTILE) + 1
    assert set(tree(target)) == {"good.jpg", "in/good.jpg", "samples.csv"}
    after = tree(tmp_path)
    assert {n for n in after if n not in before} == {
        f"a/b/out/deep/{n}" for n in ("good.jpg", "in/good.jpg", "samples.csv")}
    lines = result.err.splitlines()
    for i in range(len(HOSTILE) + 1):
        assert lines[i].startswith(f"penstock: sample {i}: its key is not a safe file name: ")
    assert "key: ../up.jpg" in lines[0]
    assert "it begins with /" in lines[len(HOSTILE)]
    assert "\\x1b[31m" in lines[5] and "\x1b" not in result.err
    assert lines[-1] == f"penstock: {len(HOSTILE) + 1} samples could not be extracted"


def test_two_keys_with_one_name(tmp_path):
    for key in ("a", "a.jpg"):
        (tmp_path / key).write_bytes(image_bytes(key))
    write_list(tmp_path / "l.csv", ["path"], [["a"], ["a.jpg"]])
    good("pack", tmp_path / "l.csv", "-o", tmp_path / "p.pen", "--order", "source")
    result = run("extract", tmp_path / "p.pen", "-o", tmp_path / "out")
    assert result.code == 1
    assert "sample 1:" in result.err and "a.jpg exists already" in result.err
    assert pixels(tree(tmp_path / "out")["a.jpg"]) == pixels(image_bytes("a"))


def test_suffix_follows_the_bytes(tmp_path):
    kinds = {"a.jpeg": "JPEG", "b.JPG": "JPEG", "c.png": "JPEG", "d": "PNG", "e.jpg": "WEBP"}
    for i, (key, kind) in enumerate(kinds.items()):
        (tmp_path / key).write_bytes(image_bytes(i, kind))
    write_list(tmp_path / "l.csv", ["path"], [[k] for k in kinds])
    good("pack", tmp_path / "l.csv", "-o", tmp_path / "p.pen")
    good("extract", tmp_path / "p.pen", "-o", tmp_path / "out")
    assert set(tree(tmp_path / "out")) == {
        "a.jpeg", "b.JPG", "c.png.jpg", "d.png", "e.jpg.webp", "samples.csv"}


def test_too_long_a_name_is_refused(tmp_path):
    key = "x" * 253  # with .jpg behind it one part is longer than a file system takes
    (tmp_path / key).write_bytes(image_bytes(1))
    write_list(tmp_path / "l.csv", ["path"], [[key]])
    good("pack", tmp_path / "l.csv", "-o", tmp_path / "p.pen")
    result = run("extract", tmp_path / "p.pen", "-o", tmp_path / "out")
    assert result.code == 1
    assert "257 bytes" in result.err


def test_fields_go_to_files_and_to_the_list(tmp_path):
    (tmp_path / "m.png").write_bytes(image_bytes(9, "PNG", mode="L"))
    notes = ["plain", 'quoted "a", b\nnew line', "", " spaces "]
    rows = []
    for i, note in enumerate(notes):
        (tmp_path / f"{i}.jpg").write_bytes(image_bytes(i))
        rows.append([f"{i}.jpg", "ab"[i % 2], "m.png" if i < 2 else "", note, str(i - 2),
                     repr(i / 3)])
    names = ["path", "label", "mask", "note", "count", "score"]
    write_list(tmp_path / "l.csv", names, rows)
    good("pack", tmp_path / "l.csv", "-o", tmp_path / "p.pen", "--order", "source")
    good("extract", tmp_path / "p.pen", "-o", tmp_path / "out")
    listed = read_list(tmp_path / "out" / "samples.csv")
    for row, found in zip(rows, listed):
        want = dict(zip(names, row))
        want["mask"] = f"{row[0]}.mask.png" if row[2] else ""
        want["label"] = str("ab".index(row[1]))
        assert {n: found[n] for n in ("path", "label", "mask", "note", "count")} == {
            n: want[n] for n in ("path", "label", "mask", "note", "count")}
        assert float(found["score"]) == float(want["score"])
        assert samples(tmp_path / "p.pen")[row[0]]["fields"]["score"]["value"] == float(row[5])
    files = tree(tmp_path / "out")
    assert set(files) == {*(f"{i}.jpg" for i in range(4)), "0.jpg.mask.png", "1.jpg.mask.png",
                          *LISTS}
    assert files["samples.classes.csv"] == b"label,class\n0,a\n1,b\n"
    assert files["0.jpg.mask.png"] == (tmp_path / "m.png").read_bytes()
    good("pack", tmp_path / "out" / "samples.csv", "-o", tmp_path / "again.pen")
    old, new = samples(tmp_path / "p.pen"), samples(tmp_path / "again.pen")
    for key in old:
        for field in ("label", "note", "count", "score", "mask"):
            assert old[key]["fields"][field] == new[key]["fields"][field]


def test_raw_pixels_become_png(tmp_path):
    make_folder(tmp_path / "photos", each=2)
    good("pack", tmp_path / "photos", "-o", tmp_path / "p.pen", "--mode", "raw")
    good("extract", tmp_path / "p.pen", "-o", tmp_path / "out")
    files = tree(tmp_path / "out")
    source = tree(tmp_path / "photos")
    assert pixels(files["cat/0.jpg.png"]) == pixels(source["cat/0.jpg"])
    assert pixels(files["cat/1.png"]) == pixels(source["cat/1.png"]) == picture(1).tobytes()


def test_a_damaged_sample_leaves_the_others(tmp_path):
    make_folder(tmp_path / "photos", each=20)
    pack = tmp_path / "p.pen"
    good("pack", tmp_path / "photos", "-o", pack, "--mode", "keep")
    shard = next(pack.rglob("*.shard"))
    data = bytearray(shard.read_bytes())
    wanted = (tmp_path / "photos" / "cat" / "7.jpg").read_bytes()
    at = data.index(wanted)
    data[at + len(wanted) // 2] ^= 1
    shard.write_bytes(data)
    result = run("extract", pack, "-o", tmp_path / "out", "--json")
    assert result.code == 1
    assert (result.json()["samples"], result.json()["failed"]) == (39, 1)
    files = tree(tmp_path / "out")
    assert "cat/7.jpg" not in files
    assert len(files) == 39 + 2


def stored(seed, kind="JPEG"):
    """A picture as the plain writer takes it."""
    return image(image_bytes(seed, kind), 40, 30, codec=kind.lower())


def test_keys_that_no_list_can_hold(tmp_path):
    keys = [b"nul\0.jpg", b"\xff\xfe/ok.jpg", b"/", b"..", b"a/", b"x" * 4096]
    write_pack(tmp_path / "p.pen", [Field("image", "image")],
               [(k, {"image": stored(i)}) for i, k in enumerate(keys)], block_samples=2)
    result = run("extract", tmp_path / "p.pen", "-o", tmp_path / "out", "--json")
    assert result.code == 1
    assert (result.json()["samples"], result.json()["failed"]) == (1, 5)
    assert set(os.listdir(os.fsencode(tmp_path / "out"))) == {b"\xff\xfe", b"samples.csv"}
    assert set(os.listdir(tmp_path)) == {"p.pen", "out"}
    assert [r["path"] for r in read_list(tmp_path / "out" / "samples.csv")] == [
        os.fsdecode(b"\xff\xfe/ok.jpg")]
    assert "byte 0x00" in result.err
    listed = samples(tmp_path / "p.pen")
    assert set(listed) == {k.decode("latin-1") for k in keys}


def test_hostile_field_names_stay_below_the_directory(tmp_path):
    fields = [Field("image", "image"), Field("/../../../up", "bytes")]
    write_pack(tmp_path / "p.pen", fields,
               [(b"a.jpg", {"image": stored(1), "/../../../up": b"evil"})], block_samples=1)
    (tmp_path / "x" / "y").mkdir(parents=True)
    result = run("extract", tmp_path / "p.pen", "-o", tmp_path / "x" / "y" / "out")
    assert result.code == 1
    assert "not a safe file name" in result.err
    assert not [n for n in tree(tmp_path) if "up" in n]


def test_every_type_of_field_has_its_place(tmp_path):
    fields = [Field("clip", "clip"), Field("photo", "image"), Field("label", "i64"),
              Field("blob", "bytes"), Field("info", "json"), Field("text", "text"),
              Field("box", "f32", (2,)), Field("weight", "f32"), Field("more", "clip")]
    nothing, rows = {**NO_IMAGE, "orientation": 0}, []
    for i in range(3):
        rows.append((b"s/%d" % i, {
            "clip": [stored(10 * i + k, "PNG") for k in range(i)], "label": (0, 1, 1)[i],
            "photo": stored(i) if i else nothing, "blob": bytes([0, 255, i]), "info": b"{}",
            "text": (b"short", b"not utf-8 \xff", b"x" * 70000)[i],
            "box": [0.1, -1e30], "weight": 1 / 3, "more": [stored(5)]}))
    write_pack(tmp_path / "p.pen", fields, rows, block_samples=3,
               classes={2: [b"caf\xc3\xa9", b"b, c"]})
    good("extract", tmp_path / "p.pen", "-o", tmp_path / "out")
    files = tree(tmp_path / "out")
    files.pop("samples.csv")
    classes = files.pop("samples.classes.csv")
    assert set(files) == {
        "s/1/00001.png", "s/2/00001.png", "s/2/00002.png", "s/1.photo.jpg", "s/2.photo.jpg",
        *(f"s/{i}.blob.bin" for i in range(3)), *(f"s/{i}.info.json" for i in range(3)),
        "s/1.text.txt", "s/2.text.txt", *(f"s/{i}.more/00001.jpg" for i in range(3))}
    assert files["s/2/00002.png"] == image_bytes(21, "PNG")
    assert files["s/1.text.txt"] == b"not utf-8 \xff"
    assert files["s/2.blob.bin"] == b"\0\xff\2"
    listed = read_list(tmp_path / "out" / "samples.csv")
    assert list(listed[0]) == ["path", "photo", "label", "text", "box", "weight", "more"]
    assert [r["label"] for r in listed] == ["0", "1", "1"]
    assert [r["text"] for r in listed] == ["short", "", ""]
    assert [(r["box"], r["weight"]) for r in listed] == [("0.1 -1e+30", "0.33333334")] * 3
    assert classes.decode() == 'label,class\n0,café\n1,"b, c"\n'
    fields = samples(tmp_path / "p.pen")["s/2"]["fields"]
    assert fields["box"]["values"] == [0.1, -1e30]
    assert fields["clip"]["frames"] == 2
    assert fields["label"] == {"value": 1, "class": "b, c"}


# ---- formats of other libraries ------------------------------------------------------------------

SCHEMA = {
    "image": "image", "label": "i64", "mask": "mask", "text": "text?", "info": "json?",
    "mp4": "bytes?", "box": "f32[4]", "matrix": "f64[2,3]", "age": "i64", "index": "i64",
    "score": "f32",
}
CLASSES = ["cat", "dog", "bär"]
N = 12


def values(i):
    return {
        "image": image_bytes(i) if i != 5 else b"", "label": i % 3,
        "mask": image_bytes(i, "PNG", mode="L"), "text": None if i == 3 else f"Bild {i} ä",
        "info": None if i == 4 else {"n": i}, "mp4": None if i == 6 else bytes([i, 0, 255]),
        "box": [i, 1.5, 2, 3], "matrix": [[i, 1, 2], [3, 4, 0.1]], "age": -i, "index": 7 * i,
        "score": i / 4,
    }


def key_of(i):
    return f"v1.0/a.{i}.jpg" if i % 2 else f"v1.0/{i}.jpg"


@pytest.fixture
def package(monkeypatch):
    """The package, if it can be imported together with the other libraries."""
    penstock = need_penstock()
    if "san.so" in os.environ.get("LD_PRELOAD", ""):
        pytest.skip("the other libraries do not run under a sanitizer")
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    handlers = {number: signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGHUP)}
    yield penstock
    for number, handler in handlers.items():
        signal.signal(number, handler)


@pytest.fixture
def full(package, tmp_path):
    """A pack with fields of all types but clips, and with missing values."""
    with package.Writer(tmp_path / "p.pen", SCHEMA, classes=CLASSES, block_samples=4) as writer:
        for i in range(N):
            writer.add(key=key_of(i), **{**values(i), "image": values(i)["image"] or None})
    return tmp_path / "p.pen"


@pytest.fixture
def extract(package, capsys):
    """Runs the command in this process: the exit code, and what it printed."""
    from penstock import _cli

    def extract(pack, out, kind, *more):
        code = _cli._of_python(["extract", os.fspath(pack), "-o", os.fspath(out), "--to", kind,
                                *map(str, more)])
        printed = capsys.readouterr()
        return code, printed.out, printed.err

    return extract


def contents(package, path):
    """Key and values of all samples, with lists for arrays."""
    with package.open(path) as pack:
        return {sample.key: {name: value.tolist() if hasattr(value, "tolist") else value
                             for name, value in sample.items()} for sample in pack}


def test_the_program_refers_to_the_package(tmp_path):
    for kind in ("webdataset", "parquet"):
        result = run("extract", tmp_path / "p.pen", "-o", tmp_path / "out", f"--to={kind}")
        assert result.code == 2
        assert result.message() == (f"--to {kind} is a part of the Python package; run "
                                    "'python3 -m penstock extract'")
    result = run("extract", tmp_path / "p.pen", "-o", tmp_path / "out", "--shard-bytes", "1MiB")
    assert result.code == 2
    assert result.message() == "--shard-bytes needs --to webdataset or --to parquet"


def test_a_folder_is_the_default(photos):
    good("extract", photos / "p.pen", "-o", photos / "a")
    good("extract", photos / "p.pen", "-o", photos / "b", "--to", "folder")
    assert tree(photos / "a") == tree(photos / "b")


def test_webdataset_reads_the_tars(full, extract, tmp_path):
    webdataset = pytest.importorskip("webdataset")
    code, out, err = extract(full, tmp_path / "tars", "webdataset", "--shard-bytes", "40KiB",
                             "--json")
    files = sorted((tmp_path / "tars").glob("samples-*.tar"))
    n_bytes = sum(map(len, tree(tmp_path / "tars").values()))
    record = json.loads(out)
    assert (code, err, record.pop("seconds") >= 0) == (0, "", True)
    assert record == {"schema": 1, "pack": str(full), "dir": str(tmp_path / "tars"), "samples": N,
                      "failed": 0, "files": len(files) + 1, "bytes": n_bytes}
    assert 2 < len(files) < N and max(file.stat().st_size for file in files) <= (40 << 10) + 1024
    assert json.loads((tmp_path / "tars" / "classes.json").read_text()) == CLASSES
    found = list(webdataset.WebDataset([str(file) for file in files], shardshuffle=False).decode())
    names = {"jpg": "image", "cls": "label", "mask.png": "mask", "txt": "text", "index": "index",
             "info.json": "info", "mp4": "mp4", "box.npy": "box", "matrix.npy": "matrix",
             "age.npy": "age", "score.npy": "score"}
    for i, sample in enumerate(found):
        assert urllib.parse.unquote(sample["__key__"]) == key_of(i).removesuffix(".jpg")
        read = {names[name]: value.tolist() if hasattr(value, "tolist") else value
                for name, value in sample.items() if not name.startswith("__")}
        assert read == {n: v for n, v in values(i).items() if v is not None and v != b""}
    assert len(found) == N


def test_tars_can_be_converted_and_packed_again(full, package, extract, tmp_path):
    extract(full, tmp_path / "tars", "webdataset", "--shard-bytes", "40KiB")
    package.convert(tmp_path / "tars", tmp_path / "again.pen", classes=CLASSES, workers=1)
    with package.open(tmp_path / "again.pen") as again:
        assert again.schema == {**SCHEMA, "text": "text?"} and again.classes == CLASSES
    found = contents(package, tmp_path / "again.pen")
    assert {urllib.parse.unquote(key) + ".jpg": value for key, value in found.items()} == contents(
        package, full)
    extract(full, tmp_path / "few", "webdataset", "-s", "6-9")  # of numbers, pack reads the label
    good("pack", tmp_path / "few" / "samples-000000.tar", "-o", tmp_path / "few.pen")
    packed = contents(package, tmp_path / "few.pen")
    assert sorted((v["image"], v["label"]) for v in packed.values()) == sorted(
        (values(i)["image"], i % 3) for i in range(6, 10))


def test_datasets_reads_the_tables(full, package, extract, tmp_path):
    datasets, parquet = map(pytest.importorskip, ("datasets", "pyarrow.parquet"))
    code, _, err = extract(full, tmp_path / "tables", "parquet", "--shard-bytes", "8KiB")
    files = sorted((tmp_path / "tables").iterdir())
    assert (code, err) == (0, "") and 1 < len(files) < N
    assert [file.name for file in files] == [f"samples-{i:06d}.parquet" for i in range(len(files))]
    rows = [row for file in files for row in parquet.read_table(file).to_pylist()]
    for i, row in enumerate(rows):
        expected = values(i)
        expected["image"] = {"bytes": expected["image"], "path": None} if i != 5 else None
        expected["mask"] = {"bytes": expected["mask"], "path": None}
        expected["info"] = None if i == 4 else json.dumps(expected["info"], separators=(",", ":"))
        assert row == {"key": key_of(i), **expected}
    assert len(rows) == N
    dataset = datasets.Dataset.from_parquet(list(map(str, files)), cache_dir=str(tmp_path / "c"))
    assert dataset.features["label"].names == CLASSES
    assert isinstance(dataset.features["image"], datasets.Image) and dataset[5]["image"] is None
    assert dataset[2]["image"].tobytes() == pixels(values(2)["image"])
    assert dataset[7]["matrix"] == values(7)["matrix"]
    package.convert(tmp_path / "tables", tmp_path / "again.pen", key="key", workers=1,
                    columns={**dict.fromkeys(SCHEMA, ""), "info": "json?", "mask": "mask"})
    with package.open(tmp_path / "again.pen") as again:
        assert again.schema == SCHEMA and again.classes == CLASSES
    assert contents(package, tmp_path / "again.pen") == contents(package, full)


def test_frames_of_clips(package, extract, tmp_path):
    parquet = pytest.importorskip("pyarrow.parquet")
    with package.Writer(tmp_path / "p.pen", {"video": "clip", "key": "text"}) as writer:
        for i in range(3):
            writer.add(f"c{i}", video=[image_bytes(10 * i + k) for k in range(i)], key="own")
    assert extract(tmp_path / "p.pen", tmp_path / "tars", "webdataset")[0] == 0
    with tarfile.open(tmp_path / "tars" / "samples-000000.tar") as tar:
        assert tar.getnames() == ["c0.key.txt", "c1.video.00001.jpg", "c1.key.txt",
                                  "c2.video.00001.jpg", "c2.video.00002.jpg", "c2.key.txt"]
        assert tar.extractfile("c2.video.00002.jpg").read() == image_bytes(21)
    assert extract(tmp_path / "p.pen", tmp_path / "tables", "parquet")[0] == 0
    rows = parquet.read_table(tmp_path / "tables" / "samples-000000.parquet").to_pylist()
    assert [row["__key__"] for row in rows] == ["c0", "c1", "c2"]
    assert [[frame["bytes"] for frame in row["video"]] for row in rows] == [
        [image_bytes(10 * i + k) for k in range(i)] for i in range(3)]
    package.convert(tmp_path / "tables", tmp_path / "again.pen", key="__key__", workers=1)
    with package.open(tmp_path / "again.pen") as again:
        assert again.schema == {"video": "clip", "key": "text"}
        assert bytes(again[2]["video"][1]) == image_bytes(21)


@pytest.mark.parametrize("kind", ["webdataset", "parquet"])
def test_output_is_deterministic_and_never_replaced(full, extract, tmp_path, kind):
    pytest.importorskip("pyarrow")
    for name in "ab":
        assert extract(full, tmp_path / name, kind, "--shard-bytes", "20KiB")[0] == 0
    first = tree(tmp_path / "a")
    assert first == tree(tmp_path / "b")
    code, out, err = extract(full, tmp_path / "a", kind, "--json")
    assert code == 1 and "exists already and is not changed; extract to another" in err
    assert json.loads(out)["error"]["status"] == "E_EXISTS"
    assert tree(tmp_path / "a") == first
    (tmp_path / "c.partial").mkdir()
    code, _, err = extract(full, tmp_path / "c", kind)
    assert code == 1 and "c.partial exists: another process is writing it, or was killed" in err
    (tmp_path / "c.partial").rmdir()
    assert extract(full, tmp_path / "c", kind)[0] == 0
    code, _, err = extract(full, tmp_path / "no" / "d", kind)
    assert code == 1 and "no/d: cannot create this directory: No such file" in err


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP, signal.SIGINT, 0])
def test_an_interrupted_run_leaves_nothing(full, extract, tmp_path, monkeypatch, number):
    from penstock._export import webdataset

    write, seen = webdataset.Tars._write, []

    def fails_later(self, pieces):
        write(self, pieces)
        seen.append(os.listdir(tmp_path))
        if len(seen) == 5 and number:
            os.kill(os.getpid(), number)
        elif len(seen) == 5:
            raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(webdataset.Tars, "_write", fails_later)
    code, _, err = extract(full, tmp_path / "out", "webdataset", "--shard-bytes", "20KiB")
    where = tmp_path / "out"
    assert (code, err) == ((130, f"penstock: interrupted; {where} was not written\n") if number else
                           (1, f"penstock: {where}: cannot write: No space left on device\n"))
    assert sorted(seen[4]) == ["out.partial", "p.pen"] and len(seen) == 5
    assert os.listdir(tmp_path) == ["p.pen"]


def test_formats_of_some_samples(full, extract, tmp_path):
    code, out, _ = extract(full, tmp_path / "out", "webdataset", "-s3-5", "-s", "0", "-s", "4-6",
                           "-k", key_of(5), "--key", key_of(9))
    assert code == 0 and out.startswith(f"6 samples written to {tmp_path}/out, 2 files, 0.1 MB")
    with tarfile.open(tmp_path / "out" / "samples-000000.tar") as tar:
        assert [int(tar.extractfile(name).read()) // 7 for name in tar.getnames()
                if name.endswith(".index")] == [0, 3, 4, 5, 6, 9]
    for more, said in ((("-s", "12"), "-s 12: the pack has 12 samples"), (("-s", "x"), "-s x: "),
                       (("-k", "none"), "-k none: no sample has this key"), (("-s5-4",), "-s 5-4:"),
                       (("--relocate", "x"), "expected OLD=NEW"),
                       (("--cache-bytes", "1MiB"), "there is no cache"),
                       (("--shard-bytes", "x"), "--shard-bytes: expected a size")):
        code, _, err = extract(full, tmp_path / "no", "webdataset", *more)
        assert code == 1 and said in err
    assert sorted(os.listdir(tmp_path)) == ["out", "p.pen"]


@pytest.mark.parametrize("kind", ["webdataset", "parquet"])
def test_formats_show_their_progress(full, extract, tmp_path, monkeypatch, kind):
    pytest.importorskip("pyarrow")
    from penstock._convert._progress import Line

    seen = []
    monkeypatch.setattr(Line, "__call__", lambda self, done: seen.append(done))
    assert extract(full, tmp_path / "a", kind)[0] == 0 and not seen
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    assert extract(full, tmp_path / "b", kind)[0] == 0
    assert [done.samples for done in seen] == list(range(1, N + 1))
    assert seen[-1].n_rows == N
    assert seen[-1].n_bytes > sum(len(values(i)["image"]) for i in range(N))


def test_names_of_samples_in_tars(package):
    from penstock._export.webdataset import escaped

    names = {"plain": "plain", "a/b.c": "a/b%2Ec", "v1.0/x": "v1.0/x", "50%": "50%25",
             "../../up": "%2E%2E/%2E%2E/up", "./a": "%2E/a", "a/..": "a/%2E%2E", "/etc": "%2Fetc",
             "a//b/": "a%2F/b%2F", "/": "%2F", ".hidden": "%2Ehidden", "__m__": "%5F_m__",
             "n\n\0\x7f": "n%0A%00%7F", "\udcff\udcfe": "%FF%FE", "bär": "bär"}
    for key, name in names.items():
        assert escaped(key) == name
        assert urllib.parse.unquote(name, errors="surrogateescape") == key


def test_samples_that_a_format_cannot_hold(extract, tmp_path):
    parquet = pytest.importorskip("pyarrow.parquet")
    fields = [Field("image", "image"), Field("A", "text", optional=True),
              Field("a", "text", optional=True), Field("label", "i64")]
    nothing = {**NO_IMAGE, "orientation": 0}
    rows = [(b"a.jpg", {"image": stored(1), "A": b"x", "a": None, "label": 1}),
            (b"a", {"image": stored(2), "A": b"x", "a": None, "label": 0}),
            (b"b.jpg", {"image": stored(3), "A": b"x", "a": b"y", "label": 0}),
            (b"c.png", {"image": nothing, "A": b"\xff", "a": None, "label": 0}),
            (b"\xff.jpg", {"image": stored(4), "A": None, "a": None, "label": -1}),
            (b"d.jpg", {"image": stored(5), "A": None, "a": None, "label": 2})]
    write_pack(tmp_path / "p.pen", fields, rows, block_samples=2, classes={3: [b"x", b"y"]})
    code, out, err = extract(tmp_path / "p.pen", tmp_path / "tars", "webdataset", "--json")
    assert (code, json.loads(out)["samples"], json.loads(out)["failed"]) == (1, 4, 2)
    assert err.splitlines() == [
        "penstock: sample 1: its key 'a' and the key 'a.jpg' become the same name in WebDataset",
        "penstock: sample 2: two fields become the same member, .a.txt",
        "penstock: 2 samples could not be extracted"]
    with tarfile.open(tmp_path / "tars" / "samples-000000.tar") as tar:
        assert tar.getnames() == ["a.jpg", "a.A.txt", "a.cls", "c%2Epng.A.txt", "c%2Epng.cls",
                                  "%FF.jpg", "%FF.cls", "d.jpg", "d.cls"]
    code, out, err = extract(tmp_path / "p.pen", tmp_path / "tables", "parquet")
    assert code == 1 and out.startswith("3 samples written to ")
    assert err.splitlines()[:3] == [
        "penstock: sample 3: field 'A': Parquet stores texts in UTF-8 only",
        "penstock: sample 4: key: Parquet stores texts in UTF-8 only",
        "penstock: sample 5: expected a class number from -1 to 1, found 2"]
    table = parquet.read_table(tmp_path / "tables" / "samples-000000.parquet")
    assert table["key"].to_pylist() == ["a.jpg", "a", "b.jpg"]
    assert extract(tmp_path / "p.pen", tmp_path / "none", "parquet", "-s", "3")[0] == 1
    table = parquet.read_table(tmp_path / "none" / "samples-000000.parquet")
    assert table.num_rows == 0 and table.column_names == ["key", "image", "A", "a", "label"]
    write_pack(tmp_path / "e.pen", fields[:1], [(b"x", {"image": nothing})], block_samples=1)
    code, _, err = extract(tmp_path / "e.pen", tmp_path / "empty", "webdataset")
    assert code == 1 and "sample 0: it has no value, and WebDataset cannot store" in err


def test_formats_without_a_damaged_sample(package, extract, tmp_path):
    pytest.importorskip("pyarrow")
    make_folder(tmp_path / "photos", each=5)
    good("pack", tmp_path / "photos", "-o", tmp_path / "p.pen")
    shard = next((tmp_path / "p.pen").rglob("*.shard"))
    data = bytearray(shard.read_bytes())
    data[data.index((tmp_path / "photos" / "cat" / "2.jpg").read_bytes()) + 400] ^= 1
    shard.write_bytes(data)
    for kind in ("webdataset", "parquet"):
        code, out, err = extract(tmp_path / "p.pen", tmp_path / kind, kind, "--json")
        assert (code, json.loads(out)["samples"], json.loads(out)["failed"]) == (1, 9, 1)
        assert err.splitlines()[-1] == "penstock: 1 samples could not be extracted"


def test_formats_of_raw_pixels(extract, tmp_path):
    parquet = pytest.importorskip("pyarrow.parquet")
    make_folder(tmp_path / "photos", each=2)
    good("pack", tmp_path / "photos", "-o", tmp_path / "r.pen", "--mode", "raw")
    assert extract(tmp_path / "r.pen", tmp_path / "tables", "parquet")[0] == 0
    row = parquet.read_table(tmp_path / "tables" / "samples-000000.parquet").to_pylist()[0]
    assert pixels(row["image"]["bytes"]) == pixels(tree(tmp_path / "photos")[row["key"]])
    assert extract(tmp_path / "r.pen", tmp_path / "tars", "webdataset")[0] == 0
    with tarfile.open(tmp_path / "tars" / "samples-000000.tar") as tar:
        assert tar.getnames()[0].endswith(".png")
        assert tar.extractfile(tar.getnames()[0]).read() == row["image"]["bytes"]


def test_parquet_needs_pyarrow(full, extract, tmp_path, monkeypatch):
    for name in [name for name in sys.modules if name.partition(".")[0] == "pyarrow"] + ["pyarrow"]:
        monkeypatch.setitem(sys.modules, name, None)
    code, _, err = extract(full, tmp_path / "out", "parquet")
    assert code == 1 and "writing Parquet needs pyarrow; run 'pip install pyarrow'" in err
    assert os.listdir(tmp_path) == ["p.pen"]


def test_the_command_of_the_package(full, tmp_path):
    command = [sys.executable, "-m", "penstock", "extract", str(full), "-o", str(tmp_path / "out")]
    done = subprocess.run([*command, "--to", "webdataset"], capture_output=True, text=True,
                          timeout=120, check=False)
    assert (done.returncode, done.stderr) == (0, "") and "12 samples written" in done.stdout
    done = subprocess.run([*command, "--to", "parquet", "--help"], capture_output=True, text=True,
                          timeout=120, check=False)
    assert done.returncode == 0 and "--to FORMAT" in done.stdout
