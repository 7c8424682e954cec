# SPDX-License-Identifier: Apache-2.0
"""Directories that somebody else prepared: every verb and the Python calls, with links, FIFOs,
devices and directories in the place of what a pack's directory holds.

Whatever is there: nothing outside the directory changes, nothing hangs, and the result is success
or a message with the documented exit code.
"""

import itertools
import json
import os
import pathlib
import select
import shutil
import subprocess
import sys
import tarfile
import tempfile
import textwrap

import cli_tools
import hostile_tools as hostile
import pytest
from conftest import BUILD, is_sanitized


class Stock:
    """Packs made once: finished; with tasks that are not joined; interrupted."""

    def __init__(self, root):
        self.root = root
        self.source = cli_tools.make_folder(root / "source", each=3)
        self.more = root / "more"
        (self.more / "dog").mkdir(parents=True)
        (self.more / "dog" / "new.jpg").write_bytes(cli_tools.image_bytes(7))
        self.pack = root / "stock.pen"
        cli_tools.good("pack", self.source, "-o", self.pack)
        self.tasks = root / "tasks.pen"
        for task in ("0/2", "1/2"):
            cli_tools.good("pack", self.source, "-o", self.tasks, "--task", task)
        self.planned = root / "planned.pen"
        cli_tools.good("plan", self.source, "-o", self.planned)
        self.shard = next(p for p in self.pack.glob("??/*.shard")).relative_to(self.pack)

    def copy(self, which, to):
        if which == "empty":
            to.mkdir()
        else:
            shutil.copytree(getattr(self, which), to, symlinks=True)
        return to


@pytest.fixture
def tmp_path():
    """In memory where that is possible: the program syncs what it writes."""
    with tempfile.TemporaryDirectory(dir=hostile.PLACE) as root:
        yield pathlib.Path(root)


@pytest.fixture(scope="module")
def stock():
    with tempfile.TemporaryDirectory(dir=hostile.PLACE) as root:
        os.chmod(root, 0o755)  # for the user nobody
        yield Stock(pathlib.Path(root))


def verbs(stock):
    """Name: (directory to start from, places, arguments). P is the prepared directory, N
    a new one."""
    shard, folder = str(stock.shard), str(stock.shard.parent)
    read = ("manifest", shard, folder)
    work = (".work", ".work/plan", ".work/plan.part", ".work/sources", ".work/sources.part")
    write = (*read, *work, ".work/run", ".work/run/shard.part", ".work/manifest.part")
    resumed = tuple(f".work/{name}" for name in (
        "plan.new", "plan.new.part", "run/shards", "run/shards.part", "run/bad", "run/bad.part"))
    tasks = tuple(f".work/task-0-of-2{name}" for name in ("", "/shard.part", "/done", "/done.part"))
    source, more = stock.source, stock.more
    return {
        "info": ("pack", read, ("info", "P", "--samples")),
        "verify": ("pack", read, ("verify", "P")),
        "extract": ("pack", read, ("extract", "P", "-o", "N")),
        "copy from": ("pack", read, ("copy", "P", "N")),
        "doctor": ("pack", read, ("doctor", "P", "--seconds", "1", "--threads", "1")),
        "append": ("pack", write, ("pack", more, "-o", "P", "--append")),
        "gc": ("pack", (*write, *tasks, "ab", ".work/copy-0.part"), ("gc", "P")),
        "gc of tasks": ("tasks", (*work, *tasks), ("gc", "--abandon", "P")),
        "copy to": ("empty", (*read, ".work", ".work/copy-0.part", ".work/manifest.part"),
                    ("copy", stock.pack, "P")),
        "pack": ("empty", write, ("pack", source, "-o", "P")),
        "pack again": ("planned", (*write, *resumed), ("pack", source, "-o", "P")),
        "plan": ("empty", write, ("plan", source, "-o", "P")),
        "task": ("planned", (*work, *tasks), ("pack", source, "-o", "P", "--task", "0/2")),
        "finalise": ("tasks", ("manifest", *work, *tasks, ".work/rest.part", ".work/manifest.part",
                               ".work/task-0-of-2/bad"), ("finalise", "P")),
    }  # fmt: skip


VERBS = (
    "info", "verify", "extract", "copy from", "doctor", "append", "gc", "gc of tasks", "copy to",
    "pack", "pack again", "plan", "task", "finalise",
)  # fmt: skip


