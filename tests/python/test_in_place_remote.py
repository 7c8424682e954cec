# SPDX-License-Identifier: Apache-2.0
"""In-place packs whose images are objects of a store: the same samples and batches as from a disk,
few requests, every change of an object noticed, and no request that nobody has allowed."""

import os
import pickle
import shutil
import signal
import tarfile
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import net_stage
import numpy
import pytest
from bucket_tools import Bucket
from cli_tools import add_member, good, image_bytes
from hostile_map import change_map
from plain_reader import Pack as PlainPack
from plain_reader import PackError
from py_tools import need_penstock
from remote_tools import options

penstock = need_penstock()
pytestmark = pytest.mark.usefixtures("no_other_settings")
N = 12  # samples of each tar
SMALL = ("--block-samples", "5")


def write_tar(path, first):
    with tarfile.open(path, "w") as tar:
        for i in range(first, first + N):
            for suffix, data in (("jpg", image_bytes(i)), ("cls", b"%d" % (i % 3)),
                                 ("txt", b"caption " * (i + 1))):
                add_member(tar, f"s/{i:04}.{suffix}", data)


@pytest.fixture(scope="module")
def server():
    with net_stage.S3Server(buckets=("other", "open,public", "unlisted,no-list"),
                            deadline_s=60) as server:
        yield server


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """Tars and a folder, in-place packs of them, and ordinary packs with the same samples."""
    top = tmp_path_factory.mktemp("in-place") / "data"
    (top / "photos/cat").mkdir(parents=True)
    for n in range(2):
        write_tar(top / f"web-{n}.tar", n * N)
    for i in range(20):
        (top / f"photos/cat/{i} +é.jpg").write_bytes(image_bytes(i))
    tars = (top / "web-0.tar", top / "web-1.tar")
    good("index", *tars, "-o", top / "tars.pen", *SMALL)
    good("index", top / "photos", "-o", top / "folder.pen", *SMALL)
    good("pack", *tars, "-o", top / "plain-tars.pen", "--mode", "keep", "--order", "source", *SMALL)
    good("pack", top / "photos", "-o", top / "plain-folder.pen", "--mode", "keep", *SMALL)
    return top


class Stage:
    """The files in a bucket, and packs on disk that name them there."""

    def __init__(self, server, made, tmp_path):
        self.server, self.bucket = server, Bucket(server, tmp_path / "home")
        self.options, self.made, self.top = options(server), made, tmp_path
        self.objects = {}
        for path in [*made.glob("*.tar"), *made.rglob("*.jpg")]:
            name = f"in/{path.relative_to(made)}"
            self.bucket.put(name, path.read_bytes())
            self.objects[self.bucket.at(name)] = path.read_bytes()
        self.root = self.bucket.at("in")

    def pack(self, kind, root=None, etag=b'"an-etag"'):
        """A copy of an in-place pack whose files are objects below root."""
        path = self.top / f"{kind}-far.pen"
        shutil.rmtree(path, ignore_errors=True)
        shutil.copytree(self.made / f"{kind}.pen", path)
        prefix = (root or self.root).encode() + b"/"
        change_map(path, rename=lambda name: (prefix + name, etag))
        return path

    def open(self, pack, **more):
        return penstock.open(pack, **{"storage_options": self.options, "roots": [self.root],
                                      **more})

    def fails(self, pack, *words, **more):
        with pytest.raises(penstock.Error) as caught:
            with self.open(pack, **more) as p:
                contents(p)
        for word in words:
            assert word in str(caught.value), caught.value
        return caught.value

    def requests(self):
        return [entry["what"] for entry in self.server.log()]


@pytest.fixture
def stage(server, made, tmp_path):
    server.control(renew=True)
    return Stage(server, made, tmp_path)


def contents(p):
    return [(p.key(i), p.extract(i, "image")) for i in range(len(p))]


def plain(made, kind):
    with penstock.open(made / f"plain-{kind}.pen") as p:
        return contents(p)


def batches(pack, **more):
    pipeline = "decode | random_resized_crop 24 | hflip | tensor u8"
    loader = penstock.Loader(pack, 4, pipeline=pipeline, seed=3, output="numpy", **more)
    with loader:
        return [[numpy.asarray(part).copy() for part in batch] for batch in loader]


def same(a, b):
    return len(a) == len(b) and all(
        numpy.array_equal(x, y) for one, two in zip(a, b) for x, y in zip(one, two))


