# SPDX-License-Identifier: Apache-2.0
"""bench/lerobot_speed.py: its tables, its options, and a turn with other samples than the rest."""

import ast
import pathlib
import sys

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "bench"))

import lerobot_speed  # noqa: E402
from penstock.lab.loaders import environments, report  # noqa: E402

STORE = "penstock@store=110ms"


class Arm:
    """A loader with a rate; a sample has `numbers` values."""

    title = "a loader"

    def __init__(self, name, rate, numbers=7):
        self.name, self.rate, self.numbers = name, rate, numbers

    def turn(self, number):
        return {"kind": "turn", "loader": self.name, "round": number, "seconds": 2.0, "cpu": 1.0,
                "samples": 2 * self.rate, "frames": 6 * self.rate, "sizes": {"a": self.numbers}}


def test_rates_of_the_rounds_are_compared():
    arms = [Arm("penstock", 300), Arm(STORE, 297), Arm("lerobot", 100)]
    lines = lerobot_speed.measured(arms, 3)
    assert [line["round"] for line in lines] == [0, 0, 0, 1, 1, 1, 2, 2, 2]  # without the warm-up
    found = lerobot_speed.figures_of(arms, lines)
    rows = lerobot_speed.speed_table(found).splitlines()
    assert rows[-1] == "| a loader | 100 (100-100) | 300 | 3.00 (3.00-3.00) | 5.00 |"
    assert "| - |" in rows[2]
    assert "| 0.99 (0.99-0.99) | reached |" in report.wanted_table(lerobot_speed.AIMS, found)
    slow = lerobot_speed.figures_of(arms[:2], [
        {**line, "seconds": 4.0} if line["loader"] == STORE else line for line in lines])
    assert "NOT reached" in report.wanted_table(lerobot_speed.AIMS, slow)


def test_loaders_return_the_same_sizes():
    with pytest.raises(ValueError, match="samples of different sizes"):
        lerobot_speed.measured([Arm("penstock", 300), Arm("lerobot", 100, numbers=8)], 1)


def test_unknown_loaders_are_refused(monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", ["lerobot_speed.py", "--loaders", "tape"])
    with pytest.raises(SystemExit):
        lerobot_speed.options_of()
    assert "found 'tape'" in capsys.readouterr().err


def test_it_is_skipped_without_the_package(monkeypatch, capsys, tmp_path):
    monkeypatch.setattr(sys, "argv", ["lerobot_speed.py"])
    monkeypatch.setattr(lerobot_speed.places, "WORK", tmp_path)
    monkeypatch.setenv("PENSTOCK_LAB_HOME", str(tmp_path))
    assert lerobot_speed.main() == 77
    assert "run penstock-lab setup lerobot" in capsys.readouterr().out


def test_loaders_have_modules_and_an_environment():
    assert "lerobot_package" in environments.spec_of("lerobot")["imports"]
    assert (environments.WORKER / "lerobot_package.py").exists()
    for loader in lerobot_speed.LOADERS.values():
        tree = ast.parse((lerobot_speed.HERE / f"{loader['module']}.py").read_text())
        assert {"versions", "Loader"} <= {getattr(node, "name", "") for node in tree.body}
