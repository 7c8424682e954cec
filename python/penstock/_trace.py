# SPDX-License-Identifier: Apache-2.0
"""Trace a program: penstock.trace()."""

from __future__ import annotations

import contextlib
import os

from . import _check, _dist, _loader, _spans
from ._error import Error


def trace(
    path: str | os.PathLike[str],
    *,
    rank: int | None = None,
    world_size: int | None = None,
    samples_per_second: float = _spans.SAMPLES_PER_SECOND,
) -> _spans.Trace:
    """Write what every thread of the loaders of this process does to a file, until the `with`
    block ends. Perfetto (ui.perfetto.dev) shows it.

        with penstock.trace("run.json.gz"):
            for image, label in loader:
                with penstock.span("run_batch"):
                    ...

    path  the file: .json, or .json.gz for gzip. An existing file is replaced. With several ranks,
          give each its own name.
    rank, world_size
          None: from torch.distributed, torchrun or Slurm; else 0 and 1
    samples_per_second
          how often CPU, memory, disk, network and GPUs are sampled; 0: never
    """
    rate = _check.real("samples_per_second", samples_per_second, 0, 100)
    made = _spans.Trace(_check.path(path), *_dist.place(rank, world_size), rate)
    for reference in list(_loader._alive):
        loader = reference()
        if loader is not None:
            with contextlib.suppress(Error):  # it may have been closed meanwhile
                made._follow(loader)
    return made
