# SPDX-License-Identifier: Apache-2.0
"""Packs at addresses from the command line: written, read, copied, cleaned up; against a scripted
server and a real store, with boto3 and the AWS command line as the independent clients."""

import os
import pathlib
import re
import secrets
import signal
import subprocess
import time

import net_stage
import pytest
from cli_tools import PENSTOCK, good, image_bytes, make_folder, run, usage_error

SMALL = ("--block-samples", "4", "--shard-bytes", "12000")
MANY = ("--block-samples", "2", "--shard-bytes", "1")  # shards: the first comes long before the end


def tree(top):
    return {str(p.relative_to(top)): p.read_bytes() for p in pathlib.Path(top).rglob("*")
            if p.is_file()}


def add_pictures(folder, n):
    for i in range(n):
        (folder / "cat" / f"more{i}.jpg").write_bytes(image_bytes(500 + i))


class Place:
    """A bucket of its own in a store, and the program with keys for it."""

    def __init__(self, server, home):
        self.server, self.home = server, home
        self.client = server.boto3(retries=3)
        self.bucket = f"bucket-{secrets.token_hex(4)}"
        self.client.create_bucket(Bucket=self.bucket)
        self.env = server.environment(HOME=str(home))

    def at(self, name):
        return f"s3://{self.bucket}/{name}"

    def good(self, *args, **more):
        return good(*args, env=self.env, **more)

    def run(self, *args, **more):
        return run(*args, env=self.env, **more)

    def start(self, *args, home=None):
        env = {**self.env, "HOME": str(home or self.home)}
        return subprocess.Popen([PENSTOCK, *map(str, args)], env=env, stdin=subprocess.DEVNULL,
                                stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)

    def names(self, pack):
        pages = self.client.get_paginator("list_objects_v2").paginate(
            Bucket=self.bucket, Prefix=f"{pack}/")
        return [o["Key"] for page in pages for o in page.get("Contents", ())]

    def tree(self, pack):
        """What boto3 finds below the pack's name."""
        return {
            name[len(pack) + 1:]:
                self.client.get_object(Bucket=self.bucket, Key=name)["Body"].read()
            for name in self.names(pack)
        }

    def uploads(self):
        return self.client.list_multipart_uploads(Bucket=self.bucket).get("Uploads", [])

    def stop_at_shard(self, pack, process):
        """Until there are two: the first is then on the list of those that are finished. It runs
        for milliseconds only and stands still while the store is asked, as that may take longer
        than all of its work. Returns while it stands still."""
        deadline = time.monotonic() + 60
        while True:
            process.send_signal(signal.SIGSTOP)
            names = self.names(pack)
            assert f"{pack}/manifest" not in names and process.poll() is None
            if len(names) >= 2:
                return
            assert time.monotonic() < deadline
            process.send_signal(signal.SIGCONT)
            time.sleep(0.005)


@pytest.fixture
def scripted(s3):
    return s3()


@pytest.fixture(params=["scripted", pytest.param("ceph", marks=pytest.mark.slow)])
def place(request, tmp_path):
    server = request.getfixturevalue("scripted") if request.param == "scripted" else (
        net_stage.need_ceph())
    return Place(server, tmp_path / "home")


@pytest.fixture
def near(scripted, tmp_path):
    """The scripted server alone, where the store does not matter."""
    return Place(scripted, tmp_path / "home")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return make_folder(tmp_path_factory.mktemp("photos") / "src", each=30)


@pytest.fixture(scope="module")
def many(folder, tmp_path_factory):
    out = tmp_path_factory.mktemp("packs") / "many.pen"
    good("pack", folder, "-o", out, *MANY)
    return out


@pytest.fixture(scope="module")
def pack(folder, tmp_path_factory):
    out = tmp_path_factory.mktemp("packs") / "photos.pen"
    good("pack", folder, "-o", out, *SMALL)
    return out


# ---- packing ------------------------------------------------------------------------------------


