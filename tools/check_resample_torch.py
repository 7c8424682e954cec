#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compares src/dsp/resample.c with torch, bit for bit.

    check_resample_torch.py BUILD/tests/unit/test_dsp_resample [COUNT]

Resizes COUNT random images (default 500) with both, and the images behind the hashes of
tests/unit/resample_golden.h; with --write-golden PATH it writes that file anew from what torch
gives.
Needs torch; exits 77 without it.
"""

import random
import subprocess
import sys

try:
    import torch
except ImportError:
    print("skipped: torch is not installed")
    sys.exit(77)

BILINEAR, NEAREST = 0, 1

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


def by_torch(pixels, case, channels_last):
    src_w, src_h, channels, dst_w, dst_h, how = case
    t = torch.frombuffer(bytearray(pixels), dtype=torch.uint8).reshape(1, src_h, src_w, channels)
    t = t.permute(0, 3, 1, 2)  # a view: channels-last memory
    if not channels_last:
        t = t.contiguous()
    options = dict(mode="bilinear", antialias=True) if how == BILINEAR else dict(mode="nearest")
    try:
        out = torch.nn.functional.interpolate(t, size=(dst_h, dst_w), **options)
    except RuntimeError as e:  # some images one pixel wide trip an assertion of torch's own
        if "INTERNAL ASSERT" not in str(e):
            raise
        return None
    return out.permute(0, 2, 3, 1).contiguous().numpy().tobytes()


def by_penstock(program, pixels, case):
    return subprocess.run(
        [program, "--pipe", *map(str, case)], input=pixels, stdout=subprocess.PIPE, check=True
    ).stdout


def random_case(rng):
    def side():
        return rng.choice([rng.randint(1, 40), rng.randint(1, 300), rng.randint(200, 1200)])

    how = NEAREST if rng.random() < 0.2 else BILINEAR
    return side(), side(), rng.choice([1, 3, 3, 3, 4]), side(), side(), how


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
    if sys.argv[1] == "--write-golden":
        write_golden(sys.argv[2])
        return
    program = sys.argv[1]
    rng = random.Random(1)
    count = int(sys.argv[2]) if len(sys.argv) > 2 else 500
    cases = GOLDEN + [random_case(rng) for _ in range(count)]
    failed = skipped = 0
    for case in cases:
        pixels = rng.randbytes(case[0] * case[1] * case[2])
        ours = by_penstock(program, pixels, case)
        theirs = [by_torch(pixels, case, last) for last in (False, True)]
        if theirs == [None, None]:
            skipped += 1
        elif any(t is not None and t != ours for t in theirs):
            print("differs: %d x %d of %d to %d x %d, filter %d" % case)
            failed += 1
    print("%d passed, %d failed, %d skipped" % (len(cases) - failed - skipped, failed, skipped))
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
