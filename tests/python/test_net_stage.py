# SPDX-License-Identifier: Apache-2.0
"""The servers for tests of packs in object stores, looked at with clients that are not ours."""

import collections
import concurrent.futures
import contextlib
import datetime
import hashlib
import http.client
import itertools
import json
import os
import pathlib
import random
import shutil
import signal
import socket
import subprocess
import sys
import time

import conftest
import net_stage
import pytest

pytest.importorskip("boto3")
if conftest.is_sanitized(conftest.BUILD):
    pytest.skip("nothing that is built is in it", allow_module_level=True)
import botocore.auth  # noqa: E402
import botocore.awsrequest  # noqa: E402
import botocore.credentials  # noqa: E402
import botocore.exceptions  # noqa: E402
from botocore.exceptions import ClientError  # noqa: E402

KEYS = ("plain", "a b/c+d=e", "ümlaut/日本", "x:@&?#%/~!'()*$,;.txt", "deep/" * 20 + "end")
PART = 5 << 20


@pytest.fixture(scope="module")
def scripted():
    buckets = ["packs", "open,public", "paid,requester-pays", "elsewhere,region=eu-west-1"]
    with net_stage.S3Server(buckets=buckets) as server:
        yield server


@pytest.fixture(scope="module", params=["scripted", pytest.param("ceph", marks=pytest.mark.slow)])
def store(request):
    """Both have to do the same."""
    if request.param == "ceph":
        return net_stage.need_ceph()
    return request.getfixturevalue("scripted")


@pytest.fixture(scope="module")
def client(store):
    return store.boto3()


names = itertools.count()


@pytest.fixture
def bucket(client):
    name = f"stage-{os.getpid()}-{next(names)}"
    client.create_bucket(Bucket=name)
    return name


def refused(function, **arguments):
    """The status and the code of the error that a call ends with."""
    with pytest.raises(ClientError) as caught:
        function(**arguments)
    answer = caught.value.response
    return answer["ResponseMetadata"]["HTTPStatusCode"], answer["Error"]["Code"]


def content(seed, n_bytes):
    return random.Random(seed).randbytes(n_bytes)


def signed(server, method, path, body=b"", sent=None, region=None):
    """A request signed by botocore, sent as it is, or with another body than was signed."""
    keys = botocore.credentials.Credentials(server.key_id, server.secret, server.token)
    request = botocore.awsrequest.AWSRequest(method, server.url + path, {}, body)
    botocore.auth.S3SigV4Auth(keys, "s3", region or server.region).add_auth(request)
    connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=10)
    with contextlib.closing(connection):
        connection.request(method, path, body if sent is None else sent, dict(request.headers))
        answer = connection.getresponse()
        return answer.status, answer.read(), answer.headers


def test_objects(client, bucket):
    for i, key in enumerate(KEYS):
        body = content(i, 1000 * i)
        etag = client.put_object(Bucket=bucket, Key=key, Body=body, Metadata={"n": str(i)})["ETag"]
        assert etag == f'"{hashlib.md5(body).hexdigest()}"'
        answer = client.get_object(Bucket=bucket, Key=key)
        assert answer["Body"].read() == body
        assert (answer["ETag"], answer["Metadata"]) == (etag, {"n": str(i)})
        head = client.head_object(Bucket=bucket, Key=key)
        assert (head["ETag"], head["ContentLength"]) == (etag, len(body))
    client.delete_object(Bucket=bucket, Key=KEYS[0])
    assert refused(client.get_object, Bucket=bucket, Key=KEYS[0]) == (404, "NoSuchKey")
    assert refused(client.head_object, Bucket=bucket, Key=KEYS[0]) == (404, "404")
    nowhere = "stage-no-such-bucket"
    assert refused(client.get_object, Bucket=nowhere, Key="x") == (404, "NoSuchBucket")


def test_ranges(client, bucket):
    body = content(1, 10000)
    client.put_object(Bucket=bucket, Key="o", Body=body)
    for text, first, last in (
        ("0-0", 0, 0), ("10-99", 10, 99), ("9000-", 9000, 9999), ("-5", 9995, 9999),
        ("9999-20000", 9999, 9999), ("-20000", 0, 9999),
    ):
        answer = client.get_object(Bucket=bucket, Key="o", Range=f"bytes={text}")
        assert answer["ContentRange"] == f"bytes {first}-{last}/10000", text
        assert answer["Body"].read() == body[first : last + 1], text
        assert answer["ResponseMetadata"]["HTTPStatusCode"] == 206
    beyond = refused(client.get_object, Bucket=bucket, Key="o", Range="bytes=10000-")
    assert beyond == (416, "InvalidRange")


