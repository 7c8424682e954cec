# SPDX-License-Identifier: Apache-2.0
"""bench/pack_peers.py: what it checks, its table, and a run with penstock alone."""

import json
import pathlib
import subprocess
import sys

import numpy as np
import pytest
from py_tools import jpeg

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "bench"))

import pack_peers  # noqa: E402
from common import places  # noqa: E402
from packers import halves, serve  # noqa: E402
from penstock.lab.loaders import environments  # noqa: E402


def test_writers_have_modules_and_environments():
    writers = pack_peers.writers()
    assert pack_peers.BASES.keys() < writers.keys()
    for spec in writers.values():
        assert (ROOT / "bench" / "packers" / f"{spec['module']}.py").exists()
        assert spec["environment"] is None or spec["environment"] in environments.specs()
        assert spec["stores"] in pack_peers.STORES


def test_parts_hold_every_file_once():
    files = list("abcdefg")
    assert halves.parts(files, 2) == [(0, [(0, "a"), (1, "b"), (2, "c")]),
                                      (1, [(3, "d"), (4, "e"), (5, "f"), (6, "g")])]
    for n in (1, 3, 8):
        assert [s for _, part in halves.parts(files, n) for s in part] == list(enumerate(files))


@pytest.fixture
def files(tmp_path):
    made = [tmp_path / f"{i}.jpg" for i in range(3)]
    for i, file in enumerate(made):
        file.write_bytes(jpeg(i))
    return made


def test_samples_that_are_their_files(files):
    data = [file.read_bytes() for file in files]
    assert serve.check_samples(enumerate(data), files, "bytes") == 3
    assert serve.check_samples(enumerate(map(serve.pixels_of, data)), files, "pixels") == 3
    again = list(map(serve.encoded_again, data))
    assert serve.check_samples(enumerate(again), files, "encoded") == 3
    with pytest.raises(ValueError, match="sample 0: differs"):
        serve.check_samples(enumerate(again), files, "bytes")


@pytest.mark.parametrize(("numbers", "says"), [
    ((0, 1), "expected 3 samples, found 2"),
    ((0, 1, 1), "sample 1: expected each of 3 once"),
    ((0, 1, 3), "sample 3: expected each of 3 once"),
])
def test_samples_that_are_lost_or_double(files, numbers, says):
    samples = [(i, files[i % 3].read_bytes()) for i in numbers]
    with pytest.raises(ValueError, match=says):
        serve.check_samples(samples, files, "bytes")


def test_other_pixels_are_found(files):
    right = [serve.pixels_of(file.read_bytes()) for file in files]
    off = [pixel ^ np.uint8(1) for pixel in right]
    for wrong, stores in ((off, "pixels"), ([x[:, :-1] for x in right], "encoded"),
                          ([255 - x for x in right], "encoded")):
        with pytest.raises(ValueError, match="sample 0: differs"):
            serve.check_samples(enumerate(wrong), files, stores)


def turns(name, seconds, **more):
    lines = [{"kind": "prepared", "writer": name, "title": name.upper(), "stores": "bytes",
              "versions": {name: "1.2"}}]
    return lines + [{"kind": "turn", "writer": name, "round": n, "samples": 2000, "seconds": s,
                     "cpu": 3.0, "bytes": 222_000_000, **more} for n, s in enumerate(seconds)]


def test_the_table_says_what_was_measured():
    lines = [*turns("penstock", (1, 2, 4)), *turns("penstock-no-index", (1, 1, 1)),
             *turns("mosaic", (4, 4, 4)), *turns("litdata", (8,)),
             {"kind": "absent", "writer": "litdata", "reason": "no wheel"}]
    _, _, ours, bare, mosaic, litdata = pack_peers.table(lines).splitlines()
    assert ours == ("| PENSTOCK 1.2 (files) | 1,000 (500-2,000) | - | 2.00 (1.00-4.00) | 1.50 "
                    "| 222 |")
    assert bare.split(" | ")[2:4] == ["0.50 (0.25-1.00)", "-"]
    assert mosaic.split(" | ")[1:4] == ["500 (500-500)", "2.00 (1.00-4.00)", "4.00 (4.00-4.00)"]
    assert litdata == "| LitData `optimize` | absent: no wheel |  |  |  |  |"


@pytest.fixture
def photos(tmp_path):
    for i in range(4):
        (tmp_path / "photos" / f"c{i % 2}").mkdir(parents=True, exist_ok=True)
        (tmp_path / "photos" / f"c{i % 2}" / f"{i}.jpg").write_bytes(jpeg(i))
    return tmp_path / "photos"


def run(photos, penstock, *writers):
    work = photos.parent / "work"
    done = subprocess.run(
        [sys.executable, ROOT / "bench" / "pack_peers.py", "--photos", photos, "--work", work,
         "--penstock", penstock, "--rounds", "2", "--times", "3", *writers],
        check=False, capture_output=True, text=True, timeout=600)
    lines = (work / "pack-peers.jsonl").read_text().splitlines()
    return done, list(map(json.loads, lines)), work


def test_a_run_with_penstock_alone(photos):
    done, lines, work = run(photos, places.BUILD / "penstock", *pack_peers.BASES)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "penstock-no-index: 12 samples read back" in done.stdout
    found = [line for line in lines if line["kind"] == "turn"]
    assert [line["writer"] for line in found] == [*pack_peers.BASES] * 2  # they take turns
    assert all(line["samples"] == 12 and line["seconds"] >= line["returned"] for line in found)
    assert (work / "pack-peers.md").read_text() in done.stdout
    assert not (work / "peers-out").exists()


def test_a_writer_that_fails_is_absent(photos, tmp_path):
    """A program that writes a pack of fewer samples, in which the check finds that."""
    program = tmp_path / "other"
    program.write_text(f'#!/bin/sh\n[ "$1" != pack ] || rm "$2"/c0/0-00.jpg\n'
                       f'exec {places.BUILD / "penstock"} "$@"\n')
    program.chmod(0o755)
    done, lines, _ = run(photos, program, "penstock")
    assert done.returncode == 1
    assert "expected 12 samples, found 11" in lines[-1]["reason"]
