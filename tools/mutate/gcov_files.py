# SPDX-License-Identifier: Apache-2.0
"""Reads what gcc 12 writes for gcov: which functions a program ran, without a call of gcov."""

import struct

FUNCTION, ARCS, NO_LENGTH = 0x01000000, 0x01A10000, 1 << 31


def records(data, at):
    """(tag, payload, length) of each record; a negative length means that all counters are zero."""
    while at + 8 <= len(data):
        tag, length = struct.unpack_from("<II", data, at)
        at += 8
        size = 0 if length & NO_LENGTH else length
        yield tag, data[at : at + size], length
        at += size


def functions_run(data):
    """The idents of the functions of one .gcda file with a counter above zero."""
    ident, found = None, []
    for tag, payload, _ in records(data, 16):
        if tag == FUNCTION and len(payload) >= 4:
            ident = struct.unpack_from("<I", payload)[0]
        elif tag == ARCS and ident is not None and payload.strip(b"\0"):
            found.append(ident)
    return found


def added(one, other):
    """One .gcda file with the counters of two."""
    if one is None:
        return other
    out, at = bytearray(other[:16]), 16
    rest = {}
    ident = None
    for tag, payload, _ in records(one, 16):
        if tag == FUNCTION and len(payload) >= 4:
            ident = payload[:4]
        elif tag == ARCS and payload:
            rest[ident] = payload
    for tag, payload, length in records(other, at):
        if tag == FUNCTION and len(payload) >= 4:
            ident = payload[:4]
        if tag == ARCS:
            n = (length if not length & NO_LENGTH else (1 << 32) - length) // 8
            mine = struct.unpack(f"<{n}q", payload) if payload else (0,) * n
            other_part = rest.get(ident)
            theirs = struct.unpack(f"<{n}q", other_part) if other_part else (0,) * n
            payload = struct.pack(f"<{n}q", *(a + b for a, b in zip(mine, theirs)))
            length = len(payload)
        out += struct.pack("<II", tag, length) + payload
    return bytes(out)


def text_at(data, at):
    length = struct.unpack_from("<I", data, at)[0]
    at += 4
    return data[at : at + length].rstrip(b"\0").decode(), at + length


def functions_of(data):
    """{ident: (source, first line, last line)} of one .gcno file."""
    at = 16
    _, at = text_at(data, at)  # the directory
    at += 4
    found = {}
    for tag, payload, _ in records(data, at):
        if tag != FUNCTION or len(payload) < 16:
            continue
        ident = struct.unpack_from("<I", payload)[0]
        _, here = text_at(payload, 12)  # the name
        source, here = text_at(payload, here + 4)
        first, _, last = struct.unpack_from("<III", payload, here)
        found[ident] = (source, first, last)
    return found
