# SPDX-License-Identifier: Apache-2.0
"""penstock top: real loaders in real processes, what they leave, who sees them, and what a process
can do that only says it has a loader."""

import os
import pathlib
import random
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import termios
import threading

import cli_tools
import pytest
from cli_tools import PENSTOCK, good, run, usage_error
from PIL import Image
from pty_tools import Terminal
from py_tools import encoded, jpeg, need_penstock, write_pack
from remote_tools import ADDRESS, make_pack, options
from top_tools import DEADLINE, LOADER, Running, impostors, loaders, until

penstock = need_penstock()
pytest.importorskip("numpy")

PIPELINE = "decode | random_resized_crop 24 | hflip | tensor u8"
USER = 61234  # has no other processes
as_root = pytest.mark.skipif(os.geteuid() != 0, reason="needs root to become another user")


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    path = tmp_path_factory.mktemp("top") / "a.pen"
    write_pack(penstock, path, 256, image=jpeg).close()
    return str(path)


@pytest.fixture(scope="module")
def program():
    """The program, where another user can run it: pytest closes its folders to others."""
    with tempfile.TemporaryDirectory() as folder:
        os.chmod(folder, 0o755)
        yield shutil.copy(PENSTOCK, f"{folder}/penstock")


def top(*pids):
    """The rows of these processes."""
    rows = good("top", "--json").json()["loaders"]
    return {row["process"]: row for row in rows if row["process"] in pids}


def other_user(program, *args):
    """What a user sees who has no loaders but those of the test."""
    done = subprocess.run([program, "top", *args], capture_output=True, timeout=DEADLINE,
                          user=USER, group=USER, extra_groups=[], check=True)
    return cli_tools.Result(done)


def test_a_loader_is_shown_before_its_first_batch(path):
    """Also when nobody requests one: a job may hang between the two."""
    program = ("import sys, time, penstock; loader = penstock.Loader(sys.argv[1], 8, "
               "output='numpy'); print('open', flush=True); time.sleep(600)")
    with subprocess.Popen([sys.executable, "-c", program, path], stdout=subprocess.PIPE) as job:
        try:
            assert job.stdout.readline() == b"open\n"
            row = top(job.pid)[job.pid]
            assert (row["pack"], row["batch"], row["batches"]) == (path, 0, 0)
            said = rf"^ *{job.pid} .* open \d+ s "
            assert until(lambda: re.search(said, good("top", "--once").out, re.M))
        finally:
            job.kill()


def seen_by_other(program):
    return other_user(program, "--json").json()["loaders"]


# ---- real loaders --------------------------------------------------------------------------------


def test_every_rank_of_every_job(path):
    settings = [{"path": path, "pipeline": PIPELINE, "rank": r, "world_size": 2, "threads": 2,
                 "memory": "64MiB"} for r in range(2)]
    with loaders(*settings, {"path": path, "pipeline": PIPELINE, "sleep": 0.2}) as running:
        pids = [one.pid for one in running]
        until(lambda: sum(bool(row["samples_per_second"]) for row in top(*pids).values()) == 3)
        rows = top(*pids)
        assert [(rows[pid]["rank"], rows[pid]["world_size"]) for pid in pids] == [
            (0, 2), (1, 2), (0, 1)]
        for row in rows.values():
            assert row["pack"] == path
            assert row["samples_per_second"] > 0 and row["mb_per_second"] > 0
            assert 0 <= row["wait_percent"] <= 100
            assert 0 < row["memory_bytes"] <= row["memory_limit_bytes"]
            assert 1 <= row["batch"] <= row["batches"] or row["epoch"] > 0
            assert row["requests_in_flight"] == 0 and "cache_hit_percent" not in row
        assert rows[pids[0]]["threads"] == 2 and rows[pids[0]]["memory_limit_bytes"] == 64 << 20
        text = good("top", "--once").out
        assert len(text.splitlines()[0]) <= 78 and path in text.splitlines()
        for pid, rank in zip(pids, ("0/2", "1/2", "0/1")):
            assert re.search(rf"^ *{pid} +{rank} ", text, re.M), text


def test_the_rate_is_that_of_the_loader(path):
    """A training step of 50 ms limits it; the window has at most one batch more than steps."""
    with loaders({"path": path, "pipeline": PIPELINE, "sleep": 0.05}) as (running,):
        row = until(lambda: next((row for row in top(running.pid).values()
                                  if row["window_seconds"] > 1 and not row["idle"]), None))
        assert 0 < row["samples_per_second"] <= 1.2 * 8 / 0.05


def test_nothing_is_left_after_a_kill(path):
    """Not even if a child of the process has its files open."""
    settings = {"path": path, "pipeline": PIPELINE}
    with loaders(settings, env={"FORK": "1"}) as (running,):
        until(lambda: len(top(running.pid)) == 1)
        children = pathlib.Path(f"/proc/{running.pid}/task/{running.pid}/children")
        child = int(until(lambda: children.read_text().split())[0])
        try:
            assert top(child) == {}
            running.process.send_signal(signal.SIGKILL)
            running.process.wait()
            assert top(running.pid, child) == {}
        finally:
            os.kill(child, signal.SIGKILL)
    names = open("/proc/net/unix").read()
    until(lambda: f"/loader/{running.pid}." not in open("/proc/net/unix").read())
    assert names  # it could be read


