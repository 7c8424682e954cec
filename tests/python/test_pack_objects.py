# SPDX-License-Identifier: Apache-2.0
"""Packing objects of a bucket: the same pack as from a folder on disk, and what a server may do in
between."""

import json
import re
import time

import net_stage
import pytest
from bucket_tools import Bucket, filled, serve, tree
from cli_tools import good, image_bytes, make_folder, run

SMALL = ("--block-samples", "4", "--shard-bytes", "12000")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return make_folder(tmp_path_factory.mktemp("photos") / "src", each=20)


@pytest.fixture(scope="module")
def server():
    with serve() as server:
        yield server


@pytest.fixture
def bucket(server, tmp_path, folder):
    return filled(server, tmp_path / "home", folder, "photos")


@pytest.fixture(scope="module")
def pack(folder, tmp_path_factory):
    out = tmp_path_factory.mktemp("packs") / "photos.pen"
    good("pack", folder, "-o", out, *SMALL)
    return out


# ---- the same pack -------------------------------------------------------------------------------


@pytest.mark.threads
@pytest.mark.parametrize("prefix", ["photos", "photos/"])
def test_a_prefix_is_packed_as_the_folder_is(bucket, pack, tmp_path, prefix):
    out = tmp_path / "p.pen"
    record = bucket.good("pack", bucket.at(prefix), "-o", out, *SMALL, "--json").json()
    assert (record["samples"], record["first_classes"]) == (40, ["cat", "dog"])
    assert tree(out) == tree(pack)
    kinds = bucket.server.counts()["kinds"]
    assert kinds["GetObject"] == 40  # one request each
    assert kinds["ListObjectsV2"] == 1


@pytest.mark.slow
def test_a_prefix_in_ceph_is_packed_as_the_folder_is(folder, pack, tmp_path):
    bucket = Bucket(net_stage.need_ceph(), tmp_path / "home")
    bucket.fill(folder, "photos")
    bucket.good("pack", bucket.at("photos"), "-o", tmp_path / "p.pen", *SMALL)
    assert tree(tmp_path / "p.pen") == tree(pack)


@pytest.mark.parametrize("mode", ["encode", "raw"])
def test_modes_that_probe_sizes_give_the_same_pack(bucket, folder, tmp_path, mode):
    for source, out in ((folder, "here.pen"), (bucket.at("photos"), "there.pen")):
        bucket.good("pack", source, "-o", tmp_path / out, "--mode", mode)
    assert tree(tmp_path / "there.pen") == tree(tmp_path / "here.pen")


def test_from_a_bucket_into_a_bucket(bucket, pack):
    bucket.good("pack", bucket.at("photos"), "-o", bucket.at("photos/out.pen"), *SMALL)
    again = bucket.run("pack", bucket.at("photos"), "-o", bucket.at("photos/second.pen"), *SMALL)
    assert again.code == 0  # the first pack below the prefix is no input
    info = [bucket.good("info", place, "--json").json()["id"]
            for place in (bucket.at("photos/out.pen"), bucket.at("photos/second.pen"), pack)]
    assert len(set(info)) == 1


def test_append_adds_what_is_new(bucket, tmp_path):
    out = tmp_path / "p.pen"
    bucket.good("pack", bucket.at("photos"), "-o", out, *SMALL)
    bucket.put("photos/cat/new.jpg", image_bytes(900))
    record = bucket.good("pack", bucket.at("photos"), "-o", out, "--append", "--json").json()
    assert (record["samples"], record["already_in_pack"]) == (41, 40)


def test_what_is_passed_over(bucket, pack, tmp_path):
    for key in ("photos/.hidden.jpg", "photos/.git/x.jpg", "photos/cat/.DS_Store", "photos/cat/",
                "photos/old.pen/manifest", "photos/old.pen/3f/3f.shard", "photos-2/cat/x.jpg"):
        bucket.put(key, b"" if key.endswith("/") else b"no image")
    bucket.good("pack", bucket.at("photos"), "-o", tmp_path / "p.pen", *SMALL)
    assert tree(tmp_path / "p.pen") == tree(pack)


