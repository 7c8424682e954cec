# SPDX-License-Identifier: Apache-2.0
"""Batches of recipes depend on the pack, the pipeline, the weights, the seed, the epoch and the
position, and on nothing else.

Text and keys, boxes that follow crops and labels that follow boxes, several views with repeat,
images of different sizes, weights, buckets, token budgets, a mixture with a schedule, clips of kept
videos, and samples that are their frames; in four orders, with 1 to 64 threads and 1 to 8 ranks;
from a disk and from an object store; packed, and in place over tars, which have no ragged fields;
videos decoded in processes. Epochs are resumed at random positions, each part by another number of
ranks, from another place.

PENSTOCK_SCALE=full tries every combination and 200 resumed epochs of each recipe, with Ceph as the
store if it is installed; anything else tries a few, with tests/net/s3_server.py.
"""

import contextlib
import itertools
import os
import pathlib
import random
import sys
import tarfile
import tempfile

import numpy as np
from _package import FULL, ROOT, Tests, encoded, painted, penstock, scaled

for folder in ("net", "python"):
    sys.path.insert(0, str(ROOT / "tests" / folder))

import far_tools  # noqa: E402
import kept_tools  # noqa: E402
import net_stage  # noqa: E402
from bucket_tools import Bucket  # noqa: E402
from cli_tools import add_member, good  # noqa: E402
from packet_tools import PLUGIN  # noqa: E402

N = scaled(300, 150)
RESUMES = scaled(200, 4)
ORDERS = ("sequential", "random", "shuffle", "sticky")
THREADS = (1, 8, 64) if FULL else (1, 2, 8)
NAMES = ("all", "all-in-place", "part", "part-in-place", "boxes")
WORLDS = (1, 2, 3, 8)
BLOCK = ("--block-samples", "4", "--shard-bytes", "256K")
CROP = "decode | random_resized_crop 20,24 | hflip | color_jitter 0.4 | tensor u8"

RECIPES = {
    "text": f"image: {CROP}; label: tensor; text: text 200; json: json 200; id: key 32",
    "boxes": f"image: {CROP}; label: tensor; boxes: boxes min_visibility=0.2 kept=yes; "
    "classes: keep boxes; spots: points drop=no | keep boxes; extra: ragged 9 pad=-1",
    "views": f"image: {CROP}; label: tensor; g = image: {CROP}; many = image: decode | "
    "random_resized_crop 8 scale=0.05,0.4 | hflip | repeat 3",
    "sizes": "image: decode | resize min_side=20,24,28 max_side=40 | hflip | tensor u8; "
    "label: tensor; boxes: boxes; classes: keep boxes",
    "weights": f"image: {CROP}; label: tensor",
    "buckets": "image: decode | cover bucket position=random | hflip | tensor u8; label: tensor; "
    "text: text 200",
    "tokens": "image: decode | random_resized_crop 40,56 | patches 8 | hflip | tensor u8; "
    "label: tensor; text: text 200",
    "mix": f"image: {CROP}; label: tensor; text: text 200",
    "mixup": f"image: {CROP} | mixup 0.8 p=0.5 | cutmix p=0.5; v = image: decode | center_crop 8 | "
    "tensor f16 | mixup p=0.4 per=sample | cutmix p=0.4 per=sample; label: one_hot 5 0.1 of=image; "
    "w = label: one_hot 5 of=v | tensor f16",
    "augment": "image: decode | random_resized_crop 20,24 | random_apply p=0.8 [color_jitter 0.4 | "
    "random_adjust_sharpness 2] | random_choice [grayscale] [random_solarize 128 p=1] "
    "[gaussian_blur 5] p=1,2,3 | random_order [rand_augment 1 | hflip | auto_augment cifar10] | "
    "trivial_augment bilinear | tensor u8; label: tensor; boxes: boxes of=image; "
    "classes: keep boxes; mixed = image: decode | resize 20,24 | aug_mix | three_augment | "
    "repeat 2",
}
VIDEO_RECIPES = {
    "kept": "video: decode | clip 4 3 n=2 times=yes | random_resized_crop 8,10 | hflip "
    "| color_jitter 0.4 | tensor u8; label: tensor; id: key 32",
    "frames": "video: decode | clip 3 2 at=-2 times=yes | random_resized_crop 8,10 | hflip "
    "| tensor u8; label: tensor; id: key 32",
}
TOKENS, LENGTHS = 288, (4, 6, 12)  # of all ranks; each length has as many samples on all WORLDS
PROCESSES = "packed, decoders in processes"  # of an epoch that starts there
BUCKETS = [(16, 16), (12, 20), (20, 12)]
SCHEMA = {
    "image": "image", "label": "i64", "boxes": "f32[*,4] boxes xyxy absolute",
    "classes": "i64[*]", "spots": "f32[*,2] points absolute", "extra": "f32[*]?",
}


