# SPDX-License-Identifier: Apache-2.0
"""Packs with a cache on this machine: what is asked of the server, and the same batches always."""

import json
import os
import pathlib
import pickle
import random
import shutil
import subprocess
import sys

import pytest
from cli_tools import good, run
from py_tools import in_child, need_penstock
from remote_tools import ADDRESS, epoch_digest, make_pack, options

penstock = need_penstock()
pytest.importorskip("numpy")

HERE = pathlib.Path(__file__).parent
N = 800
READER = f"""
import json, sys
sys.path.insert(0, {str(HERE)!r})
import penstock, remote_tools
where, cache, url, epochs = sys.argv[1:5]
options = dict(endpoint=url, region="us-east-1", key_id="stage-key", secret="stage-secret")
options = options if url else None
pack = penstock.open(where, options, cache)
print("ready", flush=True)
sys.stdin.readline()
digests = [remote_tools.epoch_digest(penstock, pack) for _ in range(int(epochs))]
print(json.dumps([digests, pack.remote_stats() | pack.cache_stats()]))
"""


@pytest.fixture(scope="module")
def root(tmp_path_factory):
    """A folder that is served: packs/train.pen."""
    folder = tmp_path_factory.mktemp("root")
    make_pack(penstock, folder / "packs" / "train.pen", N)
    return folder


@pytest.fixture(scope="module")
def disk(root):
    return root / "packs" / "train.pen"


@pytest.fixture(scope="module")
def digest(disk):
    return epoch_digest(penstock, disk)


@pytest.fixture
def server(s3, root, no_other_settings):
    return s3(directory=root)


def asked(server):
    """What was read of shards since the last time: (object, range)."""
    found = [(entry["what"], entry["range"]) for entry in server.log()]
    server.control(reset=True)
    return [entry for entry in found if not entry[0].endswith("/manifest")]


def entries(cache, suffix=".block"):
    return sorted(pathlib.Path(cache).glob(f"*/??/*{suffix}"))


