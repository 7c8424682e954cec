# SPDX-License-Identifier: Apache-2.0
"""What an experiment asks: its cells, and how one cell is measured."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

# One combination of the values of all axes: {"loader": "penstock", "threads": 2}.
Cell = Mapping[str, Any]

# The number of the round that warms up: it is recorded apart from the others.
WARM_UP = -1


class Arm:
    """One cell that is ready to be measured. Any method may raise Absent(reason)."""

    def prepared(self) -> dict[str, Any]:
        """What the report keeps of the preparation: seconds, stored bytes, versions, notes."""
        return {}

    def shapes(self) -> list[dict[str, Any]]:
        """Checks of the simulated storage: each has shape, what, asked, measured, unit, within."""
        return []

    def turn(self, number: int) -> dict[str, Any]:
        """Measure once: at least seconds, samples and cpu (seconds of processor time).

        number  the round, from 0; WARM_UP for the first epoch
        """
        raise NotImplementedError

    def close(self) -> None:
        """Stop processes, release memory."""


class Question:
    """Cells to measure.

    warm_up  whether each arm has a turn of its own before the rounds, recorded as "first"
    """

    warm_up = True

    def inputs(self) -> list[dict[str, Any]]:
        """Identities of what is read: see inputs.describe()."""
        return []

    def versions(self) -> dict[str, str]:
        """Versions of further software."""
        return {}

    def groups(self) -> list[list[Cell]]:
        """Cells that are compared form a group. Their turns alternate: A B C A B C."""
        raise NotImplementedError

    def open(self, cell: Cell) -> Arm:
        """Prepare one cell. All arms of a group are open at a time."""
        raise NotImplementedError

    def close(self) -> None:
        """Called when the sweep ends, also when it fails."""
