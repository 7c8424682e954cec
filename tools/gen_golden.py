#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Make the golden packs: small ones that every reader has to read, or to refuse, for ever.

    gen_golden.py [--build DIR] [--out DIR]

The bytes depend on the versions of libjpeg, Pillow, ffmpeg and others, so this is run once for a
format and its result is kept in tests/golden: valid/NAME.pen, invalid/NAME.pen, EXPECT.json with
what readers say of the invalid ones, and MANIFEST.sha256. tests/python/test_golden.py reads them.

Those of version 1 are there: every later penstock has to read them as they are. What is there is
left alone; only packs with new names are made, for features that come later. Packs of tiles cannot
be made any more: the program that wrote them is from before ADR 37, and what is described here is
what they hold.
"""

import argparse
import hashlib
import io
import json
import os
import pathlib
import random
import shutil
import struct
import subprocess
import sys
import tarfile
import tempfile

from PIL import Image, ImageCms

ROOT = pathlib.Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "tests" / "python"))
from plain_writer import (  # noqa: E402
    Field,
    Index,
    Segments,
    crc32c,
    image,
    write_pack,
)

VALID, INVALID = {}, {}


def run(*command):
    done = subprocess.run([str(part) for part in command], check=False, capture_output=True)
    if done.returncode:
        sys.exit(f"{command}: {done.stderr.decode()}")


# ---- pictures ------------------------------------------------------------------------------------


def picture(seed, width, height, mode="RGB"):
    draw = random.Random(seed)
    n = len(Image.new(mode, (1, 1)).tobytes())
    small = Image.frombytes(mode, (7, 5), draw.randbytes(35 * n))
    return small.resize((width, height), Image.Resampling.BICUBIC)


def saved(pic, kind, **more):
    out = io.BytesIO()
    pic.save(out, kind, **more)
    return out.getvalue()


def jpeg(seed, width, height, mode="RGB", **more):
    return saved(picture(seed, width, height, mode), "JPEG", **{"quality": 85, **more})


def sampled(seed, width, height, sampling):
    """A JPEG with sampling factors that Pillow does not write."""
    pixels = saved(picture(seed, width, height), "PPM")
    done = subprocess.run(["cjpeg", "-quality", "85", "-sample", sampling], input=pixels,
                          check=True, capture_output=True)
    return done.stdout


def exif(orientation):
    tags = Image.Exif()
    tags[0x0112] = orientation
    tags[0x010E] = "a golden picture"
    return tags.tobytes()


def jpegs():
    """Every kind of JPEG there is a way of storing for."""
    profile = bytearray(ImageCms.ImageCmsProfile(ImageCms.createProfile("sRGB")).tobytes())
    profile[24:36] = bytes(12)  # the time at which it was made
    return {
        "colour/420.jpg": jpeg(1, 97, 61, subsampling="4:2:0", exif=exif(6),
                               icc_profile=bytes(profile)),
        "colour/422.jpg": jpeg(2, 40, 33, subsampling="4:2:2", comment=b"a comment"),
        "colour/444.jpg": jpeg(3, 33, 17, subsampling="4:4:4"),
        "colour/440.jpg": sampled(12, 21, 43, "1x2"),
        "colour/large.jpg": jpeg(4, 200, 150, subsampling="4:2:0", quality=93),
        "colour/one.jpg": jpeg(5, 1, 1, subsampling="4:2:0"),
        "colour/progressive.jpg": jpeg(6, 50, 41, progressive=True, optimize=True),
        "colour/restarts.jpg": jpeg(7, 64, 48, restart_marker_blocks=2),
        "colour/trailing.jpg": jpeg(8, 24, 24) + b"trailing bytes",
        "other/411.jpg": sampled(13, 70, 20, "4x1"),
        "other/cmyk.jpg": jpeg(9, 20, 20, "CMYK"),
        "other/grey.jpg": jpeg(10, 50, 41, "L", exif=exif(3)),
        "other/grey_wide.jpg": jpeg(11, 130, 9, "L"),
    }


def others():
    """PNG and WebP of all kinds."""
    return {
        "png/rgb.png": saved(picture(1, 20, 15), "PNG"),
        "png/rgba.png": saved(picture(2, 20, 15, "RGBA"), "PNG"),
        "png/grey.png": saved(picture(3, 9, 15, "L"), "PNG"),
        "png/grey_alpha.png": saved(picture(4, 9, 15, "LA"), "PNG"),
        "png/palette.png": saved(picture(5, 20, 15).quantize(16), "PNG"),
        "png/deep.png": saved(Image.new("I;16", (8, 8), 40000), "PNG"),
        "webp/lossy.webp": saved(picture(6, 31, 17), "WEBP"),
        "webp/lossless.webp": saved(picture(7, 16, 16, "RGBA"), "WEBP", lossless=True),
    }


def store(folder, files):
    for name, data in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(data)
    return folder


# ---- valid packs ---------------------------------------------------------------------------------


def valid(make):
    VALID[make.__name__] = make


def invalid(status, ours, plain):
    """What the C reader's status and message and the plain reader's message have to say."""
    def note(make):
        INVALID[make.__name__] = (make, {"status": status, "says": ours, "plain": plain})
    return note


class Place:
    """Where one pack is made: its sources under .work, the pack at .out."""

    def __init__(self, build, work, out):
        self.build, self.work, self.out = build, work, out

    def pack(self, *sources, more=()):
        """In mode tile, unless `more` has another one: it was the default of the first packs, and
        new programs refuse it."""
        mode = () if "--mode" in more else ("--mode", "tile")
        run(self.build / "penstock", "pack", *sources, "-o", self.out, *mode, *more)


@valid
def tile(place):
    place.pack(store(place.work, jpegs()), more=["--block-samples", "4"])


@valid
def keep(place):
    names = ("440", "one", "progressive", "trailing", "cmyk", "grey_wide")
    files = {k: v for k, v in jpegs().items() if pathlib.Path(k).stem in names}
    place.pack(store(place.work, files),
               more=["--mode", "keep", "--no-index", "--block-samples", "4"])


@valid
def raw(place):
    files = {"a/rgb.jpg": jpeg(1, 30, 25), "a/grey.jpg": jpeg(2, 33, 9, "L"),
             "b/rgba.png": saved(picture(3, 5, 40, "RGBA"), "PNG"),
             "b/runs.png": saved(picture(4, 50, 40), "PNG"),
             "b/turned.jpg": jpeg(5, 16, 8, exif=exif(8))}
    place.pack(store(place.work, files), more=["--mode", "raw", "--block-samples", "2"])


@valid
def mix(place):
    files = {f"{n % 2}/{n}.jpg": jpeg(n, 25, 20) for n in range(8)}
    more = ["--mode", "mix", "--raw-share", "0.5", "--block-samples", "3"]
    place.pack(store(place.work, files), more=more)


@valid
def encode(place):
    files = {"a/large.jpg": jpeg(1, 120, 80, exif=exif(5)), "a/small.jpg": jpeg(2, 30, 20),
             "a/rough.jpg": jpeg(3, 40, 30, quality=20), "b/grey.jpg": jpeg(4, 64, 64, "L"),
             "b/clear.png": saved(picture(5, 50, 50, "RGBA"), "PNG")}
    more = ["--mode", "encode", "--quality", "60", "--max-side", "40", "--block-samples", "4"]
    place.pack(store(place.work, files), more=[*more, "--no-index"])


@valid
def encode_indexed(place):
    files = {"a/large.jpg": jpeg(1, 120, 80, exif=exif(5)), "a/small.jpg": jpeg(2, 30, 8),
             "a/rough.jpg": jpeg(3, 64, 48, quality=20), "b/grey.jpg": jpeg(4, 64, 64, "L"),
             "b/clear.png": saved(picture(5, 50, 50, "RGBA"), "PNG")}
    more = ["--mode", "encode", "--quality", "60", "--max-side", "80", "--block-samples", "4"]
    place.pack(store(place.work, files), more=more)


def to_encode():
    """Small and large ones, gray, turned, with alpha, and one that no mode encodes again."""
    return {"a/large.jpg": jpeg(1, 120, 80, exif=exif(5)), "a/small.jpg": jpeg(2, 30, 8),
            "a/rough.jpg": jpeg(3, 40, 30, quality=20), "b/grey.jpg": jpeg(4, 64, 64, "L"),
            "b/clear.png": saved(picture(5, 50, 50, "RGBA"), "PNG")}


@valid
def encode_webp(place):
    more = ["--mode", "encode", "--codec", "webp", "--quality", "60", "--max-side", "80"]
    place.pack(store(place.work, to_encode()), more=[*more, "--block-samples", "4"])


@valid
def smart(place):
    """The two smallest are raw; the one with alpha is a PNG, the others are JPEGs."""
    more = ["--mode", "smart", "--smart-threshold", "3700", "--quality", "60", "--max-side", "80"]
    place.pack(store(place.work, to_encode()), more=[*more, "--block-samples", "4"])


@valid
def smart_webp(place):
    more = ["--mode", "smart", "--smart-threshold", "3700", "--codec", "webp", "--quality", "60"]
    place.pack(store(place.work, to_encode()), more=[*more, "--block-samples", "4"])


@valid
def indexed(place):
    """Files as they are; those that can have an entry table have one."""
    noise = Image.frombytes("RGB", (120, 90), random.Random(15).randbytes(120 * 90 * 3))
    files = {**jpegs(), "colour/rows.jpg": jpeg(14, 90, 70, restart_marker_rows=1),
             "sampling/422.jpg": jpeg(16, 150, 70, subsampling="4:2:2"),
             "sampling/440.jpg": sampled(17, 70, 150, "1x2"),
             "sampling/444.jpg": jpeg(18, 150, 70, subsampling="4:4:4", exif=exif(6)),
             "sampling/marked.jpg": jpeg(19, 150, 70, restart_marker_blocks=11),
             "sampling/noise.jpg": saved(noise, "JPEG", quality=90)}
    place.pack(store(place.work, files), more=["--mode", "keep", "--block-samples", "4"])


@valid
def indexed_append(place):
    """The first shards are of a pack of tiles; the short block of the second has both."""
    for first, more in ((0, []), (3, ["--append", "--mode", "keep"]), (6, ["--append"])):
        files = {f"{n % 2}/{n}.jpg": jpeg(n, 64, 48) for n in range(first, first + 3)}
        place.pack(store(place.work, files), more=["--block-samples", "2", *more])


@valid
def converted(place):
    """Baseline files made of progressive ones; a small one, and one of CMYK, as they are."""
    scans = {"progressive": True}
    files = {"a/420.jpg": jpeg(1, 97, 61, subsampling="4:2:0", exif=exif(6), **scans),
             "a/422.jpg": jpeg(2, 150, 70, subsampling="4:2:2", comment=b"a comment", **scans),
             "a/444.jpg": jpeg(3, 150, 70, subsampling="4:4:4", **scans),
             "a/baseline.jpg": jpeg(4, 97, 61),
             "b/cmyk.jpg": jpeg(5, 97, 61, "CMYK", **scans),
             "b/grey.jpg": jpeg(6, 130, 61, "L", exif=exif(3), **scans),
             "b/small.jpg": jpeg(7, 30, 8, **scans)}
    more = ["--mode", "keep", "--progressive", "convert", "--block-samples", "4"]
    place.pack(store(place.work, files), more=more)


@valid
def png_webp(place):
    place.pack(store(place.work, others()), more=["--block-samples", "3"])


@valid
def masks(place):
    files = {f"{n}.jpg": jpeg(n, 32, 24) for n in range(4)}
    files.update({f"{n}m.png": saved(picture(n, 32, 24, "L"), "PNG") for n in range(3)})
    files["list.csv"] = (b'path,label,mask,count,score,note\n0.jpg,cat,0m.png,7,0.5,one\n'
                         b'1.jpg,dog,1m.png,-3,1e300,"two, three"\n2.jpg,cat,2m.png,0,-0.25,\n'
                         b'3.jpg,cow,,9223372036854775807,0,"a ""b"""\n')
    store(place.work, files)
    place.pack(place.work / "list.csv", more=["--block-samples", "3"])


