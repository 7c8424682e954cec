# SPDX-License-Identifier: Apache-2.0
"""Boxes and points of loaders against NumPy: every step of a pipeline on the whole image.

What was drawn for a sample is computed a second time in _draws.py. Pipelines, images (all
orientations), boxes and options are random. PENSTOCK_SCALE=full takes 100,000 cases, anything else
600; a case is one sample in one pipeline.
"""

import pathlib
import random
import sys
import tempfile

import _draws
import _warps
import numpy as np
from _draws import Draw
from _package import Tests, encoded, orientation, painted, penstock, scaled
from PIL import Image

SAMPLES = scaled(500, 60)
PIPELINES = scaled(200, 10)
KINDS = [
    f"{kind} {unit}" for kind in ("xyxy", "xywh", "cxcywh") for unit in ("absolute", "relative")
]
NEAR = 1e-9  # pixels: a decision within this distance of its limit may go either way

# ---- samples ---------------------------------------------------------------------------------


def random_boxes(rng, width, height):
    """xyxy in pixels: on the grid and off it, in the image, at its edge, beyond it."""
    boxes = []
    for _ in range(rng.integers(0, 9)):
        x, y = np.sort(rng.uniform(-0.2, 1.2, (2, 2)) * [[width], [height]], axis=1)
        if rng.random() < 0.7:
            x, y = np.clip(x, 0, width), np.clip(y, 0, height)
        if rng.random() < 0.5:
            x, y = np.round(x), np.round(y)
        boxes.append((x[0], y[0], x[1], y[1]))
    return np.array(boxes, np.float64).reshape(-1, 4)


def stored(boxes, kind, width, height):
    """Float32 rows in the convention `kind`."""
    form, unit = kind.split()
    x1, y1, x2, y2 = boxes.T
    if form == "xywh":
        boxes = np.stack([x1, y1, x2 - x1, y2 - y1], 1)
    elif form == "cxcywh":
        boxes = np.stack([(x1 + x2) / 2, (y1 + y2) / 2, x2 - x1, y2 - y1], 1)
    scale = [width, height] * 2 if unit == "relative" else 1
    return (boxes / scale).astype(np.float32)


def xyxy(rows, kind, width, height):
    """What the rows mean, as xyxy in pixels."""
    form, unit = kind.split()
    a, b, c, d = (rows.astype(np.float64) * ([width, height] * 2 if unit == "relative" else 1)).T
    if form == "xywh":
        c, d = a + c, b + d
    elif form == "cxcywh":
        a, b, c, d = a - c / 2, b - d / 2, a + c / 2, b + d / 2
    return np.stack([a, b, c, d], 1)


def make_samples(rng):
    """Rows of the pack; and for each its upright size."""
    rows, sizes = [], []
    for i in range(SAMPLES):
        width, height = (int(n) for n in rng.integers(6, 160, 2))
        turned = int(rng.integers(1, 9)) if i % 3 else 1
        pixels = painted(rng, *((height, width) if turned > 4 else (width, height)))
        kind = "JPEG" if turned > 1 or i % 2 else "PNG"
        more = {"exif": orientation(turned)} if turned > 1 else {}
        boxes = random_boxes(rng, width, height)
        row = {kind: stored(boxes, kind, width, height) for kind in KINDS}
        points = rng.uniform(-0.1, 1.1, (len(boxes), 3, 2)) * [width, height]
        row["points"] = np.where(rng.random(points.shape) < 0.5, np.round(points), points)
        row["number"] = np.arange(len(boxes)) * 10 + 1000 * i
        rows.append({"image": encoded(pixels, kind, **more), **row})
        sizes.append((width, height))
    return rows, sizes


def write(path, rows):
    schema = {"image": "image", "points": "f32[*,3,2] points absolute", "number": "i64[*]"}
    schema.update((kind, f"f32[*,4] boxes {kind}") for kind in KINDS)
    penstock.write(path, rows, schema, block_samples=16)
    return penstock.open(path)


