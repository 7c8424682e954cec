# SPDX-License-Identifier: Apache-2.0
"""Processes that each write a part of the files, for libraries whose writer is one process. They
are started once, before the time counts."""

import multiprocessing


def parts(files, n):
    """[(part, [(i, file), ...])]: n parts of about the same length; neighbours stay together."""
    numbered = list(enumerate(files))
    bounds = [len(files) * k // n for k in range(n + 1)]
    return [(k, numbered[bounds[k] : bounds[k + 1]]) for k in range(n)]


class Halves:
    def __init__(self, task, method="fork"):
        """A library with threads of its own needs the method "spawn"."""
        self.task = task
        self.pool = multiprocessing.get_context(method).Pool(task["processes"])

    def write(self, function):
        """[function(out, part, samples)] of all parts, in their order."""
        work = parts(self.task["files"], self.task["processes"])
        return self.pool.starmap(function, [(self.task["out"], *part) for part in work], 1)
