# SPDX-License-Identifier: Apache-2.0
"""The golden packs: the library and the plain reader find the same in every one, and both refuse
those that damage.py makes of them.

tests/golden/make_packs.py has made them with version 1 of the format, which is frozen: they are
kept as they are, and what is in them is what tests/golden/HASHES.json says. For packs that are
added, GOLDEN=write adds their hashes; those that are there are never written anew.
"""

import hashlib
import json
import os
import pathlib
import random
import re
import struct
import subprocess

import pytest
from cli_tools import PENSTOCK, ROOT, good, run
from damage import RULES, Damaged, damage
from plain_reader import Pack, PackError
from plain_writer import Field, Segments, image, write_pack
from py_tools import need_penstock

GOLDEN = ROOT / "tests" / "golden"
BUILD = pathlib.Path(os.environ.get("PENSTOCK_BUILD") or pathlib.Path(PENSTOCK).parent)
DUMP = BUILD / "tests" / "golden" / "golden_dump"
PLUGIN = BUILD / "video" / "libpenstock-video.so.0"
HASHES = json.loads((GOLDEN / "HASHES.json").read_text(encoding="utf-8"))
VALID = sorted(path.stem for path in (GOLDEN / "valid").iterdir())
TYPES = (None, "image", "clip", "bytes", "json", "text", "i64", "f32", "f64")
CODES = {6: "q", 7: "f", 8: "d"}
WRITE = os.environ.get("GOLDEN") == "write"
PIPELINES = {"image": "decode | center_crop 24 | tensor u8",
             "mask": "decode | center_crop 24 | tensor u8",
             "clip": "decode | clip 3 2 center loop times=yes | center_crop 16 | tensor u8",
             "ragged": "ragged 8 pad=-1"}


def dump(path):
    """What the library finds in a pack, as lines."""
    done = subprocess.run([DUMP, path], capture_output=True, text=True, check=False, timeout=60)
    return done.returncode, done.stdout.splitlines()


def shard_starts(manifest):
    """The first sample of each block that belongs to the pack, by (shard, block)."""
    size, n_sections = struct.unpack_from("<Q", manifest, 40)[0], manifest[72]
    starts = {}
    for at in range(128, 128 + 32 * n_sections, 32):
        kind, offset, length = struct.unpack_from("<4s4xQQ", manifest, at)
        for entry in range(offset, offset + length, 96) if kind == b"SHRD" else ():
            name, first, used = struct.unpack_from("<16sQQ", manifest, entry)
            starts.update({(name, block): (first + block) * size for block in range(used)})
    return starts


def is_video(value):
    return isinstance(value, dict) and "packets" in value


def image_lines(frame, pic, meta):
    keys = ("codec", "how", "orientation", "channels")
    words = " ".join(f"{key} {pic[key]}" for key in keys)
    size = f"size {pic['width']}x{pic['height']} bytes {len(pic['data'])}"
    yield f"    image {frame} {words} {size} source {pic['source_bytes']} time {pic['timestamp']}"
    if meta:
        yield f"    metadata {meta.hex()}"


