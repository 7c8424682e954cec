# SPDX-License-Identifier: Apache-2.0
"""The same epoch, to the last bit, however far away the pack is and whatever lies between.

The SHA-256 of its samples from a disk is that from an object store, with failing requests, with a
cache that is cold, warm, half as large as the pack or shared, from memory, and after resumes with
other numbers of ranks. For images and for clips, by blocks and sticky.

PENSTOCK_SCALE=full has more samples, and takes every way through a real store as well; see
tests/long/long_remote_same.py."""

import contextlib
import json
import pathlib
import subprocess
import sys
import time

import far_tools
import net_stage
import pytest
from far_tools import KINDS
from py_tools import need_penstock
from remote_tools import FULL, options

penstock = need_penstock()
pytest.importorskip("numpy")
pytestmark = pytest.mark.usefixtures("no_other_settings")

HERE = pathlib.Path(__file__).parent
COUNTS = {"image": 4_000, "clip": 1_200} if FULL else {"image": 203, "clip": 103}
ORDERS = ("shuffle", "sticky")
EPOCHS = (0, 1)
STORES = ("script", "ceph") if FULL else ("script",)
FAULTS = "throttle=0.15"  # 503 SlowDown; the clips need few requests
COMPARED = []
READER = f"""
import json, sys
sys.path.insert(0, {str(HERE)!r})
import penstock, far_tools
kind, where, given = sys.argv[1], sys.argv[2], json.loads(sys.argv[3])
pack = penstock.open(where, given, sys.argv[4])
print("ready", flush=True)
sys.stdin.readline()
legs = [((pack, {{}}), 1, None)]
found = [far_tools.epoch_digest(penstock, kind, legs, order=order, epoch=epoch)
         for order in {ORDERS} for epoch in {EPOCHS}]
print(json.dumps([found, pack.cache_stats()]))
"""


@pytest.fixture(scope="module")
def root(tmp_path_factory):
    """A folder that is served: packs/image.pen and packs/clip.pen."""
    folder = tmp_path_factory.mktemp("root")
    for kind in KINDS:
        far_tools.write_pack(penstock, folder / "packs" / f"{kind}.pen", kind, COUNTS[kind])
    return folder


class Expected:
    """Digests from the disk."""

    def __init__(self, root):
        self.root = root
        self.of = {(kind, order, epoch): same(kind, self.disk(kind), order, epoch)
                   for kind in KINDS for order in ORDERS for epoch in EPOCHS}
        assert len(set(self.of.values())) == len(self.of)  # nothing is left out of them

    def disk(self, kind):
        return self.root / "packs" / f"{kind}.pen", {}

    def size(self, kind):
        files = self.disk(kind)[0].rglob("*")
        return sum(file.stat().st_size for file in files if file.is_file())

    def all(self, kind):
        return [self.of[kind, order, epoch] for order in ORDERS for epoch in EPOCHS]


def same(kind, place, order="shuffle", epoch=0, **settings):
    """The digest of an epoch from one place, by one rank."""
    return resumed(kind, [(place, 1, None)], order, epoch, **settings)


def resumed(kind, legs, order="shuffle", epoch=0, **settings):
    COMPARED.append(kind)
    return far_tools.epoch_digest(penstock, kind, legs, COUNTS[kind], epoch, order=order,
                                  timeout=600, **settings)


@pytest.fixture(scope="module")
def expected(root):
    yield Expected(root)
    print(f"\n{len(COMPARED)} epochs of {COUNTS['image']} images or {COUNTS['clip']} clips")


class Latency:
    """Where the packs are in a store: place(kind) is what a loader is given for one of them."""

    def __init__(self, server, bucket):
        self.server, self.bucket = server, bucket

    def address(self, kind):
        return f"s3://{self.bucket}/{kind}.pen"

    def place(self, kind, **more):
        return self.address(kind), {"storage_options": options(self.server, outage=600), **more}


@contextlib.contextmanager
def scripted(server, faults):
    if faults:
        server.control(chaos=FAULTS, seed=7)
    yield Latency(server, "packs")
    if faults:
        counts = server.counts()
        print(f"{counts['total']} requests, {counts['faults']['throttle']} answered 503")
        assert counts["faults"]["throttle"] >= 1


@pytest.fixture(scope="module")
def ceph_bucket(root):
    store = net_stage.need_ceph()
    bucket = f"same-{time.time_ns()}"
    net_stage.fill_bucket(store.boto3(), bucket, root / "packs")
    return store, bucket


@contextlib.contextmanager
def distant(request, ms, percent):
    """Ceph, some milliseconds away."""
    store, bucket = request.getfixturevalue("ceph_bucket")
    net_stage.need_haproxy()
    with net_stage.FarAway(store, ms=ms, percent=percent) as server:
        yield Latency(server, bucket)


def staged(request, store, faults=False):
    if store == "script":
        server = request.getfixturevalue("s3")(directory=request.getfixturevalue("root"))
        return scripted(server, faults)
    return distant(request, 20, 5 if faults else 0)


@pytest.fixture(params=STORES)
def far(request):
    with staged(request, request.param) as made:
        yield made


