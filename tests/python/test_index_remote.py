# SPDX-License-Identifier: Apache-2.0
"""Indexing objects that stay in a bucket or at a web server: the same pack as over files, tars read
once, runs that resume, and objects that change."""

import signal
import struct
import tarfile
import time

import pytest
from bucket_tools import filled, serve, tree
from cli_tools import add_member, good, image_bytes, make_folder, run, write_list
from hostile_map import EXTENT, FILE, FOOTER
from py_tools import need_penstock

penstock = need_penstock()
SMALL = ("--block-samples", "4", "--shard-bytes", "12000")
N = 9  # samples of each tar


def make_tar(path, number, mode="w", n=N, broken=()):
    with tarfile.open(path, mode) as tar:
        for i in range(n):
            image = b"no image" if i in broken else image_bytes(
                50 * number + i, "PNG" if i % 4 == 3 else "JPEG", width=400, height=300)
            parts = {"png" if i % 4 == 3 else "jpg": image, "cls": b"%d\n" % (i % 3),
                     "mask.png": image_bytes(i, "PNG", mode="L"), "json": b'{"i": %d}' % i,
                     "txt": b"" if i == 5 else b"caption " * i}
            for suffix, body in parts.items():
                add_member(tar, f"{number:02d}{i:03d}.{suffix}", body)


@pytest.fixture(scope="module")
def server():
    with serve() as server:
        yield server


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """Tars, images in class folders, and a list of these."""
    top = tmp_path_factory.mktemp("files")
    for number in range(3):
        make_tar(top / f"web-{number:03d}.tar", number)
    make_tar(top / "packed.tar.gz", 7, "w:gz")
    make_folder(top / "photos", each=6)
    rows = [[str(p.relative_to(top)), i % 2, f"note {i}"]
            for i, p in enumerate(sorted(top.glob("photos/*/*")))]
    write_list(top / "list.csv", ["path", "label", "note"], rows)
    return top


@pytest.fixture
def bucket(server, tmp_path, files):
    return filled(server, tmp_path / "home", files, "data")


def read_shards(pack):
    """Of each shard: what its file has before the map, the extents, and the files."""
    ret = {}
    for path in sorted(pack.glob("*/*.shard")):
        data = path.read_bytes()
        n_extents, n_files = struct.unpack_from("<QI", data, len(data) - FOOTER + 40)
        (size,) = struct.unpack_from("<Q", data, len(data) - 8)
        at = len(data) - size
        extents = [EXTENT.unpack_from(data, at + i * EXTENT.size) for i in range(n_extents)]
        at += n_extents * EXTENT.size
        rows = [FILE.unpack_from(data, at + i * FILE.size) for i in range(n_files)]
        at += n_files * FILE.size
        names = [(bytes_, data[at + first : at + first + n].decode())
                 for bytes_, _, first, n, _ in rows]
        etags = [data[at + first + n : at + first + n + more].decode()
                 for _, _, first, n, more in rows]
        ret[path.name] = data[: len(data) - size], extents, names, etags
    return ret


def same_but_for_paths(there, here, address):
    """The pack over objects is the one over files; `address` gives the address of a path."""
    ours, theirs = read_shards(there), read_shards(here)
    assert list(ours) == list(theirs) and ours
    for name, (stored, extents, names, etags) in ours.items():
        assert (stored, extents) == theirs[name][:2]
        assert names == [(bytes_, address(path)) for bytes_, path in theirs[name][2]]
        for (_, path), etag in zip(names, etags):
            assert bool(etag) == path.startswith(("s3:", "http")), etag


def tars(top):
    return f"{top}/web-{{000..002}}.tar"


# ---- the same pack -----------------------------------------------------------------------------


@pytest.mark.threads
def test_tars_are_read_once(bucket, files, tmp_path):
    there, here = tmp_path / "there.pen", tmp_path / "here.pen"
    result = bucket.good("index", tars(bucket.at("data")), "-o", there, *SMALL)
    assert f"try: penstock verify {there} --root {bucket.at('data')}\n" in result.err
    counts = bucket.server.counts()
    # Of each tar its end, with its size and ETag, and then all of it.
    assert counts["kinds"] == {"GetObject": 6}
    good("index", tars(files), "-o", here, *SMALL)
    same_but_for_paths(there, here, lambda path: bucket.at(f"data/{path.rsplit('/')[-1]}"))
    assert not (there / ".work").exists()


