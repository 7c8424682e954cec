# SPDX-License-Identifier: Apache-2.0
"""Connections, requests and answers of the server that misbehaves, as raw as it needs them."""

import email.utils
import os
import socket
import ssl
import struct
import time
import urllib.parse

HOLD = 60.0  # seconds a stall lasts at most


class Gone(Exception):
    """The client went away, or the server is being stopped."""


class Wire:
    """A connection: bytes in and out, and the ways it can end."""

    def __init__(self, sock):
        self.sock = sock
        self.number = 0
        self.requests = 0
        self.pending = b""

    def recv(self, most=1 << 20):
        try:
            data = self.sock.recv(most)
        except OSError as e:
            raise Gone from e
        if not data:
            raise Gone
        return data

    def send(self, data):
        try:
            self.sock.sendall(data)
        except OSError as e:
            raise Gone from e

    def send_file(self, file, offset, count):
        while count:
            try:
                n = os.sendfile(self.sock.fileno(), file.fileno(), offset, count)
            except OSError as e:
                raise Gone from e
            if not n:
                raise Gone
            offset, count = offset + n, count - n

    def reset(self):
        """Ends it by RST: unread and unsent bytes are thrown away."""
        self.sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.sock.close()

    def hold(self, seconds=HOLD):
        """Says nothing until the client has gone."""
        end = time.monotonic() + seconds
        self.sock.settimeout(0.25)
        while time.monotonic() < end:
            try:
                if not self.sock.recv(4096):
                    return
            except TimeoutError:
                continue
            except OSError:
                return

    def is_closed(self):
        """Has the client reset it? Told without reading."""
        state = self.sock.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 1)[0]
        return state not in (1, 3)  # established, being set up

    def close(self):
        try:
            self.sock.shutdown(socket.SHUT_WR)
        except OSError:
            pass
        self.sock.close()


class TlsWire(Wire):
    """TLS over buffers of our own, so that a broken record can be fed to it."""

    def __init__(self, sock, context):
        super().__init__(sock)
        self.inward, self.outward = ssl.MemoryBIO(), ssl.MemoryBIO()
        self.tls = context.wrap_bio(self.inward, self.outward, server_side=True)
        self._step(self.tls.do_handshake)

    def _flush(self):
        if self.outward.pending:
            Wire.send(self, self.outward.read())

    def _step(self, call, *args):
        while True:
            try:
                result = call(*args)
                self._flush()
                return result
            except ssl.SSLWantReadError:
                self._flush()
                self.inward.write(Wire.recv(self))
            except ssl.SSLError as e:
                self._flush()
                raise Gone from e

    def recv(self, most=1 << 16):
        data = self._step(self.tls.read, most)
        if not data:
            raise Gone
        return data

    def send(self, data):
        view = memoryview(data)
        while view:
            view = view[self._step(self.tls.write, view[: 1 << 18]) :]

    def send_file(self, file, offset, count):
        self.send(os.pread(file.fileno(), count, offset))

    def alert(self):
        """A true fatal alert: ours answers a record that nobody sent."""
        self.inward.write(b"\x17\x03\x03\x00\x20" + bytes(32))
        try:
            self.tls.read(1)
        except ssl.SSLError:
            pass
        self._flush()


class Request:
    def __init__(self, head, wire):
        lines = head.decode("latin-1").split("\r\n")
        self.head = head
        self.method, self.target, _ = lines[0].split(" ", 2)
        self.headers = {}
        for line in lines[1:]:
            name, _, value = line.partition(":")
            self.headers[name.strip().lower()] = value.strip()
        path, _, query = self.target.partition("?")
        self.path = urllib.parse.unquote(path)
        self.query = dict(urllib.parse.parse_qsl(query, keep_blank_values=True))
        self.length = int(self.headers.get("content-length", 0))
        self.body = b""
        self.wire = wire


class Answer:
    """`body` is bytes, or (open file, offset, count)."""

    def __init__(self, status, headers=(), body=b""):
        self.status = status
        self.headers = list(headers)
        self.body = body

    def size(self):
        return self.body[2] if isinstance(self.body, tuple) else len(self.body)

    def bytes(self):
        if isinstance(self.body, tuple):
            file, offset, count = self.body
            return os.pread(file.fileno(), count, offset)
        return self.body

    def get(self, name):
        return next((v for n, v in self.headers if n.lower() == name.lower()), None)

    def put(self, name, value):
        """Replaces a header; None removes it."""
        self.headers = [(n, v) for n, v in self.headers if n.lower() != name.lower()]
        if value is not None:
            self.headers.append((name, value))

    def head(self, length=True):
        lines = [f"HTTP/1.1 {self.status} {REASONS.get(self.status, 'Status')}"]
        headers = list(self.headers)
        if length and not self.get("Content-Length"):
            headers.append(("Content-Length", str(self.size())))
        lines += [f"{n}: {v}" for n, v in headers]
        return ("\r\n".join(lines) + "\r\n\r\n").encode("latin-1")


REASONS = {200: "OK", 206: "Partial Content", 404: "Not Found", 503: "Slow Down"}


def base_headers():
    return [("Date", email.utils.formatdate(usegmt=True)), ("Server", "bad_server")]
