# SPDX-License-Identifier: Apache-2.0
"""FFCV's grid of sizes: encodings relative to raw pixels, for each longest side."""

from __future__ import annotations

from ..images.sizes import Parameters, Sizes
from .figure import Figure, Options, Stopwatch

SIDES = (256, 384, 512, 1600)
COMPARED = SIDES.index(512)
SAMPLE = 200
WHY = "other photographs have more detail for each pixel, and a pack has indexes of its JPEG data"
# GB of ImageNet there.
RAW = (169.79, 371.20, 616.18, 788.97)
GRID = {
    "jpeg50": (9.23, 16.14, 26.35, 30.75), "jpeg90": (22.01, 40.31, 65.47, 74.98),
    "jpeg100": (57.00, 110.21, 176.65, 198.53), "mix50": (49.59, 102.29, 173.92, 221.76),
    "mix90": (58.36, 124.74, 202.04, 251.66), "mix100": (84.91, 176.43, 285.67, 350.72),
}


def measure(options: Options) -> dict[str, list[float]]:
    """Bytes for each encoding and side."""
    chosen = Parameters(source=options.photos, encodings=(*GRID, "raw"), sides=SIDES,
                        sample=SAMPLE, fidelity=0)
    asked = Sizes(chosen, options.folder("ffcv-sizes"))
    try:
        return {encoding: [float(asked.open({"encoding": encoding, "side": side}).turn(0)["bytes"])
                           for side in SIDES] for encoding in chosen.encodings}
    finally:
        asked.close()


def rows(found: dict[str, list[float]], command: str, seconds: float) -> list[Figure]:
    made = []
    for encoding, sizes in GRID.items():
        there = [size / raw for size, raw in zip(sizes, RAW)]
        ours = [size / raw for size, raw in zip(found[encoding], found["raw"])]
        texts = [" / ".join(f"{value:.3f}" for value in values) for values in (there, ours)]
        note = (f"estimated from {SAMPLE} photographs, which are not ImageNet's; packs with their "
                "indexes. ours / published is that of the longest side 512")
        made.append(Figure(f"size relative to raw pixels, {encoding}, longest side "
                           f"{' / '.join(map(str, SIDES))}", texts[0], texts[1],
                           ours[COMPARED] / there[COMPARED], False, note, command, seconds,
                           WHY if ours[COMPARED] > there[COMPARED] else "", True))
        seconds = 0.0
    return made


def figures(options: Options, command: str) -> list[Figure]:
    options.say("FFCV: the grid of sizes")
    watch = Stopwatch()
    found = measure(options)
    return rows(found, command, watch.lap())