def test_conditions(client, bucket):
    place = {"Bucket": bucket, "Key": "o"}
    first = client.put_object(**place, Body=b"one", IfNoneMatch="*")["ETag"]
    failed = (412, "PreconditionFailed")
    assert refused(client.put_object, **place, Body=b"two", IfNoneMatch="*") == failed
    second = client.put_object(**place, Body=b"two", IfMatch=first.strip('"'))["ETag"]
    again = {"Body": b"three", "IfMatch": first.strip('"')}
    assert refused(client.put_object, **place, **again) == failed
    assert client.get_object(**place, IfMatch=second)["Body"].read() == b"two"
    assert refused(client.get_object, **place, IfMatch=first) == failed
    assert refused(client.get_object, **place, IfMatch=first, Range="bytes=0-0") == failed
    assert refused(client.get_object, **place, IfNoneMatch=second)[0] == 304
    assert client.get_object(**place, IfNoneMatch=first)["Body"].read() == b"two"


def upload_parts(client, place, bodies):
    upload = {**place, "UploadId": client.create_multipart_upload(**place)["UploadId"]}
    parts = [
        {"PartNumber": n, "ETag": client.upload_part(**upload, PartNumber=n, Body=body)["ETag"]}
        for n, body in bodies
    ]
    return upload, parts


def test_multipart(store, client, bucket):
    place = {"Bucket": bucket, "Key": "big"}
    bodies = [(1, content(1, PART)), (3, content(3, PART + 1)), (7, content(7, 100))]
    upload, parts = upload_parts(client, place, bodies)
    listed = client.list_parts(**upload)["Parts"]
    assert [(p["PartNumber"], p["Size"], p["ETag"]) for p in listed] == [
        (n, len(body), p["ETag"]) for (n, body), p in zip(bodies, parts)
    ]
    again = client.list_parts(**upload, MaxParts=1, PartNumberMarker=1)
    assert ([p["PartNumber"] for p in again["Parts"]], again["IsTruncated"]) == ([3], True)
    uploads = client.list_multipart_uploads(Bucket=bucket)["Uploads"]
    assert [(u["Key"], u["UploadId"]) for u in uploads] == [("big", upload["UploadId"])]
    wrong = {"Parts": [parts[0], {"PartNumber": 3, "ETag": parts[0]["ETag"]}]}
    complete = client.complete_multipart_upload
    assert refused(complete, **upload, MultipartUpload=wrong) == (400, "InvalidPart")
    if isinstance(store, net_stage.S3Server):  # Ceph sorts them
        turned = refused(complete, **upload, MultipartUpload={"Parts": parts[::-1]})
        assert turned == (400, "InvalidPartOrder")
    assert refused(client.get_object, **place) == (404, "NoSuchKey")
    done = complete(**upload, MultipartUpload={"Parts": parts})
    whole = b"".join(body for _, body in bodies)
    digests = b"".join(hashlib.md5(body).digest() for _, body in bodies)
    etag = f'"{hashlib.md5(digests).hexdigest()}-3"'
    found = client.get_object(**place)
    assert (found["ETag"], found["Body"].read() == whole) == (etag, True)
    assert "Uploads" not in client.list_multipart_uploads(Bucket=bucket)
    # Ceph 16 says the ETag only when it is asked to complete what is complete already.
    if isinstance(store, net_stage.S3Server):
        assert done["ETag"] == etag
        again = refused(complete, **upload, MultipartUpload={"Parts": parts})
        assert again == (404, "NoSuchUpload")
    else:
        assert done["ETag"] in ("", etag)
        assert complete(**upload, MultipartUpload={"Parts": parts})["ETag"].strip('"') in etag


def test_multipart_that_fails(client, bucket):
    place = {"Bucket": bucket, "Key": "small"}
    upload, parts = upload_parts(client, place, [(1, b"less than 5 MiB"), (2, b"x")])
    small = refused(client.complete_multipart_upload, **upload, MultipartUpload={"Parts": parts})
    assert small == (400, "EntityTooSmall")
    client.abort_multipart_upload(**upload)
    assert refused(client.list_parts, **upload)[0] == 404
    late = refused(client.upload_part, **upload, PartNumber=1, Body=b"x")
    assert late == (404, "NoSuchUpload")