@valid
def from_tar(place):
    with tarfile.open(place.work / "a.tar", "w", format=tarfile.USTAR_FORMAT) as tar:
        for n in range(5):
            members = {"jpg": jpeg(n, 24 + n, 16), "cls": str(n % 3).encode(),
                       "json": json.dumps({"n": n}).encode(), "txt": f"text {n}".encode(),
                       "npy": bytes(range(20 * n))}
            for suffix, data in members.items():
                entry = tarfile.TarInfo(f"dir/{n:04}.{suffix}")
                entry.size = len(data)
                tar.addfile(entry, io.BytesIO(data))
    place.pack(place.work / "a.tar", more=["--order", "source", "--block-samples", "2"])


@valid
def in_place(place):
    """Images of a tar inside of the directory of the pack, so that it is kept with the pack."""
    files = place.out / "files"
    files.mkdir(parents=True)
    with tarfile.open(files / "a.tar", "w", format=tarfile.USTAR_FORMAT) as tar:
        for n in range(7):
            photo = saved(picture(n, 20, 14), "PNG") if n == 4 else jpeg(n, 90 + n, 61)
            for suffix, data in (("png" if n == 4 else "jpg", photo), ("cls", b"%d" % (n % 3)),
                                 ("txt", f"text {n}".encode())):
                add_member(tar, f"{n:04}.{suffix}", data)
    os.utime(files / "a.tar", (10**9, 10**9))
    run(place.build / "penstock", "index", files / "a.tar", "-o", place.out, "--block-samples", "2",
        "--shard-bytes", "20000")


