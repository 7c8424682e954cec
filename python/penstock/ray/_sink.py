# SPDX-License-Identifier: Apache-2.0
"""A sink for Ray Data: the blocks of a dataset become the tasks of one pack.

Ray Data numbers its write tasks from 0 and does not say how many there will be. So each task is a
Writer with task=(number, None), and the driver passes their count to finalise().
"""

from __future__ import annotations

import contextlib
import io
import os
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from .. import _check
from .._error import CorruptError, InvalidError
from .._pack import Field
from .._writer import Writer, _parse_field, finalise

try:
    from ray.data import DataContext, Datasink
    from ray.data.block import BlockAccessor
except ImportError as error:
    raise ImportError(
        "PackSink needs Ray Data; install it with: pip install 'ray[data]'"
    ) from error

if TYPE_CHECKING:
    from ray.data._internal.execution.interfaces import TaskContext

_MISSING = ("NAType", "NaTType")  # of pandas
_GIVEN = ("task", "path", "schema")  # by the sink


def _is_missing(value: object) -> bool:
    """None, or what pandas has for it."""
    return (
        value is None
        or (isinstance(value, float) and value != value)
        or type(value).__name__ in _MISSING
    )


def _png(field: Field, value: Any) -> bytes:
    """Pixels, as ray.data.read_images returns them, as PNG, which is lossless."""
    try:
        from PIL import Image
    except ImportError as error:
        raise ImportError(
            f"field {field.name!r}: to store pixels as PNG, install Pillow; or pass the bytes of "
            f"image files, for example from ray.data.read_binary_files"
        ) from error
    if str(value.dtype) != "uint8" or value.ndim not in (2, 3):
        raise InvalidError(
            f"field {field.name!r}: expected uint8 pixels of shape (H, W) or (H, W, 3), or the "
            f"bytes of an image file, found {value.dtype} of shape {value.shape}"
        )
    out = io.BytesIO()
    Image.fromarray(value[:, :, 0] if value.shape[2:] == (1,) else value).save(out, "PNG")
    return out.getvalue()


def _value(field: Field, value: Any) -> Any:
    """A cell of a block as the Writer takes it."""
    if (field.optional or field.type == "image") and _is_missing(value):
        return None
    if field.type == "image" and isinstance(value, Mapping) and "bytes" in value:
        return value["bytes"]  # as Hugging Face datasets store images
    if field.type == "image" and hasattr(value, "dtype") and hasattr(value, "shape"):
        return _png(field, value)
    return value


class PackSink(Datasink):  # type: ignore[misc]
    """Write a Ray dataset to one pack: dataset.write_datasink(PackSink(out, schema)).

    out            a directory that all nodes share, or an s3:// URL
    schema         a dict of field name to type, as in penstock.Writer
    key            the column that has the keys; None: keys are numbers
    columns        a dict of field name to column name, for fields whose column has another name
    rows_per_task  the least number of rows of a write task; None: as Ray Data chooses
    wait           how many seconds a repeated task waits for a process of the first attempt that
                   still runs, if the pack is in a directory
    settings       further settings of penstock.Writer: classes, mode, block_samples, ...

    Image fields take the bytes of image files, or uint8 pixels, which are stored as PNG.

    The order of samples is the order of write tasks. It is the same in every run if the dataset is
    and `ray.data.DataContext.get_current().execution_options.preserve_order = True` is set.
    If the job fails, no pack appears; run it again, or remove the parts with
    `penstock gc --abandon`.

    samples        after write_datasink(): the number of samples in the pack
    """

    def __init__(
        self,
        out: str | os.PathLike[str],
        schema: Mapping[str, str],
        *,
        key: str | None = None,
        columns: Mapping[str, str] | None = None,
        rows_per_task: int | None = None,
        wait: float = 600,
        **settings: Any,
    ) -> None:
        for name in _GIVEN:
            if name in settings:
                raise TypeError(f"{name}: the sink sets it itself")
        if not isinstance(schema, Mapping):
            raise TypeError(f"schema: expected a dict, found {_check.shown(schema)}")
        if columns is not None and not isinstance(columns, Mapping):
            raise TypeError(f"columns: expected a dict, found {_check.shown(columns)}")
        self.out = _check.path(out, "out")
        self.schema = dict(schema)
        self.fields = [_parse_field(name, kind) for name, kind in schema.items()]
        self.key = None if key is None else _check.text("key", key)
        self.columns = {field.name: field.name for field in self.fields}
        for name, column in (columns or {}).items():
            if name not in self.columns:
                raise InvalidError(f"columns: the schema has no field {_check.shown(name)}")
            self.columns[name] = _check.text("columns", column)
        self.rows = None
        if rows_per_task is not None:
            self.rows = _check.integer("rows_per_task", rows_per_task, 1, 2**62)
        self.wait = _check.real("wait", wait, 0, 10**9, " s")
        self.settings = settings
        self.samples: int | None = None

    def _writer(self, number: int) -> Writer:
        return Writer(self.out, self.schema, task=(number, None), wait=self.wait, **self.settings)

    def _add(self, writer: Writer, row: Mapping[str, Any]) -> None:
        try:
            values = {f.name: _value(f, row[self.columns[f.name]]) for f in self.fields}
            key = None if self.key is None else row[self.key]
        except KeyError as error:
            raise InvalidError(
                f"column {error.args[0]!r}: expected it in the dataset, found the columns "
                f"{', '.join(map(repr, row))}; rename it with columns={{field: column}}"
            ) from None
        if self.key is not None and not isinstance(key, (str, bytes)):
            key = str(key)
        writer.add(key, **values)

    # ---- called by Ray Data ----

    def on_write_start(self, schema: Any = None) -> None:
        """In the driver: errors that all tasks would have appear before any task runs."""
        if DataContext.get_current().max_errored_blocks:
            raise InvalidError(
                "max_errored_blocks: expected 0 for a pack, because it would lack samples without "
                "an error"
            )
        with contextlib.closing(self._writer(0)):
            pass

    def write(self, blocks: Iterable[Any], ctx: TaskContext) -> tuple[int, int]:
        with self._writer(ctx.task_idx) as writer:
            for block in blocks:
                for row in BlockAccessor.for_block(block).iter_rows(public_row_format=True):
                    self._add(writer, row)
        return ctx.task_idx, len(writer)

    def on_write_complete(self, write_result: Any) -> None:
        counts = dict(write_result.write_returns)
        n = len(counts)
        if n == 0:
            raise InvalidError(f"{self.out}: the dataset has no blocks, so there is no pack")
        if counts.keys() != set(range(n)) or len(write_result.write_returns) != n:
            raise CorruptError(f"{self.out}: results of write tasks are missing or repeated")
        found = finalise(
            self.out,
            tasks=n,
            storage_options=self.settings.get("storage_options"),
            work=self.settings.get("work"),
            wait=self.wait,
        )
        self.samples = found

    def get_name(self) -> str:
        return "PackSink"

    @property
    def min_rows_per_write(self) -> int | None:
        return self.rows