def test_a_prefix_and_lists(bucket, files, tmp_path):
    def address(path):
        return bucket.at(f"data/{path[len(str(files)) + 1:]}")

    good("index", files / "photos", "-o", tmp_path / "here.pen", *SMALL)
    bucket.good("index", bucket.at("data/photos/"), "-o", tmp_path / "there.pen", *SMALL)
    same_but_for_paths(tmp_path / "there.pen", tmp_path / "here.pen", address)
    kinds = bucket.server.counts()["kinds"]
    assert kinds == {"ListObjectsV2": 1, "GetObject": 12}
    good("index", files / "list.csv", "-o", tmp_path / "list.pen", *SMALL)
    for name, args in (("a.pen", (bucket.at("data/list.csv"),)),
                       ("b.pen", (files / "list.csv", "--root", bucket.at("data/")))):
        bucket.good("index", *args, "-o", tmp_path / name, *SMALL)
        same_but_for_paths(tmp_path / name, tmp_path / "list.pen", address)


def test_a_web_server(bucket, files, tmp_path):
    client, url = bucket.server.boto3(), bucket.server.url
    client.put_object(Bucket="open", Key="a b/web.tar", Body=(files / "web-001.tar").read_bytes())
    bucket.good("index", f"{url}/open/a%20b/web.tar", "-o", tmp_path / "there.pen", *SMALL)
    good("index", files / "web-001.tar", "-o", tmp_path / "here.pen", *SMALL)
    same_but_for_paths(tmp_path / "there.pen", tmp_path / "here.pen",
                       lambda path: f"{url}/open/a%20b/web.tar")
    body = image_bytes(1)
    client.put_object(Bucket="open", Key="l/x 50%.jpg", Body=body)
    client.put_object(Bucket="open", Key="l/list.csv", Body=b"path\nx 50%.jpg\n")
    bucket.good("index", f"{url}/open/l/list.csv", "-o", tmp_path / "list.pen")
    ((_, _, names, _),) = read_shards(tmp_path / "list.pen").values()
    assert names == [(len(body), f"{url}/open/l/x%2050%25.jpg")]


@pytest.mark.parametrize("source", ["web-{000..002}.tar", "photos", "list.csv"])
def test_the_printed_command_checks_every_byte(bucket, files, tmp_path, source):
    out, copied, plain = tmp_path / "p.pen", tmp_path / "copied.pen", tmp_path / "plain.pen"
    err = bucket.good("index", bucket.at(f"data/{source}"), "-o", out, *SMALL).err
    _, command = err.rstrip("\n").split("try: penstock ")
    assert bucket.good(*command.split()).out.startswith("ok: ")
    root = command.split()[-1]
    bucket.good("copy", out, copied, "--root", root)
    order = ("--order", "source") if "tar" in source else ()
    good("pack", files / source, "-o", plain, *SMALL, *order)
    for pack in (copied, plain):
        good("extract", pack, "-o", tmp_path / f"{pack.stem}-files")
    assert tree(tmp_path / "copied-files") == tree(tmp_path / "plain-files")


@pytest.mark.parametrize("source", ["web-{000..002}.tar", "photos"])
def test_a_pack_in_the_bucket(bucket, tmp_path, source):
    """The same as on disk; objects below the prefix that holds it need no root."""
    here, there = tmp_path / "p.pen", bucket.at("data/p.pen")
    for out in (here, there):
        bucket.good("index", bucket.at(f"data/{source}"), "-o", out, *SMALL)
    assert bucket.good("verify", there).out.startswith("ok: ")
    listed = bucket.client.list_objects_v2(Bucket=bucket.name, Prefix="data/p.pen/")["Contents"]
    bodies = {o["Key"].split(".pen/")[1]: bucket.client.get_object(
        Bucket=bucket.name, Key=o["Key"])["Body"].read() for o in listed}
    assert bodies == tree(here)
    assert not list((tmp_path / "home").rglob(".work"))


def test_broken_members_are_reported_as_those_on_disk(bucket, tmp_path):
    make_tar(tmp_path / "web.tar", 4, broken=(2, 6))
    bucket.fill(tmp_path, "bad")
    there, here = bucket.at("bad/web.tar"), tmp_path / "web.tar"
    found = {}
    for source in (there, here):
        result = bucket.run("index", source, "-o", tmp_path / "p.pen")
        assert result.code == 1
        report = tmp_path / "bad.jsonl"
        out = tmp_path / ("there.pen" if source == there else "here.pen")
        bucket.good("index", source, "-o", out, *SMALL, "--on-bad", "skip", "--bad-report", report)
        found[source] = (result.message() + report.read_text()).replace(str(source), "")
        bucket.good("gc", tmp_path / "p.pen")
    assert found[there] == found[here]
    same_but_for_paths(tmp_path / "there.pen", tmp_path / "here.pen", lambda path: there)


