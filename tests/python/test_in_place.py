# SPDX-License-Identifier: Apache-2.0
"""In-place packs: images stay in their files, and every change of these is noticed."""

import gzip
import json
import os
import pickle
import re
import shutil
import struct
import tarfile
import threading

import numpy
import pytest
from cli_tools import ROOT, add_member, good, image_bytes, make_folder, run, usage_error
from hostile_map import change_map
from plain_reader import Pack as PlainPack
from plain_reader import PackError
from py_tools import need_penstock

penstock = need_penstock()
PER_TAR = 12


def write_tar(path, first, n, **options):
    with tarfile.open(path, "w") as tar:
        for i in range(first, first + n):
            photo = image_bytes(i, "PNG" if i % 5 == 4 else "JPEG")
            for suffix, data in (
                ("png" if i % 5 == 4 else "jpg", photo), ("cls", b"%d" % (i % 3)),
                ("json", json.dumps({"i": i}).encode()),
            ):
                add_member(tar, f"s/{i:04}.{suffix}", data)


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """Tars, a folder and a list, and an in-place pack of each; tests copy the directory."""
    top = tmp_path_factory.mktemp("in-place") / "data"
    (top / "photos/cat").mkdir(parents=True)
    (top / "photos/dog").mkdir()
    for n in range(2):
        write_tar(top / f"web-{n}.tar", n * PER_TAR, PER_TAR)
    rows = ["path,label"]
    for i in range(20):
        name = f"photos/{'cat' if i % 2 else 'dog'}/{i}.jpg"
        (top / name).write_bytes(image_bytes(i, "JPEG"))
        rows.append(f"{name},{i % 4}")
    (top / "list.csv").write_text("\n".join(rows) + "\n")
    options = ("--block-samples", "5")
    good("index", top / "web-0.tar", top / "web-1.tar", "-o", top / "tars.pen", *options)
    good("index", top / "photos", "-o", top / "folder.pen", *options)
    good("index", top / "list.csv", "-o", top / "list.pen", *options)
    return top


@pytest.fixture
def top(made, tmp_path):
    shutil.copytree(made, tmp_path / "data", copy_function=shutil.copy2)
    return tmp_path / "data"


def sources(top):
    return {
        "tars": [top / "web-0.tar", top / "web-1.tar"], "folder": [top / "photos"],
        "list": [top / "list.csv"],
    }


def contents(pack, name="image"):
    with penstock.open(pack) as p:
        return [(p.key(i), p.extract(i, name)) for i in range(len(p))]


def batches(pack, **more):
    pipeline = "decode | random_resized_crop 24 | hflip | tensor u8"
    loader = penstock.Loader(pack, 4, pipeline=pipeline, seed=3, output="numpy", **more)
    with loader:
        return [[numpy.asarray(part).copy() for part in batch] for batch in loader]


@pytest.mark.parametrize("kind", ["tars", "folder", "list"])
def test_same_as_an_ordinary_pack(made, tmp_path, kind):
    order = ("--order", "source") if kind == "tars" else ()
    plain, mapped = tmp_path / "plain.pen", made / f"{kind}.pen"
    good("pack", *sources(made)[kind], "-o", plain, "--mode", "keep", "--block-samples", "5",
         *order)
    assert contents(mapped) == contents(plain)
    for shuffle in (True, False):
        ours, theirs = (batches(pack, shuffle=shuffle) for pack in (mapped, plain))
        assert len(ours) == len(theirs)
        for a, b in zip(ours, theirs):
            assert all(numpy.array_equal(x, y) for x, y in zip(a, b))
    assert "ok" in good("verify", mapped, "--decode").out
    assert PlainPack(mapped).samples == PlainPack(plain).samples


def test_the_page_works(top, tmp_path, monkeypatch):
    """The commands and the code of docs/how-to/tars-in-place.md, with other directories."""
    page = (ROOT / "docs/how-to/tars-in-place.md").read_text()
    tars, moved = tmp_path / "tars", tmp_path / "moved"
    tars.mkdir()
    shutil.copy(top / "web-0.tar", tars)
    shutil.copytree(tars, moved)
    monkeypatch.chdir(tmp_path)
    good("index", "data/web-{0..1}.tar", "-o", "data/web.pen")
    good("index", tars / "web-0.tar", "-o", "web.pen")
    good("verify", "web.pen", "--relocate", f"{tars}={moved}")
    scope = {}
    for code in re.findall(r"^```python\n(.*?)^```$", page, re.M | re.S):
        exec(code.replace("/mnt/tars", str(tars)).replace("/data/tars", str(moved)), scope)
        assert len(next(iter(scope["loader"]))[0]) > 0
        scope["loader"].close()


