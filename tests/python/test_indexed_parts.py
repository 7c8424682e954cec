# SPDX-License-Identifier: Apache-2.0
"""A loader reads, checks and decodes only the part of an indexed JPEG that a crop needs."""

import copy
import functools
import io
import os
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
from test_indexed import jpeg
from test_pack_index import converted

penstock = need_penstock()
SIZE = (400, 300)
CROP = 40


# Both take most of a second in plain Python.
other_photo = functools.cache(jpeg)
photo = functools.partial(other_photo, SIZE, 1)
scanned = functools.cache(functools.partial(Index, unit=8))


def index_of(data):
    """The table of a file; the caller may change it."""
    return copy.deepcopy(scanned(data))


def write(path, data, size=SIZE, change=None, **more):
    """A pack of one file with an entry table."""
    index = index_of(data)
    if change:
        change(index)
    stored = image(data, *size, codec="jpeg", how="indexed", segments=index, **more)
    write_pack(path, [Field("photo", "image")], [(b"0", {"photo": stored})], n_stats=72)
    return path


def crop(path, size=CROP):
    """The crop, and how many bytes were read for it."""
    pipeline = f"photo: decode | center_crop {size} | tensor u8 nhwc"
    with penstock.Loader(path, 1, pipeline=pipeline, shuffle=False, output="numpy") as loader:
        ((photos,),) = loader
        return photos[0].copy(), loader.stats()["bytes_read"]


def expected(picture, size=CROP):
    height, width, _ = picture.shape
    top, left = round((height - size) / 2), round((width - size) / 2)
    return picture[top : top + size, left : left + size]


def decoded(data):
    return numpy.array(Image.open(io.BytesIO(data)).convert("RGB"))


def with_lead(data, n):
    """The same file with n bytes of metadata before its tables."""
    return data[:2] + b"\xff\xe5" + struct.pack(">H", n + 2) + bytes(n) + data[2:]


def spoiled(index):
    """Every entry is a bit further: right in itself, but not of this file."""
    first = struct.unpack_from("<H", index.entries)[0]
    index.entries = struct.pack("<H", first + 1) + index.entries[2:]


def test_a_crop_reads_a_part(tmp_path):
    data = with_lead(photo(quality=95), 30000)
    pack = write(tmp_path / "a.pen", data)
    found, n_bytes = crop(pack)
    assert numpy.array_equal(found, expected(decoded(data)))
    assert n_bytes < (len(data) - 30000) / 2
    all_of_it, n_bytes = crop(pack, 300)
    assert numpy.array_equal(all_of_it, expected(decoded(data), 300))
    assert len(data) - 30000 - 200 < n_bytes < len(data) - 29000


def test_only_what_is_read_is_checked(tmp_path):
    data = with_lead(photo(quality=95), 3000)
    pack = write(tmp_path / "a.pen", data)
    (shard,) = pack.glob("*/*.shard")
    whole, index = shard.read_bytes(), scanned(data)
    start = whole.index(data)
    first_run, middle, tail = index.cuts[1], (index.cuts[1] + index.cuts[-2]) // 2, len(data) - 1
    assert middle - first_run > 20000
    for at, needed in ((100, False), (index.cuts[0] + 9, True), (first_run + 9, False),
                       (middle, True), (tail, False)):
        damaged = bytearray(whole)
        damaged[start + at] ^= 1
        shard.write_bytes(damaged)
        if needed:
            with pytest.raises(penstock.CorruptError, match="checksum"):
                crop(pack)
        else:
            assert numpy.array_equal(crop(pack)[0], expected(decoded(data)))


def test_the_complete_file_is_read_if_a_part_is_not_enough(tmp_path):
    """Entries that are not of the file: the decoder notices, and libjpeg takes over."""
    data = photo(quality=95)
    pack = write(tmp_path / "a.pen", data, change=spoiled)
    found, n_bytes = crop(pack, 250)
    assert numpy.array_equal(found, expected(decoded(data), 250))
    assert n_bytes == len(data)


def forged(index):
    """Entries of one row of MCUs with other predictors: the crop does not reach where they end."""
    for n, (first, _) in enumerate(index.firsts):
        at, (luma, *chroma) = index.jpeg.mcus[first]
        index.jpeg.mcus[first] = at, (luma + 40 * (3 <= n <= 5), *chroma)
    index.entries = index.code_entries()


