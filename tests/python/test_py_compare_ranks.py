# SPDX-License-Identifier: Apache-2.0
"""Ranks compare what defines their order, once: through the store of torch.distributed in real
processes, through a directory, and through a function."""

import contextlib
import json
import os
import pathlib
import pickle
import re
import signal
import socket
import subprocess
import sys
import threading
import time
import warnings

import pytest
from example_tools import need
from py_tools import need_penstock, write_pack

penstock = need_penstock()
need("numpy")

from penstock import _compare  # noqa: E402

N = 61
RANKS = 3
OTHER_ORDER = "the order differs between ranks"


@pytest.fixture(scope="module")
def pack(tmp_path_factory):
    return write_pack(penstock, tmp_path_factory.mktemp("packs") / "a.pen", N)


@pytest.fixture(autouse=True)
def no_run(monkeypatch):
    """No launcher, and nothing was compared before."""
    for name in os.environ:
        if name.startswith(("TORCHELASTIC_", "SLURM_")):
            monkeypatch.delenv(name)
    monkeypatch.setattr(_compare, "_numbers", {})


def opened(pack, rank=0, world=RANKS, batch_size=4, **settings):
    settings = {"shuffle": True, "seed": 1, "output": "numpy", "threads": 1, "memory": "64MiB",
                "timeout": 60, **settings}
    return penstock.Loader(pack, batch_size, rank=rank, world_size=world, **settings)


