# SPDX-License-Identifier: Apache-2.0
"""Signature Version 4 from the server's side: who signed this request, and is it what was signed?

Written from AWS's description of the algorithm, and independent of the client under test.
"""

import calendar
import collections
import hashlib
import hmac
import re
import threading
import time
import urllib.parse

from s3_http import Refused, unpack_aws_chunks

ALGORITHM = "AWS4-HMAC-SHA256"
EMPTY_SHA256 = hashlib.sha256(b"").hexdigest()
SKEW_S = 15 * 60
UNSIGNED = "UNSIGNED-PAYLOAD"
STREAMED = ("STREAMING-AWS4-HMAC-SHA256-PAYLOAD", "STREAMING-AWS4-HMAC-SHA256-PAYLOAD-TRAILER")
STREAMED_UNSIGNED = "STREAMING-UNSIGNED-PAYLOAD-TRAILER"

Claim = collections.namedtuple("Claim", "key_id day region service names signature date token")


class Key:
    """requests: after so many of them the token counts as expired; None: never."""

    def __init__(self, key_id, secret, token="", requests=None):
        self.key_id, self.secret, self.token = key_id, secret, token or ""
        self.requests = requests


class Keys:
    """The keys that are known; a key id may have several tokens."""

    def __init__(self):
        self.lock = threading.Lock()
        self.by_id = {}
        self.signing = {}

    def add(self, key):
        with self.lock:
            self.by_id.setdefault(key.key_id, {})[key.token] = key
            self.signing.clear()

    def remove(self, key_id):
        with self.lock:
            self.by_id.pop(key_id, None)
            self.signing.clear()

    def expire(self, key_id):
        with self.lock:
            for key in self.by_id.get(key_id, {}).values():
                key.requests = 0

    def find(self, key_id, token):
        with self.lock:
            tokens = self.by_id.get(key_id)
            if not tokens:
                raise Refused(
                    403, "InvalidAccessKeyId",
                    "The AWS Access Key Id you provided does not exist in our records.",
                    [("AWSAccessKeyId", key_id)],
                )
            if token not in tokens:
                raise Refused(400, "InvalidToken", "The provided token is malformed or invalid.")
            return tokens[token]

    def use(self, key):
        """Counts a request that was signed rightly."""
        with self.lock:
            if key.requests is None:
                return
            if key.requests <= 0:
                raise Refused(400, "ExpiredToken", "The provided token has expired.")
            key.requests -= 1

    def signing_key(self, key, claim):
        where = (key.secret, claim.day, claim.region, claim.service)
        found = self.signing.get(where)
        if found is None:
            found = b"AWS4" + key.secret.encode()
            for part in (claim.day, claim.region, claim.service, "aws4_request"):
                found = mac(found, part)
            self.signing[where] = found
        return found


def mac(key, text):
    return hmac.digest(key, text.encode(), "sha256")


def encode(text):
    return urllib.parse.quote(text, safe="-._~")


def read_time(text):
    if not re.fullmatch(r"\d{8}T\d{6}Z", text or ""):
        raise Refused(
            403, "AccessDenied", "AWS authentication requires a valid Date or x-amz-date header"
        )
    try:
        return calendar.timegm(time.strptime(text, "%Y%m%dT%H%M%SZ"))
    except ValueError:
        raise Refused(403, "AccessDenied", "x-amz-date is no date.") from None


def malformed(message, fields=()):
    return Refused(400, "AuthorizationHeaderMalformed", message, fields)


def read_scope(credential):
    """The key id may hold slashes; the rest does not."""
    parts = credential.rsplit("/", 4)
    if len(parts) != 5 or parts[4] != "aws4_request":
        raise malformed("The authorization header is malformed; the Credential is mal-formed.")
    return parts[:4]


def read_claim(request):
    """What a request says of its signature, in the header or in the query; None: unsigned."""
    text = request.header("authorization")
    if text is not None:
        kind, _, rest = text.partition(" ")
        if kind != ALGORITHM:
            raise Refused(
                400, "InvalidRequest",
                f"The authorization mechanism you have provided is not supported. Use {ALGORITHM}.",
            )
        parts = dict(part.strip().partition("=")[::2] for part in rest.split(","))
        try:
            scope = read_scope(parts["Credential"])
            names, signature = parts["SignedHeaders"].split(";"), parts["Signature"]
        except KeyError:
            raise malformed("The authorization header is malformed.") from None
        date, token = request.header("x-amz-date"), request.header("x-amz-security-token", "")
        return Claim(*scope, names, signature, date, token)
    given = request.arguments
    if "X-Amz-Signature" not in given:
        return None
    return Claim(
        *read_scope(given.get("X-Amz-Credential", "")),
        given.get("X-Amz-SignedHeaders", "").split(";"), given["X-Amz-Signature"],
        given.get("X-Amz-Date"), given.get("X-Amz-Security-Token", ""),
    )


