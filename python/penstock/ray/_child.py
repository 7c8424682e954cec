# SPDX-License-Identifier: Apache-2.0
"""The command `penstock` in a process that ends with its parent, even if that is killed.

    python .../penstock/ray/_child.py PARENT_PID WORD...

It is started by its path, so that it is the penstock of its parent. The process sets the signal
itself: code between fork and exec is not safe in a Ray worker, which has many threads.
"""

import ctypes
import os
import signal
import sys

PR_SET_PDEATHSIG = 1


def main() -> int:
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != int(sys.argv[1]):
        return 1  # the parent was killed before
    del sys.argv[1]
    sys.path[0] = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
    from penstock._cli import main as command

    return command()


if __name__ == "__main__":
    sys.exit(main())