def add_member(tar, name, data):
    entry = tarfile.TarInfo(name)
    entry.size = len(data)
    tar.addfile(entry, io.BytesIO(data))


def lacking(path, first, lacks):
    """A tar of five samples; lacks(n) gives the suffixes that sample n has no part for."""
    with tarfile.open(path, "w", format=tarfile.USTAR_FORMAT) as tar:
        for n in range(first, first + 5):
            members = {"jpg": jpeg(n, 24, 16), "cls": str(n % 3).encode(),
                       "txt": f"text {n}".encode() if n != 1 else b"",
                       "json": json.dumps({"n": n}).encode() if n != 1 else b"null",
                       "npy": bytes(range(n))}
            for suffix in (name for name in members if name not in lacks(n)):
                add_member(tar, f"{n}.{suffix}", members[suffix])


FIXED = ["--order", "source", "--block-samples", "2"]


@valid
def missing(place):
    """Samples of a tar that lack parts; what sample 1 has is empty."""
    table = {0: {"txt", "npy"}, 2: {"json"}, 3: {"txt", "jpg"}}
    lacking(place.work / "a.tar", 0, lambda n: table.get(n, set()))
    place.pack(place.work / "a.tar", more=FIXED)


@valid
def missing_append(place):
    """The first shards are of a pack whose samples have all."""
    lacking(place.work / "a.tar", 0, lambda n: set())
    place.pack(place.work / "a.tar", more=FIXED)
    lacking(place.work / "b.tar", 5, lambda n: {"txt"} if n % 2 else {"json", "npy"})
    place.pack(place.work / "b.tar", more=[*FIXED, "--append"])


@valid
def shards(place):
    files = {f"c{n % 3}/{n}.jpg": jpeg(n, 16, 9) for n in range(9)}
    more = ["--block-samples", "2", "--shard-bytes", "1800", "--seed", "7"]
    place.pack(store(place.work, files), more=more)


@valid
def append(place):
    for first, more in ((0, []), (3, ["--append"]), (6, ["--append"])):
        store(place.work, {f"{n % 2}/{n}.jpg": jpeg(n, 16, 9) for n in range(first, first + 3)})
        place.pack(place.work, more=["--block-samples", "2", *more])


@valid
def tasks(place):
    store(place.work, {f"{n % 2}/{n}.jpg": jpeg(n, 16, 9) for n in range(7)})
    run(place.build / "penstock", "plan", place.work, "-o", place.out, "--block-samples", "2")
    for n in range(3):
        place.pack(place.work, more=["--block-samples", "2", "--task", f"{n}/3"])
    run(place.build / "penstock", "finalise", place.out)


@valid
def types(place):
    run(place.build / "tests" / "golden" / "golden_make", "types", place.out)


@valid
def ragged(place):
    """Values of several types with 0 to 5 rows, one of them missing."""
    run(place.build / "tests" / "golden" / "golden_make", "ragged", place.out)


