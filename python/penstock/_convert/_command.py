# SPDX-License-Identifier: Apache-2.0
"""The command `penstock convert`."""

from __future__ import annotations

import argparse
import json
import re
import sys
import time
from collections.abc import Iterable, Sequence
from typing import Any

from .. import _store_options
from .._error import BusyError, Error
from ._entry import convert
from ._formats import FORMATS
from ._progress import Line, Progress

_DESCRIPTION = """\
Convert a dataset of another library to a pack: all samples, in the order of the dataset, with
keys, labels, texts and further columns. Image files are stored byte for byte.

formats (found from SOURCE, if --from is not given):
  huggingface   a folder of save_to_disk, an .arrow file, or Parquet files of Hugging Face datasets
  parquet       .parquet files: one, a folder, or a pattern; images are columns of file contents
  webdataset    .tar files: one, a folder, or a pattern such as 'web-{000..017}.tar'
  mds           a folder that Mosaic's MDSWriter wrote
  litdata       a folder that LitData's optimize wrote
  ffcv          a .beton file of FFCV
  tfrecord      TFRecord files of tf.train.Example
"""
_EPILOG = """\
examples:
  penstock convert 'data/train-*.parquet' -o train.pen --key id --columns id,image,caption
  penstock convert saved_dataset/train -o train.pen
  penstock convert 'web-{000..017}.tar' -o web.pen --workers 16

The pack is the same for any number of workers. If a run is interrupted, run it again. The options
of 'penstock pack' for images have the same meaning here.
"""
# Options that are settings of penstock.Writer: option, setting, type, help.
_SETTINGS: tuple[tuple[str, str, Any, str], ...] = (
    ("mode", "mode", str, "how to store images: keep, encode, raw, mix or smart (default: keep)"),
    ("codec", "codec", str, "jpeg (default) or webp: what images are encoded as"),
    ("quality", "quality", int, "quality in the modes encode, mix and smart (default: 90)"),
    ("smart-threshold", "smart_threshold", str, "mode smart: raw up to this size (default: 64KiB)"),
    ("max-side", "max_side", int, "shrink larger images, except in mode keep"),
    ("short-side", "short_side", int, "the same for the shorter side"),
    ("progressive", "progressive", str, "keep (default) or convert progressive JPEGs"),
    ("sixteen-bit", "sixteen_bit", str, "refuse or reduce: what to do with 16-bit PNGs"),
    ("block-samples", "block_samples", int, "samples per block (default: 32)"),
    ("shard-bytes", "shard_size", str, "size at which a new shard file starts (default: 512MiB)"),
    ("work", "work", str, "for an s3:// pack: a local directory for temporary files"),
    ("wait", "wait", float, "seconds to wait if another process writes the same pack"),
)
_COMMA = re.compile(r",(?![^\[]*\])")  # not within the brackets of a shape
_COLUMN = re.compile(r"(.+):([a-z]+[0-9]*(?:\[[\d, *]+\])?\??(?: [a-z ]+)?)", re.S)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="penstock convert",
        usage="penstock convert SOURCE -o NAME.pen [options]",
        description=_DESCRIPTION,
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    add = parser.add_argument
    add("source", metavar="SOURCE", help="the dataset: a file, a folder or a pattern")
    add("out", nargs="?", metavar="OUT", help="the pack to write, if -o is not given")
    add("-o", "--out", dest="out_option", metavar="NAME.pen", help="the pack to write")
    add("--from", dest="format", choices=FORMATS, metavar="FORMAT", help="the format of SOURCE")
    add("--columns", action="append", metavar="NAME[:TYPE],...",
        help="columns to store (default: all), for example image,score:f32,box:f32[4]")
    add("--key", metavar="COLUMN", help="column with the keys, which must be unique (default: "
        "those of the dataset, or numbers)")
    add("--label", metavar="COLUMN", help="column with class numbers or class names")
    add("--on-bad", default="stop", choices=("stop", "skip"), metavar="A", help="stop (default) or "
        "skip: what to do with rows whose image is broken")
    add("--max-bad", type=int, metavar="N", help="with --on-bad skip: fail if more rows are broken "
        "(default: 0.1 %% of the rows, at least 10)")
    add("--workers", type=int, metavar="N", help="number of processes (default: the cores)")
    add("--json", action="store_true", help="print the result as JSON")
    images = parser.add_argument_group("how to store")
    for option, name, kind, text in _SETTINGS:
        images.add_argument(f"--{option}", dest=name, type=kind, metavar="X", help=text)
    images.add_argument("--no-index", action="store_true", help="store JPEGs without an index")
    _store_options.add(parser)
    return parser


def _columns(words: Sequence[str] | None) -> dict[str, str] | None:
    if words is None:
        return None
    columns = {}
    for word in (word for text in words for word in _COMMA.split(text)):
        match = _COLUMN.fullmatch(word)
        columns[match[1] if match else word] = match[2] if match else ""
    return columns


def _given(args: argparse.Namespace, names: Iterable[str]) -> dict[str, Any]:
    return {name: v for name in names if (v := getattr(args, name)) is not None}


def _settings(args: argparse.Namespace) -> dict[str, Any]:
    settings = _given(args, (name for _, name, _, _ in _SETTINGS))
    if args.no_index:
        settings["index"] = False
    store = _store_options.given(args)
    return {**settings, "storage_options": store} if store else settings


def _print(out: str, done: Progress, seconds: float, as_json: bool) -> None:
    if as_json:
        result = {"samples": done.samples, "skipped": done.skipped, "data_bytes": done.n_bytes}
        print(json.dumps({"pack": out, **result, "seconds": round(seconds, 3)}))
        return
    print(f"{out}: {done.samples:,} samples, {done.n_bytes / 1e6:,.1f} MB, {seconds:.1f} s")
    if done.skipped:
        print(f"left out: {done.skipped:,} rows with broken images", file=sys.stderr)
    for key, reason in done.bad:
        print(f"  {key}: {reason}", file=sys.stderr)


def _run(args: argparse.Namespace, out: str) -> None:
    line = Line()
    start = time.monotonic()
    try:
        done = convert(
            args.source,
            out,
            args.format,
            columns=_columns(args.columns),
            key=args.key,
            label=args.label,
            on_bad=args.on_bad,
            max_bad=args.max_bad,
            workers=args.workers,
            progress=line if sys.stderr.isatty() else None,
            **_settings(args),
        )
    finally:
        line.end()
    _print(out, done, time.monotonic() - start, args.json)


def run(words: Sequence[str]) -> int:
    """The exit code. `words` starts with the name of the command."""
    parser = _parser()
    args = parser.parse_args(words[1:])
    if (args.out is None) == (args.out_option is None):
        parser.error("expected one pack to write: -o NAME.pen")
    try:
        _run(args, args.out_option or args.out)
    except (Error, OSError) as error:
        print(f"penstock: {error}", file=sys.stderr)
        return 75 if isinstance(error, BusyError) else 1
    except KeyboardInterrupt:
        print("penstock: interrupted; run the command again", file=sys.stderr)
        return 130
    return 0
