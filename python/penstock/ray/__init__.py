# SPDX-License-Identifier: Apache-2.0
"""Packing on a Ray cluster. Needs Ray: pip install 'ray[data]'

    import penstock.ray

    account = penstock.ray.pack("s3://data/photos", "s3://packs/photos.pen")
    dataset.write_datasink(penstock.ray.PackSink("s3://packs/a.pen", {"image": "image"}))
"""

# The names are imported when they are used: `penstock ray pack --help` needs no Ray.
TYPE_CHECKING = False

if TYPE_CHECKING:
    from ._account import Account as Account
    from ._pack import pack as pack
    from ._progress import Progress as Progress
    from ._sink import PackSink as PackSink

__all__ = ["Account", "PackSink", "Progress", "pack"]
_MODULES = {
    "Account": "_account", "PackSink": "_sink", "Progress": "_progress", "pack": "_pack",
}


def __getattr__(name: str) -> object:
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    import importlib

    value = getattr(importlib.import_module(f"{__name__}.{_MODULES[name]}"), name)
    globals()[name] = value
    return value
