# SPDX-License-Identifier: Apache-2.0
"""Small images and packs for the tests of the Python package."""

import importlib.util
import io
import os
import subprocess
import sys
import time
import traceback

import conftest
import pytest
from PIL import Image

CLASSES = ["ant", "bee", "cat"]


def need_penstock():
    """The package; skips where it was not built or cannot be loaded. A broken one is a failure."""
    if isinstance(sys.modules.get("penstock"), conftest.Absent):
        pytest.skip("a sanitizer's library was not loaded first", allow_module_level=True)
    if not importlib.util.find_spec("penstock"):
        pytest.skip("the Python package was not built", allow_module_level=True)
    return importlib.import_module("penstock")


def pixels(number, width=40, height=32):
    """An image that differs for every number; not the same at any two places."""
    image = Image.new("RGB", (width, height))
    image.putdata(
        [
            ((x * 5 + number * 31) % 256, (y * 7 + number * 17) % 256, (x * y + number) % 256)
            for y in range(height)
            for x in range(width)
        ]
    )
    return image


def encoded(image, kind="PNG", **options):
    out = io.BytesIO()
    image.save(out, kind, **options)
    return out.getvalue()


def jpeg(number, width=40, height=32):
    return encoded(pixels(number, width, height), "JPEG", quality=95)


def png(number, width=40, height=32):
    return encoded(pixels(number, width, height))


def write_pack(penstock, path, n, image=png, **settings):
    """Samples with key "s<number>", an image, and the number modulo 3 as label."""
    settings.setdefault("classes", CLASSES)
    settings.setdefault("block_samples", 8)
    with penstock.Writer(path, {"image": "image", "label": "i64"}, **settings) as writer:
        for i in range(n):
            writer.add(key=f"s{i}", image=image(i), label=i % 3)
    return penstock.open(path)


def check_steps(steps, expected):
    """The rows of each global batch, in any order of its ranks, are the next ones of the epoch."""
    done = 0
    for step in steps:
        assert sorted(step) == sorted(expected[done:done + len(step)]), f"from position {done} on"
        done += len(step)
    return done


def in_child(function, *args, seconds=20):
    """Runs it in a forked child: None when all went well, else what was raised."""
    read, write = os.pipe()
    pid = os.fork()
    if pid == 0:
        try:
            function(*args)
            text = b"well"
        except BaseException:
            text = traceback.format_exc().encode()
        os.write(write, text)
        os._exit(0)
    os.close(write)
    deadline = time.monotonic() + seconds
    while os.waitpid(pid, os.WNOHANG)[0] == 0:
        if time.monotonic() > deadline:
            os.kill(pid, 9)
            os.waitpid(pid, 0)
            raise AssertionError("the child hangs")
        time.sleep(0.01)
    with os.fdopen(read, "rb") as result:
        text = result.read()
    return None if text == b"well" else text.decode() or "the child crashed"


def run_python(code, *args, seconds=60, **options):
    return subprocess.run(
        [sys.executable, "-c", code, *map(str, args)],
        timeout=seconds, capture_output=True, text=True, check=False, **options,
    )
