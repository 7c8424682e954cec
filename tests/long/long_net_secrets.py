# SPDX-License-Identifier: Apache-2.0
"""Secrets stay where they are: canaries as keys, and a search for them in all that leaves.

Verbs of the program, the Python package and the reader program run with an access key, a secret and
a session token that are looked for afterwards, any 10 characters in a row of them: in what was
printed, in command lines, in messages, representations, pickles and states, in packs, work
directories and caches, and in what a core dump holds. Some servers send back what they were sent.
"""

import contextlib
import os
import pathlib
import pickle
import shutil
import subprocess
import sys
import time

import numpy as np
from _net import environment, make_pack, net_stage, read, reader_command
from _package import Tests, encoded, painted, penstock, scaled, write_pack
from _program import BIN, scratch
from bad_behaviours import BEHAVIOURS
from bad_server import BadServer

KEY_ID = "CANARYKEY4K7QX2ZB5RT"
SECRET = "canarySecretv8Rk3nWq0Lz7Yp2Hd6Fs1Gt9Jb5Mx"
TOKEN = "canaryToken" + "Zq7Wn3Xv9Rk1Bt5Lm8Hd2Fp6" * 8
WINDOW = 10
KEYS = {"AWS_ACCESS_KEY_ID": KEY_ID, "AWS_SECRET_ACCESS_KEY": SECRET, "AWS_SESSION_TOKEN": TOKEN}


def windows(text):
    data = text.encode()
    return {data[i : i + WINDOW] for i in range(len(data) - WINDOW + 1)}


CANARIES = {"key id": windows(KEY_ID), "secret": windows(SECRET), "token": windows(TOKEN)}


def found_in(data):
    """The names of the canaries that are in it."""
    return [name for name, parts in CANARIES.items() if any(part in data for part in parts)]


