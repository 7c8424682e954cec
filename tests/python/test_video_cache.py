# SPDX-License-Identifier: Apache-2.0
"""Kept videos of a store with a cache on this machine: what is asked of the server, and the same
batches always."""

import hashlib
import os
import random

import pytest
from cli_tools import good
from packet_tools import PLUGIN, encode, need_plugin
from py_tools import need_penstock
from remote_tools import options

need_plugin()
os.environ.setdefault("PENSTOCK_VIDEO_LIBRARY", str(PLUGIN))
penstock = need_penstock()
pytest.importorskip("numpy")

pytestmark = pytest.mark.threads

ADDRESS = "s3://packs/videos.pen"
MiB = 1 << 20
N = 6


@pytest.fixture(scope="module")
def root(tmp_path_factory):
    """A folder that is served: packs/videos.pen, whose videos have about 1 MiB each."""
    folder, videos = (tmp_path_factory.mktemp(name) for name in ("root", "videos"))
    encode(videos / "0.mkv", "-vf", "noise=alls=60:allf=t", "-c:v", "mjpeg", "-pix_fmt",
           "yuvj420p", "-q:v", "2", size="256x192", frames=40)
    for i in range(1, N):
        (videos / f"{i}.mkv").symlink_to("0.mkv")
    listed = videos / "list.csv"
    listed.write_text("".join(["path,label\n", *(f"{i}.mkv,{i}\n" for i in range(N))]))
    (folder / "packs").mkdir()
    good("pack", listed, "--root", videos, "-o", folder / "packs" / "videos.pen", "--video", "keep",
         "--order", "source", "--block-samples", "2")
    (videos / "frames.mkv").symlink_to("0.mkv")
    listed.write_text(f"path,label\nframes.mkv,{N}\n")  # one that is stored as images
    good("pack", listed, "--root", videos, "-o", folder / "packs" / "videos.pen", "--append",
         "--mode", "encode")
    return folder


@pytest.fixture(scope="module")
def disk(root):
    return root / "packs" / "videos.pen"


def epoch_digest(where, **settings):
    digest = hashlib.sha256()
    pipeline = "decode | clip 4 2 | random_resized_crop 16 | tensor u8"
    settings = {"order": "shuffle", "seed": 3, "threads": 2, "subset": [*range(N + 1)] * 4,
                **settings}
    with penstock.Loader(where, 4, pipeline=pipeline, output="numpy", **settings) as loader:
        for batch in loader:
            for part in batch:
                digest.update(part.tobytes())
    return digest.hexdigest()


@pytest.fixture(scope="module")
def digest(disk):
    return epoch_digest(disk)


@pytest.fixture
def server(s3, root, no_other_settings):
    return s3(directory=root)


def asked(server):
    """Ranges of shards that were read since the last time."""
    found = [entry["range"] for entry in server.log() if not entry["what"].endswith("/manifest")]
    server.control(reset=True)
    return found


def test_the_clips_are_those_of_the_disk(server, disk, digest, tmp_path):
    for settings in ({}, {"cache": tmp_path / "a"}, {"cache": tmp_path / "b", "io_threads": 3}):
        assert epoch_digest(ADDRESS, storage_options=options(server), **settings) == digest
    assert epoch_digest(disk, cache=tmp_path / "c") == digest


def test_all_videos_are_mixed(disk):
    """They are read by their own requests, so no blocks have to be kept together."""
    def samples(memory, **settings):
        with penstock.Loader(disk, 4, pipeline="decode | clip 4 2 | center_crop 16", threads=1,
                             memory=memory, output="numpy", return_info=True, **settings) as loader:
            return [s for batch in loader for s in batch.info.samples[batch.info.valid].tolist()]

    expected = samples("64MiB", order="random")
    assert samples("24MiB", shuffle=True) == samples("64MiB", shuffle=True) == expected


def test_each_byte_is_fetched_once(server, digest, tmp_path):
    cache = tmp_path / "cache"
    with penstock.open(ADDRESS, options(server), cache=cache) as pack:
        for epoch in range(3):
            assert epoch_digest(pack) == digest
            if epoch == 0:
                total = pack.info["total_bytes"]
                assert 5 * MiB < pack.cache_stats()["bytes_origin"] <= total
                asked(server)
        stats = pack.cache_stats()
        assert stats["bytes_origin"] <= total and not asked(server)
        assert stats["misses"] == len(list(cache.glob("*/??/*.piece")))
    with penstock.open(ADDRESS, options(server), cache=cache) as pack:
        assert epoch_digest(pack) == digest
        assert not asked(server) and not pack.cache_stats()["misses"]


def test_damaged_entries_change_nothing(server, digest, tmp_path):
    cache, dice = tmp_path / "cache", random.Random(4)
    for _ in range(3):
        assert epoch_digest(ADDRESS, storage_options=options(server), cache=cache) == digest
        for piece in cache.glob("*/??/*.piece"):
            data = bytearray(piece.read_bytes())
            for at in range(0, len(data), 20000):
                data[at + dice.randrange(min(20000, len(data) - at))] ^= 1 << dice.randrange(8)
            piece.write_bytes(data)
    with penstock.open(ADDRESS, options(server), cache=cache) as pack:
        assert epoch_digest(pack) == digest
        assert pack.cache_stats()["bad"]


def test_damage_on_the_way_changes_nothing(server, digest, tmp_path):
    server.control(chaos="error=0.05,throttle=0.05,corrupt=0.1", seed=11)
    for _ in range(2):
        found = epoch_digest(ADDRESS, storage_options=options(server), cache=tmp_path / "cache",
                             cache_bytes="4MiB")
        assert found == digest


def test_the_index_of_a_block_is_one_request(server):
    """Threads that need it at the same time wait for it; a clip of near frames is one request."""
    with penstock.open(ADDRESS, options(server)) as pack:
        epoch_digest(pack)
        blocks, clips = pack.info["n_blocks"], 4 * (N + 1)
        found = asked(server)
        stats = pack.remote_stats()
    repeated = stats["retries"] + stats["hedges"]
    assert len(found) <= pack.info["n_shards"] + blocks + clips + repeated
