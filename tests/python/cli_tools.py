# SPDX-License-Identifier: Apache-2.0
"""Running the program and making small things to pack, for the tests of the command line."""

import csv
import io
import json
import os
import pathlib
import random
import subprocess
import tarfile
import tempfile

from PIL import Image

ROOT = pathlib.Path(__file__).resolve().parents[2]
PENSTOCK = (
    os.environ.get("PENSTOCK_BIN")
    or os.environ.get("PENSTOCK")
    or str(ROOT / "build" / "penstock")
)
COMMANDS = ("pack", "index", "plan", "finalise", "gc", "info", "verify", "extract", "copy", "cache")


class Result:
    def __init__(self, done):
        self.code = done.returncode
        self.out = done.stdout.decode("utf-8", "surrogateescape")
        self.err = done.stderr.decode("utf-8", "surrogateescape")

    def json(self):
        return json.loads(self.out)

    def message(self):
        """The one line of stderr, without the program's name."""
        lines = self.err.splitlines()
        assert len(lines) == 1, self.err
        assert lines[0].startswith("penstock: "), lines[0]
        return lines[0][len("penstock: "):]


def without_preload(env=None):
    """The sanitizer's library that Python needs is in the way of a program that has its own."""
    return {name: value for name, value in (env or os.environ).items() if name != "LD_PRELOAD"}


def run(*args, cwd=None, timeout=60, env=None):
    return Result(
        subprocess.run(
            [PENSTOCK, *(os.fspath(a) for a in args)],
            cwd=cwd, env=without_preload(env), timeout=timeout, capture_output=True,
            stdin=subprocess.DEVNULL,
            check=False,
        )
    )


def good(*args, cwd=None, env=None):
    result = run(*args, cwd=cwd, env=env)
    assert result.code == 0, result.err
    return result


def usage_error(*args):
    """The message of a wrong use: exit code 2, one line, nothing on stdout, nothing made."""
    with tempfile.TemporaryDirectory() as empty:
        result = run(*args, cwd=empty)
        assert os.listdir(empty) == []
    assert result.code == 2, (result.code, result.err)
    assert result.out == ""
    return result.message()


def picture(seed, width=40, height=30, mode="RGB"):
    draw = random.Random(seed)
    noise = Image.frombytes(mode, (5, 4), draw.randbytes(20 * len(mode)))
    return noise.resize((width, height), Image.BICUBIC)


def image_bytes(seed, kind="JPEG", **more):
    out = io.BytesIO()
    picture(seed, **more).save(out, kind)
    return out.getvalue()


def add_member(tar, name, body):
    info = tarfile.TarInfo(name)
    info.size = len(body)
    tar.addfile(info, io.BytesIO(body))


def make_folder(root, classes=("cat", "dog"), each=4):
    """root/CLASS/N.jpg, the last of each class a PNG."""
    for c, name in enumerate(classes):
        (root / name).mkdir(parents=True)
        for i in range(each):
            kind, suffix = ("PNG", "png") if i == each - 1 else ("JPEG", "jpg")
            (root / name / f"{i}.{suffix}").write_bytes(image_bytes(100 * c + i, kind))
    return root


def write_list(path, names, rows):
    with open(path, "w", newline="", encoding="utf-8", errors="surrogateescape") as f:
        csv.writer(f).writerows([names, *rows])
    return path


def read_list(path):
    with open(path, newline="", encoding="utf-8", errors="surrogateescape") as f:
        return list(csv.DictReader(f))


def samples(pack):
    """What `info --samples --json` says, by key."""
    lines = good("info", pack, "--samples", "--json").out.splitlines()
    found = [json.loads(line) for line in lines]
    assert [s["index"] for s in found] == list(range(len(found)))
    return {s["key"]: s for s in found}
