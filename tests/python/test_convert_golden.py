# SPDX-License-Identifier: Apache-2.0
"""Readers of other formats find what the real libraries wrote: see tests/golden/convert."""

import gzip
import io
import json
import os
import struct

import pytest
from convert_golden import GOLDEN, compare, damage, expected, read_all, unpacked, write
from PIL import Image
from py_tools import need_penstock

penstock = need_penstock()
pytest.importorskip("numpy")
from penstock._convert import _crc32c, _pixels, ffcv, litdata, mds, tfrecord  # noqa: E402
from penstock._convert._reader import Choice  # noqa: E402

SETS = [
    *((mds, "mds", name, name) for name in ("all", "gz", "bz2", "zstd")),
    *((litdata, "litdata", name, name) for name in ("all", "pairs")),
    (ffcv, "ffcv", "all", "all.beton.golden.gz"),
    *((tfrecord, "tfrecord", name, name) for name in ("all", "gzip")),
]


@pytest.mark.parametrize(("module", "folder", "name", "file"), SETS, ids=lambda v: str(v)[:20])
def test_golden(tmp_path, module, folder, name, file):
    if name == "zstd":
        pytest.importorskip("zstandard")
    source = str(unpacked(GOLDEN / folder / file, tmp_path / "source"))
    assert module.recognise(source)
    others = {mds, litdata, ffcv, tfrecord} - {module}
    assert not any(other.recognise(source) for other in others)
    with write(module.open(source, Choice()), tmp_path / "out.pen") as pack:
        assert compare(pack, expected(GOLDEN / folder, name)) > 0


DAMAGED = [
    (mds, "mds", "all", "index.json"),
    (mds, "mds", "all", "shard.00000.mds"),
    (mds, "mds", "gz", "shard.00000.mds.gz"),
    (litdata, "litdata", "all", "index.json"),
    (litdata, "litdata", "all", "chunk-0-0.bin"),
    (tfrecord, "tfrecord", "all", "train-00000-of-00002.tfrecord"),
    (tfrecord, "tfrecord", "gzip", "train-00000-of-00001.tfrecord"),
]


@pytest.mark.parametrize(("module", "folder", "name", "file"), DAMAGED, ids=lambda v: str(v)[-20:])
def test_damage_gives_errors_of_penstock_only(tmp_path, module, folder, name, file):
    source = unpacked(GOLDEN / folder / name, tmp_path / "source")
    refused = damage(module, source, source / file, Choice(), 1, flips=60, cuts=25)
    assert refused > 25
    assert read_all(module, source, Choice()) == len(expected(GOLDEN / folder, name))


@pytest.mark.parametrize("end", (0, 100, 3000, -30, -1))
def test_a_cut_beton_is_refused(tmp_path, end):
    path = unpacked(GOLDEN / "ffcv" / "all.beton.golden.gz", tmp_path / "source")
    data = path.read_bytes()
    path.write_bytes(data[:end])
    with pytest.raises(penstock.Error, match=r"all\.beton"):
        write(ffcv.open(str(path), Choice()), tmp_path / "out.pen")


def test_a_damaged_beton(tmp_path):
    path = unpacked(GOLDEN / "ffcv" / "all.beton.golden.gz", tmp_path / "source")
    assert damage(ffcv, path, path, Choice(), 1, flips=60, cuts=0) > 10


# ---- what is chosen, and what is refused


def rows(module, name, **choice):
    reader = module.open(str(GOLDEN / module.__name__.rpartition(".")[2] / name), Choice(**choice))
    return reader, [row for part in range(reader.parts) for row in reader.rows(part)]


