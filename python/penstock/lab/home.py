# SPDX-License-Identifier: Apache-2.0
"""Where the lab keeps what other runs can use: environments, programs and converted images."""

from __future__ import annotations

import os
import pathlib


def home() -> pathlib.Path:
    """$PENSTOCK_LAB_HOME, or a folder in the user's cache."""
    given = os.environ.get("PENSTOCK_LAB_HOME")
    return pathlib.Path(given) if given else pathlib.Path.home() / ".cache" / "penstock-lab"