def canonical_request(request, names, payload_hash):
    pairs = sorted(
        (encode(name), encode(value))
        for name, value in request.query
        if name != "X-Amz-Signature"
    )
    headers = [f"{n}:{' '.join(request.headers.get(n, '').split())}\n" for n in names]
    return "\n".join(
        (
            request.method,
            "/".join(encode(part) for part in request.path.split("/")),
            "&".join(f"{name}={value}" for name, value in pairs),
            "".join(headers),
            ";".join(names),
            payload_hash,
        )
    )


def check_time(claim, request, clock):
    when = read_time(claim.date)
    if "X-Amz-Signature" in request.arguments:
        expires = request.arguments.get("X-Amz-Expires", "")
        if not expires.isdigit() or clock > when + int(expires):
            raise Refused(403, "AccessDenied", "Request has expired")
    if abs(when - clock) > SKEW_S:
        utc = "%Y-%m-%dT%H:%M:%SZ"
        raise Refused(
            403, "RequestTimeTooSkewed",
            "The difference between the request time and the current time is too large.",
            [
                ("RequestTime", claim.date),
                ("ServerTime", time.strftime(utc, time.gmtime(clock))),
                ("MaxAllowedSkewMilliseconds", SKEW_S * 1000),
            ],
        )
    if claim.day != claim.date[:8]:
        raise malformed("The authorization header is malformed; invalid credential date.")


def check_headers(claim, request):
    """All that is S3's own has to be signed, or a proxy could add to it."""
    if "host" not in claim.names:
        raise Refused(403, "SignatureDoesNotMatch", "The Host header is not signed.")
    loose = [n for n in request.headers if n.startswith("x-amz-") and n not in claim.names]
    if loose:
        raise Refused(
            403, "AccessDenied", "There were headers present in the request which were not signed",
            [("HeadersNotSigned", ", ".join(loose))],
        )


def payload_of(request):
    """The payload's hash as the signature has it."""
    if "X-Amz-Signature" in request.arguments:
        return request.header("x-amz-content-sha256", UNSIGNED)
    given = request.header("x-amz-content-sha256")
    if given is None:
        raise Refused(
            400, "InvalidRequest",
            "Missing required header for this request: x-amz-content-sha256",
        )
    return given


def check_chunks(keys, key, claim, request, trailers):
    """Each chunk's signature covers the one before it."""
    chunks, found_trailers = unpack_aws_chunks(request.body)
    trailers.update(found_trailers)
    if payload_of(request) in STREAMED:
        before = claim.signature
        scope = "/".join((claim.day, claim.region, claim.service, "aws4_request"))
        for signature, data in chunks:
            text = "\n".join(
                (ALGORITHM + "-PAYLOAD", claim.date, scope, before, EMPTY_SHA256,
                 hashlib.sha256(data).hexdigest())
            )
            before = mac(keys.signing_key(key, claim), text).hex()
            if not hmac.compare_digest(before, signature):
                raise Refused(403, "SignatureDoesNotMatch", "A chunk's signature does not match.")
    request.body = b"".join(data for _, data in chunks)


def check(keys, request, clock, trailers):
    """Checks everything but region and rights. Returns the claim, or None for an unsigned request.

    A body in the aws-chunked encoding is unpacked, and what it has for trailers added to those.
    """
    claim = read_claim(request)
    if claim is None:
        if request.header("x-amz-content-sha256") == STREAMED_UNSIGNED:
            check_chunks(keys, None, None, request, trailers)
        return None
    key = keys.find(claim.key_id, claim.token)
    check_time(claim, request, clock)
    check_headers(claim, request)
    payload_hash = payload_of(request)
    canonical = canonical_request(request, claim.names, payload_hash)
    scope = "/".join((claim.day, claim.region, claim.service, "aws4_request"))
    digest = hashlib.sha256(canonical.encode("iso-8859-1")).hexdigest()
    text = "\n".join((ALGORITHM, claim.date, scope, digest))
    expected = mac(keys.signing_key(key, claim), text).hex()
    if not hmac.compare_digest(expected, claim.signature):
        raise Refused(
            403, "SignatureDoesNotMatch",
            "The request signature we calculated does not match the signature you provided.",
            [
                ("AWSAccessKeyId", claim.key_id),
                ("StringToSign", text),
                ("SignatureProvided", claim.signature),
                ("CanonicalRequest", canonical),
            ],
        )
    keys.use(key)
    if payload_hash in STREAMED or payload_hash == STREAMED_UNSIGNED:
        check_chunks(keys, key, claim, request, trailers)
    elif payload_hash != UNSIGNED and hashlib.sha256(request.body).hexdigest() != payload_hash:
        raise Refused(
            400, "XAmzContentSHA256Mismatch",
            "The provided 'x-amz-content-sha256' header does not match what was computed.",
        )
    return claim
