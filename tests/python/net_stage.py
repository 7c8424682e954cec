# SPDX-License-Identifier: Apache-2.0
"""Servers for tests of packs in object stores, each a context manager that leaves nothing behind.

    with net_stage.S3Server(buckets=["packs"], chaos="error=0.1", seed=7) as server: ...
    with net_stage.FarAway(server, ms=50, percent=5) as far: ...
    store = net_stage.shared_ceph()     # real; started once per process, ended at its exit

All of them have `url`, `env` (the AWS_* variables for clients) and `boto3(...)`. Servers listen on
127.0.0.1 only. They end when the test does, even when it is killed: they watch a pipe that it
holds open, and the kernel tells them of its death. (That is the death of the thread which
started them; start servers from a thread that stays.)
"""

import atexit
import collections
import contextlib
import ctypes
import functools
import http.client
import json
import os
import pathlib
import secrets
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
NET = ROOT / "tests" / "net"
KEY_ID, SECRET, REGION = "stage-key", "stage-secret", "us-east-1"
CEPH_PROGRAMS = ("ceph-mon", "ceph-osd", "radosgw", "radosgw-admin", "ceph", "monmaptool")
FDB_RATES = "error=0.10,throttle=0.05,delay=0.10,corrupt=0.01"  # FoundationDB's, for simulation
NOWHERE = {
    "AWS_CONFIG_FILE": os.devnull,
    "AWS_SHARED_CREDENTIALS_FILE": os.devnull,
    "AWS_EC2_METADATA_DISABLED": "true",
}
PR_SET_PDEATHSIG = 1
LIBC = ctypes.CDLL(None)


class StageError(Exception):
    """A server did not start; with the end of what it wrote."""


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def missing_ceph():
    """Why there can be no Ceph here; None when there can."""
    missing = [p for p in CEPH_PROGRAMS if not shutil.which(p)]
    return f"{', '.join(missing)}: not installed" if missing else None


def missing_haproxy():
    return None if shutil.which("haproxy") else "haproxy: not installed"


def aws_command():
    """The AWS command line beside this Python, or on the path; None when there is none."""
    beside = pathlib.Path(sys.executable).parent / "aws"
    return str(beside) if beside.exists() else shutil.which("aws")


def clean_environment(**more):
    """This process's environment without what could lead a client elsewhere, and with `more`."""
    foreign = ("aws_", "http_proxy", "https_proxy", "all_proxy", "no_proxy")
    kept = {n: v for n, v in os.environ.items() if not n.lower().startswith(foreign)}
    return {**kept, **NOWHERE, **more}


@contextlib.contextmanager
def without_aws_settings():
    """Clients that are made meanwhile know nothing of the user's settings."""
    before = {n: v for n, v in os.environ.items() if n.startswith("AWS_")}
    try:
        for name in before:
            del os.environ[name]
        os.environ.update(NOWHERE)
        yield
    finally:
        for name in NOWHERE:
            del os.environ[name]
        os.environ.update(before)


@functools.cache
def boto3_session():
    """One for all clients: it is slow to make."""
    import boto3

    return boto3.session.Session()


def die_with_parent():
    LIBC.prctl(PR_SET_PDEATHSIG, signal.SIGTERM)


