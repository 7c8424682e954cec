# SPDX-License-Identifier: Apache-2.0
"""Several shapes at once, such as a slow disk and little memory."""

from __future__ import annotations

import contextlib
import dataclasses
import pathlib
from collections.abc import Iterator, Sequence

from .memory import MemoryPlace
from .shape import PathLike, Place, Shape


class CombinedPlace(Place):
    """Each place is built on the one before it."""

    def __init__(self, places: Sequence[Place]) -> None:
        super().__init__(places[0].origin)
        self.places, self.folder = places, places[-1].folder
        for place in places:
            self.words += place.words
            self.environment.update(place.environment)
            self.checks += place.checks

    def path(self, original: PathLike) -> pathlib.Path:
        found = pathlib.Path(original)
        for place in self.places:
            found = place.path(found)
        return found

    def join(self, pid: int) -> None:
        for place in self.places:
            place.join(pid)

    def refresh(self) -> None:
        """Nothing with a memory limit: see Memory."""
        if not any(isinstance(place, MemoryPlace) for place in self.places):
            for place in self.places:
                place.refresh()

    def counts(self) -> dict[str, int]:
        return {name: value for place in self.places for name, value in place.counts().items()}


@dataclasses.dataclass(frozen=True)
class Combined(Shape):
    shapes: tuple[Shape, ...]

    @property
    def text(self) -> str:  # type: ignore[override]
        return "+".join(shape.text for shape in self.shapes)

    @contextlib.contextmanager
    def apply(self, paths: Sequence[PathLike], measure: bool = True) -> Iterator[Place]:
        with contextlib.ExitStack() as stack:
            places, here = [], list(paths)
            for shape in self.shapes:
                place = stack.enter_context(shape.apply(here, measure))
                here = [place.path(path) for path in here]
                places.append(place)
            yield CombinedPlace(places)
