# SPDX-License-Identifier: Apache-2.0
"""Ranks: each sample on one of them, all with the same steps, and states that move from one number
of ranks to another. Most of it in one process, with rank= and world_size=; once under torchrun."""

import json
import pathlib
import sys
import types

import pytest
from example_tools import need, torchrun
from py_tools import need_penstock, write_pack

penstock = need_penstock()
need("numpy")

N = 61
PIPELINE = "decode | random_resized_crop 16 | hflip | normalize | tensor f32"
SCRIPT = pathlib.Path(__file__).with_name("ddp_script.py")


@pytest.fixture(scope="module")
def pack(tmp_path_factory):
    return write_pack(penstock, tmp_path_factory.mktemp("packs") / "a.pen", N)


class Ranks:
    """The loaders of all ranks, one step of all of them at a time."""

    def __init__(self, pack, world, batch_size, state=None, **settings):
        settings = {"shuffle": True, "seed": 7, "pipeline": PIPELINE, **settings}
        self.loaders = [
            penstock.Loader(
                pack, batch_size, rank=rank, world_size=world, return_info=True, output="numpy",
                threads=1, memory="64MiB", **settings,
            )
            for rank in range(world)
        ]
        for loader in self.loaders:
            if state is not None:
                loader.load_state_dict(state)

    def steps(self, n=None):
        """For each step the valid samples of each rank; all ranks have to end together."""
        passes = [iter(loader) for loader in self.loaders]
        made = []
        while n is None or len(made) < n:
            batches = [next(one, None) for one in passes]
            if batches[0] is None:
                assert all(batch is None for batch in batches)
                break
            assert all(batch is not None for batch in batches)
            made.append([batch.info.samples[batch.info.valid].tolist() for batch in batches])
        return made

    def state(self):
        states = [loader.state_dict() for loader in self.loaders]
        assert all(state == states[0] for state in states)
        return states[0]

    def close(self):
        for loader in self.loaders:
            loader.close()


def flat(steps):
    return [sample for step in steps for rank in step for sample in rank]


@pytest.mark.parametrize(("distributed", "expected"), [
    ({}, (0, 1)), ({"is_initialized": lambda: False}, (0, 1)),
    ({"is_initialized": lambda: True}, (2, 3))], ids=["old", "not initialized", "initialized"])
def test_ranks_of_jax(pack, monkeypatch, distributed, expected):
    """test_py_jax.py has the real one."""
    jax = types.SimpleNamespace(distributed=types.SimpleNamespace(**distributed),
                                process_index=lambda: 2, process_count=lambda: 3)
    monkeypatch.setitem(sys.modules, "jax", jax)
    for name in ("RANK", "SLURM_PROCID"):
        monkeypatch.delenv(name, raising=False)
    with penstock.Loader(pack, 4, output="numpy", threads=1, memory="64MiB") as loader:
        assert (loader.rank, loader.world_size) == expected


@pytest.mark.threads
@pytest.mark.parametrize("world", [1, 2, 3, 4])
def test_every_sample_is_on_one_rank(pack, world):
    ranks = Ranks(pack, world, 4)
    steps = ranks.steps()
    assert sorted(flat(steps)) == list(range(N))
    assert len(steps) == len(ranks.loaders[0]) == -(-N // (4 * world))
    ranks.close()


@pytest.mark.threads
@pytest.mark.parametrize("order", ["random", "shuffle", "sticky", "sequential"])
def test_a_state_of_four_ranks_goes_on_at_any_number(pack, order):
    how = {"shuffle": None, "order": order}
    for taken in (1, 2, 3):
        four = Ranks(pack, 4, 4, **how)
        before, state = flat(four.steps(taken)), four.state()
        four.close()
        assert len(before) == 16 * taken and state["position"] == 16 * taken
        json.dumps(state)
        for world, batch_size in ((2, 4), (3, 4), (1, 4), (3, 5), (4, 4)):
            ranks = Ranks(pack, world, batch_size, state, **how)
            after = ranks.steps()
            assert sorted(before + flat(after)) == list(range(N))
            assert len(after) == -(-(N - len(before)) // (world * batch_size))
            # And the epoch that follows is a whole one.
            assert sorted(flat(ranks.steps())) == list(range(N))
            ranks.close()


@pytest.mark.threads
def test_a_state_that_moved_moves_again(pack):
    """4 ranks, then 3, then 1: what each of them took is taken once."""
    seen, state = [], None
    for world, batch_size, taken in ((4, 4, 1), (3, 5, 1), (2, 3, 2), (1, 4, None)):
        ranks = Ranks(pack, world, batch_size, state)
        seen += flat(ranks.steps(taken))
        state = ranks.state()
        ranks.close()
    assert sorted(seen) == list(range(N)) and state["epoch"] == 1


def test_pixels_follow_the_sample_not_the_rank(pack):
    """The same random crops, whichever rank makes them."""
    import numpy

    made = []
    for world in (1, 3):
        images = {}
        ranks = Ranks(pack, world, 4)
        for loader in ranks.loaders:
            for image, _, info in loader:
                for i in range(info.n_valid):
                    images[int(info.samples[i])] = image[i].copy()
        made.append(numpy.stack([images[i] for i in range(N)]))
        ranks.close()
    assert numpy.array_equal(made[0], made[1])


@pytest.mark.slow
def test_under_torchrun(pack, tmp_path):
    """Two processes on gloo with a model that trains: one epoch, and the rest of another one that
    four ranks began."""
    need("torch")
    four = Ranks(pack, 4, 4)
    before, state = flat(four.steps(2)), four.state()
    four.close()
    (tmp_path / "state.json").write_text(json.dumps(state))
    torchrun(2, SCRIPT, pack.path, tmp_path / "state.json", tmp_path / "out")
    one, two = (json.loads((tmp_path / f"out.{rank}").read_text()) for rank in (0, 1))
    assert len(one["whole"]) == len(two["whole"]) == 8
    assert sorted(flat([one["whole"], two["whole"]])) == list(range(N))
    assert len(one["rest"]) == len(two["rest"]) == 4
    assert sorted(before + flat([one["rest"], two["rest"]])) == list(range(N))
    assert one["state"] == two["state"] and one["state"]["position"] == 16
    assert one["weights"] == two["weights"]
    # The state of the two real ranks, taken in mid-epoch, goes on at one and at three.
    done = flat([one["whole"][:2], two["whole"][:2]])
    for world in (1, 3):
        ranks = Ranks(pack, world, 4, one["state"])
        assert sorted(done + flat(ranks.steps())) == list(range(N))
        ranks.close()