# ---- reading -----------------------------------------------------------------------------------


@pytest.mark.threads
@pytest.mark.parametrize("kind", ["tars", "folder"])
def test_same_as_an_ordinary_pack(stage, made, kind):
    pack = stage.pack(kind)
    with stage.open(pack) as p:
        assert contents(p) == plain(made, kind)
        assert p.remote_stats()["requests"] > 0
        assert pickle.loads(pickle.dumps(stage.open(pack, storage_options=None))).path == p.path
    for shuffle, order in ((True, "shuffle"), (False, "sequential")):
        expected = batches(made / f"plain-{kind}.pen", order=order)
        with stage.open(pack) as p:
            assert same(batches(p, shuffle=shuffle), expected)  # by blocks, as of any remote pack
    found = PlainPack(pack, stage.objects)
    assert found.samples == PlainPack(made / f"plain-{kind}.pen").samples
    assert set(found.etags.values()) == {b'"an-etag"'}


@pytest.mark.threads
def test_from_objects_to_batches(stage, made, tmp_path):
    """index, verify and load, and no image is ever on the disk."""
    given = ("--endpoint", stage.server.url)
    for kind, source in (("tars", f"{stage.root}/web-{{0..1}}.tar"), ("folder", "photos")):
        out = tmp_path / f"{kind}.pen"
        stage.bucket.good("index", source if kind == "tars" else f"{stage.root}/{source}", "-o",
                          out, *SMALL, *given)
        stage.bucket.good("verify", out, "--root", stage.root, *given)
        with stage.open(out) as p:
            assert contents(p) == plain(made, kind)
            expected = batches(made / f"plain-{kind}.pen", order="shuffle")
            assert same(batches(p, shuffle=True), expected)


def test_neighbors_come_by_one_request(stage):
    pack = stage.pack("tars")
    stage.server.control(reset=True)
    with stage.open(pack) as p:
        contents(p)
        n = p.remote_stats()
        # 24 samples in 5 blocks; the third has samples of both tars.
        assert n["requests"] - n["retries"] - n["hedges"] == 6


def test_later_requests_carry_the_first_etag(stage):
    pack = stage.pack("tars")
    changed = dict(stage.objects)[f"{stage.root}/web-1.tar"]
    with stage.open(pack) as p:
        assert p.extract(len(p) - 1, "image")
        stage.bucket.put("in/web-1.tar", changed[:-1] + b"\1")  # the end of a tar is not read
        with pytest.raises(penstock.CorruptError, match="web-1.tar"):
            p.extract(N, "image")
        with pytest.raises(penstock.CorruptError, match="web-1.tar"):
            p.extract(N + 3, "image")
    with stage.open(pack) as p:  # size and checksums decide
        assert p.extract(N + 3, "image") == image_bytes(N + 3)


@pytest.mark.threads
def test_cache_preload_copy_verify_extract(stage, made, tmp_path):
    pack, expected = stage.pack("folder"), plain(made, "folder")
    for more in ({"cache": tmp_path / "cache"}, {"cache": tmp_path / "cache"}, {"preload": True}):
        with stage.open(pack, **more) as p:
            assert contents(p) == expected
    with stage.open(pack, cache=tmp_path / "cache") as p:
        contents(p)
        assert p.remote_stats()["requests"] == 0
        assert p.cache_stats()["misses"] == 0
    given = ("--root", stage.root, "--endpoint", stage.server.url)
    assert "ok" in stage.bucket.good("verify", pack, "--decode", *given).out
    stage.bucket.good("extract", pack, "-o", tmp_path / "out", *given)
    for path in (made / "photos").rglob("*.jpg"):
        out = tmp_path / "out" / path.relative_to(made / "photos")
        assert out.read_bytes() == path.read_bytes()
    stage.bucket.good("copy", pack, tmp_path / "copy.pen", *given)
    with penstock.open(tmp_path / "copy.pen") as p:
        assert contents(p) == expected
    report = stage.bucket.good("doctor", pack, *given, "--seconds", "1", "--json").json()
    assert report["order"] == "shuffle"


