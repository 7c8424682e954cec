#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Make the seeds of the fuzz targets in tests/fuzz/corpus.

    build/venv/bin/python tests/fuzz/make_corpus.py

Only files named seed-* are made anew; what fuzzing has found stays, and so do the seeds of targets
that are written by hand. Needs Pillow, and the programs jpegtran and cjpeg (libjpeg-turbo-progs),
zstd, lz4 and ffmpeg for some seeds.
"""

import bz2
import fractions
import gzip
import io
import lzma
import math
import pathlib
import random
import struct
import subprocess
import sys
import tarfile
import tempfile
import zlib

from PIL import Image

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "python"))
import plain_video  # noqa: E402
from packet_tools import CODECS, Video, encode  # noqa: E402
from plain_writer import (  # noqa: E402
    NO_IMAGE,
    Field,
    Index,
    Segments,
    classes_section,
    crc32c,
    image,
    write_pack,
)
from tiled import cut_tiles  # noqa: E402

CORPUS = HERE / "corpus"
MADE = set()


def save(target, name, data):
    folder = CORPUS / target
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f"seed-{name}").write_bytes(data)
    MADE.add(folder / f"seed-{name}")


def run(command, data):
    return subprocess.run(command, input=data, check=True, capture_output=True).stdout


def picture(mode, width, height):
    """Slopes and noise, the same for the same arguments."""
    dice = random.Random(f"{mode} {width} {height}")
    channels = len(Image.new(mode, (1, 1)).getbands())
    data = (
        (x * 9 * (c + 1) + y * 5 + dice.randrange(24)) % 256
        for y in range(height)
        for x in range(width)
        for c in range(channels)
    )
    return Image.frombytes(mode, (width, height), bytes(data))


def encoded(pic, kind, **options):
    out = io.BytesIO()
    pic.save(out, kind, **options)
    return out.getvalue()


# ---- jpeg ---------------------------------------------------------------------------------------


def tile(jpeg):
    return run(("jpegtran", "-copy", "none", "-optimize", "-restart", "8B"), jpeg)


def segment(marker, data):
    return struct.pack(">BBH", 0xFF, marker, len(data) + 2) + data


def jpeg_of_sizes(dc_bits, ac_bits):
    """One grey block with a DC and an AC value of so many bits; baseline allows 11 and 10."""
    bits = "0" + ("10" * 8)[:dc_bits]
    bits += "01" + ("10" * 8)[:ac_bits] + "00"
    bits += "1" * (-len(bits) % 8)
    body = bytes(int(bits[at : at + 8], 2) for at in range(0, len(bits), 8))
    head = b"\xff\xd8" + segment(0xDB, bytes(1) + b"\1" * 64)
    head += segment(0xC0, struct.pack(">BHHBBBB", 8, 8, 8, 1, 1, 0x11, 0))
    head += segment(0xC4, bytes([0, 1, *[0] * 15, dc_bits]))
    head += segment(0xC4, bytes([0x10, 0, 2, *[0] * 14, 0, ac_bits]))
    head += segment(0xDA, b"\1\1\0\0\x3f\0")
    return head + body.replace(b"\xff", b"\xff\0") + b"\xff\xd9"


def jpeg_seeds():
    rgb, grey = picture("RGB", 40, 24), picture("L", 33, 17)
    plain = encoded(rgb, "JPEG", quality=70, subsampling=2)
    exif = Image.Exif()
    exif[0x0112] = 6
    seeds = {
        "420": plain,
        "422": encoded(rgb, "JPEG", quality=30, subsampling=1),
        "444": encoded(picture("RGB", 17, 9), "JPEG", quality=95, subsampling=0),
        "411": run(("cjpeg", "-sample", "4x1"), encoded(rgb, "PPM")),
        "440": run(("cjpeg", "-sample", "1x2"), encoded(rgb, "PPM")),
        "odd-sampling": run(("cjpeg", "-sample", "2x2,2x1,1x1"), encoded(rgb, "PPM")),
        "rgb": run(("cjpeg", "-rgb"), encoded(picture("RGB", 9, 9), "PPM")),
        "grey": encoded(grey, "JPEG", quality=50),
        "one-pixel": encoded(picture("L", 1, 1), "JPEG"),
        "optimal": encoded(rgb, "JPEG", quality=10, optimize=True),
        "progressive": encoded(rgb, "JPEG", quality=70, progressive=True),
        "progressive-grey": encoded(grey, "JPEG", quality=90, progressive=True),
        "cmyk": encoded(picture("CMYK", 12, 12), "JPEG", quality=40),
        "exif-icc": encoded(grey, "JPEG", exif=exif, icc_profile=bytes(40), comment=b"hello"),
        "tiled": tile(plain),
        "tiled-grey": tile(encoded(picture("L", 90, 40), "JPEG", quality=20)),
        "arithmetic": run(("jpegtran", "-arithmetic"), plain),
        "restarts": run(("jpegtran", "-restart", "1B"), plain),
        "restart-rows": run(("jpegtran", "-restart", "1"), plain),
        "trailing": plain + b"and more",
        "cut": plain[: len(plain) * 2 // 3],
        "no-eoi": plain[:-2],
        "largest-values": jpeg_of_sizes(11, 10),
        "large-dc": jpeg_of_sizes(15, 10),
        "large-ac": jpeg_of_sizes(11, 11),
    }
    scans = b"0;\n1;\n2;\n"
    with tempfile.NamedTemporaryFile() as script:
        script.write(scans)
        script.flush()
        seeds["scans"] = run(("jpegtran", "-scans", script.name), plain)
    for name, data in seeds.items():
        save("fuzz_jpeg", name, data)
    return seeds


# ---- png, webp ----------------------------------------------------------------------------------


def chunk(kind, data):
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))


def png(width, height, depth, colour, extra=(), interlace=0, cut=0):
    """Random pixels; extra chunks come before the pixels."""
    channels = {0: 1, 2: 3, 3: 1, 4: 2, 6: 4}[colour]
    dice = random.Random(f"{width} {height} {depth} {colour}")
    passes = [(0, 0, 1, 1)]
    if interlace:
        passes = [
            (0, 0, 8, 8), (4, 0, 8, 8), (0, 4, 4, 8), (2, 0, 4, 4), (0, 2, 2, 4), (1, 0, 2, 2),
            (0, 1, 1, 2),
        ]  # fmt: skip
    raw = b""
    for x, y, dx, dy in passes:
        columns, rows = (width - x + dx - 1) // dx, (height - y + dy - 1) // dy
        stride = (columns * channels * depth + 7) // 8
        for row in range(rows if columns > 0 else 0):
            raw += bytes([row % 5]) + bytes(dice.randrange(4) for _ in range(stride))
    body = zlib.compress(raw)
    data = b"\x89PNG\r\n\x1a\n"
    data += chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, depth, colour, 0, 0, interlace))
    data += b"".join(chunk(*one) for one in extra)
    parts = [body[:cut], body[cut:]] if cut else [body]
    return data + b"".join(chunk(b"IDAT", part) for part in parts) + chunk(b"IEND", b"")


def png_seeds():
    palette = (b"PLTE", bytes(range(4 * 3)))
    seeds = {f"grey-{depth}": png(5, 4, depth, 0) for depth in (1, 2, 4, 8, 16)}
    seeds |= {f"palette-{depth}": png(6, 3, depth, 3, [palette]) for depth in (2, 4, 8)}
    seeds |= {f"rgb-{depth}": png(3, 3, depth, 2) for depth in (8, 16)}
    seeds |= {f"grey-alpha-{depth}": png(3, 3, depth, 4) for depth in (8, 16)}
    seeds |= {f"rgba-{depth}": png(3, 3, depth, 6) for depth in (8, 16)}
    exif = b"II*\0\x08\0\0\0\x01\0\x12\x01\x03\0\x01\0\0\0\x06\0\0\0\0\0\0\0"
    seeds |= {
        "palette-trns": png(4, 4, 8, 3, [palette, (b"tRNS", b"\0\x80")]),
        "grey-trns": png(4, 4, 8, 0, [(b"tRNS", b"\0\2")]),
        "rgb-trns": png(2, 2, 8, 2, [(b"tRNS", bytes(6))]),
        "interlaced": png(9, 10, 8, 2, interlace=1),
        "interlaced-1": png(11, 3, 1, 0, interlace=1),
        "exif": png(2, 3, 8, 0, [(b"eXIf", exif), (b"gAMA", bytes(4)), (b"tEXt", b"a\0b")]),
        "two-idat": png(8, 8, 8, 2, cut=20),
    }
    for name, data in seeds.items():
        save("fuzz_png_webp", f"png-{name}", data)
    rgb, rgba = picture("RGB", 12, 10), picture("RGBA", 12, 10)
    frames = {"save_all": True, "append_images": [picture("RGB", 12, 10).rotate(90)]}
    save("fuzz_png_webp", "webp-lossy", encoded(rgb, "WEBP", quality=40))
    save("fuzz_png_webp", "webp-lossless", encoded(rgb, "WEBP", lossless=True))
    save("fuzz_png_webp", "webp-alpha", encoded(rgba, "WEBP", quality=40))
    save("fuzz_png_webp", "webp-alpha-lossless", encoded(rgba, "WEBP", lossless=True))
    save("fuzz_png_webp", "webp-exif", encoded(rgb, "WEBP", exif=b"Exif\0\0" + exif))
    save("fuzz_png_webp", "webp-animated", encoded(rgb, "WEBP", **frames))
    save("fuzz_png_webp", "nothing", b"GIF89a..")
    return seeds


# ---- packs --------------------------------------------------------------------------------------


META = b"\xff\xe1\x00\x08Exif\0\0"


def indexed(jpeg, width, height, channels):
    """A jpeg with an entry table as an image of plain_writer."""
    shape = {"codec": "jpeg", "how": "indexed", "channels": channels}
    return image(jpeg, width, height, segments=Index(jpeg, 2), **shape)


def raw(width, height, channels, **more):
    data = bytes(i * 7 % 256 for i in range(width * height * channels))
    rows = Segments(0, (width * channels,) * height, 0, 0, 0, 0, 0)
    return image(data, width, height, channels=channels, segments=rows, **more)


def joined(path, manifest):
    """The form that fuzz_block takes; shards in the order of the manifest."""
    data = struct.pack("<I", len(manifest)) + manifest
    files = {file.stem: file.read_bytes() for file in path.glob("*/*.shard")}
    for name in sorted(files, key=lambda name: manifest.index(bytes.fromhex(name))):
        data += struct.pack("<I", len(files[name])) + files[name]
    return data


def load_seeds(jpegs, pngs):
    """As fuzz_load.c says: a pipeline, and a pack that it fits."""
    fields = [Field("image", "image"), Field("text", "text"), Field("label", "i64"),
              Field("boxes", "f32", (0, 4), flags=4), Field("classes", "i64", (0,)),
              Field("spots", "f32", (0, 3, 2), flags=16 + 32), Field("mask", "image", mask=True)]
    images = (indexed(jpegs["420"], 40, 24, 3), image(pngs["rgb-8"], 3, 3, codec="png"),
              raw(9, 12, 3), image(jpegs["progressive"], 40, 24, codec="jpeg"))
    sizes = (40, 24), (3, 3), (9, 12), (40, 24)
    samples = [(b"key/%d" % n, {
        "image": images[n], "text": "\u20ac".encode() * n, "label": n,
        "boxes": [1, 2, 9, 20, 0, 0, 3, 3][:4 * (n % 3)], "classes": [7, 8][:n % 3],
        "spots": [0.25, 0.5] * 3 * (n % 3), "mask": raw(*sizes[n], 1),
    }) for n in range(4)]
    texts = {
        "views": "g = image: decode | random_resized_crop 8; many = image: decode | center_crop 9 "
        "| repeat 3; m = mask of=g: decode | random_resized_crop 8; boxes: boxes of=g | "
        "ragged 4 pad=-1",
        "boxes": "image: decode shrink=auto | hflip | random_resized_crop 7,9; boxes: boxes xywh "
        "relative min_size=0 kept=yes; classes: keep boxes; spots: points drop=no | keep boxes",
        "sizes": "image: decode | resize min_side=7,9 max_side=20 to_multiple_of=2 | hflip; label: "
        "tensor; boxes: boxes of=image relative; p = image: decode | resize max_side=30 | "
        "pad_batch 8",
        "mixup": "image: decode | resize 8 | center_crop 8 | tensor f16 nchw | mixup 0.2 p=0.5 "
        "per=sample | cutmix p=0.5 per=sample; label: one_hot 3 0.1 | tensor bf16",
        "warps": "image: decode | random_affine 180 translate=.3,.3 scale=.1,9 shear=60 | resize 9 "
        "| random_perspective .9 p=1 | pad 4,9 reflect | random_rotation 90,90 bilinear | "
        "center_crop 9",
        "tones": "image: decode | gaussian_blur 5,31 sigma=0.1,3 | resize 9 | random_invert | "
        "random_posterize 3 | random_equalize | random_solarize 99.5 | random_autocontrast | "
        "adjust_gamma 0.4,2 gain=1.1 | random_adjust_sharpness 2.5 | jpeg 5,90 | "
        "random_channel_permutation | center_crop 8; g = image: decode gray | jpeg 50 | "
        "random_adjust_sharpness 0 p=1 | gaussian_blur 3 | random_equalize p=1 | center_crop 9",
        "policies": "image: decode | center_crop 24 | rand_augment 3 bicubic | hflip | "
        "trivial_augment | auto_augment svhn fill=9; m = mask of=image: decode | center_crop 24 | "
        "rand_augment 3 | hflip | trivial_augment | auto_augment svhn; boxes: boxes of=image; "
        "a = image: decode | center_crop 9 | aug_mix 7 mixture_width=2 | three_augment",
        "brackets": "image: decode | random_resized_crop 9 | random_apply p=0.5 [random_rotation "
        "45 | jpeg 30] | random_choice [hflip] [gaussian_blur 3 | random_order [vflip | "
        "random_invert]] p=1,3; boxes: boxes kept=yes; classes: keep boxes",
        "tokens": "image: decode | patches 4 bicubic | hflip | normalize | tensor bf16; label: "
        "tensor; text: text 9",
        "mixed-tokens": "image: decode | patches 2 | tensor f32; m = image: decode | center_crop "
        "8 | tensor u8 | cutmix p=1; label: one_hot 5 of=m",
        "lists": "text: text 9; raw = text: bytes; j = text: json; id: key; label: tensor; "
        "boxes: ragged 2; spots: ragged 2 pad=0",
    }
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder, "pack")
        pack = joined(path, write_pack(path, fields, samples, block_samples=2, columns=True))
    for name, text in texts.items():
        save("fuzz_load", name, text.encode() + b"\0" + pack)


def pack_seeds(jpegs, pngs):
    tiles = cut_tiles(jpegs["tiled"], 40, 24, (2, 2), meta=META)
    grey = cut_tiles(jpegs["tiled-grey"], 90, 40, (1, 1), 1, META)
    kept = image(pngs["rgb-8"], 3, 3, codec="png", meta=b"\xff\xfe\x00\x04hi")
    frames = [raw(2, 2, 1, timestamp=5), kept, raw(3, 1, 3, orientation=6), kept]
    all_types = [
        Field("image", "image"),
        Field("mask", "image", mask=True),
        Field("clip", "clip"),
        Field("bytes", "bytes"),
        Field("json", "json"),
        Field("text", "text"),
        Field("label", "i64"),
        Field("box", "f32", (2, 2)),
        Field("score", "f64"),
    ]

    def values(n):
        return {
            "image": (kept, NO_IMAGE, raw(5, 3, 4))[n % 3],
            "mask": raw(2, 3, 1),
            "clip": frames[: n % 4],
            "bytes": bytes(n),
            "json": b"{}",
            "text": b"text %d" % n,
            "label": n,
            "box": [0, 1, n, 2],
            "score": n / 2,
        }

    few = [(b"key/%d" % n, values(n)) for n in range(5)]
    numbers = [(b"%d" % n, {"n": n}) for n in range(23)]
    packs = {
        "all-types": (all_types, few, {"block_samples": 2, "shard_blocks": 2, "classes": {
            6: [b"cat", b"dog", b"", b"\xc3\xa4"]}, "settings": {"mode": "keep"}}),
        "tiles": ([Field("image", "image")],
                  [(b"a", {"image": tiles}), (b"b", {"image": grey}), (b"c", {"image": kept})],
                  {"block_samples": 3}),
        "long-rows": ([Field("i", "image")], [(b"a", {"i": raw(90, 120, 1)})],
                      {"block_samples": 1}),
        "clip": ([Field("c", "clip")], [(b"a", {"c": frames}), (b"b", {"c": []})], {}),
        "videos": ([Field("c", "clip"), Field("n", "i64")],
                   [(b"a", {"c": video(), "n": 1}), (b"b", {"c": frames[:1], "n": 2}),
                    (b"c", {"c": video(0, 9), "n": 3}), (b"d", {"c": [], "n": 4})],
                   {"block_samples": 2, "columns": True, "n_stats": 72}),
        "many-blocks": ([Field("n", "i64")], numbers,
                        {"block_samples": 2, "shard_blocks": 3, "n_stats": 4}),
        "unused-block": ([Field("n", "i64")], numbers[:4], {
            "block_samples": 4, "unused": {0: numbers[5:7]}, "n_stats": 0,
            "sections": [(b"XTRA", 0, b"ignored")]}),
        "indexed": ([Field("image", "image"), Field("clip", "clip")],
                    [(b"a", {"image": indexed(jpegs["420"], 40, 24, 3), "clip": []}),
                     (b"b", {"image": NO_IMAGE, "clip": [indexed(jpegs["grey"], 33, 17, 1)] * 2})],
                    {"n_stats": 72}),
        "ragged": ([Field("b", "f32", (0, 4), flags=4), Field("t", "i64", (0,), optional=True)],
                   [(b"a", {"b": [0.5] * 8, "t": None}), (b"b", {"b": [], "t": [1, 2]}),
                    (b"c", {"b": [1.0] * 4, "t": []})], {"block_samples": 2}),
        "columns": (all_types, few, {"block_samples": 2, "shard_blocks": 2, "columns": True}),
        "classes-last": ([Field("n", "i64"), Field("t", "text")],
                         [(b"a", {"n": 1, "t": b"text"}), (b"b", {"n": 0, "t": b""})],
                         {"sections": [(b"CLAS", 0, classes_section(0, [b"cat", b"dog"]))]}),
        "long-key": ([Field("t", "text")], [(b"k" * 4096, {"t": b"text"})], {"n_stats": 0}),
        "longer-key": ([Field("t", "text")], [(b"k" * 4097, {"t": b"text"})], {"n_stats": 0}),
    }  # fmt: skip
    with tempfile.TemporaryDirectory() as folder:
        for name, (fields, samples, options) in packs.items():
            path = pathlib.Path(folder, name)
            manifest = write_pack(path, fields, samples, **options)
            save("fuzz_block", name, joined(path, manifest))
            save("fuzz_manifest", name, b"\0" + manifest)
            save("fuzz_manifest", f"{name}-repaired", b"\3" + manifest)


def map_seeds():
    """The ends of files of mapped shards; the fuzzer puts the checksum right."""
    def made(stored, extents, files, file_bytes=1000):
        body, at, paths = b"", 0, b""
        for offset, source, n, file, skipped in extents:
            body += struct.pack("<QQIIQ", offset, source, n, file, skipped)
        for bytes_, path in files:
            body += struct.pack("<QqQI4x", bytes_, 1, at, len(path))
            at, paths = at + len(path), paths + path
        body += paths
        head = b"PENSHMAP" + struct.pack("<II", 1, 0) + b"0123456789abcdef"
        counts = struct.pack("<QQI4xQ", file_bytes, len(extents), len(files), len(body) + 64)
        return bytes(stored) + body + head + counts

    two = [(200, 0, 100, 0, 0), (400, 50, 50, 1, 100)]
    files = [(100, b"dir/x"), (100, b"/mnt/y.tar")]
    save("fuzz_map", "two", made(850, two, files))
    save("fuzz_map", "next-to-each-other", made(850, [two[0], (300, 100, 50, 0, 100)],
                                                [(150, b"a.tar")]))
    save("fuzz_map", "outside", made(850, two, [(100, b"../x"), (100, b"/")]))
    save("fuzz_map", "behind-the-file", made(850, two, [(99, b"x"), (100, b"y")]))
    save("fuzz_map", "nothing", made(1000, [], []))


# ---- lists, tars, plans -------------------------------------------------------------------------


def list_seeds():
    seeds = {
        "labels": b"path,label\na.jpg,cat\nb.jpg,dog\n",
        "fields": b"image,label,x,y,name,mask\n1.jpg,0,1,1.5,a,m.png\n2.jpg,1,-2,1e-3,b,\n",
        "quotes": b'file,class\r\n"a ""b"", c.jpg","x\ny"\r\n\r\n"",z\r\n',
        "bom": b"\xef\xbb\xbffilename\n\xc3\xa4.jpg\n\n\nlast.jpg",
        "numbers": b"path,n\na,9223372036854775807\nb,-0\nc,+1\nd,1e400\ne,0x10\nf,nan\n",
        "bad-utf8": b"path,label\n\xff\xfe,x\n",
        "open-quote": b'path,label\n"a,b\n',
        "ragged": b"path,label\na\nb,c,d\n",
        "nul": b"path\na\0b\n",
        "empty": b"",
        "wide": b",".join(b"c%d" % n for n in range(300)) + b"\n",
    }
    for name, data in seeds.items():
        save("fuzz_csv", name, b"\0" + data)
        save("fuzz_csv", f"{name}-tsv", b"\1" + data.replace(b",", b"\t"))
    clips = {
        "20bn": (2, b"f;Stop Sign\nf;No, gesture\ne;x\nnone;y\n"),
        "frames": (2, b"id\tlabel\tage\nf\twave\t3\n"),
        "frames-asked": (8, b"none,x\nf,y\n"),
        "videos": (2, b"path,start,end\nv.mp4,1.5,3\nv.mp4,,\nv.mp4,,0.25\n"),
        "videos-asked": (12, b"v.mp4,x,0,1e9\n"),
        "times": (12, b"video,start,end\nv,-1,2\n"),
    }
    for name, (how, data) in clips.items():
        save("fuzz_csv", name, bytes([how]) + data)
    for name in ("labels", "fields", "quotes"):
        save("fuzz_plan", f"list-{name}", b"\4" + seeds[name])


def tar(members, form):
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w", format=form) as archive:
        for name, data, kind in members:
            info = tarfile.TarInfo(name)
            info.size, info.type, info.linkname = len(data), kind, "a"
            archive.addfile(info, io.BytesIO(data))
    return out.getvalue()[: 512 * (1 + out.getvalue().rstrip(b"\0").__len__() // 512) + 1024]


def tar_seeds():
    file, folder, link, hard = tarfile.REGTYPE, tarfile.DIRTYPE, tarfile.SYMTYPE, tarfile.LNKTYPE
    samples = [
        ("./0001.jpg", b"picture", file), ("./0001.cls", b" 7\n", file),
        ("./0001.json", b"{}", file), ("0002.left.png", b"p" * 600, file), ("d", b"", folder),
        ("d/.hidden", b"", file), ("d/0003.txt", b"", file), ("d/0003.npy", b"123", file),
    ]  # fmt: skip
    plain = tar(samples, tarfile.USTAR_FORMAT)
    long_name = "n" * 120 + "/" + "m" * 130 + ".jpg"
    seeds = {
        "ustar": plain,
        "gnu-long": tar([(long_name, b"x", file), *samples[:2]], tarfile.GNU_FORMAT),
        "pax-long": tar([(long_name + "\u00e4", b"x", file)], tarfile.PAX_FORMAT),
        "long-suffix": tar([("a." + "s" * 255, b"x", file)], tarfile.GNU_FORMAT),
        "longer-suffix": tar([("a." + "s" * 256, b"x", file)], tarfile.GNU_FORMAT),
        "links": tar([samples[0], ("b.jpg", b"", link)], tarfile.USTAR_FORMAT),
        "hard": tar([samples[0], ("b.jpg", b"", hard)], tarfile.USTAR_FORMAT),
        "no-suffix": tar([("name", b"x", file)], tarfile.USTAR_FORMAT),
        "cut": plain[: 512 * 3 + 100],
        "gz": gzip.compress(plain, mtime=0),
        "bz2": bz2.compress(plain),
        "xz": lzma.compress(plain),
        "zst": run(("zstd", "-q", "-c"), plain),
        "lz4": run(("lz4", "-q", "-c"), plain),
        "gz-gz": gzip.compress(gzip.compress(plain, mtime=0), mtime=0),
        "empty": b"",
        "zeros": bytes(1024),
    }
    for name, data in seeds.items():
        save("fuzz_tar", name, data)


def text(data):
    return struct.pack("<I", len(data)) + data


def string(data):
    return text(data) + b"\0"


STAMP = bytes(24)  # of every file that fuzz_plan.c makes


def frames_stamp(files):
    """The sums of ingest/source/stamp.c over names and sizes, when all times and inodes are 0."""
    wide = 2**64 - 1

    def mix(v):
        v = (v ^ v >> 30) * 0xBF58476D1CE4E5B9 & wide
        v = (v ^ v >> 27) * 0x94D049BB133111EB & wide
        return v ^ v >> 31

    total = 0
    for name, size in files:
        state = 0x9E3779B97F4A7C15 ^ size
        for byte in name:
            state = mix((state + byte) & wide)
        total += mix(state)
    return struct.pack("<Q", total & wide) * 3


def plan(records, fields, classes, roots, class_field, lists=(), version=2):
    """As src/ingest/plan/plan_impl.h lays it out; the id and the hashes are not checked."""
    data, table = b"PENPLAN\n" + struct.pack("<Q", version), b""
    for n, record in enumerate(records):
        hashed = bytes([n + 1]) * 16
        crc = crc32c(struct.pack("<Q", n) + record + hashed)
        table += struct.pack("<QII", len(data), len(record), crc) + hashed
        data += record
    texts = string(b"{}")
    texts += b"".join(struct.pack("<BB18x", *field[:2]) + string(field[2]) for field in fields)
    texts += b"".join(string(name) for name in classes)
    texts += b"".join(struct.pack("<BQ", *root[:2]) + STAMP + string(root[2]) for root in roots)
    texts += b"".join(struct.pack("<Q", size) + STAMP + string(name) for size, name in lists)
    places = (len(data), len(data) + len(table))
    size = places[1] + len(texts) + 192
    counts = (len(fields), len(classes), len(roots), class_field, 0)
    foot = struct.pack("<QQQQQQQI", size, len(records), 0, 4, 99, *places, crc32c(texts))
    foot += struct.pack("<IIIiI", *counts) + bytes(range(16 + 32 + 32))
    foot += struct.pack("<I12x", len(lists))
    return data + table + texts + b"PENPLEND" + struct.pack("<II", version, crc32c(foot)) + foot


def part(kind, *values):
    """FILE by its key 0x11, FILE by a text 0x31, member of a tar 0x22 and of a packed one 0x23."""
    if kind == 0x11:
        return struct.pack("<BIQ", kind, *values)
    if kind == 0x31:
        return struct.pack("<BIQ", kind, *values[:2]) + text(values[2])
    if kind in (0x22, 0x23):
        return struct.pack("<BIQQ", kind, *values[:3]) + text(values[3])
    return bytes([kind]) + text(values[0]) if kind == 4 else b"\0"


def plan_seeds():
    number = struct.pack("<q", 1)
    fields = [(1, 0, b"image"), (6, 0, b"label"), (1, 1, b"mask"), (5, 0, b"text")]
    lists = [
        text(b"a.png") + part(0x11, 0, 10) + part(4, number) + part(0) + part(4, b"hello") + STAMP,
        text(b"b.png") + part(0x11, 0, 3) + part(4, number) + part(0x31, 0, 10, b"a.png") + part(0)
        + STAMP * 2,
    ]  # fmt: skip
    # The files are those that fuzz_plan.c makes: four members of 1024 bytes each.
    tars = [(3, 5120, b"t.tar"), (3, 5143, b"t.tgz")]
    members = [(b"k1", 1536, 5, b"jpg"), (b"k2", 3584, 6, b"jpg"), (b"k1", 2560, 1, b"cls")]
    fixed = [
        text(key) + part(kind, root, *place, suffix)
        for kind, root in ((0x22, 0), (0x23, 1))
        for key, *place, suffix in members
    ]
    roots = [(2, 0, b"d"), (1, 0, b"d/")]
    both = frames_stamp([(b"1.png", 5), (b"2.png", 6)])
    frames = text(b"f") + struct.pack("<BIQQ", 0x15, 0, 2, 11) + both
    named = text(b"k") + struct.pack("<BIQQ", 0x35, 1, 2, 11) + text(b"f") + both
    video = text(b"k2") + struct.pack("<BIQQQ", 0x36, 0, 1, 10, 2) + text(b"a.png") + STAMP
    whole = text(b"a.png") + struct.pack("<BIQQQ", 0x16, 0, 0, 10, 2**64 - 1) + STAMP
    gulp = text(b"k3") + struct.pack("<BIQQ", 7, 2, 2, 9) + text(b"\0\4\1\5")
    clip, gulps = [(2, 0, b"video")], [*roots, (4, 10, b"d/a.png")]
    seeds = {
        "list": plan(lists, fields, [b"cat", b"dog"], roots, 1, [(10, b"d/a.png"), (7, b"d/gone")]),
        "version-0": plan(lists, fields, [b"cat", b"dog"], roots, 1, version=0),
        "tars": plan(fixed, [(3, 0, b"jpg")], [], tars, -1),
        "empty": plan([], fields, [], [], -1),
        "clips": plan([frames, named, video, whole, gulp], clip, [], gulps, -1),
    }
    for name, data in seeds.items():
        save("fuzz_plan", name, b"\0" + data)
        save("fuzz_plan", f"{name}-repaired", b"\3" + data)


def gulp_seeds():
    clip = b'{"frame_info": [[0, 2, 100], [100, 0, 40], [20, 1, 11]], "meta_data": [%s]}'
    seeds = {
        "one": b'{"7": ' + clip % b'{"label": "wave"}' + b"}",
        "two": b'{"7": ' + clip % b'{"label": 1, "x": [1.5, null]}' + b', "8": '
        + clip % b'{"label": -2}' + b"}",
        "no-label": b'{"a\\u00e4": ' + clip % b"{}" + b"}",
        "some-labels": b'{"7": ' + clip % b"{}" + b', "8": ' + clip % b'{"label": "x"}' + b"}",
        "behind": b'{"7": {"frame_info": [[200, 0, 1]], "meta_data": [{}]}}',
        "negative": b'{"7": {"frame_info": [[-4, 0, 8]], "meta_data": [{}]}}',
        "fill": b'{"7": {"frame_info": [[0, 8, 8]], "meta_data": [{}]}}',
        "large": b'{"7": {"frame_info": [[9223372036854775807, 1, 9223372036854775807]]}}',
        "pickle": b"\x80\x04\x95\x10",
        "deep": b"[" * 100,
        "empty": b"",
    }
    for name, data in seeds.items():
        save("fuzz_gulp", name, b"\x8c" + data)


def video_log_seeds():
    head = b"#software: Lavf59.27.100\n#tb 0: 1/15360\n#media_type 0: video\n#dimensions 0: 4x2\n"
    frame = b"0, %10d, %10d,      512,       24, 0x7658199c\n"
    none = b"0, 0, -9223372036854775808, 1, 24, 0x1\n"
    seeds = {
        "frames": head + b"".join(frame % (n * 512, n * 512) for n in range(4)),
        "times": head + frame % (0, 7) + none + frame % (0, 3) + frame % (9, 2**62 - 1),
        "size": head + b"0, 0, 0, 1, 25, 0x1\n",
        "late": frame % (0, 0) + head,
        "two": head + b"#dimensions 0: 5x2\n",
        "large": b"#dimensions 0: 65535x65535\n",
        "base": b"#tb 0: 1/0\n",
        "long": b"#" * 300,
    }
    for name, data in seeds.items():
        save("fuzz_video_log", name, b"\3" + data)


def video_packets_seeds():
    dump = "\\n00000000: 0164 000a ffe1 0018 6764 000a acd9 447b  .d......gd....D{\\n"
    dump += "00000010: 0110 " + " " * 36 + '  .\\"\\n'
    turned = "\\n00000000: 0 -65536 0\\n00000001: 65536 0 0\\n00000002: 0 0 1073741824\\n"
    values = {"codec_name": '"h264"', "width": 64, "height": 48, "pix_fmt": '"yuv420p10le"',
              "color_range": '"tv"', "color_space": '"bt709"', "time_base": '"1/12800"',
              "has_b_frames": 2, "extradata": f'"{dump}"', "extradata_size": 18,
              "side_data_list.side_data.0.displaymatrix": f'"{turned}"'}
    stream = "".join(f"streams.stream.0.{name}={value}\n" for name, value in values.items())
    stream += 'format.format_name="mov,mp4,m4a,3gp,3g2,mj2"\n'
    save("fuzz_video_packets", "stream", b"\0" + stream.encode())
    save("fuzz_video_packets", "no-format", b"\2" + stream.replace("mp4", "avi").encode())
    flags = ("K_", "_D", "__C", "K__")
    packets = [{"pts": 512 * n, "dts": 512 * n - 5, "size": 100 + n, "pos": 7000 * n,
                "flags": f'"{flags[n % 2]}"', "data_hash": f'"CRC32:{n:08x}"'} for n in range(4)]

    def text(rows):
        return "".join(f"packets.packet.{n}.{name}={value}\n"
                       for n, row in enumerate(rows) for name, value in row.items()).encode()

    side = {"side_data_list.side_data.0.side_data_type": '"Encryption info"'}
    save("fuzz_video_packets", "packets", b"\1" + text(packets))
    save("fuzz_video_packets", "times", b"\5" + text([packets[0] | {"pts": '"N/A"'}, packets[1]]))
    save("fuzz_video_packets", "side-data", b"\7" + text([packets[0] | side]))
    save("fuzz_video_packets", "damaged", b"\x1f" + text([packets[0] | {"flags": flags[2]}]))


def video_picture_seeds():
    """A codec, its configuration and packets, each after its length (see fuzz_video_picture.c)."""
    h264 = bytes.fromhex("0142001effe1000967 42001e95a0a1b1c001000468ce3c80".replace(" ", ""))
    hevc = bytes(21) + bytes.fromhex("0301220001000644 01c172b0ff".replace(" ", ""))
    layer = bytes.fromhex("000001200086840fa28c2030a31f")
    seeds = {
        "h264": (0, h264, ["0000000865888400ffffffff", "0000000441 9a2400", "0000000201 9e"]),
        "h264-start-codes": (0, b"", ["0000016742001e95a0a1b1c0", "00000165 88840003ff"]),
        "hevc": (1, b"\1" + hevc[1:], ["000000042a01af20", "00000003 1201d0", "0000000348 01ff"]),
        "vp9": (2, b"", ["8249834200", "860084 00c10202c1", "88"]),
        "av1": (3, b"", ["12000a0100320210 00", "1200 32022000320230 00", "32 0180"]),
        "mpeg4": (4, layer, ["000001b6 10c0ff", "000001b650c0ff 000001b690c0ff"]),
        "mjpeg": (5, b"", ["ffd8ffe0"]),
        "vp8": (6, b"", ["100200", "310200", "010000"]),
    }
    for name, (codec, extra, packets) in seeds.items():
        parts = [extra, *(bytes.fromhex(packet.replace(" ", "")) for packet in packets)]
        joined = b"".join(bytes([len(part)]) + part for part in parts)
        save("fuzz_video_picture", name, bytes([codec]) + joined)


def listed_packets(dice, n, gop, b):
    """Packets of a video with b frames before each P-frame, and where the last one ends."""
    packets, end = [], 40
    for at in range(0, n, b + 1):
        times = list(range(at, min(at + b + 1, n)))
        for time in [times[-1], *times[:-1]]:
            key, hidden = time == times[-1] and at % gop < b + 1, dice.random() < 0.1 and n > 1
            packets.append(plain_video.Packet(end, dice.randrange(1, 300), 512 * time, key, hidden))
            end += packets[-1].bytes + dice.choice([0, 0, 20])
    return packets, end


def video(container=1, n=50):
    packets, end = listed_packets(random.Random(22), n, 12, 2)
    stream = {"codec": 2, "container": container, "width": 64, "height": 48, "orientation": 6,
              "tick": fractions.Fraction(1, 12800)}
    return {"data": bytes(end), "stream": stream, "packets": packets, "source_bytes": 2 * end,
            "n_frames": len(plain_video.Table(packets).shown)}


def video_table_seeds():
    """Size of the payload, number of frames, and a table; or 0, 0, and packets."""
    dice = random.Random(21)
    stream = {"codec": 1, "container": 1, "width": 64, "height": 48, "extra": b"avcC",
              "tick": fractions.Fraction(1, 12800)}
    for name, n, gop, b in (("one", 1, 1, 0), ("open", 100, 12, 2), ("long", 120, 250, 3),
                            ("keys", 70, 1, 0)):
        packets, end = listed_packets(dice, n, gop, b)
        plain = b"".join(struct.pack("<IHiBx", p.offset, p.bytes, p.time, p.key + 2 * p.hidden)
                         for p in packets)
        table, shown = plain_video.write(stream, packets, bytes(end), lambda *_: 0)
        save("fuzz_video_table", name, struct.pack("<II", end, shown) + table)
        save("fuzz_video_table", f"{name}-packets", bytes(8) + plain)


def video_seeds():
    """The first packets of a video of each codec, as fuzz_video_decode.c takes them."""
    cases = {
        "h264": ("a.mp4", "libx264", "yuv420p"), "h264-10": ("a.mp4", "libx264", "yuv422p10le"),
        "hevc": ("a.mp4", "libx265", "yuv420p"), "vp9": ("a.mp4", "libvpx-vp9", "yuv420p"),
        "av1": ("a.mp4", "libsvtav1", "yuv420p"), "mpeg4": ("a.mp4", "mpeg4", "yuv420p"),
        "mjpeg": ("a.mov", "mjpeg", "yuvj420p"), "vp8": ("a.ivf", "libvpx", "yuv420p"),
    }
    for name, (file, encoder, pixels) in cases.items():
        with tempfile.TemporaryDirectory() as folder:
            path = encode(pathlib.Path(folder, file), "-c:v", encoder, "-pix_fmt", pixels,
                          size="64x64" if name == "av1" else "64x48", frames=5)
            video, data = Video(path), path.read_bytes()
        extra = bytes.fromhex(video.extra)
        seed = bytes([CODECS[video.stream["codec_name"]], name == "av1"])
        seed += struct.pack("<H", len(extra)) + extra
        for i, p in enumerate(video.packets):
            seed += struct.pack("<BH", i != 2, p.size) + data[p.offset:p.offset + p.size]
        save("fuzz_video_decode", name, seed)


def roundtrip_seeds():
    for n in range(24):
        dice = random.Random(f"roundtrip {n}")
        save("fuzz_roundtrip", f"{n:02}", dice.randbytes(dice.choice((20, 60, 200, 500))))


def region_seeds(jpegs, pngs):
    """24 bytes of arguments (see fuzz_region.c), then the file."""
    dice = random.Random(8)
    tall = tile(encoded(picture("RGB", 120, 90), "JPEG", quality=10))  # rows begin segments
    files = {f"jpeg-{name}": jpegs[name] for name in ("422", "440", "cmyk", "scans", "arithmetic")}
    files |= {f"png-{name}": pngs[name] for name in ("palette-4", "rgb-8", "rgba-8", "grey-8")}
    for n, (name, data) in enumerate(files.items()):
        save("fuzz_region", name, bytes([0, n % 3, 0, *dice.randbytes(21)]) + data)
    for n, data in enumerate((tall, tall, tall, tall, jpegs["tiled-grey"], jpegs["tiled"])):
        way = bytes([1 + n % 2, n % 2, 0])
        # Box, its edges, number of lies about the lengths, and the lies.
        lies = bytes([n // 2 % 2 * 2, *dice.randbytes(7)])
        args = way + dice.randbytes(4) + bytes([n]) + lies
        save("fuzz_region", f"tiled-{n}", args.ljust(24, b"\0") + data)
    save("fuzz_region", "raw", bytes([3, 0, 0]).ljust(24, b"\0") + b"\1\7" + dice.randbytes(200))


def own_seeds():
    """16 bytes of arguments (see fuzz_own.c), then a tiled JPEG."""
    dice = random.Random(9)
    kinds = [("444", "1x1"), ("422", "2x1"), ("440", "1x2"), ("420", "2x2")]
    for n, (name, sampling) in enumerate(kinds):
        for size, quality in (((33, 21), 100), ((130, 75), 40), ((9, 260), 75)):
            ppm = encoded(picture("RGB", *size), "PPM")
            jpeg = run(("cjpeg", "-quality", str(quality), "-sample", sampling), ppm)
            way = bytes([n % 3, (0, 3, 1)[n % 3]])
            save("fuzz_own", f"{name}-{quality}", way + dice.randbytes(14) + tile(jpeg))
    grey = tile(encoded(picture("L", 150, 60), "JPEG", quality=60))
    save("fuzz_own", "grey", bytes([2, 3]) + dice.randbytes(14) + grey)


def entries_seeds():
    """16 bytes of arguments (see fuzz_entries.c), the entries, and the file."""
    dice = random.Random(10)
    kinds = [("444", "1x1", 16), ("422", "2x1", 5), ("440", "1x2", 12), ("420", "2x2", 8)]
    for n, (name, sampling, unit) in enumerate(kinds):
        sizes = [((33, 41), 100, "0"), ((130, 75), 40, "3B"), ((9, 260), 75, "1")]
        for size, quality, restart in sizes:
            ppm = encoded(picture("RGB", *size), "PPM")
            command = ("cjpeg", "-quality", str(quality), "-sample", sampling, "-restart", restart)
            save_entries(f"{name}-{quality}", dice, n, unit, run(command, ppm))
    save_entries("grey", dice, 2, 7, encoded(picture("L", 150, 60), "JPEG", quality=60))
    # Files that cannot have a table, with one that claims 4:2:0.
    save_claim("cmyk", dice, 2 * 5, encoded(picture("CMYK", 32, 80), "JPEG"))
    ppm = encoded(picture("RGB", 16, 160), "PPM")
    save_claim("4x2", dice, 10, run(("cjpeg", "-sample", "4x2"), ppm))
    # Scans of more than 8 KiB: they are decoded in several lanes.
    for n, (name, sampling, unit) in enumerate(kinds[::3]):
        ppm = encoded(picture("RGB", 120, 80), "PPM")
        command = ("cjpeg", "-quality", "95", "-sample", sampling)
        save_entries(f"{name}-lanes", dice, n, unit, run(command, ppm))


def save_entries(name, dice, n, unit, jpeg):
    entries = Index(jpeg, unit).entries
    args = bytes([n % 3, n % 4]) + struct.pack("<HB", len(entries), unit - 1)
    save("fuzz_entries", name, args + dice.randbytes(11) + entries + jpeg)


def save_claim(name, dice, n_mcus, jpeg):
    """Entries of 4 MCUs each, 50 bits apart, with the same predictors."""
    entries = (n_mcus - 1) // 4 * (struct.pack("<H", 50) + bytes(3))
    args = bytes([0, 12]) + struct.pack("<HBBBB", len(entries), 3, 1, 1, 1)
    save("fuzz_entries", name, args + dice.randbytes(8) + entries + jpeg)


def pipeline_seeds():
    texts = {
        "train": "decode | random_resized_crop 224 scale=0.08,1 | hflip | tensor u8 nhwc",
        "eval": "decode | resize 256 | center_crop 224 | normalize | tensor f32 nchw",
        "fields": (
            'image: decode | center_crop 224 | tensor f16; label: tensor i64; "my mask": '
            "decode gray | resize 8,9 nearest"
        ),
        "colours": (
            "decode rgb | resize 32,40 bicubic | color_jitter 0.4 0.4 0.4 hue=0.1 | "
            "grayscale 0.2 | vflip 1 | tensor bf16"
        ),
        "tones": (
            "decode | random_invert 1 | random_posterize bits=0 p=.3 | random_solarize 256 | "
            "random_equalize | random_autocontrast p=0 | adjust_gamma 0,100 gain=3 | "
            "random_adjust_sharpness 100 | gaussian_blur 1,255 sigma=0.01,1000 | jpeg 1,100 | "
            "random_channel_permutation | center_crop 8"
        ),
        "warps": (
            "decode | random_rotation 3600 bicubic center=-65535,9 | random_affine -3,3 "
            "translate=1,1 scale=0.001,1000 shear=-89,89,0,89 fill=1,2,3 bilinear | pad 4096 edge "
            "| random_perspective 1 p=1 | random_affine 0 nearest | pad 1,2,3,4 fill=9 symmetric | "
            "five_crop 3,2"
        ),
        "wrong-warps": "decode | random_affine 1 translate=.5 | pad 1,2,3 | ten_crop 3 | repeat 9",
        "wrong-tones": "decode gray | jpeg 1.5 | gaussian_blur 2 sigma=3,1 | random_posterize 9",
        "erasing": (
            "decode | center_crop 9,300 | random_erasing 1 value=1,2,3 | normalize 0.5 "
            "std=.25,1e-3,2 | random_erasing p=1 scale=0.1,0.2 ratio=0.5,2 value=-1.5 | "
            "tensor f32"
        ),
        "cifar": "decode | random_crop 32 padding=4 fill=7 | hflip p=0.5 | tensor",
        "passes": (
            "decode | hflip | resize 50 lanczos | random_crop 60 30 | resize 9,8 box | "
            "center_crop 400 | vflip | random_resized_crop 7 ratio=0.001,1000"
        ),
        "numbers": "x: tensor f32; y: tensor dtype = auto layout=nchw",
        "lists": "caption: text; meta: json 100; b: bytes max_bytes=1e6; id: key 7; x: text | json",
        "ragged": "boxes: ragged 8 pad=-1.5; ids: ragged max_rows=16777216; x: ragged | tensor",
        "clip": "decode | clip 16 2 center loop n=3 times=yes | resize 9 | three_crop 8 | tensor "
        "ncthw",
        "clip-list": "decode gray | clip indices=5,0,5,9 pad=none | center_crop 8 | tensor ntchw",
        "clip-times": "video: decode | clip 8 fps=7.5 offset=0.25 | random_crop 8 padding=9",
        "views": (
            'g = image: decode | random_resized_crop 32 | repeat 2; "a b" = "x=y": decode gray | '
            "center_crop 8; m = mask of=g: decode | random_resized_crop 32 | tensor i64 | repeat 2"
        ),
        "boxes": (
            "image: decode | hflip | center_crop 8; b: boxes of=image xywh clip=no kept=yes | "
            'ragged 9; p: points of="a b" drop=no | keep b; labels: keep "b" | ragged pad=-1'
        ),
        "sizes": (
            "image: decode | resize min_side=24,32 max_side=48 to_multiple_of=7 | hflip | "
            "normalize | tensor f16 nchw | pad_batch 32 value=-1.5; mask: decode | resize "
            "max_side=300 box | tensor i64"
        ),
        "mixup": (
            "image: decode | center_crop 8 | normalize | tensor f32 nchw | mixup alpha=0.8 p=0.5 | "
            'cutmix 1 0.5 per=batch; label: one_hot 1000 label_smoothing=0.1 of="image" | '
            "tensor f16"
        ),
        "wrong-mixup": "decode | mixup per=sample | cutmix per=batch p=0 | repeat 2; one_hot 0",
        "bucket": (
            "image: decode | cover bucket position=random | hflip; m: decode | cover bucket; "
            "random_resized_crop bucket"
        ),
        "brackets": (
            "[a]: decode | center_crop 8 | random_apply p=0.8 [color_jitter 0.4 | random_choice "
            "[hflip | vflip] [random_order [random_erasing 1 | hflip | grayscale]] p=1,0.5] | "
            "random_order [hflip|vflip]; b]: decode"
        ),
        "policies": (
            "decode | center_crop 24 | rand_augment 3 magnitude=5 num_magnitude_bins=6 bilinear "
            "fill=1,2,3 | trivial_augment 2 bicubic | auto_augment svhn | aug_mix 10 2 "
            "chain_depth=2 alpha=0.01 all_ops=no | three_augment 0.5,2"
        ),
        "policies-in-brackets": (
            "image: decode | resize 9,8 | random_order [rand_augment | random_choice [auto_augment "
            "cifar10] [trivial_augment] | hflip]; mask: decode | resize 9,8 | random_order "
            "[rand_augment | random_choice [auto_augment cifar10] [trivial_augment] | hflip]"
        ),
        "wrong-brackets": "decode | random_apply [random_choice [random_apply [random_order [x][",
        "patches": (
            "image: decode | random_resized_crop 64,96 | patches 14 bicubic | hflip | normalize | "
            "random_erasing | tensor bf16; m: decode | patches 8 length=65536; decode | patches "
            "1024"
        ),
        "wrong-view": "a = b of = : decode; a = a of=a b: decode | repeat 3 | repeat 64",
        "wrong-name": "decode | random_resize_crop 224",
        "wrong-value": "decode | hflip 1.5 | resize 1,2,3",
        "wrong-sign": "decode || hflip = ,",
        "empty": "",
    }
    for name, text in texts.items():
        save("fuzz_pipeline", name, text.encode())


def clip_seeds():
    """As fuzz_clip.c says; times that rise by 40 ms, and some that do as they like."""
    even = struct.pack("<64H", *[40] * 64)
    wild = struct.pack("<8q", 0, -1, 2**62, -(2**63), 2**63 - 1, 5, 5, 6)
    seeds = {
        "plain": ("", 37, 1, even),
        "loop": ("20 3 7 loop", 5, 1, even),
        "short": ("20 3 none", 5, 1, even),
        "several": ("4 1 center n=5", 64, 1, even),
        "list": ("indices=3,1,4,1,5,9", 4, 1, even),
        "fps": ("9 fps=12.5 n=2", 64, 1, even),
        "seconds": ("9 seconds=1.5 offset=0.3 loop", 30, 1, even),
        "wild": ("9 fps=25", 8, 0, wild),
        "none": ("9", 0, 0, b""),
    }
    for name, (text, n, rising, times) in seeds.items():
        save("fuzz_clip", name, text.encode() + struct.pack("<BHB", 0, n, rising) + times)


def follow_seeds():
    """As fuzz_follow.c says."""
    inf, nan = math.inf, math.nan
    rows = [(10, 20, 30, 50), (0, 0, 1, 1), (0.25, 0.5, 0.5, 0.25), (nan, 1, inf, 2)]
    numbers = struct.pack("<16f", *(number for row in rows for number in row))
    texts = {
        "crop": "decode | random_resized_crop 48 | hflip",
        "padding": "decode | random_crop 64 padding=4000 | vflip | center_crop 9",
        "passes": "decode | hflip | resize 50 | random_crop 30 | resize 9,8 | center_crop 400",
        "shrink": "decode shrink=auto | hflip | random_resized_crop 7,300 | vflip",
        "sizes": "decode shrink=auto | resize min_side=40,90 max_side=99 to_multiple_of=8 | hflip",
        "warps": "decode | random_affine 90 scale=.001,9 | pad 9 reflect | random_perspective 1 "
        "p=1 | hflip | center_crop 50 | random_rotation 30 center=0,0",
        "policies": "decode | resize 90 | rand_augment 9 magnitude=30 | hflip | trivial_augment | "
        "auto_augment | center_crop 64 | trivial_augment",
        "brackets": "decode | random_resized_crop 48 | random_choice [random_rotation 90,90] "
        "[random_order [vflip | random_affine 30 shear=9] | hflip] | random_apply p=0.9 "
        "[rand_augment 2]",
    }
    for i, (name, text) in enumerate(texts.items()):
        for stored in range(4):
            sides = struct.pack("<HHB", 640 + i, 480, 2 * i + stored)
            rule = bytes([stored, i % 3, 7 * i + 5 * stored, 8, 0, 20 * i])
            save("fuzz_follow", f"{name}-{stored}", text.encode() + b"\0" + sides + rule + numbers)


def main():
    jpegs, pngs = jpeg_seeds(), png_seeds()
    pack_seeds(jpegs, pngs)
    load_seeds(jpegs, pngs)
    map_seeds()
    list_seeds()
    tar_seeds()
    plan_seeds()
    gulp_seeds()
    video_log_seeds()
    video_packets_seeds()
    video_picture_seeds()
    video_table_seeds()
    video_seeds()
    roundtrip_seeds()
    region_seeds(jpegs, pngs)
    own_seeds()
    entries_seeds()
    pipeline_seeds()
    clip_seeds()
    follow_seeds()
    for folder in {file.parent for file in MADE}:
        for old in set(folder.glob("seed-*")) - MADE:
            old.unlink()
    files = [file for file in CORPUS.glob("*/*") if file.is_file()]
    print(f"{len(files)} files, {sum(file.stat().st_size for file in files)} bytes")


if __name__ == "__main__":
    main()
