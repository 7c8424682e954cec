# SPDX-License-Identifier: Apache-2.0
"""What the images of a folder or a pack are like: the figures of 'penstock info --analyse'."""

from __future__ import annotations

import csv
import os
import pathlib
import tempfile
from typing import Any

from .. import program, tables
from ..errors import LabError
from ..experiment import inputs

NUMBERS = ("width", "height", "channels", "bytes", "quality", "frame")
REALS = ("bytes_per_pixel", "mean_0", "mean_1", "mean_2", "deviation_0", "deviation_1",
         "deviation_2")
# Measures that have a histogram: column, title, name of the axis.
HISTOGRAMS = (
    ("quality", "JPEG quality", "quality factor"),
    ("longer_side", "Longer side", "pixels"),
    ("bytes", "File size", "bytes"),
    ("bytes_per_pixel", "Bytes per pixel", "bytes per pixel"),
)


def measure(source: str, table: pathlib.Path, *more: str) -> dict[str, Any]:
    """The summary of a pack or a folder; TABLE becomes the CSV file. A folder is indexed first:
    its files are not copied."""
    if inputs.is_pack(source):
        return _analyse(source, table, *more)
    if not os.path.isdir(source):
        raise LabError(f"cannot read '{source}': expected a folder of images or a pack")
    with tempfile.TemporaryDirectory(prefix="penstock-lab-") as work:
        pack, folder = os.path.join(work, "index.pen"), os.path.abspath(source)
        program.output("index", folder, "-o", pack, "--on-bad", "skip", "--max-bad", "1000000000")
        found = _analyse(pack, table, "--root", folder, *more)
        return {**found, "pack": source}


def _analyse(pack: str, table: pathlib.Path, *more: str) -> dict[str, Any]:
    found: dict[str, Any] = program.output_json("info", pack, "--analyse", "--csv", table,
                                                "--json", *more)
    return found


def rows(table: pathlib.Path) -> list[dict[str, Any]]:
    """The rows of the CSV file; None for what an image does not have."""
    found = []
    with open(table, newline="", encoding="utf-8", errors="surrogateescape") as file:
        for row in csv.DictReader(file):
            one: dict[str, Any] = dict(row)
            one.update({name: int(row[name]) if row[name] else None for name in NUMBERS})
            one.update({name: float(row[name]) if row[name] else None for name in REALS})
            one["progressive"] = row["progressive"] == "1" if row["progressive"] else None
            one["sampling"] = row["sampling"] or None
            found.append(one)
    return found


def write_parquet(found: list[dict[str, Any]], path: pathlib.Path) -> bool:
    """False if pyarrow is not installed."""
    try:
        import pyarrow as pa
        import pyarrow.parquet as pq
    except ImportError:
        return False
    keys = [{**row, "key": row["key"].encode("utf-8", "surrogateescape").decode("utf-8", "replace")}
            for row in found]
    pq.write_table(pa.Table.from_pylist(keys), path)
    return True


def values(found: list[dict[str, Any]], column: str) -> list[float]:
    if column == "longer_side":
        return [float(max(row["width"], row["height"])) for row in found]
    return [float(row[column]) for row in found if row[column] is not None]


Part = str | tuple[list[str], list[list[str]]]  # a paragraph, or the header and rows of a table


def parts(summary: dict[str, Any]) -> list[Part]:
    """A page of the summary, without plots."""
    def counts(name: str, what: str) -> list[Part]:
        lines = [[str(row[what]), f"{row['images']:,}", f"{100 * row['images'] / images:.1f} %"]
                 for row in summary[name]]
        return [([what, "images", "share"], lines)] if lines else []

    images = max(1, summary["images"])
    quantiles = ("min", "p05", "median", "p95", "max")
    spread = [[row["of"].replace("_", " "), *(f"{row[name]:,.4g}" if row[name] < 1e4
                                              else f"{row[name]:,.0f}" for name in quantiles)]
              for row in summary["distributions"]]
    channels = [[row["channel"], f"{row['mean']:.2f}", f"{row['deviation']:.2f}",
                 f"{row['mean'] / 255:.4f}", f"{row['deviation'] / 255:.4f}"]
                for row in summary["channels"]]
    return [
        f"{summary['images']:,} images, {summary['image_bytes'] / 1e6:,.1f} MB, "
        f"{summary['bytes_per_pixel']:.3f} bytes per pixel, {summary['progressive']:,} progressive "
        f"JPEGs, {summary['problems']:,} damaged images.",
        (["measure", *quantiles], spread),
        *counts("codecs", "codec"), *counts("sampling", "sampling"),
        "Mean and standard deviation of all pixels, as values of 0 to 255 and of 0 to 1:",
        (["channel", "mean", "deviation", "mean / 255", "deviation / 255"], channels),
    ]


def markdown(summary: dict[str, Any]) -> str:
    title = f"# Images of {tables.plain(summary['pack'])}\n"
    return "\n".join([title, *(f"{part}\n" if isinstance(part, str) else tables.markdown(*part)
                               for part in parts(summary))])
