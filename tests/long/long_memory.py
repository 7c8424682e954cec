# SPDX-License-Identifier: Apache-2.0
"""Memory of a process with a loader: what it grows by is at most `memory` and 64 MiB, for ever.

Every case is a process of its own, whose resident size the kernel tells (/proc/self/status), reset
just before the loader is made. Huge images keep to the limit, or are refused with an error that
names it; batches that are never given back end in such an error, and not in waiting.
PENSTOCK_SCALE=full takes all photographs there are, anything else some images made here.
"""

import gc
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile

import numpy as np
from _net import net_stage
from _package import (
    Tests,
    encoded,
    orientation,
    painted,
    penstock,
    photo_files,
    scaled,
    write_pack,
)
from PIL import Image

MiB = 1 << 20
MORE = 64 * MiB  # allowed above `memory`
FLAT = 4 * MiB  # between epochs, once all is warm
EPOCHS = scaled(50, 24)
LIMIT = scaled(1800, 120)  # seconds for a case
TRAIN = "decode | random_resized_crop 224 | hflip | normalize | tensor f32 nchw"
LONG_TEXT, MANY_BOXES = 10_000_000, 10_000
LARGE = ("image: decode | random_resized_crop 64; text: text {}; boxes: boxes drop=no clip=no | "
         "ragged {}")
COLOURS = "decode | random_resized_crop 160 lanczos | hflip | color_jitter 0.4 0.4 0.4 0.1"

# ---- in the process that is measured -----------------------------------------------------------


def status(name):
    with open("/proc/self/status", encoding="ascii") as lines:
        return next(int(line.split()[1]) * 1024 for line in lines if line.startswith(name))


class Growth:
    """Of the resident size since it was made."""

    def __init__(self):
        gc.collect()
        with open("/proc/self/clear_refs", "w", encoding="ascii") as file:
            file.write("5")  # the peak starts anew
        self.before = status("VmRSS")

    def now(self):
        return status("VmRSS") - self.before

    def peak(self):
        return status("VmHWM") - self.before


def through(loader):
    """One pass; every value is looked at."""
    n = 0
    for image, *_ in loader:
        n += len(image)
        image.max()
    return n


def case_epochs(pack, memory, pipeline=TRAIN, batch=32, epochs=EPOCHS, **settings):
    growth, each, n = Growth(), [], 0
    with penstock.Loader(
        pack, batch, pipeline=pipeline, memory=memory, output="numpy", order="random", **settings
    ) as loader:
        for _ in range(epochs):
            n += through(loader)
            each.append(growth.now())
        said = loader.stats()["memory_peak_bytes"]
    return {"n": n, "peak": growth.peak(), "each": each, "said": said, "after": growth.now()}


def case_open_close(pack, memory, n):
    growth, each = Growth(), []
    for i in range(n):
        loader = penstock.Loader(
            pack, 8, pipeline=TRAIN, memory=memory, output="numpy", order="random", seed=i
        )
        for image, _ in loader:
            image.max()
            break
        loader.close()
        each.append(growth.now())
    return {"n": n, "peak": growth.peak(), "each": each}


def case_once(pack, memory, pipeline=TRAIN, **settings):
    """A pass, and the errors on its way; the pass goes on behind each."""
    growth, errors, n = Growth(), [], 0
    with penstock.Loader(
        pack, 4, pipeline=pipeline, memory=memory, output="numpy", **settings
    ) as loader:
        batches = iter(loader)
        while True:
            try:
                n += len(next(batches)[0])
            except StopIteration:
                break
            except penstock.Error as error:
                errors.append([type(error).__name__, str(error)])
        said = loader.stats()["memory_peak_bytes"]
    return {"n": n, "peak": growth.peak(), "errors": errors, "said": said}


