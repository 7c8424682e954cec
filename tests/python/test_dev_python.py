# SPDX-License-Identifier: Apache-2.0
"""./dev python, with programs in place of those that it starts: no machine need have patchelf."""

import os
import shutil
import subprocess

from cli_tools import ROOT

PYTHON = """#!/bin/sh
case "$*" in
*--no-build-isolation*) patchelf --version ;;
esac
"""


def program(path, text):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    path.chmod(0o755)


def test_patchelf_of_the_virtual_environment_is_used(tmp_path):
    shutil.copy(ROOT / "dev", tmp_path / "dev")
    tools = tmp_path / "tools"
    for name in ("bash", "cat", "dirname", "env", "grep", "mkdir", "nproc"):
        program(tools / name, f'#!/bin/sh\nexec {shutil.which(name)} "$@"\n')
    program(tools / "dpkg-query", "#!/bin/sh\necho install ok installed\n")
    program(tools / "apt-get", "#!/bin/sh\nexit 1\n")
    venv = tmp_path / "build" / "venv" / "bin"
    program(venv / "python", PYTHON)
    program(venv / "patchelf", "#!/bin/sh\necho patchelf of the environment\n")
    done = subprocess.run([tools / "bash", tmp_path / "dev", "python"], capture_output=True,
                          text=True, timeout=60, check=False,
                          env={"PATH": str(tools), "HOME": os.environ.get("HOME", "/")})
    assert done.returncode == 0, done.stderr
    assert "patchelf of the environment" in done.stdout
