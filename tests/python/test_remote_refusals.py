# SPDX-License-Identifier: Apache-2.0
"""Answers of a store that are well-formed and wrong, one at a time, and what is said of them."""

import contextlib
import http.server
import pathlib
import random
import threading

import net_stage
import pytest
from cli_tools import good, make_folder, run

STARTED = b"<InitiateMultipartUploadResult><UploadId>u1</UploadId></InitiateMultipartUploadResult>"
JOINED = b'<CompleteMultipartUploadResult><ETag>"e"</ETag></CompleteMultipartUploadResult>'


def refused(code):
    return 200, {}, f"<Error><Code>{code}</Code></Error>".encode()


class Store(http.server.BaseHTTPRequestHandler):
    """Serves `root`, takes every upload, and answers as `odd` (by kind of request) says."""

    protocol_version = "HTTP/1.1"
    root, odd = None, {}

    def kind(self):
        path, _, query = self.path.partition("?")
        if self.command == "GET":
            ranged = self.headers.get("Range", "")
            return "list" if "list-type" in query else "tail" if "=-" in ranged else "read"
        if self.command == "POST":
            return "start" if "uploads=" in query else "join"
        if self.command == "HEAD":
            return "head-shard" if path.endswith(".shard") else "head"
        return {"PUT": "part", "DELETE": "delete"}[self.command]

    def usual(self, kind):
        if kind in ("start", "join", "part", "delete"):
            body = {"start": STARTED, "join": JOINED}.get(kind, b"")
            return 200, {"ETag": '"e"'}, body
        file = pathlib.Path(self.root, *self.path.partition("?")[0].split("/")[2:])
        if not file.is_file():
            return 404, {}, b""
        data = file.read_bytes()
        if kind not in ("tail", "read"):
            return 200, {"ETag": '"e"'}, data
        first, _, last = self.headers["Range"].removeprefix("bytes=").partition("-")
        begin = int(first) if first else max(0, len(data) - int(last))
        part = data[begin:int(last) + 1 if first else None]
        where = f"bytes {begin}-{begin + len(part) - 1}/{len(data)}"
        return 206, {"ETag": '"e"', "Content-Range": where}, part

    def answer(self):
        self.rfile.read(int(self.headers.get("Content-Length", 0)))
        kind = self.kind()
        found = self.usual(kind)
        status, headers, body = self.odd[kind](*found) if kind in self.odd else found
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        if headers.get("Connection") != "close":
            self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    do_GET = do_HEAD = do_PUT = do_POST = do_DELETE = answer

    def log_message(self, *_):
        pass


@contextlib.contextmanager
def store(root, **odd):
    handler = type("Odd", (Store,), {"root": root, "odd": odd})
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
    threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}"
    finally:
        server.shutdown()
        server.server_close()


@pytest.fixture(scope="module")
def pack(tmp_path_factory):
    root = tmp_path_factory.mktemp("refusals")
    # More than the end of a shard that comes with its size.
    good("pack", make_folder(root / "src", each=20), "-o", root / "set.pen", "--mode", "raw",
         "--block-samples", "4")
    return root


def env_of(tmp_path, **more):
    return {**net_stage.clean_environment(), "HOME": str(tmp_path), **more}


def said(tmp_path, url, *args):
    result = run(*args, "--endpoint", url, "--no-sign", env=env_of(tmp_path))
    assert result.code == 1, (result.code, result.out, result.err)
    return result.err.splitlines()[0].removeprefix("penstock: ")  # extract goes on to the next one


WRITING = {
    "cannot start an upload: the server returned SomeCode": {
        "start": lambda *_: refused("SomeCode")},
    "expected an ETag for part 1, found none": {"part": lambda *_: (200, {}, b"")},
    "cannot complete the upload: the server returned SomeCode": {
        "join": lambda *_: refused("SomeCode")},
    "after the upload, found 7": {"head-shard": lambda *_: (200, {"ETag": '"e"'}, b"1234567")},
    "found no Content-Length": {"head": lambda *_: (200, {"Connection": "close"}, b"")},
}


@pytest.mark.parametrize("message", WRITING)
def test_a_store_that_takes_a_pack_wrongly(pack, tmp_path, message):
    with store(tmp_path, **WRITING[message]) as url:
        text = said(tmp_path, url, "pack", pack / "src", "-o", "s3://bucket/new.pen")
    assert message in text and text.startswith("s3://bucket/new.pen"), text


def other_bytes(status, headers, body):
    return status, headers, random.randbytes(len(body))


READING = {
    "no bytes for the end of an object of 10 bytes": {
        "tail": lambda *_: (416, {}, b""), "head": lambda *_: (200, {}, b"0123456789")},
    "expected a range of the object (206), found all of it (200)": {
        "read": lambda status, headers, body: (200, {"ETag": '"e"'}, body)},
    "reads returned different bytes": {"read": other_bytes},
    "it was overwritten": {
        "read": lambda status, headers, body: (status, {**headers, "ETag": '"f"'}, body)},
}


@pytest.mark.parametrize("message", READING)
def test_a_store_that_gives_a_pack_wrongly(pack, tmp_path, message):
    with store(pack, **READING[message]) as url:
        text = said(tmp_path, url, "extract", "s3://bucket/set.pen", "-o", tmp_path / "out")
    assert message in text and "s3://bucket/set.pen" in text, text


def test_a_list_that_is_refused(pack, tmp_path):
    with store(pack, list=lambda *_: refused("SomeCode")) as url:
        text = said(tmp_path, url, "gc", "s3://bucket/set.pen")
    assert text == "s3://bucket/set.pen: cannot list it: the server returned SomeCode"


def test_places_that_cannot_be(pack, tmp_path):
    env = env_of(tmp_path, AWS_ACCESS_KEY_ID="k", AWS_SECRET_ACCESS_KEY="s")
    far = run("info", "s3://bucket/set.pen", "--endpoint", "http://example.invalid", env=env)
    assert "refusing to send a signed request over http to example.invalid; use https" in \
        far.message()
    with store(pack) as url:
        text = run("pack", pack / "src", "-o", f"{url}/b/x.pen", env=env).message()
    assert "packs can only be read over http(s); write to s3://" in text
    homeless = {k: v for k, v in env.items() if k not in ("HOME", "XDG_CACHE_HOME")}
    text = run("pack", pack / "src", "-o", "s3://bucket/x.pen", env=homeless).message()
    assert "neither HOME nor XDG_CACHE_HOME is set; pass one with --work" in text
