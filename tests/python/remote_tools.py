# SPDX-License-Identifier: Apache-2.0
"""Packs behind a scripted S3 server, for the tests of the Python package."""

import hashlib
import http.client
import json
import os
import sys

import net_stage
from py_tools import png

FULL = os.environ.get("PENSTOCK_SCALE") == "full"
PIPELINE = "decode | random_resized_crop 8 | hflip | tensor u8"
ADDRESS = "s3://packs/train.pen"


def make_pack(penstock, path, n, **settings):
    """Small images, labels and texts, in many blocks and some shards."""
    settings = {"block_samples": 8, "shard_size": "256KiB", **settings}
    if not str(path).startswith("s3:"):
        path.parent.mkdir(parents=True, exist_ok=True)
    images = [png(i, 12, 10) for i in range(min(n, 500))]
    schema = {"image": "image", "label": "i64", "note": "text"}
    with penstock.Writer(path, schema, **settings) as writer:
        for i in range(n):
            image = images[i % len(images)]
            writer.add(key=f"s{i}", image=image, label=i, note=f"note {i} " * 8)


def epoch_digest(penstock, where, storage_options=None, **settings):
    """SHA-256 of all batches of an epoch, in their order."""
    settings = {"order": "shuffle", "seed": 3, "threads": 2, **settings}
    digest = hashlib.sha256()
    with penstock.Loader(where, 16, pipeline={"image": PIPELINE, "label": "tensor i64"},
                         output="numpy", storage_options=storage_options, **settings) as loader:
        for image, label in loader:
            digest.update(image.tobytes())
            digest.update(label.tobytes())
    return digest.hexdigest()


def options(server, **more):
    return {"endpoint": server.url, "region": server.region, "key_id": server.key_id,
            "secret": server.secret, **more}


class MetadataServer:
    """tests/net/metadata_server.py."""

    def __init__(self, **script):
        self.script = script

    def __enter__(self):
        self.process = net_stage.Process([sys.executable, net_stage.NET / "metadata_server.py"], 20)
        self.process.start()
        line = self.process.wait_for_line(lambda line: line.startswith("port "))
        self.port = int(line.split()[1])
        self.ask("POST", "/_script", json.dumps(self.script))
        return self

    def __exit__(self, *_):
        self.process.stop()

    @property
    def url(self):
        return f"http://127.0.0.1:{self.port}"

    def ask(self, method, path, body=None):
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=10)
        try:
            connection.request(method, path, body)
            answer = connection.getresponse()
            text = answer.read().decode()
        finally:
            connection.close()
        assert answer.status == 200, text
        return text
