# SPDX-License-Identifier: Apache-2.0
"""docs/tutorials/training-from-s3.md: its commands and its code run against a scripted server, from
top to bottom."""

import os
import re
import shlex
import subprocess

import net_stage
import pytest
from example_tools import ROOT, need, python, run
from py_tools import need_penstock

penstock = need_penstock()
need("torch", "numpy", "boto3", "PIL")

PAGE = ROOT / "docs" / "tutorials" / "training-from-s3.md"
PENSTOCK = os.environ.get("PENSTOCK") or str(ROOT / "build" / "penstock")


@pytest.fixture
def folder(s3, no_other_settings, monkeypatch, tmp_path):
    """A working directory, and a server with an empty bucket."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "work"))
    monkeypatch.chdir(tmp_path)
    for name, value in s3().env.items():
        monkeypatch.setenv(name, value)
    return tmp_path


def run_line(line, folder):
    words = shlex.split(line, comments=True)
    if words[0] == "penstock":
        short = ["--seconds", "1"] if words[1] == "doctor" else []
        assert run(PENSTOCK, *words[1:], *short, cwd=folder)
    else:
        assert words[0] == "python"
        python(ROOT / words[1], *words[2:], cwd=folder)


@pytest.mark.slow
def test_what_is_on_the_page_runs(folder, capsys):
    """The five lines at the top need the pack of step 1, and run in step 2."""
    blocks = re.findall(r"^```(sh|python)\n(.*?)^```$", PAGE.read_text(), re.M | re.S)
    assert [kind for kind, _ in blocks[:4]] == ["python", "sh", "sh", "python"]
    scope = {}
    for kind, text in [*blocks[1:3], blocks[0], *blocks[3:]]:
        if kind == "python":
            exec(compile(text, str(PAGE), "exec"), scope)
            continue
        for line in text.splitlines():
            run_line(line, folder)
    for name in ("loader", "resumed"):
        scope[name].close()
    printed = capsys.readouterr().out
    assert tuple(scope["image"].shape) == (16, 3, 224, 224)
    cache = "{} blocks from the bucket, {} from the cache\n"
    assert re.match(rf"\d+\n{cache.format('[1-9]', 0)}{cache.format(0, '[1-9]')}", printed), printed
    assert re.search(r"^Bottleneck: \w+", printed, re.M), printed


def test_the_server_of_the_page_takes_a_pack(tmp_path):
    """With another port: several tests may run at a time."""
    (block,) = re.findall(r"^```sh server\n(.*?)^```$", PAGE.read_text(), re.M | re.S)
    python(ROOT / "examples" / "make_photos.py", tmp_path / "photos", "3", cwd=tmp_path)
    script = block.replace("5000", str(net_stage.free_port())).replace("server.log", os.devnull)
    pack = f'trap "kill $!" EXIT; "$0" pack {tmp_path}/photos -o s3://packs/photos.pen'
    done = subprocess.run(
        ["bash", "-euc", f"{script}\n{pack}", PENSTOCK], cwd=ROOT, capture_output=True, text=True,
        timeout=60, check=False, env=net_stage.clean_environment(XDG_CACHE_HOME=str(tmp_path)))
    assert done.returncode == 0 and "s3://packs/photos.pen" in done.stdout, done.stderr
