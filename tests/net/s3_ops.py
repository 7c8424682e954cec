# SPDX-License-Identifier: Apache-2.0
"""The operations of the scripted S3 server: requests in, replies out."""

import base64
import email.utils
import hashlib
import re
import time
import urllib.parse
import xml.etree.ElementTree as ET
import zlib

from s3_http import Refused, Reply, document, xml
from s3_store import Bucket, failed

KEPT = ("content-type", "content-encoding", "content-disposition", "content-language",
        "cache-control", "expires")
# Parameters that make another operation of a request, which is none of these.
OTHER = frozenset(
    "accelerate acl analytics cors encryption inventory legal-hold lifecycle logging metrics "
    "notification object-lock ownershipControls policy publicAccessBlock replication "
    "requestPayment restore retention select tagging torrent versioning versions website".split()
)
CHECKSUMS = {
    "x-amz-checksum-crc32": lambda data: zlib.crc32(data).to_bytes(4, "big"),
    "x-amz-checksum-sha1": lambda data: hashlib.sha1(data).digest(),
    "x-amz-checksum-sha256": lambda data: hashlib.sha256(data).digest(),
    "x-amz-checksum-crc32c": None,  # taken as given: not in Python's library
    "x-amz-checksum-crc64nvme": None,
}


def kind_of(request):
    """The operation's name, as S3 has it."""
    given, method = request.arguments, request.method
    if OTHER.intersection(given):
        return f"{method} {' '.join(sorted(OTHER.intersection(given)))}"
    if request.bucket is None:
        table = {"GET": "ListBuckets"}
    elif not request.key:
        table = {"HEAD": "HeadBucket", "PUT": "CreateBucket", "DELETE": "DeleteBucket"}
        if method == "GET":
            table["GET"] = ("ListMultipartUploads" if "uploads" in given
                            else "GetBucketLocation" if "location" in given
                            else "ListObjectsV2" if given.get("list-type") == "2"
                            else "ListObjects")
        if "delete" in given:
            table["POST"] = "DeleteObjects"
    elif "uploadId" in given:
        table = {"PUT": "UploadPart", "POST": "CompleteMultipartUpload", "GET": "ListParts",
                 "DELETE": "AbortMultipartUpload"}
        if "x-amz-copy-source" in request.headers:
            table["PUT"] = "UploadPartCopy"
    else:
        table = {"GET": "GetObject", "HEAD": "HeadObject", "DELETE": "DeleteObject",
                 "PUT": "CopyObject" if "x-amz-copy-source" in request.headers else "PutObject"}
        if "uploads" in given:
            table["POST"] = "CreateMultipartUpload"
    return table.get(method, f"{method} other")


def stamp(seconds):
    return time.strftime("%Y-%m-%dT%H:%M:%S.000Z", time.gmtime(seconds))


def answer(element, headers=()):
    return Reply(200, document(element), [("Content-Type", "application/xml"), *headers])


def number(request, name, default, low=0, high=1000):
    text = request.arguments.get(name)
    if text is None or text == "":
        return default
    if not text.isdigit() or int(text) < low:
        raise Refused(400, "InvalidArgument", f"{name}: not a number it can be.")
    return min(int(text), high)


def kept_headers(request):
    return [
        (name, value)
        for name, value in request.headers.items()
        if name in KEPT or name.startswith("x-amz-meta-")
    ]


def checked_body(request):
    """The body, once it fits every checksum sent with it; and those to be sent back."""
    body, found = request.body, []
    md5 = request.header("content-md5")
    if md5 is not None and base64.b64encode(hashlib.md5(body).digest()).decode() != md5:
        raise Refused(400, "BadDigest", "The Content-MD5 you specified did not match the body.")
    for name, function in CHECKSUMS.items():
        value = request.header(name) or request.trailers.get(name)
        if value is None:
            continue
        if function is not None and base64.b64encode(function(body)).decode() != value:
            raise Refused(400, "BadDigest", f"The {name} you specified did not match the body.")
        found.append((name, value))
    return body, found


# --- objects ---


def read_range(text, size):
    """(first, bytes) of the one range asked for; None: the whole object."""
    m = re.fullmatch(r"bytes=(\d*)-(\d*)", text or "")
    if m is None or m.group() == "bytes=-":
        return None
    first, last = m.groups()
    if not first:
        n = min(int(last), size)
        if n == 0:
            raise outside(text, size)
        return size - n, n
    first, last = int(first), min(int(last) if last else size, size - 1)
    if m.group(2) and int(m.group(2)) < first:
        return None
    if first >= size:
        raise outside(text, size)
    return first, last - first + 1


