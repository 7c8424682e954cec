# SPDX-License-Identifier: Apache-2.0
"""A wheel as its users get it: tests/wheel/check_wheel.py WHEEL [--beside SITE_PACKAGES]

It goes into a new environment, and a pack is written, served by TLS from this machine and read
again, with the certificates where different systems keep them, and beside others that bring an
OpenSSL. Of what is to stand beside it, that which is not there is said and left out. SITE_PACKAGES
is where an environment has such (torch, Pillow).

A wheel for aarch64 runs under qemu, with Debian's Python for it. The batches of an epoch have to be
those of --same-as, a wheel for this machine. Ends with "N passed, M failed"."""

import argparse
import base64
import csv
import email
import hashlib
import io
import json
import os
import pathlib
import re
import resource
import shlex
import shutil
import subprocess
import sys
import tempfile
import zipfile

import tomllib

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests" / "python"))

import hardening  # noqa: E402
import net_stage  # noqa: E402

# What every Linux has that the wheel's tag names.
SYSTEM = re.compile(r"(ld-linux-x86-64|ld-linux-aarch64|lib(c|m|pthread|dl|rt))\.so\.\d+")
# Others that bring an OpenSSL or a libcurl, or much else.
OTHERS = ("ssl", "torch", "PIL", "cv2", "pycurl", "cryptography.hazmat.bindings._rust", "pyexpat")
PIP = ("pycurl", "cryptography", "cffi", "opencv-python-headless")
# Debian's, for arm64.
ARM_PYTHON = ("python3.11-minimal", "libpython3.11-minimal", "libpython3.11-stdlib", "libc6",
              "libexpat1", "zlib1g", "libssl3", "libffi8", "liblzma5", "libbz2-1.0")
LAYOUTS = {
    "Debian": "ssl/certs/ca-certificates.crt",
    "Red Hat": "pki/tls/certs/ca-bundle.crt",
    "Red Hat, extracted": "pki/ca-trust/extracted/pem/tls-ca-bundle.pem",
    "SUSE": "ssl/ca-bundle.pem",
    "Alpine": "ssl/cert.pem",
}
USE_SSL = """
import ssl
def handshake(port, ca):
    import socket
    with socket.create_connection(("127.0.0.1", port), 10) as plain:
        with ssl.create_default_context(cafile=ca).wrap_socket(plain, server_hostname="localhost"):
            pass
handshake({port}, {ca!r})
"""
EPOCH = """
import hashlib, penstock
digest = hashlib.sha256()
pipeline = "decode | random_resized_crop 96 | hflip | color_jitter 0.3 0.3 0.3 0.1 | tensor "
for kind in ("u8", "f32"):
    for image, label in penstock.Loader({pack!r}, batch_size=16, shuffle=True, seed=5,
                                        output="dlpack", pipeline=pipeline + kind):
        digest.update(memoryview(image))
        digest.update(memoryview(label))
print(digest.hexdigest())
"""
# The value that stack frames are protected with is the process's own: glibc's, or a copy of it.
GUARD = """
import ctypes, penstock._core, struct
address = dict(struct.iter_unpack("QQ", open("/proc/self/auxv", "rb").read()))[25]
guard = b"\\0" + ctypes.string_at(address, 8)[1:]
parts = [line.split()[0].split("-") for line in open("/proc/self/maps")
         if "_core.abi3" in line and " rw-p " in line]
assert any(guard in ctypes.string_at(int(a, 16), int(b, 16) - int(a, 16)) for a, b in parts), parts
"""
READ = """
import penstock
pack = penstock.open({address!r})
assert len(pack) == 40
assert [pack[i]["label"] for i in range(40)] == list(range(40))
print("read")
"""
results = {"passed": 0, "failed": 0}


def check(name, test, *arguments):
    try:
        said = test(*arguments)
    except Exception as e:  # every one is a finding
        results["failed"] += 1
        print(f"FAILED {name}: {type(e).__name__}: {e}")
    else:
        results["passed"] += 1
        print(f"ok     {name}{': ' + said if said else ''}")