def writes_under_conditions(client, bucket):
    """What becomes of them: done, or the status they are refused with."""
    place = {"Bucket": bucket, "Key": "o"}
    etag = client.put_object(**place, Body=b"old")["ETag"]
    upload, parts = upload_parts(client, place, [(1, b"new")])
    found = {}
    for name, call in {
        "put, quoted": lambda: client.put_object(**place, Body=b"old", IfMatch=etag),
        "put, bare": lambda: client.put_object(**place, Body=b"old", IfMatch=etag.strip('"')),
        "put, other": lambda: client.put_object(**place, Body=b"old", IfMatch="0" * 32),
        "put, absent": lambda: client.put_object(
            Bucket=bucket, Key="absent", Body=b"", IfMatch=etag
        ),
        "complete, there": lambda: client.complete_multipart_upload(
            **upload, MultipartUpload={"Parts": parts}, IfNoneMatch="*"
        ),
        "delete, other": lambda: client.delete_object(**place, IfMatch="0" * 32),
    }.items():
        try:
            call()
            found[name] = "done"
        except ClientError as e:
            found[name] = e.response["ResponseMetadata"]["HTTPStatusCode"]
    return found


def test_conditions_that_stores_honour_differently(store, client, bucket):
    """A client has to know: only If-None-Match of a plain PUT is the same everywhere."""
    found = writes_under_conditions(client, bucket)
    aws = {
        "put, quoted": "done", "put, bare": "done", "put, other": 412, "put, absent": 404,
        "complete, there": 412, "delete, other": 412,
    }
    ceph = {
        "put, quoted": 412, "put, bare": "done", "put, other": 412, "put, absent": 412,
        "complete, there": "done", "delete, other": "done",
    }
    if not isinstance(store, net_stage.S3Server):
        assert found == ceph
        return
    assert found == aws
    with net_stage.S3Server(buckets=[bucket], conditional="ceph") as server:
        assert writes_under_conditions(server.boto3(), bucket) == ceph
    with net_stage.S3Server(buckets=[bucket], conditional="none") as server:
        assert set(writes_under_conditions(server.boto3(), bucket).values()) == {"done"}


def test_listing(client, bucket):
    keys = sorted(["a/1", "a/2", "a/b/3", "b", "c/1", "ü", "a.", "a0", "Z"], key=str.encode)
    for key in keys:
        client.put_object(Bucket=bucket, Key=key, Body=key.encode())
    pages = client.get_paginator("list_objects_v2")
    for size in (1, 2, 1000):
        found = [
            o
            for page in pages.paginate(Bucket=bucket, PaginationConfig={"PageSize": size})
            for o in page.get("Contents", [])
        ]
        assert [o["Key"] for o in found] == keys, size
        assert [o["Size"] for o in found] == [len(k.encode()) for k in keys]
    for size in (1, 2, 1000):
        plain, common = [], []
        asked = {"Bucket": bucket, "Delimiter": "/", "PaginationConfig": {"PageSize": size}}
        for page in pages.paginate(**asked):
            plain += [o["Key"] for o in page.get("Contents", [])]
            common += [p["Prefix"] for p in page.get("CommonPrefixes", [])]
        assert (plain, common) == (["Z", "a.", "a0", "b", "ü"], ["a/", "c/"]), size
    under = client.list_objects_v2(Bucket=bucket, Prefix="a/", StartAfter="a/1")["Contents"]
    assert [o["Key"] for o in under] == ["a/2", "a/b/3"]


def test_signatures_that_are_wrong(store, client, bucket, monkeypatch):
    place = {"Bucket": bucket, "Key": "o"}
    client.put_object(**place, Body=b"x")
    impostor = store.boto3(aws_secret_access_key="guessed")
    assert refused(impostor.get_object, **place) == (403, "SignatureDoesNotMatch")
    assert refused(impostor.put_object, **place, Body=b"y") == (403, "SignatureDoesNotMatch")
    stranger = store.boto3(aws_access_key_id="nobody")
    assert refused(stranger.get_object, **place) == (403, "InvalidAccessKeyId")
    unsigned = store.boto3(config={"signature_version": botocore.UNSIGNED})
    assert refused(unsigned.get_object, **place) == (403, "AccessDenied")
    path = f"/{bucket}/o"
    assert signed(store, "PUT", path, b"right", sent=b"right")[0] == 200
    status, text, _ = signed(store, "PUT", path, b"right", sent=b"wrong")
    assert (status, b"XAmzContentSHA256Mismatch" in text) == (400, True)
    for minutes, result in ((-14, None), (14, None), (-16, 403), (16, 403)):
        now = datetime.datetime.now(datetime.timezone.utc) + datetime.timedelta(minutes=minutes)
        monkeypatch.setattr(botocore.auth, "get_current_datetime", lambda *_, now=now: now)
        if result is None:
            client.head_object(**place)
        else:
            assert refused(client.get_object, **place) == (403, "RequestTimeTooSkewed"), minutes


