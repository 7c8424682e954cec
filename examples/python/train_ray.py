# SPDX-License-Identifier: Apache-2.0
"""Train with Ray Train on a number of workers that changes while the job runs.

    python3 examples/python/train_ray.py photos.pen --workers 1 4

This starts Ray on your machine, with a worker for each CPU, at most 4. On a cluster, use
--address auto, and a --storage that all nodes can read.

If a worker or a node fails, Ray Train restarts the workers, as many as the cluster has CPUs for. If
a node joins, it restarts them with one more. They resume from the last checkpoint, in the middle of
an epoch: each sample of the epoch is used once. The workers train as in train_elastic.py.
--batch-size is of all workers together.
"""

from __future__ import annotations

import argparse
import os
import tempfile
from typing import Any

import ray
import ray.train
import torch
from common import elastic_parser
from ray.train import Checkpoint, CheckpointConfig, FailureConfig, RunConfig, ScalingConfig
from ray.train.torch import TorchTrainer
from train_elastic import train


class RayCheckpoints:
    """The last checkpoint that was reported to Ray Train."""

    def load(self) -> dict[str, Any] | None:
        """Called on rank 0."""
        checkpoint = ray.train.get_checkpoint()
        if checkpoint is None:
            return None
        with checkpoint.as_directory() as directory:
            return torch.load(os.path.join(directory, "state.pt"), weights_only=True)

    def save(self, state: dict[str, Any]) -> None:
        """Called on every rank. All of them report, and rank 0 adds the checkpoint."""
        with tempfile.TemporaryDirectory() as directory:
            checkpoint = None
            if ray.train.get_context().get_world_rank() == 0:
                torch.save(state, os.path.join(directory, "state.pt"))
                checkpoint = Checkpoint.from_directory(directory)
            ray.train.report({"step": state["step"]}, checkpoint=checkpoint)


def train_worker(config: dict[str, Any]) -> None:
    train(argparse.Namespace(**config), RayCheckpoints())


def absolute(path: str | None) -> str | None:
    """For workers, which have another working directory."""
    return path if path is None or "://" in path else os.path.abspath(path)


def main() -> None:
    options = elastic_parser(__doc__)
    options.add_argument("--workers", type=int, nargs=2, default=(1, 4), metavar=("MIN", "MAX"))
    options.add_argument("--address", default="local", help="of a Ray cluster")
    options.add_argument("--storage", default="ray", help="directory for checkpoints; a job that "
                         "is started again with it resumes")
    args = options.parse_args()
    args.path, args.sample_log = absolute(args.path), absolute(args.sample_log)
    ray.init(address=args.address)
    trainer = TorchTrainer(
        train_worker,
        train_loop_config=vars(args),
        scaling_config=ScalingConfig(
            num_workers=tuple(args.workers),
            elastic_resize_monitor_interval_s=10,  # how often it checks for new nodes
        ),
        run_config=RunConfig(
            name="train",
            storage_path=absolute(args.storage),
            failure_config=FailureConfig(max_failures=10),
            checkpoint_config=CheckpointConfig(num_to_keep=2),
        ),
    )
    trainer.fit()


if __name__ == "__main__":
    main()