def start_readers(n, where, cache, url="", epochs=1):
    readers = [
        subprocess.Popen([sys.executable, "-c", READER, where, cache, url, str(epochs)],
                         stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        for _ in range(n)
    ]
    for reader in readers:
        assert reader.stdout.readline() == "ready\n"
    return readers


def finish_readers(readers):
    for reader in readers:
        reader.stdin.write("\n")
        reader.stdin.flush()
    return [json.loads(reader.communicate(timeout=100)[0]) for reader in readers]


# ---- from an object store


def test_a_second_epoch_and_a_second_process_ask_for_nothing(server, digest, tmp_path):
    cache = tmp_path / "cache"
    with penstock.open(ADDRESS, options(server), cache, "1GiB") as pack:
        assert epoch_digest(penstock, pack) == digest
        n_blocks, n_shards = pack.info["n_blocks"], pack.info["n_shards"]
        first = asked(server)
        assert n_shards < len(first) == len(set(first))
        assert pack.cache_stats()["misses"] == n_blocks
        assert pack.cache_stats()["stored"] == n_blocks + n_shards
        assert epoch_digest(penstock, pack) == digest
        assert asked(server) == []
    with penstock.open(ADDRESS, options(server), cache=cache) as pack:
        assert epoch_digest(penstock, pack) == digest
        assert asked(server) == []
        stats = pack.cache_stats()
    assert stats["hits"] >= n_blocks and stats["tail_hits"] == n_shards
    assert stats["misses"] == stats["bytes_origin"] == stats["stored"] == 0


@pytest.mark.parametrize("n", [2, 8])
def test_each_block_is_fetched_once_per_node(server, digest, tmp_path, n):
    readers = start_readers(n, ADDRESS, tmp_path / "cache", server.url)
    told = finish_readers(readers)
    assert {found for digests, _ in told for found in digests} == {digest}
    shards = asked(server)
    # On a busy machine a request may be repeated, which is no affair of the cache.
    repeated = sum(stats["retries"] + stats["hedges"] for _, stats in told)
    assert len(shards) <= len(set(shards)) + repeated, told
    blocks = len(entries(tmp_path / "cache"))
    assert sum(stats["misses"] for _, stats in told) == blocks, told
    assert sum(stats["tail_misses"] for _, stats in told) == len(
        entries(tmp_path / "cache", ".tail"))


def test_half_a_cache_serves_half_of_the_blocks(server, tmp_path):
    """Blocks of some size, as real ones have: of small ones indexes would take most of it. All but
    the last, which also holds the columns, have the same size: none fits into what is left when
    the first one did not, besides one if that was the last."""
    dice = random.Random(5)
    where = "s3://packs/half.pen"
    with penstock.Writer(where, {"data": "bytes", "label": "i64"}, block_samples=8,
                         shard_size="8MiB", storage_options=options(server)) as writer:
        for i in range(800):
            writer.add(data=dice.randbytes(16000), label=i)
    total = penstock.open(where, options(server)).info["total_bytes"]
    for epoch in range(3):
        with penstock.open(where, options(server), tmp_path / "cache", total // 2) as pack:
            with penstock.Loader(pack, 16, order="shuffle", seed=3, output="numpy", threads=1,
                                 pipeline={"label": "tensor i64"}) as loader:
                loader.set_epoch(epoch)
                labels = sorted(int(x) for (batch,) in loader for x in batch)
            stats = pack.cache_stats()
        assert labels == list(range(800))
        assert stats["not_stored_full"] > 0
        if epoch:
            assert stats["hits"] / (stats["hits"] + stats["misses"]) >= 0.49
            assert stats["stored"] <= 1 and stats["evicted_bytes"] == 0
    sizes = sorted(file.stat().st_size for file in entries(tmp_path / "cache"))
    assert sizes[-1] < 1.05 * sizes[0]
    assert sum(file.stat().st_size for file in entries(tmp_path / "cache", "")) <= total // 2


@pytest.mark.parametrize("chaos", ["", "error=0.05,throttle=0.05,corrupt=0.02"])
@pytest.mark.parametrize("share", [1.0, 0.5])
def test_the_same_batches_whatever_is_in_the_cache(server, disk, digest, tmp_path, share, chaos):
    size = sum(file.stat().st_size for file in disk.rglob("*") if file.is_file())
    server.control(chaos=chaos, seed=11)
    for _ in range(2):
        found = epoch_digest(penstock, ADDRESS, options(server), cache=tmp_path / "cache",
                             cache_bytes=int(size * share))
        assert found == digest


# ---- from another disk


def test_a_slow_disk_is_read_once(disk, digest, tmp_path):
    cache, pack_dir = tmp_path / "cache", tmp_path / "train.pen"
    shutil.copytree(disk, pack_dir)
    assert epoch_digest(penstock, pack_dir, cache=cache) == digest
    for shard in pack_dir.glob("??/*"):
        shard.unlink()
    with penstock.open(pack_dir, cache=cache) as pack:
        assert epoch_digest(penstock, pack) == digest
        assert pack.cache_stats()["misses"] == 0
        loader = penstock.Loader(pack, 16, shuffle=True, output="numpy", pipeline="label: tensor")
        assert loader.state_dict()["order"] == "shuffle"
    pickled = pickle.dumps(penstock.open(pack_dir, cache=cache, cache_bytes="20 MiB"))
    assert epoch_digest(penstock, pickle.loads(pickled)) == digest


def test_a_forked_child_has_the_cache_too(disk, tmp_path):
    pack = penstock.open(disk, cache=tmp_path / "cache")
    assert pack[5]["label"] == 5

    def child():
        assert pack[5]["label"] == 5
        assert pack.cache_stats()["hits"] == 1

    assert in_child(child) is None


def test_damage_is_a_miss_and_is_put_right(disk, digest, tmp_path):
    cache, dice = tmp_path / "cache", random.Random(1)
    assert epoch_digest(penstock, disk, cache=cache) == digest
    for way in range(4):
        for file in entries(cache, ""):
            data = bytearray(file.read_bytes())
            if way == 0:
                data[dice.randrange(len(data))] ^= 1 << dice.randrange(8)
            elif way == 1:
                del data[dice.randrange(len(data)):]
            elif way == 2:
                data[:] = bytes(len(data))
            else:
                data[:] = dice.choice(entries(cache, "")).read_bytes()
            file.write_bytes(data)
        with penstock.open(disk, cache=cache) as pack:
            assert epoch_digest(penstock, pack) == digest
            assert pack.cache_stats()["bad"] > 0
        with penstock.open(disk, cache=cache) as pack:
            assert epoch_digest(penstock, pack) == digest
            assert pack.cache_stats()["bad"] == pack.cache_stats()["misses"] == 0


# ---- a full disk


def test_a_disk_that_is_really_full(disk, digest, tmp_path):
    """A file system of 1 MiB in memory, of which something else takes most, and then all."""
    (disk.parent / "reader.py").write_text(READER)
    read = f"echo | {sys.executable} {disk.parent}/reader.py {disk} {tmp_path}/cache '' 1"
    script = f"""
        mount -t tmpfs -o size=1m none {tmp_path} && cd {tmp_path} || exit 77
        head -c 700000 /dev/zero > other
        {read}
        head -c 600000 /dev/zero > more
        {read}
    """
    done = subprocess.run(["unshare", "-Urm", "sh", "-c", script], capture_output=True, text=True,
                          timeout=100, check=False)
    if done.returncode == 77 or "unshare" in done.stderr:
        pytest.skip(f"no file systems of our own here: {done.stderr[:200]}")
    told = [json.loads(line) for line in done.stdout.splitlines() if line != "ready"]
    assert [digests for digests, _ in told] == [[digest], [digest]], done.stderr
    stored = told[0][1]["stored"]
    assert 0 < stored < 100 and told[0][1]["not_stored_disk"] > 0
    assert told[1][1]["hits"] + told[1][1]["tail_hits"] >= stored  # a block can be read in parts
    assert told[1][1]["not_stored_disk"] > 0 and told[1][1]["stored"] == 0


# ---- what is said


def test_arguments(disk, tmp_path):
    with pytest.raises(penstock.InvalidError, match="cache_bytes: there is no cache"):
        penstock.open(disk, cache_bytes=5)
    with pytest.raises(penstock.InvalidError, match="expected a local directory"):
        penstock.open(disk, cache="s3://bucket/cache")
    with pytest.raises(penstock.InvalidError, match="cache_bytes: expected a size like 2GiB"):
        penstock.open(disk, cache=tmp_path / "c", cache_bytes="much")
    with pytest.raises(penstock.NotFoundError, match="the parent directory does not exist"):
        penstock.open(disk, cache=tmp_path / "no" / "such")
    with pytest.raises(penstock.InvalidError, match="the pack is already open; pass it to open"):
        penstock.Loader(penstock.open(disk), 4, cache=tmp_path / "c")
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "mine").write_text("precious")
    with pytest.raises(penstock.ExistsError, match="is not empty"):
        penstock.open(disk, cache=tmp_path / "data")
    assert [p.name for p in (tmp_path / "data").iterdir()] == ["mine"]
    assert set(penstock.open(disk).cache_stats().values()) == {0}


# ---- the command line


def test_the_program_shows_and_clears_it(disk, tmp_path):
    cache = tmp_path / "cache"
    good("extract", disk, "-o", tmp_path / "out", "-s", "0-99", "--cache", cache,
         "--cache-bytes", "1GiB")
    told = good("cache", cache, "--json").json()
    (pack,) = told["packs"]
    assert pack["from"] == str(disk) and not pack["in_use"]
    assert pack["id"] == penstock.open(disk).id
    assert told["entries"] == pack["entries"] == len(entries(cache, ""))
    assert told["bytes"] == pack["bytes"] == sum(f.stat().st_size for f in entries(cache, ""))
    assert str(disk) in good("cache", cache).out
    with penstock.open(disk, cache=cache):
        assert good("cache", cache, "--json").json()["packs"][0]["in_use"]
        line = good("cache", cache, "--clear").out
        assert line == "removed 0 files (0 B); 1 pack still in use\n"
    told = good("cache", cache, "--clear", "--json").json()
    assert told["removed_bytes"] == pack["bytes"] and told["bytes"] == told["pack_count"] == 0
    assert os.listdir(cache) == ["penstock-cache"]


def test_the_program_measures_with_it(disk, tmp_path):
    pipeline = "decode | random_resized_crop 8 | tensor u8"
    told = good("doctor", disk, "--seconds", "1", "--batch", "16", "--pipeline", pipeline,
                "--cache", tmp_path / "cache", "--json").json()
    n_tails = len(entries(tmp_path / "cache", ".tail"))
    assert told["cache"]["misses"] + n_tails == told["cache"]["blocks_stored"]
    assert told["cache"]["from_origin_bytes"] > 0


def test_what_the_program_refuses(disk, tmp_path):
    result = run("extract", disk, "-o", tmp_path / "out", "--cache-bytes", "5")
    assert result.code != 0 and "--cache-bytes needs a cache; add --cache DIR" in result.message()
    result = run("cache", tmp_path / "nothing")
    assert result.code != 0 and "nothing" in result.message()
    assert not (tmp_path / "nothing").exists()
