# SPDX-License-Identifier: Apache-2.0
"""A plain scanner of sequential JPEG files, written from ITU-T T.81 alone.

scan(data) gives where every MCU starts, in bits from the start of the scan, and the DC predictors
there. It knows nothing of packs.
"""

import argparse
import struct

SOI, EOI, SOS, DHT, DQT, DRI, RST = 0xD8, 0xD9, 0xDA, 0xC4, 0xDB, 0xDD, 0xD0
METADATA = (*range(0xE0, 0xF0), 0xFE)  # APPn and COM


class JpegError(ValueError):
    """The file is not a sequential JPEG of one scan, or is damaged."""


def need(ok, what):
    if not ok:
        raise JpegError(what)


def read_markers(data):
    """Every marker up to SOS: (code, offset, body)."""
    need(data[:2] == b"\xff\xd8", "no SOI")
    at, code = 2, SOI
    while code != SOS:
        need(at + 4 <= len(data) and data[at] == 0xFF, f"no marker at {at}")
        if data[at + 1] == 0xFF:  # fills the space before a marker
            at += 1
            continue
        code, size = data[at + 1], struct.unpack_from(">H", data, at + 2)[0]
        yield code, at, data[at + 4 : at + 2 + size]
        at += 2 + size


def read_huffman(body):
    """{(class, number): {(length, code): symbol}}"""
    tables, at = {}, 0
    while at < len(body):
        codes, code, place = {}, 0, at + 17
        for length in range(1, 17):
            for _ in range(body[at + length]):
                codes[length, code] = body[place]
                code, place = code + 1, place + 1
            code *= 2
        tables[body[at] >> 4, body[at] & 15] = codes
        at = place
    return tables


class Bits:
    """The bits of a scan; self.at is the position of the next one."""

    def __init__(self, data):
        self.data, self.at = data, 0

    def next(self):
        byte = self.at // 8
        need(byte + 1 < len(self.data), "truncated")
        need(self.data[byte] != 0xFF or self.data[byte + 1] == 0, "a marker inside the scan")
        bit = self.data[byte] >> (7 - self.at % 8) & 1
        self.at += 1
        if self.at % 8 == 0 and self.data[byte] == 0xFF:
            self.at += 8
        return bit

    def symbol(self, codes):
        code = 0
        for length in range(1, 17):
            code = 2 * code + self.next()
            if (length, code) in codes:
                return codes[length, code]
        raise JpegError("no such code")

    def value(self, size):
        number = 0
        for _ in range(size):
            number = 2 * number + self.next()
        return number if size == 0 or number >> (size - 1) else number - (1 << size) + 1

    def block(self, dc, ac):
        """Give the difference of DC."""
        difference, k = self.value(self.symbol(dc)), 1
        while k < 64:
            symbol = self.symbol(ac)
            if symbol % 16 == 0 and symbol != 0xF0:
                break
            k += symbol // 16 + 1
            need(k <= 64, "a run over the end of a block")
            self.value(symbol % 16)
        return difference

    def marker(self, code):
        """Pass over padding and this marker."""
        while self.at % 8:
            self.next()
        byte = self.at // 8
        need(self.data[byte : byte + 2] == bytes([0xFF, code]), f"no marker {code:02x}")
        self.at += 16


def is_color_known(found):
    """Y, Cb and Cr: by a JFIF or an Adobe marker, or by components that are counted from 1."""
    if found.has_jfif or found.components == 1:
        return True
    return found.adobe == 1 if found.adobe is not None else found.ids == [1, 2, 3]


def need_table(found):
    """Can a file that was scanned have an entry table? See the format."""
    need(found.bits == 8 and found.quant_bytes == 1, "not of 8 bits")
    need(is_color_known(found), "not Y, Cb and Cr")
    need(found.adobe in (None, 0, 1), "an APP14 that is not Adobe's")
    need(found.codes <= {*METADATA, DQT, DHT, DRI, 0xC0, 0xC1, SOS}, "other markers")
    need(len(set(found.ids)) == found.components and found.order == found.ids, "other ids")
    if found.components == 3:
        need(found.factors[1:] == [(1, 1)] * 2 and max(found.factors[0]) <= 2, "other sampling")
        need(found.numbers[1] == found.numbers[2], "other Huffman tables for Cb than for Cr")
    need(all(n >> 4 < 2 and n & 15 < 2 for n in found.numbers), "Huffman tables above 1")


def up(a, b):
    return -(-a // b)


def scan(data):
    """Give lead_bytes, head_bytes, scan_bytes, restart, components, h, v and mcus."""
    tables, factors, found = {}, [], argparse.Namespace(restart=0, lead_bytes=None, adobe=None)
    found.has_jfif, found.codes, found.quant_bytes = False, set(), 1
    for code, at, body in read_markers(data):
        found.codes.add(code)
        if code not in METADATA and found.lead_bytes is None:
            found.lead_bytes = at
        if code == DHT:
            tables.update(read_huffman(body))
        elif code == DRI:
            found.restart = struct.unpack(">H", body)[0]
        elif code == 0xE0 and body.startswith(b"JFIF\0"):
            found.has_jfif = True
        elif code == DQT:
            found.quant_bytes = max(found.quant_bytes, 1 + (body[0] >> 4))
        elif code == 0xEE:
            found.adobe = body[11] if body.startswith(b"Adobe") and len(body) >= 12 else 99
        elif code in (0xC0, 0xC1):
            found.bits, height, width, found.components = struct.unpack_from(">BHHB", body)
            found.ids = list(body[6::3])
            factors = [(body[7 + 3 * i] >> 4, body[7 + 3 * i] & 15) for i in range(body[5])]
        elif code == SOS:
            numbers, found.order = list(body[2:-3:2]), list(body[1:-3:2])
            found.head_bytes = at + 4 + len(body)
    need(len(factors) in (1, 3) and len(numbers) == len(factors), "no frame of one scan")
    found.factors, found.numbers = factors, numbers
    if found.components == 1:
        factors = [(1, 1)]
    found.h, found.v = max(h for h, _ in factors), max(v for _, v in factors)
    n_mcus = up(width, 8 * found.h) * up(height, 8 * found.v)
    blocks = [c for c, (h, v) in enumerate(factors) for _ in range(h * v)]
    bits, dc, found.mcus = Bits(data[found.head_bytes :]), [0] * found.components, []
    for mcu in range(n_mcus):
        if found.restart and mcu and mcu % found.restart == 0:
            bits.marker(RST + (mcu // found.restart - 1) % 8)
            dc = [0] * found.components
        found.mcus.append((bits.at, tuple(dc)))
        for c in blocks:
            dc[c] += bits.block(tables[0, numbers[c] >> 4], tables[1, numbers[c] & 15])
    bits.marker(EOI)
    found.scan_bytes = bits.at // 8 - 2
    return found
