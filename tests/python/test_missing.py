# SPDX-License-Identifier: Apache-2.0
"""Parts that some samples of a tar lack: missing, not empty, whatever is done to the pack."""

import io
import json
import pathlib
import struct
import tarfile

import pytest
from cli_tools import good, image_bytes, run
from plain_reader import Pack as PlainPack
from py_tools import need_penstock

penstock = need_penstock()
FIXED = ("--order", "source", "--block-samples", "2", "--shard-bytes", "1")
# Sample 2 is empty in all that may be missing.
WHOLE = {n: {"cls": b"%d" % (n % 2), "txt": b"text %d" % n if n != 2 else b"",
             "npy": bytes(range(n)) if n != 2 else b"",
             "json": b"[%d]" % n if n != 2 else b"null"} for n in range(7)}
LACKS = {0: ("txt",), 1: ("json", "npy"), 4: ("txt", "json"), 6: ("txt",)}
FIELD = {"txt": "text", "npy": "npy", "json": "json"}
COUNTS = {"text": 3, "json": 2, "npy": 1}


def write_tar(path, samples):
    with tarfile.open(path, "w", format=tarfile.USTAR_FORMAT) as tar:
        for key, parts in samples.items():
            for suffix, data in parts.items():
                entry = tarfile.TarInfo(f"{key}.{suffix}")
                entry.size = len(data)
                tar.addfile(entry, io.BytesIO(data))
    return path


def lacking():
    return {n: {suffix: data for suffix, data in WHOLE[n].items() if suffix not in LACKS.get(n, ())}
            for n in WHOLE}


def counts(record):
    return {row["field"]: row["samples"] for row in record["missing"]}


def check(path, samples):
    """All readers find what the samples have, and what they lack."""
    good("verify", path)
    plain = PlainPack(path)
    with penstock.open(path) as pack:
        assert len(pack) == len(plain.samples) == len(samples)
        for key, parts in samples.items():
            at = pack.index(str(key))
            for suffix, name in FIELD.items():
                data = parts.get(suffix)
                assert pack.missing(at, name) == (data is None), (key, name)
                assert plain.samples[at][1][name] == data, (key, name)
                value = {"txt": lambda data: data.decode(), "json": json.loads}.get(suffix, bytes)
                assert pack[at][name] == (None if data is None else value(data)), (key, name)


def must(path):
    return struct.unpack_from("<Q", (path / "manifest").read_bytes(), 16)[0]


def shard_musts(path):
    return [struct.unpack_from("<Q", shard.read_bytes(), 16)[0] for shard in path.glob("*/*.shard")]


@pytest.fixture
def packed(tmp_path):
    tar = write_tar(tmp_path / "a.tar", lacking())
    good("pack", tar, "-o", tmp_path / "a.pen", *FIXED)
    return tmp_path / "a.pen"


def test_missing_is_not_empty(packed):
    check(packed, lacking())
    with penstock.open(packed) as pack:
        assert pack.schema == {"label": "i64", "json": "json?", "npy": "bytes?", "text": "text?"}
        assert pack.info["missing"] == COUNTS
        assert pack.missing(0, "label") is False
        with pytest.raises(penstock.NotFoundError, match="no field 'none'"):
            pack.missing(0, "none")
        with pytest.raises(IndexError):
            pack.missing(7, "text")
    assert must(packed) == 1 and set(shard_musts(packed)) == {1}


def test_the_report_counts_them_by_field(tmp_path):
    tar = write_tar(tmp_path / "a.tar", lacking())
    result = good("pack", tar, "-o", tmp_path / "a.pen", "--json")
    assert counts(result.json()) == COUNTS
    assert result.err.splitlines() == ["penstock: field 'json' is missing in 2 samples",
                                       "penstock: field 'npy' is missing in 1 sample",
                                       "penstock: field 'text' is missing in 3 samples"]
    text = good("pack", tar, "-o", tmp_path / "b.pen").out
    table = "missing\n  field  samples\n  json         2\n  npy          1\n  text         3\n"
    assert table in text
    record = good("info", tmp_path / "a.pen", "--json").json()
    assert counts(record) == COUNTS
    assert [field["type"] for field in record["fields"]] == ["i64", "json?", "bytes?", "text?"]
    listed = [json.loads(line) for line in
              good("info", tmp_path / "a.pen", "--samples", "--json").out.splitlines()]
    found = {row["key"]: row["fields"]["text"]["missing"] for row in listed}
    assert found == {str(n): "txt" in LACKS.get(n, ()) for n in WHOLE}


