"""A small API server: keeps objects, checks them against the schemas, and fails on request."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlsplit

import kubernetes_validate
import yaml

CLOSE, SILENCE = -1, -2  # faults that are no answer


@dataclass
class State:
    """Objects by path, the requests seen, and the statuses to inject in turn."""

    objects: dict[str, Any] = field(default_factory=dict)
    requests: list[tuple[str, str]] = field(default_factory=list)
    faults: dict[tuple[str, str], list[int]] = field(default_factory=dict)
    logs: dict[str, str] = field(default_factory=dict)
    version: int = 0

    def fault(self, method: str, path: str) -> int:
        """The next status to answer with, or 0."""
        for (wanted, part), statuses in self.faults.items():
            if wanted == method and part in path and statuses:
                return statuses.pop(0)
        return 0


class Handler(BaseHTTPRequestHandler):
    state: State

    def log_message(self, format: str, *arguments: object) -> None:
        pass

    def _answer(self, status: int, value: Any) -> None:
        data = value.encode() if isinstance(value, str) else json.dumps(value).encode()
        self.send_response(status)
        self.send_header("Content-Type", "text/plain" if isinstance(value, str) else "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def _handle(self) -> None:
        url, state = urlsplit(self.path), self.state
        query = {key: values[0] for key, values in parse_qs(url.query).items()}
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        state.requests.append((self.command, url.path))
        status = state.fault(self.command, url.path)
        if status == CLOSE:
            self.connection.close()
        elif status == SILENCE:
            time.sleep(0.5)
            self.connection.close()
        elif status:
            self._answer(status, {"kind": "Status", "message": f"injected {status}", "code": status})
        else:
            self._answer(*getattr(self, f"_{self.command.lower()}")(url.path, query, body))

    do_GET = do_PATCH = do_DELETE = _handle

    def _get(self, path: str, query: dict[str, str], body: bytes) -> tuple[int, Any]:
        if path in self.state.logs:
            return 200, self.state.logs[path]
        if path in self.state.objects:
            return 200, self.state.objects[path]
        wanted = dict(pair.split("=") for pair in query.get("labelSelector", "").split(",") if pair)
        if not wanted:
            return 404, {"message": "not found"}
        inside = [each for key, each in self.state.objects.items() if key.rpartition("/")[0] == path]
        return 200, {
            "items": [each for each in inside if wanted.items() <= each["metadata"]["labels"].items()]
        }

    def _patch(self, path: str, query: dict[str, str], body: bytes) -> tuple[int, Any]:
        assert self.headers["Content-Type"] == "application/apply-patch+yaml"
        assert query["fieldManager"] == "qflock"
        given = yaml.safe_load(body)
        try:
            if given["kind"] not in ("JobSet", "TFJob"):
                kubernetes_validate.validate(given, "1.37", strict=True)
        except kubernetes_validate.ValidationError as error:
            return 422, {"message": str(error)}
        before = self.state.objects.get(path)
        if before is None or {
            k: v for k, v in before["metadata"].items() if k != "resourceVersion"
        } | before.get("spec", {}) != given["metadata"] | given.get("spec", {}):
            self.state.version += 1
            version = str(self.state.version)
        else:
            version = before["metadata"]["resourceVersion"]
        given["metadata"] = given["metadata"] | {"resourceVersion": version}
        if "dryRun" not in query:
            self.state.objects[path] = given
        return 200 if before else 201, given

    def _delete(self, path: str, query: dict[str, str], body: bytes) -> tuple[int, Any]:
        assert json.loads(body)["propagationPolicy"] == "Background"
        if self.state.objects.pop(path, None) is None:
            return 404, {"message": "not found"}
        return 200, {"kind": "Status", "status": "Success"}


@contextmanager
def api_server() -> Iterator[tuple[str, State]]:
    """Address and state of a running server."""
    state = State()
    handler = type("BoundHandler", (Handler,), {"state": state})
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}", state
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
