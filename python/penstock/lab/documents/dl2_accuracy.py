# SPDX-License-Identifier: Apache-2.0
"""(DL)2: accuracy against image quality, from a report of `penstock-lab fashion`."""

from __future__ import annotations

import pathlib
from typing import NamedTuple

from ..errors import Absent
from ..experiment import report, results
from ..experiment.report import Line
from ..experiment.statistics import summary
from .figure import Figure, Options, absent

TITLE = "(DL)2, accuracy"
SOURCE = "https://github.com/lbhm/dl2"
COMMAND = "penstock-lab fashion; penstock-lab seeds dl2_accuracy"

RAW = 76.72  # top-1 % there: ImageNet, ResNet-50, 90 epochs
# What the network was trained on, as `fashion` calls it: top-1 % there.
QUALITIES = {"jpeg50": 75.57, "jpeg10": 73.48, "webp50": 75.84}
STAGES = 75.94  # 45 epochs with JPEG 10, then 45 with raw images
STAGES_NAME = "JPEG 10, then raw images"


class Accuracy(NamedTuple):
    """Top-1 of several trainings, in percent."""

    mean: float
    text: str


def find(options: Options) -> pathlib.Path:
    """The report that was given, or the newest complete one beside this run."""
    if options.fashion:
        return report.path_of(options.fashion)
    folder = pathlib.Path(options.work).resolve().parents[2] / "fashion"
    found = sorted(folder.glob(f"*/{report.NAME}"), key=lambda path: path.stat().st_mtime)
    complete = [path for path in found if report.read(path)[-1]["kind"] == "end"]
    if not complete:
        raise Absent(f"no complete report in '{folder}'. Run penstock-lab fashion first, or pass "
                     "--fashion REPORT")
    return complete[-1]


def accuracy(lines: list[Line], name: str) -> Accuracy:
    values = results.values(lines, {"data": name}, "top1")
    if not values:
        raise Absent(f"the report of penstock-lab fashion has no training on {name}")
    found = summary(values)
    spread = f" ± {found.sd:.2f}" if found.n > 1 else ""
    return Accuracy(found.mean, f"{found.mean:.2f}{spread} %, n = {found.n}")


def stages_of(lines: list[Line]) -> str:
    """The cell that was trained with JPEG 10 first and with raw images then."""
    for cell in results.cells(lines).values():
        parts = [part.partition(":")[2] for part in str(cell["data"]).split(",")]
        if parts == ["jpeg10", "raw"]:
            return str(cell["data"])
    raise Absent("the report of penstock-lab fashion has no training in the stages jpeg10, raw")


def _title(name: str) -> str:
    return f"{name[:4].upper()} {name[4:]}".replace("WEBP", "WebP")


def row(lines: list[Line], shown: str, cell: str, there: float, note: str) -> Figure:
    what = f"top-1 accuracy, trained on {shown} / on raw images"
    published = f"{there / RAW:.3f} ({there:.2f} / {RAW:.2f} %, ImageNet)"
    try:
        ours, raw = accuracy(lines, cell or stages_of(lines)), accuracy(lines, "raw")
    except Absent as reason:
        return absent(what, published, reason, COMMAND)
    ratio = ours.mean / raw.mean
    why = "images of 28 x 28 pixels have no detail to spare"
    return Figure(what, published, f"{ratio:.3f} ({ours.mean:.2f} / {raw.mean:.2f} %)",
                  ratio / (there / RAW), False, f"{ours.text}; raw {raw.text}. {note}", COMMAND,
                  why=why if ratio < there / RAW else "")


def figures(options: Options) -> list[Figure]:
    path = find(options)
    lines = report.read(path)
    chosen = lines[0]["parameters"]
    note = (f"Fashion-MNIST, a small network, {chosen['epochs']} epochs, tested on raw images, "
            f"{lines[0]['date'][:10]}. Another dataset and another network: this shows the method, "
            "and does not repeat the result")
    wanted = [(_title(name), name, there) for name, there in QUALITIES.items()]
    return [row(lines, *one, note) for one in [*wanted, (STAGES_NAME, "", STAGES)]]
