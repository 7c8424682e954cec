# SPDX-License-Identifier: Apache-2.0
"""penstock: pack a dataset once, then load the same batches from it in every run.

    import penstock
    from penstock import ops

    pack = penstock.open("train.pen")
    loader = penstock.Loader(pack, batch_size=256, shuffle=True, drop_last=True,
                             pipeline=[ops.decode(), ops.random_resized_crop(224), ops.hflip(),
                                       ops.tensor("u8")])
    for image, label in loader:
        ...
"""

# The names are imported when the first of them is used: the command `penstock`, which is part of
# this package, needs none of them.
TYPE_CHECKING = False

if TYPE_CHECKING:
    from ._api import *  # noqa: F403
    from ._api import __all__, __version__  # noqa: F401
else:

    def _load():
        from . import _api

        names = {name: getattr(_api, name) for name in (*_api.__all__, "__all__")}
        globals().update(names)
        return names

    def __getattr__(name):
        public = not name.startswith("_") or name in ("__all__", "__version__")
        names = _load() if public else {}
        if name not in names:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        return names[name]

    def __dir__():
        return sorted({*_load(), *globals()})
