# SPDX-License-Identifier: Apache-2.0
"""The samples that the options -s and -k select."""

from __future__ import annotations

import re
from collections.abc import Sequence

from .._error import InvalidError, NotFoundError
from .._pack import Pack

_RANGE = re.compile(r"(\d{1,19})(?:-(\d{1,19}))?", re.A)


def _of_numbers(pack: Pack, text: str) -> range:
    match = _RANGE.fullmatch(text)
    first, last = (int(match[1]), int(match[2] or match[1])) if match else (1, 0)
    if last < first:
        raise InvalidError(f"-s {text}: expected the number of a sample, or a range such as 10-19")
    if last >= len(pack):
        raise NotFoundError(f"-s {text}: the pack has {len(pack)} samples, numbered from 0")
    return range(first, last + 1)


def _of_key(pack: Pack, key: str) -> range:
    try:
        number = pack.index(key)
    except NotFoundError:
        raise NotFoundError(
            f"-k {key}: no sample has this key; 'penstock info --samples' lists the keys"
        ) from None
    return range(number, number + 1)


def select(pack: Pack, numbers: Sequence[str], keys: Sequence[str]) -> list[range]:
    """In the order of the pack, each sample once; all samples if nothing is given."""
    if not numbers and not keys:
        return [range(len(pack))]
    found = [_of_numbers(pack, text) for text in numbers] + [_of_key(pack, key) for key in keys]
    ranges: list[range] = []
    for one in sorted(found, key=lambda one: one.start):
        end = ranges[-1].stop if ranges else 0
        if one.stop > end:
            ranges.append(range(max(one.start, end), one.stop))
    return ranges
