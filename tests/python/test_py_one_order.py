# SPDX-License-Identifier: Apache-2.0
"""One order: which samples a global batch has depends on the pack, the order, its shuffle buffer,
the seed and the epoch, and on nothing else: not on threads, memory, ranks, caches or the place of
the pack. So ranks may differ in all of these, and a state may move between them."""

import collections
import contextlib
import itertools

import pytest
from py_tools import check_steps, jpeg, need_penstock, write_pack
from remote_tools import options

penstock = need_penstock()
np = pytest.importorskip("numpy")

K = 32  # samples of a block
BUFFER = 6 * K  # the smallest shuffle buffer
N = 21 * BUFFER + 77  # with a short block
GLOBAL = 60
ORDERS = ("sequential", "random", "shuffle", "sticky")
ADDRESS = "s3://packs/o.pen"
PIPELINES = {
    "numbers": {"label": "tensor"},
    "images": "decode | random_resized_crop 8 | tensor u8",
    "large": "decode | random_resized_crop 64 | tensor f32",
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A folder that is served: packs/o.pen."""
    folder = tmp_path_factory.mktemp("root")
    (folder / "packs").mkdir()
    images = [jpeg(i, 12, 10) for i in range(16)]
    write_pack(penstock, folder / "packs" / "o.pen", N, lambda i: images[i % 16],
               block_samples=K, shard_size="1MiB")
    return folder


@pytest.fixture(scope="module")
def disk(folder):
    return folder / "packs" / "o.pen"


class Places:
    """Where the pack is: arguments of a loader."""

    def __init__(self, disk, server, caches):
        self.disk, self.server, self.caches = disk, server, caches

    def __call__(self, name):
        where = {"pack": self.disk}
        if "url" in name:
            where = {"pack": ADDRESS, "storage_options": options(self.server)}
        if "cache" in name:
            where |= {"cache": self.caches / name, "cache_bytes": "64MiB"}
        return where | ({"preload": True} if "memory" in name else {})


@pytest.fixture
def place(folder, disk, s3, tmp_path, no_other_settings):
    return Places(disk, s3(directory=folder), tmp_path)


PLACES = ("disk", "disk cache", "disk memory", "url", "url cache", "url memory")


class Ranks:
    """The loaders of all ranks; `each` has the settings of one of them."""

    def __init__(self, world=1, batch=GLOBAL, each=(), state=None, **settings):
        settings = {"pipeline": PIPELINES["numbers"], "threads": 2, "memory": "256MiB", "seed": 1,
                    "shuffle_buffer": BUFFER, **settings}
        each = dict(each)
        self.loaders = [
            penstock.Loader(**{
                "batch_size": batch // world, "rank": rank, "world_size": world, "output": "numpy",
                "return_info": True, "compare_ranks": False, **settings, **each.get(rank, {})})
            for rank in range(world)]
        for loader in self.loaders:
            if state is not None:
                loader.load_state_dict(state)

    def __enter__(self):
        return self

    def __exit__(self, *exc):
        for loader in self.loaders:
            loader.close()

    def steps(self, n=None):
        """The valid samples of each global batch."""
        return [[int(s) for batch in step for s in batch.info.samples[batch.info.valid]]
                for step in itertools.islice(zip(*self.loaders, strict=True), n)]

    def state(self):
        states = [loader.state_dict() for loader in self.loaders]
        assert states == states[:1] * len(states)
        return states[0]


class Orders(dict):
    """Epoch 0 of each order, by one rank from the disk."""

    def __init__(self, disk):
        self.disk = disk

    def __missing__(self, order):
        with Ranks(order=order, pack=self.disk) as ranks:
            self[order] = [sample for step in ranks.steps() for sample in step]
        assert sorted(self[order]) == list(range(N))
        return self[order]


@pytest.fixture(scope="module")
def orders(disk):
    return Orders(disk)


def same(expected, n=None, **settings):
    with Ranks(**settings) as ranks:
        done = check_steps(ranks.steps(n), expected)
        assert done == (N if n is None else min(N, n * settings.get("batch", GLOBAL)))
        return ranks.state()


# ---- what may not change the order


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("settings", [
    {"threads": 1}, {"threads": 16}, {"memory": "64MiB"}, {"memory": "1GiB"}, {"prefetch": 1},
    {"io_threads": 4}, {"pipeline": PIPELINES["images"]},
    {"pipeline": PIPELINES["large"], "memory": "96MiB"}, {"on_bad": "substitute"},
    {"batch": 30}, {"batch": 600}, {"world": 2}, {"world": 3}, {"world": 4}, {"world": 5},
    {"world": 6}, {"world": 12, "memory": "64MiB", "threads": 1}],
    ids=lambda settings: " ".join(f"{name}={value}" for name, value in settings.items())[:40])
def test_settings(disk, orders, order, settings):
    same(orders[order], pack=disk, order=order, **settings)


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("name", PLACES[1:])
def test_places(place, orders, order, name):
    """And with little memory, from all of them."""
    same(orders[order], order=order, **place(name))
    same(orders[order], order=order, world=5, threads=1, memory="64MiB", n=20, **place(name))


@pytest.mark.parametrize("name", PLACES)
def test_shuffle_is_one_order(place, orders, name):
    """Of a disk, a store, with a cache and in memory."""
    state = same(orders["shuffle"], n=10, shuffle=True, **place(name))
    assert state["order"] == "shuffle" and state["shuffle_buffer"] == BUFFER


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("name", ["url", "url cache"])
def test_little_memory(folder, place, order, name):
    """Parts of blocks are fetched then, or single samples; the order stays. Samples have 8 KiB, so
    that the pack does not fit."""
    path = folder / "packs" / "big.pen"
    if not path.exists():
        with penstock.Writer(path, {"blob": "bytes", "label": "i64"}, block_samples=K) as writer:
            for i in range(2000):
                writer.add(blob=np.random.default_rng(i).bytes(2**13), label=i)
    where = place(name) | {"pack": "s3://packs/big.pen"}
    settings = {"order": order, "pipeline": {"blob": "bytes", "label": "tensor"}, "batch": 24,
                "threads": 1, "io_threads": 2, "prefetch": 1, "shuffle_buffer": 2 * BUFFER}
    with Ranks(pack=path, **settings) as ranks:
        expected = [sample for step in ranks.steps() for sample in step]
    units = set()
    for memory, world in (("13MiB", 1), ("15MiB", 3), ("18MiB", 1), ("1GiB", 1)):
        with Ranks(world, **settings | {"memory": memory}, **where) as ranks:
            assert check_steps(ranks.steps(), expected) == 2000
            stats = ranks.loaders[0].stats()
            units.add(stats["fetch_unit"])
            assert (stats["memory_wanted_bytes"] > 0) == (stats["fetch_unit"] != "blocks")
    assert "blocks" in units and (order == "sequential" or len(units) > 1), units


def test_the_hash_is_of_what_changes_the_order(disk):
    def hash_of(**settings):
        with Ranks(**{"pack": disk, "order": "shuffle", **settings}) as ranks:
            return ranks.state()["hash"]

    expected = hash_of()
    for settings in ({"threads": 1}, {"memory": "64MiB"}, {"world": 5}, {"batch": 30},
                     {"pipeline": PIPELINES["images"]}, {"shuffle_buffer": BUFFER - 5}):
        assert hash_of(**settings) == expected, settings
    others = [hash_of(**settings) for settings in (
        {"order": "random"}, {"order": "sticky"}, {"order": "sequential"}, {"seed": 2},
        {"shuffle_buffer": 2 * BUFFER}, {"subset": range(N - 1)}, {"weights": [1.0] * N})]
    assert len({expected, *others}) == len(others) + 1


# ---- ranks that differ


RANKS_DIFFER = {
    "threads": (2, {"order": "shuffle"}, {1: {"threads": 16}}),
    "threads, world 5": (5, {"order": "sticky"}, {4: {"threads": 16}}),
    "memory": (2, {"order": "shuffle"}, {1: {"memory": "512MiB"}}),
    "memory, world 5": (5, {"order": "shuffle", "memory": "64MiB"}, {4: {"memory": "1GiB"}}),
    "memory, world 3": (3, {"order": "sticky", "memory": "64MiB"}, {2: {"memory": "1GiB"}}),
    "a cache": (2, {"shuffle": True}, {1: "disk cache"}),
    "preload": (2, {"shuffle": True}, {0: "url", 1: "url memory"}),
    "places": (3, {"shuffle": True}, {0: "disk", 1: "url", 2: "url cache"}),
}


@pytest.mark.parametrize("name", RANKS_DIFFER)
def test_ranks_that_differ(place, orders, name):
    """No sample is lost and none is repeated."""
    world, settings, each = RANKS_DIFFER[name]
    each = {rank: place(one) if isinstance(one, str) else one for rank, one in each.items()}
    with Ranks(world, 20 * world, each, **place("disk") | settings) as ranks:
        steps = ranks.steps()
        assert len({loader.stats()["order_hash"] for loader in ranks.loaders}) == 1
        order = ranks.state()["order"]
    times = collections.Counter(itertools.chain(*steps))
    assert N - len(times) == 0, "samples that no rank has"
    assert not [sample for sample, n in times.items() if n > 1], "samples that occur twice"
    assert check_steps(steps, orders[order]) == N


# ---- a state that moves


@pytest.mark.parametrize("order", ORDERS)
def test_resume_with_other_settings(place, orders, order):
    taken = 20
    state = same(orders[order], n=taken, order=order, **place("disk"))
    rest = orders[order][taken * GLOBAL:]
    for settings in (
        {}, {"threads": 16}, {"memory": "1GiB"}, {"memory": "64MiB", "threads": 1}, {"world": 5},
        {"world": 6, "batch": 600}, {"world": 3, "batch": 30}, {"place": "url", "memory": "64MiB"},
        {"place": "disk cache", "world": 5, "memory": "1GiB"}, {"place": "url cache", "world": 2},
        {"place": "url memory", "world": 4, "batch": 100},
    ):
        settings = dict(settings)
        where = place(settings.pop("place", "disk"))
        with Ranks(order=order, state=state, **where, **settings) as ranks:
            assert check_steps(ranks.steps(), rest) == len(rest), settings


@pytest.mark.parametrize("order", ORDERS)
def test_the_epoch_after_a_resume(disk, order):
    """It is that of a run that was not interrupted."""
    with Ranks(order=order, pack=disk) as ranks:
        ranks.steps()
        expected = [sample for step in ranks.steps() for sample in step]
    with Ranks(order=order, pack=disk) as ranks:
        ranks.steps(50)
        state = ranks.state()
    with Ranks(3, order=order, pack=disk, state=state, memory="1GiB", threads=1) as ranks:
        ranks.steps()
        assert check_steps(ranks.steps(), expected) == N
        assert ranks.state()["epoch"] == 2


def test_an_epoch_in_pieces(place, orders):
    """Each from another place, by other ranks with other memory."""
    steps, state, done = [], None, 0
    for name, world, batch, n in zip(PLACES, (1, 2, 3, 5, 4, 6), (60, 90, 33, 45, 100, 60),
                                     (7, 5, 11, 9, 3, None), strict=True):
        memory = ("64MiB", "128MiB", "512MiB")[world % 3]
        with Ranks(world, batch, state=state, order="shuffle", memory=memory,
                   threads=1 + world % 2, **place(name)) as ranks:
            steps += ranks.steps(n)
            state = ranks.state()
        done = check_steps(steps, orders["shuffle"])
        assert state["position"] == done % N and state["epoch"] == done // N
    assert done == N


# ---- buckets


BUCKETS = [(8, 8), (6, 12), (12, 6)]
SIZES = [(12, 12), (6, 16), (16, 6), (11, 12), (5, 20)]


@pytest.fixture(scope="module")
def shapes(tmp_path_factory):
    images = [jpeg(i, *SIZES[i % 5]) for i in range(5)]
    path = tmp_path_factory.mktemp("shapes") / "s.pen"
    write_pack(penstock, path, 1000, lambda i: images[i * i % 7 % 5], block_samples=8).close()
    return path


def bucket_steps(shapes, world, batch=GLOBAL, n=None, **settings):
    """Of each global batch, its bucket, its samples and those that pad it."""
    settings = {"pipeline": {"image": "decode | cover bucket | tensor u8"}, "buckets": BUCKETS,
                "shuffle_buffer": 48, "memory": "64MiB", "last_batch": "pad", **settings}
    made = []
    with Ranks(world, batch, pack=shapes, **settings) as ranks:
        for step in itertools.islice(zip(*ranks.loaders, strict=True), n):
            (bucket,) = {one.info.bucket for one in step}
            rows = sorted((not valid, int(sample)) for one in step
                          for valid, sample in zip(one.info.valid, one.info.samples))
            n_valid = [one.info.n_valid for one in step]
            assert max(n_valid) - min(n_valid) <= 1
            made.append((bucket, rows))
        return made, ranks.state()


@pytest.mark.parametrize("order", ORDERS)
def test_buckets(shapes, order):
    """The same batches for the same global batch."""
    expected, _ = bucket_steps(shapes, 1, order=order)
    valid = [sample for _, rows in expected for fills, sample in rows if not fills]
    assert sorted(valid) == list(range(1000))
    for world in (2, 3, 4, 5, 6):
        assert bucket_steps(shapes, world, order=order, threads=1)[0] == expected, world
    for world, other, n in ((1, 4, 5), (6, 2, 9), (3, 5, 1)):
        before, state = bucket_steps(shapes, world, order=order, n=n)
        after, _ = bucket_steps(shapes, other, order=order, state=state, memory="128MiB")
        assert before + after == expected, (world, other)
    assert bucket_steps(shapes, 1, 40, order=order)[0] != expected


@pytest.mark.parametrize("order", ORDERS)
def test_token_budgets(shapes, order):
    """The samples of a step depend on the global budget."""
    def steps(world, tokens):
        settings = {"pipeline": "decode | patches 2", "tokens": tokens, "lengths": (4, 6, 9),
                    "order": order, "shuffle_buffer": 48, "memory": "64MiB", "batch_size": None}
        with Ranks(world, pack=shapes, **settings) as ranks:
            return [sorted(step) for step in ranks.steps()]

    expected = steps(1, 36 * 12)
    assert sorted(itertools.chain(*expected)) == list(range(1000))
    for world in (2, 3, 4):
        assert steps(world, 36 * 12 // world) == expected, world


# ---- mixtures and subsets


@pytest.mark.parametrize("order", ORDERS)
def test_mixtures(disk, shapes, order):
    def steps(**settings):
        with contextlib.ExitStack() as stack:
            packs = [stack.enter_context(penstock.open(path)) for path in (disk, shapes)]
            mixed = penstock.mix([(packs[0], 2), (packs[1], 1)])
            settings = {"pack": mixed, "order": order, "shuffle_buffer": 2 * BUFFER, **settings}
            with Ranks(**settings) as ranks:
                return [sorted((int(source), int(sample)) for batch in step for source, sample in
                               zip(batch.source, batch.info.samples))
                        for step in itertools.islice(zip(*ranks.loaders, strict=True), 30)]

    expected = steps()
    for settings in ({"threads": 1, "memory": "64MiB"}, {"world": 2}, {"world": 3}, {"world": 5}):
        assert steps(**settings) == expected, settings


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("chosen", [{"subset": range(100, 2000, 3)},
                                    {"weights": np.arange(N) % 5}, {"frames": [2] * N}],
                         ids=["subset", "weights", "frames"])
def test_chosen_samples(disk, order, chosen):
    with Ranks(pack=disk, order=order, **chosen) as ranks:
        expected = [sample for step in ranks.steps(20) for sample in step]
    for settings in ({"threads": 1, "memory": "64MiB"}, {"world": 2}, {"world": 5}):
        with Ranks(pack=disk, order=order, **chosen, **settings) as ranks:
            assert check_steps(ranks.steps(20), expected) == len(expected), settings
