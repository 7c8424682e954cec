# SPDX-License-Identifier: Apache-2.0
"""Builds the libraries of sources.toml as static ones, into the prefix of a toolchain."""

import hashlib
import os
import pathlib
import shutil
import subprocess
import sys

import sources

JOBS = os.environ.get("PENSTOCK_JOBS") or str(os.cpu_count())
# 1980-01-01. libjpeg-turbo and OpenSSL store the date on which they are built; today's would make
# every wheel different.
DATE = "315532800"


class Build:
    """One library in its own folder. All that its commands print goes to a log there."""

    def __init__(self, library, chain):
        self.library, self.chain = library, chain
        self.folder = chain.folder / library.name
        shutil.rmtree(self.folder, ignore_errors=True)
        self.source = sources.unpack(library, self.folder / "source")
        self.log = self.folder / "log"

    def run(self, *command, cwd=None):
        with open(self.log, "ab") as log:
            done = subprocess.run([os.fspath(word) for word in command], cwd=cwd or self.source,
                                  env={**self.chain.environment(), "SOURCE_DATE_EPOCH": DATE},
                                  stdin=subprocess.DEVNULL, stdout=log, stderr=log, check=False)
        if done.returncode != 0:
            tail = self.log.read_text(errors="replace").splitlines()[-30:]
            sys.exit("\n".join([*tail, f"{self.library.name}: {command[0]} failed: {self.log}"]))


def with_cmake(build):
    out = build.folder / "out"
    build.run("cmake", "-G", "Ninja", "-S", build.source / build.library.directory, "-B", out,
              *build.chain.cmake(), *build.library.options)
    build.run("cmake", "--build", out, "-j", JOBS)
    build.run("cmake", "--install", out)


def zlib(build):
    """Debian's tarball lacks files that its CMakeLists.txt names."""
    build.run("sh", "configure", f"--prefix={build.chain.prefix}", *build.library.options)
    build.run("make", "-j", JOBS, "install", "CFLAGS=-O2 -D_LARGEFILE64_SOURCE=1 -DHAVE_HIDDEN")


def by_files(archive, folder, names, headers, pkgconfig=None):
    """For a library of a few files, whose own build makes too much of them, or fails."""
    def build_files(build):
        prefix = build.chain.prefix
        for name in names:
            build.run("penstock-cc", "-O2", f"-I{prefix}/include", "-c", f"{name}.c", "-o",
                      f"{name}.o", cwd=build.source / folder)
        build.run("penstock-ar", "rcs", prefix / "lib" / archive, *(f"{name}.o" for name in names),
                  cwd=build.source / folder)
        for header in headers:
            shutil.copy(build.source / folder / header, prefix / "include")
        if pkgconfig:
            name, libraries = pkgconfig
            (prefix / f"lib/pkgconfig/{name}.pc").write_text(
                f"Name: {name}\nDescription: {name}\nVersion: {build.library.version}\n"
                f"Libs: -L{prefix}/lib {libraries}\nCflags: -I{prefix}/include\n")
    return build_files


def openssl(build):
    """Its directories are part of the library, so they do not name this machine's."""
    stage, prefix = build.folder / "stage", build.chain.prefix
    build.run("perl", "Configure", build.chain.arch.openssl, "--prefix=/usr", "--libdir=lib",
              "--openssldir=/etc/ssl", "--release", *build.library.options)
    build.run("make", "-s", "-j", JOBS, "build_libs")
    build.run("make", "-s", f"DESTDIR={stage}", "install_dev")
    shutil.copytree(stage / "usr", prefix, dirs_exist_ok=True)
    for path in prefix.glob("lib/pkgconfig/*.pc"):
        path.write_text(path.read_text().replace("prefix=/usr\n", f"prefix={prefix}\n"))


BY_HAND = {
    "zlib": zlib,
    "bzip2": by_files("libbz2.a", ".", ["blocksort", "huffman", "crctable", "randtable", "compress",
                                        "decompress", "bzlib"], ["bzlib.h"]),
    # lz4frame.c needs xxhash, and libarchive does not need lz4frame.c.
    "lz4": by_files("liblz4.a", "lib", ["lz4", "lz4hc"], ["lz4.h", "lz4hc.h"]),
    "libspng": by_files("libspng.a", "spng", ["spng"], ["spng.h"], ("spng", "-lspng -lz -lm")),
    "openssl": openssl,
}


def states_of(chain, libraries):
    """{library: a hash of all that its build depends on}"""
    found = {}
    for library in libraries:
        state = hashlib.sha256((chain.bin / "penstock-cc").read_bytes())
        state.update(pathlib.Path(__file__).read_bytes())
        state.update(repr(library).encode())
        state.update("".join(found[name] for name in library.needs).encode())
        found[library.name] = state.hexdigest()
    return found


def build_all(chain, libraries):
    """Builds those that have changed, and those that need them."""
    (chain.prefix / "lib/pkgconfig").mkdir(parents=True, exist_ok=True)
    (chain.prefix / "include").mkdir(exist_ok=True)
    texts = chain.prefix / "licences"
    texts.mkdir(exist_ok=True)
    states = states_of(chain, libraries)
    for library in libraries:
        stamp = chain.prefix / f".{library.name}"
        if stamp.exists() and stamp.read_text() == states[library.name]:
            continue
        print(f"{chain.arch.name}: {library.name} {library.version}", flush=True)
        build = Build(library, chain)
        BY_HAND.get(library.name, with_cmake)(build)
        for shared in chain.prefix.glob("lib/*.so*"):
            shared.unlink()
        (texts / f"{library.name}.txt").write_bytes(library.licence_text(build.source))
        stamp.write_text(states[library.name])
