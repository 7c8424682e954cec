# SPDX-License-Identifier: Apache-2.0
"""`penstock doctor`: the bottleneck, what to change, and how many accelerators can be fed."""

import json
import pathlib
import re
import subprocess
import sys
import time

import pytest
from cli_tools import PENSTOCK, good, run
from PIL import Image
from py_tools import need_penstock

SHORT = ("--seconds", "1", "--batch", "8", "--threads", "2", "--pipeline",
         "decode | random_resized_crop 32 | tensor u8")


@pytest.fixture(scope="module")
def pack(tmp_path_factory):
    folder = tmp_path_factory.mktemp("doctor")
    (folder / "in" / "c").mkdir(parents=True)
    for i in range(40):
        Image.new("RGB", (180 + i, 164), (i, 2 * i, 3 * i)).save(folder / "in" / "c" / f"{i}.jpg")
    good("pack", folder / "in", "-o", folder / "set.pen")
    return folder / "set.pen"


def test_the_report_fits_a_terminal(pack):
    text = good("doctor", pack, *SHORT, "--consumer", "40").out
    lines = text.splitlines()
    assert lines[0].startswith("Bottleneck: consumer")
    assert all(len(line) <= 80 for line in lines)
    assert any(line.split()[:1] == ["decode"] for line in lines)
    assert "An accelerator that trains on a batch of 8 in 40 ms takes 200 samples/s." in lines
    assert "GB/s copied by 2 threads" in text
    assert re.search(r"^Its utilization is \d+ %\. MLPerf Storage requires 90 % for", text, re.M)
    assert re.search(r" samples/s: enough for [\d,]+ accelerators? at 90 %\.$", text, re.M), text


def test_json_has_what_the_text_has(pack):
    record = good("doctor", pack, *SHORT, "--consumer", "62.5", "--json").json()
    assert record["bottleneck"] == "consumer" and record["samples_per_second"] <= 8 / 0.0625
    assert [one["change"] for one in record["advice"]] == ["consumer"]
    by_name = {one["name"]: one for one in record["stages"]}
    assert by_name["consumer"]["ratio"] == 1 and by_name["decode"]["ratio"] > 1
    accelerators = record["accelerators"]
    assert accelerators["consumer_ms"] == 62.5
    assert accelerators["samples_per_second_each"] == 128
    assert accelerators["is_enough"] == (accelerators["utilization_percent"] >= 90)
    fed = accelerators["samples_per_second_most"] / (0.9 * 128)
    assert accelerators["count"] == int(fed)
    assert record["memory_copy_mb_per_second"] > 100


def test_without_a_consumer_loading_is_the_bottleneck(pack):
    record = good("doctor", pack, *SHORT, "--json").json()
    assert record["bottleneck"] != "consumer" and "accelerators" not in record
    assert record["wait_percent"] > 50


def thread_names(pid):
    names = []
    for task in pathlib.Path(f"/proc/{pid}/task").iterdir():
        try:
            names.append((task / "comm").read_text().strip())
        except OSError:  # it has ended
            pass
    return names


def test_the_loader_is_closed_before_the_stages_are_measured(pack):
    with subprocess.Popen([PENSTOCK, "doctor", pack, *SHORT, "--json"], stdout=subprocess.DEVNULL,
                          stderr=subprocess.PIPE) as process:
        names, end = [], time.monotonic() + 60
        while "pen-stage" not in names and process.poll() is None:
            assert time.monotonic() < end
            time.sleep(0.01)
            names = thread_names(process.pid)
        process.communicate(timeout=60)
    # A thread has the name of the program until it sets its own.
    assert "pen-stage" in names and not {"pen-decode", "pen-read"} & set(names), names


def trace_with(path, *milliseconds, name="run_batch"):
    events = [{"ph": "X", "name": name, "ts": i, "dur": ms * 1e3, "pid": 1, "tid": 1}
              for i, ms in enumerate(milliseconds)]
    path.write_text("[\n" + ",\n".join(map(json.dumps, events)) + "\n]\n")
    return path


def python(*words):
    need_penstock()
    return subprocess.run([sys.executable, "-m", "penstock", *map(str, words)], text=True,
                          capture_output=True, timeout=120, check=False)


def test_the_training_step_is_taken_from_a_trace(pack, tmp_path):
    trace = trace_with(tmp_path / "run.json", 0.001, 0.01, 900)  # too fast for any loader
    done = python("doctor", pack, *SHORT, "--trace", trace)
    assert "\nAn accelerator that trains on a batch of 8 in 0.01 ms takes 800,000 " in done.stdout
    assert done.stdout.endswith(" samples/s: too few for one accelerator at 90 %.\n"), done.stderr
    done = python("doctor", pack, f"--trace={trace_with(tmp_path / 'a.json', 1, name='read')}")
    assert done.returncode == 1
    assert "expected run_batch spans, found none" in done.stderr
    done = python("doctor", pack, "--trace", tmp_path / "missing.json")
    assert done.returncode == 1 and "missing.json" in done.stderr
    refused = run("doctor", pack, "--trace", trace)
    assert refused.code == 1
    assert "run 'python3 -m penstock doctor', or pass --consumer MS" in refused.message()


def test_a_pack_that_is_not_there(tmp_path):
    assert run("doctor", tmp_path / "none.pen").code == 1
