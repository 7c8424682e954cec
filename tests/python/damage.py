# SPDX-License-Identifier: Apache-2.0
"""Damage valid packs by rule. Each of RULES has a golden pack, what it does to a copy of that pack,
and the errors that the library and the plain reader must report.

    damage("wrong_orientation", pathlib.Path("NAME.pen"))

The records of the plain reader define where things are in a pack. Damaged.put and put_bytes repair
all checksums that cover what they change, so that the damage reaches the check that it is for. All
other damage leaves the checksums as they are.
"""

import functools
import hashlib
import pathlib
import re
import struct
import typing

import plain_reader
from plain_reader import IMAGE, RECORDS
from plain_writer import CODECS, HOWS, Shard, crc32c, no_edit

VALID = pathlib.Path(__file__).resolve().parents[1] / "golden" / "valid"
SHARDS = "missing_append"  # two shards of several blocks each, all blocks of the pack full


def size_of(name):
    return RECORDS[name][1].size


class Record:
    """A record of the plain reader at its place in a file. Its `offset` counts from `base`."""

    def __init__(self, data, at, name, base=0):
        self.data, self.at, self.end, self.base = data, at, at + size_of(name), base
        self.names, self.layout, _ = RECORDS[name]

    def values(self):
        return dict(zip(self.names, self.layout.unpack_from(self.data, self.at)))

    def __getitem__(self, member):
        return self.values()[member]

    def set(self, **members):
        self.layout.pack_into(self.data, self.at, *{**self.values(), **members}.values())

    def place(self, member):
        codes = re.findall(r"\d*[a-zA-Z]", self.layout.format)
        return self.at + struct.calcsize("<" + "".join(codes[: self.names.index(member)]))

    def span(self):
        """Where the bytes are that its `offset` and `bytes` describe."""
        start = self.base + self["offset"]
        return start, start + self["bytes"]

    def sign(self, make_sum, end=None):
        """The checksum of a record covers what follows it."""
        self.set(crc=make_sum(self.data[self.place("crc") + 4 : end or self.end]))


def records(data, name, at, end):
    return [Record(data, start, name) for start in range(at, end, size_of(name))]


class ShardFile:
    """The bytes of a shard, and the places of its parts before the damage."""

    def __init__(self, path, shard_id):
        self.id, self.name = shard_id, f"{shard_id.hex()[:2]}/{shard_id.hex()}.shard"
        self.data = data = bytearray((path / self.name).read_bytes())
        self.header = Record(data, 0, "header")
        self.footer = Record(data, len(data) - size_of("footer"), "footer")
        self.keys, self.tail = self.footer["keys_offset"], self.footer["tail_offset"]
        self.stats = self.tail + self.footer["n_blocks"] * size_of("row")
        self.rows = records(data, "row", self.tail, self.stats)
        self.blocks = [Record(data, row["offset"], "block") for row in self.rows]
        self.index_ends = [block.at + block["index_bytes"] for block in self.blocks]

    def sign(self):
        """Repair all checksums but those of payloads and of sections."""
        make_sum = Shard(self.id, 0, [], no_edit).sum
        for n, (row, block, end) in enumerate(zip(self.rows, self.blocks, self.index_ends)):
            crc = make_sum(self.data[block.end : end], n)
            row.set(index_crc=crc)
            block.set(index_crc=crc)
            block.sign(functools.partial(make_sum, block=n, field=1))
        self.footer.set(keys_crc=make_sum(self.data[self.keys : self.tail]),
                        table_crc=make_sum(self.data[self.tail : self.stats], field=1),
                        stats_crc=make_sum(self.data[self.stats : self.footer.at], field=2))
        self.footer.sign(functools.partial(make_sum, field=3))
        self.header.sign(functools.partial(make_sum, field=4))


@functools.cache
def parsed(name):
    """What the plain reader finds in a valid pack."""
    return plain_reader.Pack(VALID / f"{name}.pen")


