# SPDX-License-Identifier: Apache-2.0
"""Servers that misbehave in 50 ways, from the first request on and from the third on.

A pack is read to its end by another process over http, https or s3, with 2 s for a request. For
each case there is one outcome that is right: the bytes of the pack, or an error of one class. The
rule for the time, where TIME is the request's deadline (2 s):

  for ever  the outage budget is 1 s, and an attempt may go on 1 s after that, so an operation has
            TIME in all, whatever number of attempts it makes: at most TIME + 20 %
  once      only that one request goes wrong, and the outage budget is 8 s: the bytes have to be
            right all the same, after at most TIME + 20 % for the attempt and 1 s for the others

Afterwards the process has as many threads and open files as before it opened the pack.
"""

import concurrent.futures
import dataclasses
import os
import sys
import time

from _net import ODD_NAMES, environment, make_pack, read
from _program import Sweep, scaled, scratch
from bad_gate import Gate, make_dead
from bad_server import BadServer

TIME = 2.0
SLACK = 0.2
LAST = 1.0  # what remains to be read, and short waits between attempts
SETTLED = 0.3  # until threads and files are closed
AT_ONCE = 10
OK, IO, TIMEOUT, ACCESS = "OK", "E_IO", "E_TIMEOUT", "E_ACCESS"
NOT_FOUND, CHANGED, CORRUPT, FORMAT = "E_NOT_FOUND", "E_CHANGED", "E_CORRUPT", "E_FORMAT"


@dataclasses.dataclass
class Expected:
    """What has to come of a behaviour from the first request on, from the third on, and when it is
    only for one request; and over what it is tried."""

    at_1: str
    at_3: str = ""
    once: str = OK
    once_1: str = ""
    scheme: str = "http"
    says: str = ""  # in the message, where it is for ever

    def outcome(self, first, once):
        if once:
            return self.once_1 or self.once if first == 1 else self.once
        return self.at_3 or self.at_1 if first == 3 else self.at_1


E = Expected
TABLE = {
    # Connecting. A name is remembered for a minute, so the third request does not ask for it. A
    # certificate that is not valid is not retried.
    "gate:refused": E(IO, says="cannot connect"),
    "gate:black_hole": E(TIMEOUT, says="connection timed out"),
    "names:fails": E(IO, OK, once=OK, says="cannot resolve"),
    "names:slow": E(TIMEOUT, OK, once=OK),
    "names:two": E(OK),
    "gate:tls_stall": E(TIMEOUT, scheme="https", says="connection timed out"),
    "gate:tls_wrong_host": E(IO, once=IO, scheme="https", says="certificate"),
    "gate:tls_expired": E(IO, once=IO, scheme="https", says="certificate"),
    "gate:tls_untrusted": E(IO, once=IO, scheme="https", says="certificate"),
    "tls_alert": E(IO, scheme="https"),
    # Headers.
    "headers_none_close": E(IO),
    "headers_none_stall": E(TIMEOUT),
    "headers_drip": E(TIMEOUT),
    "headers_huge": E(IO),
    "headers_endless": E(IO),
    "status_line_bad": E(IO),
    "stray_100": E(OK),
    "chunk_bad": E(IO),
    "length_and_chunked": E(IO),
    "length_2_63": E(IO),
    "length_negative": E(IO),
    "length_absent": E(OK),
    # Status. Those of S3 are tried as such.
    "status_500": E(IO, says="500"),
    "status_502": E(IO, says="502"),
    "status_503": E(IO, scheme="s3", says="503"),
    "status_503_hour": E(IO, once=IO, says="503"),
    "status_429": E(IO, says="429"),
    "status_400_timeout": E(IO, scheme="s3"),
    "status_400_expired": E(ACCESS, scheme="s3", says="ExpiredToken"),
    "status_403": E(ACCESS, once=ACCESS, scheme="s3", says="AccessDenied"),
    "status_403_skewed": E(ACCESS, scheme="s3", says="clock"),
    "status_404": E(NOT_FOUND, once=NOT_FOUND),
    "status_412": E(CHANGED, once=CHANGED),
    "status_416": E(CORRUPT, once=CORRUPT, once_1=IO),
    "status_301_region": E(IO, scheme="s3", says="eu-north-1"),
    "status_307_host": E(IO, once=IO, scheme="s3", says="307"),
    "status_200_error": E(IO, scheme="s3"),
    # Bodies.
    "body_rst": E(IO),
    "body_fin": E(IO),
    "body_stall": E(TIMEOUT),
    "body_drip": E(TIMEOUT),
    "body_flip": E(CORRUPT),
    "range_ignored": E(IO),
    "range_other": E(IO),
    "range_short": E(IO),
    "body_long": E(OK),
    "gzip_encoded": E(IO, once=IO),
    "etag_changed": E(CHANGED, once=CHANGED, once_1=OK),
    "left_over": E(OK),
    "close_on_reuse": E(OK),
}
assert len(TABLE) == 50


