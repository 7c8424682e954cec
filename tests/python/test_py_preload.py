# SPDX-License-Identifier: Apache-2.0
"""preload=True: a whole pack in memory that processes share."""

import contextlib
import json
import os
import pathlib
import pickle
import random
import signal
import subprocess
import sys
import tempfile
import threading
import time

import conftest
import pytest
from preload_tools import memory_kib, names
from py_tools import in_child, need_penstock, run_python
from remote_tools import ADDRESS, epoch_digest, make_pack, options

penstock = need_penstock()
pytest.importorskip("numpy")
pytestmark = pytest.mark.usefixtures("no_other_settings")

HERE = pathlib.Path(__file__).parent
HEAD = f"""import sys, time, json; sys.path.insert(0, {str(HERE)!r})
import penstock, preload_tools, remote_tools
"""
SLOW = "delay=1,delay_ms=200"
BLOB, N_BLOBS = 256 * 1024, 240  # 60 MiB


@pytest.fixture(scope="module")
def root(tmp_path_factory):
    """A folder that is served: packs/train.pen. Another run of these tests does not share it."""
    folder = tmp_path_factory.mktemp("root")
    make_pack(penstock, folder / "packs" / "train.pen", 1500, name=f"train {os.getpid()}")
    return folder


@pytest.fixture(scope="module")
def disk(root):
    return root / "packs" / "train.pen"


@pytest.fixture
def server(s3, root):
    return s3(directory=root)


@pytest.fixture(scope="module")
def large(tmp_path_factory):
    path = tmp_path_factory.mktemp("large") / "large.pen"
    noise = random.Random(5)
    with penstock.Writer(path, {"blob": "bytes"}, name=f"large {os.getpid()}",
                         shard_size="16MiB", block_samples=8) as writer:
        for i in range(N_BLOBS):
            writer.add(key=f"b{i}", blob=noise.randbytes(BLOB))
    return path


@contextlib.contextmanager
def process(code, *args):
    """A Python program that prints a line of JSON for each line it is to go on after."""
    with subprocess.Popen(
        [sys.executable, "-c", HEAD + code, *map(str, args)],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
    ) as child:
        try:
            yield child
        finally:
            child.kill()


def told(child):
    line = child.stdout.readline()
    assert line, "the process has ended"
    return json.loads(line)


HOLD = """
with penstock.open(sys.argv[1], json.loads(sys.argv[2]), preload=True) as pack:
    print(json.dumps(pack.preloaded._asdict()), flush=True)
    sys.stdin.readline()
"""


# ---- what is read


@pytest.mark.parametrize("order", ["sequential", "shuffle", "random"])
def test_an_epoch_is_that_from_the_disk(disk, order):
    expected = epoch_digest(penstock, disk, order=order)
    assert epoch_digest(penstock, disk, order=order, preload=True) == expected


def test_a_far_pack_becomes_a_near_one(server, disk):
    expected = epoch_digest(penstock, disk, order=None, shuffle=True)
    found = epoch_digest(penstock, ADDRESS, options(server), order=None, shuffle=True,
                         preload=True)
    assert found == expected  # order="random", which is the default of a local one


def test_nothing_is_asked_for_once_it_is_there(server):
    with penstock.open(ADDRESS, options(server), preload=True) as pack:
        before = len(server.log())
        assert [pack[i]["label"] for i in range(len(pack))] == list(range(len(pack)))
        assert pack.index("s77") == 77
        assert pack.preloaded.is_sealed and not pack.preloaded.was_there
    assert len(server.log()) == before


def test_damage_is_told_as_of_a_disk(tmp_path):
    path = tmp_path / "bad.pen"
    make_pack(penstock, path, 200)
    shard = sorted(path.glob("??/*"))[0]
    data = bytearray(shard.read_bytes())
    at = data.index(b"\x89PNG") + 20
    data[at] ^= 1
    shard.write_bytes(data)
    with penstock.open(path) as local, penstock.open(path, preload=True) as pack:
        assert not pack.preloaded.is_sealed
        bad = 0
        for i in range(len(pack)):
            try:
                expected = local[i]["image"]
            except penstock.CorruptError as error:
                bad += 1
                with pytest.raises(penstock.CorruptError) as found:
                    pack[i]["image"]
                assert str(found.value) == str(error) and found.value.sample == error.sample
            else:
                assert pack[i]["image"] == expected
        assert bad == 1


# ---- how it is asked for


def test_what_it_says_and_refuses(disk):
    with penstock.open(disk) as pack:
        assert pack.preloaded is None
        with pytest.raises(penstock.InvalidError, match="pass it to open"):
            penstock.Loader(pack, 8, preload=True)
    with pytest.raises(penstock.InvalidError, match="leave cache out"):
        penstock.open(disk, cache=disk.parent / "cache", preload=True)
    with pytest.raises(TypeError, match="preload: expected True, False or a function, found 'yes'"):
        penstock.open(disk, preload="yes")
    with penstock.open(disk, preload=True) as pack:
        figures = pack.preloaded
        assert figures.bytes >= figures.read_bytes > 100_000
        copy = pickle.loads(pickle.dumps(pack))
        assert copy.preloaded.was_there and copy.preloaded.read_bytes == 0
        copy.close()
        assert len(names(pack.id)) == 1
    assert not names(pack.id)


