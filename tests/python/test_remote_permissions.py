# SPDX-License-Identifier: Apache-2.0
"""Places that cannot be written to are found before anything is packed: no source is read, nothing
is sent, nothing stays behind. Places that can be written to are, with no permission beyond that."""

import os
import pathlib
import re
import shutil
import subprocess
import tempfile

import net_stage
import pytest
from cli_tools import PENSTOCK, good, make_folder, run

needs_strace = pytest.mark.skipif(not shutil.which("strace"), reason="no strace here")
needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="needs root, to become another user")
PROBE = ["CreateMultipartUpload", "AbortMultipartUpload"]
BAD = {  # bucket: what is said of it
    "closed": r"127\.0\.0\.1:\d+ returned 403 AccessDenied, credentials from .*; writing it is not "
              r"allowed: docs/how-to/s3\.md has the policy",
    "missing": r"127\.0\.0\.1:\d+ returned 404 NoSuchBucket.*; "
               r"check the bucket name and the endpoint",
}


@pytest.fixture(scope="module")
def server(s3):
    return s3(["packs", "closed,no-write", "kept,no-delete"])


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return make_folder(tmp_path_factory.mktemp("photos") / "src", each=5)


@pytest.fixture(scope="module")
def pack(folder, tmp_path_factory):
    out = tmp_path_factory.mktemp("packs") / "photos.pen"
    good("pack", folder, "-o", out)
    return out


@pytest.fixture
def open_place():
    """Where another user can read: pytest closes its folders to others whenever it starts."""
    with tempfile.TemporaryDirectory() as place:
        os.chmod(place, 0o755)
        yield pathlib.Path(place)


@pytest.fixture
def env(server, tmp_path):
    return server.environment(HOME=str(tmp_path / "home"))


def kinds_since(server, before):
    return [entry["kind"] for entry in server.log()[before:]]


def check_refused(text, bucket, kinds):
    place = f"s3://{bucket}/new.pen"
    assert re.search(rf"{place}: not writable; nothing was packed or uploaded: "
                     rf"{place}/manifest: {BAD[bucket]}", text), text
    assert kinds[-1] == "CreateMultipartUpload" and set(kinds[:-1]) <= {"HeadObject", "GetObject"}


def opened_below(trace, folder):
    """Files below the folder that were opened. The folder itself may be looked at."""
    text = pathlib.Path(trace).read_text()
    return re.findall(rf'open(?:at)?\([^"]*"({re.escape(str(folder))}/[^"]*)"', text)


def run_traced(trace, *command, env=None):
    traced = ["strace", "-f", "-o", trace, "-e", "trace=open,openat", *map(str, command)]
    env = dict(os.environ if env is None else env)
    # The leak sanitizer does not work under ptrace.
    env["ASAN_OPTIONS"] = env.get("ASAN_OPTIONS", "") + ":detect_leaks=0"
    return subprocess.run(traced, env=env, capture_output=True, text=True, check=False)


@needs_strace
@pytest.mark.parametrize("bucket", BAD)
def test_pack_reads_no_source(server, folder, env, tmp_path, bucket):
    before, trace = len(server.log()), tmp_path / "trace"
    done = run_traced(trace, PENSTOCK, "pack", folder, "-o", f"s3://{bucket}/new.pen", env=env)
    assert done.returncode == 1
    check_refused(done.stderr, bucket, kinds_since(server, before))
    assert opened_below(trace, folder) == []
    assert [p for p in (tmp_path / "home").rglob("*") if p.is_file()] == []
    # The same where it may be written: the sources are read, so the test can see it.
    done = run_traced(trace, PENSTOCK, "pack", folder, "-o", f"s3://packs/{bucket}.pen", env=env)
    assert done.returncode == 0, done.stderr
    assert len(set(opened_below(trace, folder))) >= 10