def test_a_job_can_hide_its_loaders(path):
    settings = {"path": path, "pipeline": PIPELINE}
    with loaders(settings, env={"PENSTOCK_TOP": "0"}) as (hidden,), loaders(settings) as (seen,):
        assert set(top(hidden.pid, seen.pid)) == {seen.pid}


def test_an_idle_loader_is_marked(path):
    with loaders({"path": path, "pipeline": PIPELINE, "sleep": 600}) as (running,):
        row = until(lambda: next((row for row in top(running.pid).values() if row["idle"]), None))
        assert row["age_seconds"] > 2
        line = re.search(rf"^ *{running.pid} .*", good("top", "--once").out, re.M)[0]
        assert re.search(r" 0/1 +- +- +-  idle \d+ s ", line), line


def test_requests_in_flight(s3, tmp_path):
    """The pack is larger than the memory of its loader, so that every epoch fetches it again."""
    server = s3(directory=tmp_path / "s3")
    image = encoded(Image.frombytes("RGB", (200, 150), random.Random(0).randbytes(90000)))
    write_pack(penstock, tmp_path / "s3" / "packs" / "train.pen", 400, image=lambda _: image)
    server.control(chaos="delay=1.0,delay_ms=200", reset=True)
    settings = {"path": ADDRESS, "order": "shuffle", "storage_options": options(server),
                "memory": "24MiB", "pipeline": "decode | center_crop 8 | tensor u8"}
    with Running(LOADER, settings) as far:
        row = until(lambda: next((row for row in top(far.pid).values()
                                  if row["requests_in_flight"] > 1), None))
        assert row["pack"] == ADDRESS and "cache_hit_percent" not in row


def test_cache_hits(s3, tmp_path):
    server = s3(directory=tmp_path / "s3")
    make_pack(penstock, tmp_path / "s3" / "packs" / "train.pen", 200)
    settings = {"path": ADDRESS, "order": "shuffle", "storage_options": options(server),
                "cache": str(tmp_path / "cache"), "pipeline": "decode | center_crop 8 | tensor u8"}
    # The second process finds what the first stored; that one, parts of blocks that it stored.
    for lowest, highest in ((0, 60), (90, 100)):
        with loaders(settings) as (running,):
            row = until(lambda: next((row for row in top(running.pid).values() if row["epoch"]),
                                     None))
            assert lowest <= row["cache_hit_percent"] <= highest


# ---- other users ---------------------------------------------------------------------------------


@as_root
def test_other_users_see_nothing(path, program):
    with loaders({"path": path, "pipeline": PIPELINE}) as (running,):
        assert set(top(running.pid)) == {running.pid}
        assert seen_by_other(program) == []
    with impostors({}, user=USER) as theirs:
        assert [row["process"] for row in seen_by_other(program)] == [theirs.pid]
        assert top(theirs.pid) == {}
    with impostors({"uid": os.geteuid()}, user=USER) as theirs:  # as if it was ours
        assert top(theirs.pid) == {} and seen_by_other(program) == []


@as_root
def test_without_loaders_it_says_how_one_appears(program):
    text = other_user(program, "--once").out
    assert text.startswith("No loaders of this user are running here. ")
    assert "PENSTOCK_TOP=0" in text and all(len(line) < 80 for line in text.splitlines())
    assert other_user(program, "--json").json() == {"schema": 1, "loaders": []}


# ---- hostile memory ------------------------------------------------------------------------------

HOSTILE = {
    "garbage": {"bytes": "\x01\x02" * 2000},
    "endless": {"bytes": "penstock-loader 1\n" + "a 1\n" * 2000},
    "a wrong checksum": {"bytes": "penstock-loader 1\nprocess 1\nend 00000000\n"},
    "huge": {"size": 1 << 40},
    "short": {"size": 100},
    "not sealed": {"seal": False},
    "of another process": {"lines": {"process": 1}},
    "no number": {"lines": {"samples": "many"}},
    "a number that is too large": {"lines": {"samples": 1 << 64}},
    "a long path": {"lines": {"pack": "x" * 2000}},
    "torn": {"torn": True, "lines": {"samples": "1" * 10}},
    "no such process": {"names": ["2147483647.3", "99999999999.3", "-1.3", "x", "1.", ""]},
    "other spellings": {"names": ["0{pid}.{fd}", "+{pid}.{fd}", " {pid}.{fd}", "{pid}.{fd} "]},
}


