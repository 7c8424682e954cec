# SPDX-License-Identifier: Apache-2.0
"""Export the counters of a loader to Prometheus while it runs.

    python3 examples/python/export_metrics.py photos.pen --port 9400
    curl http://127.0.0.1:9400/metrics

docs/reference/counters.md says what each name means.
"""

from __future__ import annotations

import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import penstock
from common import parser


def serve(loader: penstock.Loader, port: int) -> ThreadingHTTPServer:
    """Answer every request with the metrics of the loader, from a thread."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            body = loader.metrics().encode()
            self.send_response(200)
            self.send_header("Content-Type", "application/openmetrics-text; version=1.0.0")
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *args: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", port), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return server


def main() -> None:
    arguments = parser(__doc__)
    arguments.add_argument("--port", type=int, default=9400)
    options = arguments.parse_args()
    with penstock.Loader(options.path, options.batch_size, shuffle=True, output="numpy",
                         pipeline="decode | random_resized_crop 64") as loader:
        server = serve(loader, options.port)
        for _ in range(options.epochs):
            for _ in loader:
                pass
        print(f"{loader.stats()['samples']} samples; metrics were on port {server.server_port}")
        server.shutdown()


if __name__ == "__main__":
    main()
