# SPDX-License-Identifier: Apache-2.0
"""HTTP/1.1 for the scripted S3 server: a request read from a connection, a reply written to it."""

import email.utils
import io
import os
import socket
import ssl
import urllib.parse
from xml.sax.saxutils import escape

HEAD_BYTES = 64 << 10
IDLE_S = 120
STALL_S = 60

REASONS = {
    200: "OK", 204: "No Content", 206: "Partial Content", 301: "Moved Permanently",
    304: "Not Modified", 400: "Bad Request", 403: "Forbidden", 404: "Not Found",
    405: "Method Not Allowed", 409: "Conflict", 411: "Length Required",
    412: "Precondition Failed", 413: "Content Too Large", 416: "Range Not Satisfiable",
    500: "Internal Server Error", 501: "Not Implemented", 502: "Bad Gateway",
    503: "Service Unavailable", 504: "Gateway Timeout",
}


class Refused(Exception):
    """An S3 error: its status, code and message; more elements of the XML; more headers."""

    def __init__(self, status, code, message, fields=(), headers=()):
        super().__init__(code)
        self.status, self.code, self.message = status, code, message
        self.fields, self.headers = tuple(fields), tuple(headers)


class Closed(Exception):
    """The connection has ended, or is to be ended."""


def xml(name, *children):
    """An element: children are elements already, or one (name, text)."""
    inside = "".join(
        c if isinstance(c, str) else f"<{c[0]}>{escape(str(c[1]))}</{c[0]}>" for c in children
    )
    return f"<{name}>{inside}</{name}>"


def document(element):
    return ('<?xml version="1.0" encoding="UTF-8"?>\n' + element).encode()


class Request:
    """Paths and queries as sent, and decoded; headers by lower-case name."""

    def __init__(self, head):
        lines = head.decode("iso-8859-1").split("\r\n")
        try:
            self.method, self.target, version = lines[0].split(" ")
        except ValueError:
            raise Refused(400, "BadRequest", "The request line cannot be read.") from None
        self.headers = {}
        for line in lines[1:]:
            name, colon, value = line.partition(":")
            name = name.lower()
            if not colon or not name or name != name.strip():
                raise Refused(400, "BadRequest", "A header cannot be read.")
            value = value.strip(" \t")
            before = self.headers.get(name)
            self.headers[name] = value if before is None else f"{before},{value}"
        target = self.target
        if not target.startswith("/"):  # absolute, as proxies get it
            parts = urllib.parse.urlsplit(target)
            target = (parts.path or "/") + ("?" + parts.query if parts.query else "")
        self.raw_path, _, raw_query = target.partition("?")
        self.path = urllib.parse.unquote(self.raw_path)
        self.query = [
            tuple(urllib.parse.unquote_plus(x) for x in pair.partition("=")[::2])
            for pair in raw_query.split("&")
            if pair
        ]
        self.arguments = dict(self.query)
        self.keep = version == "HTTP/1.1" and self.headers.get("connection", "").lower() != "close"
        self.body = b""
        self.bucket, self.key = None, ""

    def header(self, name, default=None):
        return self.headers.get(name, default)


class FilePart:
    """A stretch of a file as a body; the file is open, so that nobody can change it for another."""

    def __init__(self, fd, offset, n_bytes):
        self.file = open(fd, "rb", buffering=0)
        self.offset, self.n_bytes = offset, n_bytes

    def __len__(self):
        return self.n_bytes

    def read(self):
        return os.pread(self.file.fileno(), self.n_bytes, self.offset)


class Reply:
    def __init__(self, status=200, body=b"", headers=()):
        self.status, self.body, self.headers = status, body, list(headers)
        self.cut = None  # send only so many bytes of the body, then end the connection


