# SPDX-License-Identifier: Apache-2.0
"""The command `penstock extract --to webdataset` or `--to parquet`. The help of the C program lists
its options."""

from __future__ import annotations

import argparse
import json
import signal
import sys
import time
from collections.abc import Sequence
from typing import Any

from .. import _check, _core
from .._convert._progress import Line, Progress
from .._error import BusyError, Error, InvalidError
from .._pack import Pack
from . import _run as export
from ._run import FORMATS, Result
from ._selection import select

_TEXTS = {"endpoint": "endpoint", "region": "region", "profile": "profile", "ca": "ca_file"}
_FLAGS = ("no-sign", "requester-pays", "allow-http")


def is_chosen(words: Sequence[str]) -> bool:
    """True if a command line is one of this command; the C program runs the others."""
    pairs = zip(words, (*words[1:], ""))
    formats = {second if first == "--to" else first[len("--to=") :] for first, second in pairs
               if first == "--to" or first.startswith("--to=")}  # fmt: skip
    return bool(formats & set(FORMATS)) and not {"-h", "--help"} & set(words)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="penstock extract",
        usage="penstock extract NAME.pen -o DIR --to FORMAT [-s I[-J]]... [-k KEY]... [options]",
        epilog="'penstock extract --help' lists the options.",
        add_help=False,
        allow_abbrev=False,
    )
    add = parser.add_argument
    add("pack", metavar="NAME.pen")
    add("-o", "--out", required=True)
    add("--to", dest="format", choices=FORMATS, required=True)
    add("--shard-bytes", default="512MiB")
    add("-s", "--sample", action="append", default=[])
    add("-k", "--key", action="append", default=[])
    add("--json", action="store_true")
    add("--root")
    add("--relocate", metavar="OLD=NEW")
    add("--cache")
    add("--cache-bytes")
    for option, name in _TEXTS.items():
        add(f"--{option}", dest=name)
    for option in _FLAGS:
        add(f"--{option}", action="store_true", default=None)
    return parser


def _relocate(text: str | None) -> dict[str, str] | None:
    if text is None:
        return None
    old, equals, new = text.partition("=")
    if not old or not equals or not new:
        raise InvalidError(f"--relocate {text}: expected OLD=NEW")
    return {old: new}


def _open(args: argparse.Namespace) -> Pack:
    names = (*_TEXTS.values(), *(option.replace("-", "_") for option in _FLAGS))
    options: Any = {name: v for name in names if (v := getattr(args, name)) is not None}
    return Pack(
        args.pack,
        options or None,
        cache=args.cache,
        cache_bytes=args.cache_bytes,
        roots=None if args.root is None else [args.root],
        relocate=_relocate(args.relocate),
    )


def _run(args: argparse.Namespace) -> Result:
    limit = _check.size("--shard-bytes", args.shard_bytes)
    line = Line()

    def failed(number: int, error: Error) -> None:
        line.end()
        print(f"penstock: sample {number}: {error}", file=sys.stderr)

    with _open(args) as pack:
        ranges = select(pack, args.sample, args.key)
        total = sum(map(len, ranges))

        def progress(samples: int, failed: int, n_bytes: int) -> None:
            line(Progress(samples, failed, [], n_bytes, total))

        try:
            return export.run(
                pack, _check.path(args.out, "--out"), args.format, ranges, limit, failed,
                progress if sys.stderr.isatty() else None,
            )
        finally:
            line.end()


def _print(args: argparse.Namespace, done: Result, seconds: float) -> None:
    if args.json:
        print(json.dumps({
            "schema": 1, "pack": args.pack, "dir": args.out, "samples": done.samples,
            "failed": done.failed, "files": done.files, "bytes": done.n_bytes,
            "seconds": round(seconds, 3),
        }))  # fmt: skip
    else:
        out = args.out.encode("utf-8", "backslashreplace").decode()
        files = f"{done.files:,} file{'s' * (done.files != 1)}"
        print(f"{done.samples:,} samples written to {out}, {files}, "
              f"{done.n_bytes / 1e6:,.1f} MB, in {seconds:.1f} s")  # fmt: skip
    if done.failed:
        print(f"penstock: {done.failed:,} samples could not be extracted", file=sys.stderr)


def _print_error(error: Error | OSError, as_json: bool) -> None:
    print(f"penstock: {error}", file=sys.stderr)
    if not as_json:
        return
    names = {code: name for name, code in _core.STATUS.items()}
    status = names.get(getattr(error, "status", 0), "E_IO")
    where = getattr(error, "where", "python")
    print(json.dumps({
        "schema": 1, "error": {"status": status, "message": str(error), "where": where}
    }))  # fmt: skip


def run(words: Sequence[str]) -> int:
    """The exit code. `words` starts with the name of the command."""
    args = _parser().parse_args(words[1:])
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.default_int_handler)  # KeyboardInterrupt
    start = time.monotonic()
    try:
        done = _run(args)
    except (Error, OSError) as error:
        _print_error(error, args.json)
        return 75 if isinstance(error, BusyError) else 1
    except KeyboardInterrupt:
        print(f"penstock: interrupted; {args.out} was not written", file=sys.stderr)
        return 130
    _print(args, done, time.monotonic() - start)
    return 1 if done.failed else 0
