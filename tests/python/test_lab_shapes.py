# SPDX-License-Identifier: Apache-2.0
"""penstock.lab.shapes: texts, what is undone, what is absent, the page cache and the store.
tests/long/long_lab_shapes.py measures the others."""

import argparse
import http.client
import os
import shutil
import signal
import subprocess
import sys

import pytest
from py_tools import need_penstock

penstock = need_penstock()

from penstock.lab import Absent, LabError, shapes  # noqa: E402
from penstock.lab.shapes import cgroup, pages, undo  # noqa: E402
from penstock.lab.shapes import disk as disk_module  # noqa: E402
from penstock.lab.shapes import store as store_module  # noqa: E402
from penstock.lab.shapes.combined import CombinedPlace  # noqa: E402
from penstock.lab.shapes.memory import MemoryPlace  # noqa: E402
from penstock.lab.verbs import shapes as verb  # noqa: E402

TEXTS = ("local", "disk=20MB/s", "seeks=6.8ms", "memory=300MB", "cold", "warm", "cold=machine",
         "store=110ms", "store=110ms@50MB/s", "disk=20MB/s+memory=300MB")


@pytest.mark.parametrize("text", TEXTS)
def test_a_text_describes_a_shape(text):
    assert shapes.parse(text).text == text


def test_units_are_converted():
    assert shapes.parse("memory=1GiB") == shapes.Memory(1 << 30)
    assert shapes.parse("disk=0.5GB/s") == shapes.Disk(500)
    assert shapes.parse("store=0ms@2MiB/s").mb_per_second == pytest.approx(2.097152)


@pytest.mark.parametrize("text", [
    "", "disk", "disk=20", "disk=0MB/s", "seeks=-1ms", "seeks=0ms", "memory=0MB", "store=ms", "hot",
    "disk=20MB/s+", "disk=20MB/s,cold"])
def test_other_texts_are_errors(text):
    with pytest.raises(penstock.InvalidError, match=r"expected one of local, disk=20MB/s"):
        shapes.parse(text)


@pytest.mark.parametrize(("asked", "measured", "within"), [
    (20, 21, True), (20, 18.99, False), (20, 21.01, False), (0, 5, True), (0, 5.1, False)])
def test_a_check_holds_within_5_percent(asked, measured, within):
    check = shapes.Check("disk=20MB/s", "bandwidth", asked, measured, "MB/s", "how")
    assert check.within is within and check.record()["within"] is within
    assert check.record()["simulated"] is True and str(check).startswith("simulated disk=20MB/s")


# ---- what is absent


def reason_of(shape, path):
    with pytest.raises(Absent) as found, shape.apply([path]):
        pass
    return str(found.value)


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "set" / "file"
    path.parent.mkdir()
    path.write_bytes(os.urandom(1 << 20))
    return path


@pytest.fixture
def groups(tmp_path, monkeypatch):
    """Folders that look like cgroup controllers."""
    for name in ("blkio", "memory"):
        (tmp_path / "cgroup" / name).mkdir(parents=True)
        (tmp_path / "cgroup" / name / "cgroup.procs").touch()
    monkeypatch.setattr(cgroup, "ROOT", tmp_path / "cgroup")
    return tmp_path / "cgroup"


@pytest.mark.parametrize("text", ["disk=20MB/s", "memory=300MB", "store=1ms@5MB/s"])
def test_limits_need_root(text, file, groups, monkeypatch):
    monkeypatch.setattr(disk_module, "device_of", lambda folder: "8:0")
    monkeypatch.setattr(shutil, "which", lambda name: name)
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    assert " root: run penstock-lab with sudo" in reason_of(shapes.parse(text), file)
    assert list(groups.glob("*/penstock-lab-*")) == []


def test_limits_need_cgroup_v1(file, groups, monkeypatch):
    (groups / "memory" / "cgroup.procs").unlink()
    assert "no cgroup v1 controller 'memory'" in reason_of(shapes.parse("memory=300MB"), file)


def test_a_disk_needs_a_block_device():
    with pytest.raises(Absent, match="/proc is not on a block device"):
        disk_module.device_of(disk_module.pathlib.Path("/proc"))


