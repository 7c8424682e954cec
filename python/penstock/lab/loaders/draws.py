# SPDX-License-Identifier: Apache-2.0
"""The box that random_resized_crop of penstock draws for a sample, as docs/reference describes it:
a number is addressed by seed, epoch, sample, operation and the number of the draw. It is written
here a second time, so that a check of pixels does not ask the loader that it checks."""

from __future__ import annotations

import math

M32, M64 = 2**32 - 1, 2**64 - 1
SCALE, RATIO = (0.08, 1.0), (3 / 4, 4 / 3)
OPERATION = 6 << 16  # draw_id of random_resized_crop, which never changes; the first one


def philox(key: tuple[int, int], counter: list[int]) -> list[int]:
    """Philox4x32-10 of Salmon et al., 2011."""
    k, c = list(key), list(counter)
    for _ in range(10):
        left, right = 0xD2511F53 * c[0], 0xCD9E8D57 * c[2]
        c = [right >> 32 ^ c[1] ^ k[0], right & M32, left >> 32 ^ c[3] ^ k[1], left & M32]
        k = [k[0] + 0x9E3779B9 & M32, k[1] + 0xBB67AE85 & M32]
    return c


def mix(x: int) -> int:
    for _ in range(2):
        x = (x ^ x >> 32) * 0xD6E8FEB86659FD93 & M64
    return x ^ x >> 32


class Draw:
    """The numbers of the operation on one sample."""

    def __init__(self, seed: int, epoch: int, sample: int):
        key = mix(mix(seed + 0x9E3779B97F4A7C15 & M64) ^ (epoch + 0x2545F4914F6CDD1D & M64))
        self.key = key & M32, key >> 32
        self.place = [sample & M32, sample >> 32, OPERATION]
        self.n = 0

    def bits(self) -> int:
        x = philox(self.key, [*self.place, self.n])
        self.n += 1
        return x[0] | x[1] << 32

    def uniform(self, low: float, high: float) -> float:
        return low + (high - low) * ((self.bits() >> 11) / 2**53)

    def below(self, n: int) -> int:
        while True:
            wide = self.bits() * n
            if wide & M64 >= 2**64 % n:
                return wide >> 64


def box_of(seed: int, epoch: int, sample: int, width: int, height: int) -> list[int]:
    """x, y, w, h of the box that is drawn for this sample of an image of this size."""
    draw = Draw(seed, epoch, sample)
    for _ in range(10):
        area = width * height * draw.uniform(*SCALE)
        aspect = math.exp(draw.uniform(math.log(RATIO[0]), math.log(RATIO[1])))
        w, h = round(math.sqrt(area * aspect)), round(math.sqrt(area / aspect))
        if 0 < w <= width and 0 < h <= height:
            y = draw.below(height - h + 1)
            x = draw.below(width - w + 1)
            return [x, y, w, h]
    w, h = width, height
    if w / h < RATIO[0]:
        h = max(1, round(w / RATIO[0]))
    elif w / h > RATIO[1]:
        w = max(1, round(h * RATIO[1]))
    return [(width - w) // 2, (height - h) // 2, w, h]
