# SPDX-License-Identifier: Apache-2.0
"""What a conversion has done."""

from __future__ import annotations

from typing import NamedTuple


class Progress(NamedTuple):
    """What penstock.convert has done so far. The last one is its result.

    samples  rows written
    skipped  rows left out, because an image is broken
    bad      key and reason of the first 100 of these
    n_bytes  bytes of images, texts and other data in the rows written
    n_rows   rows of the dataset; None: not known before they are read
    """

    samples: int
    skipped: int
    bad: list[tuple[str, str]]
    n_bytes: int
    n_rows: int | None
