# SPDX-License-Identifier: Apache-2.0
"""PyTorch's DataLoader over one object for each photograph, fetched by boto3 in worker processes,
one after another; or those of a batch side by side, by a pool of threads."""

import concurrent.futures
import functools

import boto3
import botocore.config
import PIL
import torch
from sides import pil


def versions(_task):
    return {"torch": torch.__version__, "boto3": boto3.__version__, "pillow": PIL.__version__}


def prepare(task):
    """The stock uploads the files as they are."""


class Objects(torch.utils.data.Dataset):
    def __init__(self, task):
        self.task, self.transform = task, pil.Transform(task)
        self.threads = task["options"]["threads"]

    def __len__(self):
        return self.task["samples"]

    @functools.cached_property
    def client(self):
        """Of this worker: clients do not outlive a fork."""
        config = botocore.config.Config(max_pool_connections=max(10, self.threads))
        return boto3.session.Session().client("s3", config=config)

    @functools.cached_property
    def pool(self):
        return concurrent.futures.ThreadPoolExecutor(self.threads)

    def fetch(self, i):
        name = self.task["names"][i % len(self.task["names"])]
        return self.client.get_object(Bucket=self.task["bucket"], Key=name)["Body"].read()

    def sample(self, data, i):
        return torch.from_numpy(self.transform.pixels(data)), i

    def __getitem__(self, i):
        return self.sample(self.fetch(i), i)

    def __getitems__(self, numbers):
        if not self.threads:
            return [self[i] for i in numbers]
        self.client.meta  # noqa: B018  made before the threads: sessions are not thread-safe
        fetched = self.pool.map(self.fetch, numbers)
        return [self.sample(data, i) for data, i in zip(fetched, numbers)]


def batches(task):
    torch.set_num_threads(1)
    loader = torch.utils.data.DataLoader(
        Objects(task), batch_size=task["batch"], shuffle=True, num_workers=task["workers"],
        prefetch_factor=2)
    for _, ids in loader:
        yield ids.numpy()
