"""Access control: the host names of the server, and a token if other machines can reach it."""

from __future__ import annotations

import hmac
import ipaddress
import secrets
from dataclasses import dataclass, field

LOCAL_NAMES = frozenset({"127.0.0.1", "localhost", "::1"})


def is_local(host: str) -> bool:
    """Whether an address is reachable from this machine only.

    >>> is_local("127.0.0.1"), is_local("localhost"), is_local("0.0.0.0"), is_local("example.org")
    (True, True, False, False)
    """
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host.lower() == "localhost"


@dataclass(frozen=True)
class Guard:
    """What a request must have: a known Host header, and the token if there is one.

    The Host check prevents DNS rebinding. A foreign page can point its own host name at this machine, but the browser
    then sends that name as Host.
    """

    names: frozenset[str] = LOCAL_NAMES
    token: str | None = field(default=None, repr=False)

    @classmethod
    def for_remote(cls, *names: str) -> Guard:
        return cls(LOCAL_NAMES | {name.lower() for name in names}, secrets.token_urlsafe(32))

    def allows_host(self, hosts: list[str], address: str) -> bool:
        """Whether the Host headers name this server; `address` is the one of the connection.

        The port is ignored, since it is another one behind a tunnel.
        """
        if len(hosts) != 1:
            return False
        name = _host_name(hosts[0].strip().lower())
        return name in self.names or name == address.lower()

    def is_authorized(self, token: str | None, cookies: list[str], port: int) -> bool:
        """Whether the token is not needed, or is in the query or in the cookie."""
        return self.token is None or self._is_token(token) or self._is_token(_cookie(cookies, port))

    def cookie_to_set(self, token: str | None, port: int) -> str | None:
        """The cookie to set if the token was in the query, so that later addresses need not hold it."""
        if self.token is None or not self._is_token(token):
            return None
        return f"{_cookie_name(port)}={self.token}; Path=/; HttpOnly; SameSite=Strict"

    def _is_token(self, token: str | None) -> bool:
        expected = (self.token or "").encode()
        return bool(token) and hmac.compare_digest((token or "").encode("utf-8", "replace"), expected)


def _host_name(host: str) -> str:
    """A Host header without its port.

    >>> _host_name("localhost:8000"), _host_name("[::1]:8000")
    ('localhost', '::1')
    """
    name, end, _ = host.removeprefix("[").partition("]" if host.startswith("[") else ":")
    return name if end or not host.startswith("[") else ""


def _cookie_name(port: int) -> str:
    return f"portrayal_{port}"  # by port, since a cookie is sent to all ports of a host


def _cookie(headers: list[str], port: int) -> str | None:
    """The value of the cookie. http.cookies would stop at a malformed cookie of another server on this host."""
    pairs = (pair.strip().partition("=") for header in headers for pair in header.split(";"))
    return next((value for name, _, value in pairs if name == _cookie_name(port)), None)
