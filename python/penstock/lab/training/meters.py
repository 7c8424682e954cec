# SPDX-License-Identifier: Apache-2.0
"""Count what training does: time, the part of it spent waiting for data, loss and accuracy."""

from __future__ import annotations

import time
from typing import Any

_SUMS = ("batches", "samples", "seconds", "data_seconds", "loss", "top1", "top5")


def correct(scores: Any, label: Any) -> tuple[int, int]:
    """How many labels are the best class, and how many are among the best five."""
    best = scores.topk(min(5, scores.shape[1]), dim=1).indices
    hits = best == label.unsqueeze(1)
    return int(hits[:, 0].sum()), int(hits.any(dim=1).sum())


class Meter:
    """Sums over a pass. Means are made at the end, over samples and over all of the time."""

    def __init__(self, state: dict[str, float] | None = None) -> None:
        self.sums: dict[str, float] = dict.fromkeys(_SUMS, 0)
        self.sums.update(state or {})
        self.last: tuple[float, float] = (0, 0)
        self.start()

    def start(self) -> None:
        """The time of the next batch begins now."""
        self._start = self._got = time.perf_counter()

    def got_batch(self) -> None:
        """The batch has arrived. What follows is computing."""
        self._got = time.perf_counter()

    def done_batch(self, samples: int, loss: float, top1: int, top5: int) -> None:
        """loss is the mean over the samples."""
        now = time.perf_counter()
        self.last = now - self._start, self._got - self._start
        parts = (1, samples, *self.last, loss * samples, top1, top5)
        for name, value in zip(_SUMS, parts):
            self.sums[name] += value
        self._start = now

    def result(self) -> dict[str, float]:
        """What a report has of a pass. Rates are samples over elapsed time."""
        sums, n = self.sums, max(1, self.sums["samples"])
        seconds = max(1e-9, sums["seconds"])
        return {
            "samples": sums["samples"],
            "seconds": sums["seconds"],
            "data_seconds": sums["data_seconds"],
            "data_share": sums["data_seconds"] / seconds,
            "samples_per_second": sums["samples"] / seconds,
            "loss": sums["loss"] / n,
            "top1": 100 * sums["top1"] / n,
            "top5": 100 * sums["top5"] / n,
        }

    def line(self) -> str:
        """Time and Data are seconds per batch: of the last one, and in brackets the mean."""
        now, n = self.result(), max(1, self.sums["batches"])
        return (
            f"Time {self.last[0]:.3f} ({now['seconds'] / n:.3f})"
            f"  Data {self.last[1]:.3f} ({now['data_seconds'] / n:.3f})"
            f"  Loss {now['loss']:.4f}  Prec@1 {now['top1']:.2f}  Prec@5 {now['top5']:.2f}"
        )
