# SPDX-License-Identifier: Apache-2.0
"""A process that reads one file once it may: it measures the limits that were put on it.

    probe.py FILE    reads after a line on stdin, and prints bytes per second

The rate is that of the entire file: a throttled disk delivers the data of a readahead at once.
"""

from __future__ import annotations

import os
import sys
import time

CHUNK = 1 << 18


def read_rate(file: str) -> float:
    fd, done = os.open(file, os.O_RDONLY), 0
    began = time.monotonic()
    while data := os.pread(fd, CHUNK, done):
        done += len(data)
    return done / (time.monotonic() - began)


def main() -> None:
    sys.stdin.readline()
    print(read_rate(sys.argv[1]), flush=True)
    sys.stdin.readline()  # stays alive, with its pages charged to its group


if __name__ == "__main__":
    main()
