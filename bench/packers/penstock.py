# SPDX-License-Identifier: Apache-2.0
"""The program penstock: started for every turn, and finds the files of the folder itself."""

import pathlib
import subprocess
import tempfile


class Side:
    def __init__(self, task):
        self.task, self.program = task, task["penstock"]
        self.pack = pathlib.Path(task["out"]) / "photos.pen"
        done = subprocess.run([self.program, "--version"], check=True, capture_output=True,
                              text=True)
        self.versions = {"penstock": done.stdout.split()[1]}

    def write(self):
        subprocess.run([self.program, "pack", self.task["folder"], "-o", self.pack, "--threads",
                        str(self.task["processes"]), *self.task["options"].get("arguments", [])],
                       check=True)

    def read(self):
        number = {str(pathlib.Path(file).relative_to(self.task["folder"])): i
                  for i, file in enumerate(self.task["files"])}
        with tempfile.TemporaryDirectory(dir=pathlib.Path(self.task["out"]).parent) as place:
            subprocess.run([self.program, "extract", self.pack, "-o", place], check=True)
            for file in pathlib.Path(place).glob("*/*"):
                yield number[str(file.relative_to(place))], file.read_bytes()