def test_pack_in_a_bucket_is_the_pack_on_disk(place, folder, pack):
    result = place.good("pack", folder, "-o", place.at("a/photos.pen"), *SMALL, "--json").json()
    assert result["shards"] > 2
    assert place.tree("a/photos.pen") == tree(pack)
    assert place.uploads() == []
    types = {place.client.head_object(Bucket=place.bucket, Key=name)["ContentType"]
             for name in place.names("a/photos.pen") if not name.endswith("manifest")}
    assert types == {"application/octet-stream"}
    info = place.good("info", place.at("a/photos.pen"), "--json").json()
    on_disk = good("info", pack, "--json").json()
    assert {**info, "pack": ""} == {**on_disk, "pack": ""}
    assert place.good("verify", place.at("a/photos.pen")).out.startswith("ok: 60 samples")
    # Nothing is left where the work was.
    assert list((place.home / ".cache/penstock").iterdir()) == []


def test_extract_and_doctor_read_from_a_bucket(near, pack, tmp_path):
    near.good("copy", pack, near.at("p.pen"))
    near.good("extract", near.at("p.pen"), "-o", tmp_path / "far", "-s", "0-5")
    good("extract", pack, "-o", tmp_path / "near", "-s", "0-5")
    assert tree(tmp_path / "far") == tree(tmp_path / "near") != {}
    short = ("--seconds", "1", "--batch", "8")
    result = near.good("doctor", near.at("p.pen"), *short, "--json").json()
    assert result["samples_per_second"] > 0
    assert result["requests"]["made"] > 0 and result["requests"]["bytes"] > 0
    assert result["requests"]["in_flight_limit"] >= 4
    assert result["reading_alone_samples_per_second"]["read"] > 0
    assert "read_cold" not in result["reading_alone_samples_per_second"]
    assert result["order"] == "shuffle"


def test_aws_reads_what_penstock_wrote_and_the_other_way_round(place, pack, folder, tmp_path):
    net_stage.need_aws()
    place.good("pack", folder, "-o", place.at("ours.pen"), *SMALL)
    place.server.aws("s3", "cp", "--recursive", "--only-show-errors", place.at("ours.pen"),
                     tmp_path / "theirs.pen")
    assert tree(tmp_path / "theirs.pen") == tree(pack)
    place.server.aws("s3", "cp", "--recursive", "--only-show-errors", pack, place.at("aws.pen"))
    assert place.good("verify", place.at("aws.pen")).out.startswith("ok: 60 samples")
    assert place.good("copy", place.at("aws.pen"), tmp_path / "back.pen", "--json").json()
    assert tree(tmp_path / "back.pen") == tree(pack)


def test_append_in_a_bucket_is_the_append_on_disk(place, tmp_path):
    source = make_folder(tmp_path / "src", each=5)
    here, there = tmp_path / "set.pen", place.at("set.pen")
    for out in (here, there):
        place.good("pack", source, "-o", out, *SMALL)
    add_pictures(source, 18)
    for out in (here, there):
        found = place.good("pack", source, "-o", out, "--append", *SMALL, "--json").json()
        assert found["samples"] == 28
    assert place.tree("set.pen") == tree(here)
    assert place.run("pack", source, "-o", there, *SMALL).message().startswith(
        f"{there}: the pack already exists")


def test_two_writers_one_wins_and_the_other_says_so(place, folder, tmp_path):
    other = make_folder(tmp_path / "other", each=6)
    slow = place.start("pack", folder, "-o", place.at("set.pen"), "--threads", "1", *MANY)
    place.stop_at_shard("set.pen", slow)
    quick = place.start("pack", other, "-o", place.at("set.pen"), *MANY, home=tmp_path / "second")
    _, err = quick.communicate(timeout=60)
    assert quick.returncode == 0, err
    slow.send_signal(signal.SIGCONT)
    _, err = slow.communicate(timeout=60)
    assert slow.returncode == 1
    assert "another pack was published here in the meantime and is left unchanged" in err
    assert place.good("verify", place.at("set.pen")).out.startswith("ok: 12 samples")
    place.good("gc", place.at("set.pen"))
    good("pack", other, "-o", tmp_path / "set.pen", *MANY)
    assert place.tree("set.pen") == tree(tmp_path / "set.pen")