@valid
def clips(place):
    frames = {f"{n}.jpg": jpeg(n, 24, 16, exif=exif(1)) for n in range(4)}
    frames["5.png"] = saved(picture(5, 12, 8), "PNG")
    frames["6.webp"] = saved(picture(6, 12, 8), "WEBP")
    frames["7.jpg"] = jpeg(7, 8, 8, "CMYK")
    store(place.work, frames)
    run(place.build / "tests" / "golden" / "golden_make", "clips", place.out,
        *(place.work / name for name in frames))


def frame_files(names, width=40, height=24):
    """Folders of frames, of different lengths."""
    return {f"{name}/{n + 1:05}.jpg": jpeg(10 * k + n, width, height)
            for k, name in enumerate(names) for n in range(k + 2)}


@valid
def frames_tile(place):
    """As 20BN's lists have them, with times by --fps."""
    store(place.work / "frames", frame_files(("1001", "1002", "1003")))
    store(place.work, {"train.csv": b"1001;Swiping Left\n1002;Stop Sign\n1003;Swiping Left\n"})
    place.pack(place.work / "train.csv", more=["--root", place.work / "frames", "--fps", "12",
                                               "--block-samples", "2"])


@valid
def frames_keep(place):
    store(place.work, frame_files(("up/a", "up/b", "down/c"), 33, 20))
    place.pack(place.work, more=["--kind", "frames", "--mode", "keep", "--no-index",
                                 "--block-samples", "1"])


@valid
def frames_indexed(place):
    store(place.work, frame_files(("up/a", "up/b", "down/c"), 64, 48))
    place.pack(place.work, more=["--kind", "frames", "--mode", "keep", "--block-samples", "1"])


@valid
def videos(place):
    """Whole ones and parts, every clip a block of its own; times as the videos have them."""
    for name, rate, size in (("a.mp4", "25", "48x32"), ("b.avi", "30000/1001", "32x40")):
        run("ffmpeg", "-nostdin", "-loglevel", "error", "-f", "lavfi", "-i",
            f"testsrc2=size={size}:rate={rate}:duration=0.28", "-c:v", "mpeg4", "-q:v", "5",
            "-fflags", "+bitexact", place.work / name)
    rows = "path,label,start,end\na.mp4,wave,,0.12\na.mp4,clap,0.12,\nb.avi,wave,,\n"
    store(place.work, {"list.csv": rows.encode()})
    more = ["--block-samples", "1", "--mode", "encode", "--quality", "80", "--no-index"]
    place.pack(place.work / "list.csv", more=more)


@valid
def kept_videos(place):
    """Videos as they are, a part of one, and frames of another in the block of the last of them."""
    x264 = ["-c:v", "libx264", "-crf", "40", "-pix_fmt", "yuv420p", "-x264-params",
            "open-gop=1:keyint=10:min-keyint=10:scenecut=0:bframes=3:b-pyramid=normal"]
    vfr = ["-vf", "setpts=(N+floor(N/3)*2)/25/TB", "-vsync", "vfr"]
    vp9 = ["-c:v", "libvpx-vp9", "-g", "12", "-crf", "60", "-b:v", "0", "-cpu-used", "8"]
    for name, options in (("a.mp4", x264), ("b.mkv", [*vfr, *x264]), ("d.webm", vp9),
                          ("e/e.mp4", x264)):
        (place.work / name).parent.mkdir(exist_ok=True)
        run("ffmpeg", "-nostdin", "-loglevel", "error", "-f", "lavfi", "-i",
            "testsrc2=size=48x32:rate=25", "-frames:v", "36", *options, "-threads", "1", "-flags",
            "+bitexact", "-fflags", "+bitexact", place.work / name)
    run("ffmpeg", "-nostdin", "-loglevel", "error", "-i", place.work / "e/e.mp4", "-c", "copy",
        "-metadata:s:v:0", "rotate=90", "-fflags", "+bitexact", place.work / "c.mp4")
    rows = ["path,label,start,end", "a.mp4,wave,,", "a.mp4,clap,0.5,1.1", "b.mkv,wave,,",
            "c.mp4,clap,,", "d.webm,wave,,"]
    store(place.work, {"list.csv": "\n".join([*rows, ""]).encode()})
    more = ["--block-samples", "2", "--order", "source"]
    place.pack(place.work / "list.csv", more=[*more, "--mode", "keep"])
    store(place.work, {"more.csv": b"path,label,start,end\ne/e.mp4,clap,0.2,0.4\n"})
    more = ["--mode", "encode", "--quality", "80", "--no-index", "--append"]
    place.pack(place.work / "more.csv", more=more)


TEXT = [Field("text", "text")]


@valid
def unknown_sections(place):
    """Sections and features of a later time that may be ignored; fewer statistics than known."""
    def edit(part, data, shard, block):
        if part == "manifest":
            data[8:16] = struct.pack("<Q", 1 << 40)  # may

    write_pack(place.out, TEXT, [(b"a", {"text": b"hello"}), (b"b", {"text": b""})], edit=edit,
               n_stats=4, sections=[(b"XTRA", 0, b"not known"), (b"ZZZZ", 0, b"")])


@valid
def empty(place):
    write_pack(place.out, TEXT, [], n_stats=0)


# ---- invalid packs: damaged ones -----------------------------------------------------------------


