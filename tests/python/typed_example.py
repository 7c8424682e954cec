# SPDX-License-Identifier: Apache-2.0
"""A program of a user who checks types strictly; mypy reads it, nothing runs it."""

from __future__ import annotations

import pathlib
from collections.abc import Iterator

import penstock
from penstock import ops


def samples(folder: pathlib.Path) -> Iterator[dict[str, object]]:
    for label, path in enumerate(sorted(folder.glob("*.jpg"))):
        yield {"key": path.name, "image": path.read_bytes(), "label": label}


def convert(folder: pathlib.Path, out: pathlib.Path) -> int:
    return penstock.write(out, samples(folder), {"image": "image", "label": "i64"}, mode="keep")


def keys() -> dict[str, object]:
    return {"key_id": "id", "secret": "secret", "token": None, "expires": 1.9e9}


def upload(folder: pathlib.Path, bucket: str) -> penstock.Pack:
    options: penstock.StorageOptions = {"region": "eu-central-1", "credentials": keys}
    address = f"s3://{bucket}/{folder.name}.pen"
    schema = {"image": "image", "label": "i64"}
    penstock.write(address, samples(folder), schema, storage_options=options)
    return penstock.open(address, storage_options={"endpoint": "https://store", "no_sign": True})


def train(path: str, epochs: int) -> dict[str, int | str]:
    pack = penstock.open(path)
    names: list[str] = pack.classes
    first: penstock.Sample = pack[0]
    number: int = pack.index(first.key)
    crop: ops.Op = ops.random_resized_crop((224, 192), filter="bicubic")
    with penstock.Loader(
        pack,
        batch_size=256,
        shuffle=True,
        drop_last=True,
        pipeline={"image": [ops.decode(), crop, ops.tensor("u8")], "label": "tensor i64"},
        memory="1GiB",
        subset=range(number, len(pack)),
    ) as loader:
        for epoch in range(loader.epoch, epochs):
            loader.set_epoch(epoch)
            try:
                for image, label in loader:
                    print(image.shape, names[int(label[0])])
            except penstock.CorruptError as error:
                print(error.sample, error.where)
        return loader.state_dict()


def thumbnails(folder: pathlib.Path) -> list[int]:
    """The numbers of the files that are no images."""
    bad: list[int] = []

    def note(number: int, error: penstock.Error) -> None:
        bad.append(number)

    files = [path.read_bytes() for path in sorted(folder.iterdir())]
    boxes = [(0, 0, 64, 64), None, *[None] * (len(files) - 2)]
    penstock.decode_batch(files, boxes, size=(64, 64), threads=2, on_bad=note)
    print(penstock.decode(files[0], (0, 0, 32, 32), size=64, filter="bicubic", mode="gray").shape)
    return bad
