# SPDX-License-Identifier: Apache-2.0
"""Operations and pipelines as Python objects. The library reads their text form."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple, Union

from . import _check, _core
from ._error import InvalidError

# PenParamType
INT, FLOAT, SIZE, RANGE, WORD, FLOATS, FACTOR, SIDES, INTS = range(1, 10)
NAME, DRAWN, WEIGHTS, OPS, NUMBERS = range(10, 15)
_MOST_NUMBERS = 64  # of a list
_MAX_NAME = 255  # bytes, as in a pack


class Param(NamedTuple):
    """A parameter of an operation, from the library's table."""

    name: str
    type: int
    min: float
    max: float
    initial: str | None
    words: str | None
    help: str


class Op:
    """An operation with its parameters. str() and repr() return its text in a pipeline."""

    __slots__ = ("name", "text")

    def __init__(self, name: str, text: str) -> None:
        self.name = name
        self.text = text

    def __repr__(self) -> str:
        return self.text

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Op) and other.text == self.text

    def __hash__(self) -> int:
        return hash(self.text)

    def __reduce__(self) -> tuple[type[Op], tuple[str, str]]:
        return Op, (self.name, self.text)


Ops = Union[str, Op, Iterable[Union[str, Op]]]
# A list may begin with a dict of fields, if functions (ops.python) follow.
Pipeline = Union[Ops, Mapping[str, Ops], Iterable[Union[str, Op, Mapping[str, Ops]]]]


def _format(number: float) -> str:
    whole = math.isfinite(number) and number == math.floor(number) and abs(number) < 2**53
    return str(int(number)) if whole else repr(number)


def _number_text(what: str, param: Param, value: Any) -> str:
    number = _check.real(what, value, param.min, param.max)
    if not math.isfinite(number):
        raise InvalidError(f"{what}: expected a finite number, found {_check.shown(value)}")
    if param.type in (INT, SIZE, SIDES, INTS) and number != math.floor(number):
        raise InvalidError(f"{what}: expected an integer, found {_check.shown(value)}")
    return _format(number)


def _many(what: str, value: Any) -> list[Any]:
    """The items of a sequence, or a list of the one number."""
    if isinstance(value, (str, bytes, bytearray, dict, set, frozenset)):
        raise TypeError(f"{what}: expected numbers, found {_check.shown(value)}")
    try:
        n = len(value)
    except Exception:
        return [value]
    if n > _MOST_NUMBERS:
        raise InvalidError(f"{what}: expected at most {_MOST_NUMBERS} numbers, found {n}")
    try:
        return list(value)
    except Exception:
        raise TypeError(f"{what}: expected numbers, found {_check.shown(value)}") from None


def _value_text(what: str, param: Param, value: Any) -> str:
    if param.type == NAME:
        name = _check.text(what, value)
        if len(name.encode()) > _MAX_NAME:
            raise InvalidError(
                f"{what}: expected a name of {_MAX_NAME} bytes at most, found {_check.shown(name)}"
            )
        return name if name in (param.words or "").split() else _name(name)
    if param.type == WORD or (param.words and isinstance(value, str)):
        return _check.word(what, value, (param.words or "").split())
    if param.type in (INT, FLOAT):
        return _number_text(what, param, value)
    many = _many(what, value)
    if not many and param.type in (INTS, WEIGHTS, NUMBERS):
        raise InvalidError(f"{what}: expected at least one number, found {_check.shown(value)}")
    if not many or (param.type == RANGE and len(many) != 2):
        raise InvalidError(f"{what}: expected two numbers, found {_check.shown(value)}")
    if param.type in (SIZE, SIDES, FACTOR, DRAWN) and len(many) > 2:
        raise InvalidError(f"{what}: expected one number or two, found {_check.shown(value)}")
    # One number x of a factor means a range around 1 or 0, so the library checks its bounds.
    if param.type == FACTOR and len(many) == 1:
        param = param._replace(min=0.0, max=math.inf)
    return ",".join(_number_text(what, param, number) for number in many)


def _brackets(what: str, param: Param, value: Any) -> list[str]:
    """The operations of a composition: all in one bracket, or each alternative in its own."""
    if param.max == 1:
        return [f"[{_chain(what, value)}]"]
    if isinstance(value, (str, Op)):
        raise TypeError(f"{what}: expected a list of alternatives, found {_check.shown(value)}")
    return [f"[{_chain(what, one)}]" for one in parts(what, value)]


def _is_word(param: Param) -> bool:
    """True if the default is a word."""
    return param.initial in (param.words or "").split()


def _initial_text(param: Param) -> str | None:
    if param.initial is None or _is_word(param):
        return param.initial
    return ",".join(_format(float(number)) for number in param.initial.split(","))


def _op_text(name: str, params: list[Param], values: Mapping[str, Any]) -> str:
    """The text without default values: positional until a default is skipped, then by name."""
    text, by_place = [name], True
    brackets: list[str] = []
    for param in params:
        if param.type == OPS:
            brackets = _brackets(f"{name}: {param.name}", param, values[param.name])
            continue
        value = _value_text(f"{name}: {param.name}", param, values[param.name])
        if value == _initial_text(param):
            by_place = False
            continue
        # A name needs no "of=" only where it is required.
        named = not by_place or (param.type == NAME and param.initial is not None)
        text.append(f"{param.name}={value}" if named else value)
    return " ".join(text + brackets)


