# SPDX-License-Identifier: Apache-2.0
"""penstock convert with large Parquet files: memory stays bounded, and every row arrives.

- Many rows: PENSTOCK_SCALE=full has a million, sample 200,000, few 20,000.
- Large rows in one row group, which is several times as large as the memory that is allowed.

The resident size of the command and of its workers is read from /proc while they run.
"""

import io
import os
import pathlib
import random
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
BUILD = pathlib.Path(os.environ.get("PENSTOCK_BUILD") or ROOT / "build")
sys.path.insert(0, str(BUILD / "python"))
os.environ["PYTHONPATH"] = os.pathsep.join([str(BUILD / "python"), *sys.path[1:]])

import penstock  # noqa: E402
import pyarrow  # noqa: E402
import pyarrow.parquet  # noqa: E402
from PIL import Image  # noqa: E402

MiB = 1 << 20
SCALE = os.environ.get("PENSTOCK_SCALE", "few")
MANY = {"few": 20_000, "sample": 200_000, "full": 1_000_000}[SCALE]
LARGE = {"few": 600, "sample": 1500, "full": 4000}[SCALE]  # rows of 1 MiB
PAGE = 8  # of them in a page: a reader needs memory for two pages
ALLOWED = 400 * MiB  # for one process, of which importing pyarrow takes about 120
GROUP = 5_000
WORKERS = 2
SECONDS = 4 * 3600


def picture(number):
    """A PNG of about 850 bytes; there are 256 different ones."""
    return PICTURES[number % len(PICTURES)]


def small_png(number):
    out = io.BytesIO()
    noise = random.Random(number).randbytes(16 * 16 * 3)
    Image.frombytes("RGB", (16, 16), noise).save(out, "PNG")
    return out.getvalue()


PICTURES = [small_png(number) for number in range(256)]


def small_row(i):
    return {"id": f"row-{i:08d}", "image": picture(i), "caption": f"caption of row {i}",
            "score": i / 4, "label": i % 1000}


def large_row(i):
    return {"id": f"row-{i:08d}", "blob": random.Random(i).randbytes(MiB)}


def write(path, n, row, group, **options):
    """A Parquet file, in pieces. pyarrow collects the rows of a group before it writes them."""
    writer = None
    for start in range(0, n, group):
        rows = [row(i) for i in range(start, min(n, start + group))]
        table = pyarrow.Table.from_pylist(rows)
        writer = writer or pyarrow.parquet.ParquetWriter(path, table.schema, **options)
        writer.write_table(table, row_group_size=group)
    writer.close()


def children(pid):
    try:
        with open(f"/proc/{pid}/task/{pid}/children", encoding="ascii") as file:
            return [int(word) for word in file.read().split()]
    except OSError:
        return []


def peak_of(pid):
    """The largest resident size that a process had."""
    try:
        with open(f"/proc/{pid}/status", encoding="ascii") as lines:
            return next((int(line.split()[1]) * 1024 for line in lines
                         if line.startswith("VmHWM")), 0)
    except OSError:
        return 0


def convert(source, out):
    """The seconds, and the peaks of the command and of its workers."""
    start = time.monotonic()
    run = subprocess.Popen([sys.executable, "-m", "penstock", "convert", source, "-o", out,
                            "--key", "id", "--workers", str(WORKERS)], stdout=subprocess.DEVNULL)
    peaks = {}
    while run.poll() is None:
        assert time.monotonic() - start < SECONDS, "convert hangs"
        for pid in (run.pid, *children(run.pid)):
            peaks[pid] = max(peaks.get(pid, 0), peak_of(pid))
        time.sleep(0.02)
    assert run.returncode == 0, run.returncode
    return time.monotonic() - start, sorted(peaks.values())


def check_rows(path, n, row):
    with penstock.open(path) as pack:
        assert len(pack) == n, len(pack)
        for i, sample in enumerate(pack):
            expected = row(i)
            assert sample.key == expected.pop("id"), i
            assert {name: sample[name] for name in pack.schema} == expected, i


def case(folder, name, n, row, group, **options):
    source, out = folder / f"{name}.parquet", folder / f"{name}.pen"
    write(source, n, row, group, **options)
    seconds, peaks = convert(source, out)
    check_rows(out, n, row)
    print(f"{name}: {n:,} rows, {source.stat().st_size / 1e6:,.0f} MB, {seconds:.1f} s, "
          f"{n / seconds:,.0f} rows/s; peak of a process {peaks[-1] / MiB:.0f} MiB of "
          f"{ALLOWED / MiB:.0f}; every row compared", flush=True)
    assert len(peaks) == 1 + (WORKERS if n > group else 0), peaks
    assert peaks[-1] < ALLOWED, peaks


def main():
    with tempfile.TemporaryDirectory() as folder:
        case(pathlib.Path(folder), "many", MANY, small_row, GROUP, use_dictionary=False)
        case(pathlib.Path(folder), "large", LARGE, large_row, LARGE, write_batch_size=PAGE)
    print("2 passed, 0 failed")


if __name__ == "__main__":
    main()
