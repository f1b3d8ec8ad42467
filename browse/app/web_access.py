"""
Who may use the screen in a web browser: addresses, origins, and the token of the printed address.

A page of any other site can make the user's browser send requests to this server, also under a name
that leads to it (DNS rebinding): such requests have another `Origin` or `Host`. Other programs on
the network, and other users of the machine, lack the token.

Source: RFC 6454 (Origin), RFC 6265bis (SameSite cookies), https://www.w3.org/TR/CSP3/.
"""

from __future__ import annotations

import secrets
from collections.abc import Iterable
from ipaddress import IPv4Address, IPv6Address, ip_address

_LOOPBACK_NAMES = ("localhost", "127.0.0.1", "[::1]")

_TOKEN_BYTES = 32


class WebAccess:
    """
    Decides about requests.

    Attributes:
        token: The secret that a request must have.
        cookie: The name of the cookie with the token. Cookies ignore ports, so it names the port.
        address: The address to open, with the token.
    """

    def __init__(self, host: str, port: int) -> None:
        """Start; `host` and `port` are those of the listener."""
        self.token = secrets.token_urlsafe(_TOKEN_BYTES)
        self.cookie = f"kafkashark-{port}"
        self._port = port
        ip = _ip(host)
        self._is_any = ip is not None and ip.is_unspecified
        is_loopback = host.lower() == "localhost" or (ip is not None and ip.is_loopback)
        names = {_in_url(host)}
        if is_loopback or self._is_any:
            names.update(_LOOPBACK_NAMES)
        self._hosts = {each for name in names for each in self._with_port(name)}
        self.address = f"http://{_in_url(host)}:{port}/?token={self.token}"

    def refusal(
        self, host: str, origin: str | None, tokens: Iterable[str], local_ip: str
    ) -> str | None:
        """
        Return why a request is refused, in one line; None if it is not.

        Args:
            host: Its header `Host`.
            origin: Its header `Origin`, if any; browsers send it with each web socket.
            tokens: The tokens that it has, in its address and in its cookie.
            local_ip: The address at which its connection arrived.
        """
        host = host.lower()
        if host not in self._hosts and not (
            self._is_any and host in self._with_port(_in_url(local_ip))
        ):
            return "this server is not reached by that name: open the printed address"
        if origin is not None and origin.lower() != f"http://{host}":
            return "requests of other sites are refused"
        token = self.token.encode()
        if not any(
            secrets.compare_digest(each.encode("utf-8", "replace"), token) for each in tokens
        ):
            return "open the address that kafkashark printed at its start: it has a token"
        return None

    def _with_port(self, name: str) -> tuple[str, ...]:
        """Return a name as in `Host`, which omits the port 80."""
        return (f"{name}:{self._port}", *((name,) if self._port == 80 else ()))


def headers(host: str) -> dict[str, str]:
    """
    Return headers that keep the screen out of other sites, and the page within this server.

    Args:
        host: The header `Host` of an accepted request; empty if it was not.
    """
    socket = f" ws://{host}" if host else ""
    # The terminal of the page writes its styles into the page.
    policy = (
        "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; "
        f"img-src 'self' data:; font-src 'self'; connect-src 'self'{socket}; "
        "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    )
    return {
        "Content-Security-Policy": policy,
        "X-Frame-Options": "DENY",
        "X-Content-Type-Options": "nosniff",
        "Referrer-Policy": "no-referrer",
        "Cross-Origin-Opener-Policy": "same-origin",
        "Cross-Origin-Resource-Policy": "same-origin",
        "Cache-Control": "no-store",
    }


def _ip(host: str) -> IPv4Address | IPv6Address | None:
    try:
        return ip_address(host.partition("%")[0])
    except ValueError:
        return None


def _in_url(host: str) -> str:
    return f"[{host.lower()}]" if ":" in host else host.lower()