def test_seeks_need_fuse_and_a_compiler(file, tmp_path, monkeypatch):
    monkeypatch.setenv("PENSTOCK_LAB_HOME", str(tmp_path / "home"))
    monkeypatch.setattr(shutil, "which", lambda name: None)
    monkeypatch.setattr(os, "access", lambda path, mode: True)
    assert "no C compiler" in reason_of(shapes.parse("seeks=7ms"), file)
    monkeypatch.setattr(os, "access", lambda path, mode: False)
    assert "/dev/fuse cannot be opened" in reason_of(shapes.parse("seeks=7ms"), file)


def test_a_bandwidth_of_a_store_needs_tc(file, monkeypatch):
    monkeypatch.setattr(store_module.shutil, "which", lambda name: None if name == "tc" else name)
    assert "tc: not installed" in reason_of(shapes.parse("store=1ms@5MB/s"), file)


# ---- what is undone


def test_leftovers_of_dead_processes_are_removed(groups, tmp_path):
    mine = undo.new_name()
    for name in (mine, "penstock-lab-999999999-1-0", f"penstock-lab-{os.getpid()}-1-0", "other"):
        (groups / "memory" / name).mkdir()
        (tmp_path / name).mkdir()
    cgroup.remove_leftovers("memory")
    undo.remove_leftover_folders(str(tmp_path))
    for folder in (groups / "memory", tmp_path):
        assert sorted(path.name for path in folder.iterdir()
                      if path.name not in ("cgroup", "cgroup.procs")) == sorted([mine, "other"])


def test_a_group_that_stays_busy_is_an_error(groups, monkeypatch):
    monkeypatch.setattr(undo.until, "__defaults__", (0.02,))
    folder = groups / "memory" / "busy"
    (folder / "child").mkdir(parents=True)
    with pytest.raises(LabError, match="processes remain"):
        cgroup.Group(folder).remove()


SCRIPT = """
import os, signal, sys
from penstock.lab.shapes import undo
with undo.on_sigterm(), undo.temporary_folder(sys.argv[1]) as folder:
    (folder / "file").touch()
    os.kill(os.getpid(), signal.SIGTERM)
"""


def test_sigterm_undoes_everything(tmp_path):
    done = subprocess.run([sys.executable, "-c", SCRIPT, str(tmp_path)], check=False, timeout=60,
                          env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)})
    assert done.returncode == 128 + signal.SIGTERM and list(tmp_path.iterdir()) == []


def test_an_exception_undoes_everything(tmp_path):
    before = signal.getsignal(signal.SIGTERM)
    with pytest.raises(KeyError), undo.on_sigterm(), undo.temporary_folder(str(tmp_path)):
        raise KeyError
    assert list(tmp_path.iterdir()) == [] and signal.getsignal(signal.SIGTERM) == before


def test_waits_end():
    assert undo.until(lambda: False, 0.02) is False and undo.until(lambda: True) is True


# ---- the page cache


def test_cold_and_warm(file):
    with shapes.parse("warm").apply([file.parent]) as place:
        [check] = place.checks
        assert (check.asked, check.measured) == (100, 100) and place.path(file) == file
    with shapes.parse("cold").apply([file]) as place:
        [check] = place.checks
        if check.measured == 100:
            pytest.skip("a file system without a disk cannot be evicted")
        assert check.within
        file.read_bytes()
        assert pages.resident_percent([str(file)]) == 100
        place.refresh()
        assert pages.resident_percent([str(file)]) <= 5


def test_drop_caches_only_where_permitted(file, monkeypatch, tmp_path):
    monkeypatch.setattr(os, "sync", lambda: None)
    monkeypatch.setattr(pages, "DROP", tmp_path / "none" / "drop_caches")
    assert "cannot drop the machine's page cache" in reason_of(shapes.parse("cold=machine"), file)
    monkeypatch.setattr(pages, "DROP", tmp_path / "drop_caches")
    with shapes.parse("cold=machine").apply([file]):
        assert (tmp_path / "drop_caches").read_text() == "3"


class Counting(shapes.Place):
    """How often it was refreshed."""

    times = 0

    def refresh(self):
        self.times += 1


def test_pages_are_kept_between_turns_if_memory_is_limited(file):
    disk, memory = Counting(file.parent), MemoryPlace([file], None)
    CombinedPlace([disk, memory]).refresh()
    assert disk.times == 0
    CombinedPlace([disk]).refresh()
    assert disk.times == 1
    file.read_bytes()
    memory.refresh()
    assert pages.resident_percent([str(file)]) == 100


# ---- the store


def fetch(place, path, method="GET", **headers):
    connection = http.client.HTTPConnection("127.0.0.1", place.port, timeout=10)
    connection.request(method, path, headers=headers)
    answer = connection.getresponse()
    data = answer.read()
    connection.close()
    return answer.status, data, answer.headers


