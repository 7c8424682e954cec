# SPDX-License-Identifier: Apache-2.0
"""A plain writer of small penstock packs for tests, written from docs/explanation/format.md alone.

    fields = [Field("photo", "image"), Field("label", "i64"), Field("box", "f32", (2, 2))]
    samples = [(b"key", {"photo": image(b"...", 4, 2), "label": 7, "box": [0, 0, 1, 1]})]
    write_pack("NAME.pen", fields, samples, block_samples=4, shard_blocks=2)

To make packs that are wrong in one place and right in all others, write_pack takes a function
edit(part, data, shard, block) that may change each part, a bytearray, before its checksum is made.
It shares no code with the reader but that of video tables. A clip is a list of images, or for a
video a dict: data, stream and packets as in plain_video.py, n_frames, source_bytes.
"""

import hashlib
import json
import math
import pathlib
import struct
import typing

import plain_jpeg
import plain_video

ALL = 0xFFFFFFFF
TYPES = {"image": 1, "clip": 2, "bytes": 3, "json": 4, "text": 5, "i64": 6, "f32": 7, "f64": 8}
CODECS = {"none": 0, "jpeg": 1, "png": 2, "webp": 3, "raw": 4}
HOWS = {"kept": 0, "tiled": 1, "encoded": 2, "raw": 3, "not tileable": 4, "low quality": 5}
HOWS |= {"indexed": 6, "converted": 7}
CODES = {"i64": "q", "f32": "f", "f64": "d"}
ENTRY_BYTES = {"image": 64, "clip": 48, "bytes": 24, "json": 24, "text": 24}
RUN_BYTES = 4096
VERSION = 1


class Field(typing.NamedTuple):
    name: str
    type: str
    dims: tuple = ()
    mask: bool = False
    optional: bool = False
    flags: int = 0  # of coordinates

    def ragged(self):
        return self.dims[:1] == (0,)

    def entry_bytes(self):
        return 24 if self.ragged() else ENTRY_BYTES.get(self.type) or struct.calcsize(self.code())

    def code(self):
        return f"<{math.prod(self.dims)}{CODES[self.type]}"


class Segments(typing.NamedTuple):
    """How a payload is cut; without lengths all segments are equally long and none are listed."""

    head_bytes: int
    lengths: tuple
    length_bytes: int = 2
    unit: int = 8
    components: int = 3
    h_samp: int = 1
    v_samp: int = 1

    def runs(self):
        """The bytes of each run of segments."""
        runs, size = [], 0
        for length in self.lengths:
            size += length
            if size >= RUN_BYTES:
                runs.append(size)
                size = 0
        return runs + ([size] if size else [])

    def table_bytes(self):
        return 20 + 4 * len(self.runs()) + self.length_bytes * len(self.lengths)


def code_difference(number):
    number = 2 * number if number >= 0 else -2 * number - 1
    out = bytearray()
    while number > 127:
        out.append(number % 128 + 128)
        number //= 128
    return bytes(out) + bytes([number])


class Index:
    """The entry table of a JPEG: its parts, and the entries as bytes."""

    def __init__(self, data, unit):
        self.unit, self.jpeg = unit, plain_jpeg.scan(data)
        self.restart, self.components = self.jpeg.restart, self.jpeg.components
        self.cuts = [self.jpeg.lead_bytes, self.jpeg.head_bytes]
        end = self.jpeg.head_bytes + self.jpeg.scan_bytes
        self.cuts += range(self.cuts[1] + RUN_BYTES, end, RUN_BYTES)
        self.cuts += [end, len(data)]
        self.firsts = self.first_mcus(len(self.jpeg.mcus))
        self.entries = self.code_entries()

    def first_mcus(self, n):
        """The first MCU of each interval, and whether it begins a group."""
        group = self.restart or n
        if group < self.unit and self.restart:
            group = self.unit // group * group
        starts = range(0, n, group)
        return [(a, a == at) for at in starts for a in range(at, min(at + group, n), self.unit)]

    def code_entries(self):
        out, (before, old) = b"", self.jpeg.mcus[0]
        for first, begins in self.firsts[1:]:
            position, new = self.jpeg.mcus[first]
            distance = position - before
            out += struct.pack("<H", min(distance, 0xFFFF))
            out += struct.pack("<I", distance) if distance >= 0xFFFF else b""
            if not begins:
                out += b"".join(code_difference(a - b) for a, b in zip(new, old))
            before, old = position, new
        return out

    @property
    def head_bytes(self):  # of the part that the entry of the image has the checksum of
        return self.jpeg.lead_bytes

    def table_bytes(self):
        return 28 + 4 * (len(self.cuts) - 1) + len(self.entries)

    def table(self, data, make_sum):
        jpeg, n_sums = self.jpeg, len(self.cuts) - 1
        table = struct.pack("<III", jpeg.head_bytes, len(self.firsts), n_sums)
        table += struct.pack("<HBBBB", self.unit, 1, jpeg.components, jpeg.h, jpeg.v)
        table += struct.pack("<HII", jpeg.restart, jpeg.lead_bytes, jpeg.scan_bytes)
        for n, (at, end) in enumerate(zip(self.cuts, self.cuts[1:])):
            table += struct.pack("<I", make_sum(data[at:end], n + 1))
        return table + self.entries


