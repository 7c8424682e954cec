# SPDX-License-Identifier: Apache-2.0
"""Tasks of a pack in an object store: plan, pack --task and finalise without a shared directory."""

import json

import net_stage
import pytest
from bucket_tools import serve, tree
from cli_tools import good, make_folder, run
from py_tools import need_penstock
from remote_tools import options
from task_tools import MANY, Job, N


@pytest.fixture(scope="module")
def server():
    with serve() as running:
        yield running


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """40 samples: tasks have shards and a rest."""
    return make_folder(tmp_path_factory.mktemp("photos") / "src", each=20)


@pytest.fixture(scope="module")
def expected(folder, tmp_path_factory):
    """The pack of the same tasks in a directory."""
    out = tmp_path_factory.mktemp("packs") / "a.pen"
    good("plan", folder, "-o", out, *MANY)
    for i in range(N):
        good("pack", folder, "-o", out, *MANY, "--task", f"{i}/{N}")
    good("finalise", out)
    return tree(out)


@pytest.fixture
def job(server, tmp_path, folder):
    return Job(server, tmp_path, folder)


@pytest.fixture(params=["scripted", pytest.param("ceph", marks=pytest.mark.slow)])
def any_job(request, tmp_path, folder):
    server = request.getfixturevalue("server") if request.param == "scripted" else (
        net_stage.need_ceph())
    return Job(server, tmp_path, folder)


def test_same_pack_as_in_a_directory(any_job, expected):
    job = any_job
    job.plan()
    assert [n.partition("-")[0] for n in job.names()] == [".work/plan", ".work/plan"]
    first = job.task(2, machine="b")
    job.task(0)
    job.task(1, machine="b")
    assert first["samples"] > 0 and "id" not in first
    assert "manifest" not in job.names()
    result = job.finalise(machine="c")
    assert result["samples"] == 40 and result["id"]
    assert job.tree() == expected
    assert job.left("home") == job.left("b") == job.left("c") == []
    assert job.bucket.client.list_multipart_uploads(Bucket=job.bucket.name).get("Uploads", []) == []
    job.good("verify", job.out)


def test_sources_in_a_bucket_and_an_own_work_directory(job, expected, tmp_path):
    job.bucket.fill(job.source, "photos")
    job.source = job.bucket.at("photos")
    work = ("--work", tmp_path / "work")
    job.good("plan", job.source, "-o", job.out, *MANY, *work)
    for i in range(N):
        job.good(*job.arguments(i), *work)
    job.good("finalise", job.out, *work)
    assert job.tree() == expected
    assert list((tmp_path / "work").iterdir()) == []


def test_plan_is_written_once_and_missing_tasks_are_named(job):
    assert "no plan found; run 'penstock plan' first" in job.run(*job.arguments(0)).message()
    assert "no plan found" in job.run("finalise", job.out).message()
    job.plan()
    names = job.names()
    job.plan(machine="b")  # the same
    assert job.names() == names
    result = job.run("plan", job.source, "-o", job.out, *MANY, "--seed", "1")
    assert result.code == 1 and ".work/plan: another plan" in result.message()
    other = job.run("pack", job.source, "-o", job.out, *MANY, "--seed", "1", "--task", "0/3")
    assert other.code == 1 and "other sources or settings" in other.message()
    assert "no task has been run" in job.run("finalise", job.out).message()
    job.task(1)
    result = job.run("finalise", job.out)
    assert result.code == 1 and "tasks 0, 2 of 3 are not done" in result.message()
    assert "manifest" not in job.names()
    assert job.left("home") == job.left("b") == []


def test_many_tasks_that_are_not_complete(tmp_path, folder):
    out = tmp_path / "a.pen"
    good("plan", folder, "-o", out, *MANY)
    good("pack", folder, "-o", out, *MANY, "--task", "3/20")
    message = run("finalise", out).message()
    assert "tasks 0, 1, 2, 4, 5, 6, 7, 8, 9, 10 and 9 more of 20 are not done" in message


def test_killed_tasks_are_run_again(any_job, expected):
    """On the same machine it resumes, on another it starts anew."""
    job = any_job
    job.plan()
    for i, shards in ((0, 0), (1, 1), (2, 2)):
        job.kill_at(job.start(*job.arguments(i)), shards)
    for i, machine in enumerate(("home", "b", "home")):
        job.task(i, machine=machine)
    job.finalise(machine="b")
    assert job.tree() == expected
    job.good("gc", job.out)
    assert job.tree() == expected and job.left() == []


def test_a_task_twice_at_once_and_twice_in_turn(job, expected):
    job.plan()
    both = [job.start(*job.arguments(0), machine=machine) for machine in ("home", "b")]
    for process in both:
        _, text = process.communicate(timeout=600)
        assert process.returncode == 0, text
    job.task(1)
    first = job.task(2)
    again = job.task(2, machine="b")  # not packed again
    assert again["resumed"] == again["samples"] == first["samples"] > 0
    same = ("samples", "shards", "pack_bytes", "images", "samples_per_block")
    assert {k: first.get(k) for k in same} == {k: again.get(k) for k in same}
    job.finalise()
    assert job.tree() == expected


