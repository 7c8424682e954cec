# SPDX-License-Identifier: Apache-2.0
"""A directory in which things are done wrong, and then as the message advises."""

import struct
import tarfile
import zlib

from cli_tools import good, image_bytes, make_folder, run

SMALL = ("--block-samples", "2", "--shard-bytes", "1", "--order", "source", "--mode", "keep")


def png_16():
    """A PNG of 16 bits: that of 8, with other numbers in the header and new pixels."""
    def chunk(kind, body):
        check = zlib.crc32(kind + body)
        return struct.pack(">I", len(body)) + kind + body + struct.pack(">I", check)

    head = struct.pack(">IIBBBBB", 4, 4, 16, 0, 0, 0, 0)
    rows = zlib.compress(b"".join(b"\0" + bytes(range(8)) for _ in range(4)))
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", rows) + chunk(b"IEND", b"")


class Desk:
    """A directory with a folder of pictures in it, and the command that packs it."""

    def __init__(self, top):
        self.top, self.folder, self.out = top, make_folder(top / "in"), top / "a.pen"

    def pack(self, *more, source=None, out=None):
        return ("pack", source or self.folder, "-o", out or self.out, *SMALL, *more)

    def task(self, i, n=2):
        return self.pack("--task", f"{i}/{n}")

    def broken(self):
        """One input is broken, and the run has failed at it."""
        (self.folder / "dog" / "z.jpg").write_bytes(b"this is no picture")
        return self.pack()

    def failed(self):
        run(*self.broken())
        return self.other()

    def other(self):
        """Other settings than those of pack()."""
        return ("pack", self.folder, "-o", self.out, "--mode", "encode")

    def gzipped(self):
        with tarfile.open(self.top / "a.tar.gz", "w:gz") as tar:
            tar.add(self.folder / "cat" / "0.jpg", "0.jpg")
        return ("pack", self.top / "a.tar.gz", "-o", self.out)

    def stray(self):
        (self.folder / "stray.jpg").write_bytes(image_bytes(1))
        return self.pack()

    def headless(self):
        (self.top / "l.csv").write_text("in/cat/0.jpg,x,1\nnone.jpg,y,2\n")
        return self.pack(source=self.top / "l.csv")

    def with_header(self):
        (self.top / "l.csv").write_text("path,label,n\nin/cat/0.jpg,x,1\nin/dog/0.jpg,y,2\n")

    def tasks_begun(self):
        good("plan", *self.pack()[1:])
        good(*self.task(0))

    def changed_after_the_plan(self):
        self.tasks_begun()
        (self.folder / "dog" / "1.jpg").write_bytes(image_bytes(77))
        return self.task(1)

    def plan_again(self):
        good("plan", *self.pack()[1:])
        good(*self.task(0))
        good(*self.task(1))


def nothing(desk):
    pass


def follow(desk, row):
    """A row of a table: what is done -> message -> what the user does -> what then works."""
    wrong, message, action, then = row
    result = run(*wrong(desk))
    assert result.code in (1, 2, 75), result.err
    assert message in result.err, result.err
    action(desk)
    good(*then(desk))
