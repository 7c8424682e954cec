# SPDX-License-Identifier: Apache-2.0
"""The compiler of wheels: zig, for one architecture and an old glibc.

Small scripts that call it are all that the builds of the libraries see. They have the same names
everywhere, since OpenSSL stores the command line of the compiler."""

import os
import pathlib
import shlex
import subprocess
from dataclasses import dataclass

import ziglang

GLIBC = "2.28"
PLATFORM = "manylinux_" + GLIBC.replace(".", "_")
HARDENING = ["-fstack-protector-strong", "-fstack-clash-protection", "-U_FORTIFY_SOURCE",
             "-D_FORTIFY_SOURCE=3"]


@dataclass(frozen=True)
class Architecture:
    name: str
    openssl: str  # what Configure calls it
    flags: list
    sources: tuple = ()  # C files beside this one that belong to the module and the program

    @property
    def zig(self):
        return f"{self.name}-linux-gnu.{GLIBC}"


ARCHITECTURES = {a.name: a for a in (
    Architecture("x86_64", "linux-x86_64", ["-fcf-protection=full"]),
    # All servers have the CRC32 instructions.
    Architecture("aarch64", "linux-aarch64", ["-mcpu=generic+crc", "-mbranch-protection=standard"],
                 ("stack_guard.c",)),
)}


class Toolchain:
    def __init__(self, arch, folder, root):
        self.arch, self.folder, self.prefix = ARCHITECTURES[arch], folder, folder / "prefix"
        self.bin = folder / "bin"
        self.bin.mkdir(parents=True, exist_ok=True)
        paths = [f"-ffile-prefix-map={folder}=.", f"-ffile-prefix-map={root}=."]
        self.script("penstock-cc", "cc", "-target", self.arch.zig, "-fPIC", *HARDENING,
                    *self.arch.flags, *paths)
        self.script("penstock-ar", "ar")
        self.script("penstock-ranlib", "ranlib")

    def script(self, name, *words):
        zig = pathlib.Path(ziglang.__file__).with_name("zig")
        path = self.bin / name
        path.write_text(f'#!/bin/sh\nexec {shlex.join([os.fspath(zig), *words])} "$@"\n')
        path.chmod(0o755)

    def environment(self):
        return {
            **os.environ,
            "PATH": f"{self.bin}:{os.environ['PATH']}",
            "CC": "penstock-cc", "AR": "penstock-ar", "RANLIB": "penstock-ranlib",
            "PKG_CONFIG_LIBDIR": os.fspath(self.prefix / "lib/pkgconfig"),
            "ZIG_GLOBAL_CACHE_DIR": os.fspath(self.folder.parent / "zig-cache"),
            "ZIG_LOCAL_CACHE_DIR": os.fspath(self.folder.parent / "zig-cache"),
            "LC_ALL": "C",
        }

    def cmake(self):
        """Options that make CMake use this compiler, and find the libraries built so far alone."""
        found = {"CMAKE_SYSTEM_NAME": "Linux", "CMAKE_SYSTEM_PROCESSOR": self.arch.name,
                 "CMAKE_C_COMPILER": self.bin / "penstock-cc", "CMAKE_AR": self.bin / "penstock-ar",
                 "CMAKE_RANLIB": self.bin / "penstock-ranlib", "CMAKE_BUILD_TYPE": "Release",
                 "CMAKE_C_FLAGS_RELEASE": "-O2 -DNDEBUG", "CMAKE_POLICY_VERSION_MINIMUM": "3.5",
                 "CMAKE_INSTALL_PREFIX": self.prefix, "CMAKE_INSTALL_LIBDIR": "lib",
                 "CMAKE_FIND_ROOT_PATH": self.prefix, "CMAKE_FIND_ROOT_PATH_MODE_PROGRAM": "NEVER",
                 **{f"CMAKE_FIND_ROOT_PATH_MODE_{what}": "ONLY"
                    for what in ("LIBRARY", "INCLUDE", "PACKAGE")}}
        return [f"-D{name}={value}" for name, value in found.items()]

    def objects(self):
        """The paths of the compiled sources of the architecture."""
        found = []
        for name in self.arch.sources:
            found.append(os.fspath(self.folder / f"{name}.o"))
            subprocess.run([self.bin / "penstock-cc", "-O2", "-c",
                            pathlib.Path(__file__).with_name(name), "-o", found[-1]],
                           env=self.environment(), check=True)
        return found

    def meson(self):
        """The path of a cross file for Meson."""
        path = self.folder / "meson.ini"
        link_args = ["-s", f"-L{self.prefix}/lib", *self.objects()]
        path.write_text(f"""[binaries]
c = '{self.bin}/penstock-cc'
ar = '{self.bin}/penstock-ar'
pkgconfig = 'pkg-config'
nasm = 'nasm'

[properties]
pkg_config_libdir = '{self.prefix}/lib/pkgconfig'

[built-in options]
c_args = ['-I{self.prefix}/include']
c_link_args = {link_args}

[host_machine]
system = 'linux'
cpu_family = '{self.arch.name}'
cpu = '{self.arch.name}'
endian = 'little'
""")
        return path
