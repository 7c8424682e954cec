# SPDX-License-Identifier: Apache-2.0
"""Packing tars in a bucket or at a web server: the same pack as from disk, few requests, and what
happens when a tar changes."""

import tarfile

import pytest
from bucket_tools import filled, serve, tree
from cli_tools import add_member, good, image_bytes, run

SMALL = ("--block-samples", "4", "--shard-bytes", "12000")
N = 12  # samples of each tar


def make_tar(path, number, mode="w", filler=0, n=N):
    with tarfile.open(path, mode) as tar:
        for i in range(n):
            parts = {"jpg": image_bytes(100 * number + i) + bytes(filler), "cls": b"%d" % (i % 3),
                     "json": b'{"i": %d}' % i, "txt": b"caption " * (i + 1)}
            for suffix, body in parts.items():
                add_member(tar, f"{number:02d}{i:03d}.{suffix}", body)


@pytest.fixture(scope="module")
def server():
    with serve() as server:
        yield server


@pytest.fixture(scope="module")
def tars(tmp_path_factory):
    top = tmp_path_factory.mktemp("tars")
    for number in range(3):
        make_tar(top / f"web-{number:03d}.tar", number)
    make_tar(top / "packed.tar.gz", 7, "w:gz")
    return top


@pytest.fixture
def bucket(server, tmp_path, tars):
    return filled(server, tmp_path / "home", tars, "tars")


@pytest.mark.threads
@pytest.mark.parametrize("order", ["shuffled", "source"])
def test_tars_in_a_bucket_are_packed_as_tars_on_disk(bucket, tars, tmp_path, order):
    for top, out in ((f"{tars}", "here.pen"), (bucket.at("tars"), "there.pen")):
        bucket.good("pack", f"{top}/web-{{000..002}}.tar", "-o", tmp_path / out, "--order", order,
                    *SMALL)
    assert tree(tmp_path / "there.pen") == tree(tmp_path / "here.pen")
    kinds = bucket.server.counts()["kinds"]
    # The end and all of each tar for its members, and one request for the parts of each sample.
    assert kinds["GetObject"] <= 2 * 3 + 3 * N
    assert kinds["HeadObject"] >= 3 and "ListObjectsV2" not in kinds


def test_a_compressed_tar(bucket, tars, tmp_path):
    for top, out in ((f"{tars}", "here.pen"), (bucket.at("tars"), "there.pen")):
        bucket.good("pack", f"{top}/packed.tar.gz", "-o", tmp_path / out, "--order", "source",
                    *SMALL)
    assert tree(tmp_path / "there.pen") == tree(tmp_path / "here.pen")


def test_a_tar_at_a_web_server_gets_no_credentials(bucket, tars, tmp_path):
    bucket.server.boto3().put_object(Bucket="open", Key="a b/web.tar",
                                     Body=(tars / "web-001.tar").read_bytes())
    bucket.good("pack", f"{bucket.server.url}/open/a%20b/web.tar", "-o", tmp_path / "there.pen")
    good("pack", tars / "web-001.tar", "-o", tmp_path / "here.pen")
    assert tree(tmp_path / "there.pen") == tree(tmp_path / "here.pen")
    # What needs credentials is refused, although there are some for this host.
    private = f"{bucket.server.url}/{bucket.name}/tars/web-000.tar"
    result = bucket.run("pack", private, "-o", tmp_path / "p.pen")
    assert result.code == 1 and "403" in result.message()


def test_a_large_tar_is_streamed_in_pieces(bucket, tmp_path):
    """Samples that cross the ends of pieces of 4 MiB, and pieces that are jumped over."""
    make_tar(tmp_path / "large.tar", 5, filler=1_700_000, n=7)
    make_tar(tmp_path / "larger.tar", 6, filler=5_000_000, n=3)
    bucket.fill(tmp_path, "large")
    args = ("--mode", "keep", "--no-index", "--order", "source")
    names = ("large.tar", "larger.tar")
    bucket.good("pack", *(bucket.at(f"large/{n}") for n in names), "-o", tmp_path / "there.pen",
                *args)
    good("pack", *(tmp_path / n for n in names), "-o", tmp_path / "here.pen", *args)
    assert tree(tmp_path / "there.pen") == tree(tmp_path / "here.pen")


def test_failing_requests_change_nothing(bucket, tars, tmp_path):
    bucket.server.control(chaos="error=0.1,throttle=0.05,cut=0.1,reset=0.05", seed=2)
    bucket.good("pack", bucket.at("tars/web-000.tar"), "-o", tmp_path / "there.pen", *SMALL)
    good("pack", tars / "web-000.tar", "-o", tmp_path / "here.pen", *SMALL)
    assert tree(tmp_path / "there.pen") == tree(tmp_path / "here.pen")


@pytest.mark.parametrize("change", ["same size", "longer", "gone"])
@pytest.mark.parametrize("name", ["web-000.tar", "packed.tar.gz"])
def test_a_tar_that_changes_after_the_plan(bucket, tars, tmp_path, change, name):
    out, source = tmp_path / "p.pen", bucket.at(f"tars/{name}")
    args = ("-o", out, "--order", "source", *SMALL)
    bucket.good("plan", source, *args)
    body = (tars / name).read_bytes()
    if change == "gone":
        bucket.client.delete_object(Bucket=bucket.name, Key=f"tars/{name}")
    else:
        bucket.put(f"tars/{name}", body[:-1] + b"x" if change == "same size" else body + b"x")
    result = bucket.run("pack", source, *args, "--task", "0/1")
    assert result.code == 1
    said = {"gone": "no such object", "same size": "its ETag differs",
            "longer": f"expected {len(body)} bytes, found {len(body) + 1}"}[change]
    assert result.message() == (f"{source}: changed since the plan was made: {said}; run "
                                "'penstock plan' again, then every task")


def test_a_tar_that_is_missing_or_damaged(bucket, tars, tmp_path):
    result = bucket.run("pack", bucket.at("tars/none.tar"), "-o", tmp_path / "p.pen")
    assert result.code == 1 and bucket.at("tars/none.tar") in result.message()
    bucket.put("tars/cut.tar", (tars / "web-000.tar").read_bytes()[:5000])
    result = bucket.run("pack", bucket.at("tars/cut.tar"), "-o", tmp_path / "p.pen")
    assert result.code == 1 and bucket.at("tars/cut.tar") in result.message()
    bucket.put("tars/empty.tar", b"")
    result = bucket.run("pack", bucket.at("tars/empty.tar"), "-o", tmp_path / "p.pen")
    assert result.code == 1
    assert not (tmp_path / "p.pen").exists()


def test_ctrl_c_while_the_members_are_listed(bucket, tmp_path):
    assert bucket.interrupt("pack", bucket.at("tars/web-000.tar"), "-o", tmp_path / "p.pen",
                            answers=1) < 5


@pytest.mark.parametrize("source", ["https://127.0.0.1:1/a.tar?X-Amz-Signature=secret",
                                    "https://user:secret@127.0.0.1:1/a.tar"])
def test_addresses_with_secrets_are_refused(tmp_path, source):
    result = run("pack", source, "-o", tmp_path / "p.pen")
    assert result.code == 1
    assert "secret" not in result.err
    assert not (tmp_path / "p.pen").exists()
