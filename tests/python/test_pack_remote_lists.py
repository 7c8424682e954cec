# SPDX-License-Identifier: Apache-2.0
"""Lists of objects: the same pack as from a list of files, and what a list from somebody else may
not name."""

import net_stage
import pytest
from bucket_tools import filled, serve, tree
from cli_tools import good, image_bytes, make_folder, run, write_list

SMALL = ("--block-samples", "4", "--shard-bytes", "12000")


@pytest.fixture(scope="module")
def server():
    with serve() as server:
        yield server


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    top = make_folder(tmp_path_factory.mktemp("photos") / "src", each=6)
    rows = [[str(p.relative_to(top)), len(p.parent.name) - 3 + i % 2, f"note {i}"]
            for i, p in enumerate(sorted(top.rglob("*.*")))]
    write_list(top / "list.csv", ["path", "label", "note"], rows)
    write_list(top / "list.classes.csv", ["label", "class"], [[0, "even"], [1, "odd"]])
    return top


@pytest.fixture(scope="module")
def pack(folder, tmp_path_factory):
    out = tmp_path_factory.mktemp("packs") / "photos.pen"
    good("pack", folder / "list.csv", "-o", out, *SMALL)
    return out


@pytest.fixture
def bucket(server, tmp_path, folder):
    return filled(server, tmp_path / "home", folder, "photos")


@pytest.mark.threads
def test_a_list_beside_its_objects(bucket, pack, tmp_path):
    bucket.good("pack", bucket.at("photos/list.csv"), "-o", tmp_path / "p.pen", *SMALL)
    assert tree(tmp_path / "p.pen") == tree(pack)
    kinds = bucket.server.counts()["kinds"]
    assert "ListObjectsV2" not in kinds
    assert kinds["HeadObject"] <= 12 + 3


def test_a_list_on_disk_with_a_root(bucket, folder, pack, tmp_path):
    bucket.good("pack", folder / "list.csv", "--root", bucket.at("photos/"), "-o",
                tmp_path / "p.pen", *SMALL)
    assert tree(tmp_path / "p.pen") == tree(pack)


def test_urls_below_the_root(bucket, tmp_path):
    rows = [[bucket.at(f"photos/cat/{i}.jpg")] for i in range(4)]
    write_list(tmp_path / "list.csv", ["path"], rows)
    record = bucket.good("pack", tmp_path / "list.csv", "--root", bucket.at("photos"), "-o",
                         tmp_path / "p.pen", "--json").json()
    assert record["samples"] == 4


def test_a_list_at_a_web_server(bucket, folder, pack, tmp_path):
    net_stage.fill_bucket(bucket.server.boto3(), "open", folder)
    bucket.good("pack", f"{bucket.server.url}/open/list.csv", "-o", tmp_path / "p.pen", *SMALL)
    assert tree(tmp_path / "p.pen") == tree(pack)


def test_tasks_notice_that_the_list_or_an_object_changed(bucket, folder, pack, tmp_path):
    out, source = tmp_path / "p.pen", bucket.at("photos/list.csv")
    bucket.good("plan", source, "-o", out, *SMALL)
    bucket.good("pack", source, "-o", out, *SMALL, "--task", "0/1")
    bucket.good("finalise", out)
    assert bucket.good("verify", out).out.startswith("ok: 12 samples")
    bucket.good("plan", source, "-o", tmp_path / "q.pen", *SMALL)
    bucket.put("photos/cat/1.jpg", image_bytes(77) + b"x")
    result = bucket.run("pack", source, "-o", tmp_path / "q.pen", *SMALL, "--task", "0/1")
    assert f"{bucket.at('photos/cat/1.jpg')}: changed since the plan was made" in result.message()
    bucket.put("photos/list.csv", (folder / "list.csv").read_bytes() + b"\n")
    result = bucket.run("pack", source, "-o", tmp_path / "q.pen", *SMALL, "--task", "0/1")
    assert f"{source}: changed since the plan was made" in result.message()


