# SPDX-License-Identifier: Apache-2.0
"""A read-only object store with request latency: it serves a folder by the S3 protocol.

    store_server.py FOLDER MILLISECONDS

Its first line on stdout is the port on 127.0.0.1. The bucket is `lab`; the keys are paths below the
folder. Each request waits for so many milliseconds before it is answered; requests of different
connections wait at the same time. It serves GetObject with ranges, HeadObject and ListObjectsV2.
Signatures are not checked. Objects `.zeros/N` have N zero bytes. It ends when stdin does.
"""

from __future__ import annotations

import os
import pathlib
import socket
import struct
import sys
import threading
import time
import urllib.parse
from collections.abc import Iterator
from email.utils import formatdate
from typing import NamedTuple
from xml.sax.saxutils import escape

BUCKET = "lab"
IDLE_SECONDS = 120
MOST_HEADER_BYTES = 1 << 16
ZEROS = bytes(1 << 18)
MOST_KEYS = 1000


class Bad(Exception):
    """An S3 error: status, code."""


class Request(NamedTuple):
    method: str
    target: str
    headers: dict[str, str]
    rest: bytes  # what was received behind it


class Zeros:
    """An object that is made when it is read."""

    def __init__(self, size: int) -> None:
        self.size, self.tag, self.time = size, f"zeros{size}", 0.0

    def send(self, connection: socket.socket, _offset: int, count: int) -> None:
        while count:
            part = min(count, len(ZEROS))
            connection.sendall(ZEROS[:part])
            count -= part


class File:
    def __init__(self, path: pathlib.Path) -> None:
        try:
            self.fd = os.open(path, os.O_RDONLY)
            state = os.fstat(self.fd)
        except OSError:
            raise Bad(404, "NoSuchKey") from None
        self.size, self.time = state.st_size, state.st_mtime
        self.tag = f"{state.st_size:x}-{state.st_mtime_ns:x}"

    def send(self, connection: socket.socket, offset: int, count: int) -> None:
        while count:
            sent = os.sendfile(connection.fileno(), self.fd, offset, count)
            if not sent:
                raise ConnectionError("the file is shorter than it was")
            offset, count = offset + sent, count - sent

    def __del__(self) -> None:
        if hasattr(self, "fd"):
            os.close(self.fd)


def object_of(root: pathlib.Path, key: str) -> Zeros | File:
    if key.startswith(".zeros/") and key[7:].isdecimal():
        return Zeros(int(key[7:]))
    path = (root / key).resolve()
    if not path.is_file() or ".." in key.split("/"):
        raise Bad(404, "NoSuchKey")
    return File(path)


def range_of(text: str | None, size: int) -> tuple[int, int]:
    """(first, count) of a header `Range: bytes=`; the entire object without one."""
    if not text:
        return 0, size
    first, _, last = text.removeprefix("bytes=").partition("-")
    if not first:
        count = min(int(last), size)
        return size - count, count
    start = int(first)
    end = min(int(last), size - 1) if last else size - 1
    if start > end:
        raise Bad(416, "InvalidRange")
    return start, end - start + 1


def keys_below(root: pathlib.Path, prefix: str) -> Iterator[str]:
    base = root / prefix.rpartition("/")[0]
    for folder, names, files in os.walk(base):
        names.sort()
        for name in files:
            key = os.path.relpath(os.path.join(folder, name), root)
            if key.startswith(prefix):
                yield key


def stamp(seconds: float) -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%S.000Z", time.gmtime(seconds))


def listing(root: pathlib.Path, query: dict[str, str]) -> bytes:
    if query.get("list-type") != "2" or query.get("delimiter"):
        raise Bad(501, "NotImplemented")
    after = query.get("continuation-token") or query.get("start-after", "")
    keys = [key for key in sorted(keys_below(root, query.get("prefix", ""))) if key > after]
    most = min(int(query.get("max-keys", MOST_KEYS)), MOST_KEYS)
    rows = []
    for key in keys[:most]:
        found = File(root / key)
        rows.append(f"<Contents><Key>{escape(key)}</Key><Size>{found.size}</Size>"
                    f"<ETag>&quot;{found.tag}&quot;</ETag>"
                    f"<LastModified>{stamp(found.time)}</LastModified></Contents>")
    end = "<IsTruncated>false</IsTruncated>"
    if rows and len(keys) > most:
        end = (f"<NextContinuationToken>{escape(keys[most - 1])}</NextContinuationToken>"
               "<IsTruncated>true</IsTruncated>")
    return ("<ListBucketResult xmlns='http://s3.amazonaws.com/doc/2006-03-01/'>"
            f"<Name>{BUCKET}</Name><KeyCount>{len(rows)}</KeyCount>{end}{''.join(rows)}"
            "</ListBucketResult>").encode()