class Damaged:
    """A copy of a valid pack in memory, to be damaged."""

    def __init__(self, name):
        path, self.parsed = VALID / f"{name}.pen", parsed(name)
        self.manifest = data = bytearray((path / "manifest").read_bytes())
        self.head = Record(data, 0, "manifest")
        self.table_end = self.head.end + self.head["n_sections"] * size_of("part")
        self.parts = {part["type"].decode(): part
                      for part in records(data, "part", self.head.end, self.table_end)}
        self.spans = {kind: part.span() for kind, part in self.parts.items()}
        self.entries = records(data, "shard", *self.spans["SHRD"])
        self.shards = [ShardFile(path, entry["id"]) for entry in self.entries]
        self.fields, at = {}, self.spans["SCHM"][0] + 4
        for field_name, field in self.parsed.fields.items():
            self.fields[field_name] = Record(data, at, "field")
            at = self.fields[field_name].end + 4 * field.n_dims + field.name_bytes

    def write(self, path):
        for name, data in [("manifest", self.manifest), *((s.name, s.data) for s in self.shards)]:
            (path / name).parent.mkdir(parents=True, exist_ok=True)
            (path / name).write_bytes(data)

    # Where things are: the samples are those of the first shard.

    def block(self, sample):
        """The block of a sample, and its number in the block."""
        number, within = divmod(sample, self.head["block_samples"])
        return self.shards[0].blocks[number], within

    def key(self, sample):
        block, within = self.block(sample)
        return Record(block.data, block.end + within * size_of("key"), "key", block.at)

    def value(self, sample, name):
        """The entry of an image, or of a value that is stored as bytes."""
        block, within = self.block(sample)
        at = block.end + block["n_samples"] * size_of("key")
        for other, field in self.parsed.fields.items():
            size = struct.calcsize("<{}{}".format(*field.entry))
            if other == name:
                kind = "image" if field.type == IMAGE else "blob"
                assert size == size_of(kind)
                return Record(block.data, at + within * size, kind, block.at)
            at += size * block["n_samples"]
        raise KeyError(name)

    def first(self, name, **members):
        """The first value of a field that has these members in its entry."""
        values = (self.value(sample, name) for sample in range(self.entries[0]["samples_used"]))
        return next(value for value in values if members.items() <= value.values().items())

    # What rules do.

    def sign(self, data):
        """Repair the checksums of a file, and those that the manifest has of it."""
        for shard, entry in zip(self.shards, self.entries):
            if data is shard.data:
                shard.sign()
                entry.set(digest=hashlib.sha256(data[shard.tail :]).digest()[:16])
        for kind, (at, end) in self.spans.items():
            self.parts[kind].set(crc=crc32c(self.manifest[at:end]))
        self.head.sign(crc32c, self.table_end)

    def put(self, record, **members):
        """Set members of a record, each to a value or to a function of the present value."""
        known = record.values()
        record.set(**{k: v(known[k]) if callable(v) else v for k, v in members.items()})
        self.sign(record.data)

    def put_bytes(self, data, at, new):
        data[at : at + len(new)] = new
        self.sign(data)

    def put_table(self, how, **members):
        """Set members of the table of the first image that is stored in this way."""
        image = self.first("image", how=HOWS[how])
        at = image.base + image["table_offset"]
        self.put(Record(image.data, at, "table" if how == "raw" else "index"), **members)

    def put_dims(self, name, *dims):
        field = self.fields[name]
        assert field["n_dims"] == len(dims)
        self.put_bytes(field.data, field.end, struct.pack(f"<{len(dims)}I", *dims))


def flip(data, at):
    data[at] ^= 1


def cut(data, end):
    del data[end:]


def swap(data, first, second):
    """Swap two ranges of a file."""
    (a, b), (c, d) = first, second
    data[a:d] = data[c:d] + data[b:c] + data[a:b]


# ---- damage that takes more than one step --------------------------------------------------------


def swapped_payloads(pack):
    first, second = pack.value(0, "text"), pack.value(2, "text")
    assert first["bytes"] == second["bytes"]
    swap(first.data, first.span(), second.span())


def swapped_shards(pack):
    first = pack.shards[0]
    second = next(shard for shard in pack.shards if len(shard.data) != len(first.data))
    first.data, second.data = second.data, first.data


def shard_of_another_pack(pack):
    """The manifest has its length, and nothing else of it."""
    pack.shards[0].data = Damaged("tasks").shards[0].data
    pack.put(pack.entries[0], file_bytes=len(pack.shards[0].data))


def duplicate_keys(pack):
    shard, (first, other) = pack.shards[0], (pack.key(sample).span() for sample in (0, 2))
    hashes = {n: key for key, n in struct.iter_unpack("<QI", shard.data[shard.keys : shard.tail])}
    hashes[2] = hashes[0]
    pairs = sorted((key, n) for n, key in hashes.items())
    shard.data[shard.keys : shard.tail] = b"".join(struct.pack("<QI", *pair) for pair in pairs)
    pack.put_bytes(shard.data, other[0], shard.data[slice(*first)])