@needs_strace
@pytest.mark.parametrize("bucket", BAD)
def test_copy_reads_no_shard(server, pack, env, tmp_path, bucket):
    before, trace = len(server.log()), tmp_path / "trace"
    done = run_traced(trace, PENSTOCK, "copy", pack, f"s3://{bucket}/new.pen", env=env)
    assert done.returncode == 1
    check_refused(done.stderr, bucket, kinds_since(server, before))
    assert not any(name.endswith(".shard") for name in opened_below(trace, pack))


@pytest.mark.parametrize("bucket", BAD)
@pytest.mark.parametrize("how", ["Writer", "write"])
def test_python_takes_no_sample(server, env, monkeypatch, how, bucket):
    import penstock

    for name, value in env.items():
        monkeypatch.setenv(name, value)
    taken = []

    def samples():
        for i in range(3):
            taken.append(i)
            yield {"key": str(i), "label": i}

    before = len(server.log())
    error = {"closed": penstock.AccessError, "missing": penstock.NotFoundError}[bucket]
    with pytest.raises(error) as caught:
        if how == "write":
            penstock.write(f"s3://{bucket}/new.pen", samples(), {"label": "i64"})
        else:
            penstock.Writer(f"s3://{bucket}/new.pen", {"label": "i64"})
    check_refused(str(caught.value), bucket, kinds_since(server, before))
    assert taken == []


def test_one_upload_is_begun_and_given_up(server, folder, pack, env):
    before = len(server.log())
    good("pack", folder, "-o", "s3://packs/seen.pen", env=env)
    kinds = kinds_since(server, before)
    assert kinds[:3] == ["HeadObject", *PROBE], kinds
    assert kinds.count("AbortMultipartUpload") == 1 and "DeleteObject" not in kinds
    assert not any(kind.startswith("List") for kind in kinds)
    before = len(server.log())
    good("copy", pack, "s3://packs/copied.pen", env=env)
    kinds = kinds_since(server, before)
    assert kinds.count("AbortMultipartUpload") == 1 and "DeleteObject" not in kinds
    before = len(server.log())
    good("copy", pack, "s3://packs/copied.pen", env=env)  # is there: nothing is to be written
    assert not set(PROBE) & set(kinds_since(server, before))
    uploads = server.boto3().list_multipart_uploads(Bucket="packs")
    assert uploads.get("Uploads", []) == []


def test_no_permission_to_remove_is_needed(server, folder, env):
    good("pack", folder, "-o", "s3://kept/set.pen", env=env)
    good("verify", "s3://kept/set.pen", env=env)


# --- directories ---------------------------------------------------------------------------------


@needs_root
@needs_strace
@pytest.mark.parametrize("verb", ["pack", "append", "copy"])
def test_directory_of_another_user(folder, pack, tmp_path, open_place, verb):
    out, trace = open_place / "out.pen", tmp_path / "trace"
    folder = shutil.copytree(folder, open_place / "src")
    pack = shutil.copytree(pack, open_place / "photos.pen")
    if verb == "append":
        good("pack", folder, "-o", out)
    command = {"pack": ["pack", folder, "-o", out], "copy": ["copy", pack, out],
               "append": ["pack", folder, "-o", out, "--append"]}[verb]
    as_user = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"]
    done = run_traced(trace, *as_user, PENSTOCK, *command)
    assert done.returncode == 1
    assert f"{out}" in done.stderr and "Permission denied" in done.stderr
    assert opened_below(trace, folder) == []
    assert not any(name.endswith(".shard") for name in opened_below(trace, pack))
    assert verb == "append" or not out.exists()


def test_place_that_can_only_be_read(folder, tmp_path):
    result = run("pack", folder, "-o", "https://127.0.0.1:1/set.pen",
                 env={**net_stage.clean_environment(), "HOME": str(tmp_path)})
    assert result.code == 1
    assert result.message() == (
        "https://127.0.0.1:1/set.pen: packs can only be read over http(s); write to s3:// or "
        "a directory")
