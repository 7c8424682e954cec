# SPDX-License-Identifier: Apache-2.0
"""The plain reader against the plain writer: round trips, every damaged byte, every broken rule.

PENSTOCK_SCALE=full damages all bytes, anything else every third; see tests/long/long_counts.py.
"""

import json
import os
import pathlib
import random
import shutil
import struct
import subprocess
import sys

import pytest
from plain_reader import Pack, PackError
from plain_writer import CODECS, HOWS, NO_IMAGE, Field, Segments, image, write_pack

STEP = 1 if os.environ.get("PENSTOCK_SCALE") == "full" else 3
READER = pathlib.Path(__file__).with_name("plain_reader.py")
INFO = ("data", "width", "height", "orientation", "channels", "timestamp", "source_bytes")
META = b"\xff\xe1\x00\x06Exif\xff\xfe\x00\x03!"


def tiled(draw, width=40, height=20, **more):
    """Something cut like a tiled JPEG of 8 MCUs of 8 by 8: 15 of them are 2 segments."""
    mcus = -(-width // 8) * -(-height // 8)
    n = -(-mcus // 8)
    head = b"\xff\xd8 head \xff\xda"
    parts = [draw.randbytes(draw.randrange(3000)).replace(b"\xff", b"") for _ in range(n)]
    for k, part in enumerate(parts):
        parts[k] = part + (b"\xff\xd9" if k == n - 1 else bytes([0xFF, 0xD0 + k % 8]))
    cut = Segments(len(head), tuple(map(len, parts)), draw.choice([2, 4]))
    how = draw.choice(["tiled", "encoded", "low quality"])
    more = {"codec": "jpeg", "how": how, "segments": cut, **more}
    return image(head + b"".join(parts), width, height, **more)


def rows(draw, width, height, channels, **more):
    """Raw pixels; their segments are their rows, whose lengths are not listed."""
    data = draw.randbytes(width * height * channels)
    cut = Segments(0, (width * channels,) * height, 0, unit=0, components=0, h_samp=0, v_samp=0)
    return image(data, width, height, channels=channels, segments=cut, **more)


def any_image(draw, **more):
    kind = draw.randrange(6)
    if kind == 0 and not more:
        return NO_IMAGE
    if kind == 1:
        return tiled(draw, meta=draw.choice([b"", META]), **more)
    if kind == 2:
        shape = (draw.randrange(1, 90), draw.randrange(1, 60), draw.choice([1, 3, 4]))
        return rows(draw, *shape, **more)
    if kind == 3:
        return rows(draw, 2, 1, 3, orientation=8, **more)
    codec, how = draw.choice([("jpeg", "not tileable"), ("png", "kept"), ("webp", "kept")])
    return image(draw.randbytes(draw.randrange(1, 99)), 3, 5, codec=codec, how=how, **more)


FIELDS = [
    Field("photo", "image"),
    Field("label", "i64"),
    Field("mask", "image", mask=True),
    Field("clip", "clip"),
    Field("blob", "bytes"),
    Field("info", "json"),
    Field("Satz", "text"),
    Field("box", "f32", (2, 2)),
    Field("weight", "f64"),
    Field("counts", "i64", (3,)),
    Field("boxes", "f32", (0, 4), flags=4),
    Field("points", "f32", (0, 3, 2), optional=True, flags=16 + 32),
    Field("tokens", "i64", (0,)),
]


def any_samples(seed, n):
    draw = random.Random(seed)
    for i in range(n):
        values = {
            "photo": any_image(draw),
            "label": draw.randrange(-(2**63), 2**63),
            "mask": rows(draw, 5, 4, 1),
            "clip": [any_image(draw, timestamp=40 * k) for k in range(draw.randrange(4))],
            "blob": draw.randbytes(draw.choice([0, 1, 5000])),
            "info": json.dumps({"n": i}).encode(),
            "Satz": "Grüße".encode(),
            "box": [0.5, -1.0, float("inf"), draw.randrange(9)],
            "weight": draw.random(),
            "counts": [1, -2, i],
            "boxes": [float(k) for k in range(4 * draw.randrange(4))],
            "points": draw.choice([None, [], [0.5] * 12]),
            "tokens": [i, -1][: draw.randrange(3)],
        }
        yield f"{seed}/{i}".encode() + b"\0\xff" * draw.randrange(3), values


def same_image(found, given):
    assert {name: found[name] for name in INFO} == {name: given[name] for name in INFO}
    assert (found["codec"], found["how"]) == (CODECS[given["codec"]], HOWS[given["how"]])
    if given["segments"]:
        assert tuple(found["lengths"]) == given["segments"].lengths


def same_samples(found, given):
    assert [key for key, _ in found] == [key for key, _ in given]
    for (_, values), (_, wanted) in zip(found, given):
        assert list(values) == list(wanted)
        for name, value in wanted.items():
            if isinstance(value, dict):
                same_image(values[name], value)
            elif name == "clip":
                assert len(values[name]) == len(value)
                for frame, wanted_frame in zip(values[name], value):
                    same_image(frame, wanted_frame)
            else:
                assert values[name] == (tuple(value) if isinstance(value, list) else value)


TINY = [
    Field("image", "image"),
    Field("label", "i64"),
    Field("clip", "clip"),
    Field("text", "text"),
]


def tiny(path, **options):
    """A pack of about 2 KB with every kind of part: 3 samples, 2 blocks, 2 shards."""
    cut = Segments(4, (6, 5), unit=8)
    photo = image(b"\xff\xd8\xff\xdaabcd\xff\xd0xyz\xff\xd9", 72, 8, codec="jpeg", how="tiled")
    photo.update(segments=cut, meta=META)
    pixels = image(bytes(range(12)), 2, 2, segments=Segments(0, (6, 6), 0, 0, 0, 0, 0))
    samples = [
        (b"a", {"image": photo, "label": 1, "clip": [pixels, photo], "text": b"hello"}),
        (b"bb", {"image": pixels, "label": 0, "clip": [], "text": b""}),
        (b"c", {"image": NO_IMAGE, "label": -1, "clip": [pixels], "text": b"x"}),
    ]
    options = {"classes": {1: [b"cat", b"dog"]}, "settings": {"a": 1}, "n_stats": 4, **options}
    write_pack(path, TINY, samples, block_samples=2, shard_blocks=1, **options)
    return samples


def files_of(path):
    return sorted(file for file in path.rglob("*") if file.is_file())


def refused(path, match=None):
    with pytest.raises(PackError, match=match) as error:
        Pack(path)
    return str(error.value)


@pytest.mark.parametrize("seed", range(20))
def test_round_trip(tmp_path, seed):
    draw = random.Random(seed)
    samples = list(any_samples(seed, draw.randrange(14)))
    sizes = {"block_samples": draw.randrange(1, 6), "shard_blocks": draw.randrange(1, 4)}
    classes = {1: [b"", b"cat", b"\xff\0"]}
    write_pack(tmp_path, FIELDS, samples, classes=classes, settings={"seed": seed}, **sizes)
    pack = Pack(tmp_path)
    same_samples(pack.samples, samples)
    assert list(pack.fields) == [field.name for field in FIELDS]
    assert [field.flags for field in pack.fields.values()] == [0, 0, 1] + [0] * 7 + [4, 50, 0]
    assert [pack.numbers[key] for key, _ in samples] == list(range(len(samples)))
    assert pack.classes == classes
    assert pack.settings == {"seed": seed}
    metas = sum(p["meta"] != b"" for _, v in samples for p in [v["photo"], v["mask"], *v["clip"]])
    assert [section.data for _, section in pack.sections] == [META] * metas


def test_the_digest_is_of_the_samples_alone(tmp_path):
    samples = list(any_samples(1, 9))
    for n, (size, blocks) in enumerate([(1, 1), (2, 3), (9, 1), (20, 1)]):
        write_pack(tmp_path / str(n), FIELDS, samples, block_samples=size, shard_blocks=blocks)
    write_pack(tmp_path / "4", FIELDS, samples[:8])
    digests = [Pack(tmp_path / str(n)).report()["sha256"] for n in range(5)]
    assert len(set(digests[:4])) == 1
    assert digests[4] != digests[0]


def test_a_block_that_is_not_used_any_more(tmp_path):
    samples = list(any_samples(2, 9))
    write_pack(tmp_path, FIELDS, samples, unused={0: samples[6:8]}, block_samples=3)
    pack = Pack(tmp_path)
    same_samples(pack.samples, samples)
    assert [row[0] for row in samples] == list(pack.numbers)


def test_a_section_of_unknown_type(tmp_path):
    tiny(tmp_path, sections=[(b"Xtra", 0, b"something")])
    assert len(Pack(tmp_path).samples) == 3
    tiny(tmp_path, sections=[(b"Xtra", 1, b"something")])
    refused(tmp_path, "part breaks the rule flags")


@pytest.mark.parametrize(
    ("more", "match"),
    [
        ([(b"STAT", 0, b"")], "b'STAT' is there twice"),
        ([(b"Xtra", 0, b""), (b"Xtra", 0, b"")], "b'Xtra' is there twice"),
        ([(bytes([65 + n // 26, 65 + n % 26, 65, 65]), 0, b"") for n in range(60)], "<= 64"),
    ],
)
def test_sections_too_many(tmp_path, more, match):
    tiny(tmp_path, sections=more)
    refused(tmp_path, match)


@pytest.mark.parametrize(("number", "match"), [(0, "SCHM or SHRD"), (1, "SCHM or SHRD")])
def test_sections_missing(tmp_path, number, match):
    def edit(part, data, shard, block):
        if part == "manifest":
            struct.pack_into("<4sI", data, 112 + 32 * number, b"Xtra", 0)

    tiny(tmp_path, edit=edit, classes={})
    refused(tmp_path, match)


def test_sections_in_another_order(tmp_path):
    tiny(tmp_path, first_sections=[(b"Xtra", 0, b"")])
    Pack(tmp_path)
    tiny(tmp_path, first_sections=[(b"CLAS", 0, struct.pack("<II", 1, 0))], classes={})
    refused(tmp_path, "CLAS is before SCHM")


@pytest.mark.parametrize("missing", range(3))
def test_missing_files(tmp_path, missing):
    tiny(tmp_path)
    files = files_of(tmp_path)
    files[missing].unlink()
    assert files[missing].name in refused(tmp_path)


def test_shards_in_each_others_place(tmp_path):
    tiny(tmp_path)
    first, second = (file for file in files_of(tmp_path) if file.suffix == ".shard")
    shutil.copy(first, tmp_path / "keep")
    first.write_bytes(second.read_bytes())
    second.write_bytes((tmp_path / "keep").read_bytes())
    refused(tmp_path, "^shard [0-9a-f]{32}")


@pytest.mark.slow
def test_every_damaged_byte(tmp_path):
    tiny(tmp_path)
    checked = 0
    for file in files_of(tmp_path):
        data = file.read_bytes()
        for n in range(0, len(data), STEP):
            damaged = bytearray(data)
            damaged[n] ^= 1 << n % 8
            file.write_bytes(damaged)
            refused(tmp_path)
            checked += 1
        file.write_bytes(data)
    assert checked > 2000 // STEP
    Pack(tmp_path)


@pytest.mark.slow
def test_every_length(tmp_path):
    tiny(tmp_path)
    for file in files_of(tmp_path):
        data = file.read_bytes()
        for n in range(0, len(data), STEP):
            file.write_bytes(data[:n])
            refused(tmp_path)
        file.write_bytes(data + b"\0")
        refused(tmp_path)
        file.write_bytes(data)
    Pack(tmp_path)


@pytest.mark.parametrize(
    ("text", "last", "name"),
    [
        (b"abcd", False, "block 0 sample 0 field 0 frame 0 run 1"),
        (b"abcd", True, "block 0 sample 0 field 2 frame 1 run 1"),
        (b"\xff\xd8", True, "block 0 sample 0 field 2 frame 1 run 0"),
        (b"hello", False, "block 0 sample 0 field 3 frame 0 run 0"),
        (bytes(range(12)), True, "block 0 sample 1 field 0 frame 0 run 1"),
    ],
)
def test_an_error_names_the_place(tmp_path, text, last, name):
    def edit(part, data, shard, block):
        if part == "payloads" and shard == 0:
            data[data.rfind(text) if last else data.find(text)] ^= 1

    tiny(tmp_path, edit=edit)
    assert f" {name}: checksum of the payload: expected" in refused(tmp_path)


# Offsets in the first block of tiny(): its index begins at 64 in the block, so at 0 in "index".
KEYS, IMAGES, LABELS = 0, 32, 160
CLIPS = LABELS + 16
TEXTS = CLIPS + 96
HEAP = TEXTS + 48
PHOTO_TABLE = HEAP + 3

RULES = [
    # part, offset in it, what is put there, what the error says
    ("manifest", 0, "<Q", 1, "must, by the flags"),
    ("manifest", 0, "<Q", 2, None),  # tables of entries are allowed, but there are none
    ("manifest", 0, "<Q", 8, "must, by the flags"),
    ("manifest", 0, "<Q", 32, "must == 0"),
    ("manifest", 16, "<Q", 5, "rule n_blocks =="),
    ("manifest", 24, "<Q", 0, "block_samples"),
    ("manifest", 24, "<Q", 2**31 + 1, "block_samples"),
    ("manifest", 32, "<Q", 3, "rule n_blocks =="),
    ("manifest", 40, "<Q", 1, "end of the parts"),
    ("manifest", 40, "<Q", 3, "end behind"),
    ("manifest", 48, "<Q", 1, "manifest_bytes"),
    ("manifest", 111, "<B", 1, "zero"),
    ("manifest", 112, "<4s", b"SC M", "isalpha"),
    ("manifest", 112, "<4s", b"SCHN", "flags"),
    ("manifest", 116, "<I", 0, "flags"),
    ("manifest", 116, "<I", 3, "flags"),
    ("manifest", 120, "<Q", 0, "offset"),
    ("manifest", 140, "<I", 1, "zero"),
    ("manifest", 112 + 96, "<4s", b"SETX", None),
    ("SCHM", 0, "<I", 3, "end of the parts"),
    ("SCHM", 0, "<I", 0, "0 fields"),
    ("SCHM", 4, "<B", 9, "type"),
    ("SCHM", 4, "<B", 0, "type"),
    ("SCHM", 5, "<B", 2, "flags"),
    ("SCHM", 14, "<B", 1, "flags"),
    ("SCHM", 6, "<B", 1, "n_dims"),
    ("SCHM", 7, "<B", 0, "rule name_bytes > 0"),
    ("SCHM", 8, "<B", 0xFF, "utf-8"),
    ("SHRD", 16, "<Q", 1, "first_block"),
    ("SHRD", 24, "<Q", 0, "blocks_used"),
    ("SHRD", 32, "<Q", 0, "blocks_used"),
    ("SHRD", 40, "<Q", 1, "samples_used"),
    ("SHRD", 48, "<Q", 191, "file_bytes"),
    ("SHRD", 48, "<Q", 4000, "size of the file"),
    ("SHRD", 56, "<Q", 1, "largest_block"),
    ("SHRD", 64, "<B", 0, "digest"),
    ("SHRD", 80, "<Q", 8, "tail_bytes"),
    ("SHRD", 95, "<B", 1, "rule stored_bytes == 0"),
    ("CLAS", 0, "<I", 0, "type of field 0"),
    ("CLAS", 0, "<I", 4, "list index out of range"),
    ("CLAS", 4, "<I", 3, "end behind"),
    ("CLAS", 4, "<I", 1, "end of the parts"),
    ("SETT", 0, "<B", ord("["), "Expecting"),
    ("SETT", 3, "<B", 0xFF, "utf-8"),
    ("SETT", 0, "<8s", b"[1     ]", "settings are not an object"),
    ("STAT", 8, "<Q", 1, "statistic 1: expected 72, found 1"),
    ("header", 0, "<Q", 1, "must"),
    ("header", 0, "<Q", 2, "must"),
    ("header", 8, "<B", 0, "id of the header"),
    ("header", 47, "<B", 1, "zero"),
    ("footer", 0, "<B", 0, "id of the footer"),
    ("footer", 16, "<Q", 4000, "file_bytes"),
    ("footer", 24, "<Q", 2, "n_blocks"),
    ("footer", 32, "<Q", 3, "tail_offset"),
    ("footer", 40, "<Q", 3, "block_samples"),
    ("footer", 48, "<Q", 64, "tail_offset"),
    ("footer", 64, "<I", 3, "file_bytes"),
    ("footer", 80, "<Q", 99, "plan_first"),
    ("footer", 111, "<B", 1, "zero"),
    ("file", -128, "<B", 0, "footer breaks the rule magic"),
    ("file", -120, "<I", 2, "footer breaks the rule version"),
    ("file", -116, "<I", 1, "checksum of the footer"),
    ("file", -160, "<Q", 9, "checksum of the statistics"),
    ("file", -192, "<Q", 9, "checksum of the block table"),
    ("file", -216, "<Q", 9, "checksum of the keys"),
    ("table", 0, "<Q", 65, "offset"),
    ("table", 8, "<Q", 64, "bytes of the block"),
    ("table", 16, "<Q", 65, "index_bytes of the block"),
    ("table", 24, "<I", 1, "index_crc of the block"),
    ("table", 28, "<I", 3, "rule least <= n_samples"),
    ("keys", 8, "<I", 5, "keys: expected"),
    ("keys", 0, "<Q", 0, "keys: expected"),
    ("block", 0, "<I", 1, "block of the block"),
    ("block", 4, "<I", 1, "n_samples of the block"),
    ("block", 8, "<Q", 1, "bytes of the block"),
    ("block", 16, "<Q", 1, "index_bytes of the block"),
    ("block", 24, "<Q", 64, "end behind 64"),
    ("block", 24, "<Q", 2**40, "end behind"),
    ("block", 32, "<I", 1, "end of the parts"),
    ("block", 32, "<I", 4, "end behind"),
    ("block", 36, "<I", 1, "index_crc of the block"),
    ("block", 55, "<B", 1, "zero"),
    ("section", 0, "<I", 2, "sample < n"),
    ("section", 4, "<I", 4, "field < m"),
    ("section", 12, "<I", 1, "zero"),
    ("section", 16, "<Q", 2**40, "end behind"),
    ("index", KEYS, "<Q", 1, "offset"),
    ("index", KEYS + 8, "<I", 0, "1 <= bytes"),
    ("index", KEYS + 8, "<I", 4097, "4096"),
    ("index", KEYS + 8, "<I", 2, "offset"),
    ("index", KEYS + 12, "<I", 1, "zero"),
    ("index", IMAGES, "<Q", 1, "offset"),
    ("index", IMAGES + 8, "<Q", 14, "offset|lengths of"),
    ("index", IMAGES + 16, "<I", 0, "width > 0"),
    ("index", IMAGES + 16, "<I", 65, None),
    ("index", IMAGES + 16, "<I", 64, "n_segments"),
    ("index", IMAGES + 16, "<I", 129, "n_segments"),
    ("index", IMAGES + 24, "<B", 5, "rule low <= codec < 5"),
    ("index", IMAGES + 24, "<B", 0, "codec > 0 or"),
    ("index", IMAGES + 24, "<B", 2, "rule codec == 4 or codec == 1"),
    ("index", IMAGES + 24, "<B", 4, "codec == 4"),
    ("index", IMAGES + 25, "<B", 6, "how in"),
    ("index", IMAGES + 25, "<B", 7, "how in"),
    ("index", IMAGES + 25, "<B", 8, "rule how < 8"),
    ("index", IMAGES + 25, "<B", 0, "how in"),
    ("index", IMAGES + 26, "<B", 0, "orientation"),
    ("index", IMAGES + 26, "<B", 9, "orientation"),
    ("index", IMAGES + 27, "<B", 2, "channels"),
    ("index", IMAGES + 27, "<B", 1, "components == channels"),
    ("index", IMAGES + 28, "<I", 1, "checksum of the payload"),
    ("index", IMAGES + 32, "<Q", 0, "offset"),
    ("index", IMAGES + 40, "<Q", 27, "table_bytes"),
    ("index", IMAGES + 40, "<Q", 0, "table_bytes"),
    ("index", IMAGES + 32, "<QQ", (0, 0), "rule how not in"),
    ("index", IMAGES + 48, "<q", 1, "timestamp"),
    ("index", IMAGES + 64 + 16, "<I", 3, "width \\* height"),
    ("index", CLIPS, "<Q", 1, "offset of the clip"),
    ("index", CLIPS + 8, "<Q", 1, "table and bytes"),
    ("index", CLIPS + 16, "<I", 1, "offset|table and bytes"),
    ("index", CLIPS + 20, "<I", 1, "kind == 0"),
    ("index", CLIPS + 24, "<Q", 1, "table and bytes"),
    ("index", CLIPS + 32, "<Q", 1, "table and bytes"),
    ("index", CLIPS + 40, "<Q", 1, "source_bytes == 0"),
    ("index", CLIPS + 48 + 24, "<Q", 1, "table and bytes"),
    ("index", TEXTS, "<Q", 1, "offset"),
    ("index", TEXTS + 8, "<Q", 6, "checksum of the payload"),
    ("index", TEXTS + 16, "<I", 6, "checksum of the payload"),
    ("index", TEXTS + 20, "<I", 1, "missing == 0"),
    ("index", TEXTS + 20, "<I", 6, "missing == 0"),
    ("index", PHOTO_TABLE, "<I", 5, "lengths of the segments"),
    ("index", PHOTO_TABLE + 4, "<I", 0, "table_bytes"),
    ("index", PHOTO_TABLE + 4, "<IIHB", (0, 2, 8, 0), "rule 0 < n_segments"),
    ("index", PHOTO_TABLE + 8, "<I", 2, "table_bytes"),
    ("index", PHOTO_TABLE + 12, "<H", 0, "unit > 0"),
    ("index", PHOTO_TABLE + 12, "<H", 4, "n_segments"),
    ("index", PHOTO_TABLE + 14, "<B", 3, "rule length_bytes in"),
    ("index", PHOTO_TABLE + 15, "<B", 1, "components"),
    ("index", PHOTO_TABLE + 16, "<B", 0, "h_samp"),
    ("index", PHOTO_TABLE + 16, "<B", 2, "n_segments"),
    ("index", PHOTO_TABLE + 17, "<B", 5, "v_samp"),
    ("index", PHOTO_TABLE + 18, "<B", 1, "zero"),
    ("index", PHOTO_TABLE + 20, "<I", 1, "run 1: checksum of the payload"),
    ("index", PHOTO_TABLE + 24, "<HH", (7, 4), "lengths of the segments"),
    ("index", PHOTO_TABLE + 24, "<H", 7, "lengths of the segments"),
    # The second shard has one sample with no image, at 16 of the index; its text is at 136.
    ("index@1", 16 + 8, "<Q", 1, "end of the parts|rule codec > 0 or"),
    ("index@1", 16 + 16, "<I", 1, "rule codec > 0 or"),
    ("index@1", 16 + 20, "<I", 1, "rule codec > 0 or"),
    ("index@1", 16 + 25, "<B", 1, "rule codec > 0 or"),
    ("index@1", 16 + 26, "<B", 1, "rule codec > 0 or"),
    ("index@1", 16 + 27, "<B", 3, "rule codec > 0 or"),
    ("index@1", 16 + 28, "<I", 1, "rule codec > 0 or"),
    ("index@1", 16 + 32, "<Q", 161, "rule table_bytes > 0 or table_offset"),
    ("index@1", 16 + 40, "<Q", 64, "rule codec > 0 or"),
    ("index@1", 16 + 56, "<Q", 1, "rule codec > 0 or"),
    ("index@1", 161 + 24, "<B", 0, "field 2 frame 0 run 0: image breaks the rule low <= codec"),
    ("index@1", 161 + 64 + 12, "<B", 1, "rule codec == 1 or unit"),
    ("stats", 8, "<Q", 1, "statistic 1: expected 59, found 1"),
    ("stats", 16, "<Q", 1, "statistic 2: expected"),
    ("stats", 24, "<Q", 1, "statistic 3: expected"),
    ("stats", 0, "<Q", 1, None),
    ("index", -4, "<I", 1, "checksum of the section 1"),
]


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: f"{rule[0]}+{rule[1]}={rule[3]}")
def test_a_broken_rule_under_right_checksums(tmp_path, rule):
    part, offset, code, value, match = rule

    part, _, number = part.partition("@")

    def edit(name, data, shard, block):
        if name == part and (shard or 0) == int(number or 0):
            struct.pack_into(code, data, offset, *(value if isinstance(value, tuple) else [value]))

    tiny(tmp_path, edit=edit)
    if match:
        refused(tmp_path, match)
    else:
        Pack(tmp_path)


@pytest.mark.slow
def test_wild_values_are_errors_of_the_pack(tmp_path):
    """Whatever stands under right checksums, the reader gives a pack or a PackError."""
    draw = random.Random(5)
    parts = sorted({rule[0].partition("@")[0] for rule in RULES})
    refusals = 0
    for _ in range(810 // STEP):
        part, at, size = draw.choice(parts), draw.random(), draw.choice([1, 4, 8])
        value = draw.choice([b"\0", b"\xff", b"\x01"]) * size

        def edit(name, data, shard, block, part=part, at=at, value=value):
            if name == part:
                start = int(at * (len(data) - len(value)))
                data[start : start + len(value)] = value

        tiny(tmp_path / "pack", edit=edit)
        try:
            Pack(tmp_path / "pack")
        except PackError:
            refusals += 1
    assert 500 // STEP < refusals < 810 // STEP


def test_rows_are_not_listed(tmp_path):
    for listed, match in [(0, None), (2, "rule codec == 1 or unit")]:
        cut = Segments(0, (6, 6), listed, unit=0, components=0, h_samp=0, v_samp=0)
        pixels = image(bytes(12), 2, 2, segments=cut)
        write_pack(tmp_path / str(listed), [Field("image", "image")], [(b"a", {"image": pixels})])
        if match:
            refused(tmp_path / str(listed), match)
        else:
            Pack(tmp_path / str(listed))


def test_bytes_behind_the_last_section(tmp_path):
    def edit(part, data, shard, block):
        if part == "manifest":
            struct.pack_into("<Q", data, 48, struct.unpack_from("<Q", data, 48)[0] + 1)

    tiny(tmp_path, edit=edit)
    manifest = tmp_path / "manifest"
    manifest.write_bytes(manifest.read_bytes() + b"\0")
    refused(tmp_path, "end of the parts")


def test_a_shard_left_out(tmp_path):
    def edit(part, data, shard, block):
        if part == "manifest":
            struct.pack_into("<Q", data, 40, 1)
        if part == "SHRD":
            del data[96:]

    tiny(tmp_path, edit=edit)
    refused(tmp_path, "n_blocks: expected 2, found 1")


def test_a_sample_left_out(tmp_path):
    def edit(part, data, shard, block):
        if part == "manifest":
            struct.pack_into("<Q", data, 16, 3)
        if part == "SHRD":
            struct.pack_into("<Q", data, 40, 3)

    samples = [(key, {"n": 1}) for key in (b"a", b"b", b"c", b"d")]
    write_pack(tmp_path, [Field("n", "i64")], samples, block_samples=2, edit=edit)
    refused(tmp_path, "samples_used: expected 3, found 4")


@pytest.mark.parametrize(
    "dims", [(2, 0), (0, 0), (0, 65537), (65537,), (2, 3, 4, 2731), (2**32 - 1,) * 4]
)
def test_dims_out_of_range(tmp_path, dims):
    write_pack(tmp_path, [Field("n", "i64", dims)], [])
    refused(tmp_path, "dims of field 0")


def test_a_name_twice(tmp_path):
    write_pack(tmp_path, [Field("n", "i64"), Field("n", "text")], [])
    refused(tmp_path, "number of different names")


def test_runs_cut_in_another_way(tmp_path):
    class OneByOne(Segments):
        def runs(self):
            return self.lengths

    data = b"ab\xff\xd0c\xff\xd9"
    photo = image(data, 72, 8, codec="jpeg", how="tiled", segments=OneByOne(0, (4, 3)))
    write_pack(tmp_path, [Field("image", "image")], [(b"a", {"image": photo})])
    refused(tmp_path, "n_runs: expected 1, found 2")


def test_a_key_twice(tmp_path):
    fields, samples = [Field("n", "i64")], [(key, {"n": 1}) for key in (b"a", b"b", b"a")]
    write_pack(tmp_path, fields, samples, block_samples=1)
    refused(tmp_path, "number of different keys: expected 3, found 2")


@pytest.mark.parametrize(("blocks", "match"), [(1, "rule samples_used"), (2, "rule least")])
def test_a_short_block_before_the_last(tmp_path, blocks, match):
    """Two blocks of 2 samples, in one shard or in two, said to be a pack of blocks of 3."""

    def edit(part, data, shard, block):
        if part == "manifest":
            struct.pack_into("<Q", data, 24, 3)
        if part == "footer":
            struct.pack_into("<Q", data, 40, 3)

    samples = [(key, {"n": 1}) for key in (b"a", b"b", b"c", b"d")]
    sizes = {"block_samples": 2, "shard_blocks": blocks}
    write_pack(tmp_path, [Field("n", "i64")], samples, **sizes, edit=edit)
    refused(tmp_path, match)


def test_the_program(tmp_path):
    tiny(tmp_path)
    run = [sys.executable, str(READER), str(tmp_path)]
    plain = subprocess.run(run, capture_output=True, text=True, check=True)
    as_json = subprocess.run([*run, "--json"], capture_output=True, text=True, check=True)
    report = json.loads(as_json.stdout)
    assert report == json.loads(plain.stdout)
    assert report["samples"] == 3
    assert len(report["sha256"]) == 64
    (tmp_path / "manifest").write_bytes(b"PENSTOCK")
    broken = subprocess.run(run, capture_output=True, text=True, check=False)
    assert (broken.returncode, broken.stdout) == (1, "")
    assert "manifest: 128 bytes at 0 end behind 8" in broken.stderr
