# SPDX-License-Identifier: Apache-2.0
"""Packing files as they are: which JPEGs get an entry index, and why others do not."""

import io
import struct
import tarfile

import numpy
import pytest
from cli_tools import good, run
from PIL import Image
from plain_reader import Pack as PlainPack
from py_tools import need_penstock
from test_indexed import jpeg
from tiled import tiled, write_tiles

penstock = need_penstock()
SIZE = (203, 97)
KEEP = ("--mode", "keep")


def converted(mode, size=SIZE, **options):
    out = io.BytesIO()
    picture = Image.open(io.BytesIO(jpeg(size, 5, quality=90)))
    picture.convert(mode).save(out, options.pop("kind", "JPEG"), **options)
    return out.getvalue()


def with_exif(data, bytes_before=3000):
    exif = b"Exif\0\0" + bytes(bytes_before)
    return data[:2] + b"\xff\xe1" + struct.pack(">H", len(exif) + 2) + exif + data[2:]


def indexable():
    """Files that get an index, by key."""
    return {
        "420.jpg": jpeg(SIZE, 1, subsampling=2, quality=90),
        "422.jpg": jpeg(SIZE, 2, subsampling=1, quality=80),
        "444.jpg": jpeg(SIZE, 3, subsampling=0, quality=70),
        "grey.jpg": converted("L"),
        "marked.jpg": jpeg(SIZE, 4, restart_marker_blocks=3),
        "rows.jpg": jpeg(SIZE, 6, restart_marker_rows=1),
        "exif.jpg": with_exif(jpeg(SIZE, 7)),
        "filled.jpg": jpeg(SIZE, 9).replace(b"\xff\xdb", b"\xff\xff\xff\xdb", 1),
        "trailer.jpg": jpeg(SIZE, 8) + b"trailer",
    }


def not_indexable():
    """Files that do not, and why."""
    good_file = jpeg(SIZE, 1)
    return {
        "progressive.jpg": (jpeg(SIZE, 2, progressive=True), "progressive"),
        "cmyk.jpg": (converted("CMYK"), "CMYK"),
        "small.jpg": (jpeg((60, 8), 3), "small"),
        "rgb.jpg": (jpeg(SIZE, 4, keep_rgb=True), "not YCbCr"),
        "png.png": (converted("RGB", kind="PNG"), None),
        "twice.jpg": (jpeg(SIZE, 5, progressive=True) + good_file, "progressive"),
    }


def store(folder, files):
    folder.mkdir()
    for name, data in files.items():
        (folder / name).write_bytes(data)
    return folder


def must_of(pack):
    return struct.unpack_from("<Q", (pack / "manifest").read_bytes(), 16)[0]


def hows(account):
    return {(row["codec"], row["how"]): row["images"] for row in account["images"]}


def reasons(account):
    return {row["why"]: row["images"] for row in account["without_index"]}


def check_files(pack, files, tmp_path):
    """The pack has these files, byte for byte, and all readers agree about its tables."""
    good("verify", "--decode", pack)
    good("extract", pack, "-o", tmp_path / "out")
    plain = {key.decode(): values["image"]["data"] for key, values in PlainPack(pack).samples}
    for name, data in files.items():
        assert (tmp_path / "out" / name).read_bytes() == data, name
        assert plain[name] == data


def crops(pack, n, size=40):
    pipeline = f"image: decode | center_crop {size} | tensor u8 nchw"
    with penstock.Loader(pack, n, pipeline=pipeline, shuffle=False, drop_last=False,
                         output="numpy") as loader:
        ((photos,),) = loader
        return photos.transpose(0, 2, 3, 1).copy()


def check_crops(pack, files):
    keys = [key.decode() for key, _ in PlainPack(pack).samples]
    for name, found in zip(keys, crops(pack, len(files))):
        picture = numpy.array(Image.open(io.BytesIO(files[name])).convert("RGB"))
        top, left = round((SIZE[1] - 40) / 2), round((SIZE[0] - 40) / 2)
        assert numpy.array_equal(found, picture[top : top + 40, left : left + 40]), name


def test_files_get_an_index(tmp_path):
    files = indexable()
    pack = tmp_path / "a.pen"
    account = good("pack", store(tmp_path / "in", files), "-o", pack, *KEEP, "--json").json()
    assert hows(account) == {("jpeg", "kept, indexed"): len(files)}
    assert account["without_index"] == []
    assert must_of(pack) == 2
    assert good("info", pack, "--json").json()["settings"]["index"] == 1
    check_files(pack, files, tmp_path)
    check_crops(pack, files)


