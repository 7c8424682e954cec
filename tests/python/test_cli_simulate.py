# SPDX-License-Identifier: Apache-2.0
"""`penstock simulate`: from numbers, from a pack, and what it refuses."""

import json
import pathlib
import subprocess
import sys

import pytest
from cli_tools import ROOT, good, make_folder, run, usage_error

NUMBERS = ("simulate", "--samples", "2e6", "--sample-bytes", "20000", "--block-samples", "32")
QUICK = ("--seconds", "3", "--step-ms", "50", "--batch", "64")


@pytest.fixture(scope="module")
def pack(tmp_path_factory):
    folder = tmp_path_factory.mktemp("simulate")
    make_folder(folder / "in", each=32)
    good("pack", folder / "in", "-o", folder / "set.pen", "--block-samples", "4")
    return folder / "set.pen"


def test_the_result_holds_together():
    record = good(*NUMBERS, *QUICK, "--nodes", "3", "--json").json()
    assert record["simulated"].startswith("3 nodes of 8 ranks on a pack of 2,000,000 samples")
    assert record["nodes"] == record["nodes_simulated"] == 3
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


def test_the_same_options_give_the_same_numbers():
    first = good(*NUMBERS, *QUICK, "--failures", "5").out
    assert first == good(*NUMBERS, *QUICK, "--failures", "5").out
    assert first != good(*NUMBERS, *QUICK, "--failures", "5", "--seed", "1").out
    assert first.startswith("simulated ")


def test_sizes_come_from_a_pack(pack):
    info = good("info", pack, "--json").json()
    record = good("simulate", pack, "--ranks", "1", "--batch", "8", "--step-ms", "10",
                  "--json").json()
    assert record["pack"] == str(pack)
    assert record["order"]["samples"] == info["samples"] == 64
    assert record["order"]["blocks"] == info["blocks"] == 16
    assert record["requests_simulated"]["for_blocks"] == 16
    assert record["order"]["fetched_over_pack"] == 1


def test_a_real_run_stands_beside_it():
    record = good(*NUMBERS, *QUICK, "--measured-rate", "5120", "--measured-first", "0.5",
                  "--json").json()
    beside = record["comparison_with_a_real_run"]
    rate = record["training"]["samples_per_second"]
    assert beside["samples_per_second_ratio"] == pytest.approx(rate / 5120, rel=1e-4)
    assert beside["first_batch_measured_seconds"] == 0.5
    assert "comparison_with_a_real_run" not in good(*NUMBERS, *QUICK, "--json").json()


def test_little_effort_is_said():
    text = good("simulate", "--samples", "2e8", "--sample-bytes", "20000", *QUICK,
                "--nodes", "500", "--effort", "1").out
    assert "of the nodes as a sample" in text.splitlines()[0]


@pytest.mark.parametrize(("args", "words"), [
    ((), "simulate needs a pack, or --samples N and --sample-bytes N"),
    (("--samples", "1e9"), "simulate needs a pack, or --samples N and --sample-bytes N"),
    (("x.pen", "--samples", "1e9"), "leave out x.pen"),
    (("--samples", "many"), "--samples many: expected a number from 1 to"),
    (("--latency-ms", "-3"), "--latency-ms -3: expected a number from 0 to 3600000"),
    (("--failures", "1001"), "expected a number from 0 to 1000"),
    (("--gpus", "8"), "did you mean --ranks?"),
])
def test_wrong_use_is_told(args, words):
    assert words in usage_error("simulate", *args)


@pytest.mark.parametrize(("args", "words"), [
    (("--latency-p99-ms", "1"), "latency p99: expected no less than the median"),
    (("--step-ms", "0"), "more than 0 for computing or decoding"),
    (("--memory", "1MiB"), "increase the memory"),
    (("--nodes", "60000", "--ranks", "1000"), "at most 1048576 on all nodes"),
    (("--nodes", "1000", "--batch", "4096"), "at least one batch of samples for each rank"),
])
def test_what_cannot_be_simulated_is_told(args, words):
    result = run(*NUMBERS, *args)
    assert result.code == 1
    assert words in result.message()


def test_nothing_to_simulate():
    result = run("simulate", "--json")
    assert result.code == 2
    assert result.json()["error"]["status"] == "E_INVALID"
    assert result.message() == result.json()["error"]["message"]


def test_a_pack_that_is_not_there_is_told(tmp_path):
    result = run("simulate", tmp_path / "none.pen")
    assert result.code == 1
    assert "no such file" in result.message()


def test_the_bench_makes_a_table_and_checks_the_model():
    script = pathlib.Path(ROOT) / "bench" / "simulate.py"
    options = (*NUMBERS[1:], "--ranks", "1", "--batch", "64", "--step-ms", "200")

    def check(rate):
        return subprocess.run([sys.executable, script, "check", "--rate", rate, "--first", "1.5",
                               "--within", "0.5", "--", *options],
                              check=False, capture_output=True, text=True)

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
    script = pathlib.Path(ROOT) / "bench" / "simulate.py"
    done = subprocess.run([sys.executable, script, "check", "--record", record],
                          check=False, capture_output=True, text=True)
    assert "--decode-ms 50.0 --latency-ms 110" in done.stdout, done.stderr
    assert "--node-gbit 3.2" in done.stdout
    assert "measured 1010" in done.stdout and "measured 0.7 s" in done.stdout
    assert done.returncode == 0, done.stdout