def test_addresses_with_the_bucket_in_the_host(store, client, bucket, monkeypatch):
    resolve = socket.getaddrinfo
    monkeypatch.setattr(
        socket, "getaddrinfo",
        lambda host, *more, **named: resolve(
            "127.0.0.1" if host.endswith(".localhost") else host, *more, **named
        ),
    )
    by_host = store.boto3(style="virtual", endpoint_url=f"http://localhost:{store.port}")
    by_host.put_object(Bucket=bucket, Key="a/ü", Body=b"by host")
    assert client.get_object(Bucket=bucket, Key="a/ü")["Body"].read() == b"by host"
    listed = by_host.list_objects_v2(Bucket=bucket)["Contents"]
    assert [o["Key"] for o in listed] == ["a/ü"]


def test_aws_command(store, client, bucket, tmp_path):
    net_stage.need_aws()
    body = content(5, 9 << 20)  # its multipart threshold is 8 MiB
    (tmp_path / "up").write_bytes(body)
    store.aws("s3", "cp", "--only-show-errors", tmp_path / "up", f"s3://{bucket}/a b/ü")
    head = client.head_object(Bucket=bucket, Key="a b/ü")
    assert (head["ContentLength"], head["ETag"][-3:]) == (len(body), '-2"')
    store.aws("s3", "cp", "--only-show-errors", f"s3://{bucket}/a b/ü", tmp_path / "down")
    assert (tmp_path / "down").read_bytes() == body


# --- what only the scripted server does ---


def test_amazons_own_examples():
    """The signatures in AWS's documentation ("Authenticating Requests"), at their time."""
    made = datetime.datetime(2013, 5, 24, tzinfo=datetime.timezone.utc).timestamp()
    scope = "AKIAIOSFODNN7EXAMPLE/20130524/us-east-1/s3/aws4_request"
    secret = "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY"
    empty = hashlib.sha256(b"").hexdigest()
    text = b"Welcome to Amazon S3."
    body = b"".join(
        b"%x;chunk-signature=%s\r\n%s\r\n" % (n, signature, b"a" * n)
        for n, signature in (
            (65536, b"ad80c730a21e5b8d04586a2213dd63b9a0e99e0e2307b0ade35a65485a288648"),
            (1024, b"0055627c9e194cb4542bae2aa5492e3c1575bbb81b612b7d234b86a503ef5497"),
            (0, b"b6c6ea8a5354eaf15b3cb7646744f4275b71ea724fed81ceb9323e279d449df9"),
        )
    )
    stored = {"x-amz-storage-class": "REDUCED_REDUNDANCY"}
    examples = (
        ("PUT", "/test%24file.text", text, hashlib.sha256(text).hexdigest(),
         {"Date": "Fri, 24 May 2013 00:00:00 GMT", **stored},
         "98ad721746da40c64f1a55b78f14c238d841ea1380cd77a1b5971af0ece108bd", 200),
        ("PUT", "/examplebucket/chunkObject.txt", body, "STREAMING-AWS4-HMAC-SHA256-PAYLOAD",
         {"Content-Encoding": "aws-chunked", "Content-Length": str(len(body)),
          "x-amz-decoded-content-length": "66560", **stored},
         "4f232c4386841ef735655705268965c44a0e4690baa4adea153f7db9fa80a0a9", 200),
        ("GET", "/test.txt", b"", empty, {"Range": "bytes=0-9"},
         "f0e8bdb87c964420e857bd35b5d6ed310bd44f0170aba48dd91039c6036bdb41", 404),
        ("GET", "/?lifecycle", b"", empty, {},
         "fea454ca298b7da1c68078a5d1bdbfbbe0d65c699e0f91ac7a200a0136783543", 501),
        ("GET", "/?max-keys=2&prefix=J", b"", empty, {},
         "34b48302e7b5fa45bde8084f4b7868a86f0a534bc59db6670ed5711ef69dc6f7", 501),
    )

    def send(method, path, body, payload, headers, signature):
        in_path = path.startswith("/examplebucket/")
        headers = {
            **headers, "x-amz-date": "20130524T000000Z", "x-amz-content-sha256": payload,
            "Host": ("" if in_path else "examplebucket.") + "s3.amazonaws.com",
        }
        names = ";".join(sorted(n.lower() for n in headers))
        headers["Authorization"] = (f"AWS4-HMAC-SHA256 Credential={scope},SignedHeaders={names},"
                                    f"Signature={signature}")
        connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=10)
        with contextlib.closing(connection):
            connection.request(method, path, body, headers)
            answer = connection.getresponse()
            return answer.status, answer.read().decode()

    with net_stage.S3Server(
        buckets=["examplebucket"], keys=[f"AKIAIOSFODNN7EXAMPLE:{secret}"],
        domain="s3.amazonaws.com", clock=made - time.time(),
    ) as server:
        for *example, signature, status in examples:
            assert send(*example, signature)[0] == status, example[1]
            wrong = signature[:-1] + ("0" if signature[-1] != "0" else "1")
            status, text = send(*example, wrong)
            assert (status, "SignatureDoesNotMatch" in text) == (403, True), example[1]
        broken = body.replace(b"aa\r\n400;", b"ab\r\n400;")
        assert broken != body
        status, text = send("PUT", "/examplebucket/chunkObject.txt", broken, *examples[1][3:6])
        assert (status, "A chunk's signature" in text) == (403, True)