# ---- pipelines -------------------------------------------------------------------------------


def random_fit(rng):
    """A resize that keeps the aspect ratio: (shorter sides, longest side, multiple)."""
    sides = rng.choice([(), (rng.randint(4, 90),), tuple(rng.sample(range(4, 90), 3))])
    high = rng.randint(8, 120)
    return sides, high, rng.choice([1, 1, 2, 7, 8])


def random_warp(rng):
    degrees = rng.choice([30, 180, (90, 90), (180, 180), (20, 20.5)])
    return rng.choice([
        ("random_rotation", {"degrees": degrees}),
        ("random_rotation", {"degrees": degrees, "center": (rng.uniform(-9, 99), 20)}),
        ("random_affine", {"degrees": degrees, "translate": (0.3, 0.2), "scale": (0.5, 2.5),
                           "shear": rng.choice([0, 30, (-9, 40), (0, 20, -40, 10)])}),
        ("random_affine", {"degrees": (0, 0), "translate": (1, 1)}),
        ("random_perspective", {"distortion_scale": rng.choice([0.2, 0.7]), "p": 0.8}),
        ("pad", {"padding": rng.choice([3, (1, 7), (9, 0, 2, 30)]),
                 "padding_mode": rng.choice(["constant", "edge", "reflect", "symmetric"])}),
    ])  # fmt: skip


def random_pipeline(rng):
    """[(operation, arguments)] with a result of one size, or of one that is bounded."""
    ops = []
    for _ in range(rng.randint(1, 4)):
        a, b = rng.randint(4, 120), rng.randint(4, 120)
        ops.append(rng.choice([
            ("resize", (a,)), ("resize", (a, b)), ("center_crop", (a, b)),
            ("random_crop", (a, b), rng.randint(60, 90)),
            ("random_resized_crop", (a, b)), ("hflip", 0.5), ("vflip", 0.5),
            ("resize", random_fit(rng)), *[random_warp(rng)] * 3,
        ]))  # fmt: skip
    last = rng.choice([("random_resized_crop", (48, 64)), ("center_crop", (64, 48)),
                       ("resize", (40, 56)), ("random_crop", (33, 47), 60),
                       *[("resize", random_fit(rng))] * 4])  # fmt: skip
    more = [("hflip", 0.5), ("vflip", 0.5), random_warp(rng), ("center_crop", (30, 26))]
    return [*ops, last, *rng.sample(more, rng.randint(0, 3))]


def is_fit(name, size):
    return name == "resize" and isinstance(size[0], tuple)


def warp_text(name, options):
    words = (
        (key, ",".join(map(str, v)) if isinstance(v, tuple) else v) for key, v in options.items()
    )
    return name + "".join(f" {key}={value}" for key, value in words)


def op_text(name, size, padding=None):
    if isinstance(size, dict):
        return warp_text(name, size)
    if is_fit(name, size):
        sides, high, multiple = size
        low = f" min_side={','.join(map(str, sides))}" if sides else ""
        return f"resize{low} max_side={high}" + (f" to_multiple_of={multiple}" * (multiple > 1))
    numbers = f"{size}" if name.endswith("flip") else ",".join(map(str, size))
    return f"{name} {numbers}" + (f" padding={padding}" if padding else "")


def clipped(boxes, area):
    ((x1, y1, x2, y2),) = area
    return np.clip(boxes, [x1, y1, x1, y1], [x2, y2, x2, y2])


def around(points_map, boxes):
    corners = np.stack([points_map(boxes[:, [x, y]]) for x in (0, 2) for y in (1, 3)])
    return np.concatenate([corners.min(0), corners.max(0)], 1)


