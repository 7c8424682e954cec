# SPDX-License-Identifier: Apache-2.0
"""A loader that has warmed up asks the system for its reads and for little else: counted with
strace, as the difference between a short and a long run."""

import resource
import shutil
import subprocess
import sys
import textwrap

import conftest
import py_tools
import pytest

penstock = py_tools.need_penstock()

N, BATCH, EPOCHS = 200, 20, 4
SCRIPT = textwrap.dedent("""
    import sys, penstock
    with penstock.Loader(sys.argv[1], batch_size=int(sys.argv[2]), threads=2, output="numpy",
                         pipeline="decode | random_resized_crop 64 | hflip | tensor u8") as loader:
        for _ in range(int(sys.argv[3])):
            for batch in loader:
                pass
""")


def calls_of(path, epochs, log):
    command = ["strace", "-f", "-c", "-o", log, sys.executable, "-c", SCRIPT, path, str(BATCH),
               str(epochs)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    if "ptrace" in done.stderr:
        pytest.skip("strace may not trace here")
    assert done.returncode == 0, done.stderr
    rows = [line.split() for line in log.read_text().splitlines()]
    counts = {row[-1]: int(row[3]) for row in rows if len(row) >= 5 and row[3].isdigit()}
    del counts["total"]
    return counts


@pytest.mark.skipif(not shutil.which("strace"), reason="needs strace")
def test_a_sample_costs_its_reads(tmp_path):
    path = tmp_path / "p.pen"
    py_tools.write_pack(penstock, path, N, image=py_tools.jpeg).close()
    few = calls_of(path, EPOCHS, tmp_path / "few")
    many = calls_of(path, 2 * EPOCHS, tmp_path / "many")
    more = {name: many[name] - few.get(name, 0) for name in many}
    samples, batches = N * EPOCHS, N // BATCH * EPOCHS
    # The head of the JPEG and its rows.
    assert more.pop("pread64") <= samples * 2.1
    # Traced, reading is slow and all wait for it: see below.
    del more["futex"]
    # The process asks for its number once for every batch that comes and goes.
    assert more.pop("getpid", 0) <= batches * 16
    # One sample in 31 is timed: it asks for the CPU time of its thread, before and after.
    assert more.pop("clock_gettime", 0) <= samples / 31 * 2 + 2
    # libjpeg allocates for each of these small files. A sanitizer keeps what was freed for a while.
    if conftest.is_sanitized(conftest.BUILD):
        more.pop("mmap", None)
    assert sum(more.values()) <= batches


def test_threads_do_not_wait_for_each_other_at_every_sample(tmp_path):
    data = py_tools.jpeg(1, 400, 320)
    pack = py_tools.write_pack(penstock, tmp_path / "p.pen", 400, image=lambda number: data)
    with penstock.Loader(pack, batch_size=20, threads=1, output="numpy",
                         pipeline="decode | random_resized_crop 224 | tensor u8") as loader:
        for _ in loader:
            pass
        before = resource.getrusage(resource.RUSAGE_SELF).ru_nvcsw
        for _ in range(3):
            for _ in loader:
                pass
        waits = (resource.getrusage(resource.RUSAGE_SELF).ru_nvcsw - before) / 1200
    assert waits < 1.2
