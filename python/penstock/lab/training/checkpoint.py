# SPDX-License-Identifier: Apache-2.0
"""Checkpoints that are complete or absent, however the process ends."""

from __future__ import annotations

import os
import pathlib
from typing import Any

import torch

from ..errors import LabError

NAME = "checkpoint.pt"


def save(folder: pathlib.Path, state: dict[str, Any]) -> None:
    """Written under another name and synchronized before it replaces the one before."""
    new = folder / f"{NAME}.new"
    with open(new, "wb") as file:
        torch.save(state, file)
        file.flush()
        os.fsync(file.fileno())
    os.replace(new, folder / NAME)


def load(folder: pathlib.Path) -> dict[str, Any] | None:
    """The last checkpoint, or None if there is none."""
    path = folder / NAME
    if not path.exists():
        return None
    try:
        state: dict[str, Any] = torch.load(path, map_location="cpu", weights_only=True)
    except Exception as error:  # torch raises many types
        raise LabError(f"cannot read checkpoint '{path}': {error}. Remove it to start again"
                       ) from None
    return state


def remove(folder: pathlib.Path) -> None:
    (folder / NAME).unlink(missing_ok=True)