def outside(text, size):
    return Refused(
        416, "InvalidRange", "The requested range is not satisfiable",
        [("RangeRequested", text), ("ActualObjectSize", size)],
        [("Content-Range", f"bytes */{size}")],
    )


def matches(given, etag):
    return given.strip() == "*" or etag in [t.strip().strip('"') for t in given.split(",")]


def get_object(server, request):
    found = server.store.get(request.bucket, request.key)
    match, none_match = request.header("if-match"), request.header("if-none-match")
    if match is not None and not matches(match, found.etag):
        raise failed("If-Match")
    # The last bytes may be asked for by who does not know the object yet.
    part_of_any = match is None and not request.header("range", "bytes=-").startswith("bytes=-")
    if server.need_if_match and part_of_any:
        raise Refused(400, "MissingIfMatch", "A part of an object was asked for without If-Match.")
    etag = ("ETag", f'"{found.etag}"')
    if none_match is not None and matches(none_match, found.etag):
        return Reply(304, b"", [etag])
    part = read_range(request.header("range"), found.n_bytes)
    first, n_bytes = part or (0, found.n_bytes)
    stored = dict(found.headers)
    headers = [
        etag,
        ("Last-Modified", email.utils.formatdate(found.modified, usegmt=True)),
        ("Accept-Ranges", "bytes"),
        ("Content-Type", stored.pop("content-type", "binary/octet-stream")),
    ]
    show = request.header("x-amz-checksum-mode", "").upper() == "ENABLED" and part is None
    headers += [(n, v) for n, v in stored.items() if show or n not in CHECKSUMS]
    if part:
        headers.append(("Content-Range", f"bytes {first}-{first + n_bytes - 1}/{found.n_bytes}"))
    if request.method == "HEAD":
        return Reply(206 if part else 200, b"", [*headers, ("Content-Length", n_bytes)])
    return Reply(206 if part else 200, found.part(first, n_bytes), headers)


def put_object(server, request):
    if "content-length" not in request.headers and "transfer-encoding" not in request.headers:
        raise Refused(411, "MissingContentLength", "You must provide the Content-Length header.")
    body, sums = checked_body(request)
    kept = kept_headers(request) + sums
    thing = server.store.put(request.bucket, request.key, body, kept, request)
    return Reply(200, b"", [("ETag", f'"{thing.etag}"'), *sums])


def copy_object(server, request):
    source = urllib.parse.unquote(request.header("x-amz-copy-source")).lstrip("/")
    bucket, _, key = source.partition("?")[0].partition("/")
    server.store.bucket(bucket)
    found = server.store.get(bucket, key)
    data = found.part(0, found.n_bytes)
    data = bytes(data) if isinstance(data, memoryview) else data.read()
    replace = request.header("x-amz-metadata-directive", "").upper() == "REPLACE"
    kept = kept_headers(request) if replace else found.headers
    thing = server.store.put(request.bucket, request.key, data, kept, request)
    return answer(xml("CopyObjectResult", ("LastModified", stamp(thing.modified)),
                      ("ETag", f'"{thing.etag}"')))


def delete_object(server, request):
    server.store.remove(request.bucket, request.key, request)
    return Reply(204)


def delete_objects(server, request):
    body, _ = checked_body(request)
    gone = [e.text or "" for e in parsed(body).iter() if local(e) == "Key"]
    for key in gone:
        server.store.remove(request.bucket, key)
    return answer(xml("DeleteResult", *(xml("Deleted", ("Key", key)) for key in gone)))


def parsed(body):
    try:
        return ET.fromstring(bytes(body))
    except ET.ParseError:
        raise Refused(400, "MalformedXML", "The XML you provided was not well-formed.") from None


def local(element):
    return element.tag.rpartition("}")[2]


# --- multipart uploads ---


def create_upload(server, request):
    upload = server.store.begin_upload(request.bucket, request.key, kept_headers(request))
    return answer(xml("InitiateMultipartUploadResult", ("Bucket", request.bucket),
                      ("Key", request.key), ("UploadId", upload.upload_id)))


