# SPDX-License-Identifier: Apache-2.0
"""Tiled JPEGs, as earlier builds stored them: the program reads them but no longer writes them."""

import io
import struct

from plain_writer import Field, Segments, image, write_pack

SAMPLING = {0: (1, 1), 1: (2, 1), 2: (2, 2)}  # by Pillow's `subsampling`


def cut_tiles(jpeg, width, height, samp, components=3, meta=b""):
    """A JPEG with a restart marker every 8 MCUs as an image of plain_writer."""
    at = 2
    while True:
        marker, size = jpeg[at + 1], struct.unpack_from(">H", jpeg, at + 2)[0]
        at += 2 + size
        if marker == 0xDA:
            break
    head, lengths, start = at, [], at
    while at < len(jpeg) - 1:
        if jpeg[at] == 0xFF and (0xD0 <= jpeg[at + 1] <= 0xD7 or jpeg[at + 1] == 0xD9):
            lengths.append(at + 2 - start)
            start = at + 2
        at += 1
    cut = Segments(head, tuple(lengths), 2, 8, components, *samp)
    shape = {"codec": "jpeg", "how": "tiled", "segments": cut, "channels": components}
    return image(jpeg, width, height, meta=meta, **shape)


def tiled(picture, subsampling=2, **options):
    """A picture of Pillow, encoded and cut."""
    out, grey = io.BytesIO(), picture.mode == "L"
    if grey:
        subsampling = 0
    picture.save(out, "JPEG", subsampling=subsampling, optimize=True, restart_marker_blocks=8,
                 **options)
    return cut_tiles(out.getvalue(), *picture.size, SAMPLING[subsampling], 1 if grey else 3)


def write_tiles(path, images, **options):
    """A pack of these images by key, without any other field."""
    samples = [(key.encode(), {"image": value}) for key, value in images.items()]
    write_pack(path, [Field("image", "image")], samples, n_stats=72, **options)
    return path
