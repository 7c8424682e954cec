# SPDX-License-Identifier: Apache-2.0
"""gc of a directory: tasks that share a plan are kept, the rest of one process is not."""

import shutil

import pytest
from advice_tools import Desk
from bucket_tools import tree
from cli_tools import good, run


@pytest.fixture
def desk(tmp_path):
    return Desk(tmp_path)


def is_refused(desk):
    before = tree(desk.out)
    result = run("gc", desk.out)
    return (result.code == 75 and "may be running; run 'penstock finalise" in result.message()
            and tree(desk.out) == before)


def plan(desk):
    good("plan", *desk.pack()[1:])


def test_a_plan_of_tasks(desk):
    plan(desk)
    assert is_refused(desk)
    good(*desk.task(0))
    assert is_refused(desk)
    good("gc", "--abandon", desk.out)
    assert tree(desk.out) == {}
    good("gc", desk.out)


def test_a_task_that_made_the_plan(desk):
    good(*desk.task(0))
    assert is_refused(desk)
    good(*desk.task(1))
    good("finalise", desk.out)
    assert good("gc", desk.out, "--json").json()["files"] == 0


def test_a_run_of_one_process(desk):
    assert run(*desk.broken()).code == 1
    good("gc", desk.out)
    assert tree(desk.out) == {}


def test_a_run_that_took_over_the_plan(desk):
    """No task has been run: there is nothing to lose."""
    desk.broken()
    plan(desk)
    assert run(*desk.pack()).code == 1
    good("gc", desk.out)
    assert tree(desk.out) == {}


def test_a_pack_that_was_published(desk, tmp_path):
    """finalise was killed before it removed what the tasks had left."""
    for i in range(2):
        good(*desk.task(i))
    shutil.copytree(desk.out / ".work", tmp_path / "left")
    good("finalise", desk.out)
    expected = tree(desk.out)
    shutil.copytree(tmp_path / "left", desk.out / ".work")
    good("gc", desk.out)
    assert tree(desk.out) == expected