def upload_part(server, request):
    body, sums = checked_body(request)
    which = request.arguments.get("partNumber", "")
    etag = server.store.put_part(request.bucket, request.key, request.arguments["uploadId"],
                                 int(which) if which.isdigit() else 0, body)
    return Reply(200, b"", [("ETag", f'"{etag}"'), *sums])


def complete_upload(server, request):
    wanted = []
    for element in parsed(request.body).iter():
        if local(element) == "Part":
            fields = {local(child): (child.text or "").strip() for child in element}
            if not fields.get("PartNumber", "").isdigit() or "ETag" not in fields:
                raise Refused(400, "MalformedXML", "A part has no number or no ETag.")
            wanted.append((int(fields["PartNumber"]), fields["ETag"]))
    thing = server.store.complete(request.bucket, request.key, request.arguments["uploadId"],
                                  wanted, request)
    return answer(xml("CompleteMultipartUploadResult",
                      ("Location", f"/{request.bucket}/{request.key}"),
                      ("Bucket", request.bucket), ("Key", request.key),
                      ("ETag", f'"{thing.etag}"')))


def abort_upload(server, request):
    server.store.drop_upload(request.bucket, request.key, request.arguments["uploadId"])
    return Reply(204)


def list_parts(server, request):
    upload = server.store.upload(request.bucket, request.key, request.arguments["uploadId"])
    after = number(request, "part-number-marker", 0, high=10**6)
    most = number(request, "max-parts", 1000)
    parts = sorted((n, p) for n, p in list(upload.parts.items()) if n > after)
    shown = parts[:most]
    return answer(xml(
        "ListPartsResult", ("Bucket", request.bucket), ("Key", request.key),
        ("UploadId", upload.upload_id), ("PartNumberMarker", after),
        ("NextPartNumberMarker", shown[-1][0] if shown else 0), ("MaxParts", most),
        ("IsTruncated", "true" if len(parts) > len(shown) else "false"),
        *(
            xml("Part", ("PartNumber", n), ("LastModified", stamp(when)),
                ("ETag", f'"{etag}"'), ("Size", len(data)))
            for n, (etag, data, when) in shown
        ),
    ))


def list_uploads(server, request):
    given = request.arguments
    prefix, code = given.get("prefix", ""), name_coder(request)
    after = (given.get("key-marker", ""), given.get("upload-id-marker", ""))
    if after[0] and not after[1]:
        after = (after[0], "\U0010ffff")
    most = number(request, "max-uploads", 1000)
    with server.store.lock:
        found = sorted(
            ((u.key, u.upload_id), u)
            for u in server.store.uploads.values()
            if u.bucket == request.bucket and u.key.startswith(prefix)
        )
    found = [(at, u) for at, u in found if at > after]
    shown = found[:most]
    last = shown[-1][0] if shown else ("", "")
    return answer(xml(
        "ListMultipartUploadsResult", ("Bucket", request.bucket), ("Prefix", code(prefix)),
        ("KeyMarker", code(after[0])), ("NextKeyMarker", code(last[0])),
        ("NextUploadIdMarker", last[1]), ("MaxUploads", most),
        ("IsTruncated", "true" if len(found) > len(shown) else "false"),
        *([("EncodingType", "url")] if given.get("encoding-type") == "url" else []),
        *(
            xml("Upload", ("Key", code(u.key)), ("UploadId", u.upload_id),
                ("StorageClass", "STANDARD"), ("Initiated", stamp(u.started)))
            for _, u in shown
        ),
    ))


# --- buckets ---


def name_coder(request):
    if request.arguments.get("encoding-type") == "url":
        return lambda text: urllib.parse.quote(text, safe="/-._~")
    return lambda text: text


def list_page(names, prefix, delimiter, after, most):
    """Keys and common prefixes in order behind `after`, and whether there are more."""
    shown = []
    for key in sorted(names, key=lambda k: k.encode("utf-8", "surrogateescape")):
        if not key.startswith(prefix):
            continue
        cut = key.find(delimiter, len(prefix)) if delimiter else -1
        entry = (key[: cut + len(delimiter)], True) if cut >= 0 else (key, False)
        if entry[0] <= after or (shown and shown[-1] == entry):
            continue
        if len(shown) == most:
            return shown, True
        shown.append(entry)
    return shown, False