class Server(BadServer):
    """Remembers the signed dates and tokens it has seen, by the folder that was asked for."""

    def __init__(self, root):
        self.seen = {}
        super().__init__(root)

    def right(self, q):
        folder = q.path.split("/")[1]
        signed = (q.headers.get("x-amz-date"), q.headers.get("x-amz-security-token"),
                  q.headers.get("authorization", ""))
        self.seen.setdefault(folder, []).append(signed)
        return super().right(q)


@dataclasses.dataclass
class Case:
    name: str
    first: int
    once: bool
    expected: Expected

    def __str__(self):
        how = "once" if self.once else "for ever"
        return f"{self.name}, request {self.first}, {how} ({self.expected.scheme})"


class Bench:
    def __init__(self, top, server, right_hash):
        self.top, self.server, self.right_hash = top, server, right_hash
        self.sweep = None

    def place(self, case, number):
        """Address and environment; the server is told what to do there."""
        folder = f"case{number}"
        os.symlink("pack.pen", f"{self.top}/{folder}")
        scheme = case.expected.scheme
        kind, _, what = case.name.rpartition(":")
        host, env = "127.0.0.1", {}
        port = self.server.ports["https" if scheme == "https" else "http"]
        if kind == "gate":
            port = Gate(self.server, what, case.first, case.once).port
        elif kind == "names":
            host = f"{what}.test"
            n = 0 if case.first == 3 else 1 if case.once else -1
            env = {"preload": ODD_NAMES, "ODD_NAMES": n}
        else:
            last = case.first if case.once else None
            self.server.behave(what, f"/{folder}/", case.first, last)
        if scheme == "s3":
            env.update(self.keys(folder), AWS_ENDPOINT_URL=f"http://{host}:{port}",
                       AWS_REGION="us-east-1")
            return f"s3://{folder}", environment(**env), folder
        return f"{scheme}://{host}:{port}/{folder}", environment(**env), folder

    def keys(self, folder):
        """From a program that gives another token each time, so that renewal can be seen."""
        script = f"{self.top}/{folder}.keys"
        with open(script, "w") as f:
            f.write(
                "#!/bin/sh\n"
                f'echo x >>{script}.asked; n=$(wc -l <{script}.asked | tr -d " ")\n'
                'echo "{\\"Version\\": 1, \\"AccessKeyId\\": \\"stage-key\\", '
                '\\"SecretAccessKey\\": \\"stage-secret\\", \\"SessionToken\\": \\"token-$n\\"}"\n'
            )
        os.chmod(script, 0o755)
        config = f"{self.top}/{folder}.config"
        with open(config, "w") as f:
            f.write(f"[default]\ncredential_process = {script}\n")
        return {"AWS_CONFIG_FILE": config}

    def run(self, case, number):
        """What is wrong with it, or None."""
        address, env, folder = self.place(case, number)
        told = read(address, env, deadline_ms=int(TIME * 1000),
                    outage_ms=8000 if case.once else 1000, ca=self.server.ca)
        return self.judge(case, told, folder)

    def limit(self, case, expected):
        if not case.once:
            return TIME * (1 + SLACK)
        if case.name == "status_503_hour":
            return 8 * (1 + SLACK)  # longer than the budget is not waited, but that is
        return TIME * (1 + SLACK) + LAST

    def judge(self, case, told, folder):
        expected = case.expected.outcome(case.first, case.once)
        if told.status != expected:
            return f"expected {expected}, found {told.status}: {told.message}"
        if expected == OK and told.hash != self.right_hash:
            return "other bytes than those of the pack"
        if told.seconds > self.limit(case, expected):
            return f"took {told.seconds:.2f} s, {self.limit(case, expected):.2f} are allowed"
        if expected != OK and case.expected.says not in told.message:
            return f"expected '{case.expected.says}' in the message, found: {told.message}"
        slow_names = case.name == "names:slow"  # the system's look-up cannot be called off
        if told.settled > (9 if slow_names else SETTLED):
            return (f"threads {told.said['threads']}, files {told.said['files']} for "
                    f"{told.settled:.1f} s after the end, {SETTLED} are allowed")
        return self.judge_signed(case, self.server.seen.get(folder, []))

    def judge_signed(self, case, seen):
        """Of those that are put right, how."""
        # Not asked for within a second of the last time: where it is for ever there is no more.
        if case.name == "status_400_expired" and case.once and seen[-1][1] == "token-1":
            return "the keys were not renewed"
        if case.name == "status_403_skewed":
            day = time.strftime("%Y%m%d", time.gmtime(time.time() + 86400))
            if not seen[-1][0].startswith(day):
                return f"the clock was not put right: signed for {seen[-1][0]}"
        if case.name == "status_301_region" and "/eu-north-1/s3/" not in seen[-1][2]:
            return "the region was not taken"
        return None


