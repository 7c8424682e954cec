# SPDX-License-Identifier: Apache-2.0
"""The signer against botocore's, which AWS's own clients use.

botocore.auth.S3SigV4Auth signs for S3: the path as it stands, encoded once, and always
x-amz-content-sha256. SigV4Auth signs for everything else: the path normalised and encoded again,
and x-amz-content-sha256 only when it is there.

PENSTOCK_SIGN_CASES says how many random requests are compared (300).
"""

import datetime
import hashlib
import os
import pathlib
import random
import subprocess
from unittest import mock

import botocore.auth
import botocore.session
import pytest
from botocore.awsrequest import AWSRequest, AWSResponse
from botocore.compat import HTTPHeaders
from botocore.config import Config
from botocore.credentials import Credentials
from botocore.loaders import Loader
from botocore.utils import percent_encode

ROOT = pathlib.Path(__file__).resolve().parents[2]
BUILD = pathlib.Path(os.environ.get("PENSTOCK_BUILD") or ROOT / "build")
LINES = BUILD / "tests" / "net" / "sign_lines"
CASES = int(os.environ.get("PENSTOCK_SIGN_CASES") or 300)

LETTERS = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
RESERVED = "!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~ "
WIDE = "é\u00a0\u0301ßЖ漢字\u200b\u2028\ufeff\uffff𝄞🜚\U0010ffff"
NAMES = (
    "Range", "If-Match", "If-None-Match", "content-type", "Content-MD5", "X-AMZ-ACL",
    "x-amz-request-payer", "x-amz-meta-Colour", "x-amz-meta-a", "x-amz-meta-a-b", "Zebra", "accept",
    "x-amz-checksum-crc32c", "x-amz-copy-source-range", "x_underscore", "a.b",
)  # fmt: skip
QUERIES = (
    ("uploads", ""), ("uploadId", "a/b+c==.~_-"), ("partNumber", "17"), ("list-type", "2"),
    ("prefix", "train/ä /"), ("a", "2"), ("a-b", "1"), ("a.b", ""), ("A", "0"), ("a", "1"),
    ("a", ""), ("continuation-token", "1/+= &?#:@"), ("x%20y", "100%"), ("delimiter", "/"),
    ("ключ", "значение"),
)  # fmt: skip
ENDPOINTS = (
    "https://localhost:9000", "http://127.0.0.1:7480", "https://s3.eu-west-1.amazonaws.com",
    "https://0123456789abcdef.r2.cloudflarestorage.com", "https://storage.googleapis.com",
    "http://[::1]:8000", "https://minio.example.org:443", "http://minio.example.org:80",
    "https://gate.example.org/s3/v1", "https://gate.example.org:8443/a%20b/",
)  # fmt: skip


def hexed(word):
    return "-" if word is None else str(word).encode("utf-8").hex()


def ask(questions):
    """The words of each answer."""
    lines = "".join("\t".join(map(hexed, words)) + "\n" for words in questions)
    done = subprocess.run(
        [LINES], input=lines.encode(), capture_output=True, check=True, timeout=300
    )
    answers = [
        [bytes.fromhex(word).decode("utf-8") for word in line.split("\t")[:-1]]
        for line in done.stdout.decode().splitlines()
    ]
    assert len(answers) == len(questions)
    return answers


class Case:
    """A request, and everything that its signature depends on."""

    key_id, secret, token = "AKIDEXAMPLE", "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY", None
    region, service, unix_s = "us-east-1", "s3", 1440938160
    method, body, unsigned = "GET", b"", False
    endpoint, path_style, bucket, key = "https://gate.example.org", True, "bucket", "key"
    query, headers = (), ()

    def __init__(self, **values):
        vars(self).update(values)

    def payload_hash(self):
        return "UNSIGNED-PAYLOAD" if self.unsigned else hashlib.sha256(self.body).hexdigest()

    def question(self):
        words = ["sign", self.key_id, self.secret, self.token, self.region, self.service]
        words += [self.unix_s, self.method, self.payload_hash(), self.endpoint]
        words += [int(self.path_style), self.bucket, self.key]
        for pairs in (self.query, self.headers):
            words += [len(pairs), *(word for pair in pairs for word in pair)]
        return words

    def url(self):
        """Without the query."""
        scheme, rest = self.endpoint.split("://")
        host, _, base = rest.partition("/")
        base = f"/{base}".rstrip("/")
        port = ":443" if scheme == "https" else ":80"
        host = host.removesuffix(port)
        key = percent_encode(self.key, safe="/~")
        if self.path_style:
            return f"{scheme}://{host}{base}/{self.bucket}" + (f"/{key}" if key else "")
        return f"{scheme}://{self.bucket}.{host}{base}/{key}"

    def answer(self, auth_class=botocore.auth.S3SigV4Auth):
        """What botocore makes of it, in the order of the program's words."""
        headers = HTTPHeaders()
        for name, value in self.headers:
            headers.add_header(name, value)
        request = AWSRequest(self.method, self.url(), headers, self.body, list(self.query))
        off = Config(s3={"payload_signing_enabled": False})
        request.context.update({"client_config": off} if self.unsigned else {})
        auth = auth_class(
            Credentials(self.key_id, self.secret, self.token), self.service, self.region
        )
        now = datetime.datetime.fromtimestamp(self.unix_s, datetime.timezone.utc)
        with mock.patch.object(botocore.auth, "get_current_datetime", lambda: now):
            auth.add_auth(request)
        authorization = request.headers["Authorization"]
        del request.headers["Authorization"]
        query = auth.canonical_query_string(request)
        return [
            self.url() + (f"?{query}" if query else ""),
            botocore.auth._host_from_url(request.url),
            request.headers["X-Amz-Date"],
            request.headers["X-Amz-Content-SHA256"],
            authorization,
            auth.canonical_request(request),
        ]


