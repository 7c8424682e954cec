# SPDX-License-Identifier: Apache-2.0
"""Parameters of an experiment: a frozen dataclass, as flags, as TOML and in a report.

    @dataclasses.dataclass(frozen=True)
    class Parameters(parameters.Base):
        sources: tuple[str, ...] = parameters.option((), "packs to load", positional=True)
        threads: tuple[int, ...] = parameters.option((2,), "decoding threads", short="t")

Types are bool, int, float, str and tuples of int, float or str (flags: 'a,b,c').
"""

from __future__ import annotations

import argparse
import dataclasses
import hashlib
import math
import os
import pathlib
import re
import typing
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

import tomllib

from ..errors import LabError

LONGEST_NAME = 120


def option(
    default: Any,
    help: str,
    *,
    short: str = "",
    choices: Sequence[str] = (),
    positional: bool = False,
    path: bool | None = None,
) -> Any:
    """A field of a dataclass of parameters.

    short       what the names of runs call it; "" for the field's name
    positional  an argument without a flag
    path        a local path or a URL; paths become absolute, so that a report can be run again
                from any directory (default: as positional)
    """
    metadata = {"help": help, "short": short, "choices": choices, "positional": positional,
                "path": positional if path is None else path}
    return dataclasses.field(default=default, metadata=metadata)


@dataclasses.dataclass(frozen=True)
class Base:
    """What every experiment has."""

    rounds: int = option(7, "turns of each cell; they alternate with those of the others",
                         short="r")


P = TypeVar("P", bound=Base)


def _types(kind: type[Base]) -> dict[str, Any]:
    return typing.get_type_hints(kind)


def _is_list(kind: Any) -> bool:
    return typing.get_origin(kind) is tuple


def _element(kind: Any) -> Any:
    return typing.get_args(kind)[0] if _is_list(kind) else kind


def _comma_separated(element: Callable[[str], Any]) -> Callable[[str], tuple[Any, ...]]:
    def parse(text: str) -> tuple[Any, ...]:
        return tuple(element(part) for part in text.split(",") if part)

    parse.__name__ = f"list of {getattr(element, '__name__', 'value')}"
    return parse


def _default_text(value: Any) -> str:
    text = ",".join(map(str, value)) if isinstance(value, tuple) else str(value)
    return f" (default: {text})" if text not in ("", "False") else ""


def add_arguments(parser: argparse.ArgumentParser, kind: type[Base]) -> None:
    """A flag for each field. Flags that are not given are not among the options."""
    types = _types(kind)
    for field in dataclasses.fields(kind):
        hint, meta = types[field.name], field.metadata
        text = (str(meta["help"]) + _default_text(field.default)).replace("%", "%%")
        more: dict[str, Any] = {"default": argparse.SUPPRESS, "help": text}
        if meta["positional"]:
            nargs = "*" if _is_list(hint) else "?"
            parser.add_argument(field.name, nargs=nargs, type=_element(hint),
                                metavar=field.name.upper(), **more)
            continue
        flag = "--" + field.name.replace("_", "-")
        if hint is bool:
            parser.add_argument(flag, dest=field.name, action=argparse.BooleanOptionalAction,
                                **more)
            continue
        if _is_list(hint):
            more["type"], more["metavar"] = _comma_separated(_element(hint)), "A,B"
        else:
            more["type"] = hint
            more["choices"] = meta["choices"] or None
        parser.add_argument(flag, dest=field.name, **more)


def _converted(name: str, value: Any, hint: Any, meta: Mapping[str, Any]) -> Any:
    """A value of TOML or JSON in the type of its field."""
    if _is_list(hint):
        if not isinstance(value, (list, tuple)):
            value = [value]
        return tuple(_converted(name, one, _element(hint), meta) for one in value)
    choices = meta["choices"]
    if hint is float and isinstance(value, int) and not isinstance(value, bool):
        value = float(value)
    if not isinstance(value, hint) or (isinstance(value, bool) and hint is not bool):
        raise LabError(f"{name}: expected {hint.__name__}, found {value!r}")
    if hint is float and not math.isfinite(value):
        raise LabError(f"{name}: expected a finite number, found {value}")
    if choices and value not in choices:
        raise LabError(f"{name}: expected one of {', '.join(choices)}, found {value!r}")
    if meta["path"] and value and "://" not in value:
        return os.path.abspath(value)
    return value


