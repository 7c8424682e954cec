# SPDX-License-Identifier: Apache-2.0
"""penstock-lab with a verb "fake", whose figures are made up and always the same.

    lab_fake.py VERB [options]

$LAB_FAKE_SLEEP is the length of a turn in seconds.
"""

import dataclasses
import os
import random
import sys
import time
import types

from penstock.lab import Absent, _cli
from penstock.lab.experiment import command, inputs, parameters
from penstock.lab.experiment.question import Arm, Question


@dataclasses.dataclass(frozen=True)
class Parameters(parameters.Base):
    packs: tuple[str, ...] = parameters.option((), "packs", positional=True)
    quality: int = parameters.option(90, "JPEG quality", short="q")
    threads: tuple[int, ...] = parameters.option((1, 2), "threads", short="t")
    storage: str = parameters.option("disk", "storage", choices=("disk", "memory"))
    loaders: tuple[str, ...] = parameters.option(("a", "b"), "loaders")
    scale: float = parameters.option(1.0, "a factor of all rates")
    verify: bool = parameters.option(False, "verify samples")


class FakeArm(Arm):
    def __init__(self, cell, scale):
        self.cell, self.scale = cell, scale
        if cell["loader"] == "missing":
            raise Absent("it is not installed")

    def prepared(self):
        return {"stored_mb": 1.5}

    def turn(self, number):
        time.sleep(float(os.environ.get("LAB_FAKE_SLEEP", "0")))
        if self.cell["loader"] == "breaks" and number == 1:
            raise Absent("it broke")
        draw = random.Random(f"{sorted(self.cell.items())} {number}")
        seconds = 1.0 + draw.random() / 100
        return {"seconds": seconds, "samples": 100 * self.cell["threads"] * self.scale,
                "cpu": seconds / 2}


class Fake(Question):
    def __init__(self, chosen):
        self.chosen = chosen

    def inputs(self):
        return [inputs.describe(pack) for pack in self.chosen.packs]

    def groups(self):
        return [[{"threads": n, "loader": name} for name in self.chosen.loaders]
                for n in self.chosen.threads]

    def open(self, cell):
        return FakeArm(cell, self.chosen.scale)


def register():
    verb = types.ModuleType("penstock.lab.verbs.fake")
    verb.HELP = "Made-up figures."
    verb.Parameters = Parameters
    verb.question = lambda chosen, folder: Fake(chosen)
    verb.add_arguments = lambda parser: command.add_arguments(parser, Parameters)
    verb.run = lambda options: command.run("fake", options)
    sys.modules[verb.__name__] = verb
    _cli.VERBS["fake"] = "made-up figures"


if __name__ == "__main__":
    register()
    sys.exit(_cli.main())