def in_place(stock, tmp_path, verb, place_kind):
    """What goes wrong when `kind` is in the place of `place`; None: nothing."""
    place, kind = place_kind
    start, _, args = verbs(stock)[verb]
    with tempfile.TemporaryDirectory(dir=tmp_path) as top:
        top = pathlib.Path(top)
        canary = hostile.Canary(top / "outside")
        prepared = stock.copy(start, top / "p.pen")
        hostile.plant(kind, prepared / place, canary)
        named = {"P": prepared, "N": top / "new"}
        wrong, result = hostile.program(*(named.get(a, a) for a in args))
        if not wrong and canary.changes():
            wrong = f"changed outside: {canary.changes()}; {result.err}"
        if not wrong and result.code == 0 and verb in ("append", "copy to", "pack", "finalise"):
            checked = cli_tools.run("verify", prepared)
            wrong = checked.err if checked.code else None
        return wrong


@pytest.mark.parametrize("verb", VERBS)
def test_every_verb_succeeds_where_nothing_is_in_its_way(stock, tmp_path, verb):
    start, _, args = verbs(stock)[verb]
    named = {"P": stock.copy(start, tmp_path / "p.pen"), "N": tmp_path / "new"}
    wrong, result = hostile.program(*(named.get(a, a) for a in args))
    assert not wrong and result.code == 0, (wrong, result.err)


@hostile.in_parts
@pytest.mark.parametrize("verb", VERBS)
def test_every_verb_with_every_place_and_kind(stock, tmp_path, verb, part):
    assert set(verbs(stock)) == set(VERBS)
    cases = list(itertools.product(verbs(stock)[verb][1], hostile.KINDS))
    hostile.sweep(cases, part, lambda case: in_place(stock, tmp_path, verb, case))


# ---- what the messages say -----------------------------------------------------------------------


def test_gc_removes_links_and_not_what_they_lead_to(stock, tmp_path):
    canary = hostile.Canary(tmp_path / "outside")
    pack = stock.copy("pack", tmp_path / "p.pen")
    hostile.plant("link to a directory", pack / ".work" / "task-0", canary)
    hostile.plant("link to a directory", pack / ".work" / "run" / "x", canary)
    assert cli_tools.good("gc", pack, "--json").json()["files"] == 2
    assert not (pack / ".work").exists()
    assert not canary.changes()


def test_a_work_directory_that_is_a_link_is_refused(stock, tmp_path):
    canary = hostile.Canary(tmp_path / "outside")
    pack = stock.copy("pack", tmp_path / "p.pen")
    hostile.plant("link to a directory", pack / ".work", canary)
    for args in (("gc", pack), ("pack", stock.more, "-o", pack, "--append")):
        result = cli_tools.run(*args)
        assert result.code == 1
        assert "p.pen/.work: expected a directory, found a symbolic link" in result.err
    assert not canary.changes()


def test_append_does_not_write_through_a_link(stock, tmp_path):
    canary = hostile.Canary(tmp_path / "outside")
    pack = stock.copy("pack", tmp_path / "p.pen")
    hostile.plant("link to a file", pack / ".work" / "plan.part", canary)
    cli_tools.good("pack", stock.more, "-o", pack, "--append")
    cli_tools.good("verify", pack)
    assert not canary.changes()


@pytest.mark.parametrize("place", ["manifest", "shard"])
def test_what_is_no_file_is_named(stock, tmp_path, place):
    canary = hostile.Canary(tmp_path / "outside")
    pack = stock.copy("pack", tmp_path / "p.pen")
    at = pack / (stock.shard if place == "shard" else place)
    names = {"FIFO": "a FIFO", "directory": "a directory", "socket": "a socket"}
    if os.geteuid() == 0:
        names["device"] = "a device"
    for kind, name in names.items():
        hostile.plant(kind, at, canary)
        result = cli_tools.run("verify", pack)
        assert result.code == 1
        assert f"{at}: expected a file, found {name}" in result.err, result.err


def test_a_pack_of_links_is_read_and_not_cleaned(stock, tmp_path):
    """Reading follows links; gc leaves a folder of shards that is a link alone."""
    far = stock.copy("pack", tmp_path / "far.pen")
    pack = tmp_path / "p.pen"
    pack.mkdir()
    folder = stock.shard.parent
    (pack / "manifest").symlink_to(far / "manifest")
    (pack / folder).symlink_to(far / folder)
    (far / folder / ("0" * 32 + ".shard")).write_bytes(b"unused")
    before = hostile.snapshot(far)
    cli_tools.good("verify", pack)
    cli_tools.good("gc", pack)
    assert hostile.snapshot(far) == before


