# SPDX-License-Identifier: Apache-2.0
"""Options of commands for object stores."""

from __future__ import annotations

import argparse

from . import _remote

_NAMES = {"endpoint": "endpoint", "region": "region", "profile": "profile", "ca": "ca_file"}
_FLAGS = {"no-sign": "no_sign", "requester-pays": "requester_pays", "allow-http": "allow_http"}


def add(parser: argparse.ArgumentParser) -> None:
    store = parser.add_argument_group("object stores ('penstock help s3')")
    for option, name in _NAMES.items():
        store.add_argument(f"--{option}", dest=name, metavar="X")
    for option, name in _FLAGS.items():
        store.add_argument(f"--{option}", dest=name, action="store_const", const=True)


def given(args: argparse.Namespace) -> _remote.StorageOptions | None:
    """None if no option was given."""
    names = (*_NAMES.values(), *_FLAGS.values())
    found = {name: v for name in names if (v := getattr(args, name)) is not None}
    return found or None  # type: ignore[return-value]