def head(status: int, length: int, *lines: str) -> bytes:
    reason = {200: "OK", 206: "Partial Content"}.get(status, "Error")
    fields = [f"HTTP/1.1 {status} {reason}", f"Content-Length: {length}",
              f"Date: {formatdate(usegmt=True)}", *lines, "", ""]
    return "\r\n".join(fields).encode()


def answer(root: pathlib.Path, connection: socket.socket, request: Request) -> None:
    method, target, headers = request.method, request.target, request.headers
    path, _, query = target.partition("?")
    bucket, _, key = urllib.parse.unquote(path).lstrip("/").partition("/")
    if bucket != BUCKET:
        raise Bad(404, "NoSuchBucket")
    if method not in ("GET", "HEAD"):
        raise Bad(405, "MethodNotAllowed")
    if not key:
        body = listing(root, dict(urllib.parse.parse_qsl(query))) if method == "GET" else b""
        connection.sendall(head(200, len(body), "Content-Type: application/xml") + body)
        return
    found = object_of(root, key)
    first, count = range_of(headers.get("range"), found.size)
    lines = [f'ETag: "{found.tag}"', f"Last-Modified: {formatdate(found.time, usegmt=True)}",
             "Accept-Ranges: bytes", "Content-Type: binary/octet-stream"]
    status = 206 if headers.get("range") else 200
    if status == 206:
        lines.append(f"Content-Range: bytes {first}-{first + count - 1}/{found.size}")
    connection.sendall(head(status, count, *lines))
    if method == "GET":
        found.send(connection, first, count)


def request_of(connection: socket.socket, rest: bytes) -> Request | None:
    """The next request; None at the end of the connection."""
    while b"\r\n\r\n" not in rest:
        if len(rest) > MOST_HEADER_BYTES:
            return None
        data = connection.recv(1 << 16)
        if not data:
            return None
        rest += data
    text, _, rest = rest.partition(b"\r\n\r\n")
    first, *lines = text.decode("latin-1").split("\r\n")
    method, target, _ = first.split(" ", 2)
    pairs = (line.split(":", 1) for line in lines if ":" in line)
    headers = {name.lower(): value.strip() for name, value in pairs}
    return Request(method, target, headers, rest)


def serve(root: pathlib.Path, delay: float, connection: socket.socket) -> None:
    rest = b""
    with connection:
        for direction in (socket.SO_RCVTIMEO, socket.SO_SNDTIMEO):  # sendfile has to block
            connection.setsockopt(socket.SOL_SOCKET, direction, struct.pack("ll", IDLE_SECONDS, 0))
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        while request := request_of(connection, rest):
            rest = request.rest
            time.sleep(delay)
            try:
                answer(root, connection, request)
            except Bad as error:
                status, code = error.args
                body = f"<Error><Code>{code}</Code></Error>".encode()
                body = b"" if request.method == "HEAD" else body
                connection.sendall(head(status, len(body)) + body)
                if request.method not in ("GET", "HEAD"):
                    return  # its body was not read


def serve_quietly(root: pathlib.Path, delay: float, connection: socket.socket) -> None:
    try:
        serve(root, delay, connection)
    except Exception:  # a client that went away, or that speaks no HTTP: the others continue
        return


def main() -> None:
    root, delay = pathlib.Path(sys.argv[1]).resolve(), float(sys.argv[2]) / 1000
    listener = socket.create_server(("127.0.0.1", 0), backlog=512)
    print(listener.getsockname()[1], flush=True)

    def accept() -> None:
        while True:
            connection, _ = listener.accept()
            threading.Thread(target=serve_quietly, args=(root, delay, connection),
                             daemon=True).start()

    threading.Thread(target=accept, daemon=True).start()
    sys.stdin.read()
    os._exit(0)


if __name__ == "__main__":
    main()
