# SPDX-License-Identifier: Apache-2.0
"""penstock-lab: experiments that help to choose a size, a quality, a storage and a loader.

The command `penstock-lab`, or `python -m penstock.lab`. It uses the public interfaces of penstock:
the program `penstock` and the Python package.
"""

from .errors import Absent, LabError

__all__ = ["Absent", "LabError"]
