# SPDX-License-Identifier: Apache-2.0
"""A plain reader of penstock packs, written from docs/explanation/format.md alone. It checks all.

Pack(path).samples[n] is (key, {field name: value}) and .numbers[key] is n. An array is a tuple, as
is a ragged value, all rows one after another. An image is a dict with its stored bytes as "data", a
clip a list of images, or a dict if it is a video; bytes, json, text are bytes. A missing value is
None.
"""

import argparse
import collections
import hashlib
import json
import math
import os
import pathlib
import re
import struct

import plain_jpeg
import plain_video

# Each record: its name, its fields with their format (those called zero must be 0), and its rules.
LAYOUTS = """
manifest magic:8s version:I crc:I must:Q may:Q n_samples:Q block_samples:Q n_blocks:Q n_shards:Q
  manifest_bytes:Q n_sections:I zero:52s | magic == b"PENSTOCK" | version == 1
  | must == 0 or 0 < must < 32
  | n_sections <= 64 | 1 <= block_samples <= 2**31 | n_blocks == up(n_samples, block_samples)
part type:4s flags:I offset:Q bytes:Q crc:I zero:4s | type.isalpha()
  | flags == (type in (b"SCHM", b"SHRD")) or flags == 1 and type in (b"CLAS", b"SETT", b"STAT")
field type:B flags:B n_dims:B name_bytes:B | 1 <= type <= 8
  | n_dims <= 4 * (type >= 6) | name_bytes > 0
shard id:16s first_block:Q blocks_used:Q n_blocks:Q samples_used:Q file_bytes:Q largest_block:Q
  digest:16s tail_bytes:Q stored_bytes:Q | 1 <= blocks_used <= n_blocks <= 2**32 - 2
  | file_bytes >= 192 | stored_bytes == 0 or pack.must & 4
  | samples_used == min(pack.n_samples - first_block * size, blocks_used * size)
header magic:8s version:I crc:I must:Q id:16s zero:24s | magic == b"PENSHARD" | version == 1
  | must & ~most == 0
map magic:8s version:I crc:I id:16s file_bytes:Q n_extents:Q n_files:I zero:4s map_bytes:Q
  | magic == b"PENSHMAP" | version == 1 | n_extents > 0 | n_files > 0
extent offset:Q source:Q bytes:I file:I skipped:Q | bytes > 0 | offset >= end | file < n_files
file bytes:Q mtime:q path_offset:Q path_bytes:I etag_bytes:I | 1 <= path_bytes <= 4095
  | etag_bytes <= 131
row offset:Q bytes:Q index_bytes:Q index_crc:I n_samples:I | least <= n_samples <= most
footer magic:8s version:I crc:I id:16s file_bytes:Q n_blocks:Q n_samples:Q block_samples:Q
  keys_offset:Q tail_offset:Q n_stats:I keys_crc:I table_crc:I stats_crc:I plan_first:Q plan_end:Q
  n_bad:Q zero:8s | magic == b"PENSHEND" | version == 1 | n_samples < 2**32
  | plan_first <= plan_end | tail_offset == keys_offset + 12 * n_samples | n_stats <= 2**16
  | file_bytes - tail_offset == tail_bytes == 32 * n_blocks + 8 * n_stats + 128
block magic:4s crc:I block:I n_samples:I bytes:Q index_bytes:Q sections_offset:Q n_sections:I
  index_crc:I zero:16s | magic == b"PENB" | 64 + 16 * n_samples <= index_bytes <= 2**31
key offset:Q bytes:I zero:4s | 1 <= bytes <= 4096
blob offset:Q bytes:Q crc:I missing:I | missing == 0 or missing == optional == 1 and bytes == 0
image offset:Q bytes:Q width:I height:I codec:B how:B orientation:B channels:B crc:I table_offset:Q
  table_bytes:Q timestamp:q source_bytes:Q | low <= codec < 5 | how < 8 | (codec == 4) == (how == 3)
  | codec > 0 or bytes == width == height == how == orientation == channels == crc == table_bytes
  == timestamp == source_bytes == 0 | codec == 0 or 1 <= orientation <= 8 and channels in (1, 3, 4)
  | codec == 0 or bytes > 0 and width > 0 and height > 0 | table_bytes > 0 or table_offset == 0
  | codec != 4 or bytes == width * height * channels | how not in (1, 3, 6, 7) or table_bytes > 0
  | codec != 1 or how not in (2, 5) or table_bytes > 0 or how == 2 and features & 2
index head_bytes:I n_entries:I n_sums:I unit:H kind:B components:B h_samp:B v_samp:B restart:H
  lead_bytes:I scan_bytes:I | kind == 1 | features & 2 | codec == 1 and how in (2, 5, 6, 7)
  | components == channels in (1, 3) | n_entries > 1 | n_sums == up(scan_bytes, 4096) + 2
  | 0 < unit * (1 if components == 1 else h_samp * v_samp + 2) <= 48
clip offset:Q bytes:Q n_frames:I kind:I table_offset:Q table_bytes:Q source_bytes:Q
  | kind == 0 or kind == 1 and features & 16 | kind == 1 or source_bytes == 0
table head_bytes:I n_segments:I n_runs:I unit:H length_bytes:B components:B h_samp:B v_samp:B
  zero:2s | length_bytes in (0, 2, 4) | table_bytes == 20 + 4 * n_runs + length_bytes * n_segments
  | 0 < n_segments <= bytes | codec == 4 or codec == 1 and how in (1, 2, 5)
  | codec == 1 or unit == components == h_samp == v_samp == head_bytes == length_bytes == 0
  | codec == 4 or unit > 0 and components == channels < 4 and 1 <= h_samp <= 4 and 1 <= v_samp <= 4
  | n_segments == (height if codec == 4 else up(up(width, 8) * up(height, 8), unit)
  if components == 1 else up(up(width, 8 * h_samp) * up(height, 8 * v_samp), unit))
section type:4s zero:4s sample:I field:I frame:I zeros:4s bytes:Q | sample < n | field < m"""
RECORDS = {}
for text in LAYOUTS[1:].replace("\n ", "").split("\n"):
    layout, *rules = text.split(" | ")
    names, codes = zip(*(item.split(":") for item in layout.split()[1:]))
    rules += [f"not any({name})" for name in names if name.startswith("zero")]
    rules = [compile(rule, rule, "eval") for rule in rules]
    RECORDS[layout.split()[0]] = names, struct.Struct("<" + "".join(codes)), rules