def test_a_listing_of_several_pages(tmp_path):
    objects, image = tmp_path / "objects", image_bytes(7)
    for i in range(1005):
        path = objects / "packs" / "many" / str(i % 3) / f"{i:04d}.jpg"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(image)
    with net_stage.S3Server(directory=objects) as server:
        env = server.environment(HOME=str(tmp_path))
        record = good("pack", "s3://packs/many", "-o", tmp_path / "p.pen", "--json", env=env).json()
        assert record["samples"] == 1005
        assert server.counts()["kinds"]["ListObjectsV2"] == 3  # two pages, and one of folders
    good("pack", objects / "packs" / "many", "-o", tmp_path / "here.pen")
    assert tree(tmp_path / "p.pen") == tree(tmp_path / "here.pen")


def test_an_object_of_several_pieces(bucket, tmp_path):
    """More than 8 MiB: the end first, then the rest under If-Match."""
    large = image_bytes(3) + bytes(range(256)) * (36 << 10)
    bucket.put("large/a.jpg", large)
    bucket.good("pack", bucket.at("large"), "-o", tmp_path / "p.pen", "--mode", "keep",
                "--no-index")
    bucket.good("extract", tmp_path / "p.pen", "-o", tmp_path / "x")
    assert (tmp_path / "x" / "a.jpg").read_bytes() == large
    assert bucket.server.counts()["kinds"]["GetObject"] == 2


# ---- plan, tasks, resume -------------------------------------------------------------------------


def test_tasks_read_from_the_bucket(bucket, folder, tmp_path):
    out, here = tmp_path / "p.pen", tmp_path / "here.pen"
    for source, name in ((bucket.at("photos"), out), (folder, here)):
        bucket.good("plan", source, "-o", name, *SMALL)
        for task in range(2):
            bucket.good("pack", source, "-o", name, *SMALL, "--task", f"{task}/2")
        bucket.good("finalise", name)
    assert tree(out) == tree(here)


def test_a_task_notices_that_an_object_was_replaced(bucket, tmp_path):
    out = tmp_path / "p.pen"
    bucket.good("plan", bucket.at("photos"), "-o", out, *SMALL)
    body = bucket.client.get_object(Bucket=bucket.name, Key="photos/cat/0.jpg")["Body"].read()
    bucket.put("photos/cat/0.jpg", bytes(len(body)))  # of the same size
    found = [bucket.run("pack", bucket.at("photos"), "-o", out, *SMALL, "--task", f"{i}/2")
             for i in range(2)]
    failed = [r for r in found if r.code]
    assert len(failed) == 1
    assert failed[0].message() == (
        f"{bucket.at('photos/cat/0.jpg')}: changed since the plan was made: its ETag differs; run "
        "'penstock plan' again, then every task")


@pytest.mark.parametrize("change", ["longer", "shorter", "empty", "gone"])
def test_a_task_notices_other_changes(bucket, tmp_path, change):
    out, key = tmp_path / "p.pen", "photos/cat/1.jpg"
    bucket.good("plan", bucket.at("photos"), "-o", out, *SMALL)
    body = bucket.client.get_object(Bucket=bucket.name, Key=key)["Body"].read()
    if change == "gone":
        bucket.client.delete_object(Bucket=bucket.name, Key=key)
    else:
        bucket.put(key, {"longer": body + b"x", "shorter": body[:-1], "empty": b""}[change])
    result = bucket.run("pack", bucket.at("photos"), "-o", out, *SMALL, "--task", "0/1")
    assert result.code == 1
    what = "no such object" if change == "gone" else f"expected {len(body)} bytes, found "
    assert f"{bucket.at(key)}: changed since the plan was made: {what}" in result.message()


