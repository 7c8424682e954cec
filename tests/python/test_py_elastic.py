# SPDX-License-Identifier: Apache-2.0
"""Training that changes its number of processes: nodes are lost under torchrun, and
Accelerate resumes with another number. Every epoch has every sample once, by the logs."""

import importlib
import json

import pytest
from elastic_tools import EXAMPLES, ElasticJob, complaints, history, kill, read_runs
from example_tools import need, torchrun
from py_tools import need_penstock, write_pack

penstock = need_penstock()
need("torch", "numpy")

N, BATCH = 97, 12


@pytest.fixture(scope="module")
def pack(tmp_path_factory):
    return write_pack(penstock, tmp_path_factory.mktemp("packs") / "a.pen", N).path


# ---- the account


def write_log(folder, run, world, resumed, steps):
    """Each step: the samples of all ranks, dealt out in turn."""
    for rank in range(world):
        rows = [{"run": run, "rank": rank, "world": world, "pid": 1, "resumed": resumed}]
        rows += [{"step": step, "epoch": 0, "samples": samples[rank::world]}
                 for step, samples in steps.items()]
        rows += [{"done": True}] if run == "last" else []
        (folder / f"{run}.{rank}").write_text("".join(json.dumps(row) + "\n" for row in rows))


@pytest.mark.parametrize(("resumed", "steps", "expected"), [
    (["first", 2], {3: [4, 5]}, []),
    (["first", 3], {4: [4, 5]}, ["epoch 0: 0 samples lost, 2 repeated"]),
    (["first", 2], {3: [4]}, ["epoch 0: 1 samples lost, 0 repeated"]),
    (["first", 2], {3: [4, 5, 0]}, ["epoch 0: 0 samples lost, 1 repeated"])])
def test_the_account(tmp_path, resumed, steps, expected):
    """The first run is lost after step 3, which counts only if a checkpoint has it."""
    write_log(tmp_path, "first", 2, None, {1: [0, 1], 2: [2, 3], 3: [4, 5]})
    write_log(tmp_path, "last", 1, resumed, steps)
    with (tmp_path / "first.0").open("a") as file:
        file.write('{"step": 4, "epo')  # killed while it wrote
    made = history(read_runs(tmp_path))
    assert complaints(made, 6, 1) == expected
    assert [world for *_, world in made] == [2] * resumed[1] + [1]


def test_the_last_batch_of_a_resumed_epoch_is_counted(pack, monkeypatch):
    """Five steps of 15 samples, and then two of 16."""
    monkeypatch.syspath_prepend(EXAMPLES)
    common = importlib.import_module("common")
    with penstock.Loader(pack, 8, rank=0, world_size=2) as loader:
        loader.load_state_dict({**loader.state_dict(), "position": 75})
        first = common.batches_done(loader, 2)
        assert (first, len(loader)) == (5, 7) and first + sum(1 for _ in loader) == len(loader)


# ---- torchrun


@pytest.mark.slow
def test_torchrun_loses_a_node(pack, tmp_path):
    """Two nodes, one of which is killed; then the process on the other one."""
    job = ElasticJob(tmp_path / "job", "train_elastic.py", pack, "--epochs", 3, "--batch-size",
                     BATCH, "--save-every", 2, "--pause", 1.0)
    try:
        job.start(2)
        job.running(5, nodes=2)
        job.agents.lose(job.agents.agents[1:])
        run = job.running(3, nodes=1)
        assert run.resumed[1] >= 4
        for pid in run.pids():
            kill(pid)
        steps = job.finish()
    finally:
        job.agents.end()
    assert complaints(steps, N, 3) == []
    assert {world for *_, world in steps} == {1, 2}
    assert len(read_runs(job.log)) >= 3


# ---- Accelerate


@pytest.mark.slow
def test_accelerate(pack, tmp_path):
    """Stopped in the first epoch with three processes, resumed with two."""
    need("accelerate")
    args = [EXAMPLES / "train_accelerate.py", pack, "--batch-size", BATCH, "--save-every", "3",
            "--sample-log", tmp_path / "log"]
    args = [str(arg) for arg in args]
    torchrun(3, *args, "--stop-after", "7", cwd=tmp_path, seconds=400)
    out = torchrun(2, *args, cwd=tmp_path, seconds=400)
    assert out.startswith("2 ranks, epoch 0, sample 72\n") and "Epoch [0][9/9]" in out
    runs = read_runs(tmp_path / "log")
    assert sorted((run.world, run.steps) for run in runs.values()) == [(2, 18), (3, 7)]
    steps = history(runs)
    assert complaints(steps, N, 2) == []
    assert [world for *_, world in steps] == [3] * 6 + [2] * 12
