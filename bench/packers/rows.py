# SPDX-License-Identifier: Apache-2.0
"""Samples as Arrow record batches, read when they are wanted."""

import pathlib

import pyarrow as pa

ROWS = 64  # of a batch: about 7 MB of photographs
SCHEMA = pa.schema([("image", pa.large_binary()), ("label", pa.int64())])


def batch_of(some):
    images = [pathlib.Path(file).read_bytes() for _, file in some]
    columns = images, [i for i, _ in some]
    return pa.record_batch([pa.array(column, field.type) for column, field in zip(columns, SCHEMA)],
                           schema=SCHEMA)


def batches_of(samples):
    return (batch_of(samples[k : k + ROWS]) for k in range(0, len(samples), ROWS))


def samples_of(batches):
    for batch in batches:
        for row in batch.to_pylist():
            yield row["label"], row["image"]