def image(data, width, height, **more):
    """An image; more is what differs from raw RGB: codec, how, channels, segments, meta..."""
    codec = more.get("codec", "raw")
    given = {"codec": codec, "how": "raw" if codec == "raw" else "kept", "channels": 3}
    rest = {"orientation": 1, "timestamp": 0, "segments": None, "meta": b""}
    shape = {"width": width, "height": height, "source_bytes": len(data)}
    return {"data": data, **shape, **given, **rest, **more}


NO_IMAGE = image(b"", 0, 0, codec="none", channels=0, orientation=0)


def crc_table():
    for value in range(256):
        for _ in range(8):
            value = value // 2 ^ (0x82F63B78 * (value % 2))
        yield value


CRC = tuple(crc_table())


def crc32c(data):
    crc = ALL
    for byte in data:
        crc = CRC[crc % 256 ^ byte] ^ crc // 256
    return crc ^ ALL


def no_edit(part, data, shard, block):
    """Leave everything as it is."""


class Shard(typing.NamedTuple):
    id: bytes
    number: int
    fields: list
    edit: typing.Callable

    def sum(self, data, block=ALL, sample=ALL, field=0, frame=0, run=0):
        return crc32c(self.id + struct.pack("<5I", block, sample, field, frame, run) + data)

    def edited(self, part, data, block=None):
        data = bytearray(data)
        self.edit(part, data, self.number, block)
        return bytes(data)


def upright(pic):
    size = pic["width"], pic["height"]
    return size[::-1] if pic["orientation"] >= 5 else size


def columns_of(field, values):
    """Each column of a field: its kind, and the bytes of all values."""
    if field.type in CODES and not field.ragged() and field.entry_bytes() <= 64:
        code = field.code()
        yield 0, b"".join(struct.pack(code, *(v if field.dims else [v])) for v in values)
    if field.type == "image":
        yield 1, b"".join(struct.pack("<II", *upright(pic)) for pic in values)
    if field.type == "clip":
        sizes = [upright(frames["stream"]) if isinstance(frames, dict)
                 else upright(frames[0]) if frames else (0, 0) for frames in values]
        yield 1, b"".join(struct.pack("<II", *size) for size in sizes)
        numbers = [frames["n_frames"] if isinstance(frames, dict) else len(frames)
                   for frames in values]
        yield 2, b"".join(struct.pack("<I", number) for number in numbers)


def columns_section(shard, samples):
    body = b""
    for f, field in enumerate(shard.fields):
        for kind, data in columns_of(field, [values[field.name] for _, values in samples]):
            data = shard.edited("column", data)
            body += data + struct.pack("<I", shard.sum(data, field=6, frame=f, run=kind))
    return b"COLS" + struct.pack("<5IQ", 0, 0, 0, 0, 0, len(body)) + body if body else b""