def test_hostile_memory_is_left_out(path, tmp_path):
    what = [*HOSTILE.values(), {"fifo": str(tmp_path / "fifo")}]
    with impostors(*what) as hostile, loaders({"path": path, "pipeline": PIPELINE}) as (running,):
        for _ in range(10):
            assert set(top(hostile.pid, running.pid, 1)) == {running.pid}


@pytest.mark.parametrize("name", HOSTILE)
def test_each_of_them_is(name):
    with impostors(HOSTILE[name]) as hostile:
        assert top(hostile.pid, 1) == {}


def test_large_numbers_and_strange_paths_are_shown():
    most = (1 << 64) - 1
    numbers = dict.fromkeys(("epoch", "batch", "batches", "samples", "bytes_read", "wait_ns",
                             "memory_bytes", "requests_in_flight", "cache_hits"), most)
    with impostors({"lines": numbers | {"pack": "a\x1b[2J\udcff.pen", "elapsed_ns": 1}}) as one:
        (row,) = top(one.pid).values()
        assert row["wait_percent"] == 100 and row["pack_hex"].endswith("ff2e70656e")
        text = good("top", "--once").out
        assert "\x1b" not in text and "a\\x1b[2J\\xff.pen" in text


# ---- on a terminal -------------------------------------------------------------------------------


def frames(text):
    """The lines of each drawing."""
    found = []
    for frame in text.split("\x1b[H")[1:]:
        plain = re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]", "", frame)
        found.append([line.rstrip() for line in plain.replace("\r", "").split("\n")])
    return found


def settings_of(terminal):
    return termios.tcgetattr(terminal.ours)


def as_user(program, *args, **more):
    """The program on a terminal, for the user who has no other loaders."""
    user = ("--reuid", str(USER), "--regid", str(USER), "--clear-groups")
    return Terminal(*user, program, "top", *args, program="setpriv", **more)


@as_root
@pytest.mark.parametrize("end", ["q", "\x03"])
def test_a_view_that_ends_with_a_key(program, end):
    with impostors({"lines": {"rank": 5, "world": 16, "wait_ns": 10**8}}, user=USER) as one:
        with as_user(program, "--interval", "0.1") as terminal:
            before = settings_of(terminal)
            terminal.wait_for("5/16")
            drawn = len(terminal.text)
            terminal.wait_for("5/16", after=drawn)  # again
            assert settings_of(terminal)[3] != before[3]  # keys are not shown
            terminal.keys(end)
            text = terminal.finish()
            assert terminal.code == 0
            assert settings_of(terminal) == before
    assert text.startswith("\x1b[?1049h\x1b[?25l") and text.endswith("\x1b[?25h\x1b[?1049l")
    last = frames(text)[-1]
    assert last[0] == "penstock top: every 0.1 s; q ends it"
    assert last[2].split() == ["process", "rank", "samples/s", "MB/s", "wait", "bottleneck",
                               "threads", "memory", "reqs", "cache"]
    assert last[3] == "fake.pen"
    assert last[4].split()[:6] == [str(one.pid), "5/16", "100", "1.0", "10%", "consumer"]
    assert all(len(line) < 80 for line in last)


@as_root
@pytest.mark.parametrize("columns", [20, 40, 80])
def test_the_view_fits_the_terminal(program, columns):
    what = [{"lines": {"rank": i, "pack": f"{'d' * 100}/{i % 2}.pen"}} for i in range(40)]
    with impostors(*what, user=USER), as_user(program, columns=columns) as terminal:
        terminal.wait_for("more")
        terminal.keys("q")
        last = frames(terminal.finish())[-1]
    assert len(last) <= 24 and all(len(line) < columns for line in last)
    shown = sum(" 0/1" in line or "/1 " in line for line in last)
    (more,) = (int(line.split()[0]) for line in last if line.endswith(" loaders more"))
    assert shown + more == 40 if columns > 20 else more > 20
    assert sum(line.endswith(".pen") and line.startswith("...") for line in last) == 1


def test_plain_lines_where_there_is_no_terminal(path):
    with loaders({"path": path, "pipeline": PIPELINE}) as (running,):
        process = subprocess.Popen([PENSTOCK, "top", "--interval", "0.05"],
                                   stdout=subprocess.PIPE, text=True)
        watchdog = threading.Timer(DEADLINE, process.kill)
        watchdog.start()
        try:
            seen = 0
            for line in process.stdout:
                seen += line.split()[:1] == [str(running.pid)]
                assert "\x1b" not in line
                if seen == 3:
                    break
            process.send_signal(signal.SIGINT)
            process.stdout.read()
            assert process.wait(timeout=DEADLINE) == 0
        finally:
            watchdog.cancel()
            process.kill()
            process.wait()
            process.stdout.close()


def test_wrong_use():
    assert "--interval" in usage_error("top", "--once", "--interval", "2")
    assert "--interval" in usage_error("top", "--json", "--interval", "2")
    assert "--interval" in usage_error("top", "--interval", "0")
    assert "top" in usage_error("top", "photos.pen")
    assert "top" in run("to").err
