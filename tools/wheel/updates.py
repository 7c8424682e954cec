#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Lists newer versions of the source packages in sources.toml: tools/wheel/updates.py

Prints the lines to change, and exits with 1 if there is one."""

import lzma
import pathlib
import re
import subprocess
import sys
import tempfile

import sources


def packages(suite, wanted):
    """(package, version, path of the .dsc file, SHA-256) from the index of a Debian suite."""
    label = "Debian-Security" if suite.endswith("-security") else "Debian"
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder) / "Sources.xz"
        sources.download(f"{sources.mirror(label)}dists/{suite}/main/source/Sources.xz", path)
        text = lzma.decompress(path.read_bytes()).decode()
    for block in text.split("\n\n"):
        found = dict(re.findall(r"^(Package|Version|Directory): (.+)$", block, re.M))
        if found.get("Package") in wanted:
            sha256, name = re.search(r"^ ([0-9a-f]{64}) \d+ (\S+\.dsc)$", block, re.M).groups()
            yield found["Package"], found["Version"], f"{found['Directory']}/{name}", sha256


def is_newer(version, other):
    return subprocess.run(["dpkg", "--compare-versions", version, "gt", other],
                          check=False).returncode == 0


def pinned_version(library):
    """Debian removes a version when a newer one is there, so any other is newer than one that is
    gone."""
    try:
        return library.debian_version
    except sources.Unavailable:
        return "0"


def main():
    table = sources.libraries()
    latest = {library.package: (pinned_version(library), None, None) for library in table}
    for suite in sorted({library.suite for library in table}):
        wanted = {library.package for library in table if library.suite == suite}
        for place in (suite, f"{suite}-security"):
            for package, version, dsc, sha256 in packages(place, wanted):
                if is_newer(version, latest[package][0]):
                    latest[package] = (version, dsc, sha256)
    newer = {package: row for package, row in latest.items() if row[1]}
    for package, (version, dsc, sha256) in newer.items():
        print(f'# {package} {version}\ndsc = "{dsc}"\nsha256 = "{sha256}"')
    print(f"{len(newer)} of {len(table)} libraries have a newer version")
    return 1 if newer else 0


if __name__ == "__main__":
    sys.exit(main())
