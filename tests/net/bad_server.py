#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A web server that misbehaves on request: loopback only, the standard library alone.

    bad_server.py --root DIR [--no-tls] [--seconds N]

prints one line "name port" for each of its ports and "ca FILE", then "ready", and ends when its
input is closed or the time is over. A path is answered rightly from the files under DIR: ranges,
ETag, If-Match, PUT, DELETE. What is wrong is chosen by the path,

    /behave/NAME/FIRST/rest        from the FIRST request (1, 2, ...) for this path on, for ever
    /behave/NAME/FIRST-LAST/rest   for these alone

or, for paths that cannot say it, by POST /_behave?name=NAME&first=1&last=3&path=/prefix (the newest
that fits counts; /_reset forgets all). GET /_stats tells what was asked for, /_echo sends the
request back. NAME is a function of bad_behaviours.py; what goes wrong before a request can be sent
has a port of its own: refused, black_hole, tls_...

In a Python test: subclass BadServer, override `right`, use it as a context manager.
"""

import argparse
import json
import os
import pathlib
import shutil
import socket
import ssl
import subprocess
import sys
import tempfile
import threading

from bad_behaviours import BEFORE_BODY, BEHAVIOURS, give
from bad_wire import Answer, Gone, Request, TlsWire, Wire, base_headers

PORTS_TLS = ("https", "tls_wrong_host", "tls_expired", "tls_untrusted")


def parse_range(text, size):
    """(first, last) or None when it cannot be had."""
    first, _, last = text.partition("=")[2].partition("-")
    if not first:
        first, last = max(0, size - int(last)), size - 1
    else:
        first, last = int(first), min(int(last), size - 1) if last else size - 1
    return (first, last) if first <= last else None


class BadServer:
    def __init__(self, root, tls=True):
        self.root = pathlib.Path(root).resolve()
        self.tls = tls and shutil.which("openssl") is not None
        self.ports = {}
        self.ca = None
        self.stopping = threading.Event()
        self.lock = threading.Lock()
        self.sockets = []
        self.wires = set()
        self.contexts = {}  # of TLS, by the port's name
        self.forget()

    # --- what is right; to be overridden

    def right(self, q):
        path = (self.root / q.path.lstrip("/")).resolve()
        if not path.is_relative_to(self.root):
            return Answer(403, base_headers())
        if q.method == "PUT":
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(q.body)
            return Answer(200, base_headers() + [("ETag", self.etag(path))])
        if not path.is_file():
            return Answer(404, base_headers(), b"<Error><Code>NoSuchKey</Code></Error>")
        if q.method == "DELETE":
            path.unlink()
            return Answer(204, base_headers())
        return self.right_file(q, path)

    def etag(self, path):
        st = path.stat()
        return f'"{st.st_size:x}-{st.st_mtime_ns:x}"'

    def right_file(self, q, path):
        size, etag = path.stat().st_size, self.etag(path)
        headers = base_headers() + [("ETag", etag), ("Accept-Ranges", "bytes")]
        headers.append(("Content-Type", "application/octet-stream"))
        if q.headers.get("if-match", etag) not in (etag, "*"):
            return Answer(412, headers)
        file = open(path, "rb")  # closed with the answer
        if "range" not in q.headers:
            return Answer(200, headers, (file, 0, size))
        got = parse_range(q.headers["range"], size)
        if not got:
            return Answer(416, headers + [("Content-Range", f"bytes */{size}")])
        headers.append(("Content-Range", f"bytes {got[0]}-{got[1]}/{size}"))
        return Answer(206, headers, (file, got[0], got[1] - got[0] + 1))

    # --- who gets what

    def forget(self):
        with self.lock:
            self.plans = []
            self.counts = {}
            self.n_connections = self.n_requests = 0
            self.trapped = self.left_over = 0
            self.log = []

    def choose(self, q):
        """The behaviour's name for this request, or None; takes /behave/.../ off the path."""
        name = first = last = None
        key = q.path
        if q.path.startswith("/behave/"):
            _, _, name, numbers, rest = (q.path + "/").split("/", 4)
            first, _, last = numbers.partition("-")
            first, last = int(first), int(last) if last else None
            q.path = "/" + rest.rstrip("/")
        with self.lock:
            for plan in reversed(self.plans):
                if name is None and q.path.startswith(plan["path"]):
                    name, first, last = plan["name"], plan["first"], plan["last"]
                    key = ("plan", plan["number"])
                    break
            n = self.counts[key] = self.counts.get(key, 0) + 1
            self.n_requests += 1
            if len(self.log) < 100000:
                self.log.append((q.method, q.path))
        if name is None or n < first or (last is not None and n > last):
            return None
        return name

    def control(self, q):
        """The answer to a path that begins with /_, or None."""
        if q.path == "/_stats":
            with self.lock:
                stats = {
                    "connections": self.n_connections,
                    "requests": self.n_requests,
                    "trapped": self.trapped,
                    "left_over": self.left_over,
                    "open": len(self.wires),
                }
                if "log" in q.query:
                    stats["log"] = self.log
            return Answer(200, base_headers(), json.dumps(stats).encode())
        if q.path == "/_echo":
            return Answer(200, base_headers(), q.head + b"\r\n\r\n" + q.body)
        if q.path == "/_reset":
            self.forget()
        elif q.path == "/_behave":
            self.behave(q.query["name"], q.query.get("path", "/"), **numbers_of(q.query))
        elif q.path == "/_trap":
            self.trapped += 1
        else:
            return None
        return Answer(200, base_headers())

    def behave(self, name, path="/", first=1, last=None):
        """Misbehave for requests first..last (None: for ever) of those whose path begins so."""
        if name not in BEHAVIOURS:
            raise KeyError(name)
        with self.lock:
            number = len(self.plans)
            self.plans.append(
                {"name": name, "path": path, "first": first, "last": last, "number": number}
            )

    # --- connections

    def read_head(self, w):
        data = w.pending
        while b"\r\n\r\n" not in data:
            if len(data) > 65536:
                raise Gone
            data += w.recv(4096)  # little, so that a body can be left where it is
        head, _, w.pending = data.partition(b"\r\n\r\n")
        return Request(head, w)

    def read_body(self, w, q):
        parts, n = [w.pending[: q.length]], len(w.pending)
        w.pending = w.pending[q.length :]
        while n < q.length:
            part = w.recv()
            n += len(part)
            if n > q.length:
                cut = len(part) - (n - q.length)
                part, w.pending = part[:cut], part[cut:]
            parts.append(part)
        q.body = b"".join(parts)

    def serve_one(self, w):
        q = self.read_head(w)
        w.requests += 1
        control = q.path.startswith("/_")
        name = None if control else self.choose(q)
        if name in BEFORE_BODY:
            return BEHAVIOURS[name](w, q, None)
        self.read_body(w, q)
        answer = self.control(q) if control else self.right(q)
        if answer is None:
            answer = Answer(404, base_headers())
        try:
            call = BEHAVIOURS.get(name, give) if name else give
            keep = call(w, q, answer)
        finally:
            if isinstance(answer.body, tuple):
                answer.body[0].close()
        return keep and q.headers.get("connection", "").lower() != "close"

    def serve(self, sock, context):
        w = None
        try:
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            w = TlsWire(sock, context) if context else Wire(sock)
            w.server = self
            with self.lock:
                self.n_connections += 1
                w.number = self.n_connections
                self.wires.add(w)
            while not self.stopping.is_set() and self.serve_one(w):
                pass
            w.close()
        except (Gone, OSError, ValueError, KeyError):
            sock.close()
        finally:
            with self.lock:
                self.wires.discard(w)

    def accept(self, listener, context):
        while not self.stopping.is_set():
            try:
                sock, _ = listener.accept()
            except OSError:
                return
            self.thread(self.serve, sock, context)

    def accept_and_hold(self, listener):
        held = []
        while not self.stopping.is_set():
            try:
                held.append(listener.accept())
            except OSError:
                return

    # --- starting and stopping

    def thread(self, call, *args):
        threading.Thread(target=call, args=args, daemon=True).start()

    def listen(self, name, backlog=512):
        s = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
        s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        s.bind(("127.0.0.1", 0))
        if backlog is not None:
            s.listen(backlog)
        self.sockets.append(s)
        self.ports[name] = s.getsockname()[1]
        return s

    def start_black_hole(self):
        """A full queue that nobody empties: further packets that ask for a connection get lost."""
        s = self.listen("black_hole", 0)
        for _ in range(3):
            c = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
            c.setblocking(False)
            c.connect_ex(s.getsockname())
            self.sockets.append(c)

    def certificate(self, name, subject, is_over):
        """Its own issuer: trusted when it is in the list."""
        key, cert = self.dir / f"{name}.key", self.dir / f"{name}.pem"
        openssl(
            ["req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes"]
            + ["-keyout", key, "-out", cert, "-days", "2", "-subj", f"/CN={name}"]
            + ["-addext", f"subjectAltName={subject}"]
        )
        if is_over:
            openssl(["x509", "-in", cert, "-signkey", key, "-days", "-1", "-out", cert])
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(cert, key)
        return context, cert.read_text()

    def start_tls(self):
        self.dir = pathlib.Path(tempfile.mkdtemp(prefix="bad_server."))
        trusted = ""
        for name in PORTS_TLS:
            here = name != "tls_wrong_host"
            subject = "DNS:localhost,IP:127.0.0.1" if here else "DNS:elsewhere.test"
            context, cert = self.certificate(name, subject, name == "tls_expired")
            self.contexts[name] = context
            if name != "tls_untrusted":
                trusted += cert
            self.thread(self.accept, self.listen(name), context)
        self.ca = self.dir / "ca.pem"
        self.ca.write_text(trusted)
        self.thread(self.accept_and_hold, self.listen("tls_stall"))

    def start(self):
        self.thread(self.accept, self.listen("http"), None)
        self.listen("refused", None)  # bound, so that nobody else gets it, but not listening
        self.start_black_hole()
        if self.tls:
            self.start_tls()
        return self

    def stop(self):
        self.stopping.set()
        for s in self.sockets:
            s.close()
        if self.ca:
            shutil.rmtree(self.dir, ignore_errors=True)

    def url(self, path, port="http"):
        scheme = "http" if port in ("http", "refused", "black_hole") else "https"
        return f"{scheme}://127.0.0.1:{self.ports[port]}{path}"

    def __enter__(self):
        return self.start()

    def __exit__(self, *_):
        self.stop()


def openssl(arguments):
    subprocess.run(["openssl", *arguments], check=True, capture_output=True)


def numbers_of(query):
    return {n: int(query[n]) for n in ("first", "last") if n in query}


def main():
    parser = argparse.ArgumentParser(description="a web server that misbehaves on request")
    parser.add_argument("--root", required=True, help="the files that are served")
    parser.add_argument("--no-tls", action="store_true", help="no certificates, no TLS ports")
    parser.add_argument("--seconds", type=float, default=600, help="end after so many (600)")
    args = parser.parse_args()
    with BadServer(args.root, tls=not args.no_tls) as server:
        for name, port in server.ports.items():
            print(name, port)
        if server.ca:
            print("ca", server.ca)
        print("ready", flush=True)
        done = threading.Event()
        threading.Thread(target=lambda: (sys.stdin.read(), done.set()), daemon=True).start()
        done.wait(args.seconds)
    os._exit(0)  # threads that stall are not waited for


if __name__ == "__main__":
    main()
