# SPDX-License-Identifier: Apache-2.0
"""The process of one loader: it is put under the limits of a simulated storage before it reads.

    python -m penstock.lab.documents.worker pack|files

It prints a line when all is imported, reads a task, and prints the result; both are JSON.
"""

from __future__ import annotations

import importlib
import io
import json
import os
import sys
import time
from collections.abc import Iterable, Iterator
from typing import Any

SPANS = 40  # waits of an epoch that are reported one by one


def pack_batches(task: dict[str, Any]) -> Iterator[Iterable[int]]:
    """Epochs of a pack: the number of samples of each batch, without those that pad the last."""
    import penstock

    subset = range(task["samples"]) if task.get("samples") else None
    with penstock.Loader(
        task["path"], task["batch"], order=task["order"], threads=task["threads"], subset=subset,
        pipeline=task["pipeline"], memory=task.get("memory", "256MiB"), output="numpy",
        return_info=True,
    ) as loader:
        for _ in range(task["epochs"]):
            yield (batch[-1].n_valid for batch in loader)


class Files:
    """JPEG files in a folder or objects in a store, read as Concurrent Dataloader does; a dataset
    for PyTorch. With several requests, those of a batch are made at the same time."""

    def __init__(self, task: dict[str, Any]) -> None:
        self.task = task
        self.client: Any = None
        self.pool: Any = None

    def __len__(self) -> int:
        return int(self.task["samples"])

    def read(self, number: int) -> bytes:
        name = f"{self.task['path']}/{number:06}.jpg"
        if "://" not in name:
            with open(name, "rb") as file:
                return file.read()
        bucket, _, key = name.partition("://")[2].partition("/")
        data: bytes = self.client.get_object(Bucket=bucket, Key=key)["Body"].read()
        return data

    def image(self, data: bytes) -> Any:
        import numpy as np
        import torch
        from PIL import Image

        image = Image.open(io.BytesIO(data)).convert("RGB")
        side = min(image.size) * 3 // 4
        left, top = (int(torch.randint(0, n - side + 1, ())) for n in image.size)
        image = image.resize((224, 224), box=(left, top, left + side, top + side))
        return torch.from_numpy(np.array(image)).permute(2, 0, 1).float().div(255)

    def start(self) -> None:
        """In the worker process."""
        from concurrent.futures import ThreadPoolExecutor

        self.pool = ThreadPoolExecutor(self.task["requests"])
        if "://" in self.task["path"]:
            import boto3
            import botocore.config

            more = botocore.config.Config(max_pool_connections=self.task["requests"])
            self.client = boto3.client("s3", config=more)

    def __getitems__(self, numbers: list[int]) -> list[Any]:
        if self.pool is None:
            self.start()
        return [self.image(data) for data in self.pool.map(self.read, numbers)]

    def __getitem__(self, number: int) -> Any:
        return self.__getitems__([number])[0]


def file_batches(task: dict[str, Any]) -> Iterator[Iterable[int]]:
    """Epochs of PyTorch's DataLoader: the number of samples of each batch."""
    import torch

    torch.set_num_threads(1)
    loader = torch.utils.data.DataLoader(
        Files(task), task["batch"], shuffle=True, num_workers=task["workers"],
        persistent_workers=True,
    )
    for _ in range(task["epochs"]):
        yield (len(batch) for batch in loader)


def epoch(batches: Iterable[int], step: float, began: float) -> dict[str, Any]:
    """Times of one epoch with a training step that takes `step` seconds for each batch."""
    spans: list[list[float]] = []
    waits, samples, end = [], 0, began
    for count in batches:
        waits.append(time.perf_counter() - end)
        if len(spans) < SPANS:
            spans.append([end - began, waits[-1]])
        samples += count
        if step:
            time.sleep(step)
        end = time.perf_counter()
    return {"seconds": end - began, "samples": samples, "batches": len(waits), "data": sum(waits),
            "first": waits[0], "waits": spans}


BATCHES = {"pack": pack_batches, "files": file_batches}
MODULES = {"pack": ["numpy", "penstock"],
           "files": ["torch", "numpy", "PIL.Image", "boto3"]}


def memory() -> int:
    """Bytes of this process that are not pages of files."""
    with open("/proc/self/status", encoding="ascii") as file:
        rows = [line.split() for line in file if line.startswith(("RssAnon", "RssShmem"))]
    return sum(int(row[1]) * 1024 for row in rows)


def perform(kind: str, task: dict[str, Any]) -> list[dict[str, Any]]:
    """The epochs; `memory` is what the process has allocated for them."""
    before, began, found = memory(), time.perf_counter(), []
    for batches in BATCHES[kind](task):
        found.append(epoch(batches, task.get("step", 0.0), began))
        found[-1]["memory"] = memory() - before
        began = time.perf_counter()
    return found


def main() -> None:
    kind = sys.argv[1]
    for name in MODULES[kind]:
        importlib.import_module(name)
    print(json.dumps("ready"), flush=True)
    result = perform(kind, json.loads(sys.stdin.readline()))
    print(json.dumps(result), flush=True)
    sys.stdin.readline()
    os._exit(0)


if __name__ == "__main__":
    main()
