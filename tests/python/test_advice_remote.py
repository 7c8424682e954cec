# SPDX-License-Identifier: Apache-2.0
"""Messages about object stores that advise an action; see test_advice_python.py."""

import os
import pickle
import subprocess
import time

import net_stage
import pytest
from py_tools import in_child, need_penstock, png
from remote_tools import options

penstock = need_penstock()
EXPORT = ('#!/bin/sh\nprintf \'{"Version":1,"AccessKeyId":"%s","SecretAccessKey":"%s"}\' ')


class Store:
    """A scripted S3 server, with one pack in a private and in a public bucket."""

    def __init__(self, server, top):
        self.server, self.top, self.patch, self.root = server, top, None, None

    def open(self, bucket="packs", **more):
        """By what the environment says, and these options."""
        given = {"endpoint": self.server.url, "region": self.server.region, **more}
        with penstock.open(f"s3://{bucket}/a.pen", given) as pack:
            return pack[0]["image"]

    def env(self, **names):
        for name, value in names.items():
            self.patch.setenv(name, str(value))
        return self

    def with_keys(self, **more):
        return self.env(AWS_ACCESS_KEY_ID=self.server.key_id,
                        AWS_SECRET_ACCESS_KEY=self.server.secret, **more)

    def config(self, text):
        (self.top / "config").write_text(text)
        return self.env(AWS_CONFIG_FILE=self.top / "config")

    def script(self, name, text):
        path = self.top / "bin" / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)
        path.chmod(0o755)
        return path

    def aws(self):
        """What stands in for the AWS command line: it exports the keys."""
        self.script("aws", f"{EXPORT} {self.server.key_id} {self.server.secret}\n")
        return self.env(PATH=f"{self.top / 'bin'}:{os.environ['PATH']}")


def exporting(s, profile):
    command = f"aws configure export-credentials --profile {profile}"
    return s.aws().config(f"[profile p]\ncredential_process = {command}\n").open(profile="p")


def failing_process(s):
    path = s.script("give", "#!/bin/sh\necho the vault is locked >&2\nexit 3\n")
    return s.config(f"[profile p]\ncredential_process = {path}\n").open(profile="p")


def mended_process(s):
    by_hand = subprocess.run([s.top / "bin" / "give"], capture_output=True, check=False)
    assert b"the vault is locked" in by_hand.stderr
    s.script("give", f"{EXPORT} {s.server.key_id} {s.server.secret}\n")
    return s.open(profile="p")


def keys(s, **more):
    return {"key_id": s.server.key_id, "secret": s.server.secret, **more}


def expired(s):
    s.server.control(key={"id": "old", "secret": "s", "token": "t"})
    s.server.control(expire="old")
    return s.open(key_id="old", secret="s", token="t")


def away(s, seconds):
    s.server.control(outage=True)
    try:
        return s.open(**keys(s), outage=seconds)
    finally:
        s.server.control(outage=False)


def back_in_time(s):
    s.server.control(outage=1)
    return s.open(**keys(s), outage=60)


def pickled(s, **more):
    given = {"endpoint": s.server.url, "region": s.server.region, **more}
    with penstock.open("s3://packs/a.pen", given) as pack:
        text = pickle.dumps(pack)
    with pickle.loads(text) as other:
        return other[0]["image"]


def in_other_process(s, again):
    def child(pack):
        if again:
            pack = penstock.open(pack.path)
        pack[0]["image"]
    path = s.top / "local.pen"
    if not path.exists():
        penstock.write(path, [{"image": png(1)}], {"image": "image"})
    with penstock.open(path) as pack:
        os.rename(path, s.top / f"{again}.pen")
        penstock.write(path, [{"image": png(2)}], {"image": "image"})
        text = in_child(child, pack)
    if text:
        raise penstock.Error(text)


def write(s, where):
    return penstock.write(where, [{"image": png(1)}], {"image": "image"},
                          storage_options=options(s.server))


def over_tls(s, **more):
    pair = (s.top / "certificate", s.top / "key")
    subprocess.run(
        ["openssl", "req", "-x509", "-nodes", "-newkey", "ec", "-pkeyopt",
         "ec_paramgen_curve:P-256", "-days", "2", "-subj", "/CN=stage", "-addext",
         "subjectAltName=IP:127.0.0.1", "-out", pair[0], "-keyout", pair[1]],
        check=True, capture_output=True)
    with net_stage.S3Server(buckets=["packs,public"], directory=s.root, tls=pair) as server:
        return s.open(endpoint=server.url, no_sign=True, **more)


