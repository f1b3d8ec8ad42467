"""
The hosts to which connections may go: those that the user names, and no others that a target names.

A target advertises the addresses of its brokers, and a client sends them what it was given for the
target. They may be wrong (a cluster restored from another one advertises that one) or hostile. So
by default each connection goes to a host that the user named. The names and addresses of one host
are the same, whatever the port: `localhost` is `127.0.0.1`.

A name that only the target gives is looked up, to compare its addresses. The name's server learns
nothing but the name, which the target chose itself. Only the addresses that were compared are
connected to, as another look-up could return others.
"""

from __future__ import annotations

import asyncio
import ipaddress
import shlex
from collections.abc import Iterable, Sequence
from contextlib import suppress

from cluster.client.auth import Security
from cluster.client.endpoint import Endpoint, parse_address, resolve
from cluster.client.transport import format_address
from dissector.errors import ReplayError

_MAX_NAMED = 4
"""Most hosts named in one message: a target can name any number."""

_CONCURRENT_LOOKUPS = 16


class HostRefused(ReplayError):
    """
    A host that only the target names, and that the user has not allowed.

    Attributes:
        is_secret: Whether it is allowed, but not to get the password or token.
    """

    is_secret = False


class AllowedHosts:
    """
    Decides for each connection to one target whether its host is allowed.

    Args:
        targets: The addresses of the target as the user gave them; any of their ports is allowed.
        security: Which other hosts the user allows, and whether a secret is sent in plain text.

    Raises:
        UsageError: An address is invalid.
    """

    def __init__(self, targets: Sequence[str], security: Security) -> None:
        self._addresses = ",".join(targets)
        self._security = security
        self._given = _HostSet((parse_address(each)[0], None) for each in targets)
        self._also = _HostSet(map(_host_and_port, security.also))
        self._told: set[str] = set()

    async def permit(self, host: str, port: int, timeout_s: float) -> Endpoint:
        """
        Return the endpoint to connect to; its addresses are those that are allowed.

        Raises:
            HostRefused: The host is not allowed, or may not get the secret.
            ReplayError: It has no address.
        """
        endpoint, is_other = await self._judge(host, port, timeout_s)
        self._tell([endpoint] if is_other else [])
        return endpoint

    async def check(self, brokers: Iterable[tuple[str, int]], timeout_s: float) -> None:
        """
        Check the hosts that a target names before it gets a request; tell the user of others.

        Raises:
            HostRefused: Some are not allowed.
        """
        others: list[Endpoint] = []
        waiting = list(dict.fromkeys(brokers))
        while waiting:
            now, waiting = waiting[:_CONCURRENT_LOOKUPS], waiting[_CONCURRENT_LOOKUPS:]
            found = await asyncio.gather(
                *(self._judge(*each, timeout_s) for each in now), return_exceptions=True
            )
            self._raise_refusals([each for each in found if isinstance(each, HostRefused)])
            for each in found:
                if isinstance(each, BaseException):
                    if not isinstance(each, ReplayError):
                        raise each
                elif each[1]:
                    others.append(each[0])
        self._tell(others)

    async def _judge(self, host: str, port: int, timeout_s: float) -> tuple[Endpoint, bool]:
        """Return the allowed endpoint, and whether it is on another host than the user's."""
        if self._given.has(host, port):
            return self._given.add_addresses(await resolve(host, port, timeout_s)), False
        is_named = self._also.has(host, port) or self._security.follow_advertised
        try:
            endpoint = await resolve(host, port, timeout_s)
        except ReplayError:
            if is_named:
                raise
            raise self._refusal(host, port) from None
        same = await self._given.common(endpoint, timeout_s)
        if same is not None:
            return same, False
        allowed = endpoint if is_named else await self._also.common(endpoint, timeout_s)
        if allowed is None:
            raise self._refusal(host, port)
        security = self._security
        is_plain = bool(security.mechanism) and security.tls is None
        if is_plain and not security.allow_plaintext_password:
            raise self._secret_refusal(host, port)
        return allowed, True

    def _refusal(self, host: str, port: int) -> HostRefused:
        what = "the target names this host, you did not"
        address = format_address(host, port)
        return HostRefused(address, what, self._advice([address]))

    def _secret_refusal(self, host: str, port: int) -> HostRefused:
        what = "only the target names this host, so it gets no password or token without TLS"
        refusal = HostRefused(format_address(host, port), what, self._secret_advice())
        refusal.is_secret = True
        return refusal

    def _advice(self, refused: Sequence[str]) -> str:
        option = f"--{self._security.option_prefix}"
        # The text is the target's, and made to be copied into a shell.
        words = (f"{option}also {shlex.quote(each)}" for each in refused[:_MAX_NAMED])
        return f"add {' '.join(words)}, or {option}follow-advertised"

    def _secret_advice(self) -> str:
        option = f"--{self._security.option_prefix}"
        return f"add {option}tls, or {option}allow-plaintext-password"

    def _raise_refusals(self, refusals: Sequence[HostRefused]) -> None:
        """Raise one error about all refused hosts."""
        if not refusals:
            return
        if all(each.is_secret for each in refusals):
            names = _listed([each.address for each in refusals])
            what = f"names other hosts, which get no password or token without TLS: {names}"
            raise HostRefused(self._addresses, what, self._secret_advice())
        unknown = [each.address for each in refusals if not each.is_secret]
        what = f"names hosts that you did not: {_listed(unknown)}"
        raise HostRefused(self._addresses, what, self._advice(unknown))

    def _tell(self, others: Iterable[Endpoint]) -> None:
        """Tell the user about other hosts before anything is sent to them."""
        new = [name for name in map(str, others) if name not in self._told]
        self._told.update(new)
        if new:
            names = ", ".join(new)
            self._security.tell(
                f"{self._addresses} names other hosts, which are contacted too: {names}"
            )