def forged_and_spoiled(index):
    first, _ = index.firsts[54]
    index.jpeg.mcus[first] = index.jpeg.mcus[first][0] + 1, index.jpeg.mcus[first][1]
    forged(index)


def test_a_wrong_index_is_not_used_for_any_row(tmp_path):
    """What was decoded before a difference is noticed may be wrong, too."""
    data = photo(quality=95)
    right = expected(decoded(data), 250)
    found, _ = crop(write(tmp_path / "a.pen", data, change=forged), 250)
    assert not numpy.array_equal(found, right)  # nobody can notice
    found, n_bytes = crop(write(tmp_path / "b.pen", data, change=forged_and_spoiled), 250)
    assert numpy.array_equal(found, right)
    assert n_bytes == len(data)


def test_the_same_for_turned_images(tmp_path):
    data = photo(quality=95)
    for name, change in (("a", None), ("b", spoiled)):
        pack = write(tmp_path / f"{name}.pen", data, change=change, orientation=6)
        upright = numpy.rot90(decoded(data), -1)
        assert numpy.array_equal(crop(pack, 250)[0], expected(upright, 250))


def later_tables(index):
    """The tables begin inside of a marker."""
    index.jpeg.lead_bytes += 7
    index.cuts[0] += 7


def other_sampling(index):
    """4:4:0 instead of 4:2:2: as many MCUs, in other rows, but in the same part of the file."""
    index.jpeg.h, index.jpeg.v = 1, 2


LOSSLESS = b"\xff\xc3\x00\x0b\x08\x01\x00\x01\x00\x01\x01\x11\x00"  # a frame that is not supported


def earlier_tables(index):
    """The tables begin inside of a comment, with another frame."""
    index.jpeg.lead_bytes = index.cuts[0] = 6


@pytest.mark.parametrize("change, all_of_it", [
    (later_tables, True), (earlier_tables, True), (other_sampling, False)])
def test_tables_that_describe_another_file(tmp_path, change, all_of_it):
    size = (256, 256)
    data = other_photo(size, 9, quality=95, subsampling=1)
    data = data[:2] + b"\xff\xfe" + struct.pack(">H", len(LOSSLESS) + 2) + LOSSLESS + data[2:]
    pack = write(tmp_path / "a.pen", data, size, change)
    assert "entry table: expected the parts" in run("verify", pack).err
    found, n_bytes = crop(pack)
    assert numpy.array_equal(found, expected(decoded(data)))
    assert (n_bytes == len(data)) == all_of_it


def test_a_table_of_a_file_that_cannot_have_one(tmp_path):
    """Our decoder has no planes for the fourth component: libjpeg decodes the complete file."""
    data, index = converted("CMYK", SIZE), index_of(photo(subsampling=0))
    start, end = data.index(b"\xff\xda"), len(data) - 2
    head = start + 2 + struct.unpack_from(">H", data, start + 2)[0]
    index.jpeg.lead_bytes, index.jpeg.head_bytes = data.index(b"\xff\xdb"), head
    index.jpeg.scan_bytes = end - head
    index.cuts = [index.jpeg.lead_bytes, *range(head, end, 4096), end, len(data)]
    stored = image(data, *SIZE, codec="jpeg", how="indexed", segments=index)
    packs = [tmp_path / "a.pen", tmp_path / "b.pen"]
    write_pack(packs[0], [Field("photo", "image")], [(b"0", {"photo": stored})], n_stats=72)
    penstock.write(packs[1], [{"photo": data}], {"photo": "image"}, mode="keep", index=False)
    (found, n_bytes), (right, _) = map(crop, packs)
    assert numpy.array_equal(found, right)
    assert n_bytes == len(data)


def test_no_table_of_rgb(tmp_path):
    """A loader that reads a part of the file cannot see that it is not YCbCr; others do."""
    pack = write(tmp_path / "a.pen", jpeg(SIZE, 12, keep_rgb=True))
    assert "the file cannot have one (not YCbCr)" in run("verify", "--decode", pack).err
    with pytest.raises(PackError, match="not Y, Cb and Cr"):
        PlainPack(pack)


def test_entries_that_cannot_be_parsed_are_not_used(tmp_path):
    data = photo(quality=95)

    def cut(index):
        index.entries = index.entries[:-1]

    pack = write(tmp_path / "a.pen", data, change=cut)
    assert "entry index: expected" in run("verify", pack).err
    found, n_bytes = crop(pack)
    assert numpy.array_equal(found, expected(decoded(data)))
    assert n_bytes == len(data)


