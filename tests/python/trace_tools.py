# SPDX-License-Identifier: Apache-2.0
"""Reads traces as a strict reader does, and as one that knows that a process may be killed."""

import collections
import gzip
import json
import zlib

# Inside of another span of their thread.
INNER = {"verify", "resample", "store", "wait_bytes", "next"}


def load(path):
    """The events of a trace that was closed."""
    data = path.read_bytes()
    return json.loads(gzip.decompress(data) if path.suffix == ".gz" else data)


def load_killed(path):
    """Those of a trace whose process was killed: all complete lines."""
    data = path.read_bytes()
    if path.suffix == ".gz":
        data = zlib.decompressobj(31).decompress(data)
    first, *lines = data.decode().split("\n")
    assert first == "["
    return [json.loads(line.removesuffix(",")) for line in lines[:-1]]


def spans(events, name):
    return [event for event in events if event["name"] == name and event["ph"] == "X"]


def names(events):
    return collections.Counter(event["name"] for event in events)


def about(events, name):
    """The arguments of metadata."""
    return next(event["args"] for event in events if event["name"] == name)


def tracks(events):
    """Spans of each thread of a loader that are in no other, in the order of time: by its name."""
    threads = {event["tid"]: event["args"]["name"] for event in events
               if event["name"] == "thread_name"}
    found = collections.defaultdict(list)
    for event in events:
        if event["ph"] == "X" and event["name"] not in INNER:
            found[threads[event["tid"]]].append(event)
    for track in found.values():
        track.sort(key=lambda event: event["ts"])
    return found
