# SPDX-License-Identifier: Apache-2.0
"""Storage shapes: slower disks, object stores and less memory, simulated for every loader alike.

    shape = shapes.parse("disk=20MB/s")
    with shape.apply([pack]) as place:          # measured first: place.checks
        process = subprocess.Popen([*place.words, ...], env={**os.environ, **place.environment})
        place.join(process.pid)                 # before it reads
        place.refresh()                         # before every turn
        ...                                     # it reads place.path(pack)

Everything is undone at the end, also after an exception and SIGTERM. What a killed process leaves
behind is removed by the next one. What the machine does not allow raises Absent(reason).
"""

from .cache import Cache
from .combined import Combined
from .disk import Disk
from .memory import Memory
from .parse import GRAMMAR, parse
from .seeks import Seeks
from .shape import TOLERANCE, Check, Place, Shape, is_simulated
from .store import Store, StorePlace

__all__ = [
    "GRAMMAR",
    "TOLERANCE",
    "Cache",
    "Check",
    "Combined",
    "Disk",
    "Memory",
    "Place",
    "Seeks",
    "Shape",
    "Store",
    "StorePlace",
    "is_simulated",
    "parse",
]