def test_a_store_serves_a_folder(file):
    content = file.read_bytes()
    (file.parent / "more").mkdir()
    (file.parent / "more" / "a&b").write_bytes(b"")
    with shapes.parse("store=1ms").apply([file.parent]) as place:
        assert [check.what for check in place.checks] == ["latency"]
        assert place.address(file) == "s3://lab/file"
        assert fetch(place, "/lab/file")[:2] == (200, content)
        assert fetch(place, "/lab/file", Range="bytes=5-8")[:2] == (206, content[5:9])
        assert fetch(place, "/lab/file", Range="bytes=-3")[:2] == (206, content[-3:])
        assert fetch(place, "/lab/file", Range="bytes=9999999-")[0] == 416
        status, data, headers = fetch(place, "/lab/file", "HEAD")
        assert (status, data, headers["Content-Length"]) == (200, b"", str(len(content)))
        assert fetch(place, "/lab/none")[0] == 404 and fetch(place, "/other/file")[0] == 404
        assert fetch(place, "/lab/../../etc/passwd")[0] == 404
        assert fetch(place, "/lab/file", "PUT")[0] == 405
        text = fetch(place, "/lab?list-type=2")[1].decode()
        assert "<Key>file</Key>" in text and "<Key>more/a&amp;b</Key>" in text
        first = fetch(place, "/lab?list-type=2&max-keys=1")[1].decode()
        assert "<IsTruncated>true</IsTruncated>" in first
        rest = fetch(place, "/lab?list-type=2&continuation-token=file&prefix=mo")[1].decode()
        assert "<KeyCount>1</KeyCount>" in rest
    with pytest.raises(OSError):
        fetch(place, "/lab/file")


# ---- the verb


def options(**given):
    return argparse.Namespace(**{**dict.fromkeys(verb.DEFAULTS), "folder": ".", "out": None,
                                 "command": ["penstock-lab", "shapes"], **given})


def test_options_become_shapes():
    assert verb.texts(options(disk="20,100", store="110@50,5")) == [
        "disk=20MB/s", "disk=100MB/s", "store=110ms@50MB/s", "store=5ms"]
    for text in verb.texts(options()):
        assert shapes.parse(text).text == text


def test_the_verb_prints_a_table_and_writes_a_report(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    monkeypatch.setattr(shutil, "which", lambda name: name)
    (tmp_path / "on").mkdir()
    code = verb.run(options(cache="warm", store="1@5", folder=str(tmp_path / "on"),
                            out=str(tmp_path / "out")))
    text = capsys.readouterr().out
    assert code == 0 and "| warm: files in the page cache" in text and "needs root" in text
    from penstock.lab.experiment import report

    kinds = [line["kind"] for line in report.read(tmp_path / "out")]
    assert kinds == ["parameters", "absent", "shape"] and list((tmp_path / "on").iterdir()) == []


def test_the_exit_code_says_that_a_shape_does_not_hold(tmp_path, monkeypatch, capsys):
    bad = shapes.Check("warm", "files", 100, 90, "%", "how").record()
    monkeypatch.setattr(verb, "measure", lambda text, files: [{"kind": "shape", **bad}])
    assert verb.run(options(cache="warm", folder=str(tmp_path))) == 1
    assert "NO: -10.0%" in capsys.readouterr().out


def test_a_disk_with_seeks_counts_what_it_waits_for(tmp_path, monkeypatch):
    monkeypatch.setenv("PENSTOCK_LAB_HOME", str(tmp_path / "home"))
    (tmp_path / "set").mkdir()
    (tmp_path / "set" / "file").write_bytes(bytes(range(256)) * 64)
    try:
        mounted = shapes.Seeks(1).apply([tmp_path / "set"], measure=False)
        place = mounted.__enter__()
    except Absent as why:
        pytest.skip(str(why))
    try:
        fd = os.open(place.folder / "file", os.O_RDONLY)
        assert os.pread(fd, 256, 0) == bytes(range(256))  # where the open has gone
        os.pread(fd, 256, 256)  # contiguous
        os.pread(fd, 256, 1024)  # a seek
        os.pread(fd, 256, 1024)  # back: nothing was kept
        os.close(fd)
        assert place.counts() == {"opens": 1, "reads": 4, "seeks": 3, "bytes": 1024}
    finally:
        mounted.__exit__(None, None, None)
