# SPDX-License-Identifier: Apache-2.0
"""A cache that several users share. Real users: the children give up root for another user."""

import contextlib
import ctypes
import multiprocessing
import os
import pathlib
import pickle
import pwd
import re
import shutil
import subprocess
import tempfile
import traceback

import pytest
from cli_tools import good, run
from py_tools import need_penstock, write_pack
from remote_tools import epoch_digest, make_pack

penstock = need_penstock()
pytest.importorskip("numpy")
pytestmark = pytest.mark.usefixtures("no_other_settings")
as_root = pytest.mark.skipif(os.geteuid() != 0, reason="needs root to become another user")

ROOT = pathlib.Path(__file__).parents[2]
ALICE, BOB, MALLORY, TEAM = 4001, 4002, 4003, 4100
N = 400
FORK = multiprocessing.get_context("fork")


def become(user):
    os.setgroups([])
    os.setgid(TEAM)
    os.setuid(user)
    ctypes.CDLL(None).prctl(4, 1, 0, 0, 0)  # as after exec: its own user may see its memory


def run_as(user, function, pipe, args):
    try:
        become(user)
        pipe.send(function(pipe, *args))
    except Exception:
        pipe.send(traceback.format_exc())


@contextlib.contextmanager
def child(user, function, *args):
    """Runs it as another user, in a forked process; what it returns is sent."""
    here, there = FORK.Pipe()
    process = FORK.Process(target=run_as, args=(user, function, there, args))
    process.start()
    there.close()
    try:
        yield here
    finally:
        process.kill()
        process.join()


def received(pipe):
    assert pipe.poll(300), "the child hangs"
    return pipe.recv()


@pytest.fixture(scope="module")
def place():
    """A directory that all users can enter: a pack, and a directory for a cache of the team."""
    root = pathlib.Path(tempfile.mkdtemp(prefix="penstock-team-"))
    root.chmod(0o755)
    make_pack(penstock, root / "train.pen", N, name=f"team {os.getpid()}")
    yield root
    shutil.rmtree(root)


@pytest.fixture(scope="module")
def pack(place):
    return place / "train.pen"


@pytest.fixture(scope="module")
def digest(pack):
    return epoch_digest(penstock, pack)


@pytest.fixture
def team(place):
    path = pathlib.Path(tempfile.mkdtemp(dir=place))
    os.chown(path, 0, TEAM)
    path.chmod(0o3770)
    yield path
    shutil.rmtree(path)


def read_epoch(pipe, pack, team, trust):
    with penstock.open(pack, cache=team, cache_share=True, cache_trust=trust) as opened:
        pipe.send("ready")
        pipe.recv()
        return epoch_digest(penstock, opened), opened.cache_stats()


def read(pack, team, **users):
    """One epoch of each user at the same time: (digest, statistics) of each."""
    with contextlib.ExitStack() as stack:
        pipes = [stack.enter_context(child(globals()[name], read_epoch, pack, team, trust))
                 for name, trust in users.items()]
        for pipe in pipes:
            assert received(pipe) == "ready"
        for pipe in pipes:
            pipe.send("go")
        return [received(pipe) for pipe in pipes]


def entries(team, user):
    return sorted(team.glob(f"user-{user}/*/??/*.block"))


@as_root
def test_a_block_is_stored_once_for_all_who_trust_each_other(pack, team, digest):
    (found, alice), = read(pack, team, ALICE=[])
    n = len(entries(team, ALICE))
    assert found == digest and alice["misses"] == n > 20 and alice["trusted_hits"] == 0
    (found, bob), = read(pack, team, BOB=[ALICE])
    assert found == digest
    assert bob["trusted_hits"] == bob["hits"] >= n and bob["misses"] == bob["stored"] == 0
    assert entries(team, BOB) == []
    # Who trusts nobody uses nothing of others, and is refused nothing either.
    (found, mallory), = read(pack, team, MALLORY=[])
    assert found == digest and mallory["misses"] == n and mallory["refused"] == 0
    for path in [team / f"user-{ALICE}", *(team / f"user-{ALICE}").rglob("*")]:
        stat = path.stat()
        assert (stat.st_uid, stat.st_gid) == (ALICE, TEAM) and not stat.st_mode & 0o027, path


@as_root
def test_at_the_same_time_a_block_is_fetched_about_once(pack, team, digest):
    users = {"ALICE": [BOB, MALLORY], "BOB": [ALICE, MALLORY], "MALLORY": [ALICE, BOB]}
    for attempt in range(3):  # a busy machine can stop one who fetches, and the others then do, too
        shared = team / str(attempt)
        shared.mkdir()
        os.chown(shared, 0, TEAM)
        shared.chmod(0o3770)
        results = read(pack, shared, **users)
        assert {found for found, _ in results} == {digest}
        blocks = {path.name for user in (ALICE, BOB, MALLORY) for path in entries(shared, user)}
        misses = sum(stats["misses"] for _, stats in results)
        if misses < 1.5 * len(blocks):
            break
    # Two may begin in the same microsecond; three who do not wait would be three times as many.
    assert len(blocks) <= misses < 1.5 * len(blocks), results
    assert sum(stats["trusted_hits"] for _, stats in results) > len(blocks)


