# SPDX-License-Identifier: Apache-2.0
"""Balanced classes, and samples that an epoch has several times."""

import collections
import decimal
import itertools

import pytest
from py_tools import need_penstock, write_pack

penstock = need_penstock()
np = pytest.importorskip("numpy")

N, TIMES = 40, 3
CROP = "decode | random_resized_crop 8 | hflip | tensor u8"
LABELS = np.array([0] * 24 + [2] * 12 + [-1] * 4)


@pytest.fixture(scope="module")
def pack(tmp_path_factory):
    return write_pack(penstock, tmp_path_factory.mktemp("packs") / "a.pen", N)


def load(pack, epoch=0, state=None, **settings):
    """(sample, its pixels) of all batches"""
    base = {"batch_size": 4, "shuffle": True, "seed": 5, "pipeline": CROP, "output": "numpy",
            "return_info": True, "memory": "64MiB", "threads": 2}
    with penstock.Loader(pack, **{**base, **settings}) as loader:
        loader.set_epoch(epoch)
        if state:
            loader.load_state_dict(state)
        return [(int(number), image.tobytes()) for batch in loader
                for number, image in zip(batch.info.samples, batch.image)]


def times(samples):
    return collections.Counter(LABELS[number] for number, _ in samples)


def test_classes_are_equally_frequent(pack):
    weights = penstock.balanced_weights(LABELS)
    assert weights.dtype == np.float64 and weights.shape == (N,)
    seen = sum((times(load(pack, epoch, weights=weights)) for epoch in range(6)),
               collections.Counter())
    assert all(abs(n - 6 * N / 3) < 6 for n in seen.values()) and len(seen) == 3


def test_power():
    for power, shares in ((1, [1, 1, 1]), (0.5, [24**0.5, 12**0.5, 4**0.5]), (0, [24, 12, 4])):
        weights = penstock.balanced_weights(LABELS, power=power)
        found = [weights[LABELS == label].sum() for label in (0, 2, -1)]
        assert np.allclose(found, shares), power


def test_the_same_bits_everywhere():
    """Nearest to the exact values, whatever the processor and the context of decimal."""
    labels = np.repeat(np.arange(50), np.arange(1, 51))
    with decimal.localcontext() as context:
        context.prec = 3
        found = [penstock.balanced_weights(labels, power) for power in (1, 0.5, 0.3)]
    assert found[0].tolist() == [1 / (label + 1) for label in labels.tolist()]
    assert found[1][labels == 3].tolist() == [0.5] * 4
    exact = decimal.Context(prec=60)
    assert found[2][-1] == float(exact.power(50, -decimal.Decimal(0.3)))


def test_shares_of_classes(pack):
    """Half of an epoch, three eighths and one eighth."""
    shares = np.array([4, 0, 3, 1])[LABELS]
    seen = times(load(pack, weights=penstock.balanced_weights(LABELS) * shares))
    assert [seen[label] for label in (0, 2, -1)] == [20, 15, 5]


def test_labels_of_all_kinds():
    want = penstock.balanced_weights(LABELS).tolist()
    for kind in (list, tuple, lambda labels: labels.astype("i1"), lambda labels: iter(labels),
                 lambda labels: (labels + 1).astype("u8")):
        assert penstock.balanced_weights(kind(LABELS)).tolist() == want
    assert penstock.balanced_weights([]).tolist() == []


@pytest.mark.parametrize(("labels", "message"), [
    (np.zeros(4), "labels: expected integers, one for each sample, found an array of float64"),
    (np.zeros((4, 1), int), r"with the shape \(4, 1\)"),
    ([0, 2**70], "found a number of more than 64 bits"),
    (np.array([True, False]), "found an array of bool"),
])
def test_no_labels(labels, message):
    with pytest.raises(penstock.InvalidError, match=message):
        penstock.balanced_weights(labels)


def test_no_integers():
    with pytest.raises(TypeError, match="labels: entry 1: expected an integer, found 0.5"):
        penstock.balanced_weights([0, 0.5])
    with pytest.raises(penstock.InvalidError, match="power: expected 0 to 1, found 2"):
        penstock.balanced_weights([0], power=2)


def check_repeated(samples):
    """All samples as often as wanted, each time with other draws."""
    assert collections.Counter(number for number, _ in samples) == dict.fromkeys(range(N), TIMES)
    assert len(set(samples)) == N * TIMES


def test_repeated_over_the_epoch(pack):
    """By a subset: for any number of ranks, and after a resume."""
    subset = np.repeat(np.arange(N), TIMES)
    whole = load(pack, subset=subset)
    check_repeated(whole)
    assert load(pack, subset=subset, threads=5) == whole
    ranks = [load(pack, subset=subset, rank=rank, world_size=3) for rank in range(3)]
    assert sorted(itertools.chain(*ranks)) == sorted(whole)
    with penstock.Loader(pack, 4, shuffle=True, seed=5, pipeline=CROP, output="numpy",
                         subset=subset) as loader:
        for _ in itertools.islice(loader, 7):
            pass
        state = loader.state_dict()
    assert load(pack, subset=subset, state=state) == whole[28:]


def flat(samples):
    """The results of `repeat` one by one."""
    return [(number, image[at:at + len(image) // TIMES]) for number, image in samples
            for at in range(0, len(image), len(image) // TIMES)]


def test_repeated_in_a_batch(pack):
    """By the operation `repeat`, which reads each sample once. With a part of each epoch."""
    pipeline = f"{CROP} | repeat {TIMES}"
    whole = flat(load(pack, pipeline=pipeline))
    check_repeated(whole)
    assert all(len({number for number, _ in whole[at:at + TIMES]}) == 1
               for at in range(0, N * TIMES, TIMES))
    ranks = [load(pack, pipeline=pipeline, rank=rank, world_size=2) for rank in range(2)]
    assert sorted(flat(itertools.chain(*ranks))) == sorted(whole)
    with penstock.Loader(pack, 4, shuffle=True, seed=5, pipeline=pipeline, output="numpy",
                         return_info=True) as loader:
        parts = []
        for epoch in range(3):
            loader.set_epoch(epoch)
            parts.append([number for batch in itertools.islice(loader, 3)
                          for number in batch.info.samples.tolist()])
    assert all(len(set(part)) == 12 for part in parts) and len(set(map(tuple, parts))) == 3