class Process:
    """A program in a process group of its own that ends when its standard input does."""

    def __init__(self, command, deadline_s):
        self.command = [os.fspath(part) for part in command]
        self.deadline_s = deadline_s
        self.tail = collections.deque(maxlen=40)

    def start(self):
        self.child = subprocess.Popen(
            self.command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
            text=True, errors="replace", start_new_session=True, preexec_fn=die_with_parent,
        )
        self.news = threading.Condition()
        self.ended = False
        self.reader = threading.Thread(target=self.read, daemon=True)
        self.reader.start()

    def read(self):
        for line in self.child.stdout:
            with self.news:
                self.tail.append(line.rstrip("\n"))
                self.news.notify_all()
        with self.news:
            self.ended = True
            self.news.notify_all()

    def wait_for_line(self, fits):
        """The first line that fits; StageError when it does not come in time."""
        deadline = time.monotonic() + self.deadline_s
        with self.news:
            while True:
                for line in self.tail:
                    if fits(line):
                        return line
                left = deadline - time.monotonic()
                if self.ended or left <= 0:
                    break
                self.news.wait(left)
        why = "has ended" if self.ended else f"is not ready after {self.deadline_s} s"
        raise StageError(f"{self.command[0]} {why}:\n" + "\n".join(self.tail))

    def stop(self, patience_s=10):
        with contextlib.suppress(OSError):
            self.child.stdin.close()
        try:
            self.child.wait(patience_s)
        except subprocess.TimeoutExpired:
            pass
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.child.pid, signal.SIGKILL)
        self.child.wait()
        self.reader.join(5)
        self.child.stdout.close()


class Server:
    """What all have in common. Subclasses start `self.process` and set `port`."""

    key_id, secret, token, region = KEY_ID, SECRET, None, REGION
    scheme = "http"
    process = None

    def __enter__(self):
        try:
            self.start()
        except BaseException:
            self.stop()
            raise
        return self

    def __exit__(self, *_):
        self.stop()

    def stop(self):
        if self.process is not None:
            self.process.stop()
            self.process = None

    def adopt(self, directory):
        """Takes what a start script has left in its directory for clients."""
        lines = (pathlib.Path(directory) / "env").read_text().splitlines()
        found = dict(line.split("=", 1) for line in lines)
        self.port = int(found["AWS_ENDPOINT_URL"].rpartition(":")[2])
        self.key_id = found.get("AWS_ACCESS_KEY_ID", self.key_id)
        self.secret = found.get("AWS_SECRET_ACCESS_KEY", self.secret)

    @property
    def url(self):
        return f"{self.scheme}://127.0.0.1:{self.port}"

    @property
    def env(self):
        found = {
            "AWS_ENDPOINT_URL": self.url,
            "AWS_ACCESS_KEY_ID": self.key_id,
            "AWS_SECRET_ACCESS_KEY": self.secret,
            "AWS_REGION": self.region,
            "AWS_DEFAULT_REGION": self.region,
        }
        return {**found, "AWS_SESSION_TOKEN": self.token} if self.token else found

    def environment(self, **more):
        """A whole environment for a client that is started: no other keys, no proxies."""
        return clean_environment(**{**self.env, **more})

    def boto3(self, retries=0, **settings):
        """A client that sees every failure, unless it is allowed retries."""
        import botocore.config

        style = settings.pop("style", "path")
        config = botocore.config.Config(
            retries={"total_max_attempts": retries + 1}, s3={"addressing_style": style},
            connect_timeout=5, read_timeout=30, proxies={}, **settings.pop("config", {}),
        )
        given = {
            "endpoint_url": self.url, "region_name": self.region,
            "aws_access_key_id": self.key_id, "aws_secret_access_key": self.secret,
            "aws_session_token": self.token, **settings,
        }
        with without_aws_settings():
            return boto3_session().client("s3", config=config, **given)

    def aws(self, *arguments, check=True, seconds=60):
        """Runs the AWS command line."""
        done = subprocess.run(
            [aws_command(), *map(os.fspath, arguments)], env=self.environment(), timeout=seconds,
            capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL,
        )
        if check and done.returncode != 0:
            raise AssertionError(f"aws {arguments}: {done.returncode}\n{done.stdout}{done.stderr}")
        return done


