# SPDX-License-Identifier: Apache-2.0
"""penstock.mix: several packs with weights in one loader."""

import collections
import pathlib
import random
import subprocess
import sys

import pytest
from py_tools import check_steps, need_penstock, png, write_pack
from remote_tools import options

penstock = need_penstock()
np = pytest.importorskip("numpy")

SIZES = (40, 24, 12)
WEIGHTS = (0.5, 0.375, 0.125)
ORDERS = ("sequential", "random", "shuffle", "sticky")
CROP = "decode | random_resized_crop 8 | hflip | tensor u8"


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    found = tmp_path_factory.mktemp("root") / "packs"
    found.mkdir()
    return found


@pytest.fixture(scope="module")
def packs(folder):
    return [write_pack(penstock, folder / f"{i}.pen", n) for i, n in enumerate(SIZES)]


@pytest.fixture(scope="module")
def three(packs):
    return penstock.mix(list(zip(packs, WEIGHTS)), stop="all")


def open_loader(mixed, **settings):
    base = {"batch_size": 4, "order": "random", "seed": 5, "pipeline": CROP, "output": "numpy",
            "return_info": True, "memory": "64MiB", "threads": 2}
    return penstock.Loader(mixed, **{**base, **settings})


def rows(batch):
    """(source, sample, pixels) of each valid sample."""
    return [(int(source), int(sample), image.tobytes())
            for source, sample, image, valid in zip(batch[-2], batch.info.samples, batch.image,
                                                    batch.info.valid) if valid]


def load(mixed, epochs=1, **settings):
    with open_loader(mixed, **settings) as loader:
        return [row for _ in range(epochs) for batch in loader for row in rows(batch)]


def check_counts(sources, weights):
    seen = [0] * len(weights)
    for p, source in enumerate(sources, 1):
        seen[source] += 1
        assert all(abs(n - p * weight) < 1 for n, weight in zip(seen, weights))


@pytest.mark.parametrize("order", ORDERS)
def test_counts_follow_the_weights_and_sources_have_epochs(three, order):
    found = load(three, 2, order=order)
    check_counts([source for source, *_ in found], WEIGHTS)
    for source, n in enumerate(SIZES):
        own = [sample for which, sample, _ in found if which == source]
        assert len(own) >= n
        for first in range(0, len(own) - n + 1, n):
            assert sorted(own[first:first + n]) == list(range(n))
        if order == "random":
            assert own[:n] != sorted(own[:n])


def test_the_first_source_is_as_if_alone(three, packs):
    """Its samples, their order and their crops; and the crops differ from epoch to epoch."""
    of_mix = [row[1:] for row in load(three, 2) if row[0] == 0]
    with open_loader(packs[0]) as loader:
        alone = [(int(sample), image.tobytes()) for _ in range(2) for batch in loader
                 for sample, image in zip(batch.info.samples, batch.image)]
    n = min(len(of_mix), len(alone))
    assert n > SIZES[0] and of_mix[:n] == alone[:n]


@pytest.mark.parametrize("order", ORDERS)
def test_the_same_for_threads_ranks_and_restarts(three, order):
    settings = {"order": order, "shuffle_buffer": 48}
    want = load(three, 2, **settings)
    for threads in (1, 8):
        assert load(three, 2, threads=threads, **settings) == want
    epoch = len(want) // 2
    for ranks in (2, 3, 4):
        loaders = [open_loader(three, rank=rank, world_size=ranks, batch_size=3, **settings)
                   for rank in range(ranks)]
        steps = [sum(map(rows, step), []) for step in zip(*loaders, strict=True)]
        assert check_steps(steps, want) == epoch
        for loader in loaders:
            loader.close()


@pytest.mark.parametrize("order", ORDERS)
def test_states_resume_on_other_ranks(three, order):
    settings = {"order": order, "shuffle_buffer": 48}
    want = load(three, **settings)
    draw = random.Random(order)
    for ranks, batch in ((1, 4), (2, 3), (3, 2)):
        steps = draw.randrange(1, 8)
        with open_loader(three, world_size=ranks, rank=0, batch_size=batch, **settings) as loader:
            batches = iter(loader)
            for _ in range(steps):
                next(batches)
            state = loader.state_dict()
            counts = loader.source_counts()
        done = state["position"]
        assert done == steps * ranks * batch and sum(counts) == done
        assert counts == [sum(row[0] == i for row in want[:done]) for i in range(3)]
        with open_loader(three, **settings) as other:
            other.load_state_dict(state)
            assert [row for batch in other for row in rows(batch)] == want[done:]


