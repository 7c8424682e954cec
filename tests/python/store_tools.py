# SPDX-License-Identifier: Apache-2.0
"""Fixtures for tests that use scripted S3 servers. conftest.py makes them known to all files."""

import contextlib
import os

import pytest


@pytest.fixture(scope="module")
def s3():
    """A function that returns a net_stage.S3Server with the given settings.

    A file starts one server for each combination of settings; every call returns it as if it had
    just been started. What a served directory holds stays."""
    import net_stage

    started = {}
    with contextlib.ExitStack() as stack:

        def find(buckets=("packs",), **settings):
            given = repr((buckets, sorted(settings.items())))
            if given in started:
                started[given].control(renew=True)
            else:
                server = net_stage.S3Server(buckets=buckets, **settings)
                started[given] = stack.enter_context(server)
            return started[given]

        yield find


@pytest.fixture
def no_other_settings(monkeypatch):
    """Without the user's settings for AWS and proxies."""
    import net_stage

    for name in os.environ.keys() - net_stage.clean_environment():
        monkeypatch.delenv(name)
    for name, value in net_stage.NOWHERE.items():
        monkeypatch.setenv(name, value)
