# SPDX-License-Identifier: Apache-2.0
"""Options and credentials for packs in object stores."""

from __future__ import annotations

import atexit
import time
import weakref
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol, TypedDict, Union

from . import _check, _core
from ._error import InvalidError

# Key id, secret, token, expiry; the last two are optional.
Credentials = Union[Mapping[str, Any], tuple[Any, ...]]


class StorageOptions(TypedDict, total=False):
    """Options for a pack at an s3://, https:// or http:// URL. All are optional. Without them, the
    environment, the AWS profile and the instance are used, as the AWS CLI does.

    endpoint        "https://host[:port]" of a store other than AWS
    region          region of the bucket
    profile         profile in ~/.aws/config and ~/.aws/credentials
    key_id, secret, token
                    credentials; no other source is then tried
    credentials     a function that returns credentials: a dict with key_id, secret, token and
                    expires, or a tuple of these. token and expires may be None; expires is a
                    datetime with a time zone, or seconds since 1970. It is called again before the
                    credentials expire, from another thread.
    no_sign         True for a public bucket: requests are not signed
    requester_pays  True: this account pays for the requests
    path_style      True: the bucket is part of the path; False: part of the host name
    ca_file         CA certificates to trust instead of the system's
    proxy           "http://host:port"
    allow_http      True: credentials may be sent over http to other hosts
    deadline        time limit of one request, in seconds (default 30)
    outage          how long failed requests are retried, in seconds (default 300)
    in_flight       maximum concurrent requests of this node (default 512, at most 64 per process)
    node_ranks      processes on this node that share in_flight (default: from the environment)
    """

    endpoint: str | None
    region: str | None
    profile: str | None
    key_id: str | None
    secret: str | None
    token: str | None
    credentials: Callable[[], Credentials] | None
    no_sign: bool
    requester_pays: bool
    path_style: bool | None
    ca_file: str | None
    proxy: str | None
    allow_http: bool
    deadline: float | None
    outage: float | None
    in_flight: int | None
    node_ranks: int | None


_TEXTS = ("endpoint", "region", "profile", "key_id", "secret", "token", "ca_file", "proxy")
_FLAGS = ("no_sign", "requester_pays", "allow_http")
_SECRETS = ("key_id", "secret", "token", "credentials")
_NAMES = tuple(StorageOptions.__annotations__)

# Names of the same options in other libraries.
_REPLACED = {
    "endpoint_url": "endpoint",
    "aws_endpoint_url": "endpoint",
    "region_name": "region",
    "aws_region": "region",
    "key": "key_id",
    "aws_access_key_id": "key_id",
    "aws_secret_access_key": "secret",
    "aws_session_token": "token",
    "anon": "no_sign",
    "verify": "ca_file",
    "timeout": "deadline",
    "profile_name": "profile",
}


class Options(tuple[Any, ...]):
    """The arguments of the extension. They contain secrets, so they are not stored."""

    __slots__ = ()

    def __repr__(self) -> str:
        return "<storage options>"

    def __reduce__(self) -> Any:
        raise TypeError("storage options cannot be pickled")


def check(
    path: str, given: StorageOptions | None, others: Sequence[str] = ()
) -> tuple[Options | None, dict[str, Any]]:
    """The arguments of the extension (None if all are paths), and the options that are not
    secret."""
    if given is not None and not isinstance(given, Mapping):
        raise TypeError(f"storage_options: expected a dict, found {type(given).__name__}")
    if not any(map(_core.is_remote, (path, *others))):
        if given:
            raise InvalidError(
                "storage_options: they are for s3://, https:// and http:// URLs, found a path"
            )
        return None, {}
    known = _known(given)
    if ("key_id" in known) != ("secret" in known):
        raise InvalidError("storage_options: expected key_id and secret together, found only one")
    if "token" in known and "key_id" not in known:
        raise InvalidError("storage_options: expected key_id and secret, found only token")
    asker = _asker(known.get("credentials"))
    is_given = {"key_id": "key_id" in known, "credentials": asker is not None,
                "no_sign": known.get("no_sign", False)}
    ways = [name for name, given_so in is_given.items() if given_so]
    if len(ways) > 1:
        raise InvalidError(f"storage_options: {ways[0]} and {ways[1]} are mutually exclusive; "
                           "pass one")
    options = Options(
        (
            *(known.get(name) for name in _TEXTS),
            asker,
            {None: -1, False: 0, True: 1}[known.get("path_style")],
            *(bool(known.get(name)) for name in _FLAGS),
            _milliseconds("deadline", known.get("deadline")),
            _milliseconds("outage", known.get("outage")),
            _check.integer("in_flight", known.get("in_flight", 0), 0, 4096),
            _check.integer("node_ranks", known.get("node_ranks", 0), 0, 4096),
        )
    )
    return options, {name: value for name, value in known.items() if not is_secret(name, value)}


