# SPDX-License-Identifier: Apache-2.0
"""A port of the server that misbehaves which is right at first and then cannot be reached.

Every connection carries one request, so that the n-th request is the n-th connection.
"""

import socket
import threading
import time

from bad_behaviours import give
from bad_wire import Gone, TlsWire, Wire

PAUSE = 0.7  # seconds that a port which is away for a while is away


def fill(at):
    """So that the queue of those who wait to be accepted is full."""
    held = []
    for _ in range(4):
        c = socket.socket()
        c.setblocking(False)
        c.connect_ex(at)
        held.append(c)
    return held


def make_dead(at):
    """An address and port where nobody answers, for as long as what is returned is kept."""
    dead = socket.socket()
    dead.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    dead.bind(at)
    dead.listen(0)
    return [dead, *fill(at)]


class Gate:
    """From connection `first` on, for ever or (`once`) for one of them or some tenths of a second:

    refused     nobody listens
    black_hole  nobody answers a packet that asks for a connection
    tls_stall, tls_wrong_host, tls_expired, tls_untrusted
    """

    def __init__(self, server, kind, first, once=False):
        self.server, self.kind, self.first, self.once = server, kind, first, once
        self.held = []
        self.n = 0
        self.listener = server.listen(f"gate-{id(self)}")
        self.port = self.listener.getsockname()[1]
        if first == 1 and kind in ("refused", "black_hole"):
            self.away()
        else:
            threading.Thread(target=self.accept, daemon=True).start()


    def away(self):
        at = self.listener.getsockname()
        if self.kind == "refused":
            self.listener.shutdown(socket.SHUT_RDWR)
            self.listener.close()
        else:
            self.listener.listen(0)
            self.held += fill(at)
        if self.once:
            threading.Timer(PAUSE, self.back).start()

    def back(self):
        if self.kind == "refused":
            self.listener = socket.create_server(("127.0.0.1", self.port))
            self.server.sockets.append(self.listener)
        else:
            for c in self.held:
                c.close()
            self.listener.listen(64)
        threading.Thread(target=self.accept, daemon=True).start()

    def context_of(self, wrong):
        contexts = self.server.contexts
        if not self.kind.startswith("tls"):
            return None
        return contexts.get(self.kind) if wrong else contexts["https"]

    def accept(self):
        """Ends where the port goes away; `back` begins another."""
        while not self.server.stopping.is_set():
            try:
                sock, _ = self.listener.accept()
            except OSError:
                return
            self.n += 1
            wrong = self.n == self.first if self.once else self.n >= self.first
            is_last = self.n == self.first - 1 and self.kind in ("refused", "black_hole")
            if is_last:
                self.away()  # before the answer, after which the next request may come at once
            threading.Thread(target=self.serve, args=(sock, wrong), daemon=True).start()
            if is_last:
                return

    def serve(self, sock, wrong):
        try:
            if wrong and self.kind == "tls_stall":
                self.held.append(sock)
                return
            context = self.context_of(wrong)
            w = TlsWire(sock, context) if context else Wire(sock)
            w.server = self.server
            q = self.server.read_head(w)
            a = self.server.right(q)
            a.put("Connection", "close")
            give(w, q, a)
            w.close()
            time.sleep(0.01)
        except (Gone, OSError, ValueError):
            sock.close()
