"""
The software of both sides of a connection, as far as ApiVersions reveals it.

Clients send their name and version (KIP-511). Brokers do not; but the versions that they offer may
match those of a release of Kafka.
"""

from __future__ import annotations

from conform.evidence.observation import Turn
from conform.evidence.offered_versions import offer_of


def learn_software(turn: Turn) -> None:
    """Record the software of client and broker from an ApiVersions exchange."""
    asked, talk = turn.asked, turn.talk
    name = asked.get("client_software_name") if asked is not None else None
    if asked is not None and name:
        talk.client.software = f"{name} {asked.client_software_version}".strip()
    offer = offer_of(turn)
    if offer is not None:
        talk.broker.software = offer.release
