#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A scripted S3 server on 127.0.0.1 for tests; nothing but Python's standard library.

It checks signatures, serves what a store's clients use, counts requests, and misbehaves on demand:
faults drawn from a seed, outages, silence, expired tokens, a wrong clock, other regions.
Its first line on standard output is {"port": N}.

    GET  /_counts     what was asked for: by kind, by key, by status, by second, at once (JSON)
    GET  /_log        the last requests, one by one (JSON)
    POST /_control    {"renew": true}: all as it was started; objects in memory are removed
                      {"reset": true}: the counts
                      {"outage": true|false|SECONDS} {"outage_how": "503"|"reset"}
                      {"mute": true|false|REQUESTS} {"clock": SECONDS}
                      {"chaos": "error=0.1", "seed": 1}
                      {"key": {"id", "secret", "token", "requests"}} {"expire": ID} {"remove": ID}
                      {"bucket": {"name", "region", "requester_pays", "public"}}
"""

import argparse
import collections
import json
import os
import signal
import socket
import ssl
import sys
import threading
import time

import s3_sign
from s3_chaos import Chaos
from s3_http import Closed, Connection, FilePart, Refused, Reply, document, xml
from s3_ops import OPERATIONS, kind_of
from s3_store import Bucket, Store

LOG_ENTRIES = 50000
BODY_BYTES = 1 << 30


class Counts:
    def __init__(self):
        self.lock = threading.Lock()
        self.connections = self.open = self.at_once = 0
        self.reset()

    def reset(self):
        with self.lock:
            self.start = time.monotonic()
            self.total = self.bytes_in = self.bytes_out = 0
            self.most_at_once = self.at_once
            self.kinds, self.statuses = collections.Counter(), collections.Counter()
            self.faults = collections.Counter()
            self.keys = collections.defaultdict(collections.Counter)
            self.seconds = collections.defaultdict(lambda: [0, 0])
            self.log = collections.deque(maxlen=LOG_ENTRIES)

    def connection(self, step):
        with self.lock:
            self.open += step
            if step > 0:
                self.connections += 1
                return self.connections

    def under_way(self, step):
        with self.lock:
            self.at_once += step
            self.most_at_once = max(self.most_at_once, self.at_once)

    def add(self, entry):
        """Before it is answered, so that a client that has its answer finds it counted."""
        entry["at"] = time.monotonic() - self.start
        with self.lock:
            self.total += 1
            self.kinds[entry["kind"]] += 1
            self.keys[entry["what"]][entry["kind"]] += 1
            self.statuses[str(entry["status"])] += 1
            self.faults.update(entry["faults"])
            second = self.seconds[int(entry["at"])]
            second[0] += 1
            second[1] += entry["status"] == 0 or entry["status"] >= 500
            self.log.append(entry)

    def bytes(self, received, sent):
        with self.lock:
            self.bytes_in += received
            self.bytes_out += sent

    def as_json(self):
        with self.lock:
            last = max(self.seconds, default=-1)
            return {
                "total": self.total, "kinds": self.kinds, "keys": self.keys,
                "statuses": self.statuses, "faults": self.faults,
                "seconds": [self.seconds.get(s, [0, 0]) for s in range(last + 1)],
                "bytes_in": self.bytes_in, "bytes_out": self.bytes_out,
                "connections": self.connections, "open_connections": self.open,
                "most_at_once": self.most_at_once,
            }

    def log_as_json(self):
        with self.lock:
            return list(self.log)


class Server:
    def __init__(self, options):
        self.options = options
        self.region, self.domains = options.region, options.domain
        self.need_if_match = options.need_if_match == "yes"
        self.counts = Counts()
        self.speaks = threading.Event()
        self.tls = None
        if options.tls:
            self.tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            self.tls.load_cert_chain(*options.tls)
        self.renew()

    def renew(self):
        options = self.options
        self.clock_offset = options.clock
        self.listing = {}  # how lists differ from those of S3, see list_objects
        self.store = Store(options.directory, options.conditional, options.part_min, self.clock)
        self.keys = s3_sign.Keys()
        for text in options.key:
            self.keys.add(read_key(text))
        for text in options.bucket:
            self.store.add_bucket(read_bucket(text, self.region))
        if options.directory:
            for name in sorted(os.listdir(options.directory)):
                if name not in self.store.buckets:
                    self.store.add_bucket(Bucket(name, self.region))
        self.chaos = Chaos(options.chaos, options.seed)
        self.outage_until, self.outage_how = 0.0, "503"
        self.mute_after = None  # so many more requests are answered
        self.speaks.set()
        self.counts.reset()

    def clock(self):
        return time.time() + self.clock_offset

    # --- one request ---

    def find_place(self, request):
        """Bucket and key, from the path or from the host's name."""
        host = request.header("host", "").rpartition("@")[2].lower()
        host = host.partition(":")[0]
        for domain in self.domains:
            if host.endswith("." + domain):
                request.bucket = host[: -len(domain) - 1]
                request.key = request.path[1:]
                return
        bucket, _, request.key = request.path[1:].partition("/")
        request.bucket = bucket or None

    def check_region(self, claim, bucket):
        """The region signed for has to be the bucket's; the server's own is sent on to that."""
        region = bucket.region if bucket else self.region
        if claim.service != "s3":
            raise s3_sign.malformed("The authorization header is malformed; expecting 's3'.")
        if claim.region == region:
            return
        where = [("x-amz-bucket-region", region)]
        if claim.region == self.region:
            raise Refused(
                301, "PermanentRedirect",
                "The bucket you are attempting to access must be addressed using the specified "
                "endpoint. Please send all future requests to this endpoint.",
                [("Bucket", bucket.name), ("Endpoint", f"{bucket.name}.s3.{region}.amazonaws.com")],
                where,
            )
        raise Refused(
            400, "AuthorizationHeaderMalformed",
            f"The authorization header is malformed; the region '{claim.region}' is wrong; "
            f"expecting '{region}'",
            [("Region", region)], where,
        )

    def check_rights(self, kind, claim, bucket, request):
        if claim is None:
            reads = request.method in ("GET", "HEAD")
            if bucket is None or not bucket.public or not reads:
                raise Refused(403, "AccessDenied", "Access Denied")
        elif bucket is not None and not bucket.lists and kind.startswith("List"):
            raise Refused(403, "AccessDenied", "Access Denied")
        elif bucket is not None and not bucket.may_change(request.method):
            raise Refused(403, "AccessDenied", "Access Denied")
        elif bucket is not None and bucket.requester_pays:
            if request.header("x-amz-request-payer") != "requester":
                raise Refused(403, "AccessDenied", "Access Denied: the requester has to pay.")

    def perform(self, kind, request):
        trailers = {}
        claim = s3_sign.check(self.keys, request, self.clock(), trailers)
        request.trailers = trailers
        bucket = None
        if kind not in ("ListBuckets", "CreateBucket"):
            bucket = self.store.bucket(request.bucket)
        if claim is not None:
            self.check_region(claim, bucket)
        self.check_rights(kind, claim, bucket, request)
        if kind not in OPERATIONS:
            raise Refused(501, "NotImplemented", f"{kind}: not implemented here.")
        try:
            reply = OPERATIONS[kind](self, request)
        except Refused as refused:
            if refused.code == "NoSuchKey" and not bucket.lists:
                raise Refused(403, "AccessDenied", "Access Denied") from None
            raise
        if bucket is not None and bucket.requester_pays:
            reply.headers.append(("x-amz-request-charged", "requester"))
        return reply

    def error_reply(self, refused, request, request_id):
        fields = [*refused.fields, ("Resource", request.path), ("RequestId", request_id)]
        text = xml("Error", ("Code", refused.code), ("Message", refused.message), *fields)
        status = 200 if getattr(refused, "hidden", False) else refused.status
        headers = [("Content-Type", "application/xml"), *refused.headers]
        if status == 301 and "x-amz-bucket-region" not in dict(refused.headers):
            headers.append(("x-amz-bucket-region", self.region))
        return Reply(status, document(text), headers)

    def answer(self, kind, request, faults, request_id):
        try:
            if time.monotonic() < self.outage_until:
                raise Refused(503, "ServiceUnavailable", "Service is unable to handle request.")
            if faults and "throttle" in faults:
                raise Refused(503, "SlowDown", "Please reduce your request rate.")
            if faults and "error" in faults:
                raise faults.error(kind)
            reply = self.perform(kind, request)
        except Refused as e:
            reply = self.error_reply(e, request, request_id)
        reply.headers.append(("x-amz-request-id", request_id))
        return reply

    def spoil(self, kind, faults, reply):
        """Faults of a body that is otherwise right."""
        if kind != "GetObject" or reply.status not in (200, 206) or not len(reply.body):
            faults.names = [n for n in faults.names if n not in ("corrupt", "cut")]
            return
        if "corrupt" in faults:
            if isinstance(reply.body, FilePart):
                with reply.body.file:
                    reply.body = reply.body.read()
            reply.body = faults.flip(reply.body)
        if "cut" in faults:
            reply.cut = int(faults.draw("where") * len(reply.body))

    def serve(self, connection):
        request = connection.read_request()
        request.body = connection.read_body(request, BODY_BYTES)
        self.find_place(request)
        if request.bucket in ("_counts", "_log", "_control"):
            connection.send_reply(request, self.control(request), self.clock())
            return
        self.counts.under_way(+1)
        try:
            self.serve_objects(connection, request)
        finally:
            self.counts.under_way(-1)

    def may_speak(self):
        with self.counts.lock:
            if self.mute_after is not None:
                self.mute_after -= 1
                if self.mute_after < 0:
                    self.speaks.clear()
        return self.speaks.is_set()

    def serve_objects(self, connection, request):
        kind = kind_of(request)
        what = "/".join(filter(None, (request.bucket, request.key))) or "/"
        asked = request.header("range") or request.arguments.get("partNumber") or ""
        entry = {
            "kind": kind, "what": what, "range": request.header("range"), "status": 0, "faults": [],
            "connection": connection.number,
        }
        if kind == "ListObjectsV2":
            entry["query"] = dict(request.arguments)
        if not self.may_speak():
            entry["faults"] = ["mute"]
            self.counts.add(entry)
            self.speaks.wait(3600)
            raise Closed
        faults = self.chaos.plan(kind, f"{what} {asked}")
        out = time.monotonic() < self.outage_until
        if (out and self.outage_how == "reset") or (faults and "reset" in faults):
            entry["faults"] = ["outage" if out else "reset"]
            self.counts.add(entry)
            connection.reset()
        if faults and faults.delay_s:
            time.sleep(faults.delay_s)
        reply = self.answer(kind, request, faults, os.urandom(8).hex().upper())
        if faults:
            self.spoil(kind, faults, reply)
            entry["faults"] = faults.names
        if out:
            entry["faults"] = ["outage"]
        if faults and "lost" in faults:
            self.counts.add(entry)
            raise Closed
        entry["status"] = reply.status
        self.counts.add(entry)
        connection.send_reply(request, reply, self.clock())

    # --- connections ---

    def serve_connection(self, sock):
        number = self.counts.connection(+1)
        connection = None
        try:
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            if self.tls:
                sock.settimeout(10)
                sock = self.tls.wrap_socket(sock, server_side=True)
            connection = Connection(sock, number)
            while True:
                try:
                    self.serve(connection)
                except Refused as e:  # of the request itself: what follows it cannot be trusted
                    text = xml("Error", ("Code", e.code), ("Message", e.message))
                    reply = Reply(e.status, document(text), [("Content-Type", "application/xml")])
                    connection.send_reply(None, reply, self.clock())
                self.count_bytes(connection)
        except (Closed, OSError):
            pass
        finally:
            self.counts.connection(-1)
            if connection is not None:
                self.count_bytes(connection)
            sock.close()

    def count_bytes(self, connection):
        self.counts.bytes(connection.bytes_in, connection.bytes_out)
        connection.bytes_in = connection.bytes_out = 0

    def run(self, listener):
        while True:
            sock, _ = listener.accept()
            threading.Thread(target=self.serve_connection, args=(sock,), daemon=True).start()

    # --- control ---

    def control(self, request):
        try:
            if request.bucket == "_counts":
                found = self.counts.as_json()
            elif request.bucket == "_log":
                found = self.counts.log_as_json()
            else:
                found = self.command(json.loads(bytes(request.body)))
        except (ValueError, KeyError, TypeError, AttributeError, Refused) as e:
            return Reply(400, f"{type(e).__name__}: {e}\n".encode())
        return Reply(200, json.dumps(found).encode(), [("Content-Type", "application/json")])

    def command(self, given):
        given = dict(given)
        if given.pop("renew", False):
            self.renew()
        if given.pop("reset", False):
            self.counts.reset()
        if "outage" in given:
            on = given.pop("outage")
            seconds = on if isinstance(on, (int, float)) and on is not True else 1e9 if on else 0
            self.outage_until = time.monotonic() + seconds if on else 0.0
        self.outage_how = given.pop("outage_how", self.outage_how)
        if "mute" in given:
            mute = given.pop("mute")
            self.mute_after = None if isinstance(mute, bool) else mute
            self.speaks.clear() if mute is True else self.speaks.set()
        if "chaos" in given:
            self.chaos = Chaos(given.pop("chaos"), given.pop("seed", self.chaos.seed))
        self.clock_offset = given.pop("clock", self.clock_offset)
        self.listing = given.pop("listing", self.listing)
        if "key" in given:
            key = given.pop("key")
            self.keys.add(
                s3_sign.Key(key["id"], key["secret"], key.get("token"), key.get("requests"))
            )
        if "expire" in given:
            self.keys.expire(given.pop("expire"))
        if "remove" in given:
            self.keys.remove(given.pop("remove"))
        if "bucket" in given:
            self.store.add_bucket(Bucket(**{"region": self.region, **given.pop("bucket")}))
        if given:
            raise ValueError(f"{', '.join(given)}: not known")
        return {}


