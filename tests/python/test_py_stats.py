# SPDX-License-Identifier: Apache-2.0
"""The counters of a loader: stats(), metrics(), and what is merged over ranks."""

import threading
import time

import pytest
from py_tools import jpeg, need_penstock, write_pack

penstock = need_penstock()
pytest.importorskip("numpy")

N, BATCH = 96, 8
STAGES = ("fetch", "read", "verify", "decode", "resample", "store")


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    path = tmp_path_factory.mktemp("packs") / 'a "b" \\.pen'
    write_pack(penstock, path, N, image=jpeg).close()
    return path


@pytest.fixture
def loader(path):
    with penstock.Loader(path, BATCH, pipeline="decode | center_crop 16", output="numpy",
                         threads=2) as loader:
        yield loader


def test_an_epoch_and_all(loader):
    for _ in range(2):
        for _ in loader:
            pass
    stats = loader.stats()
    assert (stats["batches"], stats["samples"]) == (2 * N // BATCH, 2 * N)
    assert (stats["epoch"]["batches"], stats["epoch"]["samples"]) == (N // BATCH, N)
    assert stats["bytes_read"] == 2 * stats["epoch"]["bytes_read"] > 0
    assert sum(stats["wait_buckets"]) == 2 * N // BATCH
    assert sum(stats["epoch"]["wait_buckets"]) == N // BATCH
    for stage in STAGES:
        assert (stats[f"{stage}_seconds"] > 0) == (stage != "fetch"), stage


def test_waits_of_a_caller_that_is_slower(loader):
    for _ in range(4):  # other programs may take the time of an epoch
        for _ in loader:
            time.sleep(0.02)
        epoch = loader.stats()["epoch"]
        if (epoch["wait_share"] < 0.5 and epoch["ready_mean"] > 1
                and epoch["decode_idle_seconds"] > epoch["decode_seconds"]):
            break
    assert epoch["elapsed_seconds"] > 0.02 * N / BATCH
    assert epoch["wait_share"] < 0.5 and epoch["ready_mean"] > 1
    assert epoch["wait_p50_seconds"] <= epoch["wait_p95_seconds"] <= epoch["wait_max_seconds"]
    assert epoch["decode_idle_seconds"] > epoch["decode_seconds"]


def test_the_bottleneck_is_named(loader):
    assert loader.stats()["bottleneck"] == "unknown"
    for _ in loader:
        time.sleep(0.1)
    epoch = loader.stats()["epoch"]
    assert epoch["bottleneck"] == "consumer" and epoch["wait_share"] < 0.5


@pytest.mark.threads
def test_another_thread_reads_while_threads_start(path):
    """From the first call on, the counters never go back."""
    for _ in range(8):
        seen, ended = [], threading.Event()
        with penstock.Loader(path, BATCH, pipeline="decode | center_crop 16", output="numpy",
                             threads=3) as loader:

            def read(loader=loader, seen=seen, ended=ended):
                while not ended.is_set():
                    seen.append(loader.stats())

            reader = threading.Thread(target=read)
            reader.start()
            try:
                for _ in loader:
                    pass
            finally:
                ended.set()
                reader.join(60)
            seen.append(loader.stats())
        assert seen[-1]["batches"] == N // BATCH
        for name in ("batches", "wait_seconds", "decode_seconds", "decode_idle_seconds"):
            values = [stats[name] for stats in seen]
            assert values == sorted(values), name


def test_before_the_first_batch(loader):
    stats = loader.stats()
    assert stats["batches"] == stats["wait_seconds"] == stats["wait_p99_seconds"] == 0
    assert stats["epoch"]["elapsed_seconds"] == stats["epoch"]["wait_share"] == 0


def test_metrics_can_be_parsed(loader, path):
    parser = pytest.importorskip("prometheus_client.openmetrics.parser")
    for _ in loader:
        pass
    text = loader.metrics()
    families = {f.name: f for f in parser.text_string_to_metric_families(text)}
    stats = loader.stats()
    batches = families["penstock_batches"].samples[0]
    assert (batches.name, batches.value) == ("penstock_batches_total", N // BATCH)
    assert batches.labels == {"pack": str(path), "rank": "0"}
    assert families["penstock_slots"].type == "gauge"
    stages = {s.labels["stage"]: s.value for s in families["penstock_stage_seconds"].samples}
    assert stages == {stage: stats[f"{stage}_seconds"] for stage in STAGES}
    waits = families["penstock_wait_seconds"]
    assert waits.type == "histogram"
    count = [s.value for s in waits.samples if s.name.endswith("_count")]
    last = [s.value for s in waits.samples if s.labels.get("le") == "+Inf"]
    assert count == last == [N // BATCH]


def test_the_slowest_rank_is_named():
    ranks = [
        {"samples": 5, "bytes_read": 10, "substituted": 0, "wait_seconds": w, "wait_share": w / 9}
        for w in (0.5, 3.0, 0.25)
    ]
    merged = penstock.merge_stats(ranks)
    assert merged == {
        "ranks": 3, "samples": 15, "bytes_read": 30, "substituted": 0, "wait_seconds_max": 3.0,
        "wait_seconds_min": 0.25, "wait_share_max": 3.0 / 9, "slowest_rank": 1, "straggler": 1,
        "bottleneck": "unknown",
    }
    assert penstock.merge_stats([ranks[0], ranks[2]])["straggler"] is None


# ---- report


def test_a_report_names_the_bottleneck_and_what_to_change(loader):
    assert loader.report().startswith("Bottleneck: unknown\n")
    assert loader.report().endswith("\n\nNo batch has been delivered yet.\n")
    for _ in loader:
        time.sleep(0.1)
    text = loader.report()
    assert text.startswith("Bottleneck: consumer (the training step)\n")
    assert "Nothing to change in loading" in text.replace("\n", " ").replace("  ", "")
    assert all(len(line) <= 80 for line in text.splitlines())


def test_a_slow_transform_is_the_bottleneck(path):
    def slow(batch):
        time.sleep(0.05)
        return batch

    with penstock.Loader(path, BATCH, pipeline="decode | center_crop 16", output="numpy",
                         transform=slow) as loader:
        for _ in loader:
            pass
        epoch = loader.stats()["epoch"]
        assert epoch["bottleneck"] == loader.stats()["bottleneck"] == "transform"
        assert epoch["transform_seconds"] >= 0.05 * len(loader)
        text = loader.report()
    assert text.startswith("Bottleneck: transform (the function transform=)\n")
    with pytest.raises(penstock.ClosedError):
        loader.report()


def test_a_report_of_several_ranks_names_the_straggler(loader):
    for _ in loader:
        pass
    mine = loader.stats()["epoch"]
    slow = mine | {"wait_seconds": 90.0, "wait_share": 0.9, "bottleneck": "read"}
    fast = mine | {"wait_seconds": 1.0, "wait_share": 0.01}
    text = loader.report([fast, slow, fast])
    assert "\nStraggler: rank 1 waited 90.0 s for batches, the fastest rank 1.0 s.\n" in text
    assert "Its bottleneck is read" in text
    assert "no rank is a straggler" in loader.report([fast, fast])
    with pytest.raises(penstock.InvalidError, match="ranks: expected"):
        loader.report([3])


@pytest.mark.parametrize("ranks", [[], None, [3], [{"samples": 1}]])
def test_what_cannot_be_merged(ranks):
    with pytest.raises(penstock.InvalidError, match=r"ranks: expected .*stats\(\)"):
        penstock.merge_stats(ranks)