class Damaged:
    """A small pack, with its files in memory to be changed."""

    def __init__(self, place, seed=1):
        work, self.place = place.work / str(seed), place
        # All alike, so that blocks and payloads are equally long and can change places.
        pic = saved(picture(seed, 16, 16, "L"), "JPEG", quality=50, exif=exif(1))
        store(work, {f"p{n}.jpg": pic for n in range(3)})
        rows = "".join(f"p{n}.jpg,note {n}\n" for n in range(3))
        store(work, {"list.csv": f"path,note\n{rows}".encode()})
        out = place.work / f"{seed}.pen"
        more = ["--order", "source", "--block-samples", "1", "--shard-bytes", "1000"]
        run(place.build / "penstock", "pack", work / "list.csv", "-o", out, *more)
        self.manifest = bytearray((out / "manifest").read_bytes())
        n = struct.unpack_from("<Q", self.manifest, 56)[0]
        self.entries = self.section(b"SHRD")[1]
        self.ids = [self.manifest[self.entries + 96 * k :][:16].hex() for k in range(n)]
        assert n == 2, n
        files = (out / name[:2] / f"{name}.shard" for name in self.ids)
        self.shards = [bytearray(file.read_bytes()) for file in files]

    def section(self, kind):
        """Where the entry of a section of the manifest is, and the section."""
        for at in range(128, 128 + 32 * struct.unpack_from("<I", self.manifest, 72)[0], 32):
            if self.manifest[at : at + 4] == kind:
                return at, struct.unpack_from("<Q", self.manifest, at + 8)[0]
        raise KeyError(kind)

    def block(self, shard, number):
        """Where a block begins, how long it is, how long its index is."""
        tail = struct.unpack_from("<Q", self.shards[shard], len(self.shards[shard]) - 56)[0]
        return struct.unpack_from("<QQQ", self.shards[shard], tail + 32 * number)

    def footer(self, shard):
        return len(self.shards[shard]) - 128

    def sign_manifest(self):
        """Makes the checksums of sections and header right again."""
        n = struct.unpack_from("<I", self.manifest, 72)[0]
        for at in range(128, 128 + 32 * n, 32):
            offset, size = struct.unpack_from("<QQ", self.manifest, at + 8)
            crc = crc32c(self.manifest[offset : offset + size])
            struct.pack_into("<I", self.manifest, at + 24, crc)
        struct.pack_into("<I", self.manifest, 12, crc32c(self.manifest[16 : 128 + 32 * n]))

    def sign_shard(self, shard):
        """Makes the sum of the footer and the manifest's digest of the tail right again."""
        data = self.shards[shard]
        at = len(data) - 128
        place = bytes.fromhex(self.ids[shard]) + struct.pack("<5I", 2**32 - 1, 2**32 - 1, 3, 0, 0)
        struct.pack_into("<I", data, at + 12, crc32c(place + data[at + 16 :]))
        tail = struct.unpack_from("<Q", data, at + 72)[0]
        digest = hashlib.sha256(data[tail:]).digest()[:16]
        at = self.entries + 96 * shard + 64
        self.manifest[at : at + 16] = digest
        self.sign_manifest()

    def write(self):
        out = self.place.out
        out.mkdir(parents=True)
        (out / "manifest").write_bytes(self.manifest)
        for name, data in zip(self.ids, self.shards):
            if data is not None:
                (out / name[:2]).mkdir(exist_ok=True)
                (out / name[:2] / f"{name}.shard").write_bytes(data)


def damage(status, ours, plain):
    """A pack that is made and then damaged by the function."""
    def note(make):
        def whole(place):
            pack = Damaged(place)
            make(pack)
            pack.write()
        whole.__name__ = make.__name__
        invalid(status, ours, plain)(whole)
    return note


@damage("E_CORRUPT", "block 1, sample 0 .* field 'image'", "block 1 sample 0 field 0")
def payload_bit(pack):
    offset, _, index_bytes = pack.block(0, 1)
    at = pack.shards[0].rindex(b"\xff\xda", offset + index_bytes, pack.footer(0))
    pack.shards[0][at + 20] ^= 4


@damage("E_CORRUPT", "block 1, offset", "block 1 .*checksum of the index")
def index_bit(pack):
    offset, _, index_bytes = pack.block(0, 1)
    pack.shards[0][offset + index_bytes - 30] ^= 1


@damage("E_CORRUPT", "block 0, offset 64: header checksum", "block 0 .*n_samples")
def block_header_bit(pack):
    pack.shards[0][64 + 12] ^= 1


@damage("E_CORRUPT", "offset 0: the header is damaged", "checksum of the header")
def shard_header_bit(pack):
    pack.shards[1][12] ^= 1


@damage("E_CORRUPT", "keys: checksum", "checksum of the keys")
def keys_bit(pack):
    pack.shards[0][pack.block(0, 1)[0] + pack.block(0, 1)[1]] ^= 1


@damage("E_CORRUPT", "block table: checksum", "digest")
def block_table_bit(pack):
    tail = struct.unpack_from("<Q", pack.shards[0], pack.footer(0) + 72)[0]
    pack.shards[0][tail + 8] ^= 1


@damage("E_CORRUPT", "statistics: checksum", "digest")
def statistics_bit(pack):
    pack.shards[0][pack.footer(0) - 1] ^= 1


@damage("E_CORRUPT", "footer: checksum", "plan_first <= plan_end|checksum of the footer")
def footer_bit(pack):
    pack.shards[0][pack.footer(0) + 96] ^= 64


@damage("E_CORRUPT", "section 0", "checksum of the section 0")
def metadata_bit(pack):
    offset, size, _ = pack.block(0, 1)
    pack.shards[0][offset + size - 3] ^= 1