def test_without_missing_values_nothing_changes(tmp_path):
    """The id is the one that builds gave which knew no missing values, but for the columns."""
    samples = {n: {k: v for k, v in parts.items() if k != "json"} for n, parts in WHOLE.items()}
    samples[2]["npy"] = b"\0\1"
    tar = write_tar(tmp_path / "a.tar", samples)
    result = good("pack", tar, "-o", tmp_path / "a.pen", "--block-samples", "2", "--no-index",
                  "--json")
    assert result.json()["id"] == "7d000b82d1eb955f03e959c663a16b12"
    assert result.json()["missing"] == [] and result.err == ""
    assert "\nmissing" not in good("info", tmp_path / "a.pen").out


def test_samples_left_out_do_not_count(tmp_path):
    """What lacks a part is in the pack already: the fields stay as they are."""
    whole, some = WHOLE[3], {"3": {"cls": b"1", "npy": b"x", "json": b"1"}, "8": WHOLE[5]}
    out = tmp_path / "a.pen"
    good("pack", write_tar(tmp_path / "a.tar", {"3": whole}), "-o", out, *FIXED)
    good("pack", write_tar(tmp_path / "b.tar", some), "-o", out, "--append", *FIXED)
    assert must(out) == 0
    check(out, {"3": whole, "8": WHOLE[5]})


def test_append_makes_fields_optional(tmp_path):
    out = tmp_path / "a.pen"
    first = {n: WHOLE[n] for n in range(3)}
    later = {f"b{n}": parts for n, parts in lacking().items()}
    good("pack", write_tar(tmp_path / "a.tar", first), "-o", out, *FIXED)
    assert must(out) == 0
    result = good("pack", write_tar(tmp_path / "b.tar", later), "-o", out, "--append", *FIXED,
                  "--json")
    assert counts(result.json()) == COUNTS
    assert must(out) == 1 and set(shard_musts(out)) == {0, 1}
    check(out, {**first, **later})


def test_append_keeps_them(tmp_path):
    """Also those of the short last block, which is written anew: they are counted once."""
    out = tmp_path / "a.pen"
    first, later = lacking(), {f"b{n}": parts for n, parts in WHOLE.items()}
    good("pack", write_tar(tmp_path / "a.tar", first), "-o", out, *FIXED)
    result = good("pack", write_tar(tmp_path / "b.tar", later), "-o", out, "--append", *FIXED,
                  "--json")
    assert counts(result.json()) == COUNTS
    check(out, {**first, **later})
    again = good("pack", tmp_path / "b.tar", "-o", out, "--append", *FIXED, "--json")
    assert counts(again.json()) == COUNTS


def test_a_tar_without_the_field_appended(tmp_path):
    out = tmp_path / "a.pen"
    later = {f"b{n}": {"cls": b"1", "json": b"1", "npy": b"x"} for n in range(3)}
    good("pack", write_tar(tmp_path / "a.tar", WHOLE), "-o", out, *FIXED)
    good("pack", write_tar(tmp_path / "b.tar", later), "-o", out, "--append", *FIXED)
    check(out, {**WHOLE, **later})


def test_tasks_and_finalise(tmp_path):
    """The rests of the tasks are joined."""
    out, tar = tmp_path / "a.pen", write_tar(tmp_path / "a.tar", lacking())
    good("plan", tar, "-o", out, *FIXED)
    for n in range(3):
        good("pack", tar, "-o", out, *FIXED, "--task", f"{n}/3")
    result = good("finalise", out, "--json")
    assert counts(result.json()) == COUNTS
    assert "field 'text' is missing in 3 samples" in result.err
    check(out, lacking())


def test_a_run_that_resumes(tmp_path):
    """It ends at a broken image after the others are packed; their shards are taken over."""
    samples = {n: {**parts, "jpg": image_bytes(n)} for n, parts in lacking().items()}
    broken = {**samples, 6: {**samples[6], "jpg": b"this is no picture"}}
    out, tar = tmp_path / "a.pen", write_tar(tmp_path / "a.tar", broken)
    command = ("pack", tar, "-o", out, *FIXED, "--mode", "keep", "--json")
    assert run(*command).code == 1 and list(out.glob("*/*.shard"))
    result = good(*command, "--on-bad", "skip").json()
    assert result["resumed"] == 6 and counts(result) == {**COUNTS, "text": 2}
    check(out, {n: parts for n, parts in samples.items() if n != 6})


def test_copy_keeps_them(packed, tmp_path):
    good("copy", packed, tmp_path / "b.pen")
    check(tmp_path / "b.pen", lacking())