def test_regions(scripted):
    elsewhere = {"Bucket": "elsewhere", "Key": "o"}
    status, text, headers = signed(scripted, "GET", "/elsewhere/o")
    assert (status, headers["x-amz-bucket-region"]) == (301, "eu-west-1")
    assert b"<Code>PermanentRedirect</Code>" in text
    there = scripted.boto3(region_name="eu-west-1")
    there.put_object(**elsewhere, Body=b"x")
    for path, right in (("/packs/o", "us-east-1"), ("/elsewhere/o", "eu-west-1")):
        status, text, _ = signed(scripted, "GET", path, region="ap-south-1")
        assert (status, b"<Code>AuthorizationHeaderMalformed</Code>" in text) == (400, True)
        assert f"<Region>{right}</Region>".encode() in text
    # botocore knows both answers, and finds the region with them.
    for region in ("us-east-1", "ap-south-1"):
        astray = scripted.boto3(region_name=region)
        assert astray.get_object(**elsewhere)["Body"].read() == b"x"
    where = scripted.boto3().get_bucket_location(Bucket="packs")["LocationConstraint"]
    assert where is None


def test_requester_pays(scripted):
    client = scripted.boto3()
    place = {"Bucket": "paid", "Key": "o"}
    client.put_object(**place, Body=b"x", RequestPayer="requester")
    assert refused(client.get_object, **place) == (403, "AccessDenied")
    answer = client.get_object(**place, RequestPayer="requester")
    assert (answer["Body"].read(), answer["RequestCharged"]) == (b"x", "requester")


def test_public_reading(scripted):
    scripted.boto3().put_object(Bucket="open", Key="o", Body=b"for all")
    anyone = scripted.boto3(config={"signature_version": botocore.UNSIGNED})
    assert anyone.get_object(Bucket="open", Key="o")["Body"].read() == b"for all"
    assert refused(anyone.put_object, Bucket="open", Key="p", Body=b"") == (403, "AccessDenied")


def test_tokens_expire():
    with net_stage.S3Server(keys=["id:secret:token1:3"]) as server:
        client = server.boto3()
        for _ in range(3):
            client.put_object(Bucket="packs", Key="o", Body=b"x")
        expired = (400, "ExpiredToken")
        assert refused(client.get_object, Bucket="packs", Key="o") == expired
        fresh = {"aws_session_token": "token2"}
        new = server.boto3(**fresh)
        assert refused(new.get_object, Bucket="packs", Key="o") == (400, "InvalidToken")
        server.control(key={"id": "id", "secret": "secret", "token": "token2"})
        assert new.get_object(Bucket="packs", Key="o")["Body"].read() == b"x"
        assert refused(client.get_object, Bucket="packs", Key="o") == expired
        server.control(expire="id")
        assert refused(new.get_object, Bucket="packs", Key="o") == expired


def test_clock_of_the_server(scripted):
    client = scripted.boto3()
    client.put_object(Bucket="packs", Key="o", Body=b"x")
    scripted.control(clock=3600)
    try:
        skewed = refused(client.get_object, Bucket="packs", Key="o")
        _, text, headers = signed(scripted, "GET", "/packs/o")
    finally:
        scripted.control(clock=0)
    assert skewed == (403, "RequestTimeTooSkewed")
    assert b"<ServerTime>" in text
    then = datetime.datetime.strptime(headers["Date"], "%a, %d %b %Y %H:%M:%S GMT")
    ahead = then - datetime.datetime.now(datetime.timezone.utc).replace(tzinfo=None)
    assert 3590 < ahead.total_seconds() < 3610