def test_two_writers_of_the_same_machine_are_kept_apart(near, folder):
    first = near.start("pack", folder, "-o", near.at("set.pen"), "--threads", "1", *MANY)
    near.stop_at_shard("set.pen", first)
    second = near.run("pack", folder, "-o", near.at("set.pen"), *MANY)
    gone = near.run("gc", near.at("set.pen") + "/")
    first.send_signal(signal.SIGCONT)
    assert first.wait(60) == 0
    for late in (second, gone):
        assert late.code == 75
        assert "another process" in late.message()


def test_killed_pack_uploads_only_what_is_missing(near, folder, many):
    first = near.start("pack", folder, "-o", near.at("set.pen"), "--threads", "1", *MANY)
    near.stop_at_shard("set.pen", first)
    first.kill()
    assert first.wait(10) == -9
    there = set(near.names("set.pen"))
    assert there
    before = len(near.server.log())
    again = near.good("pack", folder, "-o", near.at("set.pen"), *MANY)
    assert "resumed: " in again.err
    begun = [e for e in near.server.log()[before:] if e["kind"] == "CreateMultipartUpload"]
    sent = {e["what"].split("/", 1)[1] for e in begun}
    assert sent
    assert len(sent & there) <= 1  # one that was there and not on the list yet
    near.good("gc", near.at("set.pen"))
    assert near.uploads() == []
    assert near.tree("set.pen") == tree(many)


def test_work_lies_where_it_is_said(near, folder, tmp_path):
    work = tmp_path / "work"
    first = near.start("pack", folder, "-o", near.at("set.pen"), "--threads", "1", *MANY,
                       "--work", work)
    near.stop_at_shard("set.pen", first)
    first.kill()
    first.wait(10)
    assert (work / ".work/plan").exists()
    result = near.good("gc", near.at("set.pen"), "--work", work, "--json").json()
    assert result["files"] >= 2
    assert not work.exists()
    assert near.tree("set.pen") == {}
    assert near.uploads() == []


def test_list_of_broken_inputs_lies_in_the_current_directory(near, tmp_path):
    source = make_folder(tmp_path / "src", each=5)
    (source / "cat" / "broken.jpg").write_bytes(b"no image")
    result = near.good("pack", source, "-o", near.at("a/set.pen"), "--on-bad", "skip", *SMALL,
                       "--json", cwd=tmp_path)
    assert result.json()["bad_report"] == "set.pen-bad.jsonl"
    assert "broken.jpg" in (tmp_path / "set.pen-bad.jsonl").read_text()


def test_settings_come_from_options(scripted, folder, pack, tmp_path):
    """Nothing in the environment but the keys."""
    place = Place(scripted, tmp_path / "home")
    env = {n: v for n, v in place.env.items() if "ENDPOINT" not in n and "REGION" not in n}
    there = ("--endpoint", scripted.url, "--region", "us-east-1")
    out = place.at("p.pen")
    good("pack", folder, "-o", out, *there, *SMALL, env=env)
    for args in (("info", out), ("verify", out), ("gc", out), ("copy", out, tmp_path / "back.pen"),
                 ("extract", out, "-o", tmp_path / "x")):
        good(*args, *there, env=env)
    assert tree(tmp_path / "back.pen") == tree(pack)
    config = tmp_path / "config"
    config.write_text(f"[profile mine]\nendpoint_url = {scripted.url}\nregion = us-east-1\n"
                      f"aws_access_key_id = {scripted.key_id}\n"
                      f"aws_secret_access_key = {scripted.secret}\n")
    bare = {n: v for n, v in env.items() if not n.startswith("AWS_")}
    bare.update(AWS_CONFIG_FILE=str(config), AWS_EC2_METADATA_DISABLED="true")
    good("info", out, "--profile", "mine", env=bare)
    good("copy", out, tmp_path / "two.pen", "--from-profile", "mine", env=bare)
    result = run("info", out, *there, "--no-sign", env=env)
    assert result.code == 1
    assert "ccess" in result.message()


