# SPDX-License-Identifier: Apache-2.0
"""Scenarios and loaders as their TOML files tell them."""

import tomllib

from compare.places import BENCH

KINDS = {
    "title": str, "transform": ("train", "validation", "full", "box"),
    "stored": ("asis", "encoded", "raw", "progressive"), "check": ("crops", "validation", "corner"),
    "size": int, "short": int, "quality": int, "max_side": int, "batch": int,
    "threads": int, "base": str, "loaders": list, "wanted": list,
}


def names():
    return sorted(file.stem for file in (BENCH / "scenarios").glob("*.toml"))


def loaders():
    text = (BENCH / "loaders.toml").read_text(encoding="utf-8")
    return {name: {"variables": {}, "options": {}, "environment": None, **spec}
            for name, spec in tomllib.loads(text).items()}


def checked(name, scenario, known):
    """The scenario, or a ValueError that says what is wrong with it."""
    for key, kind in KINDS.items():
        if key not in scenario:
            raise ValueError(f"scenario {name}: {key} is missing")
        value = scenario[key]
        if isinstance(kind, tuple) and value not in kind:
            raise ValueError(f"scenario {name}: {key} is {value!r}, expected one of {kind}")
        if isinstance(kind, type) and not isinstance(value, kind):
            raise ValueError(f"scenario {name}: {key} is {value!r}, expected {kind.__name__}")
    for key in scenario.keys() - KINDS.keys():
        raise ValueError(f"scenario {name}: nobody reads {key}")
    pairs = [name for pair in scenario["wanted"] for name in (pair["of"], pair["against"])]
    for loader in [scenario["base"], *scenario["loaders"], *pairs]:
        if loader not in known:
            raise ValueError(f"scenario {name}: no loader {loader} in loaders.toml")
    return scenario


def read(name):
    file = BENCH / "scenarios" / f"{name}.toml"
    if not file.exists():
        raise ValueError(f"no scenario {name}; there are {', '.join(names())}")
    return checked(name, tomllib.loads(file.read_text(encoding="utf-8")), loaders())