class PackError(Exception):
    """The pack is damaged or not of this format; the message names shard, block and sample."""


class Place(collections.namedtuple("Place", "shard block sample field frame run")):
    """Where something is: what is said of it in errors, and what its checksum begins with."""
    def need(self, ok, what):
        if not ok:
            names = [f" {k} {n}" for k, n in zip(self._fields[1:], self[1:]) if n < SECTION]
            name = f"shard {self.shard.hex()}{''.join(names)}" if self.shard else "manifest"
            raise PackError(f"{name}: {what}")

    def same(self, what, expected, found):
        self.need(expected == found, f"{what}: expected {expected!r}, found {found!r}")

    def sum(self, what, data, expected, **numbers):  # in the manifest there is no place
        crc, place = ALL, self._replace(**numbers)
        for byte in (struct.pack("<16s5I", *place) if self.shard else b"") + data:
            crc = CRC[(crc ^ byte) & 255] ^ (crc >> 8)
        place.same(f"checksum of the {what}", f"{expected:08x}", f"{crc ^ ALL:08x}")
        return data

    def stats(self, data, counts):
        for n, (found,) in enumerate(struct.iter_unpack("<Q", data)):
            known = 0 < n < 4 or 6 <= n < 48 or n >= 72
            self.same(f"statistic {n}", counts[n] if known else found, found)


ALL, SECTION = 0xFFFFFFFF, 0xFFFFFFFE  # in a place: no such number; a section of a block
TOP = Place(b"", ALL, ALL, 0, 0, 0)  # the manifest
CRC = list(range(256))
for _ in range(8):
    CRC = [(c >> 1) ^ (0x82F63B78 if c & 1 else 0) for c in CRC]
IMAGE, CLIP, I64, F32, RAW = 1, 2, 6, 7, 4  # types of fields, and a codec
ENTRIES = {IMAGE: (64, "s"), CLIP: (48, "s"), I64: (1, "q"), 7: (1, "f"), 8: (1, "d")}


