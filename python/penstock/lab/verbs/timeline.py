# SPDX-License-Identifier: Apache-2.0
"""penstock-lab timeline: a picture of a trace."""

from __future__ import annotations

import argparse
import os

from ... import _trace_file
from .. import timeline

HELP = """Draws a trace: what each thread did over time, one lane for each; all threads that fetch
from an object store share one. If the trace has GPUs, their utilization is a line above.

'penstock doctor run.json.gz' prints the figures of the trace. To see every span, open it in
Perfetto (ui.perfetto.dev).

  penstock-lab timeline run.json.gz
  penstock-lab timeline run.json.gz --out run.png
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("trace", metavar="TRACE", help=".json or .json.gz")
    parser.add_argument("--out", "-o", metavar="FILE", help="file to write: .svg or .png; by "
                        "default beside the trace, as .svg")


def run(options: argparse.Namespace) -> int:
    out = options.out or options.trace.removesuffix(".gz").removesuffix(".json") + ".svg"
    events = _trace_file.read(options.trace).events
    timeline.plot(events, os.path.basename(options.trace)).save(out)
    print(f"picture: {out}")
    return 0