def test_every_rank_gets_every_source(packs):
    """Weights of 1:1 and two ranks would otherwise give each rank one source."""
    pair = penstock.mix([(packs[0], 1), (packs[1], 1)], stop=40)
    for ranks in (2, 4):
        for rank in range(ranks):
            found = collections.Counter(
                row[0] for row in load(pair, rank=rank, world_size=ranks, batch_size=4))
            assert all(found[i] > 40 for i in (0, 1)), found


def test_stops(packs):
    both = [(packs[1], 3), (packs[2], 1)]  # 24 and 12 samples
    with open_loader(penstock.mix(both, stop="first")) as loader:
        assert loader.samples == 24 * 4 // 3 or abs(loader.samples - 32) <= 1
    with open_loader(penstock.mix(both, stop="all")) as loader:
        assert abs(loader.samples - 48) <= 3
    with open_loader(penstock.mix(both, stop=7), world_size=2, rank=1) as loader:
        assert len(loader) == 7 and loader.samples == 7 * 4 * 2
    for stop, least in (("first", 0), ("all", 1)):
        found = load(penstock.mix(both, stop=stop))
        for source, n in enumerate((24, 12)):
            seen = sum(row[0] == source for row in found)
            assert seen >= n if least else seen <= n
        whole = [sum(row[0] == source for row in found) == n for source, n in enumerate((24, 12))]
        assert any(whole)


def test_epochs_go_on_where_the_sources_were(packs):
    """A source that is short in one epoch of the mixture continues in the next one."""
    mixed = penstock.mix([(packs[0], 1), (packs[2], 1)], stop="first")  # 40 and 12 samples
    found = [row[1] for row in load(mixed, 4) if row[0] == 0]
    assert len(found) > 40 and sorted(found[:40]) == list(range(40))
    with open_loader(mixed) as loader:
        loader.set_epoch(2)
        later = [row for batch in loader for row in rows(batch)]
        n = loader.samples
    assert later == load(mixed, 3)[2 * n:]


@pytest.mark.parametrize(("unit", "start"), [("samples", 32), ("steps", 8), ("epochs", 1)])
def test_schedule(packs, unit, start):
    mixed = penstock.mix([(packs[0], 1), (packs[1], 1)], stop=8, unit=unit,
                         schedule=[(start, [0, 1]), (2 * start, [3, 1])])
    found = load(mixed, 4)
    assert len(found) == 4 * 32
    check_counts([row[0] for row in found[:32]], (0.5, 0.5))
    assert {row[0] for row in found[32:64]} == {1}
    check_counts([row[0] for row in found[64:]], (0.75, 0.25))
    own = [row[1] for row in found if row[0] == 1][:48]  # two epochs of the source
    assert sorted(own[:24]) == sorted(own[24:]) == list(range(24))
    with open_loader(mixed) as loader:
        loader.set_epoch(2)
        assert loader.source_counts() == [16, 48]
        assert [row for batch in loader for row in rows(batch)] == found[64:96]


@pytest.mark.parametrize("unit", ["samples", "steps", "epochs"])
def test_a_source_begins_later(packs, unit):
    start = {"samples": 32, "steps": 8, "epochs": 1}[unit]
    mixed = penstock.mix([(packs[0], 1), (packs[1], 0)], stop=8, unit=unit,
                         schedule=[(start, [1, 1])])
    assert mixed.weights == (1, 0)
    found = [row[0] for row in load(mixed, 2)]
    assert set(found[:32]) == {0}
    check_counts(found[32:], (0.5, 0.5))


def test_nested_mixes_multiply_their_weights(packs):
    inner = penstock.mix([(packs[1], 3), (packs[2], 1)])
    nested = penstock.mix([(packs[0], 0.5), (inner, 0.5)], stop="all")
    assert nested.weights == WEIGHTS and nested.packs == tuple(packs)
    assert load(nested) == load(penstock.mix(list(zip(packs, (4, 3, 1))), stop="all"))


def test_a_repeated_pack_has_its_own_order_and_draws(packs):
    found = load(penstock.mix([(packs[0], 1), (packs[0], 1)]))
    parts = [{sample: image for source, sample, image in found if source == i} for i in (0, 1)]
    assert list(parts[0]) != list(parts[1])
    both = set(parts[0]) & set(parts[1])
    assert len(both) > 30
    assert sum(parts[0][i] != parts[1][i] for i in both) > len(both) * 0.9


