# SPDX-License-Identifier: Apache-2.0
"""Prefixes with many pages are listed by several requests at a time: the plan is the one that a
list in one page gives."""

import itertools

import net_stage
import pytest
from bucket_tools import Bucket, serve

KEYS = 5  # of a page


@pytest.fixture(scope="module")
def server():
    with serve() as running:
        yield running


def each(folders, n):
    return [f"{folder}/{i:03d}.jpg" for folder in folders for i in range(n)]


NAMES = {
    "many folders": each([f"c{k:02d}" for k in range(24)], 4),
    "small folders": each([f"c{k:02d}" for k in range(30)], 2),
    "one in each folder": each([f"c{k:02d}" for k in range(16)], 1),
    "few folders": each("abc", 11),
    "one folder": each("a", 12),
    "uneven folders": [f"c{k:02d}/{i:03d}.jpg" for k in range(9) for i in range(k * k % 17)],
    "below the folders": [f"{a}/{b}/{c}.jpg" for a, b, c in itertools.product("abc", "xy", "123")],
    "flat": [f"{i:03d}.jpg" for i in range(13)],
    "odd": ["a/", "a/1.jpg", "a-b/1.jpg", "a-b/2.jpg", "a!/3.jpg", "a0/%2F.jpg", "a0/x y.jpg",
            "b/", "b/é.jpg", "b/日本.jpg", "z+z/&<.jpg", "z+z/1.jpg", "é/1.jpg", "日本/1.jpg",
            *each("cde", 4)],
    "passed over": [*each([".a", ".b"], 4), *each(["b.pen", "c", "d", "e"], 4)],
}


@pytest.fixture
def bucket(server, tmp_path):
    server.control(chaos="", mute=False, listing={})
    return Bucket(server, tmp_path / "home")


def fill(bucket, names):
    for name in names:
        bucket.put(f"src/{name}", b"")


@pytest.fixture(scope="module")
def folders(server, tmp_path_factory):
    """A bucket that several tests use."""
    made = Bucket(server, tmp_path_factory.mktemp("home"))
    fill(made, NAMES["many folders"])
    return made


@pytest.fixture
def many(folders):
    folders.server.control(chaos="", mute=False, listing={})
    return folders


def plan(bucket, out, **listing):
    """The bytes of the plan, and the requests for lists."""
    bucket.server.control(listing=listing, reset=True)
    bucket.good("plan", bucket.at("src"), "-o", out, "--block-samples", "2")
    return (out / ".work" / "plan").read_bytes(), bucket.server.counts()["kinds"]["ListObjectsV2"]


@pytest.mark.threads
@pytest.mark.parametrize("names", NAMES.values(), ids=NAMES)
def test_the_plan_is_the_same(bucket, tmp_path, names):
    fill(bucket, names)
    expected, requests = plan(bucket, tmp_path / "one.pen")
    assert requests == 1
    found, requests = plan(bucket, tmp_path / "many.pen", keys=KEYS)
    assert found == expected
    pages = -(-len(names) // KEYS)
    assert pages <= requests <= 3 * pages + 2
    if "/" not in names[0]:
        assert requests == pages


@pytest.mark.parametrize("wrong", [
    {"ignores": ["start-after"]}, {"ignores": ["delimiter"]}, {"reverse": "all"}], ids=str)
def test_servers_that_only_list_one_page_after_another(many, tmp_path, wrong):
    expected, _ = plan(many, tmp_path / "one.pen")
    found, requests = plan(many, tmp_path / "many.pen", keys=KEYS, **wrong)
    assert found == expected
    assert requests <= len(NAMES["many folders"]) // KEYS + 2


def test_errors_and_throttling_change_nothing(many, tmp_path):
    expected, _ = plan(many, tmp_path / "one.pen")
    many.server.control(chaos="error=0.1,throttle=0.1,cut=0.1", seed=3)
    found, _ = plan(many, tmp_path / "many.pen", keys=KEYS)
    assert found == expected


def fails(bucket, out, **listing):
    bucket.server.control(listing=listing)
    result = bucket.run("plan", bucket.at("src"), "-o", out, "--block-samples", "2")
    assert result.code == 1 and not out.exists()
    return result.message()


def test_a_failure_in_the_middle(many, tmp_path, monkeypatch):
    many.server.control(key={"id": "short", "secret": "s3cret", "requests": 9})
    monkeypatch.setattr(many, "env", many.env | {"AWS_ACCESS_KEY_ID": "short",
                                                 "AWS_SECRET_ACCESS_KEY": "s3cret"})
    assert "ExpiredToken" in fails(many, tmp_path / "p.pen", keys=KEYS)


@pytest.mark.parametrize("kind, limit", [
    ("page", "a list of at most one page for each continuation token"),
    ("empty", "a list of at most 1,000 pages without objects"),
    ("names", "at most 256 MiB of class names"),
])
def test_a_list_without_end(bucket, tmp_path, kind, limit):
    bucket.server.control(listing={"endless": kind})
    result = bucket.run("pack", bucket.at("src"), "-o", tmp_path / "p.pen")
    assert result.code == 1
    assert f"{bucket.at('src')}: expected {limit}" in result.err
    assert "se a prefix with fewer objects" in result.err


def test_names_without_end_in_memory(bucket):
    """Of what gc is to clean."""
    bucket.server.control(listing={"endless": "names"})
    message = bucket.run("gc", "--abandon", bucket.at("src")).message()
    assert f"{bucket.at('src')}: expected a list of at most 256 MiB of names" in message


def test_ranges_out_of_order(many, tmp_path):
    assert "expected a list in the order of keys, found src/c" in fails(
        many, tmp_path / "p.pen", keys=KEYS, reverse="ranges")


@pytest.mark.parametrize("names", [
    [*each("ab", 4), "b.jpg", *each("cd", 4), "e.jpg"],  # with and without a class
    [*each("ab", 4), "d/../x.jpg", "c//x.jpg", *each("ef", 4)],
    ["a/1.mp4", *each("bcd", 4)],
    [f"{'x' * 1000}/{i}.jpg" for i in range(6)] + each("ab", 4),
], ids=["mixed", "empty part", "videos", "long"])
def test_the_same_error(bucket, tmp_path, names):
    fill(bucket, names)
    results = []
    for listing in ({}, {"keys": KEYS}):
        bucket.server.control(listing=listing)
        results.append(bucket.run("plan", bucket.at("src"), "-o", tmp_path / "p.pen",
                                  "--block-samples", "2", "--threads", "1"))
    assert results[0].err == results[1].err


def test_ctrl_c(many, tmp_path):
    many.server.control(listing={"keys": KEYS})
    assert many.interrupt("plan", many.at("src"), "-o", tmp_path / "p.pen", answers=6) < 5


@pytest.mark.slow
def test_ceph(tmp_path):
    """More than a page of objects in folders, and an object for a folder."""
    bucket = Bucket(net_stage.need_ceph(), tmp_path / "home")
    fill(bucket, [*each([f"c{k:02d}" for k in range(30)], 50), "c27/", "c26/é.jpg"])
    record = bucket.good("plan", bucket.at("src"), "-o", tmp_path / "p.pen", "--json").json()
    assert record["samples"] == 1501  # keys are unique: none is missing and none is there twice