def try_all(pipe, team):
    alice = team / f"user-{ALICE}"
    entry = entries(team, ALICE)[0]
    done = []
    for name, call in (
        ("read", entry.read_bytes),
        ("write", lambda: entry.open("r+b")),
        ("truncate", lambda: os.truncate(entry, 0)),
        ("remove", entry.unlink),
        ("add", lambda: (entry.parent / "1.block").write_bytes(b"forged")),
        ("replace", lambda: os.rename(team / "mine", entry)),
        ("link", lambda: os.symlink("/tmp", alice / ("0" * 32))),
        ("chmod", lambda: entry.chmod(0o666)),
        ("rename the directory", lambda: alice.rename(team / "gone")),
        ("remove the directory", alice.rmdir),
        ("lock", lambda: (alice / "penstock-cache").open("rb")),
        ("claim", lambda: (alice / "claims").open("r+b")),
        ("see where from", lambda: (entry.parents[1] / "about").read_bytes()),
        ("take a name", lambda: (team / f"user-{BOB}").mkdir(mode=0o777)),
    ):
        try:
            call()
            done.append(name)
        except PermissionError:
            pass
    return done


@as_root
def test_what_a_hostile_member_can_do(pack, team, digest):
    """It can read what others stored, and take the name of somebody who has no directory yet."""
    read(pack, team, ALICE=[])
    (team / "mine").write_bytes(b"forged")
    os.chown(team / "mine", MALLORY, TEAM)
    with child(MALLORY, try_all, team) as pipe:
        assert received(pipe) == ["read", "take a name"]
    with child(BOB, read_epoch, pack, team, []) as pipe:
        assert "expected a directory that belongs to this user" in received(pipe)
    (found, alice), = read(pack, team, ALICE=[])
    assert found == digest and alice["misses"] == alice["bad"] == 0


