# SPDX-License-Identifier: Apache-2.0
"""Where long_ray.py packs to: a directory, or an object store. Packs are compared by digests."""

import hashlib
import pathlib
import shutil
import sys

import _program as program

sys.path.insert(0, str(program.ROOT / "tests" / "python"))
import net_stage

BUCKET, PACK = "packs", "a.pen"
CHUNK = 1 << 20


def digest(stream):
    found = hashlib.sha256()
    while data := stream.read(CHUNK):
        found.update(data)
    return found.hexdigest()


def tree(top):
    """The digest of every file, by path."""
    found = {}
    for path in sorted(p for p in pathlib.Path(top).rglob("*") if p.is_file()):
        with open(path, "rb") as stream:
            found[str(path.relative_to(top))] = digest(stream)
    return found


class Directory:
    """Processes that write the same task wait for each other."""

    name = "directory"

    def __init__(self, top):
        self.out = top / PACK

    def clear(self):
        shutil.rmtree(self.out, ignore_errors=True)

    def other_machine(self, _number):
        return ()

    def tree(self):
        return tree(self.out)

    def uploads(self):
        return []


class Store:
    """Processes of several machines write the same task at once."""

    name = "store"

    def __init__(self, server, top):
        self.client, self.top = server.boto3(retries=5), top
        self.client.create_bucket(Bucket=BUCKET)
        self.out = f"s3://{BUCKET}/{PACK}"

    def names(self):
        pages = self.client.get_paginator("list_objects_v2").paginate(
            Bucket=BUCKET, Prefix=f"{PACK}/")
        return [o["Key"] for page in pages for o in page.get("Contents", ())]

    def clear(self):
        for name in self.names():
            self.client.delete_object(Bucket=BUCKET, Key=name)

    def other_machine(self, number):
        """Options for a process that shares no files with the others."""
        work = self.top / f"machine{number}"
        work.mkdir(exist_ok=True)
        return "--work", work

    def tree(self):
        return {name[len(PACK) + 1:]:
                digest(self.client.get_object(Bucket=BUCKET, Key=name)["Body"])
                for name in self.names()}

    def uploads(self):
        return self.client.list_multipart_uploads(Bucket=BUCKET).get("Uploads", [])


def server():
    """Real Ceph for the full counts, if it is installed."""
    if program.FULL and not net_stage.missing_ceph():
        return net_stage.Ceph()
    return net_stage.S3Server(buckets=())
