# SPDX-License-Identifier: Apache-2.0
"""Compiling C programs against the public headers, and what is in these headers."""

import os
import pathlib
import re
import shutil
import subprocess

import conftest
import pytest
from cli_tools import without_preload

ROOT = conftest.ROOT
BUILD = conftest.BUILD
HEADERS = sorted((ROOT / "include" / "penstock").glob("*.h"))
WARNINGS = ["-Wall", "-Wextra", "-Wpedantic", "-Werror"]
STRUCT = re.compile(r"^typedef struct (\w+) \{(.*?)^\} \1;", re.M | re.S)
COMMENT = re.compile(r"/\*.*?\*/", re.S)


def run(*command, cwd=None, env=None):
    """What it prints."""
    done = subprocess.run([os.fspath(word) for word in command], capture_output=True, text=True,
                          check=False, timeout=120, stdin=subprocess.DEVNULL, cwd=cwd,
                          env=without_preload(env))
    assert done.returncode == 0, f"{command}\n{done.stdout}\n{done.stderr}"
    return done.stdout


def structs():
    """{name: [declaration of each line of members]} of all public structs that are not opaque."""
    found = {}
    for header in HEADERS:
        for name, body in STRUCT.findall(header.read_text()):
            lines = COMMENT.sub("", body).split(";")
            found[name] = [" ".join(line.split()) for line in lines if line.strip()]
    return found


def members(declaration):
    """The names that a declaration declares: 'const char *a, *b' are a and b."""
    called = re.search(r"\(\*(\w+)\)\(", declaration)
    if called:
        return [called.group(1)]
    return [re.search(r"(\w+)(?:\[\w+\])*$", part).group(1) for part in declaration.split(",")]


def sanitizer_options():
    """For programs that use a library built with a sanitizer."""
    value = conftest.sanitizer(BUILD)
    names = [value] if isinstance(value, str) else value
    names = [name for name in ",".join(names).split(",") if name not in ("none", "")]
    return [f"-fsanitize={','.join(names)}"] if names else []


def compile_c(out, *arguments):
    run("gcc", "-g", "-O1", "-o", out, *arguments, *sanitizer_options())
    return out


def install(folder):
    """Installs library, headers and penstock.pc below `folder`. The environment in which
    pkg-config and programs find them."""
    run("meson", "install", "-C", BUILD, "--no-rebuild", "--quiet", "--destdir", folder,
        "--tags", "devel,runtime")
    (file,) = pathlib.Path(folder).rglob("penstock.pc")
    # As if the build had been configured with this prefix.
    file.write_text(re.sub(r"^prefix=", f"prefix={folder}", file.read_text(), flags=re.M))
    return {
        **os.environ,
        "PKG_CONFIG_PATH": str(file.parent),
        "LD_LIBRARY_PATH": str(file.parent.parent),
    }


def need_tools(*names):
    for name in names:
        if not shutil.which(name):
            pytest.skip(f"{name} is not installed", allow_module_level=True)