def test_reasons_are_counted(tmp_path):
    kinds = not_indexable()
    files = {name: data for name, (data, _) in kinds.items()} | {"good.jpg": jpeg(SIZE, 9)}
    pack = tmp_path / "a.pen"
    folder = store(tmp_path / "in", files)
    account = good("pack", folder, "-o", pack, *KEEP, "--json").json()
    assert hows(account) == {("jpeg", "kept, indexed"): 1, ("jpeg", "kept"): 5, ("png", "kept"): 1}
    assert reasons(account) == {"progressive": 2, "CMYK": 1, "small": 1, "not YCbCr": 1}
    check_files(pack, files, tmp_path)
    text = good("pack", folder, "-o", tmp_path / "b.pen", *KEEP).out
    assert "progressive" in text and "without index" in text


def test_no_index_only_stores(tmp_path):
    """Not even a damaged file is noticed."""
    data = jpeg(SIZE, 1, quality=95)
    files = {"a.jpg": jpeg(SIZE, 2), "b.jpg": data[:-300] + bytes(298) + data[-2:]}
    folder, pack = store(tmp_path / "in", files), tmp_path / "a.pen"
    result = run("pack", folder, "-o", pack, *KEEP)
    assert result.code == 1 and "b.jpg" in result.err
    good("gc", pack)
    account = good("pack", folder, "-o", pack, *KEEP, "--no-index", "--json").json()
    assert hows(account) == {("jpeg", "kept"): 2}
    assert account["without_index"] == []
    assert must_of(pack) == 0
    assert "index" not in good("info", pack, "--json").json()["settings"]
    other = ("pack", folder, "-o", tmp_path / "b.pen", *KEEP, "--no-index", "--check", "decode")
    assert "b.jpg" in run(*other).message()


def test_appending_mixes_tiles_and_indexes(tmp_path):
    """The short last block of the tiles is written again, with the tiles in it as they are."""
    files = indexable()
    pictures = [Image.open(io.BytesIO(jpeg(SIZE, n))) for n in range(3)]
    tiles = {f"t{n}": tiled(picture, n) for n, picture in enumerate(pictures)}
    tiles["grey"] = tiled(pictures[0].convert("L"))
    folder = store(tmp_path / "in", files)
    pack = write_tiles(tmp_path / "a.pen", tiles, block_samples=3)
    assert must_of(pack) == 0
    good("verify", "--decode", pack)
    account = good("pack", folder, "-o", pack, "--append", "--json").json()
    assert hows(account) == {("jpeg", "tiled"): 4, ("jpeg", "kept, indexed"): len(files)}
    assert must_of(pack) == 2
    good("verify", "--decode", pack)
    good("copy", pack, tmp_path / "copy.pen")
    for path in (pack, tmp_path / "copy.pen"):
        found = {key.decode(): values["image"]["data"] for key, values in PlainPack(path).samples}
        assert found == {**files, **{key: value["data"] for key, value in tiles.items()}}
        check_crops(path, found)


def test_tasks_write_indexes(tmp_path):
    files = indexable()
    folder, pack = store(tmp_path / "in", files), tmp_path / "a.pen"
    command = ("pack", folder, "-o", pack, *KEEP, "--block-samples", "2", "--task")
    for task in range(2):
        good(*command, f"{task}/2")
    account = good("finalise", pack, "--json").json()
    assert hows(account) == {("jpeg", "kept, indexed"): len(files)}
    assert must_of(pack) == 2
    check_files(pack, files, tmp_path)


def test_frames_of_clips_get_an_index(tmp_path):
    frames = [jpeg(SIZE, n) for n in range(3)] + [jpeg(SIZE, 3, progressive=True)]
    store_in = tmp_path / "in"
    store_in.mkdir()
    store(store_in / "clip", {f"{n}.jpg": data for n, data in enumerate(frames)})
    pack = tmp_path / "a.pen"
    account = good("pack", store_in, "-o", pack, "--kind", "frames", *KEEP, "--json").json()
    assert hows(account) == {("jpeg", "kept, indexed"): 3, ("jpeg", "kept"): 1}
    assert reasons(account) == {"progressive": 1}
    ((_, values),) = PlainPack(pack).samples
    assert [frame["data"] for frame in values["video"]] == frames
    with penstock.open(pack) as opened:
        pixels = numpy.asarray(opened[0]["video"][:])
    for found, data in zip(pixels, frames):
        assert numpy.array_equal(found, numpy.array(Image.open(io.BytesIO(data))))


