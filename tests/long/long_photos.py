# SPDX-License-Identifier: Apache-2.0
"""Real photographs through pack and extract: the same pixels, the same bytes, no larger.

They come from PENSTOCK_PHOTOS (folders of JPEG files), or ../shared/data/photos beside the tree;
without any, all is skipped. PENSTOCK_SCALE=full takes all of them, anything else 60.
"""

import glob
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
PENSTOCK = os.environ.get("PENSTOCK") or ROOT / "build" / "penstock"
SAMPLE = 60
LARGEST = 1.02  # of the source
TESTS = []


def test(call):
    TESTS.append(call)
    return call


def penstock(*args):
    done = subprocess.run([PENSTOCK, *args], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def choose(work):
    """The folder to pack: all photographs, or copies of some."""
    photos = os.environ.get("PENSTOCK_PHOTOS") or ROOT.parent / "shared" / "data" / "photos"
    photos = pathlib.Path(photos)
    files = sorted(file for file in photos.glob("*/*") if file.is_file())
    if os.environ.get("PENSTOCK_SCALE") == "full" or not files:
        return photos, files
    chosen = files[:: max(1, len(files) // SAMPLE)][:SAMPLE]
    for n, file in enumerate(chosen):
        (work / file.parent.name).mkdir(parents=True, exist_ok=True)
        chosen[n] = pathlib.Path(shutil.copy(file, work / file.parent.name))
    return work, chosen


class Run:
    def __init__(self, work):
        self.work = work
        self.photos, self.files = choose(work / "photos")

    def pack(self, name, *more):
        out = self.work / name
        if not out.exists():
            penstock("pack", self.photos, "-o", out, "--on-bad", "skip", *more)
        return out

    def extracted(self, name, *more):
        out = self.work / f"{name}.out"
        if not out.exists():
            penstock("extract", self.pack(name, *more), "-o", out)
        return out


def tree(path):
    return {file.relative_to(path): file for file in path.rglob("*") if file.is_file()}


def found(out, name):
    """The extracted file of a key, which may have got a suffix that fits its bytes."""
    names = glob.glob(f"{glob.escape(str(out / name))}*")
    assert len(names) == 1, (name, names)
    return pathlib.Path(names[0])


def ratio(run, mode):
    """The size of a pack of this mode, which must not be much more than that of the source."""
    source = sum(file.stat().st_size for file in run.files)
    files = tree(run.pack(f"{mode}.pen", "--mode", mode)).values()
    pack = sum(file.stat().st_size for file in files)
    assert pack <= LARGEST * source, f"{pack} bytes of {source}"
    return f"{pack} bytes of {source}, ratio {pack / source:.4f}"


@test
def kept_bytes_are_those_of_the_source(run):
    out = run.extracted("keep.pen", "--mode", "keep")
    for file in run.files:
        name = file.relative_to(run.photos)
        assert found(out, name).read_bytes() == file.read_bytes(), f"{name}: other bytes"
    return f"{len(run.files)} alike"


@test
def an_index_is_small(run):
    return ratio(run, "keep")


@test
def threads_change_nothing(run):
    """With shards and blocks small enough that there are several."""
    first, n = None, 0
    for threads in ("1", "2", "8"):
        more = ("--threads", threads, "--shard-bytes", "4000000", "--block-samples", "7")
        pack = run.pack(f"threads-{threads}.pen", *more)
        files = {name: file.read_bytes() for name, file in tree(pack).items()}
        assert first is None or files == first, f"--threads {threads} gives another pack"
        first, n = files, n + 1
        shutil.rmtree(pack)
    return f"{n} packs of {len(first)} files alike"


@test
def all_of_it_verifies(run):
    penstock("verify", "--decode", run.work / "keep.pen")
    return "1 pack"


def main():
    passed = failed = 0
    with tempfile.TemporaryDirectory(prefix="penstock-") as work:
        run = Run(pathlib.Path(work))
        if not run.files:
            print(f"photos: none found\n0 passed, 0 failed, {len(TESTS)} skipped")
            return 77
        for call in TESTS:
            try:
                print(f"photos: {call.__name__}: {call(run)}", flush=True)
                passed += 1
            except AssertionError as error:
                print(f"photos: {call.__name__}: FAILED: {error}", flush=True)
                failed += 1
    print(f"{passed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
