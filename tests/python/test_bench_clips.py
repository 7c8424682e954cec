# SPDX-License-Identifier: Apache-2.0
"""What bench/clips_speed.py makes of its turns, and the disk that seeks."""

import os
import pathlib
import shutil
import subprocess
import sys

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "bench"))

from clips import disk, rounds, stock, tables  # noqa: E402
from common import places  # noqa: E402
from penstock.lab.loaders import environments  # noqa: E402


def turn(loader, number, seconds, **more):
    return {"kind": "turn", "loader": loader, "round": number, "seconds": seconds, "cpu": 1.0,
            "first_seconds": 0.5, "batches": 50, **more}


def record(ours, theirs, **more):
    head = {"kind": "parameters", "what": "fetch", "title": "T", "place": "disk", "batch": 10,
            "rounds": len(ours), "wanted": {"jpeg": 3.5}, "machine": places.machine(),
            "command": "c", **more}
    lines = [head]
    for name, times in (("penstock", ours), ("jpeg", theirs)):
        lines.append({"kind": "prepared", "loader": name, "title": name, "versions": {}})
        lines += [turn(name, i, seconds) for i, seconds in enumerate(times)]
    return lines


def test_a_ratio_is_that_of_the_medians():
    lines = record([1.5, 2.0, 1.5], [6.0, 6.0, 7.5])
    found, absent = tables.results(lines)
    [(name, least, result, enough)] = tables.verdicts(lines[0], found)
    assert (name, least, enough, absent) == ("jpeg", 3.5, True, {})
    assert [result[key] for key in ("ratio", "low", "high")] == pytest.approx([4, 3, 5])
    assert "| 4.00 (3.00-5.00) | reached |" in tables.markdown(lines)
    slower = record([2.0, 2.0, 2.0], [6.0, 6.0, 6.0])
    assert "| 3.00 (3.00-3.00) | NOT reached |" in tables.markdown(slower)


def test_who_is_absent_is_named_and_not_compared():
    lines = record([1.0], [6.0])
    lines.append({"kind": "absent", "loader": "jpeg", "title": "jpeg", "reason": "no wheel"})
    found, _ = tables.results(lines)
    assert list(found) == ["penstock"] and tables.verdicts(lines[0], found)[0][3] is False
    assert "absent: no wheel" in tables.markdown(lines)


def test_shares_of_the_time_that_was_waited():
    waits = {"seconds": 20.0, "first_seconds": 2.0, "data_seconds": 10.0, "data_later": 8.0}
    assert tables.share(waits) == 0.5 and tables.share(waits, False) == pytest.approx(8 / 18)


def test_room_counts_bytes_blocks_and_folders(tmp_path):
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "x").write_bytes(b"x" * 5000)
    (tmp_path / "y").write_bytes(b"y" * 100)
    found = stock.room([tmp_path])
    assert (found["bytes"], found["files"], found["folders"]) == (5100, 2, 2)
    assert found["disk"] % 512 == 0


def test_every_loader_has_a_module_and_an_environment():
    known = environments.specs()
    for name, spec in rounds.known().items():
        assert (ROOT / "bench" / "clips" / "sides" / f"{spec['module']}.py").exists(), name
        assert spec["environment"] is None or spec["environment"] in known, name


def slow_disk(folder):
    """The mounted disk, or a skip where FUSE is not allowed."""
    has_header = subprocess.run(["pkg-config", "--exists", "fuse3"], check=False).returncode == 0
    if not has_header or not os.access("/dev/fuse", os.R_OK | os.W_OK):
        pytest.skip("no FUSE here")
    if not shutil.which("fusermount3"):
        pytest.skip("no fusermount3 here")
    return disk.Slow(folder, 1.0)


def test_the_slow_disk_counts_what_it_waits_for(tmp_path, monkeypatch):
    monkeypatch.setenv("PENSTOCK_LAB_HOME", str(tmp_path / "work"))
    (tmp_path / "set").mkdir()
    (tmp_path / "set" / "file").write_bytes(bytes(range(256)) * 64)
    try:
        place = slow_disk(tmp_path / "set").__enter__()
    except environments.Absent as why:
        pytest.skip(str(why))
    try:
        fd = os.open(os.path.join(place.root, "file"), os.O_RDONLY)
        assert os.pread(fd, 256, 0) == bytes(range(256))  # where the open has gone
        os.pread(fd, 256, 256)  # goes on
        os.pread(fd, 256, 1024)  # a seek
        os.pread(fd, 256, 1024)  # back: nothing was kept
        os.close(fd)
        assert place.counts() == {"opens": 1, "reads": 4, "seeks": 3, "bytes": 1024}
    finally:
        place.__exit__()
