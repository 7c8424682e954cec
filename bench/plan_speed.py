#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Time and memory of `penstock plan` for a listing of any length.

    plan_speed.py [--inputs N] [--tasks N] [--delay MS] [--penstock PROGRAM] [--work DIR]

A server on 127.0.0.1 answers S3 listing requests with made-up objects (1,000 classes, sizes of 20
to 220 KB), 1,000 for each page, each after --delay milliseconds. The plan is written to a
directory. Prints the time, the part of it that the server took, the peak memory of the program,
the size of the plan, and how evenly --tasks tasks share the bytes. Ends with 1 if a task has more
than 2 % more or fewer bytes than the mean. The directory takes about 400 bytes for each input.
"""

import argparse
import bisect
import contextlib
import http.server
import os
import pathlib
import shutil
import struct
import sys
import tempfile
import threading
import time
import urllib.parse

ROOT = pathlib.Path(__file__).resolve().parents[1]
PAGE = 1000
HEAD = '<?xml version="1.0"?><ListBucketResult><IsTruncated>{}</IsTruncated>{}'
ENTRY = ("<Contents><Key>in/{0:06d}/{1:011d}.jpg</Key><Size>{2}</Size>"
         "<ETag>&quot;{1:032x}&quot;</ETag></Contents>")
COMMON = "<CommonPrefixes><Prefix>in/{:06d}/</Prefix></CommonPrefixes>"
FOOT, STRIDE, ITEMS, TABLE, TEXTS = 192, 184, 24, 56, 64  # of a plan: plan_impl.h


def size_of(i):
    return 20000 + i * 2654435761 % 200000


class Listing(http.server.BaseHTTPRequestHandler):
    """Objects 0 to n - 1, in the order of their keys."""

    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    n, busy, delay = 0, 0.0, 0.0

    def do_GET(self):
        time.sleep(self.delay)
        begin = time.monotonic()
        query = urllib.parse.parse_qs(urllib.parse.urlsplit(self.path).query)
        per_class = max(self.n // 1000, 1)
        # Names of folders, or one with a digit behind it: what is after the folder.
        after = query.get("start-after", ["in/"])[0][3:]
        first = int(after[:6] or 0) * per_class + (per_class if len(after) == 7 and
                                                   after[6] != "/" else 0)
        if "delimiter" in query:
            classes = range(first // per_class, (self.n - 1) // per_class + 1)
            body = HEAD.format("false", "") + "".join([COMMON.format(k) for k in classes])
        else:
            first = int(query.get("continuation-token", [first])[0])
            end = min(first + PAGE, self.n)
            more = f"<NextContinuationToken>{end}</NextContinuationToken>" if end < self.n else ""
            body = HEAD.format("true" if more else "false", more) + "".join(
                [ENTRY.format(i // per_class, i, size_of(i)) for i in range(first, end)])
        body = (body + "</ListBucketResult>").encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        with contextlib.suppress(BrokenPipeError):  # a hedged request that is not needed any more
            self.wfile.write(body)
        Listing.busy += time.monotonic() - begin

    def log_message(self, *args):
        pass


def marks_of(path):
    """How many inputs a plan has, how many each mark stands for, and the marks."""
    with open(path, "rb") as f:
        f.seek(-FOOT, os.SEEK_END)
        foot = f.read(FOOT)
        n, = struct.unpack_from("<Q", foot, ITEMS)
        stride, = struct.unpack_from("<I", foot, STRIDE)
        table, texts = struct.unpack_from("<QQ", foot, TABLE)
        begin = table + 32 * n
        f.seek(begin)
        return n, stride, struct.unpack(f"<{(texts - begin) // 8}Q", f.read(texts - begin))


def spread(path, tasks):
    """The smallest and the largest task, as parts of the mean. As src/ingest/plan/split.c."""
    n, stride, marks = marks_of(path)
    with open(path, "rb") as f:
        f.seek(-FOOT, os.SEEK_END)
        table, = struct.unpack_from("<Q", f.read(FOOT), TABLE)

        def weight(i):
            f.seek(table + 32 * i)
            offset, bytes_ = struct.unpack("<QI", f.read(12))
            f.seek(offset)
            record = f.read(bytes_)
            key_bytes, = struct.unpack_from("<I", record)
            number = int(record[4 : 4 + key_bytes].split(b"/")[-1].split(b".")[0])
            return 1 + size_of(number)

        def find(target):
            k = min(bisect.bisect_right(marks, target), len(marks) - 1)
            at, i = (marks[k - 1] if k else 0), k * stride
            while i < min((k + 1) * stride, n):
                own = weight(i)
                if own > target - at:
                    return at + (own if target - at > own // 2 else 0)
                at, i = at + own, i + 1
            return at

        total = marks[-1]
        ends = [find(total // tasks * t + total % tasks * t // tasks) for t in range(1, tasks)]
    parts = [b - a for a, b in zip([0, *ends], [*ends, total], strict=True)]
    return min(parts) * tasks / total, max(parts) * tasks / total


def run(program, port, work):
    """Seconds and peak memory in MB."""
    env = {**os.environ, "AWS_ACCESS_KEY_ID": "a", "AWS_SECRET_ACCESS_KEY": "b",
           "AWS_REGION": "us-east-1", "AWS_ENDPOINT_URL": f"http://127.0.0.1:{port}"}
    command = [program, "plan", "s3://bucket/in", "-o", str(work / "out.pen")]
    begin = time.monotonic()
    quiet = [(os.POSIX_SPAWN_OPEN, 1, os.devnull, os.O_WRONLY, 0)]
    pid = os.posix_spawn(program, command, env, file_actions=quiet)
    _, status, usage = os.wait4(pid, 0)
    if status:
        sys.exit(f"penstock plan ended with {os.waitstatus_to_exitcode(status)}")
    return time.monotonic() - begin, usage.ru_maxrss / 1024


def main():
    ask = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    ask.add_argument("--inputs", type=int, default=1000000)
    ask.add_argument("--tasks", type=int, default=1000)
    ask.add_argument("--delay", type=float, default=0, help="milliseconds before each response")
    ask.add_argument("--penstock", default=str(ROOT / "build" / "penstock"))
    ask.add_argument("--work", help="a directory on a disk with room")
    given = ask.parse_args()
    Listing.n, Listing.delay = given.inputs, given.delay / 1000
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Listing)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    work = pathlib.Path(tempfile.mkdtemp(dir=given.work))
    try:
        seconds, megabytes = run(given.penstock, server.server_port, work)
        plan = work / "out.pen" / ".work" / "plan"
        least, most = spread(plan, given.tasks)
        print(f"{given.inputs} inputs: {seconds:.1f} s, of which the listing server was busy "
              f"{Listing.busy:.1f} s; peak memory {megabytes:.0f} MB; plan "
              f"{plan.stat().st_size / 1e6:.0f} MB; {given.tasks} tasks have {least:.4f} to "
              f"{most:.4f} of the mean bytes")
    finally:
        server.shutdown()
        shutil.rmtree(work)
    return 0 if 0.98 <= least and most <= 1.02 else 1


if __name__ == "__main__":
    sys.exit(main())
