# SPDX-License-Identifier: Apache-2.0
"""docs/tutorials/why-is-my-gpu-idle.md: its commands and its code run, from top to bottom."""

import re

import pytest
from example_tools import ROOT, need
from page_tools import run_page
from py_tools import need_penstock

penstock = need_penstock()
need("torch", "numpy", "PIL", "matplotlib")

DOCTOR, SHORT = "penstock doctor images.pen", " --seconds 1"
PAGE = ROOT / "docs" / "tutorials" / "why-is-my-gpu-idle.md"


@pytest.mark.slow
def test_what_is_on_the_page_runs(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    text = PAGE.read_text()
    assert "images 600\n" in text
    short = text.replace("images 600\n", "images 96\n").replace(DOCTOR, DOCTOR + SHORT)
    printed, scope = run_page(short, tmp_path)
    scope["loader"].close()
    for name in ("slow", "fast"):
        table = printed[f"penstock doctor {name}.json.gz"]
        shown = re.search(r"^```text\n(.*?)^```$", text, re.M | re.S)[1].splitlines()
        for line in shown:
            assert re.search(re.sub(r" +[\d.]+%", r" +[\\d.]+%", line), table), table
        picture = (tmp_path / f"{name}.svg").read_text()
        assert ">run_batch<" in picture and ">next" in picture
        assert (">decode 0<" in picture) == (name == "fast")
    (report,) = (text for line, text in printed.items() if line.startswith(DOCTOR + SHORT))
    assert re.search(r"^bottleneck +\w+$", report, re.M)
    assert re.search(r"^  samples per second each +1600$", report, re.M)
    assert str(tmp_path / "images.pen") in printed["penstock top --once"]
    assert re.fullmatch(r"waited \d+\.\d% of the epoch for data\n", capsys.readouterr().out)
