# SPDX-License-Identifier: Apache-2.0
"""The scripts for Slurm and Kubernetes of docs/how-to/pack-on-a-cluster.md run as pasted, with
programs in the places of sbatch and kubectl that run the tasks here."""

import os
import re
import subprocess

import pytest
from cli_tools import PENSTOCK, ROOT, good, make_folder, without_preload

PAGE = (ROOT / "docs" / "how-to" / "pack-on-a-cluster.md").read_text()
SBATCH = """#!/bin/bash
set -eu
case "$1" in
    --parsable)
        first=$(sed -n 's/#SBATCH --array=0-//p' "$2")
        for i in $(seq 0 "$first"); do
            SLURM_CPUS_PER_TASK=1 SLURM_ARRAY_TASK_ID=$i bash "$2" >&2
        done
        echo 4711 ;;
    --dependency=afterok:4711) bash -c "$3" ;;
    *) exit 1 ;;
esac
"""


def blocks(kind):
    return re.findall(rf"^```{kind}\n(.*?)^```$", PAGE, re.M | re.S)


def script(text, path):
    path.write_text(text)
    path.chmod(0o755)


@pytest.fixture
def shell(tmp_path):
    """Runs a script. /shared and the buckets are directories of the test; tasks are few."""
    make_folder(tmp_path / "photos")
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "penstock").symlink_to(PENSTOCK)
    script(SBATCH, tmp_path / "bin" / "sbatch")
    env = without_preload({**os.environ, "PATH": f"{tmp_path / 'bin'}:{os.environ['PATH']}"})

    def run(text, **more):
        subprocess.run(["bash", "-eu", "-c", text], env={**env, **more}, cwd=tmp_path, check=True,
                       timeout=300, capture_output=True)

    run.top = tmp_path
    return run


def here(text, top):
    for place in ("/shared", "s3://data", "s3://packs"):
        text = text.replace(place, str(top))
    return text.replace("0-63", "0-2").replace("TASKS=64", "TASKS=3").replace("/64", "/3")


def test_slurm(shell):
    (batch,) = [text for text in blocks("sh") if text.startswith("#!/bin/bash")]
    (submit,) = [text for text in blocks("sh") if "sbatch --parsable" in text]
    script(here(batch, shell.top), shell.top / "pack.sbatch")
    shell(here(submit, shell.top))
    good("verify", shell.top / "photos.pen")


def test_kubernetes(shell):
    yaml = pytest.importorskip("yaml")
    (text,) = blocks("yaml")
    job = yaml.safe_load(text)["spec"]
    (container,) = job["template"]["spec"]["containers"]
    (rule, _) = job["podFailurePolicy"]["rules"]
    assert rule["onExitCodes"]["containerName"] == container["name"]
    assert rule["onExitCodes"]["values"] == [75]
    command = container["command"] + container["args"]
    assert command[:2] == ["sh", "-c"] and f"/{job['completions']}\"" in command[2]
    assert job["completionMode"] == "Indexed" and "backoffLimit" not in job
    plan, finalise = [text for text in blocks("sh") if "kubectl" in text]
    shell(here(plan.replace("kubectl apply -f pack.yaml", ""), shell.top))
    for i in range(3):
        shell(here(command[2], shell.top), JOB_COMPLETION_INDEX=str(i))
    shell(here(re.sub("kubectl.*", "", finalise), shell.top))
    good("verify", shell.top / "photos.pen")
