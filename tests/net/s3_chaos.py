# SPDX-License-Identifier: Apache-2.0
"""Faults of the scripted S3 server, drawn from a seed.

What happens to a request depends on the seed, on what is asked for, and on how often that was asked
for before; not on the order in which the requests of several connections arrive. So the same work
under the same seed meets the same faults.

error      answered 500, 502, 503 or 504, and nothing done; completing an upload may say 200 with
           an <Error> in it instead, as S3 does
throttle   503 SlowDown, nothing done
delay      answered up to delay_ms (100) later
corrupt    one bit of a GET's body flipped
lost       done, but the connection ends without an answer
reset      the connection is reset, nothing done
cut        the connection ends in the middle of a GET's body
"""

import hashlib
import threading

from s3_http import Refused

RATES = ("error", "throttle", "delay", "corrupt", "lost", "reset", "cut")
ERRORS = (
    (500, "InternalError", "We encountered an internal error. Please try again."),
    (502, "BadGateway", "Bad gateway."),
    (503, "ServiceUnavailable", "Service is unable to handle request."),
    (504, "GatewayTimeout", "Gateway timeout."),
)


class Faults:
    """What is to happen to one request."""

    def __init__(self, number, name):
        self.draw = lambda what: number(f"{name} {what}")
        self.names = []
        self.delay_s = 0.0

    def __contains__(self, name):
        return name in self.names

    def error(self, kind):
        status, code, message = ERRORS[int(self.draw("which") * len(ERRORS))]
        refused = Refused(status, code, message)
        refused.hidden = kind in ("CompleteMultipartUpload", "CopyObject") and status == 500
        return refused

    def flip(self, body):
        data = bytearray(body)
        if data:
            bit = int(self.draw("bit") * len(data) * 8)
            data[bit >> 3] ^= 1 << (bit & 7)
        return data


class Chaos:
    def __init__(self, text="", seed=0):
        self.lock = threading.Lock()
        self.seed = seed
        self.seen = {}
        self.delay_ms = 100.0
        self.rates = {}
        for item in filter(None, text.split(",")):
            name, _, value = item.partition("=")
            if name == "delay_ms":
                self.delay_ms = float(value)
            elif name in RATES and 0.0 <= float(value) <= 1.0:
                self.rates[name] = float(value)
            else:
                raise ValueError(f"{item}: expected one of {', '.join(RATES)}, and a rate up to 1")

    def number(self, text):
        """0 to 1, below 1."""
        digest = hashlib.blake2b(f"{self.seed} {text}".encode(), digest_size=7).digest()
        return int.from_bytes(digest, "big") / (1 << 56)

    def plan(self, kind, what):
        if not self.rates:
            return None
        with self.lock:
            times = self.seen[kind, what] = self.seen.get((kind, what), 0) + 1
        faults = Faults(self.number, f"{kind} {what} {times}")
        faults.names = [name for name, rate in self.rates.items() if faults.draw(name) < rate]
        # Of those that put something else in the place of the answer, one happens.
        ends = [name for name in ("reset", "throttle", "error", "lost") if name in faults]
        faults.names = [name for name in faults.names if name not in ends[1:]]
        if "delay" in faults:
            faults.delay_s = faults.draw("how long") * self.delay_ms / 1000
        return faults
