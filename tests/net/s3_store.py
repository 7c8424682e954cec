# SPDX-License-Identifier: Apache-2.0
"""Buckets of the scripted S3 server: objects in memory or as files of a directory, and uploads.

In a directory, DIR/BUCKET/KEY is the object: what is put there from outside is served, too. The
headers and the ETag of an object are then known as long as the server runs and the file stays as it
was; after that the ETag is the content's MD5.
"""

import hashlib
import os
import re
import tempfile
import threading
import time
import uuid

from s3_http import FilePart, Refused

MAX_PART = 10000


class Object:
    """data: bytes; None when it is a file, known by its stamp."""

    def __init__(self, data, etag, headers=(), modified=0.0):
        self.data, self.etag, self.headers = data, etag, tuple(headers)
        self.n_bytes = len(data) if data is not None else 0
        self.modified = modified
        self.stamp = None

    def part(self, first, n_bytes):
        return memoryview(self.data)[first : first + n_bytes]


class FileObject(Object):
    def __init__(self, fd, etag, headers=()):
        super().__init__(None, etag, headers)
        self.fd = fd
        info = os.fstat(fd)
        self.n_bytes, self.modified, self.stamp = info.st_size, info.st_mtime, stamp(info)

    def part(self, first, n_bytes):
        fd, self.fd = self.fd, None
        return FilePart(fd, first, n_bytes)

    def __del__(self):
        if self.fd is not None:
            os.close(self.fd)


class Upload:
    def __init__(self, bucket, key, headers, started):
        self.bucket, self.key, self.headers, self.started = bucket, key, tuple(headers), started
        self.upload_id = uuid.uuid4().hex
        self.parts = {}  # number: (ETag, data, time)


class Bucket:
    def __init__(self, name, region, requester_pays=False, public=False):
        self.name, self.region = name, region
        self.requester_pays, self.public = requester_pays, public
        self.lists = True  # False: as to keys without s3:ListBucket, what is not there is a 403
        self.writes = True  # False: as to keys without s3:PutObject
        self.removes = True  # False: without s3:DeleteObject and s3:AbortMultipartUpload

    def may_change(self, method):
        return {"PUT": self.writes, "POST": self.writes, "DELETE": self.removes}.get(method, True)


def stamp(info):
    return info.st_ino, info.st_size, info.st_mtime_ns


def md5(data):
    return hashlib.md5(data).hexdigest()


def md5_of_file(fd):
    digest, offset = hashlib.md5(), 0
    while data := os.pread(fd, 1 << 20, offset):
        digest.update(data)
        offset += len(data)
    return digest.hexdigest()


class MemoryObjects:
    def __init__(self):
        self.all = {}

    def add_bucket(self, bucket):
        self.all[bucket] = {}

    def remove_bucket(self, bucket):
        del self.all[bucket]

    def names(self, bucket):
        return list(self.all[bucket])

    def get(self, bucket, key):
        return self.all[bucket].get(key)

    def put(self, bucket, key, thing):
        self.all[bucket][key] = thing

    def remove(self, bucket, key):
        self.all[bucket].pop(key, None)


class FileObjects:
    def __init__(self, root):
        self.root = root
        self.known = {}  # (bucket, key): (stamp, ETag, headers)
        os.makedirs(root, exist_ok=True)

    def path(self, bucket, key=""):
        parts = key.split("/") if key else []
        if any(part in ("", ".", "..") or "\0" in part or len(part) > 255 for part in parts):
            raise Refused(400, "InvalidArgument", "This key cannot be a file's name here.")
        return os.path.join(self.root, bucket, *parts)

    def add_bucket(self, bucket):
        os.makedirs(self.path(bucket), exist_ok=True)

    def remove_bucket(self, bucket):
        for folder, _, _ in os.walk(self.path(bucket), topdown=False):
            os.rmdir(folder)

    def names(self, bucket):
        top = self.path(bucket)
        return [
            os.path.relpath(os.path.join(folder, name), top)
            for folder, _, names in os.walk(top)
            for name in names
            if not name.startswith(".put-")
        ]

    def get(self, bucket, key):
        try:
            path = self.path(bucket, key)
            fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        except (OSError, Refused):
            return None
        if not os.path.isfile(path):
            os.close(fd)
            return None
        now = stamp(os.fstat(fd))
        known = self.known.get((bucket, key))
        if known is None or known[0] != now:
            known = self.known[bucket, key] = (now, md5_of_file(fd), ())
        return FileObject(fd, known[1], known[2])

    def put(self, bucket, key, thing):
        path = self.path(bucket, key)
        try:
            os.makedirs(os.path.dirname(path), exist_ok=True)
            with tempfile.NamedTemporaryFile(dir=os.path.dirname(path), prefix=".put-",
                                             delete=False) as out:
                out.write(thing.data)
            os.replace(out.name, path)
        except OSError as e:
            raise Refused(400, "InvalidArgument", f"No file can have this name: {e}") from None
        self.known[bucket, key] = (stamp(os.stat(path)), thing.etag, thing.headers)

    def remove(self, bucket, key):
        try:
            os.unlink(self.path(bucket, key))
        except (OSError, Refused):
            pass


