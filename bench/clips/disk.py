# SPDX-License-Identifier: Apache-2.0
"""Where loaders read: the real folder, or the same one on the lab's simulated disk with seeks."""

from penstock.lab.shapes import seeks


class Here:
    """The real disk."""

    def __init__(self, folder):
        self.root = folder

    def __enter__(self):
        return self

    def __exit__(self, *_):
        pass

    def counts(self):
        return {}


class Slow:
    """A disk with one arm, simulated: every open, and every read that is not contiguous, waits."""

    def __init__(self, folder, seek_ms):
        self.mounted = seeks.mounted(folder, seek_ms)

    def __enter__(self):
        self.place = self.mounted.__enter__()
        self.root = str(self.place.folder)
        return self

    def __exit__(self, *error):
        return self.mounted.__exit__(*(error or (None, None, None)))

    def counts(self):
        return self.place.counts()
