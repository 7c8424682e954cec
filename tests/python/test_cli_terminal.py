# SPDX-License-Identifier: Apache-2.0
"""What a terminal shows: a progress bar and colours. Elsewhere the output is plain."""

import os
import pty
import subprocess

import pytest
from cli_tools import PENSTOCK, good, make_folder, run

GREEN, RED, YELLOW = "\x1b[32m", "\x1b[31m", "\x1b[33m"


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    folder = tmp_path_factory.mktemp("terminal")
    make_folder(folder / "photos", each=8)
    good("pack", folder / "photos", "-o", folder / "p.pen")
    return folder


def on_terminal(*args, **environment):
    """What the command writes to stderr if that is a terminal."""
    env = {"TERM": "xterm", **{k: v for k, v in os.environ.items() if k != "NO_COLOR"},
           **environment}
    ours, its = pty.openpty()
    with subprocess.Popen([PENSTOCK, *map(str, args)], stdout=subprocess.DEVNULL, stderr=its,
                          env=env) as process:
        os.close(its)
        found = b""
        try:
            while part := os.read(ours, 4096):
                found += part
        except OSError:  # the other side is closed
            pass
        process.wait(timeout=60)
    os.close(ours)
    return found.decode()


def test_bench_shows_a_bar(place):
    text = on_terminal("bench", place / "p.pen", "--seconds", "1", "--batch", "4", TERM="xterm")
    assert f"load [{GREEN}" in text and " %" in text and "of 1.0 s" in text
    assert "measuring each stage alone" in text
    assert text.rstrip(" ").endswith("\r")  # the line is removed at the end


def test_verify_and_copy_show_a_bar(place):
    assert f"verify [{GREEN}" in on_terminal("verify", place / "p.pen", TERM="xterm")
    assert f"copy [{GREEN}" in on_terminal("copy", place / "p.pen", place / "q.pen", TERM="xterm")


@pytest.mark.parametrize("environment", [{"NO_COLOR": "1", "TERM": "xterm"}, {"TERM": "dumb"}])
def test_no_colour_if_it_is_not_wanted(place, environment):
    text = on_terminal("verify", place / "p.pen", **environment)
    assert "verify [" in text and "\x1b" not in text


def test_messages_are_coloured_only_on_a_terminal(place, tmp_path):
    assert f"{RED}penstock:" in on_terminal("info", place / "none.pen", TERM="xterm")
    make_folder(tmp_path / "in", classes=("train", "val"))
    text = on_terminal("pack", tmp_path / "in", "-o", tmp_path / "a.pen", TERM="xterm")
    assert f"{YELLOW}penstock:\x1b[0m warning: " in text
    assert run("info", place / "none.pen").err.startswith("penstock: ")