def test_other_types_and_missing_fields_are_named(folder, packs):
    other = folder / "other.pen"
    with penstock.Writer(other, {"image": "image", "label": "f32"}) as writer:
        writer.add(key="a", image=png(1), label=1.0)
    with pytest.raises(penstock.InvalidError,
                       match=r"field 'label' is i64 in .*0.pen, but f32 in .*other.pen"):
        open_loader(penstock.mix([(packs[0], 1), (other, 1)]))
    load(penstock.mix([(packs[0], 1), (other, 1)]), pipeline={"image": CROP})
    bare = folder / "bare.pen"
    with penstock.Writer(bare, {"image": "image"}) as writer:
        writer.add(key="a", image=png(1))
    with pytest.raises(penstock.InvalidError,
                       match=r"field 'label' \(i64\) of .*0.pen is missing in .*bare.pen"):
        open_loader(penstock.mix([(packs[0], 1), (bare, 1)]))


def test_fields_may_have_other_numbers(folder, packs):
    turned = folder / "turned.pen"
    with penstock.Writer(turned, {"more": "f64", "label": "i64", "image": "image"}) as writer:
        for i in range(10):
            writer.add(key=str(i), more=0.5, label=900 + i, image=png(i))
    with open_loader(penstock.mix([(packs[0], 1), (turned, 1)])) as loader:
        for batch in loader:
            for source, label, sample in zip(batch.source, batch.label, batch.info.samples):
                assert label == 900 + sample if source else label < 900


def test_the_name_of_the_field(packs):
    with open_loader(penstock.mix([(packs[0], 1)], field="origin")) as loader:
        assert loader.fields == ("image", "label", "origin")
        assert next(iter(loader)).origin.tolist() == [0] * 4
    with pytest.raises(penstock.InvalidError, match="found 'label'; choose another name"):
        open_loader(penstock.mix([(packs[0], 1)], field="label"))


def test_states_of_other_mixtures_are_refused(packs):
    pairs = list(zip(packs, WEIGHTS))
    with open_loader(penstock.mix(pairs, stop=5)) as loader:
        state = loader.state_dict()
    for other, message in (
            (penstock.mix(pairs[:2], stop=5), "another pack"),
            (penstock.mix(list(zip(packs, (1, 2, 3))), stop=5), "another subset, weights"),
            (penstock.mix(pairs, stop=5, schedule=[(9, [1, 1, 1])]), "another subset, weights"),
            (penstock.mix(pairs, stop=6), "samples=20, expected 24")):
        with open_loader(other) as loader:
            with pytest.raises(penstock.InvalidError, match=message):
                loader.load_state_dict(state)
            loader.load_state_dict(state, strict=False)
    with open_loader(penstock.mix(pairs, stop=5)) as loader:
        with pytest.raises(penstock.InvalidError, match="epoch: expected 0 to"):
            loader.set_epoch(2**62)
        with pytest.raises(penstock.InvalidError, match="epoch: expected 0 to"):
            loader.load_state_dict({**state, "epoch": 2**62})


@pytest.mark.parametrize(("make", "message"), [
    (lambda p: penstock.mix([]), "mix: sources: expected at least one"),
    (lambda p: penstock.mix([(p, 0)]), "weight of source 0: expected a number above 0, found 0"),
    (lambda p: penstock.mix([(p, 1), (p, 0)], schedule=[(5, [2, 0])]),
     "weight of source 1: expected a number above 0, found 0"),
    (lambda p: penstock.mix([(p, 0)], schedule=[(5, [1])]),
     "expected at least one weight above 0, found none"),
    (lambda p: penstock.mix([(p, 1), (p, -1)]), "weight of source 1: expected 0 to .*, found -1"),
    (lambda p: penstock.mix([(p, float("inf"))]), "weight of source 0: expected 0 to"),
    (lambda p: penstock.mix([(p, 1)], stop="last"), "stop: expected one of first, all"),
    (lambda p: penstock.mix([(p, 1)], stop=0), "stop: expected 1 to"),
    (lambda p: penstock.mix([(p, 1)], unit="days"), "unit: expected one of samples, steps"),
    (lambda p: penstock.mix([(p, 1)], schedule=[(0, [1])]), "entry 0: the start: expected 1"),
    (lambda p: penstock.mix([(p, 1)], schedule=[(1, [1, 2])]), "expected 1 weights"),
    (lambda p: penstock.mix([(p, 1)], schedule=[(1, [0])]), "at least one weight above 0"),
    (lambda p: penstock.mix([(p, 1)], schedule=[(2, [1]), (1, [1])]), "starts that rise"),
    (lambda p: penstock.mix([(penstock.mix([(p, 1)], schedule=[(1, [1])]), 1)]),
     "source 0: a mix with a schedule cannot be nested"),
    (lambda p: penstock.mix([(p, 1)] * 1025), "at most 1024 sources, found 1025"),
    (lambda p: open_loader(penstock.mix([(p, 1)]), subset=[1]), "subset: a mix has all samples"),
    (lambda p: open_loader(penstock.mix([(p, 1)]), weights=[1]), "weights: a mix has all samples"),
    (lambda p: open_loader(penstock.mix([(p, 1)]), preload=True), "preload: the pack is already"),
    (lambda p: open_loader(penstock.mix([(p, 1), (p, 1)], stop="all", schedule=[(1, [1, 0])])),
     "source 1 .* is never delivered completely"),
])
def test_refused(packs, make, message):
    with pytest.raises(penstock.InvalidError, match=message):
        make(packs[0])