def compare(cases, **how):
    for case, found in zip(cases, ask([case.question() for case in cases])):
        assert found == case.answer(**how), vars(case)


def word(dice, most, letters=LETTERS):
    return "".join(dice.choices(letters, k=dice.randint(1, most)))


def random_key(dice):
    kind = dice.randrange(8)
    if kind == 0:
        return dice.choice(("", "/", "//", "a//b", "/a", ".a", "..a/...", "a/./b", "a/../b", "a/"))
    letters = (LETTERS, RESERVED, WIDE, LETTERS + RESERVED + WIDE + "/" * 20, RESERVED + "\t\n\x7f")
    return "".join(dice.choices(letters[kind % 5], k=dice.randint(1, 1 << dice.randint(0, 7))))


def spaced(dice, value):
    gaps = ("", " ", "  ", "\t", " \t ")
    middle = dice.choice((" ", "   ", "\t", " \t", ", ", '"  "'))
    return dice.choice(gaps) + value.replace(" ", middle) + dice.choice(gaps)


def random_headers(dice):
    found = []
    for _ in range(dice.choice((0, 0, 1, 2, 5, 12))):
        name = dice.choice(NAMES) if dice.random() < 0.8 else "x-amz-" + word(dice, 8)
        name = dice.choice((str, str.lower, str.upper, str.title))(name)
        plain = (" ".join(word(dice, 9) for _ in range(dice.randrange(4))), "bytes=0-8388607")
        more = "".join(dice.choices(RESERVED + LETTERS, k=dice.randrange(30)))
        found.append((name, spaced(dice, dice.choice((*plain, more)))))
    return found


def random_query(dice):
    found = dice.sample(QUERIES, dice.choice((0, 0, 1, 2, 4, 9)))
    while dice.random() < 0.3:
        letters = LETTERS[:4] + RESERVED + WIDE
        found.append((word(dice, 4, letters), "".join(dice.choices(letters, k=dice.randrange(6)))))
    return found


def random_case(number):
    dice = random.Random(f"sign {number}")
    named = dice.random() < 0.3  # the bucket in the host
    tricky = ("a.b.c", "with-dash", "Old_Bucket", "0123456789")
    return Case(
        key_id=word(dice, 40),
        secret=word(dice, 80, LETTERS + "/+="),
        token=word(dice, 600, LETTERS + "/+=") if dice.random() < 0.5 else None,
        region=dice.choice(("us-east-1", "cn-north-1", "us-gov-west-1", "auto", "ceph_zone")),
        unix_s=dice.choice((0, 951782400, 1709164799, 4102444800, dice.randrange(1 << 32))),
        method=dice.choice(("GET", "HEAD", "PUT", "POST", "DELETE")),
        body=dice.randbytes(dice.choice((0, 1, 63, 64, 65, 1000))),
        unsigned=dice.random() < 0.4,
        endpoint="https://s3.eu-west-1.amazonaws.com" if named else dice.choice(ENDPOINTS),
        path_style=not named,
        bucket="abc-" + word(dice, 20, LETTERS[:26]) if named else dice.choice(tricky),
        key=random_key(dice),
        query=random_query(dice),
        headers=random_headers(dice),
    )


@pytest.mark.parametrize("first", range(0, CASES, 1000))
def test_random_requests_are_signed_as_botocore_does(first):
    compare([random_case(number) for number in range(first, min(first + 1000, CASES))])


def test_every_character_is_encoded_as_botocore_does():
    points = [*range(1, 0x180), *range(0x7F0, 0x810), *range(0xD7F0, 0xD800), 0xE000, 0x10000]
    compare([Case(key=f"k{chr(c)}{chr(c)}", query=[(f"q{chr(c)}", f"{chr(c)}=")]) for c in points])