def test_an_object_that_does_not_exist(bucket, tmp_path):
    bucket.put("photos/some.csv", b"path\ncat/0.jpg\ncat/none.jpg\n")
    args = ("pack", bucket.at("photos/some.csv"), "-o", tmp_path / "p.pen")
    result = bucket.run(*args)
    assert result.code == 1
    assert bucket.at("photos/cat/none.jpg") in result.message()
    record = bucket.good(*args, "--on-bad", "skip", "--json").json()
    assert (record["samples"], record["broken_inputs_left_out"]) == (1, 1)


# ---- what a list may not name --------------------------------------------------------------------


@pytest.mark.parametrize("path", [
    "s3://another-bucket/photos/cat/0.jpg", "s3://{bucket}/other/0.jpg",
    "s3://{bucket}/photos-2/0.jpg", "s3://{bucket}/photos/../other/0.jpg", "../other/0.jpg",
    "cat/../../other/0.jpg", "/etc/passwd", "cat//0.jpg", "./cat/0.jpg",
    "http://169.254.169.254/latest/meta-data/iam", "https://example.org/x.jpg",
    "s3://{bucket}/photos/cat/0.jpg?versionId=1", "file:///etc/passwd",
])
def test_what_lies_outside_is_refused(bucket, tmp_path, path):
    path = path.format(bucket=bucket.name)
    bucket.put("other/0.jpg", image_bytes(1))
    bucket.put("photos/bad.csv", f"path\ncat/0.jpg\n{path}\n".encode())
    bucket.server.control(reset=True)
    result = bucket.run("pack", bucket.at("photos/bad.csv"), "-o", tmp_path / "p.pen",
                        "--allow-outside")
    assert result.code == 1
    assert result.message().startswith(f"{bucket.at('photos/bad.csv')}: line 3: expected an object "
                                       f"below {bucket.at('photos')}, found ")
    assert "pass --root with a URL" in result.message()
    assert not [e for e in bucket.server.log() if "other" in e["what"]]
    record = bucket.good("pack", bucket.at("photos/bad.csv"), "-o", tmp_path / "p.pen", "--on-bad",
                         "skip", "--json").json()
    assert (record["samples"], record["broken_inputs_left_out"]) == (1, 1)
    assert not [e for e in bucket.server.log() if "other" in e["what"]]


def test_the_advice_for_urls_of_two_prefixes(bucket, tmp_path):
    bucket.put("other/0.jpg", image_bytes(1))
    names = [bucket.at("photos/cat/0.jpg"), bucket.at("other/0.jpg")]
    bucket.put("photos/two.csv", "\n".join(["path", *names]).encode())
    args = ("pack", bucket.at("photos/two.csv"), "-o", tmp_path / "p.pen", "--json")
    assert bucket.run(*args).code == 1
    assert bucket.good(*args, "--root", bucket.at("")[:-1]).json()["samples"] == 2


@pytest.mark.parametrize("more", [(), ("--allow-outside",)])
def test_urls_in_a_list_of_files_need_a_root(bucket, tmp_path, more):
    write_list(tmp_path / "list.csv", ["path"], [[bucket.at("photos/cat/0.jpg")]])
    args = ("pack", tmp_path / "list.csv", "-o", tmp_path / "p.pen")
    result = bucket.run(*args, *more)
    assert result.code == 1
    assert result.message().endswith(
        "line 2: expected a path, found a URL; pass --root with the URL that all objects of the "
        "list are below, such as s3://BUCKET/PREFIX")
    assert not bucket.server.counts()["total"]
    bucket.good(*args, "--root", bucket.at("photos"))


def test_a_list_of_videos_is_refused(bucket, tmp_path):
    bucket.put("photos/films.csv", b"path\na.mp4\n")
    result = bucket.run("pack", bucket.at("photos/films.csv"), "-o", tmp_path / "p.pen")
    assert "videos and frames are read from disk only" in result.message()


def test_a_root_with_a_secret_is_refused(folder, tmp_path):
    result = run("pack", folder / "list.csv", "--root", "https://user:secret@host/x", "-o",
                 tmp_path / "p.pen")
    assert result.code == 1 and "secret" not in result.err


def test_ctrl_c_while_objects_are_measured(bucket, tmp_path):
    assert bucket.interrupt("pack", bucket.at("photos/list.csv"), "-o", tmp_path / "p.pen",
                            answers=3) < 5  # the list is read