class Search:
    def __init__(self):
        self.n = self.bytes = 0

    def look(self, where, data):
        data = data.encode() if isinstance(data, str) else data
        self.n += 1
        self.bytes += len(data)
        found = found_in(data)
        if found:
            at = min(data.find(part) for name in found for part in CANARIES[name] if part in data)
            around = data[max(0, at - 200) : at + 60]
            raise AssertionError(f"{where}: {', '.join(found)}: {around!r}")

    def look_below(self, top):
        for path in sorted(pathlib.Path(top).rglob("*")):
            if path.is_file() and not path.is_symlink():
                self.look(path, path.read_bytes())

    def look_at_process(self, where, command, env, interrupt=None):
        """All that it prints, and its command line. interrupt: SIGINT after so many seconds."""
        child = subprocess.Popen(command, env=env, stdin=subprocess.DEVNULL,
                                 stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        with contextlib.suppress(OSError):
            line = pathlib.Path(f"/proc/{child.pid}/cmdline").read_bytes()
            self.look(f"{where}: command line", line)
        if interrupt:
            with contextlib.suppress(subprocess.TimeoutExpired):
                child.wait(interrupt)
            with contextlib.suppress(ProcessLookupError):
                child.send_signal(2)
        out, err = child.communicate(timeout=120)
        self.look(f"{where}: output", out)
        self.look(f"{where}: errors", err)
        return child.returncode, out + err

    def __str__(self):
        return f"{self.n} places, {self.bytes} bytes"


def check_search():
    """The search itself finds what it looks for."""
    search = Search()
    for text in (KEY_ID, SECRET[5:15], f"x{TOKEN[20:40]}y"):
        try:
            search.look("text", text)
        except AssertionError:
            continue
        raise AssertionError(f"{text} was not found")
    search.look("text", SECRET[:9] + " " + TOKEN[3:12])
    return "4 texts"


# ---- the program, with a server that is as it should be


def check_verbs(top):
    home, search = f"{top}/home", Search()
    os.makedirs(home)
    with net_stage.S3Server(buckets=("bucket",), keys=(f"{KEY_ID}:{SECRET}:{TOKEN}",)) as server:
        env = environment(**server.env, HOME=home, XDG_CACHE_HOME=f"{home}/cache")
        s3 = "s3://bucket/pictures.pen"
        verbs = (
            (0, "pack", f"{top}/files", "-o", s3, "--json"),
            (1, "pack", f"{top}/files", "-o", s3),
            (0, "info", s3), (0, "info", s3, "--json"), (0, "verify", s3),
            (0, "extract", s3, "-o", f"{top}/extracted"),
            (0, "copy", s3, f"{top}/copied.pen"), (0, "copy", f"{top}/copied.pen", "s3://bucket/2.pen"),
            (0, "gc", s3), (1, "info", "s3://bucket/nothing.pen"), (1, "info", "s3://absent/x"),
        )
        for expected, *words in verbs:
            code, text = search.look_at_process(" ".join(words), [BIN, *words], env)
            assert code == expected, f"{words}: exit {code}: {text.decode()}"
        for key in server.counts()["keys"]:
            search.look("the name of an object", key)
        wrong = {**env, "AWS_SECRET_ACCESS_KEY": SECRET + "x"}
        for words in (("info", s3), ("verify", s3), ("pack", f"{top}/files", "-o", "s3://bucket/3.pen")):
            code, text = search.look_at_process(f"wrong secret, {words}", [BIN, *words], wrong)
            assert code == 1 and b" 403" in text, text.decode()
    for place in ("home", "extracted", "copied.pen"):
        search.look_below(f"{top}/{place}")
    return str(search)


# ---- servers that send back what they were sent


def echoes():
    names = [name for name in BEHAVIOURS if name.startswith("echo_")]
    return names if scaled(True, False) else names[::3] + ["echo_etag", "echo_header"]


def check_echo(top):
    search, statuses = Search(), {}
    with BadServer(top, tls=False) as server:
        url = f"http://127.0.0.1:{server.ports['http']}"
        env = environment(AWS_ENDPOINT_URL=url, AWS_REGION="us-east-1", HOME=top, **KEYS)
        for name in echoes():
            for first in (1, 3):
                server.forget()
                server.behave(name, "/", first)
                told = read("s3://pack.pen", env, deadline_ms=1000, outage_ms=300)
                assert told.status not in ("OK", "CRASHED"), f"{name}: {told.said}"
                search.look(f"{name} from {first}", told.message)
                statuses[told.status] = statuses.get(told.status, 0) + 1
        for name in ("echo_403_token", "echo_404_key", "echo_200_token", "echo_301_token"):
            server.forget()
            server.behave(name, "/")
            for words in (("info", "s3://pack.pen"), ("gc", "s3://pack.pen"),
                          ("copy", f"{top}/pictures.pen", "s3://pack.pen/x")):
                search.look_at_process(f"{name}: {words}", [BIN, *words], env, interrupt=2)
    return f"{search}; " + ", ".join(f"{n} {s}" for s, n in sorted(statuses.items()))


# ---- the package


def pickled(thing):
    try:
        return pickle.dumps(thing)
    except (TypeError, penstock.Error) as error:  # it need not be possible
        return repr(error)


def check_python(top):
    search = Search()
    with net_stage.S3Server(directory=f"{top}/store",
                            keys=(f"{KEY_ID}:{SECRET}:{TOKEN}",)) as server:
        options = {"endpoint": server.url, "region": "us-east-1", "key_id": KEY_ID,
                   "secret": SECRET, "token": TOKEN, "deadline": 2, "outage": 2}
        with penstock.open("s3://bucket/pictures.pen", storage_options=options) as pack:
            search.look("repr", repr(pack) + str(pack))
            search.look("pickle", pickled(pack))
            loader = penstock.Loader(pack, 8, output="numpy", pipeline="label: tensor")
            next(iter(loader))
            search.look("repr of a loader", repr(loader))
            search.look("state", repr(loader.state_dict()) + str(pickle.dumps(loader.state_dict())))
            search.look("pickle of a loader", pickled(loader))
            loader.close()
        for change in ({"secret": SECRET + "x"}, {"token": TOKEN + "x"}, {"key_id": KEY_ID + "x"},
                       {"secret": SECRET + "\n"}, {"region": 5}, {"unknown": SECRET}):
            try:
                penstock.open("s3://bucket/pictures.pen", storage_options={**options, **change})
                raise AssertionError(f"{list(change)}: was taken")
            except (penstock.Error, TypeError, ValueError) as error:
                search.look(f"error of {list(change)}", repr(error) + str(error))
    return str(search)


# ---- a core dump


def check_core(top):
    if not shutil.which("gcore"):
        return "skipped: gcore is not installed"
    keys = f"{top}/credentials"
    pathlib.Path(keys).write_text(
        f"[default]\naws_access_key_id = {KEY_ID}\naws_secret_access_key = {SECRET}\n"
        f"aws_session_token = {TOKEN}\n")
    with net_stage.S3Server(directory=f"{top}/store",
                            keys=(f"{KEY_ID}:{SECRET}:{TOKEN}",)) as server:
        env = environment(AWS_ENDPOINT_URL=server.url, AWS_REGION="us-east-1",
                          AWS_SHARED_CREDENTIALS_FILE=keys)
        child = subprocess.Popen(reader_command("s3://bucket/pack.pen", step=1), env=env, text=True,
                                 stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        for _ in range(20):
            child.stdin.write("\n")
            child.stdin.flush()
            assert child.stdout.readline().startswith("sample"), "the reader does not read"
        done = subprocess.run(["gcore", "-o", f"{top}/core", str(child.pid)], capture_output=True,
                              check=False)
        child.kill()
        child.wait()
    core = pathlib.Path(f"{top}/core.{child.pid}")
    if not core.exists():
        return f"skipped: gcore: {done.stderr.decode('utf-8', 'replace').strip()[-100:]}"
    data = core.read_bytes()
    core.unlink()
    assert b"s3://bucket/pack.pen" in data, "the dump is not of the reader's memory"
    found = [name for name, text in (("key id", KEY_ID), ("token", TOKEN)) if text.encode() in data]
    for i in range(0, len(SECRET) - WINDOW, WINDOW):
        assert SECRET[i : i + WINDOW].encode() not in data, "the secret is in the dump"
    return f"{len(data) >> 20} MiB: no secret; {', '.join(found) or 'nothing else either'} in it"


def main():
    tests = Tests("secrets")
    began = time.monotonic()
    with scratch() as top:
        rng = np.random.default_rng(3)
        pictures = [encoded(painted(rng, 48, 48)) for _ in range(64)]
        write_pack(f"{top}/pictures.pen", pictures, block_samples=8, shard_size=200000).close()
        os.makedirs(f"{top}/files/a")
        for i, data in enumerate(pictures):
            pathlib.Path(f"{top}/files/a/{i}.png").write_bytes(data)
        make_pack(f"{top}/pack.pen")
        for name in ("pack.pen", "pictures.pen"):
            shutil.copytree(f"{top}/{name}", f"{top}/store/bucket/{name}")
        tests.run("the search", check_search)
        tests.run("verbs", check_verbs, top)
        tests.run("servers that send back what they were sent", check_echo, top)
        tests.run("the Python package", check_python, top)
        tests.run("a core dump", check_core, top)
    print(f"secrets: all in {time.monotonic() - began:.1f} s")
    return tests.end()


if __name__ == "__main__":
    sys.exit(main())
