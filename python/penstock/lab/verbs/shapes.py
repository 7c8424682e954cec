# SPDX-License-Identifier: Apache-2.0
"""penstock-lab shapes: do the simulated storages hold what they promise on this machine?"""

from __future__ import annotations

import argparse
import os
import sys

from .. import tables
from ..errors import Absent, LabError
from ..experiment import machine
from ..experiment.report import Report

HELP = """Measures the simulated storages on this machine: requested, measured, and whether the
measured value is within 5 % of the requested one. The exit code is 1 if one is not.

  --disk    bandwidth of a disk, in MB/s: a cgroup limits the reads of the loader's processes
  --seeks   time of a seek, in ms: each open and each read that is not contiguous waits (FUSE)
  --store   latency of an object store, in ms, and its bandwidth: 110 or 110@50 (MB/s)
  --memory  memory of the loader's processes with their page cache, in MB (cgroup)
  --cache   the page cache before a turn: cold, warm, or cold=machine, which evicts the pages of
            all other programs too

Values are separated by commas. Without an option, a set of all of them is measured. What this
machine does not allow is listed with the reason.
"""

DEFAULTS = {
    "disk": "20,100", "seeks": "2,6.8", "store": "20,110@50", "memory": "100,1000",
    "cache": "cold,warm",
}
FORMATS = {
    "disk": "disk={}MB/s", "seeks": "seeks={}ms", "store": "store={}", "memory": "memory={}MB",
    "cache": "{}",
}
SAMPLE_BYTES = 32 << 20


def add_arguments(parser: argparse.ArgumentParser) -> None:
    for name, default in DEFAULTS.items():
        parser.add_argument(f"--{name}", metavar="LIST", help=f"for example {default}")
    parser.add_argument("--folder", metavar="DIR", default=".",
                        help="on the disk to measure (default: the current folder)")
    parser.add_argument("--out", metavar="DIR", help="write a report there")


def _text(name: str, value: str) -> str:
    if name == "store":
        latency, at, rate = value.partition("@")
        value = f"{latency}ms{at}{rate}{'MB/s' if rate else ''}"
    return FORMATS[name].format(value)


def texts(options: argparse.Namespace) -> list[str]:
    """The shapes to measure."""
    given = {name: getattr(options, name) for name in DEFAULTS}
    if not any(given.values()):
        given = dict(DEFAULTS)
    return [_text(name, value.strip())
            for name, values in given.items() if values for value in values.split(",")]


def measure(text: str, files: str) -> list[dict[str, object]]:
    """The lines of a report for one shape."""
    from .. import shapes

    try:
        with shapes.parse(text).apply([files]) as place:
            return [{"kind": "shape", **check.record()} for check in place.checks]
    except Absent as reason:
        return [{"kind": "absent", "shape": text, "reason": str(reason), "simulated": True}]


def row(line: dict[str, object]) -> list[str]:
    if line["kind"] == "absent":
        return [str(line["shape"]), "", "", "absent", str(line["reason"])]
    asked, measured = f"{line['asked']:g} {line['unit']}", f"{line['measured']:.4g} {line['unit']}"
    within = "yes" if line["within"] else f"NO: {line['off']:+.1%}"
    return [f"{line['shape']}: {line['what']}", asked, measured, within, str(line["how"])]


def table(lines: list[dict[str, object]]) -> str:
    header = ["simulated storage", "requested", "measured", "within 5 %", "how"]
    return tables.markdown(header, [row(line) for line in lines])


def _head(options: argparse.Namespace, wanted: list[str]) -> dict[str, object]:
    return {
        "question": "shapes", "name": "shapes", "parameters": {"shapes": wanted}, "inputs": [],
        "machine": machine.describe(), "versions": machine.versions(),
        "command": options.command, "date": machine.date(),
    }


def run(options: argparse.Namespace) -> int:
    from ..shapes import parse, undo

    wanted = texts(options)
    for text in wanted:
        parse(text)
    if not os.path.isdir(options.folder):
        raise LabError(f"no folder '{options.folder}'")
    report = Report.create(options.out, _head(options, wanted)) if options.out else None
    lines: list[dict[str, object]] = []
    undo.remove_leftover_folders(options.folder)
    with undo.on_sigterm(), undo.temporary_folder(options.folder) as folder:
        sample = folder / "sample"
        sample.write_bytes(os.urandom(SAMPLE_BYTES))
        for text in wanted:
            print(f"{text} ...", file=sys.stderr)
            lines += measure(text, str(sample))
    for line in lines if report else ():
        assert report
        report.append(**line)  # type: ignore[arg-type]
    if report:
        report.close()
    print(table(lines), end="")
    return 0 if all(line.get("within", True) for line in lines) else 1
