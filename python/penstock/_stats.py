# SPDX-License-Identifier: Apache-2.0
"""The counters of a loader: as a dict, as OpenMetrics text, and merged over ranks.

docs/reference/counters.md describes each of them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from . import _core
from ._error import InvalidError
from ._mix import Mix
from ._pack import Pack

# Of the pack's counters, those that belong to loading, by the names that stats() gives them.
_REMOTE = {
    "requests": "requests",
    "retries": "retries",
    "hedges": "hedges",
    "throttles": "throttles",
    "failures": "request_failures",
    "bytes": "bytes_received",
}
_CACHE = {"hits": "cache_hits", "misses": "cache_misses"}

# What is measured now; everything else only grows.
_GAUGES = {
    "threads": "decoding threads",
    "io_threads": "threads that read or fetch",
    "io_threads_wanted": "threads that would read or fetch with more memory",
    "slots": "batches that the ring has room for",
    "slots_ready": "batches that are ready",
    "slots_leased": "batches that the caller holds",
    "samples_ready": "samples that were read and wait to be decoded",
    "memory_bytes": "memory in use",
    "memory_peak_bytes": "most memory that was in use",
    "memory_wanted_bytes": "memory limit with which entire blocks would be requested",
}
_COUNTERS = {
    "batches": "batches delivered",
    "samples": "samples delivered",
    "padded_samples": "repeated samples delivered to pad batches",
    "substituted": "bad samples that were replaced",
    "bytes_read": "bytes read from the pack",
    "requests": "requests sent, including retries and hedges",
    "retries": "requests repeated after a failure",
    "hedges": "hedged requests",
    "throttles": "responses that asked to slow down",
    "request_failures": "requests that failed for good",
    "bytes_received": "bytes received in response bodies",
    "cache_hits": "blocks found in the cache",
    "cache_misses": "blocks not found in the cache",
}
_STAGES = ("fetch", "read", "verify", "decode", "resample", "store")
_IDLE = ("fetch", "read", "decode")


class Counters:
    """Reads the counters of a loader and its pack, in total and of an epoch."""

    def __init__(self, core: _core.Loader, pack: Pack | Mix) -> None:
        self._core = core
        self._pack = pack
        self._transform_seconds = self._transform_begin = 0.0
        self._at_begin = self._of_pack()

    def _of_pack(self) -> dict[str, int]:
        remote, cache = self._pack.remote_stats(), self._pack.cache_stats()
        return {name: remote[key] for key, name in _REMOTE.items()} | {
            name: cache[key] for key, name in _CACHE.items()
        }

    def begin_epoch(self) -> None:
        self._at_begin = self._of_pack()
        self._transform_begin = self._transform_seconds

    def add_transform(self, seconds: float) -> None:
        self._transform_seconds += seconds

    def _of_epoch(self) -> float:
        return self._transform_seconds - self._transform_begin

    def diagnosis(self) -> dict[str, Any]:
        return self._core.diagnosis(self._of_epoch())

    def read(self) -> dict[str, Any]:
        total = self._core.stats(False, self._transform_seconds)
        epoch = self._core.stats(True, self._of_epoch())
        total["transform_seconds"] = self._transform_seconds
        epoch["transform_seconds"] = self._of_epoch()
        of_pack = self._of_pack()
        total |= of_pack
        epoch |= {name: of_pack[name] - self._at_begin[name] for name in of_pack}
        for counters in (total, epoch):
            counters["wait_share"] = wait_share(counters)
        return total | {"epoch": epoch}


def wait_share(counters: Mapping[str, Any]) -> float:
    """The part of the elapsed time in which the caller waited for batches."""
    elapsed = counters["elapsed_seconds"]
    return min(1.0, counters["wait_seconds"] / elapsed) if elapsed else 0.0


_MERGED = ("samples", "bytes_read", "substituted", "wait_seconds", "wait_share")
_STRAGGLES = 0.1  # it waits for so much more of the time than the fastest rank


def _check_ranks(ranks: Any) -> list[Mapping[str, Any]]:
    if isinstance(ranks, (list, tuple)) and ranks:
        if all(isinstance(one, dict) and set(_MERGED) <= set(one) for one in ranks):
            return list(ranks)
    raise InvalidError("ranks: expected a list with the stats() of each rank")


def merge_stats(ranks: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Merge the stats() of all ranks: the sums of samples and bytes, and the rank that waited
    longest for its batches, which the other ranks wait for. Its number is also the straggler, if
    its `wait_share` is at least 0.1 above that of the fastest rank."""
    found = _check_ranks(ranks)
    waits = [counters["wait_seconds"] for counters in found]
    slowest = max(range(len(found)), key=waits.__getitem__)
    shares = [counters["wait_share"] for counters in found]
    straggles = shares[slowest] - min(shares) >= _STRAGGLES
    return {
        "ranks": len(found),
        "samples": sum(counters["samples"] for counters in found),
        "bytes_read": sum(counters["bytes_read"] for counters in found),
        "substituted": sum(counters["substituted"] for counters in found),
        "wait_seconds_max": waits[slowest],
        "wait_seconds_min": min(waits),
        "wait_share_max": max(shares),
        "slowest_rank": slowest,
        "straggler": slowest if straggles else None,
        "bottleneck": found[slowest].get("bottleneck", "unknown"),
    }


