# SPDX-License-Identifier: Apache-2.0
"""penstock-lab seeds that is killed with -9 at random moments and continued.

In the end the report has each document once with all of its figures, the page is there, and no
process of a loader is left.
"""

import json
import pathlib
import random
import signal
import sys
import time

from _program import Sweep, scaled, scratch
from long_lab_load import LIMIT_S, left, nothing_left, pictures, start

KILLS = scaled(20, 3)
DOCUMENTS = {"dl2_codec": 1, "aws": 3}  # figures of each; these need no root
LONGEST_S = 3


def words(top):
    return ["seeds", *DOCUMENTS, "--photos", str(top / "photos"), "--repeats", "1", "--out",
            str(top / "lab"), "--name", "x"]


def lines_of(top):
    path = top / "lab" / "seeds" / "x" / "report.jsonl"
    text = path.read_text() if path.exists() else ""
    return [json.loads(line) for line in text.splitlines(True) if line.endswith("\n")]


def is_complete(top):
    lines = lines_of(top)
    return bool(lines) and lines[-1]["kind"] == "end"


def killed(top, dice):
    sweep = Sweep("lab seeds kills")
    while sweep.n < KILLS and not is_complete(top):
        process = start(top, words(top))
        time.sleep(dice.uniform(0.2, LONGEST_S))
        process.send_signal(signal.SIGKILL)
        process.communicate()
        sweep.n += 1
        if not nothing_left(top, 60):
            sweep.complain(f"kill {sweep.n}: processes {left(top)} are left")
    sweep.end(f"{sweep.n} runs killed; {len(lines_of(top))} lines are in the report")


def continued(top):
    sweep = Sweep("lab seeds continued")
    process = start(top, words(top))
    out, _ = process.communicate(timeout=LIMIT_S)
    if process.returncode or "| aws 3:" not in out:
        sweep.complain(f"exit code {process.returncode}: {out[-300:]}")
    turns = [line for line in lines_of(top) if line["kind"] == "turn"]
    found = {line["cell"]["document"]: len(line["figures"]) for line in turns}
    if len(turns) != len(DOCUMENTS) or found != DOCUMENTS:
        sweep.complain(f"expected the figures {DOCUMENTS}, found {found} in {len(turns)} lines")
    for line in turns:
        for figure in line["figures"]:
            sweep.n += 1
            if figure["ours"] == "absent" or not figure["ratio"] > 0:
                sweep.complain(f"expected a figure, found {figure}")
    if not (top / "lab" / "seeds" / "x" / "page.html").is_file():
        sweep.complain("there is no page")
    sweep.end(f"{sweep.n} figures of {len(turns)} documents")


def main():
    with scratch() as folder:
        top = pathlib.Path(folder)
        pictures(top / "photos")
        killed(top, random.Random(12))
        continued(top)
    return Sweep.total()


if __name__ == "__main__":
    sys.exit(main())