def test_extract(packed, tmp_path):
    """No file for missing bytes and json; a missing text is an empty cell."""
    good("extract", packed, "-o", tmp_path / "out")
    names = {file.name for file in pathlib.Path(tmp_path / "out").iterdir()}
    texts = {f"{n}.json.json" for n in WHOLE if "json" not in LACKS.get(n, ())}
    blobs = {f"{n}.npy.bin" for n in WHOLE if "npy" not in LACKS.get(n, ())}
    assert names == texts | blobs | {"samples.csv"}
    rows = (tmp_path / "out" / "samples.csv").read_text().splitlines()
    assert rows[1:4] == ["0,0,", "1,1,text 1", "2,0,"]


def test_packing_what_was_extracted(tmp_path):
    """A list has no way to say that a text is missing: it comes back as an empty one."""
    samples = {n: {"jpg": image_bytes(n), **({"txt": b"hello"} if n else {})} for n in range(2)}
    good("pack", write_tar(tmp_path / "a.tar", samples), "-o", tmp_path / "a.pen", *FIXED)
    good("extract", tmp_path / "a.pen", "-o", tmp_path / "out")
    good("pack", tmp_path / "out" / "samples.csv", "-o", tmp_path / "b.pen", *FIXED)
    with penstock.open(tmp_path / "a.pen") as pack, penstock.open(tmp_path / "b.pen") as again:
        assert [sample["text"] for sample in pack] == [None, "hello"]
        assert [sample["text"] for sample in again] == ["", "hello"]
        assert again.schema["text"] == "text"


def test_missing_images_are_counted(tmp_path):
    """They were there before: an old reader takes them, and they read as no bytes."""
    samples = {n: {"cls": b"1", **({"jpg": image_bytes(n)} if n % 3 else {})} for n in range(4)}
    out = tmp_path / "a.pen"
    result = good("pack", write_tar(tmp_path / "a.tar", samples), "-o", out, *FIXED, "--no-index",
                  "--json")
    assert counts(result.json()) == {"image": 2} and must(out) == 0
    PlainPack(out)
    with penstock.open(out) as pack:
        assert pack.schema["image"] == "image"
        assert [pack.missing(n, "image") for n in range(4)] == [True, False, False, True]
        assert pack[0]["image"] == b""
        with penstock.Loader(pack, 2, pipeline="decode | center_crop 8 | tensor u8", threads=1,
                             order="sequential", output="numpy") as loader, \
                pytest.raises(penstock.NotFoundError, match="sample 0 '0': field 'image' is empty"):
            next(iter(loader))


def test_a_missing_label_is_an_error(tmp_path):
    samples = {**WHOLE, 3: {"txt": b"x", "npy": b"", "json": b"1"}}
    result = run("pack", write_tar(tmp_path / "a.tar", samples), "-o", tmp_path / "a.pen")
    assert result.code == 1 and "3" in result.err and "label" in result.err


def test_numbers_of_such_a_pack_are_loaded(packed):
    with penstock.open(packed) as pack, \
            penstock.Loader(pack, 7, order="sequential", output="numpy", threads=1) as loader:
        labels, = next(iter(loader))
        assert labels.tolist() == [n % 2 for n in range(7)]


SCHEMA = {"note": "text?", "blob": "bytes?", "data": "json?", "plain": "text"}


def test_the_writer_takes_none(tmp_path):
    rows = [{"note": None, "blob": None, "data": None, "plain": ""},
            {"note": "", "blob": b"", "data": b"null", "plain": "x"}]
    penstock.write(tmp_path / "a.pen", rows, SCHEMA)
    with penstock.open(tmp_path / "a.pen") as pack:
        assert pack.schema == SCHEMA
        assert dict(pack[0]) == rows[0]
        assert dict(pack[1]) == {**rows[1], "data": None}
        assert [pack.missing(n, "data") for n in range(2)] == [True, False]
        again = ({name: value for name, value in sample.items()} for sample in pack)
        penstock.write(tmp_path / "b.pen", again, pack.schema)
    with penstock.open(tmp_path / "b.pen") as pack:
        assert pack[0]["note"] is None and pack[1]["note"] == ""
    good("verify", tmp_path / "a.pen")
    PlainPack(tmp_path / "a.pen")


def test_the_writer_refuses(tmp_path):
    for kind in ("image?", "mask?", "clip?", "i64?", "f32[2]?"):
        with pytest.raises(penstock.InvalidError, match="only bytes, json, text and .* optional"):
            penstock.Writer(tmp_path / "a.pen", {"a": kind})
    with penstock.Writer(tmp_path / "b.pen", SCHEMA) as writer:
        with pytest.raises(penstock.InvalidError, match="'plain': expected str or bytes, found N"):
            writer.add(note=None, blob=None, data=None, plain=None)
        writer.add(note=None, blob=None, data=None, plain="")
