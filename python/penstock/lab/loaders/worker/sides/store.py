# SPDX-License-Identifier: Apache-2.0
"""Addresses in an object store, and local caches that are empty when an epoch starts."""

import os
import shutil
import tempfile
import urllib.parse


def bucket_and_key(address):
    parts = urllib.parse.urlsplit(address)
    return parts.netloc, parts.path[1:]


def folder_of(addresses):
    """The address of the folder that has all of these."""
    return addresses[0].rpartition("/")[0]


def url_of(address):
    """For clients of HTTP. The object store must not require signatures."""
    return address.replace("s3://", os.environ["AWS_ENDPOINT_URL"] + "/", 1)


class Cache:
    """An empty folder below `parent` each time. Those before it are removed."""

    def __init__(self, parent):
        self.parent, self.folder = parent, None

    def empty(self):
        if self.folder:
            shutil.rmtree(self.folder, ignore_errors=True)
        self.folder = tempfile.mkdtemp(dir=self.parent)
        return self.folder
