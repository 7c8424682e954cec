# SPDX-License-Identifier: Apache-2.0
"""JPEG files that are stored byte for byte, with an entry table: all readers find the same."""

import io
import os
import random
import struct
import subprocess
import sys

import numpy
import pytest
from cli_tools import good, run
from PIL import Image
from plain_reader import Pack as PlainPack
from plain_reader import PackError
from plain_writer import Field, Index, image, write_pack
from py_tools import need_penstock

penstock = need_penstock()
FIELDS = [Field("photo", "image")]
SIZES = [(203, 97), (97, 61), (150, 130), (64, 200)]
KINDS = [(2, 8), (0, 16), (1, 12), (2, 5)]  # subsampling, unit


def jpeg(size, seed, **options):
    width, height = size
    y, x = numpy.mgrid[:height, :width]
    noise = numpy.frombuffer(random.Random(seed).randbytes(width * height), numpy.uint8) % 30
    pixels = numpy.stack([x * 7, y * 5 + noise.reshape(height, width), x + y], axis=2)
    out = io.BytesIO()
    Image.fromarray((pixels % 256).astype(numpy.uint8)).save(out, "JPEG", **options)
    return out.getvalue()


def files(**options):
    return [jpeg(size, n, subsampling=sub, quality=90, **options)
            for n, (size, (sub, _)) in enumerate(zip(SIZES, KINDS))]


def write(path, datas, change=None):
    """change(index) may change what a table says."""
    samples = []
    for n, (data, size, (_, unit)) in enumerate(zip(datas, SIZES, KINDS)):
        index = Index(data, unit)
        if change:
            change(index)
        photo = image(data, *size, codec="jpeg", how="indexed", segments=index)
        samples.append((b"%d" % n, {"photo": photo}))
    write_pack(path, FIELDS, samples, n_stats=72)
    return path


def crops(path, size=40):
    pipeline = f"photo: decode | center_crop {size} | tensor u8 nchw"
    loader = penstock.Loader(path, len(SIZES), pipeline=pipeline, shuffle=False, drop_last=False,
                             output="numpy")
    with loader:
        ((photos,),) = loader
        return photos.transpose(0, 2, 3, 1).copy()


def expected_crop(data, size=40):
    picture = numpy.array(Image.open(io.BytesIO(data)))
    height, width, _ = picture.shape
    top, left = round((height - size) / 2), round((width - size) / 2)
    return picture[top : top + size, left : left + size]


def test_readers_find_the_files(tmp_path):
    datas = files()
    pack = write(tmp_path / "a.pen", datas)
    good("verify", "--decode", pack)
    good("extract", pack, "-o", tmp_path / "out")
    plain = PlainPack(pack)
    for n, data in enumerate(datas):
        assert (tmp_path / "out" / f"{n}.jpg").read_bytes() == data
        assert plain.samples[n][1]["photo"]["data"] == data
    for found, data in zip(crops(pack), datas):
        assert numpy.array_equal(found, expected_crop(data))


def test_restart_markers_and_trailers(tmp_path):
    datas = [data + b"trailer" for data in files(restart_marker_blocks=3)]
    pack = write(tmp_path / "a.pen", datas)
    good("verify", "--decode", pack)
    PlainPack(pack)
    for found, data in zip(crops(pack), datas):
        assert numpy.array_equal(found, expected_crop(data))


def test_a_wrong_table_is_found(tmp_path):
    """It is right in itself, but not that of the file: pixels come from the complete file."""
    def change(index):
        first = struct.unpack_from("<H", index.entries)[0]
        index.entries = struct.pack("<H", first + 1) + index.entries[2:]

    datas = files()
    pack = write(tmp_path / "a.pen", datas, change)
    good("verify", pack)
    result = run("verify", "--decode", pack)
    assert result.code == 1
    assert "entry table: expected the entries of this file" in result.err
    with pytest.raises(PackError, match="entry of MCU"):
        PlainPack(pack)
    for found, data in zip(crops(pack, 60), datas):
        assert numpy.array_equal(found, expected_crop(data, 60))