def run(*command, env=None, seconds=120):
    done = subprocess.run([os.fspath(word) for word in command], env=env, timeout=seconds, cwd=ROOT,
                          capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"{done.stdout[-1500:]}{done.stderr[-1500:]}"
    return done.stdout


# --- what is in it -------------------------------------------------------------------------------


def record_holds(wheel):
    with zipfile.ZipFile(wheel) as z:
        names = [name for name in z.namelist() if not name.endswith("/")]
        (record,) = [name for name in names if name.endswith(".dist-info/RECORD")]
        rows = {row[0]: row for row in csv.reader(io.StringIO(z.read(record).decode()))}
        assert set(rows) == set(names), set(rows) ^ set(names)
        for name in set(names) - {record}:
            data = z.read(name)
            digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
            assert rows[name][1:] == [f"sha256={digest}", str(len(data))], name
    return f"{len(names)} files, {os.path.getsize(wheel):,} bytes"


def metadata_is_complete(wheel):
    """What a package index shows of it."""
    with zipfile.ZipFile(wheel) as z:
        (name,) = [name for name in z.namelist() if name.endswith(".dist-info/METADATA")]
        found = email.message_from_bytes(z.read(name))
    for field in ("Summary", "Author", "Keywords", "Requires-Python", "License-Expression"):
        assert found[field], f"no {field}"
    assert found["Description-Content-Type"] == "text/markdown"
    assert found.get_payload().startswith("# penstock")
    classifiers = found.get_all("Classifier")
    assert {f"Programming Language :: Python :: 3.{n}" for n in range(11, 15)} <= set(classifiers)
    return f"metadata {found['Metadata-Version']}, {len(classifiers)} classifiers"


def licences_are_there(wheel, name="penstock"):
    with zipfile.ZipFile(wheel) as z:
        names = z.namelist()
        metadata = next(z.read(n).decode() for n in names if n.endswith(".dist-info/METADATA"))
        texts = {n.rpartition("/licenses/")[2]: z.read(n) for n in names
                 if "/licenses/" in n and not n.endswith("/")}
    wanted = {"LICENSE", *(f"bundled/{row['name']}.txt" for row in pinned(name))}
    assert wanted == set(texts), wanted ^ set(texts)
    assert all(len(text) > 500 for text in texts.values())
    assert set(re.findall(r"^License-File: (.+)$", metadata, re.M)) == set(texts)
    return re.search(r"^License-Expression: (.+)$", metadata, re.M)[1]


def pinned(name):
    """The libraries in the wheel of this name."""
    rows = tomllib.loads((ROOT / "tools/wheel/sources.toml").read_text())["library"]
    return [row for row in rows if row.get("wheel", "penstock") == name]


def bill_of_materials(wheel, name="penstock"):
    with zipfile.ZipFile(wheel) as z:
        (path,) = [path for path in z.namelist() if path.endswith(f"/sboms/{name}.cdx.json")]
        bill = json.loads(z.read(path))
    assert (bill["bomFormat"], bill["specVersion"]) == ("CycloneDX", "1.6")
    listed = {c["name"]: c["externalReferences"][0]["hashes"][0]["content"]
              for c in bill["components"]}
    assert listed == {row["name"]: row["sha256"] for row in pinned(name)}
    return " ".join(f"{c['name']} {c['version']}" for c in bill["components"])


def fits_its_platform(wheel):
    said = " ".join(run(sys.executable, "-m", "auditwheel", "show", wheel).split())
    tag = re.search(r"manylinux_\d+_\d+_\w+", wheel.name)[0]
    found = re.search(r'platform tag: "(\w+)"', said)[1]
    assert found == tag, said
    assert os.path.getsize(wheel) < 10_000_000
    return found


def is_hardened(binary):
    found = hardening.protections(binary)
    lacking = [name for name, value in found.items() if not value]
    assert not lacking, lacking
    return found["FORTIFY"] + " fortified"


def has_no_build_date(core):
    """OpenSSL and libjpeg-turbo store one; it is the same in every build."""
    found = re.findall(rb"built on: [^\0]+|\(build [^\0]+\)", core.read_bytes())
    assert found and all(b"1980" in text for text in found), found


def nothing_else_is_needed(site):
    libraries = [*site.glob("penstock/*.so*"), *site.glob("penstock.libs/*.so*")]
    own = {path.name for path in libraries}
    needed = set()
    for path in libraries:
        shown = run("readelf", "-d", path)
        needed |= set(re.findall(r"\(NEEDED\).*\[(.+)\]", shown))
    strange = {name for name in needed - own if not SYSTEM.fullmatch(name)}
    assert not strange, strange
    return " ".join(sorted(needed - own))


def one_name_leaves(core):
    shown = run("nm", "-D", "--defined-only", core)
    assert [line.split()[-1] for line in shown.splitlines()] == ["PyInit__core"], shown[:500]


# --- what it does --------------------------------------------------------------------------------


def inside(root, folder):
    """A command that runs another one in ROOT, where FOLDER is visible by the same name."""
    script = (f"mkdir -p {root}{folder} && mount --bind {folder} {root}{folder} && "
              f'mount -t proc proc {root}/proc && exec chroot {root} "$@"')
    return ["unshare", "--mount", "sh", "-ec", script, "sh"]


def install(wheel, folder, root, interpreter):
    """(The command that runs Python with the wheel installed, where its files are)"""
    if wheel.name.endswith("_aarch64.whl"):
        root, site = ROOT / "build/aarch64-python", folder / "site"
        run("tools/aarch64_libs.sh", root.relative_to(ROOT), *ARM_PYTHON, seconds=600)
        run(sys.executable, "-m", "pip", "install", "-q", "--no-deps", "--no-index", "--platform",
            re.search(r"manylinux_\w+", wheel.name)[0], "--only-binary", ":all:", "--target", site,
            "--python-version", "3.11", wheel, seconds=300)
        return ["qemu-aarch64", "-E", f"PYTHONPATH={site}", "-L", root,
                root / "usr/bin/python3.11"], site
    wheel = shutil.copy(wheel, folder)
    enter = inside(root, folder) if root else []
    python = [*enter, folder / "env/bin/python"]
    interpreter = "python3" if root else interpreter or sys.executable
    run(*enter, interpreter, "-m", "venv", folder / "env", seconds=300)
    run(*python, "-m", "pip", "install", "-q", "--no-deps", "--no-index", wheel, seconds=300)
    site = run(*python, "-c", "import sysconfig; print(sysconfig.get_path('purelib'))")
    return python, pathlib.Path(site.strip())


class Stage:
    """The environment, the certificates, the server and a pack in it."""

    def __init__(self, folder, wheel, beside=None, root=None, interpreter=None):
        self.folder = folder
        self.python, self.site = install(wheel, folder, root, interpreter)
        self.foreign = len(self.python) > 1
        if beside and not self.foreign:  # behind its own
            (self.site / "beside.pth").write_text(f"{beside}\n")
        self.ca, self.key = folder / "ca.pem", folder / "key.pem"
        run("openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-keyout",
            self.key, "-out", self.ca, "-subj", "/CN=localhost", "-addext",
            "subjectAltName=DNS:localhost,IP:127.0.0.1")
        self.server = net_stage.S3Server(["packs,public"], tls=(self.ca, self.key))

    def write(self):
        run(*self.python, "-c", f"""
import penstock
with penstock.Writer({str(self.folder / 'a.pen')!r}, {{"image": "bytes", "label": "i64"}}) as w:
    for i in range(40):
        w.add(key=f"s{{i}}", image=bytes([i]) * 5000, label=i)
""")
        for path in sorted((self.folder / "a.pen").rglob("*")):
            if path.is_file():
                key = f"a.pen/{path.relative_to(self.folder / 'a.pen')}"
                self.server.boto3(verify=str(self.ca)).put_object(
                    Bucket="packs", Key=key, Body=path.read_bytes())

    def address(self, scheme):
        if scheme == "s3":
            return "s3://packs/a.pen"
        return f"https://localhost:{self.server.port}/packs/a.pen"

    def environment(self, **more):
        found = self.server.environment(PYTHONNOUSERSITE="1", OMP_NUM_THREADS="1")
        found = {name: v for name, v in found.items() if not name.startswith("SSL_CERT_")}
        return {**found, **more}

    def read(self, scheme, before="", after="", **env):
        text = before + READ.format(address=self.address(scheme)) + after
        return run(*self.python, "-c", text, env=self.environment(**env))


def reads(stage, scheme, **env):
    assert stage.read(scheme, **env).strip() == "read"


def corrects_its_clock(stage):
    """Signatures of our clock are refused; the Date: of the refusal says what the server's is."""
    stage.server.control(clock=7200)
    try:
        reads(stage, "s3", AWS_CA_BUNDLE=str(stage.ca))
    finally:
        stage.server.control(clock=0)


def does_not_trust(stage, scheme):
    done = subprocess.run([*stage.python, "-c", READ.format(address=stage.address(scheme))],
                          env=stage.environment(), capture_output=True, text=True, timeout=60,
                          check=False)
    assert done.returncode != 0 and "certificate" in done.stderr, done.stderr[-500:]


def loads_its_own_alone(stage):
    """Of libraries it and what it needs; those that Python itself is linked with do not count."""
    before = ("mapped = lambda: {line.split()[-1] for line in open('/proc/self/maps')"
              " if '.so' in line}\npythons = mapped()\n")
    said = stage.read("s3", before, "print(*mapped() - pythons)", AWS_CA_BUNDLE=str(stage.ca))
    mapped = {pathlib.Path(name) for name in said.split()[1:]}
    ours = [p.name for p in mapped if stage.site in p.parents]
    strange = [str(p) for p in mapped if stage.site not in p.parents
               and re.search(r"libcurl|libssl|libcrypto|libexpat|libjansson|libarchive|libxml2|"
                             r"libldap|libssh|libgssapi|libjpeg|libwebp", p.name)]
    assert ours and not strange, strange
    return f"{len(ours)} of its own"


def guard_is_random(stage):
    run(*stage.python, "-c", GUARD)


def beside(stage, module, first):
    other = f"import {module}\n"
    use = USE_SSL.format(port=stage.server.port, ca=str(stage.ca)) if module == "ssl" else ""
    if module == "pycurl":
        use = (f"c = pycurl.Curl(); c.setopt(c.URL, 'https://localhost:{stage.server.port}/_counts')"
               f"; c.setopt(c.CAINFO, {str(stage.ca)!r}); c.setopt(c.WRITEFUNCTION, len)"
               "; c.perform(); c.close()\n")
    other += use
    texts = {"before": other} if first else {"after": other}
    if first and use:
        texts["after"] = use  # again, when both have been used
    assert "read" in stage.read("s3", **texts, AWS_CA_BUNDLE=str(stage.ca))


def is_there(stage, module):
    done = subprocess.run([*stage.python, "-c", f"import {module}"], capture_output=True,
                          env=stage.environment(), timeout=120, check=False)
    return done.returncode == 0


def layout(stage, place):
    """In a name space of its own, where /etc holds no other certificates."""
    script = f"""
set -e
mount -t tmpfs none /mnt
for f in hosts passwd group nsswitch.conf resolv.conf ld.so.cache ld.so.conf localtime; do
    [ ! -e /etc/$f ] || cp -aL /etc/$f /mnt/$f
done
mkdir -p "$(dirname /mnt/{place})"
cp {stage.ca} /mnt/{place}
mount --move /mnt /etc
exec {shlex.join(map(str, stage.python))} -c "$READ"
"""
    env = stage.environment(READ=READ.format(address=stage.address("https")))
    assert run("unshare", "--user", "--map-root-user", "--mount", "bash", "-c", script, env=env,
               ).strip() == "read"


def have_name_spaces():
    return subprocess.run(["unshare", "--user", "--map-root-user", "--mount", "true"],
                          capture_output=True, check=False).returncode == 0


def epoch(stage):
    """Packs photographs, and returns the SHA-256 of the batches of an epoch."""
    photos, pack = stage.folder / "photos", stage.folder / "photos.pen"
    if not photos.exists():
        run(sys.executable, ROOT / "examples/make_photos.py", photos)
    run(*stage.python, "-m", "penstock", "pack", photos, "-o", pack, env=stage.environment())
    return run(*stage.python, "-c", EPOCH.format(pack=str(pack)), env=stage.environment()).strip()


def same_epoch(stage, other):
    """As another wheel makes it, in another folder."""
    with tempfile.TemporaryDirectory(prefix="penstock-other-") as folder:
        theirs = pathlib.Path(folder)
        found = epoch(stage)
        if other:
            shutil.copytree(stage.folder / "photos", theirs / "photos")
            second = Stage(theirs, other.resolve())
            with second.server:
                assert epoch(second) == found
    return f"SHA-256 {found[:16]}... in {'both' if other else 'this one'}"


def encodes_webp(stage):
    """libwebp's encoder needs libsharpyuv, which is a library of its own since 1.3."""
    pack = stage.folder / "webp.pen"
    run(*stage.python, "-m", "penstock", "pack", stage.folder / "photos", "-o", pack, "--mode",
        "encode", "--codec", "webp", "--quality", "50", env=stage.environment())
    run(*stage.python, "-m", "penstock", "verify", pack, "--decode", env=stage.environment())
    return f"{sum(f.stat().st_size for f in pack.rglob('*.shard')):,} bytes"


def lab_starts(stage):
    """It is a program of the wheel; only its plots and models need packages of the extra."""
    shown = run(*stage.python, "-m", "penstock.lab", "--help", env=stage.environment())
    assert "penstock-lab VERB" in shown, shown[:300]


def is_for_arm(stage):
    return stage.python[0] == "qemu-aarch64"


def starts_fast(stage):
    """Names are loaded when they are used first, so one is used. CPU time, as other programs may
    run on this machine."""
    text = ("import time; t = time.process_time(); import penstock; penstock.Loader; "
            "print(time.process_time() - t)")
    found = min(float(run(*stage.python, "-c", text)) for _ in range(15))
    assert is_for_arm(stage) or found < 0.05, found
    version = run(*stage.python, "-c", "import sys; print(sys.version.split()[0])").strip()
    return f"{1000 * found:.0f} ms, Python {version}"


def command_starts_fast(stage):
    """CPU time of the console script; `--version` does little else than start."""
    times = []
    for _ in range(5):
        before = sum(resource.getrusage(resource.RUSAGE_CHILDREN)[:2])
        run(stage.python[0].with_name("penstock"), "--version")
        times.append(sum(resource.getrusage(resource.RUSAGE_CHILDREN)[:2]) - before)
    assert min(times) < 0.06, times
    return f"{1000 * min(times):.0f} ms"


def check_contents(stage, wheel):
    core = stage.site / "penstock/_core.abi3.so"
    check("every file is in RECORD", record_holds, wheel)
    check("metadata", metadata_is_complete, wheel)
    check("licences", licences_are_there, wheel)
    check("bill of materials", bill_of_materials, wheel)
    check("platform by auditwheel", fits_its_platform, wheel)
    check("hardening", is_hardened, core)
    check("no date of its build", has_no_build_date, core)
    check("needs nothing but glibc", nothing_else_is_needed, stage.site)
    check("exports PyInit__core alone", one_name_leaves, core)


def check_use(stage, same_as):
    check("import", starts_fast, stage)
    if not stage.foreign:
        check("start of the command", command_starts_fast, stage)
    check("an epoch", same_epoch, stage, same_as)
    check("lossy WebP", encodes_webp, stage)
    check("penstock-lab", lab_starts, stage)
    check("https://, CA by SSL_CERT_FILE", lambda: reads(stage, "https",
                                                         SSL_CERT_FILE=str(stage.ca)))
    check("s3://, CA by AWS_CA_BUNDLE", lambda: reads(stage, "s3", AWS_CA_BUNDLE=str(stage.ca)))
    check("s3://, a clock that is two hours behind the server's", corrects_its_clock, stage)
    check("https://, a CA that is not trusted", does_not_trust, stage, "https")
    check("s3://, a CA that is not trusted", does_not_trust, stage, "s3")
    check("loads no library of the system's", loads_its_own_alone, stage)
    if is_for_arm(stage):
        check("the value that protects the stack is random", guard_is_random, stage)


def check_neighbours(stage):
    if have_name_spaces():
        for name, place in LAYOUTS.items():
            check(f"certificates as on {name}", layout, stage, place)
    else:
        print("left out: certificates of other systems (no name spaces here)")
    for module in OTHERS:
        if not is_there(stage, module):
            print(f"left out: {module}: not installed")
            continue
        check(f"after {module}", beside, stage, module, True)
        check(f"before {module}", beside, stage, module, False)


def main():
    p = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    p.add_argument("wheel", type=pathlib.Path)
    p.add_argument("--beside", help="site-packages with torch and Pillow")
    p.add_argument("--install", action="store_true", help=f"{', '.join(PIP)} from the index, too")
    p.add_argument("--python", help="another Python of this machine")
    p.add_argument("--root", type=pathlib.Path, help="a root directory that has python3-venv")
    p.add_argument("--same-as", type=pathlib.Path, help="a wheel that makes the same batches")
    options = p.parse_args()
    with tempfile.TemporaryDirectory(prefix="penstock-wheel-") as folder:
        stage = Stage(pathlib.Path(folder), options.wheel.resolve(), options.beside,
                      options.root and options.root.resolve(), options.python)
        if options.install and not stage.foreign:
            subprocess.run([*stage.python, "-m", "pip", "install", "-q", "--no-deps", *PIP],
                           check=False, timeout=600)
        with stage.server:
            stage.write()
            check_contents(stage, options.wheel)
            check_use(stage, options.same_as)
            if not stage.foreign:
                check_neighbours(stage)
    print(f"{results['passed']} passed, {results['failed']} failed")
    return 1 if results["failed"] else 0


if __name__ == "__main__":
    sys.exit(main())
