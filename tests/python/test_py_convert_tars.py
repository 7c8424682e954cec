# SPDX-License-Identifier: Apache-2.0
"""penstock.convert with tar files that WebDataset wrote, and with malformed ones."""

import functools
import gzip
import io
import tarfile

import pytest
from convert_tools import need_library, penstock, samples, tree
from py_tools import encoded, jpeg, pixels, png

webdataset, numpy = need_library("webdataset", "numpy")
convert = functools.partial(penstock.convert, workers=1)


def web_sample(i):
    return {
        "__key__": f"train/{i:04d}", "jpg": jpeg(i), "cls": i % 3, "txt": f"Bild {i}",
        "json": {"n": i, "tags": ["ä", None]}, "left.png": png(i),
        "mask.png": encoded(pixels(i).convert("L")), "npy": numpy.full((2, 3), i, "f4"),
        "boxes.npy": numpy.full((4,), i, "i2"), "count": -i, "data.bin": bytes([i, 0, 255]),
    }


NAMES = {"jpg": "image", "cls": "label", "txt": "text", "left.png": "left", "mask.png": "mask",
         "boxes.npy": "boxes"}
SCHEMA = {
    "image": "image", "label": "i64", "text": "text?", "json": "json?", "left": "image",
    "mask": "mask", "npy": "f32[2,3]", "boxes": "i64[4]", "count": "i64", "data.bin": "bytes?",
}


@pytest.fixture(scope="module")
def tars(tmp_path_factory):
    folder = tmp_path_factory.mktemp("tars")
    for part in range(3):
        with webdataset.TarWriter(str(folder / f"web-{part:03d}.tar")) as writer:
            for i in range(part * 20, part * 20 + 20):
                writer.write(web_sample(i))
    return folder


def as_written(name, value):
    return value.tolist() if hasattr(value, "tolist") else value


@pytest.mark.parametrize("source", ["web-{000..002}.tar", "web-*.tar", ""])
def test_every_sample_and_field(tars, tmp_path, source):
    done = convert(tars / source, tmp_path / "a.pen", block_samples=10)
    assert done.samples == 60
    with penstock.open(tmp_path / "a.pen") as pack:
        assert {field.name: "mask" if field.mask else pack.schema[field.name]
                for field in pack.fields} == SCHEMA
    for i, (key, values) in enumerate(samples(tmp_path / "a.pen")):
        expected = web_sample(i)
        assert key == expected.pop("__key__")
        assert values == {NAMES.get(name, name): as_written(name, value)
                          for name, value in expected.items()}


def test_as_the_library_reads_them(tars, tmp_path):
    """The values are those of WebDataset's own decoders."""
    url = str(tars / "web-{000..002}.tar")
    read = list(webdataset.WebDataset(url, shardshuffle=False).decode())
    convert(url, tmp_path / "a.pen", block_samples=10)
    for sample, (key, values) in zip(read, samples(tmp_path / "a.pen"), strict=True):
        assert (sample["__key__"], sample["cls"], sample["txt"], sample["json"]) == (
            key, values["label"], values["text"], values["json"])
        assert sample["npy"].tolist() == values["npy"]
        assert sample["boxes.npy"].tolist() == values["boxes"]


def test_tars_in_workers_and_compressed(tars, tmp_path):
    zipped = tmp_path / "zipped"
    zipped.mkdir()
    for path in sorted(tars.glob("*.tar")):
        (zipped / f"{path.name}.gz").write_bytes(gzip.compress(path.read_bytes()))
    penstock.convert(zipped / "*.tar.gz", tmp_path / "a.pen", workers=2)
    convert(tars, tmp_path / "b.pen")
    assert tree(tmp_path / "a.pen") == tree(tmp_path / "b.pen")


def test_columns_and_keys_of_tars(tars, tmp_path):
    convert(tars, tmp_path / "a.pen", columns=["text"], key="count")
    convert(tars, tmp_path / "b.pen", columns={"image": "", "npy": "bytes"}, key="")
    assert sorted(samples(tmp_path / "a.pen"))[0] == ("-1", {"text": "Bild 1"})
    key, values = samples(tmp_path / "b.pen")[0]
    assert key == "000000/000000000" and values["npy"].startswith(b"\x93NUMPY")