def test_every_part_has_a_checksum(tmp_path):
    """A flipped bit in the lead, the tables, a run, the tail."""
    datas = files()
    pack = write(tmp_path / "a.pen", datas)
    (shard,) = pack.glob("*/*.shard")
    whole = shard.read_bytes()
    start, index = whole.index(datas[0]), Index(datas[0], 8)
    for at in (3, index.cuts[0] + 1, index.cuts[1] + 1, index.cuts[-2] - 1, len(datas[0]) - 1):
        damaged = bytearray(whole)
        damaged[start + at] ^= 1
        shard.write_bytes(damaged)
        result = run("verify", pack)
        assert result.code == 1, at
        assert "sample 0" in result.err and "checksum" in result.err
        with pytest.raises(PackError, match="sample 0"):
            PlainPack(pack)
    shard.write_bytes(whole)
    good("verify", pack)


def without_features(part, data, shard, block):
    if part == "manifest":
        struct.pack_into("<Q", data, 0, 0)


def test_the_feature_is_needed(tmp_path):
    """A pack whose manifest lacks the bit has no such tables."""
    pack = write(tmp_path / "a.pen", files())
    assert struct.unpack_from("<Q", (pack / "manifest").read_bytes(), 16)[0] == 2
    data = files()[0]
    photo = image(data, *SIZES[0], codec="jpeg", how="indexed", segments=Index(data, 8))
    write_pack(tmp_path / "b.pen", FIELDS, [(b"0", {"photo": photo})], n_stats=72,
               edit=without_features)
    result = run("verify", tmp_path / "b.pen")
    assert result.code == 1
    assert "entry table in a pack without such tables" in result.err


def test_an_encoded_image_may_lack_a_table(tmp_path):
    """With the feature; without it, and kept for its quality, a table is missing."""
    data = files()[0]
    for n, (how, edit, enough) in enumerate((("encoded", {}, True), ("low quality", {}, False),
                                             ("encoded", {"edit": without_features}, False))):
        pack, photo = tmp_path / f"{n}.pen", image(data, *SIZES[0], codec="jpeg", how=how)
        write_pack(pack, FIELDS, [(b"0", {"photo": photo})], n_stats=72, **edit)
        result = run("verify", "--decode", pack)
        assert result.code == (0 if enough else 1)
        assert enough or "table missing or unexpected" in result.err
        if enough:
            assert must_of(pack) == 2
            assert PlainPack(pack).samples[0][1]["photo"]["data"] == data
        else:
            with pytest.raises(PackError):
                PlainPack(pack)


def must_of(pack):
    return struct.unpack_from("<Q", (pack / "manifest").read_bytes(), 16)[0]


def test_an_append_keeps_the_tables(tmp_path):
    """Those of the shards that stay, and those of the short last block, which is written again."""
    datas, new = files(), jpeg((90, 70), 9)
    samples = [(b"%d" % n, {"image": image(data, *size, codec="jpeg", how="indexed",
                                           segments=Index(data, unit))})
               for n, (data, size, (_, unit)) in enumerate(zip(datas, SIZES, KINDS))]
    pack, folder = tmp_path / "a.pen", tmp_path / "more"
    write_pack(pack, [Field("image", "image")], samples, n_stats=72, block_samples=3)
    folder.mkdir()
    (folder / "new.jpg").write_bytes(new)
    account = good("pack", folder, "-o", pack, "--append", "--mode", "raw", "--json").json()
    assert (account["samples"], account["added"]) == (5, 1)
    hows = {row["how"]: row["images"] for row in account["images"]}
    assert hows == {"kept, indexed": 4, "raw": 1}
    assert must_of(pack) == 2
    good("verify", "--decode", pack)
    found = {key: values["image"]["data"] for key, values in PlainPack(pack).samples}
    assert all(found[b"%d" % n] == data for n, data in enumerate(datas))


def test_libjpeg_gives_the_same_pixels(tmp_path):
    """PENSTOCK_JPEG=turbo: no use is made of the tables."""
    pack, datas = write(tmp_path / "a.pen", files()), files()
    code = (
        "import sys, numpy; sys.path.insert(0, sys.argv[1]); import test_indexed as t\n"
        "numpy.save(sys.argv[3], t.crops(sys.argv[2]))"
    )
    subprocess.run(
        [sys.executable, "-c", code, os.path.dirname(__file__), pack, tmp_path / "x.npy"],
        env={**os.environ, "PENSTOCK_JPEG": "turbo"}, check=True, timeout=60,
    )
    for found, data in zip(numpy.load(tmp_path / "x.npy"), datas):
        assert numpy.array_equal(found, expected_crop(data))
