# SPDX-License-Identifier: Apache-2.0
"""What users do between two runs of the same command. The pack has to be that of a fresh run.

tests/long/long_resume.py has the whole matrix; here is what was seen to go wrong.
"""

import os
import pathlib
import shutil

import pytest
from cli_tools import good, image_bytes, make_folder, run, samples, write_list
from py_tools import need_penstock, png

penstock = need_penstock()
# One block is a shard, and the order is that of the names: what comes first is finished first.
SMALL = ("--order", "source", "--block-samples", "2", "--shard-bytes", "1", "--mode", "keep")


def tree(top):
    return {str(p.relative_to(top)): p.read_bytes() for p in pathlib.Path(top).rglob("*")
            if p.is_file()}


def fail(*command, env=None):
    """A run that ends at the broken input, z.jpg, after all others are packed."""
    result = run(*command, env=env)
    assert result.code == 1, result.err
    return result.message()


def check_as_fresh(tmp_path, command, out):
    """The command again gives what it gives in a fresh place."""
    result = good(*command)
    fresh = tmp_path / "fresh.pen"
    good(*[fresh if part == out else part for part in command])
    assert tree(out) == tree(fresh)
    good("verify", out)
    return result


@pytest.fixture
def folder(tmp_path):
    """12 samples, of which the last is broken."""
    top = make_folder(tmp_path / "in", each=6)
    (top / "dog" / "z.jpg").write_bytes(b"this is no picture")
    return top


@pytest.fixture
def interrupted(tmp_path, folder):
    """The command, after it has failed once."""
    out = tmp_path / "a.pen"
    command = ("pack", folder, "-o", out, *SMALL)
    assert "z.jpg" in fail(*command)
    assert not (out / "manifest").exists() and list(out.glob("*/*.shard"))
    return command


def mend(folder):
    (folder / "dog" / "z.jpg").write_bytes(image_bytes(900))


def test_labels_corrected_in_the_list(tmp_path, folder):
    names = sorted(str(p.relative_to(folder)) for p in folder.rglob("*.*"))
    rows = [[name, "wrong"] for name in names]
    table = write_list(folder / "list.csv", ["path", "label"], rows)
    command = ("pack", table, "-o", tmp_path / "a.pen", *SMALL)
    fail(*command)
    write_list(table, ["path", "label"], [[n, "right" if i % 2 else "left"]
                                          for i, n in enumerate(names)])
    mend(folder)
    check_as_fresh(tmp_path, command, tmp_path / "a.pen")
    assert good("info", tmp_path / "a.pen", "--json").json()["classes"] == ["left", "right"]
    labels = [s["fields"]["label"]["value"] for s in samples(tmp_path / "a.pen").values()]
    assert sorted(labels) == [0] * 7 + [1] * 6


def test_files_and_a_class_added(tmp_path, folder, interrupted):
    mend(folder)
    (folder / "eel").mkdir()
    (folder / "eel" / "1.jpg").write_bytes(image_bytes(1))
    check_as_fresh(tmp_path, interrupted, tmp_path / "a.pen")
    assert "eel/1.jpg" in samples(tmp_path / "a.pen")


def test_mended_and_the_shards_before_it_are_kept(tmp_path, folder, interrupted):
    mend(folder)
    result = check_as_fresh(tmp_path, interrupted, tmp_path / "a.pen")
    assert "resumed: 12 of 13 samples" in result.err


def test_removed(tmp_path, folder, interrupted):
    (folder / "dog" / "z.jpg").unlink()
    result = check_as_fresh(tmp_path, interrupted, tmp_path / "a.pen")
    assert "resumed: 12 of 12 samples" in result.err


def test_left_out(tmp_path, folder, interrupted):
    command = (*interrupted, "--on-bad", "skip")
    result = check_as_fresh(tmp_path, command, tmp_path / "a.pen")
    assert "resumed: 12 of 12 samples" in result.err