@damage("E_CORRUPT", "header checksum", "checksum of the manifest")
def manifest_header_bit(pack):
    pack.manifest[24] ^= 1


@damage("E_CORRUPT", "section 'SHRD'", "checksum of the b'SHRD'")
def manifest_section_bit(pack):
    pack.manifest[pack.entries + 3] ^= 1


@damage("E_CORRUPT", "block 0, offset 64: header checksum", "block 0 .* of the block: expected")
def swapped_blocks(pack):
    (a, size, _), (b, other, _) = pack.block(0, 0), pack.block(0, 1)
    assert size == other
    data = pack.shards[0]
    data[a : a + size], data[b : b + size] = data[b : b + size], data[a : a + size]


@damage("E_CORRUPT", "block 0, sample 0 .* field 'note'", "block 0 sample 0 field 1")
def swapped_payloads(pack):
    data = pack.shards[0]
    a, b = data.index(b"note 0"), data.index(b"note 1")
    data[a : a + 6], data[b : b + 6] = b"note 1", b"note 0"


@damage("E_CORRUPT", "expected [0-9]+ bytes, found [0-9]+", "size of the file")
def swapped_shards(pack):
    pack.shards.reverse()


@damage("E_CORRUPT", "footer: checksum", "id of the header")
def shard_of_another_pack(pack):
    other = Damaged(pack.place, seed=2)
    data = other.shards[0]
    # Brought to the same length: only what it is differs.
    place = pack.entries + 48
    struct.pack_into("<Q", pack.manifest, place, len(data))
    pack.shards[0] = data
    pack.sign_manifest()


@damage("E_CORRUPT", "expected [0-9]+ bytes, found", "size of the file")
def cut_shard(pack):
    del pack.shards[1][-1:]


@damage("E_CORRUPT", "expected [0-9]+ bytes, found", "size of the file")
def long_shard(pack):
    pack.shards[1] += b"\0"


@damage("E_CORRUPT", "[.]shard is missing", "No such file")
def missing_shard(pack):
    pack.shards[1] = None


@damage("E_CORRUPT", "the manifest is truncated", "manifest_bytes")
def cut_manifest(pack):
    del pack.manifest[-1:]


@damage("E_CORRUPT", "the manifest is truncated", "manifest_bytes")
def long_manifest(pack):
    pack.manifest += b"\0"


@damage("E_CORRUPT", "too short for a manifest", "end behind 100")
def tiny_manifest(pack):
    del pack.manifest[100:]


@damage("E_FORMAT", "not the manifest of a pack", "magic")
def foreign_manifest(pack):
    pack.manifest[:8] = b"PENGUINS"


@damage("E_FORMAT", "version 0, expected 1; made before the first release", "version == 1")
def version_0(pack):
    struct.pack_into("<I", pack.manifest, 8, 0)


@damage("E_FORMAT", "format version 2, expected 1; a newer penstock", "version == 1")
def version_of_manifest(pack):
    struct.pack_into("<I", pack.manifest, 8, 2)


@damage("E_FORMAT", "format version 2, expected 1; a newer penstock", "version == 1")
def version_of_shard(pack):
    struct.pack_into("<I", pack.shards[0], pack.footer(0) + 8, 2)
    pack.sign_shard(0)


@damage("E_FORMAT", "features 0x10 that", "must == 0")
def unknown_feature(pack):
    struct.pack_into("<Q", pack.manifest, 16, 16)
    pack.sign_manifest()


@damage("E_FORMAT", "section 'SETX' is required", "flags")
def unknown_section(pack):
    at, _ = pack.section(b"SETT")
    pack.manifest[at : at + 8] = b"SETX" + struct.pack("<I", 1)
    pack.sign_manifest()


@damage("E_CORRUPT", "a section occurs twice", "number of SCHM, SHRD|twice")
def section_twice(pack):
    at, _ = pack.section(b"SETT")
    pack.manifest[at : at + 4] = b"SCHM"
    struct.pack_into("<I", pack.manifest, at + 4, 1)
    pack.sign_manifest()


@damage("E_CORRUPT", "do not add up|do not match|larger than", "samples_used|n_blocks")
def too_many_samples(pack):
    struct.pack_into("<Q", pack.manifest, 32, 4)
    struct.pack_into("<Q", pack.manifest, 48, 4)
    pack.sign_manifest()


@damage("E_CORRUPT", "does not fit the manifest", "tail_bytes")
def tail_of_another_length(pack):
    at = pack.entries + 80
    struct.pack_into("<Q", pack.manifest, at, struct.unpack_from("<Q", pack.manifest, at)[0] + 8)
    pack.sign_manifest()


@damage("E_CORRUPT", "do not follow", "blocks_used")
def too_many_blocks_used(pack):
    struct.pack_into("<Q", pack.manifest, pack.entries + 24, 3)
    pack.sign_manifest()


# ---- invalid packs: wrong, and all checksums right -----------------------------------------------

FIELDS = [Field("image", "image"), Field("label", "i64"), Field("note", "text")]


def written(place, edit=None, keys=(b"a", b"b", b"c"), fields=FIELDS, **more):
    """Three samples, each with four rows of raw pixels; the first block has two of them."""
    def no_edit(part, data, shard, block):
        pass

    cut = Segments(0, (6,) * 4, 0, 0, 0, 0, 0)
    pixels = image(bytes(range(24)), 2, 4, segments=cut)
    values = {"image": pixels, "label": 1, "note": b"text"}
    samples = [(key, {field.name: values[field.name] for field in fields}) for key in keys]
    more = {"block_samples": 2, "n_stats": 4, "classes": {1: [b"cat", b"dog"]}, **more}
    write_pack(place.out, fields, samples, edit=edit or no_edit, **more)


