# SPDX-License-Identifier: Apache-2.0
"""Loader(weights=...): samples as often as their weights say."""

import collections
import pathlib

import pytest
from py_tools import check_steps, need_penstock, write_pack
from remote_tools import options

penstock = need_penstock()
np = pytest.importorskip("numpy")

N = 60
ORDERS = ("sequential", "random", "shuffle", "sticky")
CROP = "decode | random_resized_crop 8 | hflip | tensor u8"


@pytest.fixture(scope="module")
def pack(tmp_path_factory):
    folder = tmp_path_factory.mktemp("root") / "packs"
    folder.mkdir()
    return write_pack(penstock, folder / "a.pen", N)


@pytest.fixture(scope="module")
def weights():
    found = np.random.default_rng(0).random(N) ** 4 * 5
    found[[3, 30]] = 0
    found[7] = found.sum() / 4
    return found


def load(pack, weights, epoch=0, state=None, **settings):
    base = {"batch_size": 4, "order": "random", "seed": 5, "pipeline": CROP, "output": "numpy",
            "return_info": True, "memory": "64MiB", "threads": 2}
    with penstock.Loader(pack, weights=weights, **{**base, **settings}) as loader:
        loader.set_epoch(epoch)
        if state:
            loader.load_state_dict(state)
        return [(batch.info.position, batch.info.samples.tolist(), batch.image.tobytes())
                for batch in loader]


def numbers(batches):
    return [number for _, samples, _ in batches for number in samples]


@pytest.mark.parametrize("order", ORDERS)
def test_samples_are_as_frequent_as_their_weights(pack, weights, order):
    want = N * weights / weights.sum()
    seen = []
    for epoch in range(3):
        times = collections.Counter(numbers(load(pack, weights, epoch, order=order)))
        assert all(abs(times[i] - want[i]) < 1 for i in range(N))
        assert not times[3] and not times[30] and times[7] > 10
        seen.append(times)
    assert seen[0] != seen[1] and sum(seen[0].values()) == N


@pytest.mark.parametrize("order", ORDERS)
def test_the_same_for_threads_ranks_and_restarts(pack, weights, order):
    whole = load(pack, weights, 2, order=order, shuffle_buffer=48)
    for threads in (1, 8):
        assert load(pack, weights, 2, order=order, threads=threads,
                    shuffle_buffer=48) == whole
    for ranks in (2, 3, 4):
        parts = [load(pack, weights, 2, order=order, rank=rank, world_size=ranks, batch_size=5,
                      shuffle_buffer=48, drop_last=True)
                 for rank in range(ranks)]
        steps = [sum((samples for _, samples, _ in step), []) for step in zip(*parts, strict=True)]
        assert check_steps(steps, numbers(whole)) >= N - 20
    with penstock.Loader(pack, 4, weights=weights, order=order, seed=5, pipeline=CROP,
                         output="numpy", memory="64MiB", shuffle_buffer=48) as loader:
        loader.set_epoch(2)
        batches = iter(loader)
        for taken in range(6):
            rest = load(pack, weights, state=loader.state_dict(), order=order, shuffle_buffer=48)
            assert rest == whole[taken:]
            next(batches)


def test_occurrences_of_a_sample_differ(pack, weights):
    """In their crops, and not in anything else."""
    found = [(sample, image)
             for _, samples, data in load(pack, weights)
             for sample, image in zip(samples, np.frombuffer(data, "u1").reshape(4, -1).tolist())]
    crops = {tuple(image) for sample, image in found if sample == 7}
    assert len(crops) > 8
    center = load(pack, weights, pipeline="decode | center_crop 8 | tensor u8")
    assert len({data[k * 192:(k + 1) * 192] for _, samples, data in center
                for k, sample in enumerate(samples) if sample == 7}) == 1


def test_equal_weights_change_nothing(pack):
    for order in ORDERS:
        assert load(pack, [2] * N, order=order) == load(pack, None, order=order)


def test_subset(pack, weights):
    chosen = np.flatnonzero(weights)[10:40]
    times = collections.Counter(numbers(load(pack, weights[chosen], subset=chosen, batch_size=5)))
    want = len(chosen) * weights[chosen] / weights[chosen].sum()
    assert sum(times.values()) == 30 and set(times) <= set(chosen.tolist())
    assert all(abs(times[i] - w) < 1 for i, w in zip(chosen.tolist(), want))
    assert numbers(load(pack, [0, 0, 1], subset=range(4, 7), batch_size=3)) == [6, 6, 6]


