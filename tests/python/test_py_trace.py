# SPDX-License-Identifier: Apache-2.0
"""penstock.trace(), penstock.span() and PENSTOCK_TRACE: what is in the file, and that nothing about
the file ends a training."""

import collections
import gc
import os
import re
import signal
import subprocess
import sys
import threading
import time
import warnings

import pytest
from cli_tools import run as program
from py_tools import in_child, jpeg, need_penstock, run_python, write_pack
from remote_tools import ADDRESS, make_pack, options
from trace_tools import about, load, load_killed, names, spans, tracks

penstock = need_penstock()
pytest.importorskip("numpy")

N, BATCH = 96, 8
PIPELINE = "decode | random_resized_crop 16"
ENDINGS = ("json", "json.gz")


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    path = tmp_path_factory.mktemp("packs") / 'a "b" \\.pen'
    write_pack(penstock, path, N, image=jpeg).close()
    return path


def loader_of(path, **settings):
    return penstock.Loader(path, BATCH, **{"pipeline": PIPELINE, "output": "numpy", "threads": 2,
                                           "shuffle": True, **settings})


def run_epochs(loader, n=1):
    for _ in range(n):
        for _ in loader:
            with penstock.span("run_batch"):
                pass


# ---- what is in the file


@pytest.mark.threads
@pytest.mark.parametrize("ending", ENDINGS)
def test_every_sample_is_there_once(path, tmp_path, ending):
    file = tmp_path / f"run.{ending}"
    with loader_of(path) as loader, penstock.trace(file) as trace:
        run_epochs(loader, 3)
    events = load(file)
    assert trace.dropped == 0 and trace.events == len(events)
    for name in ("read", "decode"):
        found = collections.Counter((event["args"]["epoch"], event["args"]["sample"])
                                    for event in spans(events, name))
        assert found == {(epoch, i): 1 for epoch in range(3) for i in range(N)}
        batches = collections.Counter((event["args"]["epoch"], event["args"]["batch"])
                                      for event in spans(events, name))
        assert batches == {(epoch, i): BATCH for epoch in range(3) for i in range(N // BATCH)}
    n = 3 * N // BATCH
    counts = names(events)
    assert counts["next"] == counts["batch_ready"] == counts["run_batch"] == n
    assert counts["get_batch"] == 2 * n  # begin and end
    assert counts["next_data"] == n + 3  # the end of each epoch
    every = about(events, "penstock")["one_in"]
    for name in ("verify", "resample", "store"):
        assert abs(counts[name] - 3 * N / every) <= 1
    assert about(events, "pack") == {"path": str(path)}
    assert about(events, "penstock_end")["events"] == len(events)


@pytest.mark.threads
def test_the_spans_of_a_thread_are_all_of_its_time(path, tmp_path):
    """Between two spans there is less than a microsecond, however busy the machine is: what is
    shorter is not traced. No two overlap."""
    file = tmp_path / "run.json"
    with loader_of(path, prefetch=2) as loader, penstock.trace(file):
        for _ in loader:
            time.sleep(0.002)
    found = tracks(load(file))
    assert {"decode 0", "decode 1", "read 0"} <= set(found)
    for name, track in found.items():
        if name == "MainThread":
            continue
        for before, after in zip(track, track[1:], strict=False):
            gap = after["ts"] - before["ts"] - before["dur"]
            assert -0.002 < gap < 1.002, (name, before, after)
    waits = names(event for track in found.values() for event in track)
    assert waits["wait_slot"] > 0 and waits["wait_work"] > 0


def test_stages_are_inside_of_their_span(path, tmp_path):
    file = tmp_path / "run.json"
    with penstock.trace(file), loader_of(path) as loader:
        run_epochs(loader, 2)
    events = load(file)
    around = {(event["tid"], event["name"], event["args"]["epoch"], event["args"]["sample"]): event
              for event in events if event["name"] in ("read", "decode")}
    for name, outer in (("verify", "read"), ("resample", "decode"), ("store", "decode")):
        for event in spans(events, name):
            key = event["tid"], outer, event["args"]["epoch"], event["args"]["sample"]
            assert around[key]["ts"] <= event["ts"] + 0.002
            assert (event["ts"] + event["dur"]
                    <= around[key]["ts"] + around[key]["dur"] + 0.002), (event, around[key])


def test_calls_of_python_are_around_those_of_c(path, tmp_path):
    file = tmp_path / "run.json"
    with loader_of(path) as loader, penstock.trace(file):
        run_epochs(loader)
    events = load(file)
    outer = spans(events, "next_data")
    for event in spans(events, "next"):
        assert event["tid"] == outer[0]["tid"] == threading.get_native_id()
        assert any(o["ts"] <= event["ts"] and
                   event["ts"] + event["dur"] <= o["ts"] + o["dur"] + 0.002 for o in outer)
    now = time.monotonic_ns() / 1000
    assert now - 60e6 < events[-1]["args"]["end_us"] < now
    offset = about(events, "penstock")["unix_minus_monotonic_us"]
    assert abs(now + offset - time.time() * 1e6) < 5e6


@pytest.mark.parametrize("name", ["forward", 'a "b"\\\n', "größer", "a\0b", "\udcff", "x" * 5000])
def test_spans_of_any_name(tmp_path, name):
    file = tmp_path / "run.json"
    with penstock.trace(file), penstock.span(name):
        pass
    (found,) = [event["name"] for event in load(file) if event["ph"] == "X"]
    if len(name) < 1000:
        assert found == name.replace("\0", "?").replace("\udcff", "?")
    else:
        assert name.startswith(found) and len(found) > 500


def test_spans_without_a_trace_do_nothing():
    with penstock.span("forward"):
        pass
    with pytest.raises(TypeError, match="name: expected a text, found 3"):
        penstock.span(3)
    with pytest.raises(ZeroDivisionError), penstock.span("x"):
        raise ZeroDivisionError


def test_spans_of_several_threads(tmp_path):
    file = tmp_path / "run.json"

    def work():
        for _ in range(100):
            with penstock.span("work"):
                pass

    with penstock.trace(file):
        threads = [threading.Thread(target=work, name=f"t{i}") for i in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert {name: len(track) for name, track in tracks(load(file)).items()} == {
        f"t{i}": 100 for i in range(4)}


def test_a_replaced_sample_is_the_one_of_the_order(tmp_path):
    pack = tmp_path / "bad.pen"
    image = write_pack(penstock, pack, 32)[5]["image"]
    shard = next(pack.glob("*/*.shard"))
    content = bytearray(shard.read_bytes())
    content[bytes(content).find(image) + 50] ^= 1
    shard.write_bytes(content)
    file = tmp_path / "run.json"
    with penstock.trace(file), loader_of(pack, on_bad="substitute") as loader:
        run_epochs(loader)
        assert [bad.sample for bad in loader.bad_samples()] == [5]
    assert sorted(event["args"]["sample"] for event in spans(load(file), "decode")) == list(
        range(32))


@pytest.mark.threads
def test_requests_to_a_store(s3, no_other_settings, tmp_path):
    make_pack(penstock, tmp_path / "packs" / "train.pen", 200)
    server = s3(directory=tmp_path)
    file = tmp_path / "run.json"
    with penstock.trace(file), penstock.Loader(
            ADDRESS, 20, shuffle=True, output="numpy", pipeline=PIPELINE, threads=2,
            storage_options=options(server)) as loader:
        run_epochs(loader)
        blocks = loader.dataset.info["n_blocks"]
    events = load(file)
    assert len({event["args"]["sample"] for event in spans(events, "decode")}) == 200
    requests = [event["args"] for event in spans(events, "request")]
    assert 0 < len(requests) <= blocks and all(args["bytes"] > 0 for args in requests)
    assert len({args["block"] for args in requests}) == len(requests)
    assert about(events, "pack") == {"path": ADDRESS}
    assert any(name.startswith("fetch") for name in tracks(events))


def test_clips(tmp_path):
    with penstock.Writer(tmp_path / "c.pen", {"video": "clip"}) as writer:
        for i in range(16):
            writer.add(key=f"c{i}", video=[jpeg(i * 8 + k) for k in range(8)])
    file = tmp_path / "run.json"
    with penstock.trace(file), penstock.Loader(
            tmp_path / "c.pen", 4, output="numpy",
            pipeline="decode | clip 4 | center_crop 16") as loader:
        run_epochs(loader)
    events = load(file)
    for name in ("read", "decode"):
        assert sorted(event["args"]["sample"] for event in spans(events, name)) == list(range(16))
    assert all(event["args"]["bytes"] > 0 for event in spans(events, "read"))


# ---- loaders come and go


@pytest.mark.threads
def test_loaders_of_any_age(path, tmp_path):
    """Created before the trace, or in it; closed, or collected, or in use when it ends."""
    file = tmp_path / "run.json"
    old, held = loader_of(path), loader_of(path)
    unfinished = iter(held)
    next(unfinished)
    with penstock.trace(file):
        run_epochs(old)
        old.close()
        run_epochs(loader_of(path))
        gc.collect()
        next(unfinished)
    assert sum(1 for _ in unfinished) == N // BATCH - 2
    events = load(file)
    assert names(events)["loader"] == 3
    assert len(spans(events, "decode")) >= 2 * N
    with penstock.trace(file):
        run_epochs(held)
    held.close()
    assert len(spans(load(file), "decode")) == N


def test_one_trace_at_a_time(tmp_path):
    with penstock.trace(tmp_path / "a.json") as trace:
        with pytest.raises(penstock.InvalidError, match=r"is writing .*a\.json.*; close it first"):
            penstock.trace(tmp_path / "b.json")
        assert not (tmp_path / "b.json").exists()
    trace.close()
    penstock.trace(tmp_path / "b.json").close()


def test_a_forked_child_is_not_traced(path, tmp_path):
    file = tmp_path / "run.json"
    with penstock.trace(file) as trace:
        def child():
            with loader_of(path) as loader:
                run_epochs(loader)
            trace.close()

        assert in_child(child) is None
        with penstock.span("after"):
            pass
    assert names(load(file))["after"] == 1 and not spans(load(file), "decode")


# ---- what goes wrong


ENDLESS = """
import sys, penstock
with penstock.trace(sys.argv[2]), penstock.Loader(
        sys.argv[1], 8, pipeline="decode | center_crop 16", output="numpy") as loader:
    while True:
        for _ in loader:
            with penstock.span("run_batch"):
                pass
        print("epoch", flush=True)
"""


@pytest.mark.parametrize("ending", ENDINGS)
def test_a_killed_process_leaves_a_file_that_can_be_read(path, tmp_path, ending):
    file = tmp_path / f"run.{ending}"
    child = subprocess.Popen([sys.executable, "-c", ENDLESS, path, file], stdout=subprocess.PIPE)
    try:
        assert child.stdout.readline() == b"epoch\n"
        deadline = time.monotonic() + 60
        while file.stat().st_size < 50_000 and time.monotonic() < deadline:
            child.stdout.readline()
    finally:
        child.send_signal(signal.SIGKILL)
        child.wait(30)
    events = load_killed(file)
    counts = names(events)
    assert counts["decode"] > 100 and counts["penstock_end"] == 0
    assert about(events, "penstock")["one_in"] > 1


FULL = """
import resource, sys, warnings, penstock
with penstock.Loader(sys.argv[1], 8, pipeline="decode | center_crop 16", output="numpy") as loader:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        with penstock.trace(sys.argv[2]) as trace:
            resource.setrlimit(resource.RLIMIT_FSIZE, (20000, 20000))
            batches = 0
            while batches < 5000:
                for _ in loader:
                    batches += 1
    print(batches, [str(w.message) for w in caught], trace.dropped > 0, trace.events)
"""


def test_a_full_disk_does_not_end_training(path, tmp_path):
    done = run_python(FULL, path, tmp_path / "run.json", seconds=120)
    assert done.returncode == 0, done.stderr
    found = re.fullmatch(r"(\d+) \['penstock: trace \S+run\.json: the trace is not complete, "
                         r"(\d+) events are not in it: .*'\] True (\d+)\n", done.stdout)
    assert found, done.stdout
    assert int(found[1]) >= 5000 and int(found[2]) > 5000
    assert (tmp_path / "run.json").stat().st_size <= 20000
    assert len(load_killed(tmp_path / "run.json")) >= int(found[3])


@pytest.mark.parametrize("name, message", [
    ("folder", "found a directory"),
    ("fifo", "found a FIFO"),
    ("link", "found a symbolic link"),
    ("none/run.json", "none/run.json"),
    ("x" * 300, "cannot create it"),
    ("folder/../folder/", "folder"),
])
def test_paths_that_cannot_be_written(path, tmp_path, name, message):
    (tmp_path / "folder").mkdir()
    os.mkfifo(tmp_path / "fifo")
    (tmp_path / "target").write_text("keep")
    (tmp_path / "link").symlink_to(tmp_path / "target")
    with pytest.raises(penstock.Error, match=message):
        penstock.trace(tmp_path / name)
    code = ("import sys, warnings, penstock\nwith warnings.catch_warnings(record=True) as caught:\n"
            "    warnings.simplefilter('always')\n"
            "    with penstock.Loader(sys.argv[1], 8, output='numpy') as loader:\n"
            "        print(sum(1 for _ in loader), len(caught), caught[0].message)")
    done = run_python(code, path, env={**os.environ, "PENSTOCK_TRACE": str(tmp_path / name)})
    assert done.stdout.startswith(
        f"{N // BATCH} 1 penstock: PENSTOCK_TRACE: nothing is traced: "), done.stderr
    assert (tmp_path / "target").read_text() == "keep"


# ---- the variable, and the command


@pytest.mark.parametrize("world, file", [("1", "run.json.gz"), ("4", "run.rank2.json.gz")])
def test_the_variable(path, tmp_path, world, file):
    code = ("import sys, penstock\nloader = penstock.Loader(sys.argv[1], 8, output='numpy', "
            "pipeline='decode | center_crop 16', rank=0, world_size=1)\n"
            "for _ in loader:\n    with penstock.span('run_batch'): pass\n"
            "second = penstock.Loader(sys.argv[1], 8, output='numpy')")
    env = {**os.environ, "PENSTOCK_TRACE": str(tmp_path / "run.json.gz"), "RANK":
           "2" if world == "4" else "0", "WORLD_SIZE": world}
    done = run_python(code, path, env=env)
    assert (done.returncode, done.stderr) == (0, "")
    assert [entry.name for entry in tmp_path.iterdir()] == [file]
    events = load(tmp_path / file)
    counts = names(events)
    assert counts["decode"] == N and counts["run_batch"] == N // BATCH and counts["loader"] == 2
    assert about(events, "process_name") == {
        "name": "rank 2 of 4" if world == "4" else "rank 0 of 1"}


def test_doctor(path, tmp_path):
    file = tmp_path / "doctor.json"
    done = program("doctor", path, "--seconds", "1", "--batch", "8", "--trace", file, "--json")
    assert done.code == 0, done.err
    events = load(file)
    assert done.json()["trace"] == {"file": str(file), "events": len(events), "dropped": 0,
                                  "file_bytes": file.stat().st_size}
    assert names(events)["next"] > N // BATCH
    done = program("doctor", path, "--trace", tmp_path / "none" / "x.json")
    assert done.code == 1 and "cannot create it" in done.err


def test_no_warning_when_all_is_well(path, tmp_path):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with penstock.trace(tmp_path / "run.json"), loader_of(path) as loader:
            run_epochs(loader)