def test_nothing_changed_but_the_mended_one(tmp_path, folder):
    """Of the same size: the plan is the same, and the shards stay where they are."""
    good_one = image_bytes(900)
    (folder / "dog" / "z.jpg").write_bytes(b"x" * len(good_one))
    command = ("pack", folder, "-o", tmp_path / "a.pen", *SMALL)
    fail(*command)
    before = {p: p.stat().st_ino for p in (tmp_path / "a.pen").glob("*/*.shard")}
    assert len(before) == 6
    (folder / "dog" / "z.jpg").write_bytes(good_one)
    check_as_fresh(tmp_path, command, tmp_path / "a.pen")
    assert {p: p.stat().st_ino for p in before} == before


def replace(path, data):
    """By other bytes, as many as before and with the same modification time."""
    was = path.stat()
    assert len(data) == was.st_size
    path.write_bytes(data)
    os.utime(path, ns=(was.st_atime_ns, was.st_mtime_ns))


def flipped(data):
    """The same JPEG but for one bit of its last block."""
    return data[:-3] + bytes([data[-3] ^ 1]) + data[-2:]


def same_size(seed, size):
    """A picture of that many bytes."""
    data = image_bytes(seed)
    return data + bytes(size - len(data))


def test_bytes_changed_at_equal_size_and_time(tmp_path, folder):
    for i, path in enumerate(sorted(folder.rglob("[0-4].jpg"))):
        path.write_bytes(same_size(i, 4000))
    command = ("pack", folder, "-o", tmp_path / "a.pen", *SMALL)
    fail(*command)
    for i, path in enumerate(sorted(folder.rglob("[0-4].jpg"))):
        replace(path, same_size(200 + i, 4000))
    mend(folder)
    result = check_as_fresh(tmp_path, command, tmp_path / "a.pen")
    assert "resumed" not in result.err


def test_only_the_shards_before_a_change_are_kept(tmp_path, folder, interrupted):
    path = folder / "dog" / "0.jpg"  # the seventh: three shards of two come before it
    replace(path, flipped(path.read_bytes()))
    mend(folder)
    result = check_as_fresh(tmp_path, interrupted, tmp_path / "a.pen")
    assert "resumed: 6 of 13 samples" in result.err


def test_a_damaged_list_of_shards_is_as_none(tmp_path, folder, interrupted):
    path = tmp_path / "a.pen" / ".work" / "run" / "shards"
    data = bytearray(path.read_bytes())
    data[20] ^= 1
    path.write_bytes(data)
    mend(folder)
    assert "resumed" not in good(*interrupted).err
    good("pack", folder, "-o", tmp_path / "fresh.pen", *SMALL)
    assert tree(tmp_path / "a.pen") == tree(tmp_path / "fresh.pen")


def test_shards_of_a_lost_list_are_removed_from_an_appended_pack(tmp_path, folder):
    out = tmp_path / "a.pen"
    base = make_folder(tmp_path / "base", each=2)
    for path in list(base.rglob("*.*")):
        path.rename(path.with_name("b" + path.name))
    good("pack", base, "-o", out, *SMALL)
    command = ("pack", folder, "-o", out, "--append", *SMALL)
    fail(*command)
    (out / ".work" / "run" / "shards").unlink()
    mend(folder)
    good(*command)
    assert good("gc", out, "--json").json()["files"] == 0
    good("verify", out)


@pytest.mark.parametrize("damage", ["version", "bytes"])
def test_a_plan_of_no_use_is_made_anew(tmp_path, folder, interrupted, damage):
    """Of another version, or damaged."""
    path = tmp_path / "a.pen" / ".work" / "plan"
    data = bytearray(path.read_bytes())
    if damage == "version":
        data[8] = data[-192 + 8] = 0
    else:
        data[-20] ^= 1
    path.write_bytes(data)
    mend(folder)
    check_as_fresh(tmp_path, interrupted, tmp_path / "a.pen")


