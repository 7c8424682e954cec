# SPDX-License-Identifier: Apache-2.0
"""penstock.Writer with task=(i, n), and penstock.finalise, in directories and object stores."""

import os
import pathlib
import pickle
import select
import signal
import subprocess
import sys
import time

import pytest
from bucket_tools import Bucket, serve, tree
from cli_tools import good, run
from py_tools import need_penstock, png
from remote_tools import options

penstock = need_penstock()

SCHEMA = {"image": "image", "label": "i64", "note": "text?"}
MANY = {"block_samples": 4, "shard_size": 1}
IMAGES = [png(i, 12, 10) for i in range(30)]


class Place:
    """Where a pack is written: a directory, or a prefix of a bucket."""

    def __init__(self, top, server=None):
        self.bucket = Bucket(server, top / "home") if server else None
        self.path = self.bucket.at("a.pen") if server else top / "a.pen"
        self.env = self.bucket.env if server else {}
        self.options = {"storage_options": options(server)} if server else {}

    def writer(self, i, n, schema=SCHEMA, **more):
        return penstock.Writer(self.path, schema, task=(i, n), **{**MANY, **self.options, **more})

    def task(self, i, n, samples, **more):
        with self.writer(i, n, **more) as writer:
            for s in samples:
                writer.add(f"s{s}", image=IMAGES[s % 30], label=s, note=None if s % 3 else f"n{s}")
        return len(writer)

    def finalise(self, **more):
        return penstock.finalise(self.path, **{**self.options, **more})

    def open(self):
        return penstock.open(self.path, **self.options)

    def tree(self):
        """All files or objects."""
        if not self.bucket:
            return tree(self.path)
        client, name = self.bucket.client, self.bucket.name
        pages = client.get_paginator("list_objects_v2").paginate(Bucket=name, Prefix="a.pen/")
        keys = [o["Key"] for page in pages for o in page.get("Contents", ())]
        return {key[6:]: client.get_object(Bucket=name, Key=key)["Body"].read() for key in keys}

    def names(self):
        return set(self.tree())

    def run(self, *args):
        return run(*args, env={**os.environ, **self.env})

    def good(self, *args):
        return good(*args, env={**os.environ, **self.env})


@pytest.fixture(scope="module")
def server():
    with serve() as running:
        yield running


@pytest.fixture(params=["directory", "store"])
def place(request, tmp_path):
    server = request.getfixturevalue("server") if request.param == "store" else None
    return Place(tmp_path, server)


@pytest.fixture
def folder(tmp_path):
    return Place(tmp_path)


@pytest.fixture
def store(tmp_path, server):
    return Place(tmp_path, server)


