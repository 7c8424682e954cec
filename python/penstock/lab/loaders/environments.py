# SPDX-License-Identifier: Apache-2.0
"""The environments of the other loaders: made once, or absent with a reason."""

from __future__ import annotations

import os
import pathlib
import shutil
import subprocess
import sys
from typing import Any

import tomllib

from ..errors import Absent, LabError
from ..home import home

HERE = pathlib.Path(__file__).resolve().parent
WORKER = HERE / "worker"


def specs() -> dict[str, Any]:
    return tomllib.loads((HERE / "environments.toml").read_text(encoding="utf-8"))


def spec_of(name: str) -> dict[str, Any]:
    known = specs()
    if name not in known:
        raise LabError(f"no environment '{name}'; expected one of {', '.join(known)}")
    spec: dict[str, Any] = known[name]
    return spec


def stamp_of(spec: dict[str, Any]) -> str:
    """What a finished environment has in its stamp; another version is another stamp."""
    return "\n".join(" ".join(step) for step in spec["steps"]) + "\n"


def python_of(name: str) -> pathlib.Path:
    """The interpreter of an environment that is ready."""
    folder, spec = home() / name, spec_of(name)
    reason = folder / "absent"
    if reason.exists():
        raise Absent(reason.read_text(encoding="utf-8").strip())
    stamp = folder / "stamp"
    if not stamp.exists():
        raise Absent(f"not installed; run penstock-lab setup {name}")
    if stamp.read_text(encoding="utf-8") != stamp_of(spec):
        raise Absent(f"other versions are installed; run penstock-lab setup {name}")
    return folder / "bin" / "python"


def log_run(log: pathlib.Path, *command: str | pathlib.Path) -> None:
    """Runs a command into the log; the last line of what it printed when it failed."""
    with open(log, "ab") as file:
        file.write((" ".join(map(str, command)) + "\n").encode())
        file.flush()
        done = subprocess.run(command, check=False, stdout=file, stderr=subprocess.STDOUT)
    if done.returncode:
        lines = log.read_text(encoding="utf-8", errors="replace").strip().splitlines()
        says = [line for line in lines[-40:] if "rror" in line] or lines
        raise Absent(f"{says[-1].strip()[:200]} (log: {log})")


def debian_missing(packages: list[str]) -> list[str]:
    missing = []
    for package in packages:
        done = subprocess.run(["dpkg-query", "-W", "-f", "${Status}", package], check=False,
                              capture_output=True, text=True)
        if not done.stdout.startswith("install ok"):
            missing.append(package)
    return missing


def install_debian(packages: list[str], log: pathlib.Path) -> None:
    if packages and not shutil.which("dpkg-query"):
        raise Absent(f"needs the packages that Debian calls {' '.join(packages)}")
    missing = debian_missing(packages)
    if not missing:
        return
    apt = ["apt-get", "install", "-y", "-qq", "--no-install-recommends", *missing]
    if os.geteuid() != 0:
        raise Absent(f"needs Debian's {' '.join(missing)}; run as root: {' '.join(apt)}")
    log_run(log, "apt-get", "update", "-qq")
    log_run(log, "env", "DEBIAN_FRONTEND=noninteractive", *apt)


def build_environment(folder: pathlib.Path, spec: dict[str, Any], log: pathlib.Path) -> None:
    install_debian(spec.get("debian", []), log)
    log_run(log, sys.executable, "-m", "venv", "--clear", folder)
    python = folder / "bin" / "python"
    earlier: list[str] = []  # said again, or what comes later replaces them
    for step in spec["steps"]:
        # What a build needs is taken from the environment itself: torch is not fetched once more.
        isolation = ["--no-build-isolation"] if spec.get("debian") else []
        log_run(log, python, "-m", "pip", "install", "--disable-pip-version-check",
                "--prefer-binary", *isolation, *earlier, *step)
        earlier += step
    names = "; ".join(f"import {name}" for name in spec["imports"])
    log_run(log, python, "-c", f"import sys; sys.path[0] = {str(WORKER)!r}; {names}")


def setup(name: str, again: bool = False) -> str | None:
    """Makes the environment, unless that was done or tried before. None, or why there is none."""
    folder, spec = home() / name, spec_of(name)
    stamp, reason = folder / "stamp", folder / "absent"
    if not again and stamp.exists() and stamp.read_text(encoding="utf-8") == stamp_of(spec):
        return reason.read_text(encoding="utf-8").strip() if reason.exists() else None
    home().mkdir(parents=True, exist_ok=True)
    log = home() / f"{name}.log"
    log.unlink(missing_ok=True)
    if folder.exists():
        shutil.rmtree(folder)
    try:
        build_environment(folder, spec, log)
    except Absent as why:
        folder.mkdir(exist_ok=True)
        reason.write_text(f"{why}\n", encoding="utf-8")
    stamp.write_text(stamp_of(spec), encoding="utf-8")
    return reason.read_text(encoding="utf-8").strip() if reason.exists() else None


def installed(name: str) -> dict[str, str]:
    """{package: version} of an environment, as far as its steps name it."""
    wanted = {part.split("==")[0].lower() for step in spec_of(name)["steps"] for part in step}
    found = {}
    for info in (home() / name).glob("lib/python*/site-packages/*.dist-info"):
        package, _, version = info.name[: -len(".dist-info")].partition("-")
        if package.lower().replace("_", "-") in wanted:
            found[package.lower().replace("_", "-")] = version
    return dict(sorted(found.items()))
