# SPDX-License-Identifier: Apache-2.0
"""Rounds in which the pack is on the node already: in a cache on its disk, or in its memory."""

import contextlib
import json
import shutil
import subprocess

from common import places
from penstock.lab.loaders import environments

from remote.latency import Latency, say
from remote.stock import bytes_below


class Holder:
    """remote/holder.py for one loader, from when it is ready until it is closed."""

    def __init__(self, python, module, task, variables, log):
        with open(log, "wb") as file:
            self.child = subprocess.Popen(
                [python, places.BENCH / "remote" / "holder.py", module], env=variables, text=True,
                stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=file)
        self.child.stdin.write(json.dumps(task) + "\n")
        self.child.stdin.flush()
        text = self.child.stdout.readline()
        if not text:
            self.close()
            raise environments.Absent(f"nothing was made ready for it (log: {log})")
        self.found = json.loads(text)

    def close(self):
        self.child.stdin.close()
        self.child.wait()
        self.child.stdout.close()


class Kept(Latency):
    """The caches are made anew in every run, by an epoch of a process of its own."""

    def __init__(self, *arguments):
        super().__init__(*arguments)
        self.holders = contextlib.ExitStack()

    def more(self, name):
        share = self.known[name].get("options", {}).get("cache")
        if share is None:
            return {}
        return {"cache": str(self.stock.folder / f"cache-{name}"),
                "cache_bytes": int(share * bytes_below(self.stock.pack))}

    def make_ready(self, name):
        spec, more = self.known[name], self.more(name)
        task = {**self.stock.task(self.setting, spec), **more}
        if "cache" in more:
            shutil.rmtree(more["cache"], ignore_errors=True)
            self.holders.callback(shutil.rmtree, more["cache"], ignore_errors=True)
        elif not spec.get("options", {}).get("preload"):
            return
        # Near by: how long filling takes is not what is measured here.
        variables = self.servers.near.environment(PYTHONUNBUFFERED="1")
        holder = Holder(self.pythons[name], spec["module"], task, variables,
                        self.logs / f"remote-{name}.log")
        if "cache" in more:
            holder.close()
        else:
            self.holders.callback(holder.close)
        self.note("ready", loader=name, **holder.found)
        say(f"  {name}: ready")

    def start(self):
        super().start()
        for name in list(self.pythons):
            try:
                self.make_ready(name)
            except environments.Absent as why:
                self.leave_out(name, why)

    def warm_up(self):
        """A round that does not count: of all, the pages of files are in memory."""
        lines, self.lines = self.lines, []
        self.round(-1)
        self.lines = lines + [line for line in self.lines if line["kind"] == "absent"]

    def round(self, number):
        if number == 0:
            self.warm_up()
        super().round(number)

    def all(self):
        with self.holders:
            return super().all()