def test_progress_is_told(large):
    seen = []
    penstock.open(large, preload=lambda done, total: seen.append((done, total))).close()
    assert seen and all(0 <= done <= total for done, total in seen)
    assert seen == sorted(seen) and seen[0][1] > N_BLOBS * BLOB

    def stop(done, total):
        raise LookupError("enough")

    with pytest.raises(LookupError, match="enough"):
        penstock.open(large, preload=stop)


def test_ctrl_c(server, disk):
    def mute(_done, _total):  # once the manifest is there
        if not began:
            server.control(mute=True)
            began.append(time.monotonic())
            threading.Timer(0.3, os.kill, (os.getpid(), signal.SIGINT)).start()

    began = []
    for _ in range(3):  # the machine may be busy
        began.clear()
        server.control(chaos=SLOW, mute=False)
        with pytest.raises(KeyboardInterrupt):
            penstock.open(ADDRESS, options(server), preload=mute)
        if time.monotonic() - began[0] < 5:
            break
    else:
        pytest.fail("it takes 5 s or more")
    with penstock.open(disk) as pack:
        assert not names(pack.id)


def test_a_forked_child_shares_it(disk):
    with penstock.open(disk, preload=True) as pack:
        def look():
            assert pack[3]["label"] == 3
            assert pack.preloaded.was_there and pack.preloaded.read_bytes == 0

        assert in_child(look) is None


# ---- several processes


@pytest.mark.skipif(conftest.is_sanitized(conftest.BUILD), reason="it keeps what was freed")
def test_the_second_process_adds_no_memory(large):
    """Reads all of it, twice: what it holds grows by a few buffers, not by 60 MiB."""
    code = """
penstock.open  # all modules are imported at the first use
before = preload_tools.memory_kib()
with penstock.open(sys.argv[1], preload=True) as pack:
    for _ in range(2):
        total = sum(len(sample["blob"]) for sample in pack)
    after = preload_tools.memory_kib()
    print(json.dumps({"total": total, "grown": {name: after[name] - before[name] for name in after},
                      "was_there": pack.preloaded.was_there}), flush=True)
"""
    with penstock.open(large, preload=True) as pack, process(code, large) as second:
        found = told(second)
        assert found["total"] == N_BLOBS * BLOB and found["was_there"]
        assert pack.preloaded.bytes > N_BLOBS * BLOB
        assert max(found["grown"].values()) < 8 * 1024, found


def is_gone(pack_id):
    """The kernel removes the names of a process that has ended some time later."""
    deadline = time.monotonic() + 30
    while names(pack_id) and time.monotonic() < deadline:
        time.sleep(0.01)
    return not names(pack_id)


def test_of_a_far_pack_each_part_is_asked_for_once(server):
    server.control(chaos=SLOW)
    where = json.dumps(options(server))
    with process(HOLD, ADDRESS, where) as one, process(HOLD, ADDRESS, where) as two:
        figures = [told(one), told(two)]
    asked = [(entry["what"], entry["range"]) for entry in server.log()
             if not entry["what"].endswith("/manifest")]
    assert len(asked) == len(set(asked)) > 2
    assert sorted(figure["was_there"] for figure in figures) == [False, True]
    with penstock.open(ADDRESS, options(server)) as pack:
        size = pack.info["total_bytes"]
        assert 0.9 * size < sum(figure["read_bytes"] for figure in figures) <= size
    assert is_gone(pack.id)


def test_it_outlives_who_made_it_and_no_longer(disk):
    with process(HOLD, disk, "null") as one:
        assert not told(one)["was_there"]
        with process(HOLD, disk, "null") as two:
            assert told(two)["was_there"]
            one.kill()
            one.wait()
            with process(HOLD, disk, "null") as three:
                figures = told(three)
                assert figures["was_there"] and figures["read_bytes"] == 0
    with penstock.open(disk) as pack:
        assert is_gone(pack.id)


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root to become another user")
def test_each_user_has_memory_of_its_own():
    """The kernel does not let a user open memory of another."""
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder) / "train.pen"
        os.chmod(folder, 0o755)
        make_pack(penstock, path, 200, name=f"users {os.getpid()}")
        digest = epoch_digest(penstock, path)

        def look():
            os.setgroups([])
            os.setgid(4100)
            os.setuid(4001)
            with penstock.open(path, preload=True) as pack:
                assert not pack.preloaded.was_there
                assert epoch_digest(penstock, pack) == digest

        with process(HOLD, path, "null") as one:
            assert not told(one)["was_there"]
            assert in_child(look) is None
            with process(HOLD, path, "null") as two:
                assert told(two)["was_there"]


def test_a_process_that_ends_without_closing(disk):
    code = HEAD + "pack = penstock.open(sys.argv[1], preload=True); pack[0]['label']\n"
    done = run_python(code, disk)
    assert done.returncode == 0, done.stderr
    with penstock.open(disk) as pack:
        assert is_gone(pack.id)


def test_memory_is_looked_at():
    assert set(memory_kib()) == {"rss", "pss", "private"}
