# SPDX-License-Identifier: Apache-2.0
"""What a terminal shows: a progress bar and colours. Elsewhere the output is plain."""

import re
import signal
import time

import pytest
from cli_tools import PENSTOCK, good, image_bytes, make_folder, run
from pty_tools import Screen, Terminal, drawn, on_terminal

GREEN, RED, YELLOW, BOLD, NONE = "\x1b[32m", "\x1b[31m", "\x1b[33m", "\x1b[1m", "\x1b[0m"
SECONDS = re.compile(r" (\d+) s left")


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    folder = tmp_path_factory.mktemp("terminal")
    make_folder(folder / "photos", each=8)
    good("pack", folder / "photos", "-o", folder / "p.pen")
    return folder


@pytest.fixture(scope="module")
def broken(tmp_path_factory):
    """A pack with an error in a block."""
    folder = tmp_path_factory.mktemp("broken")
    make_folder(folder / "photos", each=8)
    good("pack", folder / "photos", "-o", folder / "p.pen")
    shard = next((folder / "p.pen").rglob("*.shard"))
    data = bytearray(shard.read_bytes())
    data[len(data) // 3] ^= 1
    shard.write_bytes(data)
    return folder / "p.pen"


def doctor(place, seconds="1"):
    return ("doctor", place / "p.pen", "--seconds", seconds, "--batch", "4")


def decode_large(folder, images):
    """A command that takes about half a second for 16 images."""
    (folder / "in" / "c").mkdir(parents=True)
    image = image_bytes(1, width=4000, height=3000)
    for i in range(images):
        (folder / "in" / "c" / f"{i}.jpg").write_bytes(image)
    good("pack", folder / "in", "-o", folder / "p.pen", "--block-samples", "1")
    return ("verify", folder / "p.pen", "--decode", "--threads", "1")


@pytest.fixture(scope="module")
def slow(tmp_path_factory):
    return decode_large(tmp_path_factory.mktemp("slow"), 16)


def test_doctor_shows_a_bar_and_removes_it(place):
    text = on_terminal(*doctor(place))
    bars = [line for line in drawn(text) if line.startswith("load  [")]
    assert any("[#" in line and " of 1.0 s" in line and " samples/s" in line for line in bars)
    assert "measuring how fast samples are read" in text
    assert f"{BOLD}wait for a batch{NONE}" in text
    rows = Screen(text).lines()
    assert rows[0].startswith("samples per second ")
    assert not any("[" in row or "measuring" in row for row in rows)


def test_every_command_shows_a_bar(place, tmp_path):
    for args, stage in (
            (("verify", place / "p.pen"), "verify"),
            (("copy", place / "p.pen", tmp_path / "q.pen"), "copy"),
            (("extract", place / "p.pen", "-o", tmp_path / "out"), "extract"),
            (("pack", place / "photos", "-o", tmp_path / "r.pen"), "pack")):
        text = on_terminal(*args)
        assert any(re.match(rf"{stage}  \[#* *\]  ", line) for line in drawn(text)), text
        screen = Screen(text)
        assert not any("]" in row and "%  " in row for row in screen.lines()), text
        assert screen.column == 0


def test_time_left_is_that_of_the_clock(place):
    text = on_terminal(*doctor(place, "3"), columns=100)
    found = []
    for line in drawn(text):
        match = re.match(r"load .* (\S+) s of 3.0 s .* (\d+) s left", line)
        found += [float(match[1]) + int(match[2])] if match else []
    assert 10 <= len(found) <= 31  # ten times a second at most
    assert all(2.3 <= total <= 3.7 for total in found), found


@pytest.mark.parametrize("environment", [{"NO_COLOR": "1"}, {"TERM": "dumb"}])
def test_no_colour_if_it_is_not_wanted(place, broken, slow, environment):
    for args in (("verify", place / "p.pen"), ("verify", broken), ("info", place / "none.pen"),
                 slow):
        text = on_terminal(*args, LC_ALL="C.UTF-8", **environment)
        assert "\x1b" not in text
        assert args[0] == "info" or f"{args[0]}  [" in text


def test_an_empty_no_color_means_nothing(place):
    assert GREEN in on_terminal("verify", place / "p.pen", NO_COLOR="")


@pytest.mark.parametrize(("environment", "blocks"), [
    ({"LC_ALL": "C.UTF-8"}, True), ({"LC_ALL": "C"}, False), ({"LC_ALL": "none.UTF-8"}, False),
    ({"LC_ALL": "C.UTF-8", "TERM": "dumb"}, False),
    ({"LC_ALL": "C.UTF-8", "TERM": "linux"}, False)])
def test_blocks_if_the_locale_has_them(slow, environment, blocks):
    text = on_terminal(*slow, **environment)
    assert ("█" in text) == blocks
    assert ("[#" in text) == (not blocks)
    assert text.isascii() == (not blocks)


@pytest.mark.parametrize("columns", [1, 2, 6, 20, 40, 200])
def test_the_line_fits_the_terminal(slow, columns, tmp_path):
    # The time left is estimated after half a second.
    work = decode_large(tmp_path, 64) if columns == 20 else slow
    text = on_terminal(*work, "--json", columns=columns, LC_ALL="C.UTF-8")
    progress = text[:text.index("{")]
    screen = Screen(progress, columns)
    assert not screen.wrapped and screen.lines() == [""], progress
    lines = drawn(progress)
    assert all(len(line) < columns for line in lines)
    if columns == 20:
        assert any(re.fullmatch(r" ?\d+ %  \d s left", line) for line in lines), lines


def test_the_line_follows_the_size_of_the_terminal(place):
    with Terminal(*doctor(place, "2"), columns=100) as terminal:
        terminal.wait_for("samples/s")
        before = len(terminal.text)
        terminal.resize(30)
        terminal.wait_for("\r", before)  # a line may be under way
        terminal.wait_for("load", len(terminal.text))
        start = len(terminal.text)
        terminal.wait_for("measuring", start)
        found = drawn(terminal.text[start:])[1:]
    assert max(map(len, drawn(terminal.text[:before]))) > 50
    assert found and max(map(len, found)) <= 29


def test_no_terminal_no_line(place, slow):
    result = run(*slow)
    assert result.err == "" and "\x1b" not in result.out
    verify = run("verify", place / "p.pen")
    assert verify.err == "" and verify.out.startswith("ok: ")


def test_a_background_job_is_silent(slow):
    job = '"$0" "$@" >/dev/null & wait'
    assert "verify" not in on_terminal("-mc", job, PENSTOCK, *slow, program="bash")
    assert "verify  " in on_terminal("-mc", job.replace("&", ";"), PENSTOCK, *slow, program="bash")


def test_ctrl_c_leaves_a_fresh_line(place, slow):
    for args, code, first in ((slow, 130, "penstock: interrupted; the check is not complete"),
                              (doctor(place, "50"), 130,
                               "penstock: interrupted; the measurement is not complete")):
        with Terminal(*args) as terminal:
            terminal.wait_for(" %")
            terminal.keys("\x03")
            text = terminal.finish()
        screen = Screen(text)
        rows = screen.lines()
        assert terminal.code == code, text
        assert rows[0].startswith(first) and rows[-1] == "" and screen.column == 0, rows
        assert not any("[" in row or "^C" in row for row in rows), rows


def test_ctrl_c_while_stages_are_measured(place):
    with Terminal(*doctor(place, "2"), "--json") as terminal:
        terminal.wait_for("measuring how")
        terminal.keys("\x03")
        text = terminal.finish()
    assert terminal.code == 130, text
    assert "interrupted; the measurement is not complete" in text
    assert "samples_per_second" not in text


def test_a_second_ctrl_c_ends_at_once_on_a_fresh_line(place):
    with Terminal(*doctor(place, "2")) as terminal:
        terminal.wait_for("measuring how")  # this ends before it sees the first one
        terminal.keys("\x03")
        terminal.wait_for("^C")
        time.sleep(0.2)
        terminal.keys("\x03")
        text = terminal.finish()
    screen = Screen(text)
    assert terminal.code == -signal.SIGINT
    assert screen.column == 0 and screen.lines()[-1] == ""


def test_problems_do_not_mix_with_the_line(broken):
    text = on_terminal("verify", broken)
    rows = Screen(text, 500).lines()
    assert rows[0].startswith(f"penstock: {broken}/") and "%" not in rows[0]
    assert f"{RED}penstock:{NONE} {broken}/" in text
    assert f"{RED}1 problem{NONE}: " in text


def test_messages_and_results_are_coloured_only_on_a_terminal(place, tmp_path):
    assert f"{RED}penstock:{NONE} " in on_terminal("info", place / "none.pen")
    assert f"{GREEN}ok{NONE}: " in on_terminal("verify", place / "p.pen")
    make_folder(tmp_path / "in", classes=("train", "val"))
    text = on_terminal("pack", tmp_path / "in", "-o", tmp_path / "a.pen")
    assert f"{YELLOW}penstock:{NONE} warning: " in text
    assert run("info", place / "none.pen").err.startswith("penstock: ")