class S3Server(Server):
    """tests/net/s3_server.py. buckets: as its --bucket; keys: as its --key."""

    def __init__(self, buckets=("packs",), keys=(), deadline_s=20, tls=None, **settings):
        """settings: further options; underscores become hyphens."""
        self.command = [sys.executable, NET / "s3_server.py", "--until-eof"]
        for option, values in (("--bucket", buckets), ("--key", keys)):
            for value in values:
                self.command += [option, value]
        if tls:
            self.command += ["--tls", *tls]
            self.scheme = "https"
        for name, value in settings.items():
            self.command += ["--" + name.replace("_", "-"), str(value)]
        if keys:
            self.key_id, self.secret, self.token = (*keys[0].split(":"), None)[:3]
        self.region = settings.get("region", REGION)
        self.deadline_s = deadline_s

    def start(self):
        self.process = Process(self.command, self.deadline_s)
        self.process.start()
        line = self.process.wait_for_line(lambda line: line.startswith('{"port"'))
        self.port = json.loads(line)["port"]

    def ask(self, method, path, body=None):
        if self.scheme == "https":
            import ssl

            context = ssl._create_unverified_context()
            connection = http.client.HTTPSConnection("127.0.0.1", self.port, timeout=10,
                                                     context=context)
        else:
            connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=10)
        with contextlib.closing(connection):
            connection.request(method, path, body)
            answer = connection.getresponse()
            text = answer.read().decode()
        assert answer.status == 200, text
        return json.loads(text)

    def counts(self):
        return self.ask("GET", "/_counts")

    def log(self):
        return self.ask("GET", "/_log")

    def control(self, **command):
        """See s3_server.py: reset, outage, outage_how, mute, chaos, seed, clock, key, ..."""
        self.ask("POST", "/_control", json.dumps(command))


class Script(Server):
    """One of the start scripts, in a directory of its own that is gone afterwards.

    When it does not start, its logs stay, and the error says where."""

    def start(self):
        name = f"penstock-stage-{os.getpid()}-{secrets.token_hex(4)}"
        self.directory = pathlib.Path(tempfile.gettempdir()) / name  # which the script makes
        arguments = map(str, self.arguments)
        self.process = Process(["bash", NET / self.name, "run", self.directory, *arguments], 60)
        self.process.start()
        self.process.wait_for_line(lambda line: line == "ready")
        self.adopt(self.directory)


class Ceph(Script):
    """A real store: tests/net/object_store.sh. Has no buckets yet."""

    name = "object_store.sh"

    def __init__(self, port=0):
        self.arguments = [port]


class FarAway(Script):
    """Another server, `ms` milliseconds away; `percent` of the requests fail with 503."""

    name = "far_away.sh"

    def __init__(self, server, ms, percent=0, port=0):
        self.arguments = [port, server.port, ms, percent]
        self.key_id, self.secret, self.token = server.key_id, server.secret, server.token
        self.region = server.region


class RunningCeph(Server):
    """A store that somebody else has started, by what `object_store.sh env` says."""

    def __init__(self, directory):
        self.directory = directory

    def start(self):
        self.adopt(self.directory)


_shared = []


def shared_ceph():
    """The store that all tests of this process use, each with buckets of its own.

    PENSTOCK_CEPH names the directory of one that runs already."""
    if not _shared:
        running = os.environ.get("PENSTOCK_CEPH")
        store = RunningCeph(running) if running else Ceph()
        store.__enter__()
        atexit.register(store.stop)
        _shared.append(store)
    return _shared[0]


def need_ceph():
    """shared_ceph, or the test is skipped. PENSTOCK_NEED_CEPH=1 makes that a failure."""
    import pytest

    reason = None if os.environ.get("PENSTOCK_CEPH") else missing_ceph()
    if reason and not os.environ.get("PENSTOCK_NEED_CEPH"):
        pytest.skip(reason)
    return shared_ceph()


def need_haproxy():
    import pytest

    if missing_haproxy():
        pytest.skip(missing_haproxy())


def need_aws():
    import pytest

    if not aws_command():
        pytest.skip("aws: not installed")


def fill_bucket(client, bucket, folder):
    """Puts a folder's files into a bucket, made if it is not there."""
    with contextlib.suppress(client.exceptions.BucketAlreadyOwnedByYou):
        client.create_bucket(Bucket=bucket)
    folder = pathlib.Path(folder)
    for path in sorted(p for p in folder.rglob("*") if p.is_file()):
        client.put_object(Bucket=bucket, Key=str(path.relative_to(folder)), Body=path.read_bytes())
