# SPDX-License-Identifier: Apache-2.0
"""Texts that describe shapes: local, disk=20MB/s, seeks=7ms, memory=300MB, cold, store=110ms."""

from __future__ import annotations

import re

from ..._error import InvalidError
from .cache import HOW as CACHE_STATES
from .cache import Cache
from .combined import Combined
from .disk import Disk
from .memory import Memory
from .seeks import Seeks
from .shape import Shape
from .store import Store

GRAMMAR = (
    "local, disk=20MB/s, seeks=7ms, memory=300MB, cold, cold=machine, warm, store=110ms, "
    "store=110ms@50MB/s; several are joined by '+', as in disk=20MB/s+memory=300MB"
)
BYTES = {"KB": 10**3, "MB": 10**6, "GB": 10**9, "KiB": 2**10, "MiB": 2**20, "GiB": 2**30}
NUMBER = r"(\d+(?:\.\d+)?)"
RATE = NUMBER + r"(KB|MB|GB|KiB|MiB|GiB)/s"


def _rate(number: str, unit: str) -> float:
    return float(number) * BYTES[unit] / 1e6


def _one(text: str) -> Shape | None:
    if text == "local":
        return Shape()
    if text in CACHE_STATES:
        return Cache(text)
    if found := re.fullmatch(f"disk={RATE}", text):
        return Disk(_rate(*found.groups()))
    if found := re.fullmatch(f"seeks={NUMBER}ms", text):
        return Seeks(float(found[1]))
    if found := re.fullmatch(f"memory={NUMBER}(KB|MB|GB|KiB|MiB|GiB)", text):
        return Memory(round(float(found[1]) * BYTES[found[2]]))
    if found := re.fullmatch(f"store={NUMBER}ms(?:@{RATE})?", text):
        return Store(float(found[1]), _rate(found[2], found[3]) if found[2] else None)
    return None


def _positive(shape: Shape) -> bool:
    values = [getattr(shape, name, 1) for name in ("mb_per_second", "limit", "milliseconds")]
    return all(value is None or value > 0 for value in values)


def parse(text: str) -> Shape:
    """The shape that a text describes; InvalidError if it describes none."""
    shapes = [_one(part.strip()) for part in text.split("+")]
    if not all(shape and _positive(shape) for shape in shapes):
        raise InvalidError(f"storage '{text}': expected one of {GRAMMAR}")
    known = tuple(shape for shape in shapes if shape)
    return known[0] if len(known) == 1 else Combined(known)
