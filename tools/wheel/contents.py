# SPDX-License-Identifier: Apache-2.0
"""What a wheel from pip becomes for a release: the licences of its libraries, a bill of materials
(CycloneDX), the platform's name, and the same bytes whenever it is made from the same commit."""

import json
import re
import time
import urllib.parse
import uuid
import zipfile

import archive


def rewrite(wheel, folder, tag, libraries, texts, compiler, epoch):
    """WHEEL as a new file in FOLDER, with this TAG. TEXTS are the licences, {library: bytes}."""
    with zipfile.ZipFile(wheel) as z:
        files = {info.filename: z.read(info) for info in z.infolist() if not info.is_dir()}
    (info,) = {name.split("/")[0] for name in files if name.endswith(".dist-info/RECORD")}
    metadata = files[f"{info}/METADATA"].decode()
    expression = licence_expression(libraries)
    for name, text in texts.items():
        files[f"{info}/licenses/bundled/{name}.txt"] = text
    files[f"{info}/METADATA"] = with_licences(metadata, expression, texts).encode()
    files[f"{info}/WHEEL"] = re.sub(
        rb"^Tag: .*", b"Tag: " + tag.encode(), files[f"{info}/WHEEL"], flags=re.M)
    name, version = (re.search(rf"^{field}: (.+)$", metadata, re.M)[1] for field in
                     ("Name", "Version"))
    bill = bill_of_materials(name, version, libraries, compiler, epoch)
    files[f"{info}/sboms/{name}.cdx.json"] = (json.dumps(bill, indent=1) + "\n").encode()
    folder.mkdir(parents=True, exist_ok=True)
    new = folder / f"{name.replace('-', '_')}-{version}-{tag}.whl"
    archive.write_wheel(new, files, info, epoch)
    return new


def licence_expression(libraries):
    """Ours first, then every other licence once."""
    found = ["Apache-2.0", *(part for lib in libraries for part in lib.spdx.split(" AND "))]
    return " AND ".join(dict.fromkeys(found))


def with_licences(metadata, expression, texts):
    head, gap, body = metadata.partition("\n\n")
    head = re.sub(r"^License-Expression: .*", f"License-Expression: {expression}", head, flags=re.M)
    return "\n".join([head, *(f"License-File: bundled/{name}.txt" for name in texts)]) + gap + body


def component(library):
    vendor, _, product = library.cpe.partition(":")
    debian = urllib.parse.quote(library.debian_version)
    reference = f"pkg:deb/debian/{library.package}@{debian}?arch=source"
    source = {"type": "source-distribution", "url": library.dsc,
              "hashes": [{"alg": "SHA-256", "content": library.sha256}]}
    return {"type": "library", "bom-ref": reference, "name": library.name,
            "version": library.version, "purl": reference,
            "cpe": f"cpe:2.3:a:{vendor}:{product}:{library.version}:*:*:*:*:*:*:*",
            "licenses": [{"expression": library.spdx}], "externalReferences": [source]}


def bill_of_materials(name, version, libraries, compiler, epoch):
    own = f"pkg:pypi/{name}@{version}"
    components = [component(library) for library in libraries]
    serial = uuid.uuid5(uuid.NAMESPACE_URL, json.dumps([own, components, compiler, epoch]))
    return {
        "$schema": "http://cyclonedx.org/schema/bom-1.6.schema.json",
        "bomFormat": "CycloneDX", "specVersion": "1.6", "version": 1,
        "serialNumber": f"urn:uuid:{serial}",
        "metadata": {
            "timestamp": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(epoch)),
            "tools": {"components": [{"type": "application", "name": "zig", "version": compiler}]},
            "component": {"type": "library", "bom-ref": own, "name": name,
                          "version": version, "purl": own,
                          "licenses": [{"expression": "Apache-2.0"}]},
        },
        "components": components,
        "dependencies": [{"ref": own, "dependsOn": [c["bom-ref"] for c in components]}],
    }