class Connection:
    def __init__(self, sock, number):
        self.sock, self.number = sock, number
        self.buffer = bytearray()
        self.bytes_in = self.bytes_out = 0

    def receive(self):
        try:
            data = self.sock.recv(64 << 10)
        except OSError:
            raise Closed from None
        if not data:
            raise Closed
        self.bytes_in += len(data)
        self.buffer += data

    def read_until(self, mark, limit):
        start = 0
        while True:
            at = self.buffer.find(mark, start)
            if at >= 0:
                text = bytes(self.buffer[:at])
                del self.buffer[: at + len(mark)]
                return text
            if len(self.buffer) > limit:
                raise Refused(400, "RequestHeaderSectionTooLarge", "Too many bytes of headers.")
            start = max(0, len(self.buffer) - len(mark))
            self.receive()

    def read_exactly(self, n_bytes):
        """Straight into its place: bodies are not copied on their way."""
        body = bytearray(n_bytes)
        view = memoryview(body)
        got = min(n_bytes, len(self.buffer))
        view[:got] = self.buffer[:got]
        del self.buffer[:got]
        while got < n_bytes:
            try:
                n = self.sock.recv_into(view[got:])
            except OSError:
                raise Closed from None
            if n == 0:
                raise Closed
            got += n
            self.bytes_in += n
        return body

    def read_request(self):
        self.sock.settimeout(IDLE_S)
        while not self.buffer:
            self.receive()
        self.sock.settimeout(STALL_S)
        return Request(self.read_until(b"\r\n\r\n", HEAD_BYTES))

    def read_body(self, request, limit):
        if request.header("expect", "").lower() == "100-continue":
            self.send(b"HTTP/1.1 100 Continue\r\n\r\n")
        if request.header("transfer-encoding", "").lower() == "chunked":
            return self.read_chunked(limit)
        length = request.header("content-length")
        if length is None:
            return b""
        if not length.isdigit():
            raise Refused(400, "BadRequest", "Content-Length is not a number.")
        if int(length) > limit:
            raise Refused(400, "EntityTooLarge", "Your proposed upload is too large.")
        return self.read_exactly(int(length))

    def read_chunked(self, limit):
        body = bytearray()
        while True:
            try:
                n = int(self.read_until(b"\r\n", 1024).split(b";")[0], 16)
            except ValueError:
                raise Refused(400, "BadRequest", "A chunk's size cannot be read.") from None
            if n == 0:
                break
            if len(body) + n > limit:
                raise Refused(400, "EntityTooLarge", "Your proposed upload is too large.")
            body += self.read_exactly(n)
            self.read_until(b"\r\n", 2)
        while self.read_until(b"\r\n", HEAD_BYTES):
            pass
        return body

    def send(self, data):
        try:
            self.sock.sendall(data)
        except OSError:
            raise Closed from None
        self.bytes_out += len(data)

    def send_both(self, head, body):
        """One packet for head and body when they fit."""
        try:
            if isinstance(self.sock, ssl.SSLSocket) or not len(body):
                self.sock.sendall(head)
                self.sock.sendall(body)
            else:
                n = self.sock.sendmsg((head, body))
                if n < len(head):
                    self.sock.sendall(head[n:])
                    n = len(head)
                if n < len(head) + len(body):
                    self.sock.sendall(memoryview(body)[n - len(head) :])
        except OSError:
            raise Closed from None
        self.bytes_out += len(head) + len(body)

    def send_file(self, head, part, n_bytes):
        try:
            with part.file:
                self.sock.sendall(head)
                if n_bytes:
                    self.sock.sendfile(part.file, part.offset, n_bytes)
        except OSError:
            raise Closed from None
        self.bytes_out += len(head) + n_bytes

    def send_reply(self, request, reply, clock):
        keep = request is not None and request.keep and reply.cut is None
        names = {name.lower() for name, _ in reply.headers}
        lines = [
            f"HTTP/1.1 {reply.status} {REASONS.get(reply.status, 'Status')}",
            f"Date: {email.utils.formatdate(clock, usegmt=True)}",
            "Server: penstock-stage",
            *(f"{name}: {value}" for name, value in reply.headers),
        ]
        if reply.status not in (204, 304) and "content-length" not in names:
            lines.append(f"Content-Length: {len(reply.body)}")
        if not keep:
            lines.append("Connection: close")
        head = ("\r\n".join(lines) + "\r\n\r\n").encode("iso-8859-1", "replace")
        body = reply.body
        n_bytes = len(body) if reply.cut is None else reply.cut
        if (request is not None and request.method == "HEAD") or reply.status in (204, 304):
            body, n_bytes = b"", 0
        if isinstance(body, FilePart):
            self.send_file(head, body, n_bytes)
        else:
            self.send_both(head, memoryview(body)[:n_bytes])
        if not keep:
            raise Closed

    def reset(self):
        """An end that the client sees as a broken connection."""
        try:
            linger = b"\x01\0\0\0\0\0\0\0"  # on, 0 s
            self.sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
        except OSError:
            pass
        raise Closed


def unpack_aws_chunks(body):
    """A body in the aws-chunked encoding: its chunks as (signature, bytes), and its trailers."""
    stream, chunks, trailers = io.BytesIO(body), [], {}
    try:
        while True:
            size, _, extension = stream.readline().decode().strip().partition(";")
            n = int(size, 16)
            signature = extension.partition("chunk-signature=")[2]
            data = stream.read(n)
            if len(data) != n:
                raise ValueError
            chunks.append((signature, data))
            if n == 0:
                break
            if stream.read(2) != b"\r\n":
                raise ValueError
        for line in stream.read().decode().split("\r\n"):
            name, colon, value = line.partition(":")
            if colon:
                trailers[name.lower().strip()] = value.strip()
    except ValueError:
        raise Refused(400, "IncompleteBody", "The chunks of the body cannot be read.") from None
    return chunks, trailers
