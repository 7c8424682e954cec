# SPDX-License-Identifier: Apache-2.0
"""Packing on a real Ray cluster of several nodes on this machine."""

import contextlib
import fcntl
import importlib
import json
import os
import re
import signal
import subprocess
import sys
import threading
import time

import bucket_tools
import pytest
import ray_tools
from cli_tools import ROOT, good, make_folder, run
from py_tools import need_penstock

penstock = need_penstock()
ray_tools.need_ray()
importlib.import_module("penstock.ray")

pytestmark = pytest.mark.slow  # a cluster takes 10 s to start, on a busy machine a minute
MANY = {"block_samples": 4, "shard_bytes": 1}
WORDS = ("--block-samples", "4", "--shard-bytes", "1")
N, LIMIT_S = 3, 300


@pytest.fixture(scope="module")
def bucket(tmp_path_factory):
    with bucket_tools.serve() as server:
        yield bucket_tools.Bucket(server, tmp_path_factory.mktemp("home"))


@pytest.fixture(scope="module")
def nodes(bucket):
    """Two nodes, with credentials for the bucket."""
    before = dict(os.environ)
    os.environ.update(bucket.env)
    try:
        with ray_tools.cluster(2) as running:
            yield running
    finally:
        os.environ.clear()
        os.environ.update(before)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """40 samples and two broken inputs."""
    top = make_folder(tmp_path_factory.mktemp("photos") / "src", each=20)
    for i in range(2):
        (top / "cat" / f"broken{i}.jpg").write_bytes(b"no image")
    return top


@pytest.fixture(scope="module")
def expected(folder, tmp_path_factory):
    """The pack of the same tasks without Ray."""
    out = tmp_path_factory.mktemp("packs") / "a.pen"
    words = (folder, "-o", out, *WORDS, "--on-bad", "skip")
    good("plan", *words)
    for i in range(N):
        good("pack", *words, "--task", f"{i}/{N}")
    good("finalise", out)
    return bucket_tools.tree(out)


def pack(folder, out, **more):
    given = {"tasks": N, "on_bad": "skip", "progress": False, **MANY, **more}
    return penstock.ray.pack(folder, out, **given)


