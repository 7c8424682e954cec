#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Makes ready what the turns of a loader find on the node, and holds it until its input ends.

    holder.py MODULE     one line of JSON in: the task; one out, when all is there
"""

import importlib
import json
import pathlib
import sys


def main():
    sys.path[0] = str(pathlib.Path(__file__).resolve().parents[1])
    import common  # noqa: F401  the path of the next
    from answers import Answers

    answers = Answers()
    module = importlib.import_module(f"remote.sides.{sys.argv[1]}")
    held, found = module.make_ready(json.loads(sys.stdin.readline()))
    with held:
        answers.write(found)
        sys.stdin.read()


if __name__ == "__main__":
    main()
