# SPDX-License-Identifier: Apache-2.0
"""Examples that print every step: killed with -9 and resumed, they train on the same batches."""

import os
import re
import signal
import subprocess
import sys

import pytest
from example_tools import EXAMPLES, ROOT, need, python
from py_tools import need_penstock

need_penstock()
need("torch", "numpy", "PIL")
pytestmark = pytest.mark.slow  # each of them imports torch anew

LINE = re.compile(r"Step (\d+)  epoch (\d+)  Loss (\d+\.\d{4})  batch ([0-9a-f]{8})")
KILLED_AFTER, SAVE_EVERY = 7, 5


@pytest.fixture(scope="module")
def work(tmp_path_factory):
    """shapes.tar, and packs of it: in place, and converted."""
    folder = tmp_path_factory.mktemp("recipes")
    python(ROOT / "examples" / "make_shapes.py", "shapes.tar", "64", cwd=folder)
    python("-m", "penstock", "index", "shapes.tar", "-o", "in_place.pen", cwd=folder)
    python("-m", "penstock", "convert", "shapes.tar", "-o", "shapes.pen", "--columns",
           "image,text,mask,boxes:f32[*,4] boxes xyxy absolute,labels:i64[*]", cwd=folder)
    python(ROOT / "examples" / "make_photos.py", "photos", "60", cwd=folder)
    python("-m", "penstock", "pack", "photos", "-o", "photos.pen", cwd=folder)
    return folder


def steps(text):
    """{step: (epoch, loss, checksum of the batch)}"""
    rows = [LINE.fullmatch(line) for line in text.splitlines()]
    assert all(rows), text
    return {int(row[1]): row.groups()[1:] for row in rows}


def killed(*command, cwd):
    """What a process prints that is killed after some steps."""
    env = {**os.environ, "OMP_NUM_THREADS": "1"}
    with subprocess.Popen([sys.executable, *map(str, command)], cwd=cwd, env=env, text=True,
                          stdout=subprocess.PIPE) as process:
        lines = [process.stdout.readline() for _ in range(KILLED_AFTER)]
        process.send_signal(signal.SIGKILL)
        return "".join(lines)


RECIPES = [
    (EXAMPLES / "train_clip.py", "in_place.pen"),
    (EXAMPLES / "train_segmentation.py", "shapes.pen"),
    (EXAMPLES / "train_detection.py", "shapes.pen"),
    (EXAMPLES / "train_stages.py", "photos.pen"),
    (EXAMPLES / "train_mixture.py", "photos.pen"),
    (EXAMPLES / "train_balanced.py", "photos.pen"),
    (EXAMPLES / "train_buckets.py", "photos.pen"),
    (EXAMPLES / "train_naflex.py", "photos.pen"),
    (EXAMPLES / "train_simclr.py", "in_place.pen"),
    (EXAMPLES / "train_dino.py", "shapes.pen"),
    (EXAMPLES / "train_deit.py", "photos.pen"),
    (EXAMPLES / "train_dataset.py", "photos.pen"),
]


@pytest.mark.parametrize(("script", "pack"), RECIPES, ids=[path.stem for path, _ in RECIPES])
def test_killed_and_resumed(script, pack, work, tmp_path):
    args = [script, work / pack, "--epochs", "3", "--batch-size", "8", "--save-every",
            SAVE_EVERY, "--checkpoint"]
    whole = steps(python(*map(str, [*args, tmp_path / "whole.pt"])))
    before = steps(killed(*args, tmp_path / "run.pt", cwd=work))
    after = steps(python(*map(str, [*args, tmp_path / "run.pt"])))
    assert sorted(whole) == list(range(1, len(whole) + 1)) and len(whole) > 2 * KILLED_AFTER
    assert len({row[2] for row in whole.values()}) == len(whole)
    assert min(after) % SAVE_EVERY == 1 and 1 < min(after) <= KILLED_AFTER + SAVE_EVERY
    assert {**before, **after} == whole and {**after, **before} == whole
    losses = [float(whole[step][1]) for step in sorted(whole)]
    # Losses of mixed targets differ by more than a few steps lower them.
    third = len(losses) // 3
    assert sum(losses[-third:]) < sum(losses[:third]) or script.stem == "train_deit", losses
