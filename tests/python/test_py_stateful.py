# SPDX-License-Identifier: Apache-2.0
"""The loader keeps to the protocol of torchdata's StatefulDataLoader: both do the same, step by
step; and frameworks that know the protocol save and resume it."""

import random

import pytest
from example_tools import need
from py_tools import need_penstock, write_pack

penstock = need_penstock()
need("torch", "numpy", "torchdata")
pytestmark = pytest.mark.slow  # the import of torch takes most of the time

import torch.distributed.checkpoint as dcp  # noqa: E402
from torch.distributed.checkpoint.stateful import Stateful  # noqa: E402
from torchdata import nodes  # noqa: E402
from torchdata.stateful_dataloader import StatefulDataLoader  # noqa: E402

N, BATCH = 23, 4


@pytest.fixture(scope="module")
def pack(tmp_path_factory):
    return write_pack(penstock, tmp_path_factory.mktemp("packs") / "a.pen", N)


def ours(pack, **settings):
    settings = {"pipeline": "label: tensor", "threads": 1, "memory": "64MiB", **settings}
    return penstock.Loader(pack, BATCH, return_info=True, **settings)


def samples(batch):
    return batch.info.samples[batch.info.valid].tolist()


class Driver:
    """Does the same to one loader or the other, and records what it sees."""

    def __init__(self, make, samples):
        self.make, self.samples = make, samples
        self.loader = make()
        self.batches, self.states, self.seen = iter(self.loader), [], []

    def do(self, action, number):
        if action == "next":
            batch = next(self.batches, None)
            self.seen.append(batch if batch is None else self.samples(batch))
        elif action == "rest":
            self.seen.append([self.samples(batch) for batch in self.batches])
        elif action == "iter":
            self.batches = iter(self.loader)
        elif action == "save":
            self.states.append(self.loader.state_dict())
        elif self.states:
            self.loader = self.make() if action == "resume" else self.loader
            self.loader.load_state_dict(self.states[number % len(self.states)])
            self.batches = iter(self.loader)
        self.seen.append(len(self.loader))


@pytest.mark.parametrize("drop_last", [False, True])
def test_does_what_stateful_dataloader_does(pack, drop_last):
    """400 random actions. The order is sequential, because each of the two shuffles its own way."""
    drivers = [
        Driver(lambda: ours(pack, drop_last=drop_last), samples),
        Driver(lambda: StatefulDataLoader(list(range(N)), BATCH, drop_last=drop_last),
               lambda batch: batch.tolist()),
    ]
    dice = random.Random(3)
    actions = ["next"] * 8 + ["save"] * 3 + ["rest", "iter", "load", "resume"]
    for step in range(400):
        action, number = dice.choice(actions), dice.randrange(100)
        for driver in drivers:
            driver.do(action, number)
        assert drivers[0].seen == drivers[1].seen, (step, action)
        for driver in drivers:
            driver.seen.clear()


def test_a_state_after_the_last_batch_has_an_empty_rest(pack):
    """Without the end of the loop, the epoch is not over. The next epoch follows it."""
    loader = ours(pack, shuffle=True)
    state = [loader.state_dict() for _ in loader][-1]
    again = ours(pack, shuffle=True)
    again.load_state_dict(state)
    assert again.epoch == 0 and list(again) == [] and again.epoch == 1
    assert len(list(again)) == len(again) and again.epoch == 2
    again.load_state_dict(state)
    again.set_epoch(1)
    assert len(list(again)) == len(again)


def graph(loader):
    """A pipeline of torchdata.nodes that prefetches."""
    return nodes.Loader(nodes.Prefetcher(nodes.Mapper(nodes.IterableWrapper(loader), samples), 2))


@pytest.mark.parametrize("taken", [1, 3, 5, 6])
def test_torchdata_nodes(pack, taken):
    """The state belongs to the batches that the graph has returned, not to those it prefetched."""
    whole = list(graph(ours(pack, shuffle=True)))
    assert sorted(sum(whole, [])) == list(range(N))
    first = graph(ours(pack, shuffle=True))
    batches = iter(first)
    before = [next(batches) for _ in range(taken)]
    state = first.state_dict()
    second = graph(ours(pack, shuffle=True))
    second.load_state_dict(state)
    rest = list(second)
    if taken == len(whole):  # torchdata begins the next epoch then
        assert before == whole and sorted(sum(rest, [])) == list(range(N)) and rest != whole
    else:
        assert before + rest == whole


def test_distributed_checkpoint(pack, tmp_path):
    """What torchtitan and others use: torch.distributed.checkpoint saves stateful objects."""
    loader = ours(pack, shuffle=True)
    assert isinstance(loader, Stateful)
    batches = iter(loader)
    before = [samples(next(batches)) for _ in range(3)]
    dcp.save({"loader": loader}, checkpoint_id=tmp_path / "saved", no_dist=True)
    again = ours(pack, shuffle=True)
    dcp.load({"loader": again}, checkpoint_id=tmp_path / "saved", no_dist=True)
    assert sorted(sum(before + [samples(batch) for batch in again], [])) == list(range(N))


def test_attributes(pack):
    """Those of DataLoader that frameworks read."""
    loader = ours(pack, drop_last=True)
    assert loader.dataset is pack and loader.batch_size == BATCH and loader.drop_last
    assert len(loader) == N // BATCH and loader.sampler and loader.batch_sampler is None
