"""An HTTP proxy in front of one server that fails on request: refusals, cut connections and slow replies."""

from __future__ import annotations

import http.client
import json
import socket
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import urlsplit

HOP_BY_HOP = {"connection", "transfer-encoding", "keep-alive", "content-length", "host"}


@dataclass(frozen=True)
class Fail:
    """What happens to one request.

    Args:
        status: Answered in place of the server; 0 lets the server answer.
        seconds: Waited before anything else happens.
        cut: "before" the server has seen the request, or "after" it has: in the middle of its reply, or without any
            reply where that has no content.
    """

    status: int = 0
    seconds: float = 0.0
    cut: str = ""


def always(fail: Fail) -> Callable[[int, str, str], Fail | None]:
    """The plan under which every request fails."""
    return lambda number, method, path: fail


def first(fail: Fail, count: int = 1) -> Callable[[int, str, str], Fail | None]:
    """The plan under which the first requests fail."""
    return lambda number, method, path: fail if number <= count else None


class FaultyProxy:
    """Listens on a free port; `plan` is asked with the request's number (from 1), method and path."""

    def __init__(self, target: str) -> None:
        self._plan: Callable[[int, str, str], Fail | None] = lambda number, method, path: None
        self.requests: list[str] = []
        self._lock = threading.Lock()
        handler = type("Handler", (_Handler,), {"proxy": self, "target": urlsplit(target).netloc})
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
        self._server.daemon_threads = True
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.05,), daemon=True)
        self._thread.start()
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}"

    def use(self, plan: Callable[[int, str, str], Fail | None]) -> None:
        """Starts counting anew under another plan."""
        with self._lock:
            self.requests, self._plan = [], plan

    def next(self, method: str, path: str) -> Fail:
        """What shall happen to the request that has just arrived."""
        with self._lock:
            self.requests.append(f"{method} {path}")
            return self._plan(len(self.requests), method, path) or Fail()

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    proxy: FaultyProxy
    target: str

    def handle_one_request(self) -> None:
        try:
            super().handle_one_request()
        except ConnectionError:  # the client has given up, or is dead
            self.close_connection = True

    def _serve(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        fail = self.proxy.next(self.command, self.path)
        time.sleep(fail.seconds)
        if fail.cut == "before":
            return self._cut()
        status, headers, content = self._refusal(fail.status) if fail.status else self._forward(body)
        if fail.cut == "after" and not content:
            return self._cut()
        self.send_response_only(status)
        for name, value in headers:
            self.send_header(name, value)
        if "content-length" not in {name.lower() for name, _ in headers}:
            self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        if fail.cut == "after":
            self.wfile.write(content[: len(content) // 2])
            return self._cut()
        self.wfile.write(content)

    do_GET = do_HEAD = do_POST = do_PUT = do_DELETE = _serve

    def _forward(self, body: bytes) -> tuple[int, list[tuple[str, str]], bytes]:
        connection = http.client.HTTPConnection(self.target)
        headers = {k: v for k, v in self.headers.items() if k.lower() not in HOP_BY_HOP | {"expect"}}
        connection.request(self.command, self.path, body, headers)
        reply = connection.getresponse()
        content = reply.read()
        length = [("Content-Length", reply.headers["Content-Length"])] if self.command == "HEAD" else []
        kept = [(k, v) for k, v in reply.getheaders() if k.lower() not in HOP_BY_HOP]
        connection.close()
        return reply.status, kept + [item for item in length if item[1]], content

    def _refusal(self, status: int) -> tuple[int, list[tuple[str, str]], bytes]:
        text = {401: "InvalidToken", 403: "AccessDenied", 500: "InternalError", 503: "ServiceUnavailable"}[
            status
        ]
        if "/storage/v1/" in self.path:
            content = json.dumps({"error": {"code": status, "message": f"{text} by the proxy"}})
        else:
            content = f"<Error><Code>{text}</Code><Message>{text} by the proxy</Message></Error>"
        return status, [], b"" if self.command == "HEAD" else content.encode()

    def _cut(self) -> None:
        self.close_connection = True
        self.wfile.flush()
        self.connection.shutdown(socket.SHUT_RDWR)

    def log_message(self, format: str, *args: object) -> None:
        """Says nothing."""
