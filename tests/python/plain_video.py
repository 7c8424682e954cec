# SPDX-License-Identifier: Apache-2.0
"""Video tables, read and written from docs/explanation/format.md alone. Reading checks all rules.

A packet is (offset, bytes, time, key, hidden), in decode order.
"""

import collections
import math
import struct

RUN, LEAST = 65536, 32  # bytes of a run, packets of a group
HEAD = struct.Struct("<HBBIIBBBBIIqIIII")
NAMES = ("version codec container width height orientation range matrix depth tick_num tick_den "
         "first_time n_packets n_groups n_runs extra_bytes").split()
GROUP = struct.Struct("<IIQqII")
Packet = collections.namedtuple("Packet", "offset bytes time key hidden")


def runs(payload):
    return [payload[at : at + RUN] for at in range(0, len(payload), RUN)]


def code_number(number):
    digits = []
    while number >= 128:
        digits.append(number % 128 + 128)
        number //= 128
    return bytes([*digits, number])


def code_difference(d):
    return code_number(2 * d if d >= 0 else -2 * d - 1)


class Table:
    """The packets of a video, with the flags of a writer, and what follows from them."""
    def __init__(self, packets):
        first = packets[0].time
        packets = [p._replace(hidden=p.hidden or p.time < first) for p in packets]
        late = [-math.inf] * (len(packets) + 1)  # of each packet: the last time before it
        for n, p in enumerate(packets):
            key = bool(p.key and p.time > late[n])
            packets[n] = p._replace(key=key)
            late[n + 1] = max(late[n], p.time) if key or not p.hidden else late[n]
        self.shown = sorted(p.time for p in packets if not p.hidden)
        start = self.shown[0] if self.shown else 0
        self.tick = math.gcd(*(p.time - start for p in packets)) or 1
        self.packets = [p._replace(time=(p.time - start) // self.tick) for p in packets]
        self.times = [(time - start) // self.tick for time in self.shown]
        self.groups = self.find_groups()

    def find_groups(self):
        early = [math.inf] * (len(self.packets) + 1)  # of each packet: the first time from it on
        for n in reversed(range(len(self.packets))):
            p = self.packets[n]
            early[n] = early[n + 1] if p.hidden else min(early[n + 1], p.time)
        groups = [0]
        for n, p in enumerate(self.packets):
            last = self.packets[groups[-1]].time
            if p.key and n - groups[-1] >= LEAST and early[n] >= last:
                groups.append(n)
        return groups

    def code(self):
        """The groups and the packets as bytes."""
        groups, coded = b"", b""
        for n, p in enumerate(self.packets):
            first = n in self.groups
            gap = 0 if first else p.offset - self.packets[n - 1].offset - self.packets[n - 1].bytes
            if first:
                before = sum(time < p.time for time in self.times)
                groups += GROUP.pack(n, len(coded), p.offset, p.time, before, 0)
            coded += code_number(p.bytes * 8 + 4 * bool(gap) + 2 * p.hidden + p.key)
            coded += code_difference(gap) if gap else b""
            coded += b"" if first else code_difference(p.time - self.packets[n - 1].time)
        return groups, coded


def write(stream, packets, payload, make_sum):
    """The table: stream is a dict of the names above that follow from nothing else."""
    table = Table(packets)
    groups, coded = table.code()
    tick = stream["tick"] * table.tick  # a Fraction
    sums = [make_sum(run, n + 1) for n, run in enumerate(runs(payload))]
    extra = stream.get("extra", b"")
    given = {"version": 1, "orientation": 1, "range": 0, "matrix": 2, "depth": 8, "first_time": 0,
             **stream, "tick_num": tick.numerator, "tick_den": tick.denominator,
             "n_packets": len(packets), "n_groups": len(table.groups), "n_runs": len(sums),
             "extra_bytes": len(extra)}
    head = HEAD.pack(*(given[name] for name in NAMES))
    return head + struct.pack(f"<{len(sums)}I", *sums) + groups + extra + coded, len(table.shown)


def number(need, data, at):
    digits = [data[at]] if at < len(data) else []
    while digits and digits[-1] & 128 and at + len(digits) < len(data):
        digits.append(data[at + len(digits)])
    need(digits and not digits[-1] & 128, "the packets of a video end too early")
    need(digits[-1] or len(digits) == 1, "a number of a video table has a needless byte")
    value = sum((digit & 127) << (7 * n) for n, digit in enumerate(digits))
    need(value < 2**64, "a number of a video table is too large")
    return value, at + len(digits)


def difference(need, data, at):
    value, at = number(need, data, at)
    return (-(value // 2) - 1 if value % 2 else value // 2), at


def read_packets(need, groups, coded, n_packets):
    starts, packets, at = {group[0]: group for group in groups}, [], 0
    for n in range(n_packets):
        head, at = number(need, coded, at)
        gap, later = 0, 0
        if n in starts:
            offset, time = starts[n][2:4]
        else:
            if head & 4:
                gap, at = difference(need, coded, at)
            later, at = difference(need, coded, at)
            offset, time = packets[-1].offset + packets[-1].bytes + gap, packets[-1].time + later
        packets.append(Packet(offset, head // 8, time, bool(head & 1), bool(head & 2)))
    need(at == len(coded), "bytes follow the packets of a video")
    return packets


def read(need, data, payload_bytes, n_frames):
    """A dict of the names, extra, sums and packets. need(ok, what) is called for every rule."""
    need(HEAD.size <= len(data) <= 2**27, "a video table is too short or too long")
    video = dict(zip(NAMES, HEAD.unpack_from(data)))
    need(video["version"] == 1, "version of a video table")
    need(1 <= video["codec"] <= 7 and video["container"] <= 4, "codec or container of a video")
    need(1 <= video["width"] <= 16384 and 1 <= video["height"] <= 16384, "size of a video")
    need(1 <= video["orientation"] <= 8 and video["range"] <= 2, "orientation or range of a video")
    need(video["depth"] in (8, 10, 12), "depth of a video")
    ticks = video["tick_num"], video["tick_den"]
    need(all(ticks) and math.gcd(*ticks) == 1, "ticks of a video")
    need(1 <= video["n_packets"] <= 2**24, "number of packets of a video")
    need(1 <= payload_bytes <= 2**40, "size of the payload of a video")
    need(video["n_runs"] == -(-payload_bytes // RUN), "number of runs of a video")
    need(video["extra_bytes"] <= 2**20, "configuration of a video")
    ends = [HEAD.size]
    for size in (4 * video["n_runs"], 32 * video["n_groups"], video["extra_bytes"]):
        ends.append(ends[-1] + size)
    need(ends[-1] <= len(data), "a video table is too short")
    parts = [data[at:end] for at, end in zip(ends, ends[1:])]
    groups = list(GROUP.iter_unpack(parts[1]))
    need(groups and groups[0][0] == 0, "the first group of a video")
    packets = read_packets(need, groups, data[ends[-1] :], video["n_packets"])
    for p in packets:
        need(1 <= p.bytes < 2**31 and 0 <= p.offset <= payload_bytes - p.bytes, "place of a packet")
        need(-(2**61) <= p.time <= 2**61, "time of a packet")
    table = Table(packets)
    need(len(set(table.shown)) == len(table.shown) == n_frames > 0, "frames of a video")
    need(packets[0].key and table.packets == packets, "flags or times of packets")
    need(table.code() == (parts[1], data[ends[-1] :]), "the table of a video has another form")
    sums = struct.unpack(f"<{video['n_runs']}I", parts[0])
    return {**video, "extra": parts[2], "sums": sums, "packets": packets, "times": table.times}