class Store:
    """conditional: how writes honour If-Match and If-None-Match.

    aws    PUT, DELETE and the completion of an upload do; an ETag may have its quotes or not
    ceph   as Ceph 16's gateway: PUT alone does, and its If-Match knows only ETags without quotes
    none   not at all
    """

    def __init__(self, directory=None, conditional="aws", part_min=5 << 20, clock=time.time):
        self.lock = threading.RLock()
        self.objects = FileObjects(directory) if directory else MemoryObjects()
        self.buckets, self.uploads = {}, {}
        self.conditional, self.part_min, self.clock = conditional, part_min, clock

    def add_bucket(self, bucket):
        if not re.fullmatch(r"[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]", bucket.name):
            raise Refused(400, "InvalidBucketName", "The specified bucket is not valid.")
        with self.lock:
            if bucket.name in self.buckets:
                raise Refused(
                    409, "BucketAlreadyOwnedByYou",
                    "The bucket you tried to create already exists, and you own it.",
                )
            self.objects.add_bucket(bucket.name)
            self.buckets[bucket.name] = bucket

    def remove_bucket(self, name):
        with self.lock:
            if self.objects.names(name):
                raise Refused(409, "BucketNotEmpty", "The bucket is not empty.")
            self.objects.remove_bucket(name)
            del self.buckets[name]

    def bucket(self, name):
        found = self.buckets.get(name)
        if found is None:
            raise Refused(
                404, "NoSuchBucket", "The specified bucket does not exist", [("BucketName", name)]
            )
        return found

    def get(self, bucket, key):
        with self.lock:
            found = self.objects.get(bucket, key)
        if found is None:
            raise Refused(404, "NoSuchKey", "The specified key does not exist.", [("Key", key)])
        return found

    def check_write(self, bucket, key, request, honoured=("aws",)):
        """If-Match and If-None-Match of a request that replaces or removes an object."""
        match, none_match = request.header("if-match"), request.header("if-none-match")
        if self.conditional not in honoured or (match is None and none_match is None):
            return
        found = self.objects.get(bucket, key)
        if match is not None:
            as_ceph = self.conditional == "ceph"
            if found is None and not as_ceph:
                raise Refused(404, "NoSuchKey", "The specified key does not exist.", [("Key", key)])
            if found is None or match not in ("*", found.etag, as_ceph or f'"{found.etag}"'):
                raise failed("If-Match")
        if none_match is not None:
            if none_match != "*":
                raise Refused(501, "NotImplemented", "If-None-Match of a write can only be *.")
            if found is not None:
                raise failed("If-None-Match")

    def put(self, bucket, key, data, headers, request):
        thing = Object(data, md5(data), headers, self.clock())
        with self.lock:
            self.check_write(bucket, key, request, ("aws", "ceph"))
            self.objects.put(bucket, key, thing)
        return thing

    def remove(self, bucket, key, request=None):
        with self.lock:
            if request is not None:
                self.check_write(bucket, key, request)
            self.objects.remove(bucket, key)

    def begin_upload(self, bucket, key, headers):
        upload = Upload(bucket, key, headers, self.clock())
        with self.lock:
            self.uploads[upload.upload_id] = upload
        return upload

    def upload(self, bucket, key, upload_id):
        found = self.uploads.get(upload_id)
        if found is None or (found.bucket, found.key) != (bucket, key):
            raise Refused(
                404, "NoSuchUpload",
                "The specified upload does not exist. The upload ID may be invalid, or the upload "
                "may have been aborted or completed.",
                [("UploadId", upload_id)],
            )
        return found

    def put_part(self, bucket, key, upload_id, number, data):
        if not 1 <= number <= MAX_PART:
            raise Refused(400, "InvalidArgument", f"Part number must be 1 to {MAX_PART}.")
        etag = md5(data)
        with self.lock:
            self.upload(bucket, key, upload_id).parts[number] = (etag, data, self.clock())
        return etag

    def drop_upload(self, bucket, key, upload_id):
        with self.lock:
            self.upload(bucket, key, upload_id)
            del self.uploads[upload_id]

    def complete(self, bucket, key, upload_id, wanted, request):
        """wanted: [(number, ETag)], in order."""
        with self.lock:
            upload = self.upload(bucket, key, upload_id)
            if not wanted:
                raise Refused(400, "MalformedXML", "No parts are named.")
            numbers = [number for number, _ in wanted]
            if numbers != sorted(set(numbers)):
                raise Refused(400, "InvalidPartOrder", "The parts were not in ascending order.")
            for number, etag in wanted:
                if number not in upload.parts or upload.parts[number][0] != etag.strip('"'):
                    raise Refused(
                        400, "InvalidPart",
                        "A part could not be found, or its ETag does not match.",
                        [("UploadId", upload_id), ("PartNumber", number)],
                    )
            parts = [upload.parts[number] for number in numbers]
            if any(len(data) < self.part_min for _, data, _ in parts[:-1]):
                raise Refused(
                    400, "EntityTooSmall",
                    "Your proposed upload is smaller than the minimum allowed size",
                )
            self.check_write(bucket, key, request)
            joined = hashlib.md5(b"".join(bytes.fromhex(etag) for etag, _, _ in parts))
            thing = Object(
                b"".join(data for _, data, _ in parts), f"{joined.hexdigest()}-{len(parts)}",
                upload.headers, self.clock(),
            )
            self.objects.put(bucket, key, thing)
            del self.uploads[upload_id]
        return thing


def failed(condition):
    return Refused(
        412, "PreconditionFailed",
        "At least one of the pre-conditions you specified did not hold",
        [("Condition", condition)],
    )
