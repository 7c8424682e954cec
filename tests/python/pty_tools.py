# SPDX-License-Identifier: Apache-2.0
"""Running the program on a terminal, and what a person sees there."""

import codecs
import fcntl
import os
import pty
import re
import select
import struct
import subprocess
import termios
import time

from cli_tools import PENSTOCK

DEADLINE = 60  # seconds
VARIABLES = ("NO_COLOR", "TERM", "LC_ALL", "LC_CTYPE", "LANG")


class Terminal:
    """The program with stdin, stdout and stderr on a terminal, which controls it."""

    def __init__(self, *args, columns=80, program=PENSTOCK, **environment):
        env = {k: v for k, v in os.environ.items() if k not in VARIABLES}
        env |= {"TERM": "xterm", "LC_ALL": "C", **environment}
        self.ours, its = pty.openpty()
        self.columns, self.text, self.end = columns, "", time.monotonic() + DEADLINE
        self.decode = codecs.getincrementaldecoder("utf-8")().decode
        self.resize(columns)
        self.process = subprocess.Popen(
            [program, *map(os.fspath, args)], stdin=its, stdout=its, stderr=its, env=env,
            start_new_session=True,
            preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0))
        os.close(its)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.kill()
        self.process.wait()
        os.close(self.ours)

    def resize(self, columns):
        fcntl.ioctl(self.ours, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))

    def keys(self, text):
        os.write(self.ours, text.encode())

    def read(self):
        """False when the other side is closed."""
        assert select.select([self.ours], [], [], self.end - time.monotonic())[0], self.text
        try:
            part = os.read(self.ours, 4096)
        except OSError:
            part = b""
        self.text += self.decode(part)
        return bool(part)

    def wait_for(self, text, after=0):
        while text not in self.text[after:]:
            assert self.read(), self.text

    def finish(self):
        """All that was written."""
        while self.read():
            pass
        self.code = self.process.wait(timeout=DEADLINE)
        return self.text


def on_terminal(*args, **more):
    with Terminal(*args, **more) as terminal:
        return terminal.finish()


class Screen:
    """Rows of characters and a cursor. Knows what a line of progress and a message need: colours,
    CR and LF. Everything else fails the test."""

    def __init__(self, text, columns=80):
        self.columns, self.rows, self.row, self.column = columns, [""], 0, 0
        self.wrapped = False
        for part in re.findall(r"\x1b\[[0-9;]*m|.", text, re.DOTALL):
            if not part.startswith("\x1b["):
                self.put(part)

    def put(self, c):
        if c == "\r":
            self.column = 0
        elif c == "\n":
            self.new_row()
        else:
            assert c.isprintable(), repr(c)
            if self.column == self.columns:
                self.wrapped = True
                self.new_row()
                self.column = 0
            row = self.rows[self.row].ljust(self.column + 1)
            self.rows[self.row] = row[:self.column] + c + row[self.column + 1:]
            self.column += 1

    def new_row(self):
        self.row += 1
        self.rows.append("")

    def lines(self):
        return [row.rstrip() for row in self.rows]


def drawn(text):
    """The lines that were drawn one over the other, without colours and padding."""
    plain = re.sub(r"\x1b\[[0-9;]*m", "", text)
    return [line.rstrip() for line in re.split(r"[\r\n]+", plain) if line.strip()]
