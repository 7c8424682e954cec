# SPDX-License-Identifier: Apache-2.0
"""Writes wheels. The source archive of penstock-video contains this file, too."""

import base64
import hashlib
import time
import zipfile


def record(files, own):
    lines = []
    for name, data in sorted(files.items()):
        digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
        if name != own:
            lines.append(f"{name},sha256={digest},{len(data)}\n")
    return "".join([*lines, f"{own},,\n"]).encode()


def write_wheel(path, files, info, epoch):
    """FILES, {name: bytes}, with the metadata in the directory INFO. Sorted, the metadata last;
    times are the same on every machine. Libraries and programs are executable."""
    files = {**files, f"{info}/RECORD": b""}
    files[f"{info}/RECORD"] = record(files, f"{info}/RECORD")
    date = max(time.gmtime(epoch)[:6], (1980, 1, 1, 0, 0, 0))
    with zipfile.ZipFile(path, "w") as z:
        own = f"{info}/"
        for name in sorted(files, key=lambda n: (n.startswith(own), n.endswith("/RECORD"), n)):
            entry = zipfile.ZipInfo(name, date)
            is_binary = files[name].startswith(b"\x7fELF")
            entry.external_attr = (0o100755 if is_binary else 0o100644) << 16
            z.writestr(entry, files[name], zipfile.ZIP_DEFLATED, 9)