class _HostSet:
    """
    Hosts that the user named, by their names and addresses.

    Args:
        hosts: Names or addresses, each with the only allowed port; None for any.
    """

    def __init__(self, hosts: Iterable[tuple[str, int | None]]) -> None:
        self._ports: dict[str, set[int | None]] = {}
        for host, port in hosts:
            self._ports.setdefault(_normal(host), set()).add(port)
        self._unresolved = set(self._ports)

    def has(self, host: str, port: int) -> bool:
        """Return whether a name or address with this port is among the hosts."""
        ports = self._ports.get(_normal(host), ())
        return None in ports or port in ports

    def add_addresses(self, endpoint: Endpoint) -> Endpoint:
        """Add the addresses of a host in the set; return it."""
        name = _normal(endpoint.host)
        ports = self._ports[name]
        for place in endpoint.places:
            self._ports.setdefault(place.address, set()).update(ports)
        self._unresolved.discard(name)
        return endpoint

    async def common(self, endpoint: Endpoint, timeout_s: float) -> Endpoint | None:
        """Return an endpoint with only those addresses that the hosts have too; None for none."""
        for name in sorted(self._unresolved):
            with suppress(ReplayError):  # it is tried again for the next host
                self.add_addresses(await resolve(name, endpoint.port, timeout_s))
        places = tuple(each for each in endpoint.places if self.has(each.address, endpoint.port))
        return endpoint._replace(places=places) if places else None


def _normal(host: str) -> str:
    """Return a name as it is compared: without the case, and without the dot of the root."""
    return host.lower().removesuffix(".")


def _host_and_port(text: str) -> tuple[str, int | None]:
    """Parse `host`, `host:port` or `[host]:port`; the port is None where it is not given."""
    try:
        return str(ipaddress.ip_address(text.strip("[]"))), None
    except ValueError:
        host, port = parse_address(text)
        return host, port if ":" in text and not text.endswith("]") else None


def _listed(names: Sequence[str]) -> str:
    """Return the first names, and how many more there are."""
    more = len(names) - _MAX_NAMED
    return ", ".join(names[:_MAX_NAMED]) + (f" and {more} more" if more > 0 else "")