@pytest.mark.parametrize("kind", ["tars", "folder"])
def test_a_pack_beside_its_objects(stage, made, tmp_path, kind):
    """The pack is in the bucket too: by relative paths, and by addresses."""
    expected = plain(made, kind)
    stage.bucket.fill(made / f"{kind}.pen", "in/relative.pen")
    stage.bucket.fill(stage.pack(kind), "in/absolute.pen")
    stage.bucket.fill(stage.pack(kind), "elsewhere/absolute.pen")
    for name in ("relative", "absolute"):
        with stage.open(f"{stage.root}/{name}.pen", roots=None) as p:
            assert contents(p) == expected
    with stage.open(f"S{stage.root[1:]}/absolute.pen", roots=None) as p:
        assert contents(p) == expected
    with stage.open(f"{stage.root}/relative.pen", cache=tmp_path / "cache", roots=None) as p:
        assert contents(p) == expected
    with stage.open(f"{stage.root}/relative.pen", roots=None) as p:
        assert same(batches(p, shuffle=True), batches(made / f"plain-{kind}.pen", order="shuffle"))
    far = stage.bucket.at("elsewhere/absolute.pen")
    assert stage.root in str(stage.fails(far, "roots=", roots=None))
    with stage.open(far) as p:
        assert contents(p) == expected
    stage.bucket.good("verify", far, "--root", stage.root, "--endpoint", stage.server.url)


def test_two_roots_in_a_bucket(stage, made):
    """They share connections; each allows its own objects."""
    pack, roots = stage.pack("tars"), [stage.root, stage.bucket.at("second/place")]
    stage.bucket.put("second/place/web-1.tar", (made / "web-1.tar").read_bytes())
    change_map(pack, rename=lambda name: (
        name.replace(b"/in/", b"/second/place/") if name.endswith(b"-1.tar") else name, b""))
    stage.fails(pack, "roots=")
    stage.bucket.client.delete_object(Bucket=stage.bucket.name, Key="in/web-1.tar")
    with stage.open(pack, roots=roots) as p:
        assert contents(p) == plain(made, "tars")
        stats = p.remote_stats()
        assert stats["requests"] - stats["retries"] - stats["hedges"] == 6  # each counts once


def test_objects_of_a_web_server(stage, made, server):
    client = server.boto3(retries=3)
    for path in (made / "photos").rglob("*.jpg"):
        client.put_object(Bucket="open", Key=f"w/{path.relative_to(made)}", Body=path.read_bytes())
    root = f"{server.url}/open/w"
    pack = stage.pack("folder", root)
    change_map(pack, rename=lambda name: (name.replace(b" +\xc3\xa9", b"%20%2b%C3%A9"), b""))
    with penstock.open(pack, roots=[root + "/"]) as p:
        assert contents(p) == plain(made, "folder")
    with penstock.open(pack, relocate={root: str(made)}) as p:
        assert contents(p) == plain(made, "folder")
    for bad in (b"%2e%2e", b"a%2fb", b"a%00b", b"a%zz", b"a?b", b"a#b"):
        change_map(pack, path=root.encode() + b"/photos/" + bad)
        stage.fails(pack, roots=[root], storage_options=None)


@pytest.mark.threads
def test_prefixes_that_have_moved(stage, made):
    expected = plain(made, "tars")
    pack = stage.pack("tars", "s3://old-bucket/a=b")
    for relocate in ({"s3://old-bucket/a=b": stage.root}, {"s3://old-bucket/a=b": str(made)}):
        with stage.open(pack, roots=None, relocate=relocate,
                        storage_options=stage.options if "s3" in str(relocate.values()) else None,
                        ) as p:
            assert contents(p) == expected
    stage.bucket.good("verify", pack, "--relocate", f"s3://old-bucket/a=b={stage.root}",
                      "--endpoint", stage.server.url)
    good("verify", pack, "--relocate", f"s3://old-bucket/a=b={made}")
    with stage.open(made / "tars.pen", roots=None, relocate={str(made): stage.root}) as p:
        assert contents(p) == expected
        assert p.remote_stats()["requests"] > 0


# ---- objects that change -----------------------------------------------------------------------


def test_each_change_is_noticed(stage):
    pack, name = stage.pack("tars"), "in/web-1.tar"
    whole = stage.objects[stage.bucket.at(name)]
    for body in (whole[:-1], whole[:2000], whole + b"\0", bytes(len(whole)), None):
        if body is None:
            stage.bucket.client.delete_object(Bucket=stage.bucket.name, Key=name)
        else:
            stage.bucket.put(name, body)
        error = stage.fails(pack, "web-1.tar")
        assert isinstance(error, penstock.CorruptError)
        assert "0x" not in str(error)
        result = stage.bucket.run("verify", pack, "--root", stage.root,
                                  "--endpoint", stage.server.url)
        assert result.code == 1
        assert "web-1.tar" in result.err
        with stage.open(pack) as p:
            assert p.extract(0, "image") == image_bytes(0)
    stage.bucket.put(name, whole)
    stage.bucket.good("verify", pack, "--root", stage.root, "--endpoint", stage.server.url)