class Block:
    """Lays out one block; heap and payloads grow while the entries are made."""

    def __init__(self, shard, number, samples, columns=b""):
        self.shard, self.number, self.samples = shard, number, samples
        self.entries = 64 + 16 * len(samples)
        self.entries += len(samples) * sum(field.entry_bytes() for field in shard.fields)
        self.heap = b"".join(key for key, _ in samples)
        self.payloads, self.sections, self.sums, self.n_sections = b"", b"", b"", 0
        self.columns = columns
        self.stats = {}
        tables = sum(self.table_bytes(pic) for _, _, _, pic in self.pictures())
        tables += 4 * sum(bool(pic["meta"]) for _, _, _, pic in self.pictures())
        tables += 4 * bool(columns)
        frames = sum(len(pics) for _, _, pics in self.clips() if isinstance(pics, list))
        tables += sum(len(self.video_table(*clip)[0]) for clip in self.clips()
                      if isinstance(clip[2], dict))
        self.index_bytes = self.entries + len(self.heap) + tables + 64 * frames

    def clips(self):
        for i, (_, values) in enumerate(self.samples):
            for f, field in enumerate(self.shard.fields):
                if field.type == "clip":
                    yield i, f, values[field.name]

    def pictures(self):
        """Every image and frame: (sample, field, frame, image)."""
        for i, (_, values) in enumerate(self.samples):
            for f, field in enumerate(self.shard.fields):
                if field.type == "image":
                    yield i, f, 0, values[field.name]
        for i, f, frames in self.clips():
            for n, frame in enumerate(frames if isinstance(frames, list) else []):
                yield i, f, n, frame

    @staticmethod
    def table_bytes(pic):
        return pic["segments"].table_bytes() if pic["segments"] else 0

    def sum(self, data, *place):
        return self.shard.sum(data, self.number, *place)

    def add_payload(self, data):
        offset = self.index_bytes + len(self.payloads)
        self.payloads += data
        return offset

    def add_heap(self, data):
        offset = self.entries + len(self.heap)
        self.heap += data
        return offset

    def entry(self, i, f, field, value):
        if field.type == "image":
            return self.image_entry(i, f, 0, value)
        if field.type == "clip":
            return self.clip_entry(i, f, value)
        if field.type in CODES and not field.ragged():
            return struct.pack(field.code(), *(value if field.dims else [value]))
        missing, value = value is None, value or b""
        if not isinstance(value, bytes):
            value = struct.pack(f"<{len(value)}{CODES[field.type]}", *value)
        self.count(72 + f, int(missing))
        crc = self.sum(value, i, f)
        return struct.pack("<QQII", self.add_payload(value), len(value), crc, missing)

    def video_table(self, i, f, video):
        def make_sum(run, number):
            return self.sum(run, i, f, 0, number)
        return plain_video.write(video["stream"], video["packets"], video["data"], make_sum)

    def video_entry(self, i, f, video):
        table, n_frames = self.video_table(i, f, video)
        whole, size = video["stream"]["container"], len(video["data"])
        source = size if whole else video["source_bytes"]
        for number, amount in ((0, source if whole else size), (6, 1), (7, n_frames)):
            self.count(number, amount)
        places = (self.add_heap(table), len(table), source)
        return struct.pack("<QQIIQQQ", self.add_payload(video["data"]), size, n_frames, 1, *places)

    def clip_entry(self, i, f, frames):
        if isinstance(frames, dict):
            return self.video_entry(i, f, frames)
        # The segment tables follow the entries of all frames, which are made with them.
        start = self.index_bytes + len(self.payloads)
        table = self.add_heap(bytes(64 * len(frames))) if frames else 0
        entries = b"".join(self.image_entry(i, f, n, frame) for n, frame in enumerate(frames))
        at = table - self.entries
        if frames:
            self.heap = self.heap[:at] + entries + self.heap[at + len(entries) :]
        size = self.index_bytes + len(self.payloads) - start
        table_bytes = len(self.heap) - at if frames else 0
        return struct.pack("<QQIIQQQ", start, size, len(frames), 0, table, table_bytes, 0)

    def image_entry(self, i, f, frame, pic):
        data, segments = pic["data"], pic["segments"]
        codec, how = CODECS[pic["codec"]], HOWS[pic["how"]]
        shape = (pic["width"], pic["height"], codec, how, pic["orientation"], pic["channels"])
        head = data[: segments.head_bytes] if segments else data
        crc = self.sum(head, i, f, frame) if codec else 0
        table = self.add_heap(self.make_table(i, f, frame, pic)) if segments else 0
        tail = (crc, table, self.table_bytes(pic), pic["timestamp"], pic["source_bytes"])
        if pic["meta"]:
            self.add_section(i, f, frame, pic["meta"])
        self.count(0, pic["source_bytes"])
        self.count(8 + 8 * codec + how, int(codec > 0))
        self.count(72 + f, int(codec == 0))
        return struct.pack("<QQIIBBBBIQQqQ", self.add_payload(data), len(data), *shape, *tail)

    def make_table(self, i, f, frame, pic):
        if isinstance(pic["segments"], Index):
            return pic["segments"].table(
                pic["data"], lambda part, run: self.sum(part, i, f, frame, run)
            )
        return self.segment_table(i, f, frame, pic)

    def segment_table(self, i, f, frame, pic):
        cut, at = pic["segments"], pic["segments"].head_bytes
        tiles = (cut.components, cut.h_samp, cut.v_samp)
        table = struct.pack("<IIIH", at, len(cut.lengths), len(cut.runs()), cut.unit)
        table += struct.pack("<BBBB2x", cut.length_bytes, *tiles)
        for n, size in enumerate(cut.runs()):
            table += struct.pack("<I", self.sum(pic["data"][at : at + size], i, f, frame, n + 1))
            at += size
        for length in cut.lengths if cut.length_bytes else ():
            table += struct.pack("<H" if cut.length_bytes == 2 else "<I", length)
        return table

    def add_section(self, i, f, frame, data):
        body = struct.pack("<IIIIQ", i, f, frame, 0, len(data)) + data
        body = self.shard.edited("section", body, self.number)
        self.end_section(b"META" + bytes(4) + body)

    def end_section(self, section):
        self.sums += struct.pack("<I", self.sum(section, 0xFFFFFFFE, self.n_sections))
        self.sections += section
        self.n_sections += 1

    def count(self, number, amount):
        self.stats[number] = self.stats.get(number, 0) + amount

    def build(self):
        """Give the bytes of the block and the crc of its index."""
        key_entries, at = b"", self.entries
        for key, _ in self.samples:
            key_entries += struct.pack("<QII", at, len(key), 0)
            at += len(key)
        columns = [b""] * len(self.shard.fields)
        for i, (_, values) in enumerate(self.samples):
            for f, field in enumerate(self.shard.fields):
                columns[f] += self.entry(i, f, field, values[field.name])
        if self.columns:
            self.end_section(self.columns)
            self.count(5, len(self.columns))
        index = key_entries + b"".join(columns) + self.heap + self.sums
        index = self.shard.edited("index", index, self.number)
        payloads = self.shard.edited("payloads", self.payloads, self.number)
        crc, end = self.sum(index), self.index_bytes + len(payloads)
        size = end + len(self.sections)
        head = struct.pack("<IIQQQ", self.number, len(self.samples), size, self.index_bytes, end)
        head += struct.pack("<II16x", self.n_sections, crc)
        head = self.shard.edited("block", head, self.number)
        header = b"PENB" + struct.pack("<I", self.sum(head, ALL, 1)) + head
        self.count(1, len(payloads))
        self.count(2, self.index_bytes)
        self.count(3, len(self.sections))
        return header + index + payloads + self.sections, crc


