"""The HTTP server of ``hbrt web``: the page's files, and the board as JSON. Loopback only, read-only.

Any user of the machine can reach a port on loopback, but a board belongs to its owner alone: so the address to open
carries a token, which becomes a cookie.
"""

from __future__ import annotations

import json
import secrets
import threading
from collections.abc import Callable, Mapping
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, Final
from urllib.parse import parse_qs, urlsplit

from dsp_server.commands.web.metrics import metrics_of
from dsp_server.commands.web.view import View
from hbrt.errors import BoardError

HOST: Final = "127.0.0.1"
_PAGE = Path(__file__).parent / "page"
FILES: Final = {
    "/": ("index.html", "text/html; charset=utf-8"),
    "/page.js": ("page.js", "text/javascript; charset=utf-8"),
    "/page.css": ("page.css", "text/css; charset=utf-8"),
    "/viewer.html": ("viewer.html", "text/html; charset=utf-8"),
    "/viewer.js": ("viewer.js", "text/javascript; charset=utf-8"),
}
_HEADERS = {
    "Cache-Control": "no-store",
    "Content-Security-Policy": "default-src 'self'; img-src 'self' data:; frame-ancestors 'none'",
    "X-Content-Type-Options": "nosniff",
}


MAX_CONNECTIONS: Final = 32
"""Maximum number of simultaneous connections; a browser uses six. Silent ones are closed after a while."""

Answers = Mapping[str, tuple[str, Callable[[], bytes]]]
"""What a server answers in addition to its pages' files: path -> content type and body."""


def answers_of(view: View) -> Answers:
    """Return the answers about a board."""
    return {
        "/board.json": ("application/json", lambda: json.dumps(view.document()).encode()),
        "/waits.json": ("application/json", lambda: json.dumps(view.waits()).encode()),
        "/findings.sarif": ("application/sarif+json", lambda: json.dumps(view.sarif()).encode()),
        "/trace.json": ("application/json", view.trace),
        "/metrics": ("text/plain; version=0.0.4; charset=utf-8", lambda: metrics_of(view.document()).encode()),
    }


class Server(ThreadingHTTPServer):
    """A server on loopback; call ``serve_forever`` to run it.

    Args:
        port: Port to listen on; 0 picks a free one.
        answers: What it answers in addition to its pages' files.
        page: The page to open.

    Raises:
        OSError: the port is in use.
    """

    daemon_threads = True

    def __init__(self, port: int, answers: Answers, page: str = "") -> None:
        self.answers, self.page = answers, page
        self.token: Final = secrets.token_urlsafe(24)
        self._free = threading.BoundedSemaphore(MAX_CONNECTIONS)
        super().__init__((HOST, port), _Handler)

    @property
    def url(self) -> str:
        """The address to open."""
        return f"http://{HOST}:{self.server_port}/{self.page}?token={self.token}"

    @property
    def cookie(self) -> str:
        """Name of the cookie with the token; it contains the port because a host's ports share cookies."""
        return f"hbrt-{self.server_port}"

    def process_request(self, request: Any, client_address: Any) -> None:
        """Serve a connection in a thread of its own, or close it if there are already too many."""
        if not self._free.acquire(blocking=False):
            self.shutdown_request(request)
            return
        try:
            super().process_request(request, client_address)
        except Exception:  # no more threads; Ctrl-C may come once one has started, which then releases it itself
            self._free.release()
            raise

    def process_request_thread(self, request: Any, client_address: Any) -> None:
        """Serve a connection until it ends."""
        try:
            super().process_request_thread(request, client_address)
        finally:
            self._free.release()

    def names(self) -> set[str]:
        """Names by which a browser may call this server; pages under other names that resolve to it are refused."""
        return {f"{host}:{self.server_port}" for host in (HOST, "localhost")}


class _Handler(BaseHTTPRequestHandler):
    server: Server
    server_version = "hbrt"
    protocol_version = "HTTP/1.1"
    timeout = 15

    def do_GET(self) -> None:
        """Answer a request."""
        path = self.path.partition("?")[0]
        if self.headers.get("Host") not in self.server.names():
            self._send(HTTPStatus.FORBIDDEN, "text/plain", b"This page has another address: 'hbrt web' printed it.\n")
        elif not self._is_admitted():
            self._send(
                HTTPStatus.FORBIDDEN, "text/plain", b"Open the address that 'hbrt web' printed with its token.\n"
            )
        elif path in FILES:
            name, kind = FILES[path]
            self._send(HTTPStatus.OK, kind, (_PAGE / name).read_bytes())
        elif path in self.server.answers:
            kind, answer = self.server.answers[path]
            try:
                self._send(HTTPStatus.OK, kind, answer())
            except BoardError as error:
                self._send(HTTPStatus.CONFLICT, "application/json", json.dumps({"error": str(error)}).encode())
        else:
            self._send(HTTPStatus.NOT_FOUND, "text/plain", b"No such page.\n")

    def _is_admitted(self) -> bool:
        """Whether the request has the token, in its address or as a cookie."""
        given = parse_qs(urlsplit(self.path).query).get("token", [""])[0]
        cookies = (one.strip().partition("=") for one in self.headers.get("Cookie", "").split(";"))
        told = [given, *(value for name, _, value in cookies if name == self.server.cookie)]
        return any(secrets.compare_digest(one.encode("utf-8", "replace"), self.server.token.encode()) for one in told)

    def _send(self, status: HTTPStatus, kind: str, body: bytes) -> None:
        self.send_response(status)
        for name, value in {**_HEADERS, "Content-Type": kind, "Content-Length": str(len(body))}.items():
            self.send_header(name, value)
        if status is not HTTPStatus.FORBIDDEN:
            cookie = f"{self.server.cookie}={self.server.token}; HttpOnly; SameSite=Strict; Path=/"
            self.send_header("Set-Cookie", cookie)
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Log nothing: the terminal belongs to the user."""