def test_an_interrupted_run_is_resumed(tmp_path):
    """It ends at a broken file, twice: the shards that are finished stay."""
    folder = make_folder(tmp_path / "in", each=6)
    broken, out = folder / "dog/z.jpg", tmp_path / "a.pen"
    broken.write_bytes(b"this is no picture")
    command = ("index", folder, "--block-samples", "2", "--shard-bytes", "1", "-o")
    shards = []
    for _ in range(2):
        assert "z.jpg" in run(*command, out).message()
        assert not (out / "manifest").exists()
        shards.append({path: path.stat().st_ino for path in out.glob("*/*.shard")})
    assert shards[0] and shards[0] == shards[1]
    broken.write_bytes(image_bytes(900))
    good(*command, out)
    good(*command, tmp_path / "fresh.pen")
    assert contents(out) == contents(tmp_path / "fresh.pen")
    good("verify", out)


def test_extract_returns_the_sources(made, tmp_path):
    good("extract", made / "folder.pen", "-o", tmp_path / "out")
    for path in sorted((made / "photos").rglob("*.jpg")):
        assert (tmp_path / "out" / path.relative_to(made / "photos")).read_bytes() == (
            path.read_bytes())


def test_tars_keep_their_order(made):
    keys = [key for key, _ in contents(made / "tars.pen")]
    assert keys == [f"s/{i:04}" for i in range(2 * PER_TAR)]


def test_copy_makes_an_ordinary_pack(made, tmp_path):
    mapped, copied = made / "tars.pen", tmp_path / "copy.pen"
    good("copy", mapped, copied)
    assert contents(copied) == contents(mapped)
    assert "in_place" not in good("info", copied, "--json").json()
    assert good("info", mapped, "--json").json()["in_place"] is True
    assert PlainPack(copied).head.must == 2
    good("verify", copied)
    again = good("copy", mapped, copied, "--json").json()
    assert again["already_copied_shards"] == 1


def rest_of(pack, state=None):
    """The state after two batches, or after that of `state`; and the batches that follow."""
    pipeline = "decode | random_resized_crop 24 | hflip | tensor u8"
    with penstock.Loader(pack, 4, pipeline=pipeline, seed=3, output="numpy") as loader:
        if state is not None:
            loader.load_state_dict(state)
        found = iter(loader)
        if state is None:
            next(found)
            next(found)
            state = loader.state_dict()
        return state, [[numpy.asarray(part).copy() for part in batch] for batch in found]


def test_a_state_fits_the_copy(made, tmp_path):
    mapped, copied = made / "tars.pen", tmp_path / "copy.pen"
    good("copy", mapped, copied)
    for first, second in ((mapped, copied), (copied, mapped)):
        state, expected = rest_of(first)
        assert len(expected) == 4
        _, found = rest_of(second, state)
        assert len(found) == len(expected)
        for a, b in zip(found, expected):
            assert all(numpy.array_equal(x, y) for x, y in zip(a, b))
    with pytest.raises(penstock.Error, match="pack"):
        rest_of(made / "folder.pen", rest_of(mapped)[0])


def test_cache_and_preload(made, tmp_path):
    expected = contents(made / "tars.pen")
    for more in ({"cache": tmp_path / "cache"}, {"cache": tmp_path / "cache"}, {"preload": True}):
        with penstock.open(made / "tars.pen", **more) as p:
            assert [(p.key(i), p.extract(i, "image")) for i in range(len(p))] == expected