def write_tar(path, *members):
    with tarfile.open(path, "w") as tar:
        for name, content in members:
            header = tarfile.TarInfo(name)
            header.size = len(content)
            tar.addfile(header, io.BytesIO(content))
    return path


def array(value, **options):
    out = io.BytesIO()
    numpy.save(out, value, **options)
    return out.getvalue()


def test_samples_without_some_members(tmp_path):
    write_tar(tmp_path / "a.tar", ("0.txt", b"one"), ("0.json", b"{}"), (".hidden", b"x"),
              ("__meta__/x", b"y"), ("1.json", b"null"), ("2.jpg", png(1)))
    convert(tmp_path / "a.tar", tmp_path / "a.pen")
    assert [values for _, values in samples(tmp_path / "a.pen")] == [
        {"text": "one", "json": {}, "image": b""}, {"text": None, "json": None, "image": b""},
        {"text": None, "json": None, "image": png(1)}]


def test_class_names_in_tars(tmp_path):
    write_tar(tmp_path / "a.tar", ("0.cls", b"owl\n"), ("1.cls", b"ant"), ("2.cls", b"owl"))
    convert(tmp_path / "a.tar", tmp_path / "a.pen")
    with penstock.open(tmp_path / "a.pen") as pack:
        assert pack.classes == ["ant", "owl"] and [s["label"] for s in pack] == [1, 0, 1]


@pytest.mark.parametrize("value", [
    numpy.asfortranarray(numpy.ones((2, 3))), numpy.array(["a", "b"]), numpy.zeros((0, 3)),
    numpy.array([1 + 2j]),
])
def test_other_arrays_are_stored_as_files(tmp_path, value):
    write_tar(tmp_path / "a.tar", ("0.npy", array(value)))
    convert(tmp_path / "a.tar", tmp_path / "a.pen")
    assert samples(tmp_path / "a.pen")[0][1] == {"npy": array(value)}


@pytest.mark.parametrize("value", [
    numpy.arange(6, dtype=">f8").reshape(2, 3), numpy.float64(0.5), numpy.array([True, False]),
    numpy.array([[2**63 - 1]]), numpy.array([0.5], "f2"),
])
def test_arrays_of_any_number(tmp_path, value):
    write_tar(tmp_path / "a.tar", ("0.npy", array(value)))
    convert(tmp_path / "a.tar", tmp_path / "a.pen")
    assert samples(tmp_path / "a.pen")[0][1] == {"npy": value.tolist()}


GOOD = ("0.cls", b"1")
BAD = {
    "no suffix": ([("README", b"x")], "README: expected a name such as 0017.jpg, found one withou"),
    "second": ([("0.jpg", b""), ("0.jpeg", b"")], "expected one member for field 'image' in a sam"),
    "missing": ([GOOD, ("1.txt", b"")], "sample '1' has no member for field 'label'"),
    "label": ([GOOD, ("1.cls", b"one")], "field 'label': expected i64, found b'one'"),
    "json": ([("0.json", b"{")], r"field 'json': expected json\?, found b'{'"),
    "text": ([("0.txt", b"\xff")], r"field 'text': expected text\?, found b'.xff'"),
    "npy": ([("0.npy", b"x")], "expected an array in .npy format: it does not start"),
    "pickle": ([("0.npy", array(numpy.ones(3))[:-1])], r"a shape of \(3,\) does not fit 23 bytes"),
    "shapes": ([("0.npy", array(numpy.ones(3))), ("1.npy", array(numpy.ones(4)))],
               r"row '1': field 'npy': expected f64 of shape \(3,\)"),
    "long header": ([("0.npy", b"\x93NUMPY\2\0\xff\xff\xff\xff00")], "its header is too long"),
    "hostile header": ([("0.npy", b"\x93NUMPY\1\0\x0a\0" + b"(" * 10)], "in .npy format"),
    "members": ([(f"0.a{i}", b"") for i in range(257)], "expected at most 256 members and 2 GiB"),
    "keys": ([("0.cls", b"1"), ("1.cls", b"1"), ("0.cls", b"1")], "'0' occurs twice"),
}