def test_the_pack_itself_may_be_named_by_a_link(stock, tmp_path):
    real = stock.copy("pack", tmp_path / "real.pen")
    link = tmp_path / "p.pen"
    link.symlink_to(real)
    cli_tools.good("pack", stock.more, "-o", link, "--append")
    cli_tools.good("gc", link)
    cli_tools.good("verify", real)


# ---- outputs of extract --------------------------------------------------------------------------


@hostile.in_parts
@pytest.mark.parametrize("place", ["cat", "cat/0.jpg", "samples.csv", "samples.classes.csv"])
def test_extract_stays_in_its_directory(stock, tmp_path, place, part):
    def one(kind):
        with tempfile.TemporaryDirectory(dir=tmp_path) as top:
            top = pathlib.Path(top)
            canary = hostile.Canary(top / "outside")
            out = top / "out"
            hostile.plant(kind, out / place, canary)
            was = os.lstat(out / place)
            wrong, result = hostile.program("extract", stock.pack, "-o", out)
            if wrong or canary.changes():
                return wrong or f"changed outside: {canary.changes()}"
            if result.code == 0 and kind != "directory":
                return "it did not fail"
            now = os.lstat(out / place)
            if (now.st_ino, now.st_mode) != (was.st_ino, was.st_mode):
                return "it was replaced"
            return None

    hostile.sweep(list(hostile.KINDS), part, one)


# ---- inputs --------------------------------------------------------------------------------------


def make_inputs(root):
    """Folders that are packed, each with the places of its inputs."""
    folder = cli_tools.make_folder(root / "folder", each=2)
    (root / "list").mkdir()
    cli_tools.write_list(root / "list" / "l.csv", ["path", "label"], [["a.jpg", 0], ["b.jpg", 1]])
    for name in ("a.jpg", "b.jpg"):
        (root / "list" / name).write_bytes(cli_tools.image_bytes(1))
    (root / "tar").mkdir()
    with tarfile.open(root / "tar" / "t.tar", "w") as tar:
        tar.add(root / "list" / "a.jpg", "a.jpg")
    frames = root / "frames" / "cat" / "clip"
    frames.mkdir(parents=True)
    for i in range(3):
        (frames / f"{i}.jpg").write_bytes(cli_tools.image_bytes(i))
    (root / "gulp").mkdir()
    (root / "gulp" / "data_0.gulp").write_bytes(b"x" * 100)
    (root / "gulp" / "meta_0.gmeta").write_text("{}")
    return {
        "folder/cat/0.jpg": (folder,),
        "folder/cat": (folder,),
        "list/l.csv": (root / "list" / "l.csv",),
        "list/a.jpg": (root / "list" / "l.csv",),
        "tar/t.tar": (root / "tar" / "t.tar",),
        "frames/cat/clip/1.jpg": (root / "frames", "--kind", "frames"),
        "frames/cat/clip": (root / "frames", "--kind", "frames"),
        "gulp/meta_0.gmeta": (root / "gulp",),
        "gulp/data_0.gulp": (root / "gulp",),
        "videos/cat/v.mp4": (root / "videos", "--kind", "videos"),
    }


INPUTS = (
    "folder/cat/0.jpg", "folder/cat", "list/l.csv", "list/a.jpg", "tar/t.tar",
    "frames/cat/clip/1.jpg", "frames/cat/clip", "gulp/meta_0.gmeta", "gulp/data_0.gulp",
    "videos/cat/v.mp4",
)  # fmt: skip


@hostile.in_parts
@pytest.mark.parametrize("place", INPUTS)
def test_inputs_of_pack(tmp_path, place, part):
    def one(case):
        kind, on_bad = case
        with tempfile.TemporaryDirectory(dir=tmp_path) as top:
            top = pathlib.Path(top)
            canary = hostile.Canary(top / "outside")
            inputs = make_inputs(top)
            assert set(inputs) == set(INPUTS)
            args = inputs[place]
            hostile.plant(kind, top / place, canary)
            wrong, _ = hostile.program("pack", *args, "-o", top / "o.pen", "--on-bad", on_bad)
            return wrong or (f"changed outside: {canary.changes()}" if canary.changes() else None)

    on_bad = ("skip",) if "videos" in place else ("stop", "skip")  # ffmpeg takes its time
    hostile.sweep(list(itertools.product(hostile.KINDS, on_bad)), part, one)


# ---- files of the network and the cache ----------------------------------------------------------


