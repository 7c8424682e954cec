# SPDX-License-Identifier: Apache-2.0
"""Arguments of a cache: its directory and size, and the users that share it."""

from __future__ import annotations

import array
import os
import pwd
from collections.abc import Sequence

from . import _check
from ._error import InvalidError

Users = Sequence["str | int"]
_MOST_USERS = 256  # as in the library


def place(
    cache: str | os.PathLike[str] | None, cache_bytes: int | str | None
) -> tuple[str | None, int]:
    """The directory and the size; 0: the default."""
    if cache is None:
        if cache_bytes is not None:
            raise InvalidError("cache_bytes: there is no cache; set its directory with cache=")
        return None, 0
    path = _check.path(cache, "cache")
    if "://" in path:
        raise InvalidError(f"cache: expected a local directory, found {path!r}")
    return path, 0 if cache_bytes is None else _check.size("cache_bytes", cache_bytes)


def trusted(cache: object, share: object, trust: object) -> bytes | None:
    """The numbers of the trusted users, for the core. None: the cache is not shared."""
    is_shared = _check.flag("cache_share", share)
    if trust is None:
        trust = ()
    if isinstance(trust, str) or not isinstance(trust, Sequence):
        raise TypeError(f"cache_trust: expected a list of users, found {_check.shown(trust)}")
    if is_shared and cache is None:
        raise InvalidError("cache_share: there is no cache; set its directory with cache=")
    if trust and not is_shared:
        raise InvalidError("cache_trust: the cache is not shared; set cache_share=True")
    if len(trust) > _MOST_USERS:
        raise InvalidError(f"cache_trust: expected at most {_MOST_USERS} users, found {len(trust)}")
    return array.array("I", map(_number, trust)).tobytes() if is_shared else None


def _number(user: object) -> int:
    if not isinstance(user, str):
        return _check.integer("cache_trust", user, 0, 2**32 - 2)
    try:
        return pwd.getpwnam(user).pw_uid
    except (KeyError, ValueError):
        raise InvalidError(
            f"cache_trust: no user {_check.shown(user)} on this machine"
        ) from None
