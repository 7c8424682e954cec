# SPDX-License-Identifier: Apache-2.0
"""No batch is lost when something raises while it is made: handlers of signals, transform=."""

import random
import signal
import threading

import pytest
from py_tools import need_penstock

penstock = need_penstock()
np = pytest.importorskip("numpy")

from penstock import ops  # noqa: E402

N, BATCH = 800, 4
FIELDS = {"label": "tensor"}


class Rang(Exception):
    pass


@pytest.fixture(scope="module")
def pack(tmp_path_factory):
    path = tmp_path_factory.mktemp("packs") / "numbers.pen"
    penstock.write(path, ({"label": i} for i in range(N)), {"label": "i64"})
    return path


def load(pack, *functions, **settings):
    settings = {"output": "numpy", "memory": "32MiB", "threads": 1, **settings}
    pipeline = [FIELDS, *functions] if functions else FIELDS
    return penstock.Loader(pack, BATCH, pipeline=pipeline, **settings)


def same(sample, rng):
    return sample


WAYS = {"plain": ((), {}, 4_000), "transform": ((), {"transform": lambda batch: batch}, 3_000),
        "functions": ((ops.python(same, per="batch", threads=2),), {}, 3_000)}


def disturbed(batches, seen, delay):
    """Iterates until a signal comes or the pass ends; True if one came. `seen` gets the first label
    of every batch that the loop had."""
    batch, rang = None, False
    try:
        signal.setitimer(signal.ITIMER_REAL, delay)
        for batch in batches:
            seen.append(int(batch.label[0]))
        signal.setitimer(signal.ITIMER_REAL, 0)
    except Rang:
        rang = True
    if batch is not None and int(batch.label[0]) not in seen[-1:]:
        seen.append(int(batch.label[0]))  # the loop had it when the handler raised
    return rang


@pytest.fixture
def ring():
    def handler(*_):
        raise Rang

    old = signal.signal(signal.SIGALRM, handler)
    yield
    signal.setitimer(signal.ITIMER_REAL, 0)
    signal.signal(signal.SIGALRM, old)


@pytest.mark.parametrize("way", WAYS)
def test_signals_at_random_times(pack, way, ring):
    """A `for` loop has every batch once, and the state is right after every signal."""
    functions, settings, signals = WAYS[way]
    draw, rang, epoch, seen = random.Random(7), 0, 0, [0]
    with load(pack, *functions, **settings) as loader:
        batches = iter(loader)
        next(batches)  # starts threads, which Python does not do safely when handlers raise
        while rang < signals:
            rang += disturbed(batches, seen, draw.uniform(1e-5, 4e-4))
            state = loader.state_dict()
            assert state["epoch"] * N + state["position"] == epoch * N + BATCH * len(seen)
            if len(seen) * BATCH == N:
                assert seen == list(range(0, N, BATCH)) and next(batches, None) is None
                epoch, seen, batches = epoch + 1, [], iter(loader)
    assert epoch > 2


def labels(batch):
    return batch.label.tolist()


@pytest.mark.parametrize("way", ["transform", "functions", "conversion", "info"])
def test_what_raises_leaves_the_batch_in_its_place(pack, way, monkeypatch):
    raises = [False]

    def work(value):
        if raises[0]:
            raise Rang
        return value

    functions = (ops.python(same, per="batch"),) if way == "functions" else ()
    transform = work if way in ("transform", "functions") else None
    with load(pack, *functions, transform=transform, return_info=way == "info") as loader:
        if way == "conversion":
            monkeypatch.setattr(loader, "_make", lambda v, make=loader._make: work(make(v)))
        if way == "info":
            monkeypatch.setattr(loader, "_info", lambda b, info=loader._info: work(info(b)))
        batches = iter(loader)
        for first in (0, BATCH):
            raises[0] = True
            for _ in range(3):
                with pytest.raises(Rang):
                    next(batches)
                assert loader.state_dict()["position"] == first
                assert loader.epoch == 0
            raises[0] = False
            assert labels(next(batches)) == list(range(first, first + BATCH))
        raises[0] = True
        with pytest.raises(Rang):
            next(batches)
        state = loader.state_dict()
        raises[0] = False
        loader.load_state_dict(state)
        rest = [label for batch in loader for label in labels(batch)]
        assert rest == list(range(2 * BATCH, N))


@pytest.mark.parametrize("epoch", [3, 4])
def test_the_epoch_can_be_set_while_the_first_batch_waits(pack, epoch):
    """A restored position is kept in its epoch, and not in another."""
    raises = [True]

    def work(batch):
        if raises[0]:
            raise Rang
        return batch

    with load(pack, transform=work) as loader:
        loader.load_state_dict({**loader.state_dict(), "epoch": 3, "position": 8})
        batches = iter(loader)
        with pytest.raises(Rang):
            next(batches)
        raises[0] = False
        loader.set_epoch(epoch)
        assert labels(next(batches))[0] == (8 if epoch == 3 else 0)
        assert loader.state_dict()["epoch"] == epoch
        assert loader.state_dict()["position"] == (12 if epoch == 3 else 4)


def test_a_signal_during_a_wait(pack, ring):
    """The batch that it interrupts comes next, also when it arrived at that moment."""
    go = threading.Event()

    def slow(sample, rng):
        go.wait(20)
        return sample

    with load(pack, ops.python(slow, threads=2)) as loader:
        batches = iter(loader)
        signal.setitimer(signal.ITIMER_REAL, 0.2)
        with pytest.raises(Rang):
            next(batches)
        assert loader.state_dict()["position"] == 0
        go.set()
        assert labels(next(batches)) == [0, 1, 2, 3] and loader.state_dict()["position"] == 4


def test_a_transform_cannot_request_batches(pack):
    with load(pack, transform=lambda batch: next(batches)) as loader:
        batches = iter(loader)
        with pytest.raises(RuntimeError, match="already prepares a batch in this thread"):
            next(batches)
        loader.transform = None
        assert labels(next(batches)) == [0, 1, 2, 3]


def test_a_transform_can_use_its_loader(pack):
    """Its state, the next epoch, another pass, and the end."""
    uses = (penstock.Loader.state_dict, lambda loader: loader.set_epoch(5), iter,
            penstock.Loader.close)
    for functions in ((), (ops.python(same, per="batch"),)):
        for use in uses:
            with load(pack, *functions) as loader:
                loader.transform = lambda batch, use=use, loader=loader: (use(loader), batch)[1]
                assert labels(next(iter(loader))) == [0, 1, 2, 3]


def test_another_pass_leaves_the_new_one_alone(pack):
    """An old iterator raises, and takes no batch from the new one."""
    for functions in ((), (ops.python(same, per="batch"),)):
        with load(pack, *functions) as loader:
            old = iter(loader)
            next(old)
            new = iter(loader)
            assert labels(next(new)) == [0, 1, 2, 3]
            with pytest.raises(penstock.Error, match="this iterator has ended"):
                next(old)
            assert labels(next(new)) == [4, 5, 6, 7]