@hostile.in_parts
def test_files_that_the_network_reads(tmp_path, part):
    """Certificates and AWS's files. The server is a port that nobody listens at."""

    def one(case):
        what, kind = case
        with tempfile.TemporaryDirectory(dir=tmp_path) as top:
            top = pathlib.Path(top)
            canary = hostile.Canary(top / "outside")
            hostile.plant(kind, top / what, canary)
            env = {**os.environ, "HOME": str(top), "AWS_CONFIG_FILE": str(top / "config"),
                   "AWS_SHARED_CREDENTIALS_FILE": str(top / "credentials"),
                   "AWS_EC2_METADATA_DISABLED": "true"}  # fmt: skip
            args = ["info", "s3://bucket/x.pen", "--endpoint", "https://127.0.0.1:9"]
            if what == "ca.pem":
                args += ["--ca", top / what]
            wrong, result = hostile.program(*args, env=env)
            if not wrong and result.code == 0:
                wrong = "it did not fail"
            return wrong or (f"changed outside: {canary.changes()}" if canary.changes() else None)

    whats = ("config", "credentials", "ca.pem")
    hostile.sweep(list(itertools.product(whats, hostile.KINDS)), part, one)


@hostile.in_parts
def test_a_cache_directory(stock, tmp_path, part):
    """In the place of the directory, of its marker, of a pack's folder, and of what that holds."""

    def one(case):
        place, kind = case
        with tempfile.TemporaryDirectory(dir=tmp_path) as top:
            top = pathlib.Path(top)
            canary = hostile.Canary(top / "outside")
            cache = top / "cache"
            cli_tools.good("verify", stock.pack)
            if cli_tools.run("extract", stock.pack, "-o", top / "x", "--cache", cache).code:
                return "cannot fill the cache"
            pack = next(p for p in cache.iterdir() if p.is_dir())
            entry = next(p for p in pack.rglob("*") if p.is_file())
            at = {"cache": cache, "marker": cache / "penstock-cache", "pack": pack,
                  "folder": entry.parent, "entry": entry}[place]  # fmt: skip
            hostile.plant(kind, at, canary)
            for args in (
                ("extract", stock.pack, "-o", top / "y", "--cache", cache),
                ("cache", cache),
                ("cache", cache, "--clear"),
            ):
                wrong, _ = hostile.program(*args)
                if wrong or canary.changes():
                    return wrong or f"{args[0]} changed outside: {canary.changes()}"
            return None

    places = ("cache", "marker", "pack", "folder", "entry")
    hostile.sweep(list(itertools.product(places, hostile.KINDS)), part, one)


# ---- other users, other names --------------------------------------------------------------------

as_root = pytest.mark.skipif(os.geteuid() != 0, reason="needs root to become another user")


@pytest.fixture(scope="module")
def everybodys_program(stock):
    """The program, where another user can run it."""
    copy = stock.root / "penstock"
    shutil.copy(cli_tools.PENSTOCK, copy)
    copy.chmod(0o755)
    was, cli_tools.PENSTOCK = cli_tools.PENSTOCK, str(copy)
    yield
    cli_tools.PENSTOCK = was


@as_root
@pytest.mark.usefixtures("everybodys_program")
def test_another_users_pack(stock):
    """The user nobody may read it and not write: errors, and not a byte changes."""
    home = stock.root / "nobody"
    home.mkdir()
    os.chown(home, hostile.NOBODY, hostile.NOBODY)
    for path in (stock.tasks, stock.planned):
        before = hostile.snapshot(path)
        for args in (("gc", "--abandon", path), ("pack", stock.source, "-o", path)):
            wrong, result = hostile.program(*args, as_nobody=True)
            assert not wrong, wrong
            assert result.code == 1 and "ermission denied" in result.err, result.err
        assert hostile.snapshot(path) == before
    before = hostile.snapshot(stock.pack)
    for args, code in (
        (("info", stock.pack), 0),
        (("verify", stock.pack), 0),
        (("extract", stock.pack, "-o", home / "out"), 0),
        (("copy", stock.pack, home / "copy.pen"), 0),
        (("pack", stock.more, "-o", stock.pack, "--append"), 1),
        (("extract", stock.pack, "-o", stock.source), 1),
        (("copy", stock.pack, stock.root / "other.pen"), 1),
        (("pack", stock.source, "-o", stock.root / "other.pen"), 1),
    ):
        wrong, result = hostile.program(*args, as_nobody=True)
        assert not wrong, wrong
        assert result.code == code, (args, result.err)
        refused = ("ermission denied", "exists already", "a new or an empty directory")
        assert code == 0 or any(said in result.err for said in refused)
    assert hostile.snapshot(stock.pack) == before
    assert not (stock.root / "other.pen").exists()


