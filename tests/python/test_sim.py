# SPDX-License-Identifier: Apache-2.0
"""The simulator: from numbers, from a pack, what it refuses, and the bench that runs it."""

import json
import re
import subprocess
import sys

import pytest
from cli_tools import good, make_folder
from sim_tools import ROOT, refused, run, simulated

NUMBERS = ("samples=2e6", "sample_bytes=20000", "block_samples=32")
QUICK = ("seconds=3", "step_ms=50", "batch=64")
BENCH = ROOT / "bench" / "simulate.py"
PAGE = ROOT / "docs" / "explanation" / "simulator.md"


@pytest.fixture(scope="module")
def pack(tmp_path_factory):
    folder = tmp_path_factory.mktemp("simulate")
    make_folder(folder / "in", each=32)
    good("pack", folder / "in", "-o", folder / "set.pen", "--block-samples", "4")
    return folder / "set.pen"


def test_the_result_holds_together():
    record = simulated(*NUMBERS, *QUICK, nodes=3)
    assert record["nodes"] == record["nodes_simulated"] == 3
    assert record["ranks"] == 8 and record["epoch"] == 0 and record["seconds"] == 3
    assert "note" not in record and "pack" not in record
    order = record["order"]
    assert order["blocks"] == 62500 and order["pack_bytes"] == 40_000_000_000
    assert order["shuffle_buffer"] == 3072 * 32 and order["fetch_unit"] == "blocks"
    assert "memory_for_entire_blocks_bytes" not in order
    assert 0.99 < order["fetched_over_pack"] < 1.01
    assert 0.99 < order["requests_per_block"] < 1.2
    training = record["training"]
    assert training["samples_per_second_without_waiting"] == 3 * 8 * 64 / 0.05
    assert training["samples_per_second"] <= training["samples_per_second_without_waiting"] * 1.001
    median, last = (training[f"first_batch_{which}_seconds"] for which in ("median", "last_rank"))
    assert 0.2 < median <= last < 3
    requests = record["requests_simulated"]
    assert requests["made"] >= sum(requests[f"for_{what}"] for what in
                                   ("blocks", "block_indexes", "shard_indexes"))
    assert set(requests) >= {"retries", "hedges", "throttled"}
    assert 0 <= requests["hedges_that_won"] <= requests["hedges"]
    memory = record["memory_of_a_rank"]
    assert 0 < memory["peak_block_bytes"] <= memory["available_bytes"]
    assert record["requests_per_second_and_prefix"]["limit"] == 5500
    assert record["constants"]["latency_ms"] == 100


def test_arguments_are_the_constants_of_the_result():
    keys = {"batch": 32, "step_ms": 40, "decode_ms": 1.5, "memory": "1GiB", "prefetch": 3,
            "in_flight": 99, "cache_bytes": "3TiB", "sticky": 1, "latency_ms": 20,
            "connect_ms": 5, "connection_mb": 80.5, "node_gbit": 3.2, "store_gbit": 40,
            "prefixes": 16, "failures": 0.5, "spread": 2, "opened": 1, "seed": 12345678901}
    record = simulated(*NUMBERS, "seconds=1", ranks=2, epoch=1, prefix_rate=1e3,
                       shuffle_buffer=3072, **keys)
    assert record["constants"] == {
        "batch": 32, "step_ms": 40, "decode_ms": 1.5, "memory_bytes": 1 << 30, "prefetch": 3,
        "in_flight": 99, "cache_bytes": 3 << 40, "sticky": True, "latency_ms": 20,
        "latency_p99_ms": 60, "connect_ms": 5, "connection_mb_per_second": 80.5,
        "node_gbit_per_second": 3.2, "store_gbit_per_second": 40, "prefixes": 16,
        "failures_per_1000_requests": 0.5, "spread_seconds": 2, "opened": True,
        "seed": 12345678901}
    assert (record["ranks"], record["epoch"]) == (2, 1)
    assert record["requests_per_second_and_prefix"]["limit"] == 1000
    assert record["order"]["shuffle_buffer"] == 3072
    assert record["order"]["fetched_over_pack_second_epoch"] == 0  # the cache has all of it


def test_the_same_arguments_give_the_same_numbers():
    arguments = (*NUMBERS, *QUICK, "failures=5")
    first = run(*arguments).stdout
    assert first == run(*arguments).stdout
    assert first != run(*arguments, "seed=1").stdout


def test_little_memory_says_how_much_is_wanted():
    order = simulated(*NUMBERS, *QUICK, memory="512MiB", ranks=1)["order"]
    assert order["fetch_unit"] != "blocks"
    wanted = order["memory_for_entire_blocks_bytes"]
    assert simulated(*NUMBERS, *QUICK, memory=wanted, ranks=1)["order"]["fetch_unit"] == "blocks"


def test_sizes_come_from_a_pack(pack):
    info = good("info", pack, "--json").json()
    record = simulated(pack=pack, ranks=1, batch=8, step_ms=10)
    assert record["pack"] == str(pack)
    assert record["order"]["samples"] == info["samples"] == 64
    assert record["order"]["blocks"] == info["blocks"] == 16
    assert record["requests_simulated"]["for_blocks"] == 16
    assert record["order"]["fetched_over_pack"] == 1


def test_little_effort_is_said():
    record = simulated("samples=2e8", "sample_bytes=20000", *QUICK, nodes=500, effort=1)
    assert record["nodes"] == 500 and 4 <= record["nodes_simulated"] < 500
    assert record["note"] == "fewer seconds than requested; see effort" and record["seconds"] < 3
    assert record["order"]["is_exact"] is False


