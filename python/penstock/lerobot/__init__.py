# SPDX-License-Identifier: Apache-2.0
"""Train on LeRobot datasets (v3) without converting them. Needs pyarrow and NumPy.

    import penstock.lerobot

    penstock.lerobot.index("my_dataset", "my_dataset.pen")
"""

# The names are imported when they are used: `import penstock.lerobot` needs no pyarrow.
TYPE_CHECKING = False

if TYPE_CHECKING:
    from ._index import Indexed as Indexed
    from ._index import index as index
    from ._windows import windows as windows

__all__ = ["Indexed", "index", "windows"]
_MODULES = {"Indexed": "_index", "index": "_index", "windows": "_windows"}


def __getattr__(name: str) -> object:
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    import importlib

    value = getattr(importlib.import_module(f"{__name__}.{_MODULES[name]}"), name)
    globals()[name] = value
    return value
