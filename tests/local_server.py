"""A web server on 127.0.0.1 for tests: answers as it is told, well or badly."""

from __future__ import annotations

import contextlib
import http.server
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field


@dataclass
class Script:
    """What a path answers. `stall` keeps silent after the body until the server is stopped."""

    body: bytes = b""
    status: int = 200
    headers: dict[str, str] = field(default_factory=dict)
    length: int | None = None  # the Content-Length to claim; None: the true one; -1: none
    stall: bool = False


class LocalServer:
    """Where the server is, what it was asked, and how it answers: a function from path and query to a script."""

    def __init__(self, answer: Callable[[str], Script]) -> None:
        self.answer = answer
        self.asked: list[str] = []
        self.agents: list[str] = []
        self.stopped = threading.Event()
        self.url = ""


@contextlib.contextmanager
def serve(answer: Callable[[str], Script]) -> Iterator[LocalServer]:
    """Run a server until the block ends."""
    server = LocalServer(answer)

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            server.asked.append(self.path)
            server.agents.append(self.headers.get("User-Agent", ""))
            script = server.answer(self.path)
            self.send_response(script.status)
            for name, value in script.headers.items():
                self.send_header(name, value)
            length = len(script.body) if script.length is None else script.length
            if length >= 0:
                self.send_header("Content-Length", str(length))
            self.end_headers()
            with contextlib.suppress(ConnectionError):
                self.wfile.write(script.body)
                self.wfile.flush()
            if script.stall:
                server.stopped.wait(30)
            self.close_connection = True

        def log_message(self, *_: object) -> None:
            pass

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as httpd:
        httpd.daemon_threads = True
        server.url = f"http://127.0.0.1:{httpd.server_port}"
        thread = threading.Thread(target=httpd.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
        thread.start()
        try:
            yield server
        finally:
            server.stopped.set()
            httpd.shutdown()
            thread.join()