def test_one_missing_object_takes_no_others_with_it(stage, made):
    pack, expected = stage.pack("folder"), plain(made, "folder")
    stage.bucket.client.delete_object(Bucket=stage.bucket.name, Key="in/photos/cat/3 +é.jpg")
    with stage.open(pack) as p:
        for i in range(len(p)):
            if "/3 " in p.key(i):
                with pytest.raises(penstock.CorruptError, match="3 "):
                    p.extract(i, "image")
            else:
                assert p.extract(i, "image") == expected[i][1]
        assert len(batches(p, on_bad="substitute", max_bad=1)) == 5


def test_a_wrong_prefix_is_told_at_once(stage):
    pack = stage.pack("folder")
    stage.server.control(reset=True)
    moved = {stage.root: stage.bucket.at("none")}
    with stage.open(pack, relocate=moved) as p:
        with pytest.raises(penstock.CorruptError, match="no such object.*relocate"):
            p.extract(0, "image")
    assert len(stage.requests()) == len(set(stage.requests())) == 5  # nothing is read twice
    error = stage.fails(pack, "NoSuchBucket", relocate={stage.root: "s3://no-such-bucket/in"})
    assert not isinstance(error, penstock.CorruptError)


def test_access_denied_is_no_bad_sample(stage):
    pack = stage.pack("tars")
    wrong = {**stage.options, "secret": "wrong"}
    with stage.open(pack, storage_options=wrong) as p:
        with pytest.raises(penstock.Error) as caught:
            p.extract(0, "image")
    assert not isinstance(caught.value, penstock.CorruptError)


def test_a_missing_object_of_a_bucket_that_is_not_listed(stage, made, server):
    """S3 does not tell it from one that may not be read, so the run ends."""
    pack = stage.pack("tars", "s3://unlisted/in")
    server.boto3(retries=3).put_object(Bucket="unlisted", Key="in/web-0.tar",
                                       Body=(made / "web-0.tar").read_bytes())
    with stage.open(pack, roots=["s3://unlisted/in"]) as p:
        assert p.extract(0, "image") == image_bytes(0)
        with pytest.raises(penstock.Error, match="s3://unlisted/in/web-1.tar: .*does not exist or "
                                                 "reading it is not allowed") as caught:
            p.extract(len(p) - 1, "image")
    assert not isinstance(caught.value, penstock.CorruptError)


def test_damaged_bytes_come_again_over_other_connections(stage):
    pack = stage.pack("folder")
    stage.server.control(reset=True, chaos="corrupt=1")
    stage.fails(pack)
    seen = {}
    for entry in stage.server.log():
        seen.setdefault(entry["what"], []).append(entry["connection"])
    assert max(map(len, seen.values())) > 1
    for connections in seen.values():
        assert len(set(connections)) == len(connections)


class WeakETags(BaseHTTPRequestHandler):
    """A web server whose ETags are weak: If-Match never matches one."""

    protocol_version = "HTTP/1.1"

    def do_GET(self):
        data = (self.server.top / self.path.lstrip("/")).read_bytes()
        first, last = map(int, self.headers["Range"].removeprefix("bytes=").split("-"))
        body = b"" if "If-Match" in self.headers else data[first:last + 1]
        self.send_response(206 if body else 412)
        self.send_header("ETag", 'W/"1"')
        self.send_header("Content-Range", f"bytes {first}-{last}/{len(data)}")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


def test_weak_etags(stage, made):
    with ThreadingHTTPServer(("127.0.0.1", 0), WeakETags) as server:
        server.top = made
        threading.Thread(target=server.serve_forever, daemon=True).start()
        root = f"http://127.0.0.1:{server.server_port}"
        with penstock.open(stage.pack("tars", root), roots=[root]) as p:
            assert contents(p) == plain(made, "tars")  # several requests for each tar
        server.shutdown()


# ---- interrupts --------------------------------------------------------------------------------


