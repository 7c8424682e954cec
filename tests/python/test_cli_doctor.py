# SPDX-License-Identifier: Apache-2.0
"""`penstock doctor`: what it prints holds together: rates, the bottleneck, what to change, and how
many accelerators can be fed."""

import json
import pathlib
import re
import signal
import subprocess
import sys
import time

import pytest
from cli_tools import PENSTOCK, good, run
from PIL import Image
from py_tools import jpeg, need_penstock

SHORT = ("--seconds", "1", "--batch", "8", "--threads", "2", "--pipeline",
         "decode | random_resized_crop 32 | tensor u8")
READING = "reading_alone_samples_per_second"


@pytest.fixture(scope="module")
def pack(tmp_path_factory):
    folder = tmp_path_factory.mktemp("doctor")
    for i in range(40):
        path = folder / "in" / f"c{i % 3}" / f"{i}.jpg"
        path.parent.mkdir(parents=True, exist_ok=True)
        Image.new("RGB", (180 + i, 164), (i, 2 * i, 3 * i)).save(path)
    good("pack", folder / "in", "-o", folder / "set.pen")
    return folder / "set.pen"


@pytest.fixture(scope="module")
def record(pack):
    return good("doctor", pack, *SHORT, "--json").json()


def test_it_counts_and_finds_the_bottleneck(record):
    assert record["order"] == "shuffle" and "requests" not in record
    assert record["bottleneck"] != "consumer" and "accelerators" not in record
    assert record["wait_percent"] > 50
    reading = record[READING]
    assert set(reading) - {"read_cold", "read_half_threads"} == {"read"}
    assert all(rate > 0 for rate in reading.values())
    by_name = {one["name"]: one for one in record["stages"]}
    assert set(by_name) - {"read_cold", "consumer"} == {"read", "verify", "decode", "resample",
                                                        "store"}
    assert by_name["read"]["samples_per_second"] == reading["read"]
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


def test_clips(tmp_path):
    penstock = need_penstock()
    with penstock.Writer(tmp_path / "clips.pen", {"video": "clip", "label": "i64"}) as writer:
        for i in range(12):
            writer.add(key=str(i), video=[jpeg(i * 9 + k) for k in range(9)], label=i)
    record = good("doctor", tmp_path / "clips.pen", "--seconds", "1", "--batch", "4", "--threads",
                  "2", "--pipeline", "decode | clip 6 2 n=2 | resize 16,20 | three_crop 8",
                  "--json").json()
    stages = {one["name"]: one["samples_per_second"] for one in record["stages"]}
    assert all(rate > 0 for rate in stages.values())
    # Frames are really decoded: that takes a thousand times as long as their checksums.
    assert stages["decode"] * 10 < stages["verify"]
    assert record["samples"] >= 12


def test_the_text_has_what_the_json_has(pack):
    text = good("doctor", pack, *SHORT, "--consumer", "40").out
    lines = text.splitlines()
    assert [line.split()[0] for line in lines[:2]] == ["samples", "bottleneck"]
    assert lines[1].endswith(" consumer")
    at = {line: i for i, line in enumerate(lines)}
    assert at["stages"] < at["advice"] < at["accelerators"] < at["wait for a batch"]
    assert any(line.split()[:1] == ["decode"] for line in lines)
    assert all(len(line) <= 80 for line in lines if not line.startswith(("pipeline ", "pack ")))
    sentence = lines[at["advice"] + 3]
    assert sentence.startswith("    Nothing to change in loading: it could deliver about ")


def test_a_training_step(pack):
    record = good("doctor", pack, *SHORT, "--consumer", "62.5", "--json").json()
    assert record["bottleneck"] == "consumer" and record["samples_per_second"] <= 8 / 0.0625
    assert [one["change"] for one in record["advice"]] == ["consumer"]
    by_name = {one["name"]: one for one in record["stages"]}
    assert by_name["consumer"]["ratio"] == 1 and by_name["decode"]["ratio"] > 1
    accelerators = record["accelerators"]
    assert record["consumer_ms"] == accelerators["consumer_ms"] == 62.5
    assert accelerators["samples_per_second_each"] == 128
    assert accelerators["is_enough"] == (accelerators["utilization_percent"] >= 90)
    fed = accelerators["samples_per_second_most"] / (0.9 * 128)
    assert accelerators["count"] == int(fed)
    assert record["memory_copy_mb_per_second"] > 100


def catches(process, number):
    status = pathlib.Path(f"/proc/{process.pid}/status").read_text()
    return int(re.search(r"SigCgt:\t(\w+)", status)[1], 16) >> (number - 1) & 1


def test_an_interrupted_measurement_has_no_result(pack):
    with subprocess.Popen([PENSTOCK, "doctor", pack, "--seconds", "500", "--json"], text=True,
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
    result = run("doctor", pack, "--pipeline", "decode | center_cro 32")
    assert result.code == 1
    assert "did you mean 'center_crop'" in result.message()


def test_a_pack_with_a_cache_is_read_by_blocks(pack, tmp_path):
    """Read alone is as fast as a loader that fetches blocks, many at a time."""
    record = good("doctor", pack, "--seconds", "1", "--batch", "8", "--threads", "2", "--cache",
                  tmp_path / "cache", "--json").json()
    assert set(record[READING]) == {"read", "read_half_threads"}
    assert {one["name"] for one in record["stages"]} >= {"fetch", "read", "decode"}


def test_names_in_json_have_units_and_no_spaces(record):
    def names(value):
        for key, inner in value.items() if isinstance(value, dict) else ():
            yield key
            yield from names(inner)

    for name in names(record):
        assert name.replace("_", "").isalnum(), name
    assert not {"p50", "read", "first_batch", "latency", "step"} & (
        set(names(record)) - set(record[READING]))


def thread_names(pid):
    names = []
    for task in pathlib.Path(f"/proc/{pid}/task").iterdir():
        try:
            names.append((task / "comm").read_text().strip())
        except OSError:  # it has ended
            pass
    return names


def test_the_loader_is_closed_before_memory_is_copied(pack):
    with subprocess.Popen([PENSTOCK, "doctor", pack, *SHORT, "--json"], stdout=subprocess.DEVNULL,
                          stderr=subprocess.PIPE) as process:
        names, end = [], time.monotonic() + 60
        while "pen-copy" not in names and process.poll() is None:
            assert time.monotonic() < end
            time.sleep(0.01)
            names = thread_names(process.pid)
        process.communicate(timeout=60)
    # A thread has the name of the program until it sets its own.
    assert "pen-copy" in names and not {"pen-decode", "pen-read"} & set(names), names


def test_a_trace_is_read_by_the_package(tmp_path):
    trace = tmp_path / "run.json"
    events = [{"ph": "X", "name": "run_batch", "ts": i, "dur": 9e5, "pid": 1, "tid": 1}
              for i in range(3)]
    trace.write_text("[\n" + ",\n".join(map(json.dumps, events)) + "\n]\n")
    refused = run("doctor", trace)
    assert refused.code == 1
    assert f"run 'python3 -m penstock doctor {trace}'" in refused.message()
    need_penstock()
    done = subprocess.run([sys.executable, "-m", "penstock", "doctor", str(trace)], text=True,
                          capture_output=True, timeout=120, check=True)
    assert re.search(r"^ +run_batch +3 +900 ms", done.stdout, re.M), done.stdout


def test_a_pack_that_is_not_there(tmp_path):
    assert run("doctor", tmp_path / "none.pen").code == 1