def from_dict(kind: type[P], values: Mapping[str, Any]) -> P:
    """Parameters from a table; what it lacks has its default."""
    types = _types(kind)
    fields = {field.name: field for field in dataclasses.fields(kind)}
    unknown = [name for name in values if name not in fields]
    if unknown:
        raise LabError(
            f"unknown parameter '{unknown[0]}'; expected one of {', '.join(sorted(fields))}"
        )
    made = kind(**{
        name: _converted(name, value, types[name], fields[name].metadata)
        for name, value in values.items()
    })
    for name, field in fields.items():
        if field.default and getattr(made, name) == ():
            raise LabError(f"{name}: expected at least one value, found none")
    if made.rounds < 1:
        raise LabError(f"rounds: expected at least 1, found {made.rounds}")
    return made


def to_dict(parameters: Base) -> dict[str, Any]:
    """For JSON: tuples become lists."""
    found = {}
    for field in dataclasses.fields(parameters):
        value = getattr(parameters, field.name)
        found[field.name] = list(value) if isinstance(value, tuple) else value
    return found


def read_toml(path: str | os.PathLike[str]) -> dict[str, Any]:
    try:
        return tomllib.loads(pathlib.Path(path).read_text(encoding="utf-8"))
    except OSError as error:
        raise LabError(f"cannot read experiment '{path}': {error.strerror}") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise LabError(f"experiment '{path}' is no TOML: {error}") from None


def _toml_value(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, (list, tuple)):
        return "[" + ", ".join(map(_toml_value, value)) + "]"
    if isinstance(value, str):
        text = value.replace("\\", "\\\\").replace('"', '\\"')
        return '"' + re.sub(r"[\x00-\x1f\x7f]", lambda m: f"\\u{ord(m.group()):04x}", text) + '"'
    return repr(value)


def to_toml(question: str, parameters: Base) -> str:
    """An experiment file with all parameters."""
    lines = [f"question = {_toml_value(question)}"]
    lines += [f"{name} = {_toml_value(value)}" for name, value in to_dict(parameters).items()]
    return "\n".join(lines) + "\n"


def from_options(kind: type[P], question: str, options: argparse.Namespace) -> P:
    """Flags override the file of --config, which overrides the defaults."""
    values: dict[str, Any] = {}
    if getattr(options, "config", None):
        values = read_toml(options.config)
        asked = values.pop("question", question)
        if asked != question:
            raise LabError(
                f"experiment '{options.config}' has the question '{asked}', expected '{question}'"
            )
    for field in dataclasses.fields(kind):
        given = getattr(options, field.name, None)
        if given is not None and not (field.metadata["positional"] and given == []):
            values[field.name] = given
    return from_dict(kind, values)


def _in_name(value: Any) -> str:
    if isinstance(value, tuple):
        return "+".join(map(_in_name, value))
    if isinstance(value, bool):
        return "on" if value else "off"
    text = f"{value:g}" if isinstance(value, float) else str(value)
    if re.search(r"(^|:)/|\.pen$", text):  # a path or a URL, unlike disk=20MB/s
        text = pathlib.PurePath(text).stem
    return re.sub(r"[^A-Za-z0-9.+]+", "_", text)


def name(question: str, parameters: Base) -> str:
    """'load-photos-s512-t2': the question, and what differs from the defaults."""
    parts = [question]
    # The fields of the base class are the first ones, and the least telling.
    general = {field.name for field in dataclasses.fields(Base)}
    fields = sorted(dataclasses.fields(parameters), key=lambda field: field.name in general)
    for field in fields:
        value = getattr(parameters, field.name)
        if value == field.default:
            continue
        short = "" if field.metadata["positional"] else field.metadata["short"] or field.name
        gap = "_" if len(short) > 1 else ""
        parts.append(f"{short}{gap}{_in_name(value)}")
    whole = "-".join(parts)
    if len(whole) > LONGEST_NAME:
        digest = hashlib.sha256(whole.encode()).hexdigest()[:8]
        whole = f"{whole[:LONGEST_NAME - 9]}-{digest}"
    return whole
