# SPDX-License-Identifier: Apache-2.0
"""Several ranks on one machine: they divide its cores, and their memory has to fit."""

import json
import os
import re

import pytest
from py_tools import need_penstock, run_python, write_pack

penstock = need_penstock()
pytest.importorskip("numpy")

LAUNCHERS = ("LOCAL_WORLD_SIZE", "SLURM_PROCID", "SLURM_STEP_TASKS_PER_NODE",
             "SLURM_NTASKS_PER_NODE", "SLURM_CPUS_ON_NODE", "RANK", "WORLD_SIZE")

CODE = """
import json, os, sys
import penstock
if sys.argv[3] != "all":
    os.sched_setaffinity(0, [int(core) for core in sys.argv[3].split(",")])
settings = json.loads(sys.argv[2])
with penstock.Loader(sys.argv[1], 4, output="numpy", rank=0, world_size=1, **settings) as loader:
    print(json.dumps(loader.stats()))
"""


@pytest.fixture(scope="module")
def pack(tmp_path_factory):
    path = tmp_path_factory.mktemp("packs") / "a.pen"
    write_pack(penstock, path, 8).close()
    return path


def run(pack, environ, affinity="all", **settings):
    keep = {name: value for name, value in os.environ.items() if name not in LAUNCHERS}
    return run_python(CODE, pack, json.dumps(settings), affinity, env={**keep, **environ})


def stats(pack, environ, affinity="all", **settings):
    done = run(pack, environ, affinity, **settings)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.fixture(scope="module")
def alone(pack):
    """Threads of a process that has the machine for itself."""
    return stats(pack, {})["threads"]


@pytest.mark.parametrize("environ, ranks", [
    ({}, 1),
    ({"LOCAL_WORLD_SIZE": "1"}, 1),
    ({"LOCAL_WORLD_SIZE": "2"}, 2),
    ({"LOCAL_WORLD_SIZE": "64"}, 64),
    ({"SLURM_NTASKS_PER_NODE": "2"}, 1),  # not in a task
    ({"SLURM_PROCID": "3", "SLURM_NTASKS_PER_NODE": "2"}, 2),
    ({"SLURM_PROCID": "3", "SLURM_STEP_TASKS_PER_NODE": "2(x3),1"}, 2),
])
def test_ranks_divide_the_cores(pack, alone, environ, ranks):
    found = stats(pack, environ, memory="64MiB")
    assert found["node_ranks"] == ranks
    assert found["threads"] == max(alone // ranks, 1)


def test_threads_that_are_given_stay(pack):
    assert stats(pack, {"LOCAL_WORLD_SIZE": "8"}, threads=7, memory="128MiB")["threads"] == 7


def test_the_cores_of_a_slurm_job(pack):
    task = {"SLURM_PROCID": "0", "SLURM_CPUS_ON_NODE": "1"}
    assert stats(pack, task)["threads"] == 1


def test_a_rank_that_is_bound_is_not_divided_again(pack, alone):
    cores = sorted(os.sched_getaffinity(0))
    if len(cores) < 2 or alone < len(cores):
        pytest.skip("one core, or a quota")
    half = cores[: len(cores) // 2]
    found = stats(pack, {"LOCAL_WORLD_SIZE": "2"}, ",".join(map(str, half)))
    assert found["threads"] == len(half)


def test_memory_of_all_ranks_has_to_fit(pack):
    total = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    ranks = min(total // 2**31 + 1, 4096)
    environ = {"LOCAL_WORLD_SIZE": str(ranks)}
    for settings in ({}, {"memory": "2GiB"}):
        done = run(pack, environ, **settings)
        message = re.search(
            rf"LimitError: memory: 2048 MiB for each of {ranks} processes .* are {2048 * ranks} MiB"
            r", but this (?:machine|control group) has (\d+) MiB; pass memory=\"(\d+MiB)\" or less",
            done.stderr)
        assert message, done.stderr
        assert int(message[1]) * 2**20 <= total
    # What it advises works.
    assert stats(pack, environ, memory=message[2])["node_ranks"] == ranks
    # One process alone is not asked: its memory is a limit, not what it takes.
    assert stats(pack, {}, memory=total + 2**31)["node_ranks"] == 1


@pytest.mark.parametrize("text", ["0", "-1", "two", "5000"])
def test_a_launcher_that_talks_nonsense(pack, text):
    done = run(pack, {"LOCAL_WORLD_SIZE": text})
    expected = f"LOCAL_WORLD_SIZE: expected 1 to 4096 processes on this node, found {text}"
    assert expected in done.stderr
