# SPDX-License-Identifier: Apache-2.0
"""Measures a store from where its clients are.

    store_probe.py PORT BYTES REQUESTS    prints ms per request of one byte, and bytes per second
"""

from __future__ import annotations

import http.client
import socket
import statistics
import sys
import threading
import time

STREAMS = 4
START_SECONDS = 0.25  # what a token bucket holds goes at once


def latency_ms(port: int, count: int) -> float:
    """The median; without an HTTP library, whose own time would be part of it."""
    times = []
    with socket.create_connection(("127.0.0.1", port), timeout=30) as connection:
        for _ in range(count):
            began = time.perf_counter()
            connection.sendall(b"GET /lab/.zeros/1 HTTP/1.1\r\nHost: lab\r\n\r\n")
            answer = b""
            while not answer.endswith(b"\r\n\r\n\0"):
                data = connection.recv(4096)
                if not data:
                    raise ConnectionError("the store closed the connection")
                answer += data
            times.append(time.perf_counter() - began)
    return 1000 * statistics.median(times)


def receive(port: int, size: int, marks: list[tuple[float, int]]) -> None:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    connection.request("GET", f"/lab/.zeros/{size}")
    answer = connection.getresponse()
    while data := answer.read1(1 << 16):
        marks.append((time.perf_counter(), len(data)))


def bandwidth(port: int, size: int) -> float:
    """Of several connections, until the first one has ended."""
    lists: list[list[tuple[float, int]]] = [[] for _ in range(STREAMS)]
    threads = [threading.Thread(target=receive, args=(port, size // STREAMS, marks))
               for marks in lists]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    began = min(marks[0][0] for marks in lists) + START_SECONDS
    end = min(marks[-1][0] for marks in lists)
    if end - began < START_SECONDS:
        began -= START_SECONDS
    total = sum(n for marks in lists for at, n in marks if began < at <= end)
    return total / (end - began)


def main() -> None:
    port, size, count = map(int, sys.argv[1:])
    print(latency_ms(port, count), bandwidth(port, size) if size else 0.0, flush=True)


if __name__ == "__main__":
    main()