def test_an_interrupted_run_resumes_and_packs_what_changed(bucket, folder, tmp_path):
    out, args = tmp_path / "p.pen", ("--block-samples", "2", "--shard-bytes", "1")
    bucket.server.control(mute=20)  # mostly enough for some shards, too few for all
    first = bucket.start("pack", bucket.at("photos"), "-o", out, "--threads", "1", *args)
    began = more = time.monotonic()
    while len(list(out.rglob("*.shard"))) < 2 and first.poll() is None:
        assert time.monotonic() < began + 60
        if time.monotonic() > more + 2:  # objects of the first blocks were requested last
            bucket.server.control(mute=4)
            more = time.monotonic()
        time.sleep(0.005)
    first.kill()
    first.wait(60)
    bucket.server.control(mute=False)
    again = bucket.good("pack", bucket.at("photos"), "-o", out, *args)
    assert "resumed: " in again.err
    good("pack", folder, "-o", tmp_path / "here.pen", *args)
    assert tree(out) == tree(tmp_path / "here.pen")


# ---- servers that fail ---------------------------------------------------------------------------


def test_errors_throttling_and_cut_bodies_change_nothing(bucket, pack, tmp_path):
    bucket.server.control(chaos="error=0.1,throttle=0.1,cut=0.1", seed=5)
    bucket.good("pack", bucket.at("photos"), "-o", tmp_path / "p.pen", *SMALL)
    assert tree(tmp_path / "p.pen") == tree(pack)


@pytest.mark.parametrize("stage", ["plan", "pack"])
def test_ctrl_c_ends_the_wait_for_an_unresponsive_server(bucket, tmp_path, stage):
    out = tmp_path / "p.pen"
    if stage == "pack":
        bucket.good("plan", bucket.at("photos"), "-o", out, *SMALL)
    more = ("--task", "0/1") if stage == "pack" else ()
    assert bucket.interrupt("pack", bucket.at("photos"), "-o", out, *SMALL, *more) < 5


def test_a_failed_input_does_not_wait_for_the_requests_of_others(bucket, tmp_path):
    """One broken image ends the run while other threads wait for a slow server."""
    bucket.put("photos/aaa/0.jpg", b"no image")
    bucket.server.control(chaos="delay=1,delay_ms=50")
    result = bucket.run("pack", bucket.at("photos"), "-o", tmp_path / "p.pen", "--order", "source")
    assert result.code == 1
    assert bucket.at("photos/aaa/0.jpg") in result.message()


def test_broken_objects_are_left_out_on_request(bucket, tmp_path):
    bucket.put("photos/cat/broken.jpg", b"no image")
    bucket.put("photos/cat/empty.jpg", b"")
    report = tmp_path / "bad.jsonl"
    record = bucket.good("pack", bucket.at("photos"), "-o", tmp_path / "p.pen", "--on-bad", "skip",
                         "--bad-report", report, "--json").json()
    assert (record["samples"], record["broken_inputs_left_out"]) == (40, 2)
    found = {json.loads(line)["key"]: line for line in report.read_text().splitlines()}
    assert set(found) == {"cat/broken.jpg", "cat/empty.jpg"}
    assert bucket.at("photos/cat/broken.jpg") in found["cat/broken.jpg"]


# ---- refusals ------------------------------------------------------------------------------------


@pytest.mark.parametrize(("source", "said"), [
    ("https://example.org/photos/", "an address whose objects cannot be listed"),
    ("s3://b-1/x.pen", "found the name of a pack"),
    ("s3://user:secret@b-1/x", "expected no user name or password"),
    ("https://user:secret@b-1/x.tar", "expected no user name or password"),
    ("s3://b-1/x?X-Amz-Signature=secret", "expected"),
    ("https://b-1/x?X-Amz-Signature=secret", "expected"),
])
def test_addresses_that_are_no_prefix(tmp_path, source, said):
    result = run("pack", source, "-o", tmp_path / "p.pen")
    assert result.code == 1
    assert said in result.message() and "secret" not in result.err
    assert not (tmp_path / "p.pen").exists()