def list_endless(kind, token):
    """A page of a list that never ends: of the same page, of empty ones, or of long new names."""
    page = int(token or 0)
    keys = {"page": ["src/a/1.jpg"], "empty": [],
            "names": [f"src/{page:06d}{i:04d}{'x' * 900}/1.jpg" for i in range(1000)]}[kind]
    parts = [("IsTruncated", "true"), ("NextContinuationToken", 1 if kind == "page" else page + 1)]
    parts += [xml("Contents", ("Key", key), ("ETag", '"1"'), ("Size", 1)) for key in keys]
    return answer(xml("ListBucketResult", *parts))


def list_objects(server, request):
    wrong = server.listing  # how it differs from what S3 does
    if "endless" in wrong:
        return list_endless(wrong["endless"], request.arguments.get("continuation-token"))
    given = {k: v for k, v in request.arguments.items() if k not in wrong.get("ignores", ())}
    code = name_coder(request)
    prefix, delimiter = given.get("prefix", ""), given.get("delimiter", "")
    after, token = given.get("start-after", ""), given.get("continuation-token")
    if token is not None:
        try:
            after = base64.urlsafe_b64decode(token.encode()).decode()
        except ValueError:
            raise Refused(400, "InvalidArgument", "The continuation token is wrong.") from None
    most = min(number(request, "max-keys", 1000), wrong.get("keys", 1000))
    objects = server.store.objects
    with server.store.lock:
        shown, more = list_page(objects.names(request.bucket), prefix, delimiter, after, most)
    if more:
        next_token = base64.urlsafe_b64encode(shown[-1][0].encode()).decode() if shown else ""
    if wrong.get("reverse") == "all" or (wrong.get("reverse") == "ranges" and after):
        shown.reverse()
    with server.store.lock:
        found = {key: objects.get(request.bucket, key) for key, common in shown if not common}
    parts = [("Name", request.bucket), ("Prefix", code(prefix)), ("KeyCount", len(shown)),
             ("MaxKeys", most), ("IsTruncated", "true" if more else "false")]
    if delimiter:
        parts.append(("Delimiter", code(delimiter)))
    if given.get("encoding-type") == "url":
        parts.append(("EncodingType", "url"))
    if token is not None:
        parts.append(("ContinuationToken", token))
    if more:
        parts.append(("NextContinuationToken", next_token))
    for key, common in shown:
        if common:
            parts.append(xml("CommonPrefixes", ("Prefix", code(key))))
        elif found[key] is not None:
            thing = found[key]
            parts.append(xml("Contents", ("Key", code(key)), ("ETag", f'"{thing.etag}"'),
                             ("LastModified", stamp(thing.modified)), ("Size", thing.n_bytes),
                             ("StorageClass", "STANDARD")))
    return answer(xml("ListBucketResult", *parts))


def list_buckets(server, request):
    names = (xml("Bucket", ("Name", b), ("CreationDate", stamp(0))) for b in server.store.buckets)
    return answer(xml("ListAllMyBucketsResult", xml("Owner", ("ID", "stage")),
                      xml("Buckets", *names)))


def create_bucket(server, request):
    server.store.add_bucket(Bucket(request.bucket or "", server.region))
    return Reply(200, b"", [("Location", f"/{request.bucket}")])


def delete_bucket(server, request):
    server.store.remove_bucket(request.bucket)
    return Reply(204)


def head_bucket(server, request):
    region = server.store.bucket(request.bucket).region
    return Reply(200, b"", [("x-amz-bucket-region", region), ("Content-Length", 0)])


def bucket_location(server, request):
    region = server.store.bucket(request.bucket).region
    return answer(f"<LocationConstraint>{'' if region == 'us-east-1' else region}"
                  "</LocationConstraint>")


OPERATIONS = {
    "GetObject": get_object, "HeadObject": get_object, "PutObject": put_object,
    "CopyObject": copy_object, "DeleteObject": delete_object, "DeleteObjects": delete_objects,
    "CreateMultipartUpload": create_upload, "UploadPart": upload_part,
    "CompleteMultipartUpload": complete_upload, "AbortMultipartUpload": abort_upload,
    "ListParts": list_parts, "ListMultipartUploads": list_uploads, "ListObjectsV2": list_objects,
    "ListBuckets": list_buckets, "CreateBucket": create_bucket, "DeleteBucket": delete_bucket,
    "HeadBucket": head_bucket, "GetBucketLocation": bucket_location,
}