@as_root
@pytest.mark.parametrize("how", ["owner", "writable", "link", "fifo", "whole directory"])
def test_entries_that_somebody_else_could_have_written_are_misses(pack, team, digest, how):
    """Root puts them in place: a member cannot."""
    read(pack, team, ALICE=[])
    found = entries(team, ALICE)
    if how == "whole directory":
        os.chown(team / f"user-{ALICE}", MALLORY, TEAM)
    for path in found if how != "whole directory" else []:
        data = bytearray(path.read_bytes())
        data[len(data) // 2] ^= 1
        path.unlink()
        if how == "fifo":
            os.mkfifo(path)
        elif how == "link":
            path.with_suffix(".forged").write_bytes(data)
            path.symlink_to(path.with_suffix(".forged"))
        else:
            path.write_bytes(data)
        os.chown(path, MALLORY if how == "owner" else ALICE, TEAM, follow_symlinks=False)
        if how == "writable":
            path.chmod(0o660)
    (got, bob), = read(pack, team, BOB=[ALICE])
    assert got == digest
    assert bob["misses"] == len(found) and bob["refused"] >= len(found), bob
    assert bob["bad"] == bob["trusted_hits"] == 0, bob


@as_root
def test_damage_in_entries_of_a_trusted_user_is_noticed(pack, team, digest):
    read(pack, team, ALICE=[])
    found = entries(team, ALICE)
    for i, path in enumerate(found):
        data = bytearray(path.read_bytes())
        data[len(data) // 2] ^= 1
        os.truncate(path, 0 if i % 2 else len(data))  # the file stays, and its owner
        with path.open("r+b") as file:
            file.write(data if not i % 2 else b"")
    (got, bob), = read(pack, team, BOB=[ALICE])
    assert got == digest and bob["bad"] >= len(found) <= bob["misses"], bob  # or more, by parts
    assert len(entries(team, BOB)) == len(found) == len(entries(team, ALICE))
    (got, bob), = read(pack, team, BOB=[ALICE])
    assert got == digest and bob["misses"] == 0, bob


def truncate_all(pipe, team):
    files = entries(team, ALICE)
    pipe.send("ready")
    while True:
        for path in files:
            os.truncate(path, 100)


@as_root
def test_files_that_shrink_while_they_are_read_end_nobody(pack, team, digest):
    """They are read, not mapped: no SIGBUS."""
    read(pack, team, ALICE=[])
    with child(ALICE, truncate_all, team) as pipe:
        assert received(pipe) == "ready"
        (got, bob), = read(pack, team, BOB=[ALICE])
    assert got == digest and bob["misses"] + bob["hits"] >= len(entries(team, ALICE))


def preload(pipe, pack):
    with penstock.open(pack, preload=True) as opened:
        pipe.send((epoch_digest(penstock, opened), opened.preloaded.was_there))
        pipe.recv()


@as_root
def test_preloaded_memory_is_of_one_user(pack, digest):
    """The kernel does not let another user open it, so a second user has a copy of its own."""
    with child(ALICE, preload, pack) as first:
        assert received(first) == (digest, False)
        for user, was_there in ((BOB, False), (ALICE, True)):
            with child(user, preload, pack) as second:
                assert received(second) == (digest, was_there)


def run_page(pipe, code):
    scope = {}
    exec(compile(code, "team-cache.md", "exec"), scope)
    with scope["loader"] as loader:
        return loader.dataset.cache_stats()


@as_root
def test_page(place):
    """docs/how-to/team-cache.md, in other directories and with numbers in place of names."""
    page = (ROOT / "docs" / "how-to" / "team-cache.md").read_text()
    pack, cache = place / "photos.pen", place / "team-cache"
    write_pack(penstock, pack, 64)
    here = {"/nvme/team-cache": str(cache), "/dev/shm/team-cache": str(place / "memory"),
            "-g training": f"-g {TEAM}", '"alice", "bob"': f"{ALICE}, {BOB}",
            '"photos.pen"': repr(str(pack)), "sudo ": ""}
    for old, new in here.items():
        assert old in page
        page = page.replace(old, new)
    commands = re.findall("^install .*$", page, re.M)
    assert len(commands) == 2
    for command in commands:
        subprocess.run(command, shell=True, check=True)
    (code,) = re.findall(r"^```python\n(.*?)^```$", page, re.M | re.S)
    for user, hits in ((ALICE, 0), (BOB, 8)):
        with child(user, run_page, code) as pipe:
            found = received(pipe)["trusted_hits"]
            assert found >= hits if hits else found == 0  # a block can be read in parts


# ---- arguments


def test_arguments(pack, tmp_path):
    me = pwd.getpwuid(os.geteuid()).pw_name
    team = tmp_path / "team"
    team.mkdir()
    team.chmod(0o3770)
    with penstock.open(pack, cache=team, cache_share=True, cache_trust=[me, 4001]) as opened:
        assert opened[0].key == "s0"
        with pickle.loads(pickle.dumps(opened)) as again:
            assert (again._cache_share, again._cache_trust) == (True, (me, 4001))
    for wrong, expected in (
        ({"cache_share": True}, "cache_share: there is no cache"),
        ({"cache": team, "cache_trust": [4001]}, "cache_trust: the cache is not shared"),
        ({"cache": team, "cache_share": True, "cache_trust": ["no-such"]}, "no user 'no-such'"),
        ({"cache": team, "cache_share": True, "cache_trust": ["\0"]}, "no user"),
        ({"cache": team, "cache_share": True, "cache_trust": [-1]}, "cache_trust: expected 0 to"),
        ({"cache": team, "cache_share": True, "cache_trust": [5] * 257}, "at most 256 users"),
        ({"cache": tmp_path / "no", "cache_share": True}, "install -d -m 3770 -g GROUP"),
    ):
        with pytest.raises(penstock.Error, match=expected):
            penstock.open(pack, **wrong)
    with pytest.raises(TypeError, match="cache_trust: expected a list of users, found 'alice'"):
        penstock.open(pack, cache=team, cache_share=True, cache_trust="alice")
    with penstock.open(pack) as opened, pytest.raises(penstock.InvalidError, match="already open"):
        penstock.Loader(opened, 1, cache_share=True)


def test_command_line(pack, tmp_path):
    team = tmp_path / "team"
    team.mkdir()
    team.chmod(0o3770)
    me = pwd.getpwuid(os.geteuid()).pw_name
    shared = ["--cache", team, "--cache-share"]
    good("extract", pack, "-o", tmp_path / "out", *shared, "--cache-trust",
         f"{me},4001")
    assert (team / f"user-{os.geteuid()}" / "penstock-cache").exists()
    for wrong, expected in (
        (["--cache-share"], "--cache-share needs a cache"),
        (["--cache", team, "--cache-trust", "4001"], "--cache-trust needs a shared cache"),
        ([*shared, "--cache-trust", "no-such"], "no user 'no-such' on this machine"),
        ([*shared, "--cache-trust", "4001,"], "no user ''"),
        ([*shared, "--cache-trust", "4294967295"], "no user '4294967295'"),
        ([*shared, "--cache-trust", ",".join(["5"] * 257)], "at most 256 users"),
        ([*shared, "--cache-trust", "x" * 128], "names of at most 127 bytes"),
    ):
        result = run("extract", pack, "-o", tmp_path / "no", *wrong)
        assert result.code and expected in result.err, (wrong, result.err)
