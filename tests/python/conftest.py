# SPDX-License-Identifier: Apache-2.0
"""Where tests find the Python package: in PENSTOCK_BUILD/python, or the installed one when
PENSTOCK_PYTHON is "installed".

A package built with a sanitizer can be loaded only when the sanitizer's library was loaded first
(LD_PRELOAD); otherwise its tests are skipped.
"""

import json
import os
import pathlib
import sys
import types

import pytest
from store_tools import no_other_settings, s3  # noqa: F401: fixtures

ROOT = pathlib.Path(__file__).resolve().parents[2]
BUILD = pathlib.Path(os.environ.get("PENSTOCK_BUILD") or ROOT / "build")


def sanitizer(build):
    try:
        options = json.loads((build / "meson-info" / "intro-buildoptions.json").read_text())
    except OSError:
        return "none"
    return next((o["value"] for o in options if o["name"] == "b_sanitize"), "none")


def is_sanitized(build):
    return sanitizer(build) not in ("none", [], ["none"])


class Absent(types.ModuleType):
    """In the place of the package: a test, or a file, that uses it is skipped."""

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        pytest.skip("a sanitizer's library was not loaded first", allow_module_level=True)


if os.environ.get("PENSTOCK_PYTHON") != "installed":
    sys.path.insert(0, str(BUILD / "python"))
    # For the programs that tests start.
    paths = [str(BUILD / "python"), *filter(None, [os.environ.get("PYTHONPATH")])]
    os.environ["PYTHONPATH"] = os.pathsep.join(paths)
    if is_sanitized(BUILD) and "san.so" not in os.environ.get("LD_PRELOAD", ""):
        sys.modules["penstock"] = Absent("penstock")