def on_ranks(function, ranks=RANKS):
    """What it returns or raises for each rank; each has a thread."""
    found = [None] * ranks

    def run(rank):
        try:
            found[rank] = function(rank)
        except Exception as error:
            found[rank] = error

    threads = [threading.Thread(target=run, args=(rank,)) for rank in range(ranks)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return found


def first_batch(pack, rank=0, **settings):
    with opened(pack, rank, **settings) as loader:
        next(iter(loader))
    return "loaded"


# ---- torch.distributed, in processes

SCRIPT = """
import json, sys
import torch.distributed as dist
import penstock

path, rank, world, init, ids = sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), *sys.argv[4:]

def load(**settings):
    settings = {"rank": rank, "world_size": world, "seed": 1, "timeout": 60, **settings}
    loader = penstock.Loader(path, 4, shuffle=True, output="numpy", threads=1, memory="64MiB",
                             **settings)
    try:
        for _ in range(2):
            sum(1 for _ in loader)
        return "loaded"
    except penstock.Error as error:
        return f"{type(error).__name__}: {error}"

dist.init_process_group("gloo", init_method=init, rank=rank, world_size=world)
collectives = {name: getattr(dist, name) for name in dir(dist) if name.startswith(
    ("all_", "gather", "broadcast", "scatter", "reduce", "barrier", "send", "recv"))}
for name in collectives:
    setattr(dist, name, None)
found = {}
train = penstock.Loader(path, 4, shuffle=True, output="numpy", threads=1, memory="64MiB")
check = penstock.Loader(path, 2, output="numpy", threads=1, memory="64MiB")
found["two loaders"] = [len(list(loader)) for loader in (train, check, train, check)]
found["seed"] = load(seed=5 if rank == 1 else 1)
found["batch"] = load(subset=range(40 if rank == 2 else 60))
found["again"] = load()
peers = {"rank": min(rank, 1), "world_size": 2}
found["peers"] = [load(**peers), load(), load(**peers)]
if rank == 2:  # the second of its rank, also in time
    dist.distributed_c10d._get_default_store().wait(["written"])
    found["other peer"] = load(**peers, seed=7, timeout=1)
else:
    if rank == 1:
        publish = penstock._compare._Store.put
        def put(self, key, text):
            made = publish(self, key, text)
            dist.distributed_c10d._get_default_store().set("written", "1")
            return made
        penstock._compare._Store.put = put
    found["other peer"] = load(**peers, timeout=20)
# The numbers of the ranks are apart after this one.
found["missing"] = load(timeout=1) if rank != 2 else "absent"
found["off"] = load(compare_ranks=False, seed=rank)
found["more ranks than processes"] = load(world_size=world + 1)
print(json.dumps(found), flush=True)
collectives["barrier"]()
dist.destroy_process_group()
"""


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


@pytest.fixture(scope="module", params=["tcp", pytest.param("file", marks=pytest.mark.slow)])
def job(request, pack, tmp_path_factory):
    need("torch")
    init = f"tcp://127.0.0.1:{free_port()}"
    if request.param == "file":
        init = f"file://{tmp_path_factory.mktemp('store') / 'store'}"
    environ = {name: value for name, value in os.environ.items()
               if not name.startswith(("TORCHELASTIC_", "SLURM_"))}
    environ |= {"OMP_NUM_THREADS": "1", "GLOO_SOCKET_IFNAME": "lo"}
    processes = [subprocess.Popen(
        [sys.executable, "-c", SCRIPT, pack.path, str(rank), str(RANKS), init, "x"], env=environ,
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) for rank in range(RANKS)]
    try:
        outputs = [process.communicate(timeout=240) for process in processes]
    finally:
        for process in processes:
            process.kill()
    assert [process.returncode for process in processes] == [0] * RANKS, outputs
    return [json.loads(out) for out, _ in outputs], [err for _, err in outputs]


def test_processes_with_the_same_settings(job):
    """Two loaders, each with its own line; and a loader that is compared after others failed."""
    found, _ = job
    steps, smaller = -(-N // (4 * RANKS)), -(-N // (2 * RANKS))
    for one in found:
        assert one["two loaders"] == [steps, smaller] * 2
        assert one["again"] == one["off"] == "loaded" and one["peers"] == ["loaded"] * 3


def test_processes_with_other_settings(job):
    """Rank 0 reads the lines of all, and the others that of rank 0. Only what differs is shown."""
    found, _ = job
    assert re.search(rf"^InvalidError.*{OTHER_ORDER}: rank 0 has seed=1; rank 1 has seed=5\. Some",
                     found[0]["seed"])
    assert "rank 1 has seed=5; rank 0 has seed=1. Some" in found[1]["seed"]
    assert found[2]["seed"] == found[1]["batch"] == "loaded"
    for rank, other in ((0, 2), (2, 0)):
        text = found[rank]["batch"]
        assert f"rank {rank} has samples=" in text and f"; rank {other} has samples=" in text
        assert "subset is a hash of subset, weights" in text
        assert "seed=" not in text and " hash=" not in text


def test_a_process_that_does_not_load(job):
    """Rank 0 waits for it."""
    found, _ = job
    assert found[0]["missing"] == (
        "TimeoutError: compare_ranks: rank 2 of 3 did not request a batch within timeout=1 seconds "
        "of rank 0. Every rank has to iterate over the loader; if only some do, pass "
        "compare_ranks=False")
    assert found[1]["missing"] == "loaded"


def test_processes_with_the_same_rank(job):
    """Of tensor parallelism: they have to load the same batches."""
    found, _ = job
    assert found[0]["other peer"] == found[1]["other peer"] == "loaded"
    text = found[2]["other peer"]
    assert "rank 1 has seed=7; another process of rank 1 has seed=1. Two processes" in text


def test_a_group_without_all_ranks(job):
    found, errors = job
    for one, error in zip(found, errors):
        assert one["more ranks than processes"] == "loaded"
        assert error.count("the ranks did not compare their orders") == 1


# ---- a directory


def test_a_directory(pack, tmp_path):
    where = tmp_path / "of" / "a-run"
    for loaders in (1, 2):
        assert on_ranks(lambda rank: first_batch(pack, rank, compare_ranks=where)) == ["loaded"] * 3
        assert len(list(where.iterdir())) == RANKS * loaders  # and nothing temporary
    found = on_ranks(lambda rank: first_batch(
        pack, rank, compare_ranks=str(where), batch_size=4 + rank // 2,
        last_batch="drop" if rank == 2 else "pad"))
    assert found[1] == "loaded" and isinstance(found[0], penstock.InvalidError)
    assert ("rank 0 has batch_size=4, last_batch=pad; rank 2 has batch_size=5, last_batch=drop"
            in str(found[0]))


def test_a_missing_rank(pack, tmp_path):
    """The wait has the time limit of a batch, and can be repeated."""
    with opened(pack, compare_ranks=tmp_path, timeout=0.2, world=30) as loader:
        batches = iter(loader)
        for _ in range(2):
            with pytest.raises(penstock.TimeoutError, match="ranks 1, 2, .* 16 and 13 more of 30"):
                next(batches)
    with opened(pack, 1, compare_ranks=tmp_path / "b", timeout=0.2) as loader:
        with pytest.raises(penstock.TimeoutError, match=r"rank 0 of 3 .* of rank 1"):
            next(iter(loader))
    assert [file.name for file in (tmp_path / "b").iterdir()] == ["3.0.1"]


def test_files_of_an_earlier_run(pack, tmp_path, monkeypatch):
    """Runs that the launcher names have their own files. Others are refused if they differ."""
    def run(**settings):
        monkeypatch.setattr(_compare, "_numbers", {})  # as in another process
        return on_ranks(lambda rank: first_batch(pack, rank, compare_ranks=tmp_path, **settings))

    assert run() == run() == ["loaded"] * 3
    for error in run(seed=2):
        assert isinstance(error, penstock.InvalidError)
        assert "has seed=2; another process of rank" in str(error)
        assert "files of an earlier run, use one of this run" in str(error)
    for environ in ({"TORCHELASTIC_RUN_ID": "a/b"}, {"TORCHELASTIC_RESTART_COUNT": "1"},
                    {"TORCHELASTIC_RUN_ID": "none", "SLURM_JOB_ID": "77"}, {"SLURM_STEP_ID": "1"},
                    {"TORCHELASTIC_RUN_ID": "", "SLURM_STEP_ID": "2"}):
        for name, value in environ.items():
            monkeypatch.setenv(name, value)
        if environ == {"SLURM_STEP_ID": "1"}:  # under torchrun, nodes can be steps
            assert all(isinstance(one, penstock.InvalidError) for one in run(seed=2 + 1))
            continue
        before = len(list(tmp_path.iterdir()))
        assert run(seed=len(before * "x")) == ["loaded"] * 3
        assert len(list(tmp_path.iterdir())) == before + RANKS
    names = {file.name for file in tmp_path.iterdir()}
    assert {"3.0.0", "a%2Fb.3.0.0", "a%2Fb-1.3.0.0", "77-1.3.0.0", "77-2-1.3.0.0"} <= names


def test_a_directory_that_cannot_be_written(pack, tmp_path):
    (tmp_path / "file").write_text("")
    with opened(pack, compare_ranks=tmp_path / "file") as loader:
        with pytest.raises(penstock.ReadWriteError, match="cannot use the directory .*file"):
            next(iter(loader))


def test_a_file_system_without_links(pack, tmp_path, monkeypatch):
    def link(*_):
        raise OSError(95, "Operation not supported")

    monkeypatch.setattr(os, "link", link)
    assert on_ranks(lambda rank: first_batch(pack, rank, compare_ranks=tmp_path)) == ["loaded"] * 3
    assert sorted(file.name for file in tmp_path.iterdir()) == ["3.0.0", "3.0.1", "3.0.2"]


class Interrupted(Exception):
    pass


@pytest.mark.skipif(threading.current_thread() is not threading.main_thread(), reason="signals")
def test_a_signal_ends_the_wait(pack, tmp_path):
    """And the next call waits again."""
    def interrupt(*_):
        raise Interrupted

    with opened(pack, compare_ranks=tmp_path, world=2) as loader:
        batches = iter(loader)
        before = signal.signal(signal.SIGALRM, interrupt)
        try:
            for _ in range(2):
                begin = time.monotonic()
                signal.setitimer(signal.ITIMER_REAL, 0.3)
                with pytest.raises(Interrupted):
                    next(batches)
                assert time.monotonic() - begin < 5
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)
            signal.signal(signal.SIGALRM, before)
        assert first_batch(pack, 1, world=2, compare_ranks=tmp_path) == "loaded"
        assert len(list(batches)) == len(loader)


def test_closing_ends_the_wait(pack, tmp_path):
    loader = opened(pack, compare_ranks=tmp_path)
    timer = threading.Timer(0.3, loader.close)
    timer.start()
    begin = time.monotonic()
    with pytest.raises(penstock.ClosedError):
        next(iter(loader))
    assert time.monotonic() - begin < 20
    timer.join()


# ---- a function


class Gather:
    """As all_gather_object: the texts of all ranks, in their order."""

    def __init__(self, ranks=RANKS):
        self.barrier = threading.Barrier(ranks)
        self.texts, self.calls = [None] * ranks, 0

    def of(self, rank):
        def gather(text):
            self.calls += 1
            self.texts[rank] = pickle.loads(pickle.dumps(text))
            self.barrier.wait(60)
            return list(self.texts)

        return gather


def test_a_function(pack):
    """It is called once for each loader, by every rank."""
    gather = Gather()
    loaders = [opened(pack, rank, compare_ranks=gather.of(rank)) for rank in range(RANKS)]
    for _ in range(2):
        steps = on_ranks(lambda rank: len(list(loaders[rank])))
        assert steps == [len(loaders[0])] * RANKS
    assert gather.calls == RANKS
    words = dict(word.split("=") for word in gather.texts[1].split())
    state = loaders[1].state_dict()
    assert words == {
        "rank": "1", "batch_size": "4", "world_size": "3", "last_batch": "pad",
        **{name: str(state[name]) for name in (
            "samples", "seed", "order", "shuffle_buffer", "block", "pack", "subset", "hash")}}
    for loader in loaders:
        loader.close()


@pytest.mark.parametrize(("settings", "differs"), [
    ({"seed": 2}, "seed=2"), ({"order": "random", "shuffle": None}, "order=random"),
    ({"subset": range(50)}, "samples=50"), ({"weights": range(1, N + 1)}, "subset="),
    ({"order": "shuffle", "shuffle_buffer": 100}, "shuffle_buffer="),
    ({"batch_size": 5}, "batch_size=5"), ({"drop_last": True}, "last_batch=drop"),
    ({"world": 4}, "world_size=4"), ({"threads": 2, "memory": "128MiB", "prefetch": 1}, None),
    ({"pipeline": "decode | center_crop 8 | tensor u8"}, None),
    ({"on_bad": "substitute", "io_threads": 2, "return_info": True}, None),
])
def test_what_has_to_be_equal(pack, settings, differs):
    gather = Gather(2)

    def load(rank):
        own = settings if rank else {}
        return first_batch(pack, rank, **{"world": 2, "compare_ranks": gather.of(rank), **own})

    found = on_ranks(load, 2)
    if differs is None:
        assert found == ["loaded"] * 2
    else:
        assert all(isinstance(error, penstock.InvalidError) for error in found), found
        assert f"{OTHER_ORDER}: rank 0 has" in str(found[0])
        assert differs in str(found[0]) and differs in str(found[1])


def test_the_state_has_to_be_of_one_order(pack):
    """A position is not compared, but a restored order is that of the loader in any case."""
    gather = Gather(2)
    with opened(pack, world=2, compare_ranks=False) as loader:
        next(iter(loader))
        state = loader.state_dict()

    def load(rank):
        with opened(pack, rank, world=2, compare_ranks=gather.of(rank)) as loader:
            loader.load_state_dict(state)
            return len(list(loader))

    assert on_ranks(load, 2) == [7] * 2


@pytest.mark.parametrize(("returned", "error", "message"), [
    (lambda text: None, TypeError, "a list with the text of each rank, found None"),
    (lambda text: text, TypeError, "a list with the text of each rank"),
    (lambda text: [text, 3], TypeError, "a list with the text of each rank"),
    (lambda text: [text], penstock.InvalidError, "no text of ranks 1, 2 of 3"),
    (lambda text: [text, "rank=x y"], penstock.InvalidError, "texts of Loader, found 'rank=x y'"),
    (lambda text: [text] * 3 + [text.replace("rank=0", "rank=1")], penstock.InvalidError,
     "no text of rank 2 of 3"),
])
def test_what_a_function_must_return(pack, returned, error, message):
    with opened(pack, compare_ranks=returned) as loader:
        for _ in range(2):  # it stays uncompared
            with pytest.raises(error, match=message):
                next(iter(loader))


def test_an_error_of_the_function(pack):
    def fail(text):
        raise ZeroDivisionError("mine")

    with opened(pack, compare_ranks=fail) as loader, pytest.raises(ZeroDivisionError, match="mine"):
        next(iter(loader))


def test_with_functions_in_the_pipeline(pack):
    """They are compared before the first batch too."""
    def double(sample, rng):
        return {"label": sample["label"] * 2}

    with opened(pack, compare_ranks=lambda text: [text],
                pipeline=[{"label": "tensor"}, penstock.ops.python(double)]) as loader:
        with pytest.raises(penstock.InvalidError, match="no text of ranks 1, 2"):
            next(iter(loader))


# ---- what is chosen


@pytest.fixture
def warned(monkeypatch):
    monkeypatch.setattr(_compare, "_warned", [])
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        yield caught


def test_one_warning(pack, warned):
    """Not when a loader is made, and at the line that asks for a batch."""
    with opened(pack) as loader, opened(pack, 1) as other:
        batches = iter(loader)
        assert not warned
        next(batches)
        with contextlib.suppress(StopIteration):
            next(iter(other))
            next(batches)
    (only,) = warned
    assert only.filename == __file__
    assert "penstock: the ranks did not compare their orders" in str(only.message)
    assert "compare_ranks=" in str(only.message)


def test_no_warning(pack, warned, tmp_path):
    assert first_batch(pack, compare_ranks=False) == "loaded"
    for how in (None, False, tmp_path / "x", lambda text: 1 / 0):
        assert first_batch(pack, world=1, compare_ranks=how) == "loaded"
    assert not warned and not (tmp_path / "x").exists()


@pytest.mark.parametrize(("how", "error"), [
    (True, TypeError), (1, TypeError), (["a"], TypeError), (b"a", TypeError),
    ("", penstock.InvalidError), ("a\0b", penstock.InvalidError)])
def test_refused(pack, how, error):
    with pytest.raises(error, match="compare_ranks"):
        opened(pack, compare_ranks=how)


def test_a_relative_path(pack, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    loaders = [opened(pack, rank, compare_ranks=pathlib.Path("order")) for rank in range(RANKS)]
    monkeypatch.chdir("/")
    assert on_ranks(lambda rank: len(list(loaders[rank]))) == [6] * RANKS
    assert len(list((tmp_path / "order").iterdir())) == RANKS
    for loader in loaders:
        loader.close()