def test_a_shard_that_another_program_changed_is_written_again(tmp_path, folder, interrupted):
    """A shard of another run under its name: right in itself, and not what was finished here."""
    out = tmp_path / "a.pen"
    other = make_folder(tmp_path / "other", each=6)
    for path in other.rglob("*.*"):
        path.write_bytes((folder / path.relative_to(other)).read_bytes())
    (other / "dog" / "z.jpg").write_bytes(b"this is no picture")
    path = other / "cat" / "0.jpg"
    path.write_bytes(flipped(path.read_bytes()))
    fail("pack", other, "-o", tmp_path / "b.pen", *SMALL)
    for name, data in tree(tmp_path / "b.pen").items():
        if name.endswith(".shard"):
            (out / name).write_bytes(data)
    mend(folder)
    good(*interrupted)
    good("pack", folder, "-o", tmp_path / "fresh.pen", *SMALL)
    assert tree(out) == tree(tmp_path / "fresh.pen")


def listed(out):
    """The shards in the order in which they were finished: see src/ingest/job/finished.c."""
    data = (out / ".work" / "run" / "shards").read_bytes()[8:-4]
    ids = [data[i:i + 16].hex() for i in range(0, len(data), 92)]
    return [f"{name[:2]}/{name}.shard" for name in ids]