TABLE = {
    "no password in a URL": ("pass credentials with a profile or the AWS_ variables",
        lambda s: penstock.open("s3://me:word@packs/a.pen"), lambda s: s.with_keys().open()),
    "no signed URL": ("pass credentials with a profile or the AWS_ variables",
        lambda s: penstock.open("https://h/a.pen?X-Amz-Signature=1"),
        lambda s: s.with_keys().open()),
    "both keys": ("AWS_SECRET_ACCESS_KEY is not; set both or neither",
        lambda s: s.env(AWS_ACCESS_KEY_ID="x").open(), lambda s: s.with_keys().open()),
    "a token and a role": ("AWS_ROLE_ARN is not; set both or neither",
        lambda s: s.env(AWS_WEB_IDENTITY_TOKEN_FILE=s.top / "t").open(),
        lambda s: s.patch.delenv("AWS_WEB_IDENTITY_TOKEN_FILE") or s.with_keys().open()),
    "by hand": ("failed with exit code %d; run the command by hand to see why",
        failing_process, mended_process),
    "a code is needed": ("use a profile with credential_process = aws configure export-credentials",
        lambda s: s.config("[profile m]\nrole_arn = arn:aws:iam::1:role/r\nsource_profile = m\n"
                           "mfa_serial = x\naws_access_key_id = x\n"
                           "aws_secret_access_key = y\n").open(profile="m"),
        lambda s: exporting(s, "m")),
    "a browser is needed": ("use a profile with credential_process = aws configure export-",
        lambda s: s.config("[profile b]\nsso_session = x\nsso_account_id = 1\n"
                           "sso_role_name = r\n").open(profile="b"),
        lambda s: exporting(s, "b")),
    "public data": ("for public data pass --no-sign (Python: no_sign=True)",
        lambda s: s.open("free"), lambda s: s.open("free", no_sign=True)),
    "new credentials": ("have expired; pass new ones",
        expired, lambda s: s.open(**keys(s))),
    "a callback": ("or a callback that returns them", expired,
        lambda s: s.open(credentials=lambda: (s.server.key_id, s.server.secret))),
    "the server is back": ("check the server, or allow more time (Python: outage)",
        lambda s: away(s, 0.3), lambda s: s.open(**keys(s))),
    "more time": ("or allow more time (Python: outage)", lambda s: away(s, 0.3), back_in_time),
    "the server's URL": ("check the network and the server's URL",
        lambda s: s.open(**keys(s), endpoint="http://127.0.0.1:1", outage=0.3),
        lambda s: s.open(**keys(s))),
    "other credentials": ("check the secret access key and the endpoint",
        lambda s: s.open(key_id=s.server.key_id, secret="wrong"), lambda s: s.open(**keys(s))),
    "a name for one object": ("check the bucket name and the endpoint",
        lambda s: s.open("none", **keys(s)), lambda s: s.open(**keys(s))),
    "a CA bundle": ("check the host name and the clock, or pass the right CA bundle",
        lambda s: over_tls(s), lambda s: over_tls(s, ca_file=s.top / "certificate")),
    "one of two options": ("are mutually exclusive; pass one",
        lambda s: s.open(**keys(s), no_sign=True), lambda s: s.open("free", no_sign=True)),
    "pickled without keys": ("or the AWS_ environment variables",
        lambda s: pickled(s, **keys(s)), lambda s: pickled(s.with_keys())),
    "pickled with a profile": ("use a profile (storage_options={'profile': ...})",
        lambda s: pickled(s, **keys(s)),
        lambda s: pickled(s.config(f"[profile p]\naws_access_key_id = {s.server.key_id}\n"
                                   f"aws_secret_access_key = {s.server.secret}\n"), profile="p")),
    "write to s3": ("packs can only be read over http(s); write to s3:// or a directory",
        lambda s: write(s, "http://127.0.0.1:1/w.pen"),
        lambda s: write(s, f"s3://packs/w{time.monotonic_ns()}.pen")),
    "write to a directory": ("write to s3:// or a directory",
        lambda s: write(s, "http://127.0.0.1:1/w.pen"),
        lambda s: penstock.write(s.top / "w.pen", [{"image": png(1)}], {"image": "image"})),
    "open it again": ("the pack was replaced after the parent process opened it; open it again",
        lambda s: in_other_process(s, False), lambda s: in_other_process(s, True)),
}


@pytest.fixture(scope="module")
def served(s3, tmp_path_factory):
    root = tmp_path_factory.mktemp("advice")
    for bucket in ("packs", "free"):
        (root / bucket).mkdir()
        penstock.write(root / bucket / "a.pen", [{"image": png(1)}], {"image": "image"})
    return s3(["packs", "free,public"], directory=root), root


@pytest.fixture
def store(served, no_other_settings, tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    made = Store(served[0], tmp_path)
    made.patch, made.root = monkeypatch, served[1]
    return made


@pytest.mark.parametrize("row", TABLE)
def test_the_advice_works(store, row):
    advice, wrong, right = TABLE[row]
    with pytest.raises((penstock.Error, TypeError)) as error:
        wrong(store)
    assert all(part in str(error.value) for part in advice.split("%d")), error.value
    right(store)
