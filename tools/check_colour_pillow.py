#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compares the colour kernels of src/dsp with Pillow's ImageEnhance and its HSV.

    check_colour_pillow.py BUILD/tests/unit/test_dsp_colour [COUNT]

COUNT random images (default 200) for each operation; results may be 2 apart, and the largest
distance is printed. With --write-golden PATH it writes tests/unit/colour_golden.h anew. The tier is
that of PENSTOCK_CPU. Needs Pillow; exits 77 without it.
"""

import random
import subprocess
import sys

try:
    from PIL import Image, ImageEnhance
except ImportError:
    print("skipped: Pillow is not installed")
    sys.exit(77)

KINDS = ["brightness", "contrast", "saturation", "hue", "grey"]
GOLDEN = [
    *((kind, factor) for kind in range(3) for factor in (0, 26214, 65536, 91750, 196608)),
    *((3, shift) for shift in (0, 1, 85, 128, 255)),
    (4, 0),
]


def generate(n):
    """The same bytes as fill() in test_dsp_colour.c."""
    out, seed = bytearray(n), 7
    for i in range(n):
        seed = (seed * 1664525 + 1013904223) & 0xFFFFFFFF
        out[i] = seed >> 24
    return bytes(out)


def by_pillow(pixels, kind, factor):
    image = Image.frombytes("RGB", (len(pixels) // 3, 1), pixels)
    if kind == 3:
        h, s, v = image.convert("HSV").split()
        h = h.point([(i + factor) & 255 for i in range(256)])
        return Image.merge("HSV", (h, s, v)).convert("RGB").tobytes()
    if kind == 4:
        return image.convert("L").convert("RGB").tobytes()
    enhance = (ImageEnhance.Brightness, ImageEnhance.Contrast, ImageEnhance.Color)[kind]
    return enhance(image).enhance(factor / 65536).tobytes()


def by_penstock(program, pixels, kind, factor):
    return subprocess.run(
        [program, "--pipe", str(kind), str(factor), str(len(pixels) // 3)],
        input=pixels,
        stdout=subprocess.PIPE,
        check=True,
    ).stdout


def write_golden(path):
    with open(path, "w") as f:
        f.write("/* SPDX-License-Identifier: Apache-2.0 */\n")
        f.write("/* Made by tools/check_colour_pillow.py: 40 pixels after each operation. */\n")
        for kind, factor in GOLDEN:
            out = by_pillow(generate(120), kind, factor)
            rows = [", ".join(map(str, out[i : i + 24])) for i in range(0, 120, 24)]
            f.write("{%d, %d, {%s}},\n" % (kind, factor, ",\n    ".join(rows)))


def random_pixels(rng):
    n = rng.randint(1, 3000)
    if rng.random() < 0.3:  # near to grey, where hues are coarse
        pixels = bytearray()
        for _ in range(n):
            base = rng.randint(4, 250)
            pixels += bytes(base + rng.randint(-4, 4) for _ in range(3))
        return bytes(pixels)
    return rng.randbytes(n * 3)


def main():
    if sys.argv[1] == "--write-golden":
        write_golden(sys.argv[2])
        return
    program = sys.argv[1]
    count = int(sys.argv[2]) if len(sys.argv) > 2 else 200
    rng = random.Random(1)
    failed = 0
    for kind, name in enumerate(KINDS):
        worst = 0
        for _ in range(count):
            pixels = random_pixels(rng)
            factor = rng.randint(0, 255) if kind == 3 else rng.randint(0, 3 << 16)
            ours = by_penstock(program, pixels, kind, factor)
            theirs = by_pillow(pixels, kind, factor)
            distance = max(abs(a - b) for a, b in zip(ours, theirs, strict=True))
            worst = max(worst, distance)
            failed += distance > 2
        print("%s: at most %d apart" % (name, worst))
    print("%d passed, %d failed" % (count * len(KINDS) - failed, failed))
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
