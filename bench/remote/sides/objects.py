# SPDX-License-Identifier: Apache-2.0
"""DataLoader + boto3 of penstock-lab load, over the objects of the stock."""

from sides import objects, pil

Objects = objects.Objects


def versions(_task):
    return objects.Side.versions


def prepare(task):
    """The stock uploads the files as they are."""


def arguments(task):
    """Of the dataset: copies of a photograph are one object."""
    names = task["names"]
    addresses = [f"s3://{task['bucket']}/{names[i % len(names)]}" for i in range(task["samples"])]
    return addresses, pil.Transform(task), task["options"]["requests"]


def batches(task):
    data = Objects(*arguments(task))
    for _, ids in objects.data_loader(data, task["batch"], task["workers"], shuffle=True):
        yield ids.numpy()
