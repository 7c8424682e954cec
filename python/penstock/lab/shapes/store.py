# SPDX-License-Identifier: Apache-2.0
"""An object store with request latency, and with a network of limited bandwidth."""

from __future__ import annotations

import contextlib
import dataclasses
import os
import pathlib
import shutil
import subprocess
import sys
from collections.abc import Iterator, Sequence

from ..errors import Absent, LabError
from . import reader, undo
from .shape import Check, PathLike, Place, Shape, common_folder

SERVER = pathlib.Path(__file__).with_name("store_server.py")
PROBE = pathlib.Path(__file__).with_name("store_probe.py")
BUCKET = "lab"
PROBE_SECONDS, PROBE_REQUESTS = 1.5, (5, 50)
HOW_LATENCY = "a store that waits before it answers; requests for one byte; median"
HOW_BANDWIDTH = "tc tbf on lo in a network namespace; 4 connections"
# Loopback alone, with a token bucket: RATE and BURST, then the command.
LINK = (
    'ip link set lo up && tc qdisc add dev lo root tbf rate "$1"bit burst "$2" latency 2s '
    '&& shift 2 && exec "$@"'
)
LEAST_BURST = 256 << 10  # a smaller one stalls, as packets on lo have up to 64 KiB


class StorePlace(Place):
    """The folder is served as s3://lab; `url` is the endpoint."""

    def __init__(self, origin: pathlib.Path, port: int, words: list[str]) -> None:
        super().__init__(origin)
        self.port, self.words, self.url = port, words, f"http://127.0.0.1:{port}"
        self.environment = {
            "AWS_ENDPOINT_URL": self.url,
            "AWS_ACCESS_KEY_ID": "lab",
            "AWS_SECRET_ACCESS_KEY": "lab",
            "AWS_REGION": "us-east-1",
            "AWS_DEFAULT_REGION": "us-east-1",
            "AWS_EC2_METADATA_DISABLED": "true",
            "NO_PROXY": "127.0.0.1",
            "no_proxy": "127.0.0.1",
        }

    def address(self, original: PathLike) -> str:
        """The address of a file or folder in the store."""
        key = pathlib.Path(original).resolve().relative_to(self.origin.resolve())
        return f"s3://{BUCKET}/{key}"


def _link_words(mb_per_second: float) -> list[str]:
    """Starts a command in a network of its own with this bandwidth."""
    missing = [name for name in ("unshare", "nsenter", "ip", "tc") if not shutil.which(name)]
    if missing:
        raise Absent(
            f"{', '.join(missing)}: not installed. The bandwidth of a store needs them: "
            "apt-get install util-linux iproute2"
        )
    if os.geteuid() != 0:
        raise Absent("the bandwidth of a store needs root: run penstock-lab with sudo")
    bits = round(mb_per_second * 8e6)
    burst = max(LEAST_BURST, bits // 8 // 100)
    return ["unshare", "-n", "sh", "-c", LINK, "sh", str(bits), str(burst)]


@contextlib.contextmanager
def served(
    folder: pathlib.Path, latency_ms: float, mb_per_second: float | None
) -> Iterator[StorePlace]:
    words = _link_words(mb_per_second) if mb_per_second else []
    with undo.on_sigterm():
        process = subprocess.Popen(
            [*words, sys.executable, "-S", "-E", str(SERVER), str(folder), str(latency_ms)],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        )
        try:
            try:
                port = int(reader.line_of(process, undo.SECONDS, "the simulated store"))
            except LabError as error:
                process.kill()
                said = process.communicate()[1].strip()
                raise Absent(f"{error}: {said}") from None
            enter = ["nsenter", "-t", str(process.pid), "-n", "--"] if words else []
            yield StorePlace(folder, port, enter)
        finally:
            process.kill()
            process.communicate()


@dataclasses.dataclass(frozen=True)
class Store(Shape):
    """Each request waits `latency_ms`; all connections together get `mb_per_second`, if given."""

    latency_ms: float
    mb_per_second: float | None = None

    @property
    def text(self) -> str:  # type: ignore[override]
        more = f"@{self.mb_per_second:g}MB/s" if self.mb_per_second else ""
        return f"store={self.latency_ms:g}ms{more}"

    @contextlib.contextmanager
    def apply(self, paths: Sequence[PathLike], measure: bool = True) -> Iterator[StorePlace]:
        with served(common_folder(paths), self.latency_ms, self.mb_per_second) as place:
            if measure:
                place.checks += self.check(place)
            yield place

    def check(self, place: StorePlace) -> list[Check]:
        rate = self.mb_per_second or 0.0
        count = round(1000 * PROBE_SECONDS / max(self.latency_ms, 0.1))
        count = min(max(count, PROBE_REQUESTS[0]), PROBE_REQUESTS[1])
        size = round(rate * 1e6 * (PROBE_SECONDS + 0.5))
        seconds = 30 + 3 * (PROBE_SECONDS + count * self.latency_ms / 1000)
        try:
            done = subprocess.run(
                [*place.words, sys.executable, "-S", "-E", str(PROBE), str(place.port), str(size),
                 str(count)], check=True, text=True, capture_output=True, timeout=seconds,
            )
        except subprocess.SubprocessError as error:
            raise LabError(f"the simulated store could not be measured: {error}") from None
        latency, found = map(float, done.stdout.split())
        checks = [Check(self.text, "latency", self.latency_ms, latency, "ms", HOW_LATENCY)]
        if rate:
            how = HOW_BANDWIDTH
            checks.append(Check(self.text, "bandwidth", rate, found / 1e6, "MB/s", how))
        return checks
