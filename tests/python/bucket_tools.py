# SPDX-License-Identifier: Apache-2.0
"""Buckets with inputs for pack, and the program with credentials for them."""

import secrets
import signal
import subprocess
import time

import net_stage
from cli_tools import PENSTOCK, good, run


def tree(top):
    return {str(p.relative_to(top)): p.read_bytes() for p in top.rglob("*") if p.is_file()}


class Bucket:
    """A bucket of its own, and the program with credentials for it."""

    def __init__(self, server, home):
        self.server, self.client = server, server.boto3(retries=3)
        self.name = f"bucket-{secrets.token_hex(4)}"
        self.client.create_bucket(Bucket=self.name)
        self.env = server.environment(HOME=str(home))

    def at(self, name):
        return f"s3://{self.name}/{name}"

    def put(self, key, body):
        self.client.put_object(Bucket=self.name, Key=key, Body=body)

    def fill(self, folder, prefix):
        for path in sorted(p for p in folder.rglob("*") if p.is_file()):
            self.put(f"{prefix}/{path.relative_to(folder)}", path.read_bytes())

    def good(self, *args, **more):
        return good(*args, env=self.env, **more)

    def run(self, *args, **more):
        return run(*args, env=self.env, **more)

    def start(self, *args):
        return subprocess.Popen([PENSTOCK, *map(str, args)], env=self.env,
                                stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                stderr=subprocess.PIPE, text=True)

    def interrupt(self, *args, answers=0):
        """Seconds from Ctrl-C to the end of a command that waits for the server, which answers so
        many requests. A wait that is not interrupted takes 5 s or more: three attempts, as the
        machine may be busy."""
        for _ in range(3):
            self.server.control(mute=answers or True, reset=True)
            process = self.start(*args)
            deadline = time.monotonic() + 60
            while self.server.counts()["total"] <= answers and process.poll() is None:
                assert time.monotonic() < deadline
                time.sleep(0.02)
            time.sleep(0.1)
            began = time.monotonic()
            process.send_signal(signal.SIGINT)
            _, err = process.communicate(timeout=60)
            seconds = time.monotonic() - began
            self.server.control(mute=False)
            assert process.returncode == 130, err
            if seconds < 5:
                break
        return seconds


def serve():
    """A server for the tests of one module; the bucket "open" may be read without credentials."""
    return net_stage.S3Server(buckets=("packs", "open,public"), deadline_s=60)


def filled(server, home, folder, prefix):
    """A bucket with all files of the folder below the prefix. The server behaves well, and has
    counted nothing yet."""
    server.control(chaos="", mute=False)
    bucket = Bucket(server, home)
    bucket.fill(folder, prefix)
    server.control(reset=True)
    return bucket
