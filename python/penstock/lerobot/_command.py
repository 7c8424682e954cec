# SPDX-License-Identifier: Apache-2.0
"""The command `penstock index` for a LeRobot dataset."""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from collections.abc import Sequence
from typing import NoReturn

from .. import _core, _store_options
from .._error import AccessError, BusyError, Error, InvalidError, NotFoundError
from .._remote import StorageOptions
from . import _dataset
from ._index import Indexed, index
from ._place import Prefix, open_place

_DESCRIPTION = """\
Write a pack over a LeRobot dataset (v3). Each sample is an episode: a clip for each camera, and
states, actions and other numbers of all frames. The videos stay in the files of the dataset.
"""
_EPILOG = """\
examples:
  penstock index data/robot -o data/robot.pen
  penstock index s3://data/robot -o robot.pen            # reads every object once
  penstock index s3://data/robot -o s3://data/robot.pen
"""


# Values of other options of 'penstock index' are no sources.
_OTHERS = ("--root", "--relocate", "--classes-from", "--work")
_NO_PREFIX = (".tar", ".tgz", ".gz", ".csv", ".tsv", ".pen")


class _Chooser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        raise InvalidError(message)


def _is_dataset(path: str, storage_options: StorageOptions | None) -> bool:
    """True for a folder or prefix with the metadata of a LeRobot dataset of any version."""
    if not path.startswith("s3://"):
        return os.path.isfile(os.path.join(path, _dataset.INFO))
    if path.endswith(_NO_PREFIX) or set(path) & set("{*?["):
        return False
    place = open_place(path, storage_options)
    if not isinstance(place, Prefix):  # not UTF-8
        return False
    try:
        place.read(f"{place.path}/{_dataset.INFO}", _dataset.INFO_BYTES)
    except (NotFoundError, AccessError):  # without s3:ListBucket, no object is an access error
        return False
    return True


def is_chosen(words: Sequence[str]) -> bool:
    """True if a source of the command is a LeRobot dataset. Prefixes are asked for it."""
    parser = _Chooser(add_help=False, allow_abbrev=False)
    parser.add_argument("-o", "--out")
    for name in _OTHERS:
        parser.add_argument(name)
    _store_options.add(parser)
    try:
        args, rest = parser.parse_known_args(words[1:])
    except InvalidError:
        return False
    options = _store_options.given(args)
    return any(not word.startswith("-") and _is_dataset(word, options) for word in rest)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="penstock index",
        usage="penstock index DATASET -o NAME.pen [options]",
        description=_DESCRIPTION,
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    add = parser.add_argument
    add("dataset", metavar="DATASET", help="the folder of the dataset, with meta/info.json, or "
        "its s3:// URL")
    add("-o", "--out", required=True, metavar="NAME.pen", help="the pack to write")
    add("--block-samples", type=int, metavar="N", help="episodes per block (default: chosen by "
        "the size of the videos)")
    add("--wait", type=float, default=0, metavar="S", help="seconds to wait if another process "
        "writes the same pack")
    add("--work", metavar="DIR", help="for an s3:// pack: a local directory for temporary files")
    add("--json", action="store_true", help="print the result as JSON")
    _store_options.add(parser)
    return parser


def _progress(done: Indexed) -> None:
    sys.stderr.write(f"\r{done.episodes:,} of {done.n_episodes:,} episodes\x1b[K")
    sys.stderr.flush()


def _print(out: str, done: Indexed, seconds: float, as_json: bool) -> None:
    if as_json:
        result = {"samples": done.episodes, "frames": done.frames, "left_out": done.left_out}
        print(json.dumps({"pack": out, **result, "seconds": round(seconds, 3)}))
        return
    print(f"{out}: {done.episodes:,} episodes, {done.frames:,} frames, {seconds:.1f} s")
    if done.left_out:
        print(f"left out: {', '.join(done.left_out)}", file=sys.stderr)


def _warn_of_decoder(out: str) -> None:
    from .. import _video  # noqa: F401: finds the decoder

    try:
        _core.video_check()
    except Error as error:
        print(f"penstock: warning: {out}: its videos cannot be loaded here: {error}",
              file=sys.stderr)


def run(words: Sequence[str]) -> int:
    """The exit code. `words` starts with the name of the command."""
    args = _parser().parse_args(words[1:])
    is_terminal = sys.stderr.isatty()
    start = time.monotonic()
    try:
        done = index(args.dataset, args.out, block_samples=args.block_samples, wait=args.wait,
                     progress=_progress if is_terminal else None, work=args.work,
                     storage_options=_store_options.given(args))
    except (Error, OSError) as error:
        print(f"\npenstock: {error}" if is_terminal else f"penstock: {error}", file=sys.stderr)
        return 75 if isinstance(error, BusyError) else 1
    except ImportError as error:
        print(f"penstock: {error}; run: pip install pyarrow numpy", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("\npenstock: interrupted; run the command again", file=sys.stderr)
        return 130
    if is_terminal:
        sys.stderr.write("\r\x1b[K")
    _print(args.out, done, time.monotonic() - start, args.json)
    _warn_of_decoder(args.out)
    if args.dataset.startswith("s3://"):
        print(f"try: penstock verify {args.out} --root {args.dataset}", file=sys.stderr)
    return 0
