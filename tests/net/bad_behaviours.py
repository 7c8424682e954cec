# SPDX-License-Identifier: Apache-2.0
"""What a server can do wrong once a request has come: one function for each.

A behaviour is called with the connection, the request and the right answer, and sends what it
likes.
"""

import email.utils
import gzip
import socket
import time

from bad_wire import HOLD, Answer, Request, TlsWire, Wire, base_headers

BEHAVIOURS = {}


def behaviour(call):
    """Registers what is done instead of sending the answer. Returns true when the connection may be
    used again; else it is closed."""
    BEHAVIOURS[call.__name__] = call
    return call


def give(wire, request, answer):
    """The answer as it should be."""
    wire.send(answer.head())
    if request.method != "HEAD" and answer.size():
        if isinstance(answer.body, tuple):
            wire.send_file(*answer.body)
        else:
            wire.send(answer.body)
    return True


def half(answer):
    body = answer.bytes()
    return body[: len(body) // 2]


# --- headers


@behaviour
def headers_none_close(w, q, a):
    return False


@behaviour
def headers_none_stall(w, q, a):
    w.hold()


@behaviour
def headers_drip(w, q, a):
    for c in a.head():
        w.send(bytes([c]))
        time.sleep(0.1)


@behaviour
def headers_huge(w, q, a):
    a.put("X-Filler", "x" * 70000)
    return give(w, q, a)


@behaviour
def headers_line_endless(w, q, a):
    w.send(a.head()[:-2] + b"X-Filler: ")
    while True:
        w.send(b"x" * 4096)


@behaviour
def headers_many(w, q, a):
    for i in range(150):
        a.headers.append((f"X-Filler-{i}", "x"))
    return give(w, q, a)


@behaviour
def headers_endless(w, q, a):
    w.send(a.head()[:-2])
    for i in range(1 << 30):
        w.send(f"X-Filler-{i}: x\r\n".encode() * 10)


@behaviour
def headers_folded(w, q, a):
    w.send(a.head()[:-2] + b"X-Long: a\r\n  b\r\n\r\n" + a.bytes())


@behaviour
def status_line_bad(w, q, a):
    w.send(b"FTP/9 hello\r\n\r\n" + a.bytes())


@behaviour
def status_line_number(w, q, a):
    w.send(b"HTTP/1.1 2x0 OK\r\nContent-Length: 0\r\n\r\n")


@behaviour
def headers_absent(w, q, a):
    """HTTP/0.9: the body and nothing else."""
    w.send(a.bytes())


@behaviour
def stray_100(w, q, a):
    w.send(b"HTTP/1.1 100 Continue\r\n\r\n")
    return give(w, q, a)


@behaviour
def endless_100(w, q, a):
    while True:
        w.send(b"HTTP/1.1 100 Continue\r\n\r\n" * 10)


@behaviour
def status_101(w, q, a):
    w.send(b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: h2c\r\nConnection: Upgrade\r\n\r\n")
    w.hold()


def chunked(a, body):
    a.put("Content-Length", None)
    a.put("Transfer-Encoding", "chunked")
    return a.head(length=False) + body


def chunks(body, size=5000):
    for i in range(0, len(body), size):
        part = body[i : i + size]
        yield f"{len(part):x}\r\n".encode() + part + b"\r\n"


@behaviour
def chunked_right(w, q, a):
    """Nothing is wrong with this one: chunks, and a trailer."""
    w.send(chunked(a, b"".join(chunks(a.bytes())) + b"0\r\nX-Trailer: 1\r\n\r\n"))
    return True


@behaviour
def chunk_bad(w, q, a):
    w.send(chunked(a, b"zz\r\n" + a.bytes()))


@behaviour
def chunk_huge(w, q, a):
    w.send(chunked(a, b"fffffffffffffffff\r\n" + a.bytes()))


@behaviour
def chunk_truncated(w, q, a):
    w.send(chunked(a, b"".join(chunks(half(a)))))


@behaviour
def chunk_trailers_endless(w, q, a):
    w.send(chunked(a, b"".join(chunks(a.bytes())) + b"0\r\n"))
    while True:
        w.send(b"X-Trailer: 1\r\n" * 10)


@behaviour
def length_and_chunked(w, q, a):
    a.put("Content-Length", str(a.size()))
    a.put("Transfer-Encoding", "chunked")
    w.send(a.head() + b"".join(chunks(a.bytes())) + b"0\r\n\r\n")


@behaviour
def length_2_63(w, q, a):
    a.put("Content-Length", str(2**63))
    w.send(a.head() + a.bytes())


@behaviour
def length_negative(w, q, a):
    a.put("Content-Length", "-1")
    w.send(a.head() + a.bytes())


@behaviour
def length_twice(w, q, a):
    a.headers += [("Content-Length", str(a.size())), ("Content-Length", str(a.size() // 2))]
    w.send(a.head() + a.bytes())


@behaviour
def length_absent(w, q, a):
    """The end of the connection is the end of the body: allowed, and all that can be known."""
    w.send(a.head(length=False) + a.bytes())


# --- status


def error(status, code="", headers=(), message="no"):
    def call(w, q, a):
        body = b""
        if code:
            body = (
                '<?xml version="1.0" encoding="UTF-8"?>\n'
                f"<Error><Code>{code}</Code><Message>{message}</Message>"
                "<RequestId>BAD0123456789</RequestId></Error>"
            ).encode()
        extra = [("Content-Type", "application/xml"), ("x-amz-request-id", "BAD0123456789")]
        return give(w, q, Answer(status, base_headers() + extra + list(headers), body))

    return call


BEHAVIOURS.update(
    {
        "status_500": error(500, "InternalError"),
        "status_502": error(502),
        "status_503": error(503, "SlowDown"),
        "status_503_hour": error(503, "SlowDown", [("Retry-After", "3600")]),
        "status_504": error(504),
        "status_408": error(408),
        "status_429": error(429, "TooManyRequests", [("Retry-After", "1")]),
        "status_400_timeout": error(400, "RequestTimeout"),
        "status_400_expired": error(400, "ExpiredToken"),
        "status_401": error(401, "Unauthorized"),
        "status_403": error(403, "AccessDenied"),
        "status_404": error(404, "NoSuchKey"),
        "status_412": error(412, "PreconditionFailed"),
        "status_416": error(416, "InvalidRange", [("Content-Range", "bytes */1000")]),
        "status_301_region": error(
            301, "PermanentRedirect", [("x-amz-bucket-region", "eu-north-1")]
        ),
    }
)


def sent(q):
    """What a client has to keep to itself."""
    authorization = q.headers.get("authorization", "none")
    words = {
        "token": q.headers.get("x-amz-security-token", "none"),
        "key": authorization.partition("Credential=")[2].partition("/")[0] or "none",
        "signature": authorization.rpartition("=")[2],
    }
    return authorization, words


def echo(status, word):
    """Sends back what it was sent, wherever something can be sent back."""

    def call(w, q, a):
        authorization, words = sent(q)
        what = words[word]
        body = (
            f"<Error><Code>{what}</Code><Message>{authorization} {what}</Message><Region>{what}"
            f"</Region><AWSAccessKeyId>{what}</AWSAccessKeyId><StringToSign>{authorization}"
            f"</StringToSign><RequestId>{what}</RequestId><Endpoint>{what}</Endpoint></Error>"
        )
        headers = [
            ("x-amz-request-id", what), ("x-amz-id-2", authorization), ("Content-Type", what),
            ("x-amz-bucket-region", what), ("Location", f"http://{what}.test/{authorization}"),
            ("ETag", f'"{what}"'), ("Retry-After", what), ("Server", authorization),
        ]
        return give(w, q, Answer(status, base_headers() + headers, body.encode()))

    return call


for _status in (200, 301, 400, 403, 404, 412, 500, 503):
    for _word in ("token", "key", "signature"):
        BEHAVIOURS[f"echo_{_status}_{_word}"] = echo(_status, _word)


@behaviour
def echo_etag(w, q, a):
    """The right answer, with what was sent as its ETag; another one each time."""
    a.put("ETag", f'"{sent(q)[1]["token"][:100]}-{w.server.n_requests}"')
    return give(w, q, a)


@behaviour
def echo_status_line(w, q, a):
    authorization, words = sent(q)
    w.send(f"HTTP/9.{words['token']} {words['token']} {authorization}\r\n\r\n".encode())


@behaviour
def echo_header(w, q, a):
    authorization, words = sent(q)
    w.send(f"HTTP/1.1 200 OK\r\nContent-Length: {words['token']}\r\n{authorization}\r\n"
           f"Transfer-Encoding: {words['token']}\r\n\r\n".encode())


@behaviour
def echo_encoding(w, q, a):
    a.put("Content-Encoding", sent(q)[1]["token"])
    return give(w, q, a)


@behaviour
def status_503_date(w, q, a):
    """Retry-After as a date, an hour from now by the server's own clock."""
    at = email.utils.formatdate(time.time() + 3600, usegmt=True)
    return error(503, "SlowDown", [("Retry-After", at)])(w, q, a)


@behaviour
def status_403_skewed(w, q, a):
    """This server's clock is a day ahead."""
    date = email.utils.formatdate(time.time() + 86400, usegmt=True)
    answer = Answer(403, [("Date", date)], b"<Error><Code>RequestTimeTooSkewed</Code></Error>")
    return give(w, q, answer)


@behaviour
def status_307_host(w, q, a):
    """To /_trap of this server under another name; the trap counts who comes."""
    to = f"http://localhost:{w.sock.getsockname()[1]}/_trap"
    return error(307, "TemporaryRedirect", [("Location", to)])(w, q, a)


@behaviour
def status_200_error(w, q, a):
    return error(200, "InternalError")(w, q, a)


@behaviour
def status_500_endless(w, q, a):
    w.send(Answer(500, base_headers()).head(length=False))
    while True:
        w.send(b"<Error>no</Error>" * 100)


# --- body


@behaviour
def body_rst(w, q, a):
    w.send(a.head() + half(a))
    time.sleep(0.1)
    w.reset()


@behaviour
def body_fin(w, q, a):
    w.send(a.head() + half(a))


@behaviour
def body_stall(w, q, a):
    w.send(a.head() + half(a))
    w.hold()


@behaviour
def body_drip(w, q, a):
    w.send(a.head())
    for c in a.bytes():
        w.send(bytes([c]))
        time.sleep(0.05)


@behaviour
def body_flip(w, q, a):
    body = bytearray(a.bytes())
    if body:
        body[len(body) // 3] ^= 4
    w.send(a.head() + body)
    return True


@behaviour
def body_long(w, q, a):
    """More bytes than declared, at once."""
    a.put("Content-Length", str(a.size()))
    w.send(a.head() + a.bytes() + b"and more")
    return True


@behaviour
def body_longer_than_asked(w, q, a):
    body = a.bytes() + b"and more"
    a.put("Content-Range", None)
    a.status = 200
    a.body = body
    return give(w, q, a)


@behaviour
def body_endless(w, q, a):
    """Without a length, and without an end."""
    w.send(a.head(length=False))
    while True:
        w.send(bytes(65536))


@behaviour
def gzip_encoded(w, q, a):
    a.body = gzip.compress(a.bytes())
    a.put("Content-Encoding", "gzip")
    a.put("Content-Range", None)
    a.status = 200
    return give(w, q, a)


@behaviour
def encoding_aws_chunked(w, q, a):
    """A header left from the upload; the body is plain."""
    a.put("Content-Encoding", "aws-chunked")
    return give(w, q, a)


@behaviour
def range_ignored(w, q, a):
    """The whole object with 200, whatever range was asked for."""
    whole = w.server.right(without(q, "range"))
    return give(w, q, whole)


@behaviour
def range_other(w, q, a):
    """As many bytes as asked for, but others, and says so."""
    return give(w, q, shifted(w, q, a, 16))


def asked_range(q, a):
    """(first, last) of what was asked for, the last bytes of an object included."""
    first, _, last = q.headers.get("range", "bytes=0-99").partition("=")[2].partition("-")
    if first:
        return int(first), int(last)
    total = int(a.get("Content-Range").rpartition("/")[2])
    return max(0, total - int(last)), total - 1


def shifted(w, q, a, by):
    first, last = asked_range(q, a)
    if "bytes=-" in q.headers.get("range", ""):
        by = -min(by, first)  # there is nothing behind it
    moved = without(q, "range")
    moved.headers["range"] = f"bytes={first + by}-{last + by}"
    return w.server.right(moved)


def without(q, name):
    copy = Request(q.head, q.wire)
    copy.path = q.path
    copy.headers.pop(name, None)
    return copy


@behaviour
def range_lies(w, q, a):
    """Other bytes under the right Content-Range: only a checksum tells."""
    a.body = shifted(w, q, a, 16).bytes()
    return give(w, q, a)


@behaviour
def range_short(w, q, a):
    """Fewer bytes than asked for, and says so."""
    first, last = asked_range(q, a)
    short = without(q, "range")
    short.headers["range"] = f"bytes={first}-{last - 10}"
    return give(w, q, w.server.right(short))


@behaviour
def range_contradicts(w, q, a):
    """Content-Range as asked for, Content-Length of less."""
    a.body = a.bytes()[:-10]
    return give(w, q, a)


@behaviour
def range_garbled(w, q, a):
    a.put("Content-Range", "bytes -5-99/x")
    return give(w, q, a)


@behaviour
def etag_changed(w, q, a):
    a.put("ETag", '"changed"')
    return give(w, q, a)


@behaviour
def left_over(w, q, a):
    """A little later, another answer nobody asked for: as if it belonged to the next request."""
    give(w, q, a)
    time.sleep(0.05)
    false = Answer(a.status, a.headers, bytes(a.size()))
    w.send(false.head() + false.body)
    w.server.left_over += 1
    return True


@behaviour
def reset_after(w, q, a):
    """The right answer; a little later the idle connection is reset."""
    give(w, q, a)
    time.sleep(0.05)
    w.reset()


@behaviour
def close_on_reuse(w, q, a):
    if w.requests > 1:
        return False
    return give(w, q, a)


@behaviour
def reset_on_reuse(w, q, a):
    if w.requests > 1:
        w.reset()
        return False
    return give(w, q, a)


@behaviour
def tls_alert(w, q, a):
    w.send(a.head() + half(a))
    if isinstance(w, TlsWire):
        w.alert()


@behaviour
def tls_garbage(w, q, a):
    w.send(a.head() + half(a))
    Wire.send(w, b"this is no record of TLS")


@behaviour
def slow_start(w, q, a):
    time.sleep(0.5)
    return give(w, q, a)


@behaviour
def slow_right(w, q, a):
    """In 50 pieces, 20 ms apart: slow, but never still."""
    body = a.bytes()
    w.send(a.head())
    step = max(1, len(body) // 50)
    for i in range(0, len(body), step):
        w.send(body[i : i + step])
        time.sleep(0.02)
    return True


# --- uploads: these do not read the body first


@behaviour
def upload_stall(w, q, a):
    """Reads nothing of the body: the client's buffers fill up and stay full."""
    w.sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    end = time.monotonic() + HOLD
    while time.monotonic() < end and not w.server.stopping.wait(0.25):
        if w.is_closed():
            return


@behaviour
def upload_refused(w, q, a):
    """An error before the body was read, and the end."""
    give(w, q, Answer(403, base_headers(), b"<Error><Code>AccessDenied</Code></Error>"))
    w.hold(1.0)


BEFORE_BODY = {"upload_stall", "upload_refused"}