def test_finalise_twice(any_job, expected):
    job = any_job
    job.plan()
    for i in range(N):
        job.task(i)
    work = {name: body for name, body in job.tree().items() if name.startswith(".work/")}
    rests = {name: body for name, body in job.tree().items() if name not in expected}
    job.finalise()
    result = job.run("finalise", job.out)
    assert result.code == 1 and "the pack already exists" in result.message()
    assert job.tree() == expected
    # Stopped after the pack was published: the same command ends it.
    for name, body in {**rests, **work}.items():
        job.bucket.put(f"a.pen/{name}", body)
    assert job.finalise()["samples"] == 40
    assert job.tree() == expected
    # Another pack is not replaced.
    for name, body in {**rests, **work, "manifest": b"another"}.items():
        job.bucket.put(f"a.pen/{name}", body)
    result = job.run("finalise", job.out)
    assert result.code == 1 and "another pack was published here" in result.message()
    assert job.body("manifest") == b"another"


def test_a_task_that_is_late(job, expected, folder, tmp_path):
    """A scheduler runs it again after the pack was finalised: success, and nothing changes."""
    out = tmp_path / "here.pen"
    job.plan()
    good("plan", folder, "-o", out, *MANY)
    for i in range(N):
        job.task(i)
        good("pack", folder, "-o", out, *MANY, "--task", f"{i}/{N}")
    record = job.finalise()
    good("finalise", out)
    for place, late in ((job.out, lambda *more: job.good(*job.arguments(1), *more, machine="d")),
                        (out, lambda *more: good("pack", folder, "-o", out, *MANY, "--task",
                                                 f"1/{N}", *more))):
        assert (f"{place}: the pack is already complete, so task 1/{N} has nothing to do"
                in late().message())
        again = late("--json").json()
        assert (again["samples"], again["id"]) == (40, record["id"])
        assert job.tree() == tree(out) == expected
    assert job.left("d") == []
    assert "the pack already exists" in run("plan", folder, "-o", out, *MANY).message()
    other = run("pack", folder, "-o", out, "--append", "--task", f"0/{N}")
    assert other.code != 0 and tree(out) == expected


def test_shards_of_another_run_are_not_joined(job, expected):
    job.plan()
    for i in range(N):
        job.task(i)
    shards = sorted(name for name in job.shards() if name in expected)
    right = job.body(shards[0])
    job.bucket.client.delete_object(Bucket=job.bucket.name, Key=f"a.pen/{shards[0]}")
    result = job.run("finalise", job.out)
    assert result.code == 1 and "is missing; run that task again" in result.message()
    task = int(result.message().partition("a shard of task ")[2].split()[0])
    job.task(task)
    assert job.body(shards[0]) == right
    record = f".work/task-{task}-of-{N}"
    body = job.body(record)
    job.bucket.put(f"a.pen/{record}", b"x" + body[1:])
    result = job.run("finalise", job.out)
    assert result.code == 1 and "damaged; run that task again" in result.message()
    job.task(task)
    assert job.body(record) == body
    job.finalise()
    assert job.tree() == expected


def test_broken_inputs(job, tmp_path, monkeypatch):
    job.source, skip = make_folder(tmp_path / "broken", each=5), ("--on-bad", "skip")
    for i in range(3):
        (job.source / "cat" / f"broken{i}.jpg").write_bytes(b"no image")
    job.good("plan", job.source, "-o", job.out, *MANY, *skip)
    for i in range(N):
        job.good(*job.arguments(i), *skip)
    monkeypatch.chdir(tmp_path)
    result = job.finalise()
    assert result["broken_inputs_left_out"] == 3 and result["samples"] == 10
    lines = (tmp_path / "a.pen-bad.jsonl").read_text().splitlines()
    assert sorted(json.loads(line)["key"] for line in lines) == [
        f"cat/broken{i}.jpg" for i in range(3)]


def test_credentials_that_expire_right_after_the_pack_is_published(server, tmp_path, folder):
    """The pack is complete; the message says how to remove the plan. So does the warning of the
    Python package."""
    jobs = [Job(server, tmp_path, folder) for _ in range(3)]
    for job in jobs:
        job.plan()
        for i in range(N):
            job.task(i)
    server.control(reset=True)
    jobs[0].finalise()
    made = [(line["kind"], line["what"].split("/", 1)[-1]) for line in server.log()]
    brief = {"id": "brief", "secret": "s3cret",
             "requests": made.index(("PutObject", "a.pen/manifest")) + 1}
    penstock = need_penstock()
    server.control(key={**brief, "id": "also-brief"})
    with pytest.warns(UserWarning, match=f"remove it with 'penstock gc --abandon {jobs[2].out}'"):
        assert penstock.finalise(jobs[2].out, work=tmp_path / "work", storage_options={
            **options(server), "key_id": "also-brief", "secret": "s3cret"}) == 40
    server.control(key=brief)
    job = jobs[1]
    result = run("finalise", job.out, env={**job.env("home"), "AWS_ACCESS_KEY_ID": "brief",
                                           "AWS_SECRET_ACCESS_KEY": "s3cret"})
    assert result.code == 0 and "returned 400" in result.err
    assert f"remove it with 'penstock gc --abandon {job.out}'" in result.err
    assert job.run("gc", job.out).code == 75
    job.good("gc", "--abandon", job.out)
    assert job.tree() == jobs[0].tree()
    job.good("verify", job.out)


def test_gc_refuses_while_there_is_a_plan(any_job):
    job = any_job
    job.plan()
    job.task(0)
    before = job.tree()
    result = job.run("gc", job.out)
    assert result.code == 75
    assert "may be running; run 'penstock finalise" in result.message()
    assert "'penstock gc --abandon" in result.message()
    assert job.tree() == before
    job.good("gc", "--abandon", job.out)
    assert job.names() == [] and job.left() == []
    job.bucket.put("a.pen/.work/task-1-of-3", b"of a process that was late")
    job.bucket.put("a.pen/.work/notes.txt", b"somebody's")
    job.good("gc", job.out)
    assert job.tree() == {".work/notes.txt": b"somebody's"}
