# SPDX-License-Identifier: Apache-2.0
"""The sources of the libraries inside a wheel: tools/wheel/sources.toml, downloaded and unpacked.

They are Debian's source packages, downloaded by apt from the mirrors that it is set up with. Files
are kept in $PENSTOCK_SOURCES (~/.cache/penstock/sources). Files from elsewhere may be put there:
only their SHA-256 counts."""

import functools
import hashlib
import os
import pathlib
import re
import subprocess
from dataclasses import dataclass, field

import tomllib

TABLE = pathlib.Path(__file__).with_name("sources.toml")
APT_HELPER = "/usr/lib/apt/apt-helper"


class Unavailable(Exception):
    """A file that can no longer be downloaded."""


@dataclass(frozen=True)
class Library:
    name: str
    dsc: str
    sha256: str
    spdx: str
    cpe: str  # vendor:product, by which vulnerabilities are found
    licences: list
    wheel: str = "penstock"
    suite: str = "trixie"  # of Debian
    directory: str = "."  # of its CMakeLists.txt
    needs: list = field(default_factory=list)  # libraries that it is built with
    options: list = field(default_factory=list)

    @property
    def package(self):
        return pathlib.PurePath(self.dsc).name.partition("_")[0]

    @property
    def version(self):
        """1.3.1 for zlib_1.3.dfsg+really1.3.1-1+deb13u1.dsc."""
        debian = pathlib.PurePath(self.dsc).stem.partition("_")[2]
        return debian.rpartition("-")[0].rpartition("really")[2].partition("+")[0]

    @property
    def debian_version(self):
        """With the epoch, which file names lack."""
        return re.search(r"^Version: (\S+)$", fetch(self).read_text(), re.M)[1]

    def licence_text(self, source):
        return b"\n\n".join((source / name).read_bytes() for name in self.licences)


def libraries(wheel=None):
    """Those of a wheel, or of all."""
    found = [Library(**row) for row in tomllib.loads(TABLE.read_text())["library"]]
    return [library for library in found if wheel in (None, library.wheel)]


def cache():
    given = os.environ.get("PENSTOCK_SOURCES")
    return pathlib.Path(given) if given else pathlib.Path.home() / ".cache/penstock/sources"


@functools.cache
def mirror(label):
    done = subprocess.run(
        ["apt-get", "indextargets", "--format", "$(REPO_URI)", "Created-By: Packages",
         f"Label: {label}"], capture_output=True, text=True, check=True)
    if not done.stdout.split():
        raise Unavailable(f"apt knows no archive called {label}; run apt-get update on Debian")
    return done.stdout.split()[0]


def download(uri, path, *sha256):
    """By apt; the hash is optional."""
    done = subprocess.run(
        [APT_HELPER, "-qq", "-o", "APT::Sandbox::User=root", "download-file", uri, path,
         *(f"SHA256:{digest}" for digest in sha256)],
        capture_output=True, text=True, check=False, timeout=600)
    if done.returncode != 0:
        raise Unavailable(f"{path.name}: cannot be downloaded: {done.stderr.strip()}")


def is_there(path, sha256):
    return path.exists() and hashlib.sha256(path.read_bytes()).hexdigest() == sha256


def fetch_file(place, sha256):
    """A file below Debian's pool into the cache."""
    path = cache() / pathlib.PurePath(place).name
    if is_there(path, sha256):
        return path
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_name(f"{path.name}.{os.getpid()}.part")
    label = "Debian-Security" if place.startswith("pool/updates/") else "Debian"
    try:
        download(mirror(label) + place, part, sha256)
        part.replace(path)
    except Unavailable as e:
        raise Unavailable(f"{e}\nRun tools/wheel/updates.py and enter the newer version in "
                          f"{TABLE.name}, or put {path.name} into {cache()}.") from None
    finally:
        part.unlink(missing_ok=True)
    return path


def fetch(library):
    dsc = fetch_file(library.dsc, library.sha256)
    listed = dsc.read_text().partition("Checksums-Sha256:\n")[2]
    for sha256, name in re.findall(r"^ ([0-9a-f]{64}) \d+ (\S+)$", listed, re.M):
        fetch_file(str(pathlib.PurePath(library.dsc).with_name(name)), sha256)
    return dsc


def unpack(library, folder):
    """The source tree with Debian's patches, as a new folder."""
    folder.parent.mkdir(parents=True, exist_ok=True)
    subprocess.run(["dpkg-source", "--no-check", "--no-copy", "-x", fetch(library), folder],
                   check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    return folder