def test_counts(scripted):
    client = scripted.boto3()
    scripted.control(reset=True)
    client.put_object(Bucket="packs", Key="a", Body=b"abc")
    for _ in range(3):
        client.get_object(Bucket="packs", Key="a", Range="bytes=1-1")["Body"].read()
    assert refused(client.head_object, Bucket="packs", Key="b")[0] == 404
    client.list_objects_v2(Bucket="packs")
    counts = scripted.counts()
    assert counts["kinds"] == {"PutObject": 1, "GetObject": 3, "HeadObject": 1, "ListObjectsV2": 1}
    assert counts["keys"]["packs/a"] == {"PutObject": 1, "GetObject": 3}
    assert counts["statuses"] == {"200": 2, "206": 3, "404": 1}
    assert (counts["total"], sum(n for n, _ in counts["seconds"])) == (6, 6)
    assert [e["range"] for e in scripted.log() if e["kind"] == "GetObject"] == ["bytes=1-1"] * 3


def read_all(server, keys, threads=1):
    """GET of every key in turn, unsigned, on few connections: [(key, status, body)]."""

    def read_some(mine):
        found, connection = [], None
        for key in mine:
            if connection is None:
                connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=10)
            try:
                connection.request("GET", f"/open/{key}")
                answer = connection.getresponse()
                found.append((key, answer.status, answer.read()))
                again = not answer.will_close
            except (http.client.HTTPException, OSError) as e:
                found.append((key, 0, type(e).__name__.encode()))
                again = False
            if not again:
                connection.close()
                connection = None
        if connection:
            connection.close()
        return found

    with concurrent.futures.ThreadPoolExecutor(threads) as pool:
        parts = pool.map(read_some, [keys[i::threads] for i in range(threads)])
        return [result for part in parts for result in part]


def faults_by_request(server):
    """For each key, how often each thing happened; the order of two at one time is open."""
    found = collections.defaultdict(collections.Counter)
    for entry in server.log():
        found[entry["what"]][entry["status"], tuple(entry["faults"])] += 1
    return found


def test_chaos_at_the_rates_given_and_again(tmp_path):
    n = 1500
    body = content(9, 2000)
    (tmp_path / "open").mkdir()
    keys = [f"{i % 250}" for i in range(n)]
    for key in set(keys):
        (tmp_path / "open" / key).write_bytes(body)
    with net_stage.S3Server(buckets=["open,public"], directory=tmp_path,
                            chaos=net_stage.FDB_RATES + ",delay_ms=1", seed=1) as server:
        answers = read_all(server, keys)
        first, counts = faults_by_request(server), server.counts()
        # Five standard deviations; it is the same every time anyway.
        for name, rate in (("throttle", 0.05), ("error", 0.095), ("delay", 0.10),
                           ("corrupt", 0.0085)):
            spread = 5 * (n * rate * (1 - rate)) ** 0.5
            assert abs(counts["faults"][name] - n * rate) < spread, (name, counts["faults"])
        statuses = collections.Counter(status for _, status, _ in answers)
        assert set(statuses) == {200, 500, 502, 503, 504}
        bad = [found for _, status, found in answers if status == 200 and found != body]
        assert len(bad) == counts["faults"]["corrupt"]
        for found in bad:
            bits = [bin(a ^ b).count("1") for a, b in zip(found, body)]
            assert (len(found), sum(bits)) == (len(body), 1)
        server.control(chaos=net_stage.FDB_RATES + ",delay_ms=1", seed=1, reset=True)
        read_all(server, sorted(keys), threads=4)
        assert faults_by_request(server) == first
        server.control(chaos=net_stage.FDB_RATES + ",delay_ms=1", seed=2, reset=True)
        read_all(server, keys)
        assert faults_by_request(server) != first


def test_chaos_that_breaks_connections():
    with net_stage.S3Server(buckets=["open,public"]) as server:
        client = server.boto3()
        body = content(3, 5000)
        server.control(chaos="lost=1")
        with pytest.raises(botocore.exceptions.ConnectionClosedError):
            client.put_object(Bucket="open", Key="o", Body=body)
        server.control(chaos="")
        assert read_all(server, ["o"]) == [("o", 200, body)]  # it was done all the same
        server.control(chaos="reset=1")
        assert read_all(server, ["o"]) == [("o", 0, b"ConnectionResetError")]
        server.control(chaos="cut=1")
        assert read_all(server, ["o"]) == [("o", 0, b"IncompleteRead")]
        server.control(chaos="delay=1,delay_ms=400", seed=3, reset=True)
        start = time.monotonic()
        assert len(read_all(server, ["o"] * 3)) == 3
        assert time.monotonic() - start > 0.1
        assert server.counts()["faults"] == {"delay": 3}


