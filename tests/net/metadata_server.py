#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A scripted server of credentials on loopback: EC2's IMDSv2, the agents of ECS and EKS, and STS.

    metadata_server.py [--port N]        prints "port N" and serves until its input ends

Every set of credentials it gives has a number, in all three parts: ASIACANARY0001,
canarySecret0001, canaryToken0001, so that tests see which one they have, and find any of them in
places where they should not be. Signatures of AssumeRole are checked.

    POST /_script {"key": value, ...}    sets one or more of:
        lifetime    seconds until credentials end (3600)
        clock       how far this server's clock is ahead, in seconds (0)
        fail        {"path": [status, status, ...]}: the next answers there; 0 closes the connection
        body        {"path": text}: is answered instead, with status 200
        role        the instance's role; "" for none
        auth        what containers have to show in Authorization; "" for nothing
        keys        {"key id": "secret"}: who may call AssumeRole
        web_token   what AssumeRoleWithWebIdentity has to bring
    GET /_log                            the requests since the last time, one a line:
                                         METHOD HOST PATH [name=value ...]
"""

import argparse
import datetime
import email.utils
import hashlib
import hmac
import json
import sys
import threading
import time
import urllib.parse
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

TOKEN = "canaryImdsToken=="
ROLES = "/latest/meta-data/iam/security-credentials/"
STS_FIELDS = ("Action", "RoleArn", "RoleSessionName", "ExternalId", "DurationSeconds")


class State:
    def __init__(self):
        self.lock = threading.Lock()
        self.number = 0
        self.log = []
        self.script = {
            "lifetime": 3600,
            "clock": 0,
            "fail": {},
            "body": {},
            "role": "train-role",
            "auth": "",
            "keys": {},
            "web_token": "",
        }

    def now(self):
        return time.time() + self.script["clock"]

    def issue(self):
        """The next credentials: key id, secret, token, end."""
        self.number += 1
        n = f"{self.number:04d}"
        end = datetime.datetime.fromtimestamp(
            self.now() + self.script["lifetime"], datetime.timezone.utc
        )
        return (
            "ASIACANARY" + n,
            "canarySecret" + n,
            "canaryToken" + n,
            end.strftime("%Y-%m-%dT%H:%M:%SZ"),
        )


def hmac256(key, text):
    return hmac.new(key, text.encode(), hashlib.sha256).digest()


def signature_fault(state, method, path, headers, body):
    """None when the request is signed by one of the keys; else S3's word for what is wrong."""
    auth = headers.get("Authorization", "")
    if not auth.startswith("AWS4-HMAC-SHA256 "):
        return "MissingAuthenticationToken"
    parts = dict(p.strip().split("=", 1) for p in auth[17:].split(","))
    key_id, *scope = parts["Credential"].split("/")
    secret = state.script["keys"].get(key_id)
    if secret is None:
        return "InvalidClientTokenId"
    stamp = headers["X-Amz-Date"]
    sent = datetime.datetime.strptime(stamp, "%Y%m%dT%H%M%SZ")
    sent = sent.replace(tzinfo=datetime.timezone.utc).timestamp()
    if abs(sent - state.now()) > 300:
        return "RequestExpired"
    names = parts["SignedHeaders"].split(";")
    if "host" not in names or "x-amz-date" not in names:
        return "IncompleteSignature"
    canonical = "\n".join(
        [method, path, ""]
        + [f"{n}:{' '.join(headers[n].split())}" for n in names]
        + ["", ";".join(names), hashlib.sha256(body).hexdigest()]
    )
    text = "\n".join(
        [
            "AWS4-HMAC-SHA256",
            stamp,
            "/".join(scope),
            hashlib.sha256(canonical.encode()).hexdigest(),
        ]
    )
    key = ("AWS4" + secret).encode()
    for part in scope:
        key = hmac256(key, part)
    if hmac256(key, text).hex() != parts["Signature"]:
        return "SignatureDoesNotMatch"
    return None


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    state = None

    def log_message(self, *args):
        pass

    def date_time_string(self, timestamp=None):
        return email.utils.formatdate(self.state.now(), usegmt=True)

    def answer(self, status, text, content_type="text/plain"):
        data = text.encode() if isinstance(text, str) else text
        self.send_response(status)
        self.send_header("Content-Type", content_type)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def note(self, fields):
        notes = " ".join(f"{k}={v}" for k, v in fields.items())
        line = f"{self.command} {self.headers.get('Host', '')} {self.path} {notes}"
        self.state.log.append(line.strip())

    def handle_any(self):
        bytes_ = int(self.headers.get("Content-Length") or 0)
        body = self.rfile.read(bytes_)
        with self.state.lock:
            if self.path == "/_script":
                self.state.script.update(json.loads(body))
                return self.answer(200, "")
            if self.path == "/_log":
                text = "\n".join(self.state.log)
                self.state.log.clear()
                return self.answer(200, text)
            return self.serve(body)

    do_GET = do_PUT = do_POST = handle_any

    def serve(self, body):
        form = {}
        if self.command == "POST":
            form = {k: v[0] for k, v in urllib.parse.parse_qs(body.decode()).items()}
        self.note({k: form[k] for k in STS_FIELDS if k in form})
        planned = self.state.script["fail"].get(self.path)
        if planned:
            status = planned.pop(0)
            if status == 0:
                self.close_connection = True
                return None
            return self.answer(status, "canary: refused as planned")
        if self.path in self.state.script["body"]:
            return self.answer(200, self.state.script["body"][self.path])
        if self.command == "POST":
            return self.sts(form, body)
        if self.path.startswith("/latest/"):
            return self.instance()
        return self.container()

    def give_json(self, key_id, secret, token, end):
        text = json.dumps(
            {
                "Code": "Success",
                "Type": "AWS-HMAC",
                "AccessKeyId": key_id,
                "SecretAccessKey": secret,
                "Token": token,
                "Expiration": end,
            }
        )
        self.answer(200, text, "application/json")

    def instance(self):
        role = self.state.script["role"]
        if self.path == "/latest/api/token":
            ttl = self.headers.get("X-aws-ec2-metadata-token-ttl-seconds", "")
            good = self.command == "PUT" and ttl.isdigit()
            return self.answer(200 if good else 400, TOKEN if good else "")
        if self.headers.get("X-aws-ec2-metadata-token") != TOKEN:
            return self.answer(401, "")
        if self.path == ROLES and role:
            return self.answer(200, role + "\n")
        if role and self.path == ROLES + role:
            return self.give_json(*self.state.issue())
        return self.answer(404, "")

    def container(self):
        wanted = self.state.script["auth"]
        if wanted and self.headers.get("Authorization") != wanted:
            return self.answer(403, json.dumps({"code": "AccessDenied", "message": wanted}))
        return self.give_json(*self.state.issue())

    def sts_error(self, status, code):
        # A careless server repeats in its message what it was sent.
        text = (
            '<ErrorResponse xmlns="https://sts.amazonaws.com/doc/2011-06-15/"><Error>'
            f"<Type>Sender</Type><Code>{code}</Code><Message>canary</Message></Error>"
            "<RequestId>r</RequestId></ErrorResponse>"
        )
        self.answer(status, text, "text/xml")

    def sts(self, form, body):
        action = form.get("Action")
        if action == "AssumeRoleWithWebIdentity":
            if form.get("WebIdentityToken") != self.state.script["web_token"]:
                return self.sts_error(400, "InvalidIdentityToken")
        elif action == "AssumeRole":
            fault = signature_fault(self.state, "POST", self.path, self.headers, body)
            if fault:
                return self.sts_error(403, fault)
        else:
            return self.sts_error(400, "InvalidAction")
        key_id, secret, token, end = self.state.issue()
        self.state.script["keys"][key_id] = secret
        self.answer(
            200,
            f'<{action}Response xmlns="https://sts.amazonaws.com/doc/2011-06-15/"><{action}Result>'
            f"<AssumedRoleUser><Arn>{form.get('RoleArn')}</Arn></AssumedRoleUser><Credentials>"
            f"<AccessKeyId>{key_id}</AccessKeyId><SecretAccessKey>{secret}</SecretAccessKey>"
            f"<SessionToken>{token}</SessionToken><Expiration>{end}</Expiration></Credentials>"
            f"</{action}Result><ResponseMetadata><RequestId>r</RequestId></ResponseMetadata>"
            f"</{action}Response>",
            "text/xml",
        )


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--port", type=int, default=0)
    args = parser.parse_args()
    Handler.state = State()
    server = ThreadingHTTPServer(("127.0.0.1", args.port), Handler)
    server.daemon_threads = True
    threading.Thread(target=server.serve_forever, daemon=True).start()
    print("port", server.server_address[1], flush=True)
    sys.stdin.read()


if __name__ == "__main__":
    main()
