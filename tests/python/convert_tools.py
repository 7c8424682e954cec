# SPDX-License-Identifier: Apache-2.0
"""Datasets of other libraries, written by these libraries, and comparisons with packs."""

import os
import pathlib

import pytest
from py_tools import need_penstock

penstock = need_penstock()
if "san.so" in os.environ.get("LD_PRELOAD", ""):
    pytest.skip("the other libraries do not run under a sanitizer", allow_module_level=True)


def need_library(*names):
    """The libraries themselves; the tests of a file are skipped where one is not installed."""
    return [pytest.importorskip(name) for name in names]


def plain(value):
    """A value of a pack as Python's own numbers and lists."""
    return value.tolist() if hasattr(value, "tolist") else value


def samples(path):
    """Key and values of all samples of a pack."""
    with penstock.open(path) as pack:
        return [(sample.key, {name: plain_field(sample[name]) for name in pack.schema})
                for sample in pack]


def plain_field(value):
    return [bytes(frame) for frame in value] if isinstance(value, penstock.Clip) else plain(value)


def tree(path):
    """All files of a pack, with their contents."""
    path = pathlib.Path(path)
    return {str(file.relative_to(path)): file.read_bytes()
            for file in path.rglob("*") if file.is_file()}