def test_completion_that_fails_with_200():
    with net_stage.S3Server(part_min=1) as server:
        client = server.boto3()
        place = {"Bucket": "packs", "Key": "o"}
        upload, parts = upload_parts(client, place, [(1, b"x")])
        found = set()
        body = ("<CompleteMultipartUpload>" + "".join(
            f"<Part><PartNumber>{p['PartNumber']}</PartNumber><ETag>{p['ETag']}</ETag></Part>"
            for p in parts
        ) + "</CompleteMultipartUpload>").encode()
        server.control(chaos="error=1")
        path = f"/packs/o?uploadId={upload['UploadId']}"
        for _ in range(30):
            status, text, _ = signed(server, "POST", path, body)
            found.add((status, b"<Error>" in text))
        assert found == {(200, True), (502, True), (503, True), (504, True)}
        server.control(chaos="")
        client.complete_multipart_upload(**upload, MultipartUpload={"Parts": parts})


def test_a_server_can_be_renewed():
    with net_stage.S3Server(buckets=["open,public"]) as server:
        key = {"id": "new", "secret": "s"}
        server.boto3().put_object(Bucket="open", Key="o", Body=b"x")
        server.control(chaos="error=1", key=key, clock=3600, bucket={"name": "more"})
        server.control(mute=True, outage=True)
        server.control(renew=True)
        assert server.counts()["total"] == 0
        assert [b["Name"] for b in server.boto3().list_buckets()["Buckets"]] == ["open"]
        assert "Contents" not in server.boto3().list_objects_v2(Bucket="open")
        with pytest.raises(ClientError, match="InvalidAccessKeyId"):
            server.boto3(aws_access_key_id="new", aws_secret_access_key="s").list_buckets()
        assert server.counts()["faults"] == {}


def test_outage_and_silence():
    with net_stage.S3Server(buckets=["open,public"]) as server:
        server.boto3().put_object(Bucket="open", Key="o", Body=b"x")
        well = [("o", 200, b"x")]
        server.control(outage=True)
        assert [status for _, status, _ in read_all(server, ["o"] * 3)] == [503] * 3
        server.control(outage=True, outage_how="reset")
        assert read_all(server, ["o"]) == [("o", 0, b"ConnectionResetError")]
        server.control(outage=1)
        assert read_all(server, ["o"])[0][1] == 0
        time.sleep(1)
        assert read_all(server, ["o"]) == well
        assert server.counts()["faults"] == {"outage": 5}
        server.control(mute=True)
        with socket.create_connection(("127.0.0.1", server.port), timeout=0.3) as s:
            s.sendall(b"GET /open/o HTTP/1.1\r\nHost: x\r\n\r\n")
            with pytest.raises(TimeoutError):
                s.recv(1)
            server.control(mute=False)
            s.settimeout(30)
            assert s.recv(1) == b""
        assert read_all(server, ["o"]) == well
        assert server.counts()["faults"] == {"outage": 5, "mute": 1}
        server.control(mute=2)
        assert read_all(server, ["o"] * 2) == well * 2
        with socket.create_connection(("127.0.0.1", server.port), timeout=0.3) as s:
            s.sendall(b"GET /open/o HTTP/1.1\r\nHost: x\r\n\r\n")
            with pytest.raises(TimeoutError):
                s.recv(1)


def test_directory(tmp_path):
    (tmp_path / "given" / "a").mkdir(parents=True)
    (tmp_path / "given" / "a" / "b").write_bytes(b"was there")
    with net_stage.S3Server(buckets=[], directory=tmp_path) as server:
        client = server.boto3()
        place = {"Bucket": "given", "Key": "a/b"}
        answer = client.get_object(**place, Range="bytes=4-")
        assert answer["Body"].read() == b"there"
        (tmp_path / "given" / "a" / "b").write_bytes(b"damaged!!")
        assert refused(client.get_object, **place, IfMatch=answer["ETag"])[0] == 412
        assert client.get_object(**place)["Body"].read() == b"damaged!!"
        body = content(1, 3 << 20)
        client.put_object(Bucket="given", Key="c/d", Body=body, ContentType="text/x")
        assert (tmp_path / "given" / "c" / "d").read_bytes() == body
        answer = client.get_object(Bucket="given", Key="c/d")
        assert (answer["Body"].read() == body, answer["ContentType"]) == (True, "text/x")
        listed = client.list_objects_v2(Bucket="given")["Contents"]
        assert [o["Key"] for o in listed] == ["a/b", "c/d"]
        for key in ("../escape", "/etc", "a/../../x", "a//b"):
            assert signed(server, "PUT", f"/given/{key}", b"x")[0] in (400, 403), key
        assert sorted(os.listdir(tmp_path)) == ["given"]


