# SPDX-License-Identifier: Apache-2.0
"""In-place packs whose map says something else, with checksums that fit."""

import struct

from plain_writer import crc32c

EXTENT, FILE, FOOTER = struct.Struct("<QQIIQ"), struct.Struct("<QqQII"), 64
ALL = 2**32 - 1


def _change_extents(extents, what):
    offset, source, size, file, skipped = extents[1]
    if what == "bytes":
        extents[1] = offset, source, 0, file, skipped
    elif what == "source":
        extents[1] = offset, 2**63, size, file, skipped
    elif what == "file":
        extents[1] = offset, source, size, 77, skipped
    elif what == "offset":
        extents[1] = 2**64 - 1, source, size, file, skipped
    elif what == "skipped":
        extents[1] = offset, source, size, file, skipped + 1
    elif what == "overlap":
        extents[1] = extents[0][0] + 1, source, size, file, skipped
    elif what == "tail":
        extents[-1] = (2**20, *extents[-1][1:])
    elif what == "into_index":
        extents[0] = (extents[0][0] - 1, *extents[0][1:])


def change_map(pack, what=None, path=None, rename=None):
    """Changes the map of the only shard: an extent, the footer, or the path of the first file.
    rename(path) gives each file a new path and an ETag."""
    (shard,) = pack.glob("*/*.shard")
    data = shard.read_bytes()
    foot = bytearray(data[-FOOTER:])
    n_extents, n_files = struct.unpack_from("<QI", foot, 40)
    (size,) = struct.unpack_from("<Q", foot, 56)
    stored, at = data[: len(data) - size], len(data) - size
    extents = [EXTENT.unpack_from(data, at + i * EXTENT.size) for i in range(n_extents)]
    at += n_extents * EXTENT.size
    files = [FILE.unpack_from(data, at + i * FILE.size) for i in range(n_files)]
    at += n_files * FILE.size
    names = [(data[at + first : at + first + n], data[at + first + n : at + first + n + more])
             for _, _, first, n, more in files]
    _change_extents(extents, what)
    if path is not None:
        names[0] = path, b""
    if rename is not None:
        names = [rename(name) for name, _ in names]
    table, first = b"", 0
    for (bytes_, mtime, _, _, _), (name, etag) in zip(files, names):
        table += FILE.pack(bytes_, mtime, first, len(name), len(etag))
        first += len(name) + len(etag)
    body = b"".join(EXTENT.pack(*extent) for extent in extents) + table
    body += b"".join(name + etag for name, etag in names)
    struct.pack_into("<Q", foot, 56, len(body) + FOOTER)
    if what == "size":
        struct.pack_into("<Q", foot, 32, 2**60)
    if what == "magic":
        foot[:8] = b"PENSHEND"
    place = bytes(foot[16:32]) + struct.pack("<5I", ALL, ALL, 5, 0, 0)
    struct.pack_into("<I", foot, 12, crc32c(place + body + bytes(foot[16:])))
    shard.write_bytes(stored + body + bytes(foot))
    manifest = bytearray((pack / "manifest").read_bytes())
    _note_size(manifest, len(stored) + len(body) + FOOTER)
    (pack / "manifest").write_bytes(manifest)


def _note_size(manifest, size):
    (n,) = struct.unpack_from("<I", manifest, 72)
    for i in range(n):
        row = 128 + 32 * i
        offset, bytes_ = struct.unpack_from("<QQ", manifest, row + 8)
        if manifest[row : row + 4] == b"SHRD":
            struct.pack_into("<Q", manifest, offset + 88, size)
            section = bytes(manifest[offset : offset + bytes_])
            struct.pack_into("<I", manifest, row + 24, crc32c(section))
    struct.pack_into("<I", manifest, 12, crc32c(bytes(manifest[16 : 128 + 32 * n])))
