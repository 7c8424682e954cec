# SPDX-License-Identifier: Apache-2.0
"""Processes with loaders for 'penstock top', and processes that only say they have some."""

import contextlib
import json
import os
import select
import subprocess
import sys
import time

DEADLINE = 60  # seconds

LOADER = """
import json, os, sys, time
import penstock
settings = json.loads(sys.argv[1])
sleep, path, batch = settings.pop("sleep", 0), settings.pop("path"), settings.pop("batch", 8)
loader = penstock.Loader(path, batch, output="numpy", **settings)
for i in range(1 << 40):
    for _ in loader:
        if i == 0:
            if os.environ.get("FORK") and os.fork() == 0:
                time.sleep(600)  # a child that keeps all files of its parent
                os._exit(0)
            print("ready", flush=True)
            i = 1
        time.sleep(sleep)
"""

# Writes texts to memory that looks like that of a loader: argv[1] has what to do.
IMPOSTOR = """
import ctypes, fcntl, json, os, socket, sys, time
F_ADD_SEALS, SHRINK, GROW, PR_SET_DUMPABLE = 1033, 2, 4, 4
what = json.loads(sys.argv[1])
if os.environ["USER_ID"]:
    os.setgroups([])
    os.setgid(int(os.environ["USER_ID"]))
    os.setuid(int(os.environ["USER_ID"]))
    ctypes.CDLL(None).prctl(PR_SET_DUMPABLE, 1, 0, 0, 0)  # as after exec
uid, pid = os.geteuid(), os.getpid()
kept = []
for one in what:
    if one.get("fifo"):
        os.mkfifo(one["fifo"])
        fd = os.open(one["fifo"], os.O_RDWR)
    else:
        fd = os.memfd_create("penstock-loader", os.MFD_ALLOW_SEALING)
        os.ftruncate(fd, one.get("size", 4096))
        if one.get("seal", True):
            fcntl.fcntl(fd, F_ADD_SEALS, SHRINK | GROW)
    kept.append(fd)
    for name in one.get("names", ["{pid}.{fd}"]):
        s = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        place = name.format(pid=pid, fd=fd)
        s.bind(b"\\0" + f"penstock/{one.get('uid', uid)}/loader/{place}".encode())
        kept.append(s)
def table():
    for i in range(256):
        for _ in range(8):
            i = i >> 1 ^ (0x82F63B78 if i & 1 else 0)
        yield i
CRC = list(table())
def crc32c(data):
    c = 0xFFFFFFFF
    for byte in data:
        c = CRC[(c ^ byte) & 255] ^ c >> 8
    return c ^ 0xFFFFFFFF
def text(one):
    never_idle = time.monotonic_ns() + 3600 * 10**9
    lines = {"process": pid, "rank": 0, "world": 1, "clock_ns": never_idle, "elapsed_ns": 10**9,
             "samples": 100, "bytes_read": 10**6, "pack": "fake.pen"}
    lines |= one.get("lines", {})
    data = "penstock-loader 1\\n" + "".join(f"{k} {v}\\n" for k, v in lines.items())
    data = data.encode("utf-8", "surrogateescape")
    return data + b"end %08x\\n" % crc32c(data)
torn = []
for one, fd in zip(what, [fd for fd in kept if isinstance(fd, int)]):
    data = one["bytes"].encode() if "bytes" in one else text(one)
    if "fifo" not in one:
        os.pwrite(fd, data.ljust(4096, b"\\0")[:one.get("size", 4096)], 0)
    if one.get("torn"):
        torn.append(fd)
        os.pwrite(fd, b"#", 25)
print("ready", flush=True)
while True:
    time.sleep(0 if torn else 1)
    for fd in torn:
        os.pwrite(fd, b"#%"[time.monotonic_ns() & 1:][:1], 25)
"""


class Running:
    """A Python process that prints "ready", and runs until it is killed."""

    def __init__(self, program, argument, env=None):
        self.process = subprocess.Popen(
            [sys.executable, "-c", program, json.dumps(argument)], stdout=subprocess.PIPE,
            env={**os.environ, **(env or {})})
        self.pid = self.process.pid

    def wait(self):
        ready = select.select([self.process.stdout], [], [], DEADLINE)[0]
        line = self.process.stdout.readline() if ready else b"nothing"
        assert line == b"ready\n", line
        return self

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.kill()
        self.process.wait()
        self.process.stdout.close()


@contextlib.contextmanager
def loaders(*settings, **more):
    """Processes with a loader each, after their first batch."""
    with contextlib.ExitStack() as stack:
        running = [stack.enter_context(Running(LOADER, one, **more)) for one in settings]
        yield [one.wait() for one in running]


@contextlib.contextmanager
def impostors(*what, user=""):
    with Running(IMPOSTOR, what, env={"USER_ID": str(user)}) as running:
        yield running.wait()


def until(found):
    """Calls it until it returns something true, and returns that."""
    end = time.monotonic() + DEADLINE
    while not (result := found()):
        assert time.monotonic() < end
        time.sleep(0.05)
    return result
