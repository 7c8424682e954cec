# SPDX-License-Identifier: Apache-2.0
"""The arguments `tokens` and `lengths`: batches of one number of tokens and several lengths."""

from __future__ import annotations

import array
from collections.abc import Iterable
from typing import NamedTuple

from . import _check, _subset
from ._error import InvalidError

_MOST = 64


class Budget(NamedTuple):
    """Every step has one of the lengths, and tokens // length samples per rank."""

    tokens: int
    lengths: tuple[int, ...]

    def most(self) -> int:
        """Samples of the largest batch."""
        return self.tokens // min(self.lengths)

    def packed(self) -> memoryview:
        """The lengths for the library."""
        return memoryview(array.array("I", self.lengths)).cast("B")


def choose(
    tokens: int | None, lengths: Iterable[int] | None, batch_size: int | None
) -> Budget | None:
    """The budget, checked; None: batches have batch_size samples."""
    if tokens is None and lengths is None:
        if batch_size is None:
            raise TypeError("batch_size: missing; pass batch_size=256, or tokens= and lengths=")
        return None
    if batch_size is not None:
        raise InvalidError(
            "tokens, lengths: expected batch_size or a token budget, found both; "
            "a batch has tokens // length samples"
        )
    if tokens is None or lengths is None:
        given = "lengths" if tokens is None else "tokens"
        raise InvalidError(f"tokens, lengths: expected both, found only {given}")
    tokens = _check.integer("tokens", tokens, 1, 2**32 - 1)
    expected = "lengths: expected a list of numbers of patches"
    found = _subset.as_list(_subset.as_array(lengths), expected)
    if not 1 <= len(found) <= _MOST:
        raise InvalidError(f"lengths: expected 1 to {_MOST} numbers, found {len(found)}")
    return Budget(
        tokens,
        tuple(
            _check.integer(f"lengths: entry {i}", length, 1, tokens)
            for i, length in enumerate(found)
        ),
    )