def build_shard(shard, blocks, block_samples, n_stats, must, has_columns):
    """Give the shard file, where its tail begins, its largest block and the statistics of each."""
    head = shard.edited("header", struct.pack("<Q16s24x", must, shard.id))
    data = b"PENSHARD" + struct.pack("<II", VERSION, shard.sum(head, field=4)) + head
    table, stats, largest = b"", [], 0
    for number, samples in enumerate(blocks):
        ends = has_columns and number + 1 == len(blocks)
        columns = columns_section(shard, sum(blocks, [])) if ends else b""
        block = Block(shard, number, samples, columns)
        body, crc = block.build()
        row = (len(data), len(body), block.index_bytes, crc, len(samples))
        table += struct.pack("<QQQII", *row)
        data += body
        largest = max(largest, len(body))
        stats.append([block.stats.get(n, 0) for n in range(n_stats)])
    hashes = [hashlib.sha256(key).digest()[:8] for samples in blocks for key, _ in samples]
    keys = sorted((int.from_bytes(text, "little"), n) for n, text in enumerate(hashes))
    keys = shard.edited("keys", b"".join(struct.pack("<QI", *key) for key in keys))
    table = shard.edited("table", table)
    packed = shard.edited("stats", struct.pack(f"<{n_stats}Q", *map(sum, zip(*stats))))
    tail_offset = len(data) + len(keys)
    file_bytes = tail_offset + len(table) + len(packed) + 128
    foot = struct.pack("<16sQQQ", shard.id, file_bytes, len(blocks), len(hashes))
    foot += struct.pack("<QQQI", block_samples, len(data), tail_offset, len(packed) // 8)
    sums = (shard.sum(keys), shard.sum(table, field=1), shard.sum(packed, field=2))
    foot += struct.pack("<IIIQQQ8x", *sums, 0, len(hashes), 0)
    foot = shard.edited("footer", foot)
    data += keys + table + packed
    data += b"PENSHEND" + struct.pack("<II", VERSION, shard.sum(foot, field=3)) + foot
    return data, tail_offset, largest, stats


def must_of(fields, samples):
    values = [value for _, sample in samples for value in sample.values()]
    values += [frame for value in values if isinstance(value, list) for frame in value]
    pictures = [value for value in values if isinstance(value, dict) and "stream" not in value]
    videos = any(isinstance(value, dict) and "stream" in value for value in values)
    entries = any(isinstance(picture["segments"], Index) for picture in pictures)
    plain = any((picture["codec"], picture["how"], picture["segments"]) == ("jpeg", "encoded", None)
                for picture in pictures)
    ragged = any(field.ragged() for field in fields)
    must = any(field.optional for field in fields) + 2 * (entries or plain) + 8 * ragged
    return must + 16 * videos


def schema_section(fields):
    data = struct.pack("<I", len(fields))
    for field in fields:
        name = field.name.encode()
        flags = field.mask + 2 * field.optional + field.flags
        data += struct.pack("<4B", TYPES[field.type], flags, len(field.dims), len(name))
        data += struct.pack(f"<{len(field.dims)}I", *field.dims) + name
    return data


def classes_section(number, names):
    data = struct.pack("<II", number, len(names))
    return data + b"".join(struct.pack("<I", len(name)) + name for name in names)


def build_manifest(must, counts, sections, edit):
    """sections: (type, flags, data); counts: n_samples, block_samples, n_blocks, n_shards."""
    table, at = b"", 128 + 32 * len(sections)
    for kind, flags, data in sections:
        table += struct.pack("<4sIQQI4x", kind, flags, at, len(data), crc32c(data))
        at += len(data)
    head = bytearray(struct.pack("<QQ4QQI52x", must, 0, *counts, at, len(sections)) + table)
    edit("manifest", head, None, None)
    head = b"PENSTOCK" + struct.pack("<II", VERSION, crc32c(head)) + bytes(head)
    return head + b"".join(data for _, _, data in sections)


def write_pack(path, fields, samples, **options):
    """Write a pack and give its manifest.

    block_samples, shard_blocks  samples of a block, blocks of a shard
    unused      {number of a shard: samples of a last block that is not of the pack}
    classes     {number of a field: names}
    settings    a dict
    n_stats     how many statistics there are
    columns     True: every shard has columns
    sections    more sections of the manifest, as (type, flags, data)
    first_sections  the same, before all others
    edit        see above
    """
    path, edit = pathlib.Path(path), options.get("edit", no_edit)
    size, per_shard = options.get("block_samples", 4), options.get("shard_blocks", 2)
    blocks = [samples[at : at + size] for at in range(0, len(samples), size)]
    n_stats = options.get("n_stats", 48)
    entries, totals = b"", [0] * n_stats
    path.mkdir(parents=True, exist_ok=True)
    for number, first in enumerate(range(0, len(blocks), per_shard)):
        used = blocks[first : first + per_shard]
        extra = options.get("unused", {}).get(number)
        plan = hashlib.sha256(b"plain writer").digest() + struct.pack("<QQQ", 0, 1, number)
        shard_id = hashlib.sha256(b"penstock shard" + plan).digest()[:16]
        shard = Shard(shard_id, number, fields, edit)
        all_blocks = used + ([extra] if extra else [])
        must = must_of(fields, [sample for block in all_blocks for sample in block])
        has_columns = options.get("columns", False)
        data, tail, largest, stats = build_shard(
            shard, all_blocks, size, n_stats, must, has_columns
        )
        data = shard.edited("file", data)
        counts = (first, len(used), len(all_blocks), sum(map(len, used)))
        entries += shard_id + struct.pack("<6Q", *counts, len(data), largest)
        entries += hashlib.sha256(data[tail:]).digest()[:16]
        entries += struct.pack("<Q8x", len(data) - tail)
        totals = [sum(numbers) for numbers in zip(totals, *stats[: len(used)])]
        file = path / shard_id.hex()[:2] / f"{shard_id.hex()}.shard"
        file.parent.mkdir(exist_ok=True)
        file.write_bytes(data)
    n_shards = len(entries) // 96
    sections = list(options.get("first_sections", []))
    sections += [(b"SCHM", 1, schema_section(fields)), (b"SHRD", 1, entries)]
    for number, names in options.get("classes", {}).items():
        sections.append((b"CLAS", 0, classes_section(number, names)))
    if "settings" in options:
        sections.append((b"SETT", 0, json.dumps(options["settings"]).encode()))
    sections.append((b"STAT", 0, struct.pack(f"<{n_stats}Q", *totals)))
    sections += options.get("sections", [])
    for n, (kind, flags, data) in enumerate(sections):
        data = bytearray(data)
        edit(kind.decode(), data, None, None)
        sections[n] = (kind, flags, bytes(data))
    counts = (len(samples), size, len(blocks), n_shards)
    manifest = build_manifest(must_of(fields, samples), counts, sections, edit)
    (path / "manifest").write_bytes(manifest)
    return manifest
