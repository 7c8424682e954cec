# SPDX-License-Identifier: Apache-2.0
"""Loaders and scenarios as their TOML files describe them. A scenario is an experiment file."""

from __future__ import annotations

import pathlib
import re
from collections.abc import Collection
from typing import Any

import tomllib

from ..errors import LabError
from .environments import HERE

AIM = re.compile(r"([\w-]+)/([\w-]+)>=(\d+(?:\.\d+)?)")


def names() -> list[str]:
    return sorted(file.stem for file in (HERE / "scenarios").glob("*.toml"))


def path_of(name: str) -> pathlib.Path:
    """The experiment file of a scenario."""
    if name not in names():
        raise LabError(f"no scenario '{name}'; expected one of {', '.join(names())}")
    return HERE / "scenarios" / f"{name}.toml"


def title_of(name: str) -> str:
    return str(tomllib.loads(path_of(name).read_text(encoding="utf-8"))["title"])


def loaders() -> dict[str, dict[str, Any]]:
    text = (HERE / "loaders.toml").read_text(encoding="utf-8")
    return {name: {"variables": {}, "options": {}, "environment": None, "packages": [],
                   "raw": False, "reads": ["files"], **spec}
            for name, spec in tomllib.loads(text).items()}


def check_loader(name: str, known: Collection[str]) -> None:
    if name not in known:
        raise LabError(f"no loader '{name}'; expected one of {', '.join(known)}")


def parse_aim(text: str, known: Collection[str]) -> tuple[str, str, float]:
    """(loader, other loader, ratio that is aimed at) of 'penstock/ffcv>=5'."""
    found = AIM.fullmatch(text)
    if not found:
        raise LabError(f"aims: expected LOADER/LOADER>=RATIO, found '{text}'")
    for name in found.groups()[:2]:
        check_loader(name, known)
    return found.group(1), found.group(2), float(found.group(3))
