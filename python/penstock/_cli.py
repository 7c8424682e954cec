# SPDX-License-Identifier: Apache-2.0
"""The command `penstock`: the C program, which is part of the extension."""

from __future__ import annotations

import os
import signal
import sys

from . import _core
from ._error import Error


def _of_python(words: list[str]) -> int | None:
    """Commands that need no part of the C program; None if it is none of them."""
    if words[:1] not in (["trace"], ["timeline"]):
        return None
    from . import _trace_commands

    return _trace_commands.run(words)


def main() -> int:
    words = sys.argv[1:]
    code = _of_python(words)
    if code is not None:
        return code
    if words[:1] == ["doctor"]:
        from . import _trace_commands

        try:
            words = _trace_commands.with_consumer(words)
        except (Error, OSError) as error:
            print(f"penstock: {error}", file=sys.stderr)
            return 1
    # Restore the defaults of a separate program: Python ignores SIGPIPE and handles SIGINT.
    for number in (signal.SIGPIPE, signal.SIGINT):
        if signal.getsignal(number) in (signal.default_int_handler, signal.SIG_IGN):
            signal.signal(number, signal.SIG_DFL)
    return _core.main([b"penstock", *map(os.fsencode, words)])


if __name__ == "__main__":
    sys.exit(main())
