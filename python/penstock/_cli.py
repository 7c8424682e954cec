# SPDX-License-Identifier: Apache-2.0
"""The command `penstock`: the C program, which the extension contains."""

from __future__ import annotations

import os
import signal
import sys

from . import _core


def main() -> int:
    # As a program of its own would find them: Python ignores SIGPIPE and takes SIGINT for itself.
    for number in (signal.SIGPIPE, signal.SIGINT):
        if signal.getsignal(number) in (signal.default_int_handler, signal.SIG_IGN):
            signal.signal(number, signal.SIG_DFL)
    return _core.main([b"penstock", *(os.fsencode(arg) for arg in sys.argv[1:])])


if __name__ == "__main__":
    sys.exit(main())
