# SPDX-License-Identifier: Apache-2.0
"""Running Python programs as a user does, also several at once under torchrun."""

import importlib.util
import os
import pathlib
import signal
import subprocess
import sys

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
EXAMPLES = ROOT / "examples" / "python"


def need(*modules):
    """Skips the whole file where one is missing; they are not imported for this."""
    unfit = {"torch", "jax"} & set(modules)
    if unfit and "san.so" in os.environ.get("LD_PRELOAD", ""):
        pytest.skip(f"{unfit.pop()} is not run under a sanitizer", allow_module_level=True)
    for name in modules:
        if not importlib.util.find_spec(name):
            pytest.skip(f"{name} is not installed", allow_module_level=True)


def run(*command, cwd=None, seconds=120, **environ):
    """What it prints. It ends with all its children, whatever happens."""
    # One thread each: they would be in one another's way, and sums would depend on their number.
    env = {**os.environ, "OMP_NUM_THREADS": "1", **environ}
    for name in ("RANK", "WORLD_SIZE", "SLURM_PROCID"):
        env.pop(name, None)
    process = subprocess.Popen(
        [os.fspath(word) for word in command], cwd=cwd, env=env, text=True,
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True,
    )
    try:
        out, err = process.communicate(timeout=seconds)
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
    assert process.returncode == 0, f"{command}\n{out}\n{err}"
    return out


def python(*command, **options):
    return run(sys.executable, *command, **options)


def torchrun(ranks, *command, **options):
    # The rendezvous has a port of its own, so that runs do not meet.
    launch = ["-m", "torch.distributed.run", "--standalone", "--nproc-per-node", str(ranks)]
    return python(*launch, *command, **options)
