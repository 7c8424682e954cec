# SPDX-License-Identifier: Apache-2.0
"""All blocks of a pack from a store near by: penstock, curl and boto3, and what each costs."""

import json

from common import places

from remote import curl, stores


class Raw:
    def __init__(self, setting, stock, servers, options):
        self.setting, self.stock, self.servers, self.options = setting, stock, servers, options
        self.lines = []

    def start(self):
        self.stock.upload(self.servers, "pack", None)
        blocks = self.stock.blocks()
        self.curl = curl.Curl(self.servers.near, blocks, self.stock.folder,
                              self.setting["at_once"], passes=self.setting["passes"])
        self.task = {"address": f"s3://{stores.BUCKET}/pack", "build": str(places.BUILD),
                     "bucket": stores.BUCKET, "blocks": blocks,
                     "passes": self.setting["passes"], "at_once": self.setting["at_once"]}
        self.file = self.stock.folder / "raw.json"
        self.file.write_text(json.dumps(self.task), encoding="utf-8")

    def client(self, name):
        """Of a Python client the time before its first request is not counted: it is imports."""
        script = places.BENCH / "remote" / "raw_client.py"
        env = self.servers.near.environment(OPENBLAS_NUM_THREADS="1")
        answer = self.stock.folder / "raw-answer.json"
        curl.run([str(self.options.python), str(script), name, str(self.file), str(answer)], env, 0)
        found = json.loads(answer.read_text(encoding="utf-8"))
        return curl.Figure(found["seconds"], found["cpu"], self.curl.bytes)

    def turn(self, name):
        return self.curl.run() if name == "curl" else self.client(name)

    def all(self):
        self.start()
        names = self.setting["loaders"]
        for number in range(-1, self.options.rounds):
            rates = []
            for name in names if number % 2 else reversed(names):
                figure = self.turn(name)
                rates.append(f"{name} {figure.bytes / figure.seconds / 1e6:.0f} MB/s "
                             f"{figure.cpu / figure.bytes * 1e9:.2f} s/GB")
                if number >= 0:  # the first round warms up
                    self.lines.append({"kind": "turn", "loader": name, "round": number,
                                       "bytes": figure.bytes, "seconds": figure.seconds,
                                       "cpu": figure.cpu})
            print(f"  round {number + 1} of {self.options.rounds}: {', '.join(rates)}", flush=True)
        return self.lines
