"""The HTTP server of ``hbrt web``: the files of the page, and the board as JSON. On loopback, for reading only."""

from __future__ import annotations

import json
from collections.abc import Callable
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, Final

from dsp_server.commands.web.view import View
from hbrt.errors import BoardError

HOST: Final = "127.0.0.1"
_PAGE = Path(__file__).parent / "page"
FILES: Final = {
    "/": ("index.html", "text/html; charset=utf-8"),
    "/page.js": ("page.js", "text/javascript; charset=utf-8"),
    "/page.css": ("page.css", "text/css; charset=utf-8"),
}
_HEADERS = {
    "Cache-Control": "no-store",
    "Content-Security-Policy": "default-src 'self'; frame-ancestors 'none'",
    "X-Content-Type-Options": "nosniff",
}


class Server(ThreadingHTTPServer):
    """A server on loopback; ``serve_forever`` runs it.

    Args:
        port: 0 for a free one.
        view: The board.

    Raises:
        OSError: the port is in use.
    """

    daemon_threads = True

    def __init__(self, port: int, view: View) -> None:
        self.answers: dict[str, Callable[[], dict[str, Any]]] = {
            "/board.json": view.document,
            "/waits.json": view.waits,
        }
        super().__init__((HOST, port), _Handler)

    @property
    def url(self) -> str:
        """What to open."""
        return f"http://{HOST}:{self.server_port}/"

    def names(self) -> set[str]:
        """What a browser may call this server; a page of another name that resolves to it is refused."""
        return {f"{host}:{self.server_port}" for host in (HOST, "localhost")}


class _Handler(BaseHTTPRequestHandler):
    server: Server
    server_version = "hbrt"
    protocol_version = "HTTP/1.1"
    timeout = 60

    def do_GET(self) -> None:
        """Answer a request."""
        path = self.path.partition("?")[0]
        if self.headers.get("Host") not in self.server.names():
            self._send(HTTPStatus.FORBIDDEN, "text/plain", f"Open {self.server.url}\n".encode())
        elif path in FILES:
            name, kind = FILES[path]
            self._send(HTTPStatus.OK, kind, (_PAGE / name).read_bytes())
        elif path in self.server.answers:
            try:
                status, document = HTTPStatus.OK, self.server.answers[path]()
            except BoardError as error:
                status, document = HTTPStatus.CONFLICT, {"error": str(error)}
            self._send(status, "application/json", json.dumps(document).encode())
        else:
            self._send(HTTPStatus.NOT_FOUND, "text/plain", b"There is no such page.\n")

    def _send(self, status: HTTPStatus, kind: str, body: bytes) -> None:
        self.send_response(status)
        for name, value in {**_HEADERS, "Content-Type": kind, "Content-Length": str(len(body))}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Nothing: the terminal is the user's."""