def test_other_services_are_signed_as_botocore_does():
    """As for S3 when the path has nothing to encode, and the payload's hash is a header."""
    query = [
        ("Version", "2011-06-15"),
        ("Action", "AssumeRole"),
        ("RoleArn", "arn:aws:iam::1:role"),
    ]
    for token in (None, "IQoJb3JpZ2luX2VjE+/=="):
        case = Case(service="sts", bucket="sts", key="", query=query, token=token, method="POST")
        expected = Case(
            **vars(case), headers=[("X-Amz-Content-SHA256", case.payload_hash())]
        ).answer(botocore.auth.SigV4Auth)
        assert ask([case.question()]) == [expected]


CALLS = (
    ("get_object", {"Range": "bytes=0-1023", "IfMatch": '"0123"'}),
    ("head_object", {"RequestPayer": "requester"}),
    ("put_object", {"Body": b"manifest", "IfNoneMatch": "*", "ContentType": "text/plain"}),
    ("create_multipart_upload", {}),
    ("upload_part", {"PartNumber": 17, "UploadId": "2~a/b+c==", "Body": b"part" * 100}),
    ("list_parts", {"UploadId": "2~a/b+c==", "PartNumberMarker": 1000}),
    ("abort_multipart_upload", {"UploadId": "2~a/b+c=="}),
    ("complete_multipart_upload", {
        "UploadId": "u", "MultipartUpload": {"Parts": [{"ETag": '"e"', "PartNumber": 1}]},
    }),
    ("list_multipart_uploads", {"Prefix": "train/ä +", "KeyMarker": "k&="}),
    ("list_objects_v2", {"Prefix": "train/=?", "ContinuationToken": "1/+= &?#:@"}),
    ("delete_object", {}),
)  # fmt: skip


def sent_by_client(endpoint, style, call, arguments, now):
    """The request that a client of botocore's would send."""
    session = botocore.session.Session()
    client = session.create_client(
        "s3", "eu-west-1", endpoint_url=endpoint, aws_access_key_id=Case.key_id,
        aws_secret_access_key=Case.secret, aws_session_token="token/+=",
        config=Config(
            s3={"addressing_style": style}, request_checksum_calculation="when_required"
        ),
    )  # fmt: skip
    sent = []

    def keep(request, **_):
        sent.append(request)
        empty = mock.Mock(stream=lambda *_, **__: iter(()), read=lambda *_: b"")
        return AWSResponse(request.url, 200, {"content-length": "0"}, empty)

    client.meta.events.register("before-send.s3", keep)
    with mock.patch.object(botocore.auth, "get_current_datetime", lambda: now):
        getattr(client, call)(**arguments)
    return sent[0]


@pytest.mark.parametrize("style", ("path", "virtual"))
@pytest.mark.parametrize("call, more", CALLS, ids=[call for call, _ in CALLS])
def test_calls_of_a_whole_client_are_signed_the_same(call, more, style):
    key = "train.pen/a=b+c:d@e f/ä漢/~shard.(1)!'*,;"
    arguments = {"Bucket": "my-bucket", **more}
    has_key = not call.startswith("list_") or call == "list_parts"
    arguments.update({"Key": key} if has_key else {})
    endpoint = None if style == "virtual" else "https://gate.example.org:8443"
    now = datetime.datetime(2026, 10, 3, 21, 40, 59, tzinfo=datetime.timezone.utc)
    sent = sent_by_client(endpoint, style, call, arguments, now)

    text = {k.lower(): v.decode() if isinstance(v, bytes) else v for k, v in sent.headers.items()}
    own = {"host", "x-amz-date", "x-amz-content-sha256", "x-amz-security-token"}
    signed = text["authorization"].split("SignedHeaders=")[1].split(",")[0].split(";")
    query = botocore.compat.parse_qsl(
        botocore.compat.urlsplit(sent.url).query, keep_blank_values=True
    )
    case = Case(
        token="token/+=", region="eu-west-1", unix_s=int(now.timestamp()), method=sent.method,
        endpoint=endpoint, path_style=style == "path", bucket="my-bucket",
        key=key if has_key else "", query=query,
        headers=[(name, text[name]) for name in signed if name not in own],
        payload_hash=lambda: text["x-amz-content-sha256"],
    )  # fmt: skip
    url, host, date, _, authorization, _ = ask([case.question()])[0]
    assert url.split("?")[0] == sent.url.split("?")[0]
    assert host == botocore.auth._host_from_url(sent.url)
    assert date == text["x-amz-date"]
    assert authorization == text["authorization"]


def test_hosts_of_every_region_are_those_botocore_knows():
    partitions = Loader().load_data("partitions")["partitions"]
    suffixes = {
        region: partition["outputs"]["dnsSuffix"]
        for partition in partitions
        for region in partition["regions"]
        if not region.endswith("-global")
    }
    assert len(suffixes) > 30
    answers = ask([("endpoint", None, region) for region in suffixes])
    for (region, suffix), answer in zip(suffixes.items(), answers):
        assert answer == ["https", f"s3.{region}.{suffix}", "", region, "0", "1"]
