#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Follows the README from a clean clone of this checkout: its commands, in a new virtual
environment, and its Python code, for an epoch. Part of ./dev ci.

    check_readme.py

Only `sudo` is replaced, so that apt-get does not ask. Needs the network, or PIP_FIND_LINKS.
"""

import os
import pathlib
import re
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
SHELL, PYTHON = (re.compile(rf"^```{name}\n(.*?)^```$", re.M | re.S) for name in ("sh", "python"))
FIRST_BATCH = "torch.Size([16, 3, 224, 224])"
SUDO = """\
sudo() {
    if ! apt-get --simulate "${@:2}" >/dev/null 2>&1; then
        run_as_root apt-get -qq update
    fi
    run_as_root apt-get -qq -y "${@:2}" >/dev/null
}
run_as_root() { if [ "$(id -u)" = 0 ]; then "$@"; else command sudo "$@"; fi; }
"""
CPU_INDEX = "https://download.pytorch.org/whl/cpu"


def section(page, title):
    return page.split(f"\n## {title}\n")[1].split("\n## ")[0]


def script_of(page):
    install, load = section(page, "Install"), section(page, "Load a batch")
    (code,) = PYTHON.findall(load)
    return "\n".join(["set -eu", SUDO, *SHELL.findall(install), *SHELL.findall(load),
                      f"python - <<'CODE'\n{code}CODE\n"])


def environment(folder):
    """Without a GPU, PyTorch's build for CPUs, as the README says: of one version, that of ./dev
    setup, pip prefers the one with +cpu."""
    env = {name: value for name, value in os.environ.items()
           if not name.startswith(("PENSTOCK", "PYTHON", "VIRTUAL_ENV"))}
    if not os.path.exists("/dev/nvidiactl"):
        pin = re.search(r"\btorch==[\w.]+", (ROOT / "dev").read_text(encoding="utf-8"))
        (folder / "constraint.txt").write_text(pin.group() + "\n", encoding="utf-8")
        env["PIP_CONSTRAINT"] = str(folder / "constraint.txt")
        if "PIP_FIND_LINKS" not in env:
            env.setdefault("PIP_EXTRA_INDEX_URL", CPU_INDEX)
    return {**env, "DEBIAN_FRONTEND": "noninteractive", "PIP_DISABLE_PIP_VERSION_CHECK": "1"}


def main():
    start = time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        clone = pathlib.Path(folder) / "penstock"
        subprocess.run(["git", "clone", "-q", ROOT, clone], check=True)
        page = (clone / "README.md").read_text(encoding="utf-8")
        done = subprocess.run(["bash", "-c", script_of(page)], cwd=clone,
                              env=environment(pathlib.Path(folder)),
                              stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, text=True, check=False)
        good = done.returncode == 0 and FIRST_BATCH in done.stdout
    if not good:
        print(done.stdout, f"exit code {done.returncode}, expected {FIRST_BATCH} in the output",
              sep="\n")
    print(f"readme: a first batch from a clean clone in {time.monotonic() - start:.0f} s")
    print(f"{int(good)} passed, {int(not good)} failed")
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