def test_many_threads_and_files(made):
    expected, errors = contents(made / "folder.pen"), []
    with penstock.open(made / "folder.pen") as pack:

        def work(first):
            for i in list(range(first, 20)) + list(range(first)):
                if (pack.key(i), pack.extract(i, "image")) != expected[i]:
                    errors.append(i)

        threads = [threading.Thread(target=work, args=(n,)) for n in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(60)
    assert not errors


def test_few_descriptors_stay_open(tmp_path):
    (tmp_path / "photos").mkdir()
    photo = image_bytes(1, "JPEG")
    for i in range(150):
        (tmp_path / f"photos/{i}.jpg").write_bytes(photo)
    good("index", tmp_path / "photos", "-o", tmp_path / "p.pen")
    before = len(os.listdir("/proc/self/fd"))
    with penstock.open(tmp_path / "p.pen") as pack:
        assert all(pack.extract(i, "image") == photo for i in range(150))
        assert len(os.listdir("/proc/self/fd")) - before < 80
    assert len(os.listdir("/proc/self/fd")) == before


# ---- files that change -------------------------------------------------------------------------


def fails(pack, *words, **more):
    with pytest.raises(penstock.Error) as caught:
        with penstock.open(pack, **more) as p:
            for i in range(len(p)):
                p.extract(i, "image")
    for word in words:
        assert word in str(caught.value), caught.value
    return caught.value


def test_each_change_is_noticed(top):
    file, pack = top / "web-1.tar", top / "tars.pen"
    whole = file.read_bytes()
    for change, word in (
        (lambda: file.write_bytes(whole[:-1]), "bytes, found"),
        (lambda: file.write_bytes(whole + b"\0"), "bytes, found"),
        (lambda: file.write_bytes(bytes(len(whole))), "does not match its checksum"),
        (file.unlink, "no such file"),
        (file.mkdir, "expected a file, found"),
    ):
        change()
        error = fails(pack, "web-1.tar", word)
        assert isinstance(error, penstock.CorruptError)
        result = run("verify", pack)
        assert result.code == 1
        assert "web-1.tar" in result.err
        with penstock.open(pack) as p:
            assert p.extract(0, "image") == image_bytes(0, "JPEG")
    file.rmdir()
    file.write_bytes(whole)
    good("verify", pack)


def test_flips_of_an_image_are_noticed(top):
    file = top / "photos/dog/0.jpg"
    good_bytes = file.read_bytes()
    with penstock.open(top / "folder.pen") as p:
        number = p.index("dog/0.jpg")
        for at in range(0, len(good_bytes), 11):
            changed = bytearray(good_bytes)
            changed[at] ^= 1 << at % 8
            file.write_bytes(changed)
            with pytest.raises(penstock.CorruptError, match="photos/dog/0.jpg, offset"):
                p.extract(number, "image")
    file.write_bytes(good_bytes)


def bad_samples(pack, **more):
    """The keys of samples that cannot be read, and why; the others are right."""
    bad = {}
    with penstock.open(pack, **more) as p:
        for i in range(len(p)):
            try:
                assert p.extract(i, "image") == image_bytes(number_of(p.key(i)), "JPEG")
            except penstock.CorruptError as error:
                bad[p.key(i)] = str(error)
    return bad


def number_of(key):
    return int(re.search(r"(\d+)\.jpg", key)[1])


@pytest.mark.parametrize("more", [{}, {"cache": "c"}, {"preload": True}], ids=str)
def test_a_bad_file_fails_its_own_samples_alone(top, tmp_path, more):
    """Also where blocks are read at once; and after a run that has filled the cache."""
    if "cache" in more:
        more = {"cache": tmp_path / "cache"}
    pack, zeros = top / "folder.pen", top / "photos/dog/2.jpg"
    if more:
        assert bad_samples(top / "list.pen", **more) == {}
    (top / "photos/dog/0.jpg").unlink()
    (top / "photos/cat/1.jpg").write_bytes(b"short")
    zeros.write_bytes(bytes(zeros.stat().st_size))
    for _ in range(2):
        bad = bad_samples(pack, **more)
        assert sorted(bad) == ["cat/1.jpg", "dog/0.jpg", "dog/2.jpg"]
        assert "photos/dog/0.jpg: no such file" in bad["dog/0.jpg"]
        assert "photos/cat/1.jpg: expected" in bad["cat/1.jpg"]
        assert "photos/dog/2.jpg, offset 0: does not match its checksum" in bad["dog/2.jpg"]
        assert "modified after it was indexed" in bad["dog/2.jpg"]
    if "cache" not in more:  # what is in a cache is read from there, whatever became of the file
        assert len(bad_samples(top / "list.pen", **more)) == 3
    loaded = batches(pack, on_bad="substitute", max_bad=3, **more)
    assert len(loaded) == 5


def test_verify_names_every_bad_file(top, tmp_path):
    (top / "photos/dog/0.jpg").unlink()
    (top / "photos/cat/1.jpg").write_bytes(b"short")
    result = run("verify", top / "folder.pen", "--json")
    found = [problem["message"] for problem in result.json()["found"]]
    assert len(found) == 2
    assert any("dog/0.jpg: no such file" in message for message in found)
    assert any("cat/1.jpg: expected" in message for message in found)
    result = run("copy", top / "folder.pen", tmp_path / "copy.pen")
    assert result.code == 1
    assert "dog/0.jpg" in result.err or "cat/1.jpg" in result.err
    (top / "web-1.tar").unlink()  # said once, not for each of its samples
    result = run("verify", top / "tars.pen", "--threads", "1")
    assert result.err.count("web-1.tar: no such file") == 1


def test_verify_tells_of_modified_files(top):
    report = good("verify", top / "folder.pen", "--json").json()
    assert "modified_files" not in report
    os.utime(top / "photos/dog/0.jpg", ns=(0, 0))
    os.utime(top / "photos/dog/2.jpg")
    assert good("verify", top / "folder.pen", "--json").json()["modified_files"] == 2
    assert "2 files modified since the pack was made" in good("verify", top / "folder.pen").out


def test_messages_tell_no_checksum(top):
    (top / "web-0.tar").write_bytes(bytes((top / "web-0.tar").stat().st_size))
    change_map(top / "list.pen", what="into_index")
    assert "0x" not in run("verify", top / "list.pen").err
    for args in (["verify"], ["extract", "-o", top / "out"]):
        assert "0x" not in run(args[0], top / "tars.pen", *args[1:]).err


def test_a_bad_sample_is_replaced_but_no_access_error(top):
    (top / "photos/dog/0.jpg").unlink()
    assert len(batches(top / "folder.pen", on_bad="substitute", max_bad=1)) == 5
    if os.getuid() != 0:
        (top / "photos/dog").chmod(0)
        with pytest.raises(penstock.Error):
            batches(top / "folder.pen", on_bad="substitute", max_bad=100)
        (top / "photos/dog").chmod(0o755)


# ---- where files may be ------------------------------------------------------------------------


def test_the_directory_can_be_moved(top, tmp_path):
    expected = contents(top / "tars.pen")
    top.rename(tmp_path / "elsewhere")
    assert contents(tmp_path / "elsewhere/tars.pen") == expected


def test_roots_and_relocate(top, tmp_path):
    pack = tmp_path / "packs/far.pen"
    pack.parent.mkdir()
    good("index", top / "photos", "-o", pack)
    fails(pack, "is not below", "--root")
    assert "is not below" in run("verify", pack).err
    good("verify", pack, "--root", top)
    good("verify", pack, "--root", "/")
    with penstock.open(pack, roots=[top]) as p:
        expected = [p.extract(i, "image") for i in range(len(p))]
    fails(pack, "is not below", roots=[tmp_path / "packs"])
    moved = tmp_path / "moved"
    (top / "photos").rename(moved)
    fails(pack, "no such file", "relocate", roots=[top])
    good("verify", pack, "--relocate", f"{top / 'photos'}={moved}")
    good("extract", pack, "-o", tmp_path / "out", "--relocate", f"{top / 'photos'}={moved}")
    good("copy", pack, tmp_path / "copy.pen", "--relocate", f"{top / 'photos'}={moved}")
    with penstock.open(pack, relocate={str(top / "photos"): str(moved)}) as p:
        assert [p.extract(i, "image") for i in range(len(p))] == expected
        assert pickle.loads(pickle.dumps(p)).extract(0, "image") == expected[0]
    # Also where the pack has relative paths.
    with penstock.open(top / "folder.pen", relocate={str(top / "photos"): str(moved)}) as p:
        assert p.extract(p.index("dog/0.jpg"), "image") == (moved / "dog/0.jpg").read_bytes()


def test_the_directory_is_that_of_the_open_pack(top, tmp_path, monkeypatch):
    """Neither a link in place of the pack nor another working directory moves it."""
    expected = contents(top / "folder.pen")
    decoy = tmp_path / "decoy"
    shutil.copytree(top / "photos", decoy / "photos")
    (decoy / "inner").mkdir()
    for path in (decoy / "photos").rglob("*.jpg"):
        path.write_bytes(bytes(path.stat().st_size))
    monkeypatch.chdir(top)
    with penstock.open(top / "folder.pen") as p:
        monkeypatch.chdir(decoy)
        assert p.extract(0, "image") == expected[0][1]
        (top / "folder.pen").rename(top / "away.pen")
        (top / "folder.pen").symlink_to(decoy / "inner")
        assert [p.extract(i, "image") for i in range(len(p))] == [data for _, data in expected]


def test_wrong_roots(top):
    for more in ({"roots": "x"}, {"roots": 3}, {"relocate": ["a"]}, {"roots": [3]}):
        with pytest.raises(TypeError):
            penstock.open(top / "tars.pen", **more)
    with pytest.raises(penstock.Error):
        penstock.open(top / "tars.pen", roots=[top / "none"])
    with pytest.raises(penstock.Error, match="none"):
        penstock.open(top / "tars.pen", relocate={"/mnt": str(top / "none")})
    for text in ("", "=", "a", "a=", "=b"):
        assert run("verify", top / "tars.pen", "--relocate", text).code != 0


@pytest.mark.parametrize("path", [
    b"/etc/passwd", b"../data/web-0.tar", b"./web-0.tar", b"a//b", b"web-0.tar/", b"..", b"/",
    b"x\0y", b"photos/../web-0.tar",
])
def test_hostile_paths(top, path):
    change_map(top / "tars.pen", path=path)
    fails(top / "tars.pen")
    if path[:1] != b"/" or path == b"/":
        with pytest.raises(PackError):
            PlainPack(top / "tars.pen")


def test_hostile_files(top):
    secret = top.parent / "secret.tar"
    shutil.copy(top / "web-0.tar", secret)
    kept = top / "kept.tar"
    (top / "web-0.tar").rename(kept)
    for make in (
        lambda at: at.symlink_to(secret), lambda at: at.symlink_to("kept.tar"), os.mkfifo,
        lambda at: at.symlink_to("/dev/zero"),
    ):
        make(top / "web-0.tar")
        fails(top / "tars.pen", "web-0.tar")
        (top / "web-0.tar").unlink()
    shutil.move(top / "photos", top.parent / "photos")
    (top / "photos").symlink_to("../photos")
    fails(top / "folder.pen", "links are not followed")


@pytest.mark.parametrize("what", ["bytes", "source", "file", "offset", "skipped", "size", "magic",
                                  "into_index", "overlap", "tail"])
def test_hostile_maps(top, what):
    change_map(top / "tars.pen", what=what)
    fails(top / "tars.pen")
    with pytest.raises(PackError):
        PlainPack(top / "tars.pen")


def test_flips_of_a_map_are_noticed(top):
    (shard,) = (top / "tars.pen").glob("*/*.shard")
    data = shard.read_bytes()
    (size,) = struct.unpack_from("<Q", data, len(data) - 8)
    for at in range(len(data) - size, len(data), 7):
        changed = bytearray(data)
        changed[at] ^= 1 << at % 8
        shard.write_bytes(changed)
        with pytest.raises(penstock.Error):
            with penstock.open(top / "tars.pen") as p:
                p.extract(0, "image")


# ---- what cannot be done -----------------------------------------------------------------------


def test_refused(top, tmp_path):
    packed = top / "web.tar.gz"
    packed.write_bytes(gzip.compress((top / "web-0.tar").read_bytes()))
    result = run("index", packed, "-o", tmp_path / "a.pen")
    assert result.code == 1
    assert "compressed" in result.message()
    assert "web.tar.gz" in result.message()
    assert "expected an s3:// or" in run("index", top / "photos", "-o", "s3://b/x.pen").message()
    result = run("pack", top / "photos", "-o", top / "tars.pen", "--append")
    assert "cannot be appended to" in result.message()
    good("copy", top / "folder.pen", tmp_path / "copy.pen")
    good("pack", top / "photos", "-o", tmp_path / "copy.pen", "--append", "--mode", "keep")
    good("pack", packed, "-o", tmp_path / "a.pen", "--order", "source")
    (top / "photos/dog/0.jpg").write_bytes(image_bytes(3))
    assert "run 'penstock index' again" in run("verify", top / "folder.pen").err
    good("index", top / "photos", "-o", top / "again.pen")
    good("verify", top / "again.pen")
    usage_error("index", "x", "-o", "x.pen", "--mode", "keep")


def test_gc_leaves_files_alone(top):
    before = sorted(path for path in top.rglob("*") if path.is_file())
    good("gc", top / "tars.pen")
    assert sorted(path for path in top.rglob("*") if path.is_file()) == before


def test_size(tmp_path):
    """Photographs of a usual size: the pack has at most 3 % of the bytes of the files."""
    rng = numpy.random.default_rng(1)
    (tmp_path / "photos").mkdir()
    from PIL import Image
    for i in range(4):
        pixels = rng.integers(0, 256, (40, 50, 3)).astype("uint8")
        Image.fromarray(pixels).resize((500, 400), Image.Resampling.BICUBIC).save(
            tmp_path / f"photos/{i}.jpg", quality=92)
    good("index", tmp_path / "photos", "-o", tmp_path / "p.pen")
    report = good("info", tmp_path / "p.pen", "--json").json()
    files = sum(path.stat().st_size for path in (tmp_path / "photos").iterdir())
    assert report["bytes"]["pack"] - 1500 < 0.03 * files  # the manifest, the keys and the tail
