# SPDX-License-Identifier: Apache-2.0
"""The command `penstock`: the C program, which is part of the extension."""

from __future__ import annotations

import os
import signal
import sys

from . import _core


def main() -> int:
    # Restore the defaults of a separate program: Python ignores SIGPIPE and handles SIGINT.
    for number in (signal.SIGPIPE, signal.SIGINT):
        if signal.getsignal(number) in (signal.default_int_handler, signal.SIG_IGN):
            signal.signal(number, signal.SIG_DFL)
    return _core.main([b"penstock", *(os.fsencode(arg) for arg in sys.argv[1:])])


if __name__ == "__main__":
    sys.exit(main())
