# SPDX-License-Identifier: Apache-2.0
"""What can go wrong in the lab."""

from __future__ import annotations


class LabError(RuntimeError):
    """An error that a user can cause or repair. The message says what failed and what to do."""


class Absent(LabError):
    """Something that this machine lacks or forbids. The run records the reason and continues."""