@pytest.mark.parametrize(("arguments", "words"), [
    (("node=8",), "unknown key node; did you mean nodes?"),
    (("latency=8",), "unknown key latency; did you mean latency_ms?"),
    (("gpus=8",), "unknown key gpus; --help lists all"),
    (("nodes",), "nodes: expected KEY=VALUE"),
    (("nodes=",), "nodes=: expected KEY=VALUE"),
    (("samples=many",), "samples=many: expected a whole number"),
    (("samples=1.5",), "samples=1.5: expected a whole number"),
    (("nodes=1e10",), "nodes=1e10: expected a whole number, at most 4294967295"),
    (("memory=2GX",), "memory=2GX: expected a size such as 512MiB"),
    (("memory=99999999999999TiB",), "expected a size such as 512MiB"),
    (("step_ms=nan",), "step_ms=nan: expected a number"),
    (("latency_ms=-3",), "latency_ms: expected 0 to 3600000, found -3"),
    (("failures=1001",), "failures: expected 0 to 1000, found 1001"),
    (("node_gbit=-1",), "node_gbit=-1: expected a number from 0"),
    (("node_gbit=1e7",), "node_gbit: expected 0 to 1000000, found 10000000"),
    (("latency_p99_ms=1",), "latency_p99_ms: expected no less than latency_ms, 100, found 1"),
    (("step_ms=0",), "step_ms and decode_ms: expected more than 0"),
    (("nodes=60000", "ranks=1000"), "60000 nodes of 1000 ranks: expected at most 1048576 ranks"),
])
def test_wrong_arguments_are_refused(arguments, words):
    assert words in refused(*NUMBERS, *arguments, code=2)


@pytest.mark.parametrize(("arguments", "words"), [
    ((), "expected a pack, or samples and sample_bytes: pack=NAME.pen, or samples=1e9 "),
    (("samples=1e9",), "expected a pack, or samples and sample_bytes"),
    (("pack=x.pen", "samples=1e9"), "pack=x.pen: expected no samples and sample_bytes"),
    (("pack=none.pen",), "no such file"),
    ((*NUMBERS, "memory=1MiB"), "increase the memory"),
    ((*NUMBERS, "nodes=1000", "batch=4096"), "at least one batch of samples for each rank"),
])
def test_what_cannot_be_simulated_is_refused(arguments, words):
    assert words in refused(*arguments, code=1)


def test_help_lists_the_keys():
    done = run("--help")
    assert done.returncode == 0 and done.stderr == ""
    keys = dict(re.findall(r"^  ([a-z0-9_]+)=(\S+)  +\S", done.stdout, re.M))
    assert len(keys) == 32 and (keys["memory"], keys["nodes"]) == ("2GiB", "1")
    assert all(len(line) <= 100 for line in done.stdout.splitlines())
    record = simulated(*NUMBERS, *QUICK)
    given = [f"{key}={value}" for key, value in keys.items()
             if key not in ("pack", "samples", "sample_bytes")]
    assert simulated(*NUMBERS, *given, *QUICK) == record


def test_the_page_has_each_member(pack):
    page = PAGE.read_text()
    for record in (simulated(pack=pack, ranks=1, batch=8, cache_bytes="1GiB", effort=0.001),
                   simulated(*NUMBERS, *QUICK, memory="512MiB", ranks=1)):
        for name, value in record.items():
            assert f"`{name}`" in page, name
            for inner in value if isinstance(value, dict) and name != "constants" else ():
                assert f"`{inner}`" in page, inner


def test_the_bench_makes_a_table_and_checks_the_model():
    def check(rate):
        return subprocess.run([sys.executable, BENCH, "check", "--rate", rate, "--first", "1.5",
                               "--within", "0.5", "--", *NUMBERS, "ranks=1", "batch=64",
                               "step_ms=200"], check=False, capture_output=True, text=True)

    good_run = check("320")
    assert good_run.returncode == 0, good_run.stderr
    assert "samples per second: simulated 3" in good_run.stdout
    assert "measured 320, ratio " in good_run.stdout
    assert check("3200").returncode == 1


def test_the_bench_takes_all_from_a_record(tmp_path):
    """What `bench/remote_speed.py latency` writes: the local disk's rate, the store's, curl's."""
    lines = [
        {"kind": "parameters", "photographs": 100,
         "scenario": {"copies": 20, "batch": 50, "delay_ms": 110}},
        {"kind": "blocks", "count": 125, "samples": 16, "mean_bytes": 1600000.5},
        {"kind": "bandwidth", "bytes": 400e6, "seconds": 1.0},
        {"kind": "turn", "loader": "penstock-local", "samples": 1000, "seconds": 1.0,
         "first_seconds": 0.09},
        {"kind": "turn", "loader": "penstock-s3", "samples": 1010, "seconds": 1.0,
         "first_seconds": 0.7},
    ]
    record = tmp_path / "remote-latency.jsonl"
    record.write_text("".join(json.dumps(line) + "\n" for line in lines))
    done = subprocess.run([sys.executable, BENCH, "check", "--record", record],
                          check=False, capture_output=True, text=True)
    assert "decode_ms=50.0 latency_ms=110" in done.stdout, done.stderr
    assert "node_gbit=3.2" in done.stdout
    assert "measured 1010" in done.stdout and "measured 0.7 s" in done.stdout
    assert done.returncode == 0, done.stdout
