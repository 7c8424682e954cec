# SPDX-License-Identifier: Apache-2.0
"""Two runs of the lab do not write the same folder at once."""

import subprocess
import sys

import penstock
import pytest
from penstock.lab import errors
from penstock.lab.clips import sets as clips
from penstock.lab.clips import sources
from penstock.lab.experiment.lock import lock
from penstock.lab.growth.packs import Packs
from penstock.lab.loaders import sets as loaders
from penstock.lab.videos import sets as videos

HOLD = """
import pathlib, sys
from penstock.lab.experiment.lock import lock
lock(pathlib.Path(sys.argv[1]))
print("locked", flush=True)
sys.stdin.read()
"""


class Holder:
    """Another process, which has locked a folder."""

    def __init__(self, folder):
        self.process = subprocess.Popen([sys.executable, "-c", HOLD, folder], text=True,
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        assert self.process.stdout.readline() == "locked\n"

    def __enter__(self):
        return self.process.pid

    def __exit__(self, *_):
        self.process.kill()
        self.process.communicate()


def source(work):
    if not (work / "in").exists():
        (work / "in").mkdir()
        (work / "in" / "a.jpg").write_bytes(b"not read")
    return work / "in"


def load(work):
    return loaders.Set.of_source(str(source(work)), work, 0)


def extract(work):
    if not (work / "p.pen").exists():
        penstock.write(work / "p.pen", [{"label": 1}], {"label": "i64"})
    return loaders.Set.of_source(str(work / "p.pen"), work, 0)


def cut(work):
    return clips.Set("", work, 2, 1).make()


def encode(work):
    return videos.Sets("", work, 64, 48, 1).make("short", 12)


def keep(work):
    return videos.Sets("", work, 64, 48, 1).source()


def grow(work):
    return Packs(source(work), work)


def draw(work):
    return sources.test_videos(work / "drawn")


@pytest.mark.parametrize("write", [load, extract, cut, encode, keep, grow, draw])
def test_what_another_process_writes_is_left_alone(write, tmp_path, monkeypatch):
    """The first run, which is stopped at once, tells which folder it is."""
    folders = []

    def stop(folder):
        folders.append(folder)
        raise KeyboardInterrupt

    for module in (clips, loaders, videos, sources, sys.modules[Packs.__module__]):
        monkeypatch.setattr(module, "lock", stop)
    with pytest.raises(KeyboardInterrupt):
        write(tmp_path)
    monkeypatch.undo()
    with Holder(folders[0]) as number, pytest.raises(errors.LabError) as error:
        write(tmp_path)
    assert f"'{folders[0]}' is in use: another penstock-lab (process {number})" in str(error.value)
    assert list(folders[0].iterdir()) == []


def test_it_ends_with_the_process(tmp_path):
    folder = tmp_path / "set"
    with Holder(folder), pytest.raises(errors.LabError, match="is in use"):
        lock(folder)
    lock(folder)
    lock(folder)  # by the same process
    with pytest.raises(AssertionError), Holder(folder):
        pass


def test_a_folder_that_cannot_be_locked(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(errors.LabError, match="cannot lock folder '.*/file/set': Not a directory"):
        lock(tmp_path / "file" / "set")


def test_a_folder_that_was_removed_is_made_again(tmp_path):
    for _ in range(2):
        lock(tmp_path / "set")
        (tmp_path / "set").rmdir()
