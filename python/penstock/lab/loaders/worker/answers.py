# SPDX-License-Identifier: Apache-2.0
"""Answers of a worker process: lines of JSON on its standard output. It runs in the environment of
a loader, so it uses nothing but the standard library."""

import json
import os
import sys
import traceback


class Answers:
    """Takes over standard output; what libraries print there goes to standard error."""

    def __init__(self):
        self.out = os.fdopen(os.dup(1), "w", encoding="utf-8")
        os.dup2(2, 1)

    def write(self, answer):
        self.out.write(json.dumps(answer) + "\n")
        self.out.flush()

    def write_result(self, function, *args, **named):
        """What the function returns, with "ok"; or why it failed."""
        try:
            answer = {"ok": True, **function(*args, **named)}
        except Exception as error:  # whatever another project raises is its reason for being absent
            traceback.print_exc()
            text = str(error).strip().splitlines() or [""]
            answer = {"ok": False, "error": f"{type(error).__name__}: {text[0][:300]}"}
        self.write(answer)


def serve(kind, *args):
    """Makes a worker, and calls its methods that lines of JSON on stdin name, until one is quit."""
    answers = Answers()
    worker = kind(*args)
    for line in sys.stdin:
        command = json.loads(line)
        what = command.pop("do")
        if what == "quit":
            break
        answers.write_result(getattr(worker, what), **command)
    os._exit(0)  # threads and children of some libraries do not end by themselves
