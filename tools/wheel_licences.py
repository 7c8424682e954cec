#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Puts the licences of all libraries that a wheel brings into it.

    tools/wheel_licences.py WHEEL COPYING

The shared ones are those that auditwheel has added, the static ones those that meson.build links
into _core; Debian says what each may be used for. COPYING is of the libcurl of tools/build_curl.sh.
The full text of the Apache licence, which OpenSSL has too, is there already as penstock's own."""

import base64
import hashlib
import pathlib
import re
import subprocess
import sys
import zipfile

STATIC = ["libarchive-dev", "libssl-dev", "libexpat1-dev"]
DOC = pathlib.Path("/usr/share/doc")


def fail(text):
    sys.exit(f"wheel_licences: {text}")


def original_name(name):
    """libz-46d4b4d4.so.1.2.13, as auditwheel calls it, was libz.so.1.2.13."""
    found = re.fullmatch(r"(lib[\w+.-]+)-[0-9a-f]{8}(\.so[\d.]*)", name)
    if not found:
        fail(f"{name}: expected a name that auditwheel gives")
    return found[1] + found[2]


def package_of(library):
    """The Debian package that a library is from."""
    done = subprocess.run(["dpkg", "-S", f"*/{library}"], capture_output=True, text=True,
                          check=False)
    packages = {line.split(":")[0] for line in done.stdout.splitlines()}
    packages = {name for name in packages if not name.endswith(("-dev", "-dbg"))}
    if len(packages) != 1:
        fail(f"{library}: expected one package that has it, found {sorted(packages) or 'none'}")
    return packages.pop()


def copyright_of(package):
    path = DOC / package / "copyright"
    if not path.exists():
        fail(f"{path}: not there")
    return path.read_bytes()


def collect(names, copying):
    """{name in the wheel: text} for the files in a wheel."""
    bundled = [pathlib.PurePath(name).name for name in names
               if ".libs/" in name and not name.endswith("/")]
    packages = sorted({package_of(original_name(name)) for name in bundled} | set(STATIC))
    texts = {f"{package}.txt": copyright_of(package) for package in packages}
    texts["curl.txt"] = pathlib.Path(copying).read_bytes()
    return texts


def record_line(name, data):
    digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
    return f"{name},sha256={digest},{len(data)}"


def with_licences(files, texts):
    """The wheel's files, {name: bytes}, and the texts with them; METADATA and RECORD know them."""
    (info,) = {name.split("/")[0] for name in files if name.endswith(".dist-info/RECORD")}
    added = {f"{info}/licenses/bundled/{name}": data for name, data in sorted(texts.items())}
    head, gap, body = files[f"{info}/METADATA"].decode().partition("\n\n")
    lines = [f"License-File: bundled/{name}" for name in sorted(texts)]
    metadata = ("\n".join([head, *lines]) + gap + body).encode()
    changed = {**added, f"{info}/METADATA": metadata}
    kept = [
        line for line in files[f"{info}/RECORD"].decode().splitlines()
        if line.split(",")[0] not in changed
    ]
    own = kept.pop()  # its own line, which has no hash, comes last
    record = [*kept, *(record_line(name, data) for name, data in changed.items()), own]
    return {**files, **changed, f"{info}/RECORD": ("\n".join(record) + "\n").encode()}


def rewrite(wheel, copying):
    with zipfile.ZipFile(wheel) as old:
        infos = {info.filename: info for info in old.infolist()}
        files = {name: old.read(name) for name in infos}
    if any("/licenses/bundled/" in name for name in files):
        return 0
    texts = collect(files, copying)
    all_files = with_licences(files, texts)
    record = next(name for name in all_files if name.endswith(".dist-info/RECORD"))
    all_files[record] = all_files.pop(record)  # last in the archive, as wheels have it
    new = wheel.with_suffix(".new")
    with zipfile.ZipFile(new, "w", zipfile.ZIP_DEFLATED) as out:
        for name, data in all_files.items():
            info = infos.get(name) or zipfile.ZipInfo(name)
            if name not in infos:
                info.date_time = infos[record].date_time
                info.external_attr = infos[record].external_attr
            out.writestr(info, data, zipfile.ZIP_DEFLATED)
    new.replace(wheel)
    return len(texts)


def main():
    if len(sys.argv) != 3:
        fail("usage: tools/wheel_licences.py WHEEL COPYING")
    print(f"licences of bundled libraries: {rewrite(pathlib.Path(sys.argv[1]), sys.argv[2])}")


if __name__ == "__main__":
    main()
