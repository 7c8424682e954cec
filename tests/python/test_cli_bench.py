# SPDX-License-Identifier: Apache-2.0
"""`penstock bench`: what it prints holds together."""

import pathlib
import re
import signal
import subprocess
import time

import pytest
from cli_tools import PENSTOCK, good, run
from PIL import Image
from py_tools import jpeg, need_penstock


@pytest.fixture(scope="module")
def pack(tmp_path_factory):
    folder = tmp_path_factory.mktemp("bench")
    for i in range(40):
        (folder / "in" / f"c{i % 3}").mkdir(parents=True, exist_ok=True)
        Image.new("RGB", (80 + i, 64), (i, 2 * i, 3 * i)).save(folder / "in" / f"c{i % 3}/{i}.jpg")
    good("pack", folder / "in", "-o", folder / "set.pen")
    return folder / "set.pen"


@pytest.fixture(scope="module")
def record(pack):
    return good("bench", pack, "--seconds", "1", "--batch", "8", "--threads", "2", "--pipeline",
                "decode | random_resized_crop 32 | tensor", "--json").json()


STAGES = {"read", "verify", "decode", "resample", "decode_and_resample"}


def test_bench_counts_and_finds_the_bottleneck(record):
    assert record["order"] == "shuffle" and "requests" not in record
    stages = record["stages_alone_samples_per_second"]
    assert set(stages) - {"read_cold", "read_half_threads"} == STAGES
    assert all(rate > 0 for rate in stages.values())
    by_name = {one["name"]: one for one in record["stages"]}
    assert set(by_name) - {"read_cold", "consumer"} == {"read", "verify", "decode", "resample",
                                                        "store"}
    assert by_name["decode"]["samples_per_second"] == stages["decode"]
    assert record["confidence"] == ("close" if "second" in record else "clear")
    if record["bottleneck"] in by_name:
        assert by_name[record["bottleneck"]]["ratio"] == 1
    gains = [one["expected_gain"] for one in record["advice"]]
    assert gains == sorted(gains, reverse=True) and all(gain >= 1 for gain in gains)
    assert record["samples"] >= 40 and record["complete_passes"] >= 1
    rate = record["samples"] / record["seconds"]
    assert abs(record["samples_per_second"] - rate) <= rate * 1e-3
    waits = record["wait_for_a_batch"]
    assert 0 <= waits["p50_ms"] <= waits["p95_ms"] <= waits["p99_ms"] <= waits["max_ms"]


def test_bench_of_clips(tmp_path):
    penstock = need_penstock()
    with penstock.Writer(tmp_path / "clips.pen", {"video": "clip", "label": "i64"}) as writer:
        for i in range(12):
            writer.add(key=str(i), video=[jpeg(i * 9 + k) for k in range(9)], label=i)
    record = good("bench", tmp_path / "clips.pen", "--seconds", "1", "--batch", "4", "--threads",
                  "2", "--pipeline", "decode | clip 6 2 n=2 | resize 16,20 | three_crop 8",
                  "--json").json()
    stages = record["stages_alone_samples_per_second"]
    assert all(rate > 0 for rate in stages.values())
    # Frames are really decoded: that takes a thousand times as long as their checksums.
    assert stages["decode"] * 10 < stages["verify"]
    assert record["samples"] >= 12


def test_a_slow_consumer_is_the_bottleneck(pack):
    record = good("bench", pack, "--seconds", "1", "--batch", "8", "--consumer", "100", "--json",
                  "--pipeline", "decode | center_crop 32 | tensor").json()
    assert record["bottleneck"] == "consumer"
    assert record["samples_per_second"] <= 80


def catches(process, number):
    status = pathlib.Path(f"/proc/{process.pid}/status").read_text()
    return int(re.search(r"SigCgt:\t(\w+)", status)[1], 16) >> (number - 1) & 1


def test_an_interrupted_measurement_has_no_result(pack):
    with subprocess.Popen([PENSTOCK, "bench", pack, "--seconds", "500", "--json"], text=True,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        for _ in range(1000):
            if catches(process, signal.SIGINT):
                break
            time.sleep(0.01)
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=60)
    assert process.returncode == 130, err
    assert "interrupted; the measurement is not complete" in err
    assert "samples_per_second" not in out


def test_a_wrong_pipeline_is_answered(pack):
    result = run("bench", pack, "--pipeline", "decode | center_cro 32")
    assert result.code == 1
    assert "did you mean 'center_crop'" in result.message()


def test_a_pack_with_a_cache_is_read_by_blocks(pack, tmp_path):
    """Read alone is as fast as a loader that fetches blocks, many at a time."""
    record = good("bench", pack, "--seconds", "1", "--batch", "8", "--threads", "2", "--cache",
                  tmp_path / "cache", "--json").json()
    stages = record["stages_alone_samples_per_second"]
    assert set(stages) == STAGES | {"read_half_threads"}
    assert {one["name"] for one in record["stages"]} >= {"fetch", "read", "decode"}


def test_names_in_json_have_units_and_no_spaces(pack, record):
    def names(value):
        for key, inner in value.items() if isinstance(value, dict) else ():
            yield key
            yield from names(inner)

    for name in names(record):
        assert name.replace("_", "").isalnum(), name
    assert not {"p50", "read", "first_batch", "latency", "step"} & (
        set(names(record)) - set(record["stages_alone_samples_per_second"]))
