# SPDX-License-Identifier: Apache-2.0
"""The wheel penstock-video, and its source archive, from which the wheel is built.

The archive has the sources of FFmpeg and dav1d, the part of penstock that is linked with them, and
the script that builds them: what the LGPL asks for."""

import gzip
import os
import re
import shutil
import subprocess
import sys
import tarfile

import contents
import libraries
import sources
from toolchain import PLATFORM

# Of penstock: the plug-in, and the program of PENSTOCK_VIDEO=process.
OWN = ("LICENSE", "include/penstock/error.h", "include/penstock/video.h", "src/video/messages.h",
       "video/*.[ch]", "video/*.map", "video/process/*.[ch]")


def version_of(root):
    return re.search(r"^  version: '(.+)',$", (root / "meson.build").read_text(), re.M)[1]


def metadata(template, version, table):
    """With the description, the version, and the licences of the libraries."""
    head = contents.with_licences(template.replace("VERSION", version),
                                  contents.licence_expression(table), {})
    files = [f"License-File: bundled/{library.name}.txt\n" for library in table]
    return head + "".join(files) + "\n"


def make_tree(root, folder, version, table):
    """All that the archive contains."""
    shutil.copytree(root / "video/wheel", folder,
                    ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(root / "tools/wheel/archive.py", folder)
    for path in (path for pattern in OWN for path in root.glob(pattern)):
        place = folder / path.relative_to(root)
        place.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(path, place)
    for name in ("bundled", "sources"):
        (folder / name).mkdir()
    for library in table:
        source = sources.unpack(library, folder / "sources" / library.name)
        shutil.rmtree(source / ".pc", ignore_errors=True)  # files before Debian's patches
        (folder / f"bundled/{library.name}.txt").write_bytes(library.licence_text(source))
    text = metadata((folder / "PKG-INFO").read_text(), version, table)
    (folder / "PKG-INFO").write_text(text + (folder / "README.md").read_text())


def write_archive(folder, path, epoch):
    """FOLDER as a .tar.gz file with the same bytes on every machine."""
    def plain(entry):
        entry.uid = entry.gid = 0
        entry.uname = entry.gname = ""
        entry.mtime = epoch
        entry.mode = 0o755 if entry.isdir() or entry.mode & 0o100 else 0o644
        return entry

    with open(path, "wb") as out, gzip.GzipFile("", "wb", 9, out, epoch) as packed, \
            tarfile.open(fileobj=packed, mode="w", format=tarfile.PAX_FORMAT) as tar:
        tar.add(folder, folder.name, filter=plain)  # in the order of names


def source_tree(root, table):
    version = version_of(root)
    folder = root / "build/wheel/video" / f"penstock_video-{version}"
    shutil.rmtree(folder.parent, ignore_errors=True)
    make_tree(root, folder, version, table)
    return folder


def source_archive(root, table, epoch):
    folder = source_tree(root, table)
    path = root / "build/wheels" / f"{folder.name}.tar.gz"
    path.parent.mkdir(parents=True, exist_ok=True)
    write_archive(folder, path, epoch)
    return path


def environment(chain, epoch):
    options = f"--enable-cross-compile --target-os=linux --arch={chain.arch.name}"
    return {**chain.environment(), "SOURCE_DATE_EPOCH": str(epoch), "JOBS": libraries.JOBS,
            "LDFLAGS": " ".join(chain.objects()), "MESON_CROSS_FILE": os.fspath(chain.meson()),
            "FFMPEG_OPTIONS": options, "_PYTHON_HOST_PLATFORM": f"linux-{chain.arch.name}"}


def build(chain, root, table, compiler, epoch):
    """(The source archive, the wheel)"""
    packed = source_archive(root, table, epoch)
    folder = chain.folder / "video"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    subprocess.run(["tar", "-xf", packed, "-C", folder], check=True)
    (tree,) = folder.iterdir()
    print(f"{chain.arch.name}: penstock-video", flush=True)
    subprocess.run(
        [sys.executable, "-m", "pip", "wheel", "-q", "--disable-pip-version-check",
         "--no-build-isolation", "--no-deps", "-w", folder, tree],
        env=environment(chain, epoch), check=True)
    (wheel,) = folder.glob("*.whl")
    tag = f"py3-none-{PLATFORM}_{chain.arch.name}"
    made = contents.rewrite(wheel, root / "build/wheels", tag, table, {}, compiler, epoch)
    return packed, made
