"""Who may ask: the names the server goes by, and a token where others than this machine can reach it."""

from __future__ import annotations

import hmac
import ipaddress
import secrets
from dataclasses import dataclass, field

LOCAL_NAMES = frozenset({"127.0.0.1", "localhost", "::1"})


def is_local(host: str) -> bool:
    """Whether only this machine reaches an address.

    >>> is_local("127.0.0.1"), is_local("localhost"), is_local("0.0.0.0"), is_local("example.org")
    (True, True, False, False)
    """
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host.lower() == "localhost"


@dataclass(frozen=True)
class Guard:
    """What a request must bring. A page elsewhere can point a name of its own at this machine and then read what
    is served here as its own; it cannot make a browser send another Host than that name.
    """

    names: frozenset[str] = LOCAL_NAMES
    token: str | None = field(default=None, repr=False)

    @classmethod
    def for_remote(cls, *names: str) -> Guard:
        return cls(LOCAL_NAMES | {name.lower() for name in names}, secrets.token_urlsafe(32))

    def knows(self, hosts: list[str], address: str) -> bool:
        """Whether the Host headers name this server; `address` is the one that was connected to.

        The port is not looked at: it is another one where a tunnel leads here.
        """
        if len(hosts) != 1:
            return False
        name = _host_name(hosts[0].strip().lower())
        return name in self.names or name == address.lower()

    def admits(self, given: str | None, cookies: list[str], port: int) -> bool:
        """Whether a token is not needed, or came with the address or in the cookie."""
        return self.token is None or self._is_token(given) or self._is_token(_cookie(cookies, port))

    def keeps(self, given: str | None, port: int) -> str | None:
        """The cookie to set when the token came with the address, so that it need not stand there again."""
        if self.token is None or not self._is_token(given):
            return None
        return f"{_name(port)}={self.token}; Path=/; HttpOnly; SameSite=Strict"

    def _is_token(self, given: str | None) -> bool:
        expected = (self.token or "").encode()
        return bool(given) and hmac.compare_digest((given or "").encode("utf-8", "replace"), expected)


def _host_name(host: str) -> str:
    """A Host header without its port.

    >>> _host_name("localhost:8000"), _host_name("[::1]:8000")
    ('localhost', '::1')
    """
    name, end, _ = host.removeprefix("[").partition("]" if host.startswith("[") else ":")
    return name if end or not host.startswith("[") else ""


def _name(port: int) -> str:
    return f"portrayal_{port}"  # a cookie is sent to every port of a host


def _cookie(headers: list[str], port: int) -> str | None:
    """By hand, since http.cookies gives up at the first odd cookie, and other servers of this host may set such."""
    pairs = (pair.strip().partition("=") for header in headers for pair in header.split(";"))
    return next((value for name, _, value in pairs if name == _name(port)), None)
