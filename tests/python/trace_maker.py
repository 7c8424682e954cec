# SPDX-License-Identifier: Apache-2.0
"""Makes traces of known content."""

import gzip
import json


def span(name, begin, seconds, tid=1, pid=7, **args):
    """Times in seconds."""
    return {"ph": "X", "pid": pid, "tid": tid, "name": name, "ts": begin * 1e6,
            "dur": seconds * 1e6, "args": args}


def about(name, /, pid=7, tid=0, **args):
    return {"ph": "M", "pid": pid, "tid": tid, "name": name, "args": args}


def head(rank=0, pid=7, unix_us=1_000_000_000):
    return [about("process_name", pid, name=f"rank {rank} of 2"),
            about("penstock", pid, rank=rank, world=2, unix_minus_monotonic_us=unix_us)]


def write(path, events, closed=True):
    text = "[\n" + ",\n".join(map(json.dumps, events)) + ("\n]\n" if closed else ",\n{\"ph\":\"X")
    path.write_bytes(gzip.compress(text.encode()) if path.suffix == ".gz" else text.encode())
    return path


# A run of 10 s: the first half waits for data, the second half trains.
RUN = [
    *head(),
    about("thread_name", tid=1, name="MainThread"),
    about("thread_name", tid=2, name="decode 0"),
    about("thread_name", tid=3, name="read 0"),
    span("next_data", 100, 5), span("next", 100, 5, batch=0, epoch=0),
    span("run_batch", 105, 5),
    *(span("decode", 100 + i, 0.5, 2, sample=i, batch=0, epoch=0) for i in range(10)),
    span("resample", 100.1, 0.1, 2, sample=0, batch=0, epoch=0, one_in=31),
    span("store", 100.2, 0.2, 2, sample=0, batch=0, epoch=0, one_in=31),
    *(span("read", 100 + i / 10, 0.1, 3, sample=i, batch=0, epoch=0, bytes=10**6)
      for i in range(10)),
]

# The same run with another loader, whose worker is a process that joined the trace.
OTHER = [
    *head(),
    about("thread_name", tid=1, name="MainThread"),
    about("thread_name", tid=2, name="worker 0"),
    span("next_data", 100, 5), span("run_batch", 105, 5), span("forward", 105, 4.9),
    span("validate", 110, 0), span("get_batch", 100, 5, 2), span("request", 100, 3, 2),
    span("decode", 103, 1, 2), about("thread_name", tid=3, name="worker 1", pid=8),
    span("get_batch", 101, 1, 3, pid=8),
]
