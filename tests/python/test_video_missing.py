# SPDX-License-Identifier: Apache-2.0
"""Without the video decoder, a loader of videos is refused when it is created, and commands that
write or check a pack of videos say so."""

import os
import subprocess
import sys

import pytest
from cli_tools import good
from packet_tools import encode, need_plugin
from py_tools import need_penstock, png, run_python

need_plugin()
penstock = need_penstock()

WITHOUT = {**os.environ, "PENSTOCK_VIDEO_LIBRARY": "/nowhere/libpenstock-video.so.0"}
CANNOT = "cannot open the video decoder: /nowhere/libpenstock-video.so.0"
LOADED = f": its videos cannot be loaded here: {CANNOT}"
SCRIPT = """
import penstock, sys
clip = "decode | clip 2 | center_crop 8 | tensor u8"
try:
    packs = sys.argv[1:]
    source = penstock.mix([(pack, 1) for pack in packs]) if packs[1:] else packs[0]
    penstock.Loader(source, 1, pipeline=PIPELINE, output="dlpack")
    print("created")
except penstock.UnsupportedError as error:
    print(error)
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("videos")
    (folder / "videos").mkdir()
    encode(folder / "videos" / "a.mp4", "-c:v", "mpeg4", frames=4)
    good("pack", folder / "videos", "--video", "keep", "-o", folder / "kept.pen")
    return folder


def create(pipeline, *packs):
    done = run_python(SCRIPT.replace("PIPELINE", pipeline), *packs, env=WITHOUT)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_loader(folder):
    assert create("clip", folder / "kept.pen").startswith(CANNOT)


def test_mixture(folder):
    """One of its packs has frames, which need no decoder."""
    with penstock.Writer(folder / "frames.pen", {"video": "clip"}) as writer:
        writer.add("a", video=[png(1)] * 4)
    assert create("clip", folder / "frames.pen") == "created\n"
    assert create("clip", folder / "frames.pen", folder / "kept.pen").startswith(CANNOT)


def test_keys(folder):
    assert create("'key: key'", folder / "kept.pen") == "created\n"


def test_commands(folder, tmp_path):
    for command in (["pack", folder / "videos", "--video", "keep", "-o", tmp_path / "kept.pen"],
                    ["verify", tmp_path / "kept.pen"]):
        result = good(*command, env=WITHOUT)
        assert f"warning: {tmp_path / 'kept.pen'}{LOADED}" in result.err
    assert "warning" not in good("verify", tmp_path / "kept.pen").err


def test_index(tmp_path):
    pytest.importorskip("pyarrow")
    from lerobot_tools import Dataset

    Dataset(tmp_path / "robot", (5,))
    command = [sys.executable, "-m", "penstock", "index", tmp_path / "robot", "-o"]
    warning = f"penstock: warning: a.pen{LOADED}"
    for out, env, expected in (("a.pen", WITHOUT, warning), ("b.pen", None, "")):
        done = subprocess.run([*command, out], cwd=tmp_path, env=env, capture_output=True,
                              text=True, timeout=60, check=True)
        assert done.stderr.startswith(expected) and bool(done.stderr) == bool(expected)
