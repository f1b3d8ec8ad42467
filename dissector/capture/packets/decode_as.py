"""Tunnels on other UDP ports than their usual ones: `udp.port==10800,vxlan`, as tshark's -d."""

from __future__ import annotations

import re
from collections.abc import Iterable

from dissector.capture.iana_numbers import TUNNEL_PORTS
from dissector.errors import UsageError

TUNNELS = tuple(sorted(set(TUNNEL_PORTS.values())))
"""Names of the tunnels in UDP."""

_RULE = re.compile(r"([\w.]+)\s*==\s*(\d+)(?:-(\d+))?\s*,\s*([\w.-]+)")


def tunnel_ports(rules: Iterable[str]) -> dict[int, str]:
    """
    Return the tunnel of each UDP port that has one, by default and by rules; the last one counts.

    Raises:
        UsageError: A rule is invalid.
    """
    ports = dict(TUNNEL_PORTS)
    for rule in rules:
        ports |= dict.fromkeys(*_ports_and_tunnel(rule))
    return ports


def _ports_and_tunnel(rule: str) -> tuple[range, str]:
    found = _RULE.fullmatch(rule.strip())
    if found is None:
        raise UsageError(
            f"--decode-as takes udp.port==PORT,PROTOCOL, as udp.port==10800,vxlan, not {rule!r}"
        )
    field, low, high, name = found.groups()
    if field == "tcp.port":
        raise UsageError("--decode-as takes udp.port; Kafka on a TCP port: --port N")
    if field != "udp.port":
        raise UsageError(f"--decode-as takes udp.port==PORT,PROTOCOL, not {field}")
    tunnel = name.lower().replace("_", "-")
    if tunnel not in TUNNELS:
        raise UsageError(f"--decode-as knows {', '.join(TUNNELS)}, not {name!r}")
    ports = range(int(low), int(high or low) + 1)
    if not ports or not 0 < ports[0] <= ports[-1] < 1 << 16:
        raise UsageError(f"--decode-as takes ports from 1 to 65535, not {rule!r}")
    return ports, tunnel
