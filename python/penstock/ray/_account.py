# SPDX-License-Identifier: Apache-2.0
"""The result of packing on Ray."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any


@dataclasses.dataclass(frozen=True)
class Account:
    """What packing on Ray has done.

    pack          path or URL of the pack
    id            identifier of the pack in hexadecimal
    samples       samples in the pack
    bytes         bytes of the pack
    source_bytes  bytes of the inputs
    seconds       time of the call
    tasks         number of tasks
    retries       how often a task was started again
    broken        broken inputs that were left out
    bad_report    file that lists them with the reasons, or None
    """

    pack: str
    id: str
    samples: int
    bytes: int
    source_bytes: int
    seconds: float
    tasks: int
    retries: int
    broken: int
    bad_report: str | None

    def text(self) -> str:
        """Two columns, as the program prints results."""
        rows = {
            name.replace("_", " "): f"{value:,}" if isinstance(value, int) else str(value)
            for name, value in dataclasses.asdict(self).items()
            if value is not None
        }
        rows["seconds"] = f"{self.seconds:.1f} s"
        width = max(map(len, rows))
        return "\n".join(f"{name:{width}}  {value}" for name, value in rows.items())


def of_result(
    result: Mapping[str, Any], seconds: float, tasks: int, retries: int, bad_report: str | None
) -> Account:
    """From what `penstock finalise --json` prints."""
    return Account(
        pack=result["pack"],
        id=result["id"],
        samples=result["samples"],
        bytes=result["bytes"]["pack"],
        source_bytes=result["bytes"]["source"],
        seconds=seconds,
        tasks=tasks,
        retries=retries,
        broken=result["broken_inputs_left_out"],
        bad_report=bad_report,
    )