def test_same_bytes_as_without_ray(nodes, folder, expected, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    seen = []
    account = pack(folder, "a.pen", progress=seen.append, max_bad=2)
    assert bucket_tools.tree(tmp_path / "a.pen") == expected
    assert account.pack == str(tmp_path / "a.pen")
    assert (account.samples, account.tasks, account.broken) == (40, N, 2)
    assert account.retries <= 1  # Ray can lose a worker on a busy machine
    assert account.bytes == sum(map(len, expected.values())) and account.seconds > 0
    assert account.source_bytes > 40 and account.id == penstock.open("a.pen").id
    with open(account.bad_report) as lines:
        assert len(list(lines)) == 2
    assert [p.stage for p in seen[:1] + seen[-1:]] == ["plan", "finalise"]
    assert (seen[-1].tasks_done, seen[-1].samples_done, seen[-1].samples) == (N, 42, 42)
    with pytest.raises(penstock.ExistsError, match="a.pen: the pack already exists; choose"):
        pack(folder, "a.pen")


def test_in_a_bucket(nodes, bucket, folder, expected, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    account = pack(folder, bucket.at("a.pen"), region="us-east-1", work=tmp_path / "work")
    keys = bucket.client.list_objects_v2(Bucket=bucket.name, Prefix="a.pen/")["Contents"]
    found = {k["Key"][6:]: bucket.client.get_object(Bucket=bucket.name, Key=k["Key"])["Body"].read()
             for k in keys}
    assert found == expected and account.samples == 40
    with pytest.raises(penstock.ExistsError, match="'penstock finalise s3://.*' ends it"):
        pack(folder, bucket.at("a.pen"))


@contextlib.contextmanager
def locked_task(folder, out):
    """Another process has task 0: it waits until the end of the block."""
    good("plan", folder, "-o", out, *WORDS, "--on-bad", "skip")
    (out / ".work" / f"task-0-of-{N}").mkdir()
    fd = os.open(out / ".work" / f"task-0-of-{N}", os.O_RDONLY)
    fcntl.flock(fd, fcntl.LOCK_EX)
    try:
        yield
    finally:
        os.close(fd)


def wait_until(condition):
    deadline = time.monotonic() + LIMIT_S
    while not (found := condition()):
        assert time.monotonic() < deadline
        time.sleep(0.05)
    return found


def waiting(nodes, known=()):
    """(node, program, worker) of a new process that packs task 0."""
    for node in nodes.worker_nodes:
        for program, worker in ray_tools.programs(node).items():
            if program not in known and f"0/{N}" in ray_tools.words(program):
                return node, program, worker
    return None


def is_gone(pid):
    return not ray_tools.words(pid)


def test_lost_processes_are_retried_and_busy_ones_are_not(nodes, folder, expected, tmp_path):
    out, accounts = tmp_path / "a.pen", []
    thread = threading.Thread(target=lambda: accounts.append(pack(folder, out)))
    with locked_task(folder, out):
        thread.start()
        node, first, _ = wait_until(lambda: waiting(nodes))
        os.kill(first, signal.SIGKILL)
        node, second, worker = wait_until(lambda: waiting(nodes, (first,)))
        os.kill(worker, signal.SIGKILL)
        node, third, _ = wait_until(lambda: waiting(nodes, (first, second)))
        assert wait_until(lambda: is_gone(second))
        os.kill(ray_tools.raylet(node), signal.SIGKILL)
        nodes.remove_node(node)
        ray_tools.add_node(nodes)
        wait_until(lambda: waiting(nodes, (first, second, third)))
        assert thread.is_alive()
    thread.join(LIMIT_S)
    assert accounts and accounts[0].retries >= 3
    assert bucket_tools.tree(out) == expected


def command(*words):
    return [sys.executable, "-m", "penstock", "ray", "pack", *map(str, words)]


def test_command_is_interrupted_and_continues(nodes, folder, expected, tmp_path):
    out = tmp_path / "a.pen"
    words = command(folder, "-o", out, "--tasks", N, "--address", nodes.address, *WORDS,
                    "--on-bad", "skip", "--max-bad", "2", "--resources", "CPU=0.5", "--json")
    with locked_task(folder, out):
        process = subprocess.Popen([*words, "--progress", "json"], text=True,
                                   stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        found = wait_until(lambda: waiting(nodes) or process.poll() is not None)
        assert found is not True, process.communicate()
        _, program, _ = found
        process.send_signal(signal.SIGINT)
        printed, text = process.communicate(timeout=LIMIT_S)
        assert process.returncode == 130 and printed == "", text
        wait_until(lambda: is_gone(program))
    *lines, last = [line for line in text.splitlines() if line.startswith(("{", "penstock"))]
    assert re.fullmatch(r"penstock: interrupted; \d of 3 tasks are complete; run the same command "
                        "again to continue", last)
    assert {"plan"} <= {json.loads(line)["stage"] for line in lines} <= {"plan", "pack"}
    done = subprocess.run(words, capture_output=True, text=True, timeout=LIMIT_S, check=False)
    assert done.returncode == 0, done.stderr
    result = json.loads(done.stdout)
    assert (result["samples"], result["broken"], result["tasks"]) == (40, 2, N)
    assert "2 broken inputs left out" in done.stderr
    assert bucket_tools.tree(out) == expected


def test_page_runs(nodes, folder, tmp_path, capsys):
    page = (ROOT / "docs" / "how-to" / "pack-on-a-cluster.md").read_text()
    (block,) = re.findall(r"^```python\n(.*?)^```$", page, re.M | re.S)
    (tmp_path / "photos").symlink_to(folder)
    block = block.replace("/shared", str(tmp_path)).replace("tasks=64", "tasks=4")
    exec(block, {"__name__": "__main__"})
    assert "40 samples" in capsys.readouterr().out
    good("verify", tmp_path / "photos.pen")


def is_free(path):
    fd = os.open(path, os.O_RDONLY)
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        return True
    except BlockingIOError:
        return False
    finally:
        os.close(fd)


def test_errors(nodes, folder, tmp_path):
    with pytest.raises(penstock.NotFoundError, match="nowhere: cannot open this source"):
        pack(tmp_path / "nowhere", tmp_path / "b.pen")
    with pytest.raises(penstock.InvalidError, match="unknown option --colour"):
        pack(folder, tmp_path / "b.pen", colour="red")
    # An error of a task ends the run. Fixed, it continues.
    with pytest.raises(penstock.DecodeError, match="broken.*jpg"):
        pack(folder, tmp_path / "b.pen", on_bad="stop")
    wait_until(lambda: is_free(tmp_path / "b.pen"))  # soon no task runs any more
    good("gc", "--abandon", tmp_path / "b.pen")
    assert run("info", tmp_path / "b.pen").code == 1
