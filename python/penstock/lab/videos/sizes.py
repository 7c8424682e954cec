# SPDX-License-Identifier: Apache-2.0
"""How much room videos take: as files, as packs that keep them, and as packs of their frames."""

from __future__ import annotations

import time
from typing import Any

from ..clips.sets import room
from ..errors import Absent, LabError
from ..experiment.question import Arm, Cell
from . import sets

SOURCE = "source"  # the length of videos that are not encoded again
FORMS = {
    "videos": "video files",
    "kept.pen": "kept videos",
    "gop12.pen": f"kept videos, encoded with -g {sets.MORE_KEYS}",
    "frames.pen": "frames as JPEG",
    "small.pen": f"frames as JPEG, --short-side {sets.SMALL}",
}


def groups(settings: list[tuple[str, int]]) -> list[list[Cell]]:
    """All forms of the source, and of the videos of each (length, GOP)."""
    return [[{"task": "size", "length": length, "gop": gop, "form": form} for form in FORMS]
            for length, gop in [(SOURCE, 0), *settings]]


class SizeArm(Arm):
    """Videos in one form. Its samples are frames."""

    def __init__(self, cell: Cell, of: sets.Sets) -> None:
        self.cell, self.sets = cell, of

    def _made(self) -> sets.Set:
        length, gop = self.cell["length"], self.cell["gop"]
        made = self.sets.source() if length == SOURCE else self.sets.make(length, gop)
        made.need(self.cell["form"])
        return made

    def prepared(self) -> dict[str, Any]:
        try:
            self.set = self._made()
        except LabError as error:
            raise Absent(str(error)) from None
        return {"title": FORMS[self.cell["form"]]}

    def turn(self, number: int) -> dict[str, Any]:
        began, cpu = time.perf_counter(), time.process_time()
        found = room(self.set.folder, self.cell["form"])
        return {"seconds": time.perf_counter() - began, "samples": self.set.frames(),
                "cpu": time.process_time() - cpu, **found}