def test_keys_cannot_be_given(near):
    for word in ("--secret", "--access-key", "--token"):
        assert "did you mean --profile?" in usage_error("info", "s3://b/x.pen", word, "x")


# ---- copying ------------------------------------------------------------------------------------


@pytest.mark.threads
def test_copy_round_disk_store_store_disk(place, pack, tmp_path):
    result = place.good("copy", pack, place.at("a.pen"), "--json").json()
    assert result["id"] == good("info", pack, "--json").json()["id"]
    assert result["samples"] == 60
    assert result["bytes"] == sum(map(len, tree(pack).values()))
    place.good("copy", place.at("a.pen"), place.at("deep/b.pen"), "--threads", "3")
    place.good("copy", place.at("deep/b.pen"), tmp_path / "c.pen")
    assert place.tree("a.pen") == place.tree("deep/b.pen") == tree(tmp_path / "c.pen") == tree(pack)
    assert place.uploads() == []
    again = place.good("copy", pack, place.at("a.pen"), "--json").json()
    assert (again["shards"], again["bytes"]) == (0, 0)
    assert again["already_copied_shards"] == result["shards"]


def test_copy_between_directories(pack, tmp_path):
    good("copy", pack, tmp_path / "b.pen", "--threads", "5")
    assert tree(tmp_path / "b.pen") == tree(pack)
    assert not (tmp_path / "b.pen/.work").exists()


def test_copy_of_an_appended_pack_has_all_of_its_shards(tmp_path):
    """A short last block that is written anew stays in its old shard."""
    source = make_folder(tmp_path / "src", each=5)
    good("pack", source, "-o", tmp_path / "set.pen", *SMALL)
    add_pictures(source, 9)
    good("pack", source, "-o", tmp_path / "set.pen", "--append", *SMALL)
    good("copy", tmp_path / "set.pen", tmp_path / "b.pen")
    assert tree(tmp_path / "b.pen") == tree(tmp_path / "set.pen")


def test_copy_mends_what_is_missing_or_cut(pack, tmp_path):
    good("copy", pack, tmp_path / "b.pen")
    one, two = sorted(tmp_path.glob("b.pen/*/*.shard"))[:2]
    one.unlink()
    two.write_bytes(two.read_bytes()[:-1])
    result = good("copy", pack, tmp_path / "b.pen", "--json").json()
    assert result["shards"] == 2
    assert tree(tmp_path / "b.pen") == tree(pack)


def test_copy_does_not_touch_another_pack(near, pack, tmp_path):
    other = make_folder(tmp_path / "other", each=3)
    for out in (tmp_path / "b.pen", near.at("b.pen")):
        near.good("pack", other, "-o", out)
        result = near.run("copy", pack, out)
        assert result.code == 1
        assert "another pack already exists here" in result.message()
    assert near.tree("b.pen") == tree(tmp_path / "b.pen")


def test_copy_does_not_touch_a_pack_under_way(near, folder, pack):
    first = near.start("pack", folder, "-o", near.at("set.pen"), "--threads", "1", *MANY)
    near.stop_at_shard("set.pen", first)
    first.kill()
    first.wait(10)
    result = near.run("copy", pack, near.at("set.pen"))
    assert result.code == 1
    assert "an interrupted run of 'penstock pack' exists here" in result.message()
    assert "resumed: " in near.good("pack", folder, "-o", near.at("set.pen"), *MANY).err


