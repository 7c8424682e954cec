# SPDX-License-Identifier: Apache-2.0
"""python -m penstock: the command."""

import sys

from ._cli import main

sys.exit(main())
