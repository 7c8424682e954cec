# SPDX-License-Identifier: Apache-2.0
"""Messages that advise an action: each advice is followed, and has to work.

A row of the table: what is done wrong, what the message says, what the user then does, and the
command that works after it.
"""

import contextlib

import pytest
from advice_tools import Desk, follow, nothing
from cli_tools import good, image_bytes, run, write_list
from py_tools import need_penstock, png

penstock = need_penstock()

# What is done -> message -> what the user does -> what then works.
TABLE = {
    "fix it": (Desk.broken, "fix or remove it",
                lambda d: (d.folder / "dog" / "z.jpg").write_bytes(image_bytes(1)), Desk.pack),
    "remove it": (Desk.broken, "fix or remove it",
                  lambda d: (d.folder / "dog" / "z.jpg").unlink(), Desk.pack),
    "leave it out": (Desk.broken, "skip broken inputs with --on-bad skip", nothing,
                     lambda d: d.pack("--on-bad", "skip")),
    "another name": (lambda d: good(*d.pack()) and d.pack(), "choose another name", nothing,
                     lambda d: d.pack(out=d.top / "b.pen")),
    "append instead": (lambda d: good(*d.pack()) and d.pack(), "or --append to add to it", nothing,
                       lambda d: ("pack", d.folder, "-o", d.out, "--append")),
    "leave out --append": (lambda d: d.pack("--append"), "leave out --append to make one", nothing,
                           Desk.pack),
    "a name in .pen": (lambda d: d.pack(out=d.top / "a"),
                       "the name of a pack ends in .pen; write -o ", nothing, Desk.pack),
    "run that command again": (Desk.failed, "run that command again",
                           lambda d: (d.folder / "dog" / "z.jpg").unlink(), Desk.pack),
    "discard it": (Desk.failed, "or discard it with 'penstock gc", lambda d: [
        (d.folder / "dog" / "z.jpg").unlink(), good("gc", d.out)],
        Desk.other),
    "a folder for the stray": (Desk.stray, "move the first one away or into a folder",
                               lambda d: (d.folder / "stray.jpg").rename(
                                   d.folder / "cat" / "stray.jpg"), Desk.pack),
    "the stray away": (Desk.stray, "move the first one away",
                       lambda d: (d.folder / "stray.jpg").unlink(), Desk.pack),
    "a list of the files": (Desk.stray, "pass a list of the files", lambda d: write_list(
        d.top / "l.csv", ["path", "label"], [["in/stray.jpg", "x"], ["in/cat/0.jpg", "y"]]),
        lambda d: d.pack(source=d.top / "l.csv")),
    "--order source": (Desk.gzipped, "add --order source", nothing,
                       lambda d: (*d.gzipped(), "--order", "source")),
    "a header": (Desk.headless, "add a line such as path,label", Desk.with_header,
                 lambda d: d.pack(source=d.top / "l.csv")),
    "one kind after the other": (
        lambda d: (*d.pack(), write_list(d.top / "l.csv", ["path", "label"],
                                         [["in/cat/0.jpg", "cat"]])),
        "pack them one after the other with --append", lambda d: good(*d.pack()),
        lambda d: ("pack", d.top / "l.csv", "-o", d.out, "--append")),
    "run the tasks first": (lambda d: good("plan", *d.pack()[1:]) and ("finalise", d.out),
                            "run 'penstock pack --task I/N' for each first",
                            lambda d: [good(*d.task(0)), good(*d.task(1))],
                            lambda d: ("finalise", d.out)),
    "run that task first": (lambda d: d.tasks_begun() or ("finalise", d.out),
                            "is not done; run 'penstock pack --task ", lambda d: good(*d.task(1)),
                            lambda d: ("finalise", d.out)),
    "that number of tasks": (lambda d: d.tasks_begun() or d.task(1, 3), "use that number", nothing,
                             lambda d: d.task(1)),
    "gc and start again": (lambda d: d.tasks_begun() or d.task(1, 3), "'penstock gc --abandon",
                           lambda d: good("gc", "--abandon", d.out), lambda d: d.task(1, 3)),
    "discard the tasks": (lambda d: d.tasks_begun() or d.other(), "with 'penstock gc --abandon",
                          lambda d: good("gc", "--abandon", d.out), Desk.other),
    "gc after tasks": (lambda d: d.tasks_begun() or ("gc", d.out),
                       "or discard the plan and what the tasks have written", nothing,
                       lambda d: ("gc", "--abandon", d.out)),
    "plan again": (Desk.changed_after_the_plan, "run 'penstock plan' again, then every task",
                   Desk.plan_again, lambda d: ("finalise", d.out)),
}


@pytest.mark.parametrize("row", TABLE)
def test_the_advice_works(tmp_path, row):
    follow(Desk(tmp_path), TABLE[row])


def test_a_writer_is_told_to_choose_another_name(tmp_path):
    desk = Desk(tmp_path)
    good(*desk.pack())
    with pytest.raises(penstock.Error, match="choose another name"), \
            contextlib.closing(penstock.Writer(desk.out, {"image": "image"})):
        pass
    with penstock.Writer(tmp_path / "b.pen", {"image": "image"}) as writer:
        writer.add(key="s", image=png(1, 12, 10))
    good("verify", tmp_path / "b.pen")


@pytest.fixture
def store(s3, tmp_path):
    """(a directory with pictures, the command in a store, tasks that have begun there)"""
    env = s3().environment(HOME=str(tmp_path))
    desk = Desk(tmp_path)
    out = "s3://packs/a.pen"

    def do(*args):
        return run(*args, env=env)

    def task(i, n=2):
        return do(*desk.pack("--task", f"{i}/{n}", out=out))

    def plan(*more):
        return do("plan", *desk.pack(*more, out=out)[1:])

    assert plan().code == 0 and task(0).code == 0
    return do, plan, task


def test_plan_in_a_store(store):
    """finalise, or gc --abandon."""
    do, plan, task = store
    other = plan("--seed", "9")
    assert other.code == 1 and "finish it with 'penstock finalise', or discard it" in other.err
    busy = do("gc", "s3://packs/a.pen")
    assert busy.code == 75 and "run 'penstock finalise s3://packs/a.pen', or discard" in busy.err
    wrong = task(1, 3)
    assert wrong.code == 1 and "run 'penstock gc --abandon s3://packs/a.pen' and start" in wrong.err
    assert do("gc", "--abandon", "s3://packs/a.pen").code == 0
    assert plan("--seed", "9").code == 0
    assert do("gc", "--abandon", "s3://packs/a.pen").code == 0
    assert plan().code == 0 and task(0).code == 0 and task(1).code == 0
    assert do("finalise", "s3://packs/a.pen").code == 0
    assert do("verify", "s3://packs/a.pen").code == 0


def test_no_directory_for_the_work(s3, tmp_path):
    desk = Desk(tmp_path)
    env = s3().environment(HOME="", XDG_CACHE_HOME="")
    command = desk.pack(out="s3://packs/a.pen")
    result = run(*command, env=env)
    assert result.code == 1 and "pass one with --work" in result.err
    good(*command, "--work", tmp_path / "work", env=env)
