# SPDX-License-Identifier: Apache-2.0
"""penstock.stages: settings that change at given epochs."""

import pytest
from py_tools import need_penstock, write_pack

penstock = need_penstock()
np = pytest.importorskip("numpy")

EPOCHS = 5
SIZES = {0: 8, 2: 16, 3: 12}  # by first epoch


def pipeline(size):
    return f"decode | random_resized_crop {size} | hflip | tensor u8"


@pytest.fixture(scope="module")
def packs(tmp_path_factory):
    """Two packs of different lengths: the third stage has the second."""
    folder = tmp_path_factory.mktemp("packs")
    low, high = (write_pack(penstock, folder / f"{n}.pen", n) for n in (22, 29))
    return {0: low, 2: low, 3: high}


def settings(**more):
    return {"batch_size": 5, "shuffle": True, "output": "numpy", "memory": "64MiB",
            "return_info": True, "threads": 2, **more}


def make(packs, **more):
    return penstock.stages(
        [(first, {"pack": packs[first], "pipeline": pipeline(size)})
         for first, size in SIZES.items()], **settings(**more))


def row(batch):
    return batch.info.epoch, batch.info.samples.tolist(), batch.image.shape, batch.image.tobytes()


@pytest.fixture(scope="module")
def want(packs):
    """The batches of every epoch, each from a Loader of its own."""
    found = []
    for epoch in range(EPOCHS):
        first = max(start for start in SIZES if start <= epoch)
        with penstock.Loader(packs[first], **settings(pipeline=pipeline(SIZES[first]))) as loader:
            loader.set_epoch(epoch)
            found.append([row(batch) for batch in loader])
    return found


def test_epochs_in_turn(packs, want):
    with make(packs) as loader:
        assert loader.batch_size == 5 and "now <penstock.Loader" in repr(loader)
        for epoch in range(EPOCHS):
            assert loader.epoch == epoch and len(loader) == len(want[epoch])
            assert [row(batch) for batch in loader] == want[epoch]
        assert loader.samples == 29 and loader.loader.pipeline.startswith("image: decode")


def test_any_epoch(packs, want):
    with make(packs) as loader:
        for epoch in (4, 0, 3, 2, 1, 2):
            loader.sampler.set_epoch(epoch)
            assert loader.epoch == epoch
            assert [row(batch) for batch in loader] == want[epoch]


@pytest.mark.parametrize("epoch", range(EPOCHS))
@pytest.mark.parametrize("taken", [0, 2, None])
def test_resume(packs, want, epoch, taken):
    """In each stage: at the beginning, in the middle, and after the end of an epoch."""
    with make(packs) as loader:
        loader.set_epoch(epoch)
        batches = iter(loader)
        for _ in range(len(loader) if taken is None else taken):
            next(batches)
        state = loader.state_dict()
    with make(packs, threads=1) as again:
        again.load_state_dict(state)
        assert [row(batch) for batch in again] == want[epoch][len(want[epoch]) if taken is None
                                                              else taken:]
        assert again.epoch == epoch + 1
        assert epoch + 1 == EPOCHS or [row(batch) for batch in again] == want[epoch + 1]


@pytest.mark.parametrize("world", [2, 3])
def test_ranks(packs, want, world):
    """Each stage is divided by its own number of samples, and a state fits other ranks."""
    loaders = [make(packs, rank=rank, world_size=world, batch_size=2) for rank in range(world)]
    whole = [[(epoch, number) for epoch, samples, *_ in batches for number in samples]
             for batches in want]
    n = [22, 22, 22, 29, 29]
    for epoch in range(EPOCHS):
        rows, states = [], []
        for batches in zip(*loaders, strict=True):
            for i in range(2):
                rows += [(epoch, int(b.info.samples[i])) for b in batches if b.info.valid[i]]
            states.append([loader.state_dict() for loader in loaders])
        assert rows == whole[epoch][:n[epoch]]
        assert all(one == many[0] for many in states for one in many)
        with make(packs, batch_size=1) as again:
            again.load_state_dict(states[1][0])
            rest = [(epoch, int(b.info.samples[0])) for b in again]
            assert rest == whole[epoch][4 * world:n[epoch]]
    for loader in loaders:
        loader.close()


def test_state_between_stages(packs, want):
    """After the last loop of a stage, the state is that of the next one."""
    with make(packs) as loader, make(packs) as again:
        loader.set_epoch(1)
        assert [row(batch) for batch in loader] == want[1]
        again.load_state_dict(loader.state_dict())
        assert again.epoch == 2 and [row(batch) for batch in again] == want[2]


def test_other_stages_are_refused(packs):
    with make(packs) as loader:
        loader.set_epoch(3)
        state = loader.state_dict()
    swapped = penstock.stages([(0, {"pack": packs[0]}), (3, {"pack": packs[0]})],
                              **settings(pipeline=pipeline(8)))
    with swapped as loader:
        batches = iter(loader)
        next(batches)
        place = loader.state_dict()
        with pytest.raises(penstock.InvalidError, match="saved with another pack"):
            loader.load_state_dict(state)
        for bad in ({}, {"epoch": -1}, {**state, "epoch": 2**70}, {**state, "epoch": "x"}):
            with pytest.raises(penstock.InvalidError, match="state"):
                loader.load_state_dict(bad)
        with pytest.raises(TypeError, match="state"):
            loader.load_state_dict(None)
        assert loader.state_dict() == place and place["position"] == 5


def test_one_stage_has_threads(packs):
    """The stage before ends; batches of it stay valid."""
    with make(packs) as loader:
        before = native_threads()
        first, stage = next(iter(loader)), loader.loader
        kept, running = row(first), native_threads()
        assert running > before
        for epoch in (2, 3, 0):
            loader.set_epoch(epoch)
            next(iter(loader))
            assert native_threads() == running
        assert row(first) == kept
        with pytest.raises(penstock.ClosedError):
            next(iter(stage))
    assert native_threads() == before


def native_threads():
    with open("/proc/self/status") as status:
        return next(int(line.split()[1]) for line in status if line.startswith("Threads:"))


@pytest.mark.parametrize(("stages", "message"), [
    ([], "found \\[\\]"),
    ([(1, {})], "found \\[1\\]"),
    ([(0, {}), (3, {}), (3, {})], "found \\[0, 3, 3\\]"),
    ([(0, {}), (3, {}), (2, {})], "found \\[0, 3, 2\\]"),
])
def test_wrong_epochs(stages, message):
    with pytest.raises(penstock.InvalidError, match="stages: .*" + message):
        penstock.stages(stages)


def test_errors_are_found_at_once(packs):
    """Those of the last stage, too."""
    good = {"pack": packs[0], "pipeline": pipeline(8)}
    for bad, message in (({"pipeline": "decode | resise 8"}, "did you mean 'resize'"),
                         ({"pack": "no-such.pen"}, "no-such.pen"),
                         ({"num_workers": 2}, "num_workers")):
        with pytest.raises((penstock.Error, TypeError), match=message):
            penstock.stages([(0, good), (60, {**good, **bad})], **settings())