def initial(param: Param) -> Any:
    """The default value, as the signature shows it."""
    if param.initial is None or _is_word(param):
        return param.initial
    numbers = [float(number) for number in param.initial.split(",")]
    whole = [int(number) if number == int(number) else number for number in numbers]
    return whole[0] if len(whole) == 1 else tuple(whole)


def doc(text: str, params: list[Param]) -> str:
    if not params:
        return text
    width = max(len(param.name) for param in params)
    rows = []
    for param in params:
        words = f" ({param.words.replace(' ', ', ')})" if param.words else ""
        rows.append(f"{param.name:{width}}  {param.help}{words}")
    return text + "\n\n" + "\n".join(rows)


def signature(params: list[Param]) -> str:
    """The parameters as in a def statement: "size, filter='bilinear'"."""
    return ", ".join(
        param.name if param.initial is None else f"{param.name}={initial(param)!r}"
        for param in params
    )


def make_op(name: str, text: str, params: list[Param]) -> Callable[..., Op]:
    """Make the function of penstock.ops for one operation. It is compiled from text to get a real
    signature; building one with `inspect` takes longer than the rest of the import."""
    source = f"def {name}({signature(params)}): return _make(locals())"
    scope: dict[str, Any] = {"_make": lambda values: Op(name, _op_text(name, params, values))}
    exec(compile(source, f"<penstock.ops.{name}>", "exec"), scope)
    op: Callable[..., Op] = scope[name]
    op.__module__ = "penstock.ops"
    op.__doc__ = doc(text, params)
    return op


def table() -> dict[str, tuple[str, list[Param]]]:
    """All operations: name to (help, parameters)."""
    return {name: (text, [Param(*row) for row in rows]) for name, text, rows in _core.ops()}


def parts(what: str, ops: Any) -> list[Any]:
    try:
        if not isinstance(ops, (bytes, bytearray)):
            return list(ops)
    except Exception:
        pass
    skips = ops is None and what.startswith("pipeline")
    near = "; to skip the field, leave it out of the dict" if skips else ""
    raise TypeError(
        f"{what}: expected a text or a list of penstock.ops, found {_check.shown(ops)}{near}"
    )


def _call_hint(part: object) -> str:
    """What to do with a function that is no operation."""
    if getattr(part, "__module__", None) == "penstock.ops":
        return f"; call it: ops.{getattr(part, '__name__', '')}()"
    return "; to call a function, use ops.python(fn)" if callable(part) else ""


def source(field: str, of: str | None = None) -> Op:
    """Use a field of the pack under another name, as a view of it. Must be the first operation.

    field  name of the field in the pack
    of     for a mask: the image or view of the pipeline whose crops and flips it follows
    """
    text = _name(_check.text("source: field", field))
    return Op("source", text if of is None else f"{text} of={_name(_check.text('source: of', of))}")


def _ops_list(what: str, ops: Any) -> list[Any]:
    found = [ops] if isinstance(ops, Op) else parts(what, ops)
    for part in found:
        if not isinstance(part, (str, Op)):
            raise TypeError(
                f"{what}: expected operations of penstock.ops, found {_check.shown(part)}"
                f"{_call_hint(part)}"
            )
    return found


def _chain(what: str, ops: Any) -> str:
    """Operations in brackets."""
    found = [ops] if isinstance(ops, str) else _ops_list(what, ops)
    for part in found:
        if isinstance(part, Op) and part.name in ("source", "python"):
            raise InvalidError(f"{what}: {part.name} cannot be inside another operation")
    return _check.text(what, " | ".join(str(part) for part in found))


def _ops_text(what: str, ops: Any) -> str:
    if isinstance(ops, str):
        return _check.text(what, ops)
    found = _ops_list(what, ops)
    text = " | ".join(str(part) for part in found if not _is_source(part))
    heads = [part for part in found if _is_source(part)]
    if heads and heads != found[:1]:
        raise InvalidError(f"{what}: source must be the first operation of a field, and only once")
    return _check.text(what, f"{heads[0]}: {text}" if heads else text)


def _is_source(part: object) -> bool:
    return isinstance(part, Op) and part.name == "source"


def _has_head(text: str) -> bool:
    """True if a text begins with the name of a field: no operation has a colon."""
    return ":" in re.sub('"[^"]*"', "", text)


def _name(field: object) -> str:
    name = _check.text("pipeline: field name", field)
    if '"' in name or "\n" in name:
        raise InvalidError(f"pipeline: no field {_check.shown(field)}")
    return name if name.isidentifier() else f'"{name}"'


def text(pipeline: Pipeline | None) -> str | None:
    """The text form of a pipeline: a text, operations, or a dict of names to either. A name is that
    of a field, or of a view if its text or operations begin with the field."""
    if pipeline is None:
        return None
    if isinstance(pipeline, Mapping):
        if not pipeline:
            raise InvalidError("pipeline: expected at least one field, found none")
        fields = [
            (_name(field), _ops_text(f"pipeline: {field}", ops)) for field, ops in pipeline.items()
        ]
        return "; ".join(
            f"{name} = {ops}" if _has_head(ops) else f"{name}: {ops}" for name, ops in fields
        )
    if isinstance(pipeline, (list, tuple)) and any(map(_is_source, pipeline)):
        raise InvalidError(
            "pipeline: source names no result; use a dict: {'view': [ops.source(...), ...]}"
        )
    return _ops_text("pipeline", pipeline)
