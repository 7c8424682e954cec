#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Make the golden packs: small ones that every reader has to read for ever.

    make_packs.py [--build DIR] [--out DIR]

The bytes depend on the versions of libjpeg, Pillow, ffmpeg and others, so this is run once for a
format and its result is kept in tests/golden: valid/NAME.pen and MANIFEST.sha256.
tests/python/test_golden.py reads them, and damages them for packs that readers have to refuse.

Those of version 1 are there: every later penstock has to read them as they are. What is there is
left alone; only packs with new names are made, for features that come later. Packs of tiles cannot
be made any more: the program that wrote them is from before
docs/explanation/adr/0003-jpegs-with-an-entry-index.md, and what is described here is
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

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests" / "python"))
from plain_writer import Field, write_pack  # noqa: E402

VALID = {}


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


# ---- all -----------------------------------------------------------------------------------------


def make_all(build, top):
    (top / "valid").mkdir(parents=True, exist_ok=True)
    for name, make in VALID.items():
        out = top / "valid" / f"{name}.pen"
        if out.exists():
            continue
        with tempfile.TemporaryDirectory() as work:
            make(Place(build, pathlib.Path(work), out))
        shutil.rmtree(out / ".work", ignore_errors=True)
    sums = []
    for file in sorted((top / "valid").rglob("*")):
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