def duplicate_fields(pack):
    field = pack.fields["value"]
    assert field["name_bytes"] == len("ratio")
    pack.put_bytes(field.data, field.end + 4 * field["n_dims"], b"ratio")


# ---- the rules -----------------------------------------------------------------------------------


class Rule(typing.NamedTuple):
    """A golden pack, how to damage it, and the errors of the library and of the plain reader."""

    pack: str
    damage: typing.Callable
    status: str
    says: str
    plain: str


def less(number):
    return number - 1


def more(number):
    return number + 1


RULES = {
    # Single bits that differ.
    "payload_bit": Rule(
        SHARDS, lambda p: flip(p.shards[0].data, p.value(2, "image").span()[1] - 9),
        "E_CORRUPT", "block 1, sample 0 .* field 'image'", "block 1 sample 0 field 0"),
    "index_bit": Rule(
        SHARDS, lambda p: flip(p.shards[0].data, p.shards[0].index_ends[1] - 1),
        "E_CORRUPT", "block 1, offset [0-9]+: index checksum", "block 1 .*checksum of the index"),
    "block_header_bit": Rule(
        SHARDS, lambda p: flip(p.shards[0].data, p.shards[0].blocks[0].place("n_samples")),
        "E_CORRUPT", "block 0, offset 64: header checksum", "block 0 .*n_samples"),
    "shard_header_bit": Rule(
        SHARDS, lambda p: flip(p.shards[1].data, p.shards[1].header.place("crc")),
        "E_CORRUPT", "offset 0: the header is damaged", "checksum of the header"),
    "keys_bit": Rule(
        SHARDS, lambda p: flip(p.shards[0].data, p.shards[0].keys),
        "E_CORRUPT", "keys: checksum", "checksum of the keys"),
    "block_table_bit": Rule(
        SHARDS, lambda p: flip(p.shards[0].data, p.shards[0].rows[0].place("bytes")),
        "E_CORRUPT", "block table: checksum", "digest"),
    "statistics_bit": Rule(
        SHARDS, lambda p: flip(p.shards[0].data, p.shards[0].footer.at - 1),
        "E_CORRUPT", "statistics: checksum", "digest"),
    "footer_bit": Rule(
        SHARDS, lambda p: flip(p.shards[0].data, p.shards[0].footer.place("n_bad")),
        "E_CORRUPT", "footer: checksum", "checksum of the footer"),
    "metadata_bit": Rule(
        "converted", lambda p: flip(p.shards[0].data, p.shards[0].rows[0].span()[1] - 3),
        "E_CORRUPT", "block 0, section [0-9]", "block 0 .*checksum of the section"),
    "manifest_header_bit": Rule(
        SHARDS, lambda p: flip(p.manifest, p.head.place("crc")),
        "E_CORRUPT", "header checksum", "checksum of the manifest"),
    "manifest_section_bit": Rule(
        SHARDS, lambda p: flip(p.manifest, p.entries[0].at),
        "E_CORRUPT", "section 'SHRD'", "checksum of the b'SHRD'"),

    # Parts and files that are swapped, longer, shorter or missing.
    "swapped_blocks": Rule(
        SHARDS, lambda p: swap(p.shards[0].data, *(row.span() for row in p.shards[0].rows[:2])),
        "E_CORRUPT", "block 0, offset 64: header checksum", "block 0 .* of the block: expected"),
    "swapped_payloads": Rule(
        "from_tar", swapped_payloads,
        "E_CORRUPT", "block 0, sample 0 .* field 'text'", "block 0 sample 0 field 4"),
    "swapped_shards": Rule(
        SHARDS, swapped_shards,
        "E_CORRUPT", "expected [0-9]+ bytes, found [0-9]+", "size of the file"),
    "shard_of_another_pack": Rule(
        SHARDS, shard_of_another_pack,
        "E_CORRUPT", "footer: checksum", "id of the header"),
    "cut_shard": Rule(
        SHARDS, lambda p: p.shards[1].data.pop(),
        "E_CORRUPT", "expected [0-9]+ bytes, found", "size of the file"),
    "long_shard": Rule(
        SHARDS, lambda p: p.shards[1].data.append(0),
        "E_CORRUPT", "expected [0-9]+ bytes, found", "size of the file"),
    "missing_shard": Rule(
        SHARDS, lambda p: p.shards.pop(1),
        "E_CORRUPT", "[.]shard is missing", "No such file"),
    "cut_manifest": Rule(
        SHARDS, lambda p: p.manifest.pop(),
        "E_CORRUPT", "the manifest is truncated", "manifest_bytes"),
    "long_manifest": Rule(
        SHARDS, lambda p: p.manifest.append(0),
        "E_CORRUPT", "the manifest is truncated", "manifest_bytes"),
    "tiny_manifest": Rule(
        SHARDS, lambda p: cut(p.manifest, p.head.end - 1),
        "E_CORRUPT", "too short for a manifest", "bytes at 0 end behind"),

    # Wrong values, with repaired checksums, in the manifest and in the tail of a shard.
    "foreign_manifest": Rule(
        SHARDS, lambda p: p.put(p.head, magic=b"PENGUINS"),
        "E_FORMAT", "not the manifest of a pack", "magic"),
    "version_0": Rule(
        SHARDS, lambda p: p.put(p.head, version=0),
        "E_FORMAT", "version 0, expected 1; made before the first release", "version == 1"),
    "version_of_manifest": Rule(
        SHARDS, lambda p: p.put(p.head, version=2),
        "E_FORMAT", "format version 2, expected 1; a newer penstock", "version == 1"),
    "version_of_shard": Rule(
        SHARDS, lambda p: p.put(p.shards[0].footer, version=2),
        "E_FORMAT", "format version 2, expected 1; a newer penstock", "version == 1"),
    "unknown_section": Rule(
        SHARDS, lambda p: p.put(p.parts["SETT"], type=b"SETX", flags=1),
        "E_FORMAT", "section 'SETX' is required", "flags"),
    "section_twice": Rule(
        SHARDS, lambda p: p.put(p.parts["SETT"], type=b"SCHM", flags=1),
        "E_CORRUPT", "a section occurs twice", "b'SCHM' is there twice"),
    "too_many_samples": Rule(
        SHARDS,
        lambda p: p.put(p.head, n_samples=lambda n: n + p.head["block_samples"], n_blocks=more),
        "E_CORRUPT", "do not add up", "n_blocks"),
    "tail_of_another_length": Rule(
        SHARDS, lambda p: p.put(p.entries[0], tail_bytes=lambda n: n + 8),
        "E_CORRUPT", "does not fit the manifest", "tail_bytes"),
    "too_many_blocks_used": Rule(
        SHARDS, lambda p: p.put(p.entries[0], blocks_used=p.entries[0]["n_blocks"] + 1),
        "E_CORRUPT", "do not follow", "blocks_used"),
    "other_block_samples": Rule(
        SHARDS, lambda p: p.put(p.shards[0].footer, block_samples=more),
        "E_CORRUPT", "block 0: its entry in the block table", "block_samples"),
    "overlapping_blocks": Rule(
        SHARDS, lambda p: p.put(p.shards[0].rows[1], offset=p.shards[0].rows[0]["offset"]),
        "E_CORRUPT", "block 1: its entry in the block table", "offset"),

    # In the schema, the classes and the keys.
    "unknown_type": Rule(
        "types", lambda p: p.put(p.fields["blob"], type=9),
        "E_CORRUPT", "expected a type from 1 to 8", "field breaks the rule 1 <= type"),
    "duplicate_fields": Rule(
        "types", duplicate_fields,
        "E_CORRUPT", "field 'ratio' occurs twice", "number of different names"),
    "classes_of_a_text": Rule(
        "types", lambda p: p.put_bytes(p.manifest, p.parts["CLAS"].span()[0], bytes([8])),
        "E_CORRUPT", "number of an i64 field, found 8", "type of field 8"),
    "optional_image": Rule(
        "from_tar", lambda p: p.put(p.fields["image"], flags=2),
        "E_CORRUPT", "flags 0x2 are not valid for type image", "field breaks the rule"),
    "boxes_of_two_numbers": Rule(
        "ragged", lambda p: p.put_dims("boxes", 0, 2),
        "E_CORRUPT", "expected f32.*for boxes", "field breaks the rule"),
    "relative_without_coordinates": Rule(
        "ragged", lambda p: p.put(p.fields["boxes"], flags=32),
        "E_CORRUPT", "expected f32.*for boxes", "field breaks the rule"),
    "rows_that_are_incomplete": Rule(
        "ragged", lambda p: p.put_dims("curve", 0, 4),
        "E_CORRUPT", "value with an incomplete row", "bytes are no rows"),
    "duplicate_keys": Rule(
        SHARDS, duplicate_keys,
        "E_EXISTS", "occurs twice: samples 0 and 2", "number of different keys"),
    "keys_of_others": Rule(
        SHARDS, lambda p: p.put_bytes(p.shards[0].data, p.shards[0].keys, bytes(8)),
        "E_CORRUPT", "missing from the list of keys", "keys: expected"),

    # In the header and the index of a block.
    "bytes_of_nothing": Rule(
        SHARDS, lambda p: p.put(p.shards[0].blocks[0], sections_offset=less),
        "E_CORRUPT", "does not match the shard's block table", "end behind"),
    "not_zero": Rule(
        SHARDS, lambda p: p.put(p.key(0), zero=b"\1\0\0\0"),
        "E_CORRUPT", "key is empty or too long", "not any.zero"),
    "overlapping_payloads": Rule(
        "raw", lambda p: p.put(p.value(1, "image"), offset=p.value(0, "image")["offset"]),
        "E_CORRUPT", "payload does not follow", "offset"),
    "wrong_segments": Rule(
        "raw", lambda p: p.put_table("raw", n_segments=1),
        "E_CORRUPT", "segment table does not match raw rows", "table breaks the rule"),
    "wrong_way_of_storing": Rule(
        "raw", lambda p: p.put(p.value(0, "image"), how=HOWS["kept"]),
        "E_CORRUPT", "codec and storage mode do not match", "codec == 4"),
    "timestamp_of_an_image": Rule(
        "raw", lambda p: p.put(p.value(0, "image"), timestamp=1),
        "E_CORRUPT", "image with a timestamp", "timestamp"),
    "wrong_orientation": Rule(
        "raw", lambda p: p.put(p.value(0, "image"), orientation=9),
        "E_CORRUPT", "size, orientation or channels", "orientation"),
    "missing_with_bytes": Rule(
        "missing", lambda p: p.put(p.first("text", bytes=len("text 4")), missing=1),
        "E_CORRUPT", "missing value with a non-empty entry", "blob breaks the rule"),
    "missing_in_a_required_field": Rule(
        "from_tar", lambda p: p.put(p.first("npy", bytes=0), missing=1),
        "E_CORRUPT", "entry is not valid", "blob breaks the rule"),
    "unknown_flag_of_an_entry": Rule(
        "missing", lambda p: p.put(p.first("text", missing=1), missing=2),
        "E_CORRUPT", "entry is not valid", "blob breaks the rule"),

    # In entry tables.
    "entries_too_few": Rule(
        "converted", lambda p: p.put_table("converted", n_entries=less),
        "E_CORRUPT", "number of entries does not match", "n_entries"),
    "entries_with_too_many_sums": Rule(
        "converted", lambda p: p.put_table("converted", n_sums=more),
        "E_CORRUPT", "number of checksums of an entry table", "index breaks the rule"),
    "entries_too_far_apart": Rule(
        "converted", lambda p: p.put_table("converted", unit=49),
        "E_CORRUPT", "intervals of an entry table are out of range", "index breaks the rule"),
    "entries_behind_the_payload": Rule(
        "converted", lambda p: p.put_table("converted", scan_bytes=1 << 20),
        "E_CORRUPT", "do not add up to the payload", "index breaks the rule"),
    "entries_of_another_sampling": Rule(
        "converted", lambda p: p.put_table("converted", h_samp=3),
        "E_CORRUPT", "does not match a JPEG of its size", "index breaks the rule|sampling"),
    "entries_of_another_colour": Rule(
        "converted", lambda p: p.put(p.first("image", how=HOWS["converted"], channels=3),
                                     channels=1),
        "E_CORRUPT", "differs from the channels", "index breaks the rule"),
    "converted_png": Rule(
        "converted", lambda p: p.put(p.first("image", how=HOWS["converted"]),
                                     codec=CODECS["png"]),
        "E_CORRUPT", "unknown codec or storage mode", "breaks the rule"),
    "converted_without_entries": Rule(
        "converted", lambda p: p.put(p.first("image", how=HOWS["converted"]),
                                     table_offset=0, table_bytes=0),
        "E_CORRUPT", "table missing or unexpected", "image breaks the rule"),
}


def damage(name, path):
    """Write the damaged pack of a rule."""
    pack = Damaged(RULES[name].pack)
    RULES[name].damage(pack)
    pack.write(path)