# ---- packs -----------------------------------------------------------------------------------


def pictures():
    rng = np.random.default_rng(5)
    for i in range(N):
        side = rng.integers(24, 90, 2) if i % 16 else (260, 200)
        kind = {"kind": "PNG"} if i % 7 == 3 else {"kind": "JPEG", "progressive": i % 5 == 0}
        yield encoded(painted(rng, *map(int, side)), **kind), side


def write_tars(top):
    for first in range(0, N, 90):
        with tarfile.open(top / f"web-{first // 90}.tar", "w") as tar:
            for i, (image, _) in itertools.islice(enumerate(pictures()), first, first + 90):
                members = {"jpg": image, "cls": b"%d" % (i % 5), "json": b'{"n": [%d]}' % i,
                           "txt": "\u20ac".encode() * (i * 7 % 23)}
                for suffix, data in members.items():
                    add_member(tar, f"s/{i:05}.{suffix}", data)


def write_boxes(path):
    rng = np.random.default_rng(6)
    with penstock.Writer(path, SCHEMA, block_samples=4, shard_size="256KiB") as writer:
        for i, (image, side) in enumerate(pictures()):
            n = i % 7
            corners = np.sort(rng.uniform(0, 1, (n, 2, 2)), axis=1) * side
            writer.add(key=f"s{i}", image=image, label=i % 5, boxes=corners.reshape(n, 4),
                       classes=range(i, i + n), spots=rng.uniform(0, 1, (n, 2)) * side,
                       extra=None if i % 9 == 4 else range(i % 8))


def write_packs(top):
    """Packs and their tars in a folder: of all tars, and of the first. Packed and in place, samples
    have the same numbers."""
    write_tars(top)
    tars = sorted(top.glob("*.tar"))
    for name, some in (("all", tars), ("part", tars[:1])):
        good("index", *some, "-o", top / f"{name}-in-place.pen", *BLOCK)
        good("copy", top / f"{name}-in-place.pen", top / f"{name}.pen")
    write_boxes(top / "boxes.pen")
    if not kept_tools.missing():
        RECIPES.update(VIDEO_RECIPES)
        kept_tools.write_kept(top / "kept.pen", N, *BLOCK)
    return {name: penstock.open(top / f"{name}.pen") for name in names()}


def names():
    return (*NAMES, "kept") if "kept" in RECIPES else NAMES


@contextlib.contextmanager
def object_store():
    """Ceph at full scale, unless it is not installed; otherwise a server that is a script."""
    if FULL and not net_stage.missing_ceph():
        yield net_stage.shared_ceph()
        return
    with net_stage.S3Server(deadline_s=60) as server:
        yield server


def fill_store(server, top):
    """The same packs in the store. Those in place are over the tars in the store."""
    bucket = Bucket(server, top)
    for path in sorted(top.rglob("*")):
        if path.is_file() and "in-place" not in str(path):
            bucket.put(str(path.relative_to(top)), path.read_bytes())
    tars = [bucket.at(path.name) for path in sorted(top.glob("*.tar"))]
    for name, some in (("all", tars), ("part", tars[:1])):
        bucket.good("index", *some, "-o", bucket.at(f"{name}-in-place.pen"), *BLOCK)
    access = {"endpoint": server.url, "region": server.region, "key_id": server.key_id,
              "secret": server.secret}
    return {name: penstock.open(
        bucket.at(f"{name}.pen"), access, roots=[bucket.at("")] if "in-place" in name else None)
        for name in names()}