# ---- OpenMetrics


def _escape(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")


def _labels(labels: Mapping[str, str]) -> str:
    return "{" + ",".join(f'{name}="{_escape(value)}"' for name, value in labels.items()) + "}"


class _Text:
    """Lines of OpenMetrics text, with the same labels on each sample."""

    def __init__(self, labels: Mapping[str, str]) -> None:
        self._common = labels
        self.lines: list[str] = []

    def family(self, name: str, kind: str, text: str) -> None:
        self.lines += [f"# TYPE penstock_{name} {kind}", f"# HELP penstock_{name} {text}"]

    def sample(self, name: str, value: float, **labels: str) -> None:
        self.lines.append(f"penstock_{name}{_labels({**self._common, **labels})} {value}")


def _add_waits(text: _Text, stats: Mapping[str, Any]) -> None:
    text.family("wait_seconds", "histogram", "Time that the caller waited for a batch.")
    buckets, seen = stats["wait_buckets"], 0
    for i, count in enumerate(buckets):
        seen += count
        end = "+Inf" if i == len(buckets) - 1 else repr(2**i / 1e6)
        text.sample("wait_seconds_bucket", seen, le=end)
    text.sample("wait_seconds_count", seen)
    text.sample("wait_seconds_sum", stats["wait_seconds"])


def metrics(stats: Mapping[str, Any], labels: Mapping[str, str]) -> str:
    """The counters of stats() as OpenMetrics text."""
    text = _Text(labels)
    for name, about in _GAUGES.items():
        text.family(name, "gauge", about.capitalize() + ".")
        text.sample(name, stats[name])
    for name, about in _COUNTERS.items():
        text.family(name, "counter", about.capitalize() + ".")
        text.sample(f"{name}_total", stats[name])
    text.family("stage_seconds", "counter", "Time of the threads in each stage.")
    for stage in _STAGES:
        text.sample("stage_seconds_total", stats[f"{stage}_seconds"], stage=stage)
    text.family("idle_seconds", "counter", "Time that threads waited for work.")
    for kind in _IDLE:
        text.sample("idle_seconds_total", stats[f"{kind}_idle_seconds"], threads=kind)
    text.family("memory_wait_seconds", "counter", "Time that readers waited for memory.")
    text.sample("memory_wait_seconds_total", stats["memory_wait_seconds"])
    _add_waits(text, stats)
    return "\n".join([*text.lines, "# EOF"]) + "\n"