@as_root
def test_root_in_a_directory_of_somebody_else(stock, tmp_path):
    """Links of the user nobody, which root could follow anywhere."""
    canary = hostile.Canary(tmp_path / "outside")
    pack = stock.copy("tasks", tmp_path / "p.pen")
    hostile.plant("link to a directory", pack / ".work" / "task-1-of-2" / "d", canary)
    hostile.plant("dangling link", pack / ".work" / "manifest.part", canary)
    hostile.plant("link to a file", pack / ".work" / "rest.part", canary)
    for folder, folders, files in os.walk(pack):
        for name in (".", *folders, *files):
            os.chown(os.path.join(folder, name), 65534, 65534, follow_symlinks=False)
    cli_tools.good("finalise", pack)
    cli_tools.good("verify", pack)
    assert not (pack / ".work").exists()
    assert not canary.changes()


def test_names_of_other_cases(stock, tmp_path):
    """MANIFEST is no manifest, .Work is not ours, and gc keeps what is not named as a shard."""
    pack = stock.copy("pack", tmp_path / "p.pen")
    folder = stock.shard.parent.name
    others = [pack / ".Work" / "plan", pack / "AB" / ("AB" + "0" * 30 + ".shard"),
              pack / folder / stock.shard.name.upper(), pack / "ab" / ("AB" + "0" * 30 + ".shard"),
              pack / "Manifest"]  # fmt: skip
    for path in others:
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(b"somebody's\n")
    cli_tools.good("gc", pack)
    assert all(path.read_bytes() == b"somebody's\n" for path in others)
    cli_tools.good("verify", pack)
    (pack / "manifest").rename(pack / "MANIFEST")
    result = cli_tools.run("info", pack)
    assert result.code == 1 and "it has no file 'manifest'" in result.err


# ---- Python --------------------------------------------------------------------------------------

CALLS = textwrap.dedent(
    """
    import json, sys
    import penstock

    PIPELINE = "decode | resize 24 | center_crop 16 | tensor u8"

    def read(path):
        with penstock.open(path) as pack:
            return [pack[i]["label"] for i in range(len(pack))]

    def load(path):
        with penstock.Loader(path, 2, pipeline=PIPELINE, threads=1) as loader:
            return sum(1 for _ in loader)

    def write(path):
        return penstock.write(path, [{"label": 1}], {"label": "i64"})

    def cached(path):
        with penstock.open(sys.argv[1], cache=path) as pack:
            return pack[0]["label"]

    for line in sys.stdin:
        call, path = json.loads(line)
        try:
            globals()[call](path)
            print("done", flush=True)
        except penstock.Error as e:
            print(type(e).__name__, flush=True)
        except BaseException as e:
            print("not typed:", repr(e), flush=True)
    """
)


def python_cases(stock):
    shard, folder = str(stock.shard), str(stock.shard.parent)
    work = (".work", ".work/writer.part", ".work/manifest.part", ".work/plan")
    places = {
        "read": ("pack", ("manifest", shard, folder)),
        "load": ("pack", ("manifest", shard, folder)),
        "write": ("empty", ("manifest", folder, *work)),
        "cached": ("empty", (".", "penstock-cache", "ab")),
    }
    for call, (start, names) in places.items():
        yield call, start, None, None
        for place, kind in itertools.product(names, hostile.KINDS):
            yield call, start, place, kind


@pytest.mark.skipif(
    is_sanitized(BUILD) and "san.so" not in os.environ.get("LD_PRELOAD", ""),
    reason="a sanitizer's library was not loaded first",
)
def test_python_calls(stock, tmp_path):
    cases = list(python_cases(stock))
    with subprocess.Popen(
        [sys.executable, "-c", CALLS, str(stock.pack)],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
    ) as child:  # fmt: skip
        wrong = []
        for number, (call, start, place, kind) in enumerate(cases):
            top = tmp_path / str(number)
            top.mkdir()
            canary = hostile.Canary(top / "outside")
            prepared = stock.copy(start, top / "p")
            if kind:
                hostile.plant(kind, prepared / place, canary)
            child.stdin.write(json.dumps([call, str(prepared)]) + "\n")
            child.stdin.flush()
            answer = line_of(child)
            bad = answer.startswith("not typed") or (not kind and answer != "done")
            if canary.changes() or not answer or bad:
                wrong.append((call, place, kind, answer, canary.changes()))
            if not answer:
                child.kill()
                break
        child.stdin.close()
    print(f"{len(cases)} cases, {len(wrong)} complaints")
    assert not wrong


def line_of(child):
    """The next line; "" when none comes."""
    ready, _, _ = select.select([child.stdout], [], [], hostile.DEADLINE)
    return child.stdout.readline().strip() if ready else ""
