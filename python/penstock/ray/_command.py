# SPDX-License-Identifier: Apache-2.0
"""The command `penstock ray pack`."""

from __future__ import annotations

import argparse
import contextlib
import dataclasses
import json
import sys
from collections.abc import Sequence

from .. import _error
from . import _pack, _program
from ._progress import Printer

FLAGS = ("no_sign", "requester_pays", "allow_http")
EXIT_BUSY, EXIT_INTERRUPTED = 75, 130


def _resources(text: str) -> dict[str, float]:
    try:
        pairs = [part.partition("=") for part in text.split(",")]
        return {name.strip(): float(amount) for name, _, amount in pairs}
    except ValueError:
        raise argparse.ArgumentTypeError(
            f"expected NAME=AMOUNT, separated by commas, found {text}"
        ) from None


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="penstock ray pack", allow_abbrev=False,
        usage="penstock ray pack SOURCE... -o NAME.pen [--tasks N] [options of penstock pack]",
        description="Pack on a Ray cluster: plan, run the tasks on its nodes, finalise. The pack "
        "is at an s3:// URL or in a directory that all nodes share. If the command was "
        "interrupted, the same command continues. 'penstock help pack' lists the sources and "
        "further options.",
    )
    add = parser.add_argument
    add("-o", "--out", required=True, metavar="NAME.pen", help="pack to write")
    add("--tasks", type=int, metavar="N", help="number of tasks (default: by the size of the "
        "inputs). The bytes of a pack depend on it")
    add("--address", metavar="A", help="address of the cluster (default: RAY_ADDRESS, the cluster "
        "on this machine, or a new one)")
    add("--resources", type=_resources, default={}, metavar="R",
        help="what a task needs, such as CPU=4,memory=2e9 (default: CPU=1)")
    add("--threads", type=int, metavar="N", help="threads of a task (default: its CPUs)")
    add("--retries", type=int, default=10, metavar="N",
        help="how often a lost task is run again (default: 10)")
    add("--wait", type=int, default=3600, metavar="S", help="seconds to wait for another process "
        "that writes the same task (default: 3600)")
    add("--progress", choices=("text", "json"), default="text",
        help="how to print progress on stderr (default: text)")
    add("--json", action="store_true", help="print the result as JSON")
    for name in _pack.PACK_ONLY + _pack.REMOTE:
        option = "--" + name.replace("_", "-")
        if name in FLAGS:
            add(option, action="store_true", help=argparse.SUPPRESS)
        else:
            add(option, help=argparse.SUPPRESS)
    return parser


def _job(words: Sequence[str]) -> tuple[_pack.Job, argparse.Namespace]:
    parser = _parser()
    args, rest = parser.parse_known_args(words)
    for name in _pack.RESERVED:
        option = "--" + name.replace("_", "-")
        if any(word.partition("=")[0] == option for word in rest):
            parser.error(f"{option}: packing on Ray has no such option")
    if not rest:
        parser.error("expected a source, found none")
    given = vars(args)
    job = _pack.Job(
        words=tuple(rest),
        out=_pack.absolute(args.out),
        pack_words=_pack.program_options(given, _pack.PACK_ONLY),
        remote_words=_pack.program_options(given, _pack.REMOTE),
        tasks=args.tasks, threads=args.threads, resources=args.resources, retries=args.retries,
        wait_s=args.wait,
    )
    return job, args


def _run(job: _pack.Job, args: argparse.Namespace, printer: Printer) -> None:
    with contextlib.redirect_stdout(sys.stderr):  # Ray prints the news of its nodes
        _pack.start_ray(args.address)
        account = _pack.run_job(job, printer)
    printer.close()
    if args.json:
        print(json.dumps({"schema": 1, **dataclasses.asdict(account)}))
    else:
        print(account.text())
    if account.broken:
        printer.message(
            f"{account.broken:,} broken inputs left out; {account.bad_report} lists them with the "
            "reasons"
        )


def _fail(error: Exception, as_json: bool) -> int:
    print(f"penstock: {error}", file=sys.stderr)
    if as_json:
        name = _program.status_name(error)
        print(json.dumps({"schema": 1, "error": {"status": name, "message": str(error)}}))
    return EXIT_BUSY if isinstance(error, _error.BusyError) else 1


def run(words: Sequence[str]) -> int:
    """The exit code. The first word is "ray"."""
    if words[1:2] != ["pack"]:
        print("penstock: ray: expected 'penstock ray pack'", file=sys.stderr)
        return 2
    job, args = _job(words[2:])
    printer = Printer(as_json=args.progress == "json")
    try:
        _run(job, args, printer)
    except (_error.Error, OSError, ImportError) as error:
        printer.close()
        return _fail(error, args.json)
    except KeyboardInterrupt as stop:
        printer.message(f"interrupted; {stop or 'run the same command again to continue'}")
        return EXIT_INTERRUPTED
    return 0
