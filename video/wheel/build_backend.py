# SPDX-License-Identifier: Apache-2.0
"""How pip builds penstock-video from its source archive: with build.sh."""

import email
import os
import pathlib
import subprocess
import sysconfig

import archive

ROOT = pathlib.Path(__file__).resolve().parent
BUILT = ("libpenstock-video.so.0", "penstock-video-decoder")
MODULE = "penstock_video/__init__.py"


def _metadata():
    """(The name of its directory, the tag of the wheel, {file: bytes})"""
    text = (ROOT / "PKG-INFO").read_bytes()
    found = email.message_from_bytes(text)
    tag = "py3-none-" + sysconfig.get_platform().replace("-", "_").replace(".", "_")
    head = f"Wheel-Version: 1.0\nGenerator: penstock\nRoot-Is-Purelib: false\nTag: {tag}\n"
    files = {"METADATA": text, "WHEEL": head.encode()}
    for name in found.get_all("License-File"):
        files[f"licenses/{name}"] = (ROOT / name).read_bytes()
    info = f"penstock_video-{found['Version']}.dist-info"
    return info, tag, {f"{info}/{name}": data for name, data in files.items()}


def prepare_metadata_for_build_wheel(folder, settings=None):
    info, _, files = _metadata()
    for name, data in files.items():
        path = pathlib.Path(folder, name)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
    return info


def build_wheel(folder, settings=None, metadata=None):
    info, tag, files = _metadata()
    subprocess.run(["sh", ROOT / "build.sh", ROOT / "build"], check=True)
    files[MODULE] = (ROOT / MODULE).read_bytes()
    for name in BUILT:
        files[f"penstock_video/{name}"] = (ROOT / "build" / name).read_bytes()
    name = f"{info.removesuffix('.dist-info')}-{tag}.whl"
    epoch = int(os.environ.get("SOURCE_DATE_EPOCH", "315532800"))
    archive.write_wheel(pathlib.Path(folder, name), files, info, epoch)
    return name
