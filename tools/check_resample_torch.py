#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compares the resampling of src/dsp with torch, bit for bit, and its box filter with Pillow.

    check_resample_torch.py BUILD/tests/unit/test_dsp_resample [COUNT]

Resizes COUNT random images (default 500) with both: all filters, windows, flips, both of torch's
memory formats; and the images behind the hashes of tests/unit/resample_golden.h. With
--write-golden PATH it writes that file anew from what torch gives. The tier is that of
PENSTOCK_CPU.
Needs torch, and Pillow for the box filter; does what it can with one of them, and exits 77 without
either.
"""

import random
import struct
import subprocess
import sys

try:
    import torch
except ImportError:
    torch = None
try:
    from PIL import Image
except ImportError:
    Image = None

BILINEAR, NEAREST, BICUBIC, LANCZOS, BOX = range(5)
MODES = {BILINEAR: "bilinear", BICUBIC: "bicubic", LANCZOS: "lanczos"}

GOLDEN = [
    (1, 1, 1, 1, 1, BILINEAR),
    (1, 1, 3, 7, 5, BILINEAR),
    (7, 5, 3, 1, 1, BILINEAR),
    (500, 375, 3, 224, 224, BILINEAR),
    (500, 375, 3, 341, 256, BILINEAR),
    (333, 500, 3, 256, 384, BILINEAR),
    (64, 48, 3, 224, 224, BILINEAR),
    (97, 61, 1, 40, 90, BILINEAR),
    (97, 61, 4, 40, 25, BILINEAR),
    (97, 61, 2, 130, 25, BILINEAR),
    (97, 61, 3, 97, 30, BILINEAR),
    (97, 61, 3, 31, 61, BILINEAR),
    (97, 61, 3, 97, 61, BILINEAR),
    (2000, 3, 3, 2, 3, BILINEAR),
    (3, 2000, 3, 3, 7, BILINEAR),
    (1500, 1, 1, 257, 1, BILINEAR),
    (255, 255, 4, 256, 256, BILINEAR),
    (256, 256, 3, 255, 255, BILINEAR),
    (97, 61, 1, 40, 90, NEAREST),
    (97, 61, 3, 194, 122, NEAREST),
    (97, 61, 3, 97, 30, NEAREST),
    (500, 375, 3, 224, 224, NEAREST),
    (13, 11, 4, 131, 177, NEAREST),
    (7, 5, 3, 1, 1, BICUBIC),
    (500, 375, 3, 224, 224, BICUBIC),
    (64, 48, 3, 224, 224, BICUBIC),
    (97, 61, 1, 40, 90, BICUBIC),
    (97, 61, 4, 130, 25, BICUBIC),
    (2000, 3, 3, 2, 3, BICUBIC),
    (7, 5, 3, 1, 1, LANCZOS),
    (500, 375, 3, 224, 224, LANCZOS),
    (64, 48, 3, 224, 224, LANCZOS),
    (97, 61, 1, 40, 90, LANCZOS),
    (97, 61, 4, 130, 25, LANCZOS),
    (2000, 3, 3, 2, 3, LANCZOS),
]


def generate(n, seed):
    """The same bytes as fill() in test_dsp_resample.c."""
    out = bytearray(n)
    for i in range(n):
        seed = (seed * 1664525 + 1013904223) & 0xFFFFFFFF
        out[i] = seed >> 24
    return bytes(out)


def fnv(data):
    h = 0xCBF29CE484222325
    for b in data:
        h = ((h ^ b) * 0x100000001B3) & 0xFFFFFFFFFFFFFFFF
    return h


def by_torch(pixels, case, channels_last, part=None):
    """The whole result, or a part (x, y, w, h, flip_x, flip_y) of it."""
    src_w, src_h, channels, dst_w, dst_h, how = case
    t = torch.frombuffer(bytearray(pixels), dtype=torch.uint8).reshape(1, src_h, src_w, channels)
    t = t.permute(0, 3, 1, 2)  # a view: channels-last memory
    if not channels_last:
        t = t.contiguous()
    options = dict(mode="nearest") if how == NEAREST else dict(mode=MODES[how], antialias=True)
    try:
        out = torch.nn.functional.interpolate(t, size=(dst_h, dst_w), **options)
    except RuntimeError as e:  # some images one pixel wide trip an assertion of torch's own
        if "INTERNAL ASSERT" not in str(e):
            raise
        return None
    if part:
        x, y, w, h, flip_x, flip_y = part
        out = out[:, :, y : y + h, x : x + w]
        out = out.flip([d for d, on in ((3, flip_x), (2, flip_y)) if on])
    return out.permute(0, 2, 3, 1).contiguous().numpy().tobytes()


def by_pillow(pixels, case, part):
    src_w, src_h, channels, dst_w, dst_h, _ = case
    mode = {1: "L", 3: "RGB", 4: "RGBX"}[channels]
    image = Image.frombytes(mode, (src_w, src_h), pixels)
    image = image.resize((dst_w, dst_h), Image.Resampling.BOX)
    x, y, w, h, flip_x, flip_y = part
    image = image.crop((x, y, x + w, y + h))
    if flip_x:
        image = image.transpose(Image.Transpose.FLIP_LEFT_RIGHT)
    if flip_y:
        image = image.transpose(Image.Transpose.FLIP_TOP_BOTTOM)
    return image.tobytes()


class Program:
    """test_dsp_resample --pipe, which answers one request after another."""

    def __init__(self, path):
        self.process = subprocess.Popen(
            [path, "--pipe"], stdin=subprocess.PIPE, stdout=subprocess.PIPE
        )

    def ask(self, pixels, case, part, rows):
        src_w, src_h, channels, dst_w, dst_h, how = case
        x, y, w, h, flip_x, flip_y = part
        head = (src_w, src_h, dst_w, dst_h, x, y, w, h, channels, how, flip_x, flip_y, rows)
        self.process.stdin.write(struct.pack("<13I", *head) + pixels)
        self.process.stdin.flush()
        return self.process.stdout.read(w * h * channels)


def random_case(rng, filters):
    def side():
        return rng.choice([rng.randint(1, 40), rng.randint(1, 300), rng.randint(200, 1200)])

    src_w, src_h = side(), side()
    dst_w, dst_h = (src_w if rng.random() < 0.05 else side()), side()
    if rng.random() < 0.05:
        dst_h = src_h
    return src_w, src_h, rng.choice([1, 3, 3, 3, 4]), dst_w, dst_h, rng.choice(filters)


def random_part(rng, case):
    dst_w, dst_h = case[3:5]
    if rng.random() < 0.3:
        return 0, 0, dst_w, dst_h, rng.randint(0, 1), rng.randint(0, 1)
    x, y = rng.randrange(dst_w), rng.randrange(dst_h)
    w, h = rng.randint(1, dst_w - x), rng.randint(1, dst_h - y)
    return x, y, w, h, rng.randint(0, 1), rng.randint(0, 1)


def differs(ours, pixels, case, part):
    """None when there is nothing to compare with."""
    if case[5] == BOX:
        theirs = by_pillow(pixels, case, part)
        return len(ours) != len(theirs) or max(abs(a - b) for a, b in zip(ours, theirs)) > 1
    both = [by_torch(pixels, case, last, part) for last in (False, True)]
    if both == [None, None]:
        return None
    return any(t is not None and t != ours for t in both)


def write_golden(path):
    with open(path, "w") as f:
        f.write("/* SPDX-License-Identifier: Apache-2.0 */\n")
        f.write(
            "/* Made by tools/check_resample_torch.py from what torch %s gives. */\n"
            % torch.__version__.split("+")[0]
        )
        for i, case in enumerate(GOLDEN):
            src_w, src_h, channels = case[:3]
            out = by_torch(generate(src_w * src_h * channels, i + 1), case, True)
            f.write("{%d, %d, %d, %d, %d, %d, 0x%016xu},\n" % (*case, fnv(out)))


def main():
    if torch is None and Image is None:
        print("skipped: neither torch nor Pillow is installed")
        sys.exit(77)
    if sys.argv[1] == "--write-golden":
        write_golden(sys.argv[2])
        return
    program = Program(sys.argv[1])
    rng = random.Random(1)
    count = int(sys.argv[2]) if len(sys.argv) > 2 else 500
    filters = [NEAREST, *MODES, *MODES] if torch else []
    filters += [BOX] if Image else []
    cases = [(c, (0, 0, c[3], c[4], 0, 0)) for c in GOLDEN if c[5] in filters]
    for _ in range(count):
        case = random_case(rng, filters)
        cases.append((case, random_part(rng, case)))
    failed = skipped = 0
    for case, part in cases:
        pixels = rng.randbytes(case[0] * case[1] * case[2])
        ours = program.ask(pixels, case, part, rng.choice([1, 7, 16, 4096]))
        result = differs(ours, pixels, case, part)
        if result is None:
            skipped += 1
        elif result:
            print("differs: %d x %d of %d to %d x %d, filter %d, part %s" % (*case, part))
            failed += 1
    print("%d passed, %d failed, %d skipped" % (len(cases) - failed - skipped, failed, skipped))
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
