# SPDX-License-Identifier: Apache-2.0
"""Published figures beside ours, one module for each document.

Each module has TITLE, SOURCE and figures(options), which measures and returns a list of Figure.
"""

from .figure import Figure, Options

__all__ = ["Figure", "Options"]
