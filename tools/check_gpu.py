#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Check on a machine with a GPU what the tests of penstock cannot check without one.

    python3 tools/check_gpu.py [PACK] [--json check_gpu.json] [--seconds 5]

It checks that pin_memory=True really pins batches, that copies to the device are asynchronous, that
batches stay intact while copies run, and that copies overlap with computation. It also measures
images per second to the device, from images that it draws, or from PACK. For a rate that means
something, name a pack of your photographs.

It needs penstock and PyTorch with CUDA, takes about a minute, and prints a table. Please attach the
JSON file to an issue, also if all is well. Exit code: 0 if all checks pass, 1 if one fails, 77 if
there is no CUDA device.
"""

import argparse
import contextlib
import json
import math
import pathlib
import platform
import struct
import sys
import tempfile
import time
import zlib

try:
    import penstock
    import torch
except ImportError as error:
    sys.exit(f"check_gpu: {error}; install penstock and PyTorch with CUDA")

PIPELINE = "decode | random_resized_crop 224 | hflip | tensor u8"
BATCH, BATCHES = 32, 16
# Two batches fit into so much memory, so that a slot is reused at once.
LITTLE_MEMORY = "24MiB"
LONG_MS, SHORT_MS = 100, 5  # delays before a copy
MIN_OVERLAP_PERCENT = 50
SKIPPED = 77


class Cuda:
    """The calls of CUDA that the checks need. The tests replace this class."""

    def __init__(self):
        self.name = torch.cuda.get_device_name()
        self._factor = torch.rand(2048, 2048, device="cuda")
        self._product = torch.empty_like(self._factor)
        self._side = torch.cuda.Stream()
        self.compute(3)  # the first calls load libraries
        self._compute_ms = max(self.elapsed_ms(lambda: self.compute(10)) / 10, 0.001)

    def loader(self, pack, **settings):
        return penstock.Loader(pack, pin_memory=True, **settings)

    def compute(self, times):
        for _ in range(times):
            torch.mm(self._factor, self._factor, out=self._product)

    def delay(self, ms):
        """Keep the current stream busy for so long, without waiting for it."""
        self.compute(math.ceil(ms / self._compute_ms))

    def copy(self, tensor):
        return tensor.to("cuda", non_blocking=True)

    def is_pinned(self, tensor):
        return tensor.is_pinned()

    def stream(self):
        """A context in which another stream is the current one. Neither waits for the other."""
        return torch.cuda.stream(self._side)

    def synchronize(self):
        torch.cuda.synchronize()

    def elapsed_ms(self, work):
        """How long the device needs for the work, from an idle device to an idle device."""
        self.synchronize()
        start = time.perf_counter()
        work()
        self.synchronize()
        return (time.perf_counter() - start) * 1e3


def result(name, passed, found, expected):
    return {"check": name, "passed": passed, "found": found, "expected": expected}


def check_pinned(cuda, pack):
    with cuda.loader(pack, batch_size=BATCH, pipeline=PIPELINE) as loader:
        batches = [all(cuda.is_pinned(tensor) for tensor in batch) for batch in loader]
    return result("batches are pinned", all(batches), f"{sum(batches)} of {len(batches)}", "all")


def check_asynchronous(cuda, pack):
    """A copy that waits for the device would take as long as what the device does before it."""
    with cuda.loader(pack, batch_size=BATCH, pipeline=PIPELINE) as loader:
        image = next(iter(loader)).image
        cuda.copy(image)
        cuda.synchronize()
        cuda.delay(LONG_MS)
        start = time.perf_counter()
        cuda.copy(image)
        ms = (time.perf_counter() - start) * 1e3
        cuda.synchronize()
    return result("a copy does not wait for the device", ms < LONG_MS / 2, f"{ms:.1f} ms",
                  f"less than {LONG_MS // 2} ms")


def all_copies(cuda, loader):
    """Copies of all batches on the device. Each host batch is released at once."""
    copies = []
    for batch in loader:
        cuda.delay(SHORT_MS)
        copies.append(cuda.copy(batch.image))
        del batch
    cuda.synchronize()
    return [copy.cpu() for copy in copies]


def check_intact(cuda, pack, name, stream):
    """Late copies, and slots that are reused at once: each copy must have its own batch."""
    settings = {"batch_size": BATCH, "pipeline": PIPELINE, "shuffle": True, "seed": 1}
    with penstock.Loader(pack, **settings) as plain:
        expected = [batch.image.clone() for batch in plain]
    with stream(), cuda.loader(pack, memory=LITTLE_MEMORY, threads=2, **settings) as loader:
        found = all_copies(cuda, loader)
    good = sum(torch.equal(a, b) for a, b in zip(expected, found))
    passed = good == len(expected) == len(found)
    return result(name, passed, f"{good} of {len(expected)}", "all")


def check_overlap(cuda, pack):
    """Copies on one stream beside computation on another, against one after the other."""
    with cuda.loader(pack, batch_size=BATCH, pipeline=PIPELINE) as loader:
        image = next(iter(loader)).image

        def copies():
            with cuda.stream():
                for _ in range(100):
                    cuda.copy(image)

        def both():
            cuda.delay(copy_ms)
            copies()

        cuda.elapsed_ms(copies)  # the first time, memory is allocated
        copy_ms = cuda.elapsed_ms(copies)
        compute_ms = cuda.elapsed_ms(lambda: cuda.delay(copy_ms))
        both_ms = cuda.elapsed_ms(both)
    percent = 100 * (copy_ms + compute_ms - both_ms) / min(copy_ms, compute_ms)
    found = f"{percent:.0f} % ({copy_ms:.1f} and {compute_ms:.1f} ms take {both_ms:.1f} ms)"
    return result("copies overlap with computation", percent >= MIN_OVERLAP_PERCENT, found,
                  f"at least {MIN_OVERLAP_PERCENT} %")


def rate(make, seconds, cuda=None):
    """Images per second; with a device, until they are there."""
    with make() as loader:
        images, start = 0, time.perf_counter()
        while time.perf_counter() - start < seconds:
            for batch in loader:
                images += len(cuda.copy(batch.image) if cuda else batch.image)
        if cuda:
            cuda.synchronize()
        return images / (time.perf_counter() - start)


def rates(cuda, pack, seconds):
    settings = {"batch_size": BATCH, "pipeline": PIPELINE, "shuffle": True}

    def pinned():
        return cuda.loader(pack, **settings)

    def plain():
        return penstock.Loader(pack, **settings)

    return {"host_images_per_second": round(rate(plain, seconds)),
            "device_images_per_second": round(rate(plain, seconds, cuda)),
            "device_pinned_images_per_second": round(rate(pinned, seconds, cuda))}


def png(number, side=256):
    """A gradient as a PNG file."""
    def chunk(kind, data):
        body = kind + data
        return struct.pack(">I", len(data)) + body + struct.pack(">I", zlib.crc32(body))

    step = number % 7 + 1
    row = bytes((x * step + number * 31 * c) % 256 for x in range(side) for c in range(3))
    rows = b"".join(b"\0" + row[y % 64 * 3:] + row[:y % 64 * 3] for y in range(side))
    head = struct.pack(">IIBBBBB", side, side, 8, 2, 0, 0, 0)
    return (b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", zlib.compress(rows, 1)) +
            chunk(b"IEND", b""))


def draw_pack(folder):
    path = pathlib.Path(folder) / "check_gpu.pen"
    rows = ({"image": png(i), "label": i % 3} for i in range(BATCH * BATCHES))
    penstock.write(path, rows, {"image": "image", "label": "i64"})
    return path


def check_all(cuda, folder, pack, seconds):
    """All that is known afterwards, as JSON has it. `pack` is for the rates, or None."""
    drawn = draw_pack(folder)
    checks = [
        check_pinned(cuda, drawn),
        check_asynchronous(cuda, drawn),
        check_intact(cuda, drawn, "batches stay intact, default stream", contextlib.nullcontext),
        check_intact(cuda, drawn, "batches stay intact, another stream", cuda.stream),
        check_overlap(cuda, drawn),
    ]
    return {"penstock": penstock.__version__, "torch": torch.__version__,
            "cuda": torch.version.cuda, "gpu": cuda.name, "machine": platform.platform(),
            "checks": checks, "rates": rates(cuda, pack or drawn, seconds)}


def print_table(report):
    rows = [("check", "result", "found", "expected")]
    rows += [(c["check"], "pass" if c["passed"] else "FAIL", c["found"], c["expected"])
             for c in report["checks"]]
    widths = [max(len(row[i]) for row in rows) for i in range(4)]
    print(f"{report['gpu']}, CUDA {report['cuda']}, torch {report['torch']}, "
          f"penstock {report['penstock']}\n")
    for row in rows:
        print("  ".join(cell.ljust(width) for cell, width in zip(row, widths)).rstrip())
    print()
    for name, value in report["rates"].items():
        print(f"{name:<32} {value:>8,}")


def main(arguments=None, device=None):
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("pack", nargs="?", help="a pack with a field 'image', for the rates")
    parser.add_argument("--json", default="check_gpu.json", help="where the result is written")
    parser.add_argument("--seconds", type=float, default=5, help="of each measurement of a rate")
    args = parser.parse_args(arguments)
    if device is None and not torch.cuda.is_available():
        print("check_gpu: not run: PyTorch finds no CUDA device")
        return SKIPPED
    with tempfile.TemporaryDirectory(prefix="penstock-check-gpu-") as folder:
        report = check_all(device or Cuda(), folder, args.pack, args.seconds)
    print_table(report)
    pathlib.Path(args.json).write_text(json.dumps(report, indent=1) + "\n", encoding="utf-8")
    failed = sum(not check["passed"] for check in report["checks"])
    print(f"\n{len(report['checks']) - failed} passed, {failed} failed")
    print(f"Please attach {args.json} to an issue.")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
