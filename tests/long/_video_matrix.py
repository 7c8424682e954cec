# SPDX-License-Identifier: Apache-2.0
"""What ffmpeg can write of the codecs that packs keep: combinations of codec, container, key
frames, B-frames, times, rotation, pixel format, colors and size, and the options for each.

Key frames, B-frames and containers are combined completely. Of all other properties, every pair of
values that can be combined is in at least one video.
"""

import collections
import itertools
import random

Case = collections.namedtuple("Case", "container gop b rate turn pixels color size")
MP4 = ("mp4", "mov")  # they have a rotation
EVEN = ("64x48", "62x46", "66x50")
GOPS = (1, 12, 48, 250)


def formats(kinds, depths):
    return tuple(kind + depth for depth in depths for kind in kinds)


PLANAR = ("yuv420p", "yuv422p", "yuv444p")
CODECS = {
    "h264": {
        "container": ("mp4", "mov", "mkv"), "b": ("none", "flat", "pyramid", "open"),
        "pixels": (*formats((*PLANAR, "gray"), ("", "10le")),), "size": (*EVEN, "65x49")},
    "hevc": {
        "container": ("mp4", "mov", "mkv"), "b": ("none", "flat", "pyramid", "open"),
        "pixels": formats((*PLANAR, "gray"), ("", "10le", "12le")), "size": (*EVEN, "65x49")},
    "vp8": {
        "container": ("mkv", "webm"), "b": ("none", "hidden"), "pixels": ("yuv420p",),
        "size": (*EVEN, "65x49")},
    "vp9": {
        "container": ("mp4", "mkv", "webm"), "b": ("none", "hidden"),
        "pixels": formats(PLANAR, ("", "10le", "12le")), "size": (*EVEN, "65x49")},
    "av1": {
        "container": ("mp4", "mkv", "webm"), "b": ("none", "hidden", "open"),
        "pixels": formats((*PLANAR, "gray"), ("", "10le", "12le")),
        "size": ("64x64", "66x70", "65x49")},
    "mpeg4": {
        "container": ("mp4", "mov", "mkv"), "b": ("none", "flat", "closed", "quarter"),
        "pixels": ("yuv420p",), "size": (*EVEN, "65x49")},
    "mjpeg": {
        "container": ("mov", "mkv", "mp4"), "gop": (1,), "b": ("none",),
        "pixels": (*PLANAR, "yuvj420p", "yuvj422p", "yuvj444p"), "size": (*EVEN, "65x49")},
}
SHARED = {
    "gop": GOPS, "rate": ("constant", "variable"), "turn": (0, 90, 180, 270),
    "color": ("tv", "tv bt709", "tv smpte170m", "pc", "pc bt2020nc"),
}
B_FRAMES = {
    "h264": {"none": "bframes=0", "flat": "bframes=2:b-pyramid=none",
             "pyramid": "bframes=4:b-pyramid=normal:b-adapt=0",
             "open": "bframes=3:b-pyramid=normal:open-gop=1"},
    "hevc": {"none": "bframes=0:open-gop=0", "flat": "bframes=2:b-pyramid=0:open-gop=0",
             "pyramid": "bframes=4:b-pyramid=1:b-adapt=0:open-gop=0",
             "open": "bframes=4:open-gop=1"},
    "vpx": {"none": ("-auto-alt-ref", "0", "-lag-in-frames", "0"),
            "hidden": ("-auto-alt-ref", "1", "-lag-in-frames", "16")},
    "svt": {"none": "pred-struct=1", "hidden": "pred-struct=2", "open": "irefresh-type=1"},
    "aom": {"none": ("-usage", "realtime", "-lag-in-frames", "0"),
            "hidden": ("-usage", "good", "-lag-in-frames", "19")},
    "mpeg4": {"none": (), "flat": ("-bf", "2"), "quarter": ("-bf", "1", "-flags", "+qpel+mv4"),
              "closed": ("-bf", "4", "-flags", "+cgop", "-sc_threshold", "1000000000")},
}


