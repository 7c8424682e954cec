# SPDX-License-Identifier: Apache-2.0
"""pack.column: one value of each sample, from columns of shards or from indexes of blocks."""

import io
import json
import os
import struct
import tarfile

import numpy
import pytest
from cli_tools import ROOT, add_member, good, image_bytes, make_folder, run
from PIL import Image
from plain_reader import Pack as PlainPack
from plain_writer import Field, image, write_pack
from py_tools import need_penstock
from remote_tools import options

penstock = need_penstock()
KINDS = {"i64": numpy.int64, "f32": numpy.float32, "f64": numpy.float64}
SCHEMA = {"photo": "image", "label": "i64", "box": "f32[2,2]", "wide": "f64[9]", "note": "text?",
          "points": "f32[*,2]", "clip": "clip", "mask": "mask"}


def upright(info):
    size = info.width, info.height
    return size[::-1] if info.orientation >= 5 else size


def loop(pack, name, what):
    """The same as pack.column, one sample after another."""
    values = []
    for i in range(len(pack)):
        value = pack[i][name] if what != "size" or pack.schema[name] == "clip" else None
        if what == "frames":
            values.append(len(value))
        elif what == "size":
            empty = not len(value) if value is not None else not pack[i][name]
            values.append((0, 0) if empty else upright(pack.image(i, name)))
        else:
            values.append(value)
    return numpy.array(values)


def columns(pack):
    for field in pack.fields:
        kinds = {"image": ["size"], "clip": ["size", "frames"]}.get(field.type, [None])
        if field.type not in ("bytes", "json", "text") and not field.ragged:
            yield from ((field.name, what) for what in kinds)


