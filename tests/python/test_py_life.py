# SPDX-License-Identifier: Apache-2.0
"""A Loader after close, after a fork, in pickles and in processes that are spawned, and Ctrl-C."""

import copy
import multiprocessing
import os
import pickle
import signal
import threading
import time

import conftest
import pytest
from py_tools import in_child, need_penstock

penstock = need_penstock()
np = pytest.importorskip("numpy")

from penstock import ops  # noqa: E402

USES = {
    "next": lambda loader, batches: next(batches),
    "iter": lambda loader, batches: iter(loader),
    "len": lambda loader, batches: len(loader),
    "sampler": lambda loader, batches: len(loader.sampler),
    "set_epoch": lambda loader, batches: loader.set_epoch(2),
    "state_dict": lambda loader, batches: loader.state_dict(),
    **{name: lambda loader, batches, name=name: getattr(loader, name)
       for name in ("epoch", "samples", "dropped", "pipeline")},
    **{name: lambda loader, batches, name=name: getattr(loader, name)()
       for name in ("stats", "report", "metrics", "bad_samples")},
}


def same(sample, rng):
    return sample


@pytest.fixture(scope="module")
def pack(tmp_path_factory):
    path = tmp_path_factory.mktemp("packs") / "numbers.pen"
    penstock.write(path, ({"label": i} for i in range(40)), {"label": "i64"})
    return path


@pytest.fixture(params=["plain", "functions"])
def loader(request, pack):
    pipeline = {"label": "tensor"}
    if request.param == "functions":
        pipeline = [pipeline, ops.python(same)]
    with penstock.Loader(pack, 4, pipeline=pipeline, output="numpy", memory="32MiB",
                         threads=2) as opened:
        yield opened


def check_refused(loader, batches, state, message):
    for name, use in USES.items():
        with pytest.raises(penstock.ClosedError, match=message):
            use(loader, batches)
            raise AssertionError(name)
    with pytest.raises(penstock.ClosedError, match=message):
        loader.load_state_dict(state)
    assert repr(loader).endswith(": closed>")
    loader.close()
    loader.close()


def test_after_close(loader):
    batches, state = iter(loader), loader.state_dict()
    kept = next(batches).label
    loader.close()
    check_refused(loader, batches, state, "the loader is closed")
    assert kept.tolist() == [0, 1, 2, 3]


@pytest.mark.skipif("thread" in conftest.sanitizer(conftest.BUILD),
                    reason="the thread sanitizer knows no threads after a fork")
@pytest.mark.parametrize("is_busy", [False, True])
def test_after_a_fork(loader, is_busy):
    """Also while a thread of the parent prepares a batch. The parent continues."""
    begun, go, got = threading.Event(), threading.Event(), []

    def transform(batch):
        begun.set()
        go.wait(20)
        return batch

    batches, state = iter(loader), loader.state_dict()
    got += next(batches).label.tolist()
    loader.transform = transform
    thread = threading.Thread(target=lambda: got.extend(next(batches).label.tolist()))
    if is_busy:
        thread.start()
        assert begun.wait(20)
    message = "the loader belongs to the parent process; create one in this process"
    found = in_child(check_refused, loader, batches, state, message)
    go.set()
    if is_busy:
        thread.join(20)
    assert found is None
    got += [label for batch in batches for label in batch.label.tolist()]
    assert got == list(range(40))


def test_pickles_and_copies_say_why_not(loader):
    message = "a Loader has threads and cannot be pickled; create one in each process"
    for thing in (loader, iter(loader), loader.sampler):
        for call in (pickle.dumps, copy.deepcopy):
            with pytest.raises(TypeError, match=message):
                call(thing)
    assert next(iter(loader)).label.tolist() == [0, 1, 2, 3]


def spawned(pack, pipe):
    """In another process: a loader of its own."""
    with penstock.Loader(pack, 4, output="numpy", memory="32MiB") as own:
        pipe.send([label for batch in own for label in batch.label.tolist()])


def test_processes_that_are_spawned(loader):
    """They cannot get the loader, but its pack, and open their own."""
    context = multiprocessing.get_context("spawn")
    with pytest.raises(TypeError, match="create one in each process"):
        context.Process(target=spawned, args=(loader, None)).start()
    mine, theirs = context.Pipe()
    process = context.Process(target=spawned, args=(loader.dataset, theirs))
    process.start()
    assert mine.poll(60) and mine.recv() == list(range(40))
    process.join(20)
    assert process.exitcode == 0


def test_ctrl_c_while_another_thread_prepares_a_batch(loader):
    """The wait for the iterator ends at once, and no batch is lost."""
    begun, go, got = threading.Event(), threading.Event(), []

    def transform(batch):
        begun.set()
        go.wait(20)
        return batch

    loader.transform = transform
    batches = iter(loader)
    thread = threading.Thread(target=lambda: got.extend(next(batches).label.tolist()))
    thread.start()
    assert begun.wait(20)
    killer = threading.Timer(0.2, os.kill, (os.getpid(), signal.SIGINT))
    killer.start()
    start = time.monotonic()
    with pytest.raises(KeyboardInterrupt):
        next(batches)
    assert time.monotonic() - start < 10  # the transform would take 20 s
    go.set()
    thread.join(20)
    killer.join(20)
    got += [label for batch in batches for label in batch.label.tolist()]
    assert got == list(range(40))