def test_colour_does_not_depend_on_the_lead(tmp_path):
    """Without JFIF, components 0, 1 and 2 would not be YCbCr for sure."""
    data = photo(subsampling=0)
    frame, scan = data.index(b"\xff\xc0"), data.index(b"\xff\xda")
    data = bytearray(data)
    for n in range(3):
        data[frame + 10 + 3 * n] = n
        data[scan + 5 + 2 * n] = n
    data = bytes(data)
    pack = write(tmp_path / "a.pen", data)
    found, n_bytes = crop(pack)
    assert numpy.array_equal(found, expected(decoded(data)))
    assert n_bytes < len(data)


def test_libjpeg_alone_reads_complete_files(tmp_path):
    data = photo(quality=95)
    pack = write(tmp_path / "a.pen", data)
    code = (
        "import sys, numpy; sys.path.insert(0, sys.argv[1]); import test_indexed_parts as t\n"
        "found, n_bytes = t.crop(sys.argv[2]); numpy.save(sys.argv[3], found); print(n_bytes)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, os.path.dirname(__file__), pack, tmp_path / "x.npy"],
        env={**os.environ, "PENSTOCK_JPEG": "turbo"}, check=True, timeout=60, capture_output=True,
    )
    assert int(done.stdout) == len(data)
    assert numpy.array_equal(numpy.load(tmp_path / "x.npy"), expected(decoded(data)))


def test_replacements_are_read_the_same_way(tmp_path):
    """In place of a broken sample comes one whose table is not of its file."""
    data = photo(quality=95)
    samples = []
    for n in range(2):
        index = index_of(data)
        spoiled(index)
        stored = image(data, *SIZE, codec="jpeg", how="indexed", segments=index)
        samples.append((b"%d" % n, {"photo": stored}))
    pack = tmp_path / "a.pen"
    write_pack(pack, [Field("photo", "image")], samples, n_stats=72)
    (shard,) = pack.glob("*/*.shard")
    whole = bytearray(shard.read_bytes())
    whole[whole.index(data) + len(data) // 2] ^= 1
    shard.write_bytes(whole)
    pipeline = "photo: decode | center_crop 250 | tensor u8 nhwc"
    with penstock.Loader(pack, 2, pipeline=pipeline, shuffle=False, on_bad="substitute",
                         output="numpy") as loader:
        ((photos,),) = loader
        for found in photos:
            assert numpy.array_equal(found, expected(decoded(data), 250))


def test_frames_are_decoded_by_their_entries(tmp_path):
    """The same pixels with an index and without."""
    folder = tmp_path / "in" / "clip"
    folder.mkdir(parents=True)
    for n in range(6):
        (folder / f"{n}.jpg").write_bytes(jpeg(SIZE, n, subsampling=n % 3, progressive=n == 4))
    clips = []
    for name, more in (("a", ()), ("b", ("--no-index",))):
        pack = tmp_path / f"{name}.pen"
        good("pack", tmp_path / "in", "-o", pack, "--kind", "frames", "--mode", "keep", *more)
        pipeline = "video: decode | clip 6 1 0 | center_crop 60 | tensor u8 nthwc"
        with penstock.Loader(pack, 1, pipeline=pipeline, shuffle=False,
                             output="numpy") as loader:
            (batch,) = loader
            clips.append(batch[0].copy())
    assert numpy.array_equal(*clips)


def test_frames_use_their_entries(tmp_path):
    """With forged ones the pixels are others: who looks at the file alone would not notice."""
    data, clips = photo(quality=95), []
    for name, change in (("a", None), ("b", forged)):
        index = index_of(data)
        if change:
            change(index)
        frame = image(data, *SIZE, codec="jpeg", how="indexed", segments=index)
        pack = tmp_path / f"{name}.pen"
        write_pack(pack, [Field("video", "clip")], [(b"0", {"video": [frame]})], n_stats=72)
        pipeline = "video: decode | clip 1 1 0 | center_crop 250 | tensor u8 nthwc"
        with penstock.Loader(pack, 1, pipeline=pipeline, shuffle=False,
                             output="numpy") as loader:
            (batch,) = loader
            clips.append(batch[0][0, 0].copy())
    assert numpy.array_equal(clips[0], expected(decoded(data), 250))
    assert not numpy.array_equal(*clips)
