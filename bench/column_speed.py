#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Time and memory of `pack.column` for a pack of any number of samples.

    PYTHONPATH=build/python column_speed.py [--samples N] [--work DIR]

Writes two packs of tiny images and labels: one with about 20,000 samples in each shard, whose
columns are read, and one of a single shard, which is too large for columns, so that the indexes of
its blocks are read. Prints for both the seconds and the growth of the peak memory for the labels
and for the sizes, each read in a process of its own, and what 10^8 samples would take at this rate.
The directory takes about 450 bytes for each sample.
"""

import argparse
import pathlib
import shutil
import struct
import subprocess
import sys
import tempfile
import time
import zlib

import penstock

READ = """
import re, sys, time
import numpy, penstock
def peak():
    return int(re.search(r"VmHWM:\\s+(\\d+)", open("/proc/self/status").read())[1])
pack = penstock.open(sys.argv[1])
pack.column("label", samples=slice(0, 1))
open("/proc/self/clear_refs", "w").write("5")  # the peak is what is in use now
before = peak()
begin = time.monotonic()
values = pack.column(*sys.argv[2:])
seconds = time.monotonic() - begin
print(seconds, peak() - before, values.nbytes)
"""


def png(width, height):
    def chunk(name, data):
        return struct.pack(">I", len(data)) + name + data + struct.pack(
            ">I", zlib.crc32(name + data))

    head = struct.pack(">IIBBBBB", width, height, 8, 0, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(
        b"IDAT", zlib.compress(bytes(height * (width + 1)))) + chunk(b"IEND", b"")


def write(path, n, shard_size):
    images = [png(1 + i % 7, 1 + i % 5) for i in range(35)]
    begin = time.monotonic()
    with penstock.Writer(path, {"image": "image", "label": "i64"}, block_samples=1024,
                         shard_size=shard_size) as writer:
        for i in range(n):
            writer.add(f"{i:09d}", image=images[i % 35], label=i)
    return time.monotonic() - begin


def read(path, *column):
    done = subprocess.run([sys.executable, "-c", READ, path, *column], check=True,
                          stdout=subprocess.PIPE, text=True)
    seconds, growth, size = done.stdout.split()
    return float(seconds), int(growth) / 1024, int(size)


def main():
    ask = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    ask.add_argument("--samples", type=int, default=1000000)
    ask.add_argument("--work", help="a directory on a disk with room")
    given = ask.parse_args()
    work = pathlib.Path(tempfile.mkdtemp(dir=given.work))
    try:
        for name, size in ("columns", "4MiB"), ("indexes", "512GiB"):
            path = work / f"{name}.pen"
            seconds = write(path, given.samples, size)
            info = penstock.open(path).info
            print(f"{name}: {given.samples} samples in {info['n_shards']} shards, written in "
                  f"{seconds:.0f} s; {info['section_bytes'] / given.samples:.2f} bytes of columns "
                  f"and {info['index_bytes'] / given.samples:.0f} of indexes for each sample")
            for column in ("label",), ("image", "size"):
                seconds, growth, values = min(read(path, *column) for _ in range(3))
                print(f"  {' '.join(column)}: {seconds:.3f} s, {values / 1e6:.0f} MB of values, "
                      f"peak memory {growth:.0f} MB more; 10^8 samples at this rate: "
                      f"{seconds * 1e8 / given.samples:.1f} s, "
                      f"{values / given.samples / 10:.1f} GB of values")
    finally:
        shutil.rmtree(work)


if __name__ == "__main__":
    main()