def parts(n_samples, n):
    return [range(i * n_samples // n, (i + 1) * n_samples // n) for i in range(n)]


@pytest.fixture(scope="module")
def expected(tmp_path_factory):
    """The pack of three tasks, one after the other, in a directory."""
    place = Place(tmp_path_factory.mktemp("expected"))
    for i, samples in enumerate(parts(40, 3)):
        place.task(i, 3, samples)
    place.finalise()
    return place.tree()


def check_samples(pack, samples):
    found = {}
    for i in range(len(pack)):
        found[pack.key(i)] = pack[i]
    assert set(found) == {f"s{s}" for s in samples} and len(pack) == len(samples)
    for s in samples:
        sample = found[f"s{s}"]
        assert sample["label"] == s and sample["note"] == (None if s % 3 else f"n{s}")
        assert bytes(sample["image"]) == IMAGES[s % 30]


# ---- what becomes of the tasks ----------------------------------------------------------------


def test_any_order_and_any_place_give_the_same_pack(place, expected):
    for i in (2, 0, 1):
        assert place.task(i, 3, parts(40, 3)[i]) == len(parts(40, 3)[i])
        with pytest.raises(penstock.NotFoundError):
            place.open()
    assert place.finalise() == 40
    assert place.tree() == expected
    check_samples(place.open(), range(40))
    place.good("verify", place.path)
    assert place.good("gc", place.path, "--json").json()["files"] == 0


def test_the_order_of_samples(folder):
    """Full blocks in the order of tasks, then the last samples of each task."""
    for i, samples in enumerate(parts(40, 3)):
        folder.task(i, 3, samples)
    folder.finalise()
    pack = folder.open()
    blocks = [*range(12), *range(13, 25), *range(26, 38)]
    assert [pack[i]["label"] for i in range(40)] == [*blocks, 12, 25, 38, 39]


def test_tasks_without_samples(place):
    place.task(0, 3, [])
    place.task(1, 3, range(5))
    place.task(2, 3, [])
    assert place.finalise() == 5
    check_samples(place.open(), range(5))


def test_no_samples_at_all(place):
    place.task(0, 2, [])
    place.task(1, 2, [])
    with pytest.raises(penstock.InvalidError, match="no task has added a sample"):
        place.finalise()


def test_one_task(place):
    place.task(0, 1, range(9))
    assert place.finalise() == 9
    check_samples(place.open(), range(9))


def test_keys_that_nobody_gave(folder):
    for i in range(2):
        with penstock.Writer(folder.path, {"x": "i64"}, task=(i, 2)) as writer:
            writer.add(x=i)
            writer.add(x=i)
    folder.finalise()
    keys = [folder.open().key(i) for i in range(4)]
    assert keys == [f"{t:06d}-{i:012d}" for t in range(2) for i in range(2)]


def test_classes_and_a_name(folder):
    for i in range(2):
        folder.task(i, 2, [i], classes=["ant", "bee"], name="animals")
    folder.finalise()
    assert folder.open().classes == ["ant", "bee"]


def test_many_small_tasks(folder):
    """Every sample is in a rest: blocks of rests are written while they are joined."""
    for i in range(23):
        folder.task(i, 23, range(3 * i, 3 * i + 3))
    assert folder.finalise() == 69
    check_samples(folder.open(), range(69))
    folder.good("verify", folder.path)


def test_the_command_line_finalises(place, expected):
    for i, samples in enumerate(parts(40, 3)):
        place.task(i, 3, samples)
    result = place.good("finalise", place.path, "--json").json()
    assert result["samples"] == 40 and place.tree() == expected


# ---- tasks whose number is not known ------------------------------------------------------------


def test_an_open_number_of_tasks(place):
    for i, samples in enumerate(parts(40, 3)):
        place.task(i, None, samples)
    with pytest.raises(penstock.InvalidError, match="pass their number"):
        place.finalise()
    with pytest.raises(penstock.NotFoundError, match="task 3 of 4 is not complete; run it again"):
        place.finalise(tasks=4)
    assert "--tasks" in place.run("finalise", place.path).err
    place.good("finalise", place.path, "--tasks", "3")
    check_samples(place.open(), range(40))
    assert not [name for name in place.names() if ".work" in name]


def test_tasks_after_the_number_are_left_out(folder):
    """A run before had more tasks: what these left does not count."""
    for i, samples in enumerate(parts(40, 4)):
        folder.task(i, None, samples)
    assert folder.finalise(tasks=3) == 30
    check_samples(folder.open(), range(30))
    assert not [name for name in folder.names() if ".work" in name]


def test_another_number_at_the_end(folder):
    folder.task(0, 1, range(3))
    with pytest.raises(penstock.InvalidError, match="started with, 1, found 2"):
        folder.finalise(tasks=2)
    assert folder.finalise(tasks=1) == 3


# ---- what is refused ----------------------------------------------------------------------------


def test_missing_tasks_are_named(place):
    place.task(1, 4, range(5))
    with pytest.raises(penstock.NotFoundError, match="tasks 0, 2, 3 of 4 are not complete"):
        place.finalise()
    place.task(0, 4, [])
    place.task(2, 4, [])
    with pytest.raises(penstock.NotFoundError, match="task 3 of 4 is not complete; run it again"):
        place.finalise()


def test_a_task_that_was_closed_is_not_complete(place):
    place.task(0, 2, range(9))
    with pytest.raises(ZeroDivisionError):
        with place.writer(1, 2) as writer:
            for s in range(20, 29):
                writer.add(f"s{s}", image=IMAGES[s], label=s, note=None)
            raise ZeroDivisionError
    with pytest.raises(penstock.NotFoundError, match="task 1 of 2"):
        place.finalise()
    place.task(1, 2, range(9, 12))
    assert place.finalise() == 12
    check_samples(place.open(), range(12))


@pytest.mark.parametrize("change", [
    {"schema": {"image": "image", "label": "i64", "note": "bytes?"}}, {"mode": "raw"},
    {"block_samples": 8}, {"shard_size": 2}, {"name": "b"}, {"classes": ["a"]},
])
def test_tasks_have_to_agree(place, change):
    place.task(0, 2, range(3))
    with pytest.raises(penstock.ExistsError, match="another schema, other settings or another"):
        place.writer(1, 2, **change)
    with pytest.raises(penstock.ExistsError, match="number of tasks; use the same"):
        place.writer(1, 3)
    with pytest.raises(penstock.ExistsError):
        place.writer(1, None)
    place.task(1, 2, range(3, 6))
    assert place.finalise() == 6


def test_a_record_of_another_plan(folder):
    """Two tasks that start at the same moment with different settings: the plan of one stays."""
    folder.task(0, 2, range(3))
    plan = (folder.path / ".work" / "plan").read_bytes()
    (folder.path / ".work" / "plan").unlink()
    folder.task(1, 2, range(3, 6), name="other")
    with pytest.raises(penstock.InvalidError, match="task 0 of 2 was written with another schema"):
        folder.finalise()
    (folder.path / ".work" / "plan").write_bytes(plan)
    folder.task(1, 2, range(3, 6))
    assert folder.finalise() == 6


def test_a_key_in_two_tasks(place):
    place.task(0, 2, range(6))
    place.task(1, 2, range(5, 9))
    with pytest.raises(penstock.ExistsError, match="key 's5' occurs twice"):
        place.finalise()
    place.task(1, 2, range(6, 9))
    assert place.finalise() == 9


def test_a_pack_that_exists(place):
    place.task(0, 1, range(3))
    place.finalise()
    before = place.tree()
    with pytest.raises(penstock.ExistsError, match="already exists"):
        place.writer(0, 1)
    with pytest.raises(penstock.ExistsError, match="already exists"):
        place.finalise()
    assert place.tree() == before
    assert place.bucket or not os.path.exists(os.path.join(place.path, ".work"))


@pytest.mark.parametrize("task, error, message", [
    ((3, 3), penstock.InvalidError, "expected 0 to 2, found 3"),
    ((-1, 3), penstock.InvalidError, "expected 0 to 2, found -1"),
    ((0, 0), penstock.InvalidError, "expected 1 to 1000000, found 0"),
    ((0, 10**6 + 1), penstock.InvalidError, "expected 1 to 1000000"),
    ((10**6, None), penstock.InvalidError, "expected 0 to 999999"),
    ("0/3", TypeError, r"expected \(number, number of tasks\)"),
    (3, TypeError, r"expected \(number, number of tasks\)"),
    ((1.5, 3), TypeError, "expected an integer"),
])
def test_numbers_of_tasks(tmp_path, task, error, message):
    with pytest.raises(error, match=f"task: {message}"):
        penstock.Writer(tmp_path / "a.pen", {"x": "i64"}, task=task)
    assert not (tmp_path / "a.pen").exists()


def test_nothing_to_finalise(place, tmp_path):
    with pytest.raises(penstock.NotFoundError):
        place.finalise()


def test_a_broken_plan(place):
    place.task(0, 1, range(3))
    plan = place.tree()[".work/plan"]
    for damaged in (plan[:-1], plan[:60], plan[:20] + b"\1" + plan[21:]):
        if place.bucket:
            place.bucket.put("a.pen/.work/plan", damaged)
        else:
            (place.path / ".work" / "plan").write_bytes(damaged)
        with pytest.raises(penstock.CorruptError, match="damaged; discard"):
            place.finalise()
    place.good("gc", place.path, "--abandon")
    assert place.task(0, 1, range(3)) == place.finalise()


def test_a_broken_record(place):
    place.task(0, 1, range(3))
    name = next(n for n in place.tree() if n.startswith(".work/task-0"))
    record = place.tree()[name]
    for damaged in (record[:-1], record[:40], b"\0" + record[1:]):
        if place.bucket:
            place.bucket.put(f"a.pen/{name}", damaged)
        else:
            (place.path / name).write_bytes(damaged)
        with pytest.raises(penstock.CorruptError, match="damaged; run that task again"):
            place.finalise()


# ---- beside the other ways to make a pack -------------------------------------------------------


def test_other_commands_leave_the_tasks_alone(folder, tmp_path):
    (tmp_path / "src" / "a").mkdir(parents=True)
    (tmp_path / "src" / "a" / "1.png").write_bytes(IMAGES[0])
    folder.task(0, 1, range(3))
    for more in ((), ("--task", "0/1")):
        result = folder.run("pack", tmp_path / "src", "-o", folder.path, *more)
        assert result.code == 1 and "tasks of a writer have begun here" in result.err
    result = folder.run("plan", tmp_path / "src", "-o", folder.path)
    assert result.code == 1 and "tasks of a writer have begun here" in result.err
    with pytest.raises(penstock.ExistsError, match="tasks have been run here"):
        penstock.Writer(folder.path, SCHEMA)
    assert folder.finalise() == 3


def test_tasks_of_pack_are_left_alone(place, tmp_path):
    (tmp_path / "src" / "a").mkdir(parents=True)
    (tmp_path / "src" / "a" / "1.png").write_bytes(IMAGES[0])
    place.good("plan", tmp_path / "src", "-o", place.path)
    with pytest.raises(penstock.ExistsError, match="a plan or an unfinished run"):
        place.writer(0, 1)
    place.good("pack", tmp_path / "src", "-o", place.path, "--task", "0/1")
    assert place.finalise(tasks=1) == 1  # penstock.finalise joins these tasks too


def test_gc_discards_tasks(place):
    place.task(0, 2, range(9))
    before = place.tree()
    result = place.run("gc", place.path)
    assert result.code == 75 and "'penstock gc --abandon" in result.err
    assert place.tree() == before
    if not place.bucket:  # of a plan that was killed
        (pathlib.Path(place.path) / ".work" / "plan.spill").touch()
    place.good("gc", place.path, "--abandon")
    assert place.names() == set()
    for i in range(2):
        place.task(i, 2, range(i, i + 1))
    assert place.finalise() == 2


# ---- runs that die, and two runs at once --------------------------------------------------------

KILLED = """
import pickle, sys
import penstock
arguments, samples = pickle.load(sys.stdin.buffer)
writer = penstock.Writer(**arguments)
for key, values in samples:
    writer.add(key, **values)
print("there", flush=True)
sys.stdin.read()
"""


def start_task(place, n, other=False):
    """A process in the middle of task 1 of 3."""
    samples = [(f"s{s}", {"image": IMAGES[s % 30], "label": s, "note": "o" if other else None})
               for s in range(13, 13 + n)]
    arguments = {"path": place.path, "schema": SCHEMA, "task": (1, 3), **MANY, **place.options}
    top = os.path.dirname(os.path.dirname(penstock.__file__))
    process = subprocess.Popen([sys.executable, "-c", KILLED], stdin=subprocess.PIPE,
                               stdout=subprocess.PIPE, env={**os.environ, "PYTHONPATH": top})
    pickle.dump((arguments, samples), process.stdin)
    process.stdin.flush()
    ready, _, _ = select.select([process.stdout], [], [], 300)
    if not ready:
        process.kill()
    assert process.stdout.readline() == b"there\n"
    return process


def end(process):
    process.kill()
    process.communicate()
    assert process.returncode == -signal.SIGKILL


@pytest.mark.parametrize("other", [False, True])
def test_a_killed_task_is_replaced(place, expected, other):
    place.task(0, 3, parts(40, 3)[0])
    place.task(2, 3, parts(40, 3)[2])
    end(start_task(place, 23, other))
    with pytest.raises(penstock.NotFoundError, match="task 1 of 3"):
        place.finalise()
    place.task(1, 3, parts(40, 3)[1])
    place.finalise()
    assert place.tree() == expected


def test_a_task_that_runs_twice_in_a_directory(folder, expected):
    for i, samples in enumerate(parts(40, 3)):
        folder.task(i, 3, samples)
    first = start_task(folder, 5, other=True)
    with pytest.raises(penstock.BusyError):
        folder.writer(1, 3)
    with pytest.raises(penstock.BusyError):
        folder.finalise()
    began = time.monotonic()
    with pytest.raises(penstock.BusyError):
        folder.writer(1, 3, wait=0.5)
    assert time.monotonic() - began >= 0.5
    folder.task(0, 3, parts(40, 3)[0])  # others are not kept waiting
    first.kill()
    folder.task(1, 3, parts(40, 3)[1], wait=60)
    first.communicate()
    folder.finalise(wait=60)
    assert folder.tree() == expected


def test_two_runs_with_the_same_samples_in_a_store(store, expected):
    first, second = (store.writer(1, 3) for _ in range(2))
    for s in parts(40, 3)[1]:
        for writer in (first, second):
            writer.add(f"s{s}", image=IMAGES[s % 30], label=s, note=None if s % 3 else f"n{s}")
    for i in (0, 2):
        store.task(i, 3, parts(40, 3)[i])
    assert second.finish() == first.finish() == 13
    store.finalise()
    assert store.tree() == expected


def test_two_runs_with_different_samples_in_a_store(store):
    """Never a mix: one of both runs, or an error until the task is run again."""
    store.task(0, 2, range(20, 25))
    first, second = (store.writer(1, 2) for _ in range(2))
    for i in range(4):
        first.add(f"s{i}", image=IMAGES[i], label=i, note=None)
        second.add(f"s{i}", image=IMAGES[i], label=i, note="n0" if i == 0 else None)
    for i in range(4, 8):
        first.add(f"s{i}", image=IMAGES[i], label=i, note=None)
        second.add(f"s{i}", image=IMAGES[i], label=i, note="other")
    second.close()  # it died after it had replaced both shards
    first.finish()
    with pytest.raises(penstock.CorruptError, match="shard of task 1 is of another run, with othe"):
        store.finalise()
    store.task(1, 2, range(4))
    assert store.finalise() == 9
    check_samples(store.open(), [*range(4), *range(20, 25)])


def test_an_orphan_after_finalise_in_a_store(store, expected):
    """It writes nothing more, and what is published stays as it is."""
    orphan = store.writer(1, 3)
    idle = store.writer(2, 3)
    for s in range(3):
        orphan.add(f"s{s}", image=IMAGES[s], label=s, note="other")
    for i, samples in enumerate(parts(40, 3)):
        store.task(i, 3, samples)
    store.finalise()
    with pytest.raises(penstock.ChangedError, match="published, or its tasks have been discarded"):
        orphan.add("s3", image=IMAGES[3], label=3, note=None)
    with pytest.raises(penstock.ChangedError):
        idle.finish()
    orphan.close()
    assert store.tree() == expected
    with pytest.raises(penstock.ExistsError):
        store.writer(1, 3)
    assert store.tree() == expected


def test_an_orphan_after_a_finalise_that_was_killed(store):
    """The pack was published, and its plan is still there."""
    orphan = store.writer(0, 1)
    store.task(0, 1, range(4))
    plan = store.tree()[".work/plan"]
    store.finalise()
    before = store.tree()
    store.bucket.client.put_object(Bucket=store.bucket.name, Key="a.pen/.work/plan", Body=plan)
    orphan.add("a", image=IMAGES[0], label=0, note=None)
    with pytest.raises(penstock.ChangedError):
        orphan.finish()
    assert store.tree() == {**before, ".work/plan": plan}


def test_an_orphan_after_gc_in_a_store(store):
    orphan = store.writer(0, 1)
    orphan.add("a", image=IMAGES[0], label=0, note=None)
    store.good("gc", "--abandon", store.path)
    with pytest.raises(penstock.ChangedError):
        orphan.finish()
    assert not [name for name in store.names() if ".work" in name]


def test_an_orphan_of_a_job_that_was_started_again(store):
    """The new job has the same settings, and its plan other random bytes."""
    orphan = store.writer(0, 1)
    orphan.add("a", image=IMAGES[0], label=0, note=None)
    store.good("gc", "--abandon", store.path)
    store.task(0, 1, range(3))
    before = store.tree()
    with pytest.raises(penstock.ChangedError):
        orphan.finish()
    assert store.tree() == before
    assert store.finalise() == 3
    check_samples(store.open(), range(3))