def damage_places(pack):
    """(file, offset) in every kind of piece: header, block, keys, table, footer."""
    shard = sorted(pack.glob("*/*.shard"))[0]
    size = shard.stat().st_size
    data = shard.read_bytes()
    keys = int.from_bytes(data[-128 + 64:-128 + 72], "little")
    return shard, [30, 64 + 9, keys // 2, keys - 1, keys + 3, size - 128 - 8, size - 100]


def test_copy_refuses_damage_wherever_it_is(near, pack, tmp_path):
    good("copy", pack, tmp_path / "bad.pen")
    shard, offsets = damage_places(tmp_path / "bad.pen")
    right = shard.read_bytes()
    for offset in offsets:
        wrong = bytearray(right)
        wrong[offset] ^= 4
        shard.write_bytes(wrong)
        for out in (tmp_path / "copy.pen", near.at("copy.pen")):
            result = near.run("copy", tmp_path / "bad.pen", out)
            assert result.code == 1, offset
            assert shard.name in result.message()
    assert not (tmp_path / "copy.pen" / "manifest").exists()
    assert "copy.pen/manifest" not in near.names("copy.pen")
    assert near.uploads() == []
    shard.write_bytes(right)
    near.good("copy", tmp_path / "bad.pen", near.at("copy.pen"))
    assert near.tree("copy.pen") == tree(pack)


def test_copy_says_what_is_wrong_with_a_place(near, pack, tmp_path):
    for args, expected in (
        ((tmp_path / "none.pen", tmp_path / "b.pen"), "no such file or directory"),
        ((near.at("none.pen"), tmp_path / "b.pen"), "no pack is there"),
        ((pack, f"{near.server.url}/{near.bucket}/b.pen"), "write to s3:// or a directory"),
        ((pack, "s3://no-such-bucket/b.pen"), "NoSuchBucket"),
    ):
        result = near.run("copy", *args)
        assert result.code == 1
        assert expected in result.message()
    assert not (tmp_path / "b.pen").exists()
    assert usage_error("copy", "a.pen").startswith("copy takes two arguments, found 1")
    assert usage_error("copy", "a", "b", "c").startswith("copy takes two arguments, found 3")


@pytest.mark.threads
@pytest.mark.parametrize("seed", [1, 2])
def test_copy_through_chaos_has_the_right_bytes(near, pack, tmp_path, seed):
    near.server.control(chaos=net_stage.FDB_RATES, seed=seed)
    near.good("copy", pack, near.at("a.pen"))
    near.good("copy", near.at("a.pen"), tmp_path / "b.pen")
    near.server.control(chaos="")
    assert near.tree("a.pen") == tree(tmp_path / "b.pen") == tree(pack)


def test_stopped_copy_goes_on(near, pack):
    """SIGINT after the first shard: exit code 130, and what is there stays."""
    near.server.control(chaos="delay=1", seed=1)
    first = near.start("copy", pack, near.at("a.pen"), "--threads", "1")
    near.stop_at_shard("a.pen", first)
    first.send_signal(signal.SIGINT)
    first.send_signal(signal.SIGCONT)
    _, err = first.communicate(timeout=60)
    assert first.returncode == 130, err
    assert "run the same command again to resume" in err
    assert near.uploads() == []
    assert "a.pen/manifest" not in near.names("a.pen")
    result = near.good("copy", pack, near.at("a.pen"), "--json").json()
    assert result["already_copied_shards"] >= 1
    assert near.tree("a.pen") == tree(pack)


def test_stopped_measurement_of_a_store_that_does_not_respond(near, many):
    """Ctrl-C ends the wait for a batch, which is minutes otherwise."""
    near.good("copy", many, near.at("a.pen"))
    near.server.control(reset=True, mute=20)  # the pack is open by then, and no batch is complete
    process = near.start("doctor", near.at("a.pen"), "--batch", "60", "--seconds", "1")
    deadline = time.monotonic() + 30
    while not any("mute" in entry["faults"] for entry in near.server.log()):
        assert time.monotonic() < deadline and process.poll() is None
        time.sleep(0.05)
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=60)
    near.server.control(mute=False)
    assert process.returncode == 130, err
    assert "interrupted; the measurement is not complete" in err


def test_progress_is_shown_on_a_terminal(near, pack, tmp_path):
    import pty

    main, side = pty.openpty()
    done = subprocess.run([PENSTOCK, "copy", pack, tmp_path / "b.pen"], stderr=side, check=True,
                          stdout=subprocess.PIPE, env=near.env)
    os.close(side)
    shown = os.read(main, 65536).decode()
    os.close(main)
    assert "copy" in shown
    assert re.match(rb"\d+ shards copied, .* every byte checked, in ", done.stdout)