def test_an_empty_prefix_and_one_that_may_not_be_listed(bucket, tmp_path):
    result = bucket.run("pack", bucket.at("nothing"), "-o", tmp_path / "p.pen")
    assert f"{bucket.at('nothing')}: expected at least one input, found none" in result.message()
    result = run("pack", bucket.at("photos"), "-o", tmp_path / "p.pen", "--no-sign", env=bucket.env)
    assert result.code == 1
    assert "listing is not allowed" in result.message()


def test_videos_and_frames_are_read_from_disk(bucket, tmp_path):
    bucket.put("films/a/x.mp4", b"film")
    for args in ((bucket.at("films"),), (bucket.at("photos"), "--kind", "frames")):
        result = bucket.run("pack", *args, "-o", tmp_path / "p.pen")
        assert result.code == 1
        assert "videos and frames are read from disk only" in result.message()


def test_a_name_with_an_empty_part_is_refused(bucket, tmp_path):
    bucket.put("photos/cat//x.jpg", image_bytes(1))
    result = bucket.run("pack", bucket.at("photos"), "-o", tmp_path / "p.pen")
    assert f"{bucket.at('photos')}/cat//x.jpg: expected a name without empty parts" in (
        result.message())
    bucket.client.delete_object(Bucket=bucket.name, Key="photos/cat//x.jpg")
    bucket.put("photos/cat/x.jpg", image_bytes(1))
    bucket.good("pack", bucket.at("photos"), "-o", tmp_path / "p.pen")


def test_names_that_urls_encode(bucket, tmp_path):
    folder = make_folder(tmp_path / "src", each=2)
    for name in ("what?.jpg", "a#1.jpg", "50%25 & more+ä.jpg"):
        (folder / "cat" / name).write_bytes(image_bytes(len(name)))
    bucket.fill(folder, "odd")
    bucket.good("pack", bucket.at("odd"), "-o", tmp_path / "there.pen", *SMALL)
    good("pack", folder, "-o", tmp_path / "here.pen", *SMALL)
    assert tree(tmp_path / "there.pen") == tree(tmp_path / "here.pen")
    result = bucket.run("index", bucket.at("odd"), "-o", tmp_path / "p.pen")
    assert result.code == 1 and "read in place cannot have '?' or '#'; rename" in result.message()
    assert re.search(r"object 'cat/(a#1|what\?)\.jpg' in s3://", result.message())


def test_a_name_that_cannot_be_requested_is_named(bucket, tmp_path):
    bucket.put("photos/cat/a\tb.jpg", image_bytes(1))
    result = bucket.run("pack", bucket.at("photos"), "-o", tmp_path / "p.pen")
    assert result.code == 1
    assert f"object 'cat/a?b.jpg' in s3://{bucket.name}: expected" in result.message()
    assert result.message().rstrip().endswith("rename the object")


def test_a_pack_is_no_prefix_of_images(bucket, tmp_path):
    bucket.good("pack", bucket.at("photos"), "-o", bucket.at("a.pen"), *SMALL)
    result = bucket.run("pack", bucket.at("a.pen"), "-o", tmp_path / "p.pen")
    assert "found the name of a pack; 'penstock copy' copies packs" in result.message()
    bucket.good("copy", bucket.at("a.pen"), tmp_path / "p.pen")


def test_no_output_has_a_secret(bucket, tmp_path):
    found = [bucket.run("pack", bucket.at("photos"), "-o", tmp_path / "p.pen", "--json")]
    wrong = {**bucket.env, "AWS_SECRET_ACCESS_KEY": "another-secret-of-mine"}
    found.append(run("pack", bucket.at("photos"), "-o", tmp_path / "q.pen", env=wrong))
    assert "SignatureDoesNotMatch" in found[-1].message()
    text = "".join(r.out + r.err for r in found)
    plan = b"".join(tree(tmp_path).values())
    for secret in (bucket.server.secret, "another-secret-of-mine", "Signature="):
        assert secret not in text
        assert secret.encode() not in plan
    assert not re.search("[0-9a-f]{64}", text)