def damaged(data, place):
    data = bytearray(data)
    data[{"header": 20, "samples": len(data) // 2, "tail": -20}[place]] ^= 255
    return bytes(data)


@pytest.mark.parametrize("place", ["header", "samples", "tail"])
@pytest.mark.parametrize("plan", ["same", "another"])
def test_a_damaged_shard_is_written_again(tmp_path, folder, plan, place):
    """And all behind it; the same command is all that it takes."""
    good_one = image_bytes(900)
    (folder / "dog" / "z.jpg").write_bytes(b"x" * (len(good_one) - (plan == "another")))
    out = tmp_path / "a.pen"
    command = ("pack", folder, "-o", out, *SMALL)
    fail(*command)
    path = out / listed(out)[2]
    path.write_bytes(damaged(path.read_bytes(), place))
    (folder / "dog" / "z.jpg").write_bytes(good_one)
    result = check_as_fresh(tmp_path, command, out)
    assert "resumed: 4 of 13 samples" in result.err


def test_other_settings_beside_a_damaged_shard(tmp_path, folder, interrupted):
    out = tmp_path / "a.pen"
    path = out / listed(out)[0]
    path.write_bytes(damaged(path.read_bytes(), "tail"))
    message = fail(*["raw" if part == "keep" else part for part in interrupted])
    assert "an interrupted run with other sources or settings exists here" in message
    assert "discard it with 'penstock gc" in message


# ---- object stores -------------------------------------------------------------------------------

@pytest.fixture(scope="module")
def server(s3):
    return s3()


def objects(client, prefix):
    found = client.list_objects_v2(Bucket="packs", Prefix=prefix).get("Contents", ())
    return {o["Key"][len(prefix):]: client.get_object(Bucket="packs", Key=o["Key"])["Body"].read()
            for o in found}


def test_another_machine_does_not_take_over_what_it_did_not_write(tmp_path, folder, server):
    client = server.boto3(retries=3)
    homes = [tmp_path / "one", tmp_path / "two"]
    for home in homes:
        home.mkdir()
    envs = [server.environment(HOME=str(home)) for home in homes]
    command = ("pack", folder, "-o", "s3://packs/two.pen", *SMALL)
    for path in folder.rglob("[0-4].jpg"):
        path.write_bytes(same_size(1, 4000))
    (folder / "dog" / "z.jpg").write_bytes(bytes(4000))
    fail(*command, env=envs[0])
    assert objects(client, "two.pen/")
    # Of equal size: the plan of the other machine has the same id, and its shards the same names.
    for path in folder.rglob("[0-4].jpg"):
        replace(path, same_size(2, 4000))
    replace(folder / "dog" / "z.jpg", same_size(900, 4000))
    result = good(*command, env=envs[1])
    assert "resumed" not in result.err
    good("gc", "s3://packs/two.pen", env=envs[1])
    good("pack", folder, "-o", tmp_path / "fresh.pen", *SMALL)
    assert objects(client, "two.pen/") == tree(tmp_path / "fresh.pen")


def test_a_damaged_object_is_written_again(tmp_path, folder, server):
    client = server.boto3(retries=3)
    env = server.environment(HOME=str(tmp_path))
    command = ("pack", folder, "-o", "s3://packs/hurt.pen", "--work", tmp_path / "work", *SMALL)
    good_one = image_bytes(900)
    (folder / "dog" / "z.jpg").write_bytes(b"x" * len(good_one))
    fail(*command, env=env)
    name = listed(tmp_path / "work")[2]
    data = objects(client, "hurt.pen/")[name]
    client.put_object(Bucket="packs", Key="hurt.pen/" + name, Body=damaged(data, "tail"))
    (folder / "dog" / "z.jpg").write_bytes(good_one)
    assert "resumed: 4 of 13 samples" in good(*command, env=env).err
    good("pack", folder, "-o", tmp_path / "fresh.pen", *SMALL)
    assert objects(client, "hurt.pen/") == tree(tmp_path / "fresh.pen")


# ---- tasks ---------------------------------------------------------------------------------------

@pytest.fixture
def planned(tmp_path):
    """A plan of two tasks, of which the first has been run."""
    folder = make_folder(tmp_path / "in", each=6)
    out = tmp_path / "t.pen"
    common = (folder, "-o", out, *SMALL)
    good("plan", *common)
    good("pack", *common, "--task", "0/2")
    return folder, out, common


def check_tasks_as_fresh(tmp_path, out, common):
    fresh = tmp_path / "fresh.pen"
    for where in (out, fresh):
        args = [where if part == out else part for part in common]
        good("plan", *args)
        for i in range(2):
            good("pack", *args, "--task", f"{i}/2")
        good("finalise", where)
    assert tree(out) == tree(fresh)


@pytest.mark.parametrize("name, who", [("dog/1.jpg", "task"), ("cat/1.jpg", "finalise")])
def test_tasks_notice_what_changed_since_the_plan(tmp_path, planned, name, who):
    folder, out, common = planned
    path = folder / name
    replace(path, flipped(path.read_bytes()))
    result = run("pack", *common, "--task", "1/2")
    assert (result.code != 0) == (who == "task")
    if who == "finalise":
        result = run("finalise", out)
        assert result.code == 1
    assert f"{name}: changed since the plan was made: its change time" in result.message()
    assert "run 'penstock plan' again, then every task" in result.message()
    check_tasks_as_fresh(tmp_path, out, common)


def test_an_input_that_is_gone_is_noticed(tmp_path, planned):
    folder, out, common = planned
    good("pack", *common, "--task", "1/2")
    (folder / "cat" / "1.jpg").unlink()
    message = run("finalise", out).message()
    assert "cat/1.jpg: changed since the plan was made: cannot open" in message
    assert "run 'penstock plan' again" in message
    check_tasks_as_fresh(tmp_path, out, common)


def test_finalise_without_the_sources(tmp_path, planned):
    """On a machine that does not have them there is nothing to compare."""
    folder, out, common = planned
    good("pack", *common, "--task", "1/2")
    shutil.rmtree(folder)
    good("finalise", out)
    good("verify", out)


@pytest.fixture
def elsewhere(tmp_path):
    """Tasks that are done; their list names files of another disk."""
    scratch = make_folder(tmp_path / "scratch", each=6)
    rows = [[str(p), "a"] for p in sorted(scratch.rglob("*.*"))]
    (tmp_path / "lists").mkdir()
    table = write_list(tmp_path / "lists" / "list.csv", ["path", "label"], rows)
    out = tmp_path / "t.pen"
    common = (table, "-o", out, "--allow-outside", *SMALL)
    good("plan", *common)
    for i in range(2):
        good("pack", *common, "--task", f"{i}/2")
    return scratch, out


def test_finalise_with_the_list_and_without_its_files(tmp_path, elsewhere):
    scratch, out = elsewhere
    scratch.rename(tmp_path / "away")
    good("finalise", out)
    good("verify", out)


@pytest.mark.parametrize("kept", ["cat/0.jpg", "dog/5.png"])
def test_finalise_with_some_of_the_files(tmp_path, elsewhere, kept):
    """The first of them, or the last."""
    scratch, out = elsewhere
    for path in scratch.rglob("*.*"):
        if path != scratch / kept:
            path.unlink()
    message = run("finalise", out).message()
    assert ": changed since the plan was made: cannot open" in message
    assert "run 'penstock plan' again" in message
    path = scratch / kept
    replace(path, flipped(path.read_bytes()))
    message = run("finalise", out).message()
    assert ": changed since the plan was made" in message


def test_finalise_where_the_folder_is_an_empty_one(tmp_path, planned):
    """As where a disk is not mounted."""
    folder, out, common = planned
    good("pack", *common, "--task", "1/2")
    shutil.rmtree(folder)
    folder.mkdir()
    good("finalise", out)
    good("verify", out)


def test_a_task_of_an_older_plan_is_run_again(tmp_path, planned):
    folder, out, common = planned
    good("pack", *common, "--task", "1/2")
    path = folder / "cat" / "1.jpg"
    replace(path, flipped(path.read_bytes()))
    good("plan", *common)
    message = run("finalise", out).message()
    assert "task 0 of 2 was run with an older plan, and inputs have changed since" in message
    assert "run 'penstock pack --task 0/2' again" in message
    check_tasks_as_fresh(tmp_path, out, common)


def test_a_list_that_changed_is_noticed_by_tasks(tmp_path):
    folder = make_folder(tmp_path / "in", each=6)
    names = sorted(str(p.relative_to(folder)) for p in folder.rglob("*.*"))
    table = write_list(folder / "list.csv", ["path", "label"], [[n, "a"] for n in names])
    common = (table, "-o", tmp_path / "t.pen", *SMALL)
    good("plan", *common)
    write_list(table, ["path", "label"], [[n, "b"] for n in names])
    message = run("pack", *common, "--task", "0/2").message()
    assert "list.csv: changed since the plan was made" in message
    assert "run 'penstock plan' again" in message
    check_tasks_as_fresh(tmp_path, tmp_path / "t.pen", common)


# ---- another kind of run -------------------------------------------------------------------------

def write_pack(path):
    with penstock.Writer(path, {"image": "image"}, block_samples=2) as writer:
        for i in range(4):
            writer.add(key=f"s{i}", image=png(i, 12, 10))


def test_a_writer_takes_the_place_of_a_failed_pack(tmp_path, folder, interrupted):
    write_pack(tmp_path / "a.pen")
    write_pack(tmp_path / "fresh.pen")
    assert tree(tmp_path / "a.pen") == tree(tmp_path / "fresh.pen")


def test_a_writer_leaves_tasks_alone(tmp_path, planned):
    _, out, common = planned
    before = tree(out)
    with pytest.raises(penstock.Error, match="'penstock finalise .*t.pen' makes a pack"):
        write_pack(out)
    assert tree(out) == before
    good("pack", *common, "--task", "1/2")
    good("finalise", out)
    good("verify", out)


def test_a_writer_after_tasks_are_given_up(tmp_path, planned):
    _, out, _ = planned
    good("gc", "--abandon", out)
    write_pack(out)
    good("verify", out)


def test_a_run_without_a_task_keeps_complete_tasks(tmp_path):
    folder, out = make_folder(tmp_path / "in"), tmp_path / "a.pen"
    good("pack", folder, "-o", out, "--task", "1/2")
    result = run("pack", folder, "-o", out)
    assert result.code == 1
    assert "task-1-of-2 is complete and would be lost" in result.message()
    good("pack", folder, "-o", out, "--task", "0/2")
    good("finalise", out)
    other = tmp_path / "b.pen"
    good("pack", folder, "-o", other, "--task", "1/2")
    good("gc", "--abandon", other)
    good("pack", folder, "-o", other)
