# SPDX-License-Identifier: Apache-2.0
"""The plan of tasks in an object store: each task fetches its own part of it, and checks that."""

import json
import re

import pytest
from bucket_tools import serve
from cli_tools import image_bytes, make_folder, write_list
from task_tools import Job, N

TASKS, ROWS, COLUMNS = 8, 80, 4
PAGE = 512 * 1024  # as src/io/pages.h has it
SMALL = ("--block-samples", "2", "--shard-bytes", "1")


@pytest.fixture(scope="module")
def server():
    with serve() as running:
        yield running


@pytest.fixture(scope="module")
def texts(tmp_path_factory):
    """A list whose texts make a plan of 19 MB."""
    top = tmp_path_factory.mktemp("texts")
    for i in range(ROWS):
        (top / f"{i}.jpg").write_bytes(image_bytes(1, "JPEG"))
    rows = [[f"{i}.jpg", *(f"{i} {k} ".ljust(60000, "x") for k in range(COLUMNS))]
            for i in range(ROWS)]
    return write_list(top / "a.csv", ["path", *(f"t{k}" for k in range(COLUMNS))], rows)


@pytest.fixture
def large(server, tmp_path, texts):
    """A job whose plan has many pages."""
    job = Job(server, tmp_path, texts)
    job.good("plan", texts, "-o", job.out, *SMALL)
    return job


def arguments(job, i, n=TASKS):
    return ("pack", job.source, "-o", job.out, *SMALL, "--task", f"{i}/{n}")


def plan_name(job):
    name, = (n for n in job.names() if n.startswith(".work/plan-"))
    return name


def fetched(server, size):
    """The requests for the plan, and their bytes."""
    ranges = [e["range"] for e in server.log()
              if ".work/plan-" in e["what"] and e["kind"] == "GetObject"]
    total = 0
    for text in ranges:
        first, last = re.fullmatch(r"bytes=(\d*)-(\d*)", text).groups()
        total += int(last) + 1 - int(first) if first else min(int(last), size)
    return len(ranges), total


def test_a_task_fetches_its_part_of_the_plan(server, large):
    job = large
    size = len(job.body(plan_name(job)))
    assert size > ROWS * COLUMNS * 60000
    for i in (0, 3, TASKS - 1):
        server.control(reset=True)
        job.good(*arguments(job, i))
        n, total = fetched(server, size)
        # The end of the plan, its own inputs, and less than a page at each end of the ranges.
        assert size / TASKS < total < size / TASKS + 5 * PAGE, (i, total)
        assert n <= size / TASKS / PAGE + 7, (i, n)
    for i in (1, 2, 4, 5, 6):
        job.good(*arguments(job, i))
    assert job.finalise()["samples"] == ROWS
    job.good("verify", job.out)


def test_stages_of_a_plan(server, tmp_path):
    job = Job(server, tmp_path, make_folder(tmp_path / "src"))
    result = job.good("plan", job.source, "-o", job.out, "--progress", "json")
    lines = [json.loads(line) for line in result.err.splitlines() if line.startswith("{")]
    stages = dict.fromkeys(line["stage"] for line in lines)
    assert list(stages) == ["list", "check", "sort", "plan", "hash", "upload"]
    assert all(line["done"] <= line["total"] == 8 for line in lines if line["stage"] != "list")


def test_damage_in_one_part_of_the_plan(large):
    job = large
    name = plan_name(job)
    body = bytearray(job.body(name))
    body[len(body) * 9 // 10] ^= 1
    job.bucket.put(f"a.pen/{name}", bytes(body))
    job.good(*arguments(job, 0))
    for skip in ((), ("--on-bad", "skip")):
        result = job.run(*arguments(job, TASKS - 1), *skip)
        assert result.code == 1 and "the checksum of its record" in result.message()
        assert "discard it with 'penstock gc --abandon'" in result.message()
    assert [n for n in job.names() if "task-" in n] == [f".work/task-0-of-{TASKS}"]


@pytest.mark.parametrize("how", ["short", "end", "other"])
def test_another_object_in_the_place_of_the_plan(server, tmp_path, how):
    job = Job(server, tmp_path, make_folder(tmp_path / "src"))
    job.plan()
    name = plan_name(job)
    body = job.body(name)
    if how == "other":
        other = Job(server, tmp_path, make_folder(tmp_path / "more", each=5))
        other.plan()
        body = other.body(plan_name(other))
    else:
        body = body[:100] if how == "short" else body[:-1] + bytes([body[-1] ^ 1])
    job.bucket.put(f"a.pen/{name}", body)
    for args in (job.arguments(0), ("finalise", job.out)):
        result = job.run(*args)
        assert result.code == 1 and "penstock gc --abandon" in result.message()
        assert f"{name}: " in result.message()
    assert job.left() == []


def test_a_plan_that_is_removed_while_a_task_runs(server, tmp_path, texts):
    """That is no broken input, which would be left out."""
    job, skip = Job(server, tmp_path, texts), ("--on-bad", "skip")
    job.good("plan", texts, "-o", job.out, *SMALL, *skip)
    name = plan_name(job)
    process = job.start(*arguments(job, 0, 1), *skip)
    job.stop_at(process, 1)
    assert process.poll() is None
    job.bucket.client.delete_object(Bucket=job.bucket.name, Key=f"a.pen/{name}")
    job.go_on(process)
    _, text = process.communicate(timeout=60)
    assert process.returncode == 1, text
    assert b"the plan was removed while this task was running" in text
    assert not [n for n in job.names() if "task-" in n]


@pytest.mark.parametrize("remote", [False, True])
def test_inputs_that_have_changed_since_the_plan(server, tmp_path, remote):
    job = Job(server, tmp_path, make_folder(tmp_path / "src", each=6))
    first, top = tmp_path / "src" / "cat" / "0.jpg", job.source
    if remote:
        job.bucket.fill(job.source, "photos")
        job.source = job.bucket.at("photos")
    job.plan()
    first.write_bytes(image_bytes(77, "JPEG", width=99))
    if remote:
        job.bucket.fill(top, "photos")
    results = [job.run(*job.arguments(i)) for i in range(N)]
    wrong = [r for r in results if r.code != 0]
    assert len(wrong) == 1 and wrong[0].code == 1
    message = wrong[0].message()
    assert "cat/0.jpg: changed since the plan was made" in message
    assert "run 'penstock gc --abandon', then 'penstock plan' and every task again" in message
    result = job.run("finalise", job.out)
    assert result.code == 1 and "manifest" not in job.names()
    job.good("gc", "--abandon", job.out)
    job.plan()
    for i in range(N):
        job.task(i)
    assert job.finalise()["samples"] == 12
