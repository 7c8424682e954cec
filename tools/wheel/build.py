#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Builds a wheel with all its libraries inside: tools/wheel/build.py [OPTION] [x86_64|aarch64]

The libraries come from pinned sources (sources.toml) and are built by zig, so that the wheel runs
with glibc 2.28 or later. Prints the path of the wheel, in build/wheels; the program built with the
same libraries is build/wheel/ARCHITECTURE/meson/penstock. --video builds penstock-video and its
source archive instead, and --video-sources only unpacks its sources. Exits with 77 if a source can
no longer be downloaded. ./dev wheel installs what this needs."""

import argparse
import importlib.metadata
import os
import pathlib
import shutil
import subprocess
import sys

import contents
import libraries
import sources
import video_wheel
from toolchain import ARCHITECTURES, PLATFORM, Toolchain

ROOT = pathlib.Path(__file__).resolve().parents[2]


def commit_time():
    done = subprocess.run(["git", "log", "-1", "--format=%ct"], cwd=ROOT, capture_output=True,
                          text=True, check=False)
    return int(os.environ.get("SOURCE_DATE_EPOCH") or done.stdout or 315532800)


def pip_wheel(chain, epoch):
    """penstock alone, as pip and Meson make it."""
    folder = chain.folder / "pip"
    for old in (folder, chain.folder / "meson"):
        shutil.rmtree(old, ignore_errors=True)
    env = {**chain.environment(), "SOURCE_DATE_EPOCH": str(epoch),
           "_PYTHON_HOST_PLATFORM": f"linux-{chain.arch.name}"}
    options = [f"build-dir={chain.folder / 'meson'}", f"setup-args=--cross-file={chain.meson()}",
               "setup-args=--prefer-static", "setup-args=-Db_pie=true",
               f"compile-args=-j{libraries.JOBS}"]
    subprocess.run(
        [sys.executable, "-m", "pip", "wheel", "-q", "--disable-pip-version-check",
         "--no-build-isolation", "--no-deps", "-w", folder, *(f"-C{o}" for o in options), ROOT],
        env=env, check=True)
    (wheel,) = folder.glob("*.whl")
    return wheel


def build(chain, table, epoch):
    libraries.build_all(chain, table)
    texts = {lib.name: (chain.prefix / f"licences/{lib.name}.txt").read_bytes() for lib in table}
    tag = f"cp311-abi3-{PLATFORM}_{chain.arch.name}"
    return contents.rewrite(pip_wheel(chain, epoch), ROOT / "build/wheels", tag, table, texts,
                            compiler(), epoch)


def compiler():
    return importlib.metadata.version("ziglang")


def main():
    p = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    p.add_argument("--video", action="store_true", help="penstock-video")
    p.add_argument("--video-sources", action="store_true", help="the folder of its sources")
    p.add_argument("architecture", nargs="?", default="x86_64", choices=sorted(ARCHITECTURES))
    options = p.parse_args()
    is_video = options.video or options.video_sources
    table = sources.libraries("penstock-video" if is_video else "penstock")
    epoch = commit_time()
    try:
        for library in table:
            sources.fetch(library)
    except sources.Unavailable as e:
        print(f"tools/wheel/build.py: {e}", file=sys.stderr)
        return 77
    if options.video_sources:
        print(video_wheel.source_tree(ROOT, table))
        return 0
    chain = Toolchain(options.architecture, ROOT / "build/wheel" / options.architecture, ROOT)
    if options.video:
        print(*video_wheel.build(chain, ROOT, table, compiler(), epoch), sep="\n")
    else:
        print(build(chain, table, epoch))
    return 0


if __name__ == "__main__":
    sys.exit(main())
