# SPDX-License-Identifier: Apache-2.0
"""curl --parallel over ranges of a pack: what the way to the store can carry, and what it costs."""

import os
import random
import subprocess
import tempfile
import time

from remote import stores

VALID_S = 7200


class Figure:
    def __init__(self, seconds, cpu, n_bytes):
        self.seconds, self.cpu, self.bytes = seconds, cpu, n_bytes


def run(command, env, n_bytes, core=None):
    """A client; its processor time is that of it and what it has started."""
    if core is not None:
        command = ["taskset", "-c", str(core), *command]
    begin = time.monotonic()
    with tempfile.TemporaryFile() as out:
        child = subprocess.Popen(command, env=env, stdout=out, stderr=out,
                                 stdin=subprocess.DEVNULL)
        _, status, used = os.wait4(child.pid, 0)
        seconds = time.monotonic() - begin
        child.returncode = os.waitstatus_to_exitcode(status)
        if child.returncode:
            out.seek(0)
            raise RuntimeError(f"{command[0]} ended with {child.returncode}: "
                               f"{out.read()[-400:].decode(errors='replace')}")
    return Figure(seconds, used.ru_utime + used.ru_stime, n_bytes)


class Curl:
    """The same ranges in the same order every time: those of blocks, mixed."""

    def __init__(self, server, blocks, folder, at_once, most_bytes=None, passes=1):
        self.server, self.at_once = server, at_once
        blocks = random.Random(1).sample(blocks, len(blocks)) * passes
        self.bytes, lines = 0, []
        client = server.boto3()
        for key, offset, length in blocks:
            if most_bytes and self.bytes >= most_bytes:
                break
            url = client.generate_presigned_url(
                "get_object", Params={"Bucket": stores.BUCKET, "Key": key}, ExpiresIn=VALID_S)
            lines += [f'url = "{url}"', 'output = "/dev/null"',
                      f'range = "{offset}-{offset + length - 1}"', "next"]
            self.bytes += length
        self.config = folder / f"curl-{server.port}"
        self.config.write_text("\n".join(lines[:-1]) + "\n", encoding="utf-8")

    def run(self, core=None):
        command = ["curl", "--silent", "--show-error", "--fail", "--parallel",
                   "--parallel-immediate", "--parallel-max", str(self.at_once),
                   "--config", str(self.config)]
        return run(command, self.server.environment(), self.bytes, core)
