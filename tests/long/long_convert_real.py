#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Datasets that the real libraries write now, with every type of value, and their readers: every
field of every sample is compared. Then files of the golden datasets are damaged many times.

    PENSTOCK_SCALE=few|sample|full build/venv/bin/python tests/long/long_convert_real.py [PHOTOS]

The libraries are those of `penstock-lab setup mosaic litdata ffcv tfdata`.
One that is not installed is reported. PHOTOS: a folder of JPEGs to use instead of generated images.
"""

import os
import pathlib
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
BUILD = pathlib.Path(os.environ.get("PENSTOCK_BUILD") or ROOT / "build")
sys.path[:0] = [str(BUILD / "python"), str(ROOT / "tests" / "python")]
import convert_golden as golden  # noqa: E402
from penstock._convert import ffcv, litdata, mds, tfrecord  # noqa: E402
from penstock._convert._reader import Choice  # noqa: E402

COUNT, FLIPS = {"few": (20, 20), "sample": (200, 400), "full": (1000, 4000)}[
    os.environ.get("PENSTOCK_SCALE", "few")]  # fmt: skip
# Reader, environment, script, datasets, and a file of a golden dataset to damage.
LIBRARIES = [
    (mds, "mosaic", "mds", ["all", "gz", "bz2"], "all/shard.00000.mds"),
    (litdata, "litdata", "litdata", ["all", "pairs"], "all/chunk-0-0.bin"),
    (ffcv, "ffcv", "ffcv", ["all.beton"], "all.beton.golden.gz"),
    (tfrecord, "tfdata", "tfrecord", ["all", "gzip"], "all/train-00000-of-00002.tfrecord"),
]


def compare(module, environment, name, sets, work, photos):
    """Every sample and value. False if the library is not installed."""
    python = BUILD / "peers" / environment / "bin" / "python"
    if not python.exists():
        print(f"{name}: {environment} is not installed", flush=True)
        return False
    out = work / name
    script = golden.GOLDEN / f"make_{name}.py"
    count = ["--count", str(max(COUNT, 101))]  # more than 100: files are not compressed
    subprocess.run([python, script, "--out", out, *count, *photos], check=True, timeout=3600,
                   stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    for each in sets:
        reader = module.open(str(out / each), Choice())
        samples = golden.expected(out, each.removesuffix(".beton"))
        with golden.write(reader, work / f"{name}-{each}.pen") as pack:
            values = golden.compare(pack, samples)
        print(f"{name}/{each}: {len(samples)} samples, {values} values equal", flush=True)
    return True


def damage(module, name, file, work):
    path = golden.GOLDEN / name / file
    folder = path if path.suffix == ".gz" else path.parent
    source = golden.unpacked(folder, work / f"{name}-damaged")
    target = source if source.is_file() else source / path.name
    cuts = 0 if source.is_file() else FLIPS
    refused = golden.damage(module, source, target, Choice(), 7, FLIPS, cuts)
    print(f"{name}: {FLIPS} damaged files and up to {cuts} cut ones, {refused} refused, no other "
          "exception", flush=True)


def main():
    photos = ["--photos", str(pathlib.Path(sys.argv[1]).resolve())] if sys.argv[1:] else []
    passed = skipped = 0
    with tempfile.TemporaryDirectory() as folder:
        work = pathlib.Path(folder)
        for module, environment, name, sets, file in LIBRARIES:
            damage(module, name, file, work)
            passed += 1
            if compare(module, environment, name, sets, work, photos):
                passed += 1
            else:
                skipped += 1
    print(f"{passed} passed, 0 failed" + (f", {skipped} skipped" if skipped else ""))


if __name__ == "__main__":
    main()
