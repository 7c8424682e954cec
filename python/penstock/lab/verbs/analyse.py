# SPDX-License-Identifier: Apache-2.0
"""penstock-lab analyse: what the images of a dataset are like."""

from __future__ import annotations

import argparse
import json
import pathlib
import sys

from ..errors import LabError
from ..images import analysis

HELP = """Measures the images of a folder or a pack: JPEG quality, sampling, sizes, bytes per pixel,
and the mean and standard deviation of each channel.

DIR gets summary.md, summary.json, images.csv with a row for each image, histograms as SVG files,
and images.parquet if pyarrow is installed. The figures are those of 'penstock info --analyse'.

  penstock-lab analyse photos/ --out photos-analysis
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("source", metavar="SOURCE", help="a folder of images, or a pack")
    parser.add_argument("--out", metavar="DIR", required=True, help="the directory to write to")
    parser.add_argument("--threads", type=int, metavar="N",
                        help="decoding threads (default: one per core)")


def _draw(rows: list[dict[str, object]], folder: pathlib.Path) -> str:
    """Write the histograms; returns their part of the page."""
    from .. import plots

    made = ""
    for column, title, axis in analysis.HISTOGRAMS:
        values = analysis.values(rows, column)
        if values:
            plots.histogram(title, axis, {"images": values}).save(folder / f"{column}.svg")
            made += f"\n![{title}]({column}.svg)\n"
    return made


def run(options: argparse.Namespace) -> int:
    folder = pathlib.Path(options.out)
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise LabError(f"cannot create the directory '{folder}': {error.strerror}") from None
    more = ["--threads", str(options.threads)] if options.threads else []
    summary = analysis.measure(options.source, folder / "images.csv", *more)
    rows = analysis.rows(folder / "images.csv")
    (folder / "summary.json").write_text(json.dumps(summary, indent=1) + "\n", encoding="utf-8")
    page = analysis.markdown(summary)
    if not analysis.write_parquet(rows, folder / "images.parquet"):
        print("images.parquet is not written: pyarrow is not installed", file=sys.stderr)
    try:
        page += _draw(rows, folder)
    except LabError as error:
        print(f"no histograms: {error}", file=sys.stderr)
    (folder / "summary.md").write_text(page, encoding="utf-8", errors="replace")
    print(page, end="")
    print(f"\nfiles: {folder}")
    return 0