def wrong(status, ours, plain):
    """A pack in which the function may change each part before its checksum is made."""
    def note(make):
        def whole(place):
            done = []

            def edit(part, data, shard, block):
                before = bytes(data)
                make(part, data)
                done.append(before != data)

            written(place, edit)
            assert any(done), make.__name__
        whole.__name__ = make.__name__
        invalid(status, ours, plain)(whole)
    return note


@invalid("E_EXISTS|E_CORRUPT", "same key|twice", "number of different keys")
def duplicate_keys(place):
    written(place, keys=(b"a", b"b", b"a"))


@wrong("E_CORRUPT", "occurs twice", "number of different names")
def duplicate_fields(part, data):
    if part == "SCHM":
        data[:] = data.replace(b"\x05note", b"\x05label")
        at = data.index(b"\x05\x00\x00\x04note")
        data[at : at + 8] = b"\x05\x00\x00\x05label"


@wrong("E_CORRUPT", "expected a type from 1 to 8", "field breaks the rule")
def unknown_type(part, data):
    if part == "SCHM":
        data[4] = 9


@wrong("E_CORRUPT", "missing from the list of keys", "keys: expected")
def keys_of_others(part, data):
    if part == "keys":
        data[0] ^= 1


@wrong("E_CORRUPT", "block table does not add up|entry in the block table", "offset")
def overlapping_blocks(part, data):
    if part == "table":
        struct.pack_into("<Q", data, 32, 64)


@wrong("E_CORRUPT", "blocks of 4 samples, expected 2|entry in the block table", "block_samples")
def other_block_samples(part, data):
    if part == "footer":
        struct.pack_into("<Q", data, 40, 4)


@wrong("E_CORRUPT", "payload does not follow", "offset")
def overlapping_payloads(part, data):
    if part == "index" and len(data) > 200:  # the second image at the place of the first
        data[32 + 64 : 32 + 72] = data[32:40]


@wrong("E_CORRUPT", "segment", "lengths of the segments|table breaks the rule|table_bytes")
def wrong_segments(part, data):
    if part == "index":
        at = data.rindex(struct.pack("<III", 0, 4, 1))
        struct.pack_into("<I", data, at + 4, 3)


@wrong("E_CORRUPT", "codec and storage mode do not match", "codec == 4")
def wrong_way_of_storing(part, data):
    if part == "index" and len(data) > 200:
        data[32 + 25] = 0


@wrong("E_CORRUPT", "image with a timestamp", "timestamp")
def timestamp_of_an_image(part, data):
    if part == "index" and len(data) > 200:
        data[32 + 48] = 1


@wrong("E_CORRUPT", "size, orientation or channels", "orientation")
def wrong_orientation(part, data):
    if part == "index" and len(data) > 200:
        data[32 + 26] = 9


@wrong("E_CORRUPT", "key is empty or too long", "not any.zero")
def not_zero(part, data):
    if part == "index":
        data[12] = 1


@wrong("E_CORRUPT", "number of an i64 field", "type of field 2")
def classes_of_a_text(part, data):
    if part == "CLAS":
        data[0] = 2


@wrong("E_CORRUPT", "unused bytes|does not match|larger than", "end behind")
def bytes_of_nothing(part, data):
    if part == "block":
        struct.pack_into("<Q", data, 24, struct.unpack_from("<Q", data, 24)[0] - 4)


# ---- invalid packs: entry tables that cannot be --------------------------------------------------


def entry_table(status, ours, plain):
    """As `wrong`, of one JPEG with an entry table: make(part, data, at) knows where that is."""
    def note(make):
        def whole(place):
            file = jpeg(1, 64, 48, subsampling="4:2:0")
            index = Index(file, 8)
            start = struct.pack("<II", index.jpeg.head_bytes, len(index.firsts))

            def edit(part, data, shard, block):
                make(part, data, data.index(start) if part == "index" else None)

            photo = image(file, 64, 48, codec="jpeg", how="indexed", segments=index)
            write_pack(place.out, [Field("image", "image")], [(b"a", {"image": photo})], edit=edit,
                       n_stats=72)
        whole.__name__ = make.__name__
        invalid(status, ours, plain)(whole)
    return note


@entry_table("E_CORRUPT", "entry table in a pack without such tables", "index breaks the rule")
def entries_without_feature(part, data, at):
    if part in ("manifest", "header"):
        struct.pack_into("<Q", data, 0, 0)


@entry_table("E_CORRUPT", "number of entries does not match", "n_entries")
def entries_too_few(part, data, at):
    if at:
        struct.pack_into("<I", data, at + 4, struct.unpack_from("<I", data, at + 4)[0] - 1)


@entry_table("E_CORRUPT", "number of checksums of an entry table", "index breaks the rule")
def entries_with_too_many_sums(part, data, at):
    if at:
        struct.pack_into("<I", data, at + 8, struct.unpack_from("<I", data, at + 8)[0] + 1)


@entry_table("E_CORRUPT", "intervals of an entry table are out of range", "index breaks the rule")
def entries_too_far_apart(part, data, at):
    if at:
        struct.pack_into("<H", data, at + 12, 9)


@entry_table("E_CORRUPT", "do not add up to the payload", "index breaks the rule")
def entries_behind_the_payload(part, data, at):
    if at:
        struct.pack_into("<I", data, at + 24, 1 << 20)