def pack_of(recipe, packs, kind):
    if recipe != "mix":
        return packs["all" + kind]
    return penstock.mix(
        [(packs["all" + kind], 5), (packs["part" + kind], 3), (packs["all" + kind], 2)],
        unit="samples", schedule=[(N // 3, [1, 1, 1]), (4 * N, [0, 1, 2])])


def places_of(recipe, disk, store):
    """Where the samples of a recipe lie: name to what a loader takes."""
    if recipe in ("boxes", "sizes", "augment"):
        return {"packed": disk["boxes"], "packed, store": store["boxes"]}
    if recipe in VIDEO_RECIPES:
        return {"packed": disk["kept"], "packed, store": store["kept"], PROCESSES: disk["kept"]}
    return {f"{what}{where}": pack_of(recipe, packs, kind)
            for where, packs in (("", disk), (", store", store))
            for what, kind in (("packed", ""), ("in place", "-in-place"))}


# ---- epochs ----------------------------------------------------------------------------------


class Recipe:
    """A recipe, where its samples lie, and the digests of its epochs."""

    def __init__(self, name, places):
        self.name, self.places, self.known = name, places, {}
        far_tools.PIPELINES[name] = RECIPES[name]
        weights = np.random.default_rng(7).exponential(1, N)
        weights[::11] = 0
        more = {"weights": {"weights": weights}, "buckets": {"buckets": BUCKETS},
                "frames": {"frames": "few"}}
        self.settings = more.get(name, {})
        self.has_budget = name == "tokens"
        one = {"batch_size": 2, **self.settings}
        if self.has_budget:
            one = {"tokens": TOKENS, "lengths": LENGTHS}
        with penstock.Loader(places["packed"], pipeline=RECIPES[name], output="numpy",
                             **one) as loader:
            self.left = loader.samples

    def batch_of(self, world):
        return {"tokens": TOKENS // world, "lengths": LENGTHS} if self.has_budget else {}

    def digest(self, legs, order, epoch=0, **settings):
        """Of an epoch that goes through legs: (name of the place, ranks, steps)."""
        by_place = [((self.places[place], self.batch_of(world)), world, steps)
                    for place, world, steps in legs]
        samples = None if self.name in ("weights", "mix", "frames") else N
        os.environ["PENSTOCK_VIDEO"] = "process" if legs[0][0] == PROCESSES else "inline"
        return far_tools.epoch_digest(penstock, self.name, by_place, samples, epoch, order=order,
                                      **self.settings, **settings)

    def expected(self, legs, order, epoch=0):
        """From the disk, packed, by one thread of one rank."""
        which = order, epoch
        if which not in self.known:
            found = self.digest([("packed", 1, None)], order, epoch, threads=1)
            assert found not in self.known.values(), "another order or epoch gives the same"
            self.known[which] = found
        return self.known[which]

    def check_combinations(self):
        """Threads, ranks, orders and places; sampled, each value of each once."""
        combinations = itertools.product(ORDERS, self.places, THREADS, WORLDS)
        if not FULL:
            places = itertools.cycle(self.places)
            combinations = zip(ORDERS, places, itertools.cycle((8, 1, 2)), reversed(WORLDS))
        combinations = list(combinations)
        for order, place, threads, world in combinations:
            legs = [(place, world, None)]
            found = self.digest(legs, order, threads=threads)
            assert found == self.expected(legs, order), (order, place, threads, world)
        return f"{len(combinations)} epochs in {len(ORDERS)} orders from {len(self.places)} places"

    def random_legs(self, dice):
        """Up to 3 resumes in an epoch. The last part of it has all that is left."""
        left, legs = self.left, []
        for _ in range(dice.randint(1, 3)):
            world = dice.choice(WORLDS)
            step = TOKENS // min(LENGTHS) if self.has_budget else far_tools.GLOBAL
            steps = dice.randint(0, left // step)
            left -= steps * step
            legs.append((dice.choice(list(self.places)), world, steps))
        return [*legs, (dice.choice(list(self.places)), dice.choice(WORLDS), None)]

    def check_resumes(self):
        resumes = 0
        for trial in range(RESUMES):
            dice = random.Random(f"{self.name} {trial}")
            order, epoch, legs = dice.choice(ORDERS), dice.choice((0, 3)), self.random_legs(dice)
            found = self.digest(legs, order, epoch, threads=dice.choice(THREADS))
            assert found == self.expected(legs, order, epoch), (trial, order, epoch, legs)
            resumes += len(legs) - 1
        return f"{RESUMES} epochs with {resumes} resumes"


def main():
    os.environ.setdefault("PENSTOCK_VIDEO_LIBRARY", str(PLUGIN))
    tests = Tests("same batches")
    with tempfile.TemporaryDirectory(prefix="penstock-long-") as made, object_store() as server:
        top = pathlib.Path(made)
        disk, store = write_packs(top), fill_store(server, top)
        for name in sys.argv[1:] or RECIPES:
            recipe = Recipe(name, places_of(name, disk, store))
            tests.run(name, recipe.check_combinations)
            tests.run(f"{name}, resumed", recipe.check_resumes)
    return tests.end()


if __name__ == "__main__":
    sys.exit(main())