def test_encoded_images_get_an_index(tmp_path):
    """Without --no-index, a file with several scans becomes a baseline one with the same pixels."""
    files = {
        "large.jpg": with_exif(jpeg((400, 300), 1, quality=95)),
        "low.jpg": jpeg(SIZE, 2, quality=50),
        "small.jpg": jpeg((60, 8), 3, quality=95),
        "small_low.jpg": jpeg((60, 8), 4, quality=50),
        "low_progressive.jpg": jpeg(SIZE, 5, quality=50, progressive=True),
        "grey.png": converted("L", (300, 200), kind="PNG"),
    }
    folder, packs = store(tmp_path / "in", files), [tmp_path / "a.pen", tmp_path / "b.pen"]
    command = ("--mode", "encode", "--quality", "80", "--max-side", "300", "--json")
    accounts = [good("pack", folder, "-o", pack, *command, *more).json()
                for pack, more in zip(packs, ((), ("--no-index",)))]
    assert [hows(account) for account in accounts] == [
        {("jpeg", "encoded"): 3, ("jpeg", "kept, quality"): 1, ("jpeg", "kept"): 1,
         ("jpeg", "converted"): 1},
        {("jpeg", "encoded"): 3, ("jpeg", "kept"): 3}]
    assert [reasons(account) for account in accounts] == [{"small": 2}, {}]
    for pack in packs:
        good("verify", "--decode", pack)
        assert must_of(pack) == 2
    (indexed, plain) = (dict(PlainPack(pack).samples) for pack in packs)
    for name in ("low.jpg", "small_low.jpg"):
        assert indexed[name.encode()]["image"]["data"] == files[name]
    with penstock.open(packs[0]) as opened:
        assert opened.metadata(opened.index("large.jpg"), "image").startswith(b"\xff\xe1")
    for key, values in indexed.items():
        pictures = [Image.open(io.BytesIO(one["image"]["data"])) for one in (values, plain[key])]
        assert numpy.array_equal(*map(numpy.array, pictures)), key


def test_mix_keeps_what_is_not_raw(tmp_path):
    files = {f"{n}.jpg": jpeg(SIZE, n, quality=90) for n in range(8)}
    folder, pack = store(tmp_path / "in", files), tmp_path / "a.pen"
    account = good("pack", folder, "-o", pack, "--mode", "mix", "--raw-share", "0.5",
                   "--json").json()
    counts = hows(account)
    assert set(counts) == {("raw", "raw"), ("jpeg", "kept, indexed")}
    assert sum(counts.values()) == len(files) and must_of(pack) == 2
    good("verify", "--decode", pack)
    for key, values in PlainPack(pack).samples:
        data, found = files[key.decode()], values["image"]["data"]
        pixels = numpy.array(Image.open(io.BytesIO(data))).tobytes()
        assert found in (data, pixels), key


def test_packs_without_images_need_no_feature(tmp_path):
    tar = tmp_path / "a.tar"
    with tarfile.open(tar, "w") as out:
        for n in range(3):
            member = tarfile.TarInfo(f"{n}.txt")
            member.size = 1
            out.addfile(member, io.BytesIO(b"x"))
    good("pack", tar, "-o", tmp_path / "a.pen", *KEEP)
    assert must_of(tmp_path / "a.pen") == 0


@pytest.mark.parametrize("index", [True, False])
def test_a_writer_can_do_without(tmp_path, index):
    pack, data, mask = tmp_path / "a.pen", jpeg(SIZE, 1), converted("L")
    schema = {"image": "image", "mask": "mask"}
    penstock.write(pack, [{"image": data, "mask": mask}], schema, mode="keep", index=index)
    assert must_of(pack) == 2 * index
    ((_, values),) = PlainPack(pack).samples
    assert values["image"]["data"] == data
    with penstock.open(pack) as opened:
        how = {name: opened.image(0, name).how for name in schema}
    assert how == {"image": "kept, indexed" if index else "kept", "mask": "kept"}


def test_a_writer_without_images_needs_no_feature(tmp_path):
    penstock.write(tmp_path / "a.pen", [{"t": "x"}], {"t": "text"}, mode="keep")
    assert must_of(tmp_path / "a.pen") == 0
