# SPDX-License-Identifier: Apache-2.0
"""A file at a URL that is read by ranged requests, in pieces that are kept."""

import http.client
import io
import threading
import urllib.parse
from collections import OrderedDict

PIECE, KEPT = 1 << 18, 64


def is_url(text):
    return "://" in text


class Count:
    """Bytes that all files together have requested."""

    def __init__(self):
        self.bytes, self.lock = 0, threading.Lock()

    def add(self, n):
        with self.lock:
            self.bytes += n


class File(io.RawIOBase):
    """Like fsspec's block cache: pieces of 256 KiB, the last 64 of which are kept."""

    def __init__(self, url, count):
        self.parts, self.count = urllib.parse.urlsplit(url), count
        self.at, self.kept = 0, OrderedDict()
        self.connection = http.client.HTTPConnection(self.parts.netloc, timeout=60)
        self.connection.request("HEAD", self.parts.path)
        answer = self.connection.getresponse()
        answer.read()
        self.size = int(answer.headers["Content-Length"])

    def piece(self, number):
        if number in self.kept:
            self.kept.move_to_end(number)
            return self.kept[number]
        first = number * PIECE
        last = min(first + PIECE, self.size) - 1
        self.connection.request("GET", self.parts.path, headers={"Range": f"bytes={first}-{last}"})
        data = self.connection.getresponse().read()
        if len(data) != last - first + 1:
            raise OSError(f"expected {last - first + 1} bytes, found {len(data)}")
        self.count.add(len(data))
        self.kept[number] = data
        if len(self.kept) > KEPT:
            self.kept.popitem(last=False)
        return data

    def readable(self):
        return True

    def seekable(self):
        return True

    def tell(self):
        return self.at

    def seek(self, offset, whence=io.SEEK_SET):
        self.at = offset + {io.SEEK_SET: 0, io.SEEK_CUR: self.at, io.SEEK_END: self.size}[whence]
        return self.at

    def read(self, size=-1):
        end = self.size if size is None or size < 0 else min(self.at + size, self.size)
        parts = []
        while self.at < end:
            number, inside = divmod(self.at, PIECE)
            part = self.piece(number)[inside : inside + end - self.at]
            parts.append(part)
            self.at += len(part)
        return b"".join(parts)