def test_tls(tmp_path):
    if not shutil.which("openssl"):
        pytest.skip("openssl: not installed")
    pair = (tmp_path / "certificate", tmp_path / "key")
    subprocess.run(
        ["openssl", "req", "-x509", "-nodes", "-newkey", "ec", "-pkeyopt",
         "ec_paramgen_curve:P-256", "-days", "2", "-subj", "/CN=stage",
         "-addext", "subjectAltName=IP:127.0.0.1", "-out", pair[0], "-keyout", pair[1]],
        check=True, capture_output=True,
    )
    with net_stage.S3Server(tls=pair) as server:
        client = server.boto3(verify=str(pair[0]))
        body = content(2, 1 << 20)
        client.put_object(Bucket="packs", Key="o", Body=body)
        assert client.get_object(Bucket="packs", Key="o")["Body"].read() == body
        with pytest.raises(botocore.exceptions.SSLError):
            server.boto3(verify=True).get_object(Bucket="packs", Key="o")
        assert server.counts()["kinds"] == {"PutObject": 1, "GetObject": 1}


# --- distance, and cleaning up ---


@pytest.mark.alone
def test_far_away(scripted):
    net_stage.need_haproxy()
    scripted.boto3().put_object(Bucket="open", Key="o", Body=b"x")
    with net_stage.FarAway(scripted, ms=150) as far:
        for threads in (1, 12):
            n = 3 * threads
            start = time.monotonic()
            answers = read_all(far, ["o"] * n, threads)
            took = time.monotonic() - start
            assert answers == [("o", 200, b"x")] * n
            assert 3 * 0.15 <= took < 36 * 0.15, (threads, took)  # not 36 in turn
        start = time.monotonic()
        far.boto3().put_object(Bucket="packs", Key="far", Body=content(1, 1 << 20))
        assert time.monotonic() - start >= 0.15
        directory = far.directory
    assert not directory.exists()


def test_far_away_and_failing(scripted):
    net_stage.need_haproxy()
    scripted.boto3().put_object(Bucket="open", Key="o", Body=b"x")
    with net_stage.FarAway(scripted, ms=0, percent=30) as far:
        answers = read_all(far, ["o"] * 400)
    failed = [body for _, status, body in answers if status == 503]
    assert 60 < len(failed) < 180  # more than six standard deviations
    assert all(b"<Code>SlowDown</Code>" in body for body in failed)
    assert {status for _, status, _ in answers} == {200, 503}


def test_start_that_fails(tmp_path, scripted):
    net_stage.need_haproxy()
    with pytest.raises(net_stage.StageError, match=f"port {scripted.port} is in use"):
        net_stage.FarAway(scripted, ms=0, port=scripted.port).__enter__()
    with pytest.raises(net_stage.StageError, match="has ended"):
        net_stage.S3Server(chaos="nonsense=1").__enter__()
    for script, arguments in (("object_store.sh", ["up"]), ("far_away.sh", ["up", tmp_path / "x"])):
        done = subprocess.run(["bash", net_stage.NET / script, *arguments], check=False,
                              capture_output=True, timeout=10)
        assert done.returncode in (1, 2)
        assert not (tmp_path / "x").exists()
    (tmp_path / "mine").mkdir()
    done = subprocess.run(["bash", net_stage.NET / "object_store.sh", "down", tmp_path / "mine"],
                          check=False, capture_output=True, timeout=10)
    assert (done.returncode, (tmp_path / "mine").exists()) == (1, True)


def test_nothing_stays_when_a_test_is_killed():
    code = """
import json, sys, time, net_stage
with net_stage.S3Server() as server:
    far = net_stage.FarAway(server, ms=0) if not net_stage.missing_haproxy() else server
    with far:
        print(json.dumps([server.port, far.port, str(getattr(far, "directory", ""))]), flush=True)
        time.sleep(60)
"""
    child = subprocess.Popen(
        [sys.executable, "-c", code], stdout=subprocess.PIPE, text=True, start_new_session=True,
        env={**os.environ, "PYTHONPATH": str(pathlib.Path(net_stage.__file__).parent)},
    )
    try:
        near, far, directory = json.loads(child.stdout.readline())
        for port in (near, far):
            socket.create_connection(("127.0.0.1", port), timeout=5).close()
    finally:
        child.send_signal(signal.SIGKILL)
        child.wait()
        child.stdout.close()
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline and (
        is_open(near) or is_open(far) or (directory and os.path.exists(directory))
    ):
        time.sleep(0.05)
    assert (is_open(near), is_open(far)) == (False, False)
    assert not directory or not os.path.exists(directory)


def is_open(port):
    with socket.socket() as s:
        return s.connect_ex(("127.0.0.1", port)) == 0
