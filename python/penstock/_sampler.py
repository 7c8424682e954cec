# SPDX-License-Identifier: Apache-2.0
"""Counters of a trace: what the process, the machine and the GPUs do, a few times a second.

docs/reference/trace.md lists them. What a system does not have is left out.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

Add = Callable[[str, str, float], None]  # counter, series, value
_TICKS = os.sysconf("SC_CLK_TCK")
_PAGE = os.sysconf("SC_PAGE_SIZE")


def _text(path: str) -> str:
    with open(path, encoding="utf-8", errors="replace") as file:
        return file.read()


# ---- of the process and the machine


class _Rates:
    """Differences of numbers that grow, per second."""

    def __init__(self) -> None:
        self._last: dict[str, tuple[float, float]] = {}

    def of(self, name: str, value: float, now: float) -> float | None:
        before = self._last.get(name)
        self._last[name] = value, now
        if before is None or now <= before[1]:
            return None
        return (value - before[0]) / (now - before[1])


class _Threads:
    """CPU time of each thread that runs, in percent of a core."""

    def __init__(self) -> None:
        self._rates = _Rates()
        self._shown: set[str] = set()

    def sample(self, add: Add, now: float) -> None:
        for tid in os.listdir("/proc/self/task"):
            with contextlib.suppress(OSError, ValueError, IndexError):  # it may have ended
                self._one(tid, add, now)

    def _one(self, tid: str, add: Add, now: float) -> None:
        text = _text(f"/proc/self/task/{tid}/stat")
        begin, end = text.index("("), text.rindex(")")
        fields = text[end + 2 :].split()
        series = f"{text[begin + 1 : end]} {tid}"
        rate = self._rates.of(tid, (int(fields[11]) + int(fields[12])) / _TICKS, now)
        # Hundreds of threads wait for a server: those that never run are left out.
        if rate is not None and (rate or series in self._shown):
            self._shown.add(series)
            add("cpu_percent", series, round(100 * rate, 1))


class _Memory:
    def sample(self, add: Add, now: float) -> None:
        add("memory_bytes", "resident", int(_text("/proc/self/statm").split()[1]) * _PAGE)
        for line in _text("/proc/meminfo").splitlines():
            if line.startswith("Cached:"):
                add("memory_bytes", "page cache", int(line.split()[1]) * 1024)


class _Disk:
    """Bytes that this process caused to be read from disks, and written to them."""

    def __init__(self) -> None:
        self._rates = _Rates()

    def sample(self, add: Add, now: float) -> None:
        for line in _text("/proc/self/io").splitlines():
            name, _, value = line.partition(": ")
            if name in ("read_bytes", "write_bytes"):
                rate = self._rates.of(name, int(value), now)
                if rate is not None:
                    add("disk_bytes_per_second", name.removesuffix("_bytes"), round(rate))


class _Network:
    """Bytes of all interfaces of this network namespace; loopback apart."""

    def __init__(self) -> None:
        self._rates = _Rates()

    def sample(self, add: Add, now: float) -> None:
        totals = {"received": 0, "sent": 0, "loopback": 0}
        for line in _text("/proc/self/net/dev").splitlines()[2:]:
            name, _, rest = line.partition(":")
            values = rest.split()
            if name.strip() == "lo":
                totals["loopback"] += int(values[0])
            else:
                totals["received"] += int(values[0])
                totals["sent"] += int(values[8])
        for series, value in totals.items():
            rate = self._rates.of(series, value, now)
            if rate is not None:
                add("network_bytes_per_second", series, round(rate))


# ---- of GPUs


class _Utilization(ctypes.Structure):
    _fields_ = (("gpu", ctypes.c_uint), ("memory", ctypes.c_uint))


class _GpuMemory(ctypes.Structure):
    _fields_ = tuple((name, ctypes.c_ulonglong) for name in ("total", "free", "used"))


class _Gpus:
    """By NVML, the library of NVIDIA's driver."""

    def __init__(self) -> None:
        self._nvml: Any = ctypes.CDLL("libnvidia-ml.so.1")
        count = ctypes.c_uint()
        self._check(self._nvml.nvmlInit_v2())
        self._check(self._nvml.nvmlDeviceGetCount_v2(ctypes.byref(count)))
        self._handles = []
        for i in range(count.value):
            handle = ctypes.c_void_p()
            self._check(self._nvml.nvmlDeviceGetHandleByIndex_v2(i, ctypes.byref(handle)))
            self._handles.append(handle)

    def _check(self, code: int) -> None:
        if code != 0:
            raise OSError(f"NVML error {code}")

    def sample(self, add: Add, now: float) -> None:
        for i, handle in enumerate(self._handles):
            used, memory = _Utilization(), _GpuMemory()
            self._check(self._nvml.nvmlDeviceGetUtilizationRates(handle, ctypes.byref(used)))
            self._check(self._nvml.nvmlDeviceGetMemoryInfo(handle, ctypes.byref(memory)))
            add("gpu_percent", f"GPU {i}", used.gpu)
            add("gpu_memory_bytes", f"GPU {i}", memory.used)


# ---- the thread


class _Loaders:
    def __init__(self, stats: Callable[[], Iterator[dict[str, Any]]]) -> None:
        self._stats = stats

    def sample(self, add: Add, now: float) -> None:
        for i, stats in enumerate(self._stats()):
            add("batches_ready", f"loader {i}", stats["slots_ready"])
            add("samples_ready", f"loader {i}", stats["samples_ready"])
            add("loader_memory_bytes", f"loader {i}", stats["memory_bytes"])


class Sampler:
    """Adds counters to a trace until it is stopped."""

    def __init__(
        self, add: Add, stats: Callable[[], Iterator[dict[str, Any]]], per_second: float
    ) -> None:
        self._add = add
        self._period = 1 / per_second
        self._end = threading.Event()
        self._probes: list[Any] = [_Loaders(stats)]
        for kind in (_Threads, _Memory, _Disk, _Network, _Gpus):
            with contextlib.suppress(OSError, AttributeError):
                self._probes.append(kind())
        self._thread = threading.Thread(target=self._run, name="trace sampler", daemon=True)
        self._thread.start()

    def _run(self) -> None:
        while True:
            now = time.monotonic()
            for probe in list(self._probes):
                try:
                    probe.sample(self._add, now)
                except Exception:  # what fails once is not measured any more
                    self._probes.remove(probe)
            if self._end.wait(self._period):
                return

    def stop(self) -> None:
        self._end.set()
        self._thread.join(2)