def video_line(video):
    keys = ("codec", "container", "orientation", "depth")
    words = " ".join(f"{key} {video[key]}" for key in keys)
    turned = video["orientation"] >= 5
    width, height = (video[key] for key in ("height", "width")[:: 1 if turned else -1])
    num, den = video["tick_num"], video["tick_den"]
    times = " ".join(str((2 * time * num * 10**9 + den) // (2 * den)) for time in video["times"])
    return (f"    video {words} size {width}x{height} bytes {len(video['data'])} "
            f"source {video['source_bytes']} times {times}")


def stored_bytes(field, value):
    if field.type == 1 or is_video(value):
        return value["data"]
    if field.type == 2:
        return b"".join(pic["data"] for pic in value)
    if field.type in CODES and value is not None:
        values = value if field.dims else [value]
        return struct.pack(f"<{len(values)}{CODES[field.type]}", *values)
    return value or b""


def plain_lines(path):
    """The same lines from the plain reader."""
    manifest = (path / "manifest").read_bytes()
    pack, starts, meta = Pack(path), shard_starts(manifest), {}
    for place, section in pack.sections:
        start = starts.get((place.shard, place.block))
        if start is not None:
            meta[start + section.sample, section.field, section.frame] = section.data
    counts = (len(pack.samples), pack.head.n_blocks, pack.head.block_samples, pack.head.n_shards)
    yield "pack samples {} blocks {} of {} shards {}".format(*counts)
    yield f"id {hashlib.sha256(manifest).hexdigest()[:32]}"
    for names in pack.classes.values():
        yield from (f"class {name.hex()}" for name in names)
    for n, (key, values) in enumerate(pack.samples):
        yield f"sample {n} found {pack.numbers[key]}"
        yield f"  key {key.hex()}"
        for f, (name, field) in enumerate(pack.fields.items()):
            yield f"  field {name} {TYPES[field.type]}"
            yield f"    bytes {stored_bytes(field, values[name]).hex()}"
            if values[name] is None:
                yield "    missing"
            if is_video(values[name]):
                yield video_line(values[name])
                continue
            pics = {1: [values[name]], 2: values[name]}.get(field.type, [])
            for frame, pic in enumerate(pics):
                yield from image_lines(frame, pic, meta.get((n, f, frame)))


def test_all_files_are_as_they_were_made():
    text = (GOLDEN / "MANIFEST.sha256").read_text(encoding="utf-8")
    sums = dict(line.split("  ")[::-1] for line in text.splitlines())
    files = [file for file in (GOLDEN / "valid").rglob("*") if file.is_file()]
    found = {str(f.relative_to(GOLDEN)): hashlib.sha256(f.read_bytes()).hexdigest() for f in files}
    assert found == sums
    assert len(VALID) >= 20 and len(RULES) >= 50
    assert sorted(HASHES) == VALID or WRITE


@pytest.mark.parametrize("name", VALID)
def test_both_readers_find_the_same(name):
    path = GOLDEN / "valid" / f"{name}.pen"
    code, lines = dump(path)
    assert code == 0, lines[-1]
    assert lines == list(plain_lines(path))


def is_known(name, kind, found):
    """Is it what it was when the pack was made?"""
    known = HASHES.setdefault(name, {})
    if WRITE and kind not in known:
        known[kind] = found
        text = json.dumps(HASHES, indent=1, sort_keys=True)
        (GOLDEN / "HASHES.json").write_text(text + "\n", encoding="utf-8")
    return known.get(kind) == found


def digest(lines):
    return hashlib.sha256("\n".join(lines).encode()).hexdigest()


@pytest.mark.parametrize("name", VALID)
def test_both_readers_find_what_they_found_before(name):
    path = GOLDEN / "valid" / f"{name}.pen"
    assert is_known(name, "content", digest(dump(path)[1]))
    assert is_known(name, "content", digest(plain_lines(path)))


def batches(pack, field, kind):
    """The digest of what the loader makes of a field of those samples that have a value."""
    penstock, total = need_penstock(), hashlib.sha256()
    needs_value = kind in ("image", "mask", "clip")
    chosen = [n for n in range(len(pack)) if not needs_value or len(pack[n][field])]
    settings = {"subset": chosen, "order": "sequential", "output": "numpy", "threads": 2,
                "last_batch": "pad"}
    with penstock.Loader(pack, 2, pipeline={field: PIPELINES.get(kind, "tensor auto")},
                         **settings) as loader:
        for batch in loader:
            for values in batch:
                total.update(f"{values.shape} {values.dtype}".encode() + values.tobytes())
    return total.hexdigest()


@pytest.mark.parametrize("name", VALID)
def test_the_loader_gives_what_it_gave_before(name):
    """Every field that can be in a batch, to the pixel."""
    pytest.importorskip("numpy")
    if name == "kept_videos" and not PLUGIN.exists():
        pytest.skip("built without the video plug-in")
    os.environ.setdefault("PENSTOCK_VIDEO_LIBRARY", str(PLUGIN))
    pack = need_penstock().open(GOLDEN / "valid" / f"{name}.pen")
    kinds = {field: "ragged" if "[*" in kind else kind.split("[")[0].rstrip("?")
             for field, kind in pack.schema.items()}
    for field, kind in kinds.items() if len(pack) else ():
        if kind not in ("bytes", "json", "text"):
            assert is_known(name, f"batches of {field}", batches(pack, field, kind)), field


@pytest.mark.parametrize("name", VALID)
def test_the_program_reads_all(name, tmp_path):
    path = GOLDEN / "valid" / f"{name}.pen"
    pack = Pack(path)
    record = good("verify", path, "--decode", "--json").json()
    assert (record["ok"], record["samples"], record["problems"]) == (True, len(pack.samples), 0)
    listed = good("info", path, "--samples", "--json").out.splitlines()
    assert len(listed) == len(pack.samples)
    for n, line in enumerate(listed):
        assert json.loads(line)["index"] == n
    keys = [key for key, _ in pack.samples if re.fullmatch(rb"[\w/. ]+", key) and len(key) < 99]
    chosen = [word for key in keys for word in ("-k", key.decode())]
    if chosen:
        record = good("extract", path, *chosen, "-o", tmp_path / "out", "--json").json()
        assert (record["samples"], record["failed"]) == (len(keys), 0)


@pytest.mark.parametrize("name", sorted({rule.pack for rule in RULES.values()}))
def test_checksums_of_valid_packs_stay(name):
    """So nothing is wrong in a damaged pack but what its rule changes."""
    pack = Damaged(name)
    files = [pack.manifest, *(shard.data for shard in pack.shards)]
    before = [bytes(data) for data in files]
    for data in files:
        pack.sign(data)
    assert files == before


@pytest.mark.parametrize("name", RULES)
def test_both_readers_refuse(tmp_path, name):
    path, rule = tmp_path / f"{name}.pen", RULES[name]
    damage(name, path)
    code, lines = dump(path)
    assert code == 1
    assert re.search(f"^error ({rule.status}) .*({rule.says})", lines[-1]), lines[-1]
    with pytest.raises(PackError, match=rule.plain):
        Pack(path)


@pytest.mark.parametrize("name", RULES)
def test_the_program_refuses(tmp_path, name):
    path = tmp_path / f"{name}.pen"
    damage(name, path)
    result = run("verify", path, "--decode")
    assert result.code == 1
    assert re.search(RULES[name].says, result.err), result.err


# ---- packs that are wrong in one place, with right checksums -------------------------------------

FIELDS = [Field("image", "image"), Field("label", "i64"), Field("clip", "clip")]
# What both readers have to judge alike. They differ on purpose in what is for people only: the
# library takes totals and settings as they are.
JUDGED = ("SHRD", "header", "table", "keys", "block", "index")


def one_edit(seed):
    """A function that puts some number somewhere into one part of one shard."""
    draw = random.Random(seed)
    part, shard, width = draw.choice(JUDGED), draw.randrange(2), draw.choice([1, 1, 2, 4, 8])
    most = 2 ** (8 * width)
    value = draw.choice([0, 1, 2, 3, 4, 5, 8, 64, 255, most - 1, most // 2, draw.randrange(most)])
    where = draw.random()

    def edit(name, data, number, block):
        if name == part and number in (shard, None) and len(data) >= width:
            at = int(where * (len(data) - width + 1))
            data[at : at + width] = (value % most).to_bytes(width, "little")
    return edit


def write_small(path, edit, optional):
    """Three samples in two shards, with all kinds of entries; a note may be missing."""
    photo = image(b"\xff\xd8\xff\xdaabcd\xff\xd0xyz\xff\xd9", 72, 8, codec="jpeg", how="tiled",
                  segments=Segments(4, (6, 5), unit=8), meta=b"\xff\xfe\x00\x03!")
    pixels = image(bytes(range(12)), 2, 2, segments=Segments(0, (6, 6), 0, 0, 0, 0, 0))
    samples = [
        (b"a", {"image": photo, "label": 1, "clip": [pixels, photo], "note": b"hello"}),
        (b"bb", {"image": pixels, "label": 0, "clip": [], "note": None if optional else b""}),
        (b"c", {"image": pixels, "label": -1, "clip": [pixels], "note": b"x"}),
    ]
    fields = [*FIELDS, Field("note", "text", optional=optional)]
    write_pack(path, fields, samples, block_samples=2, shard_blocks=1, n_stats=0, edit=edit)


@pytest.mark.parametrize("first", [0, *(pytest.param(first, marks=pytest.mark.slow)
                                        for first in range(50, 400, 50))])
def test_both_readers_judge_alike(tmp_path, first):
    verdicts = set()
    for seed in range(first, first + 50):
        path = tmp_path / str(seed)
        write_small(path, one_edit(seed), optional=seed % 2 == 1)
        result = run("verify", path)
        try:
            Pack(path)
            said = None
        except PackError as error:
            said = str(error)
        assert (result.code == 0) == (said is None), (seed, result.err, said)
        verdicts.add(result.code)
    assert verdicts == {0, 1}