def case_list(pack, memory, side=448, **settings):
    growth, kept = Growth(), []
    pipeline = f"decode | random_resized_crop {side} | tensor f32"
    with penstock.Loader(
        pack, 16, pipeline=pipeline, memory=memory, output="numpy", **settings
    ) as loader:
        size = 16 * side * side * 3 * 4
        try:
            kept.extend(loader)
            error = None
        except penstock.Error as failed:
            error = [type(failed).__name__, str(failed)]
        held = len(kept) * size
        kept.clear()
        rest = sum(1 for _ in loader)  # and all is well again
        whole = len(loader)
    return {
        "held": held, "peak": growth.peak(), "error": error, "rest": rest, "whole": whole,
        "size": size,
    }


# ---- and around it -----------------------------------------------------------------------------


def run_case(name, pack, arenas=None, **arguments):
    """With `arenas` the C library may keep as many heaps as on a machine of more cores (8 each)."""
    env = {**os.environ, **({"MALLOC_ARENA_MAX": str(arenas)} if arenas else {})}
    done = subprocess.run(
        [sys.executable, __file__, "--case", name, str(pack), json.dumps(arguments)],
        env=env, capture_output=True, text=True, check=False, timeout=LIMIT,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    return json.loads(done.stdout)


def in_mib(n):
    return f"{n / MiB:.1f} MiB"


def check_peak(found, memory):
    peak = found["peak"]
    assert peak <= memory + MORE, f"grew by {in_mib(peak)} with memory={in_mib(memory)}"
    return f"grew by {in_mib(peak)} of {in_mib(memory)} + 64"


def check_flat(each, of, more=FLAT):
    """The last third is no higher than the one before it; the first is for warming up."""
    third = len(each) // 3
    warm, late = of(each[third : 2 * third]), of(each[2 * third :])
    assert late <= warm + more, f"grew on from {in_mib(warm)} to {in_mib(late)}"
    return f"{in_mib(warm)} early, {in_mib(late)} late"


def epochs(pack, memory, **settings):
    found = run_case("epochs", pack, memory=memory, **settings)
    text = f"{check_peak(found, memory)}; {check_flat(found['each'], max)}"
    return f"{found['n']} samples in {EPOCHS} epochs, {text}"


def open_close(pack, memory):
    n = scaled(2000, 100)
    found = run_case("open_close", pack, memory=memory, n=n)
    # What malloc keeps for a while swings by some megabytes.
    flat = check_flat(found["each"], min, 16 * MiB)
    return f"{n} loaders, {check_peak(found, memory)}; {flat}"


def kept_batches(pack, memory, **settings):
    found = run_case("list", pack, memory=memory, **settings)
    text = check_peak(found, memory)
    assert found["error"], f"held {in_mib(found['held'])} of {in_mib(memory)} and no error"
    kind, message = found["error"]
    assert kind == "LimitError" and "memory" in message and str(memory) in message, found["error"]
    # Half of the memory is the least that batches get; one may be under way.
    assert memory / 2 - 2 * found["size"] <= found["held"] <= memory, in_mib(found["held"])
    assert found["rest"] == found["whole"], "the next pass is not whole"
    return f"{in_mib(found['held'])} held, then {kind}; {text}"


def huge(pack, memory, refuses, **settings):
    """4 samples in a batch, of which one is huge: all of them, or an error that says why not."""
    found = run_case("once", pack, memory=memory, **settings)
    text = check_peak(found, memory)
    for kind, message in found["errors"]:
        assert kind == "LimitError" and "memory" in message, (kind, message)
        assert str(memory) in message, message
    n = len(found["errors"])
    assert n == refuses, f"{n} refused, expected {refuses}: {found['errors']}"
    assert found["n"] + 4 * n == 8, found
    return f"{found['n']} samples, {n} batches refused; {text}"


def large_values(pack, memory, limits, *messages, **settings):
    """4 samples in a batch, of which one has a text of 10 MB and 10,000 boxes: all of them, or an
    error that names the sample, the limit and what was found."""
    found = run_case("once", pack, memory=memory, pipeline=LARGE.format(*limits), **settings)
    text = check_peak(found, memory)
    assert found["said"] <= memory, f"says {in_mib(found['said'])} of {in_mib(memory)}"
    told = [message for kind, message in found["errors"] if kind == "LimitError"]
    assert len(told) == len(found["errors"]) == bool(messages), found["errors"]
    assert all(word in told[0] for word in messages), told
    assert found["n"] + 4 * len(told) == 8, found
    return f"{found['n']} samples, {len(told)} refused; says {in_mib(found['said'])}; {text}"


def little_memory(pack, memory):
    """Batches that do not fit are refused at once, and the error says how much is enough."""
    settings = {"pipeline": LARGE.format(LONG_TEXT, MANY_BOXES), "output": "numpy"}
    try:
        penstock.Loader(pack, 4, memory=memory, **settings).close()
    except penstock.LimitError as error:
        least = int(re.search(r"at least (\d+) MiB", str(error))[1])
    else:
        raise AssertionError(f"no error with {in_mib(memory)}")
    with penstock.Loader(pack, 4, memory=f"{least}MiB", **settings) as loader:
        sizes = [(len(text), len(rows)) for batch in loader
                 for text, rows in zip(batch.text, batch.boxes)]
        said = loader.stats()["memory_peak_bytes"]
    assert max(sizes) == (LONG_TEXT, MANY_BOXES) and len(sizes) == 8, sizes
    assert said <= least * MiB, in_mib(said)
    return f"refused with {in_mib(memory)}, loaded with {least} MiB, says {in_mib(said)}"


# ---- packs -------------------------------------------------------------------------------------


def write_large_values(path, images):
    """Sample 1 of 8 has as much as is allowed, with the limits of LARGE."""
    schema = {"image": "image", "text": "text", "boxes": "f32[*,4] boxes xyxy absolute"}
    rng = np.random.default_rng(3)
    with penstock.Writer(path, schema, block_samples=4) as writer:
        for i, image in enumerate(images):
            corners = np.sort(rng.uniform(0, 220, (MANY_BOXES if i == 1 else i, 2, 2)), 1)
            writer.add(key=f"s{i}", image=image, text="x" * (LONG_TEXT if i == 1 else 9),
                       boxes=corners.reshape(-1, 4))
    return str(path)


def huge_image(width, height):
    """60 million pixels that are not all alike, made fast."""
    rng = np.random.default_rng(2)
    part = painted(rng, width // 16, height // 16)
    return Image.fromarray(part).resize((width, height), Image.Resampling.BILINEAR)


def make_packs(work):
    rng = np.random.default_rng(1)
    small = [encoded(painted(rng, 300, 225), "JPEG", quality=88) for _ in range(24)]
    packs = {"small": write_pack(work / "small.pen", small * 5).path}
    large = [painted(rng, *rng.integers(120, 280, 2)) for _ in range(24)]
    large = [Image.fromarray(p).resize((p.shape[1] * 8, p.shape[0] * 8)) for p in large]
    pngs = [encoded(image, compress_level=1) for image in large] * 4
    packs["pngs"] = write_pack(work / "pngs.pen", pngs).path
    progressive = [encoded(image, "JPEG", progressive=True) for image in large] * 4
    only_stored = {"mode": "keep", "index": False}
    packs["progressives"] = write_pack(work / "progressives.pen", progressive, **only_stored).path
    picture = huge_image(9000, 6668)
    kinds = {
        "baseline": encoded(picture, "JPEG", quality=80),
        "baseline 4:4:4": encoded(picture, "JPEG", quality=80, subsampling=0),
        "progressive": encoded(picture, "JPEG", quality=80, progressive=True),
        "turned": encoded(picture, "JPEG", quality=80, exif=orientation(6)),
        "png": encoded(picture, "PNG", compress_level=1),
    }
    del picture
    for name, data in kinds.items():
        images = [small[0], data, *small[1:7]]
        path = work / f"huge-{len(packs)}.pen"
        packs[name] = write_pack(path, images, **only_stored).path
    images = [small[0], kinds["baseline"], *small[1:7]]
    packs["indexed"] = write_pack(work / "indexed.pen", images).path
    (work / "packs").mkdir()  # a bucket
    packs["values"] = write_large_values(work / "packs" / "values.pen", small[:8])
    return packs


def all_tests(tests, packs):
    small = packs["small"]
    tests.run("epochs", epochs, small, 64 * MiB)
    tests.run("epochs, 8 threads", epochs, small, 96 * MiB, threads=8, prefetch=4)
    tests.run("epochs, colours", epochs, small, 24 * MiB, pipeline=COLOURS, batch=16)
    tests.run("loaders opened and closed", open_close, small, 64 * MiB)
    for memory in (128, 400):
        tests.run(f"kept batches, {memory} MiB", kept_batches, small, memory * MiB)
    tests.run("kept batches, prefetch 8", kept_batches, small, 256 * MiB, prefetch=8)
    many = {"threads": 48, "arenas": 64}
    for name in ("pngs", "progressives"):
        tests.run(f"48 threads, {name}", kept_batches, packs[name], 300 * MiB, **many)
    crop, whole = "decode | random_resized_crop 224 | hflip", "decode | resize 224,224 lanczos"
    for name in ("baseline", "baseline 4:4:4", "indexed"):
        for pipeline in (crop, whole):
            what = f"60 megapixels, {name}: {pipeline.split()[2]}"
            tests.run(what, huge, packs[name], 256 * MiB, 0, pipeline=pipeline)
    for name in ("progressive", "png", "turned"):
        what = f"60 megapixels, {name}"
        tests.run(f"{what}: tight", huge, packs[name], 256 * MiB, 1, pipeline=whole)
        tests.run(f"{what}: ample", huge, packs[name], 2048 * MiB, 0, pipeline=whole)


    values = packs["values"]
    allowed, named = (LONG_TEXT, MANY_BOXES), "sample 1 's1': field "
    tests.run("10 MB of text, 10,000 boxes", large_values, values, 160 * MiB, allowed)
    tests.run("10 MB of text, 8 threads", large_values, values, 256 * MiB, allowed, threads=8)
    tests.run("10 MB of text, too long", large_values, values, 160 * MiB, (65536, MANY_BOXES),
              named + "'text': ", "65536 bytes", str(LONG_TEXT))
    tests.run("10,000 boxes, too many", large_values, values, 160 * MiB, (LONG_TEXT, 1024),
              named + "'boxes': ", "1024 rows", str(MANY_BOXES))
    tests.run("10 MB of text, little memory", little_memory, values, 40 * MiB)
    with net_stage.S3Server(directory=pathlib.Path(values).parents[1], deadline_s=60) as store:
        access = {"endpoint": store.url, "region": store.region, "key_id": store.key_id,
                  "secret": store.secret}
        tests.run("10 MB of text from a store", large_values, "s3://packs/values.pen", 160 * MiB,
                  allowed, storage_options=access)


def main():
    tests, skipped = Tests("memory"), 0
    with tempfile.TemporaryDirectory(prefix="penstock-") as work:
        work = pathlib.Path(work)
        all_tests(tests, make_packs(work))
        files = photo_files(60)
        if files:
            pack = write_pack(work / "photos.pen", [file.read_bytes() for file in files]).path
            tests.run(f"epochs, {len(files)} photographs", epochs, pack, 96 * MiB)
        else:
            print("memory: photos: none found; set PENSTOCK_PHOTOS")
            skipped = 1
    return tests.end(skipped)


if __name__ == "__main__":
    if sys.argv[1:2] == ["--case"]:
        name, pack, arguments = sys.argv[2:]
        print(json.dumps(globals()[f"case_{name}"](pack, **json.loads(arguments))))
        sys.exit(0)
    sys.exit(main())