def test_all_kinds_of_numbers(pack, weights):
    want = load(pack, weights)
    assert load(pack, weights.tolist()) == want
    assert load(pack, np.repeat(weights, 2)[::2]) == want
    whole = np.arange(N) % 5
    assert load(pack, whole.astype("i2")) == load(pack, whole.tolist())
    assert load(pack, whole.astype("f4")) == load(pack, [float(w) for w in whole])


@pytest.mark.parametrize(("weights", "message"), [
    ([1] * 59, "weights: expected 60 numbers of 0 or more, one for each sample, found 59"),
    ([0] * 60, "weights: expected at least one that is not 0"),
    ([1] * 59 + [-1], "weights: entry 59: expected 0 to .*, found -1"),
    (np.array([1.0] * 59 + [-1]), "weights: entry 59: expected a finite number .*, found -1"),
    (np.array([np.nan] + [1.0] * 59), "weights: entry 0: expected a finite number"),
    (np.array([True] * 60), "found an array of bool"),
    (np.ones((60, 1)), "with the shape"),
    ([], "found 0"),
])
def test_refused(pack, weights, message):
    with pytest.raises(penstock.InvalidError, match=message):
        load(pack, weights)


def test_repeats_and_other_weights_are_refused(pack, weights):
    with pytest.raises(penstock.InvalidError, match="weights: expected a subset without repeated"):
        load(pack, [1, 2], subset=[4, 4])
    with penstock.Loader(pack, 4, weights=weights, order="random", seed=5, pipeline=CROP,
                         output="numpy") as loader:
        state = loader.state_dict()
    for other in (None, weights * np.arange(1, N + 1)):
        with pytest.raises(penstock.InvalidError, match="another subset, weights"):
            load(pack, other, state=state)
    assert load(pack, weights * 4, state=state) == load(pack, weights)


def test_broken_samples_are_replaced(tmp_path, weights):
    """By samples that have a weight, at every occurrence; the same for any threads and ranks."""
    pack = write_pack(penstock, tmp_path / "bad.pen", N)
    (shard,) = (tmp_path / "bad.pen").rglob("*.shard")
    data = bytearray(shard.read_bytes())
    for stored in (pack[7]["image"], pack[20]["image"]):
        data[data.find(stored) + len(stored) // 2] ^= 255
    shard.write_bytes(data)
    broken = {"on_bad": "substitute", "max_bad": 100, "batch_size": 6}
    with penstock.Loader(pack, 6, weights=weights, order="random", seed=5, pipeline="label: tensor",
                         output="numpy", return_info=True) as loader:
        plain = [n for batch in loader for n in batch.info.samples.tolist()]
    whole = load(pack, weights, **broken)
    assert load(pack, weights, **broken, threads=1) == whole
    parts = [load(pack, weights, **{**broken, "batch_size": 2}, rank=rank, world_size=3)
             for rank in range(3)]
    assert [n for steps in zip(*map(numbers, parts)) for n in steps] == numbers(whole)
    changed = [(a, b) for a, b in zip(plain, numbers(whole), strict=True) if a != b]
    assert {a for a, _ in changed} >= {7} and len(changed) > 10
    assert len({b for _, b in changed}) > 3 and all(weights[b] > 0 for _, b in changed)
    with pytest.raises(penstock.Error, match="sample 20 's20'"):
        load(pack, np.eye(1, N, 20)[0], **broken)


def test_functions_tell_occurrences_apart(pack, weights):
    """ops.python has other random numbers for each of them."""
    def draw(sample, rng):
        return {"label": sample["label"], "drawn": rng.integers(2**62)}

    settings = {"batch_size": 4, "order": "random", "weights": weights, "output": "numpy",
                "return_info": True}
    found = []
    for threads in (1, 3):
        with penstock.Loader(pack, **settings, threads=threads,
                             pipeline=["label: tensor", penstock.ops.python(draw)]) as loader:
            found.append([(int(number), int(drawn)) for _, many, info in loader
                          for number, drawn in zip(info.samples, many)])
    assert found[0] == found[1] and len(set(found[0])) == len(found[0]) == N
    assert sum(number == 7 for number, _ in found[0]) > 10


def test_from_a_store(pack, weights, s3, no_other_settings):
    """Blocks are prefetched for the samples that are drawn."""
    folder = pathlib.Path(pack.path).parents[1]
    remote = penstock.open("s3://packs/a.pen", options(s3(directory=folder)))
    for order in ORDERS:
        assert load(remote, weights, 1, order=order, shuffle_buffer=48) == load(
            pack, weights, 1, order=order, shuffle_buffer=48)