@pytest.mark.parametrize("members, message", BAD.values(), ids=BAD)
def test_malformed_members_are_named(tmp_path, members, message):
    write_tar(tmp_path / "a.tar", *members)
    with pytest.raises((penstock.InvalidError, penstock.ExistsError), match=message):
        convert(tmp_path / "a.tar", tmp_path / "a.pen")
    assert not (tmp_path / "a.pen" / "manifest").exists()


def test_a_range_of_too_many_files(tmp_path):
    with pytest.raises(penstock.InvalidError, match="a range of at most 1000000 files"):
        convert(tmp_path / "{0..999999999}.tar", tmp_path / "a.pen")


def test_a_field_that_only_a_later_tar_has(tmp_path):
    write_tar(tmp_path / "0.tar", ("0.txt", b"a"))
    write_tar(tmp_path / "1.tar", ("1.txt", b"b"), ("1.vtt", b"c"))
    with pytest.raises(penstock.InvalidError, match="field 'vtt', which no sample of .*0.tar has; "
                                                    "name the fields to store with columns="):
        convert(tmp_path / "?.tar", tmp_path / "a.pen")
    convert(tmp_path / "?.tar", tmp_path / "b.pen", columns={"text": "", "vtt": "bytes?"})
    assert samples(tmp_path / "b.pen")[1][1] == {"text": "b", "vtt": b"c"}


def test_directories_and_long_names(tmp_path):
    name = "long/" * 60 + "0.txt"
    with tarfile.open(tmp_path / "a.tar", "w", format=tarfile.GNU_FORMAT) as tar:
        for info in (tarfile.TarInfo("long"), tarfile.TarInfo(name)):
            info.type = tarfile.REGTYPE if info.name == name else tarfile.DIRTYPE
            tar.addfile(info)
    convert(tmp_path / "a.tar", tmp_path / "a.pen")
    assert samples(tmp_path / "a.pen") == [(name.removesuffix(".txt"), {"text": ""})]


def header(name, size, kind=b"0"):
    info = tarfile.TarInfo(name)
    info.size, info.type = size, kind
    return info.tobuf(tarfile.GNU_FORMAT)


def sparse_map(numbers):
    """A sparse file whose map has so many numbers, after a pax header that announces it."""
    info = tarfile.TarInfo("0.txt")
    info.pax_headers = {f"GNU.sparse.{name}": value for name, value in (
        ("major", "1"), ("minor", "0"), ("name", "0.txt"), ("realsize", "1"))}
    info.size = 2 * numbers + 512
    return info.tobuf(tarfile.PAX_FORMAT) + f"{numbers // 2}\n".encode() + b"0\n" * numbers


HOSTILE = {
    "truncated": header("0.txt", 1 << 20) + b"short",
    "huge": header("0.txt", 1 << 50) + b"short",
    "header": header("x", 1 << 40, b"x") + b"0" * 512,
    "long name": header("x", 1 << 40, b"L") + b"0" * 512,
    "zeros": b"\0" * 100,
    "noise": bytes(range(256)) * 16,
    "gzip": b"\x1f\x8b" + bytes(range(256)),
    "negative size": header("0.txt", -512),
    "many long names": (header("x", 1, b"L") + b"x" * 512) * 1000,
    "bomb": gzip.compress(header("x", 1 << 32, b"x") + b"0" * (8 << 20)),
}


@pytest.mark.parametrize("content", HOSTILE.values(), ids=HOSTILE)
def test_malformed_tars(tmp_path, content):
    (tmp_path / "a.tar").write_bytes(content)
    with pytest.raises(penstock.InvalidError, match="a.tar: |at least one field"):
        convert(tmp_path / "a.tar", tmp_path / "a.pen")


@pytest.mark.parametrize("content", [
    gzip.compress(sparse_map(2 << 20)), header("x", -1024, b"L") + b"0" * 4096,
], ids=["sparse map", "negative long name"])
def test_headers_that_would_need_much_memory(tmp_path, content):
    """Many small reads count together, and a negative size would read all."""
    (tmp_path / "a.tar").write_bytes(content)
    with pytest.raises(penstock.InvalidError, match="a.tar: expected headers of at most 1 MiB"):
        convert(tmp_path / "a.tar", tmp_path / "a.pen")
