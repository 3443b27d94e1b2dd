"""The server of the live page: every request is checked, answered from a fixed table, and sent with strict headers."""

from __future__ import annotations

import socket
import socketserver
import sys
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlencode, urlsplit

from portrayal.errors import PortrayalError
from portrayal.report.live.answers import Answer, Answers, Refused, refusal
from portrayal.report.live.guard import Guard

LOCAL = "127.0.0.1"
ANY = ("0.0.0.0", "::", "")
IDLE = 30  # seconds a connection may stay silent

_HEADERS = {
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",  # an address may hold the token
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
}


class ViewServer(ThreadingHTTPServer):
    """Serves one results folder. Port 0 takes a free one; `address` says where it is."""

    daemon_threads = True

    def __init__(
        self, answers: Answers, host: str = LOCAL, port: int = 0, guard: Guard | None = None
    ) -> None:
        self.answers = answers
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
        socketserver.TCPServer.server_bind(self)  # HTTPServer's asks the network for the host's name

    @property
    def port(self) -> int:
        return int(self.server_address[1])

    @property
    def address(self) -> str:
        """What to type into a browser, with the token where one is needed."""
        name = socket.gethostname() if self.host in ANY else self.host
        name = f"[{name}]" if ":" in name else name
        query = "?" + urlencode({"token": self.guard.token}) if self.guard.token else ""
        return f"http://{name}:{self.port}/{query}"

    def handle_error(self, request: Any, client_address: Any) -> None:
        if not isinstance(
            sys.exception(), ConnectionError | TimeoutError
        ):  # a browser that went away is no error
            super().handle_error(request, client_address)


class _Handler(BaseHTTPRequestHandler):
    server: ViewServer
    protocol_version = "HTTP/1.1"
    server_version = "portrayal"
    sys_version = ""
    timeout = IDLE

    def do_GET(self) -> None:
        if "Transfer-Encoding" in self.headers or self.headers.get("Content-Length", "0") != "0":
            self.close_connection = True  # what was sent along is not read, so nothing can follow it
        cookie = None
        try:
            answer = self._answer()
            cookie = self.server.guard.keeps(self._token(), self.server.port)
        except Refused as refused:
            answer = refusal(refused.status, str(refused))
        except PortrayalError as error:
            answer = refusal(HTTPStatus.INTERNAL_SERVER_ERROR, str(error))
        except Exception:
            self._send(refusal(HTTPStatus.INTERNAL_SERVER_ERROR, "Something went wrong here."))
            raise
        self._send(answer, cookie)

    do_HEAD = do_GET

    def _answer(self) -> Answer:
        guard, port = self.server.guard, self.server.port
        if not guard.knows(self.headers.get_all("Host") or [], self.connection.getsockname()[0]):
            raise Refused(HTTPStatus.FORBIDDEN, "This server does not go by that name.")
        if not guard.admits(self._token(), self.headers.get_all("Cookie") or [], port):
            raise Refused(
                HTTPStatus.UNAUTHORIZED, "This needs the token: open the address that the command printed."
            )
        return self.server.answers.answer(self.path)

    def _token(self) -> str | None:
        """The one that stands in the address, if any."""
        try:
            found = parse_qs(urlsplit(self.path).query, max_num_fields=20).get("token")
        except ValueError:
            return None
        return found[0] if found else None

    def _send(self, answer: Answer, cookie: str | None = None) -> None:
        self.send_response(answer.status)
        self.send_header("Content-Type", answer.kind)
        self.send_header("Content-Length", str(len(answer.body)))
        self.send_header("Content-Security-Policy", answer.policy)
        self.send_header("Cache-Control", "private, max-age=60" if answer.keep else "no-store")
        if cookie:
            self.send_header("Set-Cookie", cookie)
        if answer.status == HTTPStatus.METHOD_NOT_ALLOWED:
            self.send_header("Allow", "GET, HEAD")
        if self.close_connection:
            self.send_header("Connection", "close")
        for name, value in _HEADERS.items():
            self.send_header(name, value)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(answer.body)

    def send_error(self, code: int, message: str | None = None, explain: str | None = None) -> None:  # noqa: ARG002
        """What the library refuses by itself (a method, a line too long) is answered as everything else is."""
        status = HTTPStatus(code)
        if status == HTTPStatus.NOT_IMPLEMENTED:
            status = HTTPStatus.METHOD_NOT_ALLOWED
        self.close_connection = True
        self._send(refusal(status, f"{status.phrase}."))

    def version_string(self) -> str:
        return self.server_version

    def log_message(self, format: str, *args: Any) -> None:
        """Requests are not written down."""
