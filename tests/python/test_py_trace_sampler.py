# SPDX-License-Identifier: Apache-2.0
"""The counters of a trace: CPU, memory, disk, network, batches that are ready, and GPUs."""

import collections
import os
import shutil
import subprocess
import time

import pytest
from py_tools import jpeg, need_penstock, run_python, write_pack
from trace_tools import load

penstock = need_penstock()
pytest.importorskip("numpy")
from penstock import _sampler  # noqa: E402

N, BATCH = 96, 8


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    path = tmp_path_factory.mktemp("packs") / "a.pen"
    write_pack(penstock, path, N, image=jpeg).close()
    return path


def series(events):
    """{counter: {series: [values]}}"""
    found = collections.defaultdict(lambda: collections.defaultdict(list))
    for event in events:
        if event["ph"] == "C":
            ((name, value),) = event["args"].items()
            found[event["name"]][name].append(value)
    return found


def wait_for(condition):
    deadline = time.monotonic() + 30
    while not condition() and time.monotonic() < deadline:
        sum(range(20_000))
    assert condition()


@pytest.mark.threads
def test_counters_of_a_run(path, tmp_path):
    file = tmp_path / "run.json"
    with penstock.Loader(path, BATCH, pipeline="decode | center_crop 16", output="numpy",
                         threads=2) as loader, penstock.trace(file, samples_per_second=50):
        for _ in range(3):
            for _ in loader:
                pass
        begin = time.process_time()  # this thread is busy until the clock of the kernel shows it
        wait_for(lambda: time.process_time() > begin + 0.3)
        epoch = iter(loader)
        next(epoch)
        wait_for(lambda: loader.stats()["slots_ready"] > 0)
        time.sleep(0.5)
    found = series(load(file))
    assert max(value for name, values in found["cpu_percent"].items() for value in values
               if name.endswith(f" {os.getpid()}")) > 5
    resident = found["memory_bytes"]["resident"]
    assert 1e6 < min(resident) and max(resident) < 1e11
    assert min(found["memory_bytes"]["page cache"]) > 0
    assert max(found["batches_ready"]["loader 0"]) > 0
    assert max(found["loader_memory_bytes"]["loader 0"]) > 0
    for name in ("received", "sent", "loopback"):
        assert min(found["network_bytes_per_second"][name]) >= 0


def test_none_are_wanted(path, tmp_path):
    file = tmp_path / "run.json"
    with penstock.trace(file, samples_per_second=0), penstock.Loader(
            path, BATCH, output="numpy") as loader:
        for _ in loader:
            pass
    assert not series(load(file))
    with pytest.raises(penstock.InvalidError, match="samples_per_second: expected 0 to 100"):
        penstock.trace(file, samples_per_second=-1)


def test_a_probe_that_fails_is_left_out():
    """Others go on."""

    class Broken:
        calls = 0

        def sample(self, add, now):
            self.calls += 1
            raise OSError("gone")

    rows, broken = [], Broken()
    sampler = _sampler.Sampler(lambda *row: rows.append(row), lambda: iter(()), 100)
    sampler._probes.insert(0, broken)
    wait_for(lambda: broken.calls and len(rows) > 50)
    sampler.stop()
    n = len(rows)
    time.sleep(0.05)
    assert broken.calls == 1 and len(rows) == n
    assert {name for name, *_ in rows} >= {"memory_bytes"}


NVML = """
typedef struct { unsigned gpu, memory; } U;
typedef struct { unsigned long long total, free, used; } M;
int nvmlInit_v2(void) { return INIT; }
int nvmlDeviceGetCount_v2(unsigned *n) { *n = 2; return 0; }
int nvmlDeviceGetHandleByIndex_v2(unsigned i, void **h) { *h = (void *)(long)(i + 1); return 0; }
int nvmlDeviceGetUtilizationRates(void *h, U *u) { u->gpu = 40 + (long)h; u->memory = 1; return 0; }
int nvmlDeviceGetMemoryInfo(void *h, M *m) { m->total = 9; m->free = 1; m->used = 8; return 0; }
"""
GPU = """
import sys, time, penstock
with penstock.trace(sys.argv[1], samples_per_second=50):
    time.sleep(0.3)
"""


@pytest.mark.parametrize("init", [0, 9])
def test_gpus(tmp_path, init):
    """By a library in place of the driver's; 9 is "driver not loaded"."""
    if not shutil.which("gcc"):
        pytest.skip("needs gcc")
    (tmp_path / "nvml.c").write_text(NVML)
    subprocess.run(["gcc", "-shared", "-fPIC", f"-DINIT={init}", "-o",
                    tmp_path / "libnvidia-ml.so.1", tmp_path / "nvml.c"], check=True, timeout=60)
    done = run_python(GPU, tmp_path / "run.json",
                      env={**os.environ, "LD_LIBRARY_PATH": str(tmp_path)})
    assert (done.returncode, done.stderr) == (0, "")
    found = series(load(tmp_path / "run.json"))
    assert set(found["memory_bytes"]) == {"resident", "page cache"}
    if init:
        assert not found["gpu_percent"]
    else:
        assert {name: set(values) for name, values in found["gpu_percent"].items()} == {
            "GPU 0": {41}, "GPU 1": {42}}
        assert set(found["gpu_memory_bytes"]["GPU 1"]) == {8}