def is_secret(name: str, value: Any) -> bool:
    """True for credentials, and for a proxy or endpoint with a password."""
    return name in _SECRETS or (name in ("proxy", "endpoint") and "@" in value)


def _known(given: StorageOptions | None) -> dict[str, Any]:
    """The checked options without None. No message shows a value that may be secret."""
    if given is None:
        return {}
    known: dict[str, Any] = {}
    for name, value in given.items():
        if name not in _NAMES:
            other = _REPLACED.get(str(name))
            near = f"; did you mean {other!r}?" if other else _check.nearest(str(name), _NAMES)
            raise InvalidError(f"storage_options: no option {_check.shown(name)}{near}")
        if value is None:
            continue
        if name in _TEXTS and not isinstance(value, str):
            value = _text(name, value)
        if name in (*_FLAGS, "path_style") and not isinstance(value, bool):
            raise TypeError(f"storage_options: {name}: expected True or False")
        known[name] = value
    return known


def _text(name: str, value: object) -> str:
    if name == "ca_file" and hasattr(value, "__fspath__"):
        return _check.path(value, "storage_options: ca_file")
    raise TypeError(f"storage_options: {name}: expected str, found {type(value).__name__}")


def _milliseconds(name: str, seconds: object) -> int:
    if seconds is None:
        return 0
    return round(
        _check.real(f"storage_options: {name}", seconds, 0.001, 4e6, " seconds") * 1000
    )


def _asker(credentials: object) -> Callable[[], tuple[str, str, str | None, int]] | None:
    if credentials is None:
        return None
    if not callable(credentials):
        raise TypeError("storage_options: credentials: expected a function")
    ask: Callable[[], Any] = credentials

    def call() -> tuple[str, str, str | None, int]:
        return _given(ask())

    return call


def _given(found: Any) -> tuple[str, str, str | None, int]:
    """The result of a callback as the extension takes it. Errors show no values."""
    names = ("key_id", "secret", "token", "expires")
    if isinstance(found, Mapping):
        unknown = [name for name in found if name not in names]
        if unknown:
            raise InvalidError(f"credentials: expected {', '.join(names)}, found {unknown[0]!r}")
        found = tuple(found.get(name) for name in names)
    if not isinstance(found, tuple) or not 2 <= len(found) <= 4:
        raise TypeError(
            "credentials: expected a dict with key_id, secret, token and expires, or a tuple of "
            f"2 to 4, found {type(found).__name__}"
        )
    key_id, secret, token, expires = (*found, None, None)[:4]
    if not isinstance(key_id, str) or not isinstance(secret, str):
        raise TypeError("credentials: expected str for key_id and secret")
    if token is not None and not isinstance(token, str):
        raise TypeError("credentials: expected str or None for token")
    return key_id, secret, token, _end(expires)


def _end(expires: object) -> int:
    """Seconds since 1970; 0 if the credentials do not expire."""
    if expires is None:
        return 0
    import datetime  # not when penstock is imported

    if isinstance(expires, datetime.datetime):
        if expires.tzinfo is None:
            raise InvalidError(
                "credentials: expires: expected a datetime with a time zone, found one without"
            )
        expires = expires.timestamp()
    if isinstance(expires, bool) or not isinstance(expires, (int, float)):
        raise TypeError(
            "credentials: expires: expected a datetime, seconds since 1970 or None, "
            f"found {type(expires).__name__}"
        )
    if not 0 < expires < 2**53:
        raise InvalidError(f"credentials: expires: expected seconds since 1970, found {expires}")
    return int(expires)


# ---- exit of the interpreter


class _Closable(Protocol):
    def close(self) -> None: ...


_open: weakref.WeakSet[_Closable] = weakref.WeakSet()
_CLOSE_SECONDS = 1.0


def opened(what: _Closable) -> None:
    """Close this before the interpreter exits, because a thread handles its requests."""
    _open.add(what)


@atexit.register
def _end_all() -> None:
    _core.end()
    deadline = time.monotonic() + _CLOSE_SECONDS
    for what in list(_open):
        if time.monotonic() < deadline:
            what.close()
    _core.end_wait()