def is_svt(case):
    """SVT-AV1 writes two pixel formats and even sizes from 64; libaom writes the others."""
    return case.pixels in ("yuv420p", "yuv420p10le") and case.size != "65x49"


def can_be_written(codec, case):
    if case.turn and case.container not in MP4:
        return False
    if case.gop == 1 and case.b != "none":
        return False
    if codec in ("h264", "hevc") and case.size == "65x49":
        return case.pixels.startswith(("yuv444p", "gray"))
    if codec == "av1" and case.b == "open":
        return is_svt(case)
    # yuvj420p and the like are what ffmpeg calls 4:2:0 of the full range.
    return codec != "mjpeg" or ("j" in case.pixels) == case.color.startswith("pc")


def pairs(case):
    return set(itertools.combinations(enumerate(case), 2))


def combinations(codec, seed=1):
    """The cases of a codec."""
    values = {**SHARED, **CODECS[codec]}
    every = [case for case in (Case(*c) for c in itertools.product(
        *(values[name] for name in Case._fields))) if can_be_written(codec, case)]
    dice = random.Random(f"{codec} {seed}")
    every = dice.sample(every, min(4000, len(every)))  # enough that every pair is among them
    left = set().union(*map(pairs, every))
    by_pair = collections.defaultdict(list)
    by_shape = collections.defaultdict(list)
    for case in every:
        by_shape[case[:3]].append(case)
        for pair in pairs(case):
            by_pair[pair].append(case)
    chosen = []

    def choose(among):
        among = dice.sample(among, min(40, len(among)))
        chosen.append(max(among, key=lambda case: len(pairs(case) & left)))
        left.difference_update(pairs(chosen[-1]))

    for shape in sorted(by_shape):
        choose(by_shape[shape])
    while left:
        choose(by_pair[min(left, key=repr)])
    return chosen


def coder(codec, case):
    gop, threads = str(case.gop), ("-threads", "1")
    if codec == "h264":
        return ("-c:v", "libx264", *threads, "-preset", "veryfast", "-x264-params",
                f"keyint={gop}:min-keyint={gop}:scenecut=0:{B_FRAMES['h264'][case.b]}")
    if codec == "hevc":
        return ("-c:v", "libx265", "-preset", "ultrafast", "-x265-params",
                f"log-level=none:pools=none:frame-threads=1:keyint={gop}:min-keyint={gop}:"
                f"scenecut=0:{B_FRAMES['hevc'][case.b]}")
    if codec in ("vp8", "vp9"):
        name = "libvpx" if codec == "vp8" else "libvpx-vp9"
        return ("-c:v", name, *threads, "-deadline", "good", "-cpu-used", "5", "-b:v", "200k",
                "-g", gop, *B_FRAMES["vpx"][case.b])
    if codec == "av1" and is_svt(case):
        return ("-c:v", "libsvtav1", "-preset", "12", "-g", gop, "-svtav1-params",
                f"lp=1:{B_FRAMES['svt'][case.b]}")
    if codec == "av1":
        return ("-c:v", "libaom-av1", *threads, "-cpu-used", "8", "-g", gop,
                *B_FRAMES["aom"][case.b])
    more = B_FRAMES["mpeg4"][case.b] if codec == "mpeg4" else ("-strict", "unofficial")
    return ("-c:v", codec, *threads, "-q:v", "4", "-g", gop, *more)


def options(codec, case):
    """Of ffmpeg, between its input and the name of the file."""
    span, _, matrix = case.color.partition(" ")
    color = ("-color_range", span, *(("-colorspace", matrix) if matrix else ()))
    rate = ("-vf", "setpts=(N+floor(N/3)*2)/25/TB", "-vsync", "vfr")
    return (*(rate if case.rate == "variable" else ()), *coder(codec, case),
            "-pix_fmt", case.pixels, *color)


def name(codec, case):
    words = [codec, f"gop{case.gop}", case.b, case.rate, f"{case.turn}deg", case.pixels,
             case.color.replace(" ", "-"), case.size]
    return f"{'_'.join(words)}.{case.container}"


def all_cases():
    """(codec, case) of all codecs."""
    return [(codec, case) for codec in CODECS for case in combinations(codec)]
