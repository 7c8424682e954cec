# SPDX-License-Identifier: Apache-2.0
"""Bare libjpeg-turbo in threads: whole images, no resize, no batches (bench/jpeg_whole.c)."""

import os
import subprocess


class Side:
    notes = ["only decodes: no crop, no resize, no batch; files in memory"]

    def __init__(self, task):
        self.stored, self.n = task["files"], len(task["files"])
        build = os.environ.get("PENSTOCK_BUILD")
        if not build:
            raise RuntimeError("needs PENSTOCK_BUILD: a build folder of penstock's sources")
        command = [f"{build}/bench/jpeg_whole", str(task["threads"]), task["list"]]
        self.program = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                        text=True, bufsize=1)
        name, number, *_ = self.answer()
        major, rest = divmod(int(number), 1000000)
        self.versions = {name: f"{major}.{rest // 1000}.{rest % 1000}"}

    def answer(self):
        line = self.program.stdout.readline()
        if not line:
            raise RuntimeError(f"jpeg_whole ended with {self.program.wait()}")
        return line.split()

    def epoch(self):
        self.program.stdin.write("\n")
        _, images, _ = self.answer()
        yield range(int(images))  # it takes every file of its list once

    def check(self):
        raise NotImplementedError("makes no crops")