def sweep(bench, name, cases):
    """Several at once: they wait most of the time. What was late is tried once more, alone."""
    s = Sweep(name)
    began = time.monotonic()
    with concurrent.futures.ThreadPoolExecutor(AT_ONCE) as pool:
        wrong = list(pool.map(bench.run, cases, range(bench.n, bench.n + len(cases))))
    bench.n += len(cases)
    for case, text in zip(cases, wrong):
        if text and (" are allowed" in text or "hangs" in text):
            text = bench.run(case, bench.n)
            bench.n += 1
        if text:
            s.complain(f"{case}: {text}")
    if bench.server.trapped:
        s.complain("a redirect to another host was followed")
    good = len(cases) - s.bad
    s.end(f"{good} of {len(cases)} cases, {time.monotonic() - began:.1f} s")


def main():
    wanted = sys.argv[1:]
    names = [n for n in TABLE if not wanted or any(w in n for w in wanted)]
    with scratch() as top:
        make_pack(f"{top}/pack.pen")
        right = read(f"{top}/pack.pen")
        assert right.status == OK and right.hash, right.said
        with Server(top) as server:
            dead = make_dead(("127.0.0.9", server.ports["http"]))  # for names:two
            bench = Bench(top, server, right.hash)
            bench.n = 0
            # Sampled: every behaviour, the odd ones from the first request on, the others from
            # the third; the other way round where it is once.
            all_cases = {
                once: [Case(n, first, once, TABLE[n]) for i, n in enumerate(names)
                       for first in scaled((1, 3), ((1, 3)[(i + once) % 2],))]
                for once in (False, True)
            }
            sweep(bench, "servers that misbehave for ever", all_cases[False])
            sweep(bench, "servers that misbehave once", all_cases[True])
            del dead
    return Sweep.total()


if __name__ == "__main__":
    sys.exit(main())