class Part:
    """Bytes that are read front to back: each thing must follow the one before, up to the end."""
    def __init__(self, data, at=0, end=None):
        self.data, self.at, self.end = data, at, len(data) if end is None else end

    def take(self, place, size, offset=None):
        place.same("offset", self.at, self.at if offset is None else offset)
        place.need(self.at + size <= self.end, f"{size} bytes at {self.at} end behind {self.end}")
        self.at += size
        return self.data[self.at - size : self.at]

    def numbers(self, place, n, code):
        return struct.unpack(f"<{n}{code}", self.take(place, struct.calcsize(f"<{n}{code}")))

    def distance(self, place):
        (bits,) = self.numbers(place, 1, "H")
        if bits == 0xFFFF:
            (bits,) = self.numbers(place, 1, "I")
            place.need(bits >= 0xFFFF, "a distance that needs no u32 has one")
        return bits

    def difference(self, place):
        digits = [self.take(place, 1)[0]]
        while digits[-1] & 128:
            digits += self.take(place, 1)
        place.need(digits[-1] or len(digits) == 1, "a difference has a needless byte")
        number = sum((digit & 127) << (7 * n) for n, digit in enumerate(digits))
        return number // 2 if number % 2 == 0 else -(number // 2) - 1

    def read(self, place, name, **known):  # what is known of the record must be in it
        names, layout, rules = RECORDS[name]
        values = dict(zip(names, layout.unpack(self.take(place, layout.size))))
        for key in known.keys() & values.keys():
            place.same(f"{key} of the {name}", known[key], values[key])
        for rule in rules:
            if not eval(rule, {"up": lambda a, b: -(-a // b)}, {**known, **values}):
                place.need(False, f"{name} breaks the rule {rule.co_filename} with {values}")
        return argparse.Namespace(**values)

    def done(self, place):
        place.same("end of the parts", self.end, self.at)


class Pack:
    """A pack: fields, classes, settings, stats, samples, the sections of its blocks, and for each
    shard the bytes of its columns by field and kind, or None."""
    def __init__(self, path, objects=None):
        self.path, self.samples, self.sections = pathlib.Path(path), [], []
        self.columns = []
        self.fields, self.classes, self.stats = {}, {}, collections.Counter()
        self.mapped, self.objects, self.etags = False, objects or {}, {}  # objects: by address
        try:
            self.read_manifest((self.path / "manifest").read_bytes())
        except (OSError, ValueError, LookupError, RecursionError, struct.error) as error:
            TOP.need(False, error)

    def read_manifest(self, data):
        part, parts, first = Part(data), {}, 0
        self.head = head = part.read(TOP, "manifest", manifest_bytes=len(data))
        rows = [part.read(TOP, "part") for _ in range(head.n_sections)]
        TOP.sum("manifest", data[16 : part.at], head.crc)
        for row in rows:
            TOP.need(row.type not in parts, f"{row.type} is there twice")
            body = part.take(TOP, row.bytes, row.offset)
            parts[row.type] = Part(TOP.sum(row.type, body, row.crc))
            TOP.need(row.type != b"CLAS" or b"SCHM" in parts, "CLAS is before SCHM")
        part.done(TOP)
        TOP.need({b"SCHM", b"SHRD"} <= parts.keys(), "SCHM or SHRD is missing")
        self.read_schema(parts[b"SCHM"])
        self.settings = json.loads(str(parts[b"SETT"].data, "utf-8")) if b"SETT" in parts else {}
        TOP.need(type(self.settings) is dict, "settings are not an object")
        if b"CLAS" in parts:
            part, (number, n) = parts[b"CLAS"], parts[b"CLAS"].numbers(TOP, 2, "I")
            field = list(self.fields.values())[number]
            TOP.same(f"type of field {number}", (I64, ()), (field.type, field.dims))
            self.classes[number] = [part.take(TOP, *part.numbers(TOP, 1, "I")) for _ in range(n)]
            part.done(TOP)
        for _ in range(head.n_shards):
            known = {"pack": head, "size": head.block_samples, "first_block": first}
            entry = parts[b"SHRD"].read(TOP, "shard", **known)
            self.read_shard(TOP._replace(shard=entry.id), entry)
            first += entry.blocks_used
        parts[b"SHRD"].done(TOP)
        TOP.same("mapped shards", bool(head.must & 4), self.mapped)
        TOP.same("n_blocks", head.n_blocks, first)
        self.numbers = {key: number for number, (key, _) in enumerate(self.samples)}
        TOP.same("number of different keys", len(self.samples), len(self.numbers))
        TOP.stats(parts[b"STAT"].data if b"STAT" in parts else b"", self.stats)

    def read_schema(self, part):
        for n in range(*part.numbers(TOP, 1, "I")):
            field = part.read(TOP, "field")
            field.dims = part.numbers(TOP, field.n_dims, "I")
            field.ragged = field.dims[:1] == (0,)
            (size, code), count = ENTRIES.get(field.type, (24, "s")), math.prod(self.row(field))
            TOP.need(1 <= count <= 65536, f"dims of field {n}: {field.dims}")
            known = self.flags(field)
            TOP.need(field.flags in known, f"field breaks the rule of flags with {field}")
            field.entry = (24, "s") if field.ragged else (size * count, code)
            self.fields[str(part.take(TOP, field.name_bytes), "utf-8")] = field
            TOP.same("number of different names", n + 1, len(self.fields))
        TOP.need(1 <= len(self.fields) <= 256, f"{len(self.fields)} fields")
        flags = [field.flags for field in self.fields.values()]
        must = any(flag & 2 for flag in flags) + 8 * any(f.ragged for f in self.fields.values())
        TOP.same("must, by the flags of the fields", must, self.head.must & 9)
        part.done(TOP)

    @staticmethod
    def row(field):
        return field.dims[1:] if field.ragged else field.dims

    @staticmethod
    def flags(field):  # those that it can have
        if field.type == IMAGE:
            return {0, 1}
        if not (field.ragged or 3 <= field.type <= 5):
            return {0}
        kinds = {0}
        if field.ragged and field.type == F32 and field.dims == (0, 4):
            kinds = {0, *(4 * kind + unit for kind in (1, 2, 3) for unit in (0, 32))}
        elif field.ragged and field.type == F32 and field.n_dims > 1 and field.dims[-1] == 2:
            kinds = {0, 16, 16 + 32}
        return {kind + optional for kind in kinds for optional in (0, 2)}

    def read_shard(self, place, entry):
        name, size, rows, samples, counts = entry.id.hex(), self.head.block_samples, [], [], []
        data = (self.path / name[:2] / f"{name}.shard").read_bytes()
        extents = []
        if entry.stored_bytes:
            place.same("size of the file", entry.stored_bytes, len(data))
            data, extents = self.read_mapped(place, entry, data)
        place.same("size of the file", entry.file_bytes, len(data))
        head = Part(data).read(place, "header", id=entry.id, most=self.head.must)
        place.sum("header", data[16:64], head.crc, field=4)
        foot = Part(data, len(data) - 128).read(place, "footer", **vars(entry), block_samples=size)
        place.sum("footer", data[-112:], foot.crc, field=3)
        tail, stats = foot.tail_offset, foot.tail_offset + 32 * foot.n_blocks
        place.same("digest", entry.digest, hashlib.sha256(data[tail:]).digest()[:16])
        keys = place.sum("keys", data[foot.keys_offset : tail], foot.keys_crc)
        place.sum("block table", data[tail:stats], foot.table_crc, field=1)
        place.sum("statistics", data[stats:-128], foot.stats_crc, field=2)
        table, blocks, last = Part(data, tail), Part(data, 64, foot.keys_offset), foot.n_blocks - 1
        for n in range(foot.n_blocks):
            rows.append(table.read(place, "row", most=size, least=1 if n == last else size))
            block = blocks.take(place, rows[n].bytes, rows[n].offset)
            samples += self.read_block(place._replace(block=n), block, rows[n])
            counts.append(self.counts)
        blocks.done(place)
        for at, most in extents:
            inside = [row for row in rows if row.offset + row.index_bytes <= at
                      and at + most <= row.offset + row.bytes <= row.offset + 2**32]
            place.same("number of blocks around an extent", 1, len(inside))
        place.stats(data[stats:-128], sum(counts, collections.Counter()))
        numbers = struct.unpack_from("<6Q", data[stats:-128].ljust(48, b"\0"))
        self.read_columns(place, samples, data[: foot.keys_offset], numbers[5])
        self.stats += sum(counts[: entry.blocks_used], collections.Counter())
        place.same("largest_block", entry.largest_block, max(row.bytes for row in rows))
        place.same("samples_used", entry.samples_used, min(len(samples), entry.blocks_used * size))
        digests = (hashlib.sha256(key).digest() for key, _ in samples)
        hashes = sorted((*struct.unpack_from("<Q", text), n) for n, text in enumerate(digests))
        place.same("keys", hashes, list(struct.iter_unpack("<QI", keys)))
        self.samples += samples[: entry.samples_used]

    def read_mapped(self, place, entry, data):  # gives the shard, and where its extents are
        known = {"id": entry.id, "file_bytes": entry.file_bytes}
        head = Part(data, len(data) - 64).read(place, "map", **known)
        start = len(data) - head.map_bytes
        place.sum("map", data[start:-64] + data[-48:], head.crc, field=5)
        part, extents, end, skipped = Part(data, start, len(data) - 64), [], 64, 0
        for _ in range(head.n_extents):
            known = {"end": end, "n_files": head.n_files, "skipped": skipped}
            extents.append(part.read(place, "extent", **known))
            end, skipped = extents[-1].offset + extents[-1].bytes, skipped + extents[-1].bytes
        files, paths = [part.read(place, "file") for _ in range(head.n_files)], part.at
        names = []
        for file in files:
            names.append(part.take(place, file.path_bytes, paths + file.path_offset))
            self.etags[names[-1]] = part.take(place, file.etag_bytes)
        part.done(place)
        place.same("stored bytes", entry.file_bytes - skipped, start)
        whole, taken = b"", 0
        for extent in extents:
            own = extent.offset - len(whole)
            whole += data[taken : taken + own] + self.read_file(place, files, names, extent)
            taken += own
        self.mapped = True
        return whole + data[taken:start], [(each.offset, each.bytes) for each in extents]

    def read_file(self, place, files, names, extent):  # absolute paths are never opened here
        name, etag = os.fsdecode(names[extent.file]), self.etags[names[extent.file]]
        scheme = re.match("(s3|https?)://", name)
        parts = name[scheme.end() if scheme else 0 :].split("/")
        bad = [part for part in parts if part in ("", ".", "..") or "\0" in part]
        place.need(not bad, f"path {name!r}")
        place.need(scheme or not etag, f"{name} is a file, and has an ETag")
        if scheme:
            odd = re.search(r"[\0-\x1f\x7f?#]", name) or re.search(rb"[\0-\x1f\x7f]", etag)
            place.need(len(parts) > 1 and "@" not in parts[0] and not odd, f"address {name!r}")
            place.need(name in self.objects, f"object {name!r} was not given")
            found = self.objects[name]
        else:
            path = self.path.resolve().parent / name
            place.need(path.resolve() == path and path.is_file(), f"{name} is a link, or no file")
            found = path.read_bytes()
        place.same(f"size of {name}", files[extent.file].bytes, len(found))
        place.need(extent.source + extent.bytes <= len(found), f"extent ends behind {name}")
        return found[extent.source : extent.source + extent.bytes]

    def read_block(self, place, data, row):
        head = Part(data).read(place, "block", **vars(row), block=place.block)
        place.sum("block header", data[8:64], head.crc, field=1)
        mid, end = head.index_bytes, head.sections_offset
        place.sum("index", data[64:mid], head.index_crc)
        self.heap, self.payloads, part = Part(data, 64, mid), Part(data, mid, end), Part(data, end)
        self.counts = collections.Counter({1: end - mid, 2: mid, 3: len(data) - end})
        places = [place._replace(sample=i) for i in range(head.n_samples)]
        keys = [self.heap.read(p, "key") for p in places]
        columns = [[self.heap.numbers(p, *f.entry) for p in places] for f in self.fields.values()]
        keys = [self.heap.take(p, key.bytes, key.offset) for p, key in zip(places, keys)]
        for p, key in zip(places, keys):
            values = {}
            for n, (name, field) in enumerate(self.fields.items()):
                values[name] = self.read_value(p._replace(field=n), field, columns[n][p.sample])
            yield key, values
        for n, crc in enumerate(self.heap.numbers(place, head.n_sections, "I")):
            start = part.at
            section = part.read(place, "section", n=head.n_samples, m=len(columns))
            section.data = part.take(place, section.bytes)
            place.sum(f"section {n}", data[start : part.at], crc, sample=SECTION, field=n)
            if section.type != b"COLS":
                self.sections.append((place, section))
        for each in (self.heap, self.payloads, part):
            each.done(place)

    def read_columns(self, place, samples, data, size):
        made = {(n, kind): column for n, (name, field) in enumerate(self.fields.items())
                for kind, column in self.make_columns(field, [v[name] for _, v in samples])}
        if not size or size != 32 + sum(4 + len(column) for column in made.values()):
            self.columns.append(None)  # none, or columns of a kind that this reader does not know
            return
        part = Part(data, len(data) - size + 32)
        for (n, kind), values in made.items():
            column, crc = part.take(place, len(values)), part.numbers(place, 1, "I")
            place.sum("column", column, *crc, field=6, frame=n, run=kind)
            place.same("column", values, column)
        self.columns.append(made)

    @staticmethod
    def make_columns(field, values):
        size, code = field.entry
        if field.type >= I64 and not field.ragged and struct.calcsize(f"<{size}{code}") <= 64:
            rows = values if field.dims else [[value] for value in values]
            yield 0, b"".join(struct.pack(f"<{size}{code}", *row) for row in rows)
        if field.type in (IMAGE, CLIP):
            none = {"width": 0, "height": 0, "orientation": 0}
            firsts = [(v or [none])[0] if isinstance(v, list) else v for v in values]
            sizes = [(image["width"], image["height"], image["orientation"]) for image in firsts]
            upright = [(h, w) if turned > 4 else (w, h) for w, h, turned in sizes]
            yield 1, b"".join(struct.pack("<II", *size) for size in upright)
        if field.type == CLIP:
            numbers = [len(v) if isinstance(v, list) else v["n_frames"] for v in values]
            yield 2, b"".join(struct.pack("<I", number) for number in numbers)

    def read_value(self, place, field, entry):
        if field.type >= I64 and not field.ragged:
            return entry if field.dims else entry[0]
        entry = Part(*entry)
        if field.type == IMAGE:
            return self.read_image(place, entry, timestamp=0, low=0)
        if field.type == CLIP:
            known = {"offset": self.payloads.at, "features": self.head.must}
            clip, start = entry.read(place, "clip", **known), self.heap.at
            if clip.kind:
                return self.read_video(place, clip)
            table, numbers = Part(self.heap.take(place, 64 * clip.n_frames)), range(clip.n_frames)
            frames = [self.read_image(place._replace(frame=n), table, low=1) for n in numbers]
            sizes = (start if frames else 0, self.heap.at - start, self.payloads.at - clip.offset)
            place.same("table and bytes", sizes, (clip.table_offset, clip.table_bytes, clip.bytes))
            return frames
        blob = entry.read(place, "blob", optional=field.flags >> 1 & 1)
        data = self.payloads.take(place, blob.bytes, blob.offset)
        place.sum("payload", data, blob.crc)
        self.counts[72 + place.field] += blob.missing
        if blob.missing or not field.ragged:
            return None if blob.missing else data
        code = ENTRIES[field.type][1]
        n = len(data) // struct.calcsize(f"<{code}")
        whole = len(data) % (struct.calcsize(f"<{code}") * math.prod(self.row(field))) == 0
        place.need(whole, f"{len(data)} bytes are no rows of {self.row(field)}")
        return struct.unpack(f"<{n}{code}", data)

    def read_video(self, place, clip):
        table = self.heap.take(place, clip.table_bytes, clip.table_offset)
        video = plain_video.read(place.need, table, clip.bytes, clip.n_frames)
        least = clip.bytes if video["container"] else 0
        place.need(clip.bytes <= clip.source_bytes <= (least or clip.source_bytes), "source_bytes")
        data = self.payloads.take(place, clip.bytes)
        for n, (run, crc) in enumerate(zip(plain_video.runs(data), video.pop("sums"))):
            place.sum("run of a video", run, crc, run=n + 1)
        self.counts.update({6: 1, 7: clip.n_frames})
        return {"data": data, "n_frames": clip.n_frames, "source_bytes": clip.source_bytes, **video}

    def read_image(self, place, entry, **known):
        image = entry.read(place, "image", features=self.head.must, **known)
        self.counts[8 + 8 * image.codec + image.how] += image.codec > 0
        self.counts[72 + place.field] += image.codec == 0
        image.data = self.payloads.take(place, image.bytes, image.offset)
        runs = self.read_table(place, image) if image.table_bytes else [(image.bytes, image.crc)]
        payload = Part(image.data)
        for n, (size, crc) in enumerate(runs if image.codec else []):
            place.sum("payload", payload.take(place, size), crc, run=n)
        return {k: v for k, v in vars(image).items() if not re.match("offset|crc|table", k)}

    def read_index(self, place, image, part):  # checks all parts of the file, then the entries
        table = part.read(place, "index", features=self.head.must, **vars(image))
        sums, data = part.numbers(place, table.n_sums, "I"), Part(image.data)
        scan, end = table.head_bytes, table.head_bytes + table.scan_bytes
        cuts = [0, table.lead_bytes, *range(scan, end, 4096), end, image.bytes]
        for n, crc in enumerate((image.crc, *sums)):
            place.sum("payload", data.take(place, cuts[n + 1] - cuts[n]), crc, run=n)
        jpeg, unit = self.scan(place, image.data), table.unit
        for name in ("head_bytes", "lead_bytes", "scan_bytes", "restart", "components"):
            place.same(f"{name} of the file", getattr(jpeg, name), getattr(table, name))
        place.same("sampling", (jpeg.h, jpeg.v), (table.h_samp, table.v_samp))
        group = table.restart or len(jpeg.mcus)
        group = max(group, unit // group * group) if table.restart else group
        firsts = [mcu for mcu in range(len(jpeg.mcus)) if mcu % group % unit == 0]
        place.same("n_entries", len(firsts), table.n_entries)
        position, dc = 0, (0,) * table.components
        for mcu in firsts[1:]:
            position += part.distance(place)
            dc = tuple(mcu % group and p + part.difference(place) for p in dc)
            place.same(f"entry of MCU {mcu}", jpeg.mcus[mcu], (position, dc))
        part.done(place)
        return []

    @staticmethod
    def scan(place, data):
        try:
            found = plain_jpeg.scan(data)
            plain_jpeg.need_table(found)
        except (plain_jpeg.JpegError, KeyError, IndexError, struct.error) as error:
            place.need(False, f"no JPEG that can have entries: {error!r}")
        return found

    def read_table(self, place, image):  # gives (bytes, crc) of what is still to be checked
        part = Part(self.heap.take(place, image.table_bytes, image.table_offset))
        if image.codec != RAW and part.data[14:15] == b"\1":
            return self.read_index(place, image, part)
        table = part.read(place, "table", **vars(image))
        sums, n = part.numbers(place, table.n_runs, "I"), table.n_segments
        lengths = [(image.bytes - table.head_bytes) // n] * n
        if table.length_bytes:
            lengths = list(part.numbers(place, n, "H" if table.length_bytes == 2 else "I"))
        image.lengths, sizes = [image.width * image.channels] * n, [0]  # rows, or up to a marker
        if image.codec != RAW:
            segments = re.split(rb"(?<=\xff[\xd0-\xd9])", image.data[table.head_bytes :])
            image.lengths = [len(segment) for segment in segments if segment]
        place.same("lengths of the segments", image.lengths, lengths)
        for length in lengths:
            sizes += [0] if sizes[-1] >= 4096 else []
            sizes[-1] += length
        place.same("n_runs", len(sizes), table.n_runs)
        return [(table.head_bytes, image.crc), *zip(sizes, sums)]

    def report(self):  # its digest is over the SHA-256 of the repr of each (key, values)
        hashes = (hashlib.sha256(repr(sample).encode()).digest() for sample in self.samples)
        report = {"samples": len(self.samples), "sections": len(self.sections), "stats": self.stats}
        report.update(fields=list(self.fields), classes=len(self.classes), settings=self.settings)
        return {**report, "sha256": hashlib.sha256(b"".join(hashes)).hexdigest()}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("pack")
    parser.add_argument("--json", action="store_true", help="one line of JSON")
    options = parser.parse_args()
    try:
        report = Pack(options.pack).report()
    except PackError as error:
        parser.exit(1, f"{options.pack}: {error}\n")
    print(json.dumps(report, indent=None if options.json else 2))


if __name__ == "__main__":
    main()