@entry_table("E_CORRUPT", "does not match a JPEG of its size", "index breaks the rule")
def entries_of_another_sampling(part, data, at):
    if at:
        data[at + 16] = 3


@entry_table("E_CORRUPT", "differs from the channels", "index breaks the rule")
def entries_of_another_colour(part, data, at):
    if at:
        data[16 + 27] = 1


@entry_table("E_CORRUPT", "entry table of a tiled JPEG", "index breaks the rule")
def entries_of_a_tiled_file(part, data, at):
    if at:
        data[16 + 25] = 1


@entry_table("E_CORRUPT", "unknown codec or storage mode", "breaks the rule")
def converted_png(part, data, at):
    if at:
        data[16 + 24], data[16 + 25] = 2, 7


@entry_table("E_CORRUPT", "table missing or unexpected", "image breaks the rule")
def converted_without_entries(part, data, at):
    if at:
        data[16 + 25] = 7
        struct.pack_into("<QQ", data, 16 + 32, 0, 0)


# ---- invalid packs: missing values that cannot be -----------------------------------------------


def optional(status, ours, plain):
    """As `wrong`, of a pack with a text and a number, the text of the second sample missing."""
    def note(make):
        def whole(place):
            fields = [Field("note", "text", optional=True), Field("other", "text")]
            samples = [(b"a", {"note": b"x", "other": b"y"}), (b"b", {"note": None, "other": b""})]
            write_pack(place.out, fields, samples, edit=lambda part, data, *_: make(part, data))
        whole.__name__ = make.__name__
        invalid(status, ours, plain)(whole)
    return note


# The entries of the index: two keys of 16 bytes, two notes of 24, two others of 24.


@optional("E_CORRUPT", "missing value with a non-empty entry", "blob breaks the rule")
def missing_with_bytes(part, data):
    if part == "index":
        data[32 + 20] = 1


@optional("E_CORRUPT", "entry is not valid", "blob breaks the rule")
def missing_in_a_required_field(part, data):
    if part == "index":
        data[32 + 48 + 24 + 20] = 1


@optional("E_CORRUPT", "entry is not valid", "blob breaks the rule")
def unknown_flag_of_an_entry(part, data):
    if part == "index":
        data[32 + 24 + 20] = 2


@optional("E_CORRUPT", "features do not match the fields", "must, by the flags")
def missing_without_feature(part, data):
    if part == "manifest":
        data[0] = 0


@optional("E_CORRUPT", "features do not match the fields", "must, by the flags")
def feature_without_optional(part, data):
    if part == "SCHM":
        data[5] = 0


@wrong("E_CORRUPT", "the header is damaged", "header breaks the rule")
def feature_of_the_shard_alone(part, data):
    if part == "header":
        data[0] = 1


@wrong("E_CORRUPT", "flags 0x2 are not valid for type image", "field breaks the rule")
def optional_image(part, data):
    if part == "SCHM":
        data[5] = 2


# ---- invalid packs: rows that cannot be ---------------------------------------------------------


def rows(status, ours, plain, dims=(0, 4), flags=4):
    """As `wrong`, of a pack with boxes: two in the first sample, one in the second."""
    def note(make):
        def whole(place):
            samples = [(b"a", {"boxes": [0.5] * 8}), (b"b", {"boxes": [1.5] * 4})]
            write_pack(place.out, [Field("boxes", "f32", dims, flags=flags)], samples,
                       edit=lambda part, data, *_: make(part, data))
        whole.__name__ = make.__name__
        invalid(status, ours, plain)(whole)
    return note


@rows("E_CORRUPT", "value with an incomplete row", "bytes are no rows", dims=(0, 5), flags=0)
def rows_that_are_incomplete(part, data):
    pass


@rows("E_CORRUPT", "features do not match the fields", "must, by the flags")
def rows_without_feature(part, data):
    if part == "manifest":
        data[0] = 0


@rows("E_CORRUPT|E_INVALID", "expected f32.*for boxes", "field breaks the rule", dims=(0, 2))
def boxes_of_two_numbers(part, data):
    pass


@rows("E_CORRUPT|E_INVALID", "expected f32.*for boxes", "field breaks the rule", flags=32)
def relative_without_coordinates(part, data):
    pass


# ---- all -----------------------------------------------------------------------------------------


def make_all(build, top):
    expect = {}
    for kind, makers in (("valid", VALID), ("invalid", INVALID)):
        (top / kind).mkdir(parents=True, exist_ok=True)
        for name, make in makers.items():
            if kind == "invalid":
                make, expect[name] = make
            if (top / kind / f"{name}.pen").exists():
                continue
            with tempfile.TemporaryDirectory() as work:
                make(Place(build, pathlib.Path(work), top / kind / f"{name}.pen"))
            shutil.rmtree(top / kind / f"{name}.pen" / ".work", ignore_errors=True)
    text = json.dumps(expect, indent=1, sort_keys=True)
    (top / "EXPECT.json").write_text(text + "\n", encoding="utf-8")
    sums = []
    for file in sorted(file for kind in ("valid", "invalid") for file in (top / kind).rglob("*")):
        if file.is_file():
            sums.append(f"{hashlib.sha256(file.read_bytes()).hexdigest()}  {file.relative_to(top)}")
    (top / "MANIFEST.sha256").write_text("\n".join(sums) + "\n", encoding="utf-8")


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", type=pathlib.Path, default=ROOT / "build")
    parser.add_argument("--out", type=pathlib.Path, default=ROOT / "tests" / "golden")
    options = parser.parse_args()
    make_all(options.build.resolve(), options.out.resolve())


if __name__ == "__main__":
    main()
