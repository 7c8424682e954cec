# SPDX-License-Identifier: Apache-2.0
"""The rank of this process and the number of ranks."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping

from . import _check
from ._error import InvalidError

# Variables of torchrun, then of Slurm: srun sets the tasks of the step, sbatch those of the job.
_NAMES = (
    ("RANK", ("WORLD_SIZE",)),
    ("SLURM_PROCID", ("SLURM_STEP_NUM_TASKS", "SLURM_NTASKS")),
)
_MAX = 2**31 - 1


def _from_torch() -> tuple[int, int] | None:
    """From torch.distributed, if the program has imported and initialized it."""
    torch = sys.modules.get("torch")
    dist = getattr(torch, "distributed", None)
    if dist is None or not dist.is_available() or not dist.is_initialized():
        return None
    return int(dist.get_rank()), int(dist.get_world_size())


def _from_jax() -> tuple[int, int] | None:
    """From jax.distributed, if the program has imported and initialized it."""
    jax = sys.modules.get("jax")
    dist = getattr(jax, "distributed", None)
    is_initialized = getattr(dist, "is_initialized", None)  # older releases do not have it
    if jax is None or is_initialized is None or not is_initialized():
        return None
    return int(jax.process_index()), int(jax.process_count())


def _number(name: str, text: str) -> int:
    try:
        return int(text)
    except ValueError:
        raise InvalidError(
            f"environment: expected a number in variable {name}, found {text!r}"
        ) from None


def _from_environment(environ: Mapping[str, str]) -> tuple[int, int] | None:
    for rank, worlds in _NAMES:
        world = next((name for name in worlds if environ.get(name)), None)
        if environ.get(rank) and world:
            return _number(rank, environ[rank]), _number(world, environ[world])
    return None


def place(rank: int | None, world_size: int | None) -> tuple[int, int]:
    """(rank, world size): the arguments, or from torch.distributed, jax.distributed, the
    environment, or (0, 1)."""
    if (rank is None) != (world_size is None):
        raise InvalidError("rank and world_size: expected both or neither, found one")
    if rank is None or world_size is None:
        found = _from_torch() or _from_jax() or _from_environment(os.environ)
        rank, world_size = found or (0, 1)
    world_size = _check.integer("world_size", world_size, 1, _MAX)
    return _check.integer("rank", rank, 0, world_size - 1), world_size
