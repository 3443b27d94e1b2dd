"""The server of the live page. It checks every request, answers from fixed routes, and sends strict headers."""

from __future__ import annotations

import socket
import socketserver
import sys
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlencode, urlsplit

from portrayal.errors import PortrayalError
from portrayal.report.live.guard import Guard
from portrayal.report.live.routes import HttpError, Response, Routes, error_response

LOCALHOST = "127.0.0.1"
ANY_ADDRESS = ("0.0.0.0", "::", "")
IDLE_TIMEOUT = 30  # seconds

_HEADERS = {
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",  # a URL may hold the token
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
}


class ViewServer(ThreadingHTTPServer):
    """Serves one results folder. Port 0 takes a free port; `address` is its URL."""

    daemon_threads = True

    def __init__(
        self, routes: Routes, host: str = LOCALHOST, port: int = 0, guard: Guard | None = None
    ) -> None:
        self.routes = routes
        self.guard = guard or Guard()
        self.host = host
        self.address_family = socket.AF_INET6 if ":" in host else socket.AF_INET
        try:
            super().__init__((host, port), _Handler)
        except OSError as error:
            reason = error.strerror or str(error)
            hint = " Choose another --port, or none to get a free one." if port else ""
            raise PortrayalError(f"Cannot serve on port {port} of {host}: {reason}.{hint}") from None

    def server_bind(self) -> None:
        socketserver.TCPServer.server_bind(self)  # HTTPServer's would query the host's name from DNS

    @property
    def port(self) -> int:
        return int(self.server_address[1])

    @property
    def address(self) -> str:
        """The URL, with the token if one is needed."""
        name = socket.gethostname() if self.host in ANY_ADDRESS else self.host
        name = f"[{name}]" if ":" in name else name
        query = "?" + urlencode({"token": self.guard.token}) if self.guard.token else ""
        return f"http://{name}:{self.port}/{query}"

    def handle_error(self, request: Any, client_address: Any) -> None:
        if not isinstance(
            sys.exception(), ConnectionError | TimeoutError
        ):  # the browser closed the connection
            super().handle_error(request, client_address)


class _Handler(BaseHTTPRequestHandler):
    server: ViewServer
    protocol_version = "HTTP/1.1"
    server_version = "portrayal"
    sys_version = ""
    timeout = IDLE_TIMEOUT

    def do_GET(self) -> None:
        if "Transfer-Encoding" in self.headers or self.headers.get("Content-Length", "0") != "0":
            self.close_connection = True  # the body is not read, so no request can follow it
        cookie = None
        try:
            response = self._respond()
            cookie = self.server.guard.cookie_to_set(self._token(), self.server.port)
        except HttpError as error:
            response = error_response(error.status, str(error))
        except PortrayalError as error:
            response = error_response(HTTPStatus.INTERNAL_SERVER_ERROR, str(error))
        except Exception:
            self._send(error_response(HTTPStatus.INTERNAL_SERVER_ERROR, "Something went wrong here."))
            raise
        self._send(response, cookie)

    do_HEAD = do_GET

    def _respond(self) -> Response:
        guard, port = self.server.guard, self.server.port
        if not guard.allows_host(self.headers.get_all("Host") or [], self.connection.getsockname()[0]):
            raise HttpError(HTTPStatus.FORBIDDEN, "This server has another host name.")
        if not guard.is_authorized(self._token(), self.headers.get_all("Cookie") or [], port):
            raise HttpError(
                HTTPStatus.UNAUTHORIZED, "A token is missing: open the address that the command printed."
            )
        return self.server.routes.respond(self.path)

    def _token(self) -> str | None:
        """The token in the query, if any."""
        try:
            tokens = parse_qs(urlsplit(self.path).query, max_num_fields=20).get("token")
        except ValueError:
            return None
        return tokens[0] if tokens else None

    def _send(self, response: Response, cookie: str | None = None) -> None:
        self.send_response(response.status)
        self.send_header("Content-Type", response.content_type)
        self.send_header("Content-Length", str(len(response.body)))
        self.send_header("Content-Security-Policy", response.csp)
        self.send_header("Cache-Control", "private, max-age=60" if response.cacheable else "no-store")
        if cookie:
            self.send_header("Set-Cookie", cookie)
        if response.status == HTTPStatus.METHOD_NOT_ALLOWED:
            self.send_header("Allow", "GET, HEAD")
        if self.close_connection:
            self.send_header("Connection", "close")
        for name, value in _HEADERS.items():
            self.send_header(name, value)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(response.body)

    def send_error(self, code: int, message: str | None = None, explain: str | None = None) -> None:  # noqa: ARG002
        """Errors of http.server (a method, a line too long) get the same headers as other responses."""
        status = HTTPStatus(code)
        if status == HTTPStatus.NOT_IMPLEMENTED:
            status = HTTPStatus.METHOD_NOT_ALLOWED
        self.close_connection = True
        self._send(error_response(status, f"{status.phrase}."))

    def version_string(self) -> str:
        return self.server_version

    def log_message(self, format: str, *args: Any) -> None:
        """Requests are not logged."""
