# SPDX-License-Identifier: Apache-2.0
"""python -m penstock.lab: the command penstock-lab."""

import sys

from ._cli import main

sys.exit(main())
