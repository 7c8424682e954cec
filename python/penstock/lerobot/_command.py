# SPDX-License-Identifier: Apache-2.0
"""The command `penstock index` for a LeRobot dataset."""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Sequence

from .._error import BusyError, Error
from . import _dataset
from ._index import Indexed, index

_DESCRIPTION = """\
Write a pack over a LeRobot dataset (v3). Each sample is an episode: a clip for each camera, and
states, actions and other numbers of all frames. The videos stay in the files of the dataset.
"""


def is_chosen(words: Sequence[str]) -> bool:
    """True if a word of the command is the folder of a LeRobot dataset."""
    return any(not word.startswith("-") and _dataset.is_dataset(word) for word in words[1:])


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="penstock index",
        usage="penstock index DATASET -o NAME.pen [options]",
        description=_DESCRIPTION,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    add = parser.add_argument
    add("dataset", metavar="DATASET", help="the folder of the dataset, with meta/info.json")
    add("-o", "--out", required=True, metavar="NAME.pen", help="the pack to write")
    add("--block-samples", type=int, metavar="N", help="episodes per block (default: chosen by "
        "the size of the videos)")
    add("--wait", type=float, default=0, metavar="S", help="seconds to wait if another process "
        "writes the same pack")
    add("--json", action="store_true", help="print the result as JSON")
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


def run(words: Sequence[str]) -> int:
    """The exit code. `words` starts with the name of the command."""
    args = _parser().parse_args(words[1:])
    is_terminal = sys.stderr.isatty()
    start = time.monotonic()
    try:
        done = index(args.dataset, args.out, block_samples=args.block_samples, wait=args.wait,
                     progress=_progress if is_terminal else None)
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
    return 0