def check(pack):
    n = len(pack)
    for name, what in columns(pack):
        expected, found = loop(pack, name, what), pack.column(name, what)
        assert found.shape == expected.shape and found.tobytes() == expected.astype(
            KINDS.get(pack.fields[list(pack.schema).index(name)].type, numpy.int32)).tobytes(), name
        part = slice(n // 3, n - n // 4, 2)
        numpy.testing.assert_array_equal(pack.column(name, what, part), expected[part])


def jpeg(i):
    out, exif = io.BytesIO(), Image.Exif()
    exif[0x112] = 1 + i % 8
    picture = Image.new("RGB", (9 + i % 7, 8 + i % 5), (i % 255, 2, 3))
    picture.save(out, "JPEG", exif=exif)
    return out.getvalue()


def sample(i):
    grey = io.BytesIO()
    Image.new("L", (3 + i % 4, 2), i % 2).save(grey, "PNG")
    return {"photo": b"" if i % 11 == 3 else jpeg(i), "label": i * i - 50,
            "box": numpy.full((2, 2), i, numpy.float32), "wide": numpy.arange(9.0) + i,
            "points": numpy.zeros((i % 3, 2), numpy.float32),
            "note": "x" if i % 3 else None, "clip": [jpeg(i)] * (i % 3), "mask": grey.getvalue()}


def write(path, first, end, **options):
    with penstock.Writer(path, SCHEMA, block_samples=4, **options) as writer:
        for i in range(first, end):
            writer.add(f"{i:04}", **sample(i))


def has_columns(path):
    return [shard is not None for shard in PlainPack(path).columns]


@pytest.mark.parametrize("n", [3, 8, 41])
def test_columns_equal_a_loop(tmp_path, n):
    write(tmp_path / "a.pen", 0, n, shard_size=16000)
    assert all(has_columns(tmp_path / "a.pen"))
    with penstock.open(tmp_path / "a.pen") as pack:
        check(pack)
        assert (pack.info["n_shards"] > 2) == (n == 41)
    good("verify", tmp_path / "a.pen", "--decode")


def test_a_loop_over_packs_of_today():
    """test_video_format.py has columns of kept videos, whose frames are no images."""
    for path in sorted((ROOT / "tests/golden/valid").iterdir()):
        if path.stem == "kept_videos":
            continue
        with penstock.open(path) as pack:
            if pack.info["stored_bytes"] == pack.info["total_bytes"]:
                check(pack)


def test_appended_packs(tmp_path):
    """An append writes the samples of a short last block again, and keeps the old shard."""
    folder = make_folder(tmp_path / "photos", each=5)
    (tmp_path / "more/cat").mkdir(parents=True)
    for i in range(5):
        (tmp_path / f"more/cat/new-{i}.jpg").write_bytes(image_bytes(i, "JPEG"))
    out = tmp_path / "a.pen"
    good("pack", folder, "-o", out, "--block-samples", "4")
    good("pack", tmp_path / "more", "-o", out, "--append")
    assert has_columns(out) == [True, True]
    with penstock.open(out) as pack:
        assert len(pack) == 15
        check(pack)


def test_tasks_write_columns(tmp_path):
    """Every shard of a task has columns, also if its samples end in the middle of a block."""
    folder = make_folder(tmp_path / "photos", each=12)
    options = ("--block-samples", "4", "--order", "source")
    good("pack", folder, "-o", tmp_path / "one.pen", *options)
    good("plan", folder, "-o", tmp_path / "a.pen", *options)
    for i in range(3):
        good("pack", folder, "-o", tmp_path / "a.pen", *options, "--task", f"{i}/3")
    good("finalise", tmp_path / "a.pen")
    shards = has_columns(tmp_path / "a.pen")
    assert len(shards) >= 3 and all(shards)
    with penstock.open(tmp_path / "a.pen") as pack, penstock.open(tmp_path / "one.pen") as one:
        check(pack)
        assert sorted(pack.column("label")) == sorted(one.column("label"))


def test_large_columns_are_left_out(tmp_path):
    """The last block of a shard must not become much larger than the others."""
    with penstock.Writer(tmp_path / "a.pen", {"row": "f32[16]"}, block_samples=32) as writer:
        for i in range(8300):
            writer.add(f"{i}", row=numpy.full(16, i, numpy.float32))
    with penstock.open(tmp_path / "a.pen") as pack:
        assert pack.info["section_bytes"] == 0
        assert (pack.column("row") == numpy.arange(8300, dtype=numpy.float32)[:, None]).all()


def test_in_place_packs(tmp_path):
    with tarfile.open(tmp_path / "web.tar", "w") as tar:
        for i in range(11):
            add_member(tar, f"{i:02}.jpg", image_bytes(i, "JPEG"))
            add_member(tar, f"{i:02}.cls", b"%d" % (i % 3))
            add_member(tar, f"{i:02}.json", json.dumps({"i": i}).encode())
    good("index", tmp_path / "web.tar", "-o", tmp_path / "a.pen", "--block-samples", "4")
    with penstock.open(tmp_path / "a.pen") as pack:
        check(pack)
        assert pack.info["section_bytes"] > 0
        label = pack.column("label")
    os.remove(tmp_path / "web.tar")  # no image is read
    with penstock.open(tmp_path / "a.pen") as pack:
        assert (pack.column("label") == label).all()
        assert pack.column("image", "size").min() > 0


# ---- other writers, and hostile packs ------------------------------------------------------------

FIELDS = [Field("photo", "image"), Field("label", "i64"), Field("note", "text")]


def plain(path, edit=None, **options):
    samples = [
        (b"%d" % i, {"photo": image(b"x", 3 + i, 4, codec="png", orientation=1 + i % 8),
                     "label": 10 * i, "note": b"n"}) for i in range(10)
    ]
    if edit:
        options["edit"] = edit
    write_pack(path, FIELDS, samples, block_samples=2, shard_blocks=2, **options)
    return path


def test_columns_and_indexes_give_the_same(tmp_path):
    old = penstock.open(plain(tmp_path / "old.pen"))
    new = penstock.open(plain(tmp_path / "new.pen", columns=True))
    assert old.info["section_bytes"] == 0 < new.info["section_bytes"]
    for pack in old, new:
        check(pack)
        good("verify", pack.path)
    assert len(PlainPack(tmp_path / "new.pen").columns) == 3


def test_columns_of_an_unknown_kind_are_ignored(tmp_path):
    """The bytes of the section are in the statistics: another number is another kind of columns."""

    def edit(part, data, shard, block):
        if part == "stats":
            data[40:48] = struct.pack("<Q", struct.unpack("<Q", data[40:48])[0] + 8)

    path = plain(tmp_path / "a.pen", edit, columns=True)
    check(penstock.open(path))
    good("verify", path)


@pytest.mark.parametrize("size", [1, 56, 2**40, 2**64 - 1])
def test_statistics_that_lie(tmp_path, size):
    """A pack without columns that claims to have some. No byte outside of the block is read."""

    def edit(part, data, shard, block):
        if part == "stats":
            data[40:48] = struct.pack("<Q", size)

    check(penstock.open(plain(tmp_path / "a.pen", edit)))


def test_payloads_are_not_taken_for_columns(tmp_path):
    """A size that fits, where there are no columns: the checksum is that of the place."""

    def edit(part, data, shard, block):
        if part == "stats":
            data[40:48] = struct.pack("<Q", 32 + 4 * 16 + 8)

    samples = [(b"%d" % i, {"photo": image(b"x" * 99, 3, 4, codec="png"), "label": i, "note": b"n"})
               for i in range(4)]
    write_pack(tmp_path / "a.pen", FIELDS, samples, block_samples=2, edit=edit)
    pack = penstock.open(tmp_path / "a.pen")
    with pytest.raises(penstock.CorruptError, match="column of field 1: checksum"):
        pack.column("label")
    assert "column" in run("verify", pack.path).err


def test_forged_columns(tmp_path):
    """With right checksums: the values are those of the column, and verify finds the difference."""

    def edit(part, data, shard, block):
        if part == "column" and shard == 1 and len(data) == 32 and not any(data[4:8]):
            data[8] += 1

    path = plain(tmp_path / "a.pen", edit, columns=True)
    found = run("verify", path)
    assert found.code != 0 and "the column differs from the samples" in found.err
    assert penstock.open(path)[4]["label"] == 40


def test_damaged_columns(tmp_path):
    """An error that names the place; the samples and the other columns can be read."""
    path = plain(tmp_path / "a.pen", columns=True)
    shard = max(path.glob("*/*.shard"), key=lambda file: file.stat().st_size)
    data = bytearray(shard.read_bytes())
    keys = struct.unpack_from("<Q", data, len(data) - 64)[0]
    data[keys - 5] ^= 1  # the last value of the label
    shard.write_bytes(data)
    pack = penstock.open(path)
    with pytest.raises(penstock.CorruptError, match=f"{shard.name}.*column of field 1.*damaged"):
        pack.column("label")
    assert pack.column("photo", "size").shape == (10, 2)
    assert [sample["label"] for sample in pack] == [10 * i for i in range(10)]
    assert run("verify", path).code != 0


# ---- object stores -------------------------------------------------------------------------------


def test_requests(s3, tmp_path, no_other_settings):
    """Two requests for each shard: one for its tail, one for the column."""
    server = s3(directory=tmp_path)
    local = tmp_path / "packs/a.pen"
    local.parent.mkdir(exist_ok=True)
    write(local, 0, 41, shard_size=16000)
    local, pack = penstock.open(local), penstock.open("s3://packs/a.pen", options(server))
    n = pack.info["n_shards"]
    before = pack.remote_stats()
    assert (pack.column("label") == local.column("label")).all()
    after = pack.remote_stats()
    made = after["requests"] - before["requests"] - (after["hedges"] - before["hedges"])
    assert 2 * n <= made <= 2 * n + after["retries"]
    assert (pack.column("photo", "size") == local.column("photo", "size")).all()
    assert (pack.column("wide") == local.column("wide")).all()  # from the indexes


@pytest.mark.parametrize("remote", [False, True])
def test_one_shard_of_many_fails(s3, tmp_path, no_other_settings, remote):
    """The error names the shard. The others are read to the end, and the next call is right."""
    path = tmp_path / "packs/a.pen"
    path.parent.mkdir()
    write(path, 0, 41, shard_size=8000)
    where = ("s3://packs/a.pen", options(s3(directory=tmp_path))) if remote else (path,)
    shards = sorted(path.glob("*/*.shard"))
    assert len(shards) > 4
    with penstock.open(path) as local:
        expected = local.column("label")
    for shard in (shards[0], shards[len(shards) // 2], shards[-1]):
        data = shard.read_bytes()
        shard.unlink()
        with penstock.open(*where) as pack:
            for _ in range(2):
                with pytest.raises(penstock.CorruptError, match=f"{shard.name} is missing"):
                    pack.column("label")
            shard.write_bytes(data)
            assert (pack.column("label") == expected).all()


# ---- arguments -----------------------------------------------------------------------------------


def test_errors(tmp_path):
    write(tmp_path / "a.pen", 0, 5)
    pack = penstock.open(tmp_path / "a.pen")
    for name, what, message in (
        ("photo", None, "what: expected 'size' for the image field 'photo', found None"),
        ("photo", "frames", "what: expected 'size' for the image field 'photo', found 'frames'"),
        ("clip", "bytes", "what: expected 'size' or 'frames' for the clip field"),
        ("label", "size", "what: expected None for the i64 field 'label', found 'size'"),
        ("note", None, "field 'note': expected numbers of one shape, an image or a clip, found"),
    ):
        with pytest.raises(penstock.InvalidError) as error:
            pack.column(name, what)
        assert message in str(error.value)
    with pytest.raises(penstock.InvalidError, match="'points': .* one shape, .* found ragged f32"):
        pack.column("points")
    with pytest.raises(penstock.NotFoundError, match="no field 'labl'"):
        pack.column("labl")
    with pytest.raises(TypeError, match="samples: expected a slice"):
        pack.column("label", samples=3)
    with pytest.raises(penstock.InvalidError, match="samples: expected a step of 1 or more"):
        pack.column("label", samples=slice(None, None, -1))
    assert pack.column("label", samples=slice(4, 2)).shape == (0,)
    assert pack.column("box", samples=slice(9, 12)).shape == (0, 2, 2)
    pack.close()
    with pytest.raises(penstock.ClosedError):
        pack.column("label")


def test_a_column_chooses_a_subset(tmp_path):
    write(tmp_path / "a.pen", 0, 20)
    with penstock.open(tmp_path / "a.pen") as pack:
        chosen = pack.column("label") > 0
        with penstock.Loader(pack, 2, pipeline={"label": "tensor i64"}, subset=chosen,
                             order="sequential", output="numpy") as loader:
            labels = [int(label) for batch in loader for label in batch[0]]
        assert labels == [label for label in pack.column("label") if label > 0]