def read_key(text):
    """ID:SECRET[:TOKEN[:REQUESTS]]"""
    parts = text.split(":")
    if not 2 <= len(parts) <= 4:
        raise SystemExit(f"--key {text}: expected ID:SECRET[:TOKEN[:REQUESTS]]")
    return s3_sign.Key(*parts[:3], requests=int(parts[3]) if len(parts) == 4 else None)


def read_bucket(text, region):
    """NAME[,region=R][,requester-pays][,public][,no-list][,no-write][,no-delete]"""
    name, *flags = text.split(",")
    bucket = Bucket(name, region)
    for flag in flags:
        if flag.startswith("region="):
            bucket.region = flag.partition("=")[2]
        elif flag == "requester-pays":
            bucket.requester_pays = True
        elif flag == "public":
            bucket.public = True
        elif flag == "no-list":
            bucket.lists = False
        elif flag == "no-write":
            bucket.writes = False
        elif flag == "no-delete":
            bucket.removes = False
        else:
            raise SystemExit(f"--bucket {text}: {flag}: not known")
    return bucket


def read_options():
    p = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    p.add_argument("--port", type=int, default=0, help="0: any free one")
    p.add_argument("--key", action="append", metavar="ID:SECRET[:TOKEN[:REQUESTS]]",
                   help="a key that is known; the token counts as expired after REQUESTS")
    p.add_argument("--bucket", action="append", default=[],
                   metavar="NAME[,region=R][,requester-pays][,public][,no-list][,no-write]"
                   "[,no-delete]")
    p.add_argument("--region", default="us-east-1")
    p.add_argument("--domain", action="append", help="for BUCKET.DOMAIN; localhost, s3.test")
    p.add_argument("--directory", help="keep objects as files here; those there are served")
    p.add_argument("--conditional", choices=("aws", "ceph", "none"), default="aws",
                   help="whose way of honouring If-Match and If-None-Match of a write")
    p.add_argument("--need-if-match", choices=("no", "yes"), default="no",
                   help="refuse to give a part of an object to who does not say of which version")
    p.add_argument("--part-min", type=int, default=5 << 20, metavar="BYTES")
    p.add_argument("--clock", type=float, default=0.0, metavar="SECONDS", help="ahead of the time")
    p.add_argument("--chaos", default="", metavar="error=0.10,throttle=0.05,...")
    p.add_argument("--seed", type=int, default=0)
    p.add_argument("--tls", nargs=2, metavar=("CERTIFICATE", "KEY"))
    p.add_argument("--until-eof", action="store_true", help="end when standard input does")
    options = p.parse_args()
    options.key = options.key or ["stage-key:stage-secret"]
    options.domain = options.domain or ["localhost", "s3.test"]
    return options


def end_with_input():
    while os.read(0, 4096):
        pass
    os._exit(0)


def main():
    options = read_options()
    try:
        server = Server(options)
    except (Refused, ValueError, OSError) as e:
        sys.exit(f"s3_server.py: {e}")
    signal.signal(signal.SIGTERM, lambda *_: os._exit(0))
    signal.signal(signal.SIGINT, lambda *_: os._exit(0))
    with socket.create_server(("127.0.0.1", options.port), backlog=1024) as listener:
        print(json.dumps({"port": listener.getsockname()[1]}), flush=True)
        if options.until_eof:
            threading.Thread(target=end_with_input, daemon=True).start()
        server.run(listener)


if __name__ == "__main__":
    main()