class Canvas:
    """An image of width x height, with boxes on it, and where it shows the source."""

    def __init__(self, width, height, boxes):
        self.width, self.height = width, height
        self.boxes = self.parts = boxes  # all of them, and what the warps so far saw
        self.seen = np.array([[0, 0, width, height]], np.float64)
        self.hidden = np.zeros(len(boxes), bool)  # from a warp
        self.near = np.zeros(len(boxes), bool)  # at that limit
        self.are_points = bool((boxes[:, :2] == boxes[:, 2:]).all())

    def each(self, change):
        self.boxes, self.parts, self.seen = (change(b) for b in (self.boxes, self.parts, self.seen))

    def warp(self, points_map, size):
        """Boxes become those around their four corners; of a part that is not seen, nothing."""
        margin = self.margin()
        self.hidden |= margin < 0 if self.are_points else margin <= 0
        self.near |= np.abs(margin) < NEAR
        self.parts = clipped(self.parts, self.seen)
        self.each(lambda b: around(points_map, b))
        self.seen = np.clip(self.seen, 0, [*size] * 2)

    def margin(self):
        """How far the box reaches into what is seen."""
        ((x1, y1, x2, y2),) = self.seen
        if self.are_points:
            inside = self.parts - [x1, y1, x1, y1], [x2, y2, x2, y2] - self.parts
            return np.minimum(*inside).min(1) if len(self.parts) else np.zeros(0)
        part = clipped(self.parts, self.seen)
        return np.minimum(part[:, 2] - part[:, 0], part[:, 3] - part[:, 1])

    def crop(self, x, y, w, h):
        self.each(lambda b: b - [x, y, x, y])
        self.seen = np.clip(self.seen, 0, [w, h, w, h])
        self.width, self.height = w, h

    def resize(self, w, h):
        old = np.array([self.width, self.height] * 2)
        self.each(lambda b: b * [w, h, w, h] / old)
        self.width, self.height = w, h

    def hflip(self):
        self.each(
            lambda b: np.stack([self.width - b[:, 2], b[:, 1], self.width - b[:, 0], b[:, 3]], 1)
        )

    def vflip(self):
        self.each(
            lambda b: np.stack([b[:, 0], self.height - b[:, 3], b[:, 2], self.height - b[:, 1]], 1)
        )