@pytest.fixture
def ctrl_c(stage):
    """SIGINT in half a second, while the server does not answer: requests are sent for minutes."""
    def start():
        began.append(time.monotonic())
        timer.start()

    began = []
    timer = threading.Timer(0.5, os.kill, (os.getpid(), signal.SIGINT))
    yield start
    stage.server.control(mute=False)
    assert time.monotonic() - began[0] < 30


@pytest.mark.parametrize("answered", [0, 4])
def test_ctrl_c_ends_all_requests_of_a_block(stage, ctrl_c, answered):
    with stage.open(stage.pack("folder")) as p:
        stage.server.control(mute=answered or True)
        with pytest.raises(KeyboardInterrupt):
            ctrl_c()
            p.extract(0, "image")


def test_ctrl_c_ends_a_preload(stage, ctrl_c):
    def threads():
        names = [path.read_text() for path in Path("/proc/self/task").glob("*/comm")]
        return [name for name in names if name.startswith(("pen-gather", "pen-preload"))]

    pack = stage.pack("folder")
    stage.server.control(mute=True)  # nothing is requested before the first payload
    with pytest.raises(KeyboardInterrupt):
        ctrl_c()
        stage.open(pack, preload=True)
    while threads():
        time.sleep(0.1)


def test_the_first_error_ends_the_other_requests(stage):
    """One of five objects lies where nobody has allowed it, and the others are not answered."""
    pack = stage.pack("folder")
    change_map(pack, path=b"s3://other/1.jpg")
    with stage.open(pack) as p:
        stage.server.control(mute=True)
        began = time.monotonic()
        with pytest.raises(penstock.InvalidError, match="--root"):
            p.extract(0, "image")
        stage.server.control(mute=False)
    assert time.monotonic() - began < 30


# ---- what nobody has allowed -------------------------------------------------------------------


def test_without_a_root(stage):
    pack = stage.pack("tars")
    stage.server.control(reset=True)
    with pytest.raises(penstock.InvalidError) as caught:
        with penstock.open(pack) as p:
            p.extract(0, "image")
    assert f'roots=["{stage.root}"]' in str(caught.value)
    assert "--root" in str(caught.value)
    assert not stage.requests()


HOSTILE = (
    "s3://other/secret.tar", "s3://BUCKET-2/in/web-0.tar", "s3://BUCKET/in2/web-0.tar",
    "s3://BUCKET/web-0.tar", "s3://BUCKET/in/../secret.tar", "s3://BUCKET/in/./web-0.tar",
    "s3://BUCKET/in//web-0.tar", "s3://user@BUCKET/in/web-0.tar", "s3://BUCKET/in/web-0.tar?x",
    "s3://BUCKET/in/web-0.tar#x", "s3://BUCKET/in", "S3://BUCKET/in/web-0.tar", "s3://",
    "http://169.254.169.254/latest/meta-data/iam/security-credentials/role",
    "URL/_counts", "URL/BUCKET/in/web-0.tar", "s3://BUCKET/in/a\nb", "s3://BUCKET/in/\udcff",
    "file:///etc/passwd", "ftp://BUCKET/in/web-0.tar", "/etc/passwd",
)


def test_hostile_addresses(stage):
    pack = stage.pack("tars")
    stage.server.control(reset=True)
    for address in HOSTILE:
        text = address.replace("BUCKET", stage.bucket.name).replace("URL", stage.server.url)
        change_map(pack, path=b"s3://a/valid")
        change_map(pack, path=text.encode(errors="surrogateescape"))
        stage.fails(pack)
        with pytest.raises(PackError):
            PlainPack(pack, stage.objects)
    assert not stage.requests()


def test_wrong_roots(stage, tmp_path):
    pack = stage.pack("tars")
    for root in ("s3://", "s3://a?b", "https://u:p@host/x", "s3://../x"):
        with pytest.raises(penstock.Error):
            stage.open(pack, roots=[root])
    with pytest.raises(penstock.InvalidError, match="storage_options"):
        stage.open(pack, roots=[tmp_path])
    with pytest.raises(penstock.InvalidError):
        stage.open(pack, relocate={"": stage.root})
    stage.fails(pack, "roots=", roots=[f"s3://{stage.bucket.name}/i"])
    # A root at a URL changes nothing for a pack that has its samples itself.
    with stage.open(stage.made / "plain-tars.pen") as p:
        assert contents(p) == plain(stage.made, "tars")