def test_columns_keys_and_labels():
    columns = {"fixed": "bytes", "rgb": "i64[5,4,3]", "int": "", "json": "text"}
    reader, found = rows(mds, "all", columns=columns, key="str_int", label="int8")
    assert reader.schema == {**columns, "int": "i64", "int8": "i64"}
    assert reader.class_field == "int8"
    assert [key for key, _ in found] == [str(-i * 10**12) for i in range(6)]
    assert found[0][1]["fixed"][:6] == b"\x93NUMPY"
    assert found[0][1]["rgb"].shape == (5, 4, 3)
    reader, found = rows(litdata, "pairs", key="1")
    assert list(reader.schema) == ["0"]
    assert found[1][0] == "1"
    assert rows(tfrecord, "all")[1][3][0] == "000001/000000000"


def test_unknown_columns_are_named():
    with pytest.raises(penstock.InvalidError, match=r"no column 'imag'.*image"):
        rows(tfrecord, "all", columns={"imag": ""})


def test_pickles_are_not_read():
    with pytest.raises(penstock.UnsupportedError, match="column 'pkl'.*can run any code"):
        rows(mds, "pickle")
    assert rows(mds, "pickle", columns={"int": ""})[1][1][1] == {"int": 1}
    kept = rows(mds, "pickle", columns={"pkl": "bytes"})[1][0][1]["pkl"]
    assert kept.startswith(b"\x80")


@pytest.mark.parametrize("name", ("../all/shard.00000.mds", "/etc/passwd", "a//b", "", None, 5))
def test_an_index_names_only_files_in_its_folder(tmp_path, name):
    source = unpacked(GOLDEN / "mds" / "all", tmp_path / "source")
    index = json.loads((source / "index.json").read_text())
    index["shards"][0]["raw_data"]["basename"] = name
    (source / "index.json").write_text(json.dumps(index))
    with pytest.raises(penstock.InvalidError, match="expected a file in its folder"):
        mds.open(str(source), Choice())


def test_an_index_that_promises_less_stops_a_decompression_bomb(tmp_path):
    source = unpacked(GOLDEN / "mds" / "gz", tmp_path / "source")
    (source / "shard.00000.mds.gz").write_bytes(gzip.compress(bytes(50 << 20), 1))
    with pytest.raises(penstock.LimitError, match="after decompression"):
        rows_of = mds.open(str(source), Choice()).rows(0)
        next(rows_of)


def changed_index(tmp_path, **config):
    source = unpacked(GOLDEN / "litdata" / "pairs", tmp_path / "source")
    index = json.loads((source / "index.json").read_text())
    index["config"].update(config)
    (source / "index.json").write_text(json.dumps(index))
    return str(source)


@pytest.mark.parametrize("config", (
    {"encryption": {"algorithm": "fernet"}}, {"item_loader": "TokensLoader"},
    {"compression": "zstd", "compression_level": "batch"}, {"data_format": ["jpeg", "graph:1"]},
    {"data_format": ["no_header_numpy:14", "int"]}))  # fmt: skip
def test_what_litdata_has_and_we_do_not(tmp_path, config):
    with pytest.raises(penstock.UnsupportedError):
        litdata.open(changed_index(tmp_path, **config), Choice())


def test_a_feature_that_appears_late_is_not_lost(tmp_path, monkeypatch):
    monkeypatch.setattr(tfrecord, "_SNIFF", 1)
    with pytest.raises(penstock.InvalidError, match="not in the first 1 records"):
        rows(tfrecord, "all")


def message(number, data):
    return bytes([number << 3 | 2, len(data)]) + data


def write_records(path, values):
    """Records of tf.train.Example with the feature `x`: bytes or a small integer."""
    with open(path, "wb") as file:
        for x in values:
            kind, value = (1, message(1, x)) if isinstance(x, bytes) else (3, bytes([8, x]))
            entry = message(1, b"x") + message(2, message(kind, value))
            data = message(1, message(1, entry))
            head = struct.pack("<Q", len(data))
            file.write(head + struct.pack("<I", tfrecord._masked(head)))
            file.write(data + struct.pack("<I", tfrecord._masked(data)))
    return path