def test_failing_requests_change_nothing(bucket, files, tmp_path):
    bucket.server.control(chaos="error=0.1,throttle=0.05,cut=0.1,reset=0.05", seed=2)
    bucket.good("index", tars(bucket.at("data")), "-o", tmp_path / "there.pen", *SMALL)
    good("index", tars(files), "-o", tmp_path / "here.pen", *SMALL)
    same_but_for_paths(tmp_path / "there.pen", tmp_path / "here.pen",
                       lambda path: bucket.at(f"data/{path.rsplit('/')[-1]}"))


# ---- interrupted runs --------------------------------------------------------------------------


def stopped_in_the_third_tar(bucket, *args, how):
    """The server falls silent after two tars; then the run is ended."""
    bucket.server.control(mute=4, reset=True)
    process = bucket.start("index", *args, "--threads", "1")
    deadline = time.monotonic() + 60
    while bucket.server.counts()["total"] < 5:
        assert time.monotonic() < deadline and process.poll() is None
        time.sleep(0.02)
    process.send_signal(how)
    _, err = process.communicate(timeout=30)
    bucket.server.control(mute=False, reset=True)
    return process.returncode, err


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGINT])
def test_tars_that_were_read_are_not_read_again(bucket, files, tmp_path, how):
    there, here = tmp_path / "there.pen", tmp_path / "here.pen"
    args = (tars(bucket.at("data")), "-o", there, *SMALL)
    code, err = stopped_in_the_third_tar(bucket, *args, how=how)
    if how == signal.SIGINT:
        assert code == 130 and "are not read again" in err
    work = [p for p in (there / ".work" / "tars").iterdir() if p.suffix != ".part"]
    assert len(work) == 2
    size = sum(p.stat().st_size for p in files.glob("web-*.tar"))
    assert sum(p.stat().st_size for p in work) < size / 2  # no payloads of images
    work[0].write_bytes(work[0].read_bytes()[:-20])  # damaged: read again
    bucket.good("index", *args)
    assert bucket.server.counts()["kinds"] == {"GetObject": 4, "HeadObject": 1}
    good("index", tars(files), "-o", here, *SMALL)
    same_but_for_paths(there, here, lambda path: bucket.at(f"data/{path.rsplit('/')[-1]}"))


def test_a_tar_that_has_changed_since_is_read_again(bucket, tmp_path):
    args = (tars(bucket.at("data")), "-o", tmp_path / "p.pen", *SMALL)
    stopped_in_the_third_tar(bucket, *args, how=signal.SIGKILL)
    make_tar(tmp_path / "new.tar", 0, n=N + 1)
    bucket.put("data/web-000.tar", (tmp_path / "new.tar").read_bytes())
    bucket.server.control(reset=True)
    record = bucket.good("index", *args, "--json").json()
    assert record["samples"] == 3 * N + 1
    assert bucket.server.counts()["kinds"] == {"GetObject": 4, "HeadObject": 2}


def test_gc_removes_what_an_interrupted_run_has_read(bucket, tmp_path):
    out = tmp_path / "p.pen"
    stopped_in_the_third_tar(bucket, tars(bucket.at("data")), "-o", out, how=signal.SIGKILL)
    good("gc", out)
    assert not (out / ".work").exists()


@pytest.mark.parametrize("where", ["disk", "bucket"])
def test_finished_shards_of_single_files_are_kept(bucket, files, tmp_path, where):
    """The last file of the order is broken, then mended without changing its size."""
    args = ("--block-samples", "2", "--shard-bytes", "1")
    good("index", files / "photos", "-o", tmp_path / "first.pen", *args)
    with penstock.open(tmp_path / "first.pen", roots=[files]) as pack:
        last = pack.key(len(pack) - 1)
    body = (files / "photos" / last).read_bytes()
    top = make_folder(tmp_path / "photos", each=6)

    def put(data):
        (top / last).write_bytes(data)
        bucket.put(f"photos/{last}", data)

    bucket.fill(top, "photos")
    put(bytes(len(body)))
    source = top if where == "disk" else bucket.at("photos")
    out = tmp_path / "p.pen"
    assert bucket.run("index", source, "-o", out, *args).code == 1
    put(body)
    record = bucket.good("index", source, "-o", out, *args, "--json").json()
    assert record["resumed"] == 10
    same_but_for_paths(out, tmp_path / "first.pen", lambda path: (
        f"photos/{path.split('/photos/')[1]}" if where == "disk"
        else bucket.at(f"photos/{path.split('/photos/')[1]}")))


