# SPDX-License-Identifier: Apache-2.0
"""The gain of the first advice: rates before and after, measured in turns. Each of the functions
yields the case in which its advice is followed."""

import contextlib
import dataclasses
import statistics
import tempfile

import cases
import packs


def changed(case, job=None, **settings):
    return dataclasses.replace(case, settings={**case.settings, **settings},
                               job={**case.job, **(job or {})})


@contextlib.contextmanager
def preload(case, folder):
    yield changed(case, {"open": {"preload": True}})


@contextlib.contextmanager
def cache(case, folder):
    """It is full before it is measured, as it is from the second epoch on."""
    with tempfile.TemporaryDirectory(dir=folder / "packs") as place:  # not every name is a bucket's
        cached = changed(case, {"open": {"cache": place}})
        cases.run(changed(cached, {"chaos": ""}), folder, 8)
        yield cached


@contextlib.contextmanager
def raw_pack(case, folder):
    name = f"{case.pack}-raw"
    packs.make(case.pack, folder / "packs" / f"{name}.pen", mode="raw", index=True)
    yield dataclasses.replace(case, pack=name)


@contextlib.contextmanager
def threads(case, folder):
    yield changed(case, threads=None)


@contextlib.contextmanager
def memory(case, folder):
    """As much as all requests at a time need. With more, the entire pack stays in memory."""
    yield changed(case, **cases.REMOTE)


@contextlib.contextmanager
def python_transform(case, folder):
    yield changed(case, {"transform": 0})


FOLLOW = {"preload": preload, "cache": cache, "raw-pack": raw_pack, "threads": threads,
          "memory": memory, "python-transform": python_transform}


def measure(case, folder, rounds, seconds):
    """The gain, as the quotient of the medians."""
    before, after = [], []
    with FOLLOW[case.advice](case, folder) as better:
        for _ in range(rounds):
            before.append(cases.run(case, folder, seconds)["rate"])
            after.append(cases.run(better, folder, seconds)["rate"])
    return statistics.median(after) / statistics.median(before)
