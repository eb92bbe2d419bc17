"""A stand-in for Triton: a small HTTP server that answers ``generate_stream`` with prepared bytes."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


class StandIn:
    """Answers each request with ``pieces``, one write each, ``gap_s`` apart.

    ``hangs_up``: it closes the connection instead. ``bodies``: what has been asked, and ``headers`` with it;
    ``left``: set once a client has gone before its last piece. ``unloaded``: models that are not
    ready.
    """

    def __init__(self) -> None:
        self.status = 200
        self.pieces: list[bytes] = []
        self.gap_s = 0.0
        self.hangs_up = False
        self.bodies: list[dict[str, Any]] = []
        self.headers: list[dict[str, str]] = []
        self.left = threading.Event()
        self.unloaded: set[str] = set()
        self.url = ""

    def say(self, *texts: str, **counts: int) -> None:
        """Prepare an answer; ``counts`` (num_input_tokens, num_output_tokens) stand in each piece."""
        self.pieces = [event(text, **counts) for text in texts]


def event(text: str, **facts: Any) -> bytes:
    return f"data: {json.dumps({'text_output': text, **facts}, ensure_ascii=False)}\n\n".encode()


class _Server(ThreadingHTTPServer):
    daemon_threads = True


@contextmanager
def stand_in_triton(port: int = 0) -> Iterator[StandIn]:
    state = StandIn()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            ready = self.path.endswith("/ready") and self.path.split("/")[-2] not in state.unloaded
            self.send_response(200 if ready else 404)
            self.send_header("Content-Length", "0")
            self.end_headers()

        def do_POST(self) -> None:
            state.bodies.append(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
            state.headers.append(dict(self.headers))
            if state.hangs_up:
                self.close_connection = True
                return
            try:
                self.send_response(state.status)
                self.end_headers()
                for piece in state.pieces:
                    self.wfile.write(piece)
                    self.wfile.flush()
                    time.sleep(state.gap_s)
            except OSError:
                state.left.set()

        def log_message(self, *message: object) -> None: ...

    with _Server(("127.0.0.1", port), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.02,))
        thread.start()
        state.url = f"http://127.0.0.1:{server.server_port}"
        try:
            yield state
        finally:
            server.shutdown()
            thread.join()