# ---- objects that change, refusals -------------------------------------------------------------


def test_a_tar_that_is_replaced_while_it_is_read(bucket, tmp_path):
    """After the first request, whose response has the ETag, the object becomes another one."""
    body = bytes(5 << 20)
    with tarfile.open(tmp_path / "large.tar", "w") as tar:
        for i in range(2):
            add_member(tar, f"{i}.bin", body)
    whole = (tmp_path / "large.tar").read_bytes()
    bucket.put("large.tar", whole)
    bucket.server.control(mute=1, reset=True)
    process = bucket.start("index", bucket.at("large.tar"), "-o", tmp_path / "p.pen")
    deadline = time.monotonic() + 60
    while bucket.server.counts()["total"] < 2:
        assert time.monotonic() < deadline and process.poll() is None
        time.sleep(0.02)
    process.send_signal(signal.SIGSTOP)  # it repeats its requests only when the object is another
    bucket.server.control(mute=False)
    bucket.put("large.tar", whole[:-1] + b"x")
    process.send_signal(signal.SIGCONT)
    _, err = process.communicate(timeout=90)
    assert process.returncode == 1
    assert f"{bucket.at('large.tar')}: changed while it was read; run the same command again" in err


def test_objects_that_are_missing_or_compressed(bucket, files, tmp_path):
    out = tmp_path / "p.pen"
    for name, said in (("none.tar", "none.tar"), ("packed.tar.gz", "the tar file is compressed"),
                       ("cut.tar", "cut.tar")):
        bucket.put("data/cut.tar", bytes(range(256)) * 30)
        result = bucket.run("index", bucket.at(f"data/{name}"), "-o", out)
        assert result.code == 1
        assert said in result.message() and bucket.at("data/") in result.message()
        assert not out.exists()
    result = bucket.run("index", tmp_path, "-o", bucket.at("p.pen"))
    assert "expected an s3:// or https:// source" in result.message()
    result = bucket.run("index", bucket.at("data/list.csv"), "--root", files, "-o",
                        bucket.at("p.pen"))
    assert "cannot refer to it" in result.message()
    write_list(tmp_path / "list.csv", ["path"], [["photos/cat/0.jpg"], ["photos/cat/none.jpg"]])
    result = bucket.run("index", tmp_path / "list.csv", "--root", bucket.at("data"), "-o", out)
    assert result.code == 1 and "none.jpg" in result.message()


def test_a_tar_that_is_given_twice(bucket, tmp_path):
    tar = bucket.at("data/web-000.tar")
    result = bucket.run("index", tar, tar, "-o", tmp_path / "p.pen", "--threads", "2")
    assert result.code == 1 and "expected unique keys" in result.message()
    assert bucket.server.counts()["kinds"]["GetObject"] == 2


def test_a_name_that_a_pack_cannot_have(bucket, files, tmp_path):
    body = (files / "web-000.tar").read_bytes()
    for key in ("odd//web.tar", "odd/web.tar"):
        bucket.put(key, body)
    bucket.server.control(reset=True)
    result = bucket.run("index", bucket.at("odd/web.tar"), bucket.at("odd//web.tar"), "-o",
                        tmp_path / "p.pen")
    assert result.code == 1
    assert f"{bucket.at('odd//web.tar')}: expected an address" in result.message()
    assert "rename the object" in result.message()
    assert not (tmp_path / "p.pen").exists()
    assert not bucket.server.counts()["kinds"]  # it is told before a tar is read
    # It names objects in one way, however they are given.
    bucket.good("index", "S" + bucket.at("odd/web.tar")[1:], "-o", tmp_path / "p.pen")
    bucket.good("verify", tmp_path / "p.pen", "--root", bucket.at("odd"))


@pytest.mark.parametrize("source", ["https://127.0.0.1:1/a.tar?X-Amz-Signature=secret",
                                    "https://user:secret@127.0.0.1:1/a.tar"])
def test_addresses_with_secrets_are_refused(tmp_path, source):
    result = run("index", source, "-o", tmp_path / "p.pen")
    assert result.code == 1
    assert "secret" not in result.err
    assert not (tmp_path / "p.pen").exists()
