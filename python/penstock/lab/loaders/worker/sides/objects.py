# SPDX-License-Identifier: Apache-2.0
"""PyTorch's DataLoader over an object store with one object for each image. boto3 fetches them in
worker processes: one after another, or those of a batch at the same time with a pool of threads."""

import concurrent.futures
import functools

import boto3
import botocore.config
import PIL
import torch

from . import pil
from .store import bucket_and_key


class Objects(torch.utils.data.Dataset):
    """`threads`: concurrent requests of a worker; 0: one request after another."""

    def __init__(self, addresses, transform, threads):
        self.addresses, self.transform, self.threads = addresses, transform, threads

    def __len__(self):
        return len(self.addresses)

    @functools.cached_property
    def client(self):
        """Of this worker: a client must not be used after a fork."""
        config = botocore.config.Config(max_pool_connections=max(10, self.threads))
        return boto3.session.Session().client("s3", config=config)

    @functools.cached_property
    def pool(self):
        return concurrent.futures.ThreadPoolExecutor(self.threads)

    def fetch(self, i):
        bucket, key = bucket_and_key(self.addresses[i])
        return self.client.get_object(Bucket=bucket, Key=key)["Body"].read()

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


def data_loader(data, batch, workers, **more):
    torch.set_num_threads(1)
    return torch.utils.data.DataLoader(data, batch_size=batch, num_workers=workers,
                                       prefetch_factor=2, **more)


class Side:
    """Its first process only names the files; the store has an address for each of them."""

    versions = {"torch": torch.__version__, "boto3": boto3.__version__, "pillow": PIL.__version__}

    def __init__(self, task):
        self.task, self.stored = task, task["files"]
        self.addresses = task.get("addresses", [])
        self.data = Objects(self.addresses, pil.Transform(task), task["options"]["requests"])
        self.loader = self.addresses and data_loader(
            self.data, task["batch"], task["threads"], shuffle=task["transform"] == "train",
            persistent_workers=True)

    def epoch(self):
        for _, ids in self.loader:
            yield ids

    def check(self):
        if not self.addresses:
            return pil.check(self.task, self.task["files"])
        # A dataset of its own: the workers must not inherit its client.
        data = Objects(self.addresses, None, 0)
        return pil.check(self.task, {c["id"]: data.fetch(c["id"]) for c in self.task["cases"]})