@pytest.mark.parametrize("make", [
    lambda p: penstock.mix(p), lambda p: penstock.mix([p]), lambda p: penstock.mix([(p, "1")]),
    lambda p: penstock.mix([(1, 1)]), lambda p: penstock.mix([(p, 1)], stop=None),
    lambda p: penstock.mix([(p, 1)], schedule=3), lambda p: penstock.mix([(p, 1)], schedule=[3]),
    lambda p: penstock.mix([(p, 1)], field=3),
])
def test_wrong_types(packs, make):
    with pytest.raises(TypeError):
        make(packs[0])


def test_counts_need_a_mix(packs):
    with open_loader(packs[0]) as loader:
        with pytest.raises(penstock.InvalidError, match="expected the loader of a penstock.mix"):
            loader.source_counts()


def test_bad_samples_are_replaced_from_their_source(folder, packs):
    broken = folder / "broken.pen"
    with penstock.Writer(broken, {"image": "image", "label": "i64"}) as writer:
        for i in range(12):
            writer.add(key=f"key-{i}", image=png(i), label=500 + i)
    shard = next(broken.glob("*/*.shard"))
    content = bytearray(shard.read_bytes())
    for i in range(0, 12, 3):
        content[bytes(content).find(png(i)) + 50] ^= 1
    shard.write_bytes(content)
    mixed = penstock.mix([(packs[0], 1), (broken, 1)], stop=6)
    with pytest.raises(penstock.CorruptError, match=r"broken\.pen: sample \d+ 'key-"):
        load(mixed)
    for threads in (1, 4):
        with open_loader(mixed, on_bad="substitute", threads=threads) as loader:
            labels = [(int(s), int(label)) for batch in loader
                      for s, label in zip(batch.source, batch.label)]
            bad = loader.bad_samples()
        assert bad and all(one.sample % 3 == 0 and one.instead % 3 for one in bad)
        assert all((label >= 500) == bool(source) for source, label in labels)


def test_functions_get_their_own_numbers(packs):
    """A sample that returns in one epoch of the mixture, and sample 3 of both sources."""
    from penstock import ops

    def draw(sample, rng):
        return {"draw": rng.integers(2**62), "source": sample["source"]}

    mixed = penstock.mix([(packs[2], 1), (packs[2], 1)], stop=12)
    with open_loader(mixed, pipeline=[CROP, ops.python(draw)]) as loader:
        found = [int(value) for batch in loader for value in batch.draw]
    assert len(found) == 48 and len(set(found)) == 48


THREADS = """
import os, resource, sys, penstock
paths = sys.argv[2:]
pack = penstock.mix([(path, 1) for path in paths]) if sys.argv[1] == "mix" else paths[0]
with penstock.Loader(pack, 4, pipeline="decode | center_crop 8", output="numpy", threads=2,
                     memory="64MiB") as loader:
    seen = sum(1 for batch in loader)
    assert seen
    print(len(os.listdir("/proc/self/task")), loader.stats()["memory_peak_bytes"])
"""


def test_many_packs_need_the_threads_and_the_memory_of_one(packs):
    paths = [pack.path for pack in packs] * 12
    found = [
        list(map(int, subprocess.run([sys.executable, "-c", THREADS, kind, *paths], check=True,
                                     capture_output=True, text=True).stdout.split()))
        for kind in ("one", "mix")]
    (threads, memory), (of_mix, memory_of_mix) = found
    assert of_mix == threads and memory_of_mix < memory * 1.1


@pytest.mark.parametrize("order", ORDERS)
def test_remote_packs(s3, packs, folder, three, order):
    """From an object store, and with one source that is local."""
    store = s3(directory=folder.parent)
    remote = [penstock.open(f"s3://packs/{pathlib.Path(pack.path).name}", options(store))
              for pack in packs]
    settings = {"order": order, "shuffle_buffer": 48}
    want = load(three, 2, **settings)
    assert load(penstock.mix(list(zip(remote, WEIGHTS)), stop="all"), 2, **settings) == want
    remote[1] = packs[1]
    assert load(penstock.mix(list(zip(remote, WEIGHTS)), stop="all"), 2, **settings) == want