@pytest.fixture(params=STORES)
def failing(request):
    """As far away, and 15 of 100 requests are answered 503."""
    with staged(request, request.param, faults=True) as made:
        yield made


# ---- one rank


@pytest.mark.parametrize("kind", KINDS)
def test_from_a_store(expected, far, kind):
    for (of, order, epoch), digest in expected.of.items():
        if of == kind:
            assert same(kind, far.place(kind), order, epoch) == digest, (order, epoch)
            assert same(kind, far.place(kind), order, epoch, threads=1, memory="32MiB",
                        prefetch=1) == digest, (order, epoch)


@pytest.mark.parametrize("kind", KINDS)
def test_with_failing_requests(expected, failing, kind):
    for order in ORDERS:
        assert same(kind, failing.place(kind), order) == expected.of[kind, order, 0]


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_from_ceph_with_failing_requests(request, expected, kind):
    with distant(request, 5, 5) as far:
        for order in ORDERS:
            assert same(kind, far.place(kind), order) == expected.of[kind, order, 0]


@pytest.mark.parametrize("half", [False, True])
@pytest.mark.parametrize("kind", KINDS)
def test_with_a_cache(expected, far, tmp_path, kind, half):
    """Cold and warm; of half the size, half of the blocks come from it."""
    room = expected.size(kind) // 2 if half else 2 * expected.size(kind)
    for order in ORDERS:
        given = {"storage_options": options(far.server), "cache": tmp_path / order,
                 "cache_bytes": room}
        with penstock.open(far.address(kind), **given) as pack:
            blocks = pack.info["n_blocks"]
        for epoch in (0, *EPOCHS):
            with penstock.open(far.address(kind), **given) as pack:
                found = same(kind, (pack, {}), order, epoch)
                stats = pack.cache_stats()
            assert found == expected.of[kind, order, epoch], (order, epoch)
            assert stats["bad"] == 0
        assert stats["hits"] + stats["misses"] == blocks
        assert 0 < stats["misses"] < blocks if half else stats["misses"] == 0


@pytest.mark.parametrize("kind", KINDS)
def test_with_a_cache_and_failing_requests(expected, failing, tmp_path, kind):
    place = failing.place(kind, cache=tmp_path / "cache", cache_bytes=expected.size(kind) // 2)
    for epoch in EPOCHS:
        assert same(kind, place, "sticky", epoch) == expected.of[kind, "sticky", epoch]


@pytest.mark.parametrize("kind", KINDS)
def test_with_two_processes_that_share_a_cache(expected, far, tmp_path, kind):
    """From the first moment on: each block comes once, and goes to both."""
    given = json.dumps(options(far.server))
    command = [sys.executable, "-c", READER, kind, far.address(kind), given, tmp_path / "cache"]
    readers = [subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
               for _ in range(2)]
    for reader in readers:
        assert reader.stdout.readline() == "ready\n"
    for reader in readers:
        reader.stdin.write("\n")
        reader.stdin.flush()
    told = [json.loads(reader.communicate(timeout=600)[0]) for reader in readers]
    assert [digests for digests, _ in told] == [expected.all(kind)] * 2
    blocks = len(list(pathlib.Path(tmp_path / "cache").glob("*/??/*.block")))
    assert sum(stats["misses"] for _, stats in told) == blocks > 10
    assert sum(stats["hits"] for _, stats in told) >= blocks


@pytest.mark.parametrize("kind", KINDS)
def test_preloaded(expected, far, kind):
    for order in ORDERS:
        found = same(kind, far.place(kind, preload=True), order)
        assert found == expected.of[kind, order, 0]
    found = same(kind, (expected.disk(kind)[0], {"preload": True}))
    assert found == expected.of[kind, "shuffle", 0]


# ---- resumed with other numbers of ranks


def journey(places, n):
    """1 rank, 2, 3 and 1 again: a part of the epoch on each of them."""
    share = n // far_tools.GLOBAL // 4
    plan = ((1, share), (2, share), (3, share), (1, None))
    return [(place, world, steps) for place, (world, steps) in zip(places, plan)]


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("kind", KINDS)
def test_resumed(expected, far, tmp_path, kind, order):
    """All of it from one place, and each part from another."""
    digest = expected.of[kind, order, 0]
    disk, cache = expected.disk(kind), far.place(kind, cache=tmp_path / "cache")
    memory = far.place(kind, preload=True)
    for places in ([disk] * 4, [far.place(kind)] * 4, [cache] * 4, [memory] * 4,
                   [disk, far.place(kind), cache, memory], [memory, cache, disk, far.place(kind)]):
        legs = journey(places, COUNTS[kind])
        assert resumed(kind, legs, order) == digest, [where for (where, _), *_ in legs]


@pytest.mark.parametrize("kind", KINDS)
def test_resumed_with_failing_requests(expected, failing, tmp_path, kind):
    half = failing.place(kind, cache=tmp_path / "cache", cache_bytes=expected.size(kind) // 2)
    for order in ORDERS:
        legs = journey([failing.place(kind), half, failing.place(kind), half], COUNTS[kind])
        assert resumed(kind, legs, order) == expected.of[kind, order, 0]
