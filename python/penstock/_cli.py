# SPDX-License-Identifier: Apache-2.0
"""The command `penstock`: the C program, which is part of the extension."""

from __future__ import annotations

import os
import signal
import sys

from . import _core
from ._error import Error

# Commands that need no part of the C program, and their modules.
_OF_PYTHON = {
    "trace": "_trace_merge",
    "convert": "_convert._command",
    "ray": "ray._command",
}


def _of_python(words: list[str]) -> int | None:
    """The exit code of a command that is written in Python; None if it is none of them."""
    if words[:1] == ["help"] and words[1:2] == ["convert"]:
        words = [words[1], "--help"]
    module = _OF_PYTHON.get(words[0]) if words else None
    if words[:1] == ["extract"] and any(word.startswith("--to") for word in words):
        from ._export import _command

        module = "_export._command" if _command.is_chosen(words) else None
    if words[:1] == ["doctor"] and len(words) == 2 and words[1].endswith((".json", ".json.gz")):
        module = "_trace_summary"
    if words[:1] == ["index"]:
        from .lerobot import _command as _lerobot

        try:
            module = "lerobot._command" if _lerobot.is_chosen(words) else None
        except Error as error:  # of a store that was asked
            print(f"penstock: {error}", file=sys.stderr)
            return 1
        except KeyboardInterrupt:
            return 130
    if module is None:
        return None
    import importlib

    code: int | None = importlib.import_module(f".{module}", __package__).run(words)
    return code


def main() -> int:
    words = sys.argv[1:]
    code = _of_python(words)
    if code is not None:
        return code
    from . import _video  # noqa: F401: finds the decoder

    # Restore the defaults of a separate program: Python ignores SIGPIPE and handles SIGINT.
    for number in (signal.SIGPIPE, signal.SIGINT):
        if signal.getsignal(number) in (signal.default_int_handler, signal.SIG_IGN):
            signal.signal(number, signal.SIG_DFL)
    return _core.main([b"penstock", *map(os.fsencode, words)])


if __name__ == "__main__":
    sys.exit(main())