def test_a_feature_of_two_kinds(tmp_path):
    for values in ([b"a", 1], [1, b"a"]):
        source = str(write_records(tmp_path / "a.tfrecord", values))
        for choice in (Choice(), Choice(key="x"), Choice(label="x")):
            with pytest.raises(penstock.InvalidError, match="'x': expected bytes or numbers"):
                tfrecord.open(source, choice)


def test_class_names_that_are_bytes(tmp_path):
    """MDS, LitData and TFRecord have texts as bytes."""
    names = [b"owl", "\u00e4".encode(), b"owl", b"\xff"]
    write_records(tmp_path / "a.tfrecord", names)
    penstock.convert(tmp_path / "a.tfrecord", tmp_path / "a.pen", label="x", workers=1,
                     columns={"x": "text"})
    with penstock.open(tmp_path / "a.pen") as pack:
        assert pack.classes == ["owl", "\u00e4", "\udcff"]
        assert [sample["x"] for sample in pack] == [0, 1, 0, 2]
    for folder, label in (("mds", "str_decimal"), ("litdata", "nested.name")):
        penstock.convert(GOLDEN / folder / "all", tmp_path / f"{folder}.pen", label=label,
                         columns=[label], workers=1)
        found = [one[label] for one in expected(GOLDEN / folder, "all")]
        with penstock.open(tmp_path / f"{folder}.pen") as pack:
            assert pack.classes == sorted(set(found))
            assert [pack.classes[sample[label]] for sample in pack] == found


@pytest.mark.parametrize("name", ("index.json", "shard.00000.mds"))
def test_a_pipe_in_place_of_a_file(tmp_path, name):
    """To open one would block."""
    source = unpacked(GOLDEN / "mds" / "all", tmp_path / "source")
    (source / name).unlink()
    os.mkfifo(source / name)
    assert mds.recognise(str(source)) == (name != "index.json")
    with pytest.raises(penstock.InvalidError, match=f"{name}: expected a file, found a pipe"):
        list(mds.open(str(source), Choice()).rows(0))


def test_a_wrong_checksum_is_named(tmp_path):
    source = unpacked(GOLDEN / "tfrecord" / "all", tmp_path / "source")
    file = source / "train-00001-of-00002.tfrecord"
    data = bytearray(file.read_bytes())
    data[-1] ^= 1
    file.write_bytes(data)
    with pytest.raises(penstock.InvalidError, match=r"00001-of-00002.*byte \d+: the checksum"):
        list(tfrecord.open(str(source), Choice()).rows(1))


def test_crc32c_of_strips_is_that_of_bytes():
    assert _crc32c.crc32c(b"123456789") == 0xE3069283
    table, data = _crc32c._byte_table(), bytes(i * i % 251 for i in range(5000))
    state, ends = 0xFFFFFFFF, {}
    for i, byte in enumerate(data):
        ends[i] = state ^ 0xFFFFFFFF
        state = table[(state ^ byte) & 0xFF] ^ state >> 8
    for n in (0, 1, 128, 129, 130, 255, 256, 257, 1000, 4097):
        assert _crc32c.crc32c(data[:n]) == ends[n], n


@pytest.mark.parametrize("mode", ("1", "L", "LA", "RGB", "RGBA", "I;16"))
def test_pixels_as_png(mode):
    size = (13, 7)
    image = Image.frombytes("RGBA", size, bytes(i * 7 % 256 for i in range(4 * 13 * 7)))
    image = Image.frombytes(mode, size, bytes(i % 251 for i in range(2 * 13 * 7))) \
        if mode == "I;16" else image.convert(mode)
    back = Image.open(io.BytesIO(_pixels.png(image.tobytes(), *size, mode)))
    assert (back.mode, back.size, back.tobytes()) == (mode, size, image.tobytes())


@pytest.mark.parametrize(("width", "height", "mode"), (
    (0, 1, "L"), (70000, 1, "L"), (3, 3, "L"), (2, 2, "CMYK"), (65535, 65535, "RGB")))
def test_pixels_that_are_no_png(width, height, mode):
    with pytest.raises(penstock.Error):
        _pixels.png(bytes(4), width, height, mode)