def center(have, want):
    return -((want - have) // 2) if want > have else round((have - want) / 2)


def fitted(width, height, low, high, multiple):
    """torchvision's rule for a shorter side of `low` (None: none) and a longest side of `high`."""
    short, long = min(width, height), max(width, height)
    new = (low, low * long // short) if low else (high * short // long, high)
    if new[1] > high:
        new = high * new[0] // new[1], high
    nearest = (max(1, (max(n, 1) + multiple // 2) // multiple) for n in new)
    new = [min(n, high // multiple) * multiple for n in nearest]
    return new if width <= height else new[::-1]


def apply(canvas, op, draw):
    name, size = op[:2]
    if isinstance(size, dict):
        image = Image.new("L", (canvas.width, canvas.height))
        out, points_map = getattr(_warps, name)(image, draw, **size)
        if name == "pad":
            canvas.each(lambda b: around(points_map, b))
            canvas.width, canvas.height = out.size
        elif out is not image:
            canvas.warp(points_map, out.size)
    elif is_fit(name, size):
        sides, high, multiple = size
        low = sides[draw.below(len(sides))] if len(sides) > 1 else sum(sides)
        canvas.resize(*fitted(canvas.width, canvas.height, low, high, multiple))
    elif name == "resize" and len(size) == 1:
        short, w, h = size[0], canvas.width, canvas.height
        canvas.resize(*((short, short * h // w) if w <= h else (short * w // h, short)))
    elif name == "resize":
        canvas.resize(size[1], size[0])
    elif name == "center_crop":
        h, w = size
        canvas.crop(center(canvas.width, w), center(canvas.height, h), w, h)
    elif name == "random_crop":
        canvas.crop(*_draws.random_crop(draw, canvas.width, canvas.height, size, op[2]))
    elif name == "random_resized_crop":
        canvas.crop(*_draws.random_resized_crop(draw, canvas.width, canvas.height))
        canvas.resize(size[1], size[0])
    elif draw.happens(size):
        canvas.hflip() if name == "hflip" else canvas.vflip()


def run_pipeline(ops, sample, canvas, seed):
    names = [op[0] for op in ops]
    for i, op in enumerate(ops):
        apply(canvas, op, Draw(seed, 0, sample, op[0], names[:i].count(op[0])))
    return canvas


# ---- comparing -------------------------------------------------------------------------------


def random_options(rng):
    drop = rng.random() < 0.7
    return {
        "format": rng.choice(["stored", "xyxy", "xywh", "cxcywh"]),
        "unit": rng.choice(["stored", "absolute", "relative"]),
        "clip": rng.choice(["yes", "yes", "no"]),
        "drop": "yes" if drop else "no",
        "min_size": rng.choice([0, 1, 2.5]),
        "min_area": rng.choice([0, 0, 30]) if drop else 0,
        "min_visibility": rng.choice([0, 0, 0.3, 1]) if drop else 0,
    }


def decide(canvas, options):
    """(kept, either way) for each box, and the visible part of it."""
    visible = clipped(canvas.parts, canvas.seen)
    w, h = visible[:, 2] - visible[:, 0], visible[:, 3] - visible[:, 1]
    all_of_it = (canvas.boxes[:, 2] - canvas.boxes[:, 0]) * (
        canvas.boxes[:, 3] - canvas.boxes[:, 1]
    )
    size, part = options["min_size"], options["min_visibility"] * all_of_it
    margins = np.stack([w - size, h - size, w * h - options["min_area"], w * h - part])
    kept = (w > 0) & (h > 0) & (margins >= 0).all(0) & ~canvas.hidden
    either = (np.abs(margins) < NEAR * np.maximum(1, all_of_it)).any(0) & (margins > -1e-6).all(0)
    either |= canvas.near
    if options["drop"] == "no":
        kept[:], either[:] = True, False
    return kept, either, visible


def wanted_kind(kind, options):
    form, unit = kind.split()
    form = form if options["format"] == "stored" else options["format"]
    return f"{form} {unit if options['unit'] == 'stored' else options['unit']}"


def close(a, b, unit):
    return np.allclose(a, b, rtol=3e-7, atol=1e-4 if unit == "absolute" else 1e-6)


def compare(canvas, kind, options, found, kept):
    """One sample: `found` rows, and which ones they are."""
    expected, either, visible = decide(canvas, options)
    chosen = np.zeros(len(expected), bool)
    chosen[kept] = True
    wrong = (chosen != expected) & ~either
    assert not wrong.any(), f"boxes {np.flatnonzero(wrong)} of {canvas.boxes}: kept {kept}"
    unit = wanted_kind(kind, options)
    boxes = visible if options["clip"] == "yes" else canvas.boxes
    target = stored(boxes[kept], unit, canvas.width, canvas.height)
    assert found.shape == target.shape and found.dtype == np.float32
    assert close(found, target, unit.split()[1]), f"found {found}, expected {target}"
    return int((chosen != expected).sum())


def compare_points(canvas, drop, found, numbers):
    """Rows of three points; they are kept if one of them is visible, or all with drop=no."""
    points = canvas.boxes[:, :2].reshape(-1, 3, 2)
    x1, y1, x2, y2 = canvas.seen[0]
    margin = np.minimum(points - [x1, y1], [x2, y2] - points).min(2)
    margin = np.where(canvas.hidden.reshape(-1, 3), -1, margin)
    margin = np.where(canvas.near.reshape(-1, 3), 0, margin).max(1)
    expected = (margin >= 0) | (not drop)
    chosen = np.zeros(len(expected), bool)
    chosen[numbers] = True
    assert not ((chosen != expected) & (np.abs(margin) > NEAR)).any(), f"{points}: {numbers}"
    assert close(found, points[numbers], "absolute"), f"found {found}, expected {points[numbers]}"


# ---- cases -----------------------------------------------------------------------------------


def has_one_size(ops):
    """Whether all results of a pipeline have one size, whatever the images are."""
    fixed = False
    for name, size, *_ in ops:
        if is_fit(name, size):
            fixed = fixed and len(size[0]) < 2
        elif not name.endswith("flip") and not isinstance(size, dict):
            fixed = fixed or name != "resize" or len(size) == 2
    return fixed


def pipeline_of(ops, shrink, pad, kind, options, drop):
    image = " | ".join([f"decode shrink={shrink}", *(op_text(*op) for op in ops), "tensor u8"])
    image += pad
    words = " ".join(f"{name}={value}" for name, value in options.items())
    kept = " kept=yes" if options["drop"] == "yes" else ""
    return {"image": image, kind: f"boxes {words}{kept}", "number": f'keep "{kind}"',
            "points": f"points drop={drop}" + " kept=yes" * (drop == "yes")}  # fmt: skip


def check_pipeline(pack, rows, sizes, rng):
    """All samples in one random pipeline; how many boxes, and how many could go either way."""
    ops, kind, options = random_pipeline(rng), rng.choice(KINDS), random_options(rng)
    drop, seed = rng.choice(["yes", "no"]), rng.randrange(1000)
    pad = "" if has_one_size(ops) else rng.choice(["", " | pad_batch", " | pad_batch 16 value=9"])
    pipeline = pipeline_of(ops, rng.choice(["off", "auto"]), pad, kind, options, drop)
    n = either = 0

    def check(sample, value):
        width, height = sizes[sample]
        boxes = xyxy(rows[sample][kind], kind, width, height)
        canvas = run_pipeline(ops, sample, Canvas(width, height, boxes), seed)
        size = value.get("image_sizes", value["image"].shape[:2])
        assert tuple(size) == (canvas.height, canvas.width), (
            f"{ops}: {width} x {height} became {size}, expected {canvas.height}, {canvas.width}"
        )
        kept = (value["number"] - 1000 * sample) // 10
        if options["drop"] == "yes":
            assert np.array_equal(value[kind + "_kept"], kept)
        points = rows[sample]["points"].astype(np.float32).astype(np.float64)
        dots = Canvas(width, height, np.tile(points.reshape(-1, 2), 2))
        run_pipeline(ops, sample, dots, seed)
        numbers = value["points_kept"] if drop == "yes" else ...
        compare_points(dots, drop == "yes", value["points"], numbers)
        return len(boxes), compare(canvas, kind, options, value[kind], kept)

    with penstock.Loader(pack, 16, pipeline=pipeline, output="numpy", seed=seed, shuffle=True,
                         return_info=True, drop_last=False, threads=2) as loader:  # fmt: skip
        for batch in loader:
            for i in np.flatnonzero(batch.info.valid):
                value = {name: np.asarray(field[i]) for name, field in zip(loader.fields, batch)}
                counts = check(int(batch.info.samples[i]), value)
                n, either = n + counts[0], either + counts[1]
    return n, either


def check_all(pack, rows, sizes):
    rng = random.Random(18)
    boxes = either = 0
    for _ in range(PIPELINES):
        counts = check_pipeline(pack, rows, sizes, rng)
        boxes, either = boxes + counts[0], either + counts[1]
    assert either <= boxes // 1000, f"{either} of {boxes} boxes are at a limit"
    return f"{PIPELINES * len(rows)} cases, {boxes} boxes, {either} of them at a limit"


def main():
    tests = Tests("boxes")
    with tempfile.TemporaryDirectory() as folder:
        rows, sizes = make_samples(np.random.default_rng(18))
        pack = write(pathlib.Path(folder) / "boxes.pen", rows)
        tests.run("random pipelines", check_all, pack, rows, sizes)
    return tests.end()


if __name__ == "__main__":
    sys.exit(main())
